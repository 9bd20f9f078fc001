"""What runs measured, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final, NamedTuple

from wbsim.experiments.config.case import Case
from wbsim.experiments.formats.table import figure_text, table
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.statistics.figures import FIGURES
from wbsim.experiments.statistics.intervals import interval_of, paired, steady_of
from wbsim.sim.units import SECTOR_BYTES


class Column(NamedTuple):
    """A figure under a short heading, with so many digits behind the point; None: four significant ones."""

    heading: str
    name: str
    digits: int | None = None

    def cell(self, outcomes: Sequence[Outcome]) -> str:
        """The figure of a case; of several replications their mean, and half of its interval."""
        figure = FIGURES[self.name]
        if len(outcomes) == 1:
            return self._text(figure.whole(outcomes[0]))
        mean, _, high = interval_of(figure, outcomes)
        return f"{self._text(mean)} ±{self._text(high - mean)}"

    def _text(self, value: float) -> str:
        return figure_text(value) if self.digits is None else f"{value:.{self.digits}f}"


_COLUMNS: Final = (
    Column("wall s", "wall_time", 1),
    Column("sys s", "system_cpu_time", 1),
    Column("w/s", "write_iops"),
    Column("wMB/s", "write_bandwidth"),
    Column("wareq-sz KiB", "request_size", 1),
    Column("wrqm %", "merged", 1),
)
_OF_CREATION: Final = (Column("files/s", "file_rate"), Column("fs_mark files/s", "create_rate"))
_OF_LAYOUT: Final = (
    Column("file MB/s", "file_bandwidth"),
    Column("extents/file", "extents_per_file"),
    Column("extent KiB", "mean_extent"),
)


def columns_for(outcomes: Sequence[Outcome]) -> list[Column]:
    """What is worth a column: what the workload, time(1), iostat and xfs_bmap would say."""
    kinds = _OF_LAYOUT if any(o.extents for o in outcomes) else _OF_CREATION
    return [*_COLUMNS, *(kinds if all(len(o.programs) == 1 for o in outcomes) else ())]


def outcome_table(outcomes: Sequence[Outcome], axes: Sequence[str]) -> str:
    """One line for each case; of several replications, means and half of their 95 % intervals."""
    columns = columns_for(outcomes)
    rows = []
    for of in by_case(outcomes):
        points = (str(of[0].point[axis]) for axis in axes)
        rows.append((of[0].variant, *points, *(column.cell(of) for column in columns)))
    return table(("variant", *axes, *(column.heading for column in columns)), rows)


def by_case(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """The replications of each case together, in the order of the cases."""
    cases: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        cases.setdefault((outcome.variant, str(outcome.point)), []).append(outcome)
    return list(cases.values())


def difference_table(outcomes: Sequence[Outcome], axes: Sequence[str]) -> str | None:
    """By how much each variant differs from the first one, of runs with the same dice: the mean difference
    and its 95 % interval.  None, if there are no two variants with two of the same
    replications.
    """
    cases = by_case(outcomes)
    first = {str(of[0].point): of for of in cases if of[0].variant == outcomes[0].variant}
    columns, rows = columns_for(outcomes), []
    for of in cases:
        base = first.get(str(of[0].point))
        if base is None or of is base or len(_dice(base) & _dice(of)) < 2:
            continue
        points = (str(of[0].point[axis]) for axis in axes)
        rows.append((of[0].variant, *points, *(_difference(column, base, of) for column in columns)))
    if not rows:
        return None
    header = (f"against {outcomes[0].variant}, %", *axes, *(column.heading for column in columns))
    return table(header, rows)


def _dice(outcomes: Sequence[Outcome]) -> set[tuple[int, int]]:
    return {(outcome.seed, outcome.replication) for outcome in outcomes}


def _difference(column: Column, base: Sequence[Outcome], of: Sequence[Outcome]) -> str:
    figure = FIGURES[column.name]
    whole = fmean(figure.whole(outcome) for outcome in base) / 100
    mean, _, high = paired(figure, base, of)
    return f"{mean / whole:+.1f} ±{(high - mean) / abs(whole):.1f}" if whole else "-"


def steady_table(outcomes: Sequence[Outcome], axes: Sequence[str]) -> str | None:
    """The same figures of the steady part of each run, where it is not the whole; None, if none is."""
    columns = [column for column in columns_for(outcomes) if FIGURES[column.name].iteration is not None]
    columns = [column for column in columns if not FIGURES[column.name].grows]
    rows = []
    for outcome in (of[0] for of in by_case(outcomes)):
        parts = [steady_of(FIGURES[column.name], outcome) for column in columns]
        points = (str(outcome.point[axis]) for axis in axes)
        if any(part is not None and part.since > 0 for part in parts):
            cells = (
                "-" if part is None else f"{figure_text(part.value)} from {part.since:.0f} s"
                for part in parts
            )
            rows.append((outcome.variant, *points, *cells))
    return table(("steady part", *axes, *(column.heading for column in columns)), rows) if rows else None


def parts_tables(outcome: Outcome) -> list[str]:
    """What each program, disk and mount of one run got, where there are several of a kind."""
    tables = []
    rows: list[tuple[str, ...]]
    if len(outcome.programs) > 1:
        rows = [
            (
                name,
                f"{p.wall_time:.1f}",
                f"{p.system_cpu_time:.1f}",
                f"{p.user_cpu_time:.1f}",
                figure_text(p.files),
                figure_text(p.file_bytes / p.wall_time / 1e6),
            )
            for name, p in outcome.programs.items()
        ]
        tables.append(table(("program", "wall s", "sys s", "user s", "files", "file MB/s"), rows))
    if len(outcome.disks) > 1:
        rows = [
            (
                name,
                figure_text(d.ios / outcome.wall_time),
                figure_text(d.sectors * SECTOR_BYTES / outcome.wall_time / 1e6),
                f"{_share(d.sectors * SECTOR_BYTES / 1024, d.ios):.1f}",
                f"{100 * _share(d.merges, d.merges + d.ios):.1f}",
            )
            for name, d in outcome.disks.items()
            if d.ios
        ]
        tables.append(table(("disk", "w/s", "wMB/s", "wareq-sz KiB", "wrqm %"), rows))
    if len(outcome.mounts) > 1:
        rows = [
            (
                name,
                f"{m.log_bytes / 1e6:.1f}",
                figure_text(_share(sum(m.extents), len(m.extents))) if m.extents else "1",
                figure_text(_share(m.extent_bytes / 1024, sum(m.extents))) if m.extents else "-",
            )
            for name, m in outcome.mounts.items()
        ]
        tables.append(table(("mount", "log MB", "extents/file", "extent KiB"), rows))
    return tables


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def print_fs_mark(case: Case, outcome: Outcome) -> None:
    """The table that fs_mark itself prints."""
    (program,), (mount,) = case.scenario.programs.values(), case.scenario.mounts.values()
    size_each = program.workload.bytes_each
    print(f"{'FSUse%':>6} {'Count':>12} {'Size':>12} {'Files/sec':>12} {'App Overhead':>16}")
    for sample in outcome.samples:
        used = 100 * sample.count * size_each // mount.filesystem.size
        print(
            f"{used:6} {sample.count:12} {size_each:12} {sample.files_per_sec:12.1f}"
            f" {sample.app_overhead_us:16}"
        )
    print()
