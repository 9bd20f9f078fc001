"""Processes that fill files with buffered writes; fio and dd share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.interfaces import LONG_MAX, NoSpace, Superblock
from wbsim.models.parts import Parts
from wbsim.models.syscalls.block_stream import Blocks, BlockStream
from wbsim.models.syscalls.process import Process, SystemCalls
from wbsim.models.syscalls.ring import Ring
from wbsim.models.syscalls.stream import Calls, Order, Stream
from wbsim.models.time_accounting import RING
from wbsim.models.workloads.program import Program
from wbsim.models.workloads.spec import Iteration, JobDone
from wbsim.sim.engine import Steps
from wbsim.sim.entry import FAR_NS
from wbsim.sim.units import MS, S

LOOK_NS: Final = 100 * MS
"""The time between two looks of fio for jobs that may begin."""


def sequential(first: int = 0) -> Order:
    """Return the order of the blocks (or pages) from *first* on, one after another.

    >>> order = sequential(4)
    >>> order(2).tolist(), order(3).tolist()
    ([4, 5], [6, 7, 8])
    """
    end = first

    def take(count: int) -> NDArray[np.int64]:
        nonlocal end
        end += count
        return np.arange(end - count, end)

    return take


def in_pages(order: Order, call_pages: int) -> Order:
    """Return the order of the pages, if *order* is the order of blocks of *call_pages* pages each.

    >>> in_pages(sequential(1), 2)(3).tolist()
    [2, 3, 4]
    """
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


class Syncs(NamedTuple):
    """The calls with which a process has its data written while it writes.

    * ``every``: the number of writes between two calls of fsync(2) or, with ``datasync``, of fdatasync(2).
      0: none.
    * ``at_end``: the call for each file at the end.
    * ``unlinks``: the process removes its files when it has closed them.
    """

    every: int = 0
    datasync: bool = False
    at_end: Literal["", "fsync", "fdatasync"] = ""
    unlinks: bool = False


class Bounds(NamedTuple):
    """The end of the writes of a process.

    * ``passes``: the number of times that it writes its files.
    * ``total_bytes``: what it writes instead, in as many passes as that takes; 0: no such end.
    * ``runtime_ns``: the time after which it ends at the latest, from the end of ``ramp_ns`` on; 0: no such
      end.
    * ``only_time``: it writes its files again until that time.
    """

    passes: int = 1
    total_bytes: int = 0
    runtime_ns: int = 0
    ramp_ns: int = 0
    only_time: bool = False


class Files(NamedTuple):
    """The files of a process: their ``paths``, and what happens to files that exist there.

    Without ``paths``, the process makes files that no other program opens.

    * ``cut_at``: the pages that a file which exists keeps when it is opened; -1: all.
    * ``prepares``: before the first process begins, the parent makes the files that do not exist or are
      shorter than ``pages``.  It gives them their blocks (``native``), also without a size (``keep``), only
      the size (``truncate``), or nothing (``none``).  "": each process makes its files when it opens them.
    """

    paths: Sequence[str] = ()
    cut_at: int = -1
    prepares: Literal["", "none", "native", "keep", "truncate"] = ""
    pages: int = 0


class Job(NamedTuple):
    """One process of the job *name*: the path of its directory, the orders of its files, and their length.

    *orders* returns the order of each file, anew at each call, because the process may write its files more
    than once.  A file gets *length* pages, or *length* parts of pages that one of the *calls* writes.  With
    *blocks*, which returns the blocks of each file, the calls have those sizes instead, and *length* counts
    calls.  *files*: where the files are.

    After every *think_calls* calls the process pauses for *think_ns*.  No call begins sooner than *period_ns*
    after the time at which the call before it should have begun.  For blocks of different sizes, *rate* (B/s)
    says when a call should begin, instead.  The process spins through a pause that is
    shorter than *spin_ns*, and sleeps through any other.

    The process begins *delay_ns* after the first process could begin.  With *after_others*, it begins when
    the others that have begun are over.

    With *in_flight*, it makes its calls through io_uring, and so many may be in flight.  The process begins
    when the jobs with the numbers *after* are over.
    """

    directory: str
    file_count: int
    orders: Callable[[], Sequence[Order]]
    length: int
    calls: Calls = Calls()
    think_ns: int = 0
    think_calls: int = 1
    period_ns: int = 0
    rate: int = 0
    delay_ns: int = 0
    after_others: bool = False
    files: Files = Files()
    syncs: Syncs = Syncs()
    spin_ns: int = 0
    in_flight: int = 0
    blocks: Callable[[], Sequence[Blocks]] | None = None
    bounds: Bounds = Bounds()
    after: Sequence[int] = ()
    name: str = ""


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
        names = [job.name for job in jobs]
        super().__init__(parts, calls, len(jobs), on_end, names if all(names) else ())
        self._env = parts.env
        self._parts = parts
        self._tick_ns = calls.tick_ns
        self.jobs = jobs
        self.fork_ns = fork_ns
        self._streams: list[Stream | BlockStream] = []
        self._streams_of: list[list[Stream | BlockStream]] = [[] for _ in jobs]
        self._lives_ns = [[0, 0] for _ in jobs]  # when each process began and ended
        self._is_over = False
        self._ended_jobs: set[int] = set()  # the numbers of the jobs that have ended
        self._most_calls = parts.lengths.calls
        parts.begin(self.family.parent.task, self._run(lead_ns, idle_ns), start_ns)

    @property
    def share_done(self) -> float:
        """The share of the pages, or of the bytes to write, that is written (0 to 1).

        The share is 1 only once all processes have ended.
        """
        if self._is_over:
            return 1.0
        done = whole = 0
        for job, streams in zip(self.jobs, self._streams_of, strict=True):
            if job.bounds.total_bytes:
                whole += job.bounds.total_bytes
                done += sum(stream.written_bytes for stream in streams)
            else:
                whole += job.bounds.passes * job.file_count * job.length
                done += sum(stream.done for stream in streams)
        return min(done / whole, 0.999)  # 1 is for the end: all pages are written before the last sync ends

    @property
    def written_bytes(self) -> int:
        """See `Workload.written_bytes`."""
        return sum(stream.written_bytes for stream in self._streams)

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
            if job.files.prepares:
                yield from self._prepare(job.files)
        yield from self._start_jobs(started_ns)
        yield from self.family.wait()
        self._is_over = True
        files, now = sum(job.file_count for job in self.jobs), self._env.now
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
                if not self._ended_jobs.issuperset(job.after):
                    continue
                queue.remove(number)
                process = family.children[number]
                yield from family.fork(process, self._process(number, process), self.fork_ns)
            if any(self._env.now - since_ns < self.jobs[number].delay_ns for number in queue):
                yield from family.parent.pause(LOOK_NS)
            elif queue:  # for jobs that run, which is no pause of fio's own
                yield from family.wait_for(LOOK_NS)

    def _prepare(self, files: Files) -> Steps:
        """setup_files and extend_file of fio: make the files of a job that are missing or too short."""
        parent = self.family.parent
        try:
            for path in files.paths:
                if parent.pages_of(path) < files.pages:
                    if parent.pages_of(path) >= 0:
                        yield from parent.unlink_file(path)
                    inode = yield from parent.open(path)
                    if files.prepares in ("native", "keep"):
                        yield from parent.fallocate(inode, files.pages, files.prepares == "keep")
                    elif files.prepares == "truncate":
                        yield from parent.ftruncate(inode, files.pages)
                    if (ready := parent.close(inode)) is not None:
                        yield ready
        except NoSpace:  # fio goes on without blocks if fallocate(2) fails
            yield from parent.exits()

    def _process(self, number: int, process: Process) -> Steps:
        life_ns = self._lives_ns[number]
        life_ns[:] = [self._env.now, self._env.now]
        try:
            yield self._work(number, process)
        finally:
            life_ns[1] = self._env.now
            self._ended_jobs.add(number)

    @property
    def jobs_done(self) -> dict[str, JobDone]:
        """See `Workload.jobs_done`; empty also if a job has no name."""
        done = {}
        for name, latencies in self.family.job_latencies.items():
            numbers = [number for number, job in enumerate(self.jobs) if job.name == name]
            lives_ns = [self._lives_ns[number] for number in numbers]
            streams = [stream for number in numbers for stream in self._streams_of[number]]
            children = [self.family.children[number] for number in numbers]
            done[name] = JobDone(
                took_ns=max(end for _, end in lives_ns) - min(begin for begin, _ in lives_ns),
                files=sum(self.jobs[number].file_count for number in numbers),
                bytes=sum(stream.written_bytes for stream in streams),
                writes=latencies.write.count,
                system_ns=self.family.system_ns_of(children),
                user_ns=self.family.user_ns_of(children),
                latencies=latencies,
            )
        return done

    def _work(self, number: int, process: Process) -> Steps:
        job = self.jobs[number]
        folder = yield from process.mkdir(job.directory)
        inodes: list[Any] = []
        for path in job.files.paths or [""] * job.file_count:
            if path:
                inode = yield from process.open(path, truncates=not job.files.cut_at)
                if 0 < job.files.cut_at < process.pages_of(path):
                    yield from process.ftruncate(inode, job.files.cut_at)
                inodes.append(inode)
            else:
                inodes.append((yield from process.creat(folder)))
        yield self._fill(number, process, inodes)
        for inode in inodes:
            if job.syncs.at_end == "fsync":
                yield from process.fsync(inode)
            elif job.syncs.at_end:
                yield from process.fdatasync(inode)
            if (ready := process.close(inode)) is not None:
                yield ready
        if job.syncs.unlinks:
            for path in job.files.paths:
                if process.pages_of(path) >= 0:  # another process may have removed a file that they share
                    yield from process.unlink_file(path)

    def _fill(self, number: int, process: Process, inodes: Sequence[Any]) -> Steps:
        """Write the files in turn, a page (or a part of one, or a block) of each, up to the job's bounds."""
        job = self.jobs[number]
        ring = self._ring(job, process, inodes[0].sb) if job.in_flight else None
        began_ns, bounds = self._env.now, job.bounds
        until_ns = began_ns + bounds.ramp_ns + bounds.runtime_ns if bounds.runtime_ns else FAR_NS
        passes_left, left_bytes, done, goes_on = bounds.passes, bounds.total_bytes, 0, True
        while goes_on and self._env.now < until_ns:
            stream = self._stream(job, process, inodes, ring, until_ns)
            self._streams.append(stream)
            self._streams_of[number].append(stream)
            passes_left -= 1
            most = stream.steps_for(left_bytes) if bounds.total_bytes else stream.total
            again = left_bytes > stream.total_bytes if bounds.total_bytes else passes_left > 0
            while stream.done < most and self._env.now < until_ns:
                yield from stream.write(min(_until_pause(job, done + stream.done), most - stream.done))
                goes_on = stream.done < most or again or bounds.only_time
                calls, rest = divmod(done + stream.done, job.calls.pages)
                if rest or self._env.now >= until_ns:
                    continue
                if job.syncs.every and not calls % job.syncs.every and goes_on:
                    inode = stream.pass_turn()
                    yield from process.fdatasync(inode) if job.syncs.datasync else process.fsync(inode)
                yield from self._pause(number, process, calls, began_ns, goes_on)
            done += stream.done  # the steps of earlier passes
            left_bytes -= stream.written_bytes
        if ring is not None:
            yield from ring.drain()

    def _stream(
        self, job: Job, process: Process, inodes: Sequence[Any], ring: Ring | None, until_ns: int
    ) -> Stream | BlockStream:
        """Return the calls of one pass over the files."""
        if job.blocks is not None:
            return BlockStream(self._env, process, inodes, job.blocks(), job.calls, until_ns)
        return Stream(
            self._env, process, inodes, job.orders(), job.calls, job.length, self._most_calls, ring, until_ns
        )

    def _ring(self, job: Job, process: Process, sb: Superblock) -> Ring:
        parts, family = self._parts, self.family
        name = f"{RING} {family.children.index(process)}"
        return Ring(
            env=self._env, process=process, depth=job.in_flight, call_pages=job.calls.pages,
            tries=sb.filesystem.tries_writes, new_worker=lambda number: family.io_worker(process, number),
            processors=parts.processors, wakes=parts.wake_ups(name), tick_ns=self._tick_ns,
        )  # fmt: skip

    def _pause(self, number: int, process: Process, calls: int, began_ns: int, goes_on: bool) -> Steps:
        """Make the pauses that a process makes after *calls* calls."""
        job = self.jobs[number]
        if job.think_ns and not calls % job.think_calls:
            yield from process.pause(job.think_ns, job.spin_ns)
        due_ns = calls * job.period_ns
        if job.rate:
            due_ns = sum(stream.written_bytes for stream in self._streams_of[number]) * S // job.rate
        ahead_ns = began_ns + due_ns - self._env.now
        if due_ns and goes_on and ahead_ns > 0:
            yield from process.pause(ahead_ns, job.spin_ns)
            process.is_on_schedule(began_ns)


def _until_pause(job: Job, done: int) -> int:
    """Return how many pages, or parts of pages, may be written after *done* before a pause or a sync."""
    pages, most = job.calls.pages, LONG_MAX
    if job.period_ns or job.rate:
        most = pages - done % pages
    if job.think_ns:
        most = min(most, job.think_calls * pages - done % (job.think_calls * pages))
    if job.syncs.every:
        most = min(most, job.syncs.every * pages - done % (job.syncs.every * pages))
    return most
