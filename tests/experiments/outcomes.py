"""An outcome made by hand, and an executor that returns outcomes without simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

import wbsim.experiments.running.execute
from wbsim.experiments.results.figures import READ
from wbsim.experiments.results.outcome import (
    CallResult,
    DiskResult,
    MountResult,
    Outcome,
    ProgramResult,
    Readings,
    Sample,
)
from wbsim.experiments.running.jobs import Ended, Failure, Job, OnJobProgress
from wbsim.experiments.running.reading import call_result
from wbsim.models.syscalls.latency import Latency
from wbsim.sim.units import MS, S


def readings(**read: float) -> Readings:
    """Return the figures that are read from a machine: 0 but for those in *read*."""
    return dict.fromkeys(READ, 0.0) | read


def sample(
    end_s: float, rate: float, count: int, system_s: float, ios: int, merges: int, sectors: int,
    write_wait_ms: int = 0,
) -> Sample:  # fmt: skip
    """Return the state of a run at *end_s*; its disks have read nothing."""
    return Sample(
        program="mark", end_ns=round(end_s * S), files_per_sec=rate, app_overhead_us=1_234, count=count,
        system_ns=round(system_s * S), ios=ios, merges=merges, sectors=sectors,
        write_wait_ns=write_wait_ms * MS, reads=0, read_wait_ns=0, readings=readings(),
    )  # fmt: skip


def written(
    ios: int, merges: int, sectors: int, busy_time: float, w_await: float | None = None
) -> DiskResult:
    """Return the counters of a disk that has read nothing."""
    return DiskResult(ios, merges, sectors, busy_time, reads=0, r_await=None, w_await=w_await)


def with_readings(outcome: Outcome, **read: float) -> Outcome:
    """Return *outcome*, in which the last iteration and the end of the run have read these figures."""
    *before, last = outcome.samples
    samples = (*before, replace(last, readings=last.readings | read))
    return replace(outcome, samples=samples, readings=outcome.readings | read)


_MADE = Outcome(
    variant="unpatched", point={}, seed=1, replication=0, wall_time=4.0, on_disk_time=None,
    system_cpu_time=2.25, user_cpu_time=0.5, files=12_000, create_rate=3_456.78, write_iops=250.0,
    write_bandwidth=2_048_000.0, file_bytes=49_152_000, extents=(),
    programs={"mark": ProgramResult(4.0, 2.25, 0.5, 12_000, 49_152_000, 0)},
    disks={"vda": written(1_000, 3_000, 16_000, 3.0, 2.5)},
    disks_at_end={"vda": written(1_000, 3_000, 16_000, 3.0, 2.5)},
    mounts={"mnt": MountResult(5_500_000, 0, ())}, readings=readings(), locks={},
    lives={"mark": {"user": 4 * S}}, uses={},
    samples=(
        sample(1, 4_000, 3_000, 0.5, 100, 300, 1_600, 700),
        sample(4, 3_000, 12_000, 2.25, 1_000, 3_000, 16_000, 2_500),
    ),
    levels={
        **dict.fromkeys(READ, (0, 0)), "time_ns": (S, 4 * S), "dirty": (10, 20), "writeback": (1, 2),
        "flushers": (1, 1), "background": (50, 50), "limit": (100, 100), "held_writers": (0, 3),
        "vda queued": (0, 7),
        "vda ios": (100, 1_000), "vda sectors": (1_600, 16_000), "vda busy_ns": (S // 2, 3 * S),
        "vda write_wait_ns": (700 * MS, 2_500 * MS), "vda reads": (0, 0), "vda read_wait_ns": (0, 0),
    },
    cpu_s=0.5, peak_rss_mib=99.6,
)  # fmt: skip
RUN = with_readings(_MADE, flushed_files=9_000, flushed=36.0, written_back=36.0, flusher_spin_time=0.125)
"""1 000 requests of 8 KiB and 3 000 merges in four seconds; 12 000 files of one page.
A request takes 2.5 ms.
"""


SYNCED = replace(
    RUN, on_disk_time=38.0, extents=(3, 0, 1),
    disks_at_end={"vda": written(5_000, 5_000, 160_000, 37.0, 6.5)},
    mounts={"mnt": MountResult(5_500_000, 8 << 20, (3, 0, 1))},
)  # fmt: skip
"""`RUN` with a sync(2) after it: 8 MiB in four extents of two files; a third file has no block."""


def with_calls(*programs: Mapping[str, Mapping[int, int]]) -> Outcome:
    """Return `RUN` with programs a, b, ...: for each kind of call, the number of calls by their length (ns).

    Half of each call longer than 2 us is a wait, because the call is throttled.
    """
    results = {}
    for name, kinds in zip("abc", programs, strict=False):
        calls: dict[str, CallResult] = {}
        for kind, lengths in kinds.items():
            latency = Latency()
            for ns, count in lengths.items():
                for _ in range(count):
                    latency.add(ns, ns // 2 if ns > 2_000 else 0, "throttled")
            calls[kind] = call_result(latency)
        results[name] = ProgramResult(4.0, 2.25, 0.5, 12_000, 49_152_000, 0, calls)
    return replace(RUN, programs=results)


def simulate_by(monkeypatch: pytest.MonkeyPatch, of: Callable[[Job], Outcome | Failure]) -> list[Job]:
    """Let each job result in *of*(job), without simulation.

    Return the list of jobs, which grows in run order.
    """
    ran: list[Job] = []

    class Fake:
        def __init__(self, *_: Any) -> None:
            pass

        def run(self, jobs: Sequence[Job], on_progress: OnJobProgress | None) -> Ended:
            for place, job in enumerate(jobs):
                ran.append(job)
                yield place, of(job)

    monkeypatch.setattr(wbsim.experiments.running.execute, "Workers", Fake)
    return ran
