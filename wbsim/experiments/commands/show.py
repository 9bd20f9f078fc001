"""`wbsim show`: a configuration resolved, each number with its origin and source."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import add_json, add_set, add_variant, print_json

HELP = "a configuration with every number, its origin and its source"


def add_options(parser: ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument("config", type=Path, metavar="CONFIG.toml")
    add_variant(parser)
    add_set(parser)
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Print it; returns the exit status."""
    from wbsim.experiments.config.experiment import load
    from wbsim.experiments.config.resolved_scenario import resolved
    from wbsim.experiments.formats.numbers import numbers_table

    case = load(arguments.config, arguments.set).only_case(arguments.variant)
    if arguments.json:
        print_json(resolved(case.scenario))
    else:
        print(f"{case.label}\n{numbers_table(case.scenario)}")
    return 0
