"""The result of one run: what was read from the machine, and how its threads spent their time.

`experiments.results.figures` computes the figures from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wbsim.experiments.config.sweeps import Point
from wbsim.models.syscalls.latency import percentile

Readings = dict[str, float]
"""Numbers that were read from the machine at one moment, by the name of their figure."""
Levels = dict[str, tuple[float, ...]]
"""The levels by name; each has a value for each sample.

* ``time_ns``: the time of the sample.
* Each figure that is read from the machine, in its unit.
* ``NAME ios`` and ``NAME sectors`` of completed writes, ``NAME reads``, and ``NAME busy_ns`` until then.
* ``NAME write_wait_ns`` and ``NAME read_wait_ns``: the summed waits of completed requests until then.
* ``NAME queued``: the requests in the elevator and the driver.
"""


def disks_with_requests(levels: Levels, disks: Iterable[str]) -> list[str]:
    """Return the *disks* that completed requests until the last sample; without any, all disks.

    *levels* must have a sample.
    """
    busy = [name for name in disks if levels[f"{name} ios"][-1] or levels[f"{name} reads"][-1]]
    return busy or list(disks)


Lives = dict[str, dict[str, int]]
"""The time of each thread (ns), by its name, then by state and cause ("system allocate")."""


PAUSES_OF: Final = "pauses of "
START_OF: Final = "start of "


@dataclass(frozen=True)
class Sample:
    """The cumulative counters at the end of one iteration of *program*.

    ``files_per_sec``, ``app_overhead_us``, ``count`` and ``system_ns`` are the program's.  The others are
    sums over all disks, where ``ios``, ``merges``, ``sectors`` and ``write_wait_ns`` count writes.
    ``readings``: see `Readings`.
    """

    program: str
    end_ns: int
    files_per_sec: float
    app_overhead_us: int
    count: int
    system_ns: int
    ios: int
    merges: int
    sectors: int
    write_wait_ns: int
    reads: int
    read_wait_ns: int
    readings: Readings


PERCENTILES: Final = ("50", "90", "99", "99.9")


@dataclass(frozen=True)
class SlowestCalls:
    """The *calls* slowest calls, which took *from_ns* or longer, and *total_ns* together (ns).

    ``waits_ns``: their waits, the longest sum first.  All waits of a call count for the cause of the longest
    of them.  The rest of the time is work.
    """

    calls: int
    from_ns: int
    total_ns: int
    waits_ns: dict[str, int]


@dataclass(frozen=True)
class CallResult:
    """The latencies of the system calls of one kind of a program, until the run ended (ns).

    ``percentiles_ns``: by `PERCENTILES`.  ``bins_ns``: the number of calls by the middle of fio's bin.
    ``slowest``: the calls of the longest octaves; an octave is from one power of two (ns) to the next.  These
    are at most 1 % of all calls, unless the longest octave alone has more.  Calls for files that were not
    simulated (`ProgramResult.reckoned_files`) are left out.
    """

    count: int
    mean_ns: float
    min_ns: int
    max_ns: int
    percentiles_ns: dict[str, int]
    bins_ns: dict[int, int]
    slowest: SlowestCalls


def percentiles_of(bins: Mapping[int, int], min_ns: int, max_ns: int) -> dict[str, int]:
    """Return the `PERCENTILES` (ns) of the calls of *bins*, the number of calls by latency (ns).

    The keys are texts, such as "99.9".  There is at least one call.  Each percentile is at least *min_ns* and
    at most *max_ns*, the shortest and the longest call.
    """
    return {percent: min(max(percentile(bins, float(percent)), min_ns), max_ns) for percent in PERCENTILES}


@dataclass(frozen=True)
class JobResult:
    """The result of one job of a program, which all processes with its name did together.

    * ``time``: from the begin of its first process until the end of its last (s), without the start of fio.
    * ``files``, ``bytes`` and ``writes``: the files that it wrote to, and what it wrote.
    * ``bandwidth`` (B/s) and ``iops`` (1/s): bytes and writes for each second of ``time``, or None if
      ``time`` is 0.
    * ``system_cpu_time`` and ``user_cpu_time``: the processor time of its processes (s).
    * ``calls``: a `CallResult` for each kind of system call.
    """

    time: float
    files: int
    bytes: int
    writes: int
    bandwidth: float | None
    iops: float | None
    system_cpu_time: float
    user_cpu_time: float
    calls: dict[str, CallResult] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ProgramResult:
    """The result of one program; times in s, from its start to its last iteration.

    ``reckoned_files`` files were not simulated, because the pace was steady.  The times include them.
    ``calls``: a `CallResult` for each kind of system call, such as ``write``.  ``failed``: for each error,
    such as a full filesystem, the number of processes that it ended.  ``jobs``: a `JobResult` for each job of
    fio, by its name.
    """

    wall_time: float
    system_cpu_time: float
    user_cpu_time: float
    files: int
    file_bytes: int
    reckoned_files: int
    calls: dict[str, CallResult] = field(default_factory=dict, repr=False)
    failed: dict[str, int] = field(default_factory=dict)
    jobs: dict[str, JobResult] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class DiskResult:
    """Counters of one disk since the run began, as iostat has them.

    ``ios``, ``merges`` and ``sectors`` count writes.  ``busy_time`` (s): a request was in the queue or in the
    driver.  ``r_await`` and ``w_await`` (ms): the mean wait of a read and of a write; None without requests.
    A wait begins when the request is made, so the time in a plug counts.
    """

    ios: int
    merges: int
    sectors: int
    busy_time: float
    reads: int
    r_await: float | None
    w_await: float | None


@dataclass(frozen=True)
class MountResult:
    """Files on one filesystem after the run.

    ``extents``: the number of extents of each file whose pages are kept one by one; 0 before its first
    allocation.  ``extent_bytes``: allocated bytes of these files.  Every other file lies in one extent.
    """

    log_bytes: int
    extent_bytes: int
    extents: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """Figures of one run: times in s, rates per s, ``locks`` by name as in /proc/lock_stat (ns).

    Totals come first, then results by program, disk and mount.  A mean or a rate without a denominator is
    None.  The representation leaves out the long fields, from ``locks`` to ``levels``.

    * ``variant``, ``point``, ``seed`` and ``replication``: the run; see `wbsim.experiments.config.case.Case`.
    * ``wall_time``: until the last program ended.  Rates and ``disks`` are as of this time.
    * ``on_disk_time``: until the sync(2) after the last program returned; None if no sync(2) followed.
    * ``disks_at_end``: the counters of the disks when the run ended, which is the time of ``on_disk_time``.
    * ``readings``: see `Readings`; when the run ended.
    * ``system_cpu_time`` and ``user_cpu_time``: the programs' processor time in the kernel, and their own.
    * ``create_rate``: the mean of the rates that fs_mark prints.
    * ``files``: the number of files made, read or removed; ``file_bytes``: the size of all files together.
    * ``write_iops``: write requests a second; ``write_bandwidth``: bytes a second; both of all disks.
    * ``extents``: see `MountResult`; of all mounts.
    * ``programs``, ``disks`` and ``mounts``: a `ProgramResult`, `DiskResult` or `MountResult` by name.
    * ``samples``: a `Sample` for each iteration of each program.
    * ``lives``, ``uses`` and ``levels``: see `Lives`, `uses_of` and `Levels`.
    * ``cpu_s`` and ``peak_rss_mib``: the cost of the simulation.  Every other figure is the same on any
      machine.

    Example:
        >>> import wbsim
        >>> (outcome,) = wbsim.load("question.toml").set({"workload.loops": 2}).run().outcomes
        >>> outcome.files
        4000
        >>> outcome.programs["fs_mark"].wall_time == outcome.wall_time
        True
    """

    variant: str
    point: Point
    seed: int
    replication: int
    wall_time: float
    on_disk_time: float | None
    system_cpu_time: float
    user_cpu_time: float
    files: int
    create_rate: float | None
    write_iops: float | None
    write_bandwidth: float | None
    file_bytes: int
    extents: tuple[int, ...]
    programs: dict[str, ProgramResult]
    disks: dict[str, DiskResult]
    disks_at_end: dict[str, DiskResult]
    mounts: dict[str, MountResult]
    readings: Readings = field(repr=False)
    locks: dict[str, dict[str, int]] = field(repr=False)
    lives: Lives = field(repr=False)
    uses: dict[str, float] = field(repr=False)
    samples: tuple[Sample, ...] = field(repr=False)
    levels: Levels = field(repr=False)
    cpu_s: float = 0.0
    peak_rss_mib: float = 0.0
