"""The workqueue that completes files of one run, and logs what is now on disk.

Stands for xfs-data/xfs-conv (xfs_end_io, xfs_setfilesize) and ext4-rsv-conversion (ext4_end_io_rsv_work) for
files that are written by one ioend.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from models.filesystems.files import FileInode
from models.filesystems.policies import Metadata
from models.scheduler.cpu import cond_resched
from models.seams import Thread
from models.vfs.superblock import Flight
from sim.engine import PARK, Environment, Steps

IoEnd = tuple[FileInode, Flight, int]
"""An inode, under which flight it went, and how many pages."""


class IoEnds:
    """The workqueue of one filesystem, run by *worker*.

    For each file the worker does what *metadata* says; with *unwritten* blocks, its pages are clean only
    then.  It gives way between two files, or not before all are done.
    """

    def __init__(self, env: Environment, worker: Thread, unwritten: bool, metadata: Metadata) -> None:
        self._env = env
        self._worker = worker
        self._unwritten = unwritten
        self._metadata = metadata
        self._queue: deque[IoEnd] = deque()
        self._asleep = False
        env.start(worker.task, self._run())

    def end_io(self, ioend: IoEnd) -> None:
        """A file of one run is on the device."""
        if not self._unwritten:
            inode, flight, pages = ioend
            flight.end(inode.wb, pages)
        self._queue.append(ioend)
        if self._asleep:
            self._asleep = False
            self._env.wake(self._worker.task)

    def end_io_of(self, bios: int) -> Callable[[IoEnd], None]:
        """The end_io of each of so many *bios* of one ioend, which ends with the last."""
        left = bios

        def end_io(ioend: IoEnd) -> None:
            nonlocal left
            left -= 1
            if not left:
                self.end_io(ioend)

        return end_io

    def _run(self) -> Steps:
        worker, queue, unwritten, metadata = self._worker, self._queue, self._unwritten, self._metadata
        task = worker.task
        while True:
            self._asleep = True
            yield PARK
            while queue:
                inode, flight, pages = queue.popleft()
                yield metadata.end_run(worker, -(-pages // inode.folio_pages))
                metadata.run_ended(inode)
                if unwritten:
                    flight.end(inode.wb, pages)
                if metadata.gives_way and (ready := cond_resched(task)) is not None:
                    yield ready
