"""The arrays of a machine: a group of disks may stand for the list of its members, and md gets its costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wbsim.experiments.config.likes import Likes
from wbsim.experiments.config.problems import excerpt
from wbsim.experiments.config.tree import Items, Table, entries_of, plain
from wbsim.models.md.spec import REFERENCE_COSTS


def add_arrays(likes: Likes, machine: Table, table: Table, groups: Mapping[str, list[str]]) -> None:
    """Add the arrays of *table*, the machine as the user wrote it, to *machine*, which is changed in place.

    *groups* are the groups of disks: the names of the disks, by the name of the group.  A machine with an
    array gets the usual costs of md in ``processors.paths.md``; costs that are there already stay.
    `scenarios` calls this; problems are noted in *likes*.  If *table* has no ``arrays``, nothing changes.
    """
    if "arrays" not in table:
        return
    tables = likes.problems.table(table, "arrays")
    arrays = {name: likes.problems.table(tables, name) for name in tables}
    by_name = {name: _with_members(likes, array, groups) for name, array in arrays.items()}
    machine["arrays"] = tables.like(by_name)
    processors: dict[str, Any] = entries_of(machine["processors"])
    paths = entries_of(processors["paths"]) if "paths" in processors else {}
    own = paths.get("md")
    paths["md"] = {**REFERENCE_COSTS, **own} if isinstance(own, Mapping) else own or REFERENCE_COSTS
    machine["processors"] = tables.like({**processors, "paths": paths})


def _with_members(likes: Likes, array: Table, groups: Mapping[str, list[str]]) -> Table:
    """Return *array* with the name of a group replaced by the names of its disks."""
    members = array.get("members")
    if isinstance(members, Items) or members is None:
        return array
    name = plain(members)
    if isinstance(name, str) and name in groups:
        return array.like({**array, "members": groups[name]})
    choices = f"a group of disks: {', '.join(groups)}" if groups else "a group of disks (a disk with a count)"
    likes.problems.wrong(array, "members", f"is {excerpt(members)}; give a list of disks, or {choices}")
    return array.like({**array, "members": []})
