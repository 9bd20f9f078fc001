"""Machines by name: those of the reports, those of our measurements, and servers and desktops of no report.

Each is a file in data/machines.  Times of code paths come from three sources.  The desk, a guest on an AMD
EPYC, was measured here.  A kernel series has rates of fio on a Xeon Gold 6240.  A mail of December 2025 has
the cost of empty files on a large server.  Processors of other years differ from these by a factor, which is
assumed.

A release is (major, minor, patch), as `release_of` returns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Final

from wbsim.models.catalogue.data_files import names_in, part_in, put_over
from wbsim.models.catalogue.drives import disk_of
from wbsim.models.catalogue.kernels import LAST
from wbsim.models.catalogue.on_demand import OnDemand
from wbsim.models.kinds import kinds
from wbsim.models.release import Release, release_of
from wbsim.models.scenario import MachineSpec

FOLDER: Final = "machines"


@cache
def machines_of(release: Release) -> Mapping[str, MachineSpec]:
    """Return the machines by name, each with the disks that *release* gives it.

    A machine is made when it is first looked up.  The same release gives the same objects, so that
    configurations can share their inputs.
    """
    return OnDemand({name: partial(_machine, name, release) for name in names_in(FOLDER)})


def _machine(name: str, release: Release) -> MachineSpec:
    """Return the machine *name* with the queues that *release* gives its disks."""
    machine = part_in(FOLDER, name)
    disks = {disk: disk_of(table, release) for disk, table in machine["disks"].items()}
    costs = {kind: entry.spec.reference_costs for kind, entry in kinds("filesystems").items()}
    paths = machine["processors"]["paths"]
    processors = put_over(
        machine["processors"], {"paths": {"filesystems": {**costs, **paths["filesystems"]}}}
    )
    return MachineSpec.model_validate(
        {"name": name, "processors": processors, "memory": machine["memory"], "disks": disks}
    )


MACHINES: Final = machines_of(release_of(LAST))
"""The machines by name, as the newest release has them."""
