"""The claims of report V13: 16 processes make, read and remove inodes, and 101 syncs run at once."""

from __future__ import annotations

import pytest

from wbsim.experiments.config.experiment import config_path, load
from wbsim.experiments.published.figures import METRICS, published_rows
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.simulate import run_case

ROWS = {row.id: row for row in published_rows()}


def error_of(variant: str, row: str) -> tuple[float, Outcome]:
    """Run *variant*; return the relative error of the published *row*, and the outcome."""
    (case,) = load(config_path("inodes.toml"), [], variant).cases
    assert row in case.rows
    outcome = run_case(case, 1)
    published = ROWS[row].value
    assert published is not None
    return METRICS[ROWS[row].metric, ROWS[row].unit].whole(outcome) / published - 1, outcome


@pytest.mark.long
@pytest.mark.parametrize(
    ("variant", "row", "within"),
    [
        ("create", "V13-xfs-create-u", 0.10),
        ("unlink", "V13-xfs-unlink-u", 0.10),
        ("sync", "V13-cleansync-total-u", 0.10),
        ("bulkstat", "V13-xfs-bulkstat-u", 0.20),
        ("bulkstat-patched", "V13-xfs-bulkstat-p", 0.20),
        ("create-patched", "V13-xfs-create-p", 0.20),
        ("unlink-patched", "V13-xfs-unlink-p", 0.20),
        ("lookup-patched", "V13-xfs-lookup-p", 0.20),
        ("ext4-lookup-patched", "V13-ext4-lookup-p", 0.20),
    ],
)
def test_rows_are_within_their_bounds(variant: str, row: str, within: float) -> None:
    """The first three rows are calibrated; a steady pace is extrapolated (`models.workloads.program`)."""
    error, _ = error_of(variant, row)
    assert abs(error) <= within


@pytest.mark.long
def test_xc_cil_lock_limits_the_gain_of_creat_on_xfs() -> None:
    """XFS's creat gains less than 5 %, because tasks wait for xc_cil_lock in both kernels.

    Linux 6.0 has no xc_cil_lock, and there creat gains more.
    """
    _, plain = error_of("create", "V13-xfs-create-u")
    _, patched = error_of("create-patched", "V13-xfs-create-p")
    assert 0.95 < patched.wall_time / plain.wall_time < 1.0
    for outcome in (plain, patched):
        assert max(outcome.locks, key=lambda name: outcome.locks[name]["wait_ns"]) == "scratch/xc_cil_lock"
    per_cpu = load(
        config_path("inodes.toml"), ["kernel.filesystems.xfs.cil=per_cpu"], "create-patched"
    ).cases[0]
    assert run_case(per_cpu, 1).wall_time < 0.95 * patched.wall_time
