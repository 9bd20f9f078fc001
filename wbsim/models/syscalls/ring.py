"""io_uring: a write that would wait is done by a worker of the process (io-wq), and the process goes on.

Stands for io_write, io_wq_enqueue, io_worker_handle_work and io_wq_worker_sleeping.

A filesystem may let the kernel try a buffered write at once (IOCB_NOWAIT; XFS from 6.0 on).  A worker gets it
if it would wait:

* the file's times are older than the current tick (kiocb_modified),
* a worker writes to the file (i_rwsem),
* the inode's lock is taken, or the write leaves a gap behind the end of the file, or
* the throttle would let the process sleep.

Without that, a worker gets every write.  A worker does all queued writes to a file, one after another.  Each
worker has its own account with the throttle.

Left out: files that share a hash, memory that is not there at once, and a call that waits in its middle.
Other processes that have a file open are not waited for.
No worker ends after five idle seconds.  A worker that goes to sleep wakes another one in no time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wbsim.models.syscalls.latency import Latency
from wbsim.models.syscalls.write import Writer
from wbsim.models.time_accounting import RING
from wbsim.sim.engine import PARK, CallError, Environment, Park, Steps
from wbsim.sim.sync import WakeUps

_WORKERS_A_CPU: Final = 4
"""The workers of a process for each processor, at most (io_init_wq_offload)."""


class _Call:
    """A write that a worker does: its *pages*, its processor time, and when the process made it."""

    __slots__ = ("pages", "since_ns", "write_ns")

    def __init__(self, pages: NDArray[np.int64], write_ns: int, since_ns: int) -> None:
        self.pages = pages
        self.write_ns = write_ns
        self.since_ns = since_ns


class Ring:
    """The ring of *process*, with at most *depth* writes of *call_pages* pages in flight.

    * *tries*: the filesystem lets the kernel try a write at once.
    * *new_worker*: returns the worker with the given number, of at most four for each of *processors*.
    * *wakes*: the wake-ups of workers and of the process.
    * *tick_ns*: the resolution of a file's times.
    """

    def __init__(
        self, *, env: Environment, process: Writer, depth: int, call_pages: int, tries: bool,
        new_worker: Callable[[int], Writer], processors: int, wakes: WakeUps, tick_ns: int,
    ) -> None:  # fmt: skip
        self._env = env
        self._process = process
        self._latency: Latency = process.latencies.write
        self._depth = depth
        self._call_pages = call_pages
        self._tries = tries
        self._new_worker = new_worker
        self._most_workers = min(depth, _WORKERS_A_CPU * processors)
        self._wakes = wakes
        self._tick_ns = tick_ns
        self._workers = 0
        self._nr_running = 0  # workers that neither wait for work nor sleep
        self._idle: list[Writer] = []
        self._wakes_up = False  # a worker was woken, and does not run yet
        self._queued: dict[Any, list[_Call]] = {}
        self._busy: set[Any] = set()  # the files to which workers write
        self._ticks: dict[Any, int] = {}  # the tick of each file's times
        self._waits = False
        self.in_flight = 0
        self._error: CallError | None = None  # of a write that a worker has made

    def wait_for_place(self) -> Steps:
        """Let the process sleep until it may make another write: fewer than *depth* are in flight.

        Use: `yield from`, before each write.

        Raises:
            CallError: a write of a worker has failed.
        """
        if self.in_flight >= self._depth:
            yield self.wait()
        if self._error is not None:
            raise self._error

    def wait(self) -> Park:
        """Let the process sleep until one of its writes in flight has ended; there must be one.

        Yield the result.
        """
        self._waits = True
        self._process.task.waits_for = RING
        return PARK

    def drain(self) -> Steps:
        """Let the process sleep until no write is in flight.  Use: `yield from`.

        The process does so before it closes its files.  A failed write raises nothing here.
        """
        while self.in_flight:
            yield self.wait()

    def is_free(self, inode: Any) -> bool:
        """Return whether the ring itself lets a write to *inode* be done at once, without a worker.

        The file's time stamps must be those of this tick, and no worker may write to it.  `takes` asks the
        filesystem and the throttle, too.
        """
        return self._ticks.get(inode) == self._env.now // self._tick_ns and inode not in self._busy

    def tick_left_ns(self) -> int:
        """Return the time (ns) until the current tick ends.

        Joined calls may not cross the end of a tick, because the file's times are old then.
        """
        return self._tick_ns - self._env.now % self._tick_ns

    def takes(self, inode: Any, pages: NDArray[np.int64]) -> bool:
        """Return whether a write to *pages* of *inode* is done by the process at once; else call `hand_over`.

        Nothing is written yet; the throttle's account may be settled.
        """
        if not self._tries or not self.is_free(inode):
            return False
        if inode.sb.filesystem.writes_at_once(inode, pages) < len(pages):
            return False
        process = self._process
        return not process.due(inode.wb) or process.passes(inode.wb)

    def lock(self, inode: Any, pages: NDArray[np.int64]) -> None:
        """Take the inode's lock for a moment, in no time, for a write that the ring `takes` now."""
        waits = inode.sb.filesystem.write_lock(self._process.thread, inode, pages, 1)
        assert waits is None, "the lock is free"

    def hand_over(self, inode: Any, pages: NDArray[np.int64], write_ns: int, began_ns: int) -> int:
        """Queue a write to *pages* of *inode* for a worker; return the time (ns) that waking one takes.

        The process must wait for that time; 0: none.  The write takes *write_ns*, and its latency counts from
        *began_ns*.
        """
        self.in_flight += 1
        self._queued.setdefault(inode, []).append(_Call(pages, write_ns, began_ns))
        return self._activate()

    def _activate(self) -> int:
        """Wake an idle worker, unless one wakes up already, or else add a worker if none runs.

        Return the time (ns) that this takes the caller.
        """
        if self._wakes_up:
            return 0
        if self._idle:
            self._wakes_up = True
            self._nr_running += 1
            return self._wakes.wake(self._env, self._idle.pop().task)
        if not self._nr_running and self._workers < self._most_workers:
            worker = self._new_worker(self._workers)
            self._workers += 1
            self._nr_running += 1
            self._env.start(worker.task, self._run(worker))
        return 0

    def _run(self, worker: Writer) -> Steps:
        """io_wq_worker: do what is queued, file by file, and sleep when there is nothing to do."""
        while True:
            inode = self._next()
            if inode is None:
                self._nr_running -= 1
                self._idle.append(worker)
                worker.task.waits_for = RING
                yield PARK
                self._wakes_up = False
                continue
            self._busy.add(inode)
            for call in self._queued.pop(inode):
                yield from self._do(worker, inode, call)
            self._busy.remove(inode)

    def _next(self) -> Any:
        """io_get_next_work: return the first file with queued writes to which no worker writes, or None."""
        for inode in self._queued:
            if inode not in self._busy:
                return inode
        return None

    def _do(self, worker: Writer, inode: Any, call: _Call) -> Steps:
        """Let *worker* do one write, and tell the process."""
        self._ticks[inode] = self._env.now // self._tick_ns
        if worker.due(inode.wb) and not worker.passes(inode.wb):
            self._nr_running -= 1
            if not self._nr_running and self._next() is not None:  # io_wq_worker_sleeping
                self._activate()
            yield from worker.balance(inode.wb)
            self._nr_running += 1
        yield worker.runs(0, 0, call.write_ns)
        try:
            if wait := worker.put(inode, call.pages, self._call_pages):
                yield wait
        except CallError as error:  # the worker goes on, and the process sees the error in a completion
            self._error = error
        self._latency.add(self._env.now - call.since_ns)
        self.in_flight -= 1
        if self._waits:
            self._waits = False
            if waker_ns := self._wakes.wake(self._env, self._process.task):
                yield waker_ns
        if (ready := worker.returns()) is not None:
            yield ready
