"""Throttling to 3.1: the writer writes back.

Stands for balance_dirty_pages, balance_dirty_pages_ratelimited and task_dirty_limit of mm/page-writeback.c,
2.6.29 to 3.1.

A task's limit is lowered by up to an eighth, in proportion to its share of the recent dirtying.  So a task
that slept passes before a task that wrote (docs/kernel/throttling.md#who-may-exceed-the-limits [R]).

Left out: real-time tasks and laptop mode.  The kernel counts the pages between two checks per processor, the
model counts them per task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wbsim.models.factories import ThrottleFactory
from wbsim.models.interfaces import CongestionWait, Dirtier, Flushers, Thread, Throttle, Wb, WriteBack
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.page_cache.estimates import EventShares, Member, Proportions
from wbsim.models.scheduler.cpu import sleep
from wbsim.models.throttling.spec import CallerWritesSpec
from wbsim.models.time_accounting import THROTTLED
from wbsim.models.tracepoints import Signals
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.units import PAGE_BYTES, S

EXCEEDED_POLL_PAGES: Final = 8
MAX_RATELIMIT_PAGES: Final = 1024  # 4 MiB


class RecentDirtier(Member, Dirtier):
    """The account of one writer: its pages since the last check (``nr_dirtied``) and its recent dirtying."""

    __slots__ = ("nr_dirtied",)

    def __init__(self) -> None:
        super().__init__()
        self.nr_dirtied = 0

    def dirtied(self, pages: int) -> None:
        """See `Dirtier.dirtied`."""
        self.nr_dirtied += pages


def lowered(limit: int, dirtiers: Proportions, dirtier: RecentDirtier) -> int:
    """Return *limit* (pages) less up to an eighth of it, by *dirtier*'s share of the recent dirtying.

    *dirtiers* counts the pages that all writers dirty.  The share is aged first (task_dirty_limit).
    """
    dirtiers.age(dirtier)
    return limit - limit // 8 * dirtier.recent // dirtiers.whole


class CallerWrites(Throttle):
    """balance_dirty_pages for the writers of all contexts."""

    _flushers: Flushers
    _write_back: WriteBack
    _congestion_wait: CongestionWait

    def __init__(
        self,
        *,
        env: Environment,
        spec: CallerWritesSpec,
        cache: PageCache,
        processors: int,
        signals: Signals,
    ) -> None:
        self._env = env
        self._hz = spec.hz
        self._initial_bandwidth = spec.initial_bandwidth
        self._jiffy_ns = S // spec.hz
        self._writes_any = spec.writes_back == "any"
        self._waits_for_queues = spec.waits == "congestion"
        self._cache = cache
        self._signals = signals
        pages = cache.total_pages // (32 * processors)
        self._ratelimit_pages = min(max(pages, 16), MAX_RATELIMIT_PAGES)
        limit = cache.thresholds().limit
        self._dirtiers = Proportions(limit)
        self._shares = EventShares(cache.wbs, limit)

    def start(
        self, wbs: Sequence[Wb], flushers: Flushers, write_back: WriteBack, congestion_wait: CongestionWait
    ) -> None:
        """See `Throttle.start`."""
        self._congestion_wait = congestion_wait
        self._flushers = flushers
        self._write_back = write_back
        for wb in wbs:
            wb.bandwidth.start((self._initial_bandwidth or 0) // PAGE_BYTES)

    def dirtier(self) -> RecentDirtier:
        """See `Throttle.dirtier`."""
        return RecentDirtier()

    def wrote(self, wb: Wb, since_ns: int) -> None:
        """See `Throttle.wrote`: bdi_update_bandwidth, at most every 200 ms; without estimates, nothing."""
        bandwidth, now, hz = wb.bandwidth, self._env.now // self._jiffy_ns, self._hz
        elapsed = now - bandwidth.stamp
        if self._initial_bandwidth is None or elapsed < hz // 5:
            return
        if not (elapsed > hz and bandwidth.stamp < since_ns // self._jiffy_ns):
            bandwidth.update_write(elapsed, wb.written_pages - bandwidth.written_stamp, hz)
        bandwidth.written_stamp = wb.written_pages
        bandwidth.stamp = now

    def share(self, wb: Wb, pages: int) -> int:
        """See `Throttle.share`: bdi_dirty_limit, at most what other contexts leave (clip_bdi_dirty_limit)."""
        rest = max(pages - self._cache.dirty_and_writeback, 0) + wb.dirty_and_writeback
        return min(self._shares.share(wb, pages), max(rest, 0)) if len(self._cache.wbs) > 1 else pages

    def poll_pages(self, wb: Wb, dirtier: RecentDirtier) -> int:
        """See `Throttle.poll_pages`."""
        return EXCEEDED_POLL_PAGES if wb.dirty_exceeded else self._ratelimit_pages

    def passes(self, wb: Wb, dirtier: RecentDirtier) -> bool:
        """See `Throttle.passes`: always False, because these kernels have no BDP_ASYNC."""
        return False

    def balance(self, thread: Thread, wb: Wb, dirtier: RecentDirtier) -> Steps:
        """Let *thread* write back 1.5 times the pages dirtied since the last check, or wait until others did.

        Use: `yield from`.  With fewer dirtied pages than the usual number between two checks, that number
        counts.  Below the limits the thread goes on at once.  Background writeback may start
        (balance_dirty_pages).
        """
        cache, flushers, start_ns = self._cache, self._flushers, self._env.now
        chunk = max(dirtier.nr_dirtied, self._ratelimit_pages) * 3 // 2
        self._dirtiers.add(dirtier, dirtier.nr_dirtied)
        dirtier.nr_dirtied = 0
        wrote, pause = 0, 1
        while True:
            thresholds = cache.thresholds()
            limit = lowered(self.share(wb, thresholds.limit), self._dirtiers, dirtier)
            if wb.dirty_and_writeback <= limit or cache.dirty_and_writeback < thresholds.freerun:
                break
            wb.dirty_exceeded = True
            self.wrote(wb, start_ns)
            if wb.dirty > (0 if self._writes_any else limit):
                wrote += yield from self._write_back(thread, wb, chunk)
                if wb.dirty_and_writeback <= limit:
                    break
            if wrote >= chunk:
                break
            if self._waits_for_queues:
                yield from self._congestion_wait(thread, S // 10)
                continue
            yield from self._sleep(thread, pause)
            pause = min(2 * pause, self._hz // 10)
        if wb.dirty_and_writeback < limit:
            wb.dirty_exceeded = False
        if not flushers.in_progress(wb) and cache.dirty > cache.thresholds().background:
            flushers.start_background(wb)

    def _sleep(self, thread: Thread, jiffies: int) -> Steps:
        if self._signals.balance_dirty_pages.observers:
            self._signals.balance_dirty_pages.emit(dirty=self._cache.dirty_and_writeback, pause=jiffies)
        until_ns = (self._env.now // self._jiffy_ns + jiffies) * self._jiffy_ns
        yield from sleep(thread.task, until_ns - self._env.now, THROTTLED)


SPEC = CallerWritesSpec
COMPONENT: ThrottleFactory = CallerWrites
