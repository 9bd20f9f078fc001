"""Each figure of a run worked out by hand, in the unit that it is printed in."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, nan

import pytest

from tests.experiments.outcomes import RUN, SYNCED, with_calls, with_readings, written
from wbsim.experiments.published.figures import METRICS
from wbsim.experiments.results.figures import FIGURES, READ
from wbsim.experiments.results.outcome import DiskResult

BY_HAND = {  # 16 000 sectors are 8.192 MB, in four seconds; 1 000 requests, 3 000 merges, 12 000 files
    "wall_time": (4.0, "s"), "system_cpu_time": (2.25, "s"), "user_cpu_time": (0.5, "s"),
    "file_count": (12_000, "1"), "file_rate": (12_000 / 4, "1/s"), "create_rate": (3_456.78, "1/s"),
    "write_iops": (250.0, "1/s"), "write_bandwidth": (8.192 / 4, "MB/s"), "request_size": (8.0, "KiB"),
    "merged": (75.0, "%"), "utilisation": (75.0, "%"), "system_cpu": (2.25e6 / 8.192, "us/MB"),
    "kernel_cpu": (0.0, "us/MB"), "file_bandwidth": (49.152 / 4, "MB/s"), "extent_count": (0, "1"),
    "extents_per_file": (nan, "1"), "mean_extent": (nan, "KiB"), "log_size": (5_500_000 / 2**20, "MiB"),
    "flusher_spin_time": (0.125, "s"), "lock_wait_time": (0.0, "s"), "waiting_processors": (0.0, "1"),
    "system_processors": (2.25 / 4, "1"), "on_disk_time": (nan, "s"), "on_disk_requests": (nan, "1"),
    "on_disk_size": (nan, "MB"), "on_disk_iops": (nan, "1/s"), "on_disk_bandwidth": (nan, "MB/s"),
    "on_disk_request_size": (nan, "KiB"), "on_disk_merged": (nan, "%"), "dirty_at_end": (0.0, "MiB"),
    "w_await": (2.5, "ms"), "r_await": (nan, "ms"), "read_iops": (0.0, "1/s"), "on_disk_w_await": (nan, "ms"),
    "dirty": (15.0, "MiB"), "writeback": (1.5, "MiB"), "background": (50.0, "MiB"), "limit": (100.0, "MiB"),
    "flushers": (1.0, "1"), "held_writers": (1.5, "1"), "written_back": (36.0, "MiB"),
    "write_amplification": (nan, "1"), "flash_written": (0.0, "MB"), "flushed": (36.0, "MiB"),
    "flushed_files": (9_000.0, "1"),
}  # fmt: skip
LATENCIES = [
    f"{call}_latency{of}"
    for call in ("creat", "write", "fsync")
    for of in ("", "_p50", "_p90", "_p99", "_p99_9", "_max")
]


@pytest.mark.parametrize("name", FIGURES)
def test_figure_has_the_value_worked_out_by_hand(name: str) -> None:
    """The outcome is `RUN`."""
    read = {name: (RUN.readings[name], FIGURES[name].unit) for name in READ if not RUN.levels[name][-1]}
    value, unit = (read | BY_HAND | dict.fromkeys(LATENCIES, (nan, "us")))[name]
    assert FIGURES[name].unit == unit
    assert FIGURES[name].whole(RUN) == pytest.approx(value, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("on_disk_time", 38.0), ("on_disk_requests", 5_000), ("on_disk_size", 81.92),
        ("on_disk_iops", 5_000 / 38), ("on_disk_bandwidth", 81.92 / 38), ("on_disk_request_size", 16.0),
        ("on_disk_merged", 50.0), ("extents_per_file", 2.0), ("mean_extent", 2_048.0), ("extent_count", 4),
        ("write_iops", 250.0), ("utilisation", 75.0), ("dirty_at_end", 3.0),
        ("w_await", 2.5), ("on_disk_w_await", 6.5),
    ],
)  # fmt: skip
def test_on_disk_figures_count_requests_of_the_sync(name: str, value: float) -> None:
    """Figures until on_disk_time include the sync(2).  All other figures end with the programs."""
    run = with_readings(SYNCED, dirty_at_end=3.0)
    assert FIGURES[name].whole(run) == pytest.approx(value, rel=1e-9)


IDLE = replace(
    RUN, wall_time=0.0, write_iops=None, write_bandwidth=None, create_rate=None, files=0,
    file_bytes=0, disks={"vda": written(0, 0, 0, 0.0)}, disks_at_end={"vda": written(0, 0, 0, 0.0)},
    on_disk_time=0.0,
)  # fmt: skip
UNKNOWN = {
    "file_rate", "create_rate", "write_iops", "read_iops", "write_bandwidth", "request_size", "merged",
    "utilisation",
    "system_cpu", "kernel_cpu", "file_bandwidth", "extents_per_file", "mean_extent", "waiting_processors",
    "system_processors", "on_disk_iops", "on_disk_bandwidth", "on_disk_request_size", "on_disk_merged",
    "w_await", "r_await", "on_disk_w_await", "write_amplification",
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_figure_without_denominator_is_unknown(name: str) -> None:
    """A run of no length, no file and no request: counts and times are 0, rates and means are nan."""
    assert isnan(FIGURES[name].whole(IDLE)) == (name in UNKNOWN or name in LATENCIES)


def test_latencies_are_those_of_all_programs_together() -> None:
    """One program makes 990 calls of 1 us; another one makes 8 of 3 us and two of 6 us, and fsyncs once.

    A percentile is the middle of a bin, but not more than the longest call.
    """
    run = with_calls({"write": {1_000: 990}}, {"write": {3_000: 8, 6_000: 2}, "fsync": {250_000_000: 1}})
    assert [FIGURES[name].whole(run) for name in LATENCIES if name.startswith("write")] == [
        pytest.approx((990 + 24 + 12) / 1_000), 1.004, 1.004, 1.004, 5.984, 6.0,
    ]  # fmt: skip
    assert [FIGURES[name].whole(run) for name in LATENCIES if name.startswith("fsync")] == [250_000.0] * 6
    assert all(isnan(FIGURES[name].whole(run)) for name in LATENCIES if name.startswith("creat"))


def test_write_amplification_is_what_flash_programs_for_each_byte() -> None:
    """Flash programmed 0.8192 MB until the first sample, and 20.48 MB until the last one."""
    before, after = (
        replace(sample, readings={**sample.readings, "flash_written": programmed})
        for sample, programmed in zip(RUN.samples, (0.8192, 20.48), strict=True)
    )
    assert FIGURES["write_amplification"].whole(replace(RUN, samples=(before, after))) == pytest.approx(
        20.48e6 / (after.sectors * 512)
    )
    loop = FIGURES["write_amplification"].iteration
    assert loop is not None
    assert loop(before, after) == pytest.approx(
        (20.48 - 0.8192) * 1e6 / ((after.sectors - before.sectors) * 512)
    )


def test_request_size_of_iteration_without_requests_is_unknown() -> None:
    """A mean over no requests has no value."""
    of = FIGURES["request_size"].iteration
    assert of is not None
    assert isnan(of(RUN.samples[0], RUN.samples[0]))
    assert of(*RUN.samples) == 8.0


def test_await_of_iteration_counts_its_own_requests() -> None:
    """900 writes wait for 1 800 ms in all, and 2 reads wait for 10 ms.

    The figure is unknown without requests.
    """
    before, after = RUN.samples
    after = replace(after, reads=2, read_wait_ns=10_000_000)
    for name, value in (("w_await", 2.0), ("r_await", 5.0)):
        of = FIGURES[name].iteration
        assert of is not None
        assert of(before, after) == value
        assert isnan(of(before, before))


def test_await_of_several_disks_is_the_mean_of_requests() -> None:
    """Each request has the same weight, whichever disk serves it.

    * first disk: 3 reads of 2 ms and 1 write of 1 ms
    * second disk: 1 read of 6 ms and 9 writes of 2 ms
    * third disk: no requests
    """
    disks = {
        "a": DiskResult(1, 0, 8, 1.0, reads=3, r_await=2.0, w_await=1.0),
        "b": DiskResult(9, 0, 72, 1.0, reads=1, r_await=6.0, w_await=2.0),
        "c": written(0, 0, 0, 0.0),
    }
    run = replace(RUN, disks=disks)
    assert FIGURES["r_await"].whole(run) == 3.0
    assert FIGURES["read_iops"].whole(run) == 4 / RUN.wall_time
    assert FIGURES["w_await"].whole(run) == pytest.approx(1.9)


@pytest.mark.parametrize("unit", ["512B sectors", "MB"])
def test_published_metrics_without_denominator_are_unknown(unit: str) -> None:
    """A run without extents, locks or length has no such figure."""
    idle = replace(IDLE, locks={"inode_hash_lock": {"wait_ns": 0}})
    assert isnan(METRICS["mean_extent", unit].whole(idle))
    assert isnan(METRICS["throughput", "MiB/s"].whole(idle))
    assert isnan(METRICS["inode_hash_remove_share_of_spin_contention", "percent"].whole(idle))
