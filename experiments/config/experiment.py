"""Experiment configurations: TOML text -> the scenarios of its variants and sweep.

title = "..."                      # what the experiment shows
[scenario]                         # the common scenario; `like` names what a part starts from
machine.like = "p13-vm"
kernel.like = "3.11"
filesystem.like = "p13-xfs"        # one disk and one mount need no name, nor does one program:
workload.command = "fs_mark -D 10000 -S0 ..."
sync_after = true                  # optional: a sync(2) follows; by default, where files are looked at
machine.memory.memory = "16 GiB"   # any number of a spec can be given
[variants.patched]                 # what sets a variant apart
rows = ["P13-wall-p"]              # optional: the published figures that it stands for
kernel.writeback.plug_scope = "slice"
quick = ["workload.loops=12"]      # optional, here or in a variant: what --quick sets
replications = 8                   # optional: how often `wbsim reproduce` runs it
[sweep]                            # optional: one axis; a point may set several numbers
name = "threads"
points = [
{ value = 1, workload.processes = 1 },
{ value = 2, workload.processes = 2 },
]

Several of them have names (`experiments.config.scenarios`):

machine.disks.sd = { like = "sata-ssd", count = 2 }        # sd0 and sd1, beside those that the machine has
mounts.d = { like = "loop-ext4", each = "sd", at = "/d{n}" }
programs.make = "fs_mark ... -d /d0/a"                     # a path picks its mount
programs.copy = { command = "dd of=/d1/x ...", start = "5 s" }
programs.sync = { command = "sync", start = "4 s", times = 3, every = "10 s" }   # or sync -f PATH
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Final

from pydantic import ValidationError

from wbsim.experiments.config.problems import (
    BadInput,
    Path,
    Places,
    Problem,
    bad,
    from_validation,
    merged,
    unknown_key,
)  # fmt: skip
from wbsim.experiments.config.scenarios import PARTS, Inputs, scenario_inputs
from wbsim.models.scenario import Scenario
from wbsim.sim.param import ByHand, specified

_TOP: Final = ("title", "scenario", "variants", "sweep", "quick", "replications")
_OF_A_VARIANT: Final = ("rows", "quick")
_SWEEP: Final = ("name", "points")
_TABLES: Final = ("machine", "kernel", "filesystem", "mounts")


@dataclass(frozen=True)
class Case:
    """One run of an experiment: a variant, at one point of the sweep (None without one).

    ``rows``: the ids of the published figures that it stands for; ``quick``: the overrides of a shorter run.
    """

    variant: str
    point: Any
    scenario: Scenario
    rows: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """A name for tables and files."""
        return self.variant if self.point is None else f"{self.variant}-{self.point}"


@dataclass(frozen=True)
class Experiment:
    """A whole configuration, validated."""

    title: str
    axis: str | None
    cases: tuple[Case, ...]
    replications: int = 1

    def only_case(self, variant: str | None) -> Case:
        """The one run, or the one of that name.

        Raises:
            BadInput: there are several of them, or none.
        """
        cases = [case for case in self.cases if variant in (None, case.label, case.variant)]
        if len(cases) != 1:
            names = ", ".join(case.label for case in self.cases)
            what = "is missing" if variant is None else f"{variant} names {len(cases)} runs"
            raise bad("--variant", f"{what}; use one of {names}")
        return cases[0]


def load(file: FilePath, overrides: Sequence[str] = (), only: str | None = None) -> Experiment:
    """The experiment in *file*, with *overrides* of the form ``key.path=value``; of its variants, *only* that
    one, if it is given.

    Raises:
        BadInput: all that is wrong with it.
    """
    try:
        text = file.read_text()
    except OSError as error:
        raise bad(str(file), f"{error.strerror}; give the path of an experiment's .toml file") from None
    except UnicodeDecodeError:
        raise bad(str(file), "is not text; give the path of an experiment's .toml file") from None
    return parse(text, str(file), overrides, only)


def parse(text: str, name: str, overrides: Sequence[str] = (), only: str | None = None) -> Experiment:
    """The experiment in *text*, which is called *name* in messages, and whose job files lie beside that; see
    `load`.

    Raises:
        BadInput: all that is wrong with it.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise bad(name, f"not TOML: {error}") from None
    return _Reader(document, Places(name, text), overrides, FilePath(name).parent).experiment(only)


class _Reader:
    """Collects problems while it reads, and raises them together."""

    def __init__(
        self, document: dict[str, Any], places: Places, overrides: Sequence[str], directory: FilePath
    ) -> None:
        self._document = document
        self._places = places
        self._directory = directory
        self._problems: list[Problem] = []
        self._variant = ""
        self._overrides: list[tuple[Path, Any]] = []
        for override in overrides:
            self._read_override(override)

    def experiment(self, only: str | None) -> Experiment:
        document = self._document
        self._refuse_unknown(document, _TOP, ())
        title = document.get("title", "")
        if not isinstance(title, str) or not title:
            self._wrong(("title",), "is missing; say in a sentence what the experiment shows")
        common = self._table(("scenario",), document.get("scenario", {}))
        variants = self._table(("variants",), document.get("variants", {})) or {"base": {}}
        sweep = self._table(("sweep",), document.get("sweep", {}))
        replications = document.get("replications", 1)
        if type(replications) is not int or replications < 1:
            self._wrong(("replications",), f"is {replications!r}; a whole number of one or more was expected")
        cases = [
            case
            for variant in variants
            if only in (None, variant)
            for case in self._cases(
                variant, common, self._table(("variants", variant), variants[variant]), sweep
            )
        ]
        if self._problems:
            raise BadInput(list(dict.fromkeys(self._problems)))
        return Experiment(title, sweep.get("name"), tuple(cases), replications)

    def _cases(
        self, variant: str, common: Mapping[str, Any], changes: Mapping[str, Any], sweep: Mapping[str, Any]
    ) -> list[Case]:
        self._variant = variant
        rows = self._texts(("variants", variant, "rows"), changes.get("rows", []))
        quick = self._texts(
            ("variants", variant, "quick"), changes.get("quick", self._document.get("quick", []))
        )
        table = merged(common, {key: value for key, value in changes.items() if key not in _OF_A_VARIANT})
        for path, value in self._overrides:
            table = merged(table, _nested(path, value))
        if not sweep:
            return [replace(case, rows=rows, quick=quick) for case in self._case(variant, None, table)]
        self._refuse_unknown(sweep, _SWEEP, ("sweep",))
        points = sweep.get("points")
        if (
            not isinstance(points, list)
            or not points
            or not all(isinstance(p, dict) and "value" in p for p in points)
        ):
            return self._wrong(
                ("sweep", "points"), "has to be a list of tables, each with a value and what it sets"
            )
        cases = []
        for point in points:
            changes = {key: value for key, value in point.items() if key != "value"}
            cases += self._case(variant, point["value"], merged(table, changes))
        return cases

    def _case(self, variant: str, point: Any, table: Mapping[str, Any]) -> list[Case]:
        """The case of *table*, or nothing and its problems."""
        self._variant = variant
        self._refuse_unknown(table, PARTS, ("scenario",))
        sourced = {}
        for part, given in table.items():
            checked = self._table(("scenario", part), given) if part in _TABLES else given
            sourced[part] = (
                self._sourced(checked, ("scenario", part)) if isinstance(checked, Mapping) else checked
            )
        found: Inputs = scenario_inputs(sourced, self._directory)
        for path, message in found.problems:
            self._wrong(("scenario", *path), message)
        try:
            return [Case(variant, point, Scenario.model_validate(found.inputs))]
        except ValidationError as error:
            prefixes: list[Path] = [("variants", variant), ("scenario",)]
            problems = from_validation(error, Scenario, self._places, prefixes, found.written)
            blamed = {"", *(".".join(path[:-1]) for path, _ in found.problems)} if found.problems else set()
            self._problems += [problem for problem in problems if problem.key not in blamed]
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
                result[key] = specified(value, place)
        return result

    def _read_override(self, override: str) -> None:
        key, equals, text = override.partition("=")
        place = f"--set {override}"
        if not equals or not key:
            self._problems.append(Problem(place, "", "has no value; write --set key.path=value"))
            return
        try:
            value = tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            value = text
        path = tuple(key.strip().removeprefix("scenario.").split("."))
        self._places.override(("scenario", *path), place)
        self._overrides.append((path, value))

    def _refuse_unknown(self, table: Mapping[str, Any], known: Sequence[str], path: Path) -> None:
        for key in table:
            if key not in known:
                self._wrong((*path, key), unknown_key(key, known))

    def _table(self, path: Path, value: Any) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            return value
        self._wrong(path, f"is {value!r}; a table was expected")
        return {}

    def _wrong(self, path: Path, message: str) -> list[Case]:
        place = self._places.of(("variants", self._variant, *path[1:]), path)
        key = path[1:] if path[0] == "scenario" else path
        self._problems.append(Problem(place, ".".join(key), message))
        return []


def _nested(path: Path, value: Any) -> dict[str, Any]:
    for part in reversed(path):
        value = {part: value}
    result: dict[str, Any] = value
    return result


def from_command(command: str, overrides: Sequence[str] = ()) -> Experiment:
    """P13's machine and kernel under another fs_mark command.

    Raises:
        BadInput: all that is wrong with it.
    """
    quoted = command.replace("\\", "\\\\").replace('"', '\\"')
    text = f"""title = "fs_mark on P13's machine"
[scenario]
machine.like = "p13-vm"
kernel.like = "3.11"
filesystem.like = "p13-xfs"
workload.command = "{quoted}"
"""
    return parse(text, "--fs-mark", overrides)
