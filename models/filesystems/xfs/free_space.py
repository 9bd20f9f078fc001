"""The free space of one XFS allocation group: one extent, or `models.filesystems.xfs.free_extents`.

Left out: busy extents (freed and not yet committed), the group's free list, reservations.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.arrays.sorted_table import entries, new_table, with_room
from models.filesystems.free_run import Free
from models.filesystems.xfs.free_extents import BLOCK_MASK, SIZE_SHIFT, Space, give_back, longest, take_near
from sim.laws import require

_AHEAD: Final = 8
"""For how many calls room is made at once."""


class FreeSpace:
    """Disjoint free extents, never adjacent to each other.

    One alone, as of a fresh group, is two integers; only a second one, or compiled code, makes tables of
    them.
    """

    __slots__ = ("_end", "_first", "_space", "_spare")

    def __init__(self, first: int, size: int) -> None:
        self._first = first
        self._end = first + size
        self._space: Space | None = None
        self._spare = 0

    @property
    def blocks(self) -> int:
        """How many blocks are free."""
        return self._end - self._first if self._space is None else int(self._space.blocks[0])

    def longest(self) -> int:
        """The longest free extent (blocks); 0 if there is none."""
        return self._end - self._first if self._space is None else int(longest(self._space))

    def extents(self) -> list[Free]:
        """All free extents, by block."""
        if self._space is None:
            return [Free(self._first, self._end - self._first)] if self._end > self._first else []
        return [Free(*entry) for entry in entries(self._space.by_block)]

    def check(self) -> None:
        """Free extents lie apart, are counted, and are the same by block and by size.

        Raises:
            LawBroken: blocks are free twice, or free in one tree alone.
        """
        found = self.extents()
        ends = [free.first + free.size for free in found]
        require(
            all(end < free.first for end, free in zip(ends, found[1:], strict=False)),
            "free space: its extents lie apart, in order",
        )
        require(
            all(free.size > 0 for free in found) and sum(free.size for free in found) == self.blocks,
            f"free space: {self.blocks} blocks are those of its extents",
        )
        if self._space is not None:
            by_size = [Free(key & BLOCK_MASK, key >> SIZE_SHIFT) for key, _ in entries(self._space.by_size)]
            require(
                by_size == sorted(found, key=lambda free: (free.size, free.first)),
                "free space: both trees hold the same extents",
            )

    def with_room(self, allocations: int) -> Space:
        """The tables, with room for so many *allocations*; for compiled code, which may do fewer."""
        space = self._space
        if space is None:
            space = Space(new_table(4, valued=True), new_table(4, valued=False), np.zeros(1, np.int64))
            if self._end > self._first:
                give_back(space, self._first, self._end - self._first)
        if self._spare < allocations:
            by_block, by_size, blocks = space
            self._spare = _AHEAD * allocations
            space = Space(with_room(by_block, self._spare), with_room(by_size, 2 * self._spare), blocks)
        self._space = space
        self._spare -= allocations
        return space

    def take_near(self, target: int, length: int) -> tuple[int, int] | None:
        """Take *length* blocks, or the longest extent where none has as many, as near to *target* as is
        found.

        Returns the first block and how many, or None if nothing is free.
        """
        first = self._first
        if self._space is None and first >= target and length <= self._end - first:
            self._first = first + length
            return first, length
        block, got = take_near(self.with_room(1), target, length)
        return (block, got) if got else None

    def give_back(self, block: int, length: int) -> None:
        """Free *length* blocks from *block* on, and join them with their neighbours.

        Raises:
            ValueError: some of them are free already.
        """
        if not give_back(self.with_room(1), block, length):
            raise ValueError(f"blocks {block} to {block + length - 1} are partly free already")
