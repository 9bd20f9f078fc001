"""What a run gives, on the kernel and in the model; and tables of it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

MEASURED: Final = Path(__file__).with_name("measured.csv")
SETTLED: Final = 0.2
"""A column of a larger spread says little."""


class Result(NamedTuple):
    """``wall_s``: until the last program ended; ``rate``: the mean of fs_mark's files a second; all others
    after a sync: requests, merges, the mean number of extents of large files, processor time of the programs
    and of all threads of the kernel.
    """

    wall_s: float
    rate: float
    ios: float
    merges: float
    extents: float
    program_s: float
    kernel_s: float


def middle(results: Sequence[Result]) -> Result:
    """The median of each column."""
    return Result(*(median(column) for column in zip(*results, strict=True)))


def spread(results: Sequence[Result]) -> Result:
    """(max - min) / median of each column."""
    columns = list(zip(*results, strict=True))
    return Result(*((max(c) - min(c)) / median(c) if median(c) else 0.0 for c in columns))


def save(path: Path, results: dict[str, list[Result]]) -> None:
    """One line for each run."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", *Result._fields])
        for row, runs in results.items():
            writer.writerows([row, *(f"{value:.6g}" for value in run)] for run in runs)


def load(path: Path) -> dict[str, list[Result]]:
    """What `save` wrote."""
    found: dict[str, list[Result]] = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            found.setdefault(line.pop("row"), []).append(Result(*map(float, line.values())))
    return found
