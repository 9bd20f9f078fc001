"""The measurements of one run: its figures, its levels over time, and how its threads spent their time.

Levels are samples of dirty pages, pages under writeback and the counters of disks, at equal steps.  A step is
10 ms at first.  When there are `MOST` samples, every second one is dropped and the step doubles.  So a long
run has between half of `MOST` and `MOST` samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Final

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.sweeps import Point
from wbsim.models.block.queue import Queue, RequestStats
from wbsim.models.interfaces import Filesystem
from wbsim.models.machine import Machine
from wbsim.models.syscalls.latency import Latency, percentile
from wbsim.models.time_accounting import CONGESTION, THROTTLED, life_of
from wbsim.sim.sync import LockClass
from wbsim.sim.units import MS, PAGE_BYTES, SECTOR_BYTES, S

FIRST_STEP_NS: Final = 10 * MS
MOST: Final = 512
_HELD: Final = (THROTTLED, CONGESTION)
_OF_ALL: Final = (
    "time_ns", "dirty_pages", "writeback_pages", "background_pages", "limit_pages", "flushers", "held",
)  # fmt: skip
_OF_DISK: Final = ("ios", "sectors", "busy_ns", "queued", "write_wait_ns", "reads", "read_wait_ns")
Levels = dict[str, tuple[int, ...]]
"""The levels by name; each has a value for each sample.

* ``time_ns``: the time of the sample.
* ``dirty_pages`` and ``writeback_pages``, the thresholds ``background_pages`` and ``limit_pages``.
* ``flushers``: their number; ``held``: the threads of programs that the throttle holds back.
* ``NAME ios`` and ``NAME sectors`` of completed writes, ``NAME reads``, and ``NAME busy_ns`` until then.
* ``NAME write_wait_ns`` and ``NAME read_wait_ns``: the summed waits of completed requests until then.
* ``NAME queued``: the requests in the elevator and the driver.
"""


def level_names(disks: Iterable[str]) -> list[str]:
    """Return the names of all levels of a machine with these *disks*."""
    return [*_OF_ALL, *(f"{name} {what}" for name in disks for what in _OF_DISK)]


def disks_with_requests(levels: Levels, disks: Iterable[str]) -> list[str]:
    """Return the *disks* that completed requests until the last sample; without any, all disks."""
    busy = [name for name in disks if levels[f"{name} ios"][-1] or levels[f"{name} reads"][-1]]
    return busy or list(disks)


class Sampler:
    """Samples a machine while it runs, which does not change the run."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._step_ns = FIRST_STEP_NS
        self._rows: list[tuple[int, ...]] = []
        machine.watch(lambda: self._step_ns, self._look)

    def _look(self) -> None:
        self._rows.append(self._row())
        if len(self._rows) == MOST:
            self._rows = self._rows[1::2]
            self._step_ns *= 2

    def _row(self) -> tuple[int, ...]:
        machine = self._machine
        dirty = machine.cache.dirty
        disks = [level for queue in machine.queues.values() for level in _of_disk(queue)]
        writeback, thresholds = machine.cache.dirty_and_writeback - dirty, machine.cache.thresholds()
        held = sum(thread.task.waits_for in _HELD for thread in machine.threads if thread.task.seated)
        of_all = dirty, writeback, thresholds.background, thresholds.limit, machine.flushers.alive, held
        return (machine.env.now, *of_all, *disks)

    def levels(self) -> Levels:
        """Return the levels of all samples, by name."""
        names = level_names(self._machine.queues)
        columns = zip(*self._rows, strict=True) if self._rows else [() for _ in names]
        return dict(zip(names, columns, strict=True))


def _of_disk(queue: Queue) -> tuple[int, ...]:
    reads, writes = queue.stat.reads, queue.stat.writes
    queued = queue.waiting + queue.stat.in_flight
    return (
        writes.ios, writes.sectors, queue.busy_ns, queued, writes.wait_ns, reads.ios, reads.wait_ns,
    )  # fmt: skip


Lives = dict[str, dict[str, int]]
"""The time of each thread (ns), by its name, then by state and cause ("system allocate")."""


def lives_of(machine: Machine) -> Lives:
    """Return how every thread spent its time until the end of the run."""
    return {
        thread.task.name: {
            f"{state} {cause}".strip(): ns
            for (state, cause), ns in life_of(thread.task, thread.spent, machine.env.now).items()
        }
        for thread in machine.threads
    }


PAUSES_OF: Final = "pauses of "
START_OF: Final = "start of "


def uses_of(machine: Machine) -> dict[str, float]:
    """Return the utilisation of each resource (0 to 1); the resources that most threads share come first.

    * The start of a program that ends, and the pauses that a program makes by itself (`Spent.paced`), come
      before all resources.
    * All processors together are one resource.  Pauses through which a program spins are no use of it.
    * A lock is in use while it is held or handed over, and a class of locks while its busiest lock is.
    * The parts of a device have the name of its disk.
    * A thread is a resource, because it can use one processor only.  It is in use while it runs, and
      neither spins nor pauses.
    """
    now = machine.env.now
    uses: dict[str, float] = {f"{START_OF}{name}": ns for name, ns in machine.starts.items() if ns}
    paced = {thread.task.name: thread.spent.paced for thread in machine.threads}
    uses.update({f"{PAUSES_OF}{name}": ns for name, ns in paced.items() if ns})
    paused_ns = sum(thread.spent.pause for thread in machine.threads)
    uses["processors"] = (machine.processors.used_ns - paused_ns) / machine.processors.count
    for lock in machine.locks:
        uses[f"lock {lock.name}"] = lock.used_ns if isinstance(lock, LockClass) else lock.stat.used_ns
    for name, queue in machine.queues.items():
        uses.update({f"device {name} {part}": used_ns for part, used_ns in queue.uses().items()})
    for thread in machine.threads:
        ran_ns = machine.processors.ran_ns(thread.task)
        uses[f"thread {thread.task.name}"] = ran_ns - thread.task.spin_ns - thread.spent.pause
    return {name: used_ns / now for name, used_ns in uses.items()}


@dataclass(frozen=True)
class Sample:
    """The cumulative counters at the end of one iteration of *program*.

    ``files_per_sec``, ``app_overhead_us``, ``count`` and ``system_ns`` are the program's.  The others are
    sums over all disks, where ``ios``, ``merges``, ``sectors`` and ``write_wait_ns`` count writes.
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
    ``slowest``: the slowest octaves.  Calls for reckoned files are left out.
    """

    count: int
    mean_ns: float
    min_ns: int
    max_ns: int
    percentiles_ns: dict[str, int]
    bins_ns: dict[int, int]
    slowest: SlowestCalls


def percentiles_of(bins: Mapping[int, int], min_ns: int, max_ns: int) -> dict[str, int]:
    """Return the `PERCENTILES` of the calls of *bins* (ns), none beyond the shortest or the longest call."""
    return {percent: min(max(percentile(bins, float(percent)), min_ns), max_ns) for percent in PERCENTILES}


def call_result(latency: Latency) -> CallResult:
    """Return the figures of the calls of *latency*, of which there is at least one."""
    bins, slowest, count = latency.bins(), latency.slowest(), latency.count
    min_ns, max_ns = int(latency.min_ns), int(latency.max_ns)
    waits = sorted(slowest.waits_ns.items(), key=lambda wait: (-wait[1], wait[0]))
    return CallResult(
        count=count,
        mean_ns=int(latency.total_ns) / count,
        min_ns=min_ns,
        max_ns=max_ns,
        percentiles_ns=percentiles_of(bins, min_ns, max_ns),
        bins_ns=bins,
        slowest=SlowestCalls(slowest.calls, slowest.from_ns, slowest.total_ns, dict(waits)),
    )


@dataclass(frozen=True)
class ProgramResult:
    """The result of one program; times in s, from its start to its last iteration.

    ``reckoned_files`` files were not simulated, because the pace was steady.  The times include them.
    ``calls``: a `CallResult` for each kind of system call, such as ``write``.
    """

    wall_time: float
    system_cpu_time: float
    user_cpu_time: float
    files: int
    file_bytes: int
    reckoned_files: int
    calls: dict[str, CallResult] = field(default_factory=dict, repr=False)


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
    * ``wall_time``: until the last program ended.  Rates, ``merges`` and ``disks`` are as of this time.
    * ``on_disk_time``: until the sync(2) after the last program returned; None if no sync(2) followed.
    * ``disks_at_end``: the counters of the disks when the run ended, which is the time of ``on_disk_time``.
    * ``dirty_bytes``: pages that were dirty or under writeback when the run ended.
    * ``system_cpu_time`` and ``user_cpu_time``: the programs' processor time in the kernel, and their own.
    * ``create_rate``: the mean of the rates that fs_mark prints.
    * ``files``: the number of files made; ``file_bytes``: the size of all files together.
    * ``write_iops``: write requests a second; ``write_bandwidth``: bytes a second; both of all disks.
    * ``merges``: bios that merged with a request; ``log_bytes``: written to the logs of the filesystems.
    * ``extents``: see `MountResult`; of all mounts.
    * ``flushed_files`` and ``flushed_bytes``: written back by flushers; a file counts each time that a
      flusher leaves it clean.
    * ``written_back_bytes``: the pages that were written back when the last program ended.
    * ``flusher_spin_time``: the time for which flushers spun for locks.
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
    merges: int
    log_bytes: int
    file_bytes: int
    extents: tuple[int, ...]
    flushed_files: int
    flushed_bytes: int
    written_back_bytes: int
    flusher_spin_time: float
    programs: dict[str, ProgramResult]
    disks: dict[str, DiskResult]
    disks_at_end: dict[str, DiskResult]
    dirty_bytes: int
    mounts: dict[str, MountResult]
    locks: dict[str, dict[str, int]] = field(repr=False)
    lives: Lives = field(repr=False)
    uses: dict[str, float] = field(repr=False)
    samples: tuple[Sample, ...] = field(repr=False)
    levels: Levels = field(repr=False)
    cpu_s: float = 0.0
    peak_rss_mib: float = 0.0


def outcome_of(
    case: Case,
    seed: int,
    replication: int,
    machine: Machine,
    samples: Sequence[Sample],
    disks: Mapping[str, DiskResult],
    levels: Levels,
    written_back_pages: int,
) -> Outcome:
    """Return the figures of *machine* after its run.

    *samples*, *disks* and *written_back_pages* are the counters until the last program ended.
    """
    last = {sample.program: sample for sample in samples}
    programs = {name: _program_result(case, machine, name, last.get(name)) for name in machine.programs}
    specs = {name: program.workload for name, program in case.scenario.programs.items()}
    mounts = {name: _mount_result(sb.filesystem) for name, sb in machine.mounts.items()}
    wall_s = max(sample.end_ns + machine.programs[sample.program].reckoned.ns for sample in samples) / S
    rates = [sample.files_per_sec for sample in samples if specs[sample.program].total_files]
    return Outcome(
        variant=case.variant,
        point=case.point,
        seed=seed,
        replication=replication,
        wall_time=wall_s,
        on_disk_time=wall_s + _sync_s(machine, samples) if case.scenario.sync_after else None,
        system_cpu_time=sum(program.system_cpu_time for program in programs.values()),
        user_cpu_time=sum(program.user_cpu_time for program in programs.values()),
        files=sum(program.files for program in programs.values()),
        create_rate=fmean(rates) if rates else None,
        write_iops=samples[-1].ios / wall_s if wall_s else None,
        write_bandwidth=samples[-1].sectors * SECTOR_BYTES / wall_s if wall_s else None,
        merges=samples[-1].merges,
        log_bytes=sum(mount.log_bytes for mount in mounts.values()),
        file_bytes=sum(program.file_bytes for program in programs.values()),
        extents=tuple(count for mount in mounts.values() for count in mount.extents),
        flushed_files=sum(wb.flushed_inodes for wb in machine.cache.wbs),
        flushed_bytes=sum(wb.flushed_pages for wb in machine.cache.wbs) * PAGE_BYTES,
        written_back_bytes=written_back_pages * PAGE_BYTES,
        flusher_spin_time=sum(thread.task.spin_ns for thread in machine.flushers.threads) / S,
        programs=programs,
        disks=dict(disks),
        disks_at_end={name: disk_result(queue) for name, queue in machine.queues.items()},
        dirty_bytes=machine.cache.dirty_and_writeback * PAGE_BYTES,
        mounts=mounts,
        locks={lock.name: asdict(lock.stat) for lock in machine.locks},
        lives=lives_of(machine),
        uses=uses_of(machine),
        samples=tuple(samples),
        levels=levels,
    )


def _sync_s(machine: Machine, samples: Sequence[Sample]) -> float:
    """Return the time (s) from the end of the last program, which *samples* end with, to the run's end."""
    return (machine.env.now - max(sample.end_ns for sample in samples)) / S


def disk_result(queue: Queue) -> DiskResult:
    """Return the counters of *queue* until now."""
    reads, writes = queue.stat.reads, queue.stat.writes
    return DiskResult(
        ios=writes.ios,
        merges=writes.merges,
        sectors=writes.sectors,
        busy_time=queue.busy_ns / S,
        reads=reads.ios,
        r_await=_await_ms(reads),
        w_await=_await_ms(writes),
    )


def _await_ms(stats: RequestStats) -> float | None:
    """Return the mean wait of a request (ms), as iostat's r_await and w_await."""
    return stats.wait_ns / stats.ios / MS if stats.ios else None


def _mount_result(filesystem: Filesystem) -> MountResult:
    allocated = sum(file.allocated for file in filesystem.layouts()) * PAGE_BYTES
    return MountResult(filesystem.log_bytes, allocated, filesystem.extents_per_file())


def _program_result(case: Case, machine: Machine, name: str, last: Sample | None) -> ProgramResult:
    program, spec = machine.programs[name], case.scenario.programs[name]
    end_ns = machine.env.now if last is None else last.end_ns  # an endless program may lack an iteration
    return ProgramResult(
        wall_time=(end_ns - spec.start + program.reckoned.ns) / S,
        system_cpu_time=(program.system_ns + program.reckoned.system_ns) / S,
        user_cpu_time=program.user_ns / S,
        files=0 if last is None else last.count,
        file_bytes=spec.workload.total_bytes,
        reckoned_files=program.reckoned.files,
        calls={call: call_result(of) for call, of in program.latencies.by_call().items()},
    )
