"""Allocations and conversions of ext4: their time, the hold time of i_data_sem, and the logged blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.harness import caller, only, run_for
from wbsim.experiments.config.experiment import parse
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS
from wbsim.models.filesystems.ext4.layout import MAX_REQUEST_PAGES
from wbsim.models.filesystems.ioends import IoEnd
from wbsim.models.machine import build
from wbsim.models.page_cache.pages import MAPPED
from wbsim.sim.engine import Steps

TEXT = """\
title = "allocations"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 8
machine.processors.cv = 0
machine.processors.paths.filesystems.ext4.flusher.map_ns = "4 us"
machine.processors.paths.filesystems.ext4.flusher.tree_map_ns = "8 us"
machine.processors.paths.filesystems.ext4.flusher.map_locked_ns = "1 us"
machine.processors.paths.filesystems.ext4.flusher.ioend_ns = "3 us"
machine.processors.paths.filesystems.ext4.flusher.ioend_locked_ns = "1 us"
machine.disks.d.like = "loop"
kernel.like = "6.18"
mounts.m = { like = "loop-ext4", disk = "d", at = "/m", size = "4 GiB" }
programs.s = "sync"
"""


def test_an_allocation_has_no_more_pages_than_a_request() -> None:
    """A run of 2 500 pages, of which the walk may write 2 400, gets 2 048 blocks at first, then the rest."""
    machine = build(parse(TEXT, "x.toml").cases[0].scenario, 1)
    filesystem = only(machine.mounts).filesystem
    thread = machine.thread("flusher")
    mapped: list[int] = []

    def body() -> Steps:
        directory = yield from filesystem.names.mkdir(thread)
        inode: Any = yield from filesystem.names.create(caller(thread), directory)
        filesystem.write(inode, np.arange(2_500), 1)
        for page, at_most in ((0, 2_400), (2_048, 352)):
            yield from filesystem.placement.map_extent(thread, inode, inode.file, page, at_most)
            mapped.append(int(np.count_nonzero(inode.file.pages.states & MAPPED)))

    machine.env.start(thread.task, body())
    run_for(machine.env, 5_000_000)
    assert mapped == [MAX_REQUEST_PAGES, 2_400] == [2_048, 2_400]


def test_allocation_takes_twice_as_long_in_a_tree() -> None:
    """The inode holds four extents, and a file with more extents has a tree.

    Six pages lie apart.  A quarter of an allocation and a third of a conversion pass under i_data_sem.
    """
    machine = build(parse(TEXT, "x.toml").cases[0].scenario, 1)
    env, filesystem = machine.env, only(machine.mounts).filesystem
    thread, pages = machine.thread("flusher"), [1_000 * page for page in range(6)]
    took: list[int] = []
    held: list[int] = []
    logged: list[int] = []

    def body() -> Steps:
        directory = yield from filesystem.names.mkdir(thread)
        inode: Any = yield from filesystem.names.create(caller(thread), directory)
        filesystem.write(inode, np.array(pages), 1)
        file, journal = inode.file, filesystem.metadata.journal
        ioend = IoEnd(0, 0, only(machine.mounts).flight)
        ioend.mapped = 1
        steps = [filesystem.placement.map_extent(thread, inode, file, page, 1) for page in pages]
        for transaction in (*steps, filesystem.metadata.convert(thread, inode, ioend)):
            began_ns, held_ns = env.now, file.lock.stat.hold_ns
            before = len(journal.transaction)
            yield from transaction
            logged.append(len(journal.transaction) - before)
            took.append(env.now - began_ns)
            held.append(file.lock.stat.hold_ns - held_ns)

    env.start(thread.task, body())
    run_for(env, 5_000_000)
    assert took == [4_000] * 5 + [8_000, 3_000]
    assert held == [1_000] * 5 + [2_000, 1_000]
    assert logged == [1, 0, 0, 0, 1, 0, 0], (
        "a block bitmap and a leaf are logged; the creation logged the inode"
    )


@pytest.mark.parametrize(("kernel", "joins"), [("2.6.34", True), ("6.18", False)])
def test_new_extents_are_unwritten_if_the_kernel_converts_them(kernel: str, joins: bool) -> None:
    """One page is mapped, and no extent is converted yet.  A written page joins a written extent only."""
    machine = build(parse(TEXT.replace("6.18", kernel), "x.toml").cases[0].scenario, 1)
    filesystem, found = only(machine.mounts).filesystem, list[bool]()
    thread = machine.thread("flusher")

    def body() -> Steps:
        directory = yield from filesystem.names.mkdir(thread)
        inode: Any = yield from filesystem.names.create(caller(thread), directory)
        filesystem.write(inode, np.arange(1), 1)
        yield from filesystem.placement.map_extent(thread, inode, inode.file, 0, 1)
        file = inode.file
        found.append(file.tree.append(1, int(file.pages.blocks[0]) + 1, 1))

    machine.env.start(thread.task, body())
    run_for(machine.env, 5_000_000)
    assert found == [joins]


def mapped(kernel: str, size: int, requests: Sequence[tuple[int, int]]) -> Any:
    """Return a filesystem and an inode of *size* pages, in which *requests* (page, pages) were mapped."""
    machine = build(parse(TEXT.replace("6.18", kernel), "x.toml").cases[0].scenario, 1)
    filesystem, thread = only(machine.mounts).filesystem, machine.thread("flusher")
    inodes: list[Any] = []

    def body() -> Steps:
        directory = yield from filesystem.names.mkdir(thread)
        inode: Any = yield from filesystem.names.create(caller(thread), directory)
        inodes.append(inode)
        filesystem.write(inode, np.arange(size), 1)
        for page, pages in requests:
            yield from filesystem.placement.map_extent(thread, inode, inode.file, page, pages)

    machine.env.start(thread.task, body())
    run_for(machine.env, 5_000_000)
    return machine, filesystem, inodes[0]


def test_inode_takes_its_extents_back_when_they_are_converted() -> None:
    """Five extents of two pages lie together.  The block of the leaf is free after their conversion."""
    machine, filesystem, inode = mapped("6.18", 10, [(page, 2) for page in range(0, 10, 2)])
    assert inode.file.tree.blocks == 1
    filesystem.placement.check()
    worker = machine.thread("worker")
    ioend = IoEnd(0, 0, only(machine.mounts).flight)
    ioend.pages, ioend.mapped = 10, 5
    machine.env.start(worker.task, filesystem.metadata.convert(worker, inode, ioend))
    run_for(machine.env, 5_000_000)
    assert inode.file.tree.blocks == 0
    filesystem.placement.check()


@pytest.mark.parametrize(("kernel", "leaves"), [("2.6.34", 1), ("6.18", 2)])
def test_written_pages_need_no_room_next_to_an_extent(kernel: str, leaves: int) -> None:
    """Page 31 follows page 30 on disk, in a leaf that is full.  The leaf also has 339 written pages."""
    machine, filesystem, inode = mapped(kernel, 50, [(30, 1)])
    tree, thread = inode.file.tree, machine.thread("another")
    tree.grow(31, filesystem.placement.new_blocks.find(2, 1)[0])
    for at in range(1, 340):
        tree.insert(2 * at + 10_000, 3 * at, 1)
    tree.convert(10_000, 10_000)
    machine.env.start(thread.task, filesystem.placement.map_extent(thread, inode, inode.file, 31, 1))
    run_for(machine.env, 5_000_000)
    assert tree.blocks == leaves


def test_leaf_lies_in_the_group_of_its_nearest_extent() -> None:
    """The first leaf lies in the group of the inode's goal.  The extents of the file lie in group 20."""
    machine, filesystem, inode = mapped("6.18", 12_001, [])
    tree, thread = inode.file.tree, machine.thread("another")
    found: list[list[int]] = []
    for page, extents in ((0, 4), (12_000, 340)):
        for at in range(sum(len(leaf.pages) for leaf in tree.leaves), extents):
            tree.insert(10_000 + 2 * at, 20 * GROUP_BLOCKS + 5 * at, 1)
        machine.env.start(
            thread.task, filesystem.placement.map_extent(thread, inode, inode.file, page, 1)
        )  # fmt: skip
        run_for(machine.env, 5_000_000)
        found.append([leaf.block // GROUP_BLOCKS for leaf in tree.leaves])
    assert found == [[inode.goal_group], [inode.goal_group, 20]]
