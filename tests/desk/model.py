"""One row in the model, on the machine of the catalogue."""

from __future__ import annotations

import json
from itertools import compress
from statistics import fmean

from tests.desk.results import Result
from tests.desk.rows import Row
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import build
from wbsim.models.workloads.spec import Iteration
from wbsim.sim.units import S


def configuration(row: Row, like: str = "desk-vm") -> str:
    """Return the configuration of *row* on the machine *like*."""
    most, background = row.dirty_bytes
    programs = "\n".join(
        f"programs.p{number} = {json.dumps(command)}" for number, command in enumerate(row.commands)
    )
    return f"""
title = "{row.name}"
[scenario]
machine.like = "{like}"
machine.processors.count = {row.processors}
kernel.like = "6.18"
kernel.dirty.dirty_bytes = "{most} B"
kernel.dirty.dirty_background_bytes = "{background} B"
mounts.desk = {{ disk = "loop0", at = "/mnt/desk", like = "desk-{row.filesystem}" }}
{programs}
sync_after = true
"""


def measure(row: Row, seed: int = 1, like: str = "desk-vm") -> Result:
    """Simulate *row* once on the machine *like*; return its result."""
    (case,) = parse(configuration(row, like), row.name).cases
    machine = build(case.scenario, seed)
    lines: dict[str, list[Iteration]] = {name: [] for name in machine.programs}
    for name, program in machine.programs.items():
        program.on_iteration = lines[name].append
    machine.run()
    (queue,), (mount,) = machine.queues.values(), machine.mounts.values()
    extents = [file.extent_count() for file in mount.filesystem.layouts() if file.size > 256]
    of_programs = [task.seated or task.name.endswith("parent") for task in machine.processors.tasks]
    ran_s = [task.ran_ns / S for task in machine.processors.tasks]
    first = next(iter(lines.values()))
    return Result(
        wall_s=max(of[-1].end_ns for of in lines.values()) / S,
        rate=fmean(line.files_per_sec for line in first) if "fs_mark" in row.commands[0] else 0.0,
        ios=queue.stat.writes.ios,
        merges=queue.stat.writes.merges,
        extents=fmean(extents) if extents else 0.0,
        program_s=sum(compress(ran_s, of_programs)),
        kernel_s=sum(ran_s) - sum(compress(ran_s, of_programs)),
    )
