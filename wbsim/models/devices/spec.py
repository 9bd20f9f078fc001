"""What is configured of devices: what each holds, how fast it is, and which devices it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from wbsim.models.kinds import kind_field
from wbsim.sim.param import BadValue, Bytes, BytesOrNone, BytesPerS, Count, Flag, Ns, Spec
from wbsim.sim.units import PAGE_BYTES, SECTOR_BYTES


class DeviceSpec(Spec):
    """A device, or several that act as one; one that ``has_worker`` gets a thread of the kernel."""

    has_worker: ClassVar[bool] = False
    kind: str

    @property
    def capacity(self) -> int | None:
        """What it holds (bytes); None where that does not matter."""
        return None

    def parts(self) -> Mapping[str, DeviceSpec | tuple[DeviceSpec, ...]]:
        """The devices that it is made of, by the name under which its component takes them."""
        return {}


AnyDevice = Annotated[DeviceSpec, kind_field("devices")]
"""The spec of any kind in this folder."""


class SsdSpec(DeviceSpec):
    """A flash drive.

    ``size``: what it holds, unless that does not matter; ``command_time`` occupies the link, ``latency``
    does not; ``units`` are the planes that program at once (channels x dies x planes), each ``flash_page``
    bytes in ``program_time``; ``read_time``: from a command to its data; ``indirection_unit``: what one
    entry of the map covers, if a write can be smaller; ``protected``: the cache survives a power cut, so a
    flush needs no programming.
    """

    kind: Literal["ssd"] = "ssd"
    link: BytesPerS
    command_time: Ns
    latency: Ns
    cache: Bytes
    units: Annotated[Count, Field(le=1 << 16)]
    flash_page: Bytes
    program_time: Ns
    read_time: Ns
    protected: Flag
    indirection_unit: Bytes | None = None
    size: Bytes | None = None

    @property
    def capacity(self) -> int | None:
        """See `DeviceSpec.capacity`."""
        return self.size

    @model_validator(mode="after")
    def _check(self) -> SsdSpec:
        if self.cache < self.flash_page:
            raise BadValue(f"{self.cache} B have to hold a flash_page of {self.flash_page} B", "cache")
        unit = self.indirection_unit
        if unit is not None and (unit < PAGE_BYTES or self.flash_page % unit):
            what = f"{unit} B has to divide flash_page {self.flash_page} B, and be a page"
            raise BadValue(what, "indirection_unit")
        return self


class DiskSpec(DeviceSpec):
    """``outer`` and ``inner``: the rates of the first and the last zone; ``turn_time``: of one rotation;
    ``track_seek`` and ``full_seek``: to the next track and across the whole disk; ``link``: how fast the
    ``cache`` is filled.
    """

    kind: Literal["disk"] = "disk"
    size: Bytes
    outer: BytesPerS
    inner: BytesPerS
    turn_time: Ns
    track_seek: Ns
    full_seek: Ns
    cache: BytesOrNone
    link: BytesPerS

    @property
    def capacity(self) -> int:
        """What it holds (bytes)."""
        return self.size


class Raid0Spec(DeviceSpec):
    """``chunk``: what one member holds before the next takes over, whole pages;
    the members are device specs.
    """

    kind: Literal["raid0"] = "raid0"
    chunk: Annotated[Bytes, Field(multiple_of=PAGE_BYTES)]
    members: Annotated[tuple[AnyDevice, ...], Field(min_length=1)]

    @property
    def capacity(self) -> int | None:
        """See `DeviceSpec.capacity`; every member has a share of the same size."""
        shares = [member.capacity for member in self.members if member.capacity is not None]
        return min(shares) * len(self.members) if shares else None

    def parts(self) -> dict[str, DeviceSpec | tuple[DeviceSpec, ...]]:
        """See `DeviceSpec.parts`."""
        return {"members": self.members}


class WriteCacheSpec(DeviceSpec):
    """``link`` and ``command_time``: how fast writes come in; ``piece``: the most that drains as one;
    ``depth``: how many pieces drain at once; ``behind``: the device that they drain to.
    """

    kind: Literal["write_cache"] = "write_cache"
    size: Bytes
    link: BytesPerS
    command_time: Ns
    piece: Bytes
    depth: Count
    behind: AnyDevice

    @model_validator(mode="after")
    def _check(self) -> WriteCacheSpec:
        if not self.piece or self.piece % SECTOR_BYTES:
            raise BadValue(f"{self.piece} B has to be whole sectors of {SECTOR_BYTES} B", "piece")
        return self

    @property
    def capacity(self) -> int | None:
        """See `DeviceSpec.capacity`: that of the device behind it."""
        return self.behind.capacity

    def parts(self) -> dict[str, DeviceSpec | tuple[DeviceSpec, ...]]:
        """See `DeviceSpec.parts`."""
        return {"behind": self.behind}


class NullSpec(DeviceSpec):
    """The null device (null_blk without delays)."""

    kind: Literal["null"] = "null"


class LoopSpec(DeviceSpec):
    """A loop device on a file in tmpfs: what its worker takes for each command, its completion included, and
    for each page that it copies.
    """

    has_worker: ClassVar = True
    kind: Literal["loop"] = "loop"
    command_time: Ns
    page_time: Ns
