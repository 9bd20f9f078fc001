"""Digests of all reports at quick size: equal digests are equal results, to the last bit.

Each report has two.  `rows` covers the published rows: id, unit and simulated value.  `runs` covers every
replication: its variant, seed and number, and the counters at the end of each iteration.  The engine, the
machine and the release of Python change neither.  Floats are written exactly (``float.hex``).  Steady parts
are left out, because Python 3.12 adds floats otherwise than 3.11; they follow from the runs.  Also left out:
the figures that are read from the machine, the time and memory of the host, intervals, errors and roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from hashlib import blake2b
from typing import Final, NamedTuple

from wbsim.experiments.formats.table import table
from wbsim.experiments.published.reproduce import CONFIGS, Reproduction, Row, reproduce
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.execute import How

_BYTES: Final = 6


class Digests(NamedTuple):
    """The digests of a report and how many rows and runs they cover."""

    rows: str
    runs: str
    row_count: int
    run_count: int


def exact(value: object) -> str:
    """Return *value* as text that differs for any two different values; NumPy's numbers are Python's.

    Raises:
        TypeError: *value* is neither a number, a string nor None; a digest of its address would be random.
    """
    if value is None or isinstance(value, bool | int | str):
        return repr(value)
    if isinstance(value, float):
        return float(value).hex()
    if hasattr(value, "item"):
        return exact(value.item())
    raise TypeError(f"{value!r} has no exact text")


def digest(values: Iterable[object]) -> str:
    """Return the digest of *values* in their order."""
    text = "\n".join(map(exact, values))
    return blake2b(text.encode(), digest_size=_BYTES).hexdigest()


def row_values(rows: Iterable[Row]) -> Iterator[object]:
    """Yield the values of *rows* that the digest covers."""
    for row in rows:
        yield from (row.id, row.unit, row.simulated)


def run_values(outcomes: Iterable[Outcome]) -> Iterator[object]:
    """Yield the values of *outcomes* that the digest covers."""
    for outcome in outcomes:
        yield from (outcome.variant, outcome.seed, outcome.replication)
        for sample in outcome.samples:
            yield from (value for name, value in asdict(sample).items() if name != "readings")


def digests_of(results: Iterable[Reproduction]) -> Digests:
    """Return the digests of *results*, in their order."""
    given = list(results)
    rows = [row for result in given for row in result.rows]
    outcomes = [outcome for result in given for outcome in result.outcomes]
    return Digests(digest(row_values(rows)), digest(run_values(outcomes)), len(rows), len(outcomes))


def report(names: Iterable[str] = CONFIGS, how: How = How()) -> str:  # noqa: B008  an immutable tuple
    """Return the table of the digests of the reports *names* at quick size, which takes minutes."""
    results = {name: reproduce([name], quick=True, replications=None, how=how) for name in names}
    digests = {name: digests_of([result]) for name, result in results.items()}
    digests["all"] = digests_of(results.values())
    cells = [(name, of.rows, of.runs, str(of.row_count), str(of.run_count)) for name, of in digests.items()]
    return table(("report", "digest of rows", "digest of runs", "rows", "runs"), cells)
