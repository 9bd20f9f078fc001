"""What is written of a file and waits to be converted, where compiled steps write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wbsim.models.filesystems.files import FileInode, PagedFile
from wbsim.models.filesystems.locks import InodeLock

Landed = Callable[[int], None]
"""Is told how many pages are clean."""


class Conversions:
    """The ranges of *inode* that wait for conversion, and whether a worker is to convert them.

    ``extents``: how many extents were given blocks so far; ``ranges``: how many ranges wait, by group;
    ``lock``: the inode's, which each conversion takes; *converted* is called with their number afterwards.
    """

    __slots__ = ("busy", "converted", "extents", "folios", "inode", "landed", "lock", "ranges")

    def __init__(self, inode: FileInode, lock: InodeLock, converted: Callable[[Any, int], None]) -> None:
        self.inode = inode
        self.lock = lock
        self.converted = converted
        self.busy = False
        self.extents = 0
        self.landed: list[tuple[Landed, int]] = []
        self.ranges: dict[int, int] = {}
        self.folios = 0


class SteppedFile(PagedFile):
    """A file that compiled steps write back: its ``conversions`` and the ``lock`` of its inode."""

    __slots__ = ("conversions", "lock")

    conversions: Conversions
    lock: InodeLock
