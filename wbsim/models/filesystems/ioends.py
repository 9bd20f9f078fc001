"""The ioends of a file: pages that went to the device together and are completed together.

Stands for struct iomap_ioend, and for the list of an inode with its work (i_ioend_list, i_ioend_work).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wbsim.models.interfaces import Thread
from wbsim.models.vfs.superblock import Flight
from wbsim.sim.engine import Steps


class IoEnd:
    """An ioend: pages from *page* on that lie together in the file and, from *block* on, on disk.

    ``pages``: their number.  ``mapped``: the number of extents that got blocks for them.  ``bios``: the bios
    that have not ended.  While ``is_open``, more pages may follow.  The pages are in *flight* until they are
    clean.  *block* counts from the file's base.
    """

    __slots__ = ("bios", "block", "flight", "is_open", "mapped", "page", "pages")

    def __init__(self, page: int, block: int, flight: Flight) -> None:
        self.flight = flight
        self.page = page
        self.block = block
        self.pages = self.bios = self.mapped = 0
        self.is_open = True


class IoEnds:
    """The ioends of *inode* that have ended, in the list ``queue``.

    ``busy``: they are queued for a worker, or a worker is at them.  ``pending`` ioends of unwritten blocks
    have begun, and are not converted yet.  ``end_io`` is the end_io of their bios.

    The argument *queue* is called with this object to queue it: a worker then runs *convert* for each ioend.
    """

    __slots__ = ("_queue", "busy", "convert", "end_io", "inode", "pending", "queue")

    def __init__(
        self,
        inode: Any,
        queue: Callable[[Any], None],
        convert: Callable[[Thread, Any, IoEnd], Steps],
    ) -> None:
        self.inode = inode
        self._queue = queue
        self.convert = convert
        self.busy = False
        self.pending = 0
        self.queue: list[IoEnd] = []
        self.end_io: Callable[[IoEnd], None] = self._end_io  # a bound method that is made once

    def _end_io(self, ioend: IoEnd) -> None:
        """Put *ioend* on the list after its last bio (iomap_writepage_end_bio, xfs_end_bio)."""
        ioend.bios -= 1
        if ioend.bios or ioend.is_open:
            return
        self.queue.append(ioend)
        if not self.busy:
            self.busy = True
            self._queue(self)

    def take(self) -> list[IoEnd]:
        """Return the ioends that have ended by now, in the order of their pages; ``queue`` is empty then."""
        ioends, self.queue = self.queue, []
        ioends.sort(key=_by_page)
        return ioends


def _by_page(ioend: IoEnd) -> int:
    return ioend.page
