"""What varies the time of allocations."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from wbsim.models.site import Site
from wbsim.sim.streams import one_by_one

_DICE: Final = 4_096


class Dice:
    """Factors that vary the time of allocations, from the stream *name*: ``throw()`` gives the next one,
    ``array`` has many for compiled code, which uses them from ``at`` on.
    """

    __slots__ = ("_draw", "array", "at", "throw")

    def __init__(self, site: Site, name: str) -> None:
        self._draw = draw = site.variations(name)
        self.throw = one_by_one(lambda: draw(_DICE).tolist())
        self.array: NDArray[np.float64] = np.empty(0)
        self.at = 0

    def ready(self) -> int:
        """Where in ``array`` the next one is."""
        if self.at == len(self.array):
            self.array = self._draw(_DICE)
            self.at = 0
        return self.at
