"""The workqueue that completes writes: conversion of unwritten extents, the size on disk.

Stands for xfs-data and xfs-conv (xfs_end_io, xfs_setfilesize, xfs_iomap_write_unwritten), and for
ext4-rsv-conversion (ext4_end_io_rsv_work), which runs one work item at a time.

A work item is queued for a file.  A file of one run is completed in one step.  For another file, each ioend
that has ended is converted in a transaction if its blocks are unwritten until then.  Its pages are clean only
after the conversion.  Where the blocks are written ones, as in an overwrite, nothing is left to do.

The workers of xfs-conv are bound: a work item runs on the processor on which the request ended
(docs/measurements.md M).  The workqueue of ext4 is unbound.

Left out: a processor gets a second worker while its first worker sleeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wbsim.models.filesystems.costs import MapCosts
from wbsim.models.filesystems.delalloc_parts import Metadata
from wbsim.models.filesystems.files import FileInode
from wbsim.models.filesystems.ioends import IoEnds
from wbsim.models.interfaces import Thread
from wbsim.models.scheduler.cpu import cond_resched
from wbsim.models.vfs.superblock import Flight
from wbsim.sim.engine import PARK, Environment, Steps, Task
from wbsim.sim.fifo import Fifo

EndedRun = tuple[FileInode, Flight, int, int]
"""A file of one run that is written, its flight, its number of pages, and its first block."""


class Completions:
    """The workqueue of one filesystem, run by *threads*; each thread runs one work item at a time.

    If *bound*, each processor has a thread, which runs only there.  A work item goes to the thread of the
    processor on which a request of *queue* ends.  It goes to the last thread if any processor may handle
    completions, or if that processor has no thread.

    ``unwritten``: blocks are unwritten until their pages are completed.
    """

    def __init__(
        self,
        env: Environment,
        threads: Sequence[Thread],
        bound: bool,
        queue: Any,
        unwritten: bool,
        costs: MapCosts,
        metadata: Metadata[Any],
    ) -> None:
        self._env = env
        self._costs = costs
        self._metadata = metadata
        self.unwritten = unwritten
        self._queue = queue
        self._last = len(threads) - 1
        self._works: list[Fifo[EndedRun | IoEnds]] = [Fifo() for _ in threads]
        self._idle: list[Task | None] = [None] * len(threads)
        for number, thread in enumerate(threads):
            if bound:
                thread.task.bound = number
            env.start(thread.task, self._run(thread, number))

    def ioends_of(self, inode: FileInode) -> IoEnds:
        """Return a new `IoEnds`, empty so far, for the ioends of *inode* with unwritten blocks.

        The caller keeps it as ``ioends`` of the inode's `PagedFile`.  The end of an ioend's last bio puts the
        ioend on it, and queues it here; a worker then converts the blocks.
        """
        return IoEnds(inode, self.queue, self._metadata.convert)

    def queue(self, work: IoEnds) -> None:
        """Queue *work*, the ended ioends of one file, and wake its worker, in no time (queue_work).

        `IoEnds` calls this when an ioend has ended while *work* was not ``busy``, and sets ``busy`` first.
        The worker clears ``busy`` when no ended ioend is left.
        """
        self._add(work)

    def _add(self, work: EndedRun | IoEnds) -> None:
        """Queue *work* for the thread of this processor, and wake the thread."""
        number: int = self._queue.ends_on
        if number < 0 or number > self._last:
            number = self._last
        self._works[number].add(work)
        task = self._idle[number]
        if task is not None:
            self._idle[number] = None
            self._env.wake(task)

    def end_io(self, ioend: EndedRun) -> None:
        """End the I/O of *ioend*, a file of one run: queue its completion, and wake the worker, in no time.

        The only bio of the file calls this when it ends; with several bios, `end_io_of` does.
        *ioend* has the inode, its flight, the number of pages, and their first block in the filesystem.  The
        pages are clean now or, if ``unwritten``, after the completion.
        """
        if not self.unwritten:
            inode, flight, pages, _ = ioend
            flight.end(inode.wb, pages)
        self._add(ioend)

    def end_io_of(self, bios: int) -> Callable[[EndedRun], None]:
        """Return the one end_io of all *bios* (a number) bios of a file of one run.

        Each bio calls the result with the `EndedRun` when it ends; the last to end calls `end_io`.
        """
        bios_left = bios

        def end_io(ioend: EndedRun) -> None:
            nonlocal bios_left
            bios_left -= 1
            if not bios_left:
                self.end_io(ioend)

        return end_io

    def _run(self, thread: Thread, number: int) -> Steps:
        works, task, metadata, unwritten = self._works[number], thread.task, self._metadata, self.unwritten
        while True:
            while len(works):
                work = works.take()
                if isinstance(work, IoEnds):
                    while work.queue:
                        yield self._end_ioends(thread, work)
                    work.busy = False
                else:
                    inode, flight, pages, block = work
                    yield metadata.end_run(thread, block, -(-pages // inode.folio_pages))
                    metadata.run_ended(inode)
                    if unwritten:
                        flight.end(inode.wb, pages)
                    if not metadata.gives_way:
                        continue
                if (ready := cond_resched(task)) is not None:
                    yield ready
            self._idle[number] = task
            yield PARK

    def _end_ioends(self, worker: Thread, ioends: IoEnds) -> Steps:
        """xfs_end_io: convert one ioend after another, and end the writeback of its pages."""
        inode = ioends.inode
        for ioend in ioends.take():
            yield from ioends.convert(worker, inode, ioend)
            ioends.pending -= 1
            ends_ns = -(-ioend.pages // inode.folio_pages) * self._costs.end_folio_ns
            worker.spent.complete += ends_ns
            yield ends_ns
            ioend.flight.end(inode.wb, ioend.pages)
            if not self._metadata.gives_way:
                continue
            if (ready := cond_resched(worker.task)) is not None:
                yield ready
