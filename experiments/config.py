"""Experiment configurations: TOML text -> the scenarios of its variants and sweep.

title = "..."                      # what the experiment shows
[scenario]                         # the common scenario; `like` names what a part starts from
machine.like = "p13-vm"
kernel.like = "3.11"
filesystem.like = "p13-xfs"
workload.command = "fs_mark -D 10000 -S0 ..."
sync_after = true                  # optional: a sync(2) follows; so it does after fio and dd
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
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from pathlib import PurePosixPath
from typing import Any, Final

from pydantic import ValidationError

from experiments.problems import (
    BadInput,
    Path,
    Places,
    Problem,
    bad,
    from_validation,
    merged,
    unknown_key,
)  # fmt: skip
from models.commands import CommandError
from models.hardware import DD_PROGRAM, FIO_PROGRAM, FS_MARK_PROGRAM
from models.kernels import KERNELS
from models.machine import Scenario
from models.testbeds import FILESYSTEMS, MACHINES
from models.workloads import dd, fio, fs_mark
from sim.param import ByHand, Spec, specified

_BASES: Final[dict[str, Mapping[str, Spec]]] = {"machine": MACHINES, "kernel": KERNELS, "filesystem": FILESYSTEMS}
_PARTS: Final = (*_BASES, "workload", "give_up", "sync_after")
_TOP: Final = ("title", "scenario", "variants", "sweep", "quick", "replications")
_OF_A_VARIANT: Final = ("rows", "quick")
_SWEEP: Final = ("name", "points")
DEFAULT_GIVE_UP: Final = "100000 s"


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


def load(file: FilePath, overrides: Sequence[str] = ()) -> Experiment:
    """The experiment in *file*, with *overrides* of the form ``key.path=value``.

    Raises:
        BadInput: all that is wrong with it.
    """
    try:
        text = file.read_text()
    except OSError as error:
        raise bad(str(file), f"{error.strerror}; give the path of an experiment's .toml file") from None
    except UnicodeDecodeError:
        raise bad(str(file), "is not text; give the path of an experiment's .toml file") from None
    return parse(text, str(file), overrides)


def parse(text: str, name: str, overrides: Sequence[str] = ()) -> Experiment:
    """The experiment in *text*, which is called *name* in messages.

    Raises:
        BadInput: all that is wrong with it.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise bad(name, f"not TOML: {error}") from None
    return _Reader(document, Places(name, text), overrides).experiment()


class _Reader:
    """Collects problems while it reads, and raises them together."""

    def __init__(self, document: dict[str, Any], places: Places, overrides: Sequence[str]) -> None:
        self._document = document
        self._places = places
        self._problems: list[Problem] = []
        self._variant = ""
        self._overrides: list[tuple[Path, Any]] = []
        for override in overrides:
            self._read_override(override)

    def experiment(self) -> Experiment:
        document = self._document
        self._refuse_unknown(document, _TOP, ())
        title = document.get("title", "")
        if not isinstance(title, str) or not title:
            self._wrong(("title",), "is missing; say in a sentence what the experiment shows")
        common = self._table(("scenario",), document.get("scenario", {}))
        variants = self._table(("variants",), document.get("variants", {})) or {"base": {}}
        sweep = self._table(("sweep",), document.get("sweep", {}))
        replications = document.get("replications", 1)
        if not isinstance(replications, int) or replications < 1:
            self._wrong(("replications",), f"is {replications!r}; a whole number of one or more was expected")
        cases = [
            case
            for variant in variants
            for case in self._cases(variant, common, self._table(("variants", variant), variants[variant]), sweep)
        ]
        if self._problems:
            raise BadInput(list(dict.fromkeys(self._problems)))
        return Experiment(title, sweep.get("name"), tuple(cases), replications)

    def _cases(
        self, variant: str, common: Mapping[str, Any], changes: Mapping[str, Any], sweep: Mapping[str, Any]
    ) -> list[Case]:
        self._variant = variant
        rows = self._texts(("variants", variant, "rows"), changes.get("rows", []))
        quick = self._texts(("variants", variant, "quick"), changes.get("quick", self._document.get("quick", [])))
        table = merged(common, {key: value for key, value in changes.items() if key not in _OF_A_VARIANT})
        for path, value in self._overrides:
            table = merged(table, _nested(path, value))
        if not sweep:
            return [replace(case, rows=rows, quick=quick) for case in self._case(variant, None, table)]
        self._refuse_unknown(sweep, _SWEEP, ("sweep",))
        points = sweep.get("points")
        if not isinstance(points, list) or not points or not all(isinstance(p, dict) and "value" in p for p in points):
            return self._wrong(("sweep", "points"), "has to be a list of tables, each with a value and what it sets")
        cases = []
        for point in points:
            changes = {key: value for key, value in point.items() if key != "value"}
            cases += self._case(variant, point["value"], merged(table, changes))
        return cases

    def _case(self, variant: str, point: Any, table: Mapping[str, Any]) -> list[Case]:
        """The case of *table*, or nothing and its problems."""
        self._variant = variant
        self._refuse_unknown(table, _PARTS, ("scenario",))
        inputs: dict[str, Any] = {"give_up": table.get("give_up", DEFAULT_GIVE_UP)}
        for part, bases in _BASES.items():
            inputs[part] = self._based(part, dict(self._table(("scenario", part), table.get(part, {}))), bases)
        inputs["workload"] = self._workload(dict(self._table(("scenario", "workload"), table.get("workload", {}))))
        unknown = [part for part, given in inputs.items() if given is None]
        if "workload" not in unknown:
            inputs["sync_after"] = table.get("sync_after", inputs["workload"]["kind"] in _FLUSHED)
        try:
            return [Case(variant, point, Scenario.model_validate(inputs))]
        except ValidationError as error:
            tables: list[Path] = [("variants", variant), ("scenario",)]
            found = from_validation(error, Scenario, self._places, tables)
            self._problems += [problem for problem in found if problem.key not in unknown]
            return []

    def _based(self, part: str, given: dict[str, Any], bases: Mapping[str, Spec]) -> dict[str, Any] | None:
        like = given.pop("like", None)
        if not isinstance(like, str) or like not in bases:
            what = "is missing" if like is None else f"{like!r} is not known"
            self._wrong(("scenario", part, "like"), f"{what}; use one of {', '.join(map(repr, bases))}")
            return None
        return merged(bases[like].inputs(), self._sourced(given, ("scenario", part)))

    def _workload(self, given: dict[str, Any]) -> dict[str, Any] | None:
        command = given.pop("command", None)
        lines = [command] if isinstance(command, str) else command
        if not isinstance(lines, list) or not lines or not all(isinstance(line, str) for line in lines):
            self._wrong(("scenario", "workload", "command"), f"is missing; give a command line of {_PROGRAMS}")
            return None
        try:
            fields = _read_command(lines)
        except CommandError as error:
            self._wrong(("scenario", "workload", "command"), str(error))
            return None
        return merged(fields, self._sourced(given, ("scenario", "workload")))

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


_PROGRAMS: Final = "fs_mark, fio or dd"
_FLUSHED: Final = ("fio", "dd")
"""Whose files are looked at afterwards: xfs_bmap would write them back, and so a sync(2) follows them."""


def _read_command(lines: Sequence[str]) -> dict[str, Any]:
    """The workload that command lines ask for, with what the program itself costs; several dds run at once."""
    program = PurePosixPath((lines[0].split() or [""])[0]).name
    if program == "dd":
        return {**dd.parse_commands(lines), **DD_PROGRAM}
    if len(lines) > 1:
        raise CommandError(f"{len(lines)} command lines; only dd can be given several, which run at once")
    if program == "fio":
        return {**fio.parse_command(lines[0]), **FIO_PROGRAM}
    if program in ("fs_mark", "fsmark"):
        return {**fs_mark.parse_command(lines[0]), **FS_MARK_PROGRAM}
    raise CommandError(f"{lines[0]!r} is not a command line of {_PROGRAMS}")


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
