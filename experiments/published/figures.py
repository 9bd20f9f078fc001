"""The published figures, and the same figures from a run."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from typing import Final

from wbsim.experiments.running.runner import Outcome, Sample
from wbsim.sim.stats import Interval, batch_means, confidence_95
from wbsim.sim.units import MIB, SECTOR_BYTES, S

BATCHES: Final = 10


@dataclass(frozen=True)
class Published:
    """A row of published.csv; *value* is None where no figure survives, or where it is a range."""

    id: str
    report: str
    metric: str
    value: float | None
    unit: str


def published_rows() -> list[Published]:
    """Every row of published.csv, in its order."""
    text = files("wbsim.experiments").joinpath("data/published.csv").read_text()
    return [
        Published(row["id"], row["report"], row["metric"], _number(row["value"]), row["unit"])
        for row in csv.DictReader(text.splitlines())
    ]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class Metric:
    """How a published metric is read off a run: the whole run's figure, and one iteration's where it has any.

    One that ``grows`` with the experiment says nothing of a smaller one.
    """

    whole: Callable[[Outcome], float]
    iteration: Callable[[Sample, Sample], float] | None = None
    grows: bool = False


def _per_s(amount: float, before: Sample, after: Sample) -> float:
    return amount * S / (after.end_ns - before.end_ns)


METRICS: Final = {
    ("wall_time", "s"): Metric(lambda o: o.wall_time, lambda a, b: (b.end_ns - a.end_ns) / S, grows=True),
    ("system_cpu_time", "s"): Metric(
        lambda o: o.system_cpu_time, lambda a, b: (b.system_ns - a.system_ns) / S, grows=True
    ),
    **{
        (f"{operation}_wall_time", "s"): Metric(lambda o: o.wall_time, grows=True)
        for operation in ("create", "bulkstat", "lookup", "unlink")
    },
    ("fs_mark_wall_time", "s"): Metric(lambda o: o.programs["load"].wall_time, grows=True),
    ("sync_wall_time", "s"): Metric(lambda o: o.programs["sync"].wall_time, grows=True),
    ("sync_system_cpu_time", "s"): Metric(lambda o: o.programs["sync"].system_cpu_time, grows=True),
    ("inode_hash_remove_share_of_spin_contention", "percent"): Metric(
        lambda o: 100 * o.locks["inode_hash_lock"]["wait_ns"] / sum(of["wait_ns"] for of in o.locks.values())
    ),
    ("create_rate", "files/s"): Metric(lambda o: o.create_rate, lambda a, b: b.files_per_sec),
    ("write_iops", "1/s"): Metric(lambda o: o.write_iops, lambda a, b: _per_s(b.ios - a.ios, a, b)),
    ("write_bandwidth", "MB/s"): Metric(
        lambda o: o.write_bandwidth / 1e6,
        lambda a, b: _per_s((b.sectors - a.sectors) * SECTOR_BYTES / 1e6, a, b),
    ),
    ("throughput", "MB/s"): Metric(lambda o: o.file_bytes / o.wall_time / 1e6),
    ("throughput", "MiB/s"): Metric(lambda o: o.file_bytes / o.wall_time / MIB),
    ("extents_total", "1"): Metric(lambda o: sum(o.extents), grows=True),
    ("extents_per_file", "1"): Metric(lambda o: sum(o.extents) / len(o.extents), grows=True),
    ("mean_extent", "512B sectors"): Metric(lambda o: o.file_bytes / SECTOR_BYTES / sum(o.extents)),
    # Report N10's 55 MB stands beside 78 MB for 157 538 sectors: by its arithmetic a megabyte is about 2^20.
    ("mean_extent", "MB"): Metric(lambda o: o.file_bytes / MIB / sum(o.extents)),
}


def figure(metric: Metric, outcomes: Sequence[Outcome]) -> Interval:
    """The simulated figure and its 95 % interval.

    Of several replications: their mean and t-interval.  Of a single run: its own figure, with the relative
    half-width that the means of `BATCHES` batches of iterations give, taken after the first tenth
    of the run, in which nothing is throttled yet.
    """
    if len(outcomes) > 1:
        return confidence_95([metric.whole(outcome) for outcome in outcomes])
    samples = outcomes[0].samples
    whole = metric.whole(outcomes[0])
    if metric.iteration is None:
        return Interval(whole, float("nan"), float("nan"))
    steady = samples[len(samples) // 10 :]
    values = [metric.iteration(a, b) for a, b in pairwise(steady)]
    if len(values) < 2:
        return Interval(whole, float("nan"), float("nan"))
    batches = confidence_95(batch_means(values, min(BATCHES, len(values))))
    half = whole * (batches.high - batches.mean) / batches.mean if batches.mean else float("nan")
    return Interval(whole, whole - half, whole + half)
