"""python -m tests.desk measure [WORD ...]: rows on this machine's kernel, five times each, into measured.csv.

python -m tests.desk table [WORD ...]: these and the model, as a table; without a word, that of
docs/measurements.md, too.  Rows are chosen by words in their names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from tests.desk import kernel, model
from tests.desk.results import MEASURED, SETTLED, load, middle, save, spread
from tests.desk.rows import Row, key, rows

RUNS: Final = 5
DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "measurements.md"
BEGIN, END = "<!-- python -m tests.desk table -->\n", "<!-- end of the table -->\n"
HEADS: Final = (
    "wall, s",
    "files/s",
    "requests",
    "merges",
    "extents",
    "programs, s of CPU",
    "kernel, s of CPU",
)


def _wanted(words: Sequence[str]) -> list[Row]:
    return [row for row in rows() if not words or any(word in key(row) for word in words)]


def _measure(words: Sequence[str]) -> None:
    results = load(MEASURED) if MEASURED.exists() else {}
    with kernel.loop_device() as device:
        for row in _wanted(words):
            results[key(row)] = [kernel.measure(row, device) for _ in range(RUNS)]
            print(key(row), *(f"{value:.5g}" for value in middle(results[key(row)])), flush=True)
            save(MEASURED, results)


def _table(words: Sequence[str]) -> Iterator[str]:
    """Of each row what the kernel took (~: its runs differ by more than 20 %) and the model's error."""
    measured = load(MEASURED)
    errors: list[list[float]] = [[] for _ in HEADS]
    yield f"| run | {' | '.join(HEADS)} |\n|{'---|' * (len(HEADS) + 1)}\n"
    for row in _wanted(words):
        of, scatter, found = (*(f(measured[key(row)]) for f in (middle, spread)), model.measure(row))
        cells = []
        for column, (took, differs, simulated) in enumerate(zip(of, scatter, found, strict=True)):
            error = simulated / took - 1 if took else 0.0
            if took and differs < SETTLED:
                errors[column].append(abs(error))
            cells.append(f"{took:.4g}{'' if differs < SETTLED else '~'} {error:+.0%}" if took else "-")
        yield f"| {key(row)} | {' | '.join(cells)} |\n"
    for name, how in (("median error", median), ("worst", max)):
        cells = [f"{how(column):.0%}" if column else "-" for column in errors]
        yield f"| **{name}** | {' | '.join(cells)} |\n"


def _write(lines: Sequence[str]) -> None:
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text(before + BEGIN + "".join(lines) + END + rest.partition(END)[2])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", *words]:
            _measure(words)
        case ["table", *words]:
            lines = []
            for line in _table(words):
                print(line, end="", flush=True)
                lines.append(line)
            if not words:
                _write(lines)
        case _:
            sys.exit(__doc__)
