"""Runs jobs in processes of this machine, as many at once as memory allows (`Budget`).

Workers are forked after the jobs are known, so they have the jobs in memory and receive only places.  A
worker that is killed or stopped is replaced; this costs one attempt of its job.  The kernel kills the workers
when this process ends (prctl(2), PR_SET_PDEATHSIG).  Only this process handles signals from the keyboard.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.jobs import ATTEMPTS, Ended, Failure, Job, OnJobProgress, attempt
from wbsim.experiments.running.progress import Progress
from wbsim.sim.interrupts import hear_signals, signals_held

_SHARE: Final = 0.9
_CGROUP: Final = Path("/sys/fs/cgroup")


def available_mib() -> float:
    """Return the free memory (MiB) of this machine or, if that is less, of our control group.

    `Budget` divides this memory among the workers.
    """
    meminfo = Path("/proc/meminfo").read_text()
    kib = int(meminfo.partition("MemAvailable:")[2].split()[0])
    free_mib = kib / 1024
    with suppress(OSError, ValueError):  # no limit, or no such control group
        limit, usage = (int((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        free_mib = min(free_mib, (limit - usage) / (1 << 20))
    return free_mib


class Budget:
    """The memory for runs.  A run needs the largest peak that a run of its kind has had.

    The kind of a run is its variant.  A kind without a peak counts with the largest peak of all kinds, which
    is 0 without any.
    *mib*: the free memory (MiB), of which nine tenths are used.  *peaks_mib*: the peaks of earlier runs by
    kind (MiB).
    """

    def __init__(self, mib: float, peaks_mib: dict[str, float]) -> None:
        self._mib = _SHARE * mib
        self._peaks_mib = dict(peaks_mib)
        self._kinds: dict[int, str] = {}

    def fits(self, kind: str) -> bool:
        """Return whether one more run of *kind* fits, next to those that run; a single run always fits.

        Runs from `begins` to `ends` count.
        """
        demand_mib = sum(self._demand_mib(variant) for variant in (*self._kinds.values(), kind))
        return not self._kinds or demand_mib <= self._mib

    def begins(self, place: int, kind: str) -> None:
        """Count the memory of the run of *kind* at *place* in the list of jobs, which begins."""
        self._kinds[place] = kind

    def ends(self, place: int, peak_mib: float) -> None:
        """Free the memory of the run at *place* (see `begins`), which ended with a peak of *peak_mib*.

        *peak_mib* is 0 if the peak is unknown.  Later runs of the kind count with the largest peak.
        """
        kind = self._kinds.pop(place)
        self._peaks_mib[kind] = max(self._peaks_mib.get(kind, 0.0), peak_mib)

    def _demand_mib(self, kind: str) -> float:
        """Return the memory of a run of *kind* (MiB); for an unknown kind, the largest peak of all kinds."""
        return self._peaks_mib.get(kind, max(self._peaks_mib.values(), default=0.0))


_PR_SET_PDEATHSIG: Final = 1
_FORK: Final = multiprocessing.get_context("fork")
_LOOK_S: Final = 0.5
"""The time between two looks for stopped workers (s)."""
_STOPPED_S: Final = 5.0
"""A worker that stays stopped for longer (s), while this process runs, counts as lost."""


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


class Workers:
    """Runs jobs in *count* processes at once; None: one for each processor.

    *peaks_mib*: the largest memory of earlier runs (MiB) by variant.
    """

    def __init__(self, count: int | None = None, peaks_mib: dict[str, float] | None = None) -> None:
        self._count = count or processors()
        self._peaks_mib = peaks_mib or {}

    def run(self, jobs: Sequence[Job], on_progress: OnJobProgress | None) -> Ended:
        """Run *jobs* in any order, and yield the place in *jobs* and the result of each as it ends.

        A job that fails gets further attempts as in `Crew.work`.  *on_progress* is called in this process
        with reports of the workers; None: no reports.  Closing the generator kills the workers.
        """
        crew = Crew(jobs, on_progress, Budget(available_mib(), self._peaks_mib))
        try:
            crew.hire(min(self._count, len(jobs)))
            yield from crew.work()
        finally:
            crew.dismiss()


class _Worker:
    """A worker process.

    * ``pipe``: the parent's end of its pipe.
    * ``place``: the place of its job; None: it has no job.
    * ``stopped_at``: since when it has been stopped (monotonic clock, s); None: it runs.
    """

    def __init__(self, process: BaseProcess, pipe: Connection) -> None:
        self.process = process
        self.pipe = pipe
        self.place: int | None = None
        self.stopped_at: float | None = None


class Crew:
    """The ``workers`` that are alive, for one list of *jobs*.

    *on_progress*: called with their reports, unless None.  *budget*: the memory that they share.
    """

    def __init__(self, jobs: Sequence[Job], on_progress: OnJobProgress | None, budget: Budget) -> None:
        self._jobs = jobs
        self._on_progress = on_progress
        self._budget = budget
        self._queue = deque(range(len(jobs)))
        self._attempts = [0] * len(jobs)
        self.workers: list[_Worker] = []

    def hire(self, count: int) -> None:
        """Fork *count* more workers, which wait for a job."""
        for _ in range(count):
            parent_end, child_end = _FORK.Pipe()
            parent_ends = [worker.pipe for worker in self.workers] + [parent_end]
            process = _FORK.Process(
                target=_serve,
                args=(self._jobs, child_end, parent_ends, os.getpid(), self._on_progress is not None),
                daemon=True,
            )
            with signals_held(), warnings.catch_warnings():
                # No thread of this process holds a lock that the child needs.
                warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
                process.start()
                child_end.close()
                self.workers.append(_Worker(process, parent_end))

    def dismiss(self) -> None:
        """Kill all workers and wait for their end; jobs that they run have no result."""
        for worker in self.workers:
            worker.process.kill()
        for worker in self.workers:
            worker.process.join()
            worker.pipe.close()
        self.workers.clear()

    def work(self) -> Iterator[tuple[int, Outcome | Failure]]:
        """Yield (place, result) when a job ends, in any order, until all jobs have ended.

        `hire` workers first, since this never ends without any, and `dismiss` them afterwards.  A job that
        fails in a way that may pass (`Failure.again`), or loses its worker, gets up to `ATTEMPTS` attempts
        before its failure is yielded.  A lost worker is replaced.
        """
        jobs_left = len(self._jobs)
        while jobs_left:
            self.give()
            ready = wait([worker.pipe for worker in self.workers], timeout=_LOOK_S)
            for worker in [worker for worker in self.workers if worker.pipe in ready]:
                for pair in self._heard(worker):
                    jobs_left -= 1
                    yield pair
            for worker in self.stopped_workers():
                for pair in self._replaced(worker, "its worker was stopped"):
                    jobs_left -= 1
                    yield pair

    def give(self) -> None:
        """Send the next job of the queue to each idle worker, while memory is left for the job's kind.

        `work` calls this again and again.  A job that does not fit makes the jobs behind it wait, too.
        """
        for worker in self.workers:
            if worker.place is None and self._queue and self._budget.fits(self._kind(self._queue[0])):
                place = self._queue.popleft()
                self._budget.begins(place, self._kind(place))
                worker.place = place
                with suppress(OSError):  # the worker is dead; its pipe reports that next
                    worker.pipe.send(place)

    def _kind(self, place: int) -> str:
        return self._jobs[place].case.variant

    def _heard(self, worker: _Worker) -> Iterator[tuple[int, Outcome | Failure]]:
        """Yield the result of *worker*, which sent something or died.

        A report of progress goes to the callback.  A dead worker is replaced.
        """
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            yield from self._replaced(worker, f"its worker was ended ({_how(worker.process.exitcode)})")
            return
        assert worker.place is not None
        if isinstance(message, Progress):
            if self._on_progress is not None:
                self._on_progress(worker.place, message)
            return
        place, worker.place = worker.place, None
        self._budget.ends(place, message.peak_rss_mib if isinstance(message, Outcome) else 0.0)
        yield from self._settle(place, message)

    def _settle(self, place: int, result: Outcome | Failure) -> Iterator[tuple[int, Outcome | Failure]]:
        """Yield the *result* of the job at *place*, unless the job gets another attempt."""
        self._attempts[place] += 1
        if isinstance(result, Failure):
            if result.again and self._attempts[place] < ATTEMPTS:
                self._queue.append(place)
                return
            result = replace(result, attempts=self._attempts[place])
        yield place, result

    def _replaced(self, worker: _Worker, why: str) -> Iterator[tuple[int, Outcome | Failure]]:
        """Replace *worker*, which is lost, and count an attempt of its job."""
        self.workers.remove(worker)
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()
        self.hire(1)
        if worker.place is not None:
            self._budget.ends(worker.place, 0.0)
            yield from self._settle(worker.place, Failure("lost", why))

    def stopped_workers(self) -> list[_Worker]:
        """Return the workers that a signal such as SIGSTOP has stopped for more than 5 s.

        Each call notes the workers that are stopped now, so it must be repeated.
        """
        workers = []
        for worker in self.workers:
            if not _is_stopped(worker.process.pid):
                worker.stopped_at = None
            elif worker.stopped_at is None:
                worker.stopped_at = time.monotonic()
            elif time.monotonic() - worker.stopped_at > _STOPPED_S:
                workers.append(worker)
        return workers


def _is_stopped(pid: int | None) -> bool:
    """Return whether a process is stopped (proc(5), state T)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def _how(status: int | None) -> str:
    """Return how a process ended: the name of a signal or an exit status."""
    if status is not None and status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"


def _serve(
    jobs: Sequence[Job], pipe: Connection, parent_ends: Sequence[Connection], parent: int, tells: bool
) -> None:
    """Run the jobs whose places arrive on *pipe*, until the parent closes it.  This is the worker."""
    _end_with(parent)
    for end in parent_ends:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    hear_signals()
    gc.freeze()  # never collect objects from before the fork
    on_progress: Any = pipe.send if tells else None
    with suppress(EOFError, OSError):
        while True:
            place = pipe.recv()
            gc.collect()  # free the machine of the last job and its files
            pipe.send(attempt(jobs[place], on_progress))


def _end_with(parent: int) -> None:
    """Have the kernel kill this process when *parent* ends; exit now if *parent* has ended already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
