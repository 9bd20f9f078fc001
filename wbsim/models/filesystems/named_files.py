"""Files with names, which programs open again, give blocks, and take blocks from.

Stands for fallocate(2) and ftruncate(2) in XFS and ext4, and for what they remember until the last close(2).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from mypy_extensions import mypyc_attr

from wbsim.models.filesystems.delalloc_parts import Metadata, Placement, Runs
from wbsim.models.filesystems.files import NAMED, OPEN, FileInode, OneRun, PagedFile
from wbsim.models.interfaces import Filesystem, Thread
from wbsim.models.page_cache.pages import DIRTY_BIT, hole_from, last_used
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Steps


@mypyc_attr(allow_interpreted_subclasses=True)
class NamedFiles(Filesystem, Runs):
    """The files of one mounted filesystem, in ``placement``; `DelallocFilesystem` has the rest of it.

    close(2) starts the writeback of a file that was *flushes_truncated*: truncated, or truncated to nothing.
    *flushes_renamed*: rename(2) does so before the file replaces another one.
    """

    def __init__(
        self,
        sb: MountedSuperblock,
        placement: Placement[Any, Any],
        metadata: Metadata[Any],
        flushes_truncated: Literal["truncated", "emptied", "never"],
        flushes_renamed: bool,
    ) -> None:
        self._sb = sb
        self.placement = placement
        self.metadata = metadata
        self.files = placement.files
        self._flushes_truncated = flushes_truncated
        self._flushes_renamed = flushes_renamed

    def page(self, inode: FileInode) -> PagedFile:
        """Keep the pages of *inode*, a file of one run, one by one from now on; return its new file.

        `DelallocFilesystem.page` does this.
        """
        raise NotImplementedError

    def size_of(self, inode: FileInode) -> int:
        """See `Filesystem.size_of`; the pages of a file of one run that has a name are all dirty."""
        file = inode.file
        return inode.dirty_pages if isinstance(file, OneRun) else file.size

    def has_pages(self, inode: FileInode) -> bool:
        """See `Filesystem.has_pages`."""
        file = inode.file
        return inode.dirty_pages > 0 if isinstance(file, OneRun) else last_used(file.pages) >= 0

    def reopen(self, inode: FileInode) -> None:
        """See `Filesystem.reopen`; a file of one run must be `NAMED`, and is `OPEN` then."""
        file = inode.file
        if isinstance(file, PagedFile):
            file.open = True
        else:
            assert file is NAMED, "a file without a name cannot be opened again"
            inode.file = OPEN

    def lay_out(self, inode: FileInode, pages: int, extents: int) -> None:
        """See `Filesystem.lay_out`; the file has no pages so far, and is kept page by page from now on.

        *extents* is at least 1.  Their length is rounded up, so that the last extent may be shorter, and some
        may be missing.  There are more if the free blocks do not lie together.  One extent lies where
        fallocate(2) would put it.  Between two extents one block stays free, so that they do not touch.
        """
        placement, file = self.placement, self._paged(inode)
        file.make_room(placement.room_for(pages, 1), pages)
        each, page, spare = -(-pages // extents), 0, int(extents > 1)
        spares: list[tuple[int, int]] = []
        while page < pages:
            length, end = min(each, pages - page), pages if extents == 1 else 0
            block, count = placement.take_blocks(inode, file, page, length + spare, end)
            placement.map_blocks(inode, file, page, block, min(count, length))
            if count > length:
                spares.append((block + length, count - length))
            page += min(count, length)
        for block, count in spares:
            placement.give_back(block, count)
        file.pages.size[0] = pages
        placement.mark_written(file, 0, pages)

    def preallocate(self, thread: Thread, inode: FileInode, pages: int, keeps_size: bool) -> Steps:
        """See `Filesystem.preallocate`; after `NoSpace`, the pages keep the blocks that they have got."""
        file = self._paged(inode)
        file.make_room(self.placement.room_for(pages, 1), pages)
        page, file.keeps_end = 0, True
        while page < pages:
            first, holes = hole_from(file.pages.states, page, pages)
            if holes:
                yield from self.metadata.change_extent(thread, inode)
                first, holes = hole_from(file.pages.states, page, pages)  # the thread has waited
            if not holes:
                break
            block, count = self.placement.take_blocks(inode, file, first, holes, pages)
            self.placement.map_blocks(inode, file, first, block, count)
            page = first + count
        if not keeps_size:
            file.pages.size[0] = max(file.size, pages)

    def truncate(self, thread: Thread, inode: FileInode, pages: int) -> Steps:
        """See `Filesystem.truncate`; a file that becomes longer gets a hole, in no time.

        NOTE: the kernel waits for the pages that it removes, one after another.  Here the caller waits for
        all pages under writeback, and for the thread that writes the file back.
        """
        file = self._paged(inode)
        if pages > file.size:
            file.make_room(self.placement.room_for(pages, 1), pages)
            file.pages.size[0] = pages
            return
        while inode.i_sync is not None or file.under_writeback:
            if inode.i_sync is not None:
                yield from inode.i_sync.wait(thread)
            else:
                yield from self.wait_for_writeback(thread, inode)
        extents = self._cut(inode, file, pages)
        if self._flushes_truncated == "truncated" or (self._flushes_truncated == "emptied" and not pages):
            file.flushes_on_close = True
        for _ in range(max(extents, 1)):
            yield from self.metadata.change_extent(thread, inode)

    def _cut(self, inode: FileInode, file: PagedFile, pages: int) -> int:
        """Make *file* *pages* pages long; return the number of extents that end."""
        cancelled = int(np.count_nonzero(file.pages.states[pages : file.size] & DIRTY_BIT))
        file.pages.size[0] = pages
        file.writeback_index = min(file.writeback_index, pages)
        file.written_ns = self._sb.now
        if cancelled:
            inode.dirty_pages -= cancelled
            inode.wb.account_cancelled(cancelled)
            if not inode.dirty_pages:
                inode.wb.take_off(inode)
        return self.placement.free_end(file)

    def _paged(self, inode: FileInode) -> PagedFile:
        """Return the file of *inode*, whose pages are kept one by one from now on."""
        file = inode.file
        return file if isinstance(file, PagedFile) else self.page(inode)

    def forget(self, inode: FileInode) -> None:
        """See `Filesystem.forget`; before this, the caller frees the blocks of the file with `truncate`."""
        file = inode.file
        if isinstance(file, PagedFile):
            self.files.remove(file)

    def writes_before_close(self, inode: FileInode) -> bool:
        """See `Filesystem.writes_before_close`; the answer is True only once for each truncation.

        It is False if no page is delayed.  *flushes_truncated* chooses the truncations that count.
        """
        file = inode.file
        if not isinstance(file, PagedFile) or not file.flushes_on_close:
            return False
        file.flushes_on_close = False
        return self._awaits_blocks(inode)

    def writes_before_rename(self, inode: FileInode) -> bool:
        """See `Filesystem.writes_before_rename`: True with *flushes_renamed*, if a page is delayed."""
        return self._flushes_renamed and self._awaits_blocks(inode)

    def _awaits_blocks(self, inode: FileInode) -> bool:
        """Return whether *inode* has delayed pages (i_reserved_data_blocks, i_delayed_blks)."""
        file = inode.file
        return inode.dirty_pages > 0 if isinstance(file, OneRun) else file.claims_from(0) > 0
