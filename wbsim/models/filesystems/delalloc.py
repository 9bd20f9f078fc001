"""A filesystem with delayed allocation: the files in memory, and their writeback.

A file is one run of pages at first, because a walk over arrays would be slow for millions of small files.
Its writeback takes one transaction and a few bios.  When the file needs more, its pages are kept one by one,
and `Writepages` walks over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import numpy as np
from mypy_extensions import i64, mypyc_attr
from numpy.typing import NDArray

from wbsim.models.bio import Bio
from wbsim.models.filesystems.blocks import check_blocks
from wbsim.models.filesystems.completions import Completions
from wbsim.models.filesystems.delalloc_parts import Metadata, Placement
from wbsim.models.filesystems.files import CLOSED, NAMED, OPEN, FileInode, OneRun, PagedFile
from wbsim.models.filesystems.inode_locks import InodeLocks
from wbsim.models.filesystems.named_files import NamedFiles
from wbsim.models.filesystems.writepages import Writepages
from wbsim.models.interfaces import LONG_MAX, Names, NoSpace, Thread, WritebackControl
from wbsim.models.page_cache.pages import (
    DELAYED,
    RESERVED,
    map_blocks,
    without_gap,
)
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Steps
from wbsim.sim.invariants import require
from wbsim.sim.units import PAGE_SECTORS

_LARGEST_FOLIO: Final = 512
"""The pages of 2 MiB, which a processor maps at once."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DelallocFilesystem(NamedFiles):
    """One mounted filesystem, which consists of ``names``, ``placement`` and ``metadata``.

    ``files``: the files whose pages are kept one by one, in the order of their creation.  *completions* does
    the work after the end of I/O.  *names* makes the inodes, and *placement* the files, of the classes that
    the other parts take.  *sync_data*: see `WritepagesRules`.

    *flushes_truncated* and *flushes_renamed*: see `NamedFiles`.  *tick_ns* is the resolution of time stamps.
    *plugs_files*: see `Filesystem`.
    """

    def __init__(
        self,
        *,
        sb: MountedSuperblock,
        names: Names,
        placement: Placement[Any, Any],
        metadata: Metadata[Any],
        writeback: Writepages,
        large_folios: bool,
        sync_data: bool,
        completions: Completions,
        locks: InodeLocks,
        tries_writes: bool,
        flushes_truncated: Literal["truncated", "emptied", "never"] = "never",
        flushes_renamed: bool = False,
        tick_ns: int = 1,
        plugs_files: bool = True,
    ) -> None:
        super().__init__(sb, placement, metadata, flushes_truncated, flushes_renamed)
        self.plugs_files = plugs_files
        self._tick_ns = tick_ns
        self.space = placement.space
        self.tries_writes = tries_writes
        self.names = names
        self.group_blocks, self.group_label = placement.group_blocks, placement.group_label
        sb.largest_folio = _LARGEST_FOLIO if large_folios else 1
        self._name = sb.name
        self._queue = sb.bdi.queue
        self._first_block = sb.first_block
        self._sync_data = sync_data
        self._locks = locks
        self._writeback = writeback
        self._completions = completions
        self._end_io = completions.end_io  # a bound method that is made once

    # -- files, in memory

    def append(self, inode: FileInode, pages: int) -> int:
        """See `Filesystem.append`; the file must be open.

        A file of one run grows only when the caller adds the pages to the inode's ``dirty_pages``.
        Left out: the kernel writes the first pages of a call if blocks are left for them alone.
        """
        file = inode.file
        if pages > 1:
            inode.folio_pages = inode.sb.folio_pages(pages)
        if file is OPEN:
            if inode.dirty_pages + pages <= self.placement.one_run_pages:
                if self.space.unclaimed < pages:
                    self._look_for(pages)
                self.space.unclaimed -= pages
                return pages
            file = self.page(inode)
        assert isinstance(file, PagedFile), "the file must be open"
        self._look_for(pages)
        done, were_clean = self.write(inode, np.arange(file.size, file.size + pages), pages)
        assert done == pages, "there is no gap, and there are blocks"
        return were_clean

    def _look_for(self, pages: int) -> None:
        """Find *pages* unclaimed blocks.

        Raises:
            NoSpace: fewer are unclaimed, even after reservations behind the ends of files are given up.
        """
        space = self.space
        if space.unclaimed < pages:
            self.placement.trim_all()
            if space.unclaimed < pages:
                raise NoSpace("No space left on device")

    def write(self, inode: FileInode, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Filesystem.write`; a file of one run is kept page by page from now on.

        The caller adds the pages that were clean to the inode's ``dirty_pages``.
        """
        file, placement = inode.file, self.placement
        if isinstance(file, OneRun):
            file = self.page(inode)
        if call_pages > 1:
            inode.folio_pages = inode.sb.folio_pages(call_pages)
        done, were_clean = placement.write(file, indices, call_pages)
        while done < len(indices) and indices[done] >= file.end:
            end = int(indices[done:].max()) + 1
            file.make_room(placement.room_for(end, call_pages), end)
            more, clean = placement.write(file, indices[done:], call_pages)
            done, were_clean = done + more, were_clean + clean
        file.written_ns = self._sb.now
        return done, were_clean

    def make_way(self, thread: Thread, inode: FileInode) -> Steps:
        """See `Filesystem.make_way`; `write` has come first, so the file is a `PagedFile`."""
        if self.space.unclaimed > 0:
            yield from self._writeback.zero_end(thread, inode)
            return
        self._look_for(1)

    def writes_at_once(self, inode: FileInode, indices: NDArray[np.int64]) -> int:
        """See `Filesystem.writes_at_once`; 0 for a file of one run.

        A gap behind the end of a file is work for `make_way`.  The result is 0, too, if the inode's lock is
        not idle, or if fewer blocks are unclaimed than there are *indices*.
        """
        file = inode.file
        if not isinstance(file, PagedFile) or not file.lock.idle or self.space.unclaimed < len(indices):
            return 0
        return int(without_gap(file.pages, indices))

    def write_lock(
        self, thread: Thread, inode: FileInode, pages: NDArray[np.int64], calls: int
    ) -> Steps | None:
        """See `Filesystem.write_lock`; None for a file of one run, which has no lock."""
        file = inode.file
        return self._locks.write(thread, file, pages, calls) if isinstance(file, PagedFile) else None

    def close(self, inode: FileInode, has_name: bool = False) -> None:
        """See `Filesystem.close`; a file kept page by page gives up blocks (`Placement.released`)."""
        file = inode.file
        if file is OPEN:
            inode.file = NAMED if has_name else CLOSED
        elif isinstance(file, PagedFile):
            file.open = False
            self.placement.released(file)

    def page(self, inode: FileInode) -> PagedFile:
        """Keep the pages of *inode*, a file of one run, one by one from now on; return its new file.

        The new file is ``inode.file`` and the last of ``files`` then.  The dirty pages stay delayed.  No time
        passes.
        """
        assert isinstance(inode.file, OneRun), "the pages are kept one by one already"
        is_open, pages = inode.file.open, inode.dirty_pages
        file: PagedFile = self.placement.new_file(inode, is_open)
        inode.file = file
        file.inode, file.lock, file.ioends = inode, self._locks.new(), self._completions.ioends_of(inode)
        file.make_room(self.placement.room_for(pages, 1), pages)
        file.pages.states[:pages] = DELAYED
        file.pages.size[0] = pages
        self.files.append(file)
        return file

    # -- writeback

    def write_pages(self, thread: Thread, inode: FileInode, wbc: WritebackControl) -> Steps:
        """See `Filesystem.write_pages`.

        A file of one run that has more dirty pages than ``wbc.nr_to_write`` is kept page by page from now on.
        """
        file = inode.file
        if isinstance(file, OneRun):
            if inode.dirty_pages <= wbc.nr_to_write:
                return self.placement.write_run(thread, inode, wbc, self)
            file = self.page(inode)
        return self._writeback.write(thread, inode, file, wbc)

    def bios(self, inode: FileInode, block: int, pages: int, wbc: WritebackControl) -> list[Bio]:
        """See `Runs.bios`; a file that may be opened again, or is open, is kept page by page then."""
        sync = wbc.sync_all and self._sync_data
        queue, flight = self._queue, self._sb.flight
        segment = queue.segment_pages(inode.folio_pages)
        at_most = queue.bio_pages(segment)
        end_io = self._end_io if pages <= at_most else self._completions.end_io_of(-(-pages // at_most))
        if inode.file is not CLOSED:
            open_file = inode.file  # a program may have appended pages while the run got its blocks
            file = open_file if isinstance(open_file, PagedFile) else self.page(inode)
            _lay_out(file, block, pages)
            flight = file.flight_in(flight)
        ioend = inode, flight, pages, block
        inode.dirty_pages -= pages
        flight.add(inode.wb, pages)
        # Machine integers: mypyc multiplies Python's integers slowly when the product exceeds 2^30.
        first_block: i64 = self._first_block
        offset: i64 = block
        start: i64 = (first_block + offset) * PAGE_SECTORS
        bios = []
        while pages > 0:
            size = pages if pages < at_most else at_most
            bios.append(
                Bio(
                    start, size * PAGE_SECTORS, segments=-(-size // segment), queue=queue, sync=sync,
                    end_io=end_io, context=ioend,
                )
            )  # fmt: skip
            start += size * PAGE_SECTORS
            pages -= size
        return bios

    def in_pieces(self, thread: Thread, inode: FileInode, wbc: WritebackControl) -> Steps:
        """See `Runs.in_pieces`."""
        whole = WritebackControl("sync")
        yield from self._writeback.write(thread, inode, self.page(inode), whole)
        wbc.nr_to_write -= LONG_MAX - whole.nr_to_write

    def converts(self, inode: FileInode) -> bool:
        """See `Filesystem.converts`: the pages of unwritten blocks are clean only after their conversion.

        For a file of one run, return whether the filesystem allocates unwritten blocks at all.
        """
        file = inode.file
        if not isinstance(file, PagedFile):
            return self._completions.unwritten
        return file.ioends.pending > 0

    def wait_for_writeback(self, thread: Thread, inode: FileInode) -> Steps:
        """See `Filesystem.wait_for_writeback`.

        For a file of one run, *thread* waits for the pages of all files of the superblock.
        """
        file = inode.file
        if not isinstance(file, PagedFile):
            yield from self._sb.wait_for_writeback(thread)
            return
        self._queue.unplug()
        for flight in file.flights:
            flight.close()
        for flight in list(file.flights):
            yield from flight.landed.wait(thread.task)

    def sync_fs(self, thread: Thread) -> Steps:
        """See `Filesystem.sync_fs`."""
        return self.metadata.sync_fs(thread)

    def commit_inode(self, thread: Thread, inode: FileInode, datasync: bool) -> Steps:
        """See `Filesystem.commit_inode`.

        NOTE: the kernel logs time stamps at the write that changes them.  Here fsync(2) logs them, so the
        stamps of a file without an fsync(2) are left out of the log.
        """
        file, tick_ns = inode.file, self._tick_ns
        if isinstance(file, PagedFile) and file.written_ns // tick_ns > file.stamp_ns // tick_ns:
            file.stamp_ns = file.written_ns
            self.metadata.log_times(inode)
        return self.metadata.commit_inode(thread, inode, datasync)

    # -- on disk

    def group_of(self, inode: FileInode) -> int:
        """See `Filesystem.group_of`."""
        return self.placement.group_of(inode)

    @property
    def log_bytes(self) -> int:
        """See `Filesystem.log_bytes`."""
        return self.metadata.log_bytes

    def check(self) -> None:
        """See `Filesystem.check`: dirty pages are counted, and each block is in one file or free."""
        for file in self.files:
            count, dirty = file.inode.dirty_pages, file.dirty
            require(count == dirty, f"{self._name}: a file counts {count} dirty pages and has {dirty}")
        bases = sorted(file.base for file in self.files)
        middle = bases[len(bases) // 2] if bases else 0
        check_blocks(self._name, self.placement.blocks, self._extent_tables, middle)
        self.placement.check()
        self._check_claims()
        self.metadata.check()

    def _check_claims(self) -> None:
        """Check that delayed pages have claimed as many free blocks as are not unclaimed.

        The pages of a file of one run are looked at only while no thread gives the file its blocks.
        """
        claims = sum(file.claims_from(0) for file in self.files)
        inode: Any
        for wb in self._sb.bdi.wbs:
            for i_sync in wb.i_syncs:
                inode = i_sync.inode
                if inode is not None and inode.sb is self._sb and isinstance(inode.file, OneRun):
                    return
            for inodes in (wb.b_dirty, wb.b_io, wb.b_more_io):
                for inode in inodes:
                    if inode.sb is self._sb and isinstance(inode.file, OneRun):
                        claims += inode.dirty_pages
        self.space.check(self._name, self.placement.free_blocks, claims)

    def _extent_tables(self) -> Iterator[NDArray[np.int64]]:
        """Yield the extents that are free or in files, as `check_blocks` takes them."""
        yield from self.placement.free_tables()
        for file in self.files:  # one after the other: mypyc makes a list of a generator expression
            yield file.extent_table()[:, 1:]

    def layouts(self) -> Sequence[PagedFile]:
        """See `Filesystem.layouts`."""
        return self.files

    def extents_per_file(self) -> tuple[int, ...]:
        """See `Filesystem.extents_per_file`."""
        return tuple(file.extent_count() for file in self.files)


def _lay_out(file: PagedFile, block: int, pages: int) -> None:
    """Lay out the first *pages* pages of *file*, which lack blocks, from *block* on; they are clean then."""
    file.pages.states[:pages] = RESERVED
    map_blocks(file.pages, 0, file.reach(block, pages), pages)
