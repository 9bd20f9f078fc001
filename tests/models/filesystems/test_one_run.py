"""The writeback of a file of one run: its blocks, its bios, its time, and what is logged."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.harness import caller, loop_config, only, run_for
from wbsim.experiments.config.experiment import parse
from wbsim.models.block.queue import Queue
from wbsim.models.filesystems.delalloc import DelallocFilesystem
from wbsim.models.filesystems.files import OPEN
from wbsim.models.interfaces import Thread, WritebackControl
from wbsim.models.machine import build
from wbsim.models.tracepoints import Signals
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.units import S

MORE = """\
machine.processors.cv = 0
machine.device = { kind = "null" }
machine.queue.limits.max_sectors_bytes = "32 KiB"
"""


class OneRun:
    """A file of *pages* pages on an idle machine, whose costs do not vary; a bio has at most eight pages."""

    env: Environment
    filesystem: Any
    queue: Queue

    def __init__(
        self, filesystem: str, pages: int, kernel: str = "3.11", *, closed: bool = True, more: str = ""
    ) -> None:
        command = "fs_mark -S0 -n 1 -s 4096 -L 2 -d a"
        text = loop_config(command, dirty_mib=64, kernel=kernel, filesystem=filesystem, more=MORE + more)
        signals = Signals()
        self.bios: list[tuple[int, int]] = []
        self.segments: list[int] = []

        def queued(_: str, bio: Any, task: Any) -> None:
            self.bios.append((bio.start_sector // 8, bio.sectors // 8))
            self.segments.append(bio.segments)

        signals.block_bio_queue.observers.append(queued)
        scenario = parse(text, "x.toml").cases[0].scenario
        machine = build(scenario, 1, signals=signals)
        self.new_thread = machine.thread
        run_for(machine.env, 0)
        machine.env.halt()  # all threads sleep, and no event is left
        self.env, self.filesystem = machine.env, only(machine.mounts).filesystem
        self.queue, self.sb, self.wb = only(machine.queues), only(machine.mounts), machine.cache.wbs[0]
        assert isinstance(self.filesystem, DelallocFilesystem)
        self.took_ns = self.wrote = 0
        thread = machine.thread("flusher")
        self.env.start(thread.task, self._body(thread, pages, closed))
        run_for(self.env, S)  # no journal is committed so soon

    def _body(self, thread: Thread, pages: int, closed: bool) -> Steps:
        filesystem = self.filesystem
        directory = yield from filesystem.names.mkdir(thread)
        self.inode = inode = yield from filesystem.names.create(caller(thread), directory)
        assert filesystem.append(inode, pages) == pages
        inode.dirty_pages += pages
        self.wb.dirty += pages
        self.wb.dirty_and_writeback += pages
        if closed:
            filesystem.close(inode)
        began_ns = self.env.now
        wbc = WritebackControl("background", pages)
        yield from filesystem.write_pages(thread, inode, wbc)
        self.wrote = pages - wbc.nr_to_write
        self.took_ns = self.env.now - began_ns
        assert self.inode.dirty_pages == self.wb.dirty == 0


BIO_NS: Final = 1_130 + 440 + 1_790
"""The time of the block layer for a bio: request, insertion and dispatch (docs/measurements.md B)."""


@pytest.mark.parametrize("pages", [1, 4, 8, 12])
def test_xfs_takes_one_allocation_and_the_time_of_each_page(pages: int) -> None:
    """The file takes one allocation of 21 450 ns and one commit, and then 3 040 ns for each page.

    The commit holds the lock of the CIL for 150 ns, and for 209 ns with each of its four items.

    Bios have at most eight pages and lie one behind the other.
    """
    of = OneRun("loop-xfs", pages)
    fs, bios = of.filesystem, -(-pages // 8)
    assert of.wrote == pages
    assert of.took_ns == 21_450 + 150 + 4 * 209 + pages * 3_040 + bios * BIO_NS
    (first, _), *_ = of.bios
    assert of.bios == [(first, min(pages, 8)), (first + 8, pages - 8)][:bios]
    assert of.queue.stat.writes.sectors == 8 * pages
    assert (of.wb.dirty_and_writeback, of.wb.written_pages, of.sb.under_writeback) == (0, pages, 0)
    assert not fs.layouts(), "a budget of exactly the pages keeps the file one run"
    assert fs.placement.groups[0].free.extents()[0].first == first + pages


@pytest.mark.parametrize("kernel", ["3.11", "6.18"])
@pytest.mark.parametrize("pages", [1, 4, 12])
def test_ext4_takes_blocks_of_its_processor_s_run(pages: int, kernel: str) -> None:
    """The file takes one allocation of 4 800 ns and no commit, and then 400 ns for each page."""
    of = OneRun("loop-ext4", pages, kernel)
    fs, bios = of.filesystem, -(-pages // 8)
    assert of.wrote == pages
    assert of.took_ns == 4_800 + pages * 400 + bios * BIO_NS
    (first, _), *_ = of.bios
    assert of.bios == [(first, min(pages, 8)), (first + 8, pages - 8)][:bios]
    assert (of.wb.dirty_and_writeback, of.wb.written_pages, of.sb.under_writeback) == (0, pages, 0)
    assert not fs.layouts(), "a budget of exactly the pages keeps the file one run"
    journal = fs.metadata.journal
    assert (journal.credits, journal.reserved) == (0, 0), "no handle is left open"


@pytest.mark.parametrize("filesystem", ["loop-xfs", "loop-ext4"])
def test_open_file_is_kept_page_by_page_after_its_writeback(filesystem: str) -> None:
    """The file has twelve clean pages from its first block on."""
    of = OneRun(filesystem, 12, closed=False)
    (layout,) = of.filesystem.layouts()
    assert layout is of.inode.file
    assert layout.open, "the writer may continue, so the blocks after the end are kept"
    of.filesystem.close(of.inode)
    assert not layout.open
    assert [tuple(extent) for extent in layout.extents()] == [(0, of.bios[0][0], 12)]
    assert (layout.size, layout.dirty) == (12, 0)
    assert of.filesystem.extents_per_file() == (1,)


def test_bio_has_at_most_as_many_pages_as_segments() -> None:
    """Twelve pages make three bios, because a request has at most five segments."""
    of = OneRun("loop-xfs", 12, more="machine.queue.limits.max_segments = 5")
    (first, _), *_ = of.bios
    assert of.bios == [(first, 5), (first + 5, 5), (first + 10, 2)]


@pytest.mark.parametrize(("pages", "segments"), [(4, [1]), (6, [2]), (8, [1]), (12, [1, 1]), (13, [1, 1])])
def test_part_of_a_folio_is_a_segment(pages: int, segments: list[int]) -> None:
    """Folios have 4 pages in files of 4 and 6 pages, and 8 pages in larger files; a bio has up to 8."""
    assert OneRun("loop-xfs", pages, "6.18").segments == segments


@pytest.mark.parametrize(("pages", "paged"), [(16, 0), (17, 1)])
def test_open_file_of_64_kib_is_one_run(pages: int, paged: int) -> None:
    """XFS reserves nothing for a file up to 64 KiB, so its pages need not be kept one by one."""
    of = OneRun("loop-xfs", 1)
    inode = of.inode
    inode.file, inode.dirty_pages = OPEN, 0
    assert of.filesystem.append(inode, pages) == pages
    assert len(of.filesystem.layouts()) == paged


def test_group_with_exactly_enough_blocks_is_taken() -> None:
    """The longest run of the group is as long as the file, which lies there in one piece."""
    of = OneRun("loop-xfs", 1)
    fs = of.filesystem
    (run,) = fs.placement.groups[0].free.extents()
    taken = fs.placement.groups[0].free.take_near(0, run.size - 6)
    assert taken is not None
    inode = of.inode
    inode.dirty_pages = 6
    of.wb.dirty, of.wb.dirty_and_writeback = 6, 6
    thread = of.new_thread("again")
    of.env.start(thread.task, _written(fs, thread, inode))
    run_for(of.env, S)
    assert of.bios[-1] == (run.first + run.size - 6, 6)
    assert fs.placement.groups[0].free.blocks == 0


def test_next_group_with_exactly_enough_blocks_is_taken() -> None:
    """The file's group has five blocks together and the next one has six: six pages lie there in one run."""
    of = OneRun("loop-xfs", 1)
    fs, left = of.filesystem, {}
    for group, blocks in zip(fs.placement.groups[:2], (5, 6), strict=True):
        (run,) = group.free.extents()
        assert group.free.take_near(run.first, run.size - blocks) is not None
        left[group] = group.first_block + run.first + run.size - blocks
    inode = of.inode
    inode.dirty_pages = of.wb.dirty = of.wb.dirty_and_writeback = 6
    thread = of.new_thread("again")
    of.env.start(thread.task, _written(fs, thread, inode))
    run_for(of.env, S)
    assert of.bios[-1] == (left[fs.placement.groups[1]], 6)
    assert [group.free.blocks for group in left] == [5, 0]
    assert not fs.layouts(), "a file in pieces would have a layout"


def test_file_without_a_long_enough_run_is_written_in_pieces() -> None:
    """Runs of three and two blocks are free: five pages lie in two extents, and come off the budget."""
    of = OneRun("loop-xfs", 1)
    fs = of.filesystem
    for group in fs.placement.groups:
        for free in group.free.extents():
            assert group.free.take_near(free.first, free.size) is not None
    first = fs.placement.groups[0]
    first.free.give_back(10_000, 3)
    first.free.give_back(10_004, 2)
    of.inode.dirty_pages = of.wb.dirty = of.wb.dirty_and_writeback = 5
    of.inode.file = OPEN
    thread, wbc = of.new_thread("again"), WritebackControl("background", 1_000)
    of.env.start(thread.task, fs.write_pages(thread, of.inode, wbc))
    run_for(of.env, S)
    assert (wbc.nr_to_write, of.bios[-2:]) == (995, [(10_000, 3), (10_004, 2)])


@pytest.mark.source
def test_ext4_file_in_pieces_keeps_no_journal_credits() -> None:
    """Runs of three and two blocks are free, and five pages lie in two extents.

    The attempt to allocate one run leaves no credits reserved in the journal.
    """
    of = OneRun("loop-ext4", 1, "6.18")
    fs = of.filesystem
    mballoc = fs.placement.mballoc
    while mballoc.find(0, 32_768)[1]:
        pass
    for runs in fs.placement.new_blocks.locality_groups:
        runs.clear()
    mballoc.give_back(10_000, 3)
    mballoc.give_back(10_004, 2)
    of.inode.dirty_pages = of.wb.dirty = of.wb.dirty_and_writeback = 5
    of.inode.file = OPEN
    thread = of.new_thread("again")
    of.env.start(thread.task, _written(fs, thread, of.inode))
    run_for(of.env, S)
    assert of.bios[-2:] == [(10_000, 3), (10_004, 2)]
    assert [tuple(extent) for extent in of.inode.file.extents()] == [(0, 10_000, 3), (3, 10_004, 2)]
    journal = fs.metadata.journal
    assert (journal.credits, journal.reserved) == (0, 0)


def _written(filesystem: Any, thread: Thread, inode: Any) -> Steps:
    yield from filesystem.write_pages(thread, inode, WritebackControl("background", 1_000))


@pytest.mark.parametrize(
    ("filesystem", "kernel", "pages", "folio"),
    [
        ("loop-xfs", "6.18", 1, 1), ("loop-xfs", "6.18", 4, 4), ("loop-xfs", "6.18", 7, 4),
        ("loop-xfs", "6.6", 4, 4), ("loop-xfs", "6.5", 4, 1),
        ("loop-xfs", "5.10", 4, 1), ("loop-ext4", "6.14", 4, 1),
        ("loop-ext4", "6.18", 4, 4), ("loop-ext4", "6.18", 1_000, 512),
    ],
)  # fmt: skip
def test_folio_is_as_large_as_its_write(filesystem: str, kernel: str, pages: int, folio: int) -> None:
    """A folio has a power of two of pages and at most 2 MiB.

    XFS has such folios from 5.18 on, and ext4 from 6.16 on.
    """
    assert OneRun(filesystem, pages, kernel).inode.folio_pages == folio
