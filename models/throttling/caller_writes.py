"""Throttling to 3.1: the writer writes back.

Stands for balance_dirty_pages, balance_dirty_pages_ratelimited and task_dirty_limit of mm/page-writeback.c from
2.6.31 to 3.1.  One device that all writers use: its share of the thresholds is the whole.  A task's own limit is
lower, by up to an eighth, the more of the recent dirtying is its own: so who slept gets through before who just
wrote.  (mechanisms.md 3.2 does not have this; it is from memory of the source, [R].)  Left out: real-time tasks,
laptop mode, and that the pages between two checks are counted per processor, not per task.
"""

from __future__ import annotations

from typing import Final, Literal

from models.page_cache import PageCache
from models.seams import Signals, Submitter, Works, WriteBack
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
    """One writer: the pages since its last check, and what of it counts as recent, in which period."""

    __slots__ = ("nr_dirtied", "period", "recent")

    def __init__(self) -> None:
        self.nr_dirtied = 0
        self.recent = 0
        self.period = 0


class Proportions:
    """Floating proportions (lib/proportions.c): the shares of the tasks in what was dirtied lately.

    What is older counts half as much with every half period, which is one to two times the dirty limit.
    """

    def __init__(self, limit_pages: int) -> None:
        self._half_period = 1 << (1 + (limit_pages - 1).bit_length() - 1)
        self._events = 0

    def add(self, dirtier: Dirtier, pages: int) -> None:
        """*dirtier* dirtied *pages*."""
        self._events += pages
        self._age(dirtier)
        dirtier.recent += pages

    def lowered(self, limit: int, dirtier: Dirtier) -> int:
        """task_dirty_limit: the *limit* less up to an eighth."""
        self._age(dirtier)
        whole = self._half_period + self._events % self._half_period
        return limit - limit // 8 * dirtier.recent // whole

    def _age(self, dirtier: Dirtier) -> None:
        period = self._events // self._half_period
        dirtier.recent >>= min(period - dirtier.period, 63)
        dirtier.period = period


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
        self._proportions = Proportions(cache.thresholds().limit)

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
        self._proportions.add(dirtier, dirtier.nr_dirtied)
        dirtier.nr_dirtied = 0
        wrote, pause = 0, 1
        while True:
            thresholds = cache.thresholds()
            limit = self._proportions.lowered(thresholds.limit, dirtier)
            if cache.nr_dirty <= limit or cache.nr_dirty < thresholds.freerun:
                break
            self._exceeded = True
            if cache.dirty > limit:
                wrote += yield from self._write_back(submitter, chunk)
                if cache.nr_dirty <= limit:
                    break
            if wrote >= chunk:
                break
            yield from self._sleep(submitter, pause)
            pause = min(2 * pause, self._hz // 10)
        if cache.nr_dirty < limit:
            self._exceeded = False
        if not self._works.in_progress and cache.dirty > cache.thresholds().background:
            self._works.start_background()

    def _sleep(self, submitter: Submitter, jiffies: int) -> Steps:
        if self._signals.balance_dirty_pages.observers:
            self._signals.balance_dirty_pages.emit(dirty=self._cache.nr_dirty, pause=jiffies)
        until_ns = (self._env.now // self._jiffy_ns + jiffies) * self._jiffy_ns
        yield from self._processors.sleep(submitter.task, until_ns - self._env.now)


SPEC, COMPONENT = CallerWritesSpec, CallerWrites
