"""The tree of a configuration: tables and lists that know their keys and the place of each entry.

A place is a line of a file or an option.  Tables are put over each other (`merge`, `put`) and over parts of
the catalogue.  They keep their places, so that an error names the place of the wrong value (`place_and_key`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, Self

from wbsim.experiments.config.quantities import multiply
from wbsim.models.kinds import CHOOSES
from wbsim.sim.param import ByHand, Given, Origin, Spec, Stated

Path = tuple[str, ...]
"""The parts of a key in a configuration; the part of a list entry is its number."""
SET: Final = "--set "
"""The beginning of the place of a value that the command line sets."""


class Placed:
    """A table or a list that a user wrote.

    key     the key, as the user wrote it
    where   the place: ``file:line`` or an option; empty if it is the place of the parent
    places  the place of each entry, by the entry's name or number
    """

    key: Path = ()
    where: str = ""
    places: Mapping[str, str] = {}

    def set_place(self, key: Path, where: str, places: Mapping[str, str]) -> Self:
        """Set the key, the place and the places of the entries; return the same table or list."""
        self.key, self.where, self.places = key, where, places
        return self

    def place_of(self, entry: str) -> str:
        """Return the place of *entry*; if it has none, return the place of the table or the list."""
        return self.places.get(entry, self.where)

    def key_of(self, entry: str) -> Path:
        """Return the complete key of *entry*: the key of the table or the list, followed by *entry*."""
        return *self.key, entry

    def subtable(self, entry: str, entries: Mapping[str, object] | None = None) -> Table:
        """Return a new table of *entries*, by default none, with the key and the place of *entry*.

        The new table is not put into this one.
        """
        return Table(entries or {}).set_place(self.key_of(entry), self.place_of(entry), {})


class Table(Placed, dict[str, Any]):
    """Values by name; after `with_origins` each is a `Given`, with its place as the source."""

    def like(self, entries: Mapping[str, object]) -> Table:
        """Return a table of *entries* with the key and the places of this one."""
        return Table(entries).set_place(self.key, self.where, self.places)

    def omit(self, *names: str) -> Table:
        """Return a table without the entries of these *names*, if it has them; their places stay known."""
        return self.like({name: value for name, value in self.items() if name not in names})

    def dropped(self, name: str) -> Table:
        """Return a table without the entry *name* and without its place, which another file may then give."""
        places = {entry: place for entry, place in self.places.items() if entry != name}
        return self.omit(name).set_place(self.key, self.where, places)


class Items(Placed, list[Any]):
    """Values in a list."""


def plain(value: object) -> Any:
    """Return the value of a `Given`, without its provenance; return any other *value* unchanged."""
    return value.value if isinstance(value, Given) else value


def with_key(value: object, key: Path) -> Any:
    """Return a copy of *value* with *key* as its key; the keys of its entries begin with *key*.

    A *value* that is neither a table nor a list is returned unchanged.
    """
    if isinstance(value, Table):
        entries = {name: with_key(entry, (*key, name)) for name, entry in value.items()}
        return Table(entries).set_place(key, value.where, value.places)
    if isinstance(value, Items):
        items = (with_key(entry, (*key, str(number))) for number, entry in enumerate(value))
        return Items(items).set_place(key, value.where, value.places)
    return value


def place_tree(value: object, key: Path, where: str, lines: Mapping[Path, str] | None = None) -> Any:
    """Return *value*, of plain dictionaries and lists, as a table or a list with the key *key*.

    *lines* has the places of keys.  Any other key has the place of the table around it; the outermost place
    is *where*.  A *value* that is neither a dictionary nor a list is returned unchanged.
    """
    if not isinstance(value, Mapping | list):
        return value
    lines = lines or {}
    entries = value.items() if isinstance(value, Mapping) else enumerate(value)
    contents = {str(name): entry for name, entry in entries}
    places = {name: lines.get((*key, name), where) for name in contents}
    inner = {name: place_tree(entry, (*key, name), places[name], lines) for name, entry in contents.items()}
    if isinstance(value, Mapping):
        return Table(inner).set_place(key, where, places)
    return Items(inner.values()).set_place(key, where, places)


def place_and_key(tree: Table, path: Path) -> tuple[str, Path]:
    """Return the place of the value at *path* of *tree*, and its key as the user wrote it.

    A value of the catalogue has the place of the nearest table around it.  The place of a table includes the
    options that set something in the table, because one of them may cause the problem.
    """
    node: object = tree
    where, key = tree.where, path
    for depth, part in enumerate(path):
        if isinstance(node, Placed):
            where, key = node.place_of(part) or where, (*node.key, *path[depth:])
        node = _entry(node, part)
    if isinstance(node, Placed):
        where, key = node.where or where, node.key
    return ", ".join(dict.fromkeys([where, *_options(node)])), key


def _entry(node: object, part: str) -> object:
    """Return the entry *part* of *node*; None if *node* lacks it."""
    if isinstance(node, Mapping):
        return node.get(part)
    if isinstance(node, Spec):
        return getattr(node, part, None)
    if isinstance(node, list | tuple) and part.isdecimal() and int(part) < len(node):
        return node[int(part)]
    return None


def _options(node: object) -> Iterator[str]:
    """Yield the options of the command line that set something in *node*."""
    if isinstance(node, Placed):
        yield from (place for place in node.places.values() if place.startswith(SET))
    if isinstance(node, Table | Items):
        for entry in node.values() if isinstance(node, Table) else node:
            yield from _options(entry)


_FACTOR: Final = re.compile(r"x([0-9]{1,12}(?:\.[0-9]{1,12})?)")


class Factor(NamedTuple):
    """A factor for the value that the key has otherwise, such as ``x2``."""

    ratio: float

    def __repr__(self) -> str:
        return f"x{self.ratio:g}"


def factor_in(value: object) -> object:
    """Return the `Factor` of a text such as ``x2``; mark a whole number as `ByHand`.

    Any other *value* is returned unchanged.

    >>> factor_in("x2"), factor_in("two")
    (x2, 'two')
    """
    match = _FACTOR.fullmatch(value) if isinstance(value, str) else None
    return Factor(float(match[1])) if match else by_hand(value)


_ORIGINS: Final = {"assumed": Origin.ASSUMED, "measured": Origin.MEASURED}
_WITH_ORIGIN: Final = {"low", "high", "why"}
_STATEMENT: Final = ("value", "origin", "source", "low", "high", "targets")


def with_origins(table: Table, *, factors: bool = False) -> Table:
    """Return a copy of *table* with each value, also in inner tables, as a `Given` whose source is its place.

    A table that names an origin becomes one value.  In a list, only tables are converted.  With *factors* a
    text such as ``x2`` is a `Factor`.
    """
    return table.like(
        {name: with_origin(value, table.place_of(name), factors=factors) for name, value in table.items()}
    )


def with_origin(value: object, where: str, *, factors: bool = False) -> Any:
    """Return *value* as a `Given` with its place *where* as the source; in a table, convert each value.

    In a list, only tables are converted, and a whole number is marked as `ByHand`.
    ``{ value = 5, origin = "assumed", low = 1, high = 9, source = "..." }`` names another origin, and so does
    ``{ assumed = 5, low = 1, high = 9, why = "..." }``.  With *factors* a text such as ``x2`` is a factor.
    """
    if isinstance(value, Table):
        statement = _statement_in(value, where)
        return with_origins(value, factors=factors) if statement is None else statement
    if isinstance(value, Items):
        items = (
            with_origins(entry, factors=factors) if isinstance(entry, Table) else by_hand(entry)
            for entry in value
        )
        return Items(items).set_place(value.key, value.where, value.places)
    return Given(factor_in(value) if factors else by_hand(value), Origin.SPECIFIED, where)


def _statement_in(table: Table, where: str) -> Given | None:
    """Return the value of a *table* that names an origin; None for any other table."""
    if "value" in table:
        value = table["value"]
        origin_name = table.get("origin", Origin.SPECIFIED.value)
        origin: Any = (
            Origin(origin_name) if origin_name in list(Origin) else origin_name
        )  # the check of the spec refuses others
        low, high = (by_hand(table.get(end, value)) for end in ("low", "high"))
        source = f"{where}: {table.get('source', 'given')}"
        extra_keys = tuple(key for key in table if key not in _STATEMENT)
        return Stated(by_hand(value), origin, source, low, high, tuple(table.get("targets", ())), extra_keys)
    name = next((key for key in table if key in _ORIGINS), None)
    if name is None or not set(table) <= {name, *_WITH_ORIGIN}:
        return None
    why = f"{where}: {table.get('why', name)}"
    low, high = table.get("low", table[name]), table.get("high", table[name])
    return Stated(by_hand(table[name]), _ORIGINS[name], why, by_hand(low), by_hand(high))


def by_hand(value: object) -> object:
    """Return *value*; mark a whole number as `ByHand`, because its unit may be missing."""
    return ByHand(value) if isinstance(value, int) and not isinstance(value, bool) else value


def entries_of(part: Spec | Mapping[str, object]) -> dict[str, object]:
    """Return the entries of *part* in a new dictionary; the entries of a spec are `Given` or other specs."""
    return part.entries() if isinstance(part, Spec) else dict(part)


def merge(base: Spec | Mapping[str, object], changes: Table) -> Table:
    """Return a new table: *base* with *changes* put over it, table by table, and with the key of *changes*.

    If *changes* have another ``kind`` or ``scheduler``, they are returned without *base*.  A factor
    multiplies a number.  An unchanged part of the catalogue in *base* stays the same object, which is already
    checked.
    """
    result = entries_of(base)
    for key in CHOOSES:
        if key in changes and key in result and plain(changes[key]) != plain(result[key]):
            return changes
    for key, value in changes.items():
        base_value = result.get(key)
        if isinstance(value, Table) and isinstance(base_value, Mapping | Spec):
            result[key] = merge(base_value, value)
        else:
            result[key] = _apply_factor(base_value, value)
    table = changes.like(result)
    if isinstance(base, Table):
        table.set_place(changes.key, changes.where or base.where, {**base.places, **changes.places})
    return table


def put(table: Table, path: Path, value: object, place: str) -> Table:
    """Return a copy of *table* with *value* put over its entry at *path*; *place* is the place of *value*.

    Tables that are missing on the way are added.  A number in *path* selects an entry of a list.  A text on
    the way becomes a table with the text as its ``command``.

    Raises:
        ValueError: the list lacks the entry.
    """
    first, *rest = path
    if not rest:
        change = Table({first: value}).set_place(table.key, "", {first: place})
        return merge(table, change)
    entry = table.get(first)
    if isinstance(entry, Items):
        if rest[0] not in map(str, range(len(entry))):
            raise ValueError(f"has {len(entry)} entries, numbered from 0; entry {rest[0]} does not exist")
        by_number = Table({str(number): item for number, item in enumerate(entry)})
        inner = put(by_number.set_place(entry.key, entry.where, entry.places), tuple(rest), value, place)
        new_entry: Any = Items(inner.values()).set_place(inner.key, inner.where, inner.places)
    else:
        if isinstance(plain(entry), str):  # a program may be a text, which is its command
            entry = Table({"command": entry}).set_place(table.key_of(first), table.place_of(first), {})
        subtable = entry if isinstance(entry, Table) else Table().set_place(table.key_of(first), "", {})
        new_entry = put(subtable, tuple(rest), value, place)
    return table.like({**table, first: new_entry})


_SHORT: Final = {"workload": "programs", "filesystem": "mounts"}
_INNER: Final = {"programs": "workload", "mounts": "filesystem"}


def written_as(table: Mapping[str, object], path: Path) -> Path:
    """Return the form of *path* that *table* uses.

    ``workload.x`` is a key of the only program, if that has a name.  ``programs.a.workload.x``, the form of a
    resolved configuration, becomes ``programs.a.x`` or ``workload.x``.  Filesystems and mounts follow the
    same rules.

    >>> written_as({"programs": {"a": {}}}, ("workload", "files"))
    ('programs', 'a', 'files')
    """
    first, *rest = path
    members = table.get(_SHORT.get(first, ""))
    if first not in table and isinstance(members, Mapping) and len(members) == 1:
        return (_SHORT[first], *members, *rest)
    short = _INNER.get(first, "")
    if first not in table and short in table and len(path) > 2:  # the key that `wbsim show` prints
        return (short, *rest[2 if rest[1] == short else 1 :])
    if len(path) > 3 and path[2] == _INNER.get(first):
        return (first, path[1], *path[3:])
    return path


def _apply_factor(base_value: object, value: Any) -> object:
    """Return *value*, or *base_value* multiplied by it if it is a factor."""
    factor = plain(value)
    if not isinstance(factor, Factor) or base_value is None:
        return value
    number = plain(base_value)
    if isinstance(number, Factor):
        return replace(value, value=Factor(number.ratio * factor.ratio))
    try:
        times = multiply(number, factor.ratio)
    except ValueError:  # `factors_in` finds the factor that is left
        return value
    return replace(value, value=times, source=f"{value.source}: times {factor.ratio:g}")


def has_name(value: object, name: str) -> bool:
    """Return whether any text in *value*, also in its tables and lists, contains ``{name}``."""
    value = plain(value)
    if isinstance(value, Mapping):
        return any(has_name(entry, name) for entry in value.values())
    if isinstance(value, list):
        return any(has_name(entry, name) for entry in value)
    return isinstance(value, str) and f"{{{name}}}" in value


def with_name(value: object, name: str, text: str) -> Any:
    """Return *value* with *text* in place of every ``{name}``, *name* in braces, in its texts."""
    if isinstance(value, Given):
        return replace(value, value=with_name(value.value, name, text))
    if isinstance(value, Table):
        return value.like({key: with_name(entry, name, text) for key, entry in value.items()})
    if isinstance(value, Items):
        items = Items(with_name(entry, name, text) for entry in value)
        return items.set_place(value.key, value.where, value.places)
    return value.replace(f"{{{name}}}", text) if isinstance(value, str) else value


def factors_in(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path, which begins with *path*, of each factor that is left in *value*.

    A factor is left if its key had no number to multiply; the caller reports this.
    """
    if isinstance(value, Mapping | Items):
        for key, entry in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from factors_in(entry, (*path, str(key)))
    elif isinstance(plain(value), Factor):
        yield path
