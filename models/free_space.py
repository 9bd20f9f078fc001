"""The free space of one XFS allocation group, and where an allocation goes in it.

Stands for the by-block and by-size trees, xfs_alloc_ag_vextent_near and xfs_alloc_ag_vextent_locality
(fs/xfs/libxfs/xfs_alloc.c).  Blocks are those of the group.  Pure: no clock, no dice.  Left out: stripe
alignment, busy extents (freed and not yet committed), the group's free list, reservations.
"""

from __future__ import annotations

from typing import NamedTuple

from sortedcontainers import SortedDict, SortedList


class Free(NamedTuple):
    """A run of free blocks."""

    first: int
    size: int


class FreeSpace:
    """Disjoint free extents, never adjacent to each other."""

    def __init__(self, first: int, size: int) -> None:
        self._by_block: SortedDict[int, int] = SortedDict()
        self._by_size: SortedList[tuple[int, int]] = SortedList()
        self.blocks = 0
        if size:
            self.give_back(first, size)

    @property
    def longest(self) -> int:
        """The longest free extent (blocks); 0 if there is none."""
        return self._by_size[-1][0] if self._by_size else 0

    def extents(self) -> list[Free]:
        """All free extents, by block."""
        return [Free(*item) for item in self._by_block.items()]

    def take_near(self, target: int, length: int) -> tuple[int, int] | None:
        """Take *length* blocks, or the longest extent where none has as many, as near to *target* as is found.

        Returns the first block and how many, or None if nothing is free.
        """
        length = min(length, self.longest)
        if not length:
            return None
        found = self._nearest(target, length)
        block = _place_in(found, target, length)
        self._drop(found)
        self._add(found.first, block - found.first)
        self._add(block + length, found.first + found.size - block - length)
        return block, length

    def give_back(self, block: int, length: int) -> None:
        """Free *length* blocks from *block* on, and join them with their neighbours.

        Raises:
            ValueError: some of them are free already.
        """
        end = block + length
        at = self._by_block.bisect_right(block)
        before = Free(*self._by_block.peekitem(at - 1)) if at else None
        after = Free(*self._by_block.peekitem(at)) if at < len(self._by_block) else None
        if (before and before.first + before.size > block) or (after and after.first < end):
            raise ValueError(f"blocks {block} to {end - 1} are partly free already")
        if before and before.first + before.size == block:
            self._drop(before)
            block = before.first
        if after and after.first == end:
            self._drop(after)
            end += after.size
        self._add(block, end - block)

    def _nearest(self, target: int, length: int) -> Free:
        """The free extent of at least *length* that the parallel search ends with.

        It goes outward from *target* in the tree by block and, one record for each step of that, up the tree by
        size in doubling sizes.  A hit by block ends it, after a look at the other side for a nearer one; so
        does the end of the sizes, with the nearest that they gave.
        """
        left = self._by_block.bisect_right(target) - 1
        right = left + 1
        wanted = length
        found: list[Free] = []
        while True:
            for place, step, opposite in ((left, -1, right), (right, 1, left)):
                hit = self._at(place)
                if hit is not None and hit.size >= length:
                    found.append(hit)
                    other = self._first_of(length, opposite, -step, target, _distance(hit, target, length))
                    if other is not None:
                        found.append(other)
                    return min(found, key=lambda free: _distance(free, target, length))
            left, right = left - 1, right + 1
            at = self._by_size.bisect_left((wanted, target))
            if at == len(self._by_size):
                return min(found or [self._smallest(length)], key=lambda free: _distance(free, target, length))
            size, first = self._by_size[at]
            found.append(Free(first, size))
            if first > target and at and self._by_size[at - 1][0] == size:
                found.append(Free(self._by_size[at - 1][1], size))
            wanted = max(size + 1, 2 * wanted)

    def _first_of(self, length: int, place: int, step: int, target: int, within: int) -> Free | None:
        """The first extent of *length* from *place* on that is nearer to *target* than *within*."""
        while (free := self._at(place)) is not None:
            gap = target - free.first - free.size if step < 0 else free.first - target
            if gap >= within:
                return None
            if free.size >= length:
                return free
            place += step
        return None

    def _smallest(self, length: int) -> Free:
        """The smallest extent of at least *length*."""
        size, first = self._by_size[self._by_size.bisect_left((length, 0))]
        return Free(first, size)

    def _at(self, place: int) -> Free | None:
        """The extent at that place of the tree by block."""
        return Free(*self._by_block.peekitem(place)) if 0 <= place < len(self._by_block) else None

    def _add(self, first: int, size: int) -> None:
        if size:
            self._by_block[first] = size
            self._by_size.add((size, first))
            self.blocks += size

    def _drop(self, free: Free) -> None:
        del self._by_block[free.first]
        self._by_size.remove((free.size, free.first))
        self.blocks -= free.size


def _place_in(free: Free, target: int, length: int) -> int:
    """Where *length* blocks go in an extent that has room for them (xfs_alloc_compute_diff, user data)."""
    if free.first >= target or free.first + free.size < target + length:
        return free.first
    return target


def _distance(free: Free, target: int, length: int) -> int:
    return abs(_place_in(free, target, length) - target)
