"""The shingled tracks of a disk (SMR), which the drive manages.

Tracks overlap within a band, so a band can only be written in order.  A write that continues its band goes
there, and so does a large one that begins a band.  Every other write is appended to the media cache, a zone
at the outer edge.  To free its room, the drive cleans a band: it reads the complete band and writes it again.

Left out: reads of data that is in the media cache, which are served from the band's place.
"""

from __future__ import annotations

from typing import Final

from wbsim.models.devices.spec import ShinglesSpec
from wbsim.sim.units import MIB, SECTOR_BYTES

STREAM_SECTORS: Final = MIB // SECTOR_BYTES
"""A write of this size at the beginning of a band begins it anew."""


class Shingles:
    """The bands and the media cache; a write goes to one of them.

    ``filled``: the sectors in the media cache.  In each range of sectors, the end is exclusive.
    """

    def __init__(self, spec: ShinglesSpec) -> None:
        self._band_sectors = spec.band // SECTOR_BYTES
        self._cache_sectors = spec.media_cache // SECTOR_BYTES
        self._next: dict[int, int] = {}  # by band that was begun: the sector behind the last one in order
        self._cached: dict[int, int] = {}  # by band, in the order of the first write: its cached sectors
        self.filled = self._log = 0

    def place(self, start: int, end: int) -> int | None:
        """Return the sector to which a write of sectors *start* to *end* goes, and note it as written there.

        None: the media cache is full, and nothing is noted; the disk cleans a band and asks again.
        """
        band, sectors = start // self._band_sectors, end - start
        first = band * self._band_sectors
        if start == first and sectors >= STREAM_SECTORS:
            self.filled -= self._cached.pop(band, 0)
            self._next[band] = first
        if start == self._next.get(band, first) and band not in self._cached:
            self._continue(start, end)
            return start
        if self.filled + sectors > self._cache_sectors and self._cached:
            return None
        if self._log + sectors > self._cache_sectors:
            self._log = 0  # only the head's way depends on the place; `filled` says what room there is
        place = self._log
        self._log += sectors
        self.filled += sectors
        self._cached[band] = self._cached.get(band, 0) + sectors
        return place

    def _continue(self, start: int, end: int) -> None:
        """Note that the bands from sector *start* on are written in order up to sector *end*."""
        for band in range(start // self._band_sectors, (end - 1) // self._band_sectors + 1):
            self._next[band] = end

    def clean(self) -> tuple[int, int] | None:
        """Free the room of the band that was cached first; return its start and end (sectors).

        The disk then reads and writes the complete band.  None: nothing is cached.
        """
        if not self._cached:
            return None
        band = next(iter(self._cached))
        self.filled -= self._cached.pop(band)
        self._next[band] = (band + 1) * self._band_sectors
        return band * self._band_sectors, (band + 1) * self._band_sectors
