"""The figures of a run: each with its unit, and how it is computed from an outcome or read from the machine.

A figure whose denominator is 0, such as the mean of no requests, is unknown: nan.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import nan
from statistics import fmean
from typing import Final

from wbsim.experiments.results.outcome import (
    PERCENTILES,
    CallResult,
    DiskResult,
    Outcome,
    Sample,
    percentiles_of,
)
from wbsim.models.machine import Machine
from wbsim.models.syscalls.latency import merge_bins
from wbsim.models.time_accounting import CONGESTION, THROTTLED
from wbsim.sim.units import KIB, MIB, MS, PAGE_BYTES, SECTOR_BYTES, US, S


@dataclass(frozen=True)
class Figure:
    """A number of a run, in ``unit``; ``meaning`` says in a few words what it is.

    A figure is either computed or read from the machine.

    * ``total`` computes it from the outcome of a run, and ``per_iteration`` from the ends of two iterations.
    * ``reads`` reads it from the machine, at any moment.  So it is also a level over time.  The complete run
      has the mean of the samples until the last program ended (`running.reading` has their step).  A run
      without samples has the last reading.  ``counts``: it only grows from 0.  Then the run has the number
      when the last program ended, and an iteration has the difference.

    ``grows``: the figure grows with the size of the experiment, so it must not be compared with that of a
    smaller experiment.  ``until_end``: the figure covers the sync(2) that may follow the programs.  Then a
    figure with ``reads`` has the reading at the end of the run instead of a mean.
    ``gains``: more of the figure is better, so a line of it can have a knee.  Write requests a second are
    not: a merge lowers their number, and is a gain.
    """

    name: str
    unit: str
    meaning: str
    total: Callable[[Outcome], float] | None = None
    per_iteration: Callable[[Sample, Sample], float] | None = None
    reads: Callable[[Machine], float] | None = None
    counts: bool = False
    grows: bool = False
    until_end: bool = False
    gains: bool = False

    def whole(self, outcome: Outcome) -> float:
        """Return the figure of the complete run of *outcome*, in its unit; nan if it is unknown."""
        if self.total is not None:
            return self.total(outcome)
        if self.until_end:
            return outcome.readings[self.name]
        ends_s = [ns / S for ns in outcome.levels["time_ns"]]
        levels = [] if self.counts else list(outcome.levels[self.name])
        values = levels[: bisect_right(ends_s, outcome.wall_time)]
        return fmean(values) if values else outcome.samples[-1].readings[self.name]

    @property
    def iteration(self) -> Callable[[Sample, Sample], float] | None:
        """The function that computes the figure between the ends of two iterations; None if there is none.

        The function takes the earlier and the later `Sample`, and returns nan if the figure is unknown.  A
        figure with ``reads`` has the later reading, or with ``counts`` the difference of both readings.
        """
        if self.reads is None:
            return self.per_iteration
        name, counts = self.name, self.counts
        return lambda a, b: b.readings[name] - (a.readings[name] if counts else 0)

    @property
    def heading(self) -> str:
        """The heading of the figure in a table: its name and its unit, such as "wall_time s".

        The unit "1" is left out.
        """
        return self.name if self.unit == "1" else f"{self.name} {self.unit}"

    @property
    def column(self) -> str:
        """The column of the figure in the tidy dataset: its name with its unit, such as "wall_time_s".

        The unit "1" is left out, and "1/s" is written as in "write_iops_per_s".
        """
        return self.name + _SUFFIXES.get(self.unit, f"_{self.unit.lower()}")


_SUFFIXES: Final = {"1": "", "1/s": "_per_s", "MB/s": "_mb_per_s", "%": "_percent"}


def _per_s(amount: float, earlier: Sample, later: Sample) -> float:
    return amount * S / (later.end_ns - earlier.end_ns)


def share(part: float, whole: float) -> float:
    """Return *part* / *whole*, or nan if *whole* is 0."""
    return part / whole if whole else nan


def number_or_nan(value: float | None) -> float:
    """Return *value*, or nan for None."""
    return nan if value is None else value


def all_disks(disks: Iterable[DiskResult]) -> DiskResult:
    """Return the sums of the counters of *disks*, the busy time of the busiest disk, and the mean waits.

    The mean waits (ms) are weighted by the requests, and None without requests.
    """
    results = list(disks)
    ios, reads = sum(disk.ios for disk in results), sum(disk.reads for disk in results)
    read_ms = sum(disk.reads * disk.r_await for disk in results if disk.r_await is not None)
    write_ms = sum(disk.ios * disk.w_await for disk in results if disk.w_await is not None)
    return DiskResult(
        ios=ios,
        merges=sum(disk.merges for disk in results),
        sectors=sum(disk.sectors for disk in results),
        busy_time=max((disk.busy_time for disk in results), default=0.0),
        reads=reads,
        r_await=read_ms / reads if reads else None,
        w_await=write_ms / ios if ios else None,
    )


def request_kib(disk: DiskResult) -> float:
    """Return the mean size of a write request (KiB), as iostat's wareq-sz; nan without requests."""
    return share(disk.sectors * SECTOR_BYTES / KIB, disk.ios)


def merged_percent(disk: DiskResult) -> float:
    """Return the share of bios that joined a request (%), as iostat's wrqm; nan without bios."""
    return 100 * share(disk.merges, disk.merges + disk.ios)


def _of_disks(outcome: Outcome) -> DiskResult:
    """Return the counters of all disks when the last program ended."""
    return all_disks(outcome.disks.values())


def _on_disk(measure: Callable[[DiskResult, float], float]) -> Callable[[Outcome], float]:
    """Return a function that computes *measure* from the counters and the time when all data was on disk."""

    def whole(outcome: Outcome) -> float:
        if outcome.on_disk_time is None:
            return nan
        return measure(all_disks(outcome.disks_at_end.values()), outcome.on_disk_time)

    return whole


def allocated_files(outcome: Outcome) -> int:
    """Return the number of files with an extent, among the files whose pages the model keeps one by one."""
    return sum(extents > 0 for extents in outcome.extents)


def extent_bytes(outcome: Outcome) -> int:
    """Return the allocated bytes of the files whose pages the model keeps one by one, on all mounts."""
    return sum(mount.extent_bytes for mount in outcome.mounts.values())


def _in_kernel_ns(outcome: Outcome) -> int:
    """Return the time of all threads in the kernel until the end of the run, including spinning."""
    lives = outcome.lives.values()
    return sum(ns for life in lives for cause, ns in life.items() if cause.startswith(("system", "spinning")))


def _waiters(outcome: Outcome) -> float:
    """Return the mean number of threads that wait for locks.

    This is the wait for locks per simulated file, times the rate of all files.
    """
    waits_s = sum(lock["wait_ns"] for lock in outcome.locks.values()) / S
    simulated = outcome.files - sum(program.reckoned_files for program in outcome.programs.values())
    return share(waits_s, simulated) * share(outcome.files, outcome.wall_time)


def _mib(pages: int) -> float:
    return pages * PAGE_BYTES / MIB


def _calls(outcome: Outcome, call: str) -> list[CallResult]:
    """Return the calls of one kind of each program that made any."""
    return [program.calls[call] for program in outcome.programs.values() if call in program.calls]


def _mean_latency_us(outcome: Outcome, call: str) -> float:
    results = _calls(outcome, call)
    return share(
        sum(calls.mean_ns * calls.count for calls in results) / US, sum(calls.count for calls in results)
    )


def _longest_us(outcome: Outcome, call: str) -> float:
    return max((calls.max_ns / US for calls in _calls(outcome, call)), default=nan)


def _percentile_us(outcome: Outcome, call: str, percent: str) -> float:
    results = _calls(outcome, call)
    if not results:
        return nan
    bins = merge_bins(calls.bins_ns for calls in results)
    ends = min(calls.min_ns for calls in results), max(calls.max_ns for calls in results)
    return percentiles_of(bins, *ends)[percent] / US


def _latency_figures(call: str) -> Iterator[Figure]:
    """Yield the mean, the percentiles and the maximum of the latencies of *call*, over all programs."""
    yield Figure(
        f"{call}_latency",
        "us",
        f"mean latency of {call}(2)",
        lambda o: _mean_latency_us(o, call),
        until_end=True,
    )
    for percent in PERCENTILES:
        yield Figure(
            f"{call}_latency_p{percent.replace('.', '_')}",
            "us",
            f"latency of {call}(2) that {percent} % of the calls do not exceed",
            lambda o, percent=percent: _percentile_us(o, call, percent),  # type: ignore[misc]
            until_end=True,
        )
    yield Figure(
        f"{call}_latency_max",
        "us",
        f"longest latency of {call}(2)",
        lambda o: _longest_us(o, call),
        grows=True,
        until_end=True,
    )


def _throttled_threads(machine: Machine) -> int:
    """Return the number of threads of programs that the throttle holds back."""
    tasks = [thread.task for thread in machine.threads]
    return sum(task.waits_for in (THROTTLED, CONGESTION) for task in tasks if task.seated)


def _flushed_mib(machine: Machine) -> float:
    return _mib(sum(wb.flushed_pages for wb in machine.cache.wbs))


def _flushed_files(machine: Machine) -> int:
    return sum(wb.flushed_inodes for wb in machine.cache.wbs)


def _programmed_mb(machine: Machine) -> float:
    return sum(queue.programmed_bytes() for queue in machine.queues.values()) / 1e6


def _amplification(programmed_mb: float, sectors: int) -> float:
    """Return what flash programs for each written byte; nan without flash."""
    return share(programmed_mb * 1e6, sectors * SECTOR_BYTES) or nan


_FIGURES: Final = (
    Figure(
        "wall_time",
        "s",
        "time until the last program ends",
        lambda o: o.wall_time,
        lambda a, b: (b.end_ns - a.end_ns) / S,
        grows=True,
    ),
    Figure(
        "on_disk_time",
        "s",
        "time until the sync(2) after the last program returns",
        lambda o: number_or_nan(o.on_disk_time),
        grows=True,
        until_end=True,
    ),
    Figure(
        "system_cpu_time",
        "s",
        "processor time of the programs in the kernel",
        lambda o: o.system_cpu_time,
        lambda a, b: (b.system_ns - a.system_ns) / S,
        grows=True,
    ),
    Figure(
        "user_cpu_time",
        "s",
        "processor time of the programs outside of the kernel",
        lambda o: o.user_cpu_time,
        grows=True,
    ),
    Figure(
        "file_count",
        "1",
        "number of files that the programs made, read or removed",
        lambda o: o.files,
        grows=True,
    ),
    Figure(
        "file_rate", "1/s", "files per second of wall time", lambda o: share(o.files, o.wall_time), gains=True
    ),
    Figure(
        "create_rate",
        "1/s",
        "mean of the Files/sec that fs_mark prints",
        lambda o: number_or_nan(o.create_rate),
        lambda a, b: b.files_per_sec,
        gains=True,
    ),
    Figure(
        "write_iops",
        "1/s",
        "write requests per second of wall time (w/s of iostat)",
        lambda o: number_or_nan(o.write_iops),
        lambda a, b: _per_s(b.ios - a.ios, a, b),
    ),
    Figure(
        "write_bandwidth",
        "MB/s",
        "rate of writing to all disks over the wall time (wMB/s of iostat)",
        lambda o: number_or_nan(o.write_bandwidth) / 1e6,
        lambda a, b: _per_s((b.sectors - a.sectors) * SECTOR_BYTES / 1e6, a, b),
        gains=True,
    ),
    Figure(
        "read_iops",
        "1/s",
        "read requests per second of wall time, such as those for the parity of an array (r/s of iostat)",
        lambda o: share(_of_disks(o).reads, o.wall_time),
        lambda a, b: _per_s(b.reads - a.reads, a, b),
        gains=True,
    ),
    Figure(
        "request_size",
        "KiB",
        "mean size of a write request (wareq-sz of iostat)",
        lambda o: request_kib(_of_disks(o)),
        lambda a, b: share((b.sectors - a.sectors) * SECTOR_BYTES / KIB, b.ios - a.ios),
    ),
    Figure(
        "merged",
        "%",
        "share of bios that joined an existing request (%wrqm of iostat)",
        lambda o: merged_percent(_of_disks(o)),
    ),
    Figure(
        "utilisation",
        "%",
        "share of the wall time in which the busiest disk had a request (%util of iostat)",
        lambda o: 100 * share(_of_disks(o).busy_time, o.wall_time),
    ),
    Figure(
        "w_await",
        "ms",
        "mean time from the making of a write request to its completion (w_await of iostat)",
        lambda o: number_or_nan(_of_disks(o).w_await),
        lambda a, b: share((b.write_wait_ns - a.write_wait_ns) / MS, b.ios - a.ios),
    ),
    Figure(
        "r_await",
        "ms",
        "mean time from the making of a read request to its completion (r_await of iostat)",
        lambda o: number_or_nan(_of_disks(o).r_await),
        lambda a, b: share((b.read_wait_ns - a.read_wait_ns) / MS, b.reads - a.reads),
    ),
    Figure(
        "system_cpu",
        "us/MB",
        "processor time of the programs in the kernel per MB written to disks",
        lambda o: share(o.system_cpu_time * 1e6, _of_disks(o).sectors * SECTOR_BYTES / 1e6),
    ),
    Figure(
        "kernel_cpu",
        "us/MB",
        "processor time of all threads in the kernel until the run ends, per MB of file data",
        lambda o: share(_in_kernel_ns(o) / 1e3, o.file_bytes / 1e6),
        until_end=True,
    ),
    Figure(
        "file_bandwidth",
        "MB/s",
        "file data per second of wall time",
        lambda o: share(o.file_bytes / 1e6, o.wall_time),
        gains=True,
    ),
    Figure(
        "extent_count",
        "1",
        "number of extents of the files that the model keeps page by page",
        lambda o: sum(o.extents),
        grows=True,
        until_end=True,
    ),
    Figure(
        "extents_per_file",
        "1",
        "mean number of extents of a file that the model keeps page by page and that has a block",
        lambda o: share(sum(o.extents), allocated_files(o)),
        grows=True,
        until_end=True,
    ),
    Figure(
        "mean_extent",
        "KiB",
        "mean size of an extent",
        lambda o: share(extent_bytes(o) / KIB, sum(o.extents)),
        until_end=True,
    ),
    Figure(
        "log_size",
        "MiB",
        "size of the writes to the logs of the filesystems",
        lambda o: sum(mount.log_bytes for mount in o.mounts.values()) / MIB,
        grows=True,
        until_end=True,
    ),
    Figure("dirty", "MiB", "mean memory that is dirty", reads=lambda m: _mib(m.cache.dirty)),
    Figure("writeback", "MiB", "mean memory under writeback", reads=lambda m: _mib(m.cache.writeback)),
    Figure(
        "background",
        "MiB",
        "mean background threshold",
        reads=lambda m: _mib(m.cache.thresholds().background),
    ),
    Figure("limit", "MiB", "mean limit of dirty memory", reads=lambda m: _mib(m.cache.thresholds().limit)),
    Figure("flushers", "1", "mean number of flushers", reads=lambda m: m.flushers.alive),
    Figure(
        "held_writers",
        "1",
        "mean number of threads of programs that the throttle holds",
        reads=_throttled_threads,
    ),
    Figure(
        "flusher_spin_time",
        "s",
        "time for which the flushers spin for locks",
        reads=lambda m: sum(thread.task.spin_ns for thread in m.flushers.threads) / S,
        counts=True,
        grows=True,
        until_end=True,
    ),
    Figure(
        "lock_wait_time",
        "s",
        "time for which all threads wait for locks",
        lambda o: sum(lock["wait_ns"] for lock in o.locks.values()) / S,
        grows=True,
        until_end=True,
    ),
    Figure("waiting_processors", "1", "mean number of threads that wait for locks", _waiters, until_end=True),
    Figure(
        "system_processors",
        "1",
        "mean number of processors that the programs use in the kernel",
        lambda o: share(o.system_cpu_time, o.wall_time),
    ),
    Figure(
        "on_disk_requests",
        "1",
        "number of write requests until on_disk_time",
        _on_disk(lambda disk, _: disk.ios),
        grows=True,
        until_end=True,
    ),
    Figure(
        "on_disk_size",
        "MB",
        "size of the writes to all disks until on_disk_time",
        _on_disk(lambda disk, _: disk.sectors * SECTOR_BYTES / 1e6),
        grows=True,
        until_end=True,
    ),
    Figure(
        "on_disk_iops",
        "1/s",
        "write requests per second until on_disk_time",
        _on_disk(lambda disk, s: share(disk.ios, s)),
        until_end=True,
    ),
    Figure(
        "on_disk_bandwidth",
        "MB/s",
        "rate of writing to all disks until on_disk_time",
        _on_disk(lambda disk, s: share(disk.sectors * SECTOR_BYTES / 1e6, s)),
        until_end=True,
        gains=True,
    ),
    Figure(
        "on_disk_request_size",
        "KiB",
        "mean size of a write request until on_disk_time",
        _on_disk(lambda disk, _: request_kib(disk)),
        until_end=True,
    ),
    Figure(
        "on_disk_merged",
        "%",
        "share of bios that joined an existing request until on_disk_time",
        _on_disk(lambda disk, _: merged_percent(disk)),
        until_end=True,
    ),
    Figure(
        "on_disk_w_await",
        "ms",
        "mean time from the making of a write request to its completion, until on_disk_time",
        _on_disk(lambda disk, _: number_or_nan(disk.w_await)),
        until_end=True,
    ),
    Figure(
        "dirty_at_end",
        "MiB",
        "size of the pages that are dirty or under writeback when the run ends",
        reads=lambda m: _mib(m.cache.dirty_and_writeback),
        grows=True,
        until_end=True,
    ),
    Figure(
        "written_back",
        "MiB",
        "size of the pages that were written back",
        reads=lambda m: _mib(m.cache.written_pages),
        counts=True,
        grows=True,
    ),
    Figure(
        "flushed",
        "MiB",
        "size of the pages that flushers wrote back",
        reads=_flushed_mib,
        counts=True,
        grows=True,
        until_end=True,
    ),
    Figure(
        "flushed_files",
        "1",
        "number of times that a flusher left a file clean",
        reads=_flushed_files,
        counts=True,
        grows=True,
        until_end=True,
    ),
    Figure(
        "flash_written",
        "MB",
        "what the flash of all drives programs, with pages that it moves",
        reads=_programmed_mb,
        counts=True,
        grows=True,
    ),
    Figure(
        "write_amplification",
        "1",
        "what flash programs for each byte that is written to disks, over the wall time",
        lambda o: _amplification(o.samples[-1].readings["flash_written"], o.samples[-1].sectors),
        lambda a, b: _amplification(
            b.readings["flash_written"] - a.readings["flash_written"], b.sectors - a.sectors
        ),
    ),
    *_latency_figures("creat"),
    *_latency_figures("write"),
    *_latency_figures("fsync"),
)
FIGURES: Final[dict[str, Figure]] = {}
"""The figures by name."""
READ: Final[dict[str, Callable[[Machine], float]]] = {}
"""The functions that read a figure from the machine, by the name of the figure."""
COLUMNS: Final[dict[str, str]] = {}
"""The columns of all figures, by the name of the figure."""


def add(figure: Figure) -> None:
    """Add *figure* to `FIGURES`, `COLUMNS` and `READ`: every later run, table, picture and dataset has it.

    Its name and its column must differ from those of other figures: a figure of the same name is replaced.
    """
    FIGURES[figure.name] = figure
    COLUMNS[figure.name] = figure.column
    if figure.reads is not None:
        READ[figure.name] = figure.reads


for _figure in _FIGURES:
    add(_figure)


def wholes_of(names: Iterable[str], outcome: Outcome) -> list[float]:
    """Return the figures *names* of a complete run, in their order and units; nan: the figure is unknown."""
    return [FIGURES[name].whole(outcome) for name in names]
