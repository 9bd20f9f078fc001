"""Transactions of XFS under the locks of an inode and of groups: the groups that they take, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.harness import caller, only, run_for
from wbsim.experiments.config.experiment import parse
from wbsim.models.filesystems.files import PagedFile
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


COSTS = Costs(map_ns=20_000, commit_ns=130, rmap_ns=7_000, range_ns=3_000, rmap_ioend_ns=11_000)
WAKE_NS = 5_000
EXTENT_BYTES = 28
"""The bytes that an extent adds to the log item of its inode, in the filesystems of the catalogue."""


NO_LINES = 'machine.processors.line_own = "0 ns"\nmachine.processors.line_time = "0 ns"'


class Mounted:
    """An XFS of four groups on a machine of eight processors, and a file of *pages* delayed pages.

    The file is in the last of *directories* directories, each of which is in another group.
    """

    def __init__(
        self, pages: int = 1, kernel: str = "6.18", rmapbt: bool = True, directories: int = 1, more: str = "",
        lines: str = NO_LINES,
    ) -> None:  # fmt: skip
        (case,) = parse(
            f"""\
title = "transactions"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 8
machine.processors.cv = 0
{lines}
machine.processors.wake_time = "{WAKE_NS} ns"
machine.processors.paths.filesystems.xfs.flusher.map_ns = "{COSTS.map_ns} ns"
machine.processors.paths.filesystems.xfs.flusher.log.commit_ns = "{COSTS.commit_ns} ns"
machine.processors.paths.filesystems.xfs.flusher.rmap_ns = "{COSTS.rmap_ns} ns"
machine.processors.paths.filesystems.xfs.flusher.ioend_ns = "{COSTS.range_ns} ns"
machine.processors.paths.filesystems.xfs.flusher.rmap_ioend_ns = "{COSTS.rmap_ioend_ns} ns"
machine.disks.d.like = "loop"
kernel.like = "{kernel}"
mounts.m.like = "loop-xfs"
mounts.m.disk = "d"
mounts.m.at = "/m"
mounts.m.size = "4 GiB"
mounts.m.agcount = {GROUPS}
mounts.m.rmapbt = {str(rmapbt).lower()}
programs.s = "sync"
{more}
""",
            "x.toml",
        ).cases
        self.machine = build(case.scenario, 1)
        self.env = self.machine.env
        self.filesystem: Any = only(self.machine.mounts).filesystem
        self.placement = self.filesystem.placement
        self.groups = self.placement.groups
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
            self.inode = yield from self.filesystem.names.create(caller(maker), directory)
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
            agf.up(thread.task)

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
        yield from self.converter_in(0)(thread)

    def converter_in(self, number: int) -> Callable[[Thread], Steps]:
        """Return the body that converts page 0, if it lies *number* groups behind the file's group."""

        def body(thread: Thread) -> Steps:
            ioend = IoEnd(0, number * self.placement.group_blocks, only(self.machine.mounts).flight)
            ioend.pages = 1
            yield from self.filesystem.metadata.convert(thread, self.inode, ioend)
            self.note("converted")

        return body

    def run_ender_in(self, number: int) -> Callable[[Thread], Steps]:
        """Return the body that completes a file of one run, *number* groups behind the file's group."""

        def body(thread: Thread) -> Steps:
            block = (self.inode.group.number + number) * self.placement.group_blocks + 100
            yield self.filesystem.metadata.end_run(thread, block, 1)
            self.note("completed")

        return body


def test_room_of_a_file_has_its_largest_reservation() -> None:
    """A file of 100 pages that a call of 4 pages appends to, with a stripe unit of 8 pages: 112 pages.

    A reservation has twice these pages: 224.
    """
    assert Mounted(more='mounts.m.stripe_unit = "32 KiB"').placement.room_for(100, 4) == 112 + 224


@pytest.mark.parametrize(("rmapbt", "second_ns"), [(True, 1_560), (False, 1_360)])
def test_operation_writes_more_lines_with_reverse_mapping(rmapbt: bool, second_ns: int) -> None:
    """Two operations begin at once on two processors; a write takes 10 ns, and 200 ns from the other one.

    With reverse mapping, they write the four lines of the log 4, 3, 4 and 4 times, otherwise 3, 2, 2 and 2.

    line     first has it until      second has it until
    0        4 * 10 + 190 = 230      230 + 4 * 200 = 1 030
    1        230 + 30 + 190 = 450    1 030 + 30 + 190 = 1 250
    2, 3     680, 910                1 480, 1 710

    The second adds 1 710 - 150, because 15 writes of 10 ns are in its own time.  Without reverse mapping, it
    has the lines until 820, 1 030, 1 240 and 1 450, less 90 ns.
    """
    lines = 'machine.processors.line_own = "10 ns"\nmachine.processors.line_time = "200 ns"'
    of = Mounted(rmapbt=rmapbt, lines=lines)
    added = []
    for cpu in (0, 1):
        task = of.env.task(f"task on {cpu}")
        task.cpu = cpu
        added.append(of.placement._costs.lines_ns(PagedFile(0, True), task, 0))
    assert added == [4 * 190, second_ns]


def test_an_allocation_takes_its_time() -> None:
    """The map and the commit hold the AGF for 20 130 ns, and then the reverse map holds it for 7 000 ns."""
    of = Mounted()
    assert of.run(of.mapper) == [(27_130, "group 0")]


def test_a_locked_group_is_passed_over() -> None:
    """The next group has room, and its AGF is free: for the extent, and for its reverse mapping.

    The AGF of the file's own group is free only at 200 us.
    """
    of = Mounted()
    assert of.run(of.holder(0, 200_000), of.mapper) == [(27_130, "group 1")]


@pytest.mark.parametrize("number", [1, 2])
def test_reverse_map_of_a_conversion_needs_its_own_group(number: int) -> None:
    """The block lies one or two groups behind the file's group, and another task has an AGF until 200 us.

    The AGF of the block's group: 200 us, 5 us to wake up, and 11 us.  Another one: 3 + 11 us.
    """
    for held, end_ns in ((number, 216_000), (0, 14_000), (number + 1, 14_000)):
        of = Mounted()
        assert of.run(of.holder(held, 200_000), of.converter_in(number)) == [(end_ns, "converted")]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_reverse_map_of_one_run_needs_its_own_group(number: int) -> None:
    """A file of one run takes 130 ns for its commit and 3 us for its end, and then its reverse map 11 us.

    Another task has the AGF of the run's group until 200 us, or that of the next group.
    """
    for held, end_ns in ((number, 216_000), (number + 1, 14_130)):
        of = Mounted(directories=2)
        assert of.run(of.holder(held, 200_000), of.run_ender_in(number)) == [(end_ns, "completed")]


@pytest.mark.parametrize("held", [False, True])
def test_an_extent_is_logged_after_its_reverse_mapping(held: bool) -> None:
    """The log item of the extent grows in the last transaction, at 27 130 ns.

    With *held*, another task takes the AGF at 20 130 ns, when the transaction rolls, and has it for 50 us.
    The flusher then wakes up for 5 us, and its reverse mapping ends at 70 130 + 5 000 + 7 000 ns.
    """
    of = Mounted()
    logged: list[int] = []

    def watch(thread: Thread) -> Steps:
        log = of.filesystem.metadata.log
        before, ends_ns = log.item_bytes, 82_130 if held else 27_130
        for until_ns in (20_135, ends_ns - 5, ends_ns + 5):
            yield until_ns - (of.env.now - of.began_ns)
            logged.append(log.item_bytes - before)

    def hold(thread: Thread) -> Steps:
        agf = of.groups[of.inode.group.number].agf
        yield 1
        yield agf.down(thread.task)
        of.note("held")
        yield 50_000 - WAKE_NS
        agf.up(thread.task)

    of.run(of.mapper, watch, *([hold] if held else []))
    assert logged == [0, 0, EXTENT_BYTES]


def test_a_flusher_waits_for_the_first_of_all_locked_groups() -> None:
    """The AGF of the wanted group is free last, at 100 us, and the flusher owns it while it wakes up."""
    of = Mounted()
    of.run(*(of.holder(number, 100_000 - 10_000 * number) for number in range(GROUPS)), of.mapper)
    assert of.seen == [(100_000 + 5_000 + 27_130, "group 0")]


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
    """Another task has the AGF of the file's group until 200 us; the worker wakes up and works for 16 us."""
    of = Mounted(rmapbt=rmapbt, directories=directories)
    of.run(of.holder(0, 200_000), of.converter)
    converted_ns = 216_000 if rmapbt else 3_000
    assert of.seen == [(converted_ns, "converted")]
    assert of.inode.file.lock.stat.hold_ns == converted_ns


def test_an_allocation_and_its_conversion_are_logged() -> None:
    """Each logs an extent of 28 bytes; its creation has logged the inode in this checkpoint."""
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
    assert sizes == [EXTENT_BYTES, EXTENT_BYTES]


def test_flusher_and_worker_take_turns() -> None:
    """Each has the ILOCK for its complete transaction, and the worker spins until the flusher gives it up.

    The flusher has it for 27 130 ns, and then the worker for 3 000 + 11 000 ns.
    """
    of = Mounted()
    of.run(of.mapper, of.converter)
    assert of.seen == [(27_130, "group 0"), (41_130, "converted")]
    assert of.inode.file.lock.stat.hold_ns == 41_130
    assert of.inode.file.lock.stat.contentions == 1
