"""The levels of a run over time, as text: the columns of vmstat and iostat -x.

A level is a number that is sampled during a run.  In all functions, *every_s* is the length of an interval
(s).  None stands for 1 s, or for a round part of 1 s so that there are at least ten intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, pstdev
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.experiments.config.problems import bad
from wbsim.experiments.formats.table import WIDTH, column_texts, table
from wbsim.experiments.results.figures import COLUMNS, FIGURES, Figure
from wbsim.experiments.results.outcome import Outcome, disks_with_requests
from wbsim.sim.units import MS, SECTOR_BYTES, S

MOST_LINES: Final = 10_000
_STEPS_S: Final = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_OF_ALL: Final = {
    "dirty": "dirty MiB", "writeback": "writeback", "background": "background", "limit": "limit",
    "flushers": "flushers", "held_writers": "held",
}  # fmt: skip
"""The headings of the figures that every timeline has."""


def intervals_of(outcome: Outcome, every_s: float | None) -> NDArray[np.float64]:
    """Return the bounds (s) of intervals of *every_s*, from 0: one more than there are intervals.

    A shorter rest at the end of the run is left out.

    Raises:
        BadInput: the run has no levels, or the number of intervals is 0 or more than `MOST_LINES` (10 000).
    """
    seconds = np.array(outcome.levels["time_ns"]) / S
    if not len(seconds):
        took_ms = outcome.wall_time * 1e3
        message = (
            f"{outcome.variant} took {took_ms:.3g} ms, and the first sample is at 10 ms; give it more work"
        )
        raise bad("timeline", message)
    took_s = seconds[-1]
    if every_s is None:
        every_s = next((step for step in _STEPS_S if took_s >= 10 * step), _STEPS_S[-1])
    count = int(took_s / every_s) if every_s else 0
    if not 1 <= count <= MOST_LINES:
        raise bad(
            "--every",
            f"{every_s:g} s: {count} intervals in a run of {took_s:.3g} s; allowed are 1 to {MOST_LINES}",
        )
    return np.arange(count + 1, dtype=np.float64) * every_s


def rates(outcome: Outcome, counter: str, ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the increase of the level *counter* per second, in each interval between the bounds *ends* (s).

    *counter* is a key of `Outcome.levels`, whose unit the result has, per second.  The counter is 0 at time
    0, and is interpolated between two samples.
    """
    seconds = np.concatenate(([0.0], np.array(outcome.levels["time_ns"]) / S))
    counts = np.concatenate(([0.0], outcome.levels[counter]))
    return np.diff(np.interp(ends, seconds, counts)) / np.diff(ends)


def await_ms(outcome: Outcome, waits: str, counter: str, ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean wait of the requests that completed in each interval (ms); nan without requests.

    *waits*: the level with the sum of the waits (ns).  *counter*: the level with the completed requests.
    *ends*: the bounds of the intervals (s).
    """
    counts = rates(outcome, counter, ends)
    counts[counts == 0] = np.nan
    return rates(outcome, waits, ends) / counts / MS


def levels_at(outcome: Outcome, level: str, ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the last sample of *level* up to the end of each interval between the bounds *ends* (s).

    *level* is a key of `Outcome.levels`, whose unit the result has.  A sample at the end itself counts.  An
    interval that ends before the first sample has the first sample.
    """
    seconds = np.array(outcome.levels["time_ns"]) / S
    places = np.maximum(np.searchsorted(seconds, ends[1:], side="right") - 1, 0)
    return np.array(outcome.levels[level])[places]


def _level(outcome: Outcome, name: str, ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the figure *name* at the end of each interval; for a figure that counts, its rate."""
    return rates(outcome, name, ends) if FIGURES[name].counts else levels_at(outcome, name, ends)


def _heading(figure: Figure) -> str:
    return f"{figure.heading}/s" if figure.counts else figure.heading


class Column(NamedTuple):
    """A column of a timeline: its heading, the name of its values with the unit, and the values.

    ``disk``: the disk to which they belong, or "".
    """

    heading: str
    name: str
    values: NDArray[np.float64]
    disk: str = ""


def columns_of(outcome: Outcome, every_s: float | None, more: Sequence[str] = ()) -> list[Column]:
    """Return the columns of a timeline of *outcome*; the first has the ends of the intervals (s).

    A column has one value for each interval.  *more*: names of figures that are read from the machine, for
    further columns.

    Raises:
        BadInput: the run has no levels, or the number of intervals is 0 or too large.
    """
    ends = intervals_of(outcome, every_s)
    columns = [Column("s", "time_s", ends[1:])]
    columns += [
        Column(heading, COLUMNS[name], levels_at(outcome, name, ends)) for name, heading in _OF_ALL.items()
    ]
    columns += [Column(_heading(FIGURES[name]), _name(name), _level(outcome, name, ends)) for name in more]
    disks = disks_with_requests(outcome.levels, outcome.disks)
    for disk in disks:
        first = f"{disk} " if len(disks) > 1 else ""
        columns += [
            Column(f"{first}{heading}", f"{disk}_{name}", values, disk)
            for heading, name, values, _ in _columns_of_disk(outcome, disk, ends)
        ]
    return columns


def _columns_of_disk(outcome: Outcome, disk: str, ends: NDArray[np.float64]) -> list[Column]:
    sectors, busy = rates(outcome, f"{disk} sectors", ends), rates(outcome, f"{disk} busy_ns", ends)
    columns = [
        Column("w/s", "write_iops_per_s", rates(outcome, f"{disk} ios", ends)),
        Column("wMB/s", "write_bandwidth_mb_per_s", sectors * SECTOR_BYTES / 1e6),
        Column("w_await ms", "w_await_ms", await_ms(outcome, f"{disk} write_wait_ns", f"{disk} ios", ends)),
        Column("queued", "queued", levels_at(outcome, f"{disk} queued", ends)),
        Column("%util", "utilisation_percent", busy / S * 100),
    ]
    if outcome.levels[f"{disk} reads"][-1]:
        waits = await_ms(outcome, f"{disk} read_wait_ns", f"{disk} reads", ends)
        columns.append(Column("r_await ms", "r_await_ms", waits))
    return columns


def _name(figure: str) -> str:
    """Return the name of the values of *figure*; those of a figure that counts are rates."""
    return f"{COLUMNS[figure]}_per_s" if FIGURES[figure].counts else COLUMNS[figure]


def timeline(outcome: Outcome, every_s: float | None, more: Sequence[str] = ()) -> str:
    """Return a line for each interval, and below them the mean and the variation of each disk's write rate.

    The lines have the columns of `columns_of`.  The mean is in MB/s, and `variation` is without unit.  If one
    table would be wider than `WIDTH`, each disk has a separate one below.

    *more*: names of figures that are read from the machine, for further columns.

    Raises:
        BadInput: the run has no levels, or the number of intervals is 0 or too large.
    """
    seconds, *columns = columns_of(outcome, every_s, more)
    whole = _table([seconds, *columns])
    if whole.index("\n") > WIDTH:
        disks = dict.fromkeys(column.disk for column in columns)
        parts = [[column for column in columns if column.disk == disk] for disk in disks]
        whole = "\n\n".join(_table([seconds, *part]) for part in parts)
    return "\n".join([whole, "", *_evenness(outcome, intervals_of(outcome, every_s))])


def _table(columns: Sequence[Column]) -> str:
    texts = [column_texts([float(value) for value in column.values]) for column in columns]
    return table([column.heading for column in columns], list(zip(*texts, strict=True)))


def timeline_document(outcome: Outcome, every_s: float | None, more: Sequence[str] = ()) -> dict[str, object]:
    """Return the timeline for ``--json``: a list of values, one an interval, for each name of a column.

    ``time_s`` has the ends of the intervals, which begin at the start of the run; a shorter rest is left out.
    ``variant`` and ``point`` are those of the run.  The other names have their units: those of the cache and
    the flushers (``dirty_mib``, ``held_writers``), of *more*, and of each disk (``sda_queued``).  A level has
    its last sample in the interval or before, and a figure that counts its increase per second.  A wait is
    the mean of the requests that completed in the interval, or nan.

    *more*: names of figures that are read from the machine, for further columns.

    Raises:
        BadInput: the run has no levels, or the number of intervals is 0 or too large.
    """
    columns = columns_of(outcome, every_s, more)
    return {
        "variant": outcome.variant,
        "point": outcome.point,
        **{column.name: [float(value) for value in column.values] for column in columns},
    }


def _evenness(outcome: Outcome, ends: NDArray[np.float64]) -> Iterator[str]:
    for disk in disks_with_requests(outcome.levels, outcome.disks):
        mb_per_s = rates(outcome, f"{disk} sectors", ends) * SECTOR_BYTES / 1e6
        yield f"{disk}: {fmean(mb_per_s):.1f} MB/s, coefficient of variation {variation(mb_per_s):.2f}"


def variation(values: NDArray[np.float64]) -> float:
    """Return the coefficient of variation: the standard deviation divided by the mean; 0 if the mean is 0.

    The standard deviation is that of a population (divided by n); *values* must not be empty.
    """
    mean = fmean(values)
    return float(pstdev(values) / mean) if mean else 0.0
