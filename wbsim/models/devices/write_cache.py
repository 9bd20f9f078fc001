"""A controller's write cache with a battery, in front of a disk or an array.

The cache takes writes at the speed of the link and joins adjacent writes.  It drains to the device behind it
in sweeps, several pieces at a time.  A write completes when it is in the cache.  A full cache takes no write
until a piece has drained.  Left out: reads, and the flush, which a battery makes needless.
"""

from __future__ import annotations

from collections.abc import Callable

from wbsim.models.bio import BlockDevice, Piece, Write, programmed_bytes
from wbsim.models.devices.intake import Intake
from wbsim.models.devices.piece import uses_behind
from wbsim.models.devices.spec import WriteCacheSpec
from wbsim.models.factories import DeviceFactory
from wbsim.sim.engine import Environment
from wbsim.sim.units import SECTOR_BYTES


class WriteCache(BlockDevice):
    """The cache, with the sectors that have not drained yet."""

    def __init__(self, *, env: Environment, spec: WriteCacheSpec, name: str, behind: BlockDevice) -> None:
        self._env = env
        self._device = behind
        self._intake = Intake(env, spec.size, spec.link, spec.command_time)
        self._piece_sectors = spec.piece // SECTOR_BYTES
        self._depth = spec.depth
        self._draining = 0
        self._draining_sectors = 0
        self._position = 0

    def uses(self) -> dict[str, float]:
        """Return how long (ns) the ``link`` and the parts of the device behind were used so far, by name.

        The names of these parts begin with ``behind``.
        """
        return {"link": self._intake.busy_ns, **uses_behind(self._device, "behind")}

    def programmed_bytes(self) -> int:
        """Return how many bytes the flash of the device behind programmed so far; 0: it has no flash."""
        return programmed_bytes(self._device)

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """Start *request*, and return at once; *done* is called when *request* is in the cache.

        Every request is taken for a write, whatever its op is.
        """
        self._intake.add(request, done)
        self._admit()

    def _admit(self) -> None:
        self._intake.admit(self._draining_sectors)
        while self._intake.cached and self._draining < self._depth:
            self._drain()

    def _drain(self) -> None:
        # A piece ends at a multiple of `piece`, so it is within a chunk if `piece` divides the chunk.
        start, end = self._intake.cached.take(self._position, self._piece_sectors)
        boundary = (start // self._piece_sectors + 1) * self._piece_sectors
        if end > boundary:
            self._intake.cached.add(boundary, end)
            end = boundary
        self._position = end
        self._draining += 1
        self._draining_sectors += end - start

        def drained() -> None:
            self._draining -= 1
            self._draining_sectors -= end - start
            self._admit()

        self._device.submit(Piece(start, end, "W"), drained)


SPEC = WriteCacheSpec
COMPONENT: DeviceFactory = WriteCache
