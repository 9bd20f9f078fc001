"""Inodes that are made, read, walked over, evicted and removed: which locks that takes; none is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import only
from tests.strategies import kernels
from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.catalogue.machines import V13_MACHINE
from wbsim.models.interfaces import Thread
from wbsim.models.machine import Machine, build, scaled
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
    """A machine with 4 processors on two nodes that has not run yet."""
    text = TEXT.format(
        kernel=kernel, filesystem=filesystem, files=files, cached=cached, cpus=cpus, nodes=nodes,
        memory=memory, programs=program.format(times=times) + "\n" + changes,
    )  # fmt: skip
    return build(parse(text, "x.toml").cases[0].scenario, 1)


def ran(program: str, **given: Any) -> Machine:
    """The same after its run."""
    machine = machine_of(program, **given)
    machine.run()
    return machine


def taken(machine: Machine, name: str) -> int:
    """How often locks of that name were taken."""
    return sum(lock.stat.acquisitions for lock in machine.locks if name in lock.name)


@pytest.mark.parametrize("filesystem", ["v13-xfs", "loop-ext4"])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_each_file_is_found_once_and_removed_once_under_every_kernel(kernel: str, filesystem: str) -> None:
    """find caches them all; rm leaves none, and each was on the superblock's list once."""
    found = only(ran(FIND, kernel=kernel, filesystem=filesystem).mounts).inodes
    assert (found.cached, found.paged) == (600, 0)
    machine = ran(RM, kernel=kernel, filesystem=filesystem)
    assert only(machine.mounts).inodes.cached == machine.cache.cached_inodes == 0
    program = only(machine.programs)
    assert program.system_ns > 600 * 10_000
    if kernel.startswith(("3.11", "6.")):  # before, one lock has it all
        assert taken(machine, "s_inode_list") + taken(machine, "inode_sb_list_lock") == 1_200


@pytest.mark.parametrize(
    ("kernel", "sb_list", "hashed", "lru"),
    [("3.11-mmotm", 1_200, 600, 600), ("3.11-v13", 1_200, 0, 0), ("6.18", 1_200, 0, 0)],
)
def test_bulkstat_evicts_what_it_reads(kernel: str, sb_list: int, hashed: int, lru: int) -> None:
    """XFS_IGET_DONTCACHE: the list twice for each; the hash and the LRU only where that is not looked at."""
    machine = ran(BULKSTAT, kernel=kernel)
    assert only(machine.mounts).inodes.cached == 0
    assert taken(machine, "inode_sb_list_lock") + taken(machine, "s_inode_list") == sb_list
    assert taken(machine, "inode_hash_lock") == hashed
    assert taken(machine, "s_inode_lru") == lru


def test_a_removal_fetches_the_lines_of_two_neighbours() -> None:
    """On one processor each line is its own: an insertion has one, a removal two (mechanisms.md 5.2)."""
    machine = ran(BULKSTAT, times=1, cpus=1, nodes=1)
    (lock,) = (lock for lock in machine.locks if lock.name == "inode_sb_list_lock")
    cpu = V13_MACHINE.processors
    costs = scaled(cpu.paths.inodes, cpu.writer_scale)
    far = lock.stat.hold_ns - 600 * (costs.add_ns + costs.del_ns + 3 * cpu.line_own)
    assert 0 <= far <= cpu.line_from_far  # the first was nobody's


def test_ext4_s_lookup_takes_the_hash_twice_or_under_rcu_once() -> None:
    """A miss and an insertion; the more are cached, the longer the chain that each walks."""
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
def test_the_cil_has_one_lock_to_5_19(commits: tuple[str, bool]) -> None:
    """Two transactions for each file that is removed, each of so many items."""
    kernel, locked = commits
    machine = ran(RM, kernel=kernel)
    stats = [lock.stat for lock in machine.locks if "xc_cil_lock" in lock.name]
    assert len(stats) == locked
    if locked:
        cpu = parse(TEXT.format(
            kernel=kernel, filesystem="v13-xfs", files=1, cached=0, cpus=4, nodes=2, memory=64,
            programs=RM.format(times=1),
        ), "x.toml").cases[0].scenario.machine.processors  # fmt: skip
        log: Any = cpu.paths.filesystems["xfs"].flusher  # type: ignore[attr-defined]
        each = round(log.log.item_ns * cpu.flusher_scale)
        commit = round(log.log.commit_ns * cpu.flusher_scale)
        assert stats[0].acquisitions == 1_200
        assert stats[0].hold_ns == 600 * (2 * commit + (6 + 4) * each)


def sync_wall_ns(cached: int, times: int, kernel: str = "3.11-mmotm", **given: Any) -> int:
    """How long so many syncs at once take with so many clean inodes in memory."""
    machine = ran(SYNC, cached=cached, times=times, kernel=kernel, memory=512, **given)
    return machine.env.now


def test_syncs_walk_one_after_another_over_all_cached_inodes_or_none() -> None:
    """65 ns a visit, times 2.67: 101 walks over 40 000 inodes are 0.7 s, whatever the forks before them;
    patched, they are nothing.
    """
    walk_ns = 40_000 * round(65 * 2.67)
    assert sync_wall_ns(40_000, 101) == pytest.approx(101 * walk_ns, rel=0.02)
    assert sync_wall_ns(40_000, 101, "3.11-v13") == sync_wall_ns(0, 101, "3.11-v13")
    assert sync_wall_ns(40_000, 101, "4.3") > 0.9 * 101 * walk_ns, "it still walks, one at a time"


def test_a_walk_takes_the_list_s_lock_again_for_each_inode_with_pages() -> None:
    """200 files of a page are made, and written back: the sync that comes then drops the lock for each."""
    make = 'programs.p = "fs_mark -k -S0 -n 200 -s 4096 -L 1 -d /m/0"'
    late = 'programs.s = { command = "sync", start = "2 s", times = 2 }'
    alone, walked = (
        taken(ran(make, files=0, changes=of), "inode_sb_list_lock")
        for of in (late.replace("2 }", "1 }"), late)
    )
    assert walked - alone == 1 + 200


def test_who_waits_for_a_walk_burns_a_processor() -> None:
    """Three of four walkers spin at a time: 3/4 of the system time is spinning."""
    machine = ran(SYNC, cached=200_000, times=4, memory=1_024)
    children = only(machine.programs).family.children  # type: ignore[attr-defined]
    spun = sum(child.task.spin_ns for child in children)
    walked = sum(child.spent.sync for child in children)
    assert spun == pytest.approx((1 + 2 + 3) / 4 * walked, rel=0.1), "they begin one after another"


def test_memory_holds_so_many_inodes_and_kswapd_evicts_the_rest() -> None:
    """16 MiB hold 9 869 of 1 700 bytes: of 30 000 that are read, as many are evicted as are too many."""
    machine = ran(FIND, files=30_000, memory=16)
    inodes, cache = only(machine.mounts).inodes, machine.cache
    room = 16 * MIB // 1_700
    assert room - 600 < inodes.cached == cache.cached_inodes <= room + 200
    kswapds = [thread for thread in machine.threads if "kswapd" in thread.task.name]
    assert len(kswapds) == 2
    reclaimed = sum(thread.spent.reclaim for thread in machine.threads)
    assert reclaimed == pytest.approx((30_000 - inodes.cached) * 2.67 * 2_600, rel=0.01)
    assert sum(thread.spent.reclaim for thread in kswapds) > 0.3 * reclaimed, "who reads evicts, too"


operations = st.lists(st.tuples(st.sampled_from("calue"), st.integers(1, 40)), max_size=12)


@given(operations, kernels(), st.sampled_from(["v13-xfs", "loop-ext4"]))
def test_whatever_happens_each_inode_is_cached_once_or_gone(
    does: list[tuple[str, int]], kernel: str, filesystem: str
) -> None:
    """Two threads create, look up, unlink, evict and give pages in any order, beside a plain count."""
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
                    yield from fs.names.create(thread, directory)
                elif what == "a":
                    inodes.has_pages()
                elif what == "l":
                    yield from fs.names.look_up(thread, 0, 1.0)
                elif what == "u":
                    yield from fs.names.unlink(thread, 0, 1.0)

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
def test_an_eviction_s_locks(kernel: str, lru_visits: int, filesystem: str, hash_lines: int) -> None:
    """Of 40 inodes of 60: the LRU's for the name and the inode, and again in evict where it is not looked at
    first; the list's with its neighbours; the hash's, of which an inode that is not hashed has no lines.
    """
    machine = machine_of(
        SYNC, kernel=kernel, filesystem=filesystem, times=1, cached=60, cpus=1, nodes=1, memory=512
    )
    sb = only(machine.mounts)
    task = machine.thread("evicts")
    machine.env.start(task.task, sb.inodes.evict(task, 40))
    machine.run()
    assert sb.inodes.cached == 20
    cpu = V13_MACHINE.processors
    costs = scaled(cpu.paths.inodes, cpu.writer_scale)
    unhashed = sb.inodes.hashed or kernel == "3.11"
    expected = {
        "s_inode_lru": (lru_visits * costs.lru_ns, lru_visits),
        "s_inode_list/" if kernel == "3.11-v13" else "inode_sb_list_lock": (costs.del_ns, 2),
        "inode_hash_lock": (costs.unhash_ns if unhashed else 0, hash_lines),
    }
    for name, (work_ns, lines) in expected.items():
        held = sum(lock.stat.hold_ns for lock in machine.locks if name in lock.name)
        held -= 20 * costs.visit_ns * (name == "inode_sb_list_lock")  # sync(2) walks over the others
        fetched = 2 * lines * (cpu.line_time - cpu.line_own)  # by the first step, of two inodes
        assert held == 40 * (work_ns + lines * cpu.line_own) + fetched, name
