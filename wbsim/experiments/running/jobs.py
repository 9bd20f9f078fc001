"""What is to be run, and how a run that came to nothing is told."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.running.progress import Progress
from wbsim.experiments.running.simulate import OnProgress, run_case
from wbsim.sim.invariants import LawBroken

MOST_RUNS: Final = 100_000
"""Of one command; each takes a millisecond at least, and a place in the plan."""


class Job(NamedTuple):
    """One run: a case, with its seed and its replication."""

    case: Case
    seed: int
    replication: int = 0


@dataclass(frozen=True)
class Failure:
    """A run that came to nothing: the last *message* after so many *attempts*, and where it was raised.

    ``kind``: the *input* asks for what cannot end; a *law* of the model is broken; an *error* of ours; its
    worker is *lost*.  The first two come of the input, and would come again: they are not tried again.
    """

    kind: Literal["input", "law", "error", "lost"]
    message: str
    traceback: str = ""
    attempts: int = 1

    @property
    def again(self) -> bool:
        """Whether another attempt may end otherwise."""
        return self.kind in ("error", "lost")


ATTEMPTS = 3
"""How often a job is tried at most."""


def attempt(job: Job, on_progress: OnProgress | None = None) -> Outcome | Failure:
    """Run *job* here; whatever it raises becomes a failure."""
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
"""Takes the place of a job, and how far it is."""


Ended = Generator[tuple[int, Outcome | Failure], None, None]
"""The places of jobs with what each came to, as they end; closing it ends what still runs."""


class Executor(Protocol):
    """Runs jobs somewhere."""

    def run(self, jobs: Sequence[Job], on_progress: OnJobProgress | None) -> Ended:
        """Every one of *jobs*, in any order; *on_progress* hears how far they are."""
        ...
