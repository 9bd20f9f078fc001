"""`wbsim sweep`: simulate an experiment at many values of its keys."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import (
    EachOnce,
    add_dry_run,
    add_figures,
    add_json,
    add_replications,
    add_running,
    add_variant,
    check_figures,
    how_of,
    positive,
)

HELP = "simulate an experiment at many values of its keys"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "config", type=Path, metavar="CONFIG.toml", help="the configuration of the experiment"
    )
    parser.add_argument(
        "--set", action=EachOnce, default=[], metavar="KEY=1,2,4..64",
        help="the values of a key; several keys are combined; x2 doubles the number of the configuration; if"
        " the name is not a key, its values replace {name} in command lines",
    )  # fmt: skip
    parser.add_argument(
        "--zip",
        action="store_true",
        help="combine the first values of all keys, then the second values, and so on",
    )
    parser.add_argument(
        "--lhs",
        type=positive,
        metavar="N",
        help="run N points of a Latin hypercube over the ranges --set KEY=LOW..HIGH",
    )
    add_replications(parser)
    parser.add_argument(
        "--until-ci", metavar="FIGURE=2%",
        help="add runs of a case until half of the figure's 95 %% interval is at most this share of the mean",
    )  # fmt: skip
    add_variant(parser, "run only this variant")
    add_dry_run(parser)
    add_figures(parser)
    add_running(parser)
    add_json(parser)
    parser.set_defaults(locks=None)


def execute(arguments: Namespace) -> int:
    """Run the sweep and print the result; with --dry-run, only print the runs and return 0.

    *arguments* are the parsed options of `add_options`.  --figure adds columns, and --json prints one
    document.  --until-ci adds runs until an interval is narrow enough.  Return 0, or the status of the worst
    failure.  That is 70 for a fault of wbsim, 1 for a lost worker, and 2 for bad input in a run.  A bad
    configuration, option or figure raises `BadInput`, for which `cli` ends with status 2.
    """
    from wbsim.experiments.commands.run_output import print_plan, print_result
    from wbsim.experiments.config.experiment import load
    from wbsim.experiments.config.sweeps import Asked
    from wbsim.experiments.results.figures import FIGURES
    from wbsim.experiments.sweeps.run import precision_of, run_experiment

    check_figures(arguments.figure, list(FIGURES))
    precision = precision_of(arguments.until_ci) if arguments.until_ci is not None else None
    sweep = Asked(tuple(arguments.set), arguments.zip, arguments.lhs)
    experiment = load(arguments.config, variant=arguments.variant, sweep=sweep)
    if arguments.dry_run:
        return print_plan(experiment, arguments)
    batch = run_experiment(experiment, how_of(arguments), arguments.replications, precision)
    return print_result(batch, experiment.title, experiment, arguments)
