"""Throttling to 3.1: the writer writes back.

Stands for balance_dirty_pages and balance_dirty_pages_ratelimited of mm/page-writeback.c from 2.6.31 to 3.1.  One device
that all writers use: its share of the thresholds is the whole.  Left out: real-time tasks, laptop mode, and that the pages
between two checks are counted per processor, not per task.
"""

from __future__ import annotations

from typing import Final, Literal

from models.page_cache import PageCache
from models.seams import Signals, Submitter, WriteBack, Works
from sim.cpu import Processors
from sim.engine import Environment, Steps
from sim.param import Count, Spec
from sim.units import S

EXCEEDED_POLL_PAGES: Final = 8
MAX_RATELIMIT_PAGES: Final = 1024  # 4 MiB


class CallerWritesSpec(Spec):
    """``hz``: CONFIG_HZ."""

    kind: Literal["caller_writes"] = "caller_writes"
    hz: Count


class Dirtier:
    """One writer: the pages since its last check."""

    __slots__ = ("nr_dirtied",)

    def __init__(self) -> None:
        self.nr_dirtied = 0


class CallerWrites:
    """balance_dirty_pages for the writers of one device."""

    def __init__(
        self,
        *,
        env: Environment,
        spec: CallerWritesSpec,
        cache: PageCache,
        works: Works,
        write_back: WriteBack,
        processors: Processors,
        signals: Signals,
    ) -> None:
        self._env = env
        self._hz = spec.hz
        self._jiffy_ns = S // spec.hz
        self._cache = cache
        self._works = works
        self._write_back = write_back
        self._processors = processors
        self._signals = signals
        pages = cache.total_pages // (32 * processors.count)
        self._ratelimit_pages = min(max(pages, 16), MAX_RATELIMIT_PAGES)
        self._exceeded = False

    @property
    def avg_write_pages_per_s(self) -> int:
        """See `Throttle`; these eras estimate none."""
        raise AssertionError("no bandwidth is estimated before 3.1: give the kernel a quota of pages")

    def dirtier(self) -> Dirtier:
        """See `Throttle`."""
        return Dirtier()

    def wrote(self, since_ns: int) -> None:
        """See `Throttle`; nothing is estimated."""

    def poll_pages(self, dirtier: Dirtier) -> int:
        """See `Throttle`."""
        return EXCEEDED_POLL_PAGES if self._exceeded else self._ratelimit_pages

    def balance(self, submitter: Submitter, dirtier: Dirtier) -> Steps:
        """balance_dirty_pages: write back one and a half times what was dirtied, or wait until others have."""
        cache = self._cache
        chunk = max(dirtier.nr_dirtied, self._ratelimit_pages) * 3 // 2
        dirtier.nr_dirtied = 0
        wrote, pause = 0, 1
        while True:
            thresholds = cache.thresholds()
            if cache.nr_dirty < thresholds.freerun:
                break
            self._exceeded = cache.nr_dirty > thresholds.limit
            if not self._exceeded:
                break
            if cache.dirty > thresholds.limit:
                wrote += yield from self._write_back(submitter, chunk)
                if cache.nr_dirty <= thresholds.limit:
                    break
            if wrote >= chunk:
                break
            yield from self._sleep(submitter, pause)
            pause = min(2 * pause, self._hz // 10)
        self._exceeded = self._exceeded and cache.nr_dirty >= cache.thresholds().limit
        if not self._works.in_progress and cache.dirty > cache.thresholds().background:
            self._works.start_background()

    def _sleep(self, submitter: Submitter, jiffies: int) -> Steps:
        if self._signals.balance_dirty_pages.observers:
            self._signals.balance_dirty_pages.emit(dirty=self._cache.nr_dirty, pause=jiffies)
        self._processors.leave(submitter.task)
        yield (self._env.now // self._jiffy_ns + jiffies) * self._jiffy_ns - self._env.now
        ready = self._processors.enter(submitter.task)
        if ready is not None:
            yield ready


SPEC, COMPONENT = CallerWritesSpec, CallerWrites
