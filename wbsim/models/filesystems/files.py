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
"""A file of one run that no process has open.  `OPEN` and `CLOSED` are the only two objects of `OneRun`."""


class PagedFile(FilePages):
    """A file whose pages are kept one by one.

    * ``writeback_index``: the page where the next call of writeback starts.
    * ``allocations``: the number of extents that were given blocks.
    * ``inode``, its ``lock`` (ILOCK, i_data_sem) and ``ioends``: `DelallocFilesystem.page` sets them.
      ``ioends`` is the list that ioends end on; None: the pages are clean after the I/O.
    * ``flights``: those with pages of this file; the last one takes more pages.
    * ``cpu``: the processor of the last allocation or conversion, -1 at first.
    * ``log_operation``: the number of operations of all files up to this file's last operation, and when that
      began; None at first.
    """

    __slots__ = (
        "allocations",
        "cpu",
        "flights",
        "inode",
        "ioends",
        "lock",
        "log_operation",
        "open",
        "writeback_index",
    )

    inode: FileInode
    ioends: IoEnds | None
    lock: RwSemaphore

    def __init__(self, base: int, is_open: bool) -> None:
        super().__init__(0, base)
        self.allocations = 0
        self.cpu = -1
        self.log_operation: tuple[int, int] | None = None
        self.flights: list[Flight] = []
        self.open = is_open
        self.writeback_index = 0

    def holes(self, pages: NDArray[np.int64]) -> int:
        """Return how many of *pages* have no block and are not delayed."""
        states = self.pages.states
        if len(pages) == 1:
            page = pages[0]
            return int(page >= len(states) or not states[page] & _NO_HOLE)
        inside = pages[pages < len(states)]
        return len(pages) - int(np.count_nonzero(states[inside] & _NO_HOLE))

    def flight_in(self, whole: Flight) -> Flight:
        """Return the flight for pages that go under writeback now, within *whole*, that of the superblock."""
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
