"""Writing back a file whose pages are kept one by one: find dirty pages, allocate, build bios, submit.

Stands for write_cache_pages and what filesystems make of it (iomap_writepages, ext4_writepages).  Compiled
code walks the file up to the next event that matters (`models.filesystems.page_walk`); its bios are submitted
here, and the filesystem's `Placement` gives blocks to what the walk could not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wbsim.models.bio import Bio
from wbsim.models.block.queue import Queue
from wbsim.models.filesystems.completions import Completions, Submission
from wbsim.models.filesystems.files import FileInode
from wbsim.models.filesystems.horizon import Horizon
from wbsim.models.filesystems.locks import LockTable
from wbsim.models.filesystems.map_costs import MapCosts
from wbsim.models.filesystems.page_walk import BLOCKED, DONE
from wbsim.models.filesystems.policies import FileWriteback, SteppedMetadata, SteppedPlacement
from wbsim.models.filesystems.unwritten import SteppedFile
from wbsim.models.filesystems.walk_state import UNCOUNTED, Walk
from wbsim.models.scheduler.cpu import cond_resched, sleep
from wbsim.models.seams import Thread, WritebackControl
from wbsim.models.step_lengths import StepLengths
from wbsim.models.vfs.superblock import Flight, MountedSuperblock
from wbsim.sim.engine import Steps
from wbsim.sim.units import PAGE_SECTORS


class PageWalk(FileWriteback):
    """The page walk of one mounted filesystem; *completions* convert unwritten extents."""

    def __init__(
        self,
        *,
        sb: MountedSuperblock,
        placement: SteppedPlacement,
        metadata: SteppedMetadata,
        costs: MapCosts,
        completions: Completions,
        horizon: Horizon,
        locks: LockTable,
        lengths: StepLengths,
    ) -> None:
        self._sb = sb
        self._queue: Queue = sb.bdi.queue
        self._first_block = sb.first_block
        self._placement = placement
        self._metadata = metadata
        self._costs = costs
        self._completions = completions
        self._horizon = horizon
        self._locks = locks
        self._bios, self._nonblocking_bios = lengths.bios, lengths.nonblocking_bios

    def write(self, thread: Thread, inode: FileInode, file: SteppedFile, wbc: WritebackControl) -> Steps:
        """Write back from where the last walk ended or, for data integrity, the whole file."""
        placement = self._placement
        at = Walk(0 if wbc.sync_all else file.writeback_index, wbc.nr_to_write)
        placement.prepare(inode, at, wbc)
        visits = wbc.visits
        bios = np.empty((self._bios if visits is None else self._nonblocking_bios, 2), np.int64)
        bio_pages, dice = (
            self._queue.bio_pages(self._queue.segment_pages(inode.folio_pages)),
            self._costs.dice,
        )
        ended = BLOCKED
        while ended != DONE:
            if self._metadata.is_full():
                yield from self._metadata.wait_for_space(thread)
            at.dice = dice.ready()
            ended = placement.step(inode, at, bio_pages, self._horizon.look(), bios)
            dice.at = at.dice
            yield from self._submit(thread, inode, file, at, bios)
            if visits is not None and ended != DONE and visits.gives_up():
                break
            if ended == BLOCKED:
                yield from placement.unblock(thread, inode, at)
            if (ready := cond_resched(thread.task)) is not None:
                yield ready
        file.writeback_index = at.page
        if at.calls == UNCOUNTED:
            wbc.nr_to_write -= at.wrote
        else:
            wbc.nr_to_write = at.calls

    def zero_end(self, thread: Thread, inode: FileInode) -> Steps:
        """See `FileWriteback.zero_end`."""
        raise AssertionError("a filesystem with compiled steps never stops in the middle of writes")

    def _pass(self, thread: Thread, inode: FileInode, file: SteppedFile, at: Walk) -> Steps:
        """The time of a step passes, working and waiting; then its extents are logged."""
        if at.elapsed_ns:
            work_ns = at.elapsed_ns - at.for_file_ns
            pages_ns = min(at.pages * self._costs.page_ns(inode.folio_pages), work_ns)
            thread.spent.pages += pages_ns
            thread.spent.allocate += work_ns - pages_ns
            yield work_ns
            if at.for_file_ns:
                thread.before_sleep()
                yield from sleep(thread.task, at.for_file_ns, self._locks.inode_cause)
        if at.mapped_extents:
            file.conversions.extents += at.mapped_extents
            self._metadata.mapped(inode, at.mapped_extents, at.page)

    def _submit(
        self, thread: Thread, inode: FileInode, file: SteppedFile, at: Walk, bios: NDArray[np.int64]
    ) -> Steps:
        """Put the pages that a step has written under writeback; submit them once the step's time is over."""
        pages, flight = at.pages, self._sb.flight
        ranges = self._placement.ranges(file, at)
        inode.dirty_pages -= pages
        flight.add(inode.wb, pages)
        yield from self._pass(thread, inode, file, at)
        if pages:
            end_io = landed = _Landing(flight, inode).end
            if self._completions.unwritten:
                end_io = Submission(
                    self._completions, file.conversions, pages, ranges, inode.folio_pages, landed
                ).written
            queue, base = self._queue, file.base + self._first_block
            segment = queue.segment_pages(inode.folio_pages)
            for block, count in bios[: at.bios].tolist():
                bio = Bio(
                    (base + block) * PAGE_SECTORS, count * PAGE_SECTORS, segments=-(-count // segment),
                    queue=queue, end_io=end_io, context=count,
                )  # fmt: skip
                if (rest := thread.submit_bio(bio)) is not None:
                    yield from rest


class _Landing:
    """Pages of one inode under writeback."""

    __slots__ = ("_flight", "_inode")

    def __init__(self, flight: Flight, inode: FileInode) -> None:
        self._flight = flight
        self._inode = inode

    def end(self, pages: int) -> None:
        """*pages* of them are clean."""
        self._flight.end(self._inode.wb, pages)
