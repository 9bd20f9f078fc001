"""Flusher and worker want the same inode's lock: who spins, and what that and the log's lines do to a run."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from tests.harness import FIO, BlockLayer, only
from tests.models.filesystems.lock_times import keep
from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.catalogue.machines import W25_MACHINE
from wbsim.models.filesystems.lock_table import BEGINS
from wbsim.models.filesystems.locks import LockTable
from wbsim.models.lock_makers import LockMakers
from wbsim.models.machine import Machine, build
from wbsim.models.scheduler.cpu import Processors
from wbsim.models.scheduler.runqueue import SchedulerRules
from wbsim.sim.engine import Environment
from wbsim.sim.sync import SpinLock

ONE = f"{FIO} --rw=randwrite --nrfiles=1 --filesize=64m --name=j --directory=/mnt"


def machine(*more: str, kernel: str = "6.17", command: str = ONE) -> Machine:
    """A machine like W25's, on which 16 MiB of pages may be dirty."""
    text = "\n".join([
        'title = "one file"', "[scenario]", 'machine.like = "w25-server"', f'kernel.like = "{kernel}"',
        'filesystem.like = "w25-xfs"', "sync_after = true",
        'kernel.dirty = { dirty_bytes = "16 MiB", dirty_background_bytes = "8 MiB" }',
        f'workload.command = "{command}"', *more,
    ])  # fmt: skip
    return build(parse(text, "x.toml").cases[0].scenario, 1)


def spun_ns(of: Machine) -> int:
    """How long workers spun for inodes' locks."""
    workers = [thread.task for thread in of.threads if "xfs-conv" in thread.task.name]
    return sum(task.spun_ns.get("ILOCK", 0) for task in workers)


@pytest.mark.parametrize(
    ("kernel", "more", "spins"),
    [
        ("6.17", "", True),
        ("5.10", "", True),
        ("6.17", 'kernel.rwsem_spin = "0 s"', False),
        ("6.17", 'machine.processors.wake_time = "10500 ns"', True),
        ("6.17", 'machine.processors.wake_time = "10501 ns"', False),
        ("6.17", "machine.processors.count = 1\nmachine.processors.nodes = 1", False),
    ],
)
def test_a_worker_spins_if_a_reader_is_awake_soon_enough(kernel: str, more: str, spins: bool) -> None:
    """By the kernel, by what a wake-up takes, and by whether there is a processor for it; it burns that."""
    of = machine(more, kernel=kernel)
    of.run()
    assert (spun_ns(of) > 0) == spins


def test_nobody_spins_without_a_processor_for_it() -> None:
    """A line's time while one is idle, a wake-up's otherwise."""
    env = Environment()
    processors = Processors(env, 1, SchedulerRules(10**9), lambda: 0.0)
    makers = LockMakers(env, W25_MACHINE.processors, KERNELS["6.17"], processors, SpinLock)
    relay_ns = makers.of(0)["relay_ns"]
    assert relay_ns() == W25_MACHINE.processors.line_time
    processors.idle = 0
    assert relay_ns() == W25_MACHINE.processors.wake_time


def test_a_worker_that_begins_while_the_flusher_has_the_file_spins() -> None:
    """The flusher has it until 40, its line takes 2, a wake-up 5."""
    site = replace(BlockLayer(wake_ns=5).site, relay_ns=lambda: 2)
    table = LockTable(site, 1, 1, "AGF", "ILOCK")
    lock = table.inode_lock()
    assert keep(table.share(), 0, 0, 40) == 0
    lock.begin(0, 0, 1, 10, 0)
    assert table.locks.workers[0, BEGINS] == 42


def test_readers_are_spun_for_from_5_3_on() -> None:
    """kernel/locking/rwsem.c."""
    spin_ns = {name: kernel.rwsem_spin for name, kernel in KERNELS.items()}
    assert {name for name in spin_ns if spin_ns[name]} == {
        "5.4",
        "5.10",
        "5.17",
        "6.1",
        "6.14",
        "6.17",
        "6.18",
    }
    assert set(spin_ns.values()) == {0, 10_500}


def test_a_worker_that_spins_keeps_up() -> None:
    """Half as many pages at most are under writeback; what lies dirty for longer, lies together.

    The flusher is slower: it has to wait for each conversion.
    """
    most, extents = {}, {}
    for spin in ("10500 ns", "0 ns"):
        of = machine(f'kernel.rwsem_spin = "{spin}"')
        seen: list[int] = []
        rank = of.env.next_rank()

        def look(of: Machine = of, seen: list[int] = seen, rank: int = rank) -> None:
            seen.append(of.cache.writeback)
            if of.env.live_tasks:
                of.env.call_at(of.env.now + 1_000_000, rank, look)

        of.env.call_at(1, rank, look)
        of.run()
        most[spin] = sum(seen) / len(seen)
        extents[spin] = sum(only(of.mounts).filesystem.extents_per_file())
    assert most["10500 ns"] < 0.5 * most["0 ns"]
    assert extents["10500 ns"] < 0.95 * extents["0 ns"]


@cache
def lost_to_slow_lines() -> dict[bool, float]:
    """Return the times of runs with slow lines over those with fast ones, of several flushers and of one."""
    jobs = " ".join(f"--name=j{i} --directory=/mnt/{i}" for i in range(8))
    times: dict[tuple[bool, int], float] = {}
    for several in (False, True):
        for line_ns in (100, 1_000):
            of = machine(
                f'machine.processors.line_from_far = "{line_ns} ns"',
                'kernel.flusher = { kind = "parallel", by = "allocation_group" }' if several else "",
                command=f"{FIO} --rw=randwrite --nrfiles=1 --filesize=16m {jobs}",
            )
            of.run()
            times[several, line_ns] = of.env.now
    return {several: times[several, 1_000] / times[several, 100] for several in (False, True)}


def test_slow_lines_of_the_log_slow_down_flushers() -> None:
    """The time of a line is ten times as long: one flusher and its worker lose a fifth, eight lose more."""
    lost = lost_to_slow_lines()
    assert lost[True] > lost[False] > 1.2


@pytest.mark.xfail(
    strict=True,
    reason="the lines take the rates of the last step, and those of a worker are short by now",
)
def test_several_flushers_lose_a_tenth_more_to_slow_lines() -> None:
    """Eight flushers lose a tenth more than one flusher and its worker."""
    lost = lost_to_slow_lines()
    assert lost[True] > 1.1 * lost[False]
