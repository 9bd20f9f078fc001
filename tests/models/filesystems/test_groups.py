"""Which allocation group an extent is taken from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from models.filesystems.xfs.groups import Group, lock_group
from models.filesystems.xfs.inodes import Directory, InodeChunks
from models.seams import NoSpace
from sim.engine import Environment, Steps, Task
from sim.sync import Mutex
from sim.units import KIB


class Groups:
    """Groups with so many free blocks together."""

    def __init__(self, *longest: int) -> None:
        self.env = Environment()
        self.groups = [
            Group(number, 1_000 * number, SimpleNamespace(longest=free), Mutex(self.env, "agf", 0))  # type: ignore[arg-type]
            for number, free in enumerate(longest)
        ]
        self.found: list[tuple[int, int]] = []

    def hold(self, number: int, until_ns: int, then_free: int) -> None:
        """Somebody holds that AGF until then, and has left so many blocks."""
        group = self.groups[number]
        assert group.agf.try_acquire(self.env.task("holder"))

        def end() -> None:
            group.free.longest = then_free  # type: ignore[misc]
            group.agf.release()

        self.env.call_at(until_ns, 0, end)

    def ask(self, target: int, length: int) -> list[tuple[int, int]]:
        """When which group was locked."""

        def body(task: Task) -> Steps:
            thread: Any = SimpleNamespace(task=task, before_sleep=lambda: None)
            group = yield from lock_group(self.groups, thread, self.groups[target], length)
            self.found.append((self.env.now, group.number))

        task = self.env.task("flusher")
        self.env.start(task, body(task))
        self.env.run()
        return self.found


def test_the_search_begins_at_the_target_and_goes_round() -> None:
    """1 has too little, 2 is locked, 3 has too little: 0."""
    of = Groups(9, 2, 9, 2)
    of.hold(2, 50, 9)
    assert of.ask(1, 5) == [(0, 0)]


def test_where_all_are_locked_the_first_is_waited_for() -> None:
    """1, until 70, though 0 is free before."""
    of = Groups(9, 9)
    of.hold(0, 50, 9)
    of.hold(1, 70, 9)
    assert of.ask(1, 5) == [(70, 1)]


def test_who_finds_too_little_after_the_wait_lets_go_and_searches_on() -> None:
    """1 was waited for until 70, and has too little then: 0, and 1 is free again."""
    of = Groups(9, 9)
    of.hold(0, 50, 9)
    of.hold(1, 70, 2)
    assert of.ask(1, 5) == [(70, 0)]
    assert of.groups[1].agf.free


def test_the_longest_of_all_counts_where_none_has_enough() -> None:
    """Four of eight; nothing at all is an error."""
    assert Groups(2, 4).ask(0, 8) == [(0, 1)]
    with pytest.raises(NoSpace, match="is full"):
        Groups(0, 0).ask(0, 8)


def test_a_chunk_has_64_inodes_in_buffers_one_behind_the_other() -> None:
    """512 B each: 8 blocks, two buffers of 16 KiB; a block of names lies where the group gives one."""
    given = [40, 70]
    of = Groups(9, 9)
    group = of.groups[1]
    group.free.take_near = lambda target, blocks: (given.pop(0), blocks)  # type: ignore[method-assign]
    spec: Any = SimpleNamespace(inode_bytes=512, cluster_bytes=16 * KIB, dirent_bytes=32)
    chunks = InodeChunks(spec)
    chunks.add_chunk(group)
    assert (group.inodes_left, group.cluster_left) == (64, 0)
    buffers = []
    for _ in range(2):
        chunks.next_cluster(group)
        assert group.cluster_left == 32
        buffers.append((group.cluster.start_sector, group.cluster.sectors, group.cluster.group))
    assert buffers == [(8 * 1_040, 32, group), (8 * 1_044, 32, group)]
    directory = Directory(group)
    chunks.add_block(directory)
    assert (directory.names_left, directory.block.start_sector, directory.block.sectors) == (
        128,
        8 * 1_070,
        8,
    )
