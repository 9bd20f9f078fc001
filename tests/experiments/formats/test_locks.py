"""The locks of a run, as the kernel's tools print them."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from wbsim.experiments.formats.locks import lock_stat, perf_lock_contention
from wbsim.sim.sync import LockStat

LOCKS = {
    "idle": asdict(LockStat()),
    "vdb/list_lock": asdict(
        LockStat(acquisitions=4, hold_ns=2_000, hold_min_ns=100, hold_max_ns=900, bounces=3)
    ),
    "inode_hash_lock": asdict(
        LockStat(
            acquisitions=10, contentions=4, wait_ns=5_000_000, wait_min_ns=250, wait_max_ns=4_000_000,
            hold_ns=30_000, hold_min_ns=1_000, hold_max_ns=9_990, bounces=7, con_bounces=3,
        )
    ),
}  # fmt: skip


def test_lock_stat_has_the_kernel_s_columns_in_us() -> None:
    """The most contended lock comes first.  Locks without acquisitions are left out."""
    head, _, columns, _, blank, *rows = lock_stat(LOCKS).splitlines()
    assert (head, blank) == ("lock_stat version 0.4", "")
    assert columns.split() == [
        "con-bounces", "contentions", "waittime-min", "waittime-max", "waittime-total", "waittime-avg",
        "acq-bounces", "acquisitions", "holdtime-min", "holdtime-max", "holdtime-total", "holdtime-avg",
    ]  # fmt: skip
    assert [row.split() for row in rows] == [
        ["inode_hash_lock:", "3", "4", "0.25", "4000.00", "5000.00", "1250.00", "7", "10", "1.00", "9.99",
         "30.00", "3.00"],
        ["vdb/list_lock:", "0", "0", "0.00", "0.00", "0.00", "0.00", "3", "4", "0.10", "0.90", "2.00",
         "0.50"],
    ]  # fmt: skip
    assert {len(row) for row in (columns, *rows)} == {len(columns)}, "the columns are aligned"


def test_perf_lists_contended_locks() -> None:
    """The longest wait comes first, and each time has its unit."""
    assert perf_lock_contention(LOCKS) == (
        " contended   total wait     max wait     avg wait   lock\n\n"
        "         4      5.00 ms      4.00 ms      1.25 ms   inode_hash_lock"
    )


@pytest.mark.parametrize(
    ("wait_ns", "told"),
    [
        (999, "999 ns"), (1_000, "1.00 us"), (999_990, "999.99 us"), (1_000_000, "1.00 ms"),
        (1_000_000_000, "1.00 s"),
    ],
)  # fmt: skip
def test_time_has_the_largest_unit_that_it_reaches(wait_ns: int, told: str) -> None:
    """A time is printed as perf prints it."""
    lock = asdict(LockStat(contentions=1, wait_ns=wait_ns, wait_max_ns=wait_ns))
    row = perf_lock_contention({"l": lock}).splitlines()[-1]
    assert row.split("   ")[-1] == "l"
    assert row.count(told) == 3
