"""The claims about arrays of disks, beside what their users reported."""

from __future__ import annotations

import pytest

from tests.reports.test_drives import figure, outcomes
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.results.figures import FIGURES
from wbsim.experiments.running.execute import How, run_jobs
from wbsim.experiments.running.jobs import Job

pytestmark = pytest.mark.long

RANDOM = """\
title = "random writes that wait for the disks, on RAID6 of ten disks"
[scenario]
machine.like = "server-2018"
machine.disks.sd = { like = "sata-disk", count = 10 }
machine.arrays.md0 = { level = "raid6", members = "sd", chunk = "64 KiB", bitmap_chunk = "0 B" }
mounts.data = { like = "xfs", disk = "md0", at = "/data", size = "400 GiB" }
kernel.like = "6.1"
programs.w.command = "fio --name=w --directory=/data --rw=randwrite --bs=BS --size=8g MORE"
[variants.reconstruct]
machine.arrays.md0.rmw_level = 0
[variants.modify]
"""


def test_stripe_cache_doubles_the_rate_and_no_more() -> None:
    """Linux 3.2: twice as fast from 256 to 4 096 stripes, and flat behind (field.md E: 2.5 times, and flat).

    In 6.12 bios add complete stripes, and the cache grows, so it gains less than a half.
    """
    rates = {
        (outcome.variant, outcome.point["machine.arrays.md0.stripe_cache_size"]): (
            outcome.file_bytes / outcome.wall_time
        )
        for outcome in outcomes("stripe_cache.toml")
    }
    assert 2 < rates["3.2", 4096] / rates["3.2", 256] < 3
    assert rates["3.2", 16384] / rates["3.2", 4096] == pytest.approx(1, abs=0.05)
    assert rates["6.12", 4096] / rates["6.12", 256] < 1.5


@pytest.mark.parametrize(("size", "published"), [("4k", 165 / 141), ("64k", 2_282 / 1_958), ("512k", 1.0)])
def test_read_modify_write_gains_as_published(size: str, published: float) -> None:
    """Eight random writers on RAID6: the gain of read-modify-write is within 1.5 times of the published one.

    The commit is 584acdd49cd2 (field.md E), with jobs that are not described further.
    """
    more = "--numjobs=8 --runtime=10 --time_based=1 --overwrite=1 --sync=dsync"
    cases = parse(RANDOM.replace("BS", size).replace("MORE", more), "x.toml").cases
    runs = run_jobs([Job(case, 1) for case in cases], How()).all_outcomes()
    rates = {run.variant: FIGURES["file_bandwidth"].whole(run) for run in runs}
    gain = rates["modify"] / rates["reconstruct"]
    assert gain >= 1
    assert published / 1.5 < gain < published * 1.5


def test_plug_saves_requests_of_mirrors_and_reads_of_parity() -> None:
    """Eight threads on six SSDs: RAID0 and RAID10 become faster, and RAID5 reads a third, but is not faster.

    Without the plug RAID5 makes more files than RAID0, because raid5d makes the requests.
    """
    runs = {
        outcome.variant: outcome for outcome in outcomes("raid_threads.toml") if outcome.point["threads"] == 8
    }
    rates = {name: figure("file_rate", run) for name, run in runs.items()}
    reads = {name: figure("read_iops", run) for name, run in runs.items()}
    assert rates["raid0-plug"] > 1.3 * rates["raid0"]
    assert rates["raid10-plug"] > 1.7 * rates["raid10"]
    assert rates["raid5"] > 1.3 * rates["raid0"]
    assert rates["raid5-plug"] < 1.05 * rates["raid5"]
    assert reads["raid5-plug"] < reads["raid5"] / 3
    assert reads["raid0"] == reads["raid10-plug"] == 0


def test_reservations_save_extents_and_cost_parity_reads() -> None:
    """allocsize of 16 MiB on RAID6: four extents instead of 23 or more, and no fewer reads for parity."""
    runs = {
        (outcome.variant, outcome.point["mounts.data.allocsize"]): outcome
        for outcome in outcomes("raid_allocsize.toml")
    }
    small, large = "64 KiB", "16 MiB"
    for variant in ("64-KiB", "512-KiB"):
        assert figure("extents_per_file", runs[variant, small]) > 20
        assert figure("extents_per_file", runs[variant, large]) == 4
        assert figure("read_iops", runs[variant, large]) > figure("read_iops", runs[variant, small])
    reads = [figure("read_iops", runs["512-KiB", size]) for size in (small, large)]
    assert reads[1] > 1.6 * reads[0]
    aligned, unaligned = (figure("read_iops", runs[name, small]) for name in ("512-KiB", "512-KiB-unaligned"))
    assert aligned < 0.8 * unaligned


def test_battery_helps_one_job_most() -> None:
    """Random writes that wait for RAID5 of eight disks: write-back gains most with one or two in flight.

    Observed on eight SATA disks: 6 to 7.5 times with one, and less with more (devices.md 2).
    """
    rates = {
        (outcome.variant, outcome.point["jobs"]): figure("write_iops", outcome)
        for outcome in outcomes("controller.toml")
    }
    gains = {jobs: rates["write-back", jobs] / rates["write-through", jobs] for jobs in (1, 4, 16, 64)}
    assert gains[1] > 6
    assert gains[1] > gains[4] > gains[16] > gains[64] > 1
