"""The table of docs/measurements.md: each row's result on a real kernel, and the model's error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Final

from tests.desk import model
from tests.desk.results import (
    MEASURED,
    PREDICTED,
    SETTLED,
    UNSEEN,
    USUAL,
    USUAL_PREDICTED,
    Result,
    load,
    middle,
    spread,
)
from tests.desk.rows import Row, key, rows, unseen, usual

HEADS: Final = (
    "wall, s",
    "files/s",
    "requests",
    "merges",
    "extents",
    "programs, s of CPU",
    "kernel, s of CPU",
)
_TIMES: Final = ("wall_s", "program_s", "kernel_s")
_KNOWN: Final = ("64M fio randwrite 1x4x64m", "64M fio write 1x4x128m", "32M fs_mark 4k x2")


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a Markdown table of *rows*: the kernel's result, and the model's error in percent.

    "~" marks results whose runs differ by more than 20 %; the last two lines leave them out.
    """
    measured = load(MEASURED)
    yield from _table((key(row), measured[key(row)], model.measure(row)) for row in rows)


def known() -> list[Row]:
    """Return the rows of `rows` that are measured again with the unseen ones."""
    return [row for row in rows() if any(name in key(row) for name in _KNOWN)]


def slowness() -> dict[str, float]:
    """Return how much longer the known rows took in the hour of the unseen ones: for each time, a median."""
    now, then = load(UNSEEN), load(MEASURED)
    return {
        name: median(getattr(middle(now[key(row)]), name) / getattr(middle(then[key(row)]), name)
                     for row in known())
        for name in _TIMES
    }  # fmt: skip


def unseen_lines() -> Iterator[str]:
    """Yield the table of the unseen rows, with the predictions of before; times are divided by `slowness`."""
    measured, predicted, slow = load(UNSEEN), load(PREDICTED), slowness()
    scaled = {
        name: [
            run._replace(
                **{time: getattr(run, time) / slow[time] for time in _TIMES}, rate=run.rate * slow["wall_s"]
            )
            for run in runs
        ]
        for name, runs in measured.items()
    }
    yield from _table((key(row), scaled[key(row)], middle(predicted[key(row)])) for row in unseen())


def usual_lines() -> Iterator[str]:
    """Yield the table of the usual commands, with the predictions of before, and times as measured."""
    measured, predicted = load(USUAL), load(USUAL_PREDICTED)
    yield from _table((key(row), measured[key(row)], middle(predicted[key(row)])) for row in usual())


def _table(compared: Iterable[tuple[str, Sequence[Result], Result]]) -> Iterator[str]:
    """Yield a table of *compared*: the name of a row, the kernel's results, and the model's."""
    errors: list[list[float]] = [[] for _ in HEADS]
    yield f"| run | {' | '.join(HEADS)} |"
    yield f"|{'---|' * (len(HEADS) + 1)}"
    for name, runs, found in compared:
        of, scatter, cells = middle(runs), spread(runs), []
        for column, (took, differs, simulated) in enumerate(zip(of, scatter, found, strict=True)):
            error = simulated / took - 1 if took else 0.0
            if took and differs < SETTLED:
                errors[column].append(abs(error))
            cells.append(f"{took:.4g}{'' if differs < SETTLED else '~'} {error:+.0%}" if took else "-")
        yield f"| {name} | {' | '.join(cells)} |"
    for name, how in (("median error", median), ("worst", max)):
        cells = [f"{how(column):.0%}" if column else "-" for column in errors]
        yield f"| **{name}** | {' | '.join(cells)} |"
