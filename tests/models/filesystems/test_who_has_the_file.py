"""Contention of flusher and worker for an inode's lock: spinning, sleeping, and the effect on a run.

The cache lines of the log have an effect, too.
"""

from __future__ import annotations

import pytest

from tests.harness import FIO, only
from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.machine import Machine, build
from wbsim.models.time_accounting import OTHER, life_of

ONE = f"{FIO} --rw=randwrite --nrfiles=1 --filesize=64m --name=j --directory=/mnt"


def machine(*more: str, kernel: str = "6.17", command: str = ONE) -> Machine:
    """Return a machine like W25's, on which 16 MiB of pages may be dirty."""
    text = "\n".join([
        'title = "one file"', "[scenario]", 'machine.like = "w25-server"', f'kernel.like = "{kernel}"',
        'filesystem.like = "w25-xfs"', "sync_after = true",
        'kernel.dirty = { dirty_bytes = "16 MiB", dirty_background_bytes = "8 MiB" }',
        f'workload.command = "{command}"', *more,
    ])  # fmt: skip
    return build(parse(text, "x.toml").cases[0].scenario, 1)


def waited_ns(of: Machine) -> tuple[int, int]:
    """Return how long workers spun, and how long they slept, for the locks of inodes."""
    workers = [thread.task for thread in of.threads if "xfs-conv" in thread.task.name]
    spun_ns = sum(task.spun_ns.get("ILOCK", 0) for task in workers)
    return spun_ns, sum(task.slept_ns.get("lock ILOCK", 0) for task in workers)


@pytest.mark.parametrize(
    ("kernel", "more", "spins", "sleeps"),
    [
        ("6.17", "", True, False),
        ("5.10", "", True, False),
        ("6.17", 'kernel.rwsem_spin = "0 s"', True, True),
        ("6.17", 'kernel.rwsem_spin = "0 s"\nkernel.rwsem_spins = false', False, True),
        ("6.17", 'machine.processors.wake_time = "10500 ns"', True, False),
        ("6.17", 'machine.processors.wake_time = "20 us"', True, True),
        ("6.17", "machine.processors.count = 1\nmachine.processors.nodes = 1", False, False),
    ],
)
def test_a_worker_sleeps_if_a_reader_wakes_up_too_late(
    kernel: str, more: str, spins: bool, sleeps: bool
) -> None:
    """A worker spins for a flusher that writes, and for 10.5 us for one that was given the lock to read.

    The spinning worker has the lock before the flusher, which wakes up to read, asks for it a second time.
    All wake-ups take the same time.
    """
    of = machine(more, "machine.processors.cv = 0", kernel=kernel)
    of.run()
    spun_ns, slept_ns = waited_ns(of)
    assert (spun_ns > 0, slept_ns > 0) == (spins, sleeps)


def test_a_few_wake_ups_are_too_late() -> None:
    """Wake-ups vary: with a median of 8 us, one in sixteen lasts longer than the worker spins."""
    of = machine('machine.processors.wake_time = "8 us"')
    of.run()
    spun_ns, slept_ns = waited_ns(of)
    assert spun_ns > slept_ns > 0


def test_rwsem_spins_for_readers_from_5_3_on() -> None:
    """The rule is in kernel/locking/rwsem.c."""
    spin_ns = {name: kernel.rwsem_spin for name, kernel in KERNELS.items()}
    assert {name for name in spin_ns if spin_ns[name]} == {
        "5.4",
        "5.10",
        "5.15",
        "5.17",
        "5.18",
        "6.1",
        "6.14",
        "6.17",
        "6.18",
    }
    assert set(spin_ns.values()) == {0, 10_500}


def test_spinning_worker_keeps_up_with_the_flusher() -> None:
    """Fewer pages are under writeback (147 for 189); pages that stay dirty for longer lie together.

    The flusher is slower, because it waits for each conversion.
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
    assert most["10500 ns"] < 0.85 * most["0 ns"]
    assert extents["10500 ns"] < 0.95 * extents["0 ns"]


def test_slow_lines_of_the_log_slow_down_several_flushers() -> None:
    """A line takes ten times as long: eight flushers take 1.5 times as long, one flusher at most 7 / 6 times.

    One flusher and its worker take turns at a file, so one of them finds the lines free.  The worker takes
    lines from the flusher that is at the next file.  The file's own lines cost nothing here, and fio
    begins at once.
    """
    of_files = "machine.processors.paths.filesystems.xfs.flusher"
    jobs = " ".join(f"--name=j{i} --directory=/mnt/{i}" for i in range(8))
    times: dict[tuple[bool, int], float] = {}
    for several in (False, True):
        for line_ns in (100, 1_000):
            of = machine(
                f'machine.processors.line_from_far = "{line_ns} ns"',
                f"{of_files}.map_lines = 0",
                f"{of_files}.ioend_lines = 0",
                "machine.processors.program_scale = 0.01",
                'kernel.flusher = { kind = "parallel", by = "allocation_group" }' if several else "",
                command=f"{FIO} --rw=randwrite --nrfiles=1 --filesize=16m {jobs}",
            )
            of.run()
            times[several, line_ns] = of.env.now
    assert times[True, 1_000] > 1.5 * times[True, 100]
    assert 1.0 < times[False, 1_000] / times[False, 100] < 7 / 6


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_all_time_of_writeback_has_a_path(filesystem: str) -> None:
    """Each thread charges all of its time, also what passes before it asks for a lock or after it wakes one.

    Flusher and worker both wake other threads.
    """
    text = f"""
title = "one file"
[scenario]
machine.like = "desk-vm"
machine.processors.count = 4
kernel.like = "6.18"
kernel.rwsem_spins = false
kernel.dirty = {{ dirty_bytes = "16 MiB", dirty_background_bytes = "8 MiB" }}
mounts.m = {{ like = "desk-{filesystem}", disk = "loop0", at = "/mnt" }}
programs.p = "{ONE}"
"""
    of = build(parse(text, "x.toml").cases[0].scenario, 1)
    of.run()
    asleep = [thread for thread in of.threads if not thread.task.on_cpu]
    for name in ("flusher", "xfs-conv" if filesystem == "xfs" else "ext4-rsv"):
        assert sum(thread.task.waking_ns for thread in asleep if name in thread.task.name)
    lives = {thread.task.name: life_of(thread.task, thread.spent, of.env.now) for thread in asleep}
    assert [name for name, life in lives.items() if OTHER in life] == []
