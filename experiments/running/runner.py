"""Run cases and keep what they measured; several at once, each in a process of its own."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from wbsim.experiments.config.experiment import Case
from wbsim.experiments.config.problems import bad
from wbsim.experiments.running.progress import Meter, Progress
from wbsim.experiments.why.lives import Lives, lives_of, uses_of
from wbsim.models.block.queue import Queue
from wbsim.models.machine import Machine, Primitives, build
from wbsim.models.scenario import Scenario
from wbsim.models.seams import Filesystem, NoSpace
from wbsim.models.workloads.spec import Iteration
from wbsim.sim.engine import GiveUp
from wbsim.sim.laws import LawBroken
from wbsim.sim.units import PAGE_BYTES, SECTOR_BYTES, S

CASE_FILE: Final = "case.json"


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
    """What one disk was given until the last program ended, as iostat has it."""

    ios: int
    merges: int
    sectors: int


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
    as they left it clean.  ``lives`` and ``uses``: see `experiments.why.lives`.
    """

    variant: str
    point: Any
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
    cpu_s: float
    peak_rss_mib: float


Tell = Callable[[Progress], None]


def run_case(
    case: Case,
    seed: int,
    replication: int = 0,
    primitives: Primitives | None = None,
    tell: Tell | None = None,
) -> Outcome:
    """Simulate *case* to its end, and *tell* of each iteration.

    Raises:
        BadInput: the workload does not end within the scenario's ``give_up``.
    """
    machine = build(case.scenario, seed, replication, primitives)
    samples: list[Sample] = []
    disks: dict[str, DiskResult] = {}
    running = {name for name, program in case.scenario.programs.items() if not program.workload.endless}

    def sample(name: str, iteration: Iteration) -> None:
        if not running:  # a sync(2) follows, beside which endless programs go on
            return
        if machine.programs[name].share_done >= 1:
            running.discard(name)
        disks.update({disk: _disk_result(queue) for disk, queue in machine.queues.items()})
        samples.append(
            Sample(
                name,
                iteration.end_ns,
                iteration.files_per_sec,
                iteration.app_overhead_us,
                iteration.count,
                machine.programs[name].system_ns,
                sum(disk.ios for disk in disks.values()),
                sum(disk.merges for disk in disks.values()),
                sum(disk.sectors for disk in disks.values()),
            )
        )
        if tell is not None:
            tell(Progress(case.label, _share_done(machine), iteration.end_ns / S))

    if tell is not None:
        _watch(machine, case.label, tell)
    for name, program in machine.programs.items():
        program.on_iteration = partial(sample, name)
    started = time.process_time()
    _run(machine, case)
    cpu_s = time.process_time() - started
    return _outcome(case, seed, replication, machine, samples, disks, cpu_s)


def _disk_result(queue: Queue) -> DiskResult:
    return DiskResult(queue.stat.ios, queue.stat.merges, queue.stat.sectors)


def _share_done(machine: Machine) -> float:
    return min(program.share_done for program in machine.programs.values())


def simulate(case: Case, seed: int) -> Machine:
    """The machine of *case* after its run, for whoever wants to look at more than an `Outcome`.

    Raises:
        BadInput: the workload does not end within the scenario's ``give_up``.
    """
    machine = build(case.scenario, seed)
    _run(machine, case)
    return machine


def _run(machine: Machine, case: Case) -> None:
    # A run makes no cycles, and hunting for them among half a million inodes takes a tenth of the time.
    gc.disable()
    try:
        machine.run()
    except GiveUp as error:
        raise bad(f"variant {case.label}", f"{error}; raise give_up, or look for a stall") from None
    except NoSpace as error:
        raise bad(f"variant {case.label}", str(error)) from None
    except LawBroken as error:
        raise LawBroken(f"variant {case.label}: {error}") from error
    finally:
        gc.enable()


WATCH_NS: Final = 10 * S


def _watch(machine: Machine, label: str, tell: Tell) -> None:
    """Tell of the progress within an iteration now and then, in simulated time."""
    env, rank = machine.env, machine.env.next_rank()

    def look() -> None:
        if env.live_tasks:
            tell(Progress(label, _share_done(machine), env.now / S))
            env.call_at(env.now + WATCH_NS, rank, look)

    env.call_at(WATCH_NS, rank, look)


def _outcome(
    case: Case,
    seed: int,
    replication: int,
    machine: Machine,
    samples: Sequence[Sample],
    disks: Mapping[str, DiskResult],
    cpu_s: float,
) -> Outcome:
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
        cpu_s=cpu_s,
        peak_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


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


def run_all(jobs: Sequence[tuple[Case, int]], seed: int, progress: bool) -> list[Outcome]:
    """Every (case, replication), each in a process of its own, on all processors; in the order given."""
    workers = max(1, min(len(jobs), len(os.sched_getaffinity(0))))
    told: Any = multiprocessing.SimpleQueue()
    meter = Meter(len(jobs))
    with ProcessPoolExecutor(
        workers, initializer=_tell_through, initargs=(told if progress else None,)
    ) as pool:
        futures = [pool.submit(_run_job, case, seed, replication) for case, replication in jobs]
        try:
            running = progress
            while running:
                running = bool(wait(futures, timeout=0.5, return_when=FIRST_EXCEPTION).not_done)
                while not told.empty():
                    meter.note(*told.get())
                meter.show()
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            if progress:
                meter.clear()


_told: Any = None  # in a worker: where to report


def _tell_through(told: Any) -> None:
    global _told
    _told = told


def _run_job(case: Case, seed: int, replication: int) -> Outcome:
    gc.collect()  # the machine of this worker's last job, with its files
    told = _told
    if told is None:
        return run_case(case, seed, replication)
    key = f"{case.label} {replication}"
    return run_case(case, seed, replication, tell=lambda report: told.put((key, report)))


def write_outcomes(
    directory: Path, title: str, axis: str | None, outcomes: Iterable[Outcome], scenarios: dict[str, Scenario]
) -> None:
    """Write *outcomes* to *directory*, whole or not at all: ``case.json`` and ``iterations.parquet``.

    Raises:
        BadInput: the directory cannot be written.
    """
    import pandas as pd

    outcomes = list(outcomes)
    rows = [
        {"variant": o.variant, "point": o.point, "replication": o.replication, **asdict(sample)}
        for o in outcomes
        for sample in o.samples
    ]
    document = {
        "title": title,
        "axis": axis,
        "outcomes": [{k: v for k, v in asdict(o).items() if k != "samples"} for o in outcomes],
        "scenarios": {label: scenario.model_dump(mode="json") for label, scenario in scenarios.items()},
    }
    replace_whole(directory / "iterations.parquet", lambda path: pd.DataFrame(rows).to_parquet(path))
    replace_whole(directory / CASE_FILE, lambda path: path.write_text(json.dumps(document, indent=1) + "\n"))


def replace_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Have *write* make a file beside *path*, then put it in place at once: never half a file.

    Raises:
        BadInput: the place cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(partial)
        partial.replace(path)
    except OSError as error:
        raise bad(str(path), f"{error.strerror}; give a directory that can be written with --out") from None
    finally:
        with suppress(NotADirectoryError):  # then nothing was begun
            partial.unlink(missing_ok=True)
