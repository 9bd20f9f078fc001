"""Writing back a file that is one run of pages: the walk's smallest case.

NOTE: it has a way of its own, since millions of small files would pay for the arrays of a walk: one
transaction, and a bio or a few.
"""

from __future__ import annotations

from mypy_extensions import i64

from wbsim.models.bio import Bio
from wbsim.models.filesystems.completions import Completions
from wbsim.models.filesystems.file_table import FileTable
from wbsim.models.filesystems.files import CLOSED, FileInode, PagedFile
from wbsim.models.filesystems.policies import FileWriteback, Runs
from wbsim.models.page_cache.pages import RESERVED, map_blocks
from wbsim.models.seams import LONG_MAX, Thread, WritebackControl
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Steps
from wbsim.sim.units import PAGE_SECTORS


class OneRuns(Runs):
    """Those of one mounted filesystem; *ends* are told when they are on disk."""

    def __init__(
        self, sb: MountedSuperblock, files: FileTable, writeback: FileWriteback, ends: Completions
    ) -> None:
        self._sb = sb
        self._queue = sb.bdi.queue
        self._first_block = sb.first_block
        self._files = files
        self._writeback = writeback
        self._ends = ends
        self._end_io = ends.end_io  # a bound method that is made once

    def bios(self, inode: FileInode, block: int, pages: int) -> list[Bio]:
        """See `Runs.bios`."""
        queue, flight = self._queue, self._sb.flight
        segment = queue.segment_pages(inode.folio_pages)
        at_most, ioend = queue.bio_pages(segment), (inode, flight, pages, block)
        end_io = self._end_io if pages <= at_most else self._ends.end_io_of(-(-pages // at_most))
        if inode.file is not CLOSED:
            file = inode.file  # a program may have written on, while the run was given its blocks
            _lay_out(file if isinstance(file, PagedFile) else self._files.page(inode), block, pages)
        inode.dirty_pages -= pages
        flight.add(inode.wb, pages)
        # Machine integers: mypyc multiplies two of Python's slowly when the product exceeds 2^30.
        first_block: i64 = self._first_block
        at: i64 = block
        start: i64 = (first_block + at) * PAGE_SECTORS
        bios = []
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

    def in_pieces(self, thread: Thread, inode: FileInode, wbc: WritebackControl) -> Steps:
        """See `Runs.in_pieces`."""
        whole = WritebackControl("sync")
        yield from self._writeback.write(thread, inode, self._files.page(inode), whole)
        wbc.nr_to_write -= LONG_MAX - whole.nr_to_write


def _lay_out(file: PagedFile, block: int, pages: int) -> None:
    """The first *pages* of *file*, of which none has a block, lie from *block* on, and are clean."""
    file.pages.states[:pages] = RESERVED
    map_blocks(file.pages, 0, file.reach(block, pages), pages)
