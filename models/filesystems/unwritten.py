"""What is written of a file and waits to be converted."""

from __future__ import annotations

from collections.abc import Callable

from models.filesystems.turns import NO_ROW
from models.seams import Inode

Landed = Callable[[int], None]
"""Is told how many pages are clean."""


class Conversions:
    """The ranges of one file that wait for conversion, and whether a worker is to convert them.

    ``extents``: how many extents were given blocks so far; ``ranges``: how many ranges wait, by group;
    ``row``: the row of the worker that converts the file at present; ``kept_ns``: until when a flusher has
    had the inode's lock.
    """

    __slots__ = ("busy", "extents", "folios", "inode", "kept_ns", "landed", "ranges", "row")

    def __init__(self, inode: Inode) -> None:
        self.inode = inode
        self.busy = False
        self.extents = 0
        self.landed: list[tuple[Landed, int]] = []
        self.ranges: dict[int, int] = {}
        self.folios = 0
        self.kept_ns = 0
        self.row = NO_ROW
