"""Drives that a configuration can add to a machine: a device, and the queue that a release gives it.

Each is a file in data/drives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Final

from wbsim.models.catalogue.data_files import names_in, part_in
from wbsim.models.catalogue.kernels import LAST
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.catalogue.on_demand import OnDemand
from wbsim.models.catalogue.queues import queues_of
from wbsim.models.release import Release, release_of
from wbsim.models.scenario import DriveSpec

FOLDER: Final = "drives"


@cache
def drives_of(release: Release) -> Mapping[str, DriveSpec]:
    """Return the drives by name, each behind the queue that *release* gives it.

    The same release gives the same objects, so that configurations can share their inputs.
    """
    makers: dict[str, Callable[[], DriveSpec]] = {"loop": lambda: MACHINES["loop-vm"].disks["loop0"]}
    return OnDemand({**makers, **{name: partial(_drive, name, release) for name in names_in(FOLDER)}})


def _drive(name: str, release: Release) -> DriveSpec:
    """Return the drive *name* with the queue that *release* gives it."""
    drive = part_in(FOLDER, name)
    queue = queues_of(release)[drive["queue"]["like"]]
    return DriveSpec.model_validate({"queue": queue, "device": drive["device"]})


DRIVES: Final = drives_of(release_of(LAST))
"""The drives by name, as the newest release has them."""
PURPOSES: Final = {
    "loop": "the null device of our measurements",
    **{name: part_in(FOLDER, name)["purpose"] for name in names_in(FOLDER)},
}
"""The purposes of drives, by name."""
