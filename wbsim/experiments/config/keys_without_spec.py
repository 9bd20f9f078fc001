"""The keys of a configuration that no spec has, and the defaults that its reader sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from wbsim.experiments.config.disks import MOST_DISKS
from wbsim.experiments.config.scenarios import DEFAULT_GIVE_UP
from wbsim.experiments.config.sweeps import MOST_REPLICATIONS


class Key(NamedTuple):
    """One key: its path, a sentence or more, the values that it takes in words, and its default in words."""

    path: str
    meaning: str
    takes: str
    default: str


def _name(what: str, more: str = "") -> str:
    return f"a name of `wbsim list {what}`{more}, or a file"


_WHOLE: Final = "whole number, 1"
_TEXTS: Final = "list: text"
FILE: Final = (
    Key("title", "What the experiment shows, in a sentence.", "text", "required"),
    Key("scenario", "The scenario that all variants share; it has the keys below.", "table", "required"),
    Key("replications", "The number of runs of each case.", f"{_WHOLE} to {MOST_REPLICATIONS}", "1"),
    Key("quick", "The settings of a smaller run for `--quick`, each as `key=value`.", _TEXTS, "none"),
    Key("variants.NAME", "The keys of the scenario that a variant changes.", "table", "one variant, base"),
    Key("variants.NAME.quick", "As `quick`, for this variant.", _TEXTS, "`quick`"),
    Key("variants.NAME.rows", "The ids of published figures that the variant reproduces.", _TEXTS, "none"),
    Key("sweep.name", "The label of the values of the points.", "text", '"point"'),
    Key("sweep.points", "The points, each with a `value` and the keys that it sets.", "list: table", "none"),
    Key("sweep.grid", "A list of values for each key; every combination is a point.", "table", "none"),
    Key(
        "sweep.zip",
        "A list of values for each key; all n-th values are a point.",
        "table",
        "none",
    ),
    Key("sweep.lhs", "Two ends for each key, with a Latin hypercube between them.", "table", "none"),
    Key("sweep.lhs.samples", "The number of points of the Latin hypercube.", f"{_WHOLE} or more", "required"),
)
"""The keys at the top of a file, and in its sweep and variants."""
_MACHINE: Final = (
    Key(
        "machine.like", "The machine that brings the keys that are not given.", _name("machines"), "required"
    ),
    Key("machine.device", "Changes to the device of the only disk of a catalogue machine.", "table", "none"),
    Key("machine.queue", "Changes to the queue of the only disk of a catalogue machine.", "table", "none"),
)
_DISK: Final = (
    Key("machine.disks.NAME.like", "The drive that brings device and queue.", _name("disks"), "none"),
    Key(
        "machine.disks.NAME.count",
        "The number of equal disks, which are called NAME0, NAME1 and so on.",
        f"{_WHOLE} to {MOST_DISKS}",
        "one disk, called NAME",
    ),
)
_DEVICE: Final = (
    Key(
        "machine.disks.NAME.device.like",
        "The drive that brings the device; devices in `members` and `behind` have this key, too.",
        _name("disks"),
        "none",
    ),
    Key(
        "machine.disks.NAME.device.speed",
        "The factor by which the device is faster: it multiplies every rate and divides every time.",
        "number, 0.001 to 1000",
        "1",
    ),
)
_KERNEL: Final = "The kernel that brings the keys that are not given."
_FILESYSTEM: Final = "The filesystem that brings the keys that are not given; mkfs makes `xfs` and `ext4`."
_EACH: Final = "A disk with a `count`; each gets this filesystem, and `{n}` in `at` stands for its number."
_COMMAND: Final = "The command line of the program; several lines of dd run at once."
MORE_KEYS: Final[Mapping[str, Sequence[Key]]] = {
    "machine": _MACHINE,
    "machine.disks.NAME": _DISK,
    "machine.disks.NAME.device": _DEVICE,
    "kernel": (Key("kernel.like", _KERNEL, _name("kernels", ", a release"), "required"),),
    "mounts.NAME": (Key("mounts.NAME.each", _EACH, "text", "none"),),
    "filesystem": (Key("filesystem.like", _FILESYSTEM, _name("filesystems"), "required"),),
    "programs.NAME": (Key("programs.NAME.command", _COMMAND, "text; or a list", "required"),),
}
"""The keys that a table has in addition to those of its spec, by the path of the table."""
DEFAULTS: Final = {
    "mounts.NAME.disk": "the only disk",
    "mounts.NAME.at": '"/"',
    "programs.NAME.start": "0",
    "give_up": DEFAULT_GIVE_UP,
    "sync_after": "true if the files of a program are examined, such as those of dd and fio",
}
"""The defaults of keys of specs that the reader of a configuration sets, by path."""
