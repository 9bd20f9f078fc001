"""The trust in a run: the errors of comparable runs, and the assumed numbers of its bottleneck.

Runs are comparable if their programs do the same kind of work on the same kind of filesystem.

``data/errors.csv`` has the errors of predictions (`tests.desk.errors` makes it).  Either the model's figures
stood before the runs were measured, or no number was fitted to this row of a report.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Final, NamedTuple

from wbsim.experiments.config.case import Case
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.why.answer import in_words
from wbsim.experiments.why.bottlenecks import bottleneck
from wbsim.experiments.why.guesses import Guess, guesses_of
from wbsim.models.flushers.parallel import ParallelSpec
from wbsim.models.scenario import Scenario
from wbsim.models.time_accounting import FLUSHER
from wbsim.models.workloads.dd import DdSpec
from wbsim.models.workloads.fio import FioSpec
from wbsim.models.workloads.fs_mark import FsMarkSpec

_NAMED: Final = 3
"""The number of guesses of the bottleneck that are named."""
_FEWEST: Final = 3
"""The smallest number of comparable runs on one filesystem; with fewer, those on all filesystems count."""
_MIXED: Final = "mixed work"
"""The kind of work of programs, or of jobs of fio, that do several of the kinds that were compared."""


class Error(NamedTuple):
    """A compared run: the kind of its work, its filesystem, where it was compared, and its error (%)."""

    kind: str
    filesystem: str
    source: str
    run: str
    error_percent: float


class Trust(NamedTuple):
    """The errors (%) of *runs* comparable predictions; ``kind`` says what they did, and ``sources`` where.

    Without any comparable run, both errors are None.
    """

    kind: str
    runs: int
    median_percent: float | None
    worst_percent: float | None
    sources: tuple[str, ...]

    def text(self) -> str:
        """Return one line on how right comparable runs were, or that none was compared."""
        if self.median_percent is None:
            phrase = f"no run like this one was compared ({self.kind})"
            return f"how right: {phrase}; expect errors of tens of percent"
        return (
            f"how right: {self.runs} predicted runs of this kind ({self.kind}) missed by"
            f" {self.median_percent:.0f} % in the median and {self.worst_percent:.0f} % at worst:"
            f" {', '.join(self.sources)}"
        )


@cache
def known_errors() -> tuple[Error, ...]:
    """Return the errors of all compared runs, in the order of ``data/errors.csv``."""
    text = files("wbsim.experiments").joinpath("data/errors.csv").read_text(encoding="utf-8")
    rows = csv.reader(text.splitlines()[1:])
    return tuple(
        Error(kind, filesystem, source, run, float(error)) for kind, filesystem, source, run, error in rows
    )


def trust_in(scenario: Scenario) -> Trust:
    """Return the median and worst error (%) of runs comparable with *scenario*; both None without any.

    Errors count without their signs.  If fewer than three runs on its filesystems are comparable, those on
    all filesystems count.
    """
    kind = kind_of(scenario)
    filesystems = {mount.filesystem.kind for mount in scenario.mounts.values()}
    alike = [error for error in known_errors() if error.kind == kind]
    errors = [error for error in alike if error.filesystem in filesystems]
    place = " and ".join(sorted(filesystems))
    if len(errors) < _FEWEST:
        errors, place = alike, "any filesystem"
    if not errors:
        return Trust(kind, 0, None, None, ())
    sizes = [abs(error.error_percent) for error in errors]
    sources = tuple(dict.fromkeys(error.source for error in errors))
    return Trust(f"{kind} on {place}", len(errors), median(sizes), max(sizes), sources)


def kind_of(scenario: Scenario) -> str:
    """Return the kind of work of *scenario*, in the words of ``data/errors.csv``, or other words without one.

    One program whose kind was never compared is enough: then no run is comparable.  Calls that wait for the
    disk are such a kind, because their time is that of the device.
    """
    works = {_work_of(program.workload) for program in scenario.programs.values()}
    if new := sorted(works - {error.kind for error in known_errors()}):
        return new[0]
    if isinstance(scenario.kernel.flusher, ParallelSpec):
        return "several flushers"
    return works.pop() if len(works) == 1 else _MIXED


def _work_of(workload: object) -> str:
    if isinstance(workload, FsMarkSpec):
        return "small files"
    if isinstance(workload, DdSpec):
        return "writes that wait for the disk" if workload.sync or workload.at_end else "sequential writes"
    if isinstance(workload, FioSpec):
        if any(map(_is_given, (workload.fsync, workload.fdatasync, workload.sync, workload.end_fsync))):
            return "writes that wait for the disk"
        kinds = set(workload.rw) if isinstance(workload.rw, tuple) else {workload.rw}
        if kinds <= {"randwrite"}:
            return "random writes"
        return "sequential writes" if kinds <= {"write"} else _MIXED
    return "other programs"


def _is_given(value: object) -> bool:
    """Return whether an option of fio is given, for all of its jobs or for one."""
    return any(value) if isinstance(value, tuple) else bool(value)


def guesses_of_bottleneck(scenario: Scenario, uses: dict[str, float]) -> tuple[str, list[Guess]]:
    """Return the bottleneck in words, and the guesses that describe it, with the largest high / low first.

    *uses* has the shares of the resources (0 to 1) of a run of *scenario*.  Without a bottleneck, the words
    are "" and the list is empty.  The list is also empty without guesses on its device or its code paths.
    """
    resource = bottleneck(uses) if uses else None
    if resource is None:
        return "", []
    parts = _paths_of(resource.name)
    kinds = {mount.filesystem.kind for mount in scenario.mounts.values()}
    candidates = [
        guess
        for guess in guesses_of(scenario)
        if any(part in f".{guess.path}" for part in parts)
        and (".filesystems." not in guess.path or any(f".{kind}." in guess.path for kind in kinds))
    ]
    candidates.sort(key=lambda guess: -(guess.high / guess.low if guess.low > 0 else float("inf")))
    return in_words(resource.name), candidates


def _paths_of(resource: str) -> tuple[str, ...]:
    """Return the parts of the paths of guesses that describe *resource*."""
    kind, _, rest = resource.partition(" ")
    if kind == "device":
        return (f"machine.disks.{rest.split()[0]}.",)
    if kind == "thread" and rest.endswith(FLUSHER):
        return "machine.processors.flusher_scale", ".flusher.", ".writeback."
    if kind == "thread":
        program = rest.split("/")[0]
        return "machine.processors.writer_scale", ".paths.write.", ".writer.", f"programs.{program}."
    return ("machine.processors.",)


def sensitivity_command(config: str, cases: Sequence[Case], figure: str = "", *, swept: bool = False) -> str:
    """Return the command that shows how far the assumed numbers move *figure*, or else the wall time.

    It varies the first of *cases*, which *config* must have.  *swept*: a sweep of the command line made the
    points, so *config* has only the variants.
    """
    labels = list(dict.fromkeys(case.variant if swept else case.label for case in cases))
    variant = f" --variant {labels[0]}" if len(labels) > 1 else ""
    option = f" --figure {figure}" if figure else ""
    return f"wbsim sensitivity {config}{variant}{option} --trajectories 2 --sobol 0"


def _doubt(trust: Trust) -> float:
    """Return the median error (%) of comparable runs; infinity without any."""
    return float("inf") if trust.median_percent is None else trust.median_percent


def trust_lines(cases: Sequence[Case], outcomes: Sequence[Outcome], command: str = "") -> list[str]:
    """Return the lines on trust below a table of runs: comparable errors, guesses, *command*.

    Of several cases, the errors are those of the least trusted kind, and the bottleneck is the commonest.
    Its guesses are those of the first of *cases*.  *command* is a ``wbsim sensitivity`` that shows how far
    the assumed numbers move the answer; "": none.
    """
    trusts = [trust_in(case.scenario) for case in cases]
    lines = [max(trusts, key=_doubt).text()]
    bottlenecks = [guesses_of_bottleneck(cases[0].scenario, outcome.uses) for outcome in outcomes]
    if bottlenecks:
        where, guesses = max(bottlenecks, key=bottlenecks.count)
        if guesses:
            ranges = {guess.path.rpartition(".")[2]: guess.range_text for guess in reversed(guesses)}
            names = ", ".join(f"{name} {ends}" for name, ends in list(ranges.items())[: -_NAMED - 1 : -1])
            count = bottlenecks.count((where, guesses))
            several = f" of {count} of {len(bottlenecks)} runs" if len(bottlenecks) > 1 else ""
            lines.append(f"guesses about the bottleneck{several}, {where}: {names}")
    return [*lines, f"how far the guesses move the answer: {command}"] if command else lines
