"""`wbsim reproduce`: compare published figures with simulated figures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from wbsim.experiments.commands.options import add_json, add_replications, add_running, how_of, print_json

HELP = "compare published figures with simulated ones"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "reports", nargs="*", metavar="REPORT", help="a report, such as P13; default: all modelled reports"
    )
    parser.add_argument(
        "--quick", action="store_true", help="run smaller experiments, which need less memory"
    )
    add_replications(parser)
    add_running(parser)
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Run the reports' experiments and print published and simulated figures; return 0, also if they differ.

    *arguments* are the parsed options of `add_options`.  Without names, take all modelled reports; --quick
    runs smaller experiments, and --json prints a document.  With --out, keep the runs there and draw
    DIR/reproduction.png.  An unknown report raises `BadInput`: `cli` ends with status 2.
    """
    import sys
    from functools import partial

    from wbsim.experiments.pictures.axes import save_png
    from wbsim.experiments.pictures.reproduction import reproduction_picture
    from wbsim.experiments.published.reproduce import reproduce
    from wbsim.experiments.published.tables import reproduction_table
    from wbsim.experiments.running.store import replace_whole

    result = reproduce(
        arguments.reports, quick=arguments.quick, replications=arguments.replications, how=how_of(arguments)
    )
    if arguments.json:
        print_json(result.document())
    else:
        print(reproduction_table(result))
    has_errors = any(row.relative_error is not None for row in result.rows)
    if arguments.out is not None and has_errors:
        path = arguments.out / "reproduction.png"
        replace_whole(path, partial(save_png, reproduction_picture(result)))
        print(f"wrote {path}; see why with: wbsim explain {arguments.out}", file=sys.stderr)
    elif arguments.out is None and has_errors:
        quick = " --quick" if arguments.quick else ""
        command = f"wbsim reproduce {' '.join([*arguments.reports])}{quick} --out DIR".replace("  ", " ")
        print(f"draw it, and keep the runs, with: {command}", file=sys.stderr)
    return 0
