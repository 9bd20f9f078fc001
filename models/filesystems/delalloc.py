"""Files on any filesystem with delayed allocation: writing to them, and writing them back.

Stands for the part of do_writepages that filesystems share. A file of one run takes one transaction. Any
other is walked by compiled code up to the next event that matters; its bios are submitted, and the filesystem
maps what the walk could not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from mypy_extensions import mypyc_attr
from numpy.typing import NDArray

from models.bio import Bio
from models.filesystems.block_law import check_blocks
from models.filesystems.conversions import Conversions, MapCosts, Submission, Workers
from models.filesystems.dice import Dice
from models.filesystems.files import CLOSED, OPEN, FileInode, OneRun, PagedFile
from models.filesystems.horizon import Horizon
from models.filesystems.ioends import IoEnds
from models.filesystems.page_walk import (
    ALLOCATING,
    BIOS,
    CALLS,
    CONVERT,
    DICE,
    DONE,
    ELAPSED,
    FOR_FILE,
    FOR_GROUP,
    MAPPED_EXTENTS,
    PAGE,
    PAGES,
    RANGES,
    UNCOUNTED,
    WROTE,
    new_walk,
)
from models.filesystems.spec import FlusherCosts
from models.filesystems.turns import Turns
from models.page_cache.pages import DELAYED, RESERVED, map_blocks
from models.seams import LONG_MAX, Filesystem, Thread, WritebackControl
from models.site import Site
from models.vfs.superblock import Flight, MountedSuperblock
from sim.cpu import cond_resched, sleep
from sim.engine import Steps
from sim.laws import require
from sim.units import PAGE_SECTORS

_BIOS: Final = 1_024
_SLEPT: Final = {"lock ILOCK": FOR_FILE, "lock AGF": FOR_GROUP}
"""What a walk sleeps for."""
_LARGEST_FOLIO: Final = 512
"""2 MiB: what a processor maps at once (pages)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DelallocFilesystem(Filesystem):
    """One mounted filesystem; blocks are given as *unwritten* ones or not, an inode holds up to
    *inline_extents* extents itself, and giving or converting a range takes *group_ns* more under the lock of
    its group.
    """

    one_run_pages: int
    """How long a file may become and still be one run."""
    _blocks: int
    """How many there are."""
    _ioends: IoEnds
    """Where files of one run are completed."""

    def __init__(
        self,
        *,
        site: Site,
        sb: MountedSuperblock,
        unwritten: bool,
        large_folios: bool,
        inline_extents: int,
        costs: FlusherCosts,
        group_ns: int = 0,
        turns: Turns | None = None,
    ) -> None:
        self._site = site
        env = site.env
        self._sb = sb
        self._first_block = sb.first_block
        self._queue = sb.bdi.queue
        self._most_folio = _LARGEST_FOLIO if large_folios else 1
        self._map_ns, self._page_ns, self._folio_ns = costs.map_ns, costs.page_ns, costs.folio_ns or 0
        self._costs = MapCosts(costs, inline_extents, group_ns)
        self._workers = Workers(site, self._costs, self._converted, turns) if unwritten else None
        self._dice = Dice(site, "map")
        self._horizon = Horizon(env, sb.bdi)
        if self._workers is not None and turns is not None:
            self._horizon.apart |= self._workers.ranks
        self._files: list[PagedFile] = []

    def layouts(self) -> Sequence[PagedFile]:
        """See `Filesystem.layouts`."""
        return self._files

    def extents_per_file(self) -> tuple[int, ...]:
        """See `Filesystem.extents_per_file`."""
        return tuple(file.extent_count() for file in self._files)

    def check(self) -> None:
        """See `Filesystem.check`."""
        name = self._sb.name
        for file in self._files:
            counted, dirty = file.conversions.inode.dirty_pages, file.dirty
            require(counted == dirty, f"{name}: the dirty pages of a file are counted: {counted}, {dirty}")
        bases = sorted(file.base for file in self._files)
        check_blocks(name, self._blocks, self._extent_tables, bases[len(bases) // 2] if bases else 0)

    def _extent_tables(self) -> Iterator[NDArray[np.int64]]:
        """What is free, or in files, as `check_blocks` takes it."""
        yield from self._free_tables()
        for file in self._files:  # one after the other: mypyc makes a list of a generator expression
            yield file.extent_table()[:, 1:]

    def append(self, inode: FileInode, pages: int) -> int:
        """See `Filesystem.append`."""
        file = inode.file
        if pages > 1:
            self._set_folio(inode, pages)
        if file is OPEN:
            if inode.dirty_pages + pages <= self.one_run_pages:
                return pages
            file = self._page(inode)
        assert isinstance(file, PagedFile), "a file that is written to is open"
        _, were_clean = self.write(inode, np.arange(file.size, file.size + pages), pages)
        return were_clean

    def write(self, inode: FileInode, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Filesystem.write`."""
        file = inode.file
        if isinstance(file, OneRun):
            file = self._page(inode)
        if call_pages > 1:
            self._set_folio(inode, call_pages)
        done, were_clean = self._write(file, indices, call_pages)
        while done < len(indices) and indices[done] >= file.end:
            end = int(indices[done:].max()) + 1
            file.make_room(self._room_for(end, call_pages), end)
            more, clean = self._write(file, indices[done:], call_pages)
            done, were_clean = done + more, were_clean + clean
        return done, were_clean

    def _set_folio(self, inode: FileInode, call_pages: int) -> None:
        """A write(2) of so many pages makes folios of as many."""
        inode.folio_pages = min(1 << (call_pages.bit_length() - 1), self._most_folio)

    def zero_end(self, thread: Thread, inode: Any) -> Steps:
        """See `Filesystem.zero_end`."""
        raise AssertionError(f"{type(self).__name__} never stops in the middle of writes")

    def close(self, inode: FileInode) -> None:
        """See `Filesystem.close`."""
        file = inode.file
        if file is OPEN:
            inode.file = CLOSED
        elif isinstance(file, PagedFile):
            file.open = False
            self._released(inode)

    def write_pages(self, thread: Thread, inode: FileInode, wbc: WritebackControl) -> Steps:
        """See `Filesystem.write_pages`."""
        file = inode.file
        if isinstance(file, OneRun):
            if inode.dirty_pages <= wbc.nr_to_write:
                return self._write_run(thread, inode, wbc)
            file = self._page(inode)
        return self._write_paged(thread, inode, file, wbc)

    def _run_bios(self, inode: FileInode, block: int, pages: int) -> list[Bio]:
        """The *pages* of a file of one run lie from *block* on, and go under writeback with these bios."""
        queue, flight, ends = self._queue, self._sb.flight, self._ioends
        segment = queue.segment_pages(inode.folio_pages)
        at_most, ioend = queue.bio_pages(segment), (inode, flight, pages)
        end_io = ends.end_io if pages <= at_most else ends.end_io_of(-(-pages // at_most))
        inode.dirty_pages -= pages
        flight.add(inode.wb, pages)
        if inode.file is not CLOSED:
            _lay_out(self._page(inode), block, pages)
        start, bios = (self._first_block + block) * PAGE_SECTORS, []
        while pages > 0:
            size = pages if pages < at_most else at_most
            bios.append(
                Bio(
                    start, size * PAGE_SECTORS, segments=-(-size // segment), queue=queue, end_io=end_io,
                    context=ioend,
                )
            )  # fmt: skip
            start += size * PAGE_SECTORS
            pages -= size
        return bios

    def _write_in_pieces(self, thread: Thread, inode: FileInode, wbc: WritebackControl) -> Steps:
        """A file of one run, where so many blocks do not lie together: as a whole."""
        whole = WritebackControl("sync")
        yield from self._write_paged(thread, inode, self._page(inode), whole)
        wbc.nr_to_write -= LONG_MAX - whole.nr_to_write

    def _write_paged(self, thread: Thread, inode: FileInode, file: PagedFile, wbc: WritebackControl) -> Steps:
        at = new_walk(file.writeback_index if wbc.range_cyclic else 0, wbc.nr_to_write)
        self._prepare(inode, at, wbc)
        bios = np.empty((_BIOS, 2), np.int64)
        bio_pages, dice = self._queue.bio_pages(self._queue.segment_pages(inode.folio_pages)), self._dice
        ended = CONVERT
        while ended != DONE:
            if self._log_is_full():
                yield from self._wait_for_log(thread)
            at[DICE] = dice.ready()
            near_ns, far_ns = self._horizon.look()
            ended = self._walk(inode, at, bio_pages, far_ns, bios)
            dice.at = int(at[DICE])
            locked = bool(at[ALLOCATING] or (at[MAPPED_EXTENTS] and at[ELAPSED] > near_ns))
            yield from self._submit(thread, inode, file, at, bios, locked)
            if ended == CONVERT:
                yield from self._allocate(thread, inode, at)
            if (ready := cond_resched(thread.task)) is not None:
                yield ready
        file.writeback_index = int(at[PAGE])
        if at[CALLS] == UNCOUNTED:
            wbc.nr_to_write -= int(at[WROTE])
        else:
            wbc.nr_to_write = int(at[CALLS])

    def _page(self, inode: FileInode) -> PagedFile:
        """Keep the pages of a file of one run one by one from now on."""
        assert isinstance(inode.file, OneRun), "it is kept page by page already"
        is_open, pages = inode.file.open, inode.dirty_pages
        file = inode.file = self._new_file(inode, is_open)
        file.conversions = Conversions(inode)
        file.make_room(self._room_for(pages, 1), pages)
        file.pages.states[:pages] = DELAYED
        file.pages.size[0] = pages
        self._files.append(file)
        return file

    @abstractmethod
    def _free_tables(self) -> Iterable[NDArray[np.int64]]:
        """What is free for anybody, or kept for small files, in arrays (n x 2) of first blocks and sizes."""

    @abstractmethod
    def _new_file(self, inode: Any, is_open: bool) -> PagedFile:
        """The pages of *inode*, none so far."""

    @abstractmethod
    def _room_for(self, size: int, call_pages: int) -> int:
        """For how many pages a file that ends at page *size* needs room, with all that may be reserved behind
        it.
        """

    @abstractmethod
    def _write(self, file: Any, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Filesystem.write`; stops at a page for which there is no room."""

    @abstractmethod
    def _log_is_full(self) -> bool:
        """Whether a new transaction has to wait for log space."""

    @abstractmethod
    def _wait_for_log(self, thread: Thread) -> Steps:
        """Wait for the log."""

    @abstractmethod
    def _mapped(self, inode: Any, extents: int, page: int) -> None:
        """So many *extents* of *inode* before *page* were given blocks, each in its own transaction."""

    def _released(self, inode: Any) -> None:
        """What the last close does to a file that is kept page by page."""

    def _converted(self, inode: Any, ranges: int) -> None:
        """So many *ranges* of *inode* became written extents."""

    @abstractmethod
    def _write_run(self, thread: Thread, inode: Any, wbc: WritebackControl) -> Steps:
        """Give a file of one run its blocks, all together, and submit its `_run_bios`; or
        `_write_in_pieces`.
        """

    @abstractmethod
    def _prepare(self, inode: Any, at: NDArray[np.int64], wbc: WritebackControl) -> None:
        """A walk over *inode* begins; *at* is its state, and may be changed."""

    @abstractmethod
    def _walk(
        self, inode: Any, at: NDArray[np.int64], bio_pages: int, horizon_ns: int, bios: NDArray[np.int64]
    ) -> int:
        """Go on with it until *horizon_ns* from now, with `_dice`; why it stopped
        (`models.filesystems.page_walk`).
        """

    def _lock(self, thread: Thread, inode: Any) -> None:
        """Take the locks of an allocation, which the walk found to be free."""

    def _unlock(self, inode: Any) -> None:
        """Release them."""

    @abstractmethod
    def _allocate(self, thread: Thread, inode: Any, at: NDArray[np.int64]) -> Steps:
        """Give the delayed page at ``at[PAGE]`` its block."""

    def _ranges(self, file: Any, at: NDArray[np.int64]) -> dict[int, int]:
        """How many ranges of each group a step has written of *file*."""
        return {0: int(at[RANGES])}

    def _submit(
        self, thread: Thread, inode: FileInode, file: PagedFile, at: NDArray[np.int64],
        bios: NDArray[np.int64], locked: bool,
    ) -> Steps:  # fmt: skip
        """What a step of the walk has written goes under writeback; once its time is over, it is submitted.

        Its locks are held meanwhile if somebody else's event comes before its end.
        """
        pages, elapsed_ns, flight = int(at[PAGES]), int(at[ELAPSED]), self._sb.flight
        ranges = self._ranges(file, at)
        inode.dirty_pages -= pages
        flight.add(inode.wb, pages)
        if locked:
            self._lock(thread, inode)
        if locked or elapsed_ns:
            work_ns = elapsed_ns - int(at[FOR_FILE] + at[FOR_GROUP])
            pages_ns = min(pages * self._page_cost_ns(inode), work_ns)
            thread.spent.pages += pages_ns
            thread.spent.allocate += work_ns - pages_ns
            yield work_ns
            for lock, slept in _SLEPT.items():
                if at[slept]:
                    thread.before_sleep()
                    yield from sleep(thread.task, int(at[slept]), lock)
        if locked:
            self._unlock(inode)
        if at[MAPPED_EXTENTS]:
            file.conversions.extents += int(at[MAPPED_EXTENTS])
            self._mapped(inode, int(at[MAPPED_EXTENTS]), int(at[PAGE]))
        if pages:
            end_io = landed = _Landing(flight, inode).end
            if self._workers is not None:
                end_io = Submission(
                    self._workers, file.conversions, pages, ranges, inode.folio_pages, landed
                ).written
            on_disk = bios[: at[BIOS]]
            on_disk[:, 0] += file.base + self._first_block
            yield from thread.submit_runs(
                self._queue, on_disk, self._queue.segment_pages(inode.folio_pages), end_io
            )

    def _page_cost_ns(self, inode: FileInode) -> int:
        """What a page and its part of a folio take."""
        return self._page_ns + self._folio_ns // inode.folio_pages

    def _mean_map_ns(self, file: PagedFile) -> int:
        """The mean time of one allocation."""
        conversions = file.conversions
        map_ns = self._costs.map_ns(conversions)
        return map_ns if self._workers is None else map_ns + self._workers.delay_ns(conversions)

    def _varied_map_ns(self, file: PagedFile) -> int:
        """The time of one allocation."""
        return int(self._mean_map_ns(file) * self._dice.throw())


def _lay_out(file: PagedFile, block: int, pages: int) -> None:
    """The first *pages* of an empty *file* lie from *block* on, and are clean."""
    file.make_room(pages, pages)
    file.pages.states[:pages] = RESERVED
    file.pages.size[0] = pages
    map_blocks(file.pages, 0, file.reach(block, pages), pages)


class _Landing:
    """Pages of one inode under writeback."""

    __slots__ = ("_flight", "_inode")

    def __init__(self, flight: Flight, inode: FileInode) -> None:
        self._flight = flight
        self._inode = inode

    def end(self, pages: int) -> None:
        """*pages* of them are clean."""
        self._flight.end(self._inode.wb, pages)
