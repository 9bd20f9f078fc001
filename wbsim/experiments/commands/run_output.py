"""The output of `wbsim run` and `wbsim sweep`."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

from wbsim.experiments.commands.options import print_json

if TYPE_CHECKING:
    from wbsim.experiments.config.case import Experiment
    from wbsim.experiments.results.outcome import Outcome
    from wbsim.experiments.running.execute import Ran
    from wbsim.experiments.running.jobs import Failure, Job
    from wbsim.experiments.why.guess_draws import Draws

_SCATTER = (
    "±: half of the 95 % interval over the seeds, which shows their scatter and not the error of the model;"
    " for an interval that includes the assumed numbers, use wbsim run --guesses 20"
)
_OURS = "this is a fault of wbsim; please report it with the command and the configuration"


def print_result(
    batch: Ran,
    title: str | None,
    experiment: Experiment,
    arguments: Namespace,
    draws: Sequence[Draws] = (),
) -> int:
    """Print the tables or one JSON document, report failures on stderr, and return the exit status.

    The status is 0, or that of the worst failure: 70 for a fault of wbsim, 1 for a lost worker, 2 for bad
    input.  The keys of the document are ``title``, ``axes``, ``trust`` (the entries of `trust_in`), ``drawn``
    (of *draws*) and ``outcomes`` (`document_of` each).  The tables are left out if no run has an outcome.

    * *batch*: the outcomes and the failures; *title*: the first line above the table, or None for no line.
    * *experiment*: the experiment that ran.
    * *arguments*: ``command``, ``out``, ``json``, ``figure``, ``locks``, ``config`` and ``set`` of the
      command line.
    * *draws*: the intervals that include the assumed numbers, if the user asked for them.
    """
    if arguments.out is not None:
        print(f"wrote {arguments.out}; draw it with: wbsim plot {arguments.out}", file=sys.stderr)
    if arguments.json:
        from wbsim.experiments.formats.json_document import document_of
        from wbsim.experiments.why.trust import trust_in

        trust = dict.fromkeys(trust_in(case.scenario) for case in experiment.cases)
        print_json(
            {
                "title": experiment.title,
                "axes": list(experiment.axes),
                "trust": [entry._asdict() for entry in trust],
                "drawn": [entry.document() for entry in draws],
                "outcomes": [document_of(outcome) for outcome in batch.outcomes],
            }
        )
    elif batch.outcomes:
        texts = _texts(batch.outcomes, title, experiment, arguments)
        texts += [entry.text() for entry in draws]
        print("\n\n".join([*texts, _trust(batch.outcomes, experiment, arguments)]))
    for job, failure in batch.failures:
        for line in _why(job, failure):
            print(f"wbsim: {line}", file=sys.stderr)
    return _status({failure.kind for _, failure in batch.failures})


def print_plan(experiment: Experiment, arguments: Namespace) -> int:
    """Print the runs of *experiment* that `run` or `sweep` would simulate, with estimates; return 0.

    *arguments* has ``replications``, ``jobs`` and ``json`` of the command line; with ``json``, print one
    document.  ``replications`` is None for the number in the configuration, and ``jobs`` for one run on each
    processor.
    """
    import os

    from wbsim import sim
    from wbsim.experiments.sweeps.dry_run import plan_document, plan_text, planned

    cases = planned(experiment, arguments.replications, compiled=sim.COMPILED)
    if arguments.json:
        print_json(plan_document(cases, experiment.axes))
    else:
        processes = arguments.jobs or os.cpu_count() or 1
        print(f"{experiment.title}\n{plan_text(cases, experiment.axes, processes)}")
    return 0


def _trust(outcomes: list[Outcome], experiment: Experiment, arguments: Namespace) -> str:
    """Return the lines that say how far to trust the result, and what the printed intervals show."""
    from wbsim.experiments.formats.report import by_case
    from wbsim.experiments.formats.table import wrapped
    from wbsim.experiments.why.trust import sensitivity_command, trust_lines

    command = ""
    if arguments.config is not None:
        figure = arguments.figure[0] if arguments.figure else ""
        swept = arguments.command == "sweep" and bool(arguments.set)
        command = sensitivity_command(str(arguments.config), experiment.cases, figure, swept=swept)
        if arguments.command == "run":
            command += "".join(f" --set {quote(change)}" for change in arguments.set)
    lines = trust_lines(experiment.cases, outcomes, command)
    if any(len(runs) > 1 for runs in by_case(outcomes)):
        lines = [_SCATTER, *lines]
    return "\n".join(wrapped(line) for line in lines)


def _why(job: Job, failure: Failure) -> list[str]:
    """Return the lines that report a *failure*; a fault of wbsim has its traceback."""
    label = f"variant {job.case.label}, replication {job.replication}, seed {job.seed}"
    match failure.kind:
        case "law":
            return [f"{failure.message}; {_OURS}"]
        case "error":
            return [f"{label}: {failure.message}; {_OURS}", *failure.traceback.splitlines()]
        case "lost":
            return [
                f"{label}: {failure.message}, {failure.attempts} times; give it more memory, or use --jobs 1"
            ]
    return [failure.message]


def _status(kinds: set[str]) -> int:
    """Return the exit status of the worst failure: a fault of wbsim, then a lost worker, then bad input."""
    worst = next((kind for kind in ("law", "error", "lost", "input") if kind in kinds), None)
    return {None: 0, "law": 70, "error": 70, "lost": 1, "input": 2}[worst]


def _texts(
    outcomes: list[Outcome], title: str | None, experiment: Experiment, arguments: Namespace
) -> list[str]:
    from wbsim.experiments.formats.latencies import latency_table
    from wbsim.experiments.formats.locks import TABLES
    from wbsim.experiments.formats.report import (
        difference_table,
        failed_processes,
        ignored_options,
        on_disk_table,
        outcome_table,
        parts_tables,
        steady_table,
        uneven_members,
        unfinished,
    )
    from wbsim.experiments.formats.table import wrapped
    from wbsim.experiments.published.fitted_constants import fitted_elsewhere
    from wbsim.experiments.why.writeback import nothing_written_back, why_nothing

    axes, locks, figures = experiment.axes, arguments.locks, arguments.figure
    first = outcome_table(outcomes, axes, figures)
    texts = [first if title is None else f"{wrapped(title)}\n{first}"]
    differences = partial(difference_table, more=figures)
    more = (failed_processes, unfinished, on_disk_table, differences, steady_table)
    texts += [text for make in more if (text := make(outcomes, axes)) is not None]
    first_runs = [outcome for outcome in outcomes if outcome.replication == 0]
    for outcome in first_runs:
        parts = [*parts_tables(outcome), *([TABLES[locks](outcome.locks)] if locks else [])]
        label = " ".join([outcome.variant, *map(str, outcome.point.values())])
        texts += parts if len(first_runs) == 1 else [f"{label}:\n{part}" for part in parts]
    if not axes and (latencies := latency_table(first_runs)) is not None:
        texts.append(latencies)
    if all(map(nothing_written_back, outcomes)):
        texts.append(why_nothing(outcomes[0]))
    ignored = [
        (case.variant, name, program.workload.ignored)
        for case in experiment.cases
        for name, program in case.scenario.programs.items()
    ]
    if (note := ignored_options(ignored)) is not None:
        texts.append(note)
    if (note := uneven_members(case.scenario.machine for case in experiment.cases)) is not None:
        texts.append(note)
    if (note := fitted_elsewhere(experiment.cases)) is not None:
        texts.append(note)
    return texts
