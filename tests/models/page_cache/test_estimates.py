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
        # 1 000 jiffies of 4 096 at the previous rate: the estimate stays, and the average moves towards it
        (2_000, 1_000, 1_000, 1_000, 2_000 - 125),
        (500, 1_000, 1_000, 1_000, 500 + 62),
        (1_000, 1_000, 1_000, 1_000, 1_000),
        # an estimate that crosses the average does not move the average
        (900, 1_000, 0, 755, 900),
        (1_100, 1_000, 5_096, 2_000, 1_100),
        # an estimate that moves away from the average moves the average
        (1_200, 1_000, 0, 755, 1_175),
        (800, 1_000, 5_096, 2_000, 825),
    ],
)
def test_average_follows_an_estimate_that_does_not_approach_it(
    average: int, previous: int, written: int, bandwidth: int, moved: int
) -> None:
    """The average moves by an eighth of its distance from the previous estimate, at HZ 1000."""
    of = WriteBandwidth()
    of.start(previous)
    of.avg_write = average
    of.update_write(1_000, written, 1_000)
    assert (of.write, of.avg_write) == (bandwidth, moved)


@pytest.mark.parametrize(("elapsed", "average"), [(4_096, 7_000), (4_097, 100)])
def test_only_the_last_measurement_counts_after_a_period(elapsed: int, average: int) -> None:
    """410 pages in 4 096 jiffies are 100 pages/s; after 4 097 jiffies the average also becomes 100."""
    of = WriteBandwidth()
    of.start(7_000)
    of.update_write(elapsed, 410, 1_000)
    assert (of.write, of.avg_write) == (100, average)


def test_all_estimates_begin_with_the_given_rate() -> None:
    """The four rates are equal, and the stamps are 0."""
    of = WriteBandwidth()
    of.start(42)
    assert (of.write, of.avg_write, of.dirty_ratelimit, of.balanced_ratelimit) == (42, 42, 42, 42)
    assert (of.stamp, of.dirtied_stamp, of.written_stamp) == (0, 0, 0)


@pytest.mark.parametrize(("value", "power"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (3_000, 4_096)])
def test_roundup_pow2_rounds_up(value: int, power: int) -> None:
    """A power of two stays unchanged."""
    assert roundup_pow2(value) == power


def contexts(*written: int) -> list[Any]:
    """Return contexts that have completed *written* pages."""
    return [_Context(pages) for pages in written]


class _Context(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, written: int) -> None:
        super().__init__(written_pages=written)


def test_contexts_without_completions_have_equal_shares() -> None:
    """A sole context has everything."""
    env = Environment()
    (one,) = wbs = contexts(0)
    assert FlexShares(env, wbs).share(one, 1_000) == EventShares(wbs, 4_096).share(one, 1_000) == 1_000
    a, b = wbs = contexts(0, 0)
    assert [FlexShares(env, wbs).share(wb, 1_000) for wb in (a, b)] == [500, 500]


def test_completions_count_half_after_each_period_of_three_seconds() -> None:
    """A mount counts as one completion, and a period ends after the count.

    t        count of a          count of b            shares
    0        300 + 1             99 + 1                301 and 100 of 401
    3 s      301 / 2 = 150       (100 + 100) / 2       150 and 100 of 250
    300 s    0                   0                     equal
    """
    env = Environment()
    a, b = wbs = contexts(300, 99)
    shares = FlexShares(env, wbs)
    assert (shares.share(a, 401), shares.share(b, 401)) == (301, 100)
    env.now = 3 * S
    b.written_pages += 100
    assert (shares.share(a, 1_000), shares.share(b, 1_000)) == (150_000 // 250, 100_000 // 250)
    env.now = 300 * S
    assert (shares.share(a, 2), shares.share(b, 2)) == (1, 1)


def test_shares_before_3_6_count_periods_in_events() -> None:
    """A limit of 16 pages makes half periods of 16 events, after which earlier completions count half."""
    a, b = wbs = contexts(0, 0)
    shares = EventShares(wbs, 16)
    assert shares.share(a, 100) == 50
    a.written_pages = 12  # 13 events of a and 1 of b: the first half period
    assert shares.share(a, 140) == 130
    b.written_pages = 18  # 32 events in all, the third half period: a's 13 count 3, b's first counts 0
    assert shares.share(a, 210) == 210 * 3 // (3 + 18)


def test_proportions_count_half_after_each_half_period() -> None:
    """A limit of 9 to 16 pages makes half periods of 16 events.

    events                      first              second    half period
    15 of the first             15                           0
    5 of the first              15 / 2 + 5 = 12              1
    12 of the second            12                 12        2
    aging of the first          12 / 2 = 6         12        2
    1 120 of the second         0
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
