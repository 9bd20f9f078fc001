"""How a thread visits inodes that may neither block nor meet another of its kind (pdflush)."""

from __future__ import annotations

from typing import Any, Protocol

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Visits(Protocol):
    """Those of one pass over the lists of dirty inodes; *wb* is a `models.seams.Wb`."""

    def enter(self, wb: Any) -> bool:
        """Whether it may visit an inode of *wb* now."""

    def leave(self, wb: Any) -> None:
        """The visit is over."""

    def gives_up(self) -> bool:
        """Whether it leaves the file that it is in as it is."""
