"""The disks of a machine: drives of the catalogue, several alike, arrays of them, and how fast each is.

``like`` names a drive wherever a device stands: a disk, its device, the members of an array, and the device
behind a write cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from wbsim.experiments.config.inputs import Inputs
from wbsim.experiments.config.key_places import Path
from wbsim.experiments.config.likes import based_on
from wbsim.experiments.config.merge import merged, plain
from wbsim.experiments.config.problems import shown
from wbsim.experiments.config.sweeps import Factor, scaled
from wbsim.models.scenario import DriveSpec
from wbsim.models.variants import variants
from wbsim.sim.param import Given, unit_of


def at_speed(device: Mapping[str, Any], speed: float) -> dict[str, Any]:
    """The inputs of *device* and of all that it is made of, *speed* times as fast."""
    kind = plain(device.get("kind"))
    known = variants("devices")
    if kind not in known:
        return dict(device)
    fields = known[kind].spec.model_fields
    result = dict(device)
    for name, value in device.items():
        if isinstance(value, Mapping):
            result[name] = at_speed(value, speed)
        elif isinstance(value, list) and all(isinstance(member, Mapping) for member in value):
            result[name] = [at_speed(member, speed) for member in value]
        elif name in fields and plain(value) is not None:
            by = {"ns": 1 / speed, "B/s": speed}.get(unit_of(fields[name]))
            result[name] = value if by is None else _times(value, by, speed)
    return result


def _times(value: Any, by: float, speed: float) -> Any:
    if isinstance(value, Given):
        return replace(value, value=scaled(value.value, by), source=f"{value.source}; at speed {speed:g}")
    return scaled(value, by)


MOST_DISKS: Final = 1024

Drives = Mapping[str, DriveSpec]


def add_disk(
    of: Inputs, disks: dict[str, Any], name: str, entry: Any, named: Mapping[str, Any], drives: Drives
) -> list[str]:
    """Add the disk *name*, as *entry* describes it, to *disks*.

    *named* has the entries of all disks, and *drives* the drives that ``like`` may name.  Return the names of
    the disks that *entry* makes with its ``count``; without a count an empty list.
    """
    path = "machine", "disks", name
    table = of.table(path, entry)
    count = plain(table.pop("count", None))
    drive = table
    if "like" in table:
        based = based_on(of, path, table, drives)
        if based is None:
            return []
        drive = based
    if "device" in drive:
        drive = {**drive, "device": with_like(of, (*path, "device"), drive["device"], drives)}
    if count is None:
        disks[name] = merged(disks.get(name, {}), drive)
        return []
    if not _is_count(count):
        of.wrong((*path, "count"), _no_count(count))
        return []
    group = [f"{name}{n}" for n in range(count)]
    for one in group:
        if one in disks or one in named:
            of.wrong((*path, "count"), f"there is a disk {one} already; call these otherwise")
            return []
        of.writes(("machine", "disks", one), path)
        disks[one] = drive
    return group


def with_like(of: Inputs, path: Path, given: Any, drives: Drives) -> Any:
    """Return the *given* device with each ``like`` replaced by the device of that drive.

    *path* is where the device is written.  Members of an array may be one table with a ``count``.
    """
    if not isinstance(given, Mapping):
        return given
    device = dict(given)
    if "like" in device:
        like = device.pop("like")
        drive = based_on(of, path, {"like": like}, drives)
        if drive is None:
            return device
        device = merged(drive["device"], device)
    if "behind" in device:
        device["behind"] = with_like(of, (*path, "behind"), device["behind"], drives)
    members = device.get("members")
    if isinstance(members, Mapping):
        device["members"] = _alike(of, (*path, "members"), members, drives)
    elif isinstance(members, list):
        device["members"] = [
            with_like(of, (*path, "members", str(place)), member, drives)
            for place, member in enumerate(members)
        ]
    return device


def _alike(of: Inputs, path: Path, members: Mapping[str, Any], drives: Drives) -> list[Any]:
    """Return as many devices as the table *members*, which is written at *path*, has for its ``count``."""
    one = dict(members)
    count = plain(one.pop("count", None))
    if not _is_count(count):
        missing = "is missing; say how many members there are"
        of.wrong((*path, "count"), missing if count is None else _no_count(count))
        count = 1
    of.stands_for_all(path)
    return [with_like(of, path, one, drives)] * count


def _is_count(count: Any) -> bool:
    return isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MOST_DISKS


def _no_count(count: Any) -> str:
    return f"is {count!r}; a whole number from 1 to {MOST_DISKS} was expected"


def at_its_speed(of: Inputs, name: str, disk: Any) -> Any:
    """Return the *disk* of that *name* with its device as many times as fast as its ``speed`` says."""
    device = disk.get("device")
    if not isinstance(device, Mapping) or "speed" not in device:
        return disk
    speed = plain(device["speed"])
    speed = speed.by if isinstance(speed, Factor) else speed  # a factor of a sweep is the speed itself
    rest = {key: value for key, value in device.items() if key != "speed"}
    if not isinstance(speed, int | float) or isinstance(speed, bool) or not 0.001 <= speed <= 1000:
        of.wrong(
            of.written(("machine", "disks", name, "device", "speed")),
            f"is {shown(speed)}; give how many times as fast, such as 2",
        )
        return {**disk, "device": rest}
    return {**disk, "device": at_speed(rest, float(speed))}
