"""From the tables of a configuration to the inputs of a `Scenario`: names, `like`, counts, command lines.

One disk, one mount or one program needs no name: ``machine.device``, ``filesystem`` and ``workload`` are then
the only one's.  Problems are collected with the keys as they are written.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path as FilePath
from pathlib import PurePosixPath
from typing import Any, Final

from wbsim.experiments.config.catalogued import inputs_of
from wbsim.experiments.config.merge import merged, plain
from wbsim.experiments.config.own import NotThere, by_hand, own_part
from wbsim.experiments.config.places import Path, Places
from wbsim.experiments.config.problems import unknown_key
from wbsim.experiments.config.speed import at_speed
from wbsim.experiments.config.sweeps import Factor
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.kernels import FIRST, KERNELS, LAST
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.variants import variants
from wbsim.models.workloads.command_line import CommandError, words_of
from wbsim.sim.param import Spec

PARTS: Final = (
    "machine", "kernel", "filesystem", "mounts", "workload", "programs", "give_up", "sync_after",
)  # fmt: skip
DEFAULT_GIVE_UP: Final = "100000 s"
MOST_DISKS: Final = 1024
ONLY_MOUNT: Final = "mnt"
"""The name of a filesystem that was given none."""
_ALREADY_THERE: Final = ("files", "cached_inodes")
_OF_A_MOUNT: Final = ("disk", "at", "each", *_ALREADY_THERE)
_OF_A_DISK: Final = ("queue", "device")
_FOLDERS: Final = {"machine": "machines", "kernel": "kernels", "filesystem": "filesystems"}
"""Where parts of one's own lie; any other one is a disk's."""


class Inputs:
    """The inputs of a scenario, and what was wrong with what was written; *directory* is where that lies."""

    def __init__(self, directory: FilePath) -> None:
        self.directory = directory
        self.inputs: dict[str, Any] = {}
        self.problems: list[tuple[Path, str]] = []
        self.moved: dict[Path, Path] = {}
        """What follows from another key: the fields of a command line."""
        self.files: list[tuple[Path, Places]] = []
        """The files of one's own, and below which key each is put."""
        self._written: list[tuple[Path, Path]] = []

    def wrong(self, path: Path, message: str) -> None:
        """What is written at *path* has this wrong."""
        self.problems.append((path, message))

    def table(self, path: Path, given: Any) -> dict[str, Any]:
        """What is *given* at *path*, which has to be a table."""
        if isinstance(given, Mapping):
            return dict(given)
        self.wrong(path, f"is {plain(given)!r}; a table was expected")
        return {}

    def writes(self, path: Path, written: Path) -> None:
        """What the scenario has at *path* is written at *written*."""
        self._written.append((path, written))

    def own(self, path: Path) -> str:
        """The place of the ``like`` of the last file of one's own at *path*, as a beginning; or nothing."""
        own = [places.of(("like",)) for at, places in self.files if at == path]
        return f"{own[-1]}: " if own else ""

    def written(self, path: Path) -> Path:
        """How the scenario's key *path* is written."""
        for prefix, written in self._written:
            if path[: len(prefix)] == prefix:
                return written + path[len(prefix) :]
        return path


def scenario_inputs(tables: Mapping[str, Any], directory: FilePath = FilePath()) -> Inputs:
    """The inputs that *tables*, the parts of a configuration's scenario, stand for; the job files of its
    commands are looked for in *directory*, too.
    """
    of = Inputs(directory)
    of.inputs["give_up"] = by_hand(tables["give_up"]) if "give_up" in tables else DEFAULT_GIVE_UP
    machine, groups = _machine(of, dict(tables.get("machine", {})))
    if machine is not None:
        of.inputs["machine"] = machine
    kernel = dict(tables.get("kernel", {}))
    based = _based(of, ("kernel",), kernel, KERNELS)
    if based is not None:
        of.inputs["kernel"] = based
    disks = list(machine["disks"]) if machine is not None else [""]  # which is told, and not once more
    of.inputs["mounts"] = _mounts(of, tables, disks, groups)
    of.inputs["programs"] = programs = _programs(of, tables)
    kinds = {program["workload"]["kind"] for program in programs.values() if program}
    keeps = any(variants("workloads")[kind].spec.keeps_files for kind in kinds)
    of.inputs["sync_after"] = tables.get("sync_after", keeps)
    return of


def _based(of: Inputs, path: Path, given: dict[str, Any], bases: Mapping[str, Spec]) -> dict[str, Any] | None:
    """The inputs of what ``like`` names, with what is *given* put over it."""
    given = _expanded(of, path, given, bases)
    like = plain(given.pop("like", None))
    if not isinstance(like, str) or like not in bases:
        if not any(at == (*path, "like") for at, _ in of.problems):
            own = of.own(path)
            missing = "there is no like" if own else "is missing"
            what = missing if like is None else f"{like!r} is not known"
            more = f", or any release from {FIRST} to {LAST}" if bases is KERNELS else ""
            of.wrong((*path, "like"), f"{own}{what}; use one of {', '.join(map(repr, bases))}{more}")
        return None
    return merged(inputs_of(bases[like]), given)


def _expanded(of: Inputs, path: Path, given: dict[str, Any], bases: Mapping[str, Spec]) -> dict[str, Any]:
    """*given* over what the files of one's own say that its ``like`` names."""
    seen: set[FilePath] = set()
    while isinstance(like := plain(given.get("like")), str) and like not in bases:
        folder = _FOLDERS.get("filesystem" if path[0] == "mounts" else path[-1], "disks")
        try:
            file, table, places = own_part(like, folder, of.directory)
        except NotThere:
            break
        except ValueError as error:
            of.wrong((*path, "like"), f"{of.own(path)}{error}")
            break
        if file in seen:
            of.wrong((*path, "like"), f"{of.own(path)}is like itself; name what it starts from")
            break
        seen.add(file)
        of.files.append((path, places))
        given = merged(table, {key: value for key, value in given.items() if key != "like"})
    return given


def _machine(of: Inputs, given: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, list[str]]]:
    """The machine's inputs, and the names of the disks of each group that was given with a count."""
    before = given.get("disks", {})
    given = _expanded(of, ("machine",), given, MACHINES)
    of_only_disk: dict[str, Any] = {key: given.pop(key) for key in _OF_A_DISK if key in given}
    disks = of.table(("machine", "disks"), given.pop("disks", {}))
    machine = _based(of, ("machine",), given, MACHINES)
    if machine is None:
        return None, {}
    known = set(before) if isinstance(before, Mapping) else set(disks)
    if set(disks) - known:  # a file of one's own says all disks that its machine has
        machine["disks"] = {}
    machine["disks"] = dict(machine["disks"])
    names = list(machine["disks"])
    if len(names) == 1:
        machine["disks"][names[0]] = merged(machine["disks"][names[0]], of_only_disk)
        if not disks:
            of.writes(("machine", "disks", names[0]), ("machine",))
    groups = {name: _disk(of, machine["disks"], name, entry, disks) for name, entry in disks.items()}
    machine["disks"] = {name: _at_speed(of, name, disk) for name, disk in machine["disks"].items()}
    return machine, {name: disks for name, disks in groups.items() if disks}


def _disk(of: Inputs, disks: dict[str, Any], name: str, entry: Any, named: Mapping[str, Any]) -> list[str]:
    """Put the disk *name* among *disks*, one of those that are *named*; the names of those that it stands
    for, if it has a count.
    """
    path = "machine", "disks", name
    table = of.table(path, entry)
    count = plain(table.pop("count", None))
    drive = table
    if "like" in table:
        based = _based(of, path, table, DRIVES)
        if based is None:
            return []
        drive = based
    if count is None:
        disks[name] = merged(disks.get(name, {}), drive)
        return []
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_DISKS:
        of.wrong((*path, "count"), f"is {count!r}; a whole number from 1 to {MOST_DISKS} was expected")
        return []
    group = [f"{name}{n}" for n in range(count)]
    for one in group:
        if one in disks or one in named:
            of.wrong((*path, "count"), f"there is a disk {one} already; call these otherwise")
            return []
        of.writes(("machine", "disks", one), path)
        disks[one] = drive
    return group


def _at_speed(of: Inputs, name: str, disk: Any) -> Any:
    """*disk*, whose device may be asked to be so many times as fast."""
    device = disk.get("device")
    if not isinstance(device, Mapping) or "speed" not in device:
        return disk
    speed = plain(device["speed"])
    speed = speed.by if isinstance(speed, Factor) else speed  # so many times as fast as it is
    rest = {key: value for key, value in device.items() if key != "speed"}
    if not isinstance(speed, int | float) or isinstance(speed, bool) or not 0.001 <= speed <= 1000:
        of.wrong(
            ("machine", "disks", name, "device", "speed"),
            f"is {speed!r}; give how many times as fast, such as 2",
        )
        return {**disk, "device": rest}
    return {**disk, "device": at_speed(rest, float(speed))}


def _mounts(
    of: Inputs, tables: Mapping[str, Any], disks: list[str], groups: Mapping[str, list[str]]
) -> dict[str, Any]:
    """The inputs of all mounts, by name."""
    if "mounts" not in tables:
        based = _based(of, ("filesystem",), dict(tables.get("filesystem", {})), FILESYSTEMS)
        if len(disks) > 1:
            of.wrong(
                ("filesystem",), f"which disk is it on? write mounts.NAME.disk, one of {', '.join(disks)}"
            )
        of.writes(("mounts", ONLY_MOUNT, "filesystem"), ("filesystem",))
        of.writes(("mounts", ONLY_MOUNT), ("filesystem",))
        of.writes(("mounts",), ("filesystem",))
        return {ONLY_MOUNT: {"disk": disks[0] if disks else "", "at": "/", "filesystem": based or {}}}
    if "filesystem" in tables:
        of.wrong(
            ("filesystem",), "is for one mount without a name; there are mounts, so give it to one of them"
        )
    mounts = {}
    for name, entry in tables["mounts"].items():
        table = of.table(("mounts", name), entry)
        where = {key: plain(table.pop(key)) for key in _OF_A_MOUNT if key in table}
        based = _based(of, ("mounts", name), table, FILESYSTEMS)
        each = where.pop("each", None)
        if each is not None and not (isinstance(each, str) and each in groups):
            known = ", ".join(groups) or "there is none"
            of.wrong(
                ("mounts", name, "each"),
                f"{each!r} is no group of disks with a count; use one of them ({known})",
            )
            continue
        if each is None and "disk" not in where and len(disks) == 1:
            where["disk"] = disks[0]
        at = str(where.get("at", "/"))
        there: dict[str, Any] = {key: where[key] for key in _ALREADY_THERE if key in where}
        for n, disk in enumerate(groups[each] if each is not None else [where.get("disk")]):
            if disk is None:
                of.wrong(("mounts", name, "disk"), f"is missing; use one of {', '.join(disks)}")
                continue
            one = name if each is None else f"{name}{n}"
            of.writes(("mounts", one, "filesystem"), ("mounts", name))
            of.writes(("mounts", one), ("mounts", name))
            place = {"disk": disk, "at": at.replace("{n}", str(n))}
            mounts[one] = {**place, **there, "filesystem": based or {}}
    return mounts


def _programs(of: Inputs, tables: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of all programs, by name: that of the program itself where none is given."""
    if "programs" not in tables:
        program = _program(of, ("workload",), tables.get("workload", {}))
        if program is None:
            return {}
        name = program["workload"]["kind"]
        of.writes(("programs", name, "workload"), ("workload",))
        of.writes(("programs", name), ("workload",))
        of.writes(("programs",), ("workload",))
        return {name: program}
    if "workload" in tables:
        of.wrong(
            ("workload",), "is for one program without a name; there are programs, so give it to one of them"
        )
    given = tables["programs"]
    named = given.items() if isinstance(given, Mapping) else [(None, entry) for entry in given]
    programs: dict[str, Any] = {}
    for number, (name, entry) in enumerate(named):
        path = ("programs", name if name is not None else str(number))
        program = _program(of, path, {"command": entry} if not isinstance(entry, Mapping) else entry)
        if program is not None:
            kind = program["workload"]["kind"]
            same = sum(other["workload"]["kind"] == kind for other in programs.values())
            one = name if name is not None else kind if not same else f"{kind}-{same + 1}"
            of.writes(("programs", one, "workload"), path)
            of.writes(("programs", one), path)
            programs[one] = program
    return programs


def _program(of: Inputs, path: Path, entry: Any) -> dict[str, Any] | None:
    """One program, from its command and what is given beside that."""
    if not isinstance(entry, Mapping):
        of.wrong(path, f"is {entry!r}; a table was expected")
        return None
    given = dict(entry)
    command = plain(given.pop("command", None))
    own = {"start": 0, **{name: given.pop(name) for name in ("start", "memory") if name in given}}
    if "kind" in given:
        of.wrong((*path, "kind"), "follows from the command; leave it out")
        return None
    lines = [command] if isinstance(command, str) else command
    known = ("command", "start", "memory")
    for key in given:
        if command is None and get_close_matches(key, known, n=1, cutoff=0.7):
            of.wrong((*path, key), unknown_key(key, known))
            return None
    if not isinstance(lines, list) or not lines or not all(isinstance(line, str) for line in lines):
        of.wrong((*path, "command"), f"is missing; give a command line of {_known_programs()}")
        return None
    try:
        fields = _fields_of([_with_job_files(line, of.directory) for line in lines])
    except CommandError as error:
        of.wrong((*path, "command"), str(error))
        return None
    of.moved |= {(*path, field): (*path, "command") for field in fields if field not in given}
    return {**own, "workload": merged(fields, given)}


def _with_job_files(line: str, directory: FilePath) -> str:
    """A command *line* with the paths of the job files that lie in *directory*."""
    if ".fio" not in line:
        return line
    words = words_of(line)
    found = [
        str(directory / word) if word.endswith(".fio") and (directory / word).is_file() else word
        for word in words
    ]
    return shlex.join(found) if found != words else line


def _fields_of(lines: list[str]) -> dict[str, Any]:
    """The workload that command *lines* ask for, with what the program itself costs."""
    name = PurePosixPath((lines[0].split() or [""])[0]).name
    for variant in variants("workloads").values():
        if name in variant.spec.programs:
            return {**variant.spec.fields_of(lines), **variant.spec.costs}
    raise CommandError(f"{lines[0]!r} is not a command line of {_known_programs()}")


def _known_programs() -> str:
    *others, last = sorted(variant.spec.programs[0] for variant in variants("workloads").values())
    return f"{', '.join(others)} or {last}"
