"""The flash translation layer (FTL): what flash programs for a write, beyond the written data.

A write of a part of an indirection unit programs the complete unit.  If the next write continues in the unit,
the unit is programmed once.  The read of the rest of the unit is assumed to hide behind the programming.

Garbage collection (`page_map`) takes all valid pages of a block at once.  Flash programs them while the
host fills the room that became free: with each tenth of the room, a tenth of the pages.

In each range of sectors, the end is exclusive.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wbsim.models.devices.page_map import RESERVED, PageMap, steady_levels
from wbsim.models.devices.spec import FtlSpec
from wbsim.sim.units import SECTOR_BYTES


class Units:
    """The units of a map, of *unit_bytes* bytes, that writes fill."""

    def __init__(self, unit_bytes: int) -> None:
        self.unit_bytes = unit_bytes
        self._sectors = unit_bytes // SECTOR_BYTES
        self._last_sector = 0

    def filled(self, start: int, end: int) -> tuple[int, int]:
        """Return the first unit, and the number of units, that a write of sectors *start* to *end* programs.

        If the write continues in the unit in which the last write ended, this unit is not counted again.

        >>> units = Units(16_384)  # 32 sectors
        >>> units.filled(0, 40), units.filled(40, 64), units.filled(32, 40)
        ((0, 2), (2, 0), (1, 1))
        """
        sectors = self._sectors
        went_on = start == self._last_sector and start % sectors > 0
        self._last_sector = end
        first = start // sectors + went_on
        return first, (end - 1) // sectors - first + 1


class Ftl:
    """The layer of a drive of *size* bytes with units of *unit_bytes*.

    ``owed``: the bytes that were moved in the map, and that flash has not begun to program yet.
    """

    def __init__(self, spec: FtlSpec, size: int, unit_bytes: int, random: np.random.Generator) -> None:
        self._units = Units(unit_bytes)
        pages, block_pages, blocks = spec.pages_and_blocks(size, unit_bytes)
        levels = _levels(spec, pages, blocks, block_pages)
        self.map = PageMap(pages, blocks, block_pages, random, levels, in_order=spec.state == "fresh")
        self.owed = 0
        self._free = 0  # bytes to be filled by the host while the owed ones are moved

    def write(self, start: int, end: int) -> tuple[int, int]:
        """Write sectors *start* to *end*; return the bytes to program, and the number of erased blocks.

        Both are 0 if the write stays in the unit in which the last write ended, and continues there.  Pages
        that garbage collection moves are in ``owed`` instead; see `moved_with`.
        """
        first, count = self._units.filled(start, end)
        if count <= 0:
            return 0, 0
        moves, erasures = self.map.write(first, count)
        if erasures:
            self.owed += moves * self._units.unit_bytes
            self._free += (erasures * self.map.block_pages - moves) * self._units.unit_bytes
        return count * self._units.unit_bytes, erasures

    def discard(self, start: int, end: int) -> None:
        """Make the units that lie completely in sectors *start* to *end* garbage."""
        sectors = self._units.unit_bytes // SECTOR_BYTES
        first = -(-start // sectors)
        if end // sectors > first:
            self.map.discard(first, end // sectors - first)

    def moved_with(self, size: int) -> int:
        """Return how many of the ``owed`` bytes are moved while the host fills *size* bytes; subtract them.

        Their share of ``owed`` is that of *size* of the room that became free and is not filled yet.  The
        call takes *size* off the room, so each byte of the host counts once.  The drive programs the moved
        bytes in addition, so they slow the host down.
        """
        if not self.owed:
            return 0
        bytes_moved = self.owed if self._free <= size else self.owed * size // self._free
        self.owed -= bytes_moved
        self._free = max(0, self._free - size)
        return bytes_moved

    def fill(self) -> float:
        """Return the share of the drive's capacity that has data (0 to 1), on which the SLC part depends."""
        return self.map.valid_pages / self.map.pages


def _levels(spec: FtlSpec, pages: int, blocks: int, block_pages: int) -> NDArray[np.int32]:
    """Return the valid pages of each block that has some when the run begins."""
    data = round(pages * spec.data_share)
    if spec.state == "steady":
        return steady_levels(data, blocks - RESERVED, block_pages)
    levels = np.full(-(-data // block_pages), block_pages, np.int32)
    if data % block_pages:
        levels[-1] = data % block_pages
    return levels
