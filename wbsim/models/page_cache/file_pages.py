"""The pages of one file: their states and their blocks.

Stands for the dirty tags of the page cache and the in-core extent list (xfs_iext).  Pure.
"""

from __future__ import annotations

import mmap
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.page_cache.pages import (
    DELAYED,
    DIRTY_BIT,
    HAS_BLOCK,
    HELD,
    HOLE,
    RESERVED,
    Pages,
    count_extents,
    fill_extents,
    last_used,
)

_CLAIM: Final = DELAYED | RESERVED
_SMALL: Final = 1 << 20
"""The size (bytes) up to which an array may take all its memory at once."""


class FileExtent(NamedTuple):
    """A run of pages whose blocks are a run, too."""

    page: int
    block: int
    pages: int


class FilePages:
    """The pages of a file, with room for *pages* pages, including preallocation; at first all are holes.

    A used page takes 5 bytes.  Block numbers are relative to *base*, so that 4 bytes are enough for most
    files; `reach` widens them.  Writes may reach the pages before ``end``.
    """

    __slots__ = ("base", "end", "pages")

    def __init__(self, pages: int, base: int) -> None:
        self.base = base
        self.end = pages
        self.pages = Pages(_room(pages, np.uint8), _room(pages, np.int32), np.zeros(1, np.int64))

    def make_room(self, pages: int, end: int) -> None:
        """Make room for at least *pages* pages, so that writes may reach the pages before *end*.

        If more room is made, ``end`` grows in proportion, and ``pages`` becomes another `Pages`.
        """
        states, blocks, size = self.pages
        have = len(states)
        self.end = max(self.end, end)
        if pages > have:
            room = max(pages, 2 * have)
            self.end = max(self.end, end * room // pages)
            more = _room(room, np.uint8), _room(room, blocks.dtype)
            length = last_used(self.pages) + 1  # the rest takes no memory yet
            more[0][:length], more[1][:length] = states[:length], blocks[:length]
            self.pages = Pages(*more, size)

    def reach(self, first_block: int, blocks: int) -> int:
        """Return *first_block*, a block of the filesystem, relative to the base.

        If the *blocks* blocks from there on need it, block numbers are widened, and ``pages`` becomes another
        `Pages`.
        """
        first = first_block - self.base
        if self.pages.blocks.dtype != np.int64 and max(-first, first + blocks) >= 1 << 31:
            wide, length = _room(len(self.pages.blocks), np.int64), last_used(self.pages) + 1
            wide[:length] = self.pages.blocks[:length]
            self.pages = self.pages._replace(blocks=wide)
        return first

    @property
    def size(self) -> int:
        """The size of the file (pages); pages behind it may be reserved or mapped."""
        return int(self.pages.size[0])

    @property
    def dirty(self) -> int:
        """The number of dirty pages of the file, counted anew."""
        return int(np.count_nonzero(self.pages.states[: self.size] & DIRTY_BIT))

    @property
    def allocated(self) -> int:
        """The number of pages up to the file's end that have a block."""
        return int(np.count_nonzero(self.pages.states[: self.size] & HAS_BLOCK))

    def trim(self) -> list[tuple[int, int]]:
        """Unmap the pages behind the file's end; return the runs of blocks that are free again.

        A run is a pair of first block (of the filesystem) and number of blocks.  The caller frees them.
        Before this, the caller gives up held blocks (`give_up_held`), and ends the claims behind the end
        (`claims_from`): both are forgotten here.
        """
        tail = self._extent_table(self.size)
        self.pages.states[self.size : last_used(self.pages) + 1] = HOLE
        return [(block, count) for _, block, count in tail.tolist()]

    def claims_from(self, page: int) -> int:
        """Return how many pages from *page* on, even behind the file's end, are delayed or reserved.

        The filesystem owes each of them a block.
        """
        states = self.pages.states[page : last_used(self.pages) + 1]
        return int(np.count_nonzero((states & _CLAIM != 0) & (states & HAS_BLOCK == 0)))

    def give_up_held(self) -> list[tuple[int, int]]:
        """Give up all blocks held for pages; return their runs, which are free again, as `trim` does."""
        places = np.flatnonzero(self.pages.states & HELD)
        if not len(places):
            return []
        self.pages.states[places] &= ~np.uint8(HELD)
        blocks = self.pages.blocks[places].astype(np.int64)
        starts = np.flatnonzero(np.diff(blocks, prepend=blocks[0] - 2) != 1)
        return [(int(run[0]) + self.base, len(run)) for run in np.split(blocks, starts[1:])]

    def extent_table(self) -> NDArray[np.int64]:
        """Return all extents, by page, as rows of first page, first block and number of pages.

        Blocks are those of the filesystem.  Only pages with blocks count, not delayed pages or held blocks.
        Written and unwritten blocks are separate extents, and so are the parts before and behind the file's
        end.
        """
        return self._extent_table(0)

    def _extent_table(self, first: int) -> NDArray[np.int64]:
        length = int(last_used(self.pages)) + 1
        table = np.empty((count_extents(self.pages, first, length), 3), np.int64)
        fill_extents(self.pages, first, length, table)
        table[:, 1] += self.base
        return table

    def extent_count(self) -> int:
        """Return the number of extents: the rows of `extent_table`, with those behind the file's end."""
        return int(count_extents(self.pages, 0, last_used(self.pages) + 1))

    def extents(self) -> list[FileExtent]:
        """Return the rows of `extent_table` as tuples."""
        return [FileExtent(*row) for row in self.extent_table().tolist()]


def _room(pages: int, dtype: Any) -> NDArray[Any]:
    """Return an array of *pages* zeros.

    A large array uses mmap, so that each part takes memory only once it is written to.  Memory from malloc
    is often resident already.
    """
    size = pages * np.dtype(dtype).itemsize
    if size <= _SMALL:
        return np.zeros(pages, dtype)
    return np.frombuffer(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype)
