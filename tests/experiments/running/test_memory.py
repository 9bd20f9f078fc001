"""Memory for several runs at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from wbsim.experiments.running import workers
from wbsim.experiments.running.workers import Budget, available_mib


def test_a_run_waits_where_it_would_not_fit_beside_the_others() -> None:
    """Of 1 000 MiB, 900 are given away: two of 400 fit, a third does not until one has ended; alone, anything
    does.
    """
    budget = Budget(1_000, {"large": 400.0, "huge": 5_000.0})
    assert budget.fits("huge")
    for place in (0, 1):
        assert budget.fits("large")
        budget.begins(place, "large")
    assert not budget.fits("large")
    budget.ends(0, 350.0)
    assert budget.fits("large")
    assert not budget.fits("huge")
    assert not budget.fits("never seen"), "it may be as large as the largest"


def test_what_a_kind_needs_is_the_most_that_one_of_it_had() -> None:
    """Nothing is known at first, so that all begin; then what was seen counts."""
    budget = Budget(1_000, {})
    for place in range(3):
        assert budget.fits("a")
        budget.begins(place, "a")
    budget.ends(0, 500.0)
    budget.ends(1, 100.0)
    assert not budget.fits("a"), "500 and 500 are more than 900"
    budget.ends(2, 0.0)
    assert budget.fits("a")


def test_there_is_some() -> None:
    """Less than this machine has."""
    with open("/proc/meminfo") as file:
        total_mib = int(file.read().split()[1]) / 1024
    assert 0 < available_mib() <= total_mib


@pytest.mark.parametrize(
    ("limit", "used", "mib"), [("max", 5, 7_000), (9 << 30, 3 << 30, 6_144), (1 << 40, 0, 7_000)]
)
def test_what_is_left_is_the_machine_s_or_the_group_s(
    limit: str | int, used: int, mib: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MemAvailable is told in KiB, a control group's limit and use in bytes; the lesser of both."""
    (tmp_path / "meminfo").write_text("MemTotal: 9999999 kB\nMemAvailable:    7168000 kB\nBuffers: 5 kB\n")
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    (tmp_path / "memory.current").write_text(f"{used}\n")
    monkeypatch.setattr(workers, "Path", lambda _: tmp_path / "meminfo")
    monkeypatch.setattr(workers, "_CGROUP", tmp_path)
    assert workers.available_mib() == mib
