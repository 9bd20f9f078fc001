"""Blocks of a filesystem: runs of free blocks, and the law that each block is in one extent.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.sim.invariants import require


class Free(NamedTuple):
    """A run of *size* free blocks from block *first* on."""

    first: int
    size: int


class Space:
    """The free blocks of a filesystem that no page has claimed yet: ``unclaimed`` of them.

    A write claims the blocks of delayed pages when it makes them dirty, so that writeback always finds blocks
    for them.  A write that finds too few fails with ENOSPC.  Stands for m_fdblocks of XFS, and for
    s_freeclusters_counter minus s_dirtyclusters_counter of ext4.  *reserve* of the *free* blocks are for the
    filesystem's own metadata.  The parts of the filesystem that claim, take and free blocks change
    ``unclaimed``.  While metadata has some of the reserve, ``unclaimed`` may be below 0.
    """

    __slots__ = ("reserve", "unclaimed")

    def __init__(self, free: int, reserve: int) -> None:
        self.reserve = reserve
        self.unclaimed = free - reserve

    def check(self, name: str, free: int, claimed: int) -> None:
        """Check that the *free* blocks of filesystem *name* are unclaimed, in ``reserve``, or claimed.

        *free* is `Placement.free_blocks`, and *claimed* the number of blocks that delayed pages claim; such a
        block is still free.

        Raises:
            LawBroken: a claim was lost, or was counted twice.
        """
        require(
            self.unclaimed + self.reserve + claimed == free,
            f"{name}: {free} blocks are free, but {self.unclaimed} are unclaimed, {self.reserve} are kept and"
            f" {claimed} are claimed by delayed pages",
        )


Extents = Callable[[], Iterable[NDArray[np.int64]]]
"""Called for all extents, as arrays (n x 2) of first blocks and sizes; it may be called again."""
_FAR: Final = 1 << 62


def check_blocks(name: str, blocks: int, extents: Extents, middle: int) -> None:
    """Check that no *extents* of filesystem *name* share a block, and all lie within its *blocks* blocks.

    *extents*, called three times, yields arrays (n x 2) of first blocks and sizes, of free extents too.
    Extents from block *middle* on are checked after the others, because all together take more memory.

    Raises:
        LawBroken: two extents share a block, or an extent lies outside the filesystem.
    """
    count = 0
    for table in extents():
        fits = bool((table[:, 0] >= 0).all() and (table.sum(axis=1) <= blocks).all())
        require(fits, f"{name}: an extent lies outside its {blocks} blocks")
        count += len(table)
    starts, ends = np.empty(count, np.int64), np.zeros(count + 1, np.int64)  # pages are mapped on first touch
    for first, end in ((-_FAR, middle), (middle, _FAR)):
        filled = 0
        for table in extents():
            half = table[(table[:, 0] >= first) & (table[:, 0] < end)]
            starts[filled : filled + len(half)] = half[:, 0]
            ends[filled + 1 : filled + 1 + len(half)] = half.sum(axis=1)
            filled += len(half)
        starts[:filled].sort()
        ends[1 : filled + 1].sort()
        twice = starts[:filled][starts[:filled] < ends[:filled]]  # begin before the previous extent ends
        require(
            not len(twice),
            f"{name}: blocks belong to two files, or to a file and the free space: {twice[:3]}",
        )
        ends[0] = ends[filled]
