"""The runs of fio on drives whose rates can be computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from wbsim.experiments.drives.runs import RUNS, run_of
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.sheets import HOST_NS
from wbsim.models.scenario import DriveSpec
from wbsim.sim.param import bare
from wbsim.sim.units import KIB, MS, US, S

MB = 10**6


def drive(name: str = "860-pro-512gb", **device: Any) -> DriveSpec:
    """Return the drive *name* of the catalogue with the entries *device*."""
    inputs = bare(DRIVES[name].inputs())
    return DriveSpec.model_validate({**inputs, "device": {**inputs["device"], **device}})


def figure(name: str, spec: DriveSpec) -> float:
    """Return the result of the run *name* on *spec*."""
    run, number = run_of(name)
    return run.measure(spec, number)


@pytest.mark.parametrize(
    ("name", "row", "number"),
    [
        ("random_write_qd32", "random_write_qdN", 32), ("random_write_512k_qd1", "random_write_512k_qdN", 1),
        ("durable_writes_8", "durable_writes_N", 8), ("random_write_steady", "random_write_steady", 1),
    ],
)  # fmt: skip
def test_name_has_the_number(name: str, row: str, number: int) -> None:
    """The requests in flight, or the jobs."""
    assert run_of(name) == (RUNS[row], number)


@pytest.mark.parametrize("name", ["random_write", "random_write_qd0", "durable_writes_", "seek"])
def test_run_without_such_a_name_is_refused(name: str) -> None:
    """A number is needed, and it is 1 or more."""
    with pytest.raises(KeyError):
        run_of(name)


def test_depth_one_includes_the_host_and_the_latency() -> None:
    """A write takes command, transfer and latency, and the host's part passes before the next one."""
    spec = drive(command_time=20 * US, latency=30 * US, link=400 * MB)
    took_ns = 50 * US + 4 * KIB * S // (400 * MB) + HOST_NS
    assert figure("random_write_qd1", spec) == pytest.approx(S / took_ns, rel=1e-3)


def test_deep_queue_hides_all_but_the_command() -> None:
    """32 requests occupy the link all the time; a drive takes no more than its queue has."""
    spec = drive(command_time=20 * US, latency=300 * US, link=400 * MB)
    took_ns = 20 * US + 4 * KIB * S // (400 * MB)
    assert figure("random_write_qd32", spec) == pytest.approx(S / took_ns, rel=1e-3)
    slow = drive(command_time=US, latency=10_000 * US)
    assert figure("random_write_qd256", slow) == figure("random_write_qd32", slow)
    assert figure("random_write_qd32", slow) > 1.5 * figure("random_write_qd16", slow)


def test_flash_limits_sequential_writes_behind_the_cache() -> None:
    """100 planes of 16 KiB in 4 ms."""
    spec = drive(units=100, program_time=4 * MS)
    assert figure("sequential_write", spec) == pytest.approx(100 * 16 * KIB / 4e-3, rel=0.01)


def test_whole_drive_is_written_at_two_rates() -> None:
    """980: the SLC part of 160 GB of 1 TB shrinks while the drive fills, to 160 / (1 + 160 / 1000)."""
    spec = DRIVES["980-1tb"]
    part = 160 / 1.16 / 1000
    expected = 1 / (part / 2500 + (1 - part) / 500)
    assert figure("sequential_write_all", spec) / MB == pytest.approx(expected, rel=0.02)
    assert figure("sequential_write_after", spec) / MB == pytest.approx(500, rel=0.01)


def test_worn_drive_shares_its_rate_between_host_and_garbage() -> None:
    """Its planes program each written page and, amplified, the moved ones, whose reads take time, too."""
    spec = DRIVES["7450-pro-960gb"]
    amplification = figure("write_amplification", spec)
    device = bare(spec.device.inputs())
    program, read = device["program_time"], device["read_time"]
    share = (1 + (amplification - 1) * (program + read) / program) * 4 * KIB
    assert figure("random_write_steady", spec) == pytest.approx(1400 * MB / share, rel=0.12)


def test_protected_drive_makes_writes_durable_without_a_flush() -> None:
    """So the rate of one job is that of random writes with one request in flight."""
    spec = DRIVES["pm883-7680gb"]
    assert figure("durable_writes_1", spec) == pytest.approx(figure("random_write_qd1", spec), rel=0.01)


def test_flush_follows_each_durable_write() -> None:
    """One job alternates a write of 4 KiB, and a flush that programs a page."""
    spec = drive(command_time=10 * US, latency=0, link=400 * MB, program_time=MS, flush_time=2 * MS, units=4)
    took_ns = 20 * US + 4 * KIB * S // (400 * MB) + MS + 2 * MS + HOST_NS
    assert figure("durable_writes_1", spec) == pytest.approx(S / took_ns, rel=1e-3)


def test_disk_reads_within_a_gibibyte() -> None:
    """A read takes a seek of the first GiB, and half a turn."""
    spec = DRIVES["disk-2016"]
    expected = 1 / (0.001 + 8 / 15 * 0.017 * (1.07 / 2000) ** 0.5 + 0.00417)
    assert figure("random_read_qd1", spec) == pytest.approx(expected, rel=0.05)


def test_random_writes_of_512_kib_are_cut_to_requests() -> None:
    """A stick behind usb-storage takes 120 KiB at most, so five requests are one write."""
    spec = drive("usb-stick-8gb", units=1, program_time=16 * KIB * S // (16 * MB), command_time=0, latency=0)
    assert figure("random_write_512k_qd1", spec) / MB == pytest.approx(16, rel=0.08)


def test_mean_seek_is_that_of_two_random_places() -> None:
    """The mean root of a distance is 8/15."""
    spec = DRIVES["savvio-10k4"]
    expected = 0.56 + 8 / 15 * (8.18 - 0.56)
    assert figure("mean_seek", spec) / MS == pytest.approx(expected, rel=0.005)


def test_every_figure_of_the_catalogue_names_a_run() -> None:
    """A misspelt name would be found only by the comparison."""
    from wbsim.experiments.drives.compare import RUN_OF_INPUT
    from wbsim.experiments.drives.describe import sheet_names
    from wbsim.models.catalogue.data_files import part_in

    names = {name for drive in sheet_names() for name in part_in("drives", drive).get("figures", {})}
    assert all(run_of(name) for name in (*names, *RUN_OF_INPUT.values()))
