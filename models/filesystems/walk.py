"""Writing back a file whose pages are kept one by one: find dirty pages, allocate, build bios, submit.

Stands for write_cache_pages and what filesystems make of it (iomap_writepages, ext4_writepages).  Compiled
code walks the file up to the next event that matters (`models.filesystems.page_walk`); its bios are submitted
here, and the filesystem's `Placement` gives blocks to what the walk could not.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.block.queue import Queue
from models.filesystems.conversions import Submission, Workers
from models.filesystems.files import FileInode, PagedFile
from models.filesystems.horizon import Horizon
from models.filesystems.map_costs import MapCosts
from models.filesystems.page_walk import (
    ALLOCATING,
    BIOS,
    CALLS,
    CONVERT,
    DICE,
    DONE,
    ELAPSED,
    FOR_FILE,
    FOR_GROUP,
    MAPPED_EXTENTS,
    PAGE,
    PAGES,
    UNCOUNTED,
    WROTE,
    new_walk,
)
from models.filesystems.policies import Metadata, Placement
from models.scheduler.cpu import cond_resched, sleep
from models.seams import Thread, WritebackControl
from models.vfs.superblock import Flight, MountedSuperblock
from sim.engine import Steps

_BIOS: Final = 1_024
_SLEPT: Final = {"lock ILOCK": FOR_FILE, "lock AGF": FOR_GROUP}
"""What a walk sleeps for."""


class PageWalk:
    """That of one mounted filesystem; *workers* convert what was unwritten, where there are any."""

    def __init__(
        self,
        *,
        sb: MountedSuperblock,
        placement: Placement,
        metadata: Metadata,
        costs: MapCosts,
        workers: Workers | None,
        horizon: Horizon,
    ) -> None:
        self._sb = sb
        self._queue: Queue = sb.bdi.queue
        self._first_block = sb.first_block
        self._placement = placement
        self._metadata = metadata
        self._costs = costs
        self._workers = workers
        self._horizon = horizon

    def write(self, thread: Thread, inode: FileInode, file: PagedFile, wbc: WritebackControl) -> Steps:
        """Write back from where the last walk ended or, for data integrity, the whole file."""
        placement = self._placement
        at = new_walk(file.writeback_index if wbc.range_cyclic else 0, wbc.nr_to_write)
        placement.prepare(inode, at, wbc)
        bios = np.empty((_BIOS, 2), np.int64)
        bio_pages, dice = (
            self._queue.bio_pages(self._queue.segment_pages(inode.folio_pages)),
            self._costs.dice,
        )
        ended = CONVERT
        while ended != DONE:
            if self._metadata.is_full():
                yield from self._metadata.wait_for_space(thread)
            at[DICE] = dice.ready()
            near_ns, far_ns = self._horizon.look()
            ended = placement.step(inode, at, bio_pages, far_ns, bios)
            dice.at = int(at[DICE])
            locked = bool(at[ALLOCATING] or (at[MAPPED_EXTENTS] and at[ELAPSED] > near_ns))
            yield from self._submit(thread, inode, file, at, bios, locked)
            if ended == CONVERT:
                yield from placement.allocate(thread, inode, at)
            if (ready := cond_resched(thread.task)) is not None:
                yield ready
        file.writeback_index = int(at[PAGE])
        if at[CALLS] == UNCOUNTED:
            wbc.nr_to_write -= int(at[WROTE])
        else:
            wbc.nr_to_write = int(at[CALLS])

    def _submit(
        self, thread: Thread, inode: FileInode, file: PagedFile, at: NDArray[np.int64],
        bios: NDArray[np.int64], locked: bool,
    ) -> Steps:  # fmt: skip
        """What a step of the walk has written goes under writeback; once its time is over, it is submitted.

        Its locks are held meanwhile if somebody else's event comes before its end.
        """
        pages, elapsed_ns, flight = int(at[PAGES]), int(at[ELAPSED]), self._sb.flight
        ranges = self._placement.ranges(file, at)
        inode.dirty_pages -= pages
        flight.add(inode.wb, pages)
        if locked:
            self._placement.lock(thread, inode)
        if locked or elapsed_ns:
            work_ns = elapsed_ns - int(at[FOR_FILE] + at[FOR_GROUP])
            pages_ns = min(pages * self._costs.page_ns(inode.folio_pages), work_ns)
            thread.spent.pages += pages_ns
            thread.spent.allocate += work_ns - pages_ns
            yield work_ns
            for lock, slept in _SLEPT.items():
                if at[slept]:
                    thread.before_sleep()
                    yield from sleep(thread.task, int(at[slept]), lock)
        if locked:
            self._placement.unlock(inode)
        if at[MAPPED_EXTENTS]:
            file.conversions.extents += int(at[MAPPED_EXTENTS])
            self._metadata.mapped(inode, int(at[MAPPED_EXTENTS]), int(at[PAGE]))
        if pages:
            end_io = landed = _Landing(flight, inode).end
            if self._workers is not None:
                end_io = Submission(
                    self._workers, file.conversions, pages, ranges, inode.folio_pages, landed
                ).written
            on_disk = bios[: at[BIOS]]
            on_disk[:, 0] += file.base + self._first_block
            yield from thread.submit_runs(
                self._queue, on_disk, self._queue.segment_pages(inode.folio_pages), end_io
            )


class _Landing:
    """Pages of one inode under writeback."""

    __slots__ = ("_flight", "_inode")

    def __init__(self, flight: Flight, inode: FileInode) -> None:
        self._flight = flight
        self._inode = inode

    def end(self, pages: int) -> None:
        """*pages* of them are clean."""
        self._flight.end(self._inode.wb, pages)
