"""`wbsim status`: the progress of the runs in a directory."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import add_json, print_json

HELP = "print which runs of a directory are done, failed or missing"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "directory", type=Path, metavar="DIR", help="the directory that a command wrote with --out"
    )
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Print which runs of DIR are done, failed or missing, as text or JSON; return 0, also after failures.

    *arguments* are the parsed options of `add_options`.  `BadInput` is raised if a command did not write DIR:
    `cli` ends with status 2.
    """
    from wbsim.experiments.sweeps.status import status_of

    status = status_of(arguments.directory)
    if arguments.json:
        print_json(status.document())
    else:
        print(status.text())
    return 0
