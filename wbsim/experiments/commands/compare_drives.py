"""`wbsim compare-drives`: print the drives of the catalogue beside their published figures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from wbsim.experiments.commands.options import add_json, print_json

HELP = "print the drives of the catalogue beside their published figures"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "drives",
        nargs="*",
        metavar="DISK|SHEET.toml",
        help="a disk of wbsim list disks, or a file with a table [sheet]; default: all disks with a sheet",
    )
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Print published and simulated figures, and the median error (%) of the predicted ones; return 0.

    *arguments* are the parsed options of `add_options`.  With --json, print both as a document, with errors
    as shares (0.1 is 10 %).  Without names, take all disks of the catalogue that have a data sheet.  An
    unknown name raises `BadInput`, for which `cli` ends with status 2.
    """
    from wbsim.experiments.drives.compare import HEADING, cells, comparisons, document, median_error
    from wbsim.experiments.drives.describe import sheet_names
    from wbsim.experiments.formats.table import table

    rows = list(comparisons(arguments.drives or sheet_names()))
    if arguments.json:
        print_json(document(rows))
        return 0
    print(table(HEADING, map(cells, rows), left_columns=3))
    error = median_error(rows)
    predicted = sum(not row.is_input for row in rows)
    if error is not None:
        print(f"\n{predicted} predicted figures: the median error is {100 * error:.0f} %")
    return 0
