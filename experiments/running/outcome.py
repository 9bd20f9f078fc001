"""What one run measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.sweeps import Point
from wbsim.experiments.running.levels import Levels
from wbsim.experiments.running.lives import Lives, lives_of, uses_of
from wbsim.models.block.queue import Queue
from wbsim.models.machine import Machine
from wbsim.models.seams import Filesystem
from wbsim.sim.units import PAGE_BYTES, SECTOR_BYTES, S


@dataclass(frozen=True)
class Sample:
    """The cumulative counters at the end of one iteration of *program*: its own, and those of all disks
    together.
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


@dataclass(frozen=True)
class ProgramResult:
    """What one program got; times in s, from its start to its last iteration.

    ``reckoned_files`` of its files were not simulated, since its pace was steady; they are in the times.
    """

    wall_time: float
    system_cpu_time: float
    user_cpu_time: float
    files: int
    file_bytes: int
    reckoned_files: int


@dataclass(frozen=True)
class DiskResult:
    """What one disk was given until the last program ended, as iostat has it; ``busy_time`` (s): something
    was in its queue or in its driver.
    """

    ios: int
    merges: int
    sectors: int
    busy_time: float


@dataclass(frozen=True)
class MountResult:
    """What lies on one filesystem after the run.

    ``extents``: of the files whose pages are kept one by one, how many each lies in; ``extent_bytes``: what
    these hold together.  All other files lie in one each.
    """

    log_bytes: int
    extent_bytes: int
    extents: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """What one run measured; times in s, rates per s, ``locks`` by name as /proc/lock_stat has them (ns).

    Totals first, then the same by program, disk and mount.  ``wall_time`` is until the last program ended;
    ``create_rate`` is the mean of what fs_mark prints, ``files`` how many were made; ``file_bytes``: what all
    files hold together; ``extents``: how many each file lies in after all was written back, where the
    filesystem keeps that.  ``flushed_files`` and ``flushed_bytes``: what flushers wrote back, a file as often
    as they left it clean.  ``lives``, ``uses`` and ``levels``: see the modules of these names.  All of it is
    the model's, the same wherever it runs, but for the last two: what the run took of the machine that
    simulates.
    """

    variant: str
    point: Point
    seed: int
    replication: int
    wall_time: float
    system_cpu_time: float
    user_cpu_time: float
    files: int
    create_rate: float
    write_iops: float
    write_bandwidth: float
    merges: int
    log_bytes: int
    file_bytes: int
    extents: tuple[int, ...]
    flushed_files: int
    flushed_bytes: int
    flusher_spin_time: float
    programs: dict[str, ProgramResult]
    disks: dict[str, DiskResult]
    mounts: dict[str, MountResult]
    locks: dict[str, dict[str, int]]
    lives: Lives
    uses: dict[str, float]
    samples: tuple[Sample, ...]
    levels: Levels
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
) -> Outcome:
    """What *machine* says after its run, with the *samples* and the *disks* as they were when the programs
    ended.
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
        system_cpu_time=sum(program.system_cpu_time for program in programs.values()),
        user_cpu_time=sum(program.user_cpu_time for program in programs.values()),
        files=sum(program.files for program in programs.values()),
        create_rate=fmean(rates) if rates else 0.0,
        write_iops=samples[-1].ios / wall_s,
        write_bandwidth=samples[-1].sectors * SECTOR_BYTES / wall_s,
        merges=samples[-1].merges,
        log_bytes=sum(mount.log_bytes for mount in mounts.values()),
        file_bytes=sum(program.file_bytes for program in programs.values()),
        extents=tuple(count for mount in mounts.values() for count in mount.extents),
        flushed_files=sum(wb.flushed_inodes for wb in machine.cache.wbs),
        flushed_bytes=sum(wb.flushed_pages for wb in machine.cache.wbs) * PAGE_BYTES,
        flusher_spin_time=sum(thread.task.spin_ns for thread in machine.flushers.threads) / S,
        programs=programs,
        disks=dict(disks),
        mounts=mounts,
        locks={lock.name: asdict(lock.stat) for lock in machine.locks},
        lives=lives_of(machine),
        uses=uses_of(machine),
        samples=tuple(samples),
        levels=levels,
    )


def disk_result(queue: Queue) -> DiskResult:
    """What *queue* was given until now."""
    return DiskResult(queue.stat.ios, queue.stat.merges, queue.stat.sectors, queue.busy_ns / S)


def _mount_result(filesystem: Filesystem) -> MountResult:
    held = sum(file.size for file in filesystem.layouts()) * PAGE_BYTES
    return MountResult(filesystem.log_bytes, held, filesystem.extents_per_file())


def _program_result(case: Case, machine: Machine, name: str, last: Sample | None) -> ProgramResult:
    program, spec = machine.programs[name], case.scenario.programs[name]
    end_ns = machine.env.now if last is None else last.end_ns  # an endless one may have got nowhere
    return ProgramResult(
        wall_time=(end_ns - spec.start + program.reckoned.ns) / S,
        system_cpu_time=(program.system_ns + program.reckoned.system_ns) / S,
        user_cpu_time=program.user_ns / S,
        files=0 if last is None else last.count,
        file_bytes=spec.workload.total_bytes,
        reckoned_files=program.reckoned.files,
    )
