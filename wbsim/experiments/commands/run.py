"""`wbsim run`: simulate the experiment of a configuration."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import (
    add_dry_run,
    add_figures,
    add_json,
    add_replications,
    add_running,
    add_set,
    add_variant,
    check_figures,
    how_of,
    positive,
)

HELP = "simulate one experiment"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "config", nargs="?", type=Path, metavar="CONFIG.toml", help="the configuration of the experiment"
    )
    parser.add_argument(
        "--fs-mark", metavar="LINE", help="run this fs_mark command line on the machine of P13"
    )
    add_set(parser)
    add_replications(parser)
    parser.add_argument(
        "--locks", choices=["lock_stat", "perf"],
        help="also print the locks, in the format of /proc/lock_stat or perf lock contention",
    )  # fmt: skip
    parser.add_argument(
        "--guesses", type=positive, metavar="N",
        help="also run each case N times (at least 5) with drawn assumed numbers, and print intervals",
    )  # fmt: skip
    add_variant(parser, "run only this variant")
    add_dry_run(parser)
    add_figures(parser)
    add_running(parser)
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Run the experiment of CONFIG.toml or of --fs-mark, and print the result.

    *arguments* are the parsed options of `add_options`.  --figure adds columns, --locks adds tables of the
    locks, and --json prints one document.  With --dry-run, only print the runs and return 0.  With --guesses,
    if no run failed, run each case again with random values of its assumed numbers, and print intervals.
    These runs are not kept in --out.  Return 0, or the status of the worst failure.  That is 70 for a fault
    of wbsim, 1 for a lost worker, and 2 for bad input in a run.  Other bad input raises `BadInput`, for which
    `cli` ends with status 2.
    """
    from wbsim.experiments.commands.run_output import print_plan, print_result
    from wbsim.experiments.config.experiment import from_command, load
    from wbsim.experiments.config.problems import bad
    from wbsim.experiments.formats.report import print_fs_mark
    from wbsim.experiments.results.figures import FIGURES
    from wbsim.experiments.sweeps.run import run_experiment
    from wbsim.experiments.why.guess_draws import Draws, drawn_intervals

    check_figures(arguments.figure, list(FIGURES))
    if (arguments.config is None) == (arguments.fs_mark is None):
        raise bad("run", "give either CONFIG.toml or --fs-mark LINE")
    if arguments.fs_mark is not None and arguments.variant is not None:
        raise bad("--variant", "selects a variant of CONFIG.toml; leave it out with --fs-mark")
    if arguments.config is not None:
        experiment = load(arguments.config, arguments.set, arguments.variant)
    else:
        experiment = from_command(arguments.fs_mark, arguments.set)
    if arguments.dry_run:
        return print_plan(experiment, arguments)
    how = how_of(arguments)
    batch = run_experiment(experiment, how, arguments.replications)
    draws: list[Draws] = []
    if arguments.guesses is not None and not batch.failures:
        alone = how._replace(directory=None)  # the directory keeps the experiment, not the draws
        draws = [
            drawn_intervals(case, arguments.figure, alone, arguments.guesses) for case in experiment.cases
        ]
    if arguments.fs_mark is not None and not arguments.json and batch.outcomes:
        print_fs_mark(experiment.cases[0], batch.outcomes[0])
        title = None
    else:
        title = experiment.title
    return print_result(batch, title, experiment, arguments, draws)
