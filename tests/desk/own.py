"""This machine next to its model, with the costs that `wbsim describe-machine --measure` finds.

The runs are dd with blocks of 1 MiB and of 4 KiB into the page cache, and fs_mark with empty files.  Each
runs on XFS and on ext4.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tests.desk import kernel
from tests.desk.rows import MOUNT
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.machines.measure import cost_lines, measure
from wbsim.experiments.running.simulate import run_case

RUNS: Final = 5
_FILES: Final = 40_000
COMMANDS: Final = {
    "dd, 1 MiB": f"dd if=/dev/zero of={MOUNT}/d/f bs=1M count=1024",
    "dd, 4 KiB": f"dd if=/dev/zero of={MOUNT}/d/f bs=4k count=262144",
    "fs_mark, empty files": f"fs_mark -k -S0 -n {_FILES} -s 0 -L 1 -d {MOUNT}/d",
}


class Seconds(NamedTuple):
    """Times of a run, as time(1) prints them (s)."""

    wall: float
    user: float
    system: float


def lines() -> Iterator[str]:
    """Yield the machine's costs, then a table: the median and the scatter here, and the model's error."""
    costs = cost_lines(measure())
    yield from costs
    yield "| run | wall, s | user, s | system, s |"
    with kernel.loop_device() as device:
        for filesystem in ("xfs", "ext4"):
            for name, command in COMMANDS.items():
                runs = [_run(filesystem, command, device) for _ in range(RUNS + 1)][1:]
                cells = map(_cell, zip(*runs, strict=True), _simulated(filesystem, command, costs))
                yield f"| {filesystem} {name} | {' | '.join(cells)} |"


def _cell(seconds: tuple[float, ...], simulated: float) -> str:
    """Return the median, half of the scatter and the model's error."""
    middle = median(seconds)
    if not middle:
        return f"0, model {simulated:.3g}"
    half = (max(seconds) - min(seconds)) / 2 / middle
    return f"{middle:.3g} ±{100 * half:.0f} %, model {100 * (simulated / middle - 1):+.0f} %"


def _run(filesystem: str, command: str, device: str) -> Seconds:
    """Run *command* on a fresh filesystem."""
    with kernel.mounted(filesystem, device):
        Path(MOUNT, "d").mkdir()
        began = time.monotonic()
        program = subprocess.Popen(
            shlex.split(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=MOUNT
        )
        _, status, usage = os.wait4(program.pid, 0)
        assert status == 0, command
        return Seconds(time.monotonic() - began, usage.ru_utime, usage.ru_stime)


def _simulated(filesystem: str, command: str, costs: list[str]) -> Seconds:
    """Return the times of *command* in the model with these *costs*."""
    text = f"""
title = "this machine"
[scenario]
machine.like = "./own.toml"
kernel.like = "6.18"
mounts.here = {{ like = "desk-{filesystem}", disk = "loop0", at = "{MOUNT}" }}
programs.it = {json.dumps(command)}
sync_after = false
"""
    with TemporaryDirectory() as folder:
        Path(folder, "own.toml").write_text("\n".join(['like = "desk-vm"', *costs]))
        (case,) = parse(text, f"{folder}/runs.toml").cases
    replication = run_case(case, 1, 0)
    of = replication.programs["it"]
    return Seconds(replication.wall_time, of.user_cpu_time, of.system_cpu_time)
