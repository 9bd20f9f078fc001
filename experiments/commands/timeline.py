"""`wbsim timeline`: what a run did over time, as vmstat and iostat print it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

HELP = "what a run did over time, as vmstat and iostat -x print it"


def add_options(parser: ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="what a run wrote with --out")
    parser.add_argument("--every", default="1 s", metavar="TIME", help="a line for so much simulated time")


def execute(arguments: Namespace) -> int:
    """Print it for every variant and point, of replications the first; returns the exit status."""
    from wbsim.experiments.config.problems import bad
    from wbsim.experiments.formats.timeline import timeline
    from wbsim.experiments.running.results import read_results
    from wbsim.sim.units import S, parse

    try:
        every_ns = parse(arguments.every, "time")
    except ValueError as error:
        raise bad("--every", str(error)) from None
    results = read_results(arguments.directory)
    texts = [
        f"{' '.join([results.title, outcome.variant, *map(str, outcome.point.values())])}\n"
        f"{timeline(outcome, every_ns / S)}\n"
        for outcome in results.outcomes
        if outcome.replication == 0
    ]
    print("\n".join(texts))
    return 0
