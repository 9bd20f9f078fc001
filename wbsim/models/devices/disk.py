"""A disk: a write cache of a few segments, which a head empties in sweeps, and reads.

A write takes a segment of the cache until it is on the platters.  It completes when it is in the cache; on a
disk without a cache, when it is on the platters.  Cached writes go to the platters in sweeps (C-LOOK), and
adjacent ones without a pause.  A read passes them; of several reads, the one that is soonest under the head
comes first.  `platters` has the time of each.

A shingled disk (`shingles`) writes to a band or to its media cache, which it empties when it is idle or full.

A flush waits until all earlier writes are on the platters, and so do the writes behind it.  A write with FUA
completes when it is on the platters.

Left out: reads from the cache and read-ahead, and reordering of writes by rotational position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from sortedcontainers import SortedDict

from wbsim.models.bio import DISCARD, READ, BlockDevice, Write
from wbsim.models.devices.in_order import InOrder
from wbsim.models.devices.link import Link
from wbsim.models.devices.platters import Platters
from wbsim.models.devices.shingles import Shingles
from wbsim.models.devices.spec import DiskSpec
from wbsim.models.factories import DeviceFactory
from wbsim.sim.engine import Environment
from wbsim.sim.units import MIB, SECTOR_BYTES

SWEEP_SECTORS: Final = MIB // SECTOR_BYTES
"""The largest write to the platters; after it, writes that have come since are taken into account."""


class Segment:
    """A write of sectors *start* to *end* in the cache; *done* is called when the last is on the platters."""

    __slots__ = ("done", "end", "start")

    def __init__(self, start: int, end: int, done: Callable[[], None] | None) -> None:
        self.start, self.end, self.done = start, end, done


class Disk(BlockDevice):
    """One spindle."""

    def __init__(self, *, env: Environment, spec: DiskSpec, name: str) -> None:
        self._env = env
        self._platters = Platters(spec)
        self._link = Link(env, spec.link)
        self._ends = InOrder(env)
        self._rank = env.next_rank()
        self._room_sectors, self._most_segments = spec.cache // SECTOR_BYTES, spec.segments
        self._keeps = spec.cache > 0
        self._writes: deque[tuple[Write, Callable[[], None]]] = deque()  # writes that are not in the cache
        self._reads: list[tuple[Write, Callable[[], None]]] = []
        self._cached: SortedDict[tuple[int, int], Segment] = SortedDict()  # by first sector and number
        self._number = self._sectors = 0  # of all segments so far, and of the cached sectors
        self._moving: list[Segment] = []  # the segments under the head, of which the last may stay
        self._sweep_end = 0
        self._busy = False
        self._busy_ns = self._jobs = 0  # the head's time, and how often it began to do something
        self._shingles: Shingles | None = None
        if spec.shingles is not None:
            self._shingles, self._clean_after_ns = Shingles(spec.shingles), spec.shingles.clean_after

    def uses(self) -> dict[str, float]:
        """Return how long (ns) the head was used so far, under the name ``head``; see `BlockDevice.uses`."""
        return {"head": self._busy_ns - max(self._platters.passed_ns - self._env.now, 0)}

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """Start *request*, and return at once; *done* is called when *request* completes."""
        if request.op == READ:
            self._reads.append((request, done))
        elif request.op == DISCARD:
            self._ends.add(self._link.take(0), done)
        else:
            self._writes.append((request, done))
        self._go_on()

    def _go_on(self) -> None:
        self._admit()
        if not self._busy:
            if self._reads:
                self._read()
            elif self._cached:
                self._sweep()
            elif self._shingles is not None and self._shingles.filled:
                self._env.call_at(
                    self._env.now + self._clean_after_ns, self._rank, partial(self._clean_if_idle, self._jobs)
                )

    def _admit(self) -> None:
        """Take waiting writes into the cache while it has room; an empty cache takes any write."""
        while self._writes:
            request, done = self._writes[0]
            start, end = request.start_sector, request.end_sector
            segments = len(self._cached) + len(self._moving)
            flushes = self._keeps and request.op == "F"
            if segments and (flushes or self._is_full(end - start, segments)):
                break
            self._writes.popleft()
            in_cache_ns = self._link.take(end - start)
            on_platters = end > start and ("F" in request.op or not self._keeps)
            if not on_platters:
                self._ends.add(in_cache_ns, done)
            if end > start:
                self._number += 1
                self._sectors += end - start
                segment = Segment(start, end, done if on_platters else None)
                self._cached[start, self._number] = segment

    def _is_full(self, sectors: int, segments: int) -> bool:
        """Return whether *sectors* more do not fit while *segments* segments are in use."""
        if not self._keeps:
            return False
        return segments >= self._most_segments or self._sectors + sectors > self._room_sectors

    def _read(self) -> None:
        """Serve the read that is soonest under the head."""
        now, platters = self._env.now, self._platters
        times = [platters.positioning_ns(request.start_sector, now) for request, _ in self._reads]
        request, done = self._reads.pop(times.index(min(times)))
        self._occupy(request.start_sector, request.end_sector, done)

    def _sweep(self) -> None:
        """Write the next cached sectors, from the head's position on, or from the first ones (C-LOOK)."""
        cached = self._cached
        place = cached.bisect_left((self._platters.head, -1))
        first = place = place if place < len(cached) else 0
        start, end = cached.peekitem(place)[1].start, 0
        while place < len(cached) and (segment := cached.peekitem(place)[1]).start <= max(end, start):
            self._moving.append(segment)
            end = max(end, segment.end)
            place += 1
            if end - start >= SWEEP_SECTORS:
                break
        for _ in range(place - first):
            cached.popitem(first)
        self._sweep_end = min(end, start + SWEEP_SECTORS)
        self._go_to_platters(start)

    def _go_to_platters(self, start: int) -> None:
        """Write the sectors of the sweep, which begins at *start*, where they belong."""
        end, place = self._sweep_end, start
        if self._shingles is not None:
            room = self._shingles.place(start, end)
            if room is None:
                self._clean(partial(self._go_to_platters, start))
                return
            place = room
        self._occupy(place, place + end - start, self._end_sweep)

    def _clean_if_idle(self, jobs: int) -> None:
        """Clean a band if the head has done nothing since it began its work number *jobs*."""
        if jobs == self._jobs and not self._busy:
            self._clean(lambda: None)

    def _clean(self, done: Callable[[], None]) -> None:
        """Read a band, write it again, and call *done*."""
        assert self._shingles is not None
        band = self._shingles.clean()
        if band is None:
            done()
            return
        start, end = band
        self._occupy(start, end, lambda: self._occupy(start, end, done))

    def _end_sweep(self) -> None:
        """Free the segments that are on the platters; the rest of a long one stays in the cache."""
        end, segments = self._sweep_end, self._moving
        self._moving = []
        for segment in segments:
            self._sectors -= min(segment.end, end) - segment.start
            if segment.end > end:
                segment.start = end
                self._number += 1
                self._cached[end, self._number] = segment
            elif segment.done is not None:
                segment.done()

    def _occupy(self, start: int, end: int, done: Callable[[], None]) -> None:
        """Let sectors *start* to *end* pass under the head, and call *done* then."""
        self._busy = True
        self._jobs += 1
        now = self._env.now
        end_ns = self._platters.transfer(start, end, now)
        self._busy_ns += end_ns - now

        def passed() -> None:
            self._busy = False
            done()
            self._go_on()

        self._env.call_at(end_ns, self._rank, passed)


SPEC = DiskSpec
COMPONENT: DeviceFactory = Disk
