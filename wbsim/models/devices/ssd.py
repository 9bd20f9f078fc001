"""A flash drive: a link, a write cache in DRAM, planes that program pages.

A write completes when its data is in the cache.  The cache fills flash pages in the order of arrival, for any
address, and programs them on the planes in turn.  A page keeps its room in the cache until it is programmed.
`ftl` says what is programmed in addition, and `slc` which pages are programmed faster.

A flush of a volatile cache programs the page that is not full, too, and waits for the end of all programs.
A read waits for the plane that it reads.

Left out: joining of writes that do not follow each other, and reads that the cache could serve.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from wbsim.models.bio import DISCARD, READ, BlockDevice, Write
from wbsim.models.devices.ftl import Ftl, Units
from wbsim.models.devices.in_order import InOrder
from wbsim.models.devices.planes import Planes
from wbsim.models.devices.slc import SlcPart
from wbsim.models.devices.spec import SsdSpec
from wbsim.models.factories import DeviceFactory
from wbsim.sim.engine import Environment
from wbsim.sim.fifo import Fifo
from wbsim.sim.units import PAGE_BYTES, SECTOR_BYTES, S


class Ssd(BlockDevice):
    """One drive; *random* draws which pages become garbage.

    Requests are served in the order of arrival, so the end of a request is known when it arrives.
    ``latency_ns`` passes between the last transfer of a write and its end.
    """

    def __init__(
        self, *, env: Environment, spec: SsdSpec, name: str, random: np.random.Generator | None = None
    ) -> None:
        self._env = env
        self._ends = InOrder(env)
        self._link = spec.link
        self._command_ns = spec.command_time
        self.latency_ns = spec.latency
        self._flash_page = spec.flash_page
        self._cache_pages = spec.cache // spec.flash_page
        self._read_ns = spec.read_time
        self._loses_cache, self._flush_ns = not spec.protected, spec.flush_time or 0
        self._link_free_ns = self._linked_ns = 0
        self._planes = Planes(env, spec.units, spec.program_time, spec.suspend_time)
        self._move_ns = spec.read_time + spec.program_time
        self._programming: Fifo[int] = Fifo()  # the ends of the programs of all pages with room in the cache
        self._partial_bytes = self._moving_bytes = self._programmed_ns = 0
        self._pages = 0  # flash pages that were programmed, except folded ones
        self._stalls: deque[tuple[int, int]] = deque()  # (begin, end) of the waits for room in the cache
        self._units = None if spec.indirection_unit is None else Units(spec.indirection_unit)
        self._ftl: Ftl | None = None
        if spec.ftl is not None:
            assert random is not None, "a drive with an FTL gets random numbers"
            self._ftl = Ftl(spec.ftl, spec.size or 0, spec.indirection_unit or PAGE_BYTES, random)
            self._erase_ns = spec.ftl.erase_time
        self._slc: SlcPart | None = None
        if spec.slc is not None:
            fill = _empty if self._ftl is None else self._ftl.fill
            self._slc = SlcPart(spec.slc, self._planes, spec.flash_page, self._move_ns, fill)

    def uses(self) -> dict[str, float]:
        """Return how long (ns) the ``link`` and the ``flash`` were used so far, by these names.

        The use of the flash is the mean over all planes.  The use of the link is that of commands and
        transfers, without waits for room in the cache.
        """
        now = self._env.now
        stalled_ns = sum(end - max(begin, now) for begin, end in self._stalls if end > now)
        return {
            "link": self._linked_ns - max(self._link_free_ns - now, 0) + stalled_ns,
            "flash": self._planes.used_ns,
        }

    def programmed_bytes(self) -> int:
        """Return how many bytes the flash programmed so far, with those that were moved or folded."""
        folded = 0 if self._slc is None else self._slc.folded
        return self._pages * self._flash_page + folded

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """Start *request*, and return at once; *done* is called when *request* completes."""
        start, end = request.start_sector, request.end_sector
        size = programmed = (end - start) * SECTOR_BYTES
        if request.op == READ:
            plane = start * SECTOR_BYTES // self._flash_page
            end_ns = self._planes.read(plane, self._take(size, 0), self._read_ns)
            self._env.call_at(end_ns, self._ends.rank, done)
            return
        if request.op == DISCARD:
            if self._ftl is not None:
                self._ftl.discard(start, end)
            self._ends.add(self._take(0, 0) + self.latency_ns, done)
            return
        if self._ftl is not None:
            programmed, erasures = self._ftl.write(start, end)
            for _ in range(erasures):
                self._planes.do(self._env.now, self._erase_ns)
        elif self._units is not None:
            programmed = self._units.filled(start, end)[1] * self._units.unit_bytes
        cached = self._take(size, programmed)
        if self._loses_cache and "F" in request.op:
            self._env.call_at(self._flush(cached) + self.latency_ns, self._ends.rank, done)
        else:
            self._ends.add(cached + self.latency_ns, done)

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
        """Record that the link waits for room in the cache from *begin* to *end* (ns), for `uses`."""
        while self._stalls and self._stalls[0][1] <= self._env.now:
            self._stalls.popleft()
        self._stalls.append((begin, end))

    def _program(self, now: int) -> int:
        """Program the flash pages that are complete at *now*; return when all of them have room (ns)."""
        programming = self._programming
        while len(programming) and programming.first() <= now:
            programming.take()
        while self._partial_bytes >= self._flash_page:
            self._partial_bytes -= self._flash_page
            if len(programming) >= self._cache_pages:
                now = max(now, programming.take())
            end_ns = self._program_page(now)
            programming.add(end_ns)
            if end_ns > self._programmed_ns:  # faster than max, which mypyc calls through Python
                self._programmed_ns = end_ns
        return now

    def _program_page(self, now: int) -> int:
        """Program a page of the host, not before *now*, and what is moved with it; return its end (ns)."""
        planes = self._planes
        self._pages += 1
        if self._ftl is not None:
            self._moving_bytes += self._ftl.moved_with(self._flash_page)
            while self._moving_bytes >= self._flash_page:
                self._moving_bytes -= self._flash_page
                planes.do(now, self._move_ns)
                self._pages += 1
        return planes.program(now) if self._slc is None else self._slc.program(now)

    def _flush(self, now: int) -> int:
        """Return when all that is in the cache at *now* is programmed (ns)."""
        if self._partial_bytes:
            self._partial_bytes = self._flash_page
            now = self._program(now)
        return max(now, self._programmed_ns) + self._flush_ns


def _empty() -> float:
    """Return the fill of a drive without a map."""
    return 0.0


SPEC = SsdSpec
COMPONENT: DeviceFactory = Ssd
