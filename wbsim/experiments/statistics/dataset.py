"""The tidy dataset: a row for each run, and a column for each swept key and for each figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.statistics.figures import COLUMNS, FIGURES
from wbsim.sim.units import SCALES, parse

if TYPE_CHECKING:
    import pandas as pd

IDENTITY = ("variant", "replication", "seed")


def tidy(outcomes: Sequence[Outcome], axes: Sequence[str]) -> pd.DataFrame:
    """Return a row for each of *outcomes*: ``variant``, *axes*, ``replication``, ``seed``, and all figures.

    The column of a figure has the unit in its name (`experiments.statistics.figures`).  A swept quantity
    (``"4 GiB"``) is a number in its base unit.  The values of an axis are texts if one of them is no number.
    """
    import pandas as pd

    rows = [
        {
            "variant": outcome.variant,
            **{axis: outcome.point.get(axis) for axis in axes},
            "replication": outcome.replication,
            "seed": outcome.seed,
            **{COLUMNS[name]: figure.whole(outcome) for name, figure in FIGURES.items()},
        }
        for outcome in outcomes
    ]
    columns = ["variant", *axes, "replication", "seed", *COLUMNS.values()]
    frame = pd.DataFrame(rows, columns=columns)
    for axis in axes:
        frame[axis] = of_one_kind(list(frame[axis]))
    return frame


def of_one_kind(values: list[object]) -> list[Any]:
    """Return *values* as numbers in base units, or as texts if one of them is not a number."""
    found = [number_of(value) for value in values]
    return [str(value) for value in values] if any(one is None for one in found) else found


def number_of(value: object) -> float | int | None:
    """Return the number of a swept value; None: the value is a text.

    A factor (``"x2"``) is its number, and a quantity is a number in its base unit.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    if value.startswith("x"):
        value = value[1:]
        try:
            return float(value)
        except ValueError:
            return None
    for kind in SCALES:
        try:
            return parse(value, kind)
        except ValueError:
            continue
    return None
