"""`wbsim plot`: pictures of what a command wrote."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

HELP = "draw what a run wrote with --out"


def add_options(parser: ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument(
        "--x", metavar="KEY", help="what is on the horizontal axis: what was swept, any key or figure"
    )
    parser.add_argument(
        "--y", action="append", default=[], metavar="FIGURE", help="what is drawn, such as write_iops"
    )
    parser.add_argument("--by", metavar="KEY", help="a line for each value of it; variants by default")
    parser.add_argument("--heat", metavar="KEY", help="a map of one figure over --x and this")


def execute(arguments: Namespace) -> int:
    """Draw; prints the pictures' paths, and where lines have their knees; returns the exit status."""
    from wbsim.experiments.pictures.plots import Wanted, plot_directory

    wanted = Wanted(arguments.x, tuple(arguments.y), arguments.by, arguments.heat)
    for line in plot_directory(arguments.directory, wanted):
        print(line)
    return 0
