"""The conversion of unwritten extents once they were written.

Stands for xfs_end_io and ext4_end_io_rsv_work: a worker for each file converts what has been written, in a
transaction for each range under the inode's lock, and only then are the pages clean.  Left out: that a page
written for the second time needs none; the AGF, which it takes under rmapbt; the processor, which a kernel
thread finds at once.
"""

from __future__ import annotations

from collections.abc import Callable

from models.seams import Inode
from sim.engine import Environment

Landed = Callable[[int], None]
"""Is told how many pages are clean."""


class Conversions:
    """What waits for one file's worker, whether that is at work, and until when."""

    __slots__ = ("busy", "ends_ns", "inode", "landed", "ranges")

    def __init__(self, inode: Inode) -> None:
        self.inode = inode
        self.busy = False
        self.ends_ns = 0
        self.landed: list[tuple[Landed, int]] = []
        self.ranges = 0


class Submission:
    """Pages of one file that went to the device together, in so many ranges of blocks."""

    __slots__ = ("_conversions", "_landed", "_pages", "_ranges", "_workers")

    def __init__(
        self, workers: Workers, conversions: Conversions, pages: int, ranges: int, landed: Landed
    ) -> None:
        self._workers = workers
        self._conversions = conversions
        self._pages = pages
        self._ranges = ranges
        self._landed = landed

    def written(self, pages: int) -> None:
        """*pages* of them are on the device; their part of the ranges is to be converted."""
        ended = self._ranges * pages // self._pages
        self._pages -= pages
        self._ranges -= ended
        conversions = self._conversions
        conversions.landed.append((self._landed, pages))
        conversions.ranges += ended
        if not conversions.busy:
            conversions.busy = True
            self._workers.begin(conversions)


class Workers:
    """The workers of one filesystem; a range takes *range_ns*, an allocation by the flusher *map_ns*.

    Flusher and worker contend for a file's inode lock: each is charged half of the other's hold, every time.
    *converted* is told of the inode and of how many ranges became written extents.
    """

    def __init__(
        self, env: Environment, range_ns: int, map_ns: int, converted: Callable[[Inode, int], None]
    ) -> None:
        self._env = env
        self.rank = env.next_rank()
        self._range_ns = range_ns
        self._map_ns = map_ns
        self._converted = converted

    def delay_ns(self, conversions: Conversions) -> int:
        """How long an allocation of that file waits at present."""
        return self._range_ns // 2 if conversions.busy else 0

    def begin(self, conversions: Conversions) -> None:
        """Convert what waits, and then what came meanwhile."""
        landed, ranges = conversions.landed, conversions.ranges
        conversions.landed, conversions.ranges = [], 0

        def end() -> None:
            for land, pages in landed:
                land(pages)
            self._converted(conversions.inode, ranges)
            if conversions.landed:
                self.begin(conversions)
            else:
                conversions.busy = False

        wait_ns = self._map_ns // 2 if conversions.inode.syncing else 0
        conversions.ends_ns = self._env.now + ranges * (self._range_ns + wait_ns)
        self._env.call_at(conversions.ends_ns, self.rank, end)
