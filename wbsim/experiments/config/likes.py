"""``like``: a part of the catalogue, or a file of the user's with such a part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Final

from wbsim.experiments.config.catalogue_inputs import inputs_of
from wbsim.experiments.config.inputs import Inputs
from wbsim.experiments.config.key_places import Path
from wbsim.experiments.config.merge import merged, plain
from wbsim.experiments.config.problems import instead, shown
from wbsim.experiments.config.user_parts import NotThere, own_part
from wbsim.models.catalogue.kernels import FIRST, KERNELS, LAST
from wbsim.sim.param import Spec

_FOLDERS: Final = {"machine": "machines", "kernel": "kernels", "filesystem": "filesystems"}
"""By part: the folder of the user's files; all other parts are disks."""


def based_on(
    of: Inputs, path: Path, given: dict[str, Any], bases: Mapping[str, Spec]
) -> dict[str, Any] | None:
    """Return the inputs of the part that ``like`` names, with what is *given* put over it.

    None means that there is no such part; *of* has the problem then.
    """
    given = expanded(of, path, given, bases)
    like = plain(given.pop("like", None))
    if not isinstance(like, str) or like not in bases:
        if not any(at == (*path, "like") for at, _ in of.problems):
            told = _unknown_like(like, bases, bool(of.own(path)))
            of.wrong((*path, "like"), f"{of.own(path)}{told}{instead('like', given) if like is None else ''}")
        return None
    return merged(inputs_of(bases[like]), given)


def _unknown_like(like: Any, bases: Mapping[str, Spec], own: bool) -> str:
    """Return the message for a *like* that is not in *bases*; *own* says that it stands in a user's file."""
    if isinstance(like, float | int) and str(like) in bases:
        return f"is the number {like}; write it in quotes"
    what = f"{shown(like)} is not known"
    if like is None:
        what = "there is no like" if own else "is missing"
    more = f", or any release from {FIRST} to {LAST}" if bases is KERNELS else ""
    return f"{what}; use one of {', '.join(map(repr, bases))}{more}"


def expanded(of: Inputs, path: Path, given: dict[str, Any], bases: Mapping[str, Spec]) -> dict[str, Any]:
    """Return *given*, put over the user's files that its ``like`` names, one after another."""
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
