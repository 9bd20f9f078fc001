"""The intervals of figures: over replications, over the iterations of a run, and of paired differences.

All are 95 % intervals by Student's t, of values that are taken as independent:

* several replications: of their values (`sim.stats.confidence_95`).
* a single run with iterations: of the means of `BATCHES` batches of its steady part.  Their relative
  half-width becomes that of the figure of the complete run.
* two variants: of the differences of runs with common random numbers, by replication.

MSER-5 finds the steady part of a series (`steady_from`).  Unknown values (nan) are left out.

`knee_of` finds the point at which a rising line saturates.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, isfinite, isnan, log2
from statistics import fmean
from typing import Final, NamedTuple

from wbsim.experiments.results.figures import Figure
from wbsim.experiments.results.outcome import Outcome
from wbsim.sim.stats import Interval, batch_means, confidence_95
from wbsim.sim.units import S

BATCHES: Final = 10
_MSER_BATCH: Final = 5
NAN: Final = float("nan")


def interval_of(figure: Figure, outcomes: Sequence[Outcome]) -> Interval:
    """Return the mean of *figure* over *outcomes*, one or more runs of one case, and its interval.

    All are in the unit of *figure*.  The bounds are nan if fewer than two values are known: figures of runs,
    or for a single run the figures of its steady iterations.  If no value is known, the mean is nan, too.
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
    """Return the interval of the known values among *values*; see `interval_of`."""
    numbers = [value for value in values if not isnan(value)]
    return confidence_95(numbers) if len(numbers) > 1 else Interval(numbers[0] if numbers else NAN, NAN, NAN)


class _Step(NamedTuple):
    """The value of a figure between the ends of two iterations."""

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
    """Return the values of *figure* between the ends of consecutive iterations, without unknown values.

    The list is empty if the figure has no value for an iteration.
    """
    return [step.value for step in _steps_of(figure, outcome)]


class Steady(NamedTuple):
    """A figure of the steady part of a run: the mean over iterations, weighted by their lengths.

    ``value`` is in the unit of the figure.  ``start_s``: the time at which the steady part begins (s).
    """

    value: float
    start_s: float


def steady_of(figure: Figure, outcome: Outcome) -> Steady | None:
    """Return *figure* of the steady part of a run; None if the run has too few iterations.

    The figure must be known for 20 iterations after the first.  The result is also None for a figure that
    grows with the size of the experiment.
    """
    steps = _steps_of(figure, outcome)
    if figure.grows or len(steps) < 4 * _MSER_BATCH:
        return None
    steady = steps[steady_from([step.value for step in steps]) :]
    weighted = sum(step.value * (step.to_ns - step.from_ns) for step in steady)
    length_ns = sum(step.to_ns - step.from_ns for step in steady)
    return Steady(weighted / length_ns, steady[0].from_ns / S)


def paired(figure: Figure, base: Sequence[Outcome], runs: Sequence[Outcome]) -> Interval:
    """Return the mean difference of *figure*, *runs* minus *base*, over their common replications.

    The result is in the unit of *figure*.  *base* and *runs* each have the replications of one case.  The
    bounds are nan if fewer than two differences are known.

    Raises:
        ValueError: there are fewer than two pairs.
    """
    base_figures = {outcome.replication: figure.whole(outcome) for outcome in base}
    differences = [
        figure.whole(outcome) - base_figures[outcome.replication]
        for outcome in runs
        if outcome.replication in base_figures
    ]
    if len(differences) < 2:
        raise ValueError(f"a paired difference needs two pairs of runs, not {len(differences)}")
    return _confidence_of(differences)


def steady_from(values: Sequence[float]) -> int:
    """Return the index in *values* from which they are steady, by MSER-5 (White, 1997).

    The values are averaged in groups of five.  The first groups, at most half of all, are dropped so that the
    half-width of the mean of the rest is smallest.  The measure of the half-width is the sum of the squared
    deviations, divided by the square of the number of groups.  With fewer than four groups, none is dropped.
    """
    means = [fmean(values[i : i + _MSER_BATCH]) for i in range(0, len(values) - _MSER_BATCH + 1, _MSER_BATCH)]
    if len(means) < 4:
        return 0

    def width(first: int) -> float:
        rest = means[first:]
        middle = fmean(rest)
        return sum((value - middle) ** 2 for value in rest) / len(rest) ** 2

    return _MSER_BATCH * min(range(len(means) // 2 + 1), key=width)


CLEAR: Final = 0.1
"""A knee is above the straight line between the ends by more than this part of the range of y."""
LITTLE: Final = 0.5
"""After a knee, the mean slope is less than this part of the mean slope before the knee."""
KEPT: Final = 1 / 3
"""If later points keep less than this part of the gain, the line has a peak instead of a knee."""
WORTH: Final = 0.1
"""A line whose range is smaller than this part of its largest value is flat."""
_DIGITS: Final = 9
"""Coordinates are rounded to this many digits, so that units cannot decide between equal heights."""


def knee_of(xs: Sequence[float], ys: Sequence[float], halves: Sequence[float] = ()) -> float | None:
    """Return the x at which a rising line saturates, or None.

    The knee is the inner point farthest above the straight line between the ends (Satopaa et al., 2011,
    "Finding a kneedle in a haystack").  It must meet four conditions:

    * The point is above that line by more than `CLEAR`, and by more than the intervals of the three points.
    * The point is above the first point, and no earlier point is higher by more than `CLEAR`.
    * Every later point keeps `KEPT` of the point's gain over the first point.
    * The mean slope after the point is less than `LITTLE` of the mean slope before the point.

    A straight, a convex, a falling and a flat line (`WORTH`) have no knee.  A falling line shows a cost of x,
    not the end of a gain.  A peak is a knee only if the line keeps a third of its gain.  A line of fewer than
    four points has no knee.

    Both axes are scaled to 1.  If all *xs* are above zero and the largest is more than eight times the
    smallest, their logarithms count, as in the picture.  *halves*: the half widths of the intervals.  Points
    with a coordinate that is not finite are left out.
    """
    points = sorted(
        (x, y, half)
        for x, y, half in zip(xs, ys, halves or [0.0] * len(xs), strict=True)
        if isfinite(x) and isfinite(y)
    )
    if len(points) < 4:
        return None
    positions = [x for x, _, _ in points]
    if positions[0] > 0 and positions[-1] > 8 * positions[0]:
        positions = [log2(x) for x in positions]
    heights = [y for _, y, _ in points]
    span, rise = positions[-1] - positions[0], max(heights) - min(heights)
    if not span or rise < WORTH * max(map(abs, heights)) or not rise:
        return None
    us = [round((x - positions[0]) / span, _DIGITS) for x in positions]
    vs = [round((y - min(heights)) / rise, _DIGITS) for y in heights]
    noise = [half / rise for _, _, half in points]
    best, knee = -inf, None
    for place in range(1, len(points) - 1):
        excess = round(vs[place] - vs[0] - us[place] * (vs[-1] - vs[0]), _DIGITS)
        if excess > best and _saturates(us, vs, noise, place, excess):
            best, knee = excess, points[place][0]
    return knee


def _saturates(
    us: Sequence[float], vs: Sequence[float], noise: Sequence[float], place: int, excess: float
) -> bool:
    """Return whether the point at *place*, which is *excess* above the line between the ends, is a knee."""
    u, v = us[place], vs[place]
    if not 0 < u < 1:
        return False
    of_ends = (1 - u) * noise[0] + u * noise[-1]
    slope_before, slope_after = (v - vs[0]) / u, (vs[-1] - v) / (1 - u)
    return (
        excess > max(CLEAR, noise[place] + of_ends)
        and v > vs[0]
        and max(vs[:place]) <= v + CLEAR
        and min(vs[place:]) >= vs[0] + KEPT * (v - vs[0])
        and slope_after < LITTLE * slope_before
    )
