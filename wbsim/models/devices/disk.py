"""A disk: zones, seeks, rotation, and a write cache that sorts.

A write completes when it is in the cache.  Cached writes go to the platters in sweeps (C-LOOK), adjacent
writes as one.  The time on the platters is the sum of these parts:

* the seek over the distance: track + (full - track) * sqrt(distance / size);
* half a turn, the mean rotational delay, unless the write begins at the head's position;
* the transfer at the zone's rate, which falls linearly from the outer edge inwards.

Left out: reads, flushes, track skew, remapped sectors, reordering by rotational position.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Final

from wbsim.models.bio import BlockDevice, Write
from wbsim.models.devices.intake import Intake
from wbsim.models.devices.spec import DiskSpec
from wbsim.models.factories import DeviceFactory
from wbsim.sim.engine import Environment
from wbsim.sim.units import MIB, SECTOR_BYTES, S

SWEEP_SECTORS: Final = MIB // SECTOR_BYTES
"""The largest write to the platters; after it, writes that have come since are taken into account."""


class Disk(BlockDevice):
    """One spindle."""

    def __init__(self, *, env: Environment, spec: DiskSpec, name: str) -> None:
        self._env = env
        self._spec = spec
        self._intake = Intake(env, spec.cache, spec.link)
        self._rank = env.next_rank()
        self._size_sectors = spec.size // SECTOR_BYTES
        self._head = 0
        self._busy = False
        self._head_free_ns = self._sought_ns = 0

    def uses(self) -> dict[str, float]:
        """See `BlockDevice.uses`."""
        return {"head": self._sought_ns - max(self._head_free_ns - self._env.now, 0)}

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """See `BlockDevice.submit`."""
        self._intake.add(request, done)
        self._admit()

    def _admit(self) -> None:
        self._intake.admit()
        if self._intake.cached and not self._busy:
            self._sweep()

    def _sweep(self) -> None:
        start, end = self._intake.cached.take(self._head, SWEEP_SECTORS)
        self._busy = True
        service_ns = self.service_ns(start, end)
        self._sought_ns += service_ns
        self._head_free_ns = self._env.now + service_ns
        self._env.call_at(self._head_free_ns, self._rank, self._end_write)
        self._head = end

    def _end_write(self) -> None:
        self._busy = False
        self._admit()

    def service_ns(self, start: int, end: int) -> int:
        """Return the time to write sectors *start* to *end* from the present position of the head (ns)."""
        spec, distance = self._spec, abs(start - self._head)
        ns = 0
        if distance:
            share = sqrt(distance / self._size_sectors)
            ns = spec.turn_time // 2 + spec.track_seek + round((spec.full_seek - spec.track_seek) * share)
        inwards = start / self._size_sectors
        rate = spec.outer + round((spec.inner - spec.outer) * inwards)
        return ns + (end - start) * SECTOR_BYTES * S // rate


SPEC = DiskSpec
COMPONENT: DeviceFactory = Disk
