"""`wbsim calibrate`: refit the calibrated constants, or take the costs of a machine from a capture."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import add_running, how_of

HELP = "fit the calibrated constants again and compare, or take a machine's costs from a capture"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("report", nargs="?", choices=["P13", "V13", "N10", "W25"], help="the report to fit")
    what.add_argument(
        "--from", type=Path, dest="capture", metavar="CAPTURE",
        help="print the costs in a capture that was made with --cpu, as keys of a machine file",
    )  # fmt: skip
    add_running(parser)


def execute(arguments: Namespace) -> int:
    """Fit and print; return 0, or 1 if a fitted constant differs from the committed one."""
    import sys

    if arguments.capture is not None:
        from wbsim.experiments.machines.costs import scales_of

        found = scales_of(arguments.capture)
        print("\n".join([*found.table(), *found.lines()]))
        return 0

    from wbsim.experiments.published.calibrate import CALIBRATIONS
    from wbsim.experiments.published.fit import fit
    from wbsim.experiments.published.tables import fit_table

    made = fit(
        CALIBRATIONS[arguments.report](),
        how_of(arguments),
        lambda line: print(line, file=sys.stderr, flush=True),
    )
    print(fit_table(made))
    return 0 if made.agrees else 1
