"""Processes that fill files with buffered writes; fio and dd share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.interfaces import LONG_MAX, Superblock
from wbsim.models.parts import Parts
from wbsim.models.syscalls.process import Process, SystemCalls
from wbsim.models.syscalls.ring import Ring
from wbsim.models.syscalls.stream import Calls, Order, Stream
from wbsim.models.time_accounting import RING
from wbsim.models.workloads.program import Program
from wbsim.models.workloads.spec import Iteration
from wbsim.sim.engine import Steps
from wbsim.sim.units import MS, S

LOOK_NS: Final = 100 * MS
"""The time between two looks of fio for jobs that may begin."""


def sequential() -> Order:
    """The order from the first block (or page) on."""
    end = 0

    def take(count: int) -> NDArray[np.int64]:
        nonlocal end
        end += count
        return np.arange(end - count, end)

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
        pages, rest = rest[:count], rest[count:]
        return pages

    return take


class Job(NamedTuple):
    """One process: the path of its directory, the order of each of its files, and their length.

    A file gets *length* pages, or *length* parts of pages that one of the *calls* writes.

    After every *think_calls* calls the process pauses for *think_ns*.  No call begins sooner than *period_ns*
    after the time at which the call before it should have begun.  The process spins through a pause that is
    shorter than *spin_ns*, and sleeps through any other.

    The process begins *delay_ns* after the first process could begin.  With *after_others*, it begins when
    the others that have begun are over.  With *fsyncs*, it fsyncs its files before it closes them.

    With *in_flight*, it makes its calls through io_uring, and so many may be in flight.
    """

    directory: str
    orders: Sequence[Order]
    length: int
    calls: Calls = Calls()
    think_ns: int = 0
    think_calls: int = 1
    period_ns: int = 0
    delay_ns: int = 0
    after_others: bool = False
    fsyncs: bool = False
    spin_ns: int = 0
    in_flight: int = 0


class FileWriters(Program):
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
        super().__init__(parts, calls, len(jobs), on_end)
        self._env = parts.env
        self._parts = parts
        self._tick_ns = calls.tick_ns
        self.jobs = jobs
        self.fork_ns = fork_ns
        self._streams: list[Stream] = []
        self._most_calls = parts.lengths.calls
        parts.env.start(self.family.parent.task, self._run(lead_ns, idle_ns), start_ns)

    @property
    def share_done(self) -> float:
        """Return the share of the pages that are written (0 to 1)."""
        whole = sum(len(job.orders) * job.length for job in self.jobs)
        return sum(stream.done for stream in self._streams) / whole

    def _run(self, lead_ns: int, idle_ns: int) -> Steps:
        """Run the parent: make the directories, start all processes, wait for all."""
        parent = self.family.parent
        if lead_ns:
            yield parent.runs(lead_ns)
        if idle_ns:
            yield from parent.pause(idle_ns)
        started_ns = self._env.now
        for job in self.jobs:
            yield from parent.mkdir(job.directory)
        yield from self._start_jobs(started_ns)
        yield from self.family.wait()
        files, now = sum(len(job.orders) for job in self.jobs), self._env.now
        self.on_iteration(Iteration(files, files * S / (now - started_ns), 0, now))
        self.on_end()

    def _start_jobs(self, since_ns: int) -> Steps:
        """run_threads of fio: start the jobs that may begin, and look again later."""
        family, queue = self.family, list(range(len(self.jobs)))
        while queue:
            for number in list(queue):
                job = self.jobs[number]
                if self._env.now - since_ns < job.delay_ns:
                    continue
                if job.after_others and family.live_count:
                    break
                queue.remove(number)
                process = family.children[number]
                yield from family.fork(process, self._process(job, process), self.fork_ns)
            if any(self._env.now - since_ns < self.jobs[number].delay_ns for number in queue):
                yield from family.parent.pause(LOOK_NS)
            elif queue:  # for jobs that run, which is no pause of fio's own
                yield from family.wait_for(LOOK_NS)

    def _process(self, job: Job, process: Process) -> Steps:
        folder = yield from process.mkdir(job.directory)
        inodes: list[Any] = []
        for _ in job.orders:
            inodes.append((yield from process.creat(folder)))
        yield self._fill(job, process, inodes)
        for inode in inodes:
            if job.fsyncs:
                yield from process.fsync(inode)
            if (ready := process.close(inode)) is not None:
                yield ready

    def _fill(self, job: Job, process: Process, inodes: Sequence[Any]) -> Steps:
        """Write the files in turn, one page of each, or one part of a page."""
        ring = self._ring(job, process, inodes[0].sb) if job.in_flight else None
        stream = Stream(self._env, process, inodes, job.orders, job.calls, job.length, self._most_calls, ring)
        self._streams.append(stream)
        total, began_ns = len(inodes) * job.length, self._env.now
        while (done := stream.done) < total:
            yield from stream.write(min(_until_pause(job, done), total - done))
            calls, rest = divmod(stream.done, job.calls.pages)
            if not rest:
                yield from self._pause(job, process, calls, began_ns, stream.done < total)
        if ring is not None:
            yield from ring.drain()

    def _ring(self, job: Job, process: Process, sb: Superblock) -> Ring:
        parts, family = self._parts, self.family
        name = f"{RING} {family.children.index(process)}"
        return Ring(
            env=self._env, process=process, depth=job.in_flight, call_pages=job.calls.pages,
            tries=sb.filesystem.tries_writes, new_worker=lambda number: family.io_worker(process, number),
            processors=parts.processors, wakes=parts.wake_ups(name), tick_ns=self._tick_ns,
        )  # fmt: skip

    def _pause(self, job: Job, process: Process, calls: int, began_ns: int, goes_on: bool) -> Steps:
        """Make the pauses that a process makes after *calls* calls."""
        if job.think_ns and not calls % job.think_calls:
            yield from process.pause(job.think_ns, job.spin_ns)
        ahead_ns = began_ns + calls * job.period_ns - self._env.now
        if job.period_ns and goes_on and ahead_ns > 0:
            yield from process.pause(ahead_ns, job.spin_ns)
            process.is_on_schedule(began_ns)


def _until_pause(job: Job, done: int) -> int:
    """Return how many pages, or parts of pages, may be written after *done* before a possible pause."""
    pages = job.calls.pages
    if job.period_ns:
        return pages - done % pages
    if job.think_ns:
        return job.think_calls * pages - done % (job.think_calls * pages)
    return LONG_MAX
