"""The memory for several runs at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from wbsim.experiments.running import workers
from wbsim.experiments.running.workers import Budget, available_mib


def test_run_waits_until_it_fits_next_to_the_others() -> None:
    """Runs may use 900 of 1 000 MiB, but a run without others always begins.

    * Two runs of 400 MiB fit.
    * A third run begins when one has ended.
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
    assert not budget.fits("never seen"), "an unknown run counts as the largest"


def test_need_of_a_kind_is_its_largest_run() -> None:
    """All runs begin while no need is known.  When runs have ended, the largest run counts."""
    budget = Budget(1_000, {})
    for place in range(3):
        assert budget.fits("a")
        budget.begins(place, "a")
    budget.ends(0, 500.0)
    budget.ends(1, 100.0)
    assert not budget.fits("a"), "500 + 500 is more than 900"
    budget.ends(2, 0.0)
    assert budget.fits("a")


def test_available_memory_is_positive() -> None:
    """The amount is at most the memory of this machine."""
    with open("/proc/meminfo") as file:
        total_mib = int(file.read().split()[1]) / 1024
    assert 0 < available_mib() <= total_mib


@pytest.mark.parametrize(
    ("limit", "used", "mib"), [("max", 5, 7_000), (9 << 30, 3 << 30, 6_144), (1 << 40, 0, 7_000)]
)
def test_available_memory_is_the_lesser_of_machine_and_cgroup(
    limit: str | int, used: int, mib: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MemAvailable is in KiB.  The limit and the use of a control group are in bytes."""
    (tmp_path / "meminfo").write_text("MemTotal: 9999999 kB\nMemAvailable:    7168000 kB\nBuffers: 5 kB\n")
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    (tmp_path / "memory.current").write_text(f"{used}\n")
    monkeypatch.setattr(workers, "Path", lambda _: tmp_path / "meminfo")
    monkeypatch.setattr(workers, "_CGROUP", tmp_path)
    assert workers.available_mib() == mib
