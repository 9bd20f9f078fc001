"""Writing back a file whose pages are kept one by one: find dirty pages, map them, build bios, submit.

Stands for write_cache_pages with xfs_vm_writepage (to 5.4), and for iomap_writepages.  A bio is the unit of
time: its pages go under writeback together, when the walk reaches them.  READ `Writepages.write` FIRST.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from mypy_extensions import mypyc_attr

from wbsim.models.bio import Bio
from wbsim.models.filesystems.costs import MapCosts
from wbsim.models.filesystems.files import FileInode, PagedFile
from wbsim.models.filesystems.ioends import IoEnd, IoEnds
from wbsim.models.interfaces import Thread, WritebackControl
from wbsim.models.page_cache.pages import (
    MAPPED,
    UNWRITTEN,
    dirty_page_from,
    dirty_pages_from,
    is_delayed,
    run_from,
    take_run,
)
from wbsim.models.scheduler.cpu import cond_resched
from wbsim.models.vfs.superblock import Flight, MountedSuperblock
from wbsim.sim.engine import Steps
from wbsim.sim.units import PAGE_SECTORS

_NO_PAGE: Final = -1
_UNLIMITED: Final = (1 << 62) - 1


InodeT = TypeVar("InodeT", bound=FileInode, contravariant=True)
FileT = TypeVar("FileT", bound=PagedFile, contravariant=True)


@mypyc_attr(allow_interpreted_subclasses=True)
class ExtentMapper(Protocol[InodeT, FileT]):
    """The part of a filesystem that gives blocks to delayed pages."""

    def map_extent(self, thread: Thread, inode: InodeT, file: FileT, page: int, at_most: int) -> Steps:
        """Give blocks to the delayed extent of *file* that holds *page*, or to a part of it.

        Use: `yield from`; it is one transaction, whose time is accounted for here.  The walk may write
        *at_most* pages from *page* on; only ext4 maps no more.  On ext4, *page* has a block at the end, and a
        dirty page that must be mapped again (`UNWRITTEN`) counts as delayed.  In XFS the part may end in
        front of *page*, so the caller repeats this until *page* has a block.  In XFS another task may have
        been faster: then nothing is mapped.  Otherwise ``file.allocations`` grows by 1.
        """

    def budget(self, file: FileT, page: int, wbc: WritebackControl) -> int:
        """Return how many pages a walk from *page* on may write: ``wbc.nr_to_write``, or more on ext4.

        *wbc* does not change.  The unit is calls of writepage in eras that count calls.
        """


@dataclass(frozen=True)
class WritepagesRules:
    """The rules of a filesystem and an era.

    * ``wraps``: at the end of the file a walk continues at page 0, once.
    * ``spans_calls``: an ioend may contain the pages of several calls.
    * ``call_pages``: a call writes at most this number of pages that lie together; 0: the pages of a bio.
    * ``calls_x4``: the budget counts calls, and XFS multiplies it by four (2.6.32 to 2.6.34).  The bios of a
      call leave together at its end.
    * ``page_bios``: a bio has one page.
    * ``sync_data``: the bios of data integrity carry REQ_SYNC (wbc_to_write_flags).
    * ``pagevec``: the dirty pages that a walk looks up at a time; 0: it looks for each page anew.
    """

    wraps: bool
    spans_calls: bool
    sync_data: bool
    call_pages: int = 0
    calls_x4: bool = False
    page_bios: bool = False
    pagevec: int = 0


class _Position:
    """The place of a walk that begins at *page*, the ``pages`` that it wrote, and the rest of its *budget*.

    ``pages_left`` is the rest in pages.  With ``counts_calls``, ``calls`` is the rest in calls of writepage,
    and ``pages_left`` is the rest as XFS computes it.  A walk that has wrapped ends at page ``_end``.

    Dirty pages are looked up *pagevec* at a time.  A page that becomes dirty between two of them waits for
    the next walk.  Its delayed extent lies in front of the next page's until then (docs/measurements.md W).
    """

    __slots__ = (
        "_batch",
        "_end",
        "_next",
        "_pagevec",
        "_start",
        "calls",
        "counts_calls",
        "page",
        "pages",
        "pages_left",
        "wraps",
    )  # fmt: skip

    def __init__(self, page: int, budget: int, wraps: bool, counts_calls: bool, pagevec: int) -> None:
        self.page = self._start = page
        self.pages = 0
        self.pages_left = self.calls = budget
        self.wraps = wraps
        self.counts_calls = counts_calls
        self._end = _NO_PAGE
        self._pagevec = pagevec
        self._batch: list[int] = []  # the pages that were looked up last
        self._next = 0  # the place in ``_batch`` of the page that the walk has reached

    @property
    def budget(self) -> int:
        """Return what is left of the budget: calls or pages."""
        return self.calls if self.counts_calls else self.pages_left

    def next_page(self, file: PagedFile) -> int:
        """Move to the next dirty page and return it; `_NO_PAGE` at the end of the walk.

        At the end, the next walk begins here if walks wrap, else at page 0.
        """
        page = self._look_up(file)
        if self.wraps and page < 0 and self._end == _NO_PAGE and self._start > 0:
            self._end, self.page = self._start, 0
            page = self._look_up(file)
        if page < 0 or (self._end != _NO_PAGE and page >= self._end):
            if not self.wraps:
                self.page = 0
            return _NO_PAGE
        self.page = page
        return page

    def _look_up(self, file: PagedFile) -> int:
        """Return the next dirty page that was found before; after the last of them, find the next ones."""
        pages = file.pages
        if not self._pagevec:
            return int(dirty_page_from(pages.states, pages.size, self.page))
        while self._next < len(self._batch):
            if self._batch[self._next] >= self.page:
                return self._batch[self._next]
            self._next += 1
        batch = np.empty(self._pagevec, np.int64)
        number = dirty_pages_from(pages.states, pages.size, self.page, batch)
        self._batch, self._next = batch[:number].tolist(), 0
        return self._batch[0] if number else _NO_PAGE

    def together(self, at_most: int) -> int:
        """Return how many pages lie together from the next page on; *at_most* if none is behind them.

        Pages that became dirty since the walk looked are left out.
        """
        batch, first = self._batch, self._next
        last = first + 1
        while last < len(batch) and batch[last] == batch[last - 1] + 1:
            last += 1
        return at_most if last >= len(batch) else min(at_most, last - first)

    def room(self, at_most: int) -> int:
        """Return the most pages that the next call may write; *at_most* is the limit of the call itself."""
        if not self.counts_calls:
            return min(self.pages_left, at_most)
        return 1 + min(max(_long(4 * self.pages_left), 1), _UNLIMITED)

    def wrote(self, run: int) -> None:
        """Move behind a *run* of pages, which one call has written."""
        self.page += run
        self.pages += run
        if self.counts_calls:
            self.pages_left, self.calls = _long(4 * self.pages_left - (run - 1)), self.calls - 1
        else:
            self.pages_left -= run


def _long(number: int) -> int:
    """Return *number* as wbc->nr_to_write holds it, a long, which overflows after 27 calls of small runs.

    >>> _long(1 << 63) == -(1 << 63)
    True
    """
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class _Build:
    """struct iomap_writepage_ctx: the current ``ioend``, and the current bio, which has ``pages`` pages.

    ``mapped`` extents were mapped for the pages that come next.  Block b of the file is block b + *base* of
    the disk.  The current ioend ``converts`` its pages at its end if their blocks are unwritten; then it goes
    to *ioends*.  Otherwise, the pages of a bio are clean when the bio ends.  *sync*: the bios carry REQ_SYNC.
    """

    __slots__ = (
        "_base",
        "_bio_pages",
        "_block",
        "_inode",
        "_ioends",
        "_page",
        "_queue",
        "_segment",
        "_sync",
        "converts",
        "ioend",
        "mapped",
        "pages",
    )  # fmt: skip

    def __init__(
        self, inode: FileInode, queue: Any, base: int, ioends: IoEnds, page_bios: bool, sync: bool
    ) -> None:  # fmt: skip
        self._sync = sync
        self._inode = inode
        self._queue = queue
        self._base = base
        self._segment: int = queue.segment_pages(inode.folio_pages)
        self._bio_pages: int = 1 if page_bios else queue.bio_pages(self._segment)
        self._ioends = ioends
        self.converts = False
        self.ioend: IoEnd | None = None
        self.pages = self.mapped = 0
        self._page = self._block = 0  # where the current bio ends

    @property
    def room(self) -> int:
        """Return how many more pages the current bio may have."""
        return self._bio_pages - self.pages

    def ends_at(self, page: int, block: int) -> bool:
        """Return whether *page* at *block* follows the current bio."""
        return page == self._page and block == self._block

    def add(self, flight: Flight, page: int, block: int, pages: int, unwritten: bool) -> None:
        """Put *pages* pages under writeback, in the current bio or a new one; *unwritten*: their blocks are.

        Pages that become clean together are in one flight.
        """
        if self.ioend is None:
            self.ioend = IoEnd(page, block, flight)
            self.converts = unwritten
            self._ioends.pending += unwritten
        elif not self.pages and not self.converts:
            self.ioend.flight = flight
        self.ioend.flight.add(self._inode.wb, pages)
        self.ioend.pages += pages
        self.ioend.mapped += self.mapped
        self.mapped = 0
        self.pages += pages
        self._page, self._block = page + pages, block + pages

    def take(self, ends: bool) -> Bio:
        """Return the current bio, which is complete; *ends*: the current ioend ends with it."""
        ioend, count = self.ioend, self.pages
        assert ioend is not None, "a bio is being built"
        self.pages = 0
        ioend.bios += 1
        if ends:
            ioend.is_open, self.ioend = False, None
        bio = Bio(
            (self._base + self._block - count) * PAGE_SECTORS, count * PAGE_SECTORS,
            segments=-(-count // self._segment), queue=self._queue, sync=self._sync,
        )  # fmt: skip
        if self.converts:
            bio.end_io, bio.context = self._ioends.end_io, ioend
        else:
            bio.end_io, bio.context = _Landing(ioend.flight, self._inode).end, count
        return bio


class _Landing:
    """Pages of *inode* under writeback, in *flight*."""

    __slots__ = ("_flight", "_inode")

    def __init__(self, flight: Flight, inode: FileInode) -> None:
        self._flight = flight
        self._inode = inode

    def end(self, pages: int) -> None:
        """Make *pages* pages clean."""
        self._flight.end(self._inode.wb, pages)


class Writepages:
    """The page walk of one mounted filesystem, whose *mapper* gives blocks to delayed pages."""

    def __init__(
        self,
        *,
        sb: MountedSuperblock,
        mapper: ExtentMapper[Any, Any],
        costs: MapCosts,
        rules: WritepagesRules,
    ) -> None:
        self.sb = sb
        self._queue: Any = sb.bdi.queue
        self._mapper = mapper
        self._costs = costs
        self._rules = rules

    def write(self, thread: Thread, inode: FileInode, file: PagedFile, wbc: WritebackControl) -> Steps:
        """Write back *file* of *inode* from where the last call ended or, for data integrity, all of it.

        Use: `yield from`.  With ``wbc.from_start``, begin at page 0.  ``wbc.nr_to_write`` has the budget
        (pages, or calls of writepage), and at the end the rest, below 0 if ext4 raised the budget.  The walk
        ends early if ``wbc.visits`` gives up.  The pages that are written are subtracted from
        ``inode.dirty_pages``.  *thread* submits the bios, and does not wait for their ends.  Its time is
        accounted for here, and ``file.writeback_index`` is set.
        """
        visits, mapper, spans_calls = wbc.visits, self._mapper, self._rules.spans_calls
        page_ns, mapped = self._costs.page_ns(inode.folio_pages), 0
        base = file.base + self.sb.first_block
        sync = wbc.sync_all and self._rules.sync_data
        build = _Build(inode, self._queue, base, file.ioends, self._rules.page_bios, sync)
        position = self._begin(inode, file, wbc)
        while position.budget > 0 and (page := position.next_page(file)) != _NO_PAGE:
            if not file.pages.states[page] & MAPPED:
                yield mapper.map_extent(thread, inode, file, page, position.pages_left)
                mapped += 1
                continue
            build.mapped, mapped = build.mapped + mapped, 0
            if not spans_calls:
                yield self._write_call(thread, inode, file, position, build)
            else:
                block = int(file.pages.blocks[page])
                follows = build.ends_at(page, block)
                if build.converts != bool(file.pages.states[page] & UNWRITTEN):
                    follows = False  # an ioend has one type of extents
                leaves = build.pages > 0 and not (follows and build.room)
                if leaves and (rest := thread.submit_bio(build.take(ends=not follows))) is not None:
                    yield from rest
                run = self._start_writeback(
                    inode, file, page, position.room(position.together(build.room)), build
                )
                thread.spent.pages += run * page_ns
                yield run * page_ns
                position.wrote(run)
            if visits is not None and visits.gives_up():
                break
            if (ready := cond_resched(thread.task)) is not None:
                yield ready
        if build.pages and (rest := thread.submit_bio(build.take(ends=True))) is not None:
            yield from rest
        file.writeback_index = position.page
        if position.counts_calls:
            wbc.nr_to_write = position.calls
        else:
            wbc.nr_to_write -= position.pages

    def _write_call(
        self, thread: Thread, inode: FileInode, file: PagedFile, position: _Position, build: _Build
    ) -> Steps:  # fmt: skip
        """Write pages that lie together as one ioend: in writepage, or mpage_map_and_submit_extent."""
        page_ns, page, pages = self._costs.page_ns(inode.folio_pages), position.page, file.pages
        call = pages_left = int(
            run_from(pages.states, pages.blocks, page, position.room(self._rules.call_pages or build.room))
        )  # fmt: skip
        bios: list[Bio] = []
        while pages_left:
            run = self._start_writeback(inode, file, page, min(pages_left, build.room), build)
            thread.spent.pages += run * page_ns
            yield run * page_ns
            page, pages_left = page + run, pages_left - run
            bios.append(build.take(ends=not pages_left))
            if pages_left and self._rules.calls_x4:
                continue
            for bio in bios:
                if (rest := thread.submit_bio(bio)) is not None:
                    yield from rest
            bios.clear()
        position.wrote(call)

    def _start_writeback(
        self, inode: FileInode, file: PagedFile, page: int, at_most: int, build: _Build
    ) -> int:  # fmt: skip
        """Put up to *at_most* pages from *page* on that lie together under writeback; return their number."""
        pages = file.pages
        run = int(take_run(pages.states, pages.blocks, page, at_most))
        assert run, "the page must be dirty and have a block, because only this task makes it clean"
        inode.dirty_pages -= run
        unwritten = bool(pages.states[page] & UNWRITTEN)
        build.add(file.flight_in(self.sb.flight), page, int(pages.blocks[page]), run, unwritten)
        return run

    def _begin(self, inode: FileInode, file: PagedFile, wbc: WritebackControl) -> _Position:
        """Return where a walk begins: where the last one ended or, for data integrity, at page 0.

        A pagevec of large folios has so many pages that a walk looks for each page anew.
        """
        page, counts_calls = 0 if wbc.from_start else file.writeback_index, self._rules.calls_x4
        budget = self._mapper.budget(file, page, wbc)
        pagevec = self._rules.pagevec if inode.folio_pages == 1 else 0
        return _Position(page, budget, self._rules.wraps, counts_calls and not wbc.sync_all, pagevec)

    def zero_end(self, thread: Thread, inode: FileInode) -> Steps:
        """Give the delayed extent behind the end of the file its blocks (xfs_file_write_checks).

        Use: `yield from`.  The file must be a `PagedFile`; nothing happens if its page behind the end is not
        delayed.  A write(2) that leaves a gap behind the end needs this first
        (`models.filesystems.xfs.layout.write_page`).
        """
        file = inode.file
        assert isinstance(file, PagedFile), "only a file whose pages are kept one by one has an end to zero"
        page = file.size
        while is_delayed(int(file.pages.states[page])):
            yield from self._mapper.map_extent(thread, inode, file, page, 1)
