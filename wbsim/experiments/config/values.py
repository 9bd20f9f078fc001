"""The values that a field of a spec takes, and its default, in words."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from wbsim.experiments.config.grammar import Takes
from wbsim.sim.param import MOST, MOST_BYTES, MOST_BYTES_PER_S, MOST_NS, Spec, Unit, unit_of
from wbsim.sim.units import SCALES

KINDS: Final = {"ns": "time", "B": "size", "B/s": "rate"}
"""The name of each unit in `wbsim.sim.units`."""
MOST_OF: Final = {"ns": MOST_NS, "B": MOST_BYTES, "B/s": MOST_BYTES_PER_S, "1": MOST}
"""The upper bound of a field without a smaller one, by unit."""
_WORDS: Final[dict[object, str]] = {int: "whole number", float: "number", bool: "true or false", str: "text"}


def takes(field: FieldInfo) -> str:
    """Return, in words, the values of *field*: its type with its range, its choices, or what `Takes` says."""
    words = next((mark.words for mark in field.metadata if isinstance(mark, Takes)), None)
    return words or _takes(field.annotation, field.metadata, unit_of(field))


def _takes(annotation: Any, marks: Sequence[object], unit: str) -> str:
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _takes(inner, (*more, *marks), unit)
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in get_args(annotation))
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [_takes(part, marks, unit) for part in get_args(annotation) if part is not types.NoneType]
        alone, *lists = dict.fromkeys(parts)
        return f"{alone}; or a list" if lists else alone
    if get_origin(annotation) is tuple:
        return f"list: {_takes(get_args(annotation)[0], (), unit)}"
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return "table"
    return _WORDS[annotation] if annotation in (bool, str) else _number(annotation, marks, unit)


def _number(annotation: object, marks: Sequence[object], unit: str) -> str:
    """Return the kind of the number, and the range that *marks* allow."""
    least, floor, most = bounds(marks, "ge"), bounds(marks, "gt"), bounds(marks, "le")
    words = [KINDS.get(unit, _WORDS[annotation])]
    if floor and max(floor) >= max(least, default=0):
        words.append(f"more than {amount(max(floor), unit)}")
    elif least:
        low, high = amount(max(least), unit), min(most, default=MOST_OF[unit])
        words.append(f"{low} or more" if high == MOST_OF[unit] else f"{low} to {amount(high, unit)}")
    words += [f"multiple of {amount(step, unit)}" for step in bounds(marks, "multiple_of")]
    return ", ".join(words)


_NUMBER: Final = r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?"
_FACTOR: Final = {"type": "string", "pattern": r"^x[0-9]+(\.[0-9]+)?$"}


def json_type(field: FieldInfo) -> dict[str, object]:
    """Return the JSON Schema of the values of *field*, as a configuration writes them.

    A quantity is a text with a unit, and any number may be a factor, such as "x2".
    """
    return _json_type(field.annotation, field.metadata, unit_of(field))


def _json_type(annotation: Any, marks: Sequence[object], unit: str) -> dict[str, object]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _json_type(inner[0], (*inner[1:], *marks), unit)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        parts = [_json_type(part, marks, unit) for part in inner if part is not types.NoneType]
        return parts[0] if len(parts) == 1 else {"anyOf": parts}
    if origin in (tuple, list):
        return _json_list(_json_type(inner[0], (), unit))
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, Spec)):
        return {"type": "object"}
    if annotation is Any:
        return {}
    if annotation in (bool, str):
        return {"type": "boolean" if annotation is bool else "string"}
    return _json_number(annotation, marks, unit)


def _json_list(items: dict[str, object]) -> dict[str, object]:
    """Return the schema of a list of *items*.

    A number may stand for as many directories, a single text for a list, and a table with a ``count`` for
    equal members.
    """
    shorthand: object = {"type": ["string", "integer"]} if items == {"type": "string"} else {"type": "object"}
    return {"anyOf": [{"type": "array", "items": items}, shorthand]}


def _json_number(annotation: object, marks: Sequence[object], unit: str) -> dict[str, object]:
    """Return the schema of a number with its range, or of a quantity: a text with a unit of its kind."""
    if unit in KINDS:
        units = "|".join(SCALES[KINDS[unit]])
        quantity = {"type": "string", "pattern": rf"^\s*\+?{_NUMBER}\s*({units})\s*$"}
        without_unit = any(isinstance(mark, Unit) and mark.optional for mark in marks)
        bare: list[object] = [{"type": "integer", "minimum": 0}] if without_unit else []
        return {"anyOf": [quantity, _FACTOR, *bare]}
    number: dict[str, object] = {"type": "integer" if annotation is int else "number"}
    for name, keyword, choose in _BOUNDS:
        if limits := bounds(marks, name):
            number[keyword] = choose(limits)
    return {"anyOf": [number, _FACTOR]}


_BOUNDS: Final = (
    ("ge", "minimum", max), ("gt", "exclusiveMinimum", max), ("le", "maximum", min),
    ("multiple_of", "multipleOf", max),
)  # fmt: skip
"""The bounds of a field, their keywords in JSON Schema, and which of several counts."""


def bounds(marks: Iterable[Any], name: str) -> list[Any]:
    """Return the bounds of the kind *name*, such as ``ge``, in *marks*, the metadata of a field.

    Bounds in a `FieldInfo` among *marks* count, too.  The list is empty without such a bound.
    """
    return [
        bound
        for mark in marks
        for bound in (
            bounds(mark.metadata, name) if isinstance(mark, FieldInfo) else [getattr(mark, name, None)]
        )
        if bound is not None
    ]


def amount(value: Any, unit: str) -> str:
    """Return *value* in the largest unit in which it is a whole number; *unit* is the unit of a spec.

    A value of a *unit* other than ns, B and B/s, and 0, have no unit in the text.

    >>> amount(5_000_000, "ns"), amount(0, "ns"), amount(7, "1")
    ('5 ms', '0', '7')
    """
    if unit not in KINDS or not value:
        return f"{value:.10g}" if isinstance(value, float) else str(value)
    scales = SCALES[KINDS[unit]]
    name = max((name for name in scales if value % scales[name] == 0), key=lambda name: scales[name])
    return f"{value // scales[name]} {name}"


def in_words(value: Any, unit: str) -> str:
    """Return the default *value* as a configuration would have it; None and an empty list are "none".

    *unit* is the unit of the field.
    """
    if value is None or value == ():
        return "none"
    if isinstance(value, bool | str):
        return json.dumps(value)
    return amount(value, unit)
