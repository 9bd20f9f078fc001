"""Intervals of figures: over replications, over a run's own iterations, of paired differences.

All are 95 % and Student's t, of values that are taken as independent:

* several replications: of their values (`sim.stats.confidence_95`);
* a single run with iterations: of the means of `BATCHES` batches of its steady part, whose relative
  half-width is the figure's;
* two variants: of the differences of runs with the same dice (common random numbers), replication by
  replication.

Where a series becomes steady is MSER-5's answer (`steady_from`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
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
    """*figure* of the runs of one case, and its interval; without one (nan), if there is nothing to make it
    of.
    """
    if len(outcomes) > 1:
        return confidence_95([figure.whole(outcome) for outcome in outcomes])
    (outcome,) = outcomes
    whole = figure.whole(outcome)
    values = series_of(figure, outcome)
    steady = values[steady_from(values) :]
    if len(steady) < 2:
        return Interval(whole, NAN, NAN)
    batches = confidence_95(batch_means(steady, min(BATCHES, len(steady))))
    half = whole * (batches.high - batches.mean) / batches.mean if batches.mean else NAN
    return Interval(whole, whole - half, whole + half)


def series_of(figure: Figure, outcome: Outcome) -> list[float]:
    """*figure* from one iteration's end to the next; empty, if it has no such values."""
    if figure.iteration is None:
        return []
    return [figure.iteration(a, b) for a, b in pairwise(outcome.samples) if b.end_ns > a.end_ns]


class Steady(NamedTuple):
    """A figure of the steady part of a run, which begins *since* (s): weighted by the iterations' lengths."""

    value: float
    since: float


def steady_of(figure: Figure, outcome: Outcome) -> Steady | None:
    """*figure* of the steady part of a run; None, if it has too few iterations to tell."""
    values = series_of(figure, outcome)
    if figure.grows or len(values) < 4 * _MSER_BATCH:
        return None
    first = steady_from(values)
    ends = [sample.end_ns for sample in outcome.samples]
    lengths = [b - a for a, b in pairwise(ends) if b > a]
    weighted = sum(value * length for value, length in zip(values[first:], lengths[first:], strict=True))
    since_ns = ends[-1] - sum(lengths[first:])
    return Steady(weighted / sum(lengths[first:]), since_ns / S)


def paired(figure: Figure, one: Sequence[Outcome], other: Sequence[Outcome]) -> Interval:
    """By how much the *other* case's figure is larger than the *one*'s, replication by replication.

    Raises:
        ValueError: there are fewer than two pairs.
    """
    of_one = {outcome.replication: figure.whole(outcome) for outcome in one}
    differences = [
        figure.whole(outcome) - of_one[outcome.replication]
        for outcome in other
        if outcome.replication in of_one
    ]
    return confidence_95(differences)


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
