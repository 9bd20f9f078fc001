"""python -m tests.desk measure [WORD ...]: rows on this machine's kernel, five times each, into measured.csv.

python -m tests.desk table [WORD ...]: print the kernel's results and the model's errors as a table.

python -m tests.desk predict: simulate the unseen rows with three seeds, into predicted.csv.

python -m tests.desk unseen: measure the unseen rows three times each, into unseen.csv.  Some known rows are
measured with them, and say how fast the host is in this hour.

python -m tests.desk predictions: print the table of the unseen rows.

python -m tests.desk errors: write the errors of all tables into wbsim/experiments/data/errors.csv.

python -m tests.desk usual predict | measure | table: the same for usual commands (docs/measurements.md Z),
with the costs of usual.toml.

python -m tests.desk own: measure this machine's costs, and print its runs next to the model's.

Words choose the rows whose names contain one of them.  ``python -m tests.documents desk`` writes the table of
all rows into docs/measurements.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.desk import errors, kernel, model, own, table
from tests.desk.results import (
    MEASURED,
    PREDICTED,
    UNSEEN,
    USUAL,
    USUAL_MACHINE,
    USUAL_PREDICTED,
    load,
    middle,
    save,
)
from tests.desk.rows import Row, key, rows, unseen, usual

RUNS: Final = 5


SEEDS: Final = (1, 2, 3)


def _wanted(words: Sequence[str]) -> list[Row]:
    return [row for row in rows() if not words or any(word in key(row) for word in words)]


def _measure(wanted: Sequence[Row], path: Path, runs: int) -> None:
    results = load(path) if path.exists() else {}
    with kernel.loop_device() as device:
        for row in wanted:
            results[key(row)] = [kernel.measure(row, device) for _ in range(runs)]
            print(key(row), *(f"{value:.5g}" for value in middle(results[key(row)])), flush=True)
            save(path, results)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", *words]:
            _measure(_wanted(words), MEASURED, RUNS)
        case ["predict"]:
            save(PREDICTED, {key(row): [model.measure(row, seed) for seed in SEEDS] for row in unseen()})
        case ["errors"]:
            errors.ERRORS.write_text(errors.text_of(errors.errors()))
        case ["unseen"]:
            _measure([*table.known(), *unseen()], UNSEEN, len(SEEDS))
        case ["table", *words]:
            for line in table.lines(_wanted(words)):
                print(line, flush=True)
        case ["predictions"]:
            for line in table.unseen_lines():
                print(line, flush=True)
        case ["usual", "predict"]:
            like = str(USUAL_MACHINE)
            seen = {key(row): [model.measure(row, seed, like) for seed in SEEDS] for row in usual()}
            save(USUAL_PREDICTED, seen)
        case ["usual", "measure"]:
            _measure(list(usual()), USUAL, len(SEEDS))
        case ["usual", "table"]:
            for line in table.usual_lines():
                print(line, flush=True)
        case ["own"]:
            for line in own.lines():
                print(line, flush=True)
        case _:
            sys.exit(__doc__)
