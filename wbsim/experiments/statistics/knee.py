"""The knee of a rising line: from there on more of x brings little more of y."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, log2
from typing import Final

CLEAR: Final = 0.1
"""A knee lies above the straight line between the ends by more than this part of the range of y."""
LITTLE: Final = 0.5
"""Behind a knee, x brings less than this part of what it brought before."""
KEPT: Final = 1 / 3
"""A gain of which less than this part stays is lost again: the line has a peak instead of a knee."""
WORTH: Final = 0.1
"""A line whose range is smaller than this part of its largest value is flat."""
_DIGITS: Final = 9
"""Coordinates are rounded, so that the units of the axes cannot decide between equal heights."""


def knee_of(xs: Sequence[float], ys: Sequence[float], halves: Sequence[float] = ()) -> float | None:
    """Return the x at which a rising line saturates, or None.

    The knee is the inner point farthest above the straight line between the first and the last point
    (Satopaa et al., 2011, "Finding a kneedle in a haystack").  It must meet four conditions:

    * The point is above that line by more than `CLEAR`, and by more than the intervals of the three points.
    * The point is above the first point, and no earlier point is higher by more than `CLEAR`.
    * Every later point keeps `KEPT` of the point's gain over the first point.
    * On average, x brings less than `LITTLE` behind the point of what it brought before.

    A straight, a convex, a falling and a flat line (`WORTH`) have no knee.  A falling line shows a
    cost of x, not the end of a gain.  A peak is a knee only if the line keeps a third of its gain.  Fewer
    than four points have no knee.

    Both axes are scaled to 1.  *xs* that are all above zero and more than eight times apart count by their
    logarithm, as the picture draws them.  *halves* are half widths of intervals; points whose y is not finite
    are left out.
    """
    points = sorted(
        (x, y, half)
        for x, y, half in zip(xs, ys, halves or [0.0] * len(xs), strict=True)
        if isfinite(x) and isfinite(y)
    )
    if len(points) < 4:
        return None
    along = [x for x, _, _ in points]
    if along[0] > 0 and along[-1] > 8 * along[0]:
        along = [log2(x) for x in along]
    heights = [y for _, y, _ in points]
    span, rise = along[-1] - along[0], max(heights) - min(heights)
    if not span or rise < WORTH * max(map(abs, heights)) or not rise:
        return None
    us = [round((x - along[0]) / span, _DIGITS) for x in along]
    vs = [round((y - min(heights)) / rise, _DIGITS) for y in heights]
    noise = [half / rise for _, _, half in points]
    best, knee = -inf, None
    for place in range(1, len(points) - 1):
        above = round(vs[place] - vs[0] - us[place] * (vs[-1] - vs[0]), _DIGITS)
        if above > best and _saturates(us, vs, noise, place, above):
            best, knee = above, points[place][0]
    return knee


def _saturates(
    us: Sequence[float], vs: Sequence[float], noise: Sequence[float], place: int, above: float
) -> bool:
    """Return whether the point at *place*, which is *above* the line between the ends, is a knee."""
    u, v = us[place], vs[place]
    if not 0 < u < 1:
        return False
    of_ends = (1 - u) * noise[0] + u * noise[-1]
    before, behind = (v - vs[0]) / u, (vs[-1] - v) / (1 - u)
    return (
        above > max(CLEAR, noise[place] + of_ends)
        and v > vs[0]
        and max(vs[:place]) <= v + CLEAR
        and min(vs[place:]) >= vs[0] + KEPT * (v - vs[0])
        and behind < LITTLE * before
    )
