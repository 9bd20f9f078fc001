"""Inodes that are made, read, walked over, evicted and removed: the locks that are taken, the inodes left."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import caller, only
from tests.strategies import kernels
from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.interfaces import Thread
from wbsim.models.machine import Machine, build
from wbsim.sim.engine import Steps
from wbsim.sim.units import MIB

TEXT = """
title = "inodes"
[scenario]
machine.like = "v13-vm"
machine.processors.cv = 0
machine.processors.count = {cpus}
machine.processors.nodes = {nodes}
machine.memory.memory = "{memory} MiB"
machine.memory.kernel_reserve = "0 B"
kernel.like = "{kernel}"
mounts.m = {{ like = "{filesystem}", at = "/m", files = {files}, cached_inodes = {cached} }}
{programs}
"""
FIND = 'programs.p = {{ command = "find /m -ctime 1", times = {times} }}'
RM = 'programs.p = {{ command = "rm -rf /m", times = {times} }}'
BULKSTAT = 'programs.p = {{ command = "xfs_io -c bulkstat /m", times = {times} }}'
SYNC = 'programs.p = {{ command = "sync", times = {times} }}'


def machine_of(
    program: str, *, kernel: str = "3.11-mmotm", filesystem: str = "v13-xfs", files: int = 600,
    cached: int = 0, times: int = 4, cpus: int = 4, nodes: int = 2, memory: int = 64, changes: str = "",
) -> Machine:  # fmt: skip
    """Return a machine that has not run yet; the default has 4 processors on two nodes."""
    text = TEXT.format(
        kernel=kernel, filesystem=filesystem, files=files, cached=cached, cpus=cpus, nodes=nodes,
        memory=memory, programs=program.format(times=times) + "\n" + changes,
    )  # fmt: skip
    return build(parse(text, "x.toml").cases[0].scenario, 1)


def ran(program: str, **given: Any) -> Machine:
    """Return the machine of `machine_of` after its run."""
    machine = machine_of(program, **given)
    machine.run()
    return machine


def taken(machine: Machine, name: str) -> int:
    """Return how often the locks with *name* in their names were taken."""
    return sum(lock.stat.acquisitions for lock in machine.locks if name in lock.name)


@pytest.mark.parametrize("filesystem", ["v13-xfs", "loop-ext4"])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_every_kernel_finds_and_removes_each_file_once(kernel: str, filesystem: str) -> None:
    """find caches all inodes.  rm leaves none, and each inode joins and leaves the superblock's list once."""
    found = only(ran(FIND, kernel=kernel, filesystem=filesystem).mounts).inodes
    assert (found.cached, found.paged) == (600, 0)
    machine = ran(RM, kernel=kernel, filesystem=filesystem)
    assert only(machine.mounts).inodes.cached == machine.cache.cached_inodes == 0
    program = only(machine.programs)
    assert program.system_ns > 600 * 10_000
    if kernel.startswith(("3.11", "6.")):  # up to 2.6.38 inode_lock protects all lists
        assert taken(machine, "s_inode_list") + taken(machine, "inode_sb_list_lock") == 1_200


@pytest.mark.parametrize(
    ("kernel", "sb_list", "hashed", "lru"),
    [("3.11-mmotm", 1_200, 600, 600), ("3.11-v13", 1_200, 0, 0), ("6.18", 1_200, 0, 0)],
)
def test_bulkstat_evicts_the_inodes_that_it_reads(kernel: str, sb_list: int, hashed: int, lru: int) -> None:
    """Each inode takes the list's lock twice, because XFS_IGET_DONTCACHE evicts it at once.

    Only a kernel that does not look first takes the locks of the hash and of the LRU, too.
    """
    machine = ran(BULKSTAT, kernel=kernel)
    assert only(machine.mounts).inodes.cached == 0
    assert taken(machine, "inode_sb_list_lock") + taken(machine, "s_inode_list") == sb_list
    assert taken(machine, "inode_hash_lock") == hashed
    assert taken(machine, "s_inode_lru") == lru


def test_a_removal_fetches_the_lines_of_two_neighbours() -> None:
    """An insertion fetches one cache line and a removal two (docs/kernel/inodes.md#lists-and-locks).

    One processor wrote all the lines itself, except the first.  Work takes 2.67 times the times of the
    reference machine: 43 ns for an insertion and 53 ns for a removal.  A line takes 20 ns, or 200 from far.
    """
    machine = ran(BULKSTAT, times=1, cpus=1, nodes=1)
    (lock,) = (lock for lock in machine.locks if lock.name == "inode_sb_list_lock")
    far = lock.stat.hold_ns - 600 * (43 + 53 + 3 * 20)
    assert 0 <= far <= 200  # no processor had written the first line


def test_ext4_lookup_takes_the_hash_lock_twice_without_rcu() -> None:
    """The lookup misses and then inserts the inode; under RCU only the insertion takes the lock.

    Both walk along a chain, which grows with the number of cached inodes.
    """
    for kernel, visits in (("3.11-mmotm", 2), ("3.11-v13", 1)):
        assert taken(ran(FIND, kernel=kernel, filesystem="loop-ext4"), "inode_hash_lock") == 600 * visits
    holds = [
        next(
            lock.stat.hold_ns
            for lock in ran(FIND, filesystem="loop-ext4", times=1, cached=cached).locks
            if "hash" in lock.name
        )
        for cached in (0, 16_000)
    ]
    assert holds[1] > holds[0] + 600 * 3 * 85  # 16 000 inodes on 4 096 chains: nearly four each


@pytest.mark.parametrize("commits", [("3.11", True), ("6.18", False)])
def test_cil_has_one_lock_until_5_19(commits: tuple[str, bool]) -> None:
    """Each removal of a file commits two transactions, one of 6 items and one of 4.

    A commit takes 2.67 * 150 = 400 ns, and an item 2.67 * 209 = 558 ns.
    """
    kernel, locked = commits
    machine = ran(RM, kernel=kernel)
    stats = [lock.stat for lock in machine.locks if "xc_cil_lock" in lock.name]
    assert len(stats) == locked
    if locked:
        assert stats[0].acquisitions == 1_200
        assert stats[0].hold_ns == 600 * (2 * 400 + (6 + 4) * 558)


def sync_wall_ns(cached: int, times: int, kernel: str = "3.11-mmotm", **given: Any) -> int:
    """Return how long *times* syncs at once take with *cached* clean inodes in memory."""
    machine = ran(SYNC, cached=cached, times=times, kernel=kernel, memory=512, **given)
    return machine.env.now


def test_concurrent_syncs_walk_over_all_cached_inodes_in_turn() -> None:
    """A visit takes 65 ns times 2.67, so 101 walks over 40 000 inodes take 0.7 s.

    The forks before the walks add less than 2 %.  A patched kernel does not walk.
    """
    walk_ns = 40_000 * round(65 * 2.67)
    assert sync_wall_ns(40_000, 101) == pytest.approx(101 * walk_ns, rel=0.02)
    assert sync_wall_ns(40_000, 101, "3.11-v13") == sync_wall_ns(0, 101, "3.11-v13")
    assert sync_wall_ns(40_000, 101, "4.3") > 0.9 * 101 * walk_ns, (
        "sync still walks all inodes, one sync at a time"
    )


def test_walk_takes_the_list_lock_again_for_each_paged_inode() -> None:
    """200 files of one page are made and written back, and a later sync drops the lock at each of them."""
    make = 'programs.p = "fs_mark -k -S0 -n 200 -s 4096 -L 1 -d /m/0"'
    late = 'programs.s = { command = "sync", start = "2 s", times = 2 }'
    alone, walked = (
        taken(ran(make, files=0, changes=of), "inode_sb_list_lock")
        for of in (late.replace("2 }", "1 }"), late)
    )
    assert walked - alone == 1 + 200


def test_syncs_spin_while_another_sync_walks() -> None:
    """Four syncs walk one after another, so three of them spin, for one, two and three walks."""
    machine = ran(SYNC, cached=200_000, times=4, memory=1_024)
    children = only(machine.programs).family.children  # type: ignore[attr-defined]
    spun = sum(child.task.spin_ns for child in children)
    walked = sum(child.spent.sync for child in children)
    assert spun == pytest.approx((1 + 2 + 3) / 4 * walked, rel=0.1), "the children begin in sequence"


def test_kswapd_and_find_evict_inodes_beyond_the_size_of_memory() -> None:
    """16 MiB hold 9 869 inodes of 1 700 bytes, and the others of 30 000 inodes are evicted."""
    machine = ran(FIND, files=30_000, memory=16)
    inodes, cache = only(machine.mounts).inodes, machine.cache
    room = 16 * MIB // 1_700
    assert room - 600 < inodes.cached == cache.cached_inodes <= room + 200
    kswapds = [thread for thread in machine.threads if "kswapd" in thread.task.name]
    assert len(kswapds) == 2
    reclaimed = sum(thread.spent.reclaim for thread in machine.threads)
    assert reclaimed == pytest.approx((30_000 - inodes.cached) * 2.67 * 2_600, rel=0.01)
    assert sum(thread.spent.reclaim for thread in kswapds) > 0.3 * reclaimed, (
        "reading threads evict inodes, too"
    )


operations = st.lists(st.tuples(st.sampled_from("calue"), st.integers(1, 40)), max_size=12)


@given(operations, kernels(), st.sampled_from(["v13-xfs", "loop-ext4"]))
def test_each_inode_is_cached_once_or_evicted_after_any_operations(
    does: list[tuple[str, int]], kernel: str, filesystem: str
) -> None:
    """Two threads create, look up, unlink, evict and give pages in any order; a count has the bounds."""
    machine = machine_of(SYNC, kernel=kernel, filesystem=filesystem, times=1)
    only(machine.programs).on_end = lambda: None
    sb = only(machine.mounts)
    fs, inodes = sb.filesystem, sb.inodes

    def body(thread: Thread, mine: list[tuple[str, int]]) -> Steps:
        directory = yield from fs.names.mkdir(thread)
        for what, times in mine:
            if what == "e":
                yield from inodes.evict(thread, times)
                continue
            for _ in range(times):
                if what == "c":
                    yield from fs.names.create(caller(thread), directory)
                elif what == "a":
                    inodes.has_pages()
                elif what == "l":
                    yield from fs.names.look_up(caller(thread))
                elif what == "u":
                    yield from fs.names.unlink(caller(thread))

    for number in range(2):
        thread = machine.thread(f"t{number}")
        machine.env.start(thread.task, body(thread, does[number::2]))
    machine.env.call_at(10**9, 1, machine.env.halt)
    machine.env.run()
    made = sum(times for what, times in does if what in "cl")
    evictable = sum(times for what, times in does if what == "e")
    assert max(0, made - evictable) <= inodes.cached <= made
    assert 0 <= inodes.paged <= inodes.cached == machine.cache.cached_inodes
    assert inodes.paged == machine.cache.paged_inodes
    if not evictable:
        assert inodes.cached == made


@pytest.mark.parametrize(("kernel", "lru_visits"), [("3.11", 3), ("3.11-v13", 2)])
@pytest.mark.parametrize(("filesystem", "hash_lines"), [("v13-xfs", 0), ("loop-ext4", 2)])
def test_eviction_takes_the_locks_of_lru_list_and_hash(
    kernel: str, lru_visits: int, filesystem: str, hash_lines: int
) -> None:
    """40 of 60 inodes are evicted.

    lock    taken for each inode
    LRU     for the dentry and for the inode, and in evict() if the kernel does not look first
    list    once, with the cache lines of two neighbours
    hash    once if the inode is hashed, with the lines of two neighbours; to 3.11 also for other inodes

    Work on each takes 2.67 * 20 = 53 ns, and a visit of sync(2) takes 2.67 * 65 = 174 ns.  A line takes 20 ns
    on the processor that has it, and 100 ns on another one.
    """
    machine = machine_of(
        SYNC, kernel=kernel, filesystem=filesystem, times=1, cached=60, cpus=1, nodes=1, memory=512
    )
    sb = only(machine.mounts)
    task = machine.thread("evicts")
    machine.env.start(task.task, sb.inodes.evict(task, 40))
    machine.run()
    assert sb.inodes.cached == 20
    unhashed = filesystem == "loop-ext4" or kernel == "3.11"
    expected = {
        "s_inode_lru": (lru_visits * 53, lru_visits),
        "s_inode_list/" if kernel == "3.11-v13" else "inode_sb_list_lock": (53, 2),
        "inode_hash_lock": (53 if unhashed else 0, hash_lines),
    }
    for name, (work_ns, lines) in expected.items():
        held = sum(lock.stat.hold_ns for lock in machine.locks if name in lock.name)
        held -= 20 * 174 * (name == "inode_sb_list_lock")  # sync(2) walks over the others
        fetched = 2 * lines * (100 - 20)  # by the first step, which evicts two inodes
        assert held == 40 * (work_ns + lines * 20) + fetched, name
