"""The claims about drives: what garbage, flushes, an SLC part and seeks do to writeback."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.documents.places import CONFIGS
from wbsim.experiments.config.experiment import load
from wbsim.experiments.results.figures import FIGURES
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.execute import How, run_jobs
from wbsim.experiments.running.jobs import Job

pytestmark = pytest.mark.long


def outcomes(config: str, overrides: Sequence[str] = ()) -> list[Outcome]:
    """Return the runs of *config*, in the order of its cases."""
    cases = load(CONFIGS / config, overrides).cases
    return run_jobs([Job(case, 1) for case in cases], How()).all_outcomes()


def figure(name: str, outcome: Outcome) -> float:
    """Return the figure *name* of a run."""
    return FIGURES[name].whole(outcome)


def test_worn_drive_writes_a_sixth_and_holds_all_writers() -> None:
    """Old data in order costs nothing, because fs_mark makes complete blocks garbage; a mix costs six times.

    A drive with 7 % spare flash writes fast until its clean blocks are gone, here 0.9 GB.
    """
    runs = {outcome.variant: outcome for outcome in outcomes("garbage.toml")}
    rates = {name: figure("write_bandwidth", outcome) for name, outcome in runs.items()}
    assert rates["full"] > 0.95 * rates["empty"]
    assert rates["worn"] < rates["empty"] / 5
    assert figure("write_amplification", runs["empty"]) == pytest.approx(1, abs=0.01)
    assert figure("write_amplification", runs["worn"]) > 4
    assert figure("held_writers", runs["worn"]) > 3.7
    levels = runs["overwritten"].levels
    sectors = dict(zip(levels["time_ns"], levels["sda sectors"], strict=True))
    early, late = (
        max(count for ns, count in sectors.items() if ns <= until) - min(
            count for ns, count in sectors.items() if ns >= since
        )
        for since, until in ((0, 1_500_000_000), (5_000_000_000, 6_500_000_000))
    )  # fmt: skip
    assert late < early / 3


def test_cache_of_the_drive_decides_what_an_fsync_costs() -> None:
    """Two flushes of a disk, or of an SSD; or none, if the cache is protected."""
    means = {}
    for outcome in outcomes("fsync_drives.toml"):
        (program,) = outcome.programs.values()
        means[outcome.variant] = program.calls["fsync"].mean_ns / 1e6
    assert list(means) == sorted(means, key=lambda name: -means[name])
    assert means["disk"] > 8.3
    assert means["SATA-SSD"] == pytest.approx(2 * 1_000 / 490, rel=0.1)
    assert means["NVMe-SSD"] == pytest.approx(2 * 1_000 / 574, rel=0.1)
    assert means["capacitors"] < 0.1
    assert means["Optane"] < 0.05


def test_copy_becomes_slow_when_the_fast_part_is_full() -> None:
    """6 GB go at 487 MB/s, and 10.8 GB at 169 MB/s; a part of 42 GB takes all of them."""
    times = {outcome.variant: outcome.on_disk_time or 0.0 for outcome in outcomes("big_copy.toml")}
    size = 16_000 * 1.048576
    assert times["870-QVO"] == pytest.approx(6_000 / 487 + (size - 6_000) / 169, rel=0.05)
    assert times["860-EVO"] == pytest.approx(size / 520, rel=0.05)
    assert times["S4500"] == pytest.approx(size / 490, rel=0.05)


def test_small_limit_costs_ten_streams_half_of_the_disk() -> None:
    """Below 8 MiB each request is short, and so the head seeks often; at 256 MiB the disk loses a tenth."""
    runs = outcomes("small_limits.toml")
    rates = [figure("on_disk_bandwidth", outcome) for outcome in runs]
    assert rates == sorted(rates)
    assert rates[0] < 0.5 * 160
    assert rates[-1] > 0.85 * 160
    sizes = [figure("on_disk_request_size", outcome) for outcome in runs]
    assert sizes == sorted(sizes)
