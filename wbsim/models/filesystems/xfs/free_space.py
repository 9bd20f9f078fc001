"""The free space of XFS allocation groups: one extent each, or tables of `free_extents`.

Left out: busy extents (freed and not yet committed), the group's free list, reservations.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.sorted_table import entries, new_tables, with_room
from wbsim.models.filesystems.blocks import Free
from wbsim.models.filesystems.xfs.free_extents import SIZE_SHIFT, Spaces, arrays_of, give_back, take_near
from wbsim.sim.invariants import require

RESERVED: Final = 64
"""Room is made for at least this number of changes.

Looking for room takes 5 us, and a table with room for more changes takes more memory for each group.
"""


class FreeTables:
    """The free extents of the groups of one filesystem, *groups* in number.

    ``spaces`` are the tables, and ``arrays`` are their arrays, in the order of `spaces_of`.  A group
    has extents in the tables only after `FreeSpace.enter`.
    """

    __slots__ = ("_room", "arrays", "spaces")

    def __init__(self, groups: int = 1) -> None:
        self._room = 0
        self._set(
            Spaces(
                new_tables(groups, valued=True), new_tables(groups, valued=False),
                np.zeros(groups, np.int64), np.zeros(groups, np.int64),
            )
        )  # fmt: skip

    def with_room(self, changes: int) -> Spaces:
        """Return the tables, with room for *changes* allocations or runs of blocks that are given back.

        Compiled code makes no arrays, so its callers call this before each change, or once for several.  The
        groups share the room.  New tables may replace the old ones in ``spaces`` and ``arrays``, so the
        result of an earlier call must not be used.
        """
        if changes > self._room:
            self._room = max(changes, RESERVED)
            by_block, by_size, *counts = self.spaces
            self._set(Spaces(with_room(by_block, self._room), with_room(by_size, 2 * self._room), *counts))
        self._room -= changes
        return self.spaces

    def _set(self, spaces: Spaces) -> None:
        self.spaces = spaces
        self.arrays = arrays_of(spaces)


class FreeSpace:
    """The free extents of the group with this *number*; they neither overlap nor touch.

    Block numbers count from the start of the group.  At first, *size* blocks from *first* on are free.  The
    single extent of a fresh group is two integers.  A second extent, or a call of compiled code, enters the
    extents into the *tables* of the filesystem.

    No time passes, and claims do not change: the caller changes ``unclaimed`` of the filesystem's
    `models.filesystems.blocks.Space`.
    """

    __slots__ = ("_end", "_entered", "_first", "_number", "_tables")

    def __init__(self, first: int, size: int, tables: FreeTables | None = None, number: int = 0) -> None:
        self._first = first
        self._end = first + size
        self._tables = tables or FreeTables()
        self._number = number
        self._entered = False

    @property
    def blocks(self) -> int:
        """The number of free blocks of the group; blocks that delayed pages only claim are free, too."""
        if not self._entered:
            return self._end - self._first
        return int(self._tables.spaces.blocks[self._number])

    def longest(self) -> int:
        """Return the length of the longest free extent (blocks); 0 if no block is free."""
        if not self._entered:
            return self._end - self._first
        return int(self._tables.spaces.longest[self._number])

    def extents(self) -> list[Free]:
        """Return the free extents in the order of their first blocks; an empty list if no block is free."""
        return [Free(*extent) for extent in self.table().tolist()]

    def table(self) -> NDArray[np.int64]:
        """Return all free extents in the order of their first blocks, as an array (n x 2).

        A row has the first block and the number of blocks.
        """
        if self._entered:
            return entries(self._tables.spaces.by_block, self._number)
        alone = [(self._first, self._end - self._first)] if self._end > self._first else []
        return np.array(alone, np.int64).reshape(-1, 2)

    def check(self) -> None:
        """Check that free extents lie apart, are counted, and are the same by block and by size.

        Raises:
            LawBroken: extents overlap or touch, a count or the longest size is wrong, or the trees differ.
        """
        firsts, sizes = self.table().T
        require(
            bool(np.all(firsts[:-1] + sizes[:-1] < firsts[1:])),
            "free space: its extents must be in order, with used blocks between",
        )
        require(
            bool(np.all(sizes > 0)) and int(sizes.sum()) == self.blocks,
            f"free space: {self.blocks} blocks are counted, its extents have {int(sizes.sum())}",
        )
        if self._entered:
            by_size = entries(self._tables.spaces.by_size, self._number)[:, 0]
            require(
                np.array_equal(by_size, np.sort((sizes << SIZE_SHIFT) + firsts)),
                "free space: both trees must hold the same extents",
            )
            require(
                self.longest() == int(sizes.max(initial=0)),
                f"free space: its longest extent has {sizes.max(initial=0)} blocks, not {self.longest()}",
            )

    def enter(self) -> None:
        """Enter this group's extents into the tables for compiled code; later calls change nothing.

        `with_room` calls this.  The tables may be replaced: see `FreeTables.with_room`.
        """
        if not self._entered:
            self._entered = True
            if self._end > self._first:
                give_back(self._tables.with_room(1), self._number, self._first, self._end - self._first)

    def with_room(self, changes: int) -> Spaces:
        """Enter this group, and return the tables of all groups, with room for *changes* changes.

        See `FreeTables.with_room`.
        """
        self.enter()
        return self._tables.with_room(changes)

    def arrays_with_room(self, changes: int) -> tuple[NDArray[Any], ...]:
        """Do the same as `with_room` for *changes*, but return the arrays of the tables (`arrays_of`)."""
        self.with_room(changes)
        return self._tables.arrays

    def take_near(self, target: int, length: int) -> tuple[int, int] | None:
        """Take *length* blocks near block *target*, or the longest free extent if none has as many.

        The blocks begin at *target* if *length* blocks are free from there on.  Else they begin at the start
        of a free extent that has room, usually the nearest.  *length* is at least 1.  Returns the first block
        and the number of blocks, or None if no block is free.

        >>> space = FreeSpace(8, 24)
        >>> space.take_near(0, 4), space.take_near(16, 4), space.take_near(0, 100)
        ((8, 4), (16, 4), (20, 12))
        """
        first = self._first
        if not self._entered and first >= target and length <= self._end - first:
            self._first = first + length
            return first, length
        block, size = take_near(self.with_room(1), self._number, target, length)
        return (block, size) if size else None

    def give_back(self, block: int, length: int) -> None:
        """Free *length* blocks from *block* of the group on, and join them with their neighbours.

        Raises:
            ValueError: some of these blocks are free already.
        """
        if not give_back(self.with_room(1), self._number, block, length):
            raise ValueError(f"some of the blocks {block} to {block + length - 1} are free already")
