"""Named devices, every number with its source."""

from __future__ import annotations

from typing import Final

from wbsim.models.block.spec import MAX_DISCARD_BYTES
from wbsim.sim.param import assumed, calibrated, specified
from wbsim.sim.units import GIB, KIB, MIB, MS, US

_DRIVE: Final = "docs/kernel/devices.md#a-simple-model-of-a-drive"
_FIGURES: Final = "docs/kernel/devices.md#figures"

NO_DISCARD: Final = specified(MAX_DISCARD_BYTES, "the model issues no discards")

SATA_SSD_2013: Final[dict[str, object]] = {
    "kind": specified("ssd", "report P13: 2xSSD"),
    "link": specified(550_000_000, "SATA 6 Gbit/s, minus 8b/10b coding and framing"),
    "command_time": assumed(10 * US, f"{_DRIVE} [R]: SATA 10-20 us a command", 5 * US, 20 * US),
    "latency": assumed(50 * US, f"{_FIGURES} [R]: 40-80 us for a write into the cache", 40 * US, 80 * US),
    "cache": assumed(128 * MIB, "DRAM of drives of 2013; the map takes most of it", 16 * MIB, 512 * MIB),
    "units": assumed(64, "8 channels x 4 dies x 2 planes", 32, 128),
    "flash_page": assumed(8 * KIB, "MLC flash of 2013", 4 * KIB, 16 * KIB),
    "program_time": assumed(
        1_100 * US, "MLC flash of 2013: 64 x 8 KiB in 1.1 ms are 477 MB/s", 900 * US, 1_600 * US
    ),
    "read_time": assumed(
        100 * US, "MLC flash of 2013: 60-75 us a page, plus the controller", 70 * US, 200 * US
    ),
    "protected": assumed(
        True, "report P13: hardware caches; flushes were too cheap to be noticed", False, True
    ),
}

SATA_DISK_2010: Final[dict[str, object]] = {
    "kind": specified("disk", "report N10: XFS on 12 disk RAID0"),
    "size": assumed(1000 * 10**9, "a SATA disk of 2009", 500 * 10**9, 2000 * 10**9),
    "outer": specified(125_000_000, "report N10: 12 disks give 1.5 GB/s [D]"),
    "inner": assumed(62_000_000, "half of the outer rate, as is usual", 50_000_000, 80_000_000),
    "turn_time": specified(8_333_333, "7200 turns a minute"),
    "track_seek": assumed(1 * MS, "data sheets of 2009", 500 * US, 2 * MS),
    "full_seek": assumed(18 * MS, "data sheets of 2009", 12 * MS, 25 * MS),
    "cache": specified(64 * MIB, "report N10: SATA drives have 64-128 MB"),
    "link": specified(300_000_000, "SATA 3 Gbit/s, minus 8b/10b coding"),
}


X25_E: Final[dict[str, object]] = {
    "kind": specified("ssd", "report J09: 32G Intel X25-E"),
    "size": specified(32 * 10**9, "report J09: 32G"),
    "link": assumed(270_000_000, f"{_DRIVE} [R]: effective rate of SATA-II", 250_000_000, 285_000_000),
    "command_time": assumed(15 * US, f"{_DRIVE} [R]: SATA 10-20 us a command", 10 * US, 20 * US),
    "latency": assumed(
        55 * US, f"{_FIGURES} [R]: 85 us a write, minus the command and the transfer", 20 * US, 70 * US
    ),
    "cache": assumed(16 * MIB, f"{_FIGURES} [S]: 16 MB of DRAM; the map takes a part", 1 * MIB, 16 * MIB),
    "units": assumed(20, f"{_DRIVE} [G]: 10 channels x 2", 10, 40),
    "flash_page": assumed(4 * KIB, "SLC flash of 50 nm", 2 * KIB, 8 * KIB),
    "program_time": calibrated(
        390 * US, "20 x 4 KiB in 390 us are 210 MB/s, the report's rate", ("J09-seqbw",)
    ),
    "read_time": assumed(75 * US, f"{_FIGURES} [S]: 75 us", 60 * US, 100 * US),
    "protected": assumed(False, "the drive has no known capacitor", False, True),
}


def _lba_bytes(gigabytes: int) -> int:
    """Return the bytes of a drive sold as *gigabytes* GB: IDEMA's LBA1-03, in blocks of 512 B."""
    return (97_696_368 + 1_953_504 * (gigabytes - 50)) * 512


PM9A3: Final[dict[str, object]] = {
    "kind": specified("ssd", "report W25: PM9A3"),
    "link": assumed(6_500_000_000, "PCIe 4 x4 [R]: about 7 GB/s", 5_000_000_000, 7_000_000_000),
    "size": assumed(
        _lba_bytes(3_840),
        "3.84 TB, a usual size; the report does not name it",
        _lba_bytes(960),
        _lba_bytes(15_360),
    ),
    "command_time": calibrated(
        1_200,
        f"{_FIGURES}: W25 measured 546 k writes a second of 4 KiB at QD 32; minus the link's time",
        (),
    ),
    "latency": assumed(12 * US, "an NVMe write into DRAM with power-loss protection", 8 * US, 20 * US),
    "cache": assumed(512 * MIB, "a part of the drive's DRAM", 64 * MIB, 2 * GIB),
    "units": assumed(128, f"{_DRIVE} [G]: 64-128 planes", 64, 256),
    "flash_page": assumed(64 * KIB, f"{_DRIVE} [R]: a superpage of several planes", 16 * KIB, 64 * KIB),
    "program_time": assumed(
        2_100 * US, "128 x 64 KiB in 2.1 ms is the data sheet's 4 GB/s", 1_500 * US, 4 * MS
    ),
    "read_time": assumed(80 * US, "TLC flash: 80-100 us in data sheets", 60 * US, 120 * US),
    "protected": specified(True, "a data centre drive with power-loss protection"),
}

BM1743: Final[dict[str, object]] = {
    **PM9A3,
    "kind": specified("ssd", "report W25: BM1743"),
    "size": specified(_lba_bytes(61_440), f"{_FIGURES} [S]: 61.44 TB"),
    "flash_page": specified(16 * KIB, f"{_FIGURES} [S]: units of 16 KiB; the model programs them one by one"),
    "units": assumed(256, f"{_DRIVE} [R]: QLC flash: 2-3 ms a page, 2.0 GB/s in total", 128, 512),
    "program_time": calibrated(
        2_180 * US,
        f"{_FIGURES}: W25 measured 117 k writes of 4 KiB a second; each programs a unit of 16 KiB",
        (),
    ),
    "indirection_unit": specified(16 * KIB, f"{_FIGURES} [S]: indirection unit of 16 KiB"),
}
