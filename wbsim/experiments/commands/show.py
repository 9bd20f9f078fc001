"""`wbsim show`: a resolved configuration; each number has its origin and its source."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import add_json, add_set, add_sources, add_variant, print_json

HELP = "print a configuration with every number and its origin, and with --sources its source"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "config", type=Path, metavar="CONFIG.toml", help="the configuration of the experiment"
    )
    add_variant(parser)
    add_set(parser)
    add_sources(parser)
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Print the configuration of one variant with its numbers, or the resolved keys as JSON; return 0.

    *arguments* are the parsed options of `add_options`.  --sources adds the source of each number and the
    range of a guess, but not to the JSON.  A bad configuration, or no --variant where there are several,
    raises `BadInput`: `cli` ends with status 2.
    """
    from wbsim.experiments.config.experiment import load
    from wbsim.experiments.config.resolved_scenario import resolved
    from wbsim.experiments.formats.numbers import numbers_table

    case = load(arguments.config, arguments.set).only_case(arguments.variant)
    if arguments.json:
        print_json(resolved(case.scenario))
    else:
        print(f"{case.label}\n{numbers_table(case.scenario, sources=arguments.sources)}")
    return 0
