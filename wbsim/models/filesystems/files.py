"""The files of a filesystem: a file is one run of pages, or its pages are kept one by one.

Stands for the extent list in the in-core inode (xfs_iext, the extent status tree), with the dirty tags of its
mapping.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from wbsim.models.filesystems.ioends import IoEnds
from wbsim.models.interfaces import Inode, Superblock, Wb
from wbsim.models.page_cache.file_pages import FilePages
from wbsim.models.page_cache.pages import DIRTY, RESERVED
from wbsim.models.vfs.superblock import Flight
from wbsim.sim.sync import RwSemaphore

_NO_HOLE: Final = DIRTY | RESERVED  # the bits of pages that have a block or are delayed


class OneRun:
    """A file that is one run of delayed pages: as many pages as its inode has dirty."""

    __slots__ = ("open",)

    def __init__(self, is_open: bool) -> None:
        self.open = is_open


OPEN: Final = OneRun(True)
"""A file of one run that a process has open."""
CLOSED: Final = OneRun(False)
"""A file of one run that no process has open and none can open again, because it has no name here."""
NAMED: Final = OneRun(False)
"""A file of one run that no process has open.  A process may open it again by its name, so its place is kept.
`OPEN`, `CLOSED` and `NAMED` are the only objects of `OneRun`."""


class PagedFile(FilePages):
    """A file whose pages are kept one by one.

    * ``writeback_index``: the page where the next call of writeback starts.
    * ``allocations``: the number of extents that were given blocks.
    * ``inode``, its ``lock`` (ILOCK, i_data_sem) and ``ioends``: `DelallocFilesystem.page` sets them.
      ``ioends`` is the list that ioends of unwritten blocks end on.
    * ``flights``: the groups of pages of this file that went under writeback between two waits for them
      (`Flight`); the last one takes more pages.
    * ``cpu``: the processor of the last allocation or conversion, -1 at first.
    * ``log_operation``: the number of operations of all files up to this file's last operation, and when that
      began; None at first.
    * ``written_ns``: the time of the last write(2), and ``stamp_ns``: that of the write whose time stamp was
      logged last.  ``times_logged``: the checkpoint or transaction that has this stamp.
    * ``keeps_end``: the blocks behind the end of the file stay at its last close, because fallocate(2) has
      asked for blocks (XFS_DIFLAG_PREALLOC).
    * ``flushes_on_close``: the next close(2) starts the writeback of the file, because it was truncated
      (XFS_ITRUNCATED, EXT4_STATE_DA_ALLOC_CLOSE).
    """

    __slots__ = (
        "allocations",
        "cpu",
        "flights",
        "flushes_on_close",
        "inode",
        "ioends",
        "keeps_end",
        "lock",
        "log_operation",
        "open",
        "stamp_ns",
        "times_logged",
        "writeback_index",
        "written_ns",
    )

    inode: FileInode
    ioends: IoEnds
    lock: RwSemaphore

    def __init__(self, base: int, is_open: bool) -> None:
        super().__init__(0, base)
        self.allocations = 0
        self.cpu = -1
        self.log_operation: tuple[int, int] | None = None
        self.flights: list[Flight] = []
        self.open = is_open
        self.writeback_index = 0
        self.written_ns = self.stamp_ns = self.times_logged = 0
        self.keeps_end = self.flushes_on_close = False

    def holes(self, pages: NDArray[np.int64]) -> int:
        """Return how many of *pages* (page numbers) have no block and are not delayed.

        A page with a held block counts as one without, and a reserved page as a delayed one.  Kernels that
        take the inode's lock for each such page ask this (`InodeLocks`).
        """
        states = self.pages.states
        if len(pages) == 1:
            page = pages[0]
            return int(page >= len(states) or not states[page] & _NO_HOLE)
        inside = pages[pages < len(states)]
        return len(pages) - int(np.count_nonzero(states[inside] & _NO_HOLE))

    @property
    def under_writeback(self) -> bool:
        """True if pages of the file are under writeback."""
        return any(flight.pages for flight in self.flights)

    def flight_in(self, whole: Flight) -> Flight:
        """Return the flight for pages of the file that go under writeback now: the last one, or a new one.

        The flight lies within *whole*, the superblock's flight now.  A new one is made if the last one is
        closed, or lies within another.  The caller counts the pages (`Flight.add`).  fsync(2) waits for the
        flights of its file, and sync(2) for that of the superblock.
        """
        flights = self.flights
        if not flights or not flights[-1].takes(whole):
            self.flights = [flight for flight in flights if not flight.landed.done]
            self.flights.append(whole.of_file())
        return self.flights[-1]


class FileInode(Inode):
    """An inode with pages, in either form; filesystems add slots.

    ``folio_pages``: the pages of a folio, which lie together in memory and are one segment of a bio.
    """

    __slots__ = ("file", "folio_pages")

    file: OneRun | PagedFile

    def __init__(self, sb: Superblock, wb: Wb) -> None:
        super().__init__(sb, wb)
        self.file = OPEN
        self.folio_pages = 1
