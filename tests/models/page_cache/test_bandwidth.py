"""The estimates of a context's bandwidth, at the bounds of each rule."""

from __future__ import annotations

import pytest

from wbsim.models.page_cache.estimates import WriteBandwidth, roundup_pow2


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
