"""What is swept: lists, ranges, zipped lists and Latin hypercubes of any keys, to points and what each sets.

In a configuration, with a key in quotes where it has dots:

[sweep]
grid = { "workload.processes" = [1, 2, 4], "kernel.like" = ["3.11", "5.15"] }    # each with each
zip = { "workload.processes" = [1, 2], "workload.files" = [800, 400] }           # the first with the first
lhs = { samples = 20, "machine.memory.memory" = ["1 GiB", "64 GiB"] }            # anywhere between two ends
name = "threads"                                                                 # or by hand: `points`
points = [{ value = 1, workload.processes = 1 }, { value = 2, workload.processes = 2 }]

On the command line: ``KEY=1,2,4..64`` (`values_of`).  ``x2`` is twice what stands there otherwise.  A name
that is no key stands for ``{name}`` in command lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import isfinite, prod
from typing import Any, Final, NamedTuple

from wbsim.experiments.config.key_places import Path
from wbsim.experiments.config.problems import bad
from wbsim.experiments.config.toml_document import NotToml, document_of
from wbsim.sim.units import SCALES

Point = dict[str, Any]
"""What was swept, by name, with the values of one case: numbers or texts."""
MOST_POINTS: Final = 10_000
"""Each is read and checked before anything is run, in less than a millisecond."""
MOST_REPLICATIONS: Final = 100_000
_LARGEST: Final = (1 << 63) - 1
_NUMBER: Final = re.compile(r"\s*(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z/%]*)\s*")
_FACTOR: Final = re.compile(r"x([0-9]{1,12}(?:\.[0-9]{1,12})?)")


class Factor(NamedTuple):
    """So many times what stands there otherwise."""

    by: float

    def __repr__(self) -> str:
        return f"x{self.by:g}"


def factor_in(value: Any) -> Any:
    """*value*, or the factor that it is written as."""
    match = _FACTOR.fullmatch(value) if isinstance(value, str) else None
    return Factor(float(match[1])) if match else value


class Step(NamedTuple):
    """One value of an axis, as it is shown, what it sets, and where a configuration says so."""

    shown: Point
    sets: dict[Path, Any]
    written: dict[Path, Path]


class Axis(NamedTuple):
    """What is swept together."""

    names: tuple[str, ...]
    steps: list[Step]


def points(axes: Sequence[Axis]) -> Iterator[Step]:
    """Each step of each axis with each of the others; one that sets nothing, without any axis.

    Raises:
        BadInput: they are more than anyone can want.
    """
    many = prod(len(axis.steps) for axis in axes)
    if many > MOST_POINTS:
        raise bad("sweep", f"has {many} points; give fewer values: {MOST_POINTS} are the most")
    for steps in product(*(axis.steps for axis in axes)):
        shown: Point = {}
        sets: dict[Path, Any] = {}
        written: dict[Path, Path] = {}
        for step in steps:
            shown.update(step.shown)
            sets.update(step.sets)
            written.update(step.written)
        yield Step(shown, sets, written)


def by_hand(name: str, entries: Sequence[Mapping[str, Any]]) -> Axis:
    """The axis of a list of tables, each with its ``value`` and what that sets.

    Raises:
        ValueError: two have the same value.
    """
    steps = []
    for number, entry in enumerate(entries):
        at = ("sweep", "points", str(number))
        sets: dict[Path, Any] = {(key,): value for key, value in entry.items() if key != "value"}
        if not _is_label(entry["value"]):
            raise ValueError(f"has the value {entry['value']!r}; give a number or a text")
        steps.append(Step({name: entry["value"]}, sets, {key: at + key for key in sets}))
    _refuse_twice(name, [entry["value"] for entry in entries])
    return Axis((name,), steps)


def grid(lists: Mapping[str, Sequence[Any]], at: Path = ()) -> list[Axis]:
    """An axis for each key; *at* is where the lists are written, in a configuration.

    Raises:
        ValueError: one has a value twice.
    """
    for key, values in lists.items():
        _refuse_twice(key, values)
    return [
        Axis((key,), [_step({key: value}, at, str(number)) for number, value in enumerate(values)])
        for key, values in lists.items()
    ]


def _refuse_twice(key: str, values: Sequence[Any]) -> None:
    seen: set[Any] = set()
    for value in values:
        meant = {str(value), _amount(value)}
        if meant & seen:
            raise ValueError(f"{key} has the value {value} twice")
        seen |= meant


def _amount(value: Any) -> Any:
    """What a number, with or without a unit, comes to; *value* in letters, if it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return Fraction(str(value))
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    scale = next((of for of in SCALES.values() if match and match["unit"] in of), None)
    if match is None or scale is None or not match["unit"]:
        return str(value)
    return next(iter(scale)), Fraction(match["number"]) * scale[match["unit"]]


def zipped(lists: Mapping[str, Sequence[Any]], at: Path = ()) -> Axis:
    """One axis for all keys: the first values, the second ones, and so on; see `grid`.

    Raises:
        ValueError: their numbers differ.
    """
    lengths = {key: len(values) for key, values in lists.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise ValueError(f"zipped lists have to be equally long: {told}")
    rows = zip(*lists.values(), strict=True)
    return Axis(
        tuple(lists),
        [_step(dict(zip(lists, row, strict=True)), at, str(number)) for number, row in enumerate(rows)],
    )


def latin_hypercube(samples: int, ends: Mapping[str, Sequence[Any]], at: Path = ()) -> Axis:
    """One axis for all keys: *samples* points, of which each lies in another *samples*-th of each key's
    range.

    Whole numbers stay whole, ends with a unit keep it.  The sample is the same each time (scipy's qmc, seed
    0).

    Raises:
        ValueError: the ends of a key are not two numbers of one unit, or *samples* are too many.
    """
    from scipy.stats import qmc

    if samples > MOST_POINTS:
        raise ValueError(f"{samples} samples; give fewer: {MOST_POINTS} are the most")

    between = {key: _between(key, values) for key, values in ends.items()}
    cube = qmc.LatinHypercube(d=len(ends), rng=0).random(samples)
    rows = [
        {key: value(float(share)) for (key, value), share in zip(between.items(), row, strict=True)}
        for row in cube
    ]
    return Axis(tuple(ends), [_step(row, at) for row in rows])


def _between(key: str, ends: Sequence[Any]) -> Callable[[float], Any]:
    """What lies at a share of the way between two *ends*."""
    if len(ends) != 2:
        raise ValueError(f"{key} has {len(ends)} ends; give the smallest and the largest value")
    (low, unit), (high, other) = map(_split, ends)
    if unit == other and not low < high:
        raise ValueError(f"{key} goes from {ends[0]} to {ends[1]}; give the smaller end first")
    if unit != other:
        raise ValueError(f"{key} goes from {ends[0]} to {ends[1]}; give both ends in one unit")
    whole = all(isinstance(end, int) for end in (low, high))

    def at(share: float) -> Any:
        if whole:
            return _joined(min(int(low + share * (high + 1 - low)), int(high)), unit)
        return _joined(float(f"{low + share * (high - low):.6g}"), unit)

    return at


def _step(values: Mapping[str, Any], at: Path, *entry: str) -> Step:
    """It sets *values*, which are written below *at*: of each key, its *entry*."""
    sets: dict[Path, Any] = {(*key.split("."),): value for key, value in values.items()}
    written = {(*key.split("."),): (*at, key, *entry) for key in values} if at else {}
    return Step({key: _shown(value) for key, value in values.items()}, sets, written)


def _is_label(value: Any) -> bool:
    """Whether *value* is a number or a text that can be shown."""
    if isinstance(value, str):
        return bool(value.strip()) and value.isprintable()
    return isinstance(value, int | float) and abs(value) <= _LARGEST


def _shown(value: Any) -> Any:
    """*value* as a label."""
    return value if _is_label(value) else str(value)


def values_of(text: str) -> list[Any]:
    """The values of ``1,2,4..64``: a list, in which ``..`` goes on as the values before it began.

    With two values before it by adding, with three or more by adding or, where these do not, by multiplying;
    numbers may have a unit.  Commas in quotes and brackets are part of a value.

    Raises:
        ValueError: a range that does not say its step, or does not end at its end.
    """
    values: list[Any] = []
    for part in _split_list(text):
        first, dots, last = part.partition("..")
        if not dots or part.startswith(('"', "'", "[", "{")):
            values.append(value_of(part))
            continue
        values.append(value_of(first))
        values += _range(values, value_of(last), text)
    _refuse_twice(text, values)
    return values


def _range(begun: Sequence[Any], last: Any, text: str) -> list[Any]:
    """What follows the values that have *begun*, up to *last*."""
    given, units = zip(*map(_split, begun), strict=True)
    last_given, unit = _split(last)
    numbers, end = [Fraction(str(number)) for number in given], Fraction(str(last_given))
    if {*units} != {unit}:
        raise ValueError(f"{text} changes its unit; give all of it in one")
    if len(numbers) < 2:
        raise ValueError(f"{text} does not say its step; write {begun[0]},NEXT..{last}")
    add, times = numbers[1] - numbers[0], numbers[1] / numbers[0] if numbers[0] else Fraction(0)
    if all(b - a == add for a, b in pairwise(numbers)):
        times = Fraction(1)
    elif times and all(b == a * times for a, b in pairwise(numbers)):
        add = Fraction(0)
    else:
        raise ValueError(f"{text} has no constant step before its ..; write the values one by one")
    found: list[Fraction] = []
    value = numbers[-1] * times + add
    while (value <= end if numbers[1] > numbers[0] else value >= end) and len(found) <= MOST_POINTS:
        found.append(value)
        value = value * times + add
    if len(found) > MOST_POINTS:
        raise ValueError(f"{text} has more than {MOST_POINTS} values; give fewer")
    if not found or found[-1] != end:
        raise ValueError(f"{text} does not meet {last}; its last value is {float((found or numbers)[-1]):g}")
    whole = all(isinstance(number, int) for number in given)
    return [
        _joined(int(number) if whole and number == int(number) else float(number), unit) for number in found
    ]


def _split(value: Any) -> tuple[Any, str]:
    """A number and its unit."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value, ""
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value} is no number; a range goes from number to number")
    return value_of(match["number"]), match["unit"]


def _joined(number: Any, unit: str) -> Any:
    """A number with its unit, or with the base of that, of which it is a whole number."""
    if not unit:
        return number
    if number == int(number):
        return f"{int(number)} {unit}"
    scale = next((of for of in SCALES.values() if unit in of), {unit: 1})
    return f"{round(number * scale[unit])} {next(iter(scale))}"


def scaled(value: Any, by: float) -> Any:
    """*value*, a number with or without a unit, *by* times; whole numbers stay whole.

    Raises:
        ValueError: it is no number.
    """
    number, unit = _split(value)
    times = number * by
    return _joined(round(times) if isinstance(number, int) and not unit else times, unit)


def value_of(text: str) -> Any:
    """As TOML has it; what is none is a text.

    Raises:
        ValueError: it is nested deeper than anybody means.
    """
    try:
        document = document_of(f"v = {text}")
    except NotToml:
        return text.strip()
    return document["v"] if len(document) == 1 else text.strip()


def _split_list(text: str) -> list[str]:
    """The parts between commas that stand in no quotes and no brackets."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
