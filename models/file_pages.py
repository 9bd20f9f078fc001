"""The pages of one file: which are dirty, and which blocks they have.

Stands for the page cache's dirty tags and the in-core extent list (xfs_iext) together.  A page is a hole, delayed
(dirty, no block yet), mapped (a block, clean) or dirty with a block.  Pure.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

HOLE: Final = 0
DELAYED: Final = 1
MAPPED: Final = 2
DIRTY: Final = 3

_WINDOWS: Final = (64, 2_048, 1 << 62)
"""How far a search looks at first, and then."""


class FileExtent(NamedTuple):
    """A run of pages that is a run of blocks."""

    page: int
    block: int
    pages: int


class FilePages:
    """A file of up to *pages* pages, all holes at first; 9 B a page.

    ``size`` is where the last page that was written ends; pages behind it may be mapped already.
    """

    def __init__(self, pages: int) -> None:
        self._states = bytearray(pages)  # single pages
        self._view = np.frombuffer(self._states, np.uint8)  # runs of them
        self._blocks = np.full(pages, -1, np.int64)
        self.size = 0

    def write(self, indices: NDArray[np.int64]) -> int:
        """The pages at *indices*, all different, are written to; how many were not dirty before."""
        states = self._view[indices]
        clean = (states == HOLE) | (states == MAPPED)
        self._view[indices] = states + clean
        self.size = max(self.size, int(indices.max()) + 1)
        return int(clean.sum())

    def next_dirty(self, page: int) -> int | None:
        """The first dirty page from *page* on."""
        for window in _WINDOWS:
            dirty = np.flatnonzero(self._view[page : page + window] & 1)
            if dirty.size:
                return page + int(dirty[0])
        return None

    def is_delayed(self, page: int) -> bool:
        """Whether *page* is dirty and has no block."""
        return self._states[page] == DELAYED

    def delayed_extent(self, page: int) -> tuple[int, int]:
        """First page and length of the delayed extent that holds *page*."""
        states = self._states
        start = end = page
        while start and states[start - 1] == DELAYED:
            start -= 1
        while end < len(states) and states[end] == DELAYED:
            end += 1
        return start, end - start

    def before(self, page: int) -> tuple[int, int] | None:
        """The extent in front of *page*: its last page and that one's block; -1 for a delayed one's."""
        for window in _WINDOWS:
            first = max(0, page - window)
            used = np.flatnonzero(self._view[first:page])
            if used.size:
                last = first + int(used[-1])
                return last, int(self._blocks[last])
        return None

    def map(self, page: int, block: int, pages: int) -> None:
        """*pages* delayed pages or holes from *page* on get the blocks from *block* on."""
        assert not (self._view[page : page + pages] & MAPPED).any(), "a page got a second block"
        self._blocks[page : page + pages] = np.arange(block, block + pages)
        self._view[page : page + pages] += 2

    def block_run(self, page: int, at_most: int) -> tuple[int, int]:
        """The block of dirty, mapped *page*, and how many such pages follow in file and on disk."""
        states, blocks = self._states, self._blocks
        block = int(blocks[page])
        end, stop = page + 1, min(page + at_most, len(states))
        while end < stop and states[end] == DIRTY and blocks[end] == block + end - page:
            end += 1
        return block, end - page

    def clean(self, page: int, pages: int) -> None:
        """Dirty, mapped pages go under writeback."""
        self._view[page : page + pages] -= 1

    def trim(self) -> list[tuple[int, int]]:
        """Unmap what lies behind the file's end; the runs of blocks that are free again."""
        tail = [(extent.block, extent.pages) for extent in self.extents() if extent.page >= self.size]
        self._view[self.size :] = HOLE
        self._blocks[self.size :] = -1
        return tail

    def extents(self) -> list[FileExtent]:
        """All extents, by page; one that goes on behind the file's end is cut there."""
        blocks = self._blocks
        mapped = blocks >= 0
        pages = np.arange(len(blocks))
        starts = mapped.copy()
        starts[1:] &= ~mapped[:-1] | (blocks[1:] != blocks[:-1] + 1) | (pages[1:] == self.size)
        firsts = np.flatnonzero(starts)
        order = np.cumsum(starts)[mapped]
        lengths = np.bincount(order, minlength=len(firsts) + 1)[1:]
        rows = zip(firsts.tolist(), blocks[firsts].tolist(), lengths.tolist(), strict=True)
        return [FileExtent(*row) for row in rows]
