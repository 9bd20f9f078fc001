"""The request queue that each release gives a drive, by its interface.

The inputs of a queue are the fields of its `QueueSpec` by name, each value a `Given` with its origin.  The
fields ``limits`` and ``elevator`` are tables of such values.  A release is (major, minor, patch).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Final

from wbsim.models.block.spec import MAX_DISCARD_BYTES, QueueSpec
from wbsim.models.catalogue.on_demand import OnDemand
from wbsim.models.kernel_rules.lookup import rule_for
from wbsim.models.kernel_rules.table import LEGACY, NVME, ONE_QUEUE, SATA, VIRTIO
from wbsim.models.release import Release
from wbsim.sim.param import Given, Inputs, assumed, measured, specified
from wbsim.sim.units import KIB, MIB

_LIMITS: Final = "docs/kernel/merging.md#limits-of-a-request"
_SCHEDULERS: Final = "docs/kernel/schedulers.md#which-scheduler-a-disk-gets"
_POOL: Final = "docs/kernel/schedulers.md#the-pool-of-requests"
_TAGS: Final = "docs/kernel/schedulers.md#tags"
_WBT: Final = "docs/kernel/schedulers.md#blk-wbt"
NO_DISCARD: Final = specified(MAX_DISCARD_BYTES, "the model issues no discards")
_NVME_MOST: Final = assumed(2 * MIB, "MDTS of data centre drives of 2021", 128 * KIB, 8 * MIB)
_LARGEST_ATA_COMMAND: Final = specified(65_535 * 512, f"{_LIMITS} [V 4.1]: ATA_MAX_SECTORS_LBA48 [R]")
_LARGEST_USB_COMMAND: Final = specified(120 * KIB, "drivers/usb/storage/scsiglue.c: max_sectors is 240")
_NO_LIMIT: Final = specified(1 << 30, f"{_LIMITS} [V 2.6.34, 3.10]: virtio-blk has no limit")


def sata_queue(release: Release) -> Inputs:
    """Return the inputs of the queue of a disk behind AHCI, which has one hardware queue."""
    depth = rule_for("queue.driver_depth", release, SATA)
    segments = specified(168, f"{_LIMITS} [V 2.6.29, 3.10]: AHCI_MAX_SG")
    fua = specified(False, "drivers/ata/libata-core.c: libata.fua is 0")
    return _scsi_queue(release, _LARGEST_ATA_COMMAND, segments, depth, fua)


def sas_queue(release: Release) -> Inputs:
    """Return the inputs of the queue of a SAS drive behind an adapter that is not RAID."""
    depth = assumed(254, "drivers/scsi/mpt3sas: 254 commands for a SAS device [R]", 32, 254)
    segments = assumed(128, "mpt3sas: MPT3SAS_SG_DEPTH [R]", 128, 256)
    fua = specified(True, "drivers/scsi/sd.c: DPOFUA of the drive's mode pages [R]")
    return _scsi_queue(release, _NO_LIMIT, segments, depth, fua)


def raid_queue(release: Release) -> Inputs:
    """Return the inputs of the queue of an array behind a RAID controller."""
    depth = assumed(256, "drivers/scsi/megaraid: MEGASAS_DEFAULT_CMD_PER_LUN [R]", 64, 1_014)
    largest = measured(MIB, "a public listing of a RAID adapter: max_hw_sectors_kb 1 024")
    segments = measured(257, "a public listing of a RAID adapter: max_segments")
    fua = specified(False, "drivers/scsi/sd.c: DPOFUA of the mode pages [R]; the cache is protected")
    return _scsi_queue(release, largest, segments, depth, fua)


def usb_queue(release: Release) -> Inputs:
    """Return the inputs of the queue of a stick or a card behind usb-storage: a command at a time."""
    depth = specified(1, "drivers/usb/storage/scsiglue.c: can_queue is 1 [R]")
    segments = specified(128, "SG_MAX_SEGMENTS, without a limit of the driver [R]")
    fua = specified(False, "sysfs of a USB disk: fua 0")
    return _scsi_queue(release, _LARGEST_USB_COMMAND, segments, depth, fua)


def _scsi_queue(release: Release, largest: Given, segments: Given, depth: Given, fua: Given) -> Inputs:
    """Return the inputs of the queue of a SCSI driver with one hardware queue of *depth* commands.

    *largest*: the largest command (bytes); *segments*: its most segments; *fua*: the drive knows FUA.
    """
    multi_queue = rule_for("queue.blk_mq", release, SATA).value
    return {
        "limits": {
            "max_sectors_bytes": _most_bytes(release, largest),
            "max_segments": segments,
            **_COMMON_LIMITS,
        },
        **_one_hardware_queue(release, multi_queue=multi_queue, depth=depth.value),
        "driver_depth": depth,
        "queue_depth": specified(depth.value, "scsi_change_queue_depth [R]"),
        "wbt": specified(multi_queue, _WBT_OF_ONE_QUEUE),
        "interrupts": assumed("any", "one vector, moved by irqbalance", "any", "submitter"),
        "fua": fua,
    }


def nvme_queue(release: Release, most_bytes: Given = _NVME_MOST) -> Inputs:
    """Return the inputs of the queue of an NVMe drive, of which a command has at most *most_bytes* (MDTS)."""
    segments = rule_for("queue.max_segments", release, NVME)
    if segments.value is None:
        segments = specified(most_bytes.value // (4 * KIB) + 1, segments.source)
    scheduler = "none" if rule_for("queue.blk_mq", release, NVME).value else "noop"
    return {
        "limits": {
            "max_sectors_bytes": _most_bytes(release, most_bytes),
            "max_segments": segments,
            **_COMMON_LIMITS,
        },
        "elevator": {"scheduler": specified(scheduler, f"{_SCHEDULERS}: several hardware queues")},
        "nr_requests": specified(1023, f"{_TAGS} [V 6.17]: 1024 minus one"),
        "driver_depth": specified(1023, f"{_TAGS} [V 6.17]: 1024 minus one"),
        "wbt": specified(True, f"{_WBT}: wbt_lat_usec is not 0 by default, from 4.10 on"),
        "interrupts": specified("submitter", "drivers/nvme/host/pci.c: a queue for each processor"),
        "fua": specified(True, "drivers/nvme/host/core.c: blk_queue_write_cache(q, vwc, vwc)"),
    }


def virtio_queue(release: Release) -> Inputs:
    """Return the inputs of the queue of a guest's virtio disk with one hardware queue."""
    multi_queue = rule_for("queue.blk_mq", release, VIRTIO).value
    depth = 128
    return {
        "limits": {
            "max_sectors_bytes": _most_bytes(release, _NO_LIMIT),
            "max_segments": assumed(126, f"{_LIMITS} [R]: seg_max of QEMU; 254 from QEMU 5.0 on", 126, 254),
            **_COMMON_LIMITS,
        },
        **_one_hardware_queue(release, multi_queue=multi_queue, depth=depth),
        "driver_depth": assumed(depth, "ring of virtio-blk, indirect descriptors", 32, 256),
        "wbt": specified(multi_queue, _WBT_OF_ONE_QUEUE),
        "interrupts": assumed("any", "one vector, moved by irqbalance", "any", "submitter"),
        "fua": specified(False, "drivers/block/virtio_blk.c knows no FUA"),
    }


_COMMON_LIMITS: Final = {
    "max_segment_bytes": specified(64 * KIB, f"{_LIMITS} [V 2.6.29-6.17]"),
    "nomerges": specified(0, "the kernel's default"),
    "max_discard_bytes": NO_DISCARD,
}
_WBT_OF_ONE_QUEUE: Final = f"{_WBT}: CONFIG_BLK_WBT_MQ is y, CONFIG_BLK_WBT_SQ is n [R]"


def _most_bytes(release: Release, hardware: Given) -> Given:
    """Return max_sectors: the limit of the *hardware*, or the default of *release* where that is less."""
    default = rule_for("queue.max_sectors_bytes", release)
    return hardware if default.value is None or hardware.value < default.value else default


def _one_hardware_queue(release: Release, *, multi_queue: bool, depth: int) -> Inputs:
    """Return the scheduler and nr_requests of a device with one hardware queue of *depth* commands.

    *multi_queue*: the driver uses blk-mq in *release*, otherwise the legacy request queue.
    """
    scheduler = rule_for("queue.scheduler", release, ONE_QUEUE if multi_queue else LEGACY)
    if not multi_queue:
        nr_requests = specified(128, f"{_POOL} [V 2.6.30, 3.10]: BLKDEV_MAX_RQ")
    elif scheduler.value == "none":
        nr_requests = specified(depth, f"{_TAGS}: the depth of the hardware queue [R]")
    else:
        nr_requests = specified(
            2 * min(depth, 128), f"{_TAGS}: blk_mq_init_sched, twice the depth, at most 2 x 128 [V 6.1-6.17]"
        )
    return {
        "elevator": {"scheduler": scheduler},
        "nr_requests": nr_requests,
    }  # NOTE: no async_depth (5.14-6.8)


_QUEUES: Final[Mapping[str, Callable[[Release], Inputs]]] = {
    "sata": sata_queue, "sas": sas_queue, "raid": raid_queue, "usb": usb_queue, "nvme": nvme_queue,
    "virtio": virtio_queue,
}  # fmt: skip


@cache
def queues_of(release: Release) -> Mapping[str, QueueSpec]:
    """Return the queue that *release* gives a drive, by the drive's interface.

    The interfaces are ``sata``, ``sas``, ``raid``, ``usb``, ``nvme`` and ``virtio``.  A queue is made when it
    is first looked up.
    """
    return OnDemand({name: partial(_queue, name, release) for name in _QUEUES})


def _queue(interface: str, release: Release) -> QueueSpec:
    return QueueSpec.model_validate(_QUEUES[interface](release))
