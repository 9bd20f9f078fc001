"""What is written of a file and waits to be converted."""

from __future__ import annotations

from collections.abc import Callable

from wbsim.models.filesystems.locks import InodeLock
from wbsim.models.seams import Inode

Landed = Callable[[int], None]
"""Is told how many pages are clean."""


class Conversions:
    """The ranges of one file that wait for conversion, and whether a worker is to convert them.

    ``extents``: how many extents were given blocks so far; ``ranges``: how many ranges wait, by group;
    ``lock``: the inode's, which each conversion takes.
    """

    __slots__ = ("busy", "extents", "folios", "inode", "landed", "lock", "ranges")

    def __init__(self, inode: Inode, lock: InodeLock) -> None:
        self.inode = inode
        self.lock = lock
        self.busy = False
        self.extents = 0
        self.landed: list[tuple[Landed, int]] = []
        self.ranges: dict[int, int] = {}
        self.folios = 0
