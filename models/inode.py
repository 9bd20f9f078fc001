"""struct inode, as far as writeback sees it."""

from __future__ import annotations


class Inode:
    """A dirty inode: *dirtied_when* (ns) orders the flusher's lists; filesystems add their own slots.

    While *syncing* (I_SYNC) it is on no list: whoever writes it back puts it where it belongs.
    """

    __slots__ = ("dirtied_when", "dirty_pages", "syncing")

    def __init__(self) -> None:
        self.dirtied_when = 0
        self.dirty_pages = 0
        self.syncing = False
