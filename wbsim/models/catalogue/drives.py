"""Drives that a configuration can add to a machine: a device, and the queue that a release gives it.

Each is a file in data/drives.  It has the device and the queue, or a ``sheet`` from which they follow
(`sheets`).  Its ``figures`` were measured on the drive, and the model does not use them.

A release is (major, minor, patch), as `release_of` returns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, Final

from wbsim.models.catalogue.data_files import names_in, part_in, put_over
from wbsim.models.catalogue.kernels import LAST
from wbsim.models.catalogue.on_demand import OnDemand
from wbsim.models.catalogue.queues import queues_of
from wbsim.models.catalogue.sheets import drive_of
from wbsim.models.release import Release, release_of
from wbsim.models.scenario import DriveSpec
from wbsim.sim.param import Inputs

FOLDER: Final = "drives"


@cache
def drives_of(release: Release) -> Mapping[str, DriveSpec]:
    """Return the drives by name, each behind the queue that *release* gives it.

    A drive is made when it is first looked up.  The same release gives the same objects, so that
    configurations can share their inputs.
    """
    return OnDemand({name: partial(_drive, name, release) for name in names_in(FOLDER)})


def _drive(name: str, release: Release) -> DriveSpec:
    """Return the drive *name* with the queue that *release* gives it."""
    return DriveSpec.model_validate(disk_of({"like": name}, release))


def _entries(name: str) -> Inputs:
    """Return the queue and the device of the drive *name*, as its file or its sheet has them."""
    part = part_in(FOLDER, name)
    return drive_of(part["sheet"]) if "sheet" in part else part


def disk_of(table: Inputs, release: Release) -> Inputs:
    """Return the disk *table* with what each ``like`` in it brings: the tables ``queue`` and ``device``.

    *table* must have both, or a ``like`` that brings them.  ``queue.like`` names an interface, for which
    *release* has the queue; any other ``like`` names a drive.

    Raises:
        FileNotFoundError: no drive has the name.
        KeyError: no interface has the name, or one of the two tables is missing.
    """
    disk = _omit("like", table)
    if "like" in table:
        disk = put_over(_entries(table["like"]), disk)
    queue = disk["queue"]
    base = queues_of(release)[queue["like"]].inputs() if "like" in queue else {}
    return {"queue": put_over(base, _omit("like", queue)), "device": _device_of(disk["device"])}


def _device_of(table: Inputs) -> Inputs:
    """Return the device *table* with what ``like`` brings, also behind a cache and in an array."""
    device = _omit("like", table)
    if "like" in table:
        device = put_over(_entries(table["like"])["device"], device)
    if "behind" in device:
        device["behind"] = _device_of(device["behind"])
    if "members" in device:
        device["members"] = _members_of(device["members"])
    return device


def _members_of(table: Inputs) -> list[dict[str, Any]]:
    """Return the ``count`` equal devices that *table* describes."""
    return [_device_of(_omit("count", table))] * table["count"]


def _omit(name: str, table: Inputs) -> Inputs:
    """Return the entries of *table* except *name*."""
    return {key: value for key, value in table.items() if key != name}


DRIVES: Final = drives_of(release_of(LAST))
"""The drives by name, as the newest release has them."""
