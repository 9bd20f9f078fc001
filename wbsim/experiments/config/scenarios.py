"""Expand the scenario of a configuration: names, ``like`` and counts.

A single disk, mount or program needs no name.  Its keys are then below ``machine.device`` and
``machine.queue``, ``filesystem``, or ``workload``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from wbsim.experiments.config.arrays import add_arrays
from wbsim.experiments.config.disks import Drives, add_disk, at_its_speed, change_disk
from wbsim.experiments.config.filesystems import Host, filesystem_of
from wbsim.experiments.config.grammar import DEFAULT_GIVE_UP, DISK_KEYS, MOUNT_KEYS, ScenarioKeys
from wbsim.experiments.config.likes import Bases, Likes
from wbsim.experiments.config.problems import instead
from wbsim.experiments.config.programs import programs_of
from wbsim.experiments.config.tree import Table, entries_of, plain
from wbsim.models.catalogue.drives import drives_of
from wbsim.models.catalogue.kernels import KERNELS, LAST
from wbsim.models.catalogue.machines import machines_of
from wbsim.models.catalogue.queues import queues_of
from wbsim.models.kinds import kinds
from wbsim.models.release import Release, release_of
from wbsim.models.scenario import MachineSpec
from wbsim.sim.param import Spec
from wbsim.sim.units import parse as parse_quantity

PARTS: Final = tuple(ScenarioKeys.model_fields)
ONLY_MOUNT: Final = "mnt"
"""The name of a mount that has no name in the configuration."""
_UNNAMED: Final = "machine"
"""The name of a machine that is like no other machine and has no name; no result depends on it."""
_ALREADY_THERE: Final = ("files", "contents", "cached_inodes")
_KERNELS: Final = Bases("kernels", KERNELS)


def expand(likes: Likes, scenario: Table) -> Table:
    """Return the *scenario* of a configuration as the tree that `Scenario` validates.

    Problems are noted in *likes*, and a part with a problem may be missing from the tree.  `experiment` calls
    this for each case.
    """
    problems = likes.problems
    kernel = likes.expand(problems.table(scenario, "kernel"), _KERNELS)
    base = None if kernel is None else plain(kernel.get("like"))
    release = release_of(base if isinstance(base, str) and base in KERNELS else LAST)
    machine, groups = _machine(likes, problems.table(scenario, "machine"), release)
    based = None if kernel is None else likes.based_on(kernel, _KERNELS)
    mounts = _mounts(likes, scenario, groups, _host(machine, release))
    programs = programs_of(likes, scenario)
    workloads = {program["workload"]["kind"] for program in programs.values()}
    keeps = any(kinds("workloads")[name].spec.keeps_files for name in workloads)
    entries = {
        "give_up": plain(scenario.get("give_up", DEFAULT_GIVE_UP)),
        "machine": machine,
        "kernel": based,
        "mounts": mounts,
        "programs": programs,
        "sync_after": plain(scenario.get("sync_after", keeps)),
    }
    return scenario.like({name: entry for name, entry in entries.items() if entry is not None})


def _machine(likes: Likes, table: Table, release: Release) -> tuple[Table | None, dict[str, list[str]]]:
    """Return the machine, and the names of the disks of each group with a ``count``."""
    bases = Drives(Bases("disks", drives_of(release)), Bases("queues", queues_of(release)))
    machines = Bases("machines", machines_of(release))
    own_disks = table.get("disks", {})
    expansion = likes.expand(table, machines)
    if expansion is None:
        return None, {}
    table = expansion
    changes = table.like({key: table[key] for key in DISK_KEYS if key in table})
    tables = likes.problems.table(table, "disks")
    rest = table.omit("disks", "arrays", "purpose", *DISK_KEYS)
    is_whole = "like" not in table and {"processors", "memory", "disks"} <= table.keys()
    whole = rest.like({"name": _UNNAMED, **rest, "disks": {}})
    machine = whole if is_whole else likes.based_on(rest, machines)
    if machine is None:
        return None, {}
    names = {*machine["disks"], *(own_disks if isinstance(own_disks, Mapping) else tables)}
    if not names.issuperset(tables):  # a file with a new disk lists all disks of its machine
        machine["disks"] = {}
    disks = dict(machine["disks"])
    if changes or not tables:
        _change_only_disk(likes, disks, changes, tables, bases.drives)
    groups = {name: add_disk(likes, disks, name, tables, bases) for name in tables}
    add_arrays(likes, machine, table, groups)
    by_name = {name: at_its_speed(likes, disk) for name, disk in disks.items()}
    machine["disks"] = tables.like(by_name)
    if not is_whole:
        _follow_memory(machine, machines_of(release)[str(plain(table.get("like")))], table)
    return machine, {name: disks for name, disks in groups.items() if disks}


def _change_only_disk(
    likes: Likes, disks: dict[str, Any], changes: Table, tables: Table, drives: Bases
) -> None:
    """Put *changes*, the keys ``device`` and ``queue`` of a machine, over its only disk in *disks*.

    Add a problem if the machine has several disks, or if the disk is set under its name in *tables*, too.
    """
    names = [*disks, *tables]
    again = tables.get(names[0]) if names else None
    twice = isinstance(again, Table) and any(key in again for key in (*changes, "like"))
    if len(disks) == 1 and not (changes and twice):
        disks[names[0]] = change_disk(likes, disks[names[0]], changes, drives)
        return
    for key in changes:
        message = f"the disks of this machine have names; write machine.disks.{names[0]}.{key}"
        likes.problems.wrong(changes, key, message)


def _follow_memory(machine: Table, base: MachineSpec, table: Table) -> None:
    """Let ``kernel_reserve`` be the same share of the memory as in *base*, unless *table* sets it.

    Most of the reserve are page structs, of which each page of memory has one.
    """
    changes = table.get("memory")
    if not isinstance(changes, Table) or "memory" not in changes or "kernel_reserve" in changes:
        return
    memory = machine["memory"]
    size = plain(memory["memory"])  # a number after a factor, such as x2
    try:
        size = size if isinstance(size, int) else parse_quantity(str(size), "size")
    except ValueError:  # the check of the scenario reports it
        return
    reserve, share = base.memory.entries()["kernel_reserve"], size / base.memory.memory
    bounds = {
        name: None if bound is None else round(bound * share)
        for name, bound in (("low", reserve.low), ("high", reserve.high))
    }
    source = f"{reserve.source}; times {share:g}, as the memory"
    follows = replace(reserve, value=round(reserve.value * share), source=source, **bounds)
    machine["memory"] = memory.like({**memory, "kernel_reserve": follows})


def _host(machine: Table | None, release: Release) -> Host:
    """Return *machine* as mkfs sees it.

    If *machine* is None, which is already reported, return a host with one disk.
    """
    if machine is None:
        return Host({"": {}}, 1, release)
    processors = machine["processors"]
    count = plain(entries_of(processors).get("count")) if isinstance(processors, Mapping | Spec) else 1
    arrays = machine.get("arrays", {})
    return Host(machine["disks"], count if isinstance(count, int) else 1, release, arrays)


def _mounts(likes: Likes, scenario: Table, groups: Mapping[str, list[str]], host: Host) -> Table:
    """Return all mounts by name."""
    problems, disks = likes.problems, host.mountable
    if "mounts" not in scenario:
        table = problems.table(scenario, "filesystem")
        filesystem = filesystem_of(likes, table, disks[0] if disks else None, host)
        if len(disks) > 1:
            message = (
                f"has no disk, and the machine has several; give mounts.NAME.disk, one of {', '.join(disks)}"
            )
            problems.wrong(scenario, "filesystem", message)
        mount = {"disk": disks[0] if disks else "", "at": "/", "filesystem": filesystem or table.like({})}
        return Table({ONLY_MOUNT: table.like(mount)}).set_place(table.key, table.where, {})
    if "filesystem" in scenario:
        message = "is the only mount, without a name, but the scenario has mounts; move it into one of them"
        problems.wrong(scenario, "filesystem", message)
    tables = problems.table(scenario, "mounts")
    mounts: dict[str, object] = {}
    for name in tables:
        mounts |= _mounts_of(likes, name, problems.table(tables, name), groups, host)
    return tables.like(mounts)


def _mounts_of(
    likes: Likes, name: str, table: Table, groups: Mapping[str, list[str]], host: Host
) -> dict[str, Table]:
    """Return the mount of *table* under its *name*; with ``each``, return one for each disk of the group."""
    disks = host.mountable
    where = {key: plain(table[key]) for key in MOUNT_KEYS if key in table}
    group = where.pop("each", None)
    if group is not None and not (isinstance(group, str) and group in groups):
        remedy = f"use one of {', '.join(groups)}" if groups else "give a disk a count to make it a group"
        message = f"is {group!r}, which is not a group of disks; {remedy}"
        likes.problems.wrong(table, "each", message)
        return {}
    if group is None and "disk" not in where and len(disks) == 1:
        where["disk"] = disks[0]
    mount_disks = groups[group] if group is not None else [where.get("disk")]
    filesystem = filesystem_of(likes, table.omit(*MOUNT_KEYS), mount_disks[0], host)
    mounts = {}
    for n, disk in enumerate(mount_disks):
        if disk is None:
            hint = instead("disk", table.omit(*MOUNT_KEYS))
            message = f"is missing; use one of {', '.join(disks)}{hint}"
            likes.problems.wrong(table, "disk", message)
            continue
        path = str(where.get("at", "/")).replace("{n}", str(n))  # noqa: RUF027  the user's text
        contents: dict[str, object] = {key: where[key] for key in _ALREADY_THERE if key in where}
        mount = {"disk": disk, "at": path, **contents, "filesystem": filesystem or table.like({})}
        mounts[name if group is None else f"{name}{n}"] = table.like(mount)
    return mounts
