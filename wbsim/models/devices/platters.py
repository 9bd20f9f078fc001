"""The platters of a disk under its head: seek, rotation, and transfer.

* The seek over a distance takes track + (full - track) * sqrt(distance / size).
* Then the head waits until the first sector passes.  The platters turn all the time.  So the next sectors
  pass at once if the head is ready at once; a little later, they come only after a turn.
* The transfer has the zone's rate, which falls linearly from the outer edge inwards.

Left out: the skew of tracks, and remapped sectors.
"""

from __future__ import annotations

from math import sqrt

from wbsim.models.devices.spec import DiskSpec
from wbsim.sim.units import SECTOR_BYTES, S


class Platters:
    """The platters of one spindle.

    ``head``: the sector behind the last one that was under the head.  That one passes at ``passed_ns``, a
    time on the clock that may be to come.
    """

    def __init__(self, spec: DiskSpec) -> None:
        self._spec = spec
        self._size_sectors = spec.size // SECTOR_BYTES
        self.head = self.passed_ns = 0

    def rate(self, sector: int) -> int:
        """Return the rate (B/s) at *sector*."""
        spec = self._spec
        return spec.outer + round((spec.inner - spec.outer) * (sector / self._size_sectors))

    def positioning_ns(self, start: int, now: int) -> int:
        """Return the time (ns) from *now* (ns) until sector *start* begins to pass under the head.

        Nothing moves; `transfer` moves the head.
        """
        spec, turn_ns, distance = self._spec, self._spec.turn_time, start - self.head
        seek_ns = 0
        if distance:
            share = sqrt(abs(distance) / self._size_sectors)
            seek_ns = spec.track_seek + round((spec.full_seek - spec.track_seek) * share)
        if not turn_ns:
            return seek_ns
        # When *start* passes, but for whole turns: the sectors between take their time at the zone's rate.
        passes_ns = self.passed_ns + distance * SECTOR_BYTES * S // self.rate(min(start, self.head))
        return seek_ns + (passes_ns - now - seek_ns) % turn_ns

    def transfer(self, start: int, end: int, now: int) -> int:
        """Let sectors *start* to *end* pass under the head, which is free *now* (ns); return the end (ns).

        *end* is exclusive.  The head moves: it is at sector *end* then.  The result is a time on the clock,
        as *now* is.
        """
        begin_ns = now + self.positioning_ns(start, now)
        self.passed_ns = begin_ns + (end - start) * SECTOR_BYTES * S // self.rate(start)
        self.head = end
        return self.passed_ns
