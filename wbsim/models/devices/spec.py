"""The specs of devices: the capacity and speed of each, and the devices of which it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator

from wbsim.models.kinds import kind_field
from wbsim.models.raid.levels import LEAST_MEMBERS, Level, data_members, has_all_data
from wbsim.sim.param import (
    BadValue,
    Bytes,
    BytesOrNone,
    BytesPerS,
    Count,
    CountOrNone,
    Flag,
    Interval,
    Ns,
    Real,
    Spec,
)
from wbsim.sim.units import PAGE_BYTES, SECTOR_BYTES

_BLOCKS_TO_COLLECT: Final = 4
"""One more than `page_map.RESERVED`, so that there is always garbage to collect."""


class DeviceSpec(Spec):
    """A device, or several devices that act as one.

    ``has_worker``: the device gets a kernel thread.
    """

    has_worker: ClassVar[bool] = False
    kind: str

    @property
    def draws(self) -> bool:
        """True if the device draws random numbers, so that the machine must give it a generator."""
        return False

    @property
    def capacity(self) -> int | None:
        """The capacity (bytes); None: it does not matter."""
        return None

    @property
    def volatile(self) -> bool:
        """True if only a flush makes a completed write survive a power cut."""
        return False

    @property
    def made_safe(self) -> tuple[str, str]:
        """The key of a volatile device, and its value, with which a completed write survives a power cut.

        An error that asks for a safe device names them; the value is TOML.
        """
        return "protected", "true"

    @property
    def rotates(self) -> bool:
        """True of a rotating disk, and of a device that contains one (queue/rotational)."""
        parts = (part if isinstance(part, tuple) else (part,) for part in self.parts().values())
        return any(member.rotates for members in parts for member in members)

    @property
    def stripe(self) -> tuple[int, int]:
        """The stripe unit and the stripe width (bytes), for which mkfs asks; 0: there is none."""
        return 0, 0

    def parts(self) -> Mapping[str, DeviceSpec | tuple[DeviceSpec, ...]]:
        """Return the devices of which this one is made, by the name of the argument of its component.

        The machine makes these devices first, and passes them to the component under these names.
        """
        return {}


AnyDevice = Annotated[DeviceSpec, kind_field("devices")]
"""The spec of a device of any kind in this folder."""


class FtlSpec(Spec):
    """The map of a flash drive, and its garbage.

    * ``spare``: the overprovisioning: the flash beyond the capacity, as a share of the capacity.
    * ``erase_block``: the size of the blocks that are collected and erased.
    * ``erase_time``: the time in which a plane erases such a block.
    * ``state``: how the drive was written before the run: in order and once, or at random and for long.
    * ``fill``: the share of the capacity that has data when the run begins.  Without it, a fresh drive has
      none, and a steady one is full.
    """

    spare: Annotated[Real, Field(gt=0, le=8)]
    erase_block: Bytes
    erase_time: Ns
    state: Literal["fresh", "steady"]
    fill: Annotated[Real, Field(ge=0, le=1)] | None = None

    @property
    def data_share(self) -> float:
        """The share of the capacity that has data when the run begins (0 to 1)."""
        if self.fill is None:
            return 1.0 if self.state == "steady" else 0.0
        return self.fill

    def pages_and_blocks(self, size: int, unit: int) -> tuple[int, int, int]:
        """Return the units (of *unit* bytes) of a drive of *size* bytes, those of a block, and the blocks.

        All three are numbers.  The blocks include the spare ones.

        Raises:
            BadValue: ``erase_block`` is not a multiple of *unit*, or the flash beyond the capacity is
                too little to collect garbage.
        """
        if self.erase_block % unit:
            raise BadValue(
                f"{self.erase_block} B is not a multiple of the map's unit of {unit} B; give a multiple",
                "erase_block",
            )
        pages, block_pages = -(-size // unit), self.erase_block // unit
        blocks = int(pages * (1 + self.spare) / block_pages)
        least = -(-pages // block_pages) + _BLOCKS_TO_COLLECT
        if blocks < least:
            raise BadValue(
                f"{self.spare} leaves {blocks} blocks of {self.erase_block} B, but the drive needs {least} to"
                " collect garbage; give more spare flash or a smaller erase_block",
                "spare",
            )
        return pages, block_pages, blocks


class SlcSpec(Spec):
    """The part of a flash drive whose cells hold one bit each.

    * ``fixed``: the size that it always has.
    * ``dynamic``: the size that it has in addition while the drive is empty; less with more data on it.
    * ``program_time``: the time in which a plane programs ``flash_page`` bytes of it.
    * ``when_full``: the drive then writes to the other cells directly, or folds as much as the host writes.
    * ``fold_after``: the time without work after which the drive folds; without it, a pause folds nothing.
    """

    fixed: BytesOrNone
    dynamic: BytesOrNone
    program_time: Ns
    when_full: Literal["direct", "fold"]
    fold_after: Ns | None = None


class SsdSpec(DeviceSpec):
    """A flash drive.

    * ``size``: the capacity; without it, the capacity does not matter.
    * ``link``: the rate of the link, over which all data goes.
    * ``command_time``: the time of each command on the link.
    * ``latency``: the additional time of each write, which does not occupy the link.
    * ``cache``: the size of the write cache; at least ``flash_page``.
    * ``units``: the planes that program at once (channels x dies x planes).
    * ``flash_page``: the bytes that a plane programs at a time.
    * ``program_time``: the time in which a plane programs ``flash_page`` bytes.
    * ``read_time``: the time in which a plane reads.
    * ``suspend_time``: a read interrupts a program in this time; without it, a read waits until the program
      ends.
    * ``protected``: the cache survives a power cut, so a flush needs no programming.  With a queue whose
      ``write_cache`` is write through, the kernel sends no flush, so the drive must be protected.
    * ``flush_time``: the time of a flush beyond the programming of what is in the cache.
    * ``indirection_unit``: the size that one entry of the map covers.  It is a page or more, and divides
      ``flash_page``.  Without it, a write is never smaller.
    * ``ftl``: the map and its garbage; without it, the drive never collects garbage.
    * ``slc``: the part whose cells hold one bit each.
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
    flush_time: Ns | None = None
    suspend_time: Ns | None = None
    indirection_unit: Bytes | None = None
    size: Bytes | None = None
    ftl: FtlSpec | None = None
    slc: SlcSpec | None = None

    @property
    def draws(self) -> bool:
        """True if the drive has an ``ftl``, which draws random numbers."""
        return self.ftl is not None

    @property
    def capacity(self) -> int | None:
        """The capacity (bytes); None: it does not matter."""
        return self.size

    @property
    def volatile(self) -> bool:
        """True if the cache is not protected: only a flush makes a completed write survive a power cut."""
        return not self.protected

    @model_validator(mode="after")
    def _check(self) -> SsdSpec:
        if self.cache < self.flash_page:
            raise BadValue(
                f"{self.cache} B is less than a flash_page; give at least {self.flash_page} B", "cache"
            )
        unit = self.indirection_unit
        if unit is not None and (unit < PAGE_BYTES or self.flash_page % unit):
            message = f"{unit} B is not allowed; give {PAGE_BYTES} B or more that divide {self.flash_page} B"
            raise BadValue(message, "indirection_unit")
        if self.ftl is not None:
            if self.size is None:
                raise BadValue("is missing; a drive that collects garbage needs its capacity", "size")
            try:
                self.ftl.pages_and_blocks(self.size, unit or PAGE_BYTES)
            except BadValue as error:
                raise BadValue(str(error), "ftl", *error.path) from None
        if self.slc is not None and self.size is not None:
            part = self.slc.fixed + self.slc.dynamic
            if part > self.size:
                raise BadValue(
                    f"{part} B, fixed and dynamic, are more than the drive's {self.size} B; give less", "slc"
                )
        if self.protected and self.flush_time:
            raise BadValue("contradicts protected = true: such a drive has nothing to flush", "flush_time")
        return self


class ShinglesSpec(Spec):
    """The shingled tracks of a disk (SMR).

    * ``media_cache``: the size of the zone that takes writes that are not in order.
    * ``band``: the size of the tracks that can only be written in order.
    * ``clean_after``: the time without requests after which the disk begins to empty the media cache.
    """

    media_cache: Bytes
    band: Annotated[Bytes, Field(multiple_of=SECTOR_BYTES)]
    clean_after: Ns


class DiskSpec(DeviceSpec):
    """A rotating disk.

    * ``size``: the capacity.
    * ``outer``: the rate of the first zone.
    * ``inner``: the rate of the last zone.
    * ``turn_time``: the time of one rotation.
    * ``track_seek``: the time of a seek to the next track.
    * ``full_seek``: the time of a seek across the complete disk.
    * ``cache``: the size of the write cache; 0: a write completes when it is on the platters.
    * ``segments``: the number of writes that the cache can hold.
    * ``link``: the rate at which writes fill the ``cache``.
    * ``shingles``: the tracks overlap; without it, they do not.
    """

    kind: Literal["disk"] = "disk"
    size: Bytes
    outer: BytesPerS
    inner: BytesPerS
    turn_time: Ns
    track_seek: Ns
    full_seek: Ns
    cache: BytesOrNone
    segments: Count
    link: BytesPerS
    shingles: ShinglesSpec | None = None

    @model_validator(mode="after")
    def _check(self) -> DiskSpec:
        shingles = self.shingles
        if shingles is not None and shingles.media_cache >= self.size:
            raise BadValue(
                f"{shingles.media_cache} B is not less than the disk's {self.size} B; give less",
                "shingles",
                "media_cache",
            )
        return self

    @property
    def capacity(self) -> int:
        """The capacity (bytes)."""
        return self.size

    @property
    def volatile(self) -> bool:
        """True if the disk has a cache: only a flush makes a completed write survive a power cut."""
        return self.cache > 0

    @property
    def made_safe(self) -> tuple[str, str]:
        """The key ``cache``, and its value (as TOML) with which a completed write survives a power cut."""
        return "cache", '"0 B"'

    @property
    def rotates(self) -> bool:
        """True, because a disk rotates."""
        return True


class Raid0Spec(DeviceSpec):
    """A stripe over several devices.

    * ``chunk``: the part on one member before the next member follows.
    * ``members``: the devices: a list, or one device and its ``count``.
    """

    kind: Literal["raid0"] = "raid0"
    chunk: Annotated[Bytes, Field(multiple_of=PAGE_BYTES)]
    members: Annotated[tuple[AnyDevice, ...], Field(min_length=1)]

    @property
    def capacity(self) -> int | None:
        """The capacity (bytes): the members' smallest, times their number; None: no member has one."""
        shares = [member.capacity for member in self.members if member.capacity is not None]
        return min(shares) * len(self.members) if shares else None

    @property
    def stripe(self) -> tuple[int, int]:
        """The chunk, and the chunks of all members together (bytes), which md reports to mkfs."""
        return self.chunk, self.chunk * len(self.members)

    @property
    def volatile(self) -> bool:
        """True if a member is volatile: only a flush makes a completed write survive a power cut."""
        return any(member.volatile for member in self.members)

    @property
    def made_safe(self) -> tuple[str, str]:
        """The key of the members, and its value (TOML) with which a completed write survives a power cut."""
        key, value = self.members[0].made_safe
        return f"members.{key}", value

    def parts(self) -> dict[str, DeviceSpec | tuple[DeviceSpec, ...]]:
        """Return the devices of which this one is made, under the name ``members``."""
        return {"members": self.members}


class WriteCacheSpec(DeviceSpec):
    """A controller's write cache.

    * ``size``: the size of the cache.
    * ``link``: the rate at which writes fill the cache.
    * ``command_time``: the additional time of each write.
    * ``piece``: the size of the largest write to the device ``behind``; whole sectors.
    * ``depth``: the number of pieces that drain at once.
    * ``behind``: the device to which the cache drains.
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
        """The capacity (bytes) of the device ``behind``; None: it does not matter."""
        return self.behind.capacity

    def parts(self) -> dict[str, DeviceSpec | tuple[DeviceSpec, ...]]:
        """Return the device to which the cache drains, under the name ``behind``."""
        return {"behind": self.behind}


class ControllerSpec(DeviceSpec):
    """A RAID controller with a cache.

    * ``level``: ``raid0``, ``raid1``, ``raid10`` (pairs of members), ``raid5`` or ``raid6``.
    * ``strip``: the part on one member before the next member follows, and the size of a line of the cache.
    * ``members``: the devices: a list, or one device and its ``count``.
    * ``faulty``: members that failed, counted from 0; the array runs degraded.
    * ``cache``: the part of the cache that holds writes.
    * ``policy``: whether a write ends in the cache: ``write_back`` while the battery is good,
      ``always_write_back`` even if it is not, and ``write_through`` never.
    * ``battery``: the state of the battery or capacitor: ``good``, ``learning`` (it is being discharged and
      charged), or ``failed``.
    * ``learns_in_write_back``: the battery protects the cache while it is ``learning``, too.
    * ``high_watermark``: the cache begins to destage when more than this share of it is dirty.
    * ``low_watermark``: it stops at this share.
    * ``flush_after``: data is destaged after this time even below the watermark.
    * ``depth``: the number of rows that are destaged at once.
    * ``link``: the rate at which data comes and goes.
    * ``command_time``: the additional time of each command.
    * ``parity_rate``: the rate at which data is added to parity.
    """

    kind: Literal["controller"] = "controller"
    level: Level
    strip: Bytes
    members: Annotated[tuple[AnyDevice, ...], Field(min_length=1)]
    faulty: tuple[CountOrNone, ...] = ()
    cache: Bytes
    policy: Literal["write_back", "write_through", "always_write_back"]
    battery: Literal["good", "learning", "failed"] = "good"
    learns_in_write_back: Flag = False
    high_watermark: Annotated[Real, Field(ge=0, le=1)]
    low_watermark: Annotated[Real, Field(ge=0, le=1)]
    flush_after: Interval
    depth: Count
    link: BytesPerS
    command_time: Ns
    parity_rate: BytesPerS

    @model_validator(mode="after")
    def _check(self) -> ControllerSpec:
        count = len(self.members)
        if self.strip & (self.strip - 1) or self.strip < PAGE_BYTES:
            raise BadValue(
                f"{self.strip} B is not a power of two from {PAGE_BYTES} B on; give one, such as 64 KiB",
                "strip",
            )
        if self.cache < self.strip:
            raise BadValue(f"{self.cache} B is less than one strip; give at least {self.strip} B", "cache")
        if count < LEAST_MEMBERS[self.level] or (self.level == "raid10" and count % 2):
            need = f"{LEAST_MEMBERS[self.level]} members or more"
            need = "an even number of members" if self.level == "raid10" else need
            raise BadValue(f"{self.level} needs {need}, and has {count}; give others", "members")
        for number in self.faulty:
            if number >= count:
                raise BadValue(f"there is no member {number}; use 0 to {count - 1}", "faulty")
        if not has_all_data(self.level, count, set(self.faulty)):
            names = ", ".join(map(str, self.faulty))
            raise BadValue(f"{self.level} does not work without members {names}; leave one out", "faulty")
        if self.low_watermark > self.high_watermark:
            raise BadValue(
                f"{self.low_watermark} is above high_watermark, {self.high_watermark}; give a lower share",
                "low_watermark",
            )
        return self

    @property
    def writes_back(self) -> bool:
        """True if a write ends when it is in the cache."""
        protected = self.battery == "good" or (self.battery == "learning" and self.learns_in_write_back)
        return self.policy == "always_write_back" or (self.policy == "write_back" and protected)

    @property
    def _data(self) -> int:
        return int(data_members(self.level, len(self.members)))

    @property
    def capacity(self) -> int | None:
        """The capacity (bytes), of whole strips that fit the smallest member; None: no member has one."""
        sizes = [member.capacity for member in self.members if member.capacity is not None]
        return min(sizes) // self.strip * self.strip * self._data if sizes else None

    @property
    def stripe(self) -> tuple[int, int]:
        """The strip, and the data strips of a row together (bytes), for which mkfs asks; RAID1: 0, 0."""
        return (0, 0) if self.level == "raid1" else (self.strip, self.strip * self._data)

    def parts(self) -> dict[str, DeviceSpec | tuple[DeviceSpec, ...]]:
        """Return the devices of which this one is made, under the name ``members``."""
        return {"members": self.members}


class NullSpec(DeviceSpec):
    """The null device (null_blk without delays).

    * ``cache``: the device asks for flushes, as if it had a volatile cache.
    """

    kind: Literal["null"] = "null"
    cache: Flag = False

    @property
    def volatile(self) -> bool:
        """True if the device asks for flushes (``cache``), as a device with a volatile cache does."""
        return self.cache

    @property
    def made_safe(self) -> tuple[str, str]:
        """The key ``cache``, and its value (as TOML) with which the device asks for no flush."""
        return "cache", "false"


class LoopSpec(DeviceSpec):
    """A loop device on a file in tmpfs.

    * ``command_time``: the worker's time for each command, including its completion.
    * ``page_time``: the worker's time for each page that it copies.
    """

    has_worker: ClassVar = True
    kind: Literal["loop"] = "loop"
    command_time: Ns
    page_time: Ns

    @property
    def volatile(self) -> bool:
        """True, because a power cut loses the file's pages; so the driver takes flushes."""
        return True
