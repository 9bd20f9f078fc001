"""From the document of a configuration to its cases; all that is wrong with it is told together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, Final

from pydantic import ValidationError

from wbsim.experiments.config.axes import Asked, axes_asked, axes_of
from wbsim.experiments.config.case import Case, Experiment
from wbsim.experiments.config.catalogue_inputs import unchanged
from wbsim.experiments.config.inputs import Inputs
from wbsim.experiments.config.key_places import Path, Places
from wbsim.experiments.config.merge import merged, plain, put, written_as
from wbsim.experiments.config.problems import Collected, from_validation, unknown_key
from wbsim.experiments.config.scenarios import PARTS, scenario_inputs
from wbsim.experiments.config.sweeps import (
    MOST_REPLICATIONS,
    Axis,
    Factor,
    Step,
    factor_in,
    points,
    value_of,
)
from wbsim.experiments.config.toml_document import MOST_LEVELS
from wbsim.experiments.config.user_parts import by_hand
from wbsim.models.scenario import Scenario
from wbsim.sim.param import specified

_TOP: Final = ("title", "scenario", "variants", "sweep", "quick", "replications")
_OF_A_VARIANT: Final = ("rows", "quick")
_TABLES: Final = ("machine", "kernel", "filesystem", "mounts")


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
        self._found = Collected(places)
        self._directory = directory
        self._overrides: list[tuple[Path, Any]] = []
        for override in overrides:
            self._read_override(override)
        self._asked = axes_asked(self._found, asked)

    def experiment(self, only: str | None) -> Experiment:
        """What the document says; of its variants, *only* that one.

        Raises:
            BadInput: all that is wrong with it.
        """
        document = self._document
        self._found.refuse_unknown(document, _TOP, ())
        title = document.get("title", "")
        if not isinstance(title, str) or not title.strip() or not title.isprintable():
            unprintable = isinstance(title, str) and title.strip()
            what = f"is {title!r}" if unprintable else "is missing"
            self._found.wrong(("title",), f"{what}; say in a sentence what the experiment shows")
        common = self._found.table(("scenario",), document.get("scenario", {}))
        self._found.refuse_unknown(common, PARTS, ("scenario",))
        variants = self._found.table(("variants",), document.get("variants", {})) or {"base": {}}
        for variant in variants:
            if not variant.strip() or not variant.isprintable():
                self._found.wrong(("variants", variant), "is no name; give some letters")
        if only is not None and only not in variants:
            self._found.wrong(("variants", only), unknown_key(only, list(variants)))
        axes = [*axes_of(self._found, self._found.table(("sweep",), document.get("sweep", {}))), *self._asked]
        replications = document.get("replications", 1)
        if type(replications) is not int or not 1 <= replications <= MOST_REPLICATIONS:
            what = f"is {replications!r}; a whole number from 1 to {MOST_REPLICATIONS} was expected"
            self._found.wrong(("replications",), what)
        names = [name for axis in axes for name in axis.names]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            self._found.wrong(("sweep",), f"has {name} twice; sweep it once")
        cases = [
            case
            for variant in variants
            if only in (None, variant) and not self._found.enough
            for case in self._cases(
                variant, common, self._found.table(("variants", variant), variants[variant]), axes
            )
        ]
        self._found.tell()
        return Experiment(title, tuple(names), tuple(cases), replications)

    def _cases(
        self, variant: str, common: Mapping[str, Any], changes: Mapping[str, Any], axes: Sequence[Axis]
    ) -> list[Case]:
        self._found.variant = variant
        self._found.refuse_unknown(changes, (*PARTS, *_OF_A_VARIANT), ("variants", variant))
        rows = self._found.texts(("variants", variant, "rows"), changes.get("rows", []))
        if "quick" in changes:
            quick = self._found.texts(("variants", variant, "quick"), changes["quick"])
        else:
            quick = self._found.texts(("quick",), self._document.get("quick", []))
        table = merged(common, {key: value for key, value in changes.items() if key not in _OF_A_VARIANT})
        for path, value in self._overrides:
            table = self._put(table, path, value)
        return [
            replace(case, rows=rows, quick=quick)
            for step in points(axes)
            if not self._found.enough
            for case in self._case(variant, step, self._set(table, step))
        ]

    def _set(self, table: dict[str, Any], step: Step) -> dict[str, Any]:
        """*table* at a point of the sweep."""
        for path, value in step.sets.items():
            table = self._put(table, path, factor_in(value), self._found.places.of_case(_moved(step), ()))
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
            self._found.wrong(("scenario", *path), known, places)
            return table
        filled: dict[str, Any] = _filled(table, name, str(value))
        return filled

    def _case(self, variant: str, step: Step, table: Mapping[str, Any]) -> list[Case]:
        """The case of *table*, or nothing and its problems."""
        sourced = {}
        for part, given in ((part, given) for part, given in table.items() if part in PARTS):
            checked = self._found.table(("scenario", part), given) if part in _TABLES else given
            tables = isinstance(checked, Mapping | list)
            sourced[part] = self._sourced_value(checked, ("scenario", part)) if tables else checked
        inputs: Inputs = scenario_inputs(sourced, self._directory)
        moved = _moved(step)
        for path, at in inputs.moved.items():
            moved["scenario", *path] = [("variants", variant, *at), ("scenario", *at)]
        files = [(("scenario", *path), file) for path, file in inputs.files]
        places = self._found.places.of_case(moved, files)
        for path, message in inputs.problems:
            self._found.wrong(("scenario", *path), message, places)
        factors: list[Path] = []
        if _has_factor(sourced):  # else there is none among the inputs, which are many more
            factors = [inputs.written(path) for path in _factors(inputs.inputs, ())]
        for path in factors:
            what = "is a factor; it multiplies a number, and there is none"
            self._found.wrong(("scenario", *path), what, places)
        if factors:
            return []
        try:
            return [Case(variant, step.shown, Scenario.model_validate(unchanged(inputs.inputs)))]
        except ValidationError as error:
            prefixes: list[Path] = [("variants", variant), ("scenario",)]
            problems = from_validation(error, Scenario, places, prefixes, inputs.written)
            blamed = {"", *(".".join(path[:-1]) for path, _ in inputs.problems)} if inputs.problems else set()
            self._found.problems += [
                problem
                for problem in problems
                if not any(problem.key == of or (of and problem.key.startswith(f"{of}.")) for of in blamed)
            ]
            return []

    def _sourced(self, table: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """*table* with every value marked as given here."""
        return {key: self._sourced_value(value, (*path, key)) for key, value in table.items()}

    def _sourced_value(self, value: Any, path: Path) -> Any:
        if isinstance(value, Mapping):
            return self._sourced(value, path)
        if isinstance(value, list):
            return [
                self._sourced(item, (*path, str(place))) if isinstance(item, Mapping) else by_hand(item)
                for place, item in enumerate(value)
            ]
        place = self._found.places.of(("variants", self._found.variant, *path[1:]), path)
        return specified(factor_in(by_hand(value)), place)

    def _read_override(self, override: str) -> None:
        key, equals, text = override.partition("=")
        place = f"--set {override}"
        if not equals or not key:
            self._found.asked(place, "has no value; write --set key.path=value")
            return
        path = tuple(key.strip().removeprefix("scenario.").split("."))
        try:
            if len(path) > MOST_LEVELS:
                raise ValueError(f"has a key of {len(path)} parts; none has more than {MOST_LEVELS}")
            self._overrides.append((path, factor_in(value_of(text))))
        except ValueError as error:
            self._found.asked(place, str(error))
            return
        self._found.places.override(("scenario", *path), place)


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
