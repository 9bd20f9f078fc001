"""Knees of lines: only a line that saturates has one."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.experiments.results.intervals import knee_of

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("xs", "ys", "knee"),
    [
        ([1, 2, 4, 8, 16, 32], [1, 2, 4, 8, 8, 8], 8),
        ([32, 16, 8, 4, 2, 1], [8, 8, 8, 4, 2, 1], 8),
        ([1, 2, 3, 4, 5, 6], [0, 0, 0, 5, 5, 5], 4),
        ([1, 2, 3, 4, 5], [1, 9, 8, 8, 8], 2),
        ([4, 8, 12, 16, 20, 24, 28, 32], [36, 48, 46, 47, 47, 45, 44.5, 42], 8),
        ([1, 2, 4, 8], [0, 3, 7, 10], 4),  # eight times apart: a linear axis
        ([1, 2, 4, 9], [0, 3, 7, 10], None),  # nine times apart: logarithmic, nearly a straight line
        ([1, 2, 3, 4, 5], [NAN, 0, 8, 9, 9], 3),
        ([1, 2, 3, 4, 5], [INF, 0, 8, 9, 9], 3),
        ([1, 2, 4, 8, 16], [0, 0, 0, 5, 296], None),
        ([1, 2, 3, 4], [1, 2, 3, 4], None),
        ([1, 2, 3, 4, 5], [5, 5, 5, 1, 1], None),
        ([1, 2, 3, 4, 5], [9, 3, 2, 1, 1], None),
        ([1, 2, 3, 4, 5], [1, 5, 9, 5, 2], None),
        ([1, 2, 3, 4, 5, 6], [5, 9, 6, 8, 7, 9], None),
        ([1, 2, 3, 4, 5], [0, 5, 0, 4, 9], None),
        ([1, 2, 3, 4, 5], [0, 3, 5, 7, 9], None),
        ([1, 2, 3, 4], [5, 5, 5, 5], None),
        ([1, 2, 3, 4], [0, 0, 0, 0], None),
        ([1, 2, 3, 4, 5], [100, 109, 109, 109, 109], None),
        ([1, 2, 3], [0, 5, 5], None),
        ([1, 1, 1, 1], [0, 5, 5, 5], None),
    ],
)
def test_rising_line_that_saturates_has_a_knee(xs: list[float], ys: list[float], knee: float | None) -> None:
    """A straight, convex, falling or flat line, a gain that is lost again and three points have no knee."""
    assert knee_of(xs, ys) == knee


@pytest.mark.parametrize(("half", "knee"), [(1.0, 2), (2.0, None)])
def test_knee_stands_out_of_the_intervals(half: float, knee: float | None) -> None:
    """The second point is 3 above the straight line, and the intervals there take twice *half*."""
    assert knee_of([1, 2, 3, 4], [0, 6, 8, 9], [half] * 4) == knee


XS = st.lists(st.integers(1, 500), min_size=4, max_size=12, unique=True).map(sorted)
STEPS = st.lists(st.integers(-50, 50), min_size=12, max_size=12)


@given(XS, STEPS, st.integers(0, 1000))
def test_convex_line_has_no_knee(xs: list[int], slopes: list[int], first: int) -> None:
    """The slopes never fall from left to right, at any distances of points."""
    rises = (slope * (b - a) for slope, a, b in zip(sorted(slopes), xs, xs[1:], strict=False))
    assert knee_of(xs, list(accumulate(rises, initial=first))) is None


@given(XS, st.lists(st.integers(0, 99), min_size=12, max_size=12), st.integers(-9, 9), st.integers(1, 999))
def test_knee_does_not_depend_on_the_units_of_axes(
    xs: list[int], ys: list[int], power: int, factor: int
) -> None:
    """Units may differ by a power of two or by a whole multiple."""
    ys = ys[: len(xs)]
    knee = knee_of(xs, ys)
    for scale in (2.0**power, factor):
        assert knee_of([x * scale for x in xs], ys) == (None if knee is None else knee * scale)
        assert knee_of(xs, [y * scale for y in ys]) == knee


@given(XS, st.integers(1, 10), st.integers(1, 50))
def test_line_that_is_cut_off_bends_at_the_cut(xs: list[int], place: int, slope: int) -> None:
    """The line rises from 0 and is constant after an inner point, on a linear axis."""
    xs = [x + 500 for x in xs]
    place = min(place, len(xs) - 2)
    ys = [slope * (min(x, xs[place]) - xs[0]) for x in xs]
    above = 1 - (xs[place] - xs[0]) / (xs[-1] - xs[0])
    assert knee_of(xs, ys) == (xs[place] if round(above, 8) > 0.1 else None)
