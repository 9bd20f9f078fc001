"""Complete runs of any small scenario: laws that need no expected result.

EXAMPLES sets the number of scenarios (``make fuzz``: `tests.fuzz`), and WBSIM_ENGINE the engine.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any, Final

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.strategies import scenarios, step_lengths
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import LIGHT, STOCK, Machine, Primitives, build
from wbsim.models.scenario import Scenario
from wbsim.models.step_lengths import StepLengths
from wbsim.models.syscalls.latency import Latencies
from wbsim.sim import COMPILED
from wbsim.sim.units import MS, US

PHASES: Final = [Phase.explicit, Phase.generate] if "EXAMPLES" in os.environ else list(Phase)
EXAMPLES: Final = int(os.environ.get("EXAMPLES", "20"))


USUAL: Final = StepLengths()


def ran(
    scenario: Scenario,
    seed: int,
    primitives: Primitives = LIGHT,
    watched: bool = False,
    lengths: StepLengths = USUAL,
) -> Machine:
    """Run *scenario* to its end, with or without an observer; return the machine."""
    machine = build(scenario, seed, primitives=primitives, lengths=lengths)
    used: dict[str, float] = {}

    def look() -> None:
        """The use of each part of a device does not fall, and does not exceed the elapsed time."""
        for disk, queue in machine.queues.items():
            for part, ns in queue.uses().items():
                assert used.get(f"{disk} {part}", 0) <= ns <= machine.env.now, (disk, part)
                used[f"{disk} {part}"] = ns

    if watched:
        machine.watch(lambda: 330 * US, look)
    machine.run()
    return machine


def latencies_of(latencies: Latencies) -> dict[str, object]:
    """Return the latencies of each kind of call."""
    return {
        name: (of.count, of.total_ns, of.min_ns, of.max_ns, of.bins(), of.slowest())
        for name, of in latencies.by_call().items()
    }


def came_to(machine: Machine) -> dict[str, Any]:
    """Return the figures of a run that are compared."""
    return {
        "now": machine.env.now, "dirtied": machine.cache.dirtied,
        "disks": {name: asdict(queue.stat) for name, queue in machine.queues.items()},
        "arrays": {name: asdict(array.stat) for name, array in machine.arrays.items()},
        "programs": {name: (of.system_ns, of.user_ns) for name, of in machine.programs.items()},
        "latencies": {name: latencies_of(of.latencies) for name, of in machine.programs.items()},
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

GIVEN_BACK: Final = """\
title = "a sync(2) is busy with other files while pdflush gives back the rest of the one that it writes"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 4
kernel.like = "2.6.30"
kernel.dirty.dirty_bytes = "7 MiB"
kernel.dirty.dirty_background_bytes = "2800 KiB"
kernel.writeback.interval = "50 ms"
kernel.writeback.expire = "20 ms"
sync_after = true
machine.disks.d0.like = "pm9a3"
machine.disks.d0.queue.elevator = { scheduler = "deadline", fifo_batch = 3 }
machine.disks.d0.queue.nr_requests = 128
machine.disks.d0.queue.driver_depth = 1
mounts.m0 = { like = "loop-ext4", disk = "d0", at = "/m0", size = "4 GiB" }
mounts.m1 = { like = "loop-ext4", disk = "d0", at = "/m1", size = "4 GiB" }
mounts.m2 = { like = "loop-xfs", disk = "d0", at = "/m2", size = "4 GiB" }
programs.p0 = { command = "dd if=/dev/zero of=/m2/x9 bs=300k count=30", start = "3 ms" }
programs.p1 = { command = "fs_mark -k -S0 -n 2 -s 307200 -L 3 -d /m2/0 -d /m0/1", start = "3 ms" }
"""
TWO_SYNCS: Final = """\
title = "a second sync(2) starts while the first one is at work"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 3
kernel.like = "2.6.30"
kernel.dirty.dirty_bytes = "1 MiB"
kernel.dirty.dirty_background_bytes = "600 KiB"
kernel.writeback.interval = "50 ms"
kernel.writeback.expire = "2000 ms"
sync_after = true
machine.disks.d0.like = "pm9a3"
machine.disks.d0.queue.elevator = { scheduler = "noop" }
machine.disks.d0.queue.nr_requests = 31
machine.disks.d0.queue.driver_depth = 128
mounts.m0 = { like = "loop-ext4", disk = "d0", at = "/m0", size = "4 GiB" }
mounts.m1 = { like = "loop-xfs", disk = "d0", at = "/m1", size = "4 GiB" }
programs.p0 = { command = "sync", start = "3 ms" }
programs.p1 = { command = "fs_mark -k -S0 -n 46 -s 4096 -L 3 -d /m0/0 -d /m1/1", start = "0 ms" }
"""
NO_LENGTH: Final = """\
title = "tasks ask for a lock at the instant at which a section of no length ends"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 3
kernel.like = "2.6.29"
kernel.dirty.dirty_bytes = "1 MiB"
kernel.dirty.dirty_background_bytes = "800 KiB"
kernel.writeback.interval = "7 ms"
kernel.writeback.expire = "0 ms"
sync_after = true
kernel.flusher = { kind = "parallel", by = "processor" }
machine.disks.d0.like = "sata-ssd"
machine.disks.d0.queue.elevator = { scheduler = "deadline", fifo_batch = 3 }
machine.disks.d0.queue.nr_requests = 31
machine.disks.d0.queue.driver_depth = 128
machine.disks.d1.like = "sata-disk"
machine.disks.d1.queue.elevator = { scheduler = "noop" }
machine.disks.d1.queue.nr_requests = 128
machine.disks.d1.queue.driver_depth = 128
mounts.m0 = { like = "loop-ext4", disk = "d1", at = "/m0", size = "4 GiB" }
mounts.m1 = { like = "loop-ext4", disk = "d1", at = "/m1", size = "4 GiB" }
programs.p0 = { command = "sync", start = "40 ms" }
programs.p1 = { command = "dd if=/dev/zero of=/m1/p1x4 bs=4k count=28", start = "0 ms" }
programs.p2 = { command = "sync", start = "40 ms" }
"""
PLUG_NS: Final = 3 * MS
CONGESTED: Final = '{ kind = "pdflush"', "2.6."
"""Marks of configurations whose tasks may sleep in congestion_wait, for HZ / 10 without congestion."""
CONGESTION_WAIT_NS: Final = 100 * MS


@settings(max_examples=EXAMPLES, phases=PHASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenarios(), st.integers(1, 9), step_lengths())
@example(WATCHED, 9, USUAL)
@example(GIVEN_BACK, 3, USUAL)
@example(NO_LENGTH, 3, StepLengths(calls=2))
def test_laws_hold_in_any_scenario(text: str, seed: int, lengths: StepLengths) -> None:
    """Any run keeps these laws:

    * The run ends, and no page or request is lost.
    * All pages are on disk after the sync.
    * An observer changes no result, and the lengths of steps do not either.
    * Stock SimPy gives the same results.
    """
    (case,) = parse(text, "x.toml").cases
    machine = ran(case.scenario, seed, lengths=lengths)
    cache = machine.cache
    assert (cache.dirty, cache.writeback) == (0, 0)
    assert cache.dirtied == cache.written_pages
    for queue in machine.queues.values():
        assert queue.stat.in_flight == 0
        assert queue.busy_ns <= machine.env.now + MS
    found = came_to(machine)
    assert came_to(ran(case.scenario, seed, watched=True, lengths=lengths)) == found
    if lengths != USUAL:
        assert came_to(ran(case.scenario, seed)) == found
    if not COMPILED:
        assert came_to(ran(case.scenario, seed, STOCK, lengths=lengths)) == found


@settings(max_examples=EXAMPLES, phases=PHASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenarios(), st.integers(1, 9), st.sampled_from([0, 2, 25]), step_lengths())
@example(TWO_SYNCS, 9, 2, USUAL)
def test_sync_returns_in_any_scenario(text: str, seed: int, at_ms: int, lengths: StepLengths) -> None:
    """A sync(2) returns when all pages that were dirty at its start are written, in any scenario."""
    (case,) = parse(f'{text}\nprograms.s = {{ command = "sync", start = "{at_ms} ms" }}', "x.toml").cases
    machine, dirtied, written = build(case.scenario, seed, lengths=lengths), list[int](), list[int]()
    program, env = machine.programs["s"], machine.env
    env.call_at(at_ms * MS, 1, lambda: dirtied.append(machine.cache.dirtied))
    ends = program.on_end

    def returned() -> None:
        written.append(machine.cache.written_pages)
        ends()

    program.on_end = returned
    machine.run()
    assert len(written) == len(dirtied) == 1
    assert written[0] >= dirtied[0]


@settings(max_examples=EXAMPLES // 4, phases=PHASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenarios())
def test_faster_disk_is_never_slower_beyond_the_noise(text: str) -> None:
    """The fastest of four runs on disks of four times the speed is not slower than the slowest on others.

    It may be slower by a quarter and by two waits, which matter in a run of a few ms.  A wait is in the plug
    of a queue or, with old kernels, in congestion_wait.  A disk that is idle more often leaves more requests
    in its plug, and is congested less often.
    """
    disks = {line.split(".")[2] for line in text.splitlines() if line.startswith("machine.disks.")}
    faster = [f"machine.disks.{disk}.device.speed=4" for disk in sorted(disks)]
    lasted: list[list[int]] = []
    for changes in ([], faster):
        (case,) = parse(text, "x.toml", changes).cases
        lasted.append([ran(case.scenario, seed).env.now for seed in range(1, 5)])
    before, after = lasted
    wait_ns = CONGESTION_WAIT_NS if any(sign in text for sign in CONGESTED) else PLUG_NS
    assert min(after) <= 1.25 * max(before) + 2 * wait_ns
