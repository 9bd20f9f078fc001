"""The way into a write cache: a link with one write at a time, a wait for room, and the cached sectors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from sortedcontainers import SortedDict

from wbsim.models.bio import Write
from wbsim.models.devices.in_order import InOrder
from wbsim.models.devices.link import Link
from wbsim.sim.engine import Environment
from wbsim.sim.units import SECTOR_BYTES


class CachedRuns:
    """The sectors in a write cache, as runs that do not touch each other and leave in sweeps.  Pure.

    ``sectors`` is the number of sectors in all runs.  The end of a run is exclusive.
    """

    def __init__(self) -> None:
        self._runs: SortedDict[int, int] = SortedDict()  # first sector -> the sector behind the last
        self.sectors = 0

    def add(self, start: int, end: int) -> None:
        """Add sectors *start* to *end*; they replace cached sectors that they overwrite."""
        runs = self._runs
        place = max(runs.bisect_right(start) - 1, 0)
        while place < len(runs):
            first, run_end = runs.peekitem(place)
            if first > end:
                break
            if run_end < start:
                place += 1
                continue
            start, end = min(start, first), max(end, run_end)
            del runs[first]
            self.sectors -= run_end - first
        runs[start] = end
        self.sectors += end - start

    def take(self, position: int, at_most: int) -> tuple[int, int]:
        """Remove up to *at_most* sectors from the start of the next run; return their start and end (C-LOOK).

        The next run is the first that starts at *position* or behind it; without such a run, the first of
        all.

        >>> runs = CachedRuns()
        >>> runs.add(0, 8)
        >>> runs.add(100, 120)
        >>> runs.take(90, at_most=16), runs.take(120, at_most=16)
        ((100, 116), (0, 8))

        Raises:
            IndexError: nothing is cached.
        """
        runs = self._runs
        place = runs.bisect_left(position)
        start, end = runs.peekitem(place if place < len(runs) else 0)
        del runs[start]
        piece_end = min(end, start + at_most)
        if piece_end < end:
            runs[piece_end] = end
        self.sectors -= piece_end - start
        return start, piece_end

    def __bool__(self) -> bool:
        return bool(self._runs)


class Intake:
    """Writes that come to a cache of *room* bytes over a *link* (B/s).

    A write completes when it is in the cache.  Each write takes *command_ns* in addition to its transfer.
    ``cached`` has the sectors in the cache.
    """

    def __init__(self, env: Environment, room: int, link: int, command_ns: int = 0) -> None:
        self._room_sectors = room // SECTOR_BYTES
        self._link = Link(env, link, command_ns)
        self._writes: deque[tuple[Write, Callable[[], None]]] = deque()
        self._ends = InOrder(env)
        self.cached = CachedRuns()

    @property
    def busy_ns(self) -> int:
        """The time (ns) that the link was in use until now."""
        return self._link.busy_ns

    def add(self, request: Write, done: Callable[[], None]) -> None:
        """Put *request* at the end of the queue; *done* is called when it is in the cache.

        Call `admit` next, because a write may fit at once.
        """
        self._writes.append((request, done))

    def admit(self, draining: int = 0) -> None:
        """Let waiting writes onto the link while they fit; an empty cache takes any write.

        *draining*: the sectors that are on their way out, and still take room.  Call this again when they
        have left.
        """
        while self._writes:
            request, done = self._writes[0]
            contents, sectors = self.cached.sectors + draining, request.end_sector - request.start_sector
            if contents and contents + sectors > self._room_sectors:
                break
            self._writes.popleft()
            self._ends.add(self._link.take(sectors), done)
            if sectors:
                self.cached.add(request.start_sector, request.end_sector)
