"""Processes that fill files with buffered writes: what fio and dd have in common.

A burst of writes between two calls of the throttle is one event: nothing else of the process happens in
between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.seams import Site, Thread
from models.spent import system_ns
from models.vfs.superblock import MountedSuperblock
from models.vfs.write import BufferedWriter
from models.workloads.spec import Iteration
from sim.cpu import cond_resched, sleep, work
from sim.engine import PARK, Steps
from sim.units import S

BURST_PAGES: Final = 256
"""The longest burst: what a process writes in a millisecond or two."""

Order = Callable[[int], NDArray[np.int64]]
"""The next so many pages of a file to be written."""


def sequential() -> Order:
    """From the first page on."""
    written = 0

    def take(count: int) -> NDArray[np.int64]:
        nonlocal written
        written += count
        return np.arange(written - count, written)

    return take


class Job(NamedTuple):
    """One process: the path of its directory, the order of each of its files, and how long they get
    (pages).
    """

    directory: str
    orders: Sequence[Order]
    pages_each: int


class FileWriters:
    """The processes of *jobs*; when the last has closed its files, `on_iteration` and *on_end* are told.

    A call writes *call_pages*, and the program itself takes *app_ns* of user time around it; the processes
    are started one after another, *fork_ns* apart, after the program has worked for *lead_ns* and slept for
    *idle_ns*.
    """

    def __init__(
        self,
        *,
        site: Site,
        mount_of: Callable[[str], MountedSuperblock],
        writer: Callable[[Thread], BufferedWriter],
        jobs: Sequence[Job],
        call_pages: int,
        app_ns: int,
        fork_ns: int,
        start_ns: int,
        on_end: Callable[[], None],
        lead_ns: int = 0,
        idle_ns: int = 0,
    ) -> None:
        self._env = site.env
        self._mount_of = mount_of
        self._writer = writer
        self._jobs = jobs
        self._call_pages = call_pages
        self._app_ns = app_ns
        self._fork_ns = fork_ns
        self._variations = [site.variation(f"process {i}") for i in range(len(jobs))]
        self.on_end = on_end
        self._running = len(jobs)
        self._parent = site.thread("parent")
        self._threads = [site.process(f"process {i}") for i in range(len(jobs))]
        self.on_iteration: Callable[[Iteration], None] = lambda _: None
        self.written_pages = 0
        site.env.start(self._parent.task, self._run(lead_ns, idle_ns), start_ns)

    @property
    def system_ns(self) -> int:
        """System time of all processes: work and spinning, as time(1) sees it."""
        return sum(system_ns(s.task, s.spent) for s in self._threads)

    @property
    def user_ns(self) -> int:
        """User time of all processes."""
        return sum(s.spent.user for s in self._threads)

    @property
    def share_done(self) -> float:
        """How much of all that is to be written was written."""
        return self.written_pages / sum(len(job.orders) * job.pages_each for job in self._jobs)

    def _run(self, lead_ns: int, idle_ns: int) -> Steps:
        """The parent: make the directories, start all, wait for all."""
        parent, spent = self._parent.task, self._parent.spent
        if lead_ns:
            spent.user += lead_ns
            yield from work(parent, lead_ns)
        if idle_ns:
            yield from sleep(parent, idle_ns, "a pause")
        started_ns = self._env.now
        for job in self._jobs:
            yield from self._mount_of(job.directory).directory(self._parent, job.directory)
        for job, thread, variation in zip(self._jobs, self._threads, self._variations, strict=True):
            spent.fork += self._fork_ns
            yield self._fork_ns
            thread.task.on_exit = self._exited
            self._env.start(thread.task, self._process(job, thread, variation))
        while self._running:
            parent.waits_for = "children"
            yield PARK
        files, now = sum(len(job.orders) for job in self._jobs), self._env.now
        self.on_iteration(Iteration(files, files * S / (now - started_ns), 0, now))
        self.on_end()

    def _exited(self) -> None:
        self._running -= 1
        if not self._running:
            self._env.wake(self._parent.task)

    def _process(self, job: Job, thread: Thread, variation: Callable[[], float]) -> Steps:
        mount = self._mount_of(job.directory)
        directory = yield from mount.directory(thread, job.directory)
        inodes = []
        for _ in job.orders:
            inodes.append((yield from mount.filesystem.create(thread, directory, 0, 1.0, 0)))
        yield self._fill(job, inodes, thread, variation)
        for inode in inodes:
            mount.filesystem.close(inode)

    def _fill(self, job: Job, inodes: Sequence[Any], thread: Thread, variation: Callable[[], float]) -> Steps:
        """Write the files, one page of each in turn."""
        task, writer, turns, wb = thread.task, self._writer(thread), len(inodes), inodes[0].wb
        page_ns, app_page_ns = (
            writer.copy_ns(self._call_pages) / self._call_pages,
            self._app_ns / self._call_pages,
        )
        done, total = 0, turns * job.pages_each
        while done < total:
            burst = min(writer.room(wb), BURST_PAGES, total - done)
            factor = burst * variation()
            write_ns, user_ns = int(factor * page_ns), int(factor * app_page_ns)
            thread.spent.write += write_ns
            thread.spent.user += user_ns
            yield from work(task, write_ns + user_ns)
            for turn, (inode, order) in enumerate(zip(inodes, job.orders, strict=True)):
                count = _share(done + burst, turn, turns) - _share(done, turn, turns)
                if count:
                    wb = inode.wb
                    yield from self._write(thread, writer, inode, order(count))
            done += burst
            self.written_pages += burst
            if writer.due(wb):
                yield from writer.balance(wb)
            if (ready := cond_resched(task)) is not None:
                yield ready

    def _write(self, thread: Thread, writer: BufferedWriter, inode: Any, pages: NDArray[np.int64]) -> Steps:
        """The copied *pages* become dirty, with whatever the filesystem has to do in between."""
        filesystem = inode.sb.filesystem
        while True:
            done, were_clean = filesystem.write(inode, pages, self._call_pages)
            if were_clean and (wait := writer.dirty(inode, were_clean, 0)):
                yield wait
            if done == len(pages):
                return
            pages = pages[done:]
            yield from filesystem.zero_end(thread, inode)


def _share(writes: int, turn: int, turns: int) -> int:
    """How many of the first *writes*, dealt out in turn, go to the file at *turn*."""
    return (writes + turns - 1 - turn) // turns
