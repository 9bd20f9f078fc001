"""The table of docs/measurements.md: each row's result on a real kernel, and the model's error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Final

from tests.desk import model
from tests.desk.results import MEASURED, SETTLED, load, middle, spread
from tests.desk.rows import Row, key

HEADS: Final = (
    "wall, s",
    "files/s",
    "requests",
    "merges",
    "extents",
    "programs, s of CPU",
    "kernel, s of CPU",
)


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a Markdown table of *rows*: the kernel's result, and the model's error in percent.

    "~" marks results whose runs differ by more than 20 %; the last two lines leave them out.
    """
    measured = load(MEASURED)
    errors: list[list[float]] = [[] for _ in HEADS]
    yield f"| run | {' | '.join(HEADS)} |"
    yield f"|{'---|' * (len(HEADS) + 1)}"
    for row in rows:
        of, scatter, found = (*(f(measured[key(row)]) for f in (middle, spread)), model.measure(row))
        cells = []
        for column, (took, differs, simulated) in enumerate(zip(of, scatter, found, strict=True)):
            error = simulated / took - 1 if took else 0.0
            if took and differs < SETTLED:
                errors[column].append(abs(error))
            cells.append(f"{took:.4g}{'' if differs < SETTLED else '~'} {error:+.0%}" if took else "-")
        yield f"| {key(row)} | {' | '.join(cells)} |"
    for name, how in (("median error", median), ("worst", max)):
        cells = [f"{how(column):.0%}" if column else "-" for column in errors]
        yield f"| **{name}** | {' | '.join(cells)} |"
