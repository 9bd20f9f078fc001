"""python -m tests.desk measure [ROW ...]: rows on this machine's kernel, five times each, into measured.csv.

python -m tests.desk compare [ROW ...]: a table of these and of the model.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.desk import kernel, model
from tests.desk.results import MEASURED, Result, load, middle, save, spread
from tests.desk.rows import Row, rows

RUNS = 5


def key(row: Row) -> str:
    """Its name among all."""
    return f"{row.filesystem} {row.dirty_mib}M {row.name}"


def _wanted(words: Sequence[str]) -> list[Row]:
    return [row for row in rows() if not words or any(word in key(row) for word in words)]


def _measure(words: Sequence[str]) -> None:
    results = load(MEASURED) if MEASURED.exists() else {}
    with kernel.loop_device() as device:
        for row in _wanted(words):
            results[key(row)] = [kernel.measure(row, device) for _ in range(RUNS)]
            print(key(row), *(f"{value:.5g}" for value in middle(results[key(row)])), flush=True)
            save(MEASURED, results)


def compare(words: Sequence[str] = ()) -> None:
    """Print kernel, spread, model and error of each row and column."""
    measured = load(MEASURED)
    print(f"{'':44s}" + "".join(f"{name:>22s}" for name in Result._fields))
    for row in _wanted(words):
        runs = measured.get(key(row))
        if runs is None:
            continue
        of, scatter, found = middle(runs), spread(runs), model.measure(row)
        cells = (
            f"{k:9.4g}{'~' if s > 0.2 else ' '}{100 * (m / k - 1):+6.0f} %    " if k else f"{'-':>22s}"
            for k, s, m in zip(of, scatter, found, strict=True)
        )
        print(f"{key(row):44s}" + "".join(f"{cell:>22s}" for cell in cells), flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", *words]:
            _measure(words)
        case ["compare", *words]:
            compare(words)
        case _:
            sys.exit(__doc__)
