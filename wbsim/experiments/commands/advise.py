"""`wbsim advise`: the smallest number of writeback contexts that is enough for a device."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import (
    add_json,
    add_replications,
    add_running,
    add_set,
    add_variant,
    how_of,
    print_json,
)

HELP = "find the number of writeback contexts that a device needs"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "config", type=Path, metavar="CONFIG.toml", help="the configuration of the experiment"
    )
    add_variant(parser)
    parser.add_argument(
        "--quick", action="store_true", help="run the smaller experiment of the configuration (its key quick)"
    )
    add_replications(parser, "the seeds of each number of contexts; default: 2")
    add_set(parser)
    add_running(parser)
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Run with several numbers of contexts, print the advice or its JSON, and return 0.

    *arguments* are the parsed options of `add_options`.  The advice is the smallest number that is enough.
    --quick runs a smaller experiment.  With --out the runs are kept there.  Bad input raises `BadInput`, for
    which `cli` ends with status 2.
    """
    import sys

    from wbsim.experiments.why.advise import REPLICATIONS, advise

    how = how_of(arguments)
    seeds = REPLICATIONS if arguments.replications is None else arguments.replications
    advice = advise(arguments.config, arguments.set, arguments.variant, arguments.quick, how, seeds)
    if arguments.out is not None:
        print(
            f"wrote {arguments.out}; show the bottlenecks with: wbsim explain {arguments.out}",
            file=sys.stderr,
        )
    if arguments.json:
        print_json(advice.document())
    else:
        print(advice.text())
    return 0
