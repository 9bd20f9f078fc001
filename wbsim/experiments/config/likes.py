"""``like``: a part of the catalogue, or a user's file with a machine, a disk, a filesystem or a kernel.

A file holds the table that the configuration would have in its place.  ``like`` in a file names its base::

    like = "p13-vm"
    processors.count = 16
    disks.nvme0n1 = { like = "pm9a3" }   # with a new disk, a file lists all disks of its machine
    processors.wake_time = { value = "5 us", origin = "assumed", low = "1 us", high = "50 us", source = "?" }

``like`` is the name of a part, or the path of a .toml file, relative to the folder of the configuration.  A
name that the catalogue lacks stands for the first of these files that exists:

* NAME.toml in the folder of the configuration;
* NAME.toml in the folder machines/, disks/, filesystems/ or kernels/ in it, by the kind of the part;
* NAME.toml in the folder of the same name in ~/.config/wbsim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from wbsim.experiments.config.problems import Problems, excerpt, instead
from wbsim.experiments.config.toml_tree import NotToml, parse_toml
from wbsim.experiments.config.tree import Table, merge, plain, with_key, with_origins
from wbsim.models.catalogue.kernels import FIRST, KERNELS, LAST
from wbsim.sim.param import Spec
from wbsim.sim.text_files import text_of

MOST_LISTED: Final = 30
"""An error lists the names of a kind of part if there are at most so many."""
HOME: Final = Path("~/.config/wbsim").expanduser()


class Bases(NamedTuple):
    """The bases that ``like`` can name for one kind of part: ``parts`` by name, and files in ``folder``."""

    folder: str
    parts: Mapping[str, Spec]


class Likes(NamedTuple):
    """Reads the ``like`` of a configuration's tables.

    problems   collects the errors
    directory  the folder of the configuration, where the search for files begins
    texts      the texts that replace ``{name}`` in job files, by the name

    The *bases* of a method are what ``like`` can name for one kind of part.
    """

    problems: Problems
    directory: Path
    texts: Mapping[str, str] = MappingProxyType({})

    def based_on(self, table: Table, bases: Bases) -> Table | None:
        """Return the part that ``like`` names, with the entries of *table* put over it.

        A file of the user may lie between both; see `expand`.  None if no part has this name, which is noted
        as a problem.
        """
        expansion = self.expand(table, bases)
        if expansion is None:
            return None
        like = plain(expansion.get("like"))
        if not isinstance(like, str) or like not in bases.parts:
            hint = instead("like", table) if like is None else ""
            message = _unknown_like(like, bases, self._files(bases))
            self.problems.wrong(expansion, "like", f"{message}{hint}")
            return None
        return merge(bases.parts[like], expansion.omit("like"))

    def expand(self, part: Table, bases: Bases) -> Table | None:
        """Return *part*, put over the file that its ``like`` names; this file may name another file.

        The ``like`` that is left names a part of the catalogue, or nothing that exists.  None, with a noted
        problem, if a file cannot be read, is its own base, or has the name of a part of the catalogue.
        """
        files: set[Path] = set()
        if self._is_ambiguous(part, bases):
            return None
        while isinstance(like := plain(part.get("like")), str) and like not in bases.parts:
            try:
                file = _file_of(like, bases.folder, self.directory)
                table = None if file is None else _table_in(file, part)
            except ValueError as error:
                self.problems.wrong(part, "like", str(error))
                return None
            if file is None or table is None:
                break
            if file in files:
                message = f"makes {file} its own base; name another base"
                self.problems.wrong(part, "like", message)
                return None
            files.add(file)
            part = merge(table, part.dropped("like"))
        return part

    def _files(self, bases: Bases) -> list[str]:
        """Return the names of the user's files in the folders of this kind of part."""
        folders = (self.directory / bases.folder, HOME / bases.folder)
        return [path.stem for folder in folders for path in sorted(folder.glob("*.toml"))]

    def _is_ambiguous(self, part: Table, bases: Bases) -> bool:
        """Return whether ``like`` of *part* names a part of the catalogue and a user's file; report it.

        A file in the folder of the configuration may be a configuration, so only the other folders count.
        """
        like = plain(part.get("like"))
        if not isinstance(like, str) or like not in bases.parts:
            return False
        folders = (self.directory / bases.folder, HOME / bases.folder)
        file = next((path for folder in folders if (path := folder / f"{like}.toml").is_file()), None)
        own_file = part.place_of("like").rpartition(":")[0]
        if file is None or Path(own_file).resolve() == file.resolve():
            return False
        message = f"{like!r} is a part of wbsim and your file {file}; rename the file, or give its path"
        self.problems.wrong(part, "like", message)
        return True


def _unknown_like(like: object, bases: Bases, files: Iterable[str]) -> str:
    """Return the message for a *like* that is neither in *bases* nor among the names of user's *files*."""
    if isinstance(like, float | int) and str(like) in bases.parts:
        return f"is the number {like}; write it in quotes"
    fault = "is missing" if like is None else f"{excerpt(like)} is not known"
    if isinstance(like, str) and like.endswith(".toml"):
        fault += ": there is no such file"
    names = [*(() if bases.parts is KERNELS else bases.parts), *files]
    for name in get_close_matches(str(like), names, 1, 0.7):
        fault += f"; did you mean {name!r}"
    if len(bases.parts) > MOST_LISTED:
        return f"{fault}; use a name of wbsim list {bases.folder}, or the path of a .toml file"
    more = f", or any release from {FIRST} to {LAST}" if bases.parts is KERNELS else ""
    return f"{fault}; use one of {', '.join(map(repr, bases.parts))}{more}"


def _table_in(file: Path, owner: Table) -> Table:
    """Return the table in *file*, with the key of *owner*.

    Raises:
        ValueError: *file* cannot be read.
    """
    try:
        table = parse_toml(text_of(file), str(file))
    except NotToml as error:
        line = "" if error.line is None else f":{error.line}"
        raise ValueError(f"{file}{line} cannot be read: {error}") from None
    except (OSError, ValueError) as error:  # UnicodeDecodeError is a ValueError
        raise ValueError(f"{file} cannot be read: {error}") from None
    part = with_origins(with_key(table, owner.key))
    return part.set_place(owner.key, part.where, {"like": part.where, **part.places})


def _file_of(like: str, folder: str, directory: Path) -> Path | None:
    """Return the file that *like* names, or None; *folder* is the folder of this kind of part."""
    for path in _candidates(like, folder, directory):
        try:
            if path.is_file():
                return path
        except OSError:  # the name is invalid as a file name
            continue
    return None


def _candidates(like: str, folder: str, directory: Path) -> Iterator[Path]:
    if like.endswith(".toml"):
        yield directory / like
        return
    if "/" in like or like.startswith("."):
        return
    for base in (directory, directory / folder, HOME / folder):
        yield base / f"{like}.toml"
