"""From the tables of a configuration to the inputs of a `Scenario`: names, `like`, counts.

One disk, one mount or one program needs no name: ``machine.device``, ``filesystem`` and ``workload`` are then
the only one's.  Problems are collected with the keys as they are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Final

from wbsim.experiments.config.catalogued import inputs_of
from wbsim.experiments.config.inputs import Inputs
from wbsim.experiments.config.merge import merged, plain
from wbsim.experiments.config.own import NotThere, by_hand, own_part
from wbsim.experiments.config.places import Path
from wbsim.experiments.config.problems import instead, shown
from wbsim.experiments.config.programs import programs_of
from wbsim.experiments.config.speed import at_speed
from wbsim.experiments.config.sweeps import Factor
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.kernels import FIRST, KERNELS, LAST
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.variants import variants
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
    of.inputs["programs"] = programs = programs_of(of, tables)
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
            told = _unknown_like(like, bases, bool(of.own(path)))
            of.wrong((*path, "like"), f"{of.own(path)}{told}{instead('like', given) if like is None else ''}")
        return None
    return merged(inputs_of(bases[like]), given)


def _unknown_like(like: Any, bases: Mapping[str, Spec], own: bool) -> str:
    """What is wrong with *like*, which is none of *bases*; it may stand in a file of one's *own*."""
    if isinstance(like, float | int) and str(like) in bases:
        return f"is the number {like}; write it in quotes"
    what = f"{shown(like)} is not known"
    if like is None:
        what = "there is no like" if own else "is missing"
    more = f", or any release from {FIRST} to {LAST}" if bases is KERNELS else ""
    return f"{what}; use one of {', '.join(map(repr, bases))}{more}"


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
        for key in of_only_disk:
            of.writes(("machine", "disks", names[0], key), ("machine", key))
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
            of.written(("machine", "disks", name, "device", "speed")),
            f"is {shown(speed)}; give how many times as fast, such as 2",
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
                told = f"is missing; use one of {', '.join(disks)}{instead('disk', table)}"
                of.wrong(("mounts", name, "disk"), told)
                continue
            one = name if each is None else f"{name}{n}"
            of.writes(("mounts", one, "filesystem"), ("mounts", name))
            of.writes(("mounts", one), ("mounts", name))
            place = {"disk": disk, "at": at.replace("{n}", str(n))}
            mounts[one] = {**place, **there, "filesystem": based or {}}
    return mounts
