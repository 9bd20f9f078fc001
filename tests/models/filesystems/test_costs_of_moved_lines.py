"""The cache lines of a file that an allocation or a conversion gets from another processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness import BlockLayer, caller, only, run_for
from wbsim.experiments.config.experiment import parse
from wbsim.models.filesystems.costs import MapCosts, RandomFactors
from wbsim.models.filesystems.files import PagedFile
from wbsim.models.filesystems.ioends import IoEnd
from wbsim.models.filesystems.spec import FlusherCosts
from wbsim.models.interfaces import Thread
from wbsim.models.machine import build, scale
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.sync import HandOff

LINE_NS = 100


def text(filesystem: str, map_lines: int, ioend_lines: int) -> str:
    return f"""\
title = "lines"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 8
machine.processors.cv = 0
machine.processors.line_time = "{LINE_NS} ns"
machine.processors.paths.filesystems.{filesystem}.flusher.map_lines = {map_lines}
machine.processors.paths.filesystems.{filesystem}.flusher.ioend_lines = {ioend_lines}
machine.disks.d.like = "loop"
kernel.like = "6.18"
mounts.m = {{ like = "loop-{filesystem}", disk = "d", at = "/m", size = "4 GiB" }}
programs.s = {{ command = "sync", start = "10 ms" }}
"""


def times_of(filesystem: str, map_lines: int, ioend_lines: int) -> tuple[list[int], list[int]]:
    """Return the times of four transactions, and how long each holds the inode's lock.

    A flusher maps a page, a worker on another processor converts twice, and the flusher maps another page.
    """
    machine = build(parse(text(filesystem, map_lines, ioend_lines), "x.toml").cases[0].scenario, 1)
    env, mount = machine.env, only(machine.mounts)
    of: Any = mount.filesystem
    flusher, worker = machine.thread("flusher"), machine.thread("worker")
    took: list[int] = []
    held: list[int] = []
    inodes: list[Any] = []

    def timed(transaction: Steps) -> Steps:
        lock, began_ns = inodes[0].file.lock, env.now
        held_ns = lock.stat.hold_ns
        yield from transaction
        took.append(env.now - began_ns)
        held.append(lock.stat.hold_ns - held_ns)

    def converts(thread: Thread) -> Steps:
        yield 200_000
        for _ in range(2):
            ioend = IoEnd(0, 0, mount.flight)
            ioend.pages = ioend.mapped = 1
            yield from timed(of.metadata.convert(thread, inodes[0], ioend))

    def maps(thread: Thread) -> Steps:
        directory = yield from of.names.mkdir(thread)
        inodes.append((yield from of.names.create(caller(thread), directory)))
        of.write(inodes[0], np.array([0, 1_000]), 1)
        env.start(worker.task, converts(worker))
        for page in (0, 1_000):
            yield from timed(of.placement.map_extent(thread, inodes[0], inodes[0].file, page, 1))
            yield 1_000_000

    env.start(flusher.task, maps(flusher))
    run_for(env, 5_000_000)
    return took, held


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_transaction_on_another_processor_fetches_the_lines_of_the_file(filesystem: str) -> None:
    """The first transaction, and one that follows another on its processor, fetch no line.

    The inode's lock is held during the fetch.
    """
    plain, moved = times_of(filesystem, 0, 0), times_of(filesystem, 3, 2)
    for without, with_lines in zip(plain, moved, strict=True):
        more = [after - before for before, after in zip(without, with_lines, strict=True)]
        assert more == [0, 2 * LINE_NS, 0, 3 * LINE_NS]


def test_lines_from_another_node_take_longer() -> None:
    """Processors 0 to 3 are a node: a line takes 100 ns within the node, and 300 ns from the other node."""
    costs = FlusherCosts(map_ns=1, page_ns=1, ioend_ns=1, map_lines=5, ioend_lines=2)
    of = MapCosts(costs, 4, RandomFactors(BlockLayer().parts, "map"), HandOff(LINE_NS, 300, node_cpus=4))
    task, file = Environment().task("t"), PagedFile(0, True)
    took = []
    for cpu in (0, 3, 3, 4):
        task.cpu = cpu
        took.append(of.moved_map_ns(file, task))
    task.cpu = 1
    assert [*took, of.moved_range_ns(file, task)] == [0, 5 * LINE_NS, 0, 5 * 300, 2 * 300]


def test_slower_processors_have_as_many_lines() -> None:
    """A factor of processor times multiplies times, but not numbers of lines."""
    costs = FlusherCosts(map_ns=3, page_ns=2, ioend_ns=1, map_lines=5, ioend_lines=4)
    slower = scale(costs, 2.0)
    assert (slower.map_ns, slower.ioend_ns, slower.map_lines, slower.ioend_lines) == (6, 2, 5, 4)
