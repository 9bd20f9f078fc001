"""`wbsim timeline`: the levels of a run over time, in the form of vmstat and iostat -x."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import add_figures, add_json, check_figures, print_json

HELP = "print a run over time, in the formats of vmstat and iostat -x"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "directory", type=Path, metavar="DIR", help="the directory that a command wrote with --out"
    )
    parser.add_argument(
        "--every", metavar="TIME", help="the simulated time of a line; default: 1 s, or less in a shorter run"
    )
    add_figures(parser)
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Print the first replication of every variant and point, a line for each interval, or JSON; return 0.

    *arguments* are the parsed options of `add_options`.  --every is the length of an interval, such as 1s,
    and --figure adds columns.  A bad --every or --figure, or a directory without results, raises `BadInput`:
    `cli` ends with status 2.
    """
    from wbsim.experiments.config.problems import bad
    from wbsim.experiments.formats.timeline import timeline, timeline_document
    from wbsim.experiments.results.figures import READ
    from wbsim.experiments.running.results import read_results
    from wbsim.sim.units import S, parse

    try:
        every_s = parse(arguments.every, "time") / S if arguments.every is not None else None
    except ValueError as error:
        raise bad("--every", str(error)) from None
    check_figures(arguments.figure, list(READ))
    results = read_results(arguments.directory)
    first = [outcome for outcome in results.outcomes if outcome.replication == 0]
    if arguments.json:
        runs = [timeline_document(outcome, every_s, arguments.figure) for outcome in first]
        print_json({"title": results.title, "runs": runs})
        return 0
    texts = [
        f"{results.title} ({', '.join([outcome.variant, *map(str, outcome.point.values())])})\n"
        f"{timeline(outcome, every_s, arguments.figure)}\n"
        for outcome in first
    ]
    print("\n".join(texts))
    return 0
