"""`wbsim reproduce`: compare published figures with simulated figures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from wbsim.experiments.commands.options import add_json, add_running, how_of, positive, print_json

HELP = "compare published figures with simulated ones"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    parser.add_argument(
        "reports", nargs="*", metavar="REPORT", help="a report, such as P13; default: all modelled reports"
    )
    parser.add_argument(
        "--quick", action="store_true", help="run smaller experiments, which need less memory"
    )
    parser.add_argument(
        "--replications",
        type=positive,
        metavar="N",
        help="the runs of each case; default: as in the configuration",
    )
    add_running(parser)
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Run the reports' experiments and print the table; return the exit status."""
    from wbsim.experiments.published.reproduce import reproduce
    from wbsim.experiments.published.tables import reproduction_table

    result = reproduce(
        arguments.reports, quick=arguments.quick, replications=arguments.replications, how=how_of(arguments)
    )
    if arguments.json:
        print_json(result.document())
    else:
        print(reproduction_table(result))
    return 0
