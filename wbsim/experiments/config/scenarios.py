"""From the tables of a configuration to the inputs of a `Scenario`: names, `like`, counts.

One disk, one mount or one program needs no name: ``machine.device``, ``filesystem`` and ``workload`` are then
the only one's.  Problems are collected with the keys as they are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Final

from wbsim.experiments.config.disks import Drives, add_disk, at_its_speed, with_like
from wbsim.experiments.config.filesystems import Host, filesystem_inputs
from wbsim.experiments.config.inputs import Inputs
from wbsim.experiments.config.likes import based_on, expanded
from wbsim.experiments.config.merge import merged, plain
from wbsim.experiments.config.problems import instead
from wbsim.experiments.config.programs import programs_of
from wbsim.experiments.config.user_parts import by_hand
from wbsim.models.catalogue.drives import drives_of
from wbsim.models.catalogue.kernels import KERNELS, LAST
from wbsim.models.catalogue.neutral import machines_of
from wbsim.models.release import Release, release_of
from wbsim.models.scenario import MachineSpec
from wbsim.models.variants import variants

PARTS: Final = (
    "machine", "kernel", "filesystem", "mounts", "workload", "programs", "give_up", "sync_after",
)  # fmt: skip
DEFAULT_GIVE_UP: Final = "100000 s"
ONLY_MOUNT: Final = "mnt"
"""The name of a filesystem that was given none."""
_ALREADY_THERE: Final = ("files", "cached_inodes")
_OF_A_MOUNT: Final = ("disk", "at", "each", *_ALREADY_THERE)
_OF_A_DISK: Final = ("queue", "device")


def scenario_inputs(tables: Mapping[str, Any], directory: FilePath = FilePath()) -> Inputs:
    """The inputs that *tables*, the parts of a configuration's scenario, stand for; the job files of its
    commands are looked for in *directory*, too.
    """
    of = Inputs(directory)
    of.inputs["give_up"] = by_hand(tables["give_up"]) if "give_up" in tables else DEFAULT_GIVE_UP
    kernel = expanded(of, ("kernel",), dict(tables.get("kernel", {})), KERNELS)
    base = plain(kernel.get("like"))
    release = release_of(base if isinstance(base, str) and base in KERNELS else LAST)
    drives = drives_of(release)
    machine, groups = _machine(of, dict(tables.get("machine", {})), drives, machines_of(release))
    if machine is not None:
        of.inputs["machine"] = machine
    based = based_on(of, ("kernel",), kernel, KERNELS)
    if based is not None:
        of.inputs["kernel"] = based
    of.inputs["mounts"] = _mounts(of, tables, groups, _host(machine, release))
    of.inputs["programs"] = programs = programs_of(of, tables)
    kinds = {program["workload"]["kind"] for program in programs.values() if program}
    keeps = any(variants("workloads")[kind].spec.keeps_files for kind in kinds)
    of.inputs["sync_after"] = tables.get("sync_after", keeps)
    return of


def _machine(
    of: Inputs, given: dict[str, Any], drives: Drives, machines: Mapping[str, MachineSpec]
) -> tuple[dict[str, Any] | None, dict[str, list[str]]]:
    """Return the machine's inputs, and the names of the disks of each group that has a count.

    *drives* are the drives that its disks may be like, and *machines* the machines that it may be like.
    """
    before = given.get("disks", {})
    given = expanded(of, ("machine",), given, machines)
    of_only_disk: dict[str, Any] = {key: given.pop(key) for key in _OF_A_DISK if key in given}
    disks = of.table(("machine", "disks"), given.pop("disks", {}))
    machine = based_on(of, ("machine",), given, machines)
    if machine is None:
        return None, {}
    known = set(before) if isinstance(before, Mapping) else set(disks)
    if set(disks) - known:  # a file of one's own says all disks that its machine has
        machine["disks"] = {}
    machine["disks"] = dict(machine["disks"])
    names = list(machine["disks"])
    if len(names) == 1:
        if "device" in of_only_disk:
            of_only_disk["device"] = with_like(of, ("machine", "device"), of_only_disk["device"], drives)
        machine["disks"][names[0]] = merged(machine["disks"][names[0]], of_only_disk)
        for key in of_only_disk:
            of.writes(("machine", "disks", names[0], key), ("machine", key))
        if not disks:
            of.writes(("machine", "disks", names[0]), ("machine",))
    groups = {
        name: add_disk(of, machine["disks"], name, entry, disks, drives) for name, entry in disks.items()
    }
    machine["disks"] = {name: at_its_speed(of, name, disk) for name, disk in machine["disks"].items()}
    return machine, {name: disks for name, disks in groups.items() if disks}


def _host(machine: Mapping[str, Any] | None, release: Release) -> Host:
    """Return what mkfs sees of *machine*.

    A machine that is not known, which is reported already, stands for one with a disk.
    """
    if machine is None:
        return Host({"": {}}, 1, release)
    processors = plain(machine["processors"].get("count"))
    return Host(machine["disks"], processors if isinstance(processors, int) else 1, release)


def _mounts(
    of: Inputs, tables: Mapping[str, Any], groups: Mapping[str, list[str]], host: Host
) -> dict[str, Any]:
    """Return the inputs of all mounts, by name."""
    disks = list(host.disks)
    if "mounts" not in tables:
        only = disks[0] if disks else None
        based = filesystem_inputs(of, ("filesystem",), dict(tables.get("filesystem", {})), only, host)
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
        on = groups[each] if each is not None else [where.get("disk")]
        based = filesystem_inputs(of, ("mounts", name), table, on[0], host)
        at = str(where.get("at", "/"))
        there: dict[str, Any] = {key: where[key] for key in _ALREADY_THERE if key in where}
        for n, disk in enumerate(on):
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
