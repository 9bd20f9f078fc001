"""Random factors of the time that an allocation takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wbsim.models.site import Site
from wbsim.sim.streams import Draws


class Dice:
    """Factors that vary the time of allocations, from the stream *name*.

    ``array``: factors for compiled code, which uses them from index ``at`` on.
    """

    __slots__ = ("_block", "_draw", "_single", "array", "at")

    def __init__(self, site: Site, name: str) -> None:
        self._block = site.lengths.factors
        self._draw = site.variations(name)
        # NOTE: both parts draw their blocks in turn from one stream, so the lengths decide who gets which.
        self._single = Draws(self._draw, self._block)
        self.array: NDArray[np.float64] = np.empty(0)
        self.at = 0

    def throw(self) -> float:
        """Return the next factor for an event that is not in compiled code."""
        return self._single.next()

    def ready(self) -> int:
        """Return the index in ``array`` of the next factor; draw a new array at its end."""
        if self.at == len(self.array):
            self.array = self._draw(self._block)
            self.at = 0
        return self.at
