"""Processes that fill files with buffered writes; fio and dd share them.

The writes between two calls of the throttle, or between two pauses, are one event: nothing else of the
process happens between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.interfaces import LONG_MAX, Thread
from wbsim.models.parts import Parts
from wbsim.models.scheduler.cpu import cond_resched, sleep, work
from wbsim.models.time_accounting import CHILDREN
from wbsim.models.vfs.sync import SystemCalls
from wbsim.models.vfs.write import BufferedWriter
from wbsim.models.workloads.processes import Family, pause
from wbsim.models.workloads.spec import Iteration, Reckoned
from wbsim.sim.engine import Steps
from wbsim.sim.streams import Draws
from wbsim.sim.units import MS, S

LOOK_NS: Final = 100 * MS
"""The time between two looks of fio for jobs that may begin."""
Order = Callable[[int], NDArray[np.int64]]
"""Called with a number; returns that many blocks (or pages) of a file, which are to be written next."""


def sequential() -> Order:
    """The order from the first block (or page) on."""
    written = 0

    def take(count: int) -> NDArray[np.int64]:
        nonlocal written
        written += count
        return np.arange(written - count, written)

    return take


def in_pages(order: Order, call_pages: int) -> Order:
    """Return the order of the pages, if *order* is the order of blocks of *call_pages* pages each."""
    if call_pages == 1:
        return order
    rest = np.empty(0, np.int64)

    def take(count: int) -> NDArray[np.int64]:
        nonlocal rest
        blocks = order(-(-(count - len(rest)) // call_pages)) if count > len(rest) else rest[:0]
        rest = np.concatenate([rest, (blocks[:, None] * call_pages + np.arange(call_pages)).ravel()])
        taken, rest = rest[:count], rest[count:]
        return taken

    return take


class Job(NamedTuple):
    """One process: the path of its directory, the order of each of its files, and their length.

    A call writes *call_pages* pages, or else a page takes *calls_a_page* calls.  A file gets *length* pages,
    or *length* parts of pages that one call writes.  Around each write(2) the program takes *app_ns* of user
    time, and *app_system_ns* of system time in other calls.

    After every *think_calls* calls the process pauses for *think_ns*.  No call begins sooner than *period_ns*
    after the time at which the call before it should have begun.  The process spins through a pause that is
    shorter than *spin_ns*, and sleeps through any other.

    The process begins *delay_ns* after the first process could begin.  With *after_others*, it begins when
    the others that have begun are over.  With *fsyncs*, it fsyncs its files before it closes them.
    """

    directory: str
    orders: Sequence[Order]
    length: int
    call_pages: int = 1
    calls_a_page: int = 1
    app_ns: int = 0
    app_system_ns: int = 0
    think_ns: int = 0
    think_calls: int = 1
    period_ns: int = 0
    delay_ns: int = 0
    after_others: bool = False
    fsyncs: bool = False
    spin_ns: int = 0


class FileWriters:
    """The processes of *jobs*; `on_iteration` and *on_end* are called when the last has closed its files.

    The processes are started one after another, *fork_ns* apart, after the program has worked for *lead_ns*
    and slept for *idle_ns*.
    """

    def __init__(
        self,
        *,
        parts: Parts,
        calls: SystemCalls,
        jobs: Sequence[Job],
        fork_ns: int,
        start_ns: int,
        on_end: Callable[[], None],
        lead_ns: int = 0,
        idle_ns: int = 0,
    ) -> None:
        self._env = parts.env
        self._mount_of = calls.mount_of
        self._syncs = calls.syncs
        self._writer = calls.writer
        self.jobs = jobs
        self.fork_ns = fork_ns
        self._variations = [parts.variation(f"process {i}") for i in range(len(jobs))]
        self.on_end = on_end
        self.reckoned = Reckoned()
        self.family = Family(parts, len(jobs))
        self.on_iteration: Callable[[Iteration], None] = lambda _: None
        self._written = 0
        self._most_calls = parts.lengths.calls
        parts.env.start(self.family.parent.task, self._run(lead_ns, idle_ns), start_ns)

    @property
    def system_ns(self) -> int:
        """Return the system time of all processes: work and spinning, as time(1) sees it."""
        return self.family.system_ns

    @property
    def user_ns(self) -> int:
        """Return the user time of all processes."""
        return self.family.user_ns

    @property
    def share_done(self) -> float:
        """Return the share of the pages that are written (0 to 1)."""
        return self._written / sum(len(job.orders) * job.length for job in self.jobs)

    def _run(self, lead_ns: int, idle_ns: int) -> Steps:
        """Run the parent: make the directories, start all processes, wait for all."""
        parent, spent = self.family.parent.task, self.family.parent.spent
        if lead_ns:
            spent.user += lead_ns
            yield from work(parent, lead_ns)
        if idle_ns:
            yield from pause(self.family.parent, idle_ns)
        started_ns = self._env.now
        for job in self.jobs:
            yield from self._mount_of(job.directory).directory(self.family.parent, job.directory)
        yield from self._start_jobs(started_ns)
        yield from self.family.wait()
        files, now = sum(len(job.orders) for job in self.jobs), self._env.now
        self.on_iteration(Iteration(files, files * S / (now - started_ns), 0, now))
        self.on_end()

    def _start_jobs(self, since_ns: int) -> Steps:
        """run_threads of fio: start the jobs that may begin, and look again later."""
        waiting = list(range(len(self.jobs)))
        while waiting:
            for number in list(waiting):
                job = self.jobs[number]
                if self._env.now - since_ns < job.delay_ns:
                    continue
                if job.after_others and self.family.running:
                    break
                waiting.remove(number)
                thread = self.family.children[number]
                steps = self._process(job, thread, self._variations[number])
                yield from self.family.fork(thread, steps, self.fork_ns)
            if any(self._env.now - since_ns < self.jobs[number].delay_ns for number in waiting):
                yield from pause(self.family.parent, LOOK_NS)
            elif waiting:  # for jobs that run, which is no pause of fio's own
                yield from sleep(self.family.parent.task, LOOK_NS, CHILDREN)

    def _process(self, job: Job, thread: Thread, factors: Draws) -> Steps:
        mount = self._mount_of(job.directory)
        directory = yield from mount.directory(thread, job.directory)
        inodes = []
        for _ in job.orders:
            inodes.append((yield from mount.filesystem.names.create(thread, directory)))
        yield self._fill(job, inodes, thread, factors)
        for inode in inodes:
            if job.fsyncs:
                yield from self._syncs.fsync(thread, inode, mount)
            mount.filesystem.close(inode)

    def _fill(self, job: Job, inodes: Sequence[Any], thread: Thread, factors: Draws) -> Steps:
        """Write the files in turn, one page of each, or one part of a page."""
        task, writer, turns, wb = thread.task, self._writer(thread), len(inodes), inodes[0].wb
        sb = inodes[0].sb
        page_ns = writer.copy_ns(1, sb) - writer.call_ns
        call_ns = writer.copy_ns(job.call_pages, sb)
        write_ns = call_ns / job.call_pages - page_ns * (1 - 1 / job.calls_a_page)
        user_ns, program_ns = job.app_ns / job.call_pages, job.app_system_ns / job.call_pages
        done, total, began_ns = 0, turns * job.length, self._env.now
        while done < total:
            room = writer.room(wb) * job.calls_a_page
            burst = min(room, self._most_calls, _until_pause(job, done), total - done)
            factor = burst * factors.next()
            thread.spent.write += int(factor * write_ns)
            thread.spent.user += int(factor * user_ns)
            thread.spent.program += int(factor * program_ns)
            yield from work(task, int(factor * write_ns) + int(factor * user_ns) + int(factor * program_ns))
            for turn, (inode, order) in enumerate(zip(inodes, job.orders, strict=True)):
                count = _share(done + burst, turn, turns) - _share(done, turn, turns)
                if count:
                    wb = inode.wb
                    yield from self._write(job, thread, writer, inode, order(count) // job.calls_a_page)
            done += burst
            self._written += burst
            if writer.due(wb):
                yield from writer.balance(wb)
            if (ready := cond_resched(task)) is not None:
                yield ready
            if not done % job.call_pages:
                yield from self._pause(job, thread, done // job.call_pages, began_ns, done < total)

    def _pause(self, job: Job, thread: Thread, calls: int, began_ns: int, goes_on: bool) -> Steps:
        """Make the pauses that a process makes after *calls* calls."""
        if job.think_ns and not calls % job.think_calls:
            yield from pause(thread, job.think_ns, job.spin_ns)
        ahead_ns = began_ns + calls * job.period_ns - self._env.now
        if job.period_ns and goes_on and ahead_ns > 0:
            yield from pause(thread, ahead_ns, job.spin_ns)
            thread.spent.paced = self._env.now - began_ns  # the process is on its schedule

    def _write(
        self, job: Job, thread: Thread, writer: BufferedWriter, inode: Any, pages: NDArray[np.int64]
    ) -> Steps:
        """Make the copied *pages* dirty, with the work of the filesystem in between."""
        filesystem = inode.sb.filesystem
        calls = -(-len(pages) // job.call_pages)
        if (waits := filesystem.write_lock(thread, inode, calls)) is not None:
            yield from waits
        while True:
            done, were_clean = filesystem.write(inode, pages, job.call_pages)
            if were_clean and (wait := writer.dirty(inode, were_clean, 0)):
                yield wait
            if done == len(pages):
                return
            pages = pages[done:]
            yield from filesystem.zero_end(thread, inode)


def _until_pause(job: Job, done: int) -> int:
    """Return how many pages, or parts of pages, may be written after *done* before a possible pause."""
    if job.period_ns:
        return job.call_pages - done % job.call_pages
    if job.think_ns:
        between = job.think_calls * job.call_pages
        return between - done % between
    return LONG_MAX


def _share(writes: int, turn: int, turns: int) -> int:
    """Return how many of the first *writes* writes, dealt out in turn, go to the file at *turn*."""
    return (writes + turns - 1 - turn) // turns
