"""The files of one mounted filesystem, in memory: writing to them, and how long each stays one run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wbsim.models.filesystems.blocks import check_blocks
from wbsim.models.filesystems.completions import Completions
from wbsim.models.filesystems.files import CLOSED, OPEN, FileInode, OneRun, PagedFile
from wbsim.models.filesystems.inode_locks import InodeLocks
from wbsim.models.filesystems.policies import Placement
from wbsim.models.page_cache.pages import DELAYED
from wbsim.models.seams import Thread
from wbsim.sim.engine import Steps
from wbsim.sim.laws import require


class FileTable:
    """The files of filesystem *name*; ``paged`` are those whose pages are kept one by one, as created."""

    def __init__(self, name: str, placement: Placement, locks: InodeLocks, ends: Completions) -> None:
        self._name = name
        self._locks = locks
        self._ends = ends
        self._placement = placement
        self.paged = placement.files

    def append(self, inode: FileInode, pages: int) -> int:
        """See `Filesystem.append`."""
        file = inode.file
        if pages > 1:
            inode.folio_pages = inode.sb.folio_pages(pages)
        if file is OPEN:
            if inode.dirty_pages + pages <= self._placement.one_run_pages:
                return pages
            file = self.page(inode)
        assert isinstance(file, PagedFile), "a file that is written to is open"
        _, were_clean = self.write(inode, np.arange(file.size, file.size + pages), pages)
        return were_clean

    def write(self, inode: FileInode, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Filesystem.write`."""
        file = inode.file
        if isinstance(file, OneRun):
            file = self.page(inode)
        if call_pages > 1:
            inode.folio_pages = inode.sb.folio_pages(call_pages)
        done, were_clean = self._placement.write(file, indices, call_pages)
        while done < len(indices) and indices[done] >= file.end:
            end = int(indices[done:].max()) + 1
            file.make_room(self._placement.room_for(end, call_pages), end)
            more, clean = self._placement.write(file, indices[done:], call_pages)
            done, were_clean = done + more, were_clean + clean
        return done, were_clean

    def write_lock(self, thread: Thread, inode: FileInode, calls: int) -> Steps | None:
        """See `Filesystem.write_lock`; only a file whose pages are kept one by one has a lock."""
        file = inode.file
        return self._locks.write(thread, file, calls) if isinstance(file, PagedFile) else None

    def close(self, inode: FileInode) -> None:
        """See `Filesystem.close`."""
        file = inode.file
        if file is OPEN:
            inode.file = CLOSED
        elif isinstance(file, PagedFile):
            file.open = False
            self._placement.released(inode)

    def page(self, inode: FileInode) -> PagedFile:
        """Keep the pages of a file of one run one by one from now on."""
        assert isinstance(inode.file, OneRun), "it is kept page by page already"
        is_open, pages = inode.file.open, inode.dirty_pages
        file = inode.file = self._placement.new_file(inode, is_open)
        file.inode, file.lock, file.ioends = inode, self._locks.new(), self._ends.ioends_of(inode)
        file.make_room(self._placement.room_for(pages, 1), pages)
        file.pages.states[:pages] = DELAYED
        file.pages.size[0] = pages
        self.paged.append(file)
        return file

    def check(self) -> None:
        """Dirty pages are counted; each block is in one file, or free.

        Raises:
            LawBroken: some are not.
        """
        for file in self.paged:
            counted, dirty = file.inode.dirty_pages, file.dirty
            require(
                counted == dirty, f"{self._name}: the dirty pages of a file are counted: {counted}, {dirty}"
            )
        bases = sorted(file.base for file in self.paged)
        middle = bases[len(bases) // 2] if bases else 0
        check_blocks(self._name, self._placement.blocks, self._extent_tables, middle)

    def _extent_tables(self) -> Iterator[NDArray[np.int64]]:
        """What is free, or in files, as `check_blocks` takes it."""
        yield from self._placement.free_tables()
        for file in self.paged:  # one after the other: mypyc makes a list of a generator expression
            yield file.extent_table()[:, 1:]
