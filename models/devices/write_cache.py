"""A controller's write cache with a battery, in front of a disk or an array.

It takes a write at the speed of the link, joins what is adjacent, and drains to what is behind it in sweeps,
several pieces at a time.  A write completes when it is in the cache; a full cache takes no more until
something has drained.  Left out: reads, and the flush, which a battery makes needless.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from wbsim.models.bio import BlockDevice, Write
from wbsim.models.devices.cached_runs import CachedRuns
from wbsim.models.devices.piece import Piece, behind
from wbsim.models.devices.spec import WriteCacheSpec
from wbsim.sim.engine import Environment
from wbsim.sim.units import SECTOR_BYTES, S


class WriteCache(BlockDevice):
    """The cache and what it still holds."""

    def __init__(self, *, env: Environment, spec: WriteCacheSpec, name: str, behind: BlockDevice) -> None:
        self._env = env
        self.ranks: frozenset[int] = frozenset()
        self._behind = behind
        self._rank = env.next_rank()
        self._link = spec.link
        self._command_ns = spec.command_time
        self._room_sectors = spec.size // SECTOR_BYTES
        self._piece_sectors = spec.piece // SECTOR_BYTES
        self._depth = spec.depth
        self._link_free_ns = self._linked_ns = 0
        self._cached = CachedRuns()
        self._draining = 0
        self._draining_sectors = 0
        self._position = 0
        self._waiting: deque[tuple[Write, Callable[[], None]]] = deque()

    def uses(self) -> dict[str, float]:
        """See `BlockDevice.uses`; what is behind it has its own."""
        link_ns = self._linked_ns - max(self._link_free_ns - self._env.now, 0)
        return {"link": link_ns, **behind(self._behind, "behind")}

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """See `BlockDevice.submit`."""
        self._waiting.append((request, done))
        self._admit()

    def _admit(self) -> None:
        """Take what waits as far as there is room; an empty cache takes anything."""
        while self._waiting:
            request, done = self._waiting[0]
            held = self._cached.sectors + self._draining_sectors
            if held and held + (request.end_sector - request.start_sector) > self._room_sectors:
                break
            self._waiting.popleft()
            size = (request.end_sector - request.start_sector) * SECTOR_BYTES
            took_ns = self._command_ns + size * S // self._link
            self._linked_ns += took_ns
            self._link_free_ns = max(self._link_free_ns, self._env.now) + took_ns
            self._env.call_at(self._link_free_ns, self._rank, done)
            self._cached.add(request.start_sector, request.end_sector)
        while self._cached and self._draining < self._depth:
            self._drain()

    def _drain(self) -> None:
        # Ends at a multiple of `piece`: within a chunk, if `piece` divides it.
        start, end = self._cached.take(self._position, self._piece_sectors)
        boundary = (start // self._piece_sectors + 1) * self._piece_sectors
        if end > boundary:
            self._cached.add(boundary, end)
            end = boundary
        self._position = end
        self._draining += 1
        self._draining_sectors += end - start

        def drained() -> None:
            self._draining -= 1
            self._draining_sectors -= end - start
            self._admit()

        self._behind.submit(Piece(start, end, "W"), drained)


SPEC, COMPONENT = WriteCacheSpec, WriteCache
