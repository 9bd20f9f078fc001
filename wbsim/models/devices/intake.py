"""The way into a write cache: a link with one write at a time, and a wait for room."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from wbsim.models.bio import Write
from wbsim.models.devices.cached_runs import CachedRuns
from wbsim.models.devices.in_order import InOrder
from wbsim.sim.engine import Environment
from wbsim.sim.units import SECTOR_BYTES, S


class Intake:
    """Writes that come to a cache of *room* bytes over a *link* (B/s).

    A write completes when it is in the cache.  Each write takes *command_ns* (ns) in addition to its
    transfer.  ``cached``: the sectors that the cache holds.
    """

    def __init__(self, env: Environment, room: int, link: int, command_ns: int = 0) -> None:
        self._env = env
        self._room_sectors = room // SECTOR_BYTES
        self._link = link
        self._command_ns = command_ns
        self._free_ns = self._linked_ns = 0
        self._waiting: deque[tuple[Write, Callable[[], None]]] = deque()
        self._ends = InOrder(env)
        self.cached = CachedRuns()

    @property
    def busy_ns(self) -> int:
        """The time that the link was in use until now."""
        return self._linked_ns - max(self._free_ns - self._env.now, 0)

    def add(self, request: Write, done: Callable[[], None]) -> None:
        """Let *request* wait behind all others; call `admit` next."""
        self._waiting.append((request, done))

    def admit(self, draining: int = 0) -> None:
        """Take what waits while there is room next to *draining* sectors; an empty cache takes anything."""
        while self._waiting:
            request, done = self._waiting[0]
            held, sectors = self.cached.sectors + draining, request.end_sector - request.start_sector
            if held and held + sectors > self._room_sectors:
                break
            self._waiting.popleft()
            took_ns = self._command_ns + sectors * SECTOR_BYTES * S // self._link
            self._linked_ns += took_ns
            self._free_ns = max(self._free_ns, self._env.now) + took_ns
            self._ends.add(self._free_ns, done)
            self.cached.add(request.start_sector, request.end_sector)
