"""Whole runs of any small scenario: laws that need no answer.

``make fuzz`` runs as many as it is given (EXAMPLES), on the engine that it is given (WBSIM_ENGINE).
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any, Final

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.harness import FIO
from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.machine import LIGHT, STOCK, Machine, Primitives, build
from wbsim.models.scenario import Scenario
from wbsim.sim import COMPILED
from wbsim.sim.units import MS, US

PHASES: Final = [Phase.explicit, Phase.generate] if "EXAMPLES" in os.environ else list(Phase)
EXAMPLES: Final = int(os.environ.get("EXAMPLES", "20"))
DISKS = ("loop", "sata-ssd", "sata-disk", "pm9a3", "bm1743")
FLUSHERS = (
    None, '{ kind = "per_bdi" }', '{ kind = "pdflush" }',
    '{ kind = "pdflush", min_threads = 1, max_threads = 3 }',
    '{ kind = "parallel", by = "hash", contexts = 3 }', '{ kind = "parallel", by = "allocation_group" }',
    '{ kind = "parallel", by = "processor" }',
)  # fmt: skip
KIB_OF = (4, 8, 12, 64, 300)


@st.composite
def programs(draw: st.DrawFn, mounts: list[str]) -> str:
    """A command line, in one or two directories of *mounts*."""
    where = draw(st.lists(st.sampled_from(mounts), min_size=1, max_size=2))
    size, count = draw(st.sampled_from(KIB_OF)), draw(st.integers(1, 30))
    match draw(st.sampled_from(["fs_mark", "fio", "dd", "sync"])):
        case "fs_mark":
            ways = " ".join(f"-d {at}/{n}" for n, at in enumerate(where))
            return (
                f"fs_mark -k -S0 -n {count * len(where)} -s {size << 10} -L {draw(st.integers(1, 3))} {ways}"
            )
        case "fio":
            rw, numjobs = draw(st.sampled_from(["write", "randwrite"])), draw(st.integers(1, 3))
            more = draw(st.sampled_from(["", " --fsync_on_close=1", " --end_fsync=1", " --thinktime=200"]))
            each = f"--numjobs={numjobs} --nrfiles={draw(st.integers(1, 3))} --filesize={4 * count}k"
            return f"{FIO} --rw={rw} {each}{more} --name=a --directory={where[0]}"
        case "dd":
            return f"dd if=/dev/zero of={where[0]}/x{draw(st.integers(0, 9))} bs={size}k count={count}"
    return "sync"


@st.composite
def scenarios(draw: st.DrawFn) -> str:
    """A configuration: one or two of everything, on any kernel."""
    disks = draw(st.lists(st.sampled_from(DISKS), min_size=1, max_size=2))
    kernel, flusher = draw(st.sampled_from(sorted(KERNELS))), draw(st.sampled_from(FLUSHERS))
    dirty = draw(st.sampled_from([1, 2, 3, 7, 40]))
    lines = [
        'title = "any"', "[scenario]", 'machine.like = "loop-vm"',
        f"machine.processors.count = {draw(st.integers(1, 4))}", f'kernel.like = "{kernel}"',
        f'kernel.dirty.dirty_bytes = "{dirty} MiB"',
        f'kernel.dirty.dirty_background_bytes = "{draw(st.integers(1, 9)) * dirty * 100} KiB"',
        f'kernel.writeback.interval = "{draw(st.sampled_from([7, 50, 900]))} ms"',
        f'kernel.writeback.expire = "{draw(st.sampled_from([0, 20, 2_000]))} ms"', "sync_after = true",
    ]  # fmt: skip
    if flusher is not None:
        lines.append(f"kernel.flusher = {flusher}")
    for n, disk in enumerate(disks):
        lines.append(f'machine.disks.d{n}.like = "{disk}"')
        scheduler, requests = (
            draw(st.sampled_from(["noop", "deadline", "cfq"])),
            draw(st.sampled_from([4, 31, 128])),
        )
        lines.append(f'machine.disks.d{n}.queue.elevator = {{ scheduler = "{scheduler}", fifo_batch = 3 }}')
        lines.append(f"machine.disks.d{n}.queue.nr_requests = {requests}")
        lines.append(f"machine.disks.d{n}.queue.driver_depth = {draw(st.sampled_from([1, 3, 128]))}")
    mounts = [f"/m{n}" for n in range(draw(st.integers(1, 3)))]
    for at in mounts:
        filesystem = draw(st.sampled_from(["loop-xfs", "loop-ext4"]))
        disk = draw(st.integers(0, len(disks) - 1))
        lines.append(
            f'mounts.{at[1:]} = {{ like = "{filesystem}", disk = "d{disk}", at = "{at}", size = "4 GiB" }}'
        )
    commands = draw(st.lists(programs(mounts), min_size=1, max_size=3))
    if all(command == "sync" for command in commands):
        commands.append(f"dd if=/dev/zero of={mounts[0]}/y bs=8k count=9")
    for n, command in enumerate(commands):
        start = draw(st.sampled_from([0, 3, 40]))
        lines.append(f'programs.p{n} = {{ command = "{command}", start = "{start} ms" }}')
    return "\n".join(lines)


def ran(scenario: Scenario, seed: int, primitives: Primitives = LIGHT, watched: bool = False) -> Machine:
    """A run of it to its end; watched or not."""
    machine = build(scenario, seed, primitives=primitives)
    if watched:
        machine.watch(lambda: 330 * US, lambda: None)
    machine.run()
    return machine


def came_to(machine: Machine) -> dict[str, Any]:
    """What can be told of a run."""
    return {
        "now": machine.env.now, "dirtied": machine.cache.dirtied,
        "disks": {name: asdict(queue.stat) for name, queue in machine.queues.items()},
        "programs": {name: (of.system_ns, of.user_ns) for name, of in machine.programs.items()},
        "threads": [(thread.task.ran_ns, thread.spent.by_path()) for thread in machine.threads],
        "extents": {name: sb.filesystem.extents_per_file() for name, sb in machine.mounts.items()},
    }  # fmt: skip


WATCHED: Final = """\
title = "a sync(2) that writes itself, on ext4, whose locality group was chosen by its task's number"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 4
kernel.like = "6.18"
kernel.dirty.dirty_bytes = "1 MiB"
kernel.dirty.dirty_background_bytes = "500 KiB"
sync_after = true
kernel.flusher = { kind = "pdflush" }
machine.disks.d0.like = "sata-ssd"
machine.disks.d0.queue.nr_requests = 31
mounts.m0 = { like = "loop-ext4", disk = "d0", at = "/m0", size = "4 GiB" }
programs.p0 = "fs_mark -k -S0 -n 21 -s 65536 -L 3 -d /m0/0"
"""


@settings(max_examples=EXAMPLES, phases=PHASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenarios(), st.integers(1, 9))
@example(WATCHED, 9)
def test_the_laws_hold_in_any_scenario(text: str, seed: int) -> None:
    """It ends; nothing is lost; all is on disk after the sync; who looks changes nothing; stock SimPy gives
    the same.
    """
    (case,) = parse(text, "x.toml").cases
    machine = ran(case.scenario, seed)
    cache = machine.cache
    assert (cache.dirty, cache.writeback) == (0, 0)
    assert cache.dirtied == cache.written
    for queue in machine.queues.values():
        assert queue.stat.in_flight == 0
        assert queue.busy_ns <= machine.env.now + MS
    found = came_to(machine)
    assert came_to(ran(case.scenario, seed, watched=True)) == found
    if not COMPILED:
        assert came_to(ran(case.scenario, seed, STOCK)) == found
