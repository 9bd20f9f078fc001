"""The pages of one file: which are dirty, and which blocks they have.

Stands for the page cache's dirty tags and the in-core extent list (xfs_iext) together.  Pure.
"""

from __future__ import annotations

import mmap
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.page_cache.pages import (
    DIRTY_BIT,
    HELD,
    HOLE,
    MAPPED_BIT,
    Pages,
    count_extents,
    fill_extents,
    last_used,
)

_SMALL: Final = 1 << 20
"""Bytes up to which an array may take all its memory at once."""


class FileExtent(NamedTuple):
    """A run of pages that is a run of blocks."""

    page: int
    block: int
    pages: int


class FilePages:
    """A file with room for *pages* pages, preallocation included, all holes at first; 5 B for each that is
    used.

    Its blocks are counted from *base* on, and so need 4 B each until it goes farther than that.
    """

    __slots__ = ("base", "end", "pages")

    def __init__(self, pages: int, base: int) -> None:
        self.base = base
        self.end = pages
        self.pages = Pages(_room(pages, np.uint8), _room(pages, np.int32), np.zeros(1, np.int64))

    def make_room(self, pages: int, end: int) -> None:
        """Have room for *pages* pages at least, so that the file may be written to up to page *end*."""
        states, blocks, size = self.pages
        have = len(states)
        self.end = max(self.end, end)
        if pages > have:
            room = max(pages, 2 * have)
            self.end = max(self.end, end * room // pages)
            more = _room(room, np.uint8), _room(room, blocks.dtype)
            used = last_used(self.pages) + 1  # the rest takes no memory yet
            more[0][:used], more[1][:used] = states[:used], blocks[:used]
            self.pages = Pages(*more, size)

    def reach(self, first_block: int, blocks: int) -> int:
        """Widen the block numbers if these *blocks* need it; returns their start from the base."""
        first = first_block - self.base
        if self.pages.blocks.dtype != np.int64 and max(-first, first + blocks) >= 1 << 31:
            wide, used = _room(len(self.pages.blocks), np.int64), last_used(self.pages) + 1
            wide[:used] = self.pages.blocks[:used]
            self.pages = self.pages._replace(blocks=wide)
        return first

    @property
    def size(self) -> int:
        """Where the last page that was written ends; pages behind it may be reserved or mapped."""
        return int(self.pages.size[0])

    @property
    def dirty(self) -> int:
        """How many of its pages are dirty."""
        return int(np.count_nonzero(self.pages.states[: self.size] & DIRTY_BIT))

    @property
    def allocated(self) -> int:
        """Return the number of pages up to the file's end that have a block."""
        return int(np.count_nonzero(self.pages.states[: self.size] & MAPPED_BIT))

    def trim(self) -> list[tuple[int, int]]:
        """Unmap what lies behind the file's end; the runs of blocks that are free again."""
        tail = self._extent_table(self.size)
        self.pages.states[self.size : last_used(self.pages) + 1] = HOLE
        return [(block, count) for _, block, count in tail.tolist()]

    def give_up_held(self) -> list[tuple[int, int]]:
        """Hold no blocks any more; the runs of blocks that are free again."""
        held = np.flatnonzero(self.pages.states & HELD)
        if not len(held):
            return []
        self.pages.states[held] &= ~np.uint8(HELD)
        blocks = self.pages.blocks[held].astype(np.int64)
        starts = np.flatnonzero(np.diff(blocks, prepend=blocks[0] - 2) != 1)
        return [(int(run[0]) + self.base, len(run)) for run in np.split(blocks, starts[1:])]

    def extent_table(self) -> NDArray[np.int64]:
        """All extents, by page: rows of page, block and pages; one that goes on behind the file's end is cut
        there.
        """
        return self._extent_table(0)

    def _extent_table(self, first: int) -> NDArray[np.int64]:
        used = int(last_used(self.pages)) + 1
        table = np.empty((count_extents(self.pages, first, used), 3), np.int64)
        fill_extents(self.pages, first, used, table)
        table[:, 1] += self.base
        return table

    def extent_count(self) -> int:
        """How many extents there are."""
        return int(count_extents(self.pages, 0, last_used(self.pages) + 1))

    def extents(self) -> list[FileExtent]:
        """`extent_table` as tuples."""
        return [FileExtent(*row) for row in self.extent_table().tolist()]


def _room(pages: int, dtype: Any) -> NDArray[Any]:
    """So many zeros; where they are many, each part takes memory once it is written to.

    What malloc gives was often written to before, and is there.
    """
    size = pages * np.dtype(dtype).itemsize
    if size <= _SMALL:
        return np.zeros(pages, dtype)
    return np.frombuffer(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype)
