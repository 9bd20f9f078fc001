"""`wbsim explain`: the reasons for the length of a run, from its results.

* Without a sweep: the bottleneck of each run (`experiments.why.bottlenecks.most_used` has the rule), and how
  its threads spent their time.  Then the slowest system calls, and what they waited for.
* With two variants and no sweep: also the time that their flushers spend on a file.
* With a sweep: first a sentence on the bottlenecks (`experiments.why.answer`).  The rate of each run follows,
  and the time of each kind of thread along the sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from math import isnan, nan
from types import MappingProxyType
from typing import Final, NamedTuple

from wbsim.experiments.config.problems import bad
from wbsim.experiments.config.sweeps import Point
from wbsim.experiments.formats.latencies import CallsOf, calls_of, slowest_table
from wbsim.experiments.formats.table import (
    UNKNOWN,
    column_texts,
    figure_text,
    split_table,
    table,
    wrapped,
    wrapped_table,
)
from wbsim.experiments.results.figures import FIGURES, number_or_nan, share
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.results import Results
from wbsim.experiments.why.answer import UNWRITTEN, answer_of, cause_of
from wbsim.experiments.why.bottlenecks import (
    AWAY,
    NOTHING,
    SEEN,
    Kind,
    bottleneck,
    busy_ns,
    kinds_of,
    most_used,
)
from wbsim.experiments.why.writeback import nothing_written_back, why_nothing
from wbsim.models.time_accounting import FLUSHER, PATHS
from wbsim.sim.units import MIB, US, S

STATES: Final = ("user", "system", "spinning", "ready", "waiting")
_NEXT: Final = 3
"""The number of resources that are named after the first."""


class Run(NamedTuple):
    """One run: its length (ns), threads by kind, uses, work, and the amount that its flushers wrote back.

    ``wall_time`` (s): until the last program ended; ``on_disk_time`` (s): until the final sync(2) returned,
    or None without this sync.  ``uses``: the utilisation (0 to 1) of each resource.  ``written_back``: False
    if the run has no bottleneck to name, because no data was on disk at its end.  ``calls``: the system calls
    of each program.
    """

    variant: str
    point: Point
    length_ns: float
    wall_time: float
    kinds: list[Kind]
    uses: dict[str, float]
    files: int
    file_bytes: int
    flushed_files: int
    flushed_bytes: int
    on_disk_time: float | None = None
    written_back: bool = True
    calls: CallsOf = MappingProxyType({})

    @property
    def label(self) -> str:
        """The variant and the point of the sweep, with blanks between them."""
        return " ".join([self.variant, *map(str, self.point.values())])

    @property
    def place(self) -> str:
        """The point of the sweep, with commas between its values; "" without a sweep."""
        return ", ".join(map(str, self.point.values()))


class Result(NamedTuple):
    """The runs to explain: the first replication of each case; ``axes`` are the swept keys."""

    title: str
    axes: tuple[str, ...]
    runs: list[Run]


def result_of(results: Results) -> Result:
    """Return the runs of *results* that are explained: the first replication of each case.

    Raises:
        BadInput: a result is damaged: it has no times of threads or no utilisation of resources.  Or nothing
            was written back in any run.
    """
    places: Sequence[object] = results.directories or [results.title] * len(results.outcomes)
    for outcome, place in zip(results.outcomes, places, strict=True):
        if not (outcome.uses and any(ns for life in outcome.lives.values() for ns in life.values())):
            message = "is a damaged result: it has no times of threads; delete it and run the command again"
            raise bad(str(place), message)
    first = [outcome for outcome in results.outcomes if outcome.replication == 0]
    runs = [run_of(outcome) for outcome in first]
    if runs and not any(run.written_back for run in runs):
        raise bad(
            str(results.directories[0].parents[1]) if results.directories else "", why_nothing(first[0])
        )
    return Result(results.title, results.axes, runs)


def run_of(outcome: Outcome) -> Run:
    """Return the run of *outcome*, with its threads grouped by kind, for `explain` and `advise`.

    *outcome* must have the times of at least one thread (``lives``).
    """
    length_ns = max(sum(life.values()) for life in outcome.lives.values())
    flushed_files, flushed_bytes = (FIGURES[name].whole(outcome) for name in ("flushed_files", "flushed"))
    return Run(
        outcome.variant, outcome.point, length_ns, outcome.wall_time, kinds_of(outcome.lives), outcome.uses,
        outcome.files, outcome.file_bytes, round(flushed_files), round(flushed_bytes * MIB),
        outcome.on_disk_time, not nothing_written_back(outcome, until_end=True), calls_of(outcome),
    )  # fmt: skip


def explanation(result: Result) -> str:
    """Return the explanation of *result* as text: the tables that the module docstring lists."""
    parts, runs = [result.title], result.runs
    if result.axes:
        parts.append("\n".join(map(wrapped, answers(result))))
        for variant, variant_runs in by_variant(runs):
            parts += [f"{variant}:", sweep_table(", ".join(result.axes), variant_runs)]
            parts += [kind_table(name, variant_runs) for name in seen_names(variant_runs)]
        return "\n\n".join(parts)
    for run in runs:
        parts += [wrapped(verdict(run)), lives_table(run)]
        if (slowest := slowest_table(run.calls)) is not None:
            parts.append(slowest)
    if len(runs) == 2:
        parts.append(flushers_table(*runs))
    return "\n\n".join(parts)


def answers(result: Result) -> list[str]:
    """Return a sentence on the bottlenecks along the sweep: one for all variants that share it.

    A result without a sweep has no such sentence.
    """
    if not result.axes:
        return []
    variants: dict[str, list[str]] = {}
    for variant, runs in by_variant(result.runs):
        points = [list(run.point.values()) for run in runs]
        causes = [cause_of(run.uses, written_back=run.written_back) for run in runs]
        variants.setdefault(answer_of(result.axes, points, causes), []).append(variant)
    if len(variants) == 1:
        return list(variants)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in variants.items()]


def document(result: Result) -> dict[str, object]:
    """Return `explanation` as a document: wall_time and on_disk_time in s, other times in ns.

    The keys are ``title``, ``axes``, ``answers`` (the sentences of `answers`) and ``runs``.  A run has:

    * ``label``, ``point``, ``length_ns``, ``wall_time`` and ``on_disk_time``, as in `Run`.
    * ``held_back_by``: the name of the bottleneck, or None without one.
    * ``uses``: shares of the run (0 to 1), in the order of `most_used`.
    * ``calls``: the fields of a `CallResult`, by program and then by kind of call.
    * ``threads``: for each kind of thread, the numbers of active (``count``) and of all threads (``of``), and
      their mean times by state and cause (``life``).
    """
    return {
        "title": result.title,
        "axes": list(result.axes),
        "answers": answers(result),
        "runs": [
            {
                "label": run.label,
                "length_ns": run.length_ns,
                "wall_time": run.wall_time,
                "on_disk_time": run.on_disk_time,
                "held_back_by": _held_back_by(run),
                "uses": {resource.name: resource.share for resource in most_used(run.uses)},
                "point": run.point,
                "calls": {
                    name: {call: asdict(latencies) for call, latencies in calls.items()}
                    for name, calls in run.calls.items()
                },
                "threads": {
                    kind.name: {"count": kind.threads, "of": kind.total, "life": kind.life}
                    for kind in run.kinds
                },
            }
            for run in result.runs
        ],
    }


def _held_back_by(run: Run) -> str | None:
    resource = bottleneck(run.uses) if run.written_back else None
    return None if resource is None else resource.name


def verdict(run: Run, count: int = _NEXT) -> str:
    """Return a line with the length (s) and the bottleneck of *run*, and the next *count* resources.

    A resource has its share of the run (%).

    Without a bottleneck, the line names the most used resource.  If nothing was written back, the line names
    no resource.
    """
    if not run.written_back:
        return f"{run.label}: {run.length_ns / S:.2f} s, held back by nothing known: {UNWRITTEN}"
    first, *then = most_used(run.uses)
    phrase = "held back by" if bottleneck(run.uses) else f"held back by {NOTHING}; most used was"
    text = (
        f"{run.label}: {run.length_ns / S:.2f} s, {phrase} {first.name}, {first.use_text}"
        f" {100 * first.share:.1f} % of it"
    )
    if count:
        text += "; then " + ", ".join(
            f"{resource.name} {100 * resource.share:.1f} %" for resource in then[:count]
        )
    return text


def lives_table(run: Run) -> str:
    """Return the table of thread times in % of the run, with a column for each active kind of thread."""
    kinds = seen_kinds(run)
    causes = in_order(seen_causes(run, kinds))
    header = ("% of the run", *(titled(kind) for kind in kinds))
    rows = [(cause, *(_percent(kind.life.get(cause, 0), run) for kind in kinds)) for cause in causes]
    return split_table(header, rows)


def by_variant(runs: Sequence[Run]) -> list[tuple[str, list[Run]]]:
    """Return the runs of each variant, in the order of the sweep.

    Runs of one variant must follow each other in *runs*.
    """
    return [(variant, list(group)) for variant, group in groupby(runs, lambda run: run.variant)]


def sweep_table(axis: str, runs: Sequence[Run]) -> str:
    """Return a table: the bottleneck of each run, its times (s), and its rate until its last program ended.

    The last column has the rate as a share (%) of the best rate.  The time on disk has no column if no run
    has one.
    *axis* heads the column of the points.  The share of a run without a bottleneck is that of its most used
    resource.
    """
    unit, rates = rates_of(runs)
    best = max((rate for rate in rates if not isnan(rate)), default=nan)
    columns = [
        [_bottleneck_name(run) for run in runs],
        [f"{100 * most_used(run.uses)[0].share:.1f}" if run.written_back else UNKNOWN for run in runs],
        column_texts([run.wall_time for run in runs]),
        column_texts([number_or_nan(run.on_disk_time) for run in runs]),
        column_texts(rates),
        [figure_text(100 * share(rate, best), 1) for rate in rates],
    ]
    header = [axis, "held back by", "% of its time", "wall s", "on disk s", unit, "% of the best"]
    if all(run.on_disk_time is None for run in runs):
        del columns[3], header[4]
    rows = list(zip((run.place for run in runs), *columns, strict=True))
    return wrapped_table(header, rows, left_columns=2)


def _bottleneck_name(run: Run) -> str:
    """Return the name of the bottleneck of *run*, or the words for a run without one."""
    if not run.written_back:
        return UNWRITTEN
    resource = bottleneck(run.uses)
    return NOTHING if resource is None else resource.name


def rates_of(runs: Sequence[Run]) -> tuple[str, list[float]]:
    """Return the unit, files/s or MiB/s, and the rate of each run until its last program ended.

    The unit is MiB/s if any run has a mean file size above 1 MiB.
    """
    if _small(runs):
        return "files/s", [share(run.files, run.wall_time) for run in runs]
    return "MiB/s", [share(run.file_bytes / MIB, run.wall_time) for run in runs]


def kind_table(name: str, runs: Sequence[Run]) -> str:
    """Return the table of the times of the threads *name* in % of the run, with a column for each run.

    *name* is a kind of thread; a run without it has "-".
    """
    kinds = [kind_named(name, run) for run in runs]
    causes = in_order(
        {cause for run, kind in zip(runs, kinds, strict=True) if kind for cause in seen_causes(run, [kind])}
    )
    rows = [("threads", *("-" if kind is None else _count(kind) for kind in kinds))]
    for cause in causes:
        shares = (
            _percent(kind.life.get(cause, 0), run) if kind else "-"
            for run, kind in zip(runs, kinds, strict=True)
        )
        rows.append((cause, *shares))
    return split_table((f"{name}, % of the run", *(run.place for run in runs)), rows)


def seen_names(runs: Sequence[Run]) -> list[str]:
    """Return the names of the kinds of thread that are active in any of *runs*, each once (`seen_kinds`)."""
    return list(dict.fromkeys(kind.name for run in runs for kind in seen_kinds(run)))


def kind_named(name: str, run: Run) -> Kind | None:
    """Return the threads of the kind *name* of *run*; None if the run has none."""
    return next((kind for kind in run.kinds if kind.name == name), None)


def flushers_table(first: Run, second: Run) -> str:
    """Return a table of the flushers' time (us) for each file written back, or each MiB of large files.

    A line has a cause, with a column for each run and for the difference, *second* minus *first*.  The last
    line has the sums of all causes.  Causes that are shorter than `SEEN` us in both runs are left out.
    """
    unit, first_times, second_times = per_file(first, second)
    causes = in_order(first_times.keys() | second_times.keys())
    figures = [(cause, first_times.get(cause, 0.0), second_times.get(cause, 0.0)) for cause in causes]
    figures.append(("all", sum(first_times.values()), sum(second_times.values())))
    rows = [
        (
            cause,
            *(figure_text(us, 3) for us in (a, b)),
            UNKNOWN if isnan(b - a) else f"{b - a:+z,.3f}".replace(",", " "),
        )
        for cause, a, b in figures
        if not (a < SEEN and b < SEEN)
    ]
    return table((f"flushers, us a {unit}", first.label, second.label, "difference"), rows)


def per_file(first: Run, second: Run) -> tuple[str, dict[str, float], dict[str, float]]:
    """Return the unit, "file" or "MiB", and the flushers' time (us) by cause in *first* and in *second*.

    The time is the sum over all active flushers, divided by the files or the MiB that flushers wrote back.
    Without such files or MiB it is nan.
    """
    small = _small((first, second))
    flushers = []
    for run in (first, second):
        done = run.flushed_files if small else run.flushed_bytes / MIB
        life: dict[str, float] = {}
        for kind in run.kinds:
            if kind.name.endswith(FLUSHER):
                for cause, ns in kind.life.items():
                    life[cause] = life.get(cause, 0.0) + share(kind.threads * ns / US, done)
        flushers.append(life)
    return "file" if small else "MiB", flushers[0], flushers[1]


def in_order(causes: Iterable[str]) -> list[str]:
    """Return *causes* by state, then along the path of a page, then by name; causes in `AWAY` come last.

    >>> in_order(["waiting idle", "waiting lock", "user"])
    ['user', 'waiting lock', 'waiting idle']
    """
    paths = list(PATHS)

    def place(cause: str) -> tuple[bool, int, int, str]:
        state, _, detail = cause.partition(" ")
        step = paths.index(detail) if state == "system" and detail in paths else len(paths)
        return cause in AWAY, STATES.index(state), step, detail

    return sorted(causes, key=place)


def seen_kinds(run: Run) -> list[Kind]:
    """Return the kinds of thread that are active in *run*: busy for at least `SEEN` of it."""
    return [kind for kind in run.kinds if _matters(busy_ns(kind.life), run)]


def seen_causes(run: Run, kinds: Iterable[Kind]) -> set[str]:
    """Return the causes whose mean time is at least `SEEN` of *run*, in any of *kinds* of its threads."""
    return {cause for kind in kinds for cause, ns in kind.life.items() if _matters(ns, run)}


def _small(runs: Iterable[Run]) -> bool:
    """Return whether files are counted; with a mean size above 1 MiB in any run, MiB are counted."""
    return all(run.file_bytes <= run.files * MIB for run in runs)


def _matters(ns: float, run: Run) -> bool:
    return ns >= SEEN * run.length_ns


def titled(kind: Kind) -> str:
    """Return the name of *kind* with the numbers of active and of all threads, such as "dd x3 of 4".

    A single thread has no number.
    """
    return kind.name if kind.total == 1 else f"{kind.name} x{_count(kind)}"


def _count(kind: Kind) -> str:
    return str(kind.total) if kind.threads == kind.total else f"{kind.threads} of {kind.total}"


def _percent(ns: float, run: Run) -> str:
    return f"{100 * ns / run.length_ns:.1f}" if ns else "-"
