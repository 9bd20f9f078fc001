"""What the parts of a configuration's scenario come to, and where each is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from wbsim.experiments.config.key_places import Path, Places
from wbsim.experiments.config.merge import plain


class Inputs:
    """The inputs of a scenario, and what was wrong with what was written; *directory* is where that lies."""

    def __init__(self, directory: FilePath) -> None:
        self.directory = directory
        self.inputs: dict[str, Any] = {}
        self.problems: list[tuple[Path, str]] = []
        self.moved: dict[Path, Path] = {}
        """What follows from another key: the fields of a command line."""
        self.files: list[tuple[Path, Places]] = []
        """The files of one's own, and below which key each is put."""
        self._written: list[tuple[Path, Path]] = []
        self._for_all: set[Path] = set()

    def wrong(self, path: Path, message: str) -> None:
        """What is written at *path* has this wrong."""
        self.problems.append((path, message))

    def table(self, path: Path, given: Any) -> dict[str, Any]:
        """What is *given* at *path*, which has to be a table."""
        if isinstance(given, Mapping):
            return dict(given)
        self.wrong(path, f"is {plain(given)!r}; a table was expected")
        return {}

    def writes(self, path: Path, written: Path) -> None:
        """What the scenario has at *path* is written at *written*."""
        self._written.append((path, written))

    def own(self, path: Path) -> str:
        """The place of the ``like`` of the last file of one's own at *path*, as a beginning; or nothing."""
        own = [places.of(("like",)) for at, places in self.files if at == path]
        return f"{own[-1]}: " if own else ""

    def stands_for_all(self, path: Path) -> None:
        """Note that the one table that is written at *path* stands for all items of a list."""
        self._for_all.add(path)

    def written(self, path: Path) -> Path:
        """Return the key as which the scenario's key *path* is written."""
        for prefix, written in self._written:
            if path[: len(prefix)] == prefix:
                path = written + path[len(prefix) :]
                break
        return tuple(part for place, part in enumerate(path) if path[:place] not in self._for_all)
