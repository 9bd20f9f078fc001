"""Runs in processes of this machine, one job each at a time, as far as memory allows (`Budget`).

Workers are forked once the jobs are known and have them in memory, so that only places are sent.  One that is
killed, or stopped, costs one attempt of its job and is replaced.  However this process ends, its workers end:
the kernel kills them with it (prctl(2), PR_SET_PDEATHSIG).  Signals from the keyboard are for this process.
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

from wbsim.experiments.running.jobs import ATTEMPTS, Ended, Failure, Job, OnJobProgress, attempt
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.running.progress import Progress
from wbsim.sim.interrupts import hear_signals, signals_held

_SHARE: Final = 0.9
_CGROUP: Final = Path("/sys/fs/cgroup")


def available_mib() -> float:
    """Return the free memory (MiB) of this machine or, if that is less, of our control group."""
    meminfo = Path("/proc/meminfo").read_text()
    kib = int(meminfo.partition("MemAvailable:")[2].split()[0])
    left = kib / 1024
    with suppress(OSError, ValueError):  # no limit, or no such control group
        limit, used = (int((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        left = min(left, (limit - used) / (1 << 20))
    return left


class Budget:
    """Memory for runs by their kind; what a kind needs is the most that one of it has had."""

    def __init__(self, mib: float, peaks_mib: dict[str, float]) -> None:
        self._mib = _SHARE * mib
        self._peaks_mib = dict(peaks_mib)
        self._running: dict[int, str] = {}

    def fits(self, kind: str) -> bool:
        """Return whether one more run of *kind* fits; a run that is alone always does."""
        needed = sum(self._needed(other) for other in (*self._running.values(), kind))
        return not self._running or needed <= self._mib

    def begins(self, place: int, kind: str) -> None:
        """The run at *place* has begun."""
        self._running[place] = kind

    def ends(self, place: int, peak_mib: float) -> None:
        """The run at *place* has ended, with a peak of *peak_mib*; 0 if that is not known."""
        kind = self._running.pop(place)
        self._peaks_mib[kind] = max(self._peaks_mib.get(kind, 0.0), peak_mib)

    def _needed(self, kind: str) -> float:
        """Return what a run of *kind* needs (MiB): the largest peak of all kinds if this one is unknown."""
        return self._peaks_mib.get(kind, max(self._peaks_mib.values(), default=0.0))


_PR_SET_PDEATHSIG: Final = 1
_FORK: Final = multiprocessing.get_context("fork")
_LOOK_S: Final = 0.5
"""How often it is asked whether a worker is stopped."""
_STOPPED_S: Final = 5.0
"""Whoever is stopped for longer, beside us who are not, does not come back."""


def processors() -> int:
    """How many processors we may use."""
    return len(os.sched_getaffinity(0))


class Workers:
    """Runs jobs in *count* processes at once; ``peaks_mib`` is what is known of their memory, by variant."""

    def __init__(self, count: int | None = None, peaks_mib: dict[str, float] | None = None) -> None:
        self._count = count or processors()
        self._peaks_mib = peaks_mib or {}

    def run(self, jobs: Sequence[Job], on_progress: OnJobProgress | None) -> Ended:
        """See `experiments.running.jobs.Executor`."""
        crew = Crew(jobs, on_progress, Budget(available_mib(), self._peaks_mib))
        try:
            crew.hire(min(self._count, len(jobs)))
            yield from crew.work()
        finally:
            crew.dismiss()


class _Worker:
    """A process, our end of its pipe, the place of its job (None without), and since when it is stopped."""

    def __init__(self, process: BaseProcess, pipe: Connection) -> None:
        self.process = process
        self.pipe = pipe
        self.place: int | None = None
        self.stopped_at: float | None = None


class Crew:
    """The ``workers`` that are alive, for one list of jobs."""

    def __init__(self, jobs: Sequence[Job], on_progress: OnJobProgress | None, budget: Budget) -> None:
        self._jobs = jobs
        self._on_progress = on_progress
        self._budget = budget
        self._waiting = deque(range(len(jobs)))
        self._attempts = [0] * len(jobs)
        self.workers: list[_Worker] = []

    def hire(self, count: int) -> None:
        """Fork so many workers."""
        for _ in range(count):
            ours, theirs = _FORK.Pipe()
            others = [worker.pipe for worker in self.workers] + [ours]
            process = _FORK.Process(
                target=_serve,
                args=(self._jobs, theirs, others, os.getpid(), self._on_progress is not None),
                daemon=True,
            )
            with signals_held(), warnings.catch_warnings():  # of our threads none holds a lock that it needs
                warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
                process.start()
                theirs.close()
                self.workers.append(_Worker(process, ours))

    def dismiss(self) -> None:
        """End all workers, whatever they do."""
        for worker in self.workers:
            worker.process.kill()
        for worker in self.workers:
            worker.process.join()
            worker.pipe.close()
        self.workers.clear()

    def work(self) -> Iterator[tuple[int, Outcome | Failure]]:
        """What each job came to, as they end."""
        left = len(self._jobs)
        while left:
            self.give()
            ready = wait([worker.pipe for worker in self.workers], timeout=_LOOK_S)
            for worker in [worker for worker in self.workers if worker.pipe in ready]:
                for ended in self._heard(worker):
                    left -= 1
                    yield ended
            for worker in self.lost():
                for ended in self._replaced(worker, "its worker was stopped"):
                    left -= 1
                    yield ended

    def give(self) -> None:
        """A job for each idle worker, as far as their memory goes."""
        for worker in self.workers:
            if worker.place is None and self._waiting and self._budget.fits(self._kind(self._waiting[0])):
                place = self._waiting.popleft()
                self._budget.begins(place, self._kind(place))
                worker.place = place
                with suppress(OSError):  # it is dead, which its pipe says next
                    worker.pipe.send(place)

    def _kind(self, place: int) -> str:
        return self._jobs[place].case.variant

    def _heard(self, worker: _Worker) -> Iterator[tuple[int, Outcome | Failure]]:
        """What a worker says: how far it is, or what its job came to; if it says nothing, it is no more."""
        try:
            said = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            yield from self._replaced(worker, f"its worker was ended ({_how(worker.process.exitcode)})")
            return
        assert worker.place is not None
        if isinstance(said, Progress):
            if self._on_progress is not None:
                self._on_progress(worker.place, said)
            return
        place, worker.place = worker.place, None
        self._budget.ends(place, said.peak_rss_mib if isinstance(said, Outcome) else 0.0)
        yield from self._ended(place, said)

    def _ended(self, place: int, came: Outcome | Failure) -> Iterator[tuple[int, Outcome | Failure]]:
        """A job came to this: once more, if that may help."""
        self._attempts[place] += 1
        if isinstance(came, Failure):
            if came.again and self._attempts[place] < ATTEMPTS:
                self._waiting.append(place)
                return
            came = replace(came, attempts=self._attempts[place])
        yield place, came

    def _replaced(self, worker: _Worker, why: str) -> Iterator[tuple[int, Outcome | Failure]]:
        """Another one for a worker that is lost."""
        self.workers.remove(worker)
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()
        self.hire(1)
        if worker.place is not None:
            self._budget.ends(worker.place, 0.0)
            yield from self._ended(worker.place, Failure("lost", why))

    def lost(self) -> list[_Worker]:
        """Who has been stopped for too long."""
        found = []
        for worker in self.workers:
            if not _is_stopped(worker.process.pid):
                worker.stopped_at = None
            elif worker.stopped_at is None:
                worker.stopped_at = time.monotonic()
            elif time.monotonic() - worker.stopped_at > _STOPPED_S:
                found.append(worker)
        return found


def _is_stopped(pid: int | None) -> bool:
    """Whether a process has been stopped (proc(5), state T)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def _how(status: int | None) -> str:
    """How a process ended."""
    if status is not None and status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"


def _serve(
    jobs: Sequence[Job], pipe: Connection, others: Sequence[Connection], parent: int, tells: bool
) -> None:
    """What a worker does: the jobs whose places it is sent, until there is nobody to send one."""
    _end_with(parent)
    for end in others:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    hear_signals()
    gc.freeze()  # what was there before the fork is nobody's garbage
    on_progress: Any = pipe.send if tells else None
    with suppress(EOFError, OSError):
        while True:
            place = pipe.recv()
            gc.collect()  # the machine of the last job, with its files
            pipe.send(attempt(jobs[place], on_progress))


def _end_with(parent: int) -> None:
    """Be killed when *parent* ends, also if it has ended already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
