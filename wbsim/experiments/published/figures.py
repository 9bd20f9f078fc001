"""The published figures, and the same figures from a run."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Final

from wbsim.experiments.results.figures import FIGURES, Figure, extent_bytes, share
from wbsim.experiments.results.outcome import Outcome, ProgramResult
from wbsim.sim.units import MIB, SECTOR_BYTES


@dataclass(frozen=True)
class Published:
    """A row of published.csv; ``value`` is None if the figure is lost or is a range."""

    id: str
    report: str
    metric: str
    value: float | None
    unit: str


def published_rows() -> list[Published]:
    """Return every row of published.csv, in the order of the file."""
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


def _of_program(name: str, measure: Callable[[ProgramResult], float]) -> Callable[[Outcome], float]:
    return lambda outcome: measure(outcome.programs[name])


METRICS: Final[dict[tuple[str, str], Figure]] = {
    ("wall_time", "s"): FIGURES["wall_time"],
    ("system_cpu_time", "s"): FIGURES["system_cpu_time"],
    **{
        (f"{operation}_wall_time", "s"): replace(FIGURES["wall_time"], per_iteration=None)
        for operation in ("create", "bulkstat", "lookup", "unlink")
    },
    ("fs_mark_wall_time", "s"): Figure(
        "fs_mark_wall_time",
        "s",
        "fs_mark's own",
        _of_program("load", lambda program: program.wall_time),
        grows=True,
    ),
    ("sync_wall_time", "s"): Figure(
        "sync_wall_time",
        "s",
        "sync's own",
        _of_program("sync", lambda program: program.wall_time),
        grows=True,
    ),
    ("sync_system_cpu_time", "s"): Figure(
        "sync_system_cpu_time",
        "s",
        "sync's own",
        _of_program("sync", lambda program: program.system_cpu_time),
        grows=True,
    ),
    ("inode_hash_remove_share_of_spin_contention", "percent"): Figure(
        "inode_hash_remove_share_of_spin_contention",
        "%",
        "of all waiting for locks",
        lambda o: (
            100
            * share(o.locks["inode_hash_lock"]["wait_ns"], sum(lock["wait_ns"] for lock in o.locks.values()))
        ),
    ),
    ("create_rate", "files/s"): FIGURES["create_rate"],
    ("write_iops", "1/s"): FIGURES["write_iops"],
    ("write_bandwidth", "MB/s"): FIGURES["write_bandwidth"],
    ("throughput", "MB/s"): FIGURES["file_bandwidth"],
    ("disk_utilisation", "percent"): FIGURES["utilisation"],
    ("system_cpu", ""): FIGURES["system_cpu"],
    ("throughput", "MiB/s"): Figure(
        "throughput",
        "MiB/s",
        "what files hold, a second of wall time",
        lambda o: share(o.file_bytes / MIB, o.wall_time),
    ),
    ("extents_total", "1"): FIGURES["extent_count"],
    ("extents_per_file", "1"): FIGURES["extents_per_file"],
    ("mean_extent", "512B sectors"): Figure(
        "mean_extent",
        "512B sectors",
        "mean size of an extent",
        lambda o: share(extent_bytes(o) / SECTOR_BYTES, sum(o.extents)),
    ),
    # Next to the 55 MB, report N10 gives 78 MB for 157 538 sectors, so its megabyte is about 2^20 bytes.
    ("mean_extent", "MB"): Figure(
        "mean_extent", "MB", "mean size of an extent", lambda o: share(extent_bytes(o) / MIB, sum(o.extents))
    ),
}
"""The figure of a run for each published metric and its unit."""
