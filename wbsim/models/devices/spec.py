"""The specs of devices: the capacity and speed of each, and the devices of which it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from wbsim.models.kinds import kind_field
from wbsim.sim.param import BadValue, Bytes, BytesOrNone, BytesPerS, Count, Flag, Ns, Spec
from wbsim.sim.units import PAGE_BYTES, SECTOR_BYTES


class DeviceSpec(Spec):
    """A device, or several devices that act as one.

    ``has_worker``: the device gets a kernel thread.
    """

    has_worker: ClassVar[bool] = False
    kind: str

    @property
    def capacity(self) -> int | None:
        """The capacity (bytes); None: it does not matter."""
        return None

    def parts(self) -> Mapping[str, DeviceSpec | tuple[DeviceSpec, ...]]:
        """Return the devices of which this one is made, by the name of the argument of its component."""
        return {}


AnyDevice = Annotated[DeviceSpec, kind_field("devices")]
"""The spec of a device of any kind in this folder."""


class SsdSpec(DeviceSpec):
    """A flash drive.

    * ``size``: the capacity; None: it does not matter.
    * ``command_time``: the time of each command on the link.
    * ``latency``: the additional time of each write, which does not occupy the link.
    * ``units``: the planes that program at once (channels x dies x planes).  Each programs ``flash_page``
      bytes in ``program_time``.
    * ``read_time``: the time from the end of a read on the link to its data.
    * ``indirection_unit``: the size that one entry of the map covers; None: a write is never smaller.
    * ``protected``: the cache survives a power cut, so a flush needs no programming.
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
            raise BadValue(
                f"{self.cache} B is less than a flash_page; give at least {self.flash_page} B", "cache"
            )
        unit = self.indirection_unit
        if unit is not None and (unit < PAGE_BYTES or self.flash_page % unit):
            what = f"{unit} B is not allowed; give {PAGE_BYTES} B or more that divide {self.flash_page} B"
            raise BadValue(what, "indirection_unit")
        return self


class DiskSpec(DeviceSpec):
    """A disk.

    * ``outer`` and ``inner``: the rates of the first and the last zone.
    * ``turn_time``: the time of one rotation.
    * ``track_seek`` and ``full_seek``: the times of a seek to the next track and across the complete disk.
    * ``link``: the rate at which writes fill the ``cache``.
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
        """The capacity (bytes)."""
        return self.size


class Raid0Spec(DeviceSpec):
    """A stripe over ``members``; ``chunk`` is the part on one member before the next member follows."""

    kind: Literal["raid0"] = "raid0"
    chunk: Annotated[Bytes, Field(multiple_of=PAGE_BYTES)]
    members: Annotated[tuple[AnyDevice, ...], Field(min_length=1)]

    @property
    def capacity(self) -> int | None:
        """See `DeviceSpec.capacity`; every member has an equal share, which fits the smallest member."""
        shares = [member.capacity for member in self.members if member.capacity is not None]
        return min(shares) * len(self.members) if shares else None

    def parts(self) -> dict[str, DeviceSpec | tuple[DeviceSpec, ...]]:
        """See `DeviceSpec.parts`."""
        return {"members": self.members}


class WriteCacheSpec(DeviceSpec):
    """A controller's write cache.

    * ``link`` and ``command_time``: the rate of the link, and the additional time of each write.
    * ``piece``: the largest write to the device ``behind``.
    * ``depth``: the number of pieces that drain at once.
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
            raise BadValue(
                f"{self.piece} B is not a whole number of sectors; give a multiple of {SECTOR_BYTES} B",
                "piece",
            )
        return self

    @property
    def capacity(self) -> int | None:
        """See `DeviceSpec.capacity`: the capacity of the device ``behind``."""
        return self.behind.capacity

    def parts(self) -> dict[str, DeviceSpec | tuple[DeviceSpec, ...]]:
        """See `DeviceSpec.parts`."""
        return {"behind": self.behind}


class NullSpec(DeviceSpec):
    """The null device (null_blk without delays)."""

    kind: Literal["null"] = "null"


class LoopSpec(DeviceSpec):
    """A loop device on a file in tmpfs.

    ``command_time`` is the worker's time for each command, including its completion.  ``page_time`` is its
    time for each page that it copies.
    """

    has_worker: ClassVar = True
    kind: Literal["loop"] = "loop"
    command_time: Ns
    page_time: Ns
