"""The estimates of a writeback context: its write bandwidth, and its share of the thresholds.

Stands for bdi_update_write_bandwidth, __bdi_writeout_inc, bdi_writeout_fraction and bdi_dirty_limit
(mm/page-writeback.c), with lib/flex_proportions.c (3.6 and later) and lib/proportions.c (before).  The
arithmetic is the kernel's: integers, times in jiffies, rates in pages per second.  Each context starts with
one page written (its mount).  A single context has all of the thresholds.  Left out: min_ratio, max_ratio,
the batches of per-processor counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wbsim.models.interfaces import Bandwidth, Wb
from wbsim.sim.engine import Environment
from wbsim.sim.units import S


class WriteBandwidth(Bandwidth):
    """The estimates in struct bdi_writeback; the throttle sets their first values and updates them."""

    __slots__ = (
        "avg_write",
        "balanced_ratelimit",
        "dirtied_stamp",
        "dirty_ratelimit",
        "stamp",
        "write",
        "written_stamp",
    )

    def __init__(self) -> None:
        self.start(0)

    def start(self, pages_per_s: int) -> None:
        """See `Bandwidth.start`: INIT_BW."""
        self.write = self.avg_write = self.dirty_ratelimit = self.balanced_ratelimit = pages_per_s
        self.stamp = self.dirtied_stamp = self.written_stamp = 0

    def update_write(self, elapsed: int, pages: int, hz: int) -> None:
        """See `Bandwidth.update_write`."""
        period = roundup_pow2(3 * hz)
        bandwidth = pages * hz
        if elapsed > period:
            self.write = self.avg_write = bandwidth // elapsed
            return
        bandwidth = (bandwidth + self.write * (period - elapsed)) // period
        # Spikes are filtered out: the average moves only if two bandwidths in a row lie on one side of it.
        average, previous = self.avg_write, self.write
        if average > previous >= bandwidth:
            average -= (average - previous) >> 3
        if average < previous <= bandwidth:
            average += (previous - average) >> 3
        self.write, self.avg_write = bandwidth, average


def roundup_pow2(value: int) -> int:
    """Return the smallest power of two that is not below *value* (roundup_pow_of_two).

    >>> roundup_pow2(300)
    512
    """
    return 1 << (value - 1).bit_length()


PERIOD_NS: Final = 3 * S  # VM_COMPLETIONS_PERIOD_LEN


class FlexShares:
    """The shares from 3.6 on: with every period of 3 s, older completions count half as much."""

    def __init__(self, env: Environment, wbs: list[Wb]) -> None:
        self._env = env
        self._wbs = wbs
        self._period = 0
        self._total = 0
        self._events: list[int] = []
        self._last_written: list[int] = []
        self._number: dict[Wb, int] = {}

    def share(self, wb: Wb, pages: int) -> int:
        """Return the share (pages) of *wb* in a threshold of *pages*: its part of the pages written recently.

        The counts are updated first.  A single context has all.
        """
        if len(self._wbs) == 1:
            return pages
        self._count()
        return pages * self._events[self._number[wb]] // self._total

    def _count(self) -> None:
        """Count the pages completed since the last call, and age the counts (fprop_new_period).

        A writer asks for its share at each write that may have to wait.  So a context without completions
        takes no more than a look: with 128 contexts, this loop was a fifth of a run.
        """
        for wb in self._wbs[len(self._events) :]:
            self._number[wb] = len(self._events)
            self._events.append(1)
            self._last_written.append(0)
            self._total += 1
        for number, wb in enumerate(self._wbs):
            pages = wb.written_pages
            if pages != self._last_written[number]:
                self._events[number] += pages - self._last_written[number]
                self._total += pages - self._last_written[number]
                self._last_written[number] = pages
        period = self._env.now // PERIOD_NS
        if period != self._period:
            aged = min(period - self._period, 62)
            self._period = period
            # At least 1: a context that has completed nothing for long keeps a small share, as at its mount.
            self._events = [max(events >> aged, 1) for events in self._events]
            self._total = sum(self._events)


class Proportions:
    """Floating proportions (lib/proportions.c): the shares of tasks or contexts in recent events.

    An event is a page that was dirtied, or one that was written.  With every half period, older events count
    half as much.  A half period has one to two times as many events as the dirty limit has pages.
    """

    def __init__(self, limit_pages: int) -> None:
        # Half of calc_period_shift's period, 1 << (2 + ilog2(limit_pages - 1)).
        self.half_period = 1 << (1 + (limit_pages - 1).bit_length() - 1)
        self.events = 0

    @property
    def whole(self) -> int:
        """The number of events of which the ``recent`` events of a `Member` are a share (prop_fraction)."""
        return self.half_period + self.events % self.half_period

    def add(self, member: Member, count: int) -> None:
        """Count *count* more events of *member*, which is aged first."""
        self.events += count
        self.age(member)
        member.recent += count

    def age(self, member: Member) -> None:
        """Halve the recent events of *member* for each half period since the last time (prop_norm_single)."""
        period = self.events // self.half_period
        member.recent >>= min(period - member.period, 63)
        member.period = period


class Member:
    """The recent events of a task or a context, and the period for which they were last aged."""

    __slots__ = ("period", "recent")

    def __init__(self) -> None:
        self.recent = 0
        self.period = 0


class EventShares:
    """The shares to 3.5: with every half period of new completions, older ones count half as much.

    See `Proportions`.
    """

    def __init__(self, wbs: Sequence[Wb], limit_pages: int) -> None:
        self._wbs = wbs
        self._proportions = Proportions(limit_pages)
        self._members: dict[Wb, Member] = {}
        self._last_written: dict[Wb, int] = {}

    def share(self, wb: Wb, pages: int) -> int:
        """Return the share (pages) of *wb* in a threshold of *pages*: its part of the pages written recently.

        The counts are updated first.  A single context has all.
        """
        if len(self._wbs) == 1:
            return pages
        for context in self._wbs:
            member = self._members.setdefault(context, Member())
            self._proportions.add(member, context.written_pages - self._last_written.get(context, -1))
            self._last_written[context] = context.written_pages
        for member in self._members.values():
            self._proportions.age(member)
        recent = sum(member.recent for member in self._members.values())
        return pages * self._members[wb].recent // max(recent, 1)
