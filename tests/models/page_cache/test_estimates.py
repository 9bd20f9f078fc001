"""The estimates of a context: its bandwidth at the bounds of each rule, and its share of the thresholds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.models.page_cache.estimates import (
    EventShares,
    FlexShares,
    Member,
    Proportions,
    WriteBandwidth,
    roundup_pow2,
)
from wbsim.sim.engine import Environment
from wbsim.sim.units import S


@pytest.mark.parametrize(
    ("average", "previous", "written", "bandwidth", "moved"),
    [
        # 1 000 jiffies of 4 096: as many pages a second as before leave the estimate where it is
        (2_000, 1_000, 1_000, 1_000, 2_000 - 125),
        (500, 1_000, 1_000, 1_000, 500 + 62),
        (1_000, 1_000, 1_000, 1_000, 1_000),
        # one that crosses the average does not move it
        (900, 1_000, 0, 755, 900),
        (1_100, 1_000, 5_096, 2_000, 1_100),
        # one that goes on away from it does not, either; one that stays on its side does
        (1_200, 1_000, 0, 755, 1_175),
        (800, 1_000, 5_096, 2_000, 825),
    ],
)
def test_the_average_follows_what_stays_on_one_side_of_it(
    average: int, previous: int, written: int, bandwidth: int, moved: int
) -> None:
    """By an eighth of the distance of the previous estimate, at HZ 1000."""
    of = WriteBandwidth()
    of.start(previous)
    of.avg_write = average
    of.update_write(1_000, written, 1_000)
    assert (of.write, of.avg_write) == (bandwidth, moved)


@pytest.mark.parametrize(("elapsed", "average"), [(4_096, 7_000), (4_097, 100)])
def test_after_the_whole_period_only_what_was_measured_counts(elapsed: int, average: int) -> None:
    """410 pages in 4 096 jiffies are 100 a second; one jiffy more, and the average is that, too."""
    of = WriteBandwidth()
    of.start(7_000)
    of.update_write(elapsed, 410, 1_000)
    assert (of.write, of.avg_write) == (100, average)


def test_it_begins_with_what_is_said() -> None:
    """All four rates; nothing was looked at yet."""
    of = WriteBandwidth()
    of.start(42)
    assert (of.write, of.avg_write, of.dirty_ratelimit, of.balanced_ratelimit) == (42, 42, 42, 42)
    assert (of.stamp, of.dirtied_stamp, of.written_stamp) == (0, 0, 0)


@pytest.mark.parametrize(("value", "power"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (3_000, 4_096)])
def test_powers_of_two(value: int, power: int) -> None:
    """Up, never down."""
    assert roundup_pow2(value) == power


def contexts(*written: int) -> list[Any]:
    """Contexts that have completed so many pages."""
    return [_Context(pages) for pages in written]


class _Context(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, written: int) -> None:
        super().__init__(written=written)


def test_a_sole_context_has_all_and_equals_have_the_same() -> None:
    """Before anything was completed, too."""
    env = Environment()
    (one,) = wbs = contexts(0)
    assert FlexShares(env, wbs).share(one, 1_000) == EventShares(wbs, 4_096).share(one, 1_000) == 1_000
    a, b = wbs = contexts(0, 0)
    assert [FlexShares(env, wbs).share(wb, 1_000) for wb in (a, b)] == [500, 500]


def test_what_was_completed_counts_half_as_much_every_three_seconds() -> None:
    """a: 300 pages (301 with its mount's), b: 99 (100); then b alone completes 100 in the second period.

    In the first: 301 of 401.  In the second: 150 of 150 + 100 (half of 200): the period ends after the count.
    """
    env = Environment()
    a, b = wbs = contexts(300, 99)
    shares = FlexShares(env, wbs)
    assert (shares.share(a, 401), shares.share(b, 401)) == (301, 100)
    env.now = 3 * S
    b.written += 100
    assert (shares.share(a, 1_000), shares.share(b, 1_000)) == (150_000 // 250, 100_000 // 250)
    env.now = 300 * S
    assert (shares.share(a, 2), shares.share(b, 2)) == (1, 1)


def test_before_3_6_it_is_counted_in_events() -> None:
    """A limit of 16 pages makes half periods of 16: what came a half period ago counts half."""
    a, b = wbs = contexts(0, 0)
    shares = EventShares(wbs, 16)
    assert shares.share(a, 100) == 50
    a.written = 12  # 13 events of a and 1 of b: the first half period
    assert shares.share(a, 140) == 130
    b.written = 18  # 32 in all: the third; a's 13 are 3, b's one of before is none
    assert shares.share(a, 210) == 210 * 3 // (3 + 18)


def test_proportions_by_hand() -> None:
    """A limit of 9 to 16 pages makes half periods of 16 events. The first member's 15 count half when five
    more of it begin the second; 12 of another begin the third, and the first one's count half again.
    """
    of, first, second = Proportions(16), Member(), Member()
    assert (of.half_period, of.whole) == (16, 16)
    assert Proportions(17).half_period == 32
    of.add(first, 15)
    assert (of.whole, first.recent, first.period) == (31, 15, 0)
    of.add(first, 5)
    assert (of.whole, first.recent, first.period) == (20, 12, 1)
    of.add(second, 12)
    assert (of.whole, second.recent, second.period) == (16, 12, 2)
    of.age(first)
    assert (first.recent, first.period) == (6, 2)
    of.add(second, 16 * 70)
    of.age(first)
    assert first.recent == 0
