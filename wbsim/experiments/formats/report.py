"""The figures of runs as tables, and notes on unfinished writeback below the tables.

In all functions, *axes* are the swept keys, and *more* are the names of further figures, for more columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from typing import Final, NamedTuple

from wbsim.experiments.config.case import Case
from wbsim.experiments.formats.table import column_texts, figure_text, fitted_table, table, wrapped
from wbsim.experiments.results.figures import (
    FIGURES,
    allocated_files,
    merged_percent,
    number_or_nan,
    request_kib,
    share,
)
from wbsim.experiments.results.intervals import interval_of, paired, steady_of
from wbsim.experiments.results.outcome import DiskResult, Outcome, ProgramResult
from wbsim.models.scenario import MachineSpec
from wbsim.sim.stats import Interval
from wbsim.sim.units import SECTOR_BYTES


class Column(NamedTuple):
    """A figure under a short heading; ``name`` is a key of `FIGURES`."""

    heading: str
    name: str


def texts_of(column: Column, cases: Sequence[Sequence[Outcome]]) -> list[str]:
    """Return the text of the figure of *column* for each of *cases*, each a list of replications.

    For several replications it is the mean with half of the 95 % interval, such as "30.2 ±1.4".  The unit is
    that of the heading; "-" is an unknown figure.
    """
    figure = FIGURES[column.name]
    intervals = [
        interval_of(figure, runs) if len(runs) > 1 else Interval(figure.whole(runs[0]), nan, nan)
        for runs in cases
    ]
    return column_texts([mean for mean, _, _ in intervals], [high - mean for mean, _, high in intervals])


_COLUMNS: Final = (
    Column("wall s", "wall_time"),
    Column("on disk s", "on_disk_time"),
    Column("sys s", "system_cpu_time"),
    Column("w/s", "write_iops"),
    Column("wMB/s", "write_bandwidth"),
    Column("wareq-sz KiB", "request_size"),
    Column("wrqm %", "merged"),
    Column("w_await ms", "w_await"),
)
_OF_READS: Final = (Column("r_await ms", "r_await"),)
_ON_DISK: Final = (
    Column("s", "on_disk_time"),
    Column("requests", "on_disk_requests"),
    Column("MB", "on_disk_size"),
    Column("w/s", "on_disk_iops"),
    Column("wMB/s", "on_disk_bandwidth"),
    Column("wareq-sz KiB", "on_disk_request_size"),
    Column("wrqm %", "on_disk_merged"),
    Column("w_await ms", "on_disk_w_await"),
)
_OF_CREATION: Final = (Column("files/s", "file_rate"), Column("fs_mark files/s", "create_rate"))
_OF_LAYOUT: Final = (
    Column("file MB/s", "file_bandwidth"),
    Column("extents/file", "extents_per_file"),
    Column("extent KiB", "mean_extent"),
)


def columns_for(outcomes: Sequence[Outcome], more: Sequence[str] = ()) -> list[Column]:
    """Return the columns of the first table: the figures of the workload, time(1), iostat and xfs_bmap.

    Reads have a column only if an outcome has reads.  If each outcome has a single program, the columns of
    extents follow, or those of created files if no outcome has extents.
    """
    kinds = _OF_LAYOUT if any(o.extents for o in outcomes) else _OF_CREATION
    reads = any(disk.reads for o in outcomes for disk in o.disks.values())
    return [
        *_COLUMNS,
        *(_OF_READS if reads else ()),
        *(kinds if all(len(o.programs) == 1 for o in outcomes) else ()),
        *(Column(FIGURES[name].heading, name) for name in more),
    ]


def outcome_table(outcomes: Sequence[Outcome], axes: Sequence[str], more: Sequence[str] = ()) -> str:
    """Return a table with a line for each case: its variant, its point by *axes*, and its figures.

    For several replications, the line has means with half of their 95 % intervals.
    """
    return _table("variant", columns_for(outcomes, more), by_case(outcomes), axes)


def on_disk_table(outcomes: Sequence[Outcome], axes: Sequence[str]) -> str | None:
    """Return a table of the write requests until all data is on disk; None if no run ended with sync(2).

    The table has a line for each case with such a run.
    """
    cases = [runs for runs in by_case(outcomes) if any(outcome.on_disk_time is not None for outcome in runs)]
    return _table("until on disk", _ON_DISK, cases, axes) if cases else None


def outcome_rows(
    outcomes: Sequence[Outcome], axes: Sequence[str]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heading and the lines of `outcome_table`, with all columns, for another kind of table."""
    return _rows("variant", columns_for(outcomes), by_case(outcomes), axes)


def _table(
    title: str, columns: Sequence[Column], cases: Sequence[Sequence[Outcome]], axes: Sequence[str]
) -> str:
    header, rows = _rows(title, columns, cases, axes)
    own = "" if title == "variant" else title
    return fitted_table(header, rows, left_columns=len(axes) + 1, title=own)


def _rows(
    title: str, columns: Sequence[Column], cases: Sequence[Sequence[Outcome]], axes: Sequence[str]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heading and a line for each case: its variant, its point, and its figures."""
    labels = [(runs[0].variant, *(str(runs[0].point[axis]) for axis in axes)) for runs in cases]
    columns_of_texts = [texts_of(column, cases) for column in columns]
    rows = [(*label, *cells) for label, *cells in zip(labels, *columns_of_texts, strict=True)]
    return (title, *axes, *(column.heading for column in columns)), rows


def unfinished(outcomes: Sequence[Outcome], axes: Sequence[str]) -> str | None:
    """Return notes on files and pages that are not on disk yet, or None.

    The notes are about the first replication of each case.  A run that ended with sync(2) gets no note,
    because a file without a block is empty there.
    """
    cases = [runs[0] for runs in by_case(outcomes)]
    without_sync = [outcome for outcome in cases if outcome.on_disk_time is None]
    lines = []
    for outcome in without_sync:
        files, allocated = len(outcome.extents), allocated_files(outcome)
        if allocated < files:
            label = " ".join([outcome.variant, *(str(outcome.point[axis]) for axis in axes)])
            prefix = f"{label}: " if len(cases) > 1 else ""
            lines.append(f"{prefix}{files - allocated} of {files} files are not on disk yet")
    dirty = [outcome.readings["dirty_at_end"] for outcome in without_sync]
    if any(dirty):
        least, most = figure_text(min(dirty)), figure_text(max(dirty))
        amounts = most if least == most else f"{least} to {most}"
        lines.append(
            wrapped(
                f"{amounts} MiB still dirty or under writeback when the programs ended;"
                " with sync_after = true a sync(2) follows"
            )
        )
    return "\n".join(lines) if lines else None


def failed_processes(outcomes: Sequence[Outcome], axes: Sequence[str]) -> str | None:
    """Return a note on the processes that an error of a system call has ended, or None if there are none.

    The note is about the first replication of each case.
    """
    cases = [runs[0] for runs in by_case(outcomes)]
    lines = []
    for outcome in cases:
        label = " ".join([outcome.variant, *(str(outcome.point[axis]) for axis in axes)])
        for name, program in outcome.programs.items():
            for error, count in program.failed.items():
                place = f"{label}: {name}" if len(cases) > 1 else name
                processes = "1 process" if count == 1 else f"{count} processes"
                lines.append(f"{place}: {error}; this ended {processes} before all was written")
    return "\n".join(lines) if lines else None


def ignored_options(programs: Iterable[tuple[str, str, Sequence[str]]]) -> str | None:
    """Return a note on the options of commands that have no effect here, or None.

    *programs* has the variant, the name and these options of each program of each case.  The note names the
    variant of a program whose options differ from variant to variant.
    """
    options_of: dict[str, dict[str, Sequence[str]]] = {}
    for variant, name, options in programs:
        options_of.setdefault(name, {}).setdefault(variant, options)
    lines = []
    for name, by_variant in options_of.items():
        differ = len(set(map(tuple, by_variant.values()))) > 1
        labels = {
            f"{variant}: {name}" if differ else name: options for variant, options in by_variant.items()
        }
        lines += [
            f"{label}: without effect here: {', '.join(options)}"
            for label, options in labels.items()
            if options
        ]
    return "\n".join(lines) if lines else None


def uneven_members(machines: Iterable[MachineSpec]) -> str | None:
    """Return a note on the arrays and controllers whose members differ in size, with the smallest, or None.

    Of each member, only the size of the smallest is used.
    """
    lines = {}
    for machine in machines:
        groups = {
            name: {member: machine.disks[member].device for member in array.members}
            for name, array in machine.arrays.items()
        }
        for name, disk in machine.disks.items():
            parts = disk.device.parts().get("members", ())
            if isinstance(parts, tuple):
                groups[name] = {f"member {number}": part for number, part in enumerate(parts)}
        for name, members in groups.items():
            devices = {member: device.capacity for member, device in members.items()}
            sizes = {member: size for member, size in devices.items() if size is not None}
            if len(set(sizes.values())) > 1:
                least = min(sizes, key=lambda member: sizes[member])
                lines[name] = (
                    f"{name}: its members differ in size; of each, it uses the {sizes[least] / 1e9:g} GB"
                    f" of {least}"
                )
    return "\n".join(lines.values()) if lines else None


def by_case(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """Return the replications of each case as one list, in the order in which the cases first occur.

    Outcomes of the same variant and point are one case.
    """
    cases: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        cases.setdefault((outcome.variant, str(outcome.point)), []).append(outcome)
    return list(cases.values())


def difference_table(
    outcomes: Sequence[Outcome], axes: Sequence[str], more: Sequence[str] = ()
) -> str | None:
    """Return a table of the mean difference of each variant from the first variant (%), with 95 % intervals.

    A difference is a share of the first variant's mean; "-" is an unknown one.  Both variants of a pair have
    equal random numbers.  The table is None if no variant has two replications in common with the first
    variant.
    """
    cases = by_case(outcomes)
    first = {str(runs[0].point): runs for runs in cases if runs[0].variant == outcomes[0].variant}
    columns, rows = columns_for(outcomes, more), []
    for runs in cases:
        base = first.get(str(runs[0].point))
        if base is None or runs is base or len(_seeds(base) & _seeds(runs)) < 2:
            continue
        points = (str(runs[0].point[axis]) for axis in axes)
        rows.append((runs[0].variant, *points, *(_difference(column, base, runs) for column in columns)))
    if not rows:
        return None
    header = (f"against {outcomes[0].variant}, %", *axes, *(column.heading for column in columns))
    return fitted_table(header, rows, left_columns=len(axes) + 1)


def _seeds(outcomes: Sequence[Outcome]) -> set[tuple[int, int]]:
    return {(outcome.seed, outcome.replication) for outcome in outcomes}


def _difference(column: Column, base: Sequence[Outcome], runs: Sequence[Outcome]) -> str:
    figure = FIGURES[column.name]
    whole = interval_of(figure, base).mean / 100
    mean, _, high = paired(figure, base, runs)
    if not whole or isnan(whole) or isnan(high):
        return "-"
    return f"{mean / whole:+.1f} ±{(high - mean) / abs(whole):.1f}"


def steady_table(outcomes: Sequence[Outcome], axes: Sequence[str]) -> str | None:
    """Return a table of the steady part of each case's first run, with its start (s); see `steady_of`.

    The figures are those of `columns_for` that an iteration has, and that do not grow with the experiment.
    "-": the figure has no steady part.  A case has no line if no figure becomes steady after the start.  None
    if no case has a line.
    """
    columns = [column for column in columns_for(outcomes) if FIGURES[column.name].iteration is not None]
    columns = [column for column in columns if not FIGURES[column.name].grows]
    rows = []
    for outcome in (runs[0] for runs in by_case(outcomes)):
        parts = [steady_of(FIGURES[column.name], outcome) for column in columns]
        points = (str(outcome.point[axis]) for axis in axes)
        if any(part is not None and part.start_s > 0 for part in parts):
            cells = (
                "-" if part is None else f"{figure_text(part.value)} from {part.start_s:.0f} s"
                for part in parts
            )
            rows.append((outcome.variant, *points, *cells))
    header = ("steady part", *axes, *(column.heading for column in columns))
    return fitted_table(header, rows, left_columns=len(axes) + 1) if rows else None


def parts_tables(outcome: Outcome) -> list[str]:
    """Return tables of the programs, of fio's jobs, of the disks and of the mounts of a run.

    The jobs have a table if there is any; the others only if the run has several.  Disks without a request
    are left out.
    """
    tables = []
    if len(outcome.programs) > 1:
        tables.append(
            _number_table(
                ("program", "wall s", "sys s", "user s", "files", "file MB/s"),
                {
                    name: (p.wall_time, p.system_cpu_time, p.user_cpu_time, p.files, rate_of(p))
                    for name, p in outcome.programs.items()
                },
            )
        )
    if (jobs := _jobs_table(outcome)) is not None:
        tables.append(jobs)
    if len(outcome.disks) > 1:
        disks, at_end, on_disk_s = outcome.disks, outcome.disks_at_end, outcome.on_disk_time
        if _any_used(disks):
            tables.append(_disk_table("disk", disks, outcome.wall_time))
        if on_disk_s is not None and _any_used(at_end):
            tables.append(_disk_table("disk until on disk", at_end, on_disk_s, with_counts=True))
    if len(outcome.mounts) > 1:
        tables.append(
            _number_table(
                ("mount", "log MB", "extents/file", "extent KiB"),
                {
                    name: (
                        m.log_bytes / 1e6,
                        share(sum(m.extents), sum(map(bool, m.extents))) if m.extents else 1,
                        share(m.extent_bytes / 1024, sum(m.extents)),
                    )
                    for name, m in outcome.mounts.items()
                },
            )
        )
    return tables


def rate_of(program: ProgramResult) -> float:
    """Return the file data of *program* for each second of its wall time (MB/s); nan without time."""
    return share(program.file_bytes / 1e6, program.wall_time)


def _number_table(header: Sequence[str], numbers: Mapping[str, Sequence[float]]) -> str:
    """Return a table with a line for each name of *numbers*; the numbers of a column have equal decimals."""
    columns = [column_texts(column) for column in zip(*numbers.values(), strict=True)]
    return table(header, list(zip(numbers, *columns, strict=True)))


def _any_used(disks: Mapping[str, DiskResult]) -> bool:
    return any(disk.ios or disk.reads for disk in disks.values())


def _disk_table(
    title: str, disks: Mapping[str, DiskResult], seconds: float, with_counts: bool = False
) -> str:
    """Return a table with a line for each disk that completed requests within *seconds*.

    *with_counts*: the number of requests follows the name.  The last column is r_await if any disk has read.
    """
    reads = any(disk.reads for disk in disks.values())
    header = ["w/s", "wMB/s", "wareq-sz KiB", "wrqm %", "w_await ms", *(["r_await ms"] if reads else [])]
    numbers = {
        name: [
            *([disk.ios] if with_counts else []),
            share(disk.ios, seconds),
            share(disk.sectors * SECTOR_BYTES / 1e6, seconds),
            request_kib(disk),
            merged_percent(disk),
            number_or_nan(disk.w_await),
            *([number_or_nan(disk.r_await)] if reads else []),
        ]
        for name, disk in disks.items()
        if disk.ios or disk.reads
    }
    return _number_table([title, *(["requests"] if with_counts else []), *header], numbers)


def _jobs_table(outcome: Outcome) -> str | None:
    """Return a table of the jobs of fio, or None if there are none; a rate leaves out the start of fio."""
    jobs = [
        (program, name, job)
        for program, result in outcome.programs.items()
        for name, job in result.jobs.items()
    ]
    if not jobs:
        return None
    numbers = [
        (
            job.time,
            job.bytes / 1e6,
            number_or_nan(None if job.bandwidth is None else job.bandwidth / 1e6),
            number_or_nan(job.iops),
            job.files,
            job.system_cpu_time,
            job.user_cpu_time,
        )
        for _, _, job in jobs
    ]
    several = len(outcome.programs) > 1
    labels = [(program, name) if several else (name,) for program, name, _ in jobs]
    columns = [column_texts(column) for column in zip(*numbers, strict=True)]
    rows = [(*label, *cells) for label, *cells in zip(labels, *columns, strict=True)]
    header = ["job", "s", "MB", "MB/s", "writes/s", "files", "sys s", "user s"]
    return table([*(["program"] if several else []), *header], rows, left_columns=1 + several)


def print_fs_mark(case: Case, outcome: Outcome) -> None:
    """Print on stdout the table that fs_mark prints: a line for each of its samples.

    *case* must have one program and one mount, as ``wbsim run --fs-mark`` makes it.
    """
    (program,), (mount,) = case.scenario.programs.values(), case.scenario.mounts.values()
    size_each = program.workload.bytes_each
    print(f"{'FSUse%':>6} {'Count':>12} {'Size':>12} {'Files/sec':>12} {'App Overhead':>16}")
    for sample in outcome.samples:
        use_percent = 100 * sample.count * size_each // mount.filesystem.size
        print(
            f"{use_percent:6} {sample.count:12} {size_each:12} {sample.files_per_sec:12.1f}"
            f" {sample.app_overhead_us:16}"
        )
    print()
