"""Parts of the catalogue that are files: NAME.toml holds what a user's file of the same kind would hold.

Each number states its origin and its source::

    outer = { value = "125 MB/s", origin = "specified", source = "report N10: 12 disks give 1.5 GB/s [D]" }

``like`` names the file of the same folder that brings what is not given.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from wbsim.models.kinds import CHOOSES
from wbsim.sim.param import Given, Inputs, Origin
from wbsim.sim.units import quantities

_FOLDER: Final = Path(__file__).with_name("data")
_PLAIN: Final = ("purpose", "family", "like")
"""Keys with plain texts, which describe the part and are no numbers of it."""
_PLAIN_BELOW: Final = (".like", ".members.count")
"""The ends of keys in tables whose values name something or repeat it, and are no numbers of the part."""
_AMOUNTS: Final = ("value", "low", "high")
"""The keys of a statement that have an amount, or the name of a choice."""


@cache
def names_in(folder: str) -> tuple[str, ...]:
    """Return the names of the parts in *folder* of data/, such as ``drives``, in alphabetical order."""
    return tuple(sorted(path.stem for path in (_FOLDER / folder).glob("*.toml")))


def text_of(folder: str, name: str) -> str:
    """Return the text of the file of the part *name* in *folder*, with its comments.

    Raises:
        FileNotFoundError: *folder* has no such part.
    """
    return (_FOLDER / folder / f"{name}.toml").read_text(encoding="utf-8")


@cache
def part_in(folder: str, name: str) -> Inputs:
    """Return the entries of the part *name* in *folder*, put over those of the part that it is ``like``.

    A number or a choice is a `Given`, ``purpose`` and ``family`` are texts, and a table is a dictionary.
    In tables, ``like`` and the ``count`` of ``members`` are plain, too.  All callers get the same object,
    and must not change it.

    Raises:
        FileNotFoundError: *folder* has no such part.
        ValueError: a number has no origin; the message has the file and the key.
    """
    entries = tomllib.loads(text_of(folder, name))
    plain = {key: entries.pop(key) for key in _PLAIN if key in entries}
    amounts = quantities(list(_amounts(entries)))
    own = {key: _entry(value, f"{name}.toml: {key}", amounts) for key, value in entries.items()}
    base = part_in(folder, plain["like"]) if "like" in plain else {}
    return {**put_over(base, own), **{key: text for key, text in plain.items() if key != "like"}}


@cache
def purposes_in(folder: str) -> Mapping[str, str]:
    """Return the purposes of the parts in *folder*, by name, for `wbsim list`."""
    return {name: part_in(folder, name)["purpose"] for name in names_in(folder)}


def put_over(base: Inputs, own: Inputs) -> Inputs:
    """Return *base* with *own* put over it, table by table.

    A table of another kind or with a ``like`` replaces the complete table.  So do disks of which one has
    a new name: such a file lists all disks of its machine.  The values of ``kind`` and ``scheduler``, which
    are compared, must be `Given`.  Neither argument changes.

    >>> put_over({"cache": {"size": 8, "rate": 5}}, {"cache": {"rate": 9}})
    {'cache': {'size': 8, 'rate': 9}}
    """
    choices = [key for key in CHOOSES if key in own and key in base]
    if "like" in own or any(own[key].value != base[key].value for key in choices):
        return own
    result = dict(base)
    for key, value in own.items():
        base_value = result.get(key)
        if isinstance(value, dict) and isinstance(base_value, dict):
            has_new_disks = key == "disks" and not set(value) <= set(base_value)
            result[key] = value if has_new_disks else put_over(base_value, value)
        else:
            result[key] = value
    return result


def _entry(value: Any, place: str, amounts: Mapping[Any, Any]) -> Any:
    """Return *value*, which stands at *place*: a table of values, or a number with its origin."""
    if not isinstance(value, Mapping):
        if place.endswith(_PLAIN_BELOW):
            return value
        raise ValueError(f"{place} has no origin; write {{ value = ..., origin = ..., source = ... }}")
    if "value" not in value:
        return {key: _entry(item, f"{place}.{key}", amounts) for key, item in value.items()}
    number, low, high = (amounts.get(part, part) for part in map(value.get, _AMOUNTS))
    targets = tuple(value.get("targets", ()))
    return Given(number, Origin(value["origin"]), value["source"], low, high, targets)


def _amounts(entries: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values and the ends of ranges in *entries* that are texts, such as "125 MB/s"."""
    for key, value in entries.items():
        if isinstance(value, Mapping):
            yield from _amounts(value)
        elif key in _AMOUNTS and isinstance(value, str):
            yield value
