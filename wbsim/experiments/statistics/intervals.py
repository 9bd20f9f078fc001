"""Intervals of figures: over replications, over a run's own iterations, of paired differences.

All are 95 % and Student's t, of values that are taken as independent:

* several replications: of their values (`sim.stats.confidence_95`);
* a single run with iterations: of the means of `BATCHES` batches of its steady part, whose relative
  half-width is the figure's;
* two variants: of the differences of runs with the same dice (common random numbers), replication by
  replication.

Where a series becomes steady is MSER-5's answer (`steady_from`).  Unknown values (nan) are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isnan
from statistics import fmean
from typing import Final, NamedTuple

from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.statistics.figures import Figure
from wbsim.sim.stats import Interval, batch_means, confidence_95
from wbsim.sim.units import S

BATCHES: Final = 10
_MSER_BATCH: Final = 5
NAN: Final = float("nan")


def interval_of(figure: Figure, outcomes: Sequence[Outcome]) -> Interval:
    """Return the mean of *figure* over the runs of one case, and its interval.

    The bounds are nan if fewer than two values are known, and so is the mean if no value is known.
    """
    if len(outcomes) > 1:
        return _confidence_of([figure.whole(outcome) for outcome in outcomes])
    (outcome,) = outcomes
    whole = figure.whole(outcome)
    values = series_of(figure, outcome)
    steady = values[steady_from(values) :]
    if len(steady) < 2:
        return Interval(whole, NAN, NAN)
    batches = confidence_95(batch_means(steady, min(BATCHES, len(steady))))
    half = whole * (batches.high - batches.mean) / batches.mean if batches.mean else NAN
    return Interval(whole, whole - half, whole + half)


def _confidence_of(values: Sequence[float]) -> Interval:
    """Return the interval of the known ones among *values*; see `interval_of`."""
    known = [value for value in values if not isnan(value)]
    return confidence_95(known) if len(known) > 1 else Interval(known[0] if known else NAN, NAN, NAN)


class _Step(NamedTuple):
    """A figure's value between the ends of two iterations."""

    value: float
    from_ns: int
    to_ns: int


def _steps_of(figure: Figure, outcome: Outcome) -> list[_Step]:
    """Return *figure* between the ends of consecutive iterations, without unknown values."""
    if figure.iteration is None:
        return []
    steps = [
        _Step(figure.iteration(a, b), a.end_ns, b.end_ns)
        for a, b in pairwise(outcome.samples)
        if b.end_ns > a.end_ns
    ]
    return [step for step in steps if not isnan(step.value)]


def series_of(figure: Figure, outcome: Outcome) -> list[float]:
    """Return the known values of *figure* between the ends of consecutive iterations."""
    return [step.value for step in _steps_of(figure, outcome)]


class Steady(NamedTuple):
    """A figure of the steady part of a run, which begins *since* (s): weighted by the iterations' lengths."""

    value: float
    since: float


def steady_of(figure: Figure, outcome: Outcome) -> Steady | None:
    """Return *figure* of the steady part of a run, or None if it has too few iterations."""
    steps = _steps_of(figure, outcome)
    if figure.grows or len(steps) < 4 * _MSER_BATCH:
        return None
    steady = steps[steady_from([step.value for step in steps]) :]
    weighted = sum(step.value * (step.to_ns - step.from_ns) for step in steady)
    length_ns = sum(step.to_ns - step.from_ns for step in steady)
    return Steady(weighted / length_ns, steady[0].from_ns / S)


def paired(figure: Figure, one: Sequence[Outcome], other: Sequence[Outcome]) -> Interval:
    """Return the mean difference of *figure*, *other* minus *one*, over replications that both have.

    The bounds are nan if fewer than two differences are known.

    Raises:
        ValueError: there are fewer than two pairs.
    """
    of_one = {outcome.replication: figure.whole(outcome) for outcome in one}
    differences = [
        figure.whole(outcome) - of_one[outcome.replication]
        for outcome in other
        if outcome.replication in of_one
    ]
    if len(differences) < 2:
        raise ValueError(f"a paired difference needs two pairs of runs, not {len(differences)}")
    return _confidence_of(differences)


def steady_from(values: Sequence[float]) -> int:
    """From which place on *values* are steady, by MSER-5 (White, 1997).

    Means of five values each; what is left away at the beginning makes the half-width of the mean of the rest
    smallest: the sum of its squared deviations over the square of its length.  At most half is left away.  Of
    fewer than four such means, nothing is.
    """
    means = [fmean(values[i : i + _MSER_BATCH]) for i in range(0, len(values) - _MSER_BATCH + 1, _MSER_BATCH)]
    if len(means) < 4:
        return 0

    def width(first: int) -> float:
        rest = means[first:]
        middle = fmean(rest)
        return sum((value - middle) ** 2 for value in rest) / len(rest) ** 2

    return _MSER_BATCH * min(range(len(means) // 2 + 1), key=width)
