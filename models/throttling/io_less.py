"""IO-less dirty throttling (Linux 3.2 and later): writers sleep, flushers write.

Stands for balance_dirty_pages, bdi_position_ratio, bdi_update_bandwidth, bdi_min_pause, bdi_max_pause and
update_dirty_limit in mm/page-writeback.c of 3.11, in their integer arithmetic: times are jiffies, rates pages
per second.  One device that all writers use: its share of the thresholds is the whole.  Left out:
strictlimit, NFS unstable pages, per-CPU ratelimits and the debts of exited tasks.
"""

from __future__ import annotations

from typing import Final, Literal

from models.page_cache import PageCache, Thresholds
from models.seams import Signals, Submitter, Works, WriteBack
from sim.cpu import Processors
from sim.engine import Environment, Steps
from sim.param import BytesPerS, Count, Spec
from sim.units import PAGE_BYTES, S

POLL_PAGES: Final = 32  # DIRTY_POLL_THRESH, 128 KiB
EXCEEDED_POLL_PAGES: Final = 8  # 32 KiB
FIXED: Final = 10  # RATELIMIT_CALC_SHIFT


class IoLessSpec(Spec):
    """``hz``: CONFIG_HZ; ``initial_bandwidth``: INIT_BW, 100 MiB/s."""

    kind: Literal["io_less"] = "io_less"
    hz: Count
    initial_bandwidth: BytesPerS


class Dirtier:
    """One writer: what current->nr_dirtied and its companions hold; pauses are in jiffies."""

    __slots__ = ("nr_dirtied", "nr_dirtied_pause", "paused_when")

    def __init__(self) -> None:
        self.nr_dirtied = 0
        self.nr_dirtied_pause = POLL_PAGES
        self.paused_when = 0


class Bandwidth:
    """The estimates of one bdi and the rate that each of its writers is held to."""

    def __init__(self, spec: IoLessSpec) -> None:
        bandwidth = spec.initial_bandwidth // PAGE_BYTES
        self._hz = spec.hz
        self._dirtied_stamp = 0
        self._written_stamp = 0
        self._stamp = 0
        self._balanced_ratelimit = bandwidth
        self._limit_stamp = 0
        self._global_limit = 0
        self.write = bandwidth
        self.avg_write = bandwidth
        self.dirty_ratelimit = bandwidth

    def hard_limit(self, thresholds: Thresholds) -> int:
        """hard_dirty_limit: the limit that follows a falling threshold slowly."""
        return max(thresholds.limit, self._global_limit)

    def update(self, now: int, start: int, cache: PageCache, thresholds: Thresholds | None) -> None:
        """bdi_update_bandwidth, at most every 200 ms; *now* and *start* in jiffies.

        The flusher calls it without *thresholds* and so moves the write bandwidth alone.
        """
        elapsed = now - self._stamp
        if elapsed < self._hz // 5:
            return
        if not (elapsed > self._hz and self._stamp < start):
            if thresholds is not None:
                self._update_limit(now, thresholds.limit, cache.nr_dirty)
                self._update_ratelimit(cache, thresholds, elapsed)
            self._update_write(elapsed, cache.written - self._written_stamp)
        self._dirtied_stamp = cache.dirtied
        self._written_stamp = cache.written
        self._stamp = now

    def position_ratio(self, nr_dirty: int, thresholds: Thresholds) -> int:
        """bdi_position_ratio in 10-bit fixed point; 0 at or above the hard limit."""
        limit = self.hard_limit(thresholds)
        if nr_dirty >= limit:
            return 0
        setpoint = (thresholds.freerun + limit) // 2
        x = _shifted_quotient(setpoint - nr_dirty, limit - setpoint + 1)
        ratio = (x * x >> FIXED) * x >> FIXED
        ratio = min(max(ratio + (1 << FIXED), 0), 2 << FIXED)
        # The bdi's own control line; its share of the threshold is the whole threshold.
        share = max(thresholds.limit, (limit - nr_dirty) // 8)
        x = (share << 16) // (thresholds.limit + 1)
        bdi_setpoint = setpoint * x >> 16
        span = (thresholds.limit - share + 8 * self.avg_write) * x >> 16
        intercept = bdi_setpoint + span
        if nr_dirty < intercept - span // 4:
            ratio = ratio * (intercept - nr_dirty) // (span + 1)
        else:
            ratio //= 4
        reserve = share // 2
        if nr_dirty < reserve:
            ratio = ratio * reserve // nr_dirty if nr_dirty > reserve // 8 else ratio * 8
        return ratio

    def max_pause(self, nr_dirty: int) -> int:
        """bdi_max_pause (jiffies): at most 200 ms, less while little is dirty."""
        return min(nr_dirty // (1 + self.avg_write // _roundup_pow2(1 + self._hz // 8)) + 1, max(self._hz // 5, 1))

    def min_pause(self, max_pause: int, task_ratelimit: int) -> tuple[int, int]:
        """bdi_min_pause: the shortest pause worth taking (jiffies), and the pages until the next check."""
        hz = self._hz
        target = max(1, hz // 100)
        over = _ilog2(self.avg_write) - _ilog2(self.dirty_ratelimit)
        if over > 0:
            target += over * (10 * hz) // 1024
        target = min(target, 1 + max_pause // 2)
        per = _roundup_pow2(hz)
        pages = self.dirty_ratelimit * target // per
        if pages < POLL_PAGES:
            target = max_pause
            pages = self.dirty_ratelimit * target // per
            if pages > POLL_PAGES:
                pages = POLL_PAGES
                target = hz * POLL_PAGES // self.dirty_ratelimit
        if hz * pages // (task_ratelimit + 1) > max_pause:
            target = max_pause
            pages = task_ratelimit * target // per
        return (1 + target // 2 if pages >= POLL_PAGES else target), pages

    def _update_limit(self, now: int, threshold: int, nr_dirty: int) -> None:
        if now - self._limit_stamp < self._hz // 5:
            return
        self._limit_stamp = now
        if self._global_limit < threshold:
            self._global_limit = threshold
        else:
            floor = max(threshold, nr_dirty)
            if self._global_limit > floor:
                self._global_limit -= (self._global_limit - floor) >> 5

    def _update_ratelimit(self, cache: PageCache, thresholds: Thresholds, elapsed: int) -> None:
        nr_dirty = cache.nr_dirty
        setpoint = (thresholds.freerun + self.hard_limit(thresholds)) // 2
        current = self.dirty_ratelimit
        dirty_rate = (cache.dirtied - self._dirtied_stamp) * self._hz // elapsed
        task_ratelimit = (current * self.position_ratio(nr_dirty, thresholds) >> FIXED) + 1
        balanced = min(task_ratelimit * self.avg_write // (dirty_rate | 1), self.avg_write)
        step = 0
        if nr_dirty < setpoint:
            step = max(min(self._balanced_ratelimit, balanced, task_ratelimit) - current, 0)
        else:
            step = max(current - max(self._balanced_ratelimit, balanced, task_ratelimit), 0)
        step >>= min(current // (2 * step + 1), 63)
        step = (step + 7) // 8
        self.dirty_ratelimit = max(current + step if current < balanced else current - step, 1)
        self._balanced_ratelimit = balanced

    def _update_write(self, elapsed: int, written: int) -> None:
        period = _roundup_pow2(3 * self._hz)
        bandwidth = written * self._hz
        if elapsed > period:
            self.write = self.avg_write = bandwidth // elapsed
            return
        bandwidth = (bandwidth + self.write * (period - elapsed)) // period
        average, previous = self.avg_write, self.write
        if average > previous >= bandwidth:
            average -= (average - previous) >> 3
        if average < previous <= bandwidth:
            average += (previous - average) >> 3
        self.write, self.avg_write = bandwidth, average


class IoLessThrottle:
    """balance_dirty_pages for the writers of one device."""

    def __init__(
        self,
        *,
        env: Environment,
        spec: IoLessSpec,
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
        self._processors = processors
        self._signals = signals
        self._exceeded = False
        self.bandwidth = Bandwidth(spec)

    @property
    def avg_write_pages_per_s(self) -> int:
        """See `Throttle`."""
        return self.bandwidth.avg_write

    def dirtier(self) -> Dirtier:
        """See `Throttle`."""
        return Dirtier()

    def wrote(self, since_ns: int) -> None:
        """The flusher ended a slice that began at *since_ns*: wb_update_bandwidth."""
        self.bandwidth.update(self._env.now // self._jiffy_ns, since_ns // self._jiffy_ns, self._cache, None)

    def poll_pages(self, dirtier: Dirtier) -> int:
        """How many pages *dirtier* may dirty before it has to call `balance`."""
        if self._exceeded:
            return min(dirtier.nr_dirtied_pause, EXCEEDED_POLL_PAGES)
        return dirtier.nr_dirtied_pause

    def balance(self, submitter: Submitter, dirtier: Dirtier) -> Steps:
        """balance_dirty_pages: sleep as long as this task's share of the bandwidth demands."""
        cache, bandwidth, task = self._cache, self.bandwidth, submitter.task
        jiffy_ns = self._jiffy_ns
        start = self._env.now // jiffy_ns
        pages = dirtier.nr_dirtied
        while True:
            now = self._env.now // jiffy_ns
            thresholds = cache.thresholds()
            nr_dirty = cache.nr_dirty
            if nr_dirty <= thresholds.freerun:
                dirtier.paused_when = now
                dirtier.nr_dirtied = 0
                dirtier.nr_dirtied_pause = _poll_interval(nr_dirty, thresholds.limit)
                self._exceeded = False
                break
            if not self._works.in_progress:
                self._works.start_background()
            self._exceeded = nr_dirty > thresholds.limit
            bandwidth.update(now, start, cache, thresholds)
            ratio = bandwidth.position_ratio(nr_dirty, thresholds)
            task_ratelimit = bandwidth.dirty_ratelimit * ratio >> FIXED
            max_pause = bandwidth.max_pause(nr_dirty)
            min_pause, next_pages = bandwidth.min_pause(max_pause, task_ratelimit)
            if task_ratelimit:
                period = pause = self._hz * pages // task_ratelimit
                if dirtier.paused_when:
                    pause -= now - dirtier.paused_when
                if pause < min_pause:
                    self._carry(dirtier, pause, period, now, pages)
                    break
                if pause > max_pause:
                    now += min(pause - max_pause, max_pause)
                    pause = max_pause
            else:
                pause = max_pause
            if self._signals.balance_dirty_pages.observers:
                self._signals.balance_dirty_pages.emit(
                    limit=thresholds.limit, dirty=nr_dirty, dirty_ratelimit=bandwidth.dirty_ratelimit,
                    task_ratelimit=task_ratelimit, dirtied=pages, pause=pause,
                )  # fmt: skip
            # Timers fire on ticks: a pause of n jiffies ends at the n-th tick from the current one.
            until_ns = (self._env.now // jiffy_ns + pause) * jiffy_ns
            yield from self._processors.sleep(task, until_ns - self._env.now)
            dirtier.paused_when = now + pause
            dirtier.nr_dirtied = 0
            dirtier.nr_dirtied_pause = next_pages
            if task_ratelimit:
                break
        if not self._works.in_progress and cache.dirty > cache.thresholds().background:
            self._works.start_background()

    def _carry(self, dirtier: Dirtier, pause: int, period: int, now: int, pages: int) -> None:
        """Too short a pause is not taken but credited, unless the task thought for over a second."""
        if pause < -self._hz:
            dirtier.paused_when = now
            dirtier.nr_dirtied = 0
        elif period:
            dirtier.paused_when += period
            dirtier.nr_dirtied = 0
        elif dirtier.nr_dirtied_pause <= pages:
            dirtier.nr_dirtied_pause += pages


def _poll_interval(nr_dirty: int, limit: int) -> int:
    """dirty_poll_interval: sparser checks the farther from the limit."""
    return 1 << (_ilog2(limit - nr_dirty) >> 1) if limit > nr_dirty else 1


def _shifted_quotient(numerator: int, denominator: int) -> int:
    """div_s64(numerator << 10, denominator), which truncates toward zero."""
    quotient = (abs(numerator) << FIXED) // denominator
    return quotient if numerator >= 0 else -quotient


def _ilog2(value: int) -> int:
    return value.bit_length() - 1


def _roundup_pow2(value: int) -> int:
    return 1 << (value - 1).bit_length()


SPEC, COMPONENT = IoLessSpec, IoLessThrottle
