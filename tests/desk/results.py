"""The results of a run, on the kernel and in the model, and files of results."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

MEASURED: Final = Path(__file__).with_name("measured.csv")
PREDICTED: Final = Path(__file__).with_name("predicted.csv")
"""The model's results of the unseen rows, from before they were measured."""
UNSEEN: Final = Path(__file__).with_name("unseen.csv")
"""The kernel's results of the unseen rows, and of some known ones in the same hour."""
USUAL: Final = Path(__file__).with_name("usual.csv")
"""The kernel's results of `rows.usual`."""
USUAL_PREDICTED: Final = Path(__file__).with_name("usual_predicted.csv")
"""The model's results of `rows.usual`, from before they were measured, with the costs of `USUAL_MACHINE`."""
USUAL_MACHINE: Final = Path(__file__).with_name("usual.toml")
"""This machine, with the costs that were measured before the predictions."""
SETTLED: Final = 0.2
"""The largest spread of a column that is compared."""


class Result(NamedTuple):
    """The result of a run; all fields but ``wall_s`` and ``rate`` are measured after a sync.

    * ``wall_s``: the time until the last program ended.
    * ``rate``: the mean of fs_mark's files a second.
    * ``ios``, ``merges``: the requests and the merges.
    * ``extents``: the mean number of extents of large files.
    * ``program_s``, ``kernel_s``: the processor time of the programs, and of all threads of the kernel.
    """

    wall_s: float
    rate: float
    ios: float
    merges: float
    extents: float
    program_s: float
    kernel_s: float


def middle(results: Sequence[Result]) -> Result:
    """Return the median of each column."""
    return Result(*(median(column) for column in zip(*results, strict=True)))


def spread(results: Sequence[Result]) -> Result:
    """Return (max - min) / median of each column."""
    columns = list(zip(*results, strict=True))
    return Result(*((max(c) - min(c)) / median(c) if median(c) else 0.0 for c in columns))


def save(path: Path, results: dict[str, list[Result]]) -> None:
    """Write a line for each run."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", *Result._fields])
        for row, runs in results.items():
            writer.writerows([row, *(f"{value:.6g}" for value in run)] for run in runs)


def load(path: Path) -> dict[str, list[Result]]:
    """Read the results that `save` wrote."""
    found: dict[str, list[Result]] = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            found.setdefault(line.pop("row"), []).append(Result(*map(float, line.values())))
    return found
