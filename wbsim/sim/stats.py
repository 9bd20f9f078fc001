"""Confidence intervals and batch means."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple


class Interval(NamedTuple):
    """A mean and the ends of its 95 % confidence interval (Student's t), in the unit of the values."""

    mean: float
    low: float
    high: float


def confidence_95(values: Sequence[float]) -> Interval:
    """Return the mean of *values* and the ends of the 95 % confidence interval, in the unit of the values.

    The values must be independent (replications or batch means).

    >>> [round(end, 2) for end in confidence_95([9, 10, 11])]
    [10.0, 7.52, 12.48]

    Raises:
        ValueError: *values* has fewer than two values.
    """
    if len(values) < 2:
        raise ValueError(f"{len(values)} values have no interval; give at least 2")
    from scipy.stats import t

    mean = fmean(values)
    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def batch_means(series: Sequence[float], batches: int) -> list[float]:
    """Return the means of *batches* parts of *series* with equal lengths; the rest at the end is dropped.

    The parts of one long run serve as replications, because neighbouring values are not independent.

    >>> batch_means([1, 3, 5, 7, 9], 2)
    [2.0, 6.0]

    Raises:
        ValueError: *series* has fewer than *batches* values.
    """
    size = len(series) // batches
    if size == 0:
        raise ValueError(
            f"{len(series)} values do not fill {batches} batches; give fewer batches or more values"
        )
    return [fmean(series[i * size : (i + 1) * size]) for i in range(batches)]
