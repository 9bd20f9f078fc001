"""python -m tests.desk measure [WORD ...]: rows on this machine's kernel, five times each, into measured.csv.

python -m tests.desk table [WORD ...]: print the kernel's results and the model's errors as a table.

python -m tests.desk own: measure this machine's costs, and print its runs next to the model's.

Words choose the rows whose names contain one of them.  ``python -m tests.documents desk`` writes the table of
all rows into docs/measurements.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from tests.desk import kernel, own, table
from tests.desk.results import MEASURED, load, middle, save
from tests.desk.rows import Row, key, rows

RUNS: Final = 5


def _wanted(words: Sequence[str]) -> list[Row]:
    return [row for row in rows() if not words or any(word in key(row) for word in words)]


def _measure(words: Sequence[str]) -> None:
    results = load(MEASURED) if MEASURED.exists() else {}
    with kernel.loop_device() as device:
        for row in _wanted(words):
            results[key(row)] = [kernel.measure(row, device) for _ in range(RUNS)]
            print(key(row), *(f"{value:.5g}" for value in middle(results[key(row)])), flush=True)
            save(MEASURED, results)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", *words]:
            _measure(words)
        case ["table", *words]:
            for line in table.lines(_wanted(words)):
                print(line, flush=True)
        case ["own"]:
            for line in own.lines():
                print(line, flush=True)
        case _:
            sys.exit(__doc__)
