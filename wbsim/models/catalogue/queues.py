"""The request queue that each release gives a SATA disk, an NVMe drive and a virtio disk."""

from __future__ import annotations

from typing import Final

from wbsim.models.catalogue.devices import NO_DISCARD
from wbsim.models.release import Release
from wbsim.sim.param import Given, Inputs, assumed, specified
from wbsim.sim.units import KIB, MIB

_LIMITS: Final = "mechanisms.md 1.5"
_LARGEST_ATA_COMMAND: Final = specified(65_535 * 512, f"{_LIMITS} [V 4.1]: ATA_MAX_SECTORS_LBA48 [R]")
_NO_LIMIT: Final = specified(1 << 30, f"{_LIMITS} [V 2.6.34, 3.10]: virtio-blk has no limit")


def sata_queue(release: Release) -> Inputs:
    """Return the inputs of the queue of a disk behind AHCI, which has one hardware queue."""
    multi_queue = release >= (4, 19, 0)
    depth = 32 if release >= (4, 18, 0) else 31
    return {
        "limits": {
            "max_sectors_bytes": _most_bytes(release, _LARGEST_ATA_COMMAND),
            "max_segments": specified(168, f"{_LIMITS} [V 2.6.29, 3.10]: AHCI_MAX_SG"),
            **_COMMON_LIMITS,
        },
        **_one_hardware_queue(release, multi_queue=multi_queue, depth=depth),
        "driver_depth": specified(depth, f"{_LIMITS}: 31 commands [V 2.6.29, 3.10], 32 from 4.18 on [R]"),
        "queue_depth": specified(depth, "scsi_change_queue_depth [R]"),
        "wbt": specified(multi_queue, "CONFIG_BLK_WBT_MQ is y, CONFIG_BLK_WBT_SQ is n [R]"),
        "interrupts": assumed("any", "one vector, moved by irqbalance", "any", "submitter"),
        "write_cache": specified("write back", "the default of SATA drives"),
    }


def nvme_queue(release: Release, most_bytes: Given) -> Inputs:
    """Return the inputs of the queue of an NVMe drive that takes *most_bytes* in a command (MDTS)."""
    if release >= (6, 17, 0):
        segments = specified(256, f"{_LIMITS} [V 6.17]: 256 SGL descriptors; their first release is [R]")
    elif release >= (4, 20, 0):
        segments = specified(128, f"{_LIMITS} [V 6.12]; from 4.20 on [R]")
    else:
        pages = most_bytes.value // (4 * KIB) + 1
        segments = specified(pages, "drivers/nvme: a segment for each page of a command, plus one [R]")
    return {
        "limits": {
            "max_sectors_bytes": _most_bytes(release, most_bytes),
            "max_segments": segments,
            **_COMMON_LIMITS,
        },
        "elevator": {
            "scheduler": specified("none" if release >= (3, 19, 0) else "noop", "several hardware queues"),
            "fifo_batch": _FIFO_BATCH,
        },
        "nr_requests": specified(1023, "mechanisms.md 8.2 [V 6.17]: 1024 minus one"),
        "driver_depth": specified(1023, "mechanisms.md 8.2 [V 6.17]: 1024 minus one"),
        "wbt": specified(True, "wbt_lat_usec is not 0 by default, from 4.10 on"),
        "interrupts": specified("submitter", "drivers/nvme/host/pci.c: a queue for each processor"),
        "write_cache": assumed(
            "write through", "the drive's cache survives a power failure", "write back", "write through"
        ),
    }


def virtio_queue(release: Release) -> Inputs:
    """Return the inputs of the queue of a guest's virtio disk with one hardware queue."""
    multi_queue = release >= (3, 13, 0)
    depth = 128
    return {
        "limits": {
            "max_sectors_bytes": _most_bytes(release, _NO_LIMIT),
            "max_segments": assumed(126, f"{_LIMITS} [R]: seg_max of QEMU; 254 from QEMU 5.0 on", 126, 254),
            **_COMMON_LIMITS,
        },
        **_one_hardware_queue(release, multi_queue=multi_queue, depth=depth),
        "driver_depth": assumed(depth, "ring of virtio-blk, indirect descriptors", 32, 256),
        "wbt": specified(multi_queue, "CONFIG_BLK_WBT_MQ is y, CONFIG_BLK_WBT_SQ is n [R]"),
        "interrupts": assumed("any", "one vector, moved by irqbalance", "any", "submitter"),
        "write_cache": specified("write back", "the default of virtio-blk"),
    }


_COMMON_LIMITS: Final = {
    "max_segment_bytes": specified(64 * KIB, f"{_LIMITS} [V]"),
    "nomerges": specified(0, "the kernel's default"),
    "max_discard_bytes": NO_DISCARD,
}
_FIFO_BATCH: Final = specified(16, "mechanisms.md 1.4 [V 3.10, 6.12]")


def _most_bytes(release: Release, hardware: Given) -> Given:
    """Return max_sectors: the limit of the *hardware*, or the default of *release* where that is less."""
    if (3, 19, 0) <= release < (4, 3, 0):
        return hardware
    default = 512 * KIB if release < (3, 19, 0) else 1280 * KIB if release < (6, 17, 0) else 4 * MIB
    if hardware.value < default:
        return hardware
    return specified(default, f"{_LIMITS} [V 2.6.29 to 3.16, 4.3 to 6.14, 6.17]; the first releases are [R]")


def _one_hardware_queue(release: Release, *, multi_queue: bool, depth: int) -> Inputs:
    """Return the scheduler and nr_requests of a device with one hardware queue of *depth* commands.

    *multi_queue*: the driver uses blk-mq in *release*, otherwise the legacy request queue.
    """
    if not multi_queue:
        scheduler = specified("cfq", "mechanisms.md 1.4 [R]: CONFIG_DEFAULT_IOSCHED")
        nr_requests = specified(128, "mechanisms.md 1.6 [V 2.6.30, 3.10]: BLKDEV_MAX_RQ")
    elif release < (4, 12, 0):
        scheduler = specified("none", "blk-mq has no default scheduler before 4.12 [R]")
        nr_requests = specified(depth, "blk-mq without a scheduler: the depth of the hardware queue [R]")
    else:
        scheduler = specified(
            "mq-deadline", "elevator_init_mq: for one hardware queue, from 4.12 on [R]; confirmed on 6.18"
        )
        nr_requests = specified(
            2 * min(depth, 128), "blk_mq_init_sched: twice the depth, at most 2 x 128 [R]"
        )
    elevator = {"scheduler": scheduler, "fifo_batch": _FIFO_BATCH}  # NOTE: 5.14 to 6.8 have an async_depth
    return {"elevator": elevator, "nr_requests": nr_requests}
