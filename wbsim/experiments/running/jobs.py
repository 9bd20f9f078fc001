"""Jobs, the failures that replace their results, and the protocol of an executor."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.progress import Progress
from wbsim.experiments.running.reading import OnProgress
from wbsim.experiments.running.simulate import run_case
from wbsim.sim.invariants import LawBroken

MOST_RUNS: Final = 100_000
"""The upper bound for one command.  Every run takes at least a millisecond and a place in the plan."""


class Job(NamedTuple):
    """One run: a case, its seed and its replication."""

    case: Case
    seed: int
    replication: int = 0


@dataclass(frozen=True)
class Failure:
    """A run without a result: the *message* and the *traceback* of the last of *attempts* attempts.

    ``kind`` is one of these:

    * ``input``: the run cannot end with this input.
    * ``law``: the run broke a law of the model.
    * ``error``: wbsim has a fault.
    * ``lost``: the worker process ended or was stopped.

    ``input`` and ``law`` follow from the input, so a second attempt would fail like the first.
    """

    kind: Literal["input", "law", "error", "lost"]
    message: str
    traceback: str = ""
    attempts: int = 1

    @property
    def again(self) -> bool:
        """True if another attempt may succeed: after a fault of wbsim or a lost worker."""
        return self.kind in ("error", "lost")


ATTEMPTS = 3
"""The largest number of attempts of one job."""


def attempt(job: Job, on_progress: OnProgress | None = None) -> Outcome | Failure:
    """Run *job* in this process, and return its outcome; return an exception as a failure, and raise none.

    Workers call this, so that a failed run does not end them.  *on_progress* is called with the progress of
    the run (`simulate.run_case`).
    """
    try:
        return run_case(*job, on_progress=on_progress)
    except BadInput as error:
        return Failure("input", str(error), traceback.format_exc())
    except LawBroken as error:
        return Failure("law", str(error), traceback.format_exc())
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        return Failure("error", message, traceback.format_exc())


OnJobProgress = Callable[[int, Progress], None]
"""Called with the place of a job in the list and its progress."""


Ended = Generator[tuple[int, Outcome | Failure], None, None]
"""Yields (place, result) when a job ends.  Closing the generator gives up the jobs that have no result."""


class Executor(Protocol):
    """Runs jobs: in processes of this machine or on a cluster."""

    def run(self, jobs: Sequence[Job], on_progress: OnJobProgress | None) -> Ended:
        """Run *jobs* in any order, and yield the place in *jobs* and the result of each as it ends.

        A job that fails in a way that may pass (`Failure.again`) gets up to `ATTEMPTS` attempts before its
        failure is yielded.  *on_progress* is called while the jobs run, with the place of a job and its
        progress; None: no progress is wanted.  A `Cluster` never calls *on_progress*.

        Raises:
            BadInput: the scheduler of a `Cluster` cannot be reached.
        """
        ...
