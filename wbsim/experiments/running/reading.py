"""Reading a machine while it runs and when it ends.

Levels are read at equal steps.  A step is 10 ms at first.  When there are `MOST` samples, every second one is
dropped and the step doubles.  So a long run has between half of `MOST` and `MOST` samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from statistics import fmean
from typing import Final

from wbsim.experiments.config.case import Case
from wbsim.experiments.results.figures import READ
from wbsim.experiments.results.outcome import (
    PAUSES_OF,
    START_OF,
    CallResult,
    DiskResult,
    JobResult,
    Levels,
    Lives,
    MountResult,
    Outcome,
    ProgramResult,
    Readings,
    Sample,
    SlowestCalls,
    percentiles_of,
)
from wbsim.experiments.running.progress import Progress
from wbsim.models.block.gendisk import GenDisk, RequestStats
from wbsim.models.interfaces import Filesystem
from wbsim.models.machine import Machine
from wbsim.models.syscalls.latency import Latency
from wbsim.models.time_accounting import life_of
from wbsim.models.workloads.spec import Iteration, JobDone
from wbsim.sim.sync import LockClass
from wbsim.sim.units import MS, PAGE_BYTES, SECTOR_BYTES, S

OnProgress = Callable[[Progress], None]
FIRST_STEP_NS: Final = 10 * MS
MOST: Final = 512
_OF_DISK: Final = ("ios", "sectors", "busy_ns", "queued", "write_wait_ns", "reads", "read_wait_ns")
WATCH_NS: Final = 10 * S
"""The simulated time between two reports of progress (ns)."""


def readings_of(machine: Machine) -> Readings:
    """Return the figures that are read from *machine*, as they are now, by name and in their units."""
    return {name: float(read(machine)) for name, read in READ.items()}


class Iterations:
    """The counters of a run at the end of each iteration, until the last program ends.

    ``samples`` has a sample for each iteration.  ``disks`` has the counters of the disks at the last one.
    The constructor registers itself with *machine*, so it must precede the run.  *on_progress*: called after
    each iteration and every `WATCH_NS`.
    """

    def __init__(self, case: Case, machine: Machine, on_progress: OnProgress | None) -> None:
        self.samples: list[Sample] = []
        self.disks: dict[str, DiskResult] = {}
        self._machine = machine
        self._label = case.label
        self._on_progress = on_progress
        programs = case.scenario.programs
        self._programs_left = {name for name, program in programs.items() if not program.workload.endless}
        for name, program in machine.programs.items():
            program.on_iteration = partial(self._sample, name)
        if on_progress is not None:
            machine.watch(lambda: WATCH_NS, lambda: self._report(machine.env.now))

    def _sample(self, name: str, iteration: Iteration) -> None:
        if not self._programs_left:  # the final sync(2) runs; only endless programs iterate now
            return
        program = self._machine.programs[name]
        if program.share_done >= 1:
            self._programs_left.discard(name)
        queues = self._machine.queues
        self.disks = {disk: disk_result(queue) for disk, queue in queues.items()}
        reads = [queue.stat.reads for queue in queues.values()]
        writes = [queue.stat.writes for queue in queues.values()]
        self.samples.append(
            Sample(
                program=name,
                end_ns=iteration.end_ns,
                files_per_sec=iteration.files_per_sec,
                app_overhead_us=iteration.app_overhead_us,
                count=iteration.count,
                system_ns=program.system_ns,
                ios=sum(stats.ios for stats in writes),
                merges=sum(stats.merges for stats in writes),
                sectors=sum(stats.sectors for stats in writes),
                write_wait_ns=sum(stats.wait_ns for stats in writes),
                reads=sum(stats.ios for stats in reads),
                read_wait_ns=sum(stats.wait_ns for stats in reads),
                readings=readings_of(self._machine),
            )
        )
        self._report(iteration.end_ns)

    def _report(self, now_ns: int) -> None:
        if self._on_progress is not None:
            share = min(program.share_done for program in self._machine.programs.values())
            self._on_progress(Progress(self._label, share, now_ns / S))


class LevelsOverTime:
    """Samples *machine* while it runs, which does not change the run; it must be made before the run."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._step_ns = FIRST_STEP_NS
        self._rows: list[tuple[float, ...]] = []
        machine.watch(lambda: self._step_ns, self._look)

    def _look(self) -> None:
        self._rows.append(self._row())
        if len(self._rows) == MOST:
            self._rows = self._rows[1::2]
            self._step_ns *= 2

    def _row(self) -> tuple[float, ...]:
        machine = self._machine
        disks = [level for queue in machine.queues.values() for level in _of_disk(queue)]
        return (machine.env.now, *readings_of(machine).values(), *disks)

    def levels(self) -> Levels:
        """Return the levels of all samples, by name (`level_names`); without a sample each is empty."""
        names = level_names(self._machine.queues)
        columns = zip(*self._rows, strict=True) if self._rows else [() for _ in names]
        return dict(zip(names, columns, strict=True))


def _of_disk(queue: GenDisk) -> tuple[int, ...]:
    reads, writes = queue.stat.reads, queue.stat.writes
    queued = queue.queue_length + queue.stat.in_flight
    return (
        writes.ios, writes.sectors, queue.busy_ns, queued, writes.wait_ns, reads.ios, reads.wait_ns,
    )  # fmt: skip


def level_names(disks: Iterable[str]) -> list[str]:
    """Return the names of all levels of a machine with these *disks*, which are names, too.

    First comes "time_ns", then the figures of `READ`, then the levels of each disk, such as "sda ios".
    """
    return ["time_ns", *READ, *(f"{name} {level}" for name in disks for level in _OF_DISK)]


def lives_of(machine: Machine) -> Lives:
    """Return how every thread spent its time (ns) until now, by its name, then by state and cause.

    A key is the state, a blank and the cause, such as "system allocate", or the state alone without a cause.
    A cause that took no time has no key (`life_of`).
    """
    return {
        thread.task.name: {
            f"{state} {cause}".strip(): ns
            for (state, cause), ns in life_of(thread.task, thread.spent, machine.env.now).items()
        }
        for thread in machine.threads
    }


def uses_of(machine: Machine) -> dict[str, float]:
    """Return the utilisation of each resource by its name, as a share of the run (0 to 1).

    The resources that most threads share come first.

    * ``start of PROGRAM``: the start of a program that ends.  ``pauses of THREAD``: the pauses that its
      program makes by itself (`Spent.paced`).  Both come before all resources, and only if they took time.
    * ``processors``: all together are one resource.  Pauses through which a program spins are no use of it.
    * ``lock NAME``: in use while the lock is held or handed over; of a class of locks, the busiest counts.
    * ``device DISK PART``: a part of the device of a disk.
    * ``thread NAME``: a resource, because a thread can use one processor only.  In use while the thread runs,
      and neither spins nor pauses.
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


def call_result(latency: Latency) -> CallResult:
    """Return the latencies (ns) of the calls that *latency* has counted; there is at least one call."""
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


def outcome_of(
    case: Case,
    seed: int,
    replication: int,
    machine: Machine,
    iterations: Iterations,
    levels: Levels,
) -> Outcome:
    """Return the result of the run of *case* on *machine*, with what was read during the run.

    *seed* and *replication* only label the result.  The run has ended, with at least one iteration.
    *levels*: those of `LevelsOverTime`.  ``cpu_s`` and ``peak_rss_mib`` are 0; `simulate.run_case` sets them.
    """
    samples = iterations.samples
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
        file_bytes=sum(program.file_bytes for program in programs.values()),
        extents=tuple(count for mount in mounts.values() for count in mount.extents),
        programs=programs,
        disks=iterations.disks,
        disks_at_end={name: disk_result(queue) for name, queue in machine.queues.items()},
        mounts=mounts,
        readings=readings_of(machine),
        locks={lock.name: asdict(lock.stat) for lock in machine.locks},
        lives=lives_of(machine),
        uses=uses_of(machine),
        samples=tuple(samples),
        levels=levels,
    )


def _sync_s(machine: Machine, samples: Sequence[Sample]) -> float:
    """Return the time (s) from the end of the last program, which *samples* end with, to the run's end."""
    return (machine.env.now - max(sample.end_ns for sample in samples)) / S


def disk_result(queue: GenDisk) -> DiskResult:
    """Return the counters of the disk *queue* from the start of the run until now."""
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
        wall_time=(end_ns - machine.begun_ns.get(name, end_ns) + program.reckoned.ns) / S,
        system_cpu_time=(program.system_ns + program.reckoned.system_ns) / S,
        user_cpu_time=program.user_ns / S,
        files=0 if last is None else last.count,
        file_bytes=spec.workload.total_bytes if program.written_bytes is None else program.written_bytes,
        reckoned_files=program.reckoned.files,
        calls={call: call_result(latency) for call, latency in program.latencies.by_call().items()},
        failed=dict(program.failed),
        jobs={name: _job_result(done) for name, done in program.jobs_done.items()},
    )


def _job_result(done: JobDone) -> JobResult:
    took_s = done.took_ns / S
    return JobResult(
        time=took_s,
        files=done.files,
        bytes=done.bytes,
        writes=done.writes,
        bandwidth=done.bytes / took_s if took_s else None,
        iops=done.writes / took_s if took_s else None,
        system_cpu_time=done.system_ns / S,
        user_cpu_time=done.user_ns / S,
        calls={call: call_result(latency) for call, latency in done.latencies.by_call().items()},
    )
