"""The disks of a machine: drives of the catalogue, groups of equal disks, arrays, and the speed of devices.

``like`` can name a drive in four places: a disk, its device, a member of an array, and the device behind a
write cache.  *bases* and *drives* are always what ``like`` may name, and *likes* collects the problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple

from wbsim.experiments.config.grammar import MOST_DISKS
from wbsim.experiments.config.likes import Bases, Likes
from wbsim.experiments.config.problems import excerpt
from wbsim.experiments.config.quantities import multiply
from wbsim.experiments.config.sheets import with_sheet
from wbsim.experiments.config.tree import Factor, Items, Table, entries_of, merge, plain
from wbsim.models.kinds import kinds
from wbsim.sim.param import Given, Spec, units_of


def at_speed(device: Spec | Mapping[str, object], speed: float) -> dict[str, object]:
    """Return the entries of *device* and of the devices in it, *speed* times as fast.

    Times (ns) are divided by *speed* and rates (B/s) multiplied, with the ranges of assumed values.  *device*
    itself does not change.  Without a known ``kind`` the units are not known, so its own values stay.  The
    key ``speed`` uses this.

    Raises:
        ValueError: a time or a rate is not a number, with or without a unit.
    """
    entries = entries_of(device)
    kind = plain(entries.get("kind"))
    device_kinds = kinds("devices")
    units = units_of(device_kinds[kind].spec) if isinstance(kind, str) and kind in device_kinds else {}
    factors = {"ns": 1 / speed, "B/s": speed}
    for name, value in entries.items():
        if isinstance(value, Mapping | Spec):
            entries[name] = at_speed(value, speed)
        elif isinstance(value, list | tuple) and all(isinstance(part, Mapping | Spec) for part in value):
            entries[name] = [at_speed(part, speed) for part in value]
        elif units.get(name) in factors and plain(value) is not None:
            factor = factors[units[name]]
            entries[name] = (
                _given_at_speed(value, factor, speed) if isinstance(value, Given) else multiply(value, factor)
            )
    return entries


def _given_at_speed(number: Given, factor: float, speed: float) -> Given:
    """Return *number* with *factor* times its value and its range."""
    numbers: dict[str, Any] = {
        name: None if amount is None else multiply(amount, factor)
        for name, amount in (("value", number.value), ("low", number.low), ("high", number.high))
    }
    return replace(number, source=f"{number.source}; at speed {speed:g}", **numbers)


class Drives(NamedTuple):
    """The names that ``like`` may have for a disk, and for the queue of a disk."""

    drives: Bases
    queues: Bases


def add_disk(likes: Likes, disks: dict[str, Any], name: str, tables: Table, bases: Drives) -> list[str]:
    """Add the disk *name*, as *tables* describes it, to *disks*, a dictionary that is changed in place.

    *tables* has the entries of all disks.  If *disks* has *name* already, its entries are put over that disk.
    With a ``count``, add the disks NAME0, NAME1 ... and return their names; otherwise return an empty list.
    A disk with a problem, which is noted in *likes*, is not added.
    """
    table, drives = likes.problems.table(tables, name), bases.drives
    count = plain(table.get("count"))
    drive = _drive_of(likes, table.omit("count"), bases)
    if drive is None:
        return []
    if count is None:
        disks[name] = change_disk(likes, disks.get(name, {}), drive, drives)
        return []
    if not _is_count(count):
        likes.problems.wrong(table, "count", _no_count(count))
        return []
    group = [f"{name}{n}" for n in range(count)]
    for member in group:
        if member in disks or member in tables:
            message = f"makes a disk {member}, but the name is used; choose another name for the group"
            likes.problems.wrong(table, "count", message)
            return []
        disks[member] = change_disk(likes, {}, drive, drives)
    return group


def change_disk(likes: Likes, disk: Spec | Mapping[str, object], changes: Table, drives: Bases) -> Table:
    """Return *disk* with *changes* put over it; ``like`` in the device brings a complete device.

    *disk* itself does not change.
    """
    if "device" in changes:
        changes = changes.like({**changes, "device": with_like(likes, changes["device"], drives)})
    return merge(disk, changes)


_NO_EFFECT: Final = ("purpose", "family", "figures")
"""Keys of a disk that say something about it."""


def _drive_of(likes: Likes, table: Table, bases: Drives) -> Table | None:
    """Return the drive that *table* describes, with what ``like`` and ``queue.like`` bring.

    None: a base is not known, which is reported.
    """
    expansion = _expand(likes, table, bases.drives)
    if expansion is None:
        return None
    queue = expansion.get("queue")
    of_interface = isinstance(queue, Table) and "like" in queue
    rest = expansion.omit("queue") if of_interface else expansion
    drive = likes.based_on(rest, bases.drives) if "like" in rest else rest
    if drive is None or not of_interface:
        return drive
    assert isinstance(queue, Table)
    own = likes.based_on(queue, bases.queues)
    return None if own is None else drive.like({**drive, "queue": own})


def _expand(likes: Likes, table: Table, drives: Bases) -> Table | None:
    """Return *table*, put over the file that its ``like`` names, with what follows from a ``sheet``.

    None: a file cannot be read, or a sheet is not valid, which is reported.
    """
    expansion = likes.expand(table, drives) if "like" in table else table
    if expansion is None:
        return None
    expansion = expansion.omit(*_NO_EFFECT)
    if "sheet" not in expansion:
        return expansion
    base = with_sheet(likes.problems, expansion)
    return None if base is None else merge(base, expansion.omit("sheet"))


def with_like(likes: Likes, value: object, drives: Bases) -> object:
    """Return the device *value* with each ``like`` in it replaced by the device of the named drive.

    A *value* that is no table is returned unchanged.  One table with a ``count`` may stand for the members of
    an array.  Problems are noted in *likes*, and the ``like`` is then left out.
    """
    if not isinstance(value, Table):
        return value
    device = value.omit("like")
    if "like" in value:
        drive = _expand(likes, value.like({"like": value["like"]}), drives)
        if drive is not None and ("like" in drive or "device" not in drive):
            drive = likes.based_on(drive, drives)
        if drive is None:
            return device
        device = merge(drive["device"], device)
    if "behind" in device:
        device["behind"] = with_like(likes, device["behind"], drives)
    members = device.get("members")
    if isinstance(members, Table):
        device["members"] = _alike(likes, members, drives)
    elif isinstance(members, Items):
        alike = Items(with_like(likes, member, drives) for member in members)
        device["members"] = alike.set_place(members.key, members.where, members.places)
    return device


def _alike(likes: Likes, members: Table, drives: Bases) -> list[object]:
    """Return a list of ``count`` equal devices, which the table *members* describes."""
    count = plain(members.get("count"))
    if not _is_count(count):
        message = "is missing; give the number of members"
        likes.problems.wrong(members, "count", message if count is None else _no_count(count))
        count = 1
    return [with_like(likes, members.omit("count"), drives)] * count


def _is_count(count: object) -> bool:
    return isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MOST_DISKS


def _no_count(count: object) -> str:
    return f"is {count!r}; a whole number from 1 to {MOST_DISKS} was expected"


def at_its_speed(likes: Likes, disk: Any) -> object:
    """Return *disk* with its device made faster by its ``speed``, and without that key.

    A *disk* without ``speed`` is returned unchanged.  For a factor that is not from 0.001 to 1000, note a
    problem in *likes* and only leave the key out.
    """
    device = disk.get("device") if isinstance(disk, Table) else None
    if not isinstance(device, Table) or "speed" not in device:
        return disk
    speed = plain(device["speed"])
    speed = speed.ratio if isinstance(speed, Factor) else speed  # the factor x2 means a speed of 2
    rest = device.omit("speed")
    if not isinstance(speed, int | float) or isinstance(speed, bool) or not 0.001 <= speed <= 1000:
        message = f"is {excerpt(speed)}; give a factor from 0.001 to 1000, such as 2"
        likes.problems.wrong(device, "speed", message)
        return disk.like({**disk, "device": rest})
    with suppress(ValueError):  # a value that is no number; the check of the scenario reports it
        rest = device.like(at_speed(rest, float(speed)))
    return disk.like({**disk, "device": rest})
