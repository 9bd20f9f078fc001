"""The list of a superblock's inodes, and the lock that each kernel has for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import inodes_of, page_cache
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import Machine, build
from wbsim.models.time_accounting import Spent
from wbsim.sim.engine import Environment, Steps

TWO = """
title = "two"
[scenario]
machine.like = "loop-vm"
machine.disks = {{ a = {{ like = "sata-disk" }}, b = {{ like = "sata-disk" }} }}
kernel.like = "{kernel}"
mounts.x = {{ disk = "a", at = "/x", like = "loop-xfs" }}
mounts.y = {{ disk = "b", at = "/y", like = "loop-ext4" }}
programs.p = "fs_mark -S0 -k -n 30 -s 4096 -L 1 -D 3 -d /x/a -d /x/b"
programs.q = "fs_mark -S0 -k -n 30 -s 4096 -L 1 -D 3 -d /y/a -d /y/b"
"""


def ran(kernel: str) -> Machine:
    """Return the machine after its run: two processes on each of two superblocks have made 120 files."""
    machine = build(parse(TWO.format(kernel=kernel), "x.toml").cases[0].scenario, 1)
    machine.run()
    return machine


@pytest.mark.parametrize(
    ("kernel", "locks"),
    [
        ("2.6.34", {"inode_lock": 240}),
        ("3.11", {"inode_sb_list_lock": 120}),
        ("6.18", {"x/s_inode_list_lock": 60, "y/s_inode_list_lock": 60}),
        ("3.11-v13", {"x/s_inode_list/0": 60, "y/s_inode_list/0": 60}),
    ],
)
def test_inode_list_has_the_lock_of_its_kernel(kernel: str, locks: dict[str, int]) -> None:
    """inode_lock, up to 2.6.38, also protects the dirty lists, which each file joins once.

    Later kernels have one lock for all superblocks, and then one for each superblock.
    """
    machine = ran(kernel)
    found = {
        lock.name: lock.stat.acquisitions
        for lock in machine.locks
        if "inode" in lock.name and not any(other in lock.name for other in ("hash", "lru"))
    }
    assert found.keys() == locks.keys()
    for name, least in locks.items():
        assert found[name] >= least
        if name != "inode_lock":
            assert found[name] == least
    assert machine.cache.cached_inodes == 120
    assert any("list_lock" in name for name in {lock.name.split("/")[-1] for lock in machine.locks}) == (
        kernel != "2.6.34"
    )


def test_inode_is_added_under_the_lock_and_counted() -> None:
    """Two tasks add an inode at 0, for 10 ns each, and then continue for 3 ns; the second spins until 10."""
    env, cache = Environment(), page_cache()
    bdi: Any = SimpleNamespace(wb_of=lambda *place: place)
    inodes, ended = inodes_of(env, bdi, cache, 10), []
    places: Any = []

    def body(task: Any) -> Steps:
        thread: Any = SimpleNamespace(task=task, spent=Spent())
        yield inodes.sb_list_add(thread, 3)
        ended.append((env.now, task.spin_ns))
        places.append(inodes.new(task.cpu, 4, 70))

    for _ in range(2):
        task = env.task("creator")
        env.start(task, body(task))
    env.run()
    assert ended == [(13, 0), (23, 10)]
    assert (places, cache.cached_inodes) == ([(4, 70, -1)] * 2, 2)


def test_eviction_lump_doubles_until_a_lock_is_contended() -> None:
    """Lumps have two, four, eight and so on, up to 32 inodes.

    After a contention the next lump has one inode, and lumps double again.
    """
    env = Environment()
    none: Any = SimpleNamespace()
    inodes, task = inodes_of(env, none, page_cache()), env.task("kswapd0")
    assert [inodes.next_lump(task) for _ in range(3)] == [2, 4, 8]
    inodes._locks.sb_lists[0].lock.stat.contentions += 1
    assert [inodes.next_lump(task) for _ in range(7)] == [1, 2, 4, 8, 16, 32, 32]
