"""The rule from a data sheet to a drive, with hand-computed numbers, and the contradictions it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from wbsim.models.catalogue.data_files import names_in, part_in
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.sheets import HOST_NS, drive_of, raw_bytes
from wbsim.models.scenario import DriveSpec
from wbsim.sim.param import Given, Origin, assumed, bare, measured
from wbsim.sim.units import GIB, KIB, MIB, MS, US, S

GB, MB = 10**9, 10**6
FLASH: dict[str, Any] = {
    "medium": "TLC", "interface": "SATA 6 Gb/s", "capacity": 480 * GB, "sequential_write": 500 * MB,
    "protected": False, "slc_fixed": 0, "slc_dynamic": 0,
}  # fmt: skip
DISK: dict[str, Any] = {
    "medium": "disk", "interface": "SATA 6 Gb/s", "capacity": 1000 * GB, "turns": 7200,
    "sequential_write": 150 * MB, "cache": 64 * MIB,
}  # fmt: skip


def device(**figures: Any) -> dict[str, Any]:
    """Return the device of FLASH with *figures*, without provenance."""
    table: dict[str, Any] = bare(drive_of({**FLASH, **figures})["device"])
    return table


def test_planes_make_the_rate_of_a_drive_without_slc() -> None:
    """500 MB/s x 2 ms / 16 KiB are 61 planes; so many make the rate exactly in 1.999 ms."""
    numbers = device()
    assert numbers["units"] == 61
    assert numbers["program_time"] == 61 * 16 * KIB * S // (500 * MB)
    assert numbers["link"] == 600 * MB
    assert "slc" not in numbers


def test_slc_part_has_its_own_rate() -> None:
    """The planes make 500 MB/s in the SLC part, in 0.3 ms for a page, and 100 MB/s in five times as long."""
    numbers = device(sequential_write_after=100 * MB, slc_fixed=6 * GB, slc_dynamic=36 * GB)
    assert numbers["units"] == 9  # 500 MB/s x 0.3 ms / 16 KiB
    assert numbers["slc"]["program_time"] == 9 * 16 * KIB * S // (500 * MB)
    assert numbers["program_time"] == 9 * 16 * KIB * S // (100 * MB)
    assert (numbers["slc"]["fixed"], numbers["slc"]["dynamic"]) == (6 * GB, 36 * GB)


def test_slc_part_is_assumed_where_nearly_every_drive_has_one() -> None:
    """TLC and QLC without capacitors have one, unless the sheet says that it has no size."""
    without = {key: value for key, value in FLASH.items() if not key.startswith("slc")}
    numbers = drive_of(without)["device"]
    assert numbers["slc"]["dynamic"].value == 48 * GB
    assert numbers["slc"]["dynamic"].origin is Origin.ASSUMED
    assert numbers["program_time"].origin is Origin.ASSUMED
    rate = numbers["units"].value * 16 * KIB * S / numbers["program_time"].value
    assert rate == pytest.approx(480 * MB, rel=0.01)  # 1 GB/s for each TB of TLC
    for others in ({"medium": "MLC"}, {"protected": True}):
        assert "slc" not in drive_of({**without, **others})["device"]


def test_names_of_media_need_no_capitals() -> None:
    """A user may write tlc."""
    assert device(medium="tlc") == device()
    assert drive_of({**DISK, "medium": "Disk"}) == drive_of(DISK)


def test_makers_round_their_figures() -> None:
    """500 000 writes of 4 KiB are 2.4 % more than 2 000 MB/s."""
    fast = {"medium": "3D XPoint", "interface": "PCIe 3 x4", "sequential_write": 2_000 * MB}
    assert device(**fast, random_write=500_000)["command_time"] > 0


def test_rate_of_random_writes_is_the_time_of_a_command() -> None:
    """100 000 a second are 10 us each, of which 4 KiB take 6.826 us of a link with 600 MB/s."""
    numbers = device(random_write=100_000, random_write_qd1=20_000)
    transfer_ns = 4 * KIB * S // (600 * MB)
    assert numbers["command_time"] == 10 * US - transfer_ns
    assert numbers["latency"] == 50 * US - HOST_NS - 10 * US


def test_durable_write_leaves_the_time_of_a_flush() -> None:
    """A write and a flush take 10 ms; 5 ms remain beyond the program of MLC, or less."""
    numbers = device(medium="MLC", durable_writes=100)
    rest_ns = HOST_NS + 2 * (numbers["command_time"] + numbers["latency"]) + 4 * KIB * S // (600 * MB)
    assert numbers["flush_time"] == 10 * MS - rest_ns - numbers["program_time"]
    assert "flush_time" not in device(protected=True)
    assert device()["flush_time"] == MS


def test_fast_durable_write_bounds_the_time_to_program() -> None:
    """TLC programs a page in 2 ms, but a drive that makes 2 000 writes a second durable does so in less."""
    numbers = device(durable_writes=2_000)
    assert numbers["program_time"] + numbers["flush_time"] < 500 * US
    assert numbers["units"] * 16 * KIB * S / numbers["program_time"] == pytest.approx(500 * MB, rel=0.01)


def test_spare_flash_is_what_the_chips_have_beyond_the_capacity() -> None:
    """480 GB need chips of 512 GiB; a fixed SLC part of 6 GB takes 18 GB of TLC from the spare flash."""
    raw = 512 * GIB / (480 * GB) - 1
    assert device()["ftl"]["spare"] == pytest.approx(raw, abs=1e-4)
    assert device(slc_fixed=6 * GB)["ftl"]["spare"] == pytest.approx(raw - 18 / 480, abs=1e-4)
    assert device(spare=0.3)["ftl"]["spare"] == 0.3
    assert [raw_bytes(size) for size in (GIB, GIB + 1, 400 * GB)] == [GIB, 2 * GIB, 512 * GIB]


def test_cache_holds_two_pages_of_each_plane() -> None:
    """1 MiB is too little for 61 planes with pages of 16 KiB, so it is not taken."""
    assert device(cache=MIB)["cache"] == 2 * 61 * 16 * KIB
    assert device(cache=32 * MIB)["cache"] == 32 * MIB


def test_crosspoint_has_no_garbage() -> None:
    """Its cells are overwritten in place."""
    numbers = device(medium="3D XPoint", interface="PCIe 3 x4")
    assert "ftl" not in numbers
    assert numbers["flash_page"] == 4 * KIB


def test_seeks_follow_from_their_mean() -> None:
    """The mean root of a distance is 8/15: 1 ms + 8/15 x (full - 1 ms) are 9 ms, so full is 16 ms."""
    numbers = bare(drive_of({**DISK, "mean_seek": 9 * MS})["device"])
    assert (numbers["track_seek"], numbers["full_seek"]) == (MS, 16 * MS)
    numbers = bare(drive_of({**DISK, "track_seek": 2 * MS, "full_seek": 20 * MS})["device"])
    assert (numbers["track_seek"], numbers["full_seek"]) == (2 * MS, 20 * MS)


def test_disk_turns_and_loses_half_of_its_rate_inwards() -> None:
    """7200 turns a minute are 8.33 ms each."""
    numbers = bare(drive_of(DISK)["device"])
    assert numbers["turn_time"] == 60 * S // 7200
    assert (numbers["outer"], numbers["inner"]) == (150 * MB, 75 * MB)
    assert bare(drive_of({**DISK, "queue_depth": 1})["queue"]) == {
        "like": "sata", "driver_depth": 1, "queue_depth": 1,
    }  # fmt: skip


def test_numbers_have_the_origin_of_the_figures_they_follow_from() -> None:
    """A range goes through a rule: half of the rate is twice the time of a command."""
    sheet = {
        **FLASH,
        "sequential_write": measured(500 * MB, "a review"),
        "random_write": assumed(50_000, "a guess", 25_000, 100_000),
    }
    numbers = drive_of(sheet)["device"]
    assert numbers["units"].origin is Origin.MEASURED
    assert "a review" in numbers["units"].source
    command: Given = numbers["command_time"]
    assert command.origin is Origin.ASSUMED
    assert (command.low, command.high) == (round(command.value / 2), round(command.value * 2))
    assert numbers["latency"].origin is Origin.ASSUMED


@pytest.mark.parametrize(
    ("sheet", "changes", "message"),
    [
        (FLASH, {"sequential_write": 700 * MB}, "700 MB/s is more than SATA 6 Gb/s carries: 600 MB/s"),
        (FLASH, {"sequential_write_after": 600 * MB}, "is more than sequential_write is: 500 MB/s"),
        (FLASH, {"random_write": 126_000}, "is more than 500 MB/s can program: 122070 a second"),
        (FLASH, {"random_write": 100, "random_write_qd1": 200}, "200 is more than random_write: 100"),
        (FLASH, {"random_write_qd1": 170_000}, "leaves no time: the host alone needs 6 us"),
        (FLASH, {"slc_fixed": 100 * GB, "slc_dynamic": 90 * GB}, "190 GB with slc_dynamic, which takes 570"),
        (FLASH, {"protected": True, "durable_writes": 500}, "contradicts protected = true"),
        (FLASH, {"random_write_qd1": 500, "durable_writes": 500}, "leaves no time for a flush"),
        (FLASH, {"spare": 0.0}, "greater than 0"),
        (FLASH, {"spare": 7.0}, "less than or equal to 2"),
        (FLASH, {"medium": "PLC"}, "'PLC' is not a medium; use 'disk', 'SLC', 'MLC', 'TLC', 'QLC', "),
        (FLASH, {"indirection_unit": 5 * KIB}, "multiple of 4096"),
        (FLASH, {"indirection_unit": 12 * KIB}, "12 KiB is not a power of two"),
        (FLASH, {"turns": 7200}, "not permitted"),
        (DISK, {"sequential_write": 700 * MB}, "is more than SATA 6 Gb/s carries"),
        (DISK, {"turns": 72}, "greater than or equal to 3000"),
        (DISK, {"media_cache": 1000 * GB}, "1000 GB is not less than the capacity: 1000 GB"),
        (DISK, {"sequential_write_inner": 151 * MB}, "is more than sequential_write is"),
        (DISK, {"mean_seek": 9 * MS, "full_seek": 8 * MS}, "9 ms is more than full_seek, 8 ms"),
        (DISK, {"track_seek": 9 * MS, "mean_seek": 8 * MS}, "9 ms is more than mean_seek, 8 ms"),
    ],
)  # fmt: skip
def test_figures_that_contradict_each_other_are_refused(
    sheet: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    """The error names the other figure, and what it allows."""
    with pytest.raises(ValidationError, match=message):
        drive_of({**sheet, **changes})


@pytest.mark.parametrize("name", names_in("drives"))
def test_drives_of_the_catalogue_belong_to_a_family(name: str) -> None:
    """Each has its family, and each drive that has a sheet is valid with its queue."""
    part = part_in("drives", name)
    assert part["family"]
    assert isinstance(DRIVES[name], DriveSpec)


def test_catalogue_has_drives_of_each_family() -> None:
    """At least twenty have a sheet, and among them is each family that people own."""
    families = [part["family"] for name in names_in("drives") if "sheet" in (part := part_in("drives", name))]
    assert len(families) >= 20
    assert {
        "SATA disk", "SAS disk", "SMR disk", "SATA SSD", "SAS SSD", "consumer NVMe SSD",
        "enterprise NVMe SSD",
        "Optane", "USB stick", "SD card", "cloud disk",
    } == set(families)  # fmt: skip
