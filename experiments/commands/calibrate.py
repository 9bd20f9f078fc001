"""`wbsim calibrate`: refit the calibrated constants and compare."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from wbsim.experiments.commands.options import add_running, how_of

HELP = "refit the calibrated constants and compare"


def add_options(parser: ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument("report", choices=["P13", "V13", "N10", "W25"])
    add_running(parser)


def execute(arguments: Namespace) -> int:
    """Fit and print; the exit status says whether the committed constants came out."""
    import sys

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
