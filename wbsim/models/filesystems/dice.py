"""Random factors of the time that an allocation takes."""

from __future__ import annotations

from typing import Final

from wbsim.models.parts import Parts
from wbsim.sim.streams import Draws

_BLOCK: Final = 4_096
"""The number of factors that are drawn at once, because a draw of one takes a microsecond."""


class Dice:
    """Factors that vary the time of allocations, from the stream *name*."""

    __slots__ = ("_draws",)

    def __init__(self, parts: Parts, name: str) -> None:
        self._draws = Draws(parts.variations(name), _BLOCK)

    def throw(self) -> float:
        """Return the next factor."""
        return self._draws.next()
