"""IO-less dirty throttling (Linux 3.2 and later): writers sleep, flushers write.

Stands for balance_dirty_pages, bdi_position_ratio, bdi_update_bandwidth, bdi_min_pause, bdi_max_pause and
update_dirty_limit in mm/page-writeback.c of 3.11, in their integer arithmetic: times are jiffies, rates pages
per second.  Left out: strictlimit, NFS unstable pages, per-CPU ratelimits and the debts of exited tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from wbsim.models.factories import ThrottleFactory
from wbsim.models.interfaces import CongestionWait, Dirtier, Flushers, Thread, Throttle, Wb, WriteBack
from wbsim.models.page_cache.accounting import PageCache, Thresholds
from wbsim.models.page_cache.estimates import FlexShares, roundup_pow2
from wbsim.models.scheduler.cpu import sleep
from wbsim.models.throttling.spec import IoLessSpec
from wbsim.models.time_accounting import THROTTLED
from wbsim.models.tracepoints import Signals
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.units import PAGE_BYTES, S

POLL_PAGES: Final = 32  # DIRTY_POLL_THRESH, 128 KiB
EXCEEDED_POLL_PAGES: Final = 8  # 32 KiB
FIXED: Final = 10  # RATELIMIT_CALC_SHIFT


class PausedDirtier(Dirtier):
    """The account of one writer: current->nr_dirtied, nr_dirtied_pause and dirty_paused_when (jiffies)."""

    __slots__ = ("nr_dirtied", "nr_dirtied_pause", "paused_when")

    def __init__(self) -> None:
        self.nr_dirtied = 0
        self.nr_dirtied_pause = POLL_PAGES
        self.paused_when = 0

    def dirtied(self, pages: int) -> None:
        """See `Dirtier.dirtied`."""
        self.nr_dirtied += pages


class _Pause(NamedTuple):
    """A pause of ``jiffies`` jiffies, and the pages until the next check after it.

    ``is_last``: the task goes on after the pause, and does not look again.  ``start_ns``: its begin, in
    jiffies in spite of the name.
    """

    jiffies: int
    start_ns: int  # in jiffies
    next_pages: int
    is_last: bool


class Limit:
    """global_dirty_limit (pages), which follows a falling threshold slowly; all contexts share it."""

    __slots__ = ("_hz", "_stamp", "limit")

    def __init__(self, hz: int) -> None:
        self._hz = hz
        self.limit = 0
        self._stamp = 0

    def hard(self, thresholds: Thresholds) -> int:
        """Return the hard limit (pages): that of *thresholds*, or ``limit`` if that is higher."""
        return max(thresholds.limit, self.limit)

    def update(self, now: int, threshold: int, dirty_and_writeback: int) -> None:
        """Let ``limit`` (pages) follow *threshold* (pages), at most every 200 ms; *now* in jiffies.

        The limit rises at once, and falls slowly, but not below *dirty_and_writeback* pages.
        Stands for update_dirty_limit.
        """
        if now - self._stamp < self._hz // 5:
            return
        self._stamp = now
        if self.limit < threshold:
            self.limit = threshold
        else:
            floor = max(threshold, dirty_and_writeback)
            if self.limit > floor:
                self.limit -= (self.limit - floor) >> 5


class Control:
    """The control loop of one context: its estimates, and the rate limit of its writers.

    *share* returns the context's part of a threshold.
    """

    def __init__(
        self, wb: Wb, cache: PageCache, limit: Limit, spec: IoLessSpec, share: Callable[[int], int]
    ) -> None:
        self.wb = wb
        self._cache = cache
        self.limit = limit
        self._hz = spec.hz
        self._share = share
        self.bandwidth = wb.bandwidth
        self.bandwidth.start(spec.initial_bandwidth // PAGE_BYTES)

    def update(self, now: int, start: int, thresholds: Thresholds | None) -> None:
        """Update the estimates of the context, at most every 200 ms; *now* and *start* in jiffies.

        *start*: when the caller's slice or wait began.  The flusher passes no *thresholds*, which updates
        only the write bandwidth (bdi_update_bandwidth).
        """
        bandwidth, wb, cache = self.bandwidth, self.wb, self._cache
        elapsed = now - bandwidth.stamp
        if elapsed < self._hz // 5:
            return
        if not (elapsed > self._hz and bandwidth.stamp < start):
            if thresholds is not None:
                self.limit.update(now, thresholds.limit, cache.dirty_and_writeback)
                self._update_ratelimit(thresholds, elapsed)
            bandwidth.update_write(elapsed, wb.written_pages - bandwidth.written_stamp, self._hz)
        bandwidth.dirtied_stamp = wb.dirtied
        bandwidth.written_stamp = wb.written_pages
        bandwidth.stamp = now

    def position_ratio(self, thresholds: Thresholds) -> int:
        """Return by how much the rate of writers must change, in 10-bit fixed point: 1024 keeps the rate.

        0 from the hard limit on (bdi_position_ratio).
        """
        dirty_and_writeback, wb_dirty, avg_write = (
            self._cache.dirty_and_writeback,
            self.wb.dirty_and_writeback,
            self.bandwidth.avg_write,
        )
        limit = self.limit.hard(thresholds)
        if dirty_and_writeback >= limit:
            return 0
        setpoint = (thresholds.freerun + limit) // 2
        x = _shifted_quotient(setpoint - dirty_and_writeback, limit - setpoint + 1)
        ratio = (x * x >> FIXED) * x >> FIXED
        ratio = min(max(ratio + (1 << FIXED), 0), 2 << FIXED)
        # The control line of the context.
        share = max(self._share(thresholds.limit), (limit - dirty_and_writeback) // 8)
        x = (share << 16) // (thresholds.limit + 1)
        wb_setpoint = setpoint * x >> 16
        span = (thresholds.limit - share + 8 * avg_write) * x >> 16
        intercept = wb_setpoint + span
        if wb_dirty < intercept - span // 4:
            ratio = ratio * (intercept - wb_dirty) // (span + 1)
        else:
            ratio //= 4
        reserve = share // 2
        if wb_dirty < reserve:
            ratio = ratio * reserve // wb_dirty if wb_dirty > reserve // 8 else ratio * 8
        return ratio

    def max_pause(self) -> int:
        """Return the longest pause (jiffies), at most 200 ms (bdi_max_pause).

        The pause is shorter while few pages of the context are dirty.
        """
        divisor = 1 + self.bandwidth.avg_write // roundup_pow2(1 + self._hz // 8)
        return int(min(self.wb.dirty_and_writeback // divisor + 1, max(self._hz // 5, 1)))

    def min_pause(self, max_pause: int, task_ratelimit: int) -> tuple[int, int]:
        """Return the shortest useful pause (jiffies), and the pages until the next check after it.

        *max_pause* in jiffies, *task_ratelimit* in pages per s (bdi_min_pause).
        """
        hz, dirty_ratelimit = self._hz, self.bandwidth.dirty_ratelimit
        target = max(1, hz // 100)
        log_ratio = _ilog2(self.bandwidth.avg_write) - _ilog2(dirty_ratelimit)
        if log_ratio > 0:
            target += log_ratio * (10 * hz) // 1024
        target = min(target, 1 + max_pause // 2)
        divisor = roundup_pow2(hz)
        pages = dirty_ratelimit * target // divisor
        if pages < POLL_PAGES:
            target = max_pause
            pages = dirty_ratelimit * target // divisor
            if pages > POLL_PAGES:
                pages = POLL_PAGES
                target = hz * POLL_PAGES // dirty_ratelimit
        if hz * pages // (task_ratelimit + 1) > max_pause:
            target = max_pause
            pages = task_ratelimit * target // divisor
        return (1 + target // 2 if pages >= POLL_PAGES else target), pages

    def _update_ratelimit(self, thresholds: Thresholds, elapsed: int) -> None:
        bandwidth, dirty_and_writeback = self.bandwidth, self._cache.dirty_and_writeback
        setpoint = (thresholds.freerun + self.limit.hard(thresholds)) // 2
        current = bandwidth.dirty_ratelimit
        dirty_rate = (self.wb.dirtied - bandwidth.dirtied_stamp) * self._hz // elapsed
        task_ratelimit = (current * self.position_ratio(thresholds) >> FIXED) + 1
        balanced = min(task_ratelimit * bandwidth.avg_write // (dirty_rate | 1), bandwidth.avg_write)
        step = 0
        if dirty_and_writeback < setpoint:
            step = max(min(bandwidth.balanced_ratelimit, balanced, task_ratelimit) - current, 0)
        else:
            step = max(current - max(bandwidth.balanced_ratelimit, balanced, task_ratelimit), 0)
        # The step is smaller near the target, because the balanced rate itself fluctuates.
        step >>= min(current // (2 * step + 1), 63)
        step = (step + 7) // 8
        bandwidth.dirty_ratelimit = max(current + step if current < balanced else current - step, 1)
        bandwidth.balanced_ratelimit = balanced


class IoLessThrottle(Throttle):
    """balance_dirty_pages for the writers of all contexts."""

    _flushers: Flushers

    def __init__(
        self,
        *,
        env: Environment,
        spec: IoLessSpec,
        cache: PageCache,
        processors: int,
        signals: Signals,
    ) -> None:
        self._env = env
        self._spec = spec
        self._hz = spec.hz
        self._jiffy_ns = S // spec.hz
        self._cache = cache
        self._signals = signals
        self._limit = Limit(spec.hz)
        self._shares = FlexShares(env, cache.wbs)
        self.controls: dict[Wb, Control] = {}

    def dirtier(self) -> PausedDirtier:
        """See `Throttle.dirtier`."""
        return PausedDirtier()

    def share(self, wb: Wb, pages: int) -> int:
        """See `Throttle.share`."""
        return self._shares.share(wb, pages)

    def start(
        self, wbs: Sequence[Wb], flushers: Flushers, write_back: WriteBack, congestion_wait: CongestionWait
    ) -> None:
        """See `Throttle.start`."""
        self._flushers = flushers
        for wb in wbs:
            share = partial(self._shares.share, wb)
            self.controls[wb] = Control(wb, self._cache, self._limit, self._spec, share)

    def wrote(self, wb: Wb, since_ns: int) -> None:
        """See `Throttle.wrote`: wb_update_bandwidth."""
        self.controls[wb].update(self._env.now // self._jiffy_ns, since_ns // self._jiffy_ns, None)

    def poll_pages(self, wb: Wb, dirtier: PausedDirtier) -> int:
        """See `Throttle.poll_pages`."""
        if wb.dirty_exceeded:
            return min(dirtier.nr_dirtied_pause, EXCEEDED_POLL_PAGES)
        return dirtier.nr_dirtied_pause

    def balance(self, thread: Thread, wb: Wb, dirtier: PausedDirtier) -> Steps:
        """Let *thread* sleep as long as this task's share of the bandwidth demands.  Use: `yield from`.

        Below the thresholds the thread goes on at once.  Background writeback may start
        (balance_dirty_pages).
        """
        jiffy_ns = self._jiffy_ns
        start = self._env.now // jiffy_ns
        while (pause := self._pause(wb, dirtier, start)) is not None:
            # Timers fire on ticks: a pause of n jiffies ends at the n-th tick from the current one.
            until_ns = (self._env.now // jiffy_ns + pause.jiffies) * jiffy_ns
            wb.held_back_ns = self._env.now
            yield from sleep(thread.task, until_ns - self._env.now, THROTTLED)
            dirtier.paused_when = pause.start_ns + pause.jiffies
            dirtier.nr_dirtied = 0
            dirtier.nr_dirtied_pause = pause.next_pages
            if pause.is_last:
                break
        self._start_background(wb)

    def passes(self, wb: Wb, dirtier: PausedDirtier) -> bool:
        """See `Throttle.passes`."""
        passes = self._pause(wb, dirtier, self._env.now // self._jiffy_ns) is None
        self._start_background(wb)
        return passes

    def _start_background(self, wb: Wb) -> None:
        cache, flushers = self._cache, self._flushers
        if not flushers.in_progress(wb) and cache.dirty > cache.thresholds().background:
            flushers.start_background(wb)

    def _pause(self, wb: Wb, dirtier: PausedDirtier, start: int) -> _Pause | None:
        """Return the pause that a task must make which came at *start* (jiffies), or None."""
        cache, control, flushers = self._cache, self.controls[wb], self._flushers
        now, pages = self._env.now // self._jiffy_ns, dirtier.nr_dirtied
        thresholds, dirty = cache.thresholds(), cache.dirty_and_writeback
        if dirty <= thresholds.freerun:
            dirtier.paused_when = now
            dirtier.nr_dirtied = 0
            dirtier.nr_dirtied_pause = poll_interval(dirty, thresholds.limit)
            wb.dirty_exceeded = False
            return None
        if not flushers.in_progress(wb):
            flushers.start_background(wb)
        limit = thresholds.limit
        wb.dirty_exceeded = dirty > limit and wb.dirty_and_writeback > self.share(wb, limit)
        control.update(now, start, thresholds)
        task_ratelimit = control.bandwidth.dirty_ratelimit * control.position_ratio(thresholds) >> FIXED
        min_pause, next_pages = control.min_pause(max_pause := control.max_pause(), task_ratelimit)
        if task_ratelimit:
            period = pause = self._hz * pages // task_ratelimit
            if dirtier.paused_when:
                pause -= now - dirtier.paused_when
            if pause < min_pause:
                self.carry(dirtier, pause, period, now, pages)
                return None
            if pause > max_pause:
                now += min(pause - max_pause, max_pause)
                pause = max_pause
        else:
            pause = max_pause
        if self._signals.balance_dirty_pages.observers:
            self._signals.balance_dirty_pages.emit(
                limit=thresholds.limit, dirty=dirty, dirty_ratelimit=control.bandwidth.dirty_ratelimit,
                task_ratelimit=task_ratelimit, dirtied=pages, pause=pause,
            )  # fmt: skip
        return _Pause(pause, now, next_pages, bool(task_ratelimit))

    def carry(self, dirtier: PausedDirtier, pause: int, period: int, now: int, pages: int) -> None:
        """Settle the account of *dirtier*, whose pause is too short to be made: the next one makes up for it.

        *period*: the jiffies that its dirtied *pages* take at its rate limit.  *pause*: what is left of these
        at *now* (jiffies).  Below 0, the task has thought for longer than it should have slept.  If that is
        more than a second, this credit is dropped.  With a *period* of 0 the dirtied pages stay in the
        account, and only the next check comes later.
        """
        if pause < -self._hz:
            dirtier.paused_when = now
            dirtier.nr_dirtied = 0
        elif period:
            dirtier.paused_when += period
            dirtier.nr_dirtied = 0
        elif dirtier.nr_dirtied_pause <= pages:
            dirtier.nr_dirtied_pause += pages


def poll_interval(dirty_and_writeback: int, limit: int) -> int:
    """Return the pages that a writer dirties until its next check: more, the farther the *limit* is.

    *dirty_and_writeback* and *limit* are numbers of pages.  At the limit or above, the result is 1.

    >>> poll_interval(1_000, 5_096), poll_interval(5_000, 5_096)
    (64, 8)
    """
    return 1 << (_ilog2(limit - dirty_and_writeback) >> 1) if limit > dirty_and_writeback else 1


def _shifted_quotient(numerator: int, denominator: int) -> int:
    """Return div_s64(numerator << 10, denominator), which truncates toward zero.

    >>> _shifted_quotient(1, 3), _shifted_quotient(-1, 3)
    (341, -341)
    """
    quotient = (abs(numerator) << FIXED) // denominator
    return quotient if numerator >= 0 else -quotient


def _ilog2(value: int) -> int:
    return value.bit_length() - 1


SPEC = IoLessSpec
COMPONENT: ThrottleFactory = IoLessThrottle
