"""`wbsim describe-drive`: a drive file from a sheet and from fio's results, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.models.catalogue.drives import drives_of
from wbsim.models.release import release_of
from wbsim.sim.param import Origin
from wbsim.sim.units import quantity

SHEET = """\
[sheet]
medium = "TLC"
interface = "PCIe 4 x4"
capacity = "2 TB"
sequential_write = "6900 MB/s"
protected = false
"""
CONFIG = """\
title = "a drive"
[scenario]
machine.like = "desktop-2018"
machine.disks.new.like = "./drive.toml"
kernel.like = "6.1"
mounts.a = { like = "ext4", disk = "new", at = "/", size = "1 GB" }
workload.command = "dd if=/dev/zero of=/f bs=1M count=1"
"""


def amount(value: Any) -> Any:
    """Return *value* in the base unit, if it is a text with a unit."""
    return quantity(value) if isinstance(value, str) else value


def result(name: str, options: dict[str, str] | None = None, **write: Any) -> dict[str, Any]:
    """Return a job as fio writes it."""
    return {"jobname": name, "job options": options or {"rw": "randwrite", "bs": "4k"}, "write": write}


def save(path: Path, *jobs: dict[str, Any]) -> str:
    """Write *jobs* as fio does, and return the name of the file."""
    path.write_text(json.dumps({"fio version": "fio-3.33", "jobs": list(jobs)}))
    return str(path)


@pytest.mark.parametrize("name", ["980-pro-1tb", "disk-2014", "padlock2-16gb", "seagate-archive-8tb"])
def test_drive_file_is_the_drive(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file for a drive of the catalogue has the numbers of this drive, and their origins and ranges."""
    assert main(["describe-drive", name, "--out", str(tmp_path / "drive.toml")]) == 0
    assert 'use it with machine.disks.sda.like = "./drive.toml"' in capsys.readouterr().err
    (case,) = parse(CONFIG, str(tmp_path / "x.toml")).cases
    copy, drive = case.scenario.machine.disks["new"], drives_of(release_of("6.1"))[name]
    assert copy.model_dump() == drive.model_dump()
    origins = [{number.path: number.provenance for number in spec.numbers()} for spec in (copy, drive)]
    for path, provenance in origins[1].items():
        own = origins[0][path]
        assert provenance is not None
        assert own is not None
        assert own.origin is provenance.origin, path
        if own.origin is Origin.ASSUMED:
            assert [amount(own.low), amount(own.high)] == [provenance.low, provenance.high], path


def test_figures_of_fio_join_those_of_the_sheet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Jobs are named after keys, and may be in one file or in several."""
    sheet = tmp_path / "sheet.toml"
    sheet.write_text(SHEET.replace("6900", "1"))
    first = save(
        tmp_path / "a.json", result("sequential_write", {"rw": "write", "bs": "1M"}, bw_bytes=5_000_000_000)
    )
    second = save(
        tmp_path / "b.json",
        result("random_write_qd1", iops=50_000.4),
        result("durable_writes", {"rw": "write", "fdatasync": "1"}, iops=499.6),
    )
    assert main(["describe-drive", str(sheet), first, second]) == 0
    text = capsys.readouterr().out
    assert "sequential_write: fio, job sequential_write in a.json" in text
    assert text.startswith(f"# A drive by wbsim describe-drive, from {sheet}, a.json, b.json\n")
    (flush,) = (line for line in text.splitlines() if line.startswith("flush_time"))
    assert 'origin = "measured"' in flush
    assert "# Assumed, because neither says it: command_time, flash_page" in text


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (result("seq", iops=1), "job 'seq': unknown name; use one of"),
        (result("sequential_writ", iops=1), "unknown name; did you mean sequential_write?"),
        (result("random_write", {"rw": "randread"}, iops=9), "has rw=randread; give rw=randwrite"),
        (result("random_write", {"rw": "randwrite", "bs": "8k"}, iops=9), "has blocks of 8192 B; give 4 KiB"),
        (result("sequential_write", {"rw": "write"}, bw_bytes=9), "has blocks of 4096 B; give 128 KiB or"),
        (result("random_write_qd1", {"rw": "randwrite", "iodepth": "32"}, iops=9), "has iodepth=32; give 1"),
        (result("durable_writes", {"rw": "write"}, iops=9), "has neither fdatasync=1 nor fsync=1"),
        (result("random_write", bw_bytes=9), "write.iops is None; repeat the run"),
        (result("random_write", iops=0), "has no writes: write.iops is 0"),
        ({"write": {}}, "the job has no name"),
    ],
)
def test_result_that_is_no_figure_is_refused(
    job: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the file, the job and the remedy."""
    (tmp_path / "sheet.toml").write_text(SHEET)
    path = save(tmp_path / "a.json", job)
    assert main(["describe-drive", str(tmp_path / "sheet.toml"), path]) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"wbsim: {path}: job ")
    assert message in text


def test_result_that_is_there_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The results of several processes are not added up; options of all jobs count, too."""
    (tmp_path / "sheet.toml").write_text(SHEET)
    job = result("random_write", {"rw": "randwrite"}, iops=9)
    path = save(tmp_path / "a.json", job, job)
    assert main(["describe-drive", str(tmp_path / "sheet.toml"), path]) == 2
    assert f"job random_write is in {path}, too; give one result of each job" in capsys.readouterr().err
    document = {"global options": {"bs": "8k"}, "jobs": [job]}
    (tmp_path / "b.json").write_text(json.dumps(document))
    assert main(["describe-drive", str(tmp_path / "sheet.toml"), str(tmp_path / "b.json")]) == 2
    assert "has blocks of 8192 B" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON; give the output of fio --output-format=json"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "has no jobs"),
        ('{"jobs": []}', "has no jobs"),
    ],
)
def test_file_that_fio_did_not_write_is_refused(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of another kind, or an empty one."""
    (tmp_path / "sheet.toml").write_text(SHEET)
    (tmp_path / "a.json").write_text(text)
    assert main(["describe-drive", str(tmp_path / "sheet.toml"), str(tmp_path / "a.json")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        ("medium = 1", "has no table [sheet]"),
        ("[sheet]\nmedium = \n", ":2: not TOML"),
        (
            SHEET.replace("6900", "9000"),
            ":5: sheet.sequential_write: 9000 MB/s is more than PCIe 4 x4 carries",
        ),
        (
            SHEET + 'slc_fixed = "3 TB"\n',
            ":7: sheet.slc_fixed: is 3000 GB with slc_dynamic, which takes 9000 GB",
        ),
        (SHEET.replace("TLC", "HDD"), ":2: sheet.medium: 'HDD' is not a medium; use 'disk', 'SLC'"),
        (SHEET + "[device]\nlatency = 1\n", ":7: device: is not read; remove it, or name"),
        (SHEET + "spare = 0\n", ":7: sheet.spare: is 0; use a value greater than 0"),
        (SHEET + "rpm = 7200\n", ":7: sheet.rpm: unknown key"),
        (SHEET.replace('capacity = "2 TB"\n', ""), "sheet.capacity: is missing"),
    ],
)
def test_sheet_with_a_fault_is_refused(
    sheet: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the place, the key and the remedy."""
    path = tmp_path / "sheet.toml"
    path.write_text(sheet)
    assert main(["describe-drive", str(path)]) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"wbsim: {path}")
    assert text.count("\n") == 1
    assert message in text


def test_missing_sheet_and_foreign_file_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that is neither a file nor a drive; and a file that another program wrote."""
    assert main(["describe-drive", "980-pro"]) == 2
    assert "wbsim: 980-pro: No such file or directory; did you mean 980-pro-1tb?" in capsys.readouterr().err
    box = tmp_path / "box.toml"
    box.write_text("mine = 1\n")
    assert main(["describe-drive", "980-pro-1tb", "--out", str(box)]) == 2
    assert "exists and is not a drive file of wbsim" in capsys.readouterr().err
    assert box.read_text() == "mine = 1\n"


def test_file_with_a_sheet_can_be_a_member(tmp_path: Path) -> None:
    """An array of the drives in a file, and a device like it."""
    (tmp_path / "drive.toml").write_text(SHEET)
    text = CONFIG.replace(
        'disks.new.like = "./drive.toml"',
        'disks.new = { queue.like = "nvme", device = { kind = "raid0", chunk = "64 KiB", '
        'members = { count = 2, like = "./drive.toml" } } }',
    )
    (case,) = parse(text, str(tmp_path / "x.toml")).cases
    assert case.scenario.machine.disks["new"].device.capacity == 4 * 10**12
    with pytest.raises(BadInput, match="there is no such file"):
        parse(CONFIG.replace("drive.toml", "other.toml"), str(tmp_path / "x.toml"))


def test_disk_of_a_configuration_can_have_a_sheet(tmp_path: Path) -> None:
    """Its keys may stand in the configuration; one number of the device can differ."""
    text = CONFIG.replace('machine.disks.new.like = "./drive.toml"', "").replace("[scenario]", "[scenario]\n")
    text += SHEET.replace("[sheet]", "[scenario.machine.disks.new.sheet]")
    text += '[scenario.machine.disks.new.device]\nlatency = "3 us"\n'
    (case,) = parse(text, str(tmp_path / "x.toml")).cases
    device = case.scenario.machine.disks["new"].device.inputs()
    assert device["latency"].value == 3_000
    assert device["size"].value == 2 * 10**12
    assert device["command_time"].origin == "assumed"
