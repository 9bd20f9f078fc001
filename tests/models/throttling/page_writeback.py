"""A literal reading of mm/page-writeback.c of 3.11: its functions by their names, in jiffies and pages."""

from __future__ import annotations

from types import SimpleNamespace

SHIFT = 10  # RATELIMIT_CALC_SHIFT
DIRTY_POLL_THRESH = 32


def div_s64(one: int, other: int) -> int:
    """Divide like C, towards zero."""
    return one // other if one >= 0 else -(-one // other)


def ilog2(value: int) -> int:
    """Return the number of the highest bit."""
    bit = 0
    while value > 1:
        value //= 2
        bit += 1
    return bit


def roundup_pow_of_two(value: int) -> int:
    """Return the smallest power of two that is not below *value*."""
    power = 1
    while power < value:
        power *= 2
    return power


class Bdi:
    """backing_dev_info of 3.11: its page counts and its estimates."""

    def __init__(self, bandwidth: int) -> None:
        self.dirty = self.written_pages = self.dirtied = 0
        self.write_bandwidth = self.avg_write_bandwidth = bandwidth
        self.dirty_ratelimit = self.balanced_dirty_ratelimit = bandwidth
        self.bw_time_stamp = self.dirtied_stamp = self.written_stamp = 0

    def estimates(self) -> tuple[int, ...]:
        """Return all estimates and stamps."""
        return (
            self.write_bandwidth, self.avg_write_bandwidth, self.dirty_ratelimit,
            self.balanced_dirty_ratelimit, self.bw_time_stamp, self.dirtied_stamp, self.written_stamp,
        )  # fmt: skip


class Kernel:
    """The thresholds that all contexts share, and the functions on them."""

    def __init__(self, hz: int, bdis: list[Bdi]) -> None:
        self.hz = hz
        self.bdis = bdis
        self.thresh = self.bg_thresh = 0
        self.dirty_limit = self.update_time = 0

    @property
    def dirty(self) -> int:
        return sum(bdi.dirty for bdi in self.bdis)

    @property
    def freerun(self) -> int:
        return (self.thresh + self.bg_thresh) // 2

    def hard_dirty_limit(self) -> int:
        return max(self.thresh, self.dirty_limit)

    def bdi_position_ratio(self, bdi: Bdi, bdi_thresh: int) -> int:
        thresh, dirty, limit = self.thresh, self.dirty, self.hard_dirty_limit()
        if dirty >= limit:
            return 0
        setpoint = (self.freerun + limit) // 2
        x = div_s64((setpoint - dirty) << SHIFT, limit - setpoint + 1)
        pos_ratio = x
        pos_ratio = pos_ratio * x >> SHIFT
        pos_ratio = pos_ratio * x >> SHIFT
        pos_ratio += 1 << SHIFT
        pos_ratio = min(max(pos_ratio, 0), 2 << SHIFT)
        bdi_thresh = min(bdi_thresh, thresh)
        bdi_thresh = max(bdi_thresh, (limit - dirty) // 8)
        x = (bdi_thresh << 16) // (thresh + 1)
        bdi_setpoint = setpoint * x >> 16
        span = (thresh - bdi_thresh + 8 * bdi.avg_write_bandwidth) * x >> 16
        x_intercept = bdi_setpoint + span
        if bdi.dirty < x_intercept - span // 4:
            pos_ratio = pos_ratio * (x_intercept - bdi.dirty) // (x_intercept - bdi_setpoint + 1)
        else:
            pos_ratio = pos_ratio // 4
        x_intercept = bdi_thresh // 2
        if bdi.dirty < x_intercept:
            if bdi.dirty > x_intercept // 8:
                pos_ratio = pos_ratio * x_intercept // bdi.dirty
            else:
                pos_ratio *= 8
        return pos_ratio

    def update_dirty_limit(self, now: int) -> None:
        """update_dirty_limit, with the test of the time in global_update_bandwidth."""
        if now < self.update_time + self.hz // 5:
            return
        self.update_time = now
        thresh, limit = self.thresh, self.dirty_limit
        if limit < thresh:
            self.dirty_limit = thresh
            return
        thresh = max(thresh, self.dirty)
        if limit > thresh:
            self.dirty_limit = limit - ((limit - thresh) >> 5)

    def bdi_update_bandwidth(self, bdi: Bdi, now: int, start: int, bdi_thresh: int | None) -> None:
        """bdi_update_bandwidth; *bdi_thresh* is None in the flusher, which has no thresholds."""
        elapsed = now - bdi.bw_time_stamp
        if elapsed < self.hz // 5:
            return
        if not (elapsed > self.hz and start > bdi.bw_time_stamp):
            if bdi_thresh is not None:
                self.update_dirty_limit(now)
                self.bdi_update_dirty_ratelimit(bdi, bdi_thresh, elapsed)
            self.bdi_update_write_bandwidth(bdi, elapsed)
        bdi.dirtied_stamp, bdi.written_stamp, bdi.bw_time_stamp = bdi.dirtied, bdi.written_pages, now

    def bdi_update_dirty_ratelimit(self, bdi: Bdi, bdi_thresh: int, elapsed: int) -> None:
        setpoint = (self.freerun + self.hard_dirty_limit()) // 2
        write_bw, dirty_ratelimit = bdi.avg_write_bandwidth, bdi.dirty_ratelimit
        dirty_rate = (bdi.dirtied - bdi.dirtied_stamp) * self.hz // elapsed
        task_ratelimit = (dirty_ratelimit * self.bdi_position_ratio(bdi, bdi_thresh) >> SHIFT) + 1
        balanced = task_ratelimit * write_bw // (dirty_rate | 1)
        balanced = min(balanced, write_bw)
        step = 0
        if self.dirty < setpoint:
            x = min(bdi.balanced_dirty_ratelimit, min(balanced, task_ratelimit))
            if dirty_ratelimit < x:
                step = x - dirty_ratelimit
        else:
            x = max(bdi.balanced_dirty_ratelimit, max(balanced, task_ratelimit))
            if dirty_ratelimit > x:
                step = dirty_ratelimit - x
        step >>= min(dirty_ratelimit // (2 * step + 1), 63)
        step = (step + 7) // 8
        if dirty_ratelimit < balanced:
            dirty_ratelimit += step
        else:
            dirty_ratelimit -= step
        bdi.dirty_ratelimit, bdi.balanced_dirty_ratelimit = max(dirty_ratelimit, 1), balanced

    def bdi_update_write_bandwidth(self, bdi: Bdi, elapsed: int) -> None:
        period = roundup_pow_of_two(3 * self.hz)
        avg, old = bdi.avg_write_bandwidth, bdi.write_bandwidth
        bw = (bdi.written_pages - bdi.written_stamp) * self.hz
        if elapsed > period:
            bw //= elapsed
            avg = bw
        else:
            bw += bdi.write_bandwidth * (period - elapsed)
            bw >>= ilog2(period)
            if avg > old and old >= bw:
                avg -= (avg - old) >> 3
            if avg < old and old <= bw:
                avg += (old - avg) >> 3
        bdi.write_bandwidth, bdi.avg_write_bandwidth = bw, avg

    def bdi_max_pause(self, bdi: Bdi) -> int:
        t = bdi.dirty // (1 + bdi.avg_write_bandwidth // roundup_pow_of_two(1 + self.hz // 8))
        return min(t + 1, max(self.hz // 5, 1))

    def bdi_min_pause(self, bdi: Bdi, max_pause: int, task_ratelimit: int) -> tuple[int, int]:
        """Return the shortest pause and nr_dirtied_pause."""
        hi, lo = ilog2(bdi.avg_write_bandwidth), ilog2(bdi.dirty_ratelimit)
        t = max(1, self.hz // 100)
        if hi > lo:
            t += (hi - lo) * (10 * self.hz) // 1024
        t = min(t, 1 + max_pause // 2)
        pages = bdi.dirty_ratelimit * t // roundup_pow_of_two(self.hz)
        if pages < DIRTY_POLL_THRESH:
            t = max_pause
            pages = bdi.dirty_ratelimit * t // roundup_pow_of_two(self.hz)
            if pages > DIRTY_POLL_THRESH:
                pages = DIRTY_POLL_THRESH
                t = self.hz * DIRTY_POLL_THRESH // bdi.dirty_ratelimit
        if self.hz * pages // (task_ratelimit + 1) > max_pause:
            t = max_pause
            pages = task_ratelimit * t // roundup_pow_of_two(self.hz)
        return (1 + t // 2 if pages >= DIRTY_POLL_THRESH else t), pages


class Context(SimpleNamespace):
    """A context with the attributes that a throttle uses."""

    __hash__ = object.__hash__  # type: ignore[assignment]
