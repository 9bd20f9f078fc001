"""Tables for people: the reproduction, a run, a fit, all numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from wbsim.experiments.config.experiment import Case
from wbsim.experiments.published.calibrate import Fit
from wbsim.experiments.published.reproduce import Reproduction, Row
from wbsim.experiments.running.runner import Outcome
from wbsim.sim.param import Number, Spec
from wbsim.sim.units import SECTOR_BYTES


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Aligned columns under a rule: the first *left* to the left, the others to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]

    def format_line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([format_line(lines[0]), rule, *map(format_line, lines[1:])])


def reproduction_table(result: Reproduction) -> str:
    """Published beside simulated, and how it was got."""
    rows = [_reproduction_cells(row) for row in result.rows]
    text = table(("figure", "published", "unit", "simulated", "95 % interval", "error", "role"), rows)
    constants = ", ".join(f"{count} {origin}" for origin, count in result.constants.items())
    notes = []
    if result.outcomes:
        notes = [
            f"interval: {result.interval}",
            f"numbers: {constants} (see: wbsim params)",
            f"{result.cpu_s:.0f} s of CPU, {result.peak_rss_mib:.0f} MiB, seed {result.seed}",
        ]
    if result.quick:
        notes.insert(
            0,
            "quick: one run each, where the configuration says so a smaller one; what grows with its size"
            " has no error",
        )
    return "\n".join([text, "", *notes]).rstrip()


def _reproduction_cells(row: Row) -> tuple[str, ...]:
    published = "-" if row.published is None else _figure(row.published)
    if row.simulated is None:
        return (row.id, published, row.unit, "-", "-", "-", row.role)
    interval = "-" if row.ci95 is None else f"{_figure(row.ci95[0])} .. {_figure(row.ci95[1])}"
    error = "-" if row.relative_error is None else f"{100 * row.relative_error:+.1f} %"
    return (row.id, published, row.unit, _figure(row.simulated), interval, error, row.role)


def _figure(value: float) -> str:
    """Four significant digits, thousands apart."""
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.4g}"


def outcome_table(outcomes: Sequence[Outcome], axis: str | None) -> str:
    """One line per run: what the workload, time(1), iostat and xfs_bmap would say."""
    kinds = _OF_LAYOUT if any(o.extents for o in outcomes) else _OF_CREATION
    columns = [*_COLUMNS, *(kinds if all(len(o.programs) == 1 for o in outcomes) else [])]
    header = ("variant", *([axis] if axis else []), *(name for name, _ in columns))
    return table(
        header,
        [(o.variant, *([str(o.point)] if axis else []), *(cell(o) for _, cell in columns)) for o in outcomes],
    )


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
                _figure(p.files),
                _figure(p.file_bytes / p.wall_time / 1e6),
            )
            for name, p in outcome.programs.items()
        ]
        tables.append(table(("program", "wall s", "sys s", "user s", "files", "file MB/s"), rows))
    if len(outcome.disks) > 1:
        rows = [
            (
                name,
                _figure(d.ios / outcome.wall_time),
                _figure(d.sectors * SECTOR_BYTES / outcome.wall_time / 1e6),
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
                _figure(_share(sum(m.extents), len(m.extents))) if m.extents else "1",
                _figure(_share(m.extent_bytes / 1024, sum(m.extents))) if m.extents else "-",
            )
            for name, m in outcome.mounts.items()
        ]
        tables.append(table(("mount", "log MB", "extents/file", "extent KiB"), rows))
    return tables


_COLUMNS: Final[list[tuple[str, Callable[[Outcome], str]]]] = [
    ("wall s", lambda o: f"{o.wall_time:.1f}"),
    ("sys s", lambda o: f"{o.system_cpu_time:.1f}"),
    ("w/s", lambda o: _figure(o.write_iops)),
    ("wMB/s", lambda o: _figure(o.write_bandwidth / 1e6)),
    (
        "wareq-sz KiB",
        lambda o: f"{_share(o.samples[-1].sectors * SECTOR_BYTES / 1024, o.samples[-1].ios):.1f}",
    ),
    ("wrqm %", lambda o: f"{100 * _share(o.merges, o.merges + o.samples[-1].ios):.1f}"),
]
_OF_CREATION: Final[list[tuple[str, Callable[[Outcome], str]]]] = [
    ("files/s", lambda o: _figure(o.files / o.wall_time)),
    ("fs_mark files/s", lambda o: _figure(o.create_rate)),
]
_OF_LAYOUT: Final[list[tuple[str, Callable[[Outcome], str]]]] = [
    ("file MB/s", lambda o: _figure(o.file_bytes / o.wall_time / 1e6)),
    ("extents/file", lambda o: _figure(_share(sum(o.extents), len(o.extents)))),
    ("extent KiB", lambda o: _figure(_share(o.file_bytes / 1024, sum(o.extents)))),
]


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


def fit_table(fit: Fit) -> str:
    """The fitted constants beside the committed ones, and the errors that remain."""
    constants = table(
        ("constant", "fitted", "committed"),
        [(name, f"{value:g}", f"{fit.committed[name]:g}") for name, value in fit.fitted.items()],
    )
    errors = table(("row", "error"), [(key, f"{100 * error:+.1f} %") for key, error in fit.errors.items()])
    verdict = "equal to" if fit.agrees else "DIFFERENT from"
    return (
        f"{constants}\n\n{errors}\n\nafter {fit.rounds} rounds the fit is {verdict} the committed constants"
    )


def numbers_document(spec: Spec) -> dict[str, Any]:
    """Every number of *spec*, for machines."""
    return {"numbers": [_number_fields(number) for number in spec.numbers()]}


def numbers_table(spec: Spec) -> str:
    """Every number of *spec*, by origin: path, value, unit, source, and the range of an assumed one."""
    rows = []
    for fields in (_number_fields(number) for number in spec.numbers()):
        span = "" if fields["low"] is None else f" [{fields['low']} .. {fields['high']}]"
        targets = f" <- {', '.join(fields['targets'])}" if fields["targets"] else ""
        rows.append(
            (
                fields["path"],
                str(fields["value"]),
                fields["unit"],
                fields["origin"],
                f"{fields['source']}{span}{targets}",
            )
        )
    return table(("number", "value", "unit", "origin", "source"), rows, left=5)


def _number_fields(number: Number) -> dict[str, Any]:
    given = number.given
    return {
        "path": number.path,
        "value": number.value,
        "unit": number.unit,
        "origin": given.origin.value if given else "specified",
        "source": given.source if given else "the workload's command or the configuration",
        "low": given.low if given else None,
        "high": given.high if given else None,
        "targets": list(given.targets) if given else [],
    }
