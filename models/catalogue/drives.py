"""Disks that a configuration can add to a machine: a device and the queue in front of it."""

from __future__ import annotations

from typing import Final

from wbsim.models.catalogue.devices import BM1743, PM9A3, SATA_DISK_2010, SATA_SSD_2013
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.scenario import DriveSpec

_VIRTIO: Final = MACHINES["p13-vm"].disks["vdb"].queue.inputs()
_NVME: Final = MACHINES["w25-server"].disks["nvme0n1"].queue.inputs()

DRIVES: Final = {
    "loop": MACHINES["loop-vm"].disks["loop0"],
    "sata-ssd": DriveSpec.model_validate({"queue": _VIRTIO, "device": SATA_SSD_2013}),
    "sata-disk": DriveSpec.model_validate({"queue": _VIRTIO, "device": SATA_DISK_2010}),
    "pm9a3": DriveSpec.model_validate({"queue": _NVME, "device": PM9A3}),
    "bm1743": DriveSpec.model_validate({"queue": _NVME, "device": BM1743}),
}
"""By name; SATA ones behind virtio, as on the machine of report P13."""
