"""The one way to run cases: those that are not in the store yet, by an executor; whatever asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from wbsim.experiments.config.problems import BadInput, Problem
from wbsim.experiments.running.jobs import Executor, Failure, Job, OnJobProgress
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.running.progress import Meter, Telling
from wbsim.experiments.running.store import Names, Store
from wbsim.experiments.running.workers import Workers
from wbsim.sim.invariants import LawBroken


class How(NamedTuple):
    """How cases are run: with which *seed*; where results are kept (nowhere without a *directory*); by how
    many processes (one for each processor without), or by the dask cluster at an address; and what is told on
    stderr of how far they are (see `progress.Telling`).
    """

    seed: int = 1
    directory: Path | None = None
    processes: int | None = None
    cluster: str | None = None
    progress: Telling = "nothing"


class Ran(NamedTuple):
    """What jobs came to, in their order."""

    jobs: list[Job]
    results: list[Outcome | Failure]

    @property
    def outcomes(self) -> list[Outcome]:
        """Of those that ended."""
        return [result for result in self.results if isinstance(result, Outcome)]

    @property
    def failures(self) -> list[tuple[Job, Failure]]:
        """Those that came to nothing."""
        return [
            (job, result)
            for job, result in zip(self.jobs, self.results, strict=True)
            if isinstance(result, Failure)
        ]

    def all_outcomes(self) -> list[Outcome]:
        """Every one.

        Raises:
            BadInput: one asks for what cannot end, or its worker was lost.
            LawBroken: one broke a law of the model.
            RuntimeError: one has met a fault of ours.
        """
        for _, failure in self.failures:
            if failure.kind == "law":
                raise LawBroken(failure.message)
            if failure.kind == "error":
                raise RuntimeError(failure.traceback)
        problems = [Problem(f"run {job.case.label}", "", failure.message) for job, failure in self.failures]
        if problems:
            raise BadInput(list(dict.fromkeys(problems)))
        return self.outcomes


class Runs:
    """Runs of one purpose, asked for at once or step by step: none is run twice, nor one that is in the
    directory.

    Raises:
        BadInput: the directory cannot be written.
    """

    def __init__(self, how: How, title: str = "", axes: Sequence[str] = ()) -> None:
        self._how = how
        self._title = title
        self._axes = tuple(axes)
        self._names = Names()
        self._store = Store(how.directory, self._names) if how.directory is not None else None
        self._known: dict[str, Outcome | Failure] = {}
        self._asked: dict[str, Job] = {}

    def run(self, jobs: Sequence[Job]) -> Ran:
        """Every one of *jobs*, in their order.

        Raises:
            BadInput: a result cannot be written, or the cluster cannot be reached.
        """
        names = [self._names.name(job) for job in jobs]
        self._asked.update({f"{name} {job.case.label}": job for name, job in zip(names, jobs, strict=True)})
        if self._store is not None:
            self._store.plan(self._title, self._axes, list(self._asked.values()))
        missing = {}
        for name, job in zip(names, jobs, strict=True):
            if name not in self._known:
                kept = self._store.find(job) if self._store is not None else None
                if kept is not None:
                    self._known[name] = kept
                else:
                    missing[name] = job
        if missing:
            self._execute(missing)
        return Ran(
            list(jobs), [_named(self._known[name], job) for name, job in zip(names, jobs, strict=True)]
        )

    def _execute(self, missing: Mapping[str, Job]) -> None:
        names, wanted = list(missing), list(missing.values())
        meter = Meter(len(wanted), self._how.progress) if self._how.progress != "nothing" else None
        on_progress: OnJobProgress | None = meter.note if meter is not None else None
        with closing(self._executor().run(wanted, on_progress)) as ended:
            try:
                for place, result in ended:
                    self._known[names[place]] = result
                    if self._store is not None:
                        self._store.keep(wanted[place], result)
                    if meter is not None:
                        meter.ended(place)
            finally:
                if meter is not None:
                    meter.clear()

    def _executor(self) -> Executor:
        if self._how.cluster is not None:
            from wbsim.experiments.running.cluster import Cluster

            return Cluster(self._how.cluster)
        jobs = list(self._asked.values())
        return Workers(self._how.processes, self._store.peaks_mib(jobs) if self._store is not None else None)


def _named(result: Outcome | Failure, job: Job) -> Outcome | Failure:
    """The result as that of *job*: one run may stand for several cases that are alike."""
    if isinstance(result, Failure):
        return result
    case = job.case
    return replace(result, variant=case.variant, point=case.point)


def run_jobs(jobs: Sequence[Job], how: How, title: str = "", axes: Sequence[str] = ()) -> Ran:
    """Every one of *jobs*, in their order; with a directory, only what is not there is run.

    Raises:
        BadInput: the directory cannot be written, or the cluster cannot be reached.
    """
    return Runs(how, title, axes).run(jobs)
