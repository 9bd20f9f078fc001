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
from sim.units import PAGE_BYTES, SECTOR_BYTES, S


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
        self._rank = env.next_rank()
        self._link = spec.link
        self._command_ns = spec.command_time
        self._latency_ns = spec.latency
        self._flash_page = spec.flash_page
        self._cache_pages = spec.cache // spec.flash_page
        self._program_ns = spec.program_time
        self._volatile = not spec.protected
        self._link_free_ns = 0
        self._units_free_ns: deque[int] = deque([0] * spec.units)
        self._programming: deque[int] = deque()  # when each flash page in the cache is programmed
        self._partial_bytes = 0

    def submit(self, request: Request, done: Callable[[], None]) -> None:
        """See `BlockDevice.submit`."""
        cached = self._take(1, (request.end_sector - request.start_sector) * SECTOR_BYTES)
        if self._volatile and "F" in request.op and self._programming:
            cached = max(cached, self._programming[-1])
        self._env.call_at(cached + self._latency_ns, self._rank, done)

    def submit_batch(self, requests: int, pages: int, done: Callable[[], None]) -> None:
        """See `BatchDevice.submit_batch`."""
        self._env.call_at(self._take(requests, pages * PAGE_BYTES) + self._latency_ns, self._rank, done)

    def _take(self, commands: int, size: int) -> int:
        """When *size* bytes that come in so many *commands* are in the cache."""
        now = self._env.now
        start = self._link_free_ns if self._link_free_ns > now else now
        cached = start + commands * self._command_ns + size * S // self._link
        self._partial_bytes += size
        if self._partial_bytes >= self._flash_page:
            cached = self._program(cached)
        self._link_free_ns = cached
        return cached

    def _program(self, now: int) -> int:
        """Program the flash pages that are complete at *now*; when all of them have found room."""
        programming, units = self._programming, self._units_free_ns
        while programming and programming[0] <= now:
            programming.popleft()
        while self._partial_bytes >= self._flash_page:
            self._partial_bytes -= self._flash_page
            if len(programming) >= self._cache_pages:
                now = max(now, programming.popleft())
            finished = max(units.popleft(), now) + self._program_ns
            units.append(finished)
            programming.append(finished)
        return now


SPEC, COMPONENT = SsdSpec, Ssd
