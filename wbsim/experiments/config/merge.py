"""Tables of a configuration, put over each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from wbsim.experiments.config.key_places import Path
from wbsim.experiments.config.sweeps import Factor, scaled
from wbsim.sim.param import Given, specified


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """*base* with *changes* put over it, table by table; what is of another ``kind`` replaces a table
    whole, and a factor multiplies.
    """
    if "kind" in changes and "kind" in base and plain(changes["kind"]) != plain(base["kind"]):
        return dict(changes)
    result = dict(base)
    for key, value in changes.items():
        below = result.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            result[key] = merged(below, value)
        else:
            result[key] = _over(below, value)
    return result


def put(table: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """*table* with *value* put at *path*, in which a number is a place of a list."""
    first, *rest = path
    below = table.get(first)
    if rest and isinstance(below, list):
        inner = put(dict(enumerate_texts(below)), tuple(rest), value)
        return {**table, first: [inner[str(place)] for place in range(len(inner))]}
    if rest and isinstance(below, str):  # a program that is its command alone
        below = {"command": below}
    if rest:
        return {**table, first: put(below if isinstance(below, Mapping) else {}, tuple(rest), value)}
    return merged(table, {first: value})


_SHORT: Final = {"workload": "programs", "filesystem": "mounts"}
_INNER: Final = {"programs": "workload", "mounts": "filesystem"}


def written_as(table: Mapping[str, Any], path: Path) -> Path:
    """*path* as *table* has it: ``workload.x`` is the only named program's, ``programs.a.workload.x`` (as a
    resolved configuration has it) is ``programs.a.x``; so with filesystems and mounts.
    """
    first, *rest = path
    named = table.get(_SHORT.get(first, ""))
    if first not in table and isinstance(named, Mapping) and len(named) == 1:
        return (_SHORT[first], *named, *rest)
    short = _INNER.get(first, "")
    if first not in table and short in table and len(path) > 2:  # by the name that show prints
        return (short, *rest[2 if rest[1] == short else 1 :])
    if len(path) > 3 and path[2] == _INNER.get(first):
        return (first, path[1], *path[3:])
    return path


def enumerate_texts(items: list[Any]) -> list[tuple[str, Any]]:
    """The items of a list by their places, as a key has them."""
    return [(str(place), item) for place, item in enumerate(items)]


def _over(below: Any, value: Any) -> Any:
    """*value*, or *below* multiplied by it."""
    factor = plain(value)
    if not isinstance(factor, Factor) or below is None:
        return value
    number = plain(below)
    if isinstance(number, Factor):
        product: Any = Factor(number.by * factor.by)
        return replace(value, value=product) if isinstance(value, Given) else product
    try:
        times = scaled(number, factor.by)
    except ValueError:  # there is nothing to multiply, which the factor that is left says
        return value
    return specified(times, f"{value.source}: times {factor.by:g}") if isinstance(value, Given) else times


def plain(value: Any) -> Any:
    """A value without its provenance."""
    return value.value if isinstance(value, Given) else value
