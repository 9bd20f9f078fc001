"""The conversion of unwritten extents once they were written.

Stands for xfs_end_io and ext4_end_io_rsv_work: a worker for each file converts what has been written, in a transaction
for each range under the inode's lock, and only then are the pages clean.  Left out: that a page written for the second
time needs none; the AGF, which it takes under rmapbt; the processor, which a kernel thread finds at once.
"""

from __future__ import annotations

from collections import deque

from models.inode import Inode
from models.page_cache import PageCache
from sim.engine import Environment


class Conversions:
    """What waits for one file's worker, and whether that is at work."""

    __slots__ = ("busy", "inode", "pages", "ranges")

    def __init__(self, inode: Inode) -> None:
        self.inode = inode
        self.busy = False
        self.pages = 0
        self.ranges = 0


class Workers:
    """The workers of one filesystem; a range takes *range_ns*, an allocation by the flusher *map_ns*.

    At the same file, each of the two waits for half of what the other does, every time.
    """

    def __init__(self, env: Environment, cache: PageCache, range_ns: int, map_ns: int) -> None:
        self._env = env
        self._cache = cache
        self._rank = env.next_rank()
        self._range_ns = range_ns
        self._map_ns = map_ns
        self._submitted: deque[tuple[Conversions, int, int]] = deque()

    def delay_ns(self, conversions: Conversions) -> int:
        """How long an allocation of that file waits at present."""
        return self._range_ns // 2 if conversions.busy else 0

    def submit(self, conversions: Conversions, pages: int, ranges: int) -> None:
        """So many *pages* of that file are under way to the device, in so many *ranges* of blocks."""
        self._submitted.append((conversions, pages, ranges))

    def written(self, pages: int) -> None:
        """The next *pages* that were submitted are on the device.

        Where the queue changes the order, one file's worker gets another's pages for a while.
        """
        while pages:
            conversions, left, ranges = self._submitted.popleft()
            done = min(pages, left)
            ended = ranges * done // left
            if done < left:
                self._submitted.appendleft((conversions, left - done, ranges - ended))
            pages -= done
            conversions.pages += done
            conversions.ranges += ended
            if not conversions.busy:
                conversions.busy = True
                self._begin(conversions)

    def _begin(self, conversions: Conversions) -> None:
        pages, ranges = conversions.pages, conversions.ranges
        conversions.pages = conversions.ranges = 0

        def end() -> None:
            self._cache.end_writeback(pages)
            if conversions.pages:
                self._begin(conversions)
            else:
                conversions.busy = False

        wait_ns = self._map_ns // 2 if conversions.inode.syncing else 0
        self._env.call_at(self._env.now + ranges * (self._range_ns + wait_ns), self._rank, end)
