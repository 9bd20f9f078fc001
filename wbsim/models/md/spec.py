"""The specs of arrays: level and members, the kernel's rules, and the costs of md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from wbsim.models.devices.spec import DeviceSpec
from wbsim.models.raid.levels import LEAST_MEMBERS, PARITIES, Level, data_members, has_all_data
from wbsim.sim.param import (
    BadValue,
    Bytes,
    BytesOrNone,
    Count,
    CountOrNone,
    Flag,
    Inputs,
    Ns,
    Spec,
    assumed,
    number,
)
from wbsim.sim.units import PAGE_BYTES, SECTOR_BYTES

_ALIGNMENT: Final = 2_048  # sectors: 1 MiB
_MOST_HEADROOM: Final = 128 * 2_048
_SUPERBLOCK_SECTORS: Final = 24


class ArraySpec(Spec):
    """An array of disks of the machine, as mdadm makes it.

    * ``level``: ``raid0``, ``raid1``, ``raid10`` (near=2), ``raid5`` or ``raid6`` (left-symmetric).
    * ``members``: the names of its disks, or the name of a group of disks.
    * ``chunk``: the part on one member before the next member follows; RAID1 ignores it.
    * ``faulty``: members that failed; the array runs degraded.
    * ``bitmap_chunk``: the region for which one bit of the internal write-intent bitmap stands; 0: there is
      no bitmap.  RAID0 has none.
    * ``stripe_cache_size``: the stripes of the cache, each a page of every member (RAID5 and RAID6).
    * ``group_thread_cnt``: the number of worker threads in addition to the array's own thread (RAID5 and
      RAID6).
    * ``preread_bypass_threshold``: complete stripes that may pass a delayed one (RAID5 and RAID6).
    * ``rmw_level``: 0: new parity is always made from all data (reconstruct-write).  1: if that needs more
      reads, it is made from the old parity (read-modify-write).  2: as many reads are enough.
    """

    level: Level
    members: Annotated[tuple[str, ...], Field(min_length=1)]
    chunk: Bytes = 512 * 1024
    faulty: tuple[str, ...] = ()
    bitmap_chunk: BytesOrNone = 64 << 20
    stripe_cache_size: Annotated[Count, Field(ge=17, le=32_768)] = 256
    group_thread_cnt: Annotated[CountOrNone, Field(le=8_192)] = 0
    preread_bypass_threshold: CountOrNone = 1
    rmw_level: Annotated[Literal[0, 1, 2], BeforeValidator(number)] = 1

    @property
    def parities(self) -> int:
        """The number of parity pages in a stripe; 0 of levels without parity."""
        return PARITIES.get(self.level, 0)

    @property
    def data_members(self) -> float:
        """The number of members whose capacity the array has; 1.5 of RAID10 with 3 members."""
        return data_members(self.level, len(self.members))

    @property
    def has_bitmap(self) -> bool:
        """True if the array keeps a write-intent bitmap."""
        return bool(self.bitmap_chunk) and self.level != "raid0"

    @model_validator(mode="after")
    def _check(self) -> ArraySpec:
        for key, size in (("chunk", self.chunk), ("bitmap_chunk", self.bitmap_chunk)):
            if size and (size & (size - 1) or size < PAGE_BYTES):
                raise BadValue(
                    f"{size} B is not a power of two from {PAGE_BYTES} B on; give one, such as 64 KiB", key
                )
        least = LEAST_MEMBERS[self.level]
        if len(self.members) < least:
            raise BadValue(
                f"{self.level} needs {least} members or more, and has {len(self.members)}; name more disks",
                "members",
            )
        if len(set(self.members)) < len(self.members):
            raise BadValue("a disk is named twice; name each member once", "members")
        for name in self.faulty:
            if name not in self.members:
                raise BadValue(f"{name!r} is no member; use one of {', '.join(self.members)}", "faulty")
        faulty = {self.members.index(name) for name in self.faulty}
        if not has_all_data(self.level, len(self.members), faulty):
            raise BadValue(
                f"{self.level} does not work without {', '.join(self.faulty)}; leave one out", "faulty"
            )
        return self


class ArrayFacts(NamedTuple):
    """An array as mkfs and the flusher see it: its capacity and stripe (bytes), and what its members are.

    ``capacity`` is None if no member has a capacity.  ``stripe`` is as in `DeviceSpec.stripe`.
    """

    capacity: int | None
    stripe: tuple[int, int]
    rotates: bool
    volatile: bool


def data_offset(member_sectors: int) -> int:
    """Return the first sector of data on a member of *member_sectors* sectors, as mdadm chooses it.

    Stands for validate_geometry1 of super1.c [R]: 264192 from 128 GiB on.

    >>> data_offset(1 << 31), data_offset(1 << 21)
    (264192, 4096)
    """
    headroom = _MOST_HEADROOM
    while headroom << 10 > member_sectors and headroom > 1:
        headroom >>= 1
    bitmap = 256 if member_sectors >= 200 << 21 else 128 if member_sectors >= 8 << 21 else 8
    return -(-(_SUPERBLOCK_SECTORS + bitmap + headroom) // _ALIGNMENT) * _ALIGNMENT


def array_facts(array: ArraySpec, members: Sequence[DeviceSpec]) -> ArrayFacts:
    """Return the capacity and the stripe (bytes) of *array*, and whether it rotates and is volatile.

    *members* are its devices; of their capacities, the smallest counts.  One member that rotates or is
    volatile is enough.
    """
    sizes = [member.capacity for member in members if member.capacity is not None]
    capacity = None
    if sizes:
        sectors = min(sizes) // SECTOR_BYTES
        usable = (sectors - data_offset(sectors)) * SECTOR_BYTES
        if array.level != "raid1":
            usable = usable // array.chunk * array.chunk
        capacity = int(usable * array.data_members) // array.chunk * array.chunk
    stripe = 0, 0
    if array.level != "raid1":
        width = array.chunk * array.data_members
        stripe = array.chunk, int(width) if width == int(width) else int(array.chunk * len(array.members))
    return ArrayFacts(
        capacity, stripe, any(member.rotates for member in members), any(m.volatile for m in members)
    )


class MdRules(Spec):
    """The rules of md in one era (docs/kernel/md.md).

    * ``plugs_stripes``: stripes wait in the plug of the writing task (RAID5 and RAID6).  Otherwise the thread
      visits them at once, but no delayed stripe reads while a task has a plug.
    * ``group_threads``: RAID5 and RAID6 may have worker threads.
    * ``raid6_rmw``: RAID6 knows read-modify-write.
    * ``cache_grows``: the stripe cache grows while a task waits for a stripe.
    * ``whole_stripes``: a bio adds all its pages of a stripe at once; otherwise it adds page after page.
    * ``mirror_writes``: who submits a write of RAID1 and RAID10 to the members.  ``thread``: the array's
      thread.  ``plug``: the task, when it flushes its plug.  ``direct``: the task, at once if there is no
      bitmap.
    * ``flushes``: ``at_once``: each flush goes to all members together with the data of its bio.
      ``in_turn``: one flush at a time, and data follows it.
    * ``plug_bios``: the writes in a plug at which RAID1 and RAID10 submit them; without it, no limit.
    """

    plugs_stripes: Flag
    group_threads: Flag
    raid6_rmw: Flag
    cache_grows: Flag
    whole_stripes: Flag
    mirror_writes: Literal["thread", "plug", "direct"]
    flushes: Literal["in_turn", "at_once"]
    plug_bios: Count | None


class MdCosts(Spec):
    """The processor time of md, on the reference machine.

    * ``bio_ns``: the time to map a bio, or a part of it, to a member.
    * ``stripe_ns``: the time to find a stripe and to add a page to it.
    * ``list_ns``: the time to move a stripe between lists, under the lock of the array.
    * ``handle_ns``: the time of one visit to a stripe (handle_stripe), without copies and parity.
    * ``copy_ns``: the time to copy a page into the stripe cache, or out of it.
    * ``xor_ns``: the time to add one page to the parity P.
    * ``syndrome_ns``: the time to add one page to the parities P and Q of RAID6.
    """

    bio_ns: Ns
    stripe_ns: Ns
    list_ns: Ns
    handle_ns: Ns
    copy_ns: Ns
    xor_ns: Ns
    syndrome_ns: Ns


REFERENCE_COSTS: Final[Inputs] = {
    "bio_ns": assumed(400, "an allocation and a mapping; half of a request", 200, 800),
    "stripe_ns": assumed(250, "a search in the hash of stripes, and a list", 120, 600),
    "list_ns": assumed(60, "a step of a list, with a miss of the cache", 20, 150),
    "handle_ns": assumed(600, "two walks over all members, and the flags of each", 300, 1_500),
    "copy_ns": assumed(300, "a copy of 4 KiB [R]", 150, 600),
    "xor_ns": assumed(400, "XOR at 5 to 15 GB/s a core [R]", 270, 820),
    "syndrome_ns": assumed(680, "P and Q at 3 to 10 GB/s a core [R]", 410, 1_370),
}
"""The costs of machines of the catalogue; none is measured, because our kernel has no md."""
