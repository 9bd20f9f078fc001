"""From the document of a configuration to its cases; all that is wrong with it is told together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from wbsim.experiments.config.case import Case, Experiment
from wbsim.experiments.config.catalogued import unchanged
from wbsim.experiments.config.merge import merged, plain, put, written_as
from wbsim.experiments.config.places import MOST_LEVELS, Path, Places
from wbsim.experiments.config.problems import BadInput, Problem, from_validation, unknown_key
from wbsim.experiments.config.scenarios import PARTS, Inputs, scenario_inputs
from wbsim.experiments.config.sweeps import (
    MOST_REPLICATIONS,
    Axis,
    Factor,
    Step,
    by_hand,
    factor_in,
    grid,
    latin_hypercube,
    points,
    value_of,
    values_of,
    zipped,
)
from wbsim.models.scenario import Scenario
from wbsim.sim.param import ByHand, specified

_TOP: Final = ("title", "scenario", "variants", "sweep", "quick", "replications")
_OF_A_VARIANT: Final = ("rows", "quick")
_SWEEP: Final = ("name", "points", "grid", "zip", "lhs")
_TABLES: Final = ("machine", "kernel", "filesystem", "mounts")


class Asked(NamedTuple):
    """What a command line sweeps: ``KEY=VALUES`` each, *together* (the first values, the second ones ...) or
    each with each; with *samples*, two ends of a range each, of which a Latin hypercube is made.
    """

    lists: tuple[str, ...] = ()
    together: bool = False
    samples: int | None = None


NOTHING: Final = Asked()


class Reader:
    """Collects problems while it reads, and raises them together."""

    def __init__(
        self,
        document: dict[str, Any],
        places: Places,
        overrides: Sequence[str],
        directory: FilePath,
        asked: Asked,
    ) -> None:
        self._document = document
        self._places = places
        self._directory = directory
        self._problems: list[Problem] = []
        self._variant = ""
        self._overrides: list[tuple[Path, Any]] = []
        for override in overrides:
            self._read_override(override)
        self._asked = self._axes_asked(asked)

    def experiment(self, only: str | None) -> Experiment:
        """What the document says; of its variants, *only* that one.

        Raises:
            BadInput: all that is wrong with it.
        """
        document = self._document
        self._refuse_unknown(document, _TOP, ())
        title = document.get("title", "")
        if not isinstance(title, str) or not title.strip():
            self._wrong(("title",), "is missing; say in a sentence what the experiment shows")
        common = self._table(("scenario",), document.get("scenario", {}))
        variants = self._table(("variants",), document.get("variants", {})) or {"base": {}}
        for variant in variants:
            if not variant.strip() or not variant.isprintable():
                self._wrong(("variants", variant), "is no name; give some letters")
        if only is not None and only not in variants:
            self._wrong(("variants", only), unknown_key(only, list(variants)))
        axes = [*self._axes(self._table(("sweep",), document.get("sweep", {}))), *self._asked]
        replications = document.get("replications", 1)
        if type(replications) is not int or not 1 <= replications <= MOST_REPLICATIONS:
            what = f"is {replications!r}; a whole number from 1 to {MOST_REPLICATIONS} was expected"
            self._wrong(("replications",), what)
        names = [name for axis in axes for name in axis.names]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            self._wrong(("sweep",), f"has {name} twice; sweep it once")
        cases = [
            case
            for variant in variants
            if only in (None, variant)
            for case in self._cases(
                variant, common, self._table(("variants", variant), variants[variant]), axes
            )
        ]
        if self._problems:
            raise BadInput(list(dict.fromkeys(self._problems)))
        return Experiment(title, tuple(names), tuple(cases), replications)

    def _axes(self, sweep: Mapping[str, Any]) -> Iterator[Axis]:
        """What the configuration sweeps."""
        self._refuse_unknown(sweep, _SWEEP, ("sweep",))
        if "name" in sweep or "points" in sweep:
            entries, name = sweep.get("points"), sweep.get("name", "point")
            if not isinstance(name, str) or not name.strip() or not name.isprintable():
                self._wrong(("sweep", "name"), f"is {name!r}; give what is swept a name")
                name = "point"
            if (
                isinstance(entries, list)
                and entries
                and all(isinstance(of, dict) and "value" in of for of in entries)
            ):
                yield from self._axis(("sweep", "points"), by_hand, name, entries)
            else:
                what = "has to be a list of tables, each with a value and what it sets"
                self._wrong(("sweep", "points"), what)
        at = ("sweep", "grid")
        for key, values in self._lists(at, sweep.get("grid", {})).items():
            yield from self._axis((*at, key), lambda lists: grid(lists, at)[0], {key: values})
        at = ("sweep", "zip")
        if together := self._lists(at, sweep.get("zip", {})):
            yield from self._axis(at, zipped, together, at)
        ends = dict(self._table(("sweep", "lhs"), sweep.get("lhs", {})))
        if ends:
            samples = ends.pop("samples", None)
            if type(samples) is not int or samples < 1:
                self._wrong(("sweep", "lhs", "samples"), "is missing; say how many points are wanted")
                return
            at = ("sweep", "lhs")
            yield from self._axis(at, latin_hypercube, samples, self._lists(at, ends), at)

    def _axis(self, path: Path, make: Callable[..., Axis], *given: Any) -> Iterator[Axis]:
        """What *make* makes of what is *given* at *path*, or nothing and the problem."""
        try:
            yield make(*given)
        except ValueError as error:
            self._wrong(path, str(error))

    def _axes_asked(self, asked: Asked) -> list[Axis]:
        """What the command line sweeps."""
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
                self._problems.append(Problem(f"--set {text}", "", str(error)))
                continue
            self._places.override(("scenario", *key.split(".")), f"--set {text}")
        try:
            axes = [zipped(lists)] if asked.together and lists else grid(lists)
            if asked.samples is None:
                return axes
            if not ends:
                raise ValueError(f"{asked.samples} samples of nothing; give a range, --set KEY=LOW..HIGH")
            return [*axes, latin_hypercube(asked.samples, ends)]
        except ValueError as error:
            self._problems.append(Problem("--set" if asked.samples is None else "--lhs", "", str(error)))
            return []

    def _lists(self, path: Path, value: Any) -> dict[str, list[Any]]:
        found = {}
        for key, values in self._table(path, value).items():
            if isinstance(values, list) and values:
                found[key] = values
            else:
                self._wrong((*path, key), f"is {values!r}; a list of values was expected")
        return found

    def _cases(
        self, variant: str, common: Mapping[str, Any], changes: Mapping[str, Any], axes: Sequence[Axis]
    ) -> list[Case]:
        self._variant = variant
        rows = self._texts(("variants", variant, "rows"), changes.get("rows", []))
        if "quick" in changes:
            quick = self._texts(("variants", variant, "quick"), changes["quick"])
        else:
            quick = self._texts(("quick",), self._document.get("quick", []))
        table = merged(common, {key: value for key, value in changes.items() if key not in _OF_A_VARIANT})
        for path, value in self._overrides:
            table = self._put(table, path, value)
        return [
            replace(case, rows=rows, quick=quick)
            for step in points(axes)
            for case in self._case(variant, step, self._set(table, step))
        ]

    def _set(self, table: dict[str, Any], step: Step) -> dict[str, Any]:
        """*table* at a point of the sweep."""
        for path, value in step.sets.items():
            table = self._put(table, path, factor_in(value), self._places.of_case(_moved(step), ()))
        return table

    def _put(
        self, table: dict[str, Any], path: Path, value: Any, places: Places | None = None
    ) -> dict[str, Any]:
        """*table* with a key set, or a name in braces filled in."""
        if path[0] in PARTS:
            return put(table, written_as(table, path), value)
        name = ".".join(path)
        if not _has(table, name):
            known = f"{unknown_key(path[0], PARTS)}, or {{{name}}} in a command line"
            self._wrong(("scenario", *path), known, places)
            return table
        filled: dict[str, Any] = _filled(table, name, str(value))
        return filled

    def _case(self, variant: str, step: Step, table: Mapping[str, Any]) -> list[Case]:
        """The case of *table*, or nothing and its problems."""
        self._refuse_unknown(table, PARTS, ("scenario",))
        sourced = {}
        for part, given in table.items():
            checked = self._table(("scenario", part), given) if part in _TABLES else given
            sourced[part] = (
                self._sourced(checked, ("scenario", part)) if isinstance(checked, Mapping) else checked
            )
        found: Inputs = scenario_inputs(sourced, self._directory)
        moved = _moved(step)
        for path, at in found.moved.items():
            moved["scenario", *path] = [("variants", variant, *at), ("scenario", *at)]
        files = [(("scenario", *path), file) for path, file in found.files]
        places = self._places.of_case(moved, files)
        for path, message in found.problems:
            self._wrong(("scenario", *path), message, places)
        factors: list[Path] = []
        if _has_factor(sourced):  # else there is none among the inputs, which are many more
            factors = [found.written(path) for path in _factors(found.inputs, ())]
        for path in factors:
            what = "is a factor; it multiplies a number, and there is none"
            self._wrong(("scenario", *path), what, places)
        if factors:
            return []
        try:
            return [Case(variant, step.shown, Scenario.model_validate(unchanged(found.inputs)))]
        except ValidationError as error:
            prefixes: list[Path] = [("variants", variant), ("scenario",)]
            problems = from_validation(error, Scenario, places, prefixes, found.written)
            blamed = {"", *(".".join(path[:-1]) for path, _ in found.problems)} if found.problems else set()
            self._problems += [
                problem
                for problem in problems
                if not any(problem.key == of or (of and problem.key.startswith(f"{of}.")) for of in blamed)
            ]
            return []

    def _texts(self, path: Path, value: Any) -> tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return tuple(value)
        self._wrong(path, f"is {value!r}; a list of texts was expected")
        return ()

    def _sourced(self, table: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """*table* with every value marked as given here."""
        result: dict[str, Any] = {}
        for key, value in table.items():
            place = self._places.of(("variants", self._variant, *path[1:], key), (*path, key))
            if isinstance(value, Mapping):
                result[key] = self._sourced(value, (*path, key))
            elif isinstance(value, int) and not isinstance(value, bool):
                result[key] = specified(ByHand(value), place)
            elif isinstance(value, list):
                result[key] = value
            else:
                result[key] = specified(factor_in(value), place)
        return result

    def _read_override(self, override: str) -> None:
        key, equals, text = override.partition("=")
        place = f"--set {override}"
        if not equals or not key:
            self._problems.append(Problem(place, "", "has no value; write --set key.path=value"))
            return
        path = tuple(key.strip().removeprefix("scenario.").split("."))
        try:
            if len(path) > MOST_LEVELS:
                raise ValueError(f"has a key of {len(path)} parts; none has more than {MOST_LEVELS}")
            self._overrides.append((path, factor_in(value_of(text))))
        except ValueError as error:
            self._problems.append(Problem(place, "", str(error)))
            return
        self._places.override(("scenario", *path), place)

    def _refuse_unknown(self, table: Mapping[str, Any], known: Sequence[str], path: Path) -> None:
        for key in table:
            if key not in known:
                self._wrong((*path, key), unknown_key(key, known))

    def _table(self, path: Path, value: Any) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            return value
        self._wrong(path, f"is {value!r}; a table was expected")
        return {}

    def _wrong(self, path: Path, message: str, places: Places | None = None) -> None:
        place = (places or self._places).of(("variants", self._variant, *path[1:]), path)
        key = path[1:] if path[0] == "scenario" else path
        self._problems.append(Problem(place, ".".join(key), message))


def _moved(step: Step) -> dict[Path, Sequence[Path]]:
    """Where a point of a configuration's sweep sets its keys."""
    return {("scenario", *path): [at] for path, at in step.written.items()}


def _has(value: Any, name: str) -> bool:
    """Whether any text in there has ``{name}``."""
    if isinstance(value, Mapping):
        return any(_has(below, name) for below in value.values())
    if isinstance(value, list):
        return any(_has(below, name) for below in value)
    return isinstance(value, str) and f"{{{name}}}" in value


def _filled(value: Any, name: str, text: str) -> Any:
    """*value* with *text* for every ``{name}`` in its texts."""
    if isinstance(value, Mapping):
        return {key: _filled(below, name, text) for key, below in value.items()}
    if isinstance(value, list):
        return [_filled(below, name, text) for below in value]
    return value.replace(f"{{{name}}}", text) if isinstance(value, str) else value


def _has_factor(value: Any) -> bool:
    if isinstance(value, Mapping | list):
        return any(map(_has_factor, value.values() if isinstance(value, Mapping) else value))
    return isinstance(plain(value), Factor)


def _factors(value: Any, path: Path) -> Iterator[Path]:
    """Where a factor is left that found nothing to multiply."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _factors(below, (*path, str(key)))
    elif isinstance(plain(value), Factor):
        yield path
