"""The grammar of a configuration: the keys of a file, and those of a table besides the keys of its spec.

Each class is a table, and each field a key; its bullet in the docstring is the sentence of the reference.
`TABLES` says where in the scenario each table stands.  The keys of a spec, such as
``machine.processors.count``, are the fields of that spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from wbsim.experiments.config.tree import Path
from wbsim.models.scenario import DriveSpec, MountSpec, ProgramSpec
from wbsim.sim.param import Spec

MOST_REPLICATIONS: Final = 100_000
MOST_DISKS: Final = 1024
DEFAULT_GIVE_UP: Final = "100000 s"
NAME: Final = "NAME"
"""The part of a path that stands for any name."""


class Takes(NamedTuple):
    """Marks a key with the values that it takes, in words."""

    words: str


class Default(NamedTuple):
    """Marks a key with its default, in words."""

    words: str


def _name_of(parts: str, more: str = "") -> Takes:
    return Takes(f"a name of `wbsim list {parts}`{more}, or a file")


_NONE: Final = Default("none")
_Texts = Annotated[list[str], Takes("list: text")]
_Lists = Annotated[dict[str, list[Any]], Takes("table"), _NONE]


class Keys(BaseModel):
    """Keys that a user writes."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class Hypercube(Keys):
    """The Latin hypercube of a sweep; its other keys are those that it varies.

    * ``samples``: The number of points of the Latin hypercube.
    """

    samples: Annotated[int, Field(ge=1)]


class Sweep(Keys):
    """The values of keys that the runs try.

    * ``name``: The label of the values of the points.
    * ``points``: The points, each with a `value` and the keys that it sets.
    * ``grid``: A list of values for each key; every combination is a point.
    * ``zip``: A list of values for each key; all n-th values are a point.
    * ``lhs``: Two ends for each key, with a Latin hypercube between them.
    """

    name: str = "point"
    points: Annotated[list[dict[str, Any]], Takes("list: table"), _NONE]
    grid: _Lists
    zip: _Lists
    lhs: Annotated[Hypercube, _NONE]


class Variant(Keys):
    """A variant: the keys of the scenario that it changes, and these.

    * ``quick``: As `quick`, for this variant.
    * ``rows``: The ids of published figures that the variant reproduces.
    """

    quick: Annotated[_Texts, Default("`quick`")]
    rows: Annotated[_Texts, _NONE]


class ScenarioKeys(Keys):
    """The scenario: its parts, and what ends a run.

    A single filesystem or program needs no name, and stands in ``filesystem`` or ``workload``.
    """

    machine: Any
    kernel: Any
    filesystem: Any
    mounts: Any
    workload: Any
    programs: Any
    give_up: Annotated[Any, Default(DEFAULT_GIVE_UP)]
    sync_after: Annotated[
        Any, Default("true if the files of a program are examined, such as those of dd and fio")
    ]


class File(Keys):
    """A configuration file.

    * ``title``: What the experiment shows, in a sentence.
    * ``scenario``: The scenario that all variants share; it has the keys below.
    * ``replications``: The number of runs of each case.
    * ``quick``: The settings of a smaller run for `--quick`, each as `key=value`.
    * ``variants``: The keys of the scenario that a variant changes.
    * ``sweep``: The values of keys that the runs try.
    """

    title: str
    scenario: Annotated[ScenarioKeys, Takes("table")]
    replications: Annotated[int, Field(ge=1, le=MOST_REPLICATIONS)] = 1
    quick: Annotated[_Texts, _NONE]
    variants: Annotated[dict[str, Variant], Default("one variant, base")]
    sweep: Annotated[Sweep, _NONE]


class MachineKeys(Keys):
    """The keys of ``machine``.

    * ``like``: The machine that brings the keys that are not given.
    * ``purpose``: What the machine is for, in a few words; it has no effect.
    * ``device``: Changes to the device of the only disk of a catalogue machine.
    * ``queue``: Changes to the queue of the only disk of a catalogue machine.
    """

    like: Annotated[str, _name_of("machines"), Default("required, or all keys of a machine")]
    purpose: Annotated[str, _NONE]
    device: Annotated[dict[str, Any], Takes("table"), _NONE]
    queue: Annotated[dict[str, Any], Takes("table"), _NONE]


class DiskKeys(Keys):
    """The keys of a disk.

    * ``like``: The drive that brings device and queue.
    * ``sheet``: The data sheet of a drive, from which device and queue follow.
    * ``purpose``: What the disk is for, in a few words; it has no effect.
    * ``family``: The drives that it belongs to, such as "SATA SSD"; it has no effect.
    * ``figures``: Figures that were measured on the drive; they have no effect.
    * ``count``: The number of equal disks, which are called NAME0, NAME1 and so on.
    """

    like: Annotated[str, _name_of("disks"), _NONE]
    sheet: Annotated[dict[str, Any], Takes("table"), _NONE]
    purpose: Annotated[str, _NONE]
    family: Annotated[str, _NONE]
    figures: Annotated[dict[str, Any], Takes("table"), _NONE]
    count: Annotated[int, Field(ge=1, le=MOST_DISKS), Default("one disk, called NAME")]


class ArrayKeys(Keys):
    """The keys of an array whose values may be shorter than in its spec.

    * ``members``: The names of its disks, or the name of a group of disks.
    """

    members: Annotated[list[str] | str, Takes("list: text; or the name of a group"), Default("required")]


class QueueKeys(Keys):
    """The keys of the queue of a disk.

    * ``like``: The interface of the drive; the kernel's release decides the queue that it gets.
    """

    like: Annotated[Literal["sata", "sas", "raid", "usb", "nvme", "virtio"], _NONE]


class DeviceKeys(Keys):
    """The keys of the device of a disk.

    * ``like``: The drive that brings the device; devices in `members` and `behind` have this key, too.
    * ``speed``: The factor by which the device is faster: it multiplies every rate and divides every time.
    """

    like: Annotated[str, _name_of("disks"), _NONE]
    speed: Annotated[float, Field(ge=0.001, le=1000), Takes("number, 0.001 to 1000")] = 1


class MemberKeys(Keys):
    """The keys of a device in a device: of a member of an array, or of the device behind a cache.

    * ``like``: The drive that brings the device.
    * ``count``: The number of equal members.
    """

    like: Annotated[str, _name_of("disks"), _NONE]
    count: Annotated[int, Field(ge=1, le=MOST_DISKS), _NONE]


class KernelKeys(Keys):
    """The keys of ``kernel``.

    * ``like``: The kernel that brings the keys that are not given.
    """

    like: Annotated[str, _name_of("kernels", ", a release")]


class FilesystemKeys(Keys):
    """The keys of ``filesystem``.

    * ``like``: The filesystem that brings the keys that are not given; mkfs makes `xfs` and `ext4`.
    * ``purpose``: What the filesystem is for, in a few words; it has no effect.
    """

    like: Annotated[str, _name_of("filesystems"), Default("required, or a `kind` and all keys of it")]
    purpose: Annotated[str, _NONE]


class MountKeys(Keys):
    """The keys of a mount, besides those of its filesystem.

    * ``each``: A disk with a `count`; each gets this filesystem, and `{n}` in `at` stands for its number.
    """

    each: Annotated[str, _NONE]
    disk: Annotated[str, Default("the only disk")]
    at: Annotated[str, Default('"/"')]


class ProgramKeys(Keys):
    """The keys of a program, besides those of its workload.

    * ``command``: The command line of the program; several lines of dd run at once.
    """

    command: Annotated[str | list[str], Takes("text; or a list")]
    start: Annotated[str, Default("0")]


TABLES: Final[Mapping[str, type[Keys]]] = {
    "machine": MachineKeys,
    "machine.disks.NAME": DiskKeys,
    "machine.disks.NAME.queue": QueueKeys,
    "machine.disks.NAME.device": DeviceKeys,
    "machine.arrays.NAME": ArrayKeys,
    "kernel": KernelKeys,
    "mounts.NAME": MountKeys,
    "filesystem": FilesystemKeys,
    "programs.NAME": ProgramKeys,
}
"""The keys of the scenario's tables besides those of their specs, by the path of the table."""


def _all_keys(keys: type[Keys], spec: type[Spec], part: str) -> tuple[str, ...]:
    """Return the keys of a table that has *keys* and those of *spec*, without its *part*."""
    return tuple(dict.fromkeys(key for key in (*keys.model_fields, *spec.model_fields) if key != part))


DISK_KEYS: Final = tuple(DriveSpec.model_fields)
MOUNT_KEYS: Final = _all_keys(MountKeys, MountSpec, "filesystem")
"""The keys of a mount that are not its filesystem's."""
PROGRAM_KEYS: Final = _all_keys(ProgramKeys, ProgramSpec, "workload")
"""The keys of a program that are not its workload's."""


def keys_at(table: Path) -> tuple[str, ...]:
    """Return the keys that a user may write in *table* of the scenario, besides those of its spec.

    *table* is the path of the table.  An error on an unknown key suggests one of these keys.

    >>> keys_at(("kernel",)), keys_at(("kernel", "dirty"))
    (('like',), ())
    """
    match table:
        case ("workload",) | ("programs", _):
            return PROGRAM_KEYS
        case ("mounts", _):
            return (*FilesystemKeys.model_fields, *MOUNT_KEYS)
        case ("machine", "disks", _):
            return tuple(DiskKeys.model_fields)
        case ("machine", "disks", _, "queue"):
            return tuple(QueueKeys.model_fields)
        case (*_, "device"):
            return tuple(DeviceKeys.model_fields)
        case _ if "device" in table:
            return tuple(MemberKeys.model_fields)
    keys = TABLES.get(".".join(table))
    return tuple(keys.model_fields) if keys else ()
