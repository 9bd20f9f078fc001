"""A flash drive: a link, a write cache in DRAM, channels that program pages.

A write completes when its data is in the cache.  The cache fills flash pages in the order of arrival,
wherever the data belongs (a log-structured translation layer), and programs them on its channels in turn.
Left out: reads, garbage collection (the drive is fresh), the indirection unit's read-modify-write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

from models.block.bio import Request
from sim.engine import Environment
from sim.param import Bytes, BytesPerS, Count, Ns, Spec
from sim.units import S, SECTOR_BYTES


class SsdSpec(Spec):
    """A flash drive.

    ``command_time`` occupies the link, ``latency`` does not; ``units`` are the planes that program at
    once (channels x dies x planes), each ``flash_page`` bytes in ``program_time``;
    ``protected``: the cache survives a power cut, so a flush needs no programming.
    """

    kind: Literal["ssd"] = "ssd"
    link: BytesPerS
    command_time: Ns
    latency: Ns
    cache: Bytes
    units: Count
    flash_page: Bytes
    program_time: Ns
    protected: bool


class Ssd:
    """One drive.  Everything is first come, first served, so a request's end is known when it comes."""

    def __init__(self, *, env: Environment, spec: SsdSpec, name: str) -> None:
        self._env = env
        self._spec = spec
        self._rank = env.next_rank()
        self._link_free_ns = 0
        self._units_free_ns: deque[int] = deque([0] * spec.units)
        self._programming: deque[int] = deque()  # when each flash page in the cache is programmed
        self._partial_bytes = 0
        self.written_bytes = 0

    def submit(self, request: Request, done: Callable[[], None]) -> None:
        """See `BlockDevice.submit`."""
        spec, now = self._spec, self._env.now
        size = (request.end_sector - request.start_sector) * SECTOR_BYTES
        start = self._link_free_ns if self._link_free_ns > now else now
        arrived = start + spec.command_time + size * S // spec.link
        cached = self._cache(size, arrived)
        self._link_free_ns = cached
        if "F" in request.op and not spec.protected and self._programming:
            cached = max(cached, self._programming[-1])
        self._env.call_at(cached + spec.latency, self._rank, done)

    def _cache(self, size: int, now: int) -> int:
        """Put *size* bytes into the cache at *now* or as soon as there is room; when they are in."""
        spec, programming, units = self._spec, self._programming, self._units_free_ns
        self.written_bytes += size
        while programming and programming[0] <= now:
            programming.popleft()
        self._partial_bytes += size
        while self._partial_bytes >= spec.flash_page:
            self._partial_bytes -= spec.flash_page
            if (len(programming) + 1) * spec.flash_page > spec.cache:
                now = max(now, programming.popleft())
            finished = max(units.popleft(), now) + spec.program_time
            units.append(finished)
            programming.append(finished)
        return now


SPEC, COMPONENT = SsdSpec, Ssd
