"""Transactions of XFS under the locks of an inode and of groups: the groups that they take, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.harness import only, run_for
from wbsim.experiments.config.experiment import parse
from wbsim.models.filesystems.ioends import IoEnd
from wbsim.models.interfaces import Thread
from wbsim.models.machine import build
from wbsim.sim.engine import Steps

GROUPS = 4


class Costs(NamedTuple):
    """The times of the paths (ns)."""

    map_ns: int
    commit_ns: int
    rmap_ns: int
    range_ns: int
    rmap_ioend_ns: int


class Mounted:
    """An XFS of four groups on a machine of eight processors, and a file of *pages* delayed pages.

    The file is in the last of *directories* directories, each of which is in another group.
    """

    def __init__(
        self, pages: int = 1, kernel: str = "6.18", rmapbt: bool = True, directories: int = 1
    ) -> None:  # fmt: skip
        (case,) = parse(
            f"""\
title = "transactions"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 8
machine.processors.cv = 0
machine.processors.line_own = "0 ns"
machine.processors.line_time = "0 ns"
machine.disks.d.like = "loop"
kernel.like = "{kernel}"
mounts.m.like = "loop-xfs"
mounts.m.disk = "d"
mounts.m.at = "/m"
mounts.m.size = "4 GiB"
mounts.m.agcount = {GROUPS}
mounts.m.rmapbt = {str(rmapbt).lower()}
programs.s = "sync"
""",
            "x.toml",
        ).cases
        self.machine = build(case.scenario, 1)
        self.env = self.machine.env
        self.filesystem: Any = only(self.machine.mounts).filesystem
        self.placement = self.filesystem.placement
        self.groups = self.placement.groups
        metadata = self.filesystem.metadata
        costs = self.placement._costs
        self.costs = Costs(
            costs.extent_map_ns, metadata._commit_ns, costs.group_ns, costs.range_ns(0), metadata._rmap_ns
        )
        self.wake_ns = case.scenario.machine.processors.wake_time
        self.seen: list[tuple[int, str]] = []
        self.inode: Any = None
        self._pages = pages
        self._directories = directories

    def run(self, *bodies: Callable[[Thread], Steps]) -> list[tuple[int, str]]:
        """Make the file, then run each of *bodies* as a thread; return all that was given to `note`."""
        maker = self.machine.thread("maker")

        def make() -> Steps:
            for _ in range(self._directories):
                directory = yield from self.filesystem.names.mkdir(maker)
            self.inode = yield from self.filesystem.names.create(maker, directory)
            self.filesystem.write(self.inode, np.arange(self._pages), 1)
            self.began_ns = self.env.now
            for number, body in enumerate(bodies):
                thread = self.machine.thread(f"task {number}")
                self.env.start(thread.task, body(thread))

        self.env.start(maker.task, make())
        run_for(self.env, 5_000_000)  # the sync(2) ends it before
        return self.seen

    def note(self, what: str) -> None:
        """Keep *what*, and the time since the file was made."""
        self.seen.append((self.env.now - self.began_ns, what))

    def holder(self, number: int, ns: int) -> Callable[[Thread], Steps]:
        """Return the body of a thread that holds an AGF for *ns*.

        The AGF is that of the group *number* groups behind the file's group.
        """

        def body(thread: Thread) -> Steps:
            agf = self.groups[(self.inode.group.number + number) % GROUPS].agf
            assert agf.try_down()
            yield ns
            agf.up()

        return body

    def mapper(self, thread: Thread) -> Steps:
        """Map page 0, and note the group of its block."""
        yield from self.placement.map_extent(thread, self.inode, self.inode.file, 0, 1)
        file = self.inode.file
        block = int(file.pages.blocks[0]) + file.base
        group = block // self.placement.group_blocks - self.inode.group.number
        self.note(f"group {group % GROUPS}")

    def converter(self, thread: Thread) -> Steps:
        """Convert page 0, which has the first block of the file's group."""
        ioend = IoEnd(0, 0, only(self.machine.mounts).flight)
        ioend.pages = 1
        yield from self.filesystem.metadata.convert(thread, self.inode, ioend)
        self.note("converted")


def test_an_allocation_takes_its_time() -> None:
    """The map and the commit hold the AGF, and then the reverse map holds it again."""
    of = Mounted()
    assert of.run(of.mapper) == [(of.costs.map_ns + of.costs.commit_ns + of.costs.rmap_ns, "group 0")]


def test_a_locked_group_is_passed_over() -> None:
    """The next group has room, and its AGF is free."""
    of = Mounted()
    of.run(of.holder(0, 200_000), of.mapper)
    assert of.seen[0][1] == "group 1"


def test_a_flusher_waits_for_the_first_of_all_locked_groups() -> None:
    """The AGF of the wanted group is free last, at 100 us, and the flusher owns it while it wakes up."""
    of = Mounted()
    of.run(*(of.holder(number, 100_000 - 10_000 * number) for number in range(GROUPS)), of.mapper)
    costs = of.costs
    allocated_ns = 100_000 + of.wake_ns + costs.map_ns + costs.commit_ns + costs.rmap_ns
    assert of.seen == [(allocated_ns, "group 0")]


def test_an_extent_that_another_task_has_mapped_stays() -> None:
    """Two tasks want to map page 0; the second finds it mapped when it has the ILOCK."""
    of = Mounted()
    of.run(of.mapper, of.mapper)
    assert [what for _, what in of.seen] == ["group 0", "group 0"]
    assert of.inode.file.allocations == 1
    assert of.inode.file.lock.stat.acquisitions == 2
    assert of.inode.file.lock.free


def test_a_neighbour_in_a_locked_group_does_not_count() -> None:
    """Page 0 lies in the file's group, whose AGF is locked then.

    Page 100 gets the first block of the next group.
    """
    of = Mounted()
    places: list[int] = []

    def body(thread: Thread) -> Steps:
        yield from of.mapper(thread)
        home = of.inode.group.number
        assert of.groups[home].agf.try_down()
        places.append(of.groups[(home + 1) % GROUPS].free.extents()[0].first)
        of.filesystem.write(of.inode, np.array([100]), 1)
        yield from of.placement.map_extent(thread, of.inode, of.inode.file, 100, 1)
        block = int(of.inode.file.pages.blocks[100]) + of.inode.file.base
        places.append(block % of.placement.group_blocks)

    of.run(body)
    assert places[0] == places[1]


@pytest.mark.parametrize(("rmapbt", "directories"), [(True, 1), (True, 2), (False, 1)])
def test_only_the_reverse_map_of_a_conversion_needs_the_group(rmapbt: bool, directories: int) -> None:
    """Another task has the AGF of the file's group until 200 us."""
    of = Mounted(rmapbt=rmapbt, directories=directories)
    of.run(of.holder(0, 200_000), of.converter)
    costs = of.costs
    converted_ns = 200_000 + of.wake_ns + costs.rmap_ioend_ns if rmapbt else costs.range_ns
    assert of.seen == [(converted_ns, "converted")]
    assert of.inode.file.lock.stat.hold_ns == converted_ns


def test_an_allocation_and_its_conversion_are_logged() -> None:
    """Each logs an extent and its cluster; the inode is logged once in a checkpoint."""
    sizes: list[int] = []

    def logged(of: Mounted) -> Callable[[Thread], Steps]:
        def body(thread: Thread) -> Steps:
            log = of.filesystem.metadata.log
            for step in (of.mapper, of.converter):
                before = log.item_bytes
                yield from step(thread)
                sizes.append(log.item_bytes - before)

        return body

    of = Mounted()
    of.run(logged(of))
    assert sizes[0] >= sizes[1] > 0


def test_flusher_and_worker_take_turns() -> None:
    """Each has the ILOCK for its complete transaction, and the worker spins until the flusher gives it up."""
    of = Mounted()
    of.run(of.mapper, of.converter)
    costs = of.costs
    mapped_ns = costs.map_ns + costs.commit_ns + costs.rmap_ns
    converted_ns = mapped_ns + costs.range_ns + costs.rmap_ioend_ns
    assert of.seen == [(mapped_ns, "group 0"), (converted_ns, "converted")]
    assert of.inode.file.lock.stat.hold_ns == converted_ns
    assert of.inode.file.lock.stat.contentions == 1
