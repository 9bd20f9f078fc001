"""The filesystems of a configuration: from the catalogue, or made by mkfs on the disk of a mount."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from wbsim.experiments.config.likes import Bases, Likes
from wbsim.experiments.config.tree import Factor, Table, entries_of, plain
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.mkfs import Target, made_ext4, made_xfs
from wbsim.models.catalogue.on_demand import OnDemand
from wbsim.models.devices.spec import AnyDevice, DeviceSpec
from wbsim.models.filesystems.spec import FilesystemSpec
from wbsim.models.md.spec import ArrayFacts, ArraySpec, array_facts
from wbsim.models.release import Release, release_of
from wbsim.models.scenario import Scenario
from wbsim.sim.param import Bytes, Followed, Inputs, bare
from wbsim.sim.units import GIB

MADE: Final[Mapping[str, Callable[[Target, Release], FilesystemSpec]]] = {"xfs": made_xfs, "ext4": made_ext4}
"""The mkfs of each filesystem, by name: a function of the device and the kernel release of a case."""
_ANY: Final = Target(1 << 40)
_PARTS: Final[Mapping[str, FilesystemSpec]] = OnDemand(
    {name: partial(make, _ANY, (6, 1, 0)) for name, make in MADE.items()}
    | {name: partial(FILESYSTEMS.__getitem__, name) for name in FILESYSTEMS}
)
BASES: Final = Bases("filesystems", _PARTS)
"""The filesystems that ``like`` can name; parts of `MADE` are placeholders for a device of 1 TiB."""
_BYTES: Final[TypeAdapter[int]] = TypeAdapter(Bytes)
_DEVICE: Final[TypeAdapter[DeviceSpec]] = TypeAdapter(AnyDevice)


Device = DeviceSpec | ArrayFacts
"""The device of a disk, or the facts of an array."""


class Host(NamedTuple):
    """The machine as mkfs sees it: its disks and arrays by name, its processors, and the release."""

    disks: Mapping[str, Any]
    processors: int
    release: Release
    arrays: Mapping[str, Any] = MappingProxyType({})

    @property
    def mountable(self) -> list[str]:
        """The names of the disks and arrays that may get a filesystem, disks first.

        A member of an array may not.
        """
        members = {disk for array in self.arrays.values() for disk in plain(array.get("members", ()))}
        return [*(disk for disk in self.disks if disk not in members), *self.arrays]


def filesystem_of(likes: Likes, table: Table, disk: object, host: Host) -> Table | None:
    """Return the filesystem of *table* on *disk*; None if it has a problem, which is noted in *likes*.

    A ``like`` of `MADE` makes it as mkfs would, with the size of the disk unless *table* has one.  If *host*
    has no disk or array of the name *disk*, the device is unknown, and a size of 1 GiB is assumed.
    """
    expansion = likes.expand(table, BASES)
    if expansion is None:
        return None
    table = expansion.omit("purpose")
    like = plain(table.get("like"))
    if like is None and "kind" in table:  # the check of the scenario finds what it lacks
        return table
    if not isinstance(like, str) or like not in MADE:
        return likes.based_on(table, BASES)
    device = _device(host.disks, host.arrays, disk) if isinstance(disk, str) else None
    size = _size(table.get("size"), device)
    if size is None:
        message = f"is missing, and the device of {disk} has no capacity; give the size"
        likes.problems.wrong(table, "size", message)
        return None
    try:
        filesystem = MADE[like](_target(size, device, host.processors), host.release)
    except ValueError as error:
        likes.problems.wrong(table, "size", str(error))
        return None
    return likes.based_on(table, Bases(BASES.folder, {**BASES.parts, like: filesystem}))


def made_again(scenario: Scenario, inputs: Inputs) -> None:
    """Make the filesystems whose size follows their disk again, and change *inputs* in place.

    *inputs* are those of *scenario* with other numbers, which a sensitivity analysis draws.  Values that
    differ from those of mkfs stay, because the configuration gives them.
    """
    machine, release = inputs["machine"], release_of(scenario.kernel.name)
    for name, mount in scenario.mounts.items():
        filesystem = mount.filesystem
        if not isinstance(filesystem.provenance("size"), Followed):
            continue
        make = MADE[filesystem.kind]
        device = _device(machine["disks"], machine.get("arrays", {}), mount.disk)
        if device is None or device.capacity is None:
            continue
        was = scenario.machine.device_of(mount.disk)
        old_filesystem = make(_target(was.capacity or 0, was, scenario.machine.processors.count), release)
        count = bare(machine["processors"]["count"])
        try:
            new_filesystem = make(_target(device.capacity, device, count), release)
        except ValueError:  # too small for mkfs, so the size of the old filesystem is refused
            continue
        usual, values, entries = old_filesystem.model_dump(), filesystem.model_dump(), new_filesystem.inputs()
        table = inputs["mounts"][name]["filesystem"]
        table.update({key: entry for key, entry in entries.items() if values[key] == usual[key]})


def _device(disks: Mapping[str, Any], arrays: Mapping[str, Any], name: str) -> Device | None:
    """Return the device of the disk or the array *name*.

    None: the name is unknown, or something is invalid; the check of the machine reports it.
    """
    try:
        if name not in arrays:
            return _DEVICE.validate_python(entries_of(disks.get(name, {})).get("device"))
        array = ArraySpec.model_validate(entries_of(arrays[name]))
        return array_facts(
            array, [_DEVICE.validate_python(entries_of(disks[disk]).get("device")) for disk in array.members]
        )
    except (ValidationError, KeyError):
        return None


def _size(size: object, device: Device | None) -> int | None:
    """Return *size* in bytes; without one, return the capacity of *device*.

    For an invalid size or an unknown device return 1 GiB, because a later check reports the error.
    """
    value = plain(size)
    if value is None or isinstance(value, Factor):
        return GIB if device is None else device.capacity
    try:
        return _BYTES.validate_python(value)
    except ValidationError:
        return GIB


def _target(size: int, device: Device | None, processors: int) -> Target:
    """Return what mkfs sees of *device*: md reports its stripe; a RAID controller does not."""
    unit, width = (0, 0) if device is None else device.stripe
    return Target(size, unit, width, device is not None and device.rotates, processors)
