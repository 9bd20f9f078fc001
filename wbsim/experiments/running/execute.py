"""The one way to run jobs: every command runs the jobs that are missing in the store, by an executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from wbsim.experiments.config.problems import BadInput, Problem
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.jobs import Executor, Failure, Job, OnJobProgress
from wbsim.experiments.running.progress import Meter, Reporting
from wbsim.experiments.running.store import Names, Store, refuse_other_experiment
from wbsim.experiments.running.workers import Workers
from wbsim.sim.invariants import LawBroken


class How(NamedTuple):
    """The settings of a run of jobs.

    * ``seed``: the seed of all replications; the random numbers follow from the seed and the replication.
    * ``directory``: the directory for the results; None: results are not kept.
    * ``processes``: the number of worker processes; None: one for each processor.
    * ``cluster``: the address of a dask scheduler, which takes the place of the worker processes.
    * ``progress``: what is printed on stderr while jobs run (`progress.Reporting`).
    * ``shorter``: the ways to a shorter run that the command offers.
    """

    seed: int = 1
    directory: Path | None = None
    processes: int | None = None
    cluster: str | None = None
    progress: Reporting = "nothing"
    shorter: tuple[str, ...] = ()


class Ran(NamedTuple):
    """Jobs, and their results in the same order."""

    jobs: list[Job]
    results: list[Outcome | Failure]

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of the jobs that did not fail, in the order of the jobs."""
        return [result for result in self.results if isinstance(result, Outcome)]

    @property
    def failures(self) -> list[tuple[Job, Failure]]:
        """The jobs that failed, with their failures, in the order of the jobs."""
        return [
            (job, result)
            for job, result in zip(self.jobs, self.results, strict=True)
            if isinstance(result, Failure)
        ]

    def all_outcomes(self) -> list[Outcome]:
        """Return the outcomes of all jobs, for commands that need each of them.

        If a job failed, raise instead: the first broken law or fault of wbsim, or else all other failures at
        once.

        Raises:
            BadInput: a run cannot end, or its worker was lost.
            LawBroken: a run broke a law of the model.
            RuntimeError: a run met a fault of wbsim.
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
    """The runs of one command, which may ask for jobs in several steps.

    A job runs once, and only if the directory of *how* lacks its result.  *title* and *axes* are written into
    the plan.  *shared*: the directory may have the results of another experiment, because the command has
    several.

    Raises:
        BadInput: the directory cannot be written, or has the results of another experiment.
    """

    def __init__(self, how: How, title: str = "", axes: Sequence[str] = (), *, shared: bool = False) -> None:
        self._how = how
        self._title = title
        self._axes = tuple(axes)
        self._names = Names()
        if how.directory is not None and not shared:
            refuse_other_experiment(how.directory, title, self._axes)
        self._store = Store(how.directory, self._names) if how.directory is not None else None
        self._results: dict[str, Outcome | Failure] = {}
        self._jobs: dict[str, Job] = {}

    def run(self, jobs: Sequence[Job]) -> Ran:
        """Return the results of *jobs* in their order; run the jobs that have none, and keep their results.

        A failed run is a `Failure` among the results, and not an exception.

        Without a directory, results are kept in this object only.

        Raises:
            BadInput: a result cannot be written or is damaged, or the cluster cannot be reached.
        """
        names = [self._names.name(job) for job in jobs]
        ordered = {f"{name} {job.case.label}": job for name, job in zip(names, jobs, strict=True)}
        self._jobs = {**ordered, **{name: job for name, job in self._jobs.items() if name not in ordered}}
        if self._store is not None:
            self._store.plan(self._title, self._axes, list(self._jobs.values()))
        rest = {}
        for name, job in zip(names, jobs, strict=True):
            if name not in self._results:
                result = self._store.find(job) if self._store is not None else None
                if result is not None:
                    self._results[name] = result
                else:
                    rest[name] = job
        if rest:
            self._execute(rest)
        return Ran(
            list(jobs), [_label(self._results[name], job) for name, job in zip(names, jobs, strict=True)]
        )

    def _execute(self, jobs: Mapping[str, Job]) -> None:
        names, queue = list(jobs), list(jobs.values())
        meter = (
            Meter(len(queue), self._how.progress, self._how.shorter)
            if self._how.progress != "nothing"
            else None
        )
        on_progress: OnJobProgress | None = meter.note if meter is not None else None
        with closing(self._executor().run(queue, on_progress)) as results:
            try:
                for place, result in results:
                    self._results[names[place]] = result
                    if self._store is not None:
                        self._store.keep(queue[place], result)
                    if meter is not None:
                        meter.finish(place)
            finally:
                if meter is not None:
                    meter.clear()

    def _executor(self) -> Executor:
        if self._how.cluster is not None:
            from wbsim.experiments.running.cluster import Cluster

            return Cluster(self._how.cluster)
        jobs = list(self._jobs.values())
        return Workers(self._how.processes, self._store.peaks_mib(jobs) if self._store is not None else None)


def _label(result: Outcome | Failure, job: Job) -> Outcome | Failure:
    """Return *result* with the variant and the point of *job*: equal cases share one run."""
    if isinstance(result, Failure):
        return result
    case = job.case
    return replace(result, variant=case.variant, point=case.point)


def run_jobs(jobs: Sequence[Job], how: How, title: str = "", axes: Sequence[str] = ()) -> Ran:
    """Return the results of *jobs* in their order; run only jobs whose result the directory lacks.

    This is `Runs` for a command with one step: *title* and *axes* are written into the plan.  A failed run is
    a `Failure` among the results, and not an exception.

    Raises:
        BadInput: the directory cannot be written, or has another experiment or a damaged result.  Or the
            cluster cannot be reached.
    """
    return Runs(how, title, axes).run(jobs)
