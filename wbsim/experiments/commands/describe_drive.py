"""`wbsim describe-drive`: write a drive file from a data sheet, and from what fio measured."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import directory

HELP = "write a drive file from a data sheet and from results of fio"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "sheet", metavar="SHEET.toml|DISK",
        help="a file with the figures of the drive in a table [sheet], or a disk of wbsim list disks",
    )  # fmt: skip
    parser.add_argument(
        "results", nargs="*", type=Path, metavar="RESULT.json",
        help="the output of fio --output-format=json, whose jobs are named after keys of the sheet",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=directory, metavar="FILE.toml", help="write the drive file there; `like` takes its path"
    )


def execute(arguments: Namespace) -> int:
    """Print the drive file, or write it to --out; return 0.

    *arguments* are the parsed options of `add_options`.  --out may replace an earlier drive file of this
    command, but no other file.  That, or a bad sheet or result, raises `BadInput`: `cli` ends with status 2.
    """
    import sys

    from wbsim.experiments.drives.describe import BEGINS, describe
    from wbsim.experiments.running.store import refuse_foreign, replace_whole

    if arguments.out is not None:
        refuse_foreign(arguments.out, BEGINS, "drive")
    text = describe(arguments.sheet, arguments.results)
    if arguments.out is None:
        print(text, end="")
    else:
        replace_whole(arguments.out, lambda path: path.write_text(text))
        like = f'machine.disks.sda.like = "./{arguments.out.name}"'
        print(f"wrote {arguments.out}; use it with {like}", file=sys.stderr)
    return 0
