"""The figures of a run: each with its unit, and how it is read off an outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from wbsim.experiments.running.outcome import Outcome, Sample
from wbsim.sim.units import KIB, MIB, SECTOR_BYTES, S


class Figure(NamedTuple):
    """A number of a run, in *unit*: of the whole run and, where it has any, of the time from one iteration's
    end to the next.  One that ``grows`` with the experiment says nothing of a smaller one.
    """

    unit: str
    meaning: str
    whole: Callable[[Outcome], float]
    iteration: Callable[[Sample, Sample], float] | None = None
    grows: bool = False


def _per_s(amount: float, before: Sample, after: Sample) -> float:
    return amount * S / (after.end_ns - before.end_ns)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _ios(outcome: Outcome) -> int:
    return sum(disk.ios for disk in outcome.disks.values())


def _bytes(outcome: Outcome) -> int:
    return sum(disk.sectors for disk in outcome.disks.values()) * SECTOR_BYTES


def _in_kernel_ns(outcome: Outcome) -> int:
    """Of all threads, until the run's end; spinning, too."""
    lives = outcome.lives.values()
    return sum(ns for life in lives for cause, ns in life.items() if cause.startswith(("system", "spinning")))


def _waiting(outcome: Outcome) -> float:
    """Waiting in the part that was simulated, for each of its files, times their rate."""
    waits_s = sum(lock["wait_ns"] for lock in outcome.locks.values()) / S
    simulated = outcome.files - sum(program.reckoned_files for program in outcome.programs.values())
    return _share(waits_s, simulated) * _share(outcome.files, outcome.wall_time)


FIGURES: Final[dict[str, Figure]] = {
    "wall_time": Figure(
        "s",
        "until the last program ended",
        lambda o: o.wall_time,
        lambda a, b: (b.end_ns - a.end_ns) / S,
        grows=True,
    ),
    "system_cpu_time": Figure(
        "s",
        "the programs' time in the kernel",
        lambda o: o.system_cpu_time,
        lambda a, b: (b.system_ns - a.system_ns) / S,
        grows=True,
    ),
    "user_cpu_time": Figure("s", "the programs' own time", lambda o: o.user_cpu_time, grows=True),
    "file_count": Figure("1", "files that were made, or operated on", lambda o: o.files, grows=True),
    "file_rate": Figure("1/s", "files a second of wall time", lambda o: _share(o.files, o.wall_time)),
    "create_rate": Figure(
        "1/s",
        "the mean of what fs_mark prints as Files/sec",
        lambda o: o.create_rate,
        lambda a, b: b.files_per_sec,
    ),
    "write_iops": Figure(
        "1/s",
        "write requests a second, as iostat's w/s",
        lambda o: o.write_iops,
        lambda a, b: _per_s(b.ios - a.ios, a, b),
    ),
    "write_bandwidth": Figure(
        "MB/s",
        "written to disks, as iostat's wMB/s",
        lambda o: o.write_bandwidth / 1e6,
        lambda a, b: _per_s((b.sectors - a.sectors) * SECTOR_BYTES / 1e6, a, b),
    ),
    "request_size": Figure(
        "KiB",
        "mean write request, as iostat's wareq-sz",
        lambda o: _share(_bytes(o) / KIB, _ios(o)),
        lambda a, b: _share((b.sectors - a.sectors) * SECTOR_BYTES / KIB, b.ios - a.ios),
    ),
    "merged": Figure(
        "%",
        "bios that went into another's request, as iostat's wrqm",
        lambda o: 100 * _share(o.merges, o.merges + _ios(o)),
    ),
    "utilisation": Figure(
        "%",
        "the busiest disk had something to do, as iostat's %util",
        lambda o: 100 * _share(max((disk.busy_time for disk in o.disks.values()), default=0.0), o.wall_time),
    ),
    "system_cpu": Figure(
        "us/MB",
        "the programs' time in the kernel for what went to disks",
        lambda o: _share(o.system_cpu_time * 1e6, _bytes(o) / 1e6),
    ),
    "kernel_cpu": Figure(
        "us/MB",
        "all threads' time in the kernel, until the run's end, for what files hold",
        lambda o: _share(_in_kernel_ns(o) / 1e3, o.file_bytes / 1e6),
    ),
    "file_bandwidth": Figure(
        "MB/s", "what files hold, a second of wall time", lambda o: o.file_bytes / o.wall_time / 1e6
    ),
    "extent_count": Figure(
        "1", "extents of all files that are kept page by page", lambda o: sum(o.extents), grows=True
    ),
    "extents_per_file": Figure(
        "1", "extents of such a file", lambda o: _share(sum(o.extents), len(o.extents)), grows=True
    ),
    "mean_extent": Figure(
        "KiB", "mean size of an extent", lambda o: _share(o.file_bytes / KIB, sum(o.extents))
    ),
    "log_size": Figure("MiB", "written to the filesystems' logs", lambda o: o.log_bytes / MIB, grows=True),
    "flusher_spin_time": Figure("s", "flushers spun for locks", lambda o: o.flusher_spin_time, grows=True),
    "lock_wait_time": Figure(
        "s",
        "all threads waited for locks",
        lambda o: sum(of["wait_ns"] for of in o.locks.values()) / S,
        grows=True,
    ),
    "waiting_processors": Figure("1", "processors that wait for locks", _waiting),
    "system_processors": Figure(
        "1",
        "processors that the programs used in the kernel",
        lambda o: _share(o.system_cpu_time, o.wall_time),
    ),
}
"""By name."""

_SUFFIXES: Final = {"1": "", "1/s": "_per_s", "MB/s": "_mb_per_s", "%": "_percent"}


def column_of(name: str) -> str:
    """The column of a figure in the tidy dataset: its name with its unit."""
    unit = FIGURES[name].unit
    return name + _SUFFIXES.get(unit, f"_{unit.lower()}")


COLUMNS: Final = {name: column_of(name) for name in FIGURES}
"""The columns of all figures."""
