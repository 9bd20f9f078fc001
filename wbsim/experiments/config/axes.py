"""From what is written of a sweep, in a configuration or on the command line, to its axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from wbsim.experiments.config.key_places import Path
from wbsim.experiments.config.problems import Collected
from wbsim.experiments.config.sweeps import (
    Axis,
    by_hand,
    grid,
    latin_hypercube,
    value_of,
    values_of,
    zipped,
)
from wbsim.experiments.config.toml_document import MOST_LEVELS

_SWEEP: Final = ("name", "points", "grid", "zip", "lhs")


class Asked(NamedTuple):
    """What a command line sweeps: ``KEY=VALUES`` each, *together* (the first values, the second ones ...) or
    each with each; with *samples*, two ends of a range each, of which a Latin hypercube is made.
    """

    lists: tuple[str, ...] = ()
    together: bool = False
    samples: int | None = None


NOTHING: Final = Asked()


def axes_of(found: Collected, sweep: Mapping[str, Any]) -> Iterator[Axis]:
    """What the *sweep* of a configuration says; what is wrong with it is *found*."""
    found.refuse_unknown(sweep, _SWEEP, ("sweep",))
    if "name" in sweep or "points" in sweep:
        entries, name = sweep.get("points"), sweep.get("name", "point")
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            found.wrong(("sweep", "name"), f"is {name!r}; give what is swept a name")
            name = "point"
        if (
            isinstance(entries, list)
            and entries
            and all(isinstance(of, dict) and "value" in of for of in entries)
        ):
            yield from _axis(found, ("sweep", "points"), by_hand, name, entries)
        else:
            what = "has to be a list of tables, each with a value and what it sets"
            found.wrong(("sweep", "points"), what)
    at = ("sweep", "grid")
    for key, values in _lists(found, at, sweep.get("grid", {})).items():
        yield from _axis(found, (*at, key), lambda lists: grid(lists, at)[0], {key: values})
    at = ("sweep", "zip")
    if together := _lists(found, at, sweep.get("zip", {})):
        yield from _axis(found, at, zipped, together, at)
    ends = dict(found.table(("sweep", "lhs"), sweep.get("lhs", {})))
    if ends:
        samples = ends.pop("samples", None)
        if type(samples) is not int or samples < 1:
            found.wrong(("sweep", "lhs", "samples"), "is missing; say how many points are wanted")
            return
        at = ("sweep", "lhs")
        yield from _axis(found, at, latin_hypercube, samples, _lists(found, at, ends), at)


def _axis(found: Collected, path: Path, make: Callable[..., Axis], *given: Any) -> Iterator[Axis]:
    """What *make* makes of what is *given* at *path*, or nothing and the problem."""
    try:
        yield make(*given)
    except ValueError as error:
        found.wrong(path, str(error))


def axes_asked(found: Collected, asked: Asked) -> list[Axis]:
    """What the command line sweeps; see `axes_of`."""
    lists: dict[str, list[Any]] = {}
    ends: dict[str, list[Any]] = {}
    for text in asked.lists:
        key, equals, values = text.partition("=")
        key = key.strip().removeprefix("scenario.")
        try:
            if not equals or not key:
                raise ValueError("has no values; write --set key.path=1,2,4")
            if key.count(".") >= MOST_LEVELS:
                raise ValueError(f"has a key of more than {MOST_LEVELS} parts; none has")
            if key in lists or key in ends:
                raise ValueError(f"{key} is swept twice; give one list of it")
            if asked.samples and ".." in values and "," not in values:
                ends[key] = [value_of(end) for end in values.split("..")]
            else:
                lists[key] = values_of(values)
        except ValueError as error:
            found.asked(f"--set {text}", str(error))
            continue
        found.places.override(("scenario", *key.split(".")), f"--set {text}")
    try:
        axes = [zipped(lists)] if asked.together and lists else grid(lists)
        if asked.samples is None:
            return axes
        if not ends:
            raise ValueError(f"{asked.samples} samples of nothing; give a range, --set KEY=LOW..HIGH")
        return [*axes, latin_hypercube(asked.samples, ends)]
    except ValueError as error:
        found.asked("--set" if asked.samples is None else "--lhs", str(error))
        return []


def _lists(found: Collected, path: Path, value: Any) -> dict[str, list[Any]]:
    lists = {}
    for key, values in found.table(path, value).items():
        if isinstance(values, list) and values:
            lists[key] = values
        else:
            found.wrong((*path, key), f"is {values!r}; a list of values was expected")
    return lists
