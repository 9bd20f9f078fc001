"""Where a line has its knee: from there on more of the one brings little of the other."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Final

CLEAR: Final = 0.1
"""A knee stands out from the straight line between the ends by this part of their difference."""


def knee_of(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """The x of the point farthest from the straight line between the first and the last point; None, if no
    point is clearly off it (`CLEAR`), or there are fewer than four.

    Both axes are scaled to 1 (Satopaa et al., 2011, "Finding a kneedle in a haystack"); *xs* that are all
    above zero and more than eight times apart count by their logarithm.
    """
    if len(xs) < 4:
        return None
    points = sorted(zip(xs, ys, strict=True))
    if points[0][0] > 0 and points[-1][0] > 8 * points[0][0]:
        along = [log2(x) for x, _ in points]
    else:
        along = [x for x, _ in points]
    heights = [y for _, y in points]
    span, rise = along[-1] - along[0], max(heights) - min(heights)
    if not span or not rise:
        return None
    off = [
        abs((y - heights[0]) / rise - (x - along[0]) / span * (heights[-1] - heights[0]) / rise)
        for x, y in zip(along, heights, strict=True)
    ]
    farthest = max(range(len(off)), key=off.__getitem__)
    return points[farthest][0] if off[farthest] > CLEAR else None
