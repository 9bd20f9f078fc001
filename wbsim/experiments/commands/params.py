"""`wbsim params`: every number with its unit, origin and source."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import add_json, add_sources, add_variant, print_json

HELP = "print every number with its origin, and with --sources its source"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "config", nargs="?", type=Path, metavar="CONFIG.toml", help="the configuration; default: plug.toml"
    )
    add_variant(parser, "the numbers of this variant; default: the first")
    add_sources(parser)
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Print the numbers of one variant of CONFIG.toml, by default of plug.toml, and return 0.

    *arguments* are the parsed options of `add_options`.  The table has the value, its unit and its origin;
    --sources adds sources and ranges, and --json prints a document that has all of them.  Without --variant,
    take the first variant; of a sweep, take the first point.  A bad configuration raises `BadInput`: `cli`
    ends with status 2.
    """
    from wbsim.experiments.config.experiment import config_path, load
    from wbsim.experiments.formats.numbers import numbers_document, numbers_table

    path = arguments.config or config_path("plug.toml")
    scenario = load(path, variant=arguments.variant).cases[0].scenario
    if arguments.json:
        print_json(numbers_document(scenario))
    else:
        print(numbers_table(scenario, sources=arguments.sources))
    return 0
