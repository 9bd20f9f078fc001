"""A flash drive: a link, a write cache in DRAM, channels that program pages.

A write completes when its data is in the cache.  The cache fills flash pages in the order of arrival, for any
address (a log-structured translation layer), and programs them on its channels in turn.  If an entry of the
map covers an indirection unit, a write of a part of a unit programs the complete unit.  If the next write
continues in the unit, the unit is programmed once.  The read of the rest of the unit is assumed to hide
behind the programming.  A read takes time on the link, and waits for nothing else.

Left out: reads that wait for programming, garbage collection (the drive is fresh), and joining of writes that
do not follow each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from wbsim.models.bio import READ, BlockDevice, Write
from wbsim.models.devices.in_order import InOrder
from wbsim.models.devices.spec import SsdSpec
from wbsim.models.factories import DeviceFactory
from wbsim.sim.engine import Environment
from wbsim.sim.fifo import Fifo
from wbsim.sim.units import SECTOR_BYTES, S


class Ssd(BlockDevice):
    """One drive.

    Requests are served in the order of arrival, so the end of a request is known when it arrives.
    ``latency_ns`` passes between the last transfer of a write and its end.
    """

    def __init__(self, *, env: Environment, spec: SsdSpec, name: str) -> None:
        self._env = env
        self._ends = InOrder(env)
        self._link = spec.link
        self._command_ns = spec.command_time
        self.latency_ns = spec.latency
        self._flash_page = spec.flash_page
        self._cache_pages = spec.cache // spec.flash_page
        self._program_ns, self._read_ns = spec.program_time, spec.read_time
        self._loses_cache = not spec.protected
        self._link_free_ns = self._linked_ns = self._programmed = 0
        self._units_free_ns, self._next_unit = [0] * spec.units, 0
        # The times at which flash pages are programmed: of all pages that hold room in the cache, and of the
        # pages that are not programmed by now.
        self._programming: Fifo[int] = Fifo()
        self._finishing: Fifo[int] = Fifo()
        self._partial_bytes = 0
        self._stalls: deque[tuple[int, int]] = deque()  # (begin, end) of the waits for room in the cache
        self._unit_sectors = 0 if spec.indirection_unit is None else spec.indirection_unit // SECTOR_BYTES
        self._last_sector = 0

    def uses(self) -> dict[str, float]:
        """See `BlockDevice.uses`; all channels together are one part."""
        now, program_ns = self._env.now, self._program_ns
        to_come_ns = sum(min(end - now, program_ns) for end in self._finishing.items() if end > now)
        stalled_ns = sum(end - max(begin, now) for begin, end in self._stalls if end > now)
        return {
            "link": self._linked_ns - max(self._link_free_ns - now, 0) + stalled_ns,
            "flash": (self._programmed * program_ns - to_come_ns) / len(self._units_free_ns),
        }

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """See `BlockDevice.submit`."""
        size = programmed = (request.end_sector - request.start_sector) * SECTOR_BYTES
        if request.op == READ:
            self._env.call_at(self._take(size, 0) + self._read_ns, self._ends.rank, done)
            return
        if self._unit_sectors:
            programmed = self._whole_units(request.start_sector, request.end_sector)
        cached = self._take(size, programmed)
        if self._loses_cache and "F" in request.op:
            programmed_ns = self._programming.last() if len(self._programming) else cached
            self._env.call_at(max(cached, programmed_ns) + self.latency_ns, self._ends.rank, done)
        else:
            self._ends.add(cached + self.latency_ns, done)

    def _whole_units(self, start: int, end: int) -> int:
        """Return the bytes that flash programs for a write of sectors *start* to *end*.

        If the write continues in the unit in which the last write ended, this unit is not counted again.
        """
        unit = self._unit_sectors
        went_on = start == self._last_sector and start % unit > 0
        self._last_sector = end
        return ((end - 1) // unit - start // unit + 1 - went_on) * unit * SECTOR_BYTES

    def _take(self, size: int, programmed: int) -> int:
        """Return when *size* bytes of a command are in the cache (ns); flash programs *programmed* bytes."""
        now = self._env.now
        start = self._link_free_ns if self._link_free_ns > now else now
        took_ns = self._command_ns + size * S // self._link
        self._linked_ns += took_ns
        cached = start + took_ns
        self._partial_bytes += programmed
        if self._partial_bytes >= self._flash_page:
            cached = self._program(cached)
            if cached > start + took_ns:
                self._stall(start + took_ns, cached)
        self._link_free_ns = cached
        return cached

    def _stall(self, begin: int, end: int) -> None:
        """Record that the link waits for room in the cache from *begin* to *end*."""
        while self._stalls and self._stalls[0][1] <= self._env.now:
            self._stalls.popleft()
        self._stalls.append((begin, end))

    def _program(self, now: int) -> int:
        """Program the flash pages that are complete at *now*; return when all of them have room (ns)."""
        programming, finishing, units = self._programming, self._finishing, self._units_free_ns
        while len(programming) and programming.first() <= now:
            programming.take()
        while len(finishing) and finishing.first() <= self._env.now:
            finishing.take()
        while self._partial_bytes >= self._flash_page:
            self._partial_bytes -= self._flash_page
            if len(programming) >= self._cache_pages:
                now = max(now, programming.take())
            end_ns = max(units[self._next_unit], now) + self._program_ns
            units[self._next_unit] = end_ns
            self._next_unit += 1
            if self._next_unit == len(units):
                self._next_unit = 0
            self._programmed += 1
            programming.add(end_ns)
            finishing.add(end_ns)
        return now


SPEC = SsdSpec
COMPONENT: DeviceFactory = Ssd
