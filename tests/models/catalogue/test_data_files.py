"""Parts of the catalogue that are files: a user's copy of a file is the same part."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue import data_files
from wbsim.models.catalogue.data_files import names_in, part_in, purposes_in, text_of
from wbsim.models.catalogue.drives import DRIVES, drives_of
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.machines import machines_of
from wbsim.models.release import release_of
from wbsim.sim.param import Origin
from wbsim.sim.units import quantity

CONFIG = """\
title = "a drive"
[scenario]
machine.like = "desktop-2018"
machine.disks.new.like = "NAME"
kernel.like = "6.1"
mounts.a = { like = "ext4", disk = "new", at = "/", size = "5 GB" }
workload.command = "dd if=/dev/zero of=/f bs=1M count=1"
"""
SMALL = """\
purpose = "a drive of a test"
like = "sata-disk"
queue.like = "virtio"

[device]
outer = { value = "1.5 GB/s", origin = "measured", source = "a test" }
track_seek = { value = "1 ms", origin = "assumed", low = "500 us", high = "2 ms", source = "a guess" }
"""
NAS = """\
purpose = "a box with three disks"
like = "server-2012"
processors.count = { value = 4, origin = "specified", source = "a test" }

[disks.sdb]
queue.like = "sata"

[disks.sdb.device]
kind = { value = "raid0", origin = "specified", source = "a test" }
chunk = { value = "64 KiB", origin = "assumed", low = "64 KiB", high = "512 KiB", source = "a guess" }

[disks.sdb.device.members]
count = 3
like = "sata-disk"
outer = { value = "250 MB/s", origin = "measured", source = "a test" }
"""


@pytest.mark.parametrize("name", names_in("drives"))
def test_copy_of_a_file_is_the_drive(name: str, tmp_path: Path) -> None:
    """The reader of configurations and the catalogue read one grammar; the sources name different files."""
    (tmp_path / "copy.toml").write_text(text_of("drives", name))
    (case,) = parse(CONFIG.replace("NAME", "copy"), str(tmp_path / "x.toml")).cases
    drive, copy = drives_of(release_of("6.1"))[name], case.scenario.machine.disks["new"]
    assert copy.model_dump() == drive.model_dump()
    origins = [
        [number.provenance.origin for number in spec.numbers() if number.provenance is not None]
        for spec in (copy, drive)
    ]
    assert origins[0] == origins[1]


@pytest.mark.parametrize("name", names_in("filesystems"))
def test_copy_of_a_file_is_the_filesystem(name: str, tmp_path: Path) -> None:
    """A copy brings what the catalogue's filesystem has."""
    (tmp_path / "copy.toml").write_text(text_of("filesystems", name))
    text = (
        CONFIG.replace("NAME", "pm9a3")
        .replace('like = "ext4"', 'like = "copy"')
        .replace(', size = "5 GB"', "")
    )
    (case,) = parse(text + 'machine.disks.new.device.size = "700 TB"\n', str(tmp_path / "x.toml")).cases
    assert case.scenario.mounts["a"].filesystem.model_dump() == FILESYSTEMS[name].model_dump()


@pytest.mark.parametrize(
    ("name", "release"),
    [
        (name, release)
        for name in names_in("machines")
        for release in ("3.11", "6.12")
        if (name, release) != ("j09-server", "6.12")  # it has CFQ, which ended with 4.20
    ],
)
def test_copy_of_a_file_is_the_machine(name: str, release: str, tmp_path: Path) -> None:
    """The name alone differs, because a copy may be like the machine's own base."""
    (tmp_path / "copy.toml").write_text(text_of("machines", name))
    text = CONFIG.replace("machine.disks", "# machine.disks").replace("desktop-2018", "copy")
    text = text.replace('"6.1"', f'"{release}"').replace('disk = "new"', f'disk = "{disk_of(name)}"')
    (case,) = parse(text.replace("5 GB", "1 GB"), str(tmp_path / "x.toml")).cases
    machine, copy = machines_of(release_of(release))[name], case.scenario.machine
    assert {**copy.model_dump(), "name": name} == machine.model_dump()
    known, copied = ({number.path: number.provenance for number in of.numbers()} for of in (machine, copy))
    for path, given in known.items():
        own = copied[path]
        assert given is not None
        assert own is not None
        assert own.origin is given.origin, path
        assert own.targets == given.targets, path


def disk_of(machine: str) -> str:
    """Return the name of the only disk of *machine*."""
    (disk,) = machines_of(release_of("6.1"))[machine].disks
    return disk


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the catalogue's data, with a copy of its files."""
    shutil.copytree(data_files._FOLDER, tmp_path / "data")
    monkeypatch.setattr(data_files, "_FOLDER", tmp_path / "data")
    caches = (names_in, part_in, purposes_in, drives_of, machines_of)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path / "data"
    for cached in caches:
        cached.cache_clear()


def test_one_file_is_a_new_machine(folder: Path) -> None:
    """The base brings the rest; a file with another disk has no disk of its base."""
    (folder / "machines" / "nas.toml").write_text(NAS)
    nas, base = machines_of(release_of("6.1"))["nas"], machines_of(release_of("6.1"))["server-2012"]
    assert nas.name == "nas"
    assert nas.processors.model_dump() == {**base.processors.model_dump(), "count": 4}
    assert list(nas.disks) == ["sdb"]
    raid: Any = nas.disks["sdb"].device
    assert [member.outer for member in raid.members] == [250_000_000] * 3
    assert raid.members[0].inner == drives_of(release_of("6.1"))["sata-disk"].device.inner  # type: ignore[attr-defined]
    assert nas.disks["sdb"].queue.driver_depth == 32
    assert purposes_in("machines")["nas"] == "a box with three disks"


def test_device_of_another_kind_keeps_nothing_of_its_base(folder: Path) -> None:
    """The base has a disk; the file has a null device in its place, and the queue of the base."""
    text = (
        NAS.split("[disks")[0]
        + '[disks.sda.device]\nkind = { value = "null", origin = "specified", source = "" }\n'
    )
    (folder / "machines" / "nas.toml").write_text(text)
    drive = machines_of(release_of("6.1"))["nas"].disks["sda"]
    assert drive.device.model_dump() == {"kind": "null", "cache": False}
    assert drive.queue.driver_depth == 32


def test_one_file_is_a_new_drive(folder: Path) -> None:
    """The base brings what the file does not have, and the release decides the queue."""
    (folder / "drives" / "small.toml").write_text(SMALL)
    small, base = drives_of(release_of("6.1"))["small"], DRIVES["sata-disk"]
    device = small.device.model_dump()
    assert device == {**base.device.model_dump(), "outer": 1_500_000_000, "track_seek": 1_000_000}
    assert small.queue.model_dump() == drives_of(release_of("6.1"))["virtio-disk"].queue.model_dump()
    given = small.device.provenance("track_seek")
    assert given is not None
    assert (given.origin, given.low, given.high, given.source) == (
        Origin.ASSUMED,
        500_000,
        2_000_000,
        "a guess",
    )


def test_keys_of_a_queue_change_what_the_interface_brings(folder: Path) -> None:
    """The release decides all other keys."""
    own = 'nr_requests = { value = 7, origin = "measured", source = "a test" }\n'
    (folder / "drives" / "small.toml").write_text(
        f"{SMALL}[queue]\n{own}".replace('queue.like = "virtio"', "") + 'like = "virtio"\n'
    )
    queue, other = (drives_of(release_of("6.1"))[name].queue for name in ("small", "virtio-disk"))
    assert queue.model_dump() == {**other.model_dump(), "nr_requests": 7}


TWO_DISKS = """\
purpose = "a base with two disks"
like = "small-vm"
[disks]
vda.like = "virtio-ssd"
vdb.device.like = "sata-disk"
vdb.queue.like = "virtio"
vdb.device.outer = { value = "99 MB/s", origin = "measured", source = "a test" }
"""


def test_file_changes_one_of_two_disks(folder: Path) -> None:
    """The other disk stays; a ``like`` drops what the base said beside its own ``like``."""
    (folder / "machines" / "two.toml").write_text(TWO_DISKS)
    changes = 'purpose = "another"\nlike = "two"\n[disks.vdb.device]\nlike = "virtio-disk"\n'
    (folder / "machines" / "other.toml").write_text(changes)
    machines = machines_of(release_of("6.1"))
    two, other = machines["two"], machines["other"]
    assert list(other.disks) == ["vda", "vdb"]
    outer: list[Any] = [of.disks["vdb"].device for of in (two, other)]
    assert [device.outer for device in outer] == [99_000_000, 125_000_000]


def test_number_without_an_origin_is_refused(folder: Path) -> None:
    """A number of the catalogue has a source."""
    (folder / "drives" / "small.toml").write_text(SMALL + 'inner = "50 MB/s"\n')
    with pytest.raises(ValueError, match=r"^small\.toml: device\.inner has no origin; write \{ value"):
        part_in("drives", "small")


def test_unknown_origin_is_refused(folder: Path) -> None:
    (folder / "drives" / "small.toml").write_text(SMALL.replace("measured", "guessed"))
    with pytest.raises(ValueError, match="'guessed' is not a valid Origin"):
        part_in("drives", "small")


@pytest.mark.parametrize(
    ("text", "amount"),
    [("2 MiB", 2 << 20), ("8333333 ns", 8_333_333), ("1.5 GB/s", 1_500_000_000), ("ssd", "ssd"), ("7", "7"),
     ("12 parsecs", "12 parsecs")],
)  # fmt: skip
def test_text_with_a_unit_is_a_quantity(text: str, amount: object) -> None:
    assert quantity(text) == amount


def test_number_that_was_fitted_names_its_rows() -> None:
    """The rows are those that the fit has seen, so the report does not count them as predictions."""
    given = part_in("drives", "x25-e")["device"]["program_time"]
    assert (given.origin, given.targets) == (Origin.CALIBRATED, ("J09-seqbw",))
