"""What varies the time of allocations."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.seams import Site

_DICE: Final = 4_096


class Dice:
    """Factors that vary the time of allocations, from the stream *name*: one by one, or many for compiled
    code.
    """

    __slots__ = ("_draw", "_list", "array", "at")

    def __init__(self, site: Site, name: str) -> None:
        self._draw = site.variations(name)
        self._list: list[float] = []
        self.array: NDArray[np.float64] = np.empty(0)
        self.at = 0

    def ready(self) -> int:
        """Where in ``array`` the next one is."""
        if self.at == len(self.array):
            self.array = self._draw(_DICE)
            self._list = self.array.tolist()
            self.at = 0
        return self.at

    def throw(self) -> float:
        """The next one."""
        at = self.at
        try:
            factor = self._list[at]
        except IndexError:
            at = self.ready()
            factor = self._list[at]
        self.at = at + 1
        return factor
