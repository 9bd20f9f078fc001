"""Machines that belong to no report: servers and desktops of 2012, 2018 and 2024, and a small guest.

Three sources give the numbers.  The desk, a guest on an AMD EPYC, was measured here.  A kernel series has
rates of fio on a Xeon Gold 6240.  A mail of December 2025 has the cost of empty files on a large server.
Processors of other years differ from these by a factor, which is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Final, NamedTuple

from wbsim.models.catalogue.desks import DESK_MACHINE, LOOP_MACHINE
from wbsim.models.catalogue.drives import drives_of
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.catalogue.on_demand import OnDemand
from wbsim.models.catalogue.paths import LINE_FROM_FAR, LINE_OWN
from wbsim.models.release import Release
from wbsim.models.scenario import MachineSpec
from wbsim.sim.param import Given, Inputs, assumed, calibrated, specified
from wbsim.sim.units import GIB, MIB, US

_LOCKS: Final = "docs/kernel/locks.md#kinds-of-locks"

_XEON: Final = "docs/measurements.md N: rates of a Xeon Gold 6240 (12 May 2025)"
_XEON_TARGETS: Final = ("field-C-ext4-6.15", "field-C-ext4-6.16", "field-C-iomap")
_DD_TARGETS: Final = ("field-T-dd",)
"""The rates of dd that were known when page times were chosen: 1.5 to 4 GB/s, 3 to 7 with large folios."""
_WRITERS_TARGETS: Final = ("field-D-xfs", "field-D-ext4")
_MANY_FILES: Final = "docs/measurements.md P: 32 million empty files in 40 directories (December 2025)"


class _Times(NamedTuple):
    """Times of a processor: a write(2) in ns, and all else as a multiple of the desk's times.

    ``paths`` is the factor of system calls except write(2), ``flusher`` the factor of writeback, and
    ``program`` the factor of programs themselves.
    """

    call_ns: Given
    folio_ns: Given
    page_ns: Given
    block_ns: Given
    paths: Given
    flusher: Given
    program: Given


_SPREAD: Final = 1.5
_UNDER_LOAD: Final = "between the desk and the server of 2024 under load"
_BETWEEN: Final = "between a Xeon Gold 6240 and the desk"


def _guess(value: float, why: str, spread: float = _SPREAD, targets: tuple[str, ...] = ()) -> Given:
    """Return an assumed *value* that may be *spread* times as large or as small.

    *targets* are the figures that were known when it was chosen.
    """
    low, high = value / spread, value * spread
    if isinstance(value, int):
        low, high = round(low), round(high)
    return assumed(value, why, low, high, targets)


_XEON_2019: Final = _Times(
    call_ns=calibrated(550, _XEON, _XEON_TARGETS),
    folio_ns=calibrated(1_000, _XEON, _XEON_TARGETS),
    page_ns=calibrated(715, _XEON, _XEON_TARGETS),
    block_ns=calibrated(330, _XEON, _XEON_TARGETS),
    paths=_guess(1.5, _UNDER_LOAD),
    flusher=_guess(1.3, "a copy takes twice the desk's time for a page, less for a folio"),
    program=_guess(1.5, _UNDER_LOAD),
)
_EPYC_2024: Final = _Times(
    call_ns=_guess(400, "shorter than on a Xeon Gold 6240, which has more mitigations", 2.0),
    folio_ns=_guess(1_000, _BETWEEN, 1.7),
    page_ns=_guess(500, _BETWEEN, targets=_DD_TARGETS),
    block_ns=_guess(400, _BETWEEN, 2.0),
    paths=calibrated(1.6, _MANY_FILES, ("field-T-system",)),
    flusher=_guess(1.0, "the desk is a guest on such a processor", targets=_WRITERS_TARGETS),
    program=calibrated(2.0, _MANY_FILES, ("field-T-user",)),
)


def _scaled_times(of: _Times, factor: float, why: str, call_ns: int | None = None) -> _Times:
    """Return the times of *of*, each *factor* times as long, with another time of a call if one is given."""
    times = {
        name: _guess(round(given.value * factor, None if name.endswith("_ns") else 2), why)
        for name, given in of._asdict().items()
    }
    times["page_ns"] = _guess(times["page_ns"].value, why, targets=_DD_TARGETS)
    if call_ns is not None:
        times["call_ns"] = _guess(call_ns, "no page-table isolation, no mitigations", 2.0)
    return _Times(**times)


class _Model(NamedTuple):
    """A machine of the catalogue: ``processors`` are threads of cores, ``memory`` is in GiB.

    ``disk`` is the name of its only disk, and ``drive`` the name of this disk's drive in the catalogue.
    """

    purpose: str
    times: _Times
    processors: int
    nodes: int
    memory: int
    disk: str
    drive: str
    exit_ns: Given = specified(0, "bare metal, no exits to a hypervisor")


_GUEST: Final = assumed(5 * US, f"{_LOCKS} [R]: an exit to the hypervisor and back", 2 * US, 20 * US)
_MODELS: Final = {
    "server-2012": _Model(
        purpose="a server of 2012: two sockets of 8 cores, a SATA disk",
        times=_scaled_times(_XEON_2019, 1.3, "a thread's times relative to a Xeon Gold 6240", call_ns=300),
        processors=32,
        nodes=2,
        memory=64,
        disk="sda",
        drive="sata-disk",
    ),
    "server-2018": _Model(
        purpose="a server of 2018: two sockets of 18 cores; write(2) fitted to a Xeon Gold 6240",
        times=_XEON_2019,
        processors=72,
        nodes=2,
        memory=192,
        disk="sda",
        drive="sata-ssd",
    ),
    "server-2024": _Model(
        purpose="a server of 2024: two sockets of 32 cores; creat(2) fitted to 32 million files",
        times=_EPYC_2024,
        processors=128,
        nodes=2,
        memory=256,
        disk="nvme0n1",
        drive="pm9a3",
    ),
    "desktop-2012": _Model(
        purpose="a desktop of 2012: 4 cores, a SATA disk",
        times=_scaled_times(_XEON_2019, 1.0, "a thread's times relative to a Xeon Gold 6240", call_ns=250),
        processors=8,
        nodes=1,
        memory=16,
        disk="sda",
        drive="sata-disk",
    ),
    "desktop-2018": _Model(
        purpose="a desktop of 2018: 6 cores, a SATA SSD",
        times=_scaled_times(_XEON_2019, 0.8, "a thread's times relative to a Xeon Gold 6240"),
        processors=12,
        nodes=1,
        memory=16,
        disk="sda",
        drive="sata-ssd",
    ),
    "desktop-2024": _Model(
        purpose="a desktop of 2024: 8 cores, an NVMe drive for servers",
        times=_scaled_times(_EPYC_2024, 0.8, "a thread's times relative to a processor of server-2024"),
        processors=16,
        nodes=1,
        memory=32,
        disk="nvme0n1",
        drive="pm9a3",
    ),
    "small-vm": _Model(
        purpose="a guest with 2 processors and a virtio SSD",
        times=_EPYC_2024,
        processors=2,
        nodes=1,
        memory=4,
        disk="vda",
        drive="virtio-ssd",
        exit_ns=_GUEST,
    ),
}
PURPOSES: Final = {name: model.purpose for name, model in _MODELS.items()}
"""The purposes of machines, by name."""


@cache
def machines_of(release: Release) -> Mapping[str, MachineSpec]:
    """Return the machines by name, with the disks of the neutral ones as *release* has them.

    The same release gives the same objects, so that configurations can share their inputs.
    """
    neutral = {name: partial(_machine, name, model, release) for name, model in _MODELS.items()}
    return OnDemand({**neutral, **{name: partial(MACHINES.__getitem__, name) for name in MACHINES}})


def _machine(name: str, model: _Model, release: Release) -> MachineSpec:
    """Return the machine *model*, called *name*, with the disk that *release* gives it."""
    times, reserve = model.times, max(400 * MIB, model.memory * GIB // 48)
    return MachineSpec.model_validate(
        {
            "name": name,
            "processors": {
                **LOOP_MACHINE.processors.inputs(),
                "count": specified(model.processors, model.purpose),
                "nodes": specified(model.nodes, model.purpose),
                "writer_scale": specified(1, "the paths have the times of this machine"),
                "flusher_scale": times.flusher,
                "program_scale": times.program,
                "exit_time": model.exit_ns,
                "line_own": LINE_OWN,
                "line_from_far": LINE_FROM_FAR,
                "paths": _paths(times),
            },
            "memory": {
                **LOOP_MACHINE.memory.inputs(),
                "memory": specified(model.memory * GIB, model.purpose),
                "kernel_reserve": assumed(
                    reserve, "page structs (1/64 of memory), kernel text, reserves", reserve // 2, reserve * 2
                ),
            },
            "disks": {model.disk: drives_of(release)[model.drive].inputs()},
        }
    )


def _paths(times: _Times) -> Inputs:
    """Return the desk's paths with *times*, except the flusher's, which the ``flusher_scale`` multiplies."""
    paths = DESK_MACHINE.processors.paths.inputs()
    filesystems = {
        kind: {**of, "writer": _scaled(of["writer"], times.paths)}
        for kind, of in paths["filesystems"].items()
    }
    filesystems["ext4"]["writer"]["block_ns"] = times.block_ns
    xfs = filesystems["xfs"]["writer"]
    part, create = xfs["agi_ns"], xfs["create_ns"]
    shortest_ns = create.value if create.low is None else create.low
    # The AGI is held for a part of creat(2), whatever values the two have in their ranges.
    xfs["agi_ns"] = assumed(part.value, part.source, part.low, min(part.high, shortest_ns))
    return {
        **paths,
        "write": {
            **_scaled(paths["write"], times.paths),
            "call_ns": times.call_ns,
            "folio_ns": times.folio_ns,
            "page_ns": times.page_ns,
        },
        "inodes": _scaled(paths["inodes"], times.paths),
        "filesystems": filesystems,
    }


def _scaled(costs: Mapping[str, Given], factor: Given) -> dict[str, Given]:
    """Return *costs*, as on the desk, times *factor*.

    Only creat(2) is calibrated by a calibrated factor; all other times are assumed.
    """
    return {name: _multiplied(given, factor, is_target=name == "create_ns") for name, given in costs.items()}


def _multiplied(given: Given, factor: Given, *, is_target: bool) -> Given:
    """Return the time *given* times *factor*, calibrated if the factor is and *is_target*."""
    if given.value == 0:
        return given
    value, source = (
        round(given.value * factor.value),
        f"{given.source}; times {factor.value:g}: {factor.source}",
    )
    if factor.targets and is_target:
        return calibrated(value, source, factor.targets)
    least, most = (
        (factor.value / _SPREAD, factor.value * _SPREAD) if factor.targets else (factor.low, factor.high)
    )
    low, high = (given.low, given.high) if given.low is not None else (given.value, given.value)
    return assumed(value, source, round(low * least), round(high * most))
