"""``python -m tests.desk errors``: the errors of all predicted runs, from the tables of the documents.

They go to wbsim/experiments/data/errors.csv, from which `wbsim run` says how right comparable runs were.
A row is the error of a wall time or a rate.  Left out are rows of reports to which a number was fitted, and
tables of docs/measurements.md whose runs were simulated after they had been measured.  A result that scatters
(marked "~") counts like any other, so that no row is chosen by its error.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Final

from wbsim.experiments.why.trust import Error

ROOT: Final = Path(__file__).parents[2]
ERRORS: Final = ROOT / "wbsim" / "experiments" / "data" / "errors.csv"
PREDICTED: Final = ("Y", "Z")
"""The sections of docs/measurements.md whose runs were predicted before they were measured."""
_SECTION: Final = re.compile(r"^## ([A-Z])\. ")
_ROW: Final = re.compile(r"^\| (xfs|ext4) (?:\d+M )?([^|]+?) \| ([\d.e+]+)~? ([+-]\d+)% \|")
_ROW_OF_PAIRS: Final = re.compile(r"^\| (xfs|ext4) ([^|]+?) \| \d+ \| ([\d.]+)~?, [\d.]+, ([+-]\d+)% \|")
"""A row of section Z: the number of runs, then the kernel's wall time, the model's, and the error."""
_REPORT: Final = re.compile(
    r"^ {4}((?:P13|V13|N10|W25)-\S+) .* (s|files/s|MB/s|MiB/s) .*? ([+-][\d.]+) %\s+predicted"
)
_REPORTS: Final = {
    "README.md": ("P13",), "docs/v13.md": ("V13-xfs-create",), "docs/n10-w25.md": ("N10", "W25"),
}  # fmt: skip
"""The rows of each document that simulate programs which write."""


def kind_of(run: str) -> str:
    """Return the kind of a run, from the words of its commands; see `wbsim.experiments.why.trust`."""
    words = run.split()
    programs = {"fs_mark", "dd", "fio"} & set(words)
    if len(programs) > 1 or ("write" in words and "randwrite" in words):
        return "mixed work"
    if "fs_mark" in programs:
        return "small files"
    return "random writes" if {"randwrite", "random"} & set(words) else "sequential writes"


def of_measurements(text: str) -> Iterator[Error]:
    """Yield the errors of wall times in the predicted tables of *text*, which is docs/measurements.md."""
    section = ""
    for line in text.splitlines():
        if (heading := _SECTION.match(line)) is not None:
            section = heading[1]
        row = _ROW.match(line) or _ROW_OF_PAIRS.match(line)
        if row is not None and section in PREDICTED:
            yield Error(kind_of(row[2]), row[1], f"measurements {section}", row[2], float(row[4]))


def of_report(text: str, prefixes: tuple[str, ...]) -> Iterator[Error]:
    """Yield the errors of the predicted wall times and rates in the table of a report's page."""
    for line in text.splitlines():
        row = _REPORT.match(line)
        if row is None or not row[1].startswith(prefixes) or "-sys-" in row[1]:
            continue
        report, _, name = row[1].partition("-")
        kind = {"P13": "small files", "V13": "small files", "N10": "sequential writes"}.get(report)
        kind = kind or ("several flushers" if name.endswith("-p") else "random writes")
        yield Error(kind, "xfs", f"report {report}", row[1], float(row[3]))


def errors() -> list[Error]:
    """Return all errors, in the order of the documents."""
    rows = list(of_measurements((ROOT / "docs" / "measurements.md").read_text()))
    for name, prefixes in _REPORTS.items():
        rows += of_report((ROOT / name).read_text(), prefixes)
    return rows


def text_of(rows: list[Error]) -> str:
    """Return *rows* as CSV."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(Error._fields)
    writer.writerows((*error[:-1], f"{error.error_percent:g}") for error in rows)
    return file.getvalue()
