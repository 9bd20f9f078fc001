"""A file under writeback on any filesystem: its bios, its ioends, and the worker that completes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tests.literal.block import Bio, Queue
from tests.literal.clock import SLEEP, Clock, LockCounts, RwSemaphore, Steps, Task
from wbsim.sim.units import PAGE_SECTORS


class Times(NamedTuple):
    """The times of the paths (ns).

    ``map_ns``: an allocation, up to its commit.
    ``page_ns``: a page that is walked and added to a bio.
    ``range_ns``: a conversion under the inode's lock alone.
    ``map_outside_ns`` and ``range_outside_ns``: the parts before that lock is taken.
    ``end_page_ns``: a page that the worker makes clean.
    ``tree_map_ns`` and ``tree_range_ns`` are the same in a file of more than ``inline`` extents.
    ``wake_ns``, ``line_ns``, ``spin_ns`` and ``waker_ns`` are those of `RwSemaphore`.
    """

    map_ns: int
    tree_map_ns: int
    page_ns: int
    range_ns: int
    tree_range_ns: int
    end_page_ns: int
    inline: int
    wake_ns: int
    line_ns: int
    spin_ns: int
    map_outside_ns: int = 0
    range_outside_ns: int = 0
    waker_ns: int = 0


@dataclass
class IoEnd:
    """struct iomap_ioend or ext4_io_end: pages that lie together in the file and on disk.

    ``bios``: the number of its bios in flight.
    """

    first: int
    pages: int
    bios: int = 0


class File(ABC):
    """A file with *dirty* pages, whose writeback *flusher* starts and *worker* completes.

    Block 0 of the file's pages is block *base* of the disk.  A bio has at most *bio_pages* pages, in segments
    of *segment_pages* pages.
    """

    def __init__(
        self, clock: Clock, queue: Queue, flusher: Task, worker: Task, times: Times, *,
        dirty: Iterable[int], base: int, bio_pages: int, segment_pages: int,
    ) -> None:  # fmt: skip
        self._clock = clock
        self._queue = queue
        self._flusher = flusher
        self._worker = worker
        self._times = times
        self._dirty = set(dirty)
        self._blocks: dict[int, int] = {}  # of each page that has a block
        self._base = base
        self._bio_pages, self._segment_pages = bio_pages, segment_pages
        self.inode_counts = LockCounts()
        self.latencies_ns: list[int] = []
        """The latency of each write(2)."""
        self._lock = RwSemaphore(
            clock, self.inode_counts, times.wake_ns, times.line_ns, times.spin_ns, times.waker_ns
        )
        self._extents = 0
        self._ioend: IoEnd | None = None  # the current ioend
        self._built = 0  # pages of the current bio
        self._ended: list[IoEnd] = []
        self._worker_sleeps = False
        self.clean_ns = clock.now
        worker.start(self._end_all())

    @abstractmethod
    def writepages(self) -> Steps:
        """Do ->writepages in the flusher."""

    @abstractmethod
    def _convert(self, ioend: IoEnd) -> Steps:
        """Do the part of a conversion that follows the part under the inode's lock alone."""

    def _next_dirty(self, page: int) -> int:
        """Return the first dirty page from *page* on; -1: all of them are clean."""
        return min((dirty for dirty in self._dirty if dirty >= page), default=-1)

    def write(self, task: Task, pages: Iterable[int], user_ns: int, call_ns: int) -> Steps:
        """Let *task* write to holes: it works for *user_ns*, and write(2) copies a page in *call_ns*.

        write(2) takes the inode's lock, gives it up, and makes a dirty page without a block.
        """
        for page in pages:
            yield user_ns
            began_ns = self._clock.now
            yield call_ns
            yield from self._lock.down_write(task)
            yield self._lock.up_write(task)
            self._delay(page)
            self.latencies_ns.append(self._clock.now - began_ns)

    def _delay(self, page: int) -> None:
        """Make the hole *page* a dirty page without a block."""
        self._dirty.add(page)

    @property
    def _in_inode(self) -> bool:
        """Return whether the inode itself holds all extents."""
        return self._extents <= self._times.inline

    @property
    def _map_ns(self) -> int:
        return self._times.map_ns if self._in_inode else self._times.tree_map_ns

    def _goes_on(self, page: int) -> bool:
        """Return whether *page* follows the current ioend, in the file and on disk."""
        blocks, ioend = self._blocks, self._ioend
        assert ioend is not None, "an ioend must be under construction"
        return page == ioend.first + ioend.pages and blocks[page] == blocks[page - 1] + 1

    def _add(self, page: int) -> Steps:
        """Put *page* under writeback and add it to the current bio; submit a full bio before."""
        if self._built == self._bio_pages:
            yield from self._submit(ends=False)
        if self._ioend is None:
            self._ioend = IoEnd(page, 0)
        yield self._times.page_ns
        self._dirty.remove(page)
        self._ioend.pages += 1
        self._built += 1

    def _submit(self, ends: bool) -> Steps:
        """Submit the current bio, which is a part of the current ioend; *ends*: it is the last part."""
        ioend = self._ioend
        assert ioend is not None, "an ioend must be under construction"
        if ends:
            self._ioend = None
        first, pages, self._built = ioend.first + ioend.pages - self._built, self._built, 0
        block = self._base + self._blocks[first]
        ioend.bios += 1
        segments = -(-pages // self._segment_pages)
        end = block + pages
        bio = Bio(block * PAGE_SECTORS, end * PAGE_SECTORS, segments, self._end_io, ioend)
        yield from self._queue.submit(bio)

    def _end_io(self, ioend: IoEnd) -> None:
        """Put *ioend* on the list of the worker after its last bio."""
        ioend.bios -= 1
        if not ioend.bios and ioend is not self._ioend:
            self._ended.append(ioend)
            if self._worker_sleeps:
                self._worker_sleeps = False
                self._worker.wake(0)

    def _end_all(self) -> Steps:
        """Take the list, convert one ioend after another, and clean the pages of each."""
        times, task = self._times, self._worker
        while True:
            while self._ended:
                ended, self._ended = self._ended, []
                for ioend in sorted(ended, key=lambda ioend: ioend.first):
                    yield times.range_outside_ns
                    yield from self._lock.down_write(task)
                    yield times.range_ns if self._in_inode else times.tree_range_ns
                    yield from self._convert(ioend)
                    yield self._lock.up_write(task)
                    yield ioend.pages * times.end_page_ns
                    self.clean_ns = self._clock.now
            self._worker_sleeps = True
            yield SLEEP
