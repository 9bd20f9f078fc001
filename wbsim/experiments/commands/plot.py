"""`wbsim plot`: draw the results that a command wrote with --out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import add_json, directory, print_json

HELP = "draw the results that a command wrote with --out"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "directory", type=Path, metavar="DIR", help="the directory that a command wrote with --out"
    )
    parser.add_argument(
        "--x", metavar="KEY", help="the horizontal axis: a key or a figure; default: the swept key"
    )
    parser.add_argument(
        "--y", action="append", default=[], metavar="FIGURE", help="a figure to draw, such as write_iops"
    )
    parser.add_argument(
        "--by", action="append", default=[], metavar="KEY",
        help="draw a line for each value of KEY; with several --by, for each combination; default: variant",
    )  # fmt: skip
    parser.add_argument(
        "-o", dest="file", type=directory, metavar="FILE",
        help="write the picture to FILE, which ends with .png, .svg or .pdf; default: a name in DIR",
    )  # fmt: skip
    parser.add_argument("--heat", metavar="KEY", help="draw a map of one figure over --x and KEY")
    parser.add_argument(
        "--latency", metavar="CALL",
        help="draw the distribution of the latencies of a system call, such as fsync, over all programs",
    )  # fmt: skip
    parser.add_argument(
        "--where", action="append", default=[], metavar="KEY=VALUE",
        help="draw only the runs with this value of KEY; repeat the option for several values",
    )  # fmt: skip
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Draw the pictures, print their paths and the knees of lines, or both as JSON; return 0.

    A knee is the place from which on a line rises less than half as fast.

    *arguments* are the parsed options of `add_options`.  --x, --y, --by, --heat and --latency choose what is
    drawn, and --where the runs.  -o names the file of the picture.  A directory without results, or an
    unknown key or figure, raises `BadInput`: `cli` ends with status 2.
    """
    from wbsim.experiments.pictures.facets import where_of
    from wbsim.experiments.pictures.plots import KNEE, Wanted, plot_directory

    request = Wanted(
        arguments.x,
        tuple(arguments.y),
        tuple(arguments.by),
        arguments.heat,
        where_of(arguments.where),
        arguments.latency,
    )
    lines = plot_directory(arguments.directory, request, arguments.file)
    if arguments.json:
        every = list(lines)
        knees = [line for line in every if line.startswith(KNEE)]
        print_json({"pictures": [line for line in every if line not in knees], "knees": knees})
        return 0
    for line in lines:
        print(line)
    return 0
