"""Drives that a configuration can add to a machine: a device, and the queue that a release gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Final

from wbsim.models.catalogue.devices import BM1743, PM9A3, SATA_DISK_2010, SATA_SSD_2013
from wbsim.models.catalogue.kernels import LAST
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.catalogue.on_demand import OnDemand
from wbsim.models.catalogue.queues import nvme_queue, sata_queue, virtio_queue
from wbsim.models.release import Release, release_of
from wbsim.models.scenario import DriveSpec
from wbsim.sim.param import assumed
from wbsim.sim.units import KIB, MIB

_SATA_SSD: Final = {
    **SATA_SSD_2013,
    "size": assumed(480 * 10**9, "a usual size", 120 * 10**9, 2000 * 10**9),
    "protected": assumed(False, "most SATA SSDs have no capacitors for their cache [R]", False, True),
}
_NVME_MOST: Final = assumed(2 * MIB, "MDTS of data centre drives of 2021", 128 * KIB, 8 * MIB)


@cache
def drives_of(release: Release) -> Mapping[str, DriveSpec]:
    """Return the drives by name, each behind the queue that *release* gives it.

    The same release gives the same objects, so that configurations can share their inputs.
    """
    nvme = partial(nvme_queue, release, _NVME_MOST)
    sata, virtio = partial(sata_queue, release), partial(virtio_queue, release)
    drives: dict[str, tuple[Callable[[], dict[str, object]], dict[str, object]]] = {
        "sata-ssd": (sata, _SATA_SSD),
        "sata-disk": (sata, SATA_DISK_2010),
        "virtio-ssd": (virtio, _SATA_SSD),
        "virtio-disk": (virtio, SATA_DISK_2010),
        "pm9a3": (nvme, PM9A3),
        "bm1743": (nvme, BM1743),
    }
    makers = {name: partial(_drive, queue, device) for name, (queue, device) in drives.items()}
    return OnDemand({"loop": lambda: MACHINES["loop-vm"].disks["loop0"], **makers})


def _drive(queue: Callable[[], dict[str, object]], device: dict[str, object]) -> DriveSpec:
    """Return the drive of *device* behind the queue that *queue* makes."""
    return DriveSpec.model_validate({"queue": queue(), "device": device})


DRIVES: Final = drives_of(release_of(LAST))
"""The drives by name, as the newest release has them."""
PURPOSES: Final = {
    "loop": "the null device of our measurements",
    "sata-ssd": "a SATA SSD of 2013 with a volatile cache",
    "sata-disk": "a SATA disk of 2010 with 7200 turns a minute",
    "virtio-ssd": "the SATA SSD of 2013, as a virtio disk of a guest",
    "virtio-disk": "the SATA disk of 2010, as a virtio disk of a guest",
    "pm9a3": "an NVMe drive of 3.84 TB with power-loss protection",
    "bm1743": "an NVMe drive of 61 TB with units of 16 KiB",
}
"""The purposes of drives, by name."""
