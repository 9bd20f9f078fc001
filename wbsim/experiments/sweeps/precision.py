"""How precise a figure is to be: more replications of a case, until half of its interval is a given part of
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Final, NamedTuple

from wbsim.experiments.config.problems import bad, unknown_key
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.statistics.figures import FIGURES
from wbsim.experiments.statistics.intervals import interval_of

FEWEST: Final = 5
"""So many at first: the interval of fewer is too often narrow by chance."""
MOST: Final = 200


class Precision(NamedTuple):
    """Half of the 95 % interval of a *figure* is to be at most this *share* of it."""

    figure: str
    share: float

    def reached(self, outcomes: Sequence[Outcome]) -> bool:
        """Return whether the runs of one case are enough; more runs do not make an unknown figure known."""
        if len(outcomes) < FEWEST:
            return False
        mean, _, high = interval_of(FIGURES[self.figure], outcomes)
        return isnan(mean) or high - mean <= self.share * abs(mean) or len(outcomes) >= MOST


def precision_of(text: str) -> Precision:
    """What ``FIGURE=2%`` says.

    Raises:
        BadInput: there is no such figure, or no such share.
    """
    name, equals, share = text.partition("=")
    if name not in FIGURES:
        raise bad("--until-ci", f"{name}: {unknown_key(name, list(FIGURES))}")
    try:
        percent = float(share.strip().removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not equals or not 0 < percent < 100 or not share.strip().endswith("%"):
        raise bad("--until-ci", f"{text} does not say how precise; write {name}=2%")
    return Precision(name, percent / 100)
