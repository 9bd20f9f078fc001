"""Numbers as a user writes them, with or without a unit."""

from __future__ import annotations

import re
from fractions import Fraction
from math import isfinite
from typing import Any, Final

from wbsim.sim.units import SCALES

_NUMBER: Final = re.compile(
    r"\s*(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,2})?)\s*(?P<unit>[A-Za-z/%]*)\s*"
)


def split(value: object) -> tuple[Any, str]:
    """Return the number of *value*, an int or a float, and its unit, which is "" if it has none.

    >>> split("16 GiB"), split(1.5)
    ((16, 'GiB'), (1.5, ''))

    Raises:
        ValueError: *value* is not a number.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value, ""
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value} is not a number; both ends of a range are numbers")
    number = match["number"]
    return int(number) if number.lstrip("+-").isdigit() else float(number), match["unit"]


def join_quantities(number: Any, unit: str) -> object:
    """Return the text of *number* with its *unit*; a fraction becomes whole in the base unit (ns, B, B/s).

    A fraction of any other unit is rounded.  Without a unit, return *number* unchanged.

    >>> join_quantities(1.5, "ms"), join_quantities(2.0, "GiB")
    ('1500000 ns', '2 GiB')
    """
    if not unit:
        return number
    if number == int(number):
        return f"{int(number)} {unit}"
    scale = next((units for units in SCALES.values() if unit in units), {unit: 1})
    return f"{round(number * scale[unit])} {next(iter(scale))}"


def multiply(value: object, factor: float) -> object:
    """Return *factor* times *value*, a number with or without a unit.

    The product has the unit, as in `join_quantities`.  Without a unit, the product of a whole number is
    rounded to a whole number.

    >>> multiply("4 KiB", 2), multiply(3, 0.5)
    ('8 KiB', 2)

    Raises:
        ValueError: *value* is not a number.
    """
    number, unit = split(value)
    times = number * factor
    return join_quantities(round(times) if isinstance(number, int) and not unit else times, unit)


def amount(value: object) -> object:
    """Return an object that is equal for equal amounts in different units, and for equal numbers (1 and 1.0).

    Other values, and texts of numbers without a unit, give their text.  A sweep compares these objects,
    because it refuses a value that it has twice.

    >>> amount("1 GiB") == amount("1024 MiB") == amount("1.073741824e9 B"), amount("sata-ssd")
    (True, 'sata-ssd')
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return Fraction(str(value))
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    scale = next((units for units in SCALES.values() if match and match["unit"] in units), None)
    if match is None or scale is None or not match["unit"]:
        return str(value)
    return next(iter(scale)), Fraction(match["number"]) * scale[match["unit"]]
