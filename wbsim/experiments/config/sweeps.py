"""Sweeps: lists, ranges, zipped lists and Latin hypercubes of keys become points with their settings.

In a configuration (a key with dots stands in quotes):

[sweep]
grid = { "workload.processes" = [1, 2, 4], "kernel.like" = ["3.11", "5.15"] }    # all combinations
zip = { "workload.processes" = [1, 2], "workload.files" = [800, 400] }           # first with first, and so on
lhs = { samples = 20, "machine.memory.memory" = ["1 GiB", "64 GiB"] }            # samples between two ends
name = "threads"                                                                 # or a list of points
points = [{ value = 1, workload.processes = 1 }, { value = 2, workload.processes = 2 }]

On the command line: ``KEY=1,2,4..64`` (`values_of`).  ``x2`` doubles the value that the key has otherwise.
If a name is not a key, its value replaces ``{name}`` in command lines.

An axis is a list of steps, and a step sets the values of its keys.  A point has one step of each axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from typing import Any, Final, NamedTuple

from wbsim.experiments.config.grammar import Sweep
from wbsim.experiments.config.problems import Problems, bad, excerpt
from wbsim.experiments.config.quantities import amount, join_quantities, split
from wbsim.experiments.config.toml_tree import MOST_LEVELS, NotToml, document_of
from wbsim.experiments.config.tree import SET, Items, Path, Table

Point = dict[str, Any]
"""The values of one case, numbers or texts, by the name of the swept key."""
MOST_POINTS: Final = 10_000
"""The upper bound for the points of a sweep.  All are checked before the first run, in about 1 ms each."""
_LARGEST: Final = (1 << 63) - 1


class Asked(NamedTuple):
    """The sweep of a command line.

    * ``lists``: the swept keys, ``KEY=VALUES`` each.
    * ``together``: zip the lists (first values, second values ...); otherwise sweep all combinations.
    * ``samples``: the number of samples of a Latin hypercube over the keys that have a range, ``LOW..HIGH``.
    """

    lists: tuple[str, ...] = ()
    together: bool = False
    samples: int | None = None


NOTHING: Final = Asked()


class Setting(NamedTuple):
    """A key, the value that it is set to, and the place of the setting."""

    path: Path
    value: object
    place: str


class Step(NamedTuple):
    """One value of an axis: its labels (``labels``) and its settings (``sets``)."""

    labels: Point
    sets: tuple[Setting, ...]


class Axis(NamedTuple):
    """Keys that are swept together."""

    names: tuple[str, ...]
    steps: list[Step]


def points(axes: Sequence[Axis]) -> Iterator[Step]:
    """Yield all combinations of the steps of *axes*, each as one step; the last axis changes fastest.

    Without an axis yield one step that sets nothing.

    Raises:
        BadInput: there are more than `MOST_POINTS` points.
    """
    many = prod(len(axis.steps) for axis in axes)
    if many > MOST_POINTS:
        raise bad("sweep", f"has {many} points; give fewer values, for at most {MOST_POINTS} points")
    for steps in product(*(axis.steps for axis in axes)):
        labels = {name: value for step in steps for name, value in step.labels.items()}
        yield Step(labels, tuple(setting for step in steps for setting in step.sets))


def by_hand(name: str, entries: Items) -> Axis:
    """Return the axis *name* of a list of tables, each with its ``value`` and the keys that it sets.

    *entries* is the key ``points`` of a sweep.  Each entry must have a ``value``, the label of its step.

    Raises:
        ValueError: a value occurs twice, or is neither a number nor a printable text.
    """
    steps = []
    for entry in entries:
        if not _is_label(entry["value"]):
            raise ValueError(f"has the value {entry['value']!r}; give a number or a printable text")
        sets = (Setting((key,), entry[key], entry.place_of(key)) for key in entry if key != "value")
        steps.append(Step({name: entry["value"]}, tuple(sets)))
    _refuse_twice(name, [entry["value"] for entry in entries])
    return Axis((name,), steps)


Lists = Mapping[str, Items]
"""The values of each swept key."""


def grid(lists: Lists) -> list[Axis]:
    """Return an axis for each key of *lists*, the values by key, so that `points` combines all values.

    Raises:
        ValueError: a key has a value twice.
    """
    for key, values in lists.items():
        _refuse_twice(key, values)
    return [
        Axis((key,), [_step({key: value}, {key: values.place_of(str(n))}) for n, value in enumerate(values)])
        for key, values in lists.items()
    ]


def _places(values: Items) -> list[str]:
    """Return the place of each of *values*."""
    return [values.place_of(str(number)) for number in range(len(values))]


def _refuse_twice(key: str, values: Sequence[object]) -> None:
    earlier_forms: set[object] = set()
    for value in values:
        forms = {str(value), amount(value)}
        if forms & earlier_forms:
            raise ValueError(f"{key} has the value {value} twice; give each value once")
        earlier_forms |= forms


def zipped(lists: Lists) -> Axis:
    """Return one axis for all keys of *lists*, the values by key: the first values, the second, and so on.

    Raises:
        ValueError: the lengths of the lists differ.
    """
    lengths = {key: len(values) for key, values in lists.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise ValueError(f"zipped lists have different lengths: {counts}; give equally many values")
    rows = zip(*lists.values(), strict=True)
    places = zip(*map(_places, lists.values()), strict=True)
    steps = [
        _step(dict(zip(lists, row, strict=True)), dict(zip(lists, place, strict=True)))
        for row, place in zip(rows, places, strict=True)
    ]
    return Axis(tuple(lists), steps)


def latin_hypercube(samples: int, ends: Lists) -> Axis:
    """Return one axis for all keys: *samples* points of a Latin hypercube between the *ends* of each key.

    Each point lies in another *samples*-th of a key's range.  Between whole ends all values are whole, both
    ends included; other values have six significant digits.  Values have the unit of their ends.  Every call
    returns the same points (scipy's qmc, seed 0).

    Raises:
        ValueError: the ends of a key are not two rising numbers in one unit, or *samples* is too large.
    """
    from scipy.stats import qmc

    if samples > MOST_POINTS:
        raise ValueError(f"{samples} samples are too many; give at most {MOST_POINTS}")

    interpolations = {key: _interpolation(key, values) for key, values in ends.items()}
    cube = qmc.LatinHypercube(d=len(ends), rng=0).random(samples)
    rows = [
        {key: value(float(share)) for (key, value), share in zip(interpolations.items(), row, strict=True)}
        for row in cube
    ]
    places = {key: values.where for key, values in ends.items()}
    return Axis(tuple(ends), [_step(row, places) for row in rows])


def _interpolation(key: str, ends: Sequence[object]) -> Callable[[float], object]:
    """Return a function from a share (0 to 1) to the value there between the two *ends* of *key*."""
    if len(ends) != 2:
        raise ValueError(f"{key} has {len(ends)} values; give two, the smallest and the largest")
    (low, unit), (high, high_unit) = map(split, ends)
    if unit == high_unit and not low < high:
        raise ValueError(f"{key} goes from {ends[0]} to {ends[1]}; give the smaller end first")
    if unit != high_unit:
        raise ValueError(f"{key} goes from {ends[0]} to {ends[1]}; give both ends in the same unit")
    whole = all(isinstance(end, int) for end in (low, high))

    def interpolate(share: float) -> object:
        if whole:
            return join_quantities(min(int(low + share * (high + 1 - low)), int(high)), unit)
        return join_quantities(float(f"{low + share * (high - low):.6g}"), unit)

    return interpolate


def _step(values: Mapping[str, object], places: Mapping[str, str]) -> Step:
    """Return the step that sets *values*, which are written at *places*."""
    sets = (Setting((*key.split("."),), value, places[key]) for key, value in values.items())
    return Step({key: _label(value) for key, value in values.items()}, tuple(sets))


def _is_label(value: object) -> bool:
    """Return whether *value* can be a label: a number of at most 64 bits or a printable text."""
    if isinstance(value, str):
        return bool(value.strip()) and value.isprintable()
    return isinstance(value, int | float) and abs(value) <= _LARGEST


def _label(value: object) -> object:
    """Return *value* as a label."""
    return value if _is_label(value) else str(value)


def values_of(text: str) -> list[object]:
    """Return the values of a list such as ``1,2,4..64``, in which ``..`` continues the series before it.

    The series is arithmetic if the values before ``..`` fit, otherwise geometric.  Numbers may have a unit.
    Commas in quotes and brackets are part of a value.

    >>> values_of("1,2,4..16"), values_of("0 s,5 s..15 s")
    ([1, 2, 4, 8, 16], ['0 s', '5 s', '10 s', '15 s'])

    Raises:
        ValueError: a range has no constant step, misses its end, mixes units, or is not of numbers.  Or a
            range has more than `MOST_POINTS` values, or a value occurs twice.
    """
    values: list[object] = []
    for part in _split_list(text):
        first, dots, last = part.partition("..")
        if not dots or part.startswith(('"', "'", "[", "{")):
            values.append(value_of(part))
            continue
        values.append(value_of(first))
        values += _range(values, value_of(last), text)
    _refuse_twice(text, values)
    return values


def _range(start: Sequence[object], last: object, text: str) -> list[object]:
    """Return the values after *start*, the first values of a range, up to *last*."""
    figures, units = zip(*map(split, start), strict=True)
    last_figure, unit = split(last)
    numbers, end = [Fraction(str(number)) for number in figures], Fraction(str(last_figure))
    if {*units} != {unit}:
        raise ValueError(f"{text} mixes units; give all values in the same unit")
    if len(numbers) < 2:
        raise ValueError(f"{text} has no step; write {start[0]},NEXT..{last}")
    add, times = numbers[1] - numbers[0], numbers[1] / numbers[0] if numbers[0] else Fraction(0)
    if all(b - a == add for a, b in pairwise(numbers)):
        times = Fraction(1)
    elif times and all(b == a * times for a, b in pairwise(numbers)):
        add = Fraction(0)
    else:
        raise ValueError(f"{text} has no constant step before its ..; write the values one by one")
    series: list[Fraction] = []
    value = numbers[-1] * times + add
    while (value <= end if numbers[1] > numbers[0] else value >= end) and len(series) <= MOST_POINTS:
        series.append(value)
        value = value * times + add
    if len(series) > MOST_POINTS:
        raise ValueError(f"{text} has more than {MOST_POINTS} values; give at most {MOST_POINTS}")
    if not series or series[-1] != end:
        ends = float((series or numbers)[-1])
        raise ValueError(f"{text} does not reach {last}: its last value is {ends:g}; end the range there")
    whole = all(isinstance(number, int) for number in figures)
    return [
        join_quantities(int(number) if whole and number == int(number) else float(number), unit)
        for number in series
    ]


def value_of(text: str) -> object:
    """Return *text* as a value of TOML, or as a text without outer blanks if it is not valid TOML.

    >>> value_of("4"), value_of("4 KiB"), value_of("[1, 2]")
    (4, '4 KiB', [1, 2])

    Raises:
        ValueError: the value is nested deeper than `MOST_LEVELS`.
    """
    try:
        document = document_of(f"v = {text}")
    except NotToml:
        return text.strip()
    return document["v"] if len(document) == 1 else text.strip()


def _split_list(text: str) -> list[str]:
    """Return the parts of *text* between the commas that are outside quotes and brackets."""
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


def axes_of(problems: Problems, sweep: Table) -> Iterator[Axis]:
    """Yield the axes of *sweep*, the table of a configuration: points, each key of grid, zip, then lhs.

    A part with a problem, which is noted in *problems*, yields no axis.
    """
    problems.refuse_unknown(sweep, tuple(Sweep.model_fields))
    if "name" in sweep or "points" in sweep:
        entries, name = sweep.get("points"), sweep.get("name", "point")
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            problems.wrong(sweep, "name", f"is {name!r}; give a printable name")
            name = "point"
        if isinstance(entries, Items) and entries and all(_has_value(entry) for entry in entries):
            yield from _axis(problems, sweep, "points", by_hand, name, entries)
        else:
            fault = "is missing" if entries is None else f"is {excerpt(entries)}"
            remedy = "give a list of tables, each with a value and the keys that it sets"
            problems.wrong(sweep, "points", f"{fault}; {remedy}")
    table = problems.table(sweep, "grid")
    for key, values in _lists(problems, table).items():
        yield from _axis(problems, table, key, lambda lists: grid(lists)[0], {key: values})
    if together := _lists(problems, problems.table(sweep, "zip")):
        yield from _axis(problems, sweep, "zip", zipped, together)
    if ends := problems.table(sweep, "lhs"):
        samples = ends.get("samples")
        if type(samples) is not int or samples < 1:
            fault = "is missing" if samples is None else f"is {excerpt(samples)}"
            problems.wrong(ends, "samples", f"{fault}; give the number of points, from 1 to {MOST_POINTS}")
            return
        lists = _lists(problems, ends.omit("samples"))
        yield from _axis(problems, sweep, "lhs", latin_hypercube, samples, lists)


def _has_value(entry: object) -> bool:
    return isinstance(entry, Table) and "value" in entry


def _axis(
    problems: Problems, table: Table, entry: str, make: Callable[..., Axis], *inputs: object
) -> Iterator[Axis]:
    """Yield the axis that *make* makes of *inputs*, or note the problem at *entry* of *table*."""
    try:
        yield make(*inputs)
    except ValueError as error:
        problems.wrong(table, entry, str(error))


def _lists(problems: Problems, table: Table) -> dict[str, Items]:
    lists = {}
    for key, values in table.items():
        if isinstance(values, Items) and values:
            lists[key] = values
        else:
            problems.wrong(table, key, f"is {values!r}; a list of values was expected")
    return lists


def axes_asked(problems: Problems, sweep: Asked) -> list[Axis]:
    """Return the axes that *sweep*, from the command line, asks for; a bad list is left out.

    The result is empty if zipped lists differ in length, or if the Latin hypercube is bad.  Each problem is
    noted in *problems* with the option as its place.
    """
    lists: dict[str, Items] = {}
    ends: dict[str, Items] = {}
    for text in sweep.lists:
        key, equals, values_text = text.partition("=")
        key, place = key.strip().removeprefix("scenario."), f"{SET}{text}"
        try:
            if not equals or not key:
                raise ValueError("has no values; write --set key.path=1,2,4")
            if key.count(".") >= MOST_LEVELS:
                raise ValueError(
                    f"has a key of more than {MOST_LEVELS} parts; a key has at most {MOST_LEVELS}"
                )
            if key in lists or key in ends:
                raise ValueError(f"{key} is swept twice; give one list for it")
            is_range = sweep.samples and ".." in values_text and "," not in values_text
            values = map(value_of, values_text.split("..")) if is_range else values_of(values_text)
            (ends if is_range else lists)[key] = Items(values).set_place((), place, {})
        except ValueError as error:
            problems.add_option(place, str(error))
    try:
        axes = [zipped(lists)] if sweep.together and lists else grid(lists)
        if sweep.samples is None:
            return axes
        if not ends:
            raise ValueError(f"has {sweep.samples} samples but no range; add --set KEY=LOW..HIGH")
        return [*axes, latin_hypercube(sweep.samples, ends)]
    except ValueError as error:
        problems.add_option("--set" if sweep.samples is None else "--lhs", str(error))
        return []
