"""Each figure of a run worked out by hand, in the unit that it is printed in."""

from __future__ import annotations

import pytest

from tests.experiments.outcomes import RUN
from wbsim.experiments.statistics.figures import FIGURES

BY_HAND = {  # 16 000 sectors are 8.192 MB, in four seconds; 1 000 requests, 3 000 merges, 12 000 files
    "wall_time": (4.0, "s"), "system_cpu_time": (2.25, "s"), "user_cpu_time": (0.5, "s"),
    "file_count": (12_000, "1"), "file_rate": (12_000 / 4, "1/s"), "create_rate": (3_456.78, "1/s"),
    "write_iops": (250.0, "1/s"), "write_bandwidth": (8.192 / 4, "MB/s"), "request_size": (8.0, "KiB"),
    "merged": (75.0, "%"), "utilisation": (75.0, "%"), "system_cpu": (2.25e6 / 8.192, "us/MB"),
    "kernel_cpu": (0.0, "us/MB"), "file_bandwidth": (49.152 / 4, "MB/s"), "extent_count": (0, "1"),
    "extents_per_file": (0.0, "1"), "mean_extent": (0.0, "KiB"), "log_size": (5_500_000 / 2**20, "MiB"),
    "flusher_spin_time": (0.125, "s"), "lock_wait_time": (0.0, "s"), "waiting_processors": (0.0, "1"),
    "system_processors": (2.25 / 4, "1"),
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_by_hand(name: str) -> None:
    """Of one run."""
    value, unit = BY_HAND[name]
    assert FIGURES[name].unit == unit
    assert FIGURES[name].whole(RUN) == pytest.approx(value, rel=1e-9)
