"""Intervals, steady parts and paired differences, on processes whose answers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.experiments.outcomes import RUN, sample
from wbsim.experiments.published.figures import METRICS
from wbsim.experiments.results.figures import FIGURES
from wbsim.experiments.results.intervals import interval_of, paired, series_of, steady_from, steady_of
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.sweeps.run import FEWEST, MOST, Precision
from wbsim.sim.stats import confidence_95

RUNS = 2_000


def test_interval_comes_from_replications_or_iterations() -> None:
    """Several runs give an interval of their means, and one run gives an interval of its iterations.

    * runs of 3, 4 and 5 s: 4 +- 4.303 / sqrt(3)
    * one run of a hundred equal iterations: no width
    * one run of two samples: unknown
    """
    metric = METRICS["wall_time", "s"]
    runs = [replace(RUN, wall_time=wall) for wall in (3.0, 4.0, 5.0)]
    of_three = interval_of(metric, runs)
    assert of_three.mean == pytest.approx(4.0)
    assert of_three.high - of_three.mean == pytest.approx(4.302653 / 3**0.5, rel=1e-5)
    assert of_three.mean - of_three.low == pytest.approx(4.302653 / 3**0.5, rel=1e-5)
    equal = replace(RUN, samples=tuple(sample(i, 1, i, i, i, i, i) for i in range(1, 102)))
    assert interval_of(metric, [equal]) == (4.0, pytest.approx(4.0), pytest.approx(4.0))
    assert str(interval_of(metric, [RUN]).low) == "nan"
    # The part before the steady part is left out: ten iterations of 50 s, then ninety of 1 s.
    ends = [*range(50, 501, 50), *range(501, 591)]
    uneven = replace(RUN, samples=tuple(sample(end, 1, 1, 1, 1, 1, 1) for end in ends))
    assert interval_of(metric, [uneven]) == (4.0, pytest.approx(4.0), pytest.approx(4.0))
    # The half-width is relative: batches of nine iterations, half of them 1 s, half 3 s.
    ends = [*range(1, 11), *range(11, 56), *range(58, 58 + 3 * 46, 3)]
    wide = interval_of(metric, [replace(RUN, samples=tuple(sample(end, 1, 1, 1, 1, 1, 1) for end in ends))])
    assert wide.mean == 4.0
    assert wide.high - 4.0 == pytest.approx(4.0 - wide.low)
    assert 0.5 < wide.high - 4.0 < 2.5


def test_interval_of_replications_covers_the_mean_in_95_percent() -> None:
    """Two thousand samples of five normal values have an interval each.

    The share that holds the mean is within four standard errors of 95 %.
    """
    values = np.random.default_rng(1).normal(10, 3, (RUNS, 5))
    held = sum(of.low <= 10 <= of.high for of in map(confidence_95, values.tolist()))
    assert abs(held / RUNS - 0.95) < 4 * (0.95 * 0.05 / RUNS) ** 0.5


def test_batch_means_cover_the_mean_of_a_correlated_series() -> None:
    """An AR(1) process (rho 0.7) has a known mean of 50, and a run has 200 of its values.

    Ten batches of twenty are nearly independent, so at least 90 % of the 95 % intervals hold the mean.
    """
    dice, rho, held, runs = np.random.default_rng(2), 0.7, 0, 400
    for _ in range(runs):
        value, ends, end = 50.0, [0.0], 0.0
        for noise in dice.normal(0, 1, 201):
            value = 50 + rho * (value - 50) + noise
            end += value
            ends.append(end)
        run = replace(
            RUN, wall_time=end / 201, samples=tuple(sample(at, 1, 1, 1, 1, 1, 1) for at in ends[1:])
        )
        interval = interval_of(FIGURES["wall_time"], [run])
        held += interval.low <= 50 <= interval.high
    assert held / runs > 0.9 - 4 * (0.9 * 0.1 / runs) ** 0.5


def test_precision_rule_reaches_its_half_width_and_covers_the_mean() -> None:
    """Replications are added as in a sweep, until the half-width is 5 % of the mean.

    The interval then holds the true mean in more than 90 % of 500 cases.
    """
    dice, held, cases = np.random.default_rng(3), 0, 500
    wanted = Precision("wall_time", 0.05)
    for _ in range(cases):
        values = dice.normal(10, 1, MOST).tolist()
        count = FEWEST
        while not wanted.reached([replace(RUN, wall_time=value) for value in values[:count]]):
            count += max(1, count // 4)
        interval = confidence_95(values[:count])
        assert interval.high - interval.mean <= 0.5 + 1e-9 + 0.05 * abs(interval.mean - 10)
        held += interval.low <= 10 <= interval.high
    assert held / cases > 0.9
    assert not wanted.reached([replace(RUN, wall_time=10.0)] * (FEWEST - 1)), (
        "too few replications may be equal by chance"
    )


def runs_of(values: list[float]) -> list[Outcome]:
    """Return replications with the wall times *values*."""
    return [replace(RUN, replication=number, wall_time=value) for number, value in enumerate(values)]


def test_paired_differences_ignore_what_both_cases_share() -> None:
    """Two cases differ by 1 +- 0.1, and both vary by up to 100 between replications.

    Pairs have one replication number, in any order.
    """
    shared, apart = [0.0, 100.0, 50.0, 20.0], [1.1, 0.9, 1.0, 1.0]
    one, other = runs_of(shared), runs_of([a + b for a, b in zip(shared, apart, strict=True)])
    difference = paired(FIGURES["wall_time"], one, other[::-1])
    assert difference.mean == pytest.approx(1.0)
    assert difference.high - difference.mean == pytest.approx(3.182446 * 0.08164966 / 2, rel=1e-5)
    assert paired(FIGURES["wall_time"], one, other[1:]).mean == pytest.approx((0.9 + 1 + 1) / 3)


@given(st.integers(0, 60), st.integers(1, 40))
def test_mser_5_cuts_off_the_warm_up(warm: int, tens: int) -> None:
    """A series is far off at first and then constant.

    MSER-5 cuts off the warm-up in batches of five, at most half of the series.  It cuts off no part of a
    constant series.
    """
    values = [1_000.0] * warm + [1.0 + 0.001 * (i % 2) for i in range(10 * tens)]
    first = steady_from(values)
    batches = len(values) // 5
    assert first % 5 == 0
    assert first <= 5 * (batches // 2)
    if warm and batches >= 4 and -(-warm // 5) <= batches // 2:
        assert first >= 5 * (-(-warm // 5))
    assert steady_from([1.0] * len(values)) == 0
    if batches < 4:
        assert first == 0


def test_steady_part_weighs_iterations_by_their_lengths() -> None:
    """The rate is the number of requests in the steady part, divided by its length.

    * 20 iterations of 10 s: no request
    * 40 iterations of 1 s: 100 requests each
    * 40 iterations of 3 s: 100 requests each
    """
    ends = [*range(0, 210, 10), *range(201, 241), *range(243, 363, 3)]
    ios = [0] * 21 + [100 * i for i in range(1, 81)]
    run = replace(RUN, samples=tuple(sample(e, 1, 1, 1, n, 0, 0) for e, n in zip(ends, ios, strict=True)))
    steady = steady_of(FIGURES["write_iops"], run)
    assert steady is not None
    assert steady.value == pytest.approx(8_000 / 160)
    assert steady.start_s == 200
    again = replace(run, samples=(sample(0, 1, 1, 1, 0, 0, 0), *run.samples))
    together = steady_of(FIGURES["write_iops"], again)
    assert together is not None
    assert together.start_s == 200, "two iterations that end at one instant count as one"
    assert len(series_of(FIGURES["write_iops"], run)) == 100
    assert steady_of(FIGURES["wall_time"], run) is None, "wall time has no series of iterations"
    assert steady_of(FIGURES["write_iops"], RUN) is None, "one iteration is too few"


def test_unknown_values_are_left_out_of_intervals() -> None:
    """The rates 1, 2 and 3, with an unknown rate between them, have the interval of 1, 2 and 3."""
    figure = FIGURES["write_iops"]
    runs = [replace(RUN, write_iops=iops, replication=n) for n, iops in enumerate((1.0, None, 2.0, 3.0))]
    half = 4.302653 / 3**0.5  # Student's t of two degrees of freedom, times the standard error
    expected = (2.0, pytest.approx(2 - half, rel=1e-6), pytest.approx(2 + half, rel=1e-6))
    assert interval_of(figure, runs) == expected
    assert str(interval_of(figure, runs[:2])) == "Interval(mean=1.0, low=nan, high=nan)"
    assert str(interval_of(figure, [runs[1], runs[1]])) == "Interval(mean=nan, low=nan, high=nan)"
    doubled = [replace(of, write_iops=of.write_iops and 2 * of.write_iops) for of in runs]
    assert paired(figure, runs, doubled) == expected, "the differences are 1, 2 and 3"
    assert str(paired(figure, runs[:2], doubled)) == "Interval(mean=1.0, low=nan, high=nan)"
    with pytest.raises(ValueError, match="needs two pairs of runs, not 1"):
        paired(figure, runs[:1], doubled)


def test_steps_without_requests_are_left_out_of_series() -> None:
    """Every second of 80 iterations has no request, so its request size is unknown.

    The first ten known sizes are 4 KiB, the others 8 KiB.  The tenth known step ends at 19 s, so the steady
    part begins with the step from 20 s to 21 s.
    """
    samples, ios, sectors = [sample(0, 1, 1, 1, 0, 0, 0)], 0, 0
    for second in range(1, 81):
        if second % 2:
            ios, sectors = ios + 1, sectors + (8 if second < 20 else 16)
        samples.append(sample(second, 1, 1, 1, ios, 0, sectors))
    run = replace(RUN, samples=tuple(samples))
    figure = FIGURES["request_size"]
    assert series_of(figure, run) == [4.0] * 10 + [8.0] * 30
    assert steady_of(figure, run) == (8.0, 20.0)


def test_waiting_processors_count_files_that_were_not_simulated() -> None:
    """Threads wait 3 s for locks in 3 000 of 12 000 files, which gives 12 s for all files in a run of 4 s."""
    program = replace(RUN.programs["mark"], reckoned_files=9_000)
    run = replace(RUN, locks={"l": {"wait_ns": 3_000_000_000}}, programs={"mark": program})
    assert FIGURES["waiting_processors"].whole(run) == 3.0
