"""The list of a superblock's inodes, under the lock that its kernel has."""

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
    """Two processes on each of two superblocks: 120 files."""
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
def test_the_lock_is_the_kernel_s(kernel: str, locks: dict[str, int]) -> None:
    """To 2.6.38 inode_lock, also of the dirty lists, where each file comes once; then one for all; then each
    its own.
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


def test_an_inode_is_added_under_the_lock_and_counted_in_its_context() -> None:
    """Two tasks add at 0 for 10 each: the second spins until 10, and goes on for 3 behind its own."""
    env, cache = Environment(), page_cache()
    bdi: Any = SimpleNamespace(wb_of=lambda *place: place)
    inodes, ended = inodes_of(env, bdi, cache, 10), []
    places: Any = []

    def body(task: Any) -> Steps:
        thread: Any = SimpleNamespace(task=task, spent=Spent())
        yield inodes.sb_list_add(thread, 3)
        ended.append((env.now, task.spin_ns))
        places.append(inodes.new(task, 4, 70))

    for _ in range(2):
        task = env.task("creator")
        env.start(task, body(task))
    env.run()
    assert ended == [(13, 0), (23, 10)]
    assert (places, cache.cached_inodes) == ([(4, 70, -1)] * 2, 2)


def test_evictions_grow_again_after_somebody_waited() -> None:
    """Two, four, eight at a time; one where a lock was contended since; two again where it was not again."""
    env = Environment()
    none: Any = SimpleNamespace()
    inodes, task = inodes_of(env, none, page_cache()), env.task("kswapd0")
    assert [inodes.next_lump(task) for _ in range(3)] == [2, 4, 8]
    inodes._locks.sb_lists[0].lock.stat.contentions += 1
    assert [inodes.next_lump(task) for _ in range(7)] == [1, 2, 4, 8, 16, 32, 32]
