"""From the data sheet of a drive to its device: the rule for the drives of the catalogue, and for a user's.

A sheet has what makers state and reviews measure.  What it does not state follows from its other figures and
from the kind of its medium, or is assumed with a range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from wbsim.sim.param import (
    BadValue,
    Bytes,
    BytesOrNone,
    BytesPerS,
    Count,
    Flag,
    Given,
    Inputs,
    Ns,
    Origin,
    Real,
    Spec,
    assumed,
    bare,
    specified,
)
from wbsim.sim.units import GIB, KIB, MIB, MS, PAGE_BYTES, US, S, quantity

MB: Final = 10**6
HOST_NS: Final = 6 * US
"""The host's part (ns) of each request, which rates at depth 1 include: submission, interrupt, completion."""


class Interface(NamedTuple):
    """A connection of a drive: its rate (B/s), its queue (`queues`), and the usual time of a command."""

    rate: int
    queue: str
    command_ns: int


INTERFACES: Final = {
    "SATA 3 Gb/s": Interface(300 * MB, "sata", 15 * US),
    "SATA 6 Gb/s": Interface(600 * MB, "sata", 10 * US),
    "SAS 6 Gb/s": Interface(600 * MB, "sas", 10 * US),
    "SAS 12 Gb/s": Interface(1200 * MB, "sas", 5 * US),
    "PCIe 3 x4": Interface(3_600 * MB, "nvme", 900),
    "PCIe 4 x4": Interface(7_200 * MB, "nvme", 400),
    "PCIe 5 x4": Interface(14_400 * MB, "nvme", 200),
    "USB 2": Interface(40 * MB, "usb", 200 * US),
    "USB 3": Interface(450 * MB, "usb", 100 * US),
    "SD UHS-I": Interface(104 * MB, "usb", 200 * US),
}
"""By name, with the rate after coding (docs/drives.md#interfaces)."""
InterfaceName = Literal[
    "SATA 3 Gb/s", "SATA 6 Gb/s", "SAS 6 Gb/s", "SAS 12 Gb/s", "PCIe 3 x4", "PCIe 4 x4", "PCIe 5 x4",
    "USB 2", "USB 3", "SD UHS-I",
]  # fmt: skip


class Medium(NamedTuple):
    """A kind of flash: bits of a cell, times of a page (ns), and a usual rate of a terabyte (B/s).

    ``program`` and ``rate_of_terabyte`` are a value, the lowest and the highest.
    """

    bits: int
    program: tuple[int, int, int]
    read_ns: int
    rate_of_terabyte: tuple[int, int, int]


MEDIA: Final = {
    "SLC": Medium(1, (300 * US, 200 * US, 500 * US), 50 * US, (2_000 * MB, 1_000 * MB, 4_000 * MB)),
    "MLC": Medium(2, (800 * US, 500 * US, 1_300 * US), 60 * US, (1_500 * MB, 800 * MB, 3_000 * MB)),
    "TLC": Medium(3, (2_000 * US, 1_000 * US, 3_000 * US), 80 * US, (1_000 * MB, 250 * MB, 2_000 * MB)),
    "QLC": Medium(4, (3_000 * US, 2_000 * US, 6_000 * US), 120 * US, (120 * MB, 40 * MB, 300 * MB)),
    "3D XPoint": Medium(1, (8 * US, 5 * US, 12 * US), 7 * US, (5_000 * MB, 2_000 * MB, 8_000 * MB)),
}
"""By name; (value, low, high) of what is assumed.  Sources: docs/drives.md#media."""

_ROUNDING: Final = 1.03
"""Makers round their figures: 500 000 writes a second of a drive with 2 000 MB/s are 2 048 MB/s."""


def _medium(value: object) -> object:
    """Return *value*, the name of a medium, as `MEDIA` has it.

    >>> _medium("tlc")
    'TLC'

    Raises:
        ValueError: there is no such medium.
    """
    name = next((name for name in MEDIA if name.lower() == str(value).lower()), None)
    if name is None:
        raise ValueError(f"{str(value)[:60]!r} is not a medium; use 'disk', {', '.join(map(repr, MEDIA))}")
    return name


Sheet = dict[str, Any]
"""The figures of a drive, by key; each may be a `Given`."""


class FlashSheet(Spec):
    """The figures of a flash drive.

    * ``medium``: the kind of its flash.
    * ``interface``: what connects it.
    * ``capacity``: the capacity.
    * ``sequential_write``: the rate of a fresh drive; with an SLC part, the rate of this part.
    * ``sequential_write_after``: the rate after the SLC part is full.
    * ``slc_fixed``: the size of the SLC part on a full drive.
    * ``slc_dynamic``: the size that an empty drive adds to it.  If these three keys are missing, a TLC or
      QLC drive without capacitors is assumed to have an SLC part.  Two sizes of 0 deny it.
    * ``random_write``: random writes of 4 KiB a second, fresh, at any depth.
    * ``random_write_qd1``: the same with one request in flight.
    * ``protected``: a power cut does not empty the cache.
    * ``durable_writes``: writes of 4 KiB a second of one job, each made durable before the next.
    * ``spare``: the flash beyond the capacity, as a share of it; without it, the next power of two of GiB.
    * ``cache``: the size of the write cache.
    * ``indirection_unit``: the size that one entry of the map covers.
    """

    medium: Annotated[Literal["SLC", "MLC", "TLC", "QLC", "3D XPoint"], BeforeValidator(_medium)]
    interface: InterfaceName
    capacity: Bytes
    sequential_write: BytesPerS
    sequential_write_after: BytesPerS | None = None
    slc_fixed: BytesOrNone | None = None
    slc_dynamic: BytesOrNone | None = None
    random_write: Count | None = None
    random_write_qd1: Count | None = None
    protected: Flag
    durable_writes: Count | None = None
    spare: Annotated[Real, Field(gt=0, le=2)] | None = None
    cache: Bytes | None = None
    indirection_unit: Annotated[Bytes, Field(multiple_of=PAGE_BYTES)] | None = None

    @property
    def has_slc(self) -> bool:
        """True if the drive programs a part of its cells with one bit each.

        Without figures of this part, a TLC or QLC drive that is not ``protected`` is assumed to have one.
        """
        if self.slc_fixed is None and self.slc_dynamic is None and self.sequential_write_after is None:
            return self.medium in ("TLC", "QLC") and not self.protected
        return any((self.sequential_write_after, self.slc_fixed, self.slc_dynamic))

    @property
    def flash(self) -> int:
        """The flash of the drive (bytes): the capacity with the spare flash."""
        return raw_bytes(self.capacity) if self.spare is None else round(self.capacity * (1 + self.spare))

    @model_validator(mode="after")
    def _check(self) -> FlashSheet:
        interface = INTERFACES[self.interface]
        _refuse_rate("sequential_write", self.sequential_write, f"{self.interface} carries", interface.rate)
        if self.sequential_write_after is not None:
            _refuse_rate(
                "sequential_write_after",
                self.sequential_write_after,
                "sequential_write is",
                self.sequential_write,
            )
        self._check_counts()
        unit = self.indirection_unit
        if unit is not None and unit & (unit - 1):
            raise BadValue(f"{unit // KIB} KiB is not a power of two; give one", "indirection_unit")
        slc, bits = (self.slc_fixed or 0) + (self.slc_dynamic or 0), MEDIA[self.medium].bits
        if slc * bits > self.flash:
            raise BadValue(
                f"is {slc / 1e9:g} GB with slc_dynamic, which takes {slc * bits / 1e9:g} GB of {self.medium}"
                f" flash; the drive has {self.flash / 1e9:g} GB",
                "slc_fixed" if self.slc_fixed else "slc_dynamic",
            )
        return self

    def _check_counts(self) -> None:
        """Refuse figures a second that leave no time for the parts of a write.

        Raises:
            BadValue: a figure is too large, or a protected drive has durable writes.
        """
        random = self.random_write
        if random is not None:
            most = self.sequential_write // (self.indirection_unit or PAGE_BYTES)
            if random > most * _ROUNDING:
                rate = f"{self.sequential_write / MB:g} MB/s"
                raise BadValue(f"{random} is more than {rate} can program: {most} a second", "random_write")
            if (self.random_write_qd1 or 0) > random:
                raise BadValue(
                    f"{self.random_write_qd1} is more than random_write: {random}", "random_write_qd1"
                )
        if (self.random_write_qd1 or 0) > S // HOST_NS:
            message = (
                f"{self.random_write_qd1} leaves no time: the host alone needs {HOST_NS // US} us for each"
            )
            raise BadValue(message, "random_write_qd1")
        if self.durable_writes is not None:
            if self.protected:
                raise BadValue(
                    "contradicts protected = true: such a drive need not flush; leave one of them out",
                    "durable_writes",
                )
            alone = self.random_write_qd1 or S // HOST_NS
            if self.durable_writes >= alone:
                raise BadValue(
                    f"{self.durable_writes} leaves no time for a flush: {alone} writes a second need none; is"
                    " the drive protected?",
                    "durable_writes",
                )


class DiskSheet(Spec):
    """The figures of a rotating disk.

    * ``medium``: disk.
    * ``interface``: what connects it.
    * ``capacity``: the capacity.
    * ``turns``: turns a minute.
    * ``sequential_write``: the rate of the outer zone.
    * ``sequential_write_inner``: the rate of the inner zone; without it, half of the outer rate.
    * ``mean_seek``: the time of a mean seek for a write.
    * ``track_seek``: the time of a seek to the next track.
    * ``full_seek``: the time of a seek across the complete disk.
    * ``cache``: the size of the cache.
    * ``queue_depth``: the commands that it takes at once; without it, as many as its interface has.
    * ``media_cache``: the part of a shingled disk that takes random writes; without it, the disk is not
      shingled.
    """

    medium: Annotated[Literal["disk"], BeforeValidator(lambda value: str(value).lower())]
    interface: InterfaceName
    capacity: Bytes
    turns: Annotated[Count, Field(ge=3_000, le=20_000)]
    sequential_write: BytesPerS
    sequential_write_inner: BytesPerS | None = None
    mean_seek: Ns | None = None
    track_seek: Ns | None = None
    full_seek: Ns | None = None
    cache: BytesOrNone
    queue_depth: Count | None = None
    media_cache: Bytes | None = None

    @model_validator(mode="after")
    def _check(self) -> DiskSheet:
        rate = INTERFACES[self.interface].rate
        _refuse_rate("sequential_write", self.sequential_write, f"{self.interface} carries", rate)
        if self.sequential_write_inner is not None:
            _refuse_rate(
                "sequential_write_inner",
                self.sequential_write_inner,
                "sequential_write is",
                self.sequential_write,
            )
        if self.media_cache is not None and self.media_cache >= self.capacity:
            message = (
                f"{self.media_cache / 1e9:g} GB is not less than the capacity: {self.capacity / 1e9:g} GB"
            )
            raise BadValue(message, "media_cache")
        seeks = [
            (key, value)
            for key in ("track_seek", "mean_seek", "full_seek")
            if (value := getattr(self, key)) is not None
        ]
        for (shorter, least), (longer, most) in pairwise(seeks):
            if least > most:
                raise BadValue(
                    f"{least / MS:g} ms is more than {longer}, {most / MS:g} ms; exchange them", shorter
                )
        return self


def _refuse_rate(key: str, rate: int, what: str, most: int) -> None:
    """Refuse a *rate* (B/s) of *key* above *most*, which *what* explains.

    Raises:
        BadValue: *rate* is more.
    """
    if rate > most:
        message = (
            f"{rate / MB:g} MB/s is more than {what}: {most / MB:g} MB/s; correct one of the two figures"
        )
        raise BadValue(message, key)


def spec_of(sheet: Mapping[str, Any]) -> type[FlashSheet | DiskSheet]:
    """Return the class that checks *sheet*: that of a disk, or that of a flash drive for any other medium.

    >>> spec_of({"medium": "Disk"}).__name__, spec_of({"medium": "TLC"}).__name__
    ('DiskSheet', 'FlashSheet')
    """
    return DiskSheet if str(bare(sheet.get("medium"))).lower() == "disk" else FlashSheet


def drive_of(sheet: Sheet) -> Inputs:
    """Return the drive that *sheet* describes, as the tables ``queue`` and ``device`` of a configuration.

    *sheet* has the keys of `FlashSheet` or of `DiskSheet`, as `spec_of` decides.  In the result, each number
    has its origin.  ``queue`` names the interface in ``like`` (`queues`), and has depths only if the sheet of
    a disk has ``queue_depth``.

    Raises:
        ValueError: the sheet is not valid; a figure is missing, unknown or contradicts another one.
    """
    figures = spec_of(sheet).model_validate(sheet)
    queue: Inputs = {"like": INTERFACES[figures.interface].queue}
    if isinstance(figures, FlashSheet):
        return {"queue": queue, "device": dict(_flash(figures))}
    assert isinstance(figures, DiskSheet)
    if figures.queue_depth is not None:
        queue["driver_depth"] = queue["queue_depth"] = _figure(figures, "queue_depth")
    return {"queue": queue, "device": _disk(figures)}


def _figure(sheet: Spec, key: str) -> Given:
    """Return the figure *key* of *sheet* with its origin."""
    value = getattr(sheet, key)
    provenance = sheet.provenance(key)
    if provenance is None:
        return specified(value, "the data sheet")
    return Given(value, provenance.origin, provenance.source, *_ends(sheet, key))


def _ends(sheet: Spec, key: str) -> tuple[Any, Any]:
    """Return the ends of the range of the figure *key*; without one, half and twice an assumed figure."""
    value, provenance = getattr(sheet, key), sheet.provenance(key)
    if provenance is None or provenance.origin != Origin.ASSUMED:
        return None, None
    low, high = (quantity(end) if isinstance(end, str) else end for end in (provenance.low, provenance.high))
    if low not in (None, high):
        return low, high
    return (value, value) if isinstance(value, bool) else (value / 2, value * 2)


def _by_rule(sheet: Spec, key: str, value: int | float, rule: str) -> Given:
    """Return *value*, which follows by *rule* from the figure *key* of *sheet*, with the origin of this.

    If the figure has a range, the value has the same one in proportion, also if the rule is a quotient.
    """
    provenance, figure = _figure(sheet, key), getattr(sheet, key)
    source = f"{rule}; {key}: {provenance.source}"
    if provenance.origin != Origin.ASSUMED:
        return Given(value, provenance.origin, source)
    ratios = (provenance.low / figure, provenance.high / figure)
    ends = [value, *(value * ratio for ratio in ratios), *(value / ratio for ratio in ratios if ratio)]
    if isinstance(value, int):
        ends = [round(end) for end in ends]
    return Given(value, provenance.origin, source, min(ends), max(ends))


def _flash(sheet: FlashSheet) -> Iterator[tuple[str, Any]]:
    """Yield the keys of a flash drive."""
    medium, interface = MEDIA[sheet.medium], INTERFACES[sheet.interface]
    protected = _figure(sheet, "protected")
    yield "kind", specified("ssd", f"{sheet.medium} flash")
    yield "size", _figure(sheet, "capacity")
    yield "link", specified(interface.rate, f"docs/drives.md#interfaces: {sheet.interface}")
    command = _command(sheet, interface)
    yield "command_time", command
    latency = _latency(sheet, interface, command.value)
    yield "latency", latency
    yield "protected", protected
    unit = sheet.indirection_unit
    page = max(16 * KIB if sheet.medium != "3D XPoint" else 4 * KIB, unit or 0)
    yield "flash_page", assumed(page, "a page of one plane [R]", page, max(page, 64 * KIB))
    if unit is not None:
        yield "indirection_unit", _figure(sheet, "indirection_unit")
    overhead_ns = HOST_NS + 2 * (command.value + latency.value) + PAGE_BYTES * S // interface.rate
    yield from _planes(sheet, medium, page, overhead_ns)
    yield (
        "read_time",
        assumed(medium.read_ns, "docs/drives.md#media", medium.read_ns // 2, medium.read_ns * 2),
    )
    if sheet.medium != "3D XPoint":
        yield "ftl", _ftl(sheet, medium)


def _command(sheet: FlashSheet, interface: Interface) -> Given:
    """Return the time of a command (ns): a queue of random writes passes the link one by one."""
    transfer_ns = PAGE_BYTES * S // interface.rate
    if sheet.random_write is not None:
        took_ns = max(0, S // sheet.random_write - transfer_ns)
        return _by_rule(sheet, "random_write", took_ns, "1 s / rate, minus the transfer")
    usual_ns = interface.command_ns
    if sheet.random_write_qd1 is not None:
        usual_ns = min(usual_ns, max(0, S // sheet.random_write_qd1 - HOST_NS - transfer_ns))
    return assumed(usual_ns, f"docs/drives.md#interfaces: {sheet.interface}", usual_ns // 4, usual_ns * 2)


def _latency(sheet: FlashSheet, interface: Interface, command_ns: int) -> Given:
    """Return the rest of the time of a write with one request in flight (ns)."""
    if sheet.random_write_qd1 is not None:
        took_ns = S // sheet.random_write_qd1 - HOST_NS - command_ns - PAGE_BYTES * S // interface.rate
        rule = "1 s / rate, minus host, command and transfer"
        return _by_rule(sheet, "random_write_qd1", max(0, took_ns), rule)
    usual_ns = 10 * US if interface.queue == "nvme" else 30 * US
    return assumed(usual_ns, "a write into the cache of a drive [R]", usual_ns // 2, usual_ns * 2)


def _planes(sheet: FlashSheet, medium: Medium, page: int, overhead_ns: int) -> Iterator[tuple[str, Any]]:
    """Yield the planes: as many as make the rate of a fresh drive, and the cache, which all of them need.

    A flash page has *page* bytes.  A durable write programs one, and takes *overhead_ns* in addition.
    """
    durable_ns = None if sheet.durable_writes is None else max(US, S // sheet.durable_writes - overhead_ns)
    usual_ns, low, high = MEDIA["SLC"].program if sheet.has_slc else medium.program
    if durable_ns is not None:
        usual_ns = min(usual_ns, durable_ns)
    rate = sheet.sequential_write
    units = max(1, round(rate * usual_ns / (page * S)))
    first_ns = units * page * S // rate
    yield "units", _by_rule(sheet, "sequential_write", units, "rate x time of a page / page")
    native = _native_rate(sheet, medium)
    if sheet.has_slc:
        yield "slc", _slc(sheet, first_ns)
        native_ns = units * page * S // native.value
        source = f"what the planes need for the rate; {native.source}"
        if native.origin == Origin.ASSUMED:
            ends = units * page * S // native.high, units * page * S // native.low
            yield "program_time", assumed(native_ns, source, *ends)
        else:
            yield "program_time", Given(native_ns, native.origin, source)
    else:
        source = f"docs/drives.md#media: {sheet.medium}, so that the planes make the rate"
        yield "program_time", assumed(first_ns, source, min(low, first_ns), max(high, first_ns))
    least = 2 * units * page
    if sheet.cache is not None and sheet.cache >= least:
        yield "cache", _figure(sheet, "cache")
    else:
        usual = max(least, 64 * MIB if sheet.cache is None else 0)
        yield (
            "cache",
            assumed(usual, "a part of the drive's DRAM, two pages of each plane or more", least, 8 * usual),
        )
    if sheet.protected:
        return
    if durable_ns is None:
        yield "flush_time", assumed(MS, "docs/drives.md#flushes", 400 * US, 5_600 * US)
    else:
        took_ns = max(0, durable_ns - first_ns)
        yield "flush_time", _by_rule(sheet, "durable_writes", took_ns, "1 s / rate, minus all else")


def _native_rate(sheet: FlashSheet, medium: Medium) -> Given:
    """Return the rate (B/s) at which the cells are programmed with all their bits."""
    if sheet.sequential_write_after is not None:
        return _figure(sheet, "sequential_write_after")
    if not sheet.has_slc:
        return _figure(sheet, "sequential_write")
    usual, low, high = (
        max(1, min(rate * sheet.capacity // 10**12, sheet.sequential_write))
        for rate in medium.rate_of_terabyte
    )
    return assumed(usual, f"docs/drives.md#media: {sheet.medium}, by capacity", low, high)


def _slc(sheet: FlashSheet, program_ns: int) -> Inputs:
    """Return the keys of the part with one bit in each cell, of which a page takes *program_ns*."""
    share, most = 0.006, 0.1
    fixed, dynamic = sheet.slc_fixed, sheet.slc_dynamic
    if fixed is None:
        size = round(sheet.capacity * share) if dynamic is None else 0
        source = "0.6 % of the capacity [R]" if size else "the sheet has a dynamic part only"
        fixed_part = assumed(size, source, 0, 2 * max(size, GIB))
    else:
        fixed_part = _figure(sheet, "slc_fixed")
    if dynamic is None:
        size = round(sheet.capacity * most) if fixed is None else 0
        source = "a tenth of the capacity [R]" if size else "the sheet has a fixed part only"
        dynamic_part = assumed(size, source, 0, sheet.capacity // 3)
    else:
        dynamic_part = _figure(sheet, "slc_dynamic")
    source = "so that all planes make the rate of the part"
    return {
        "fixed": fixed_part,
        "dynamic": dynamic_part,
        "program_time": _by_rule(sheet, "sequential_write", program_ns, source),
        "when_full": assumed("direct", "most reviews see one lower level", "direct", "fold"),
        "fold_after": assumed(S, "a pause of a second frees some [S TN]", 100 * MS, 30 * S),
    }


def _ftl(sheet: FlashSheet, medium: Medium) -> Inputs:
    """Return the keys of the map; the fixed SLC part is taken from the spare flash."""
    slc_share = 0.0
    if sheet.slc_fixed:
        slc_share = sheet.slc_fixed * medium.bits / sheet.capacity
    if sheet.spare is None:
        raw = sheet.flash / sheet.capacity - 1
        source = "docs/drives.md#spare: the next power of two of GiB"
        spare = assumed(round(max(0.02, raw - slc_share), 4), source, 0.02, 0.5)
    else:
        spare = _by_rule(
            sheet, "spare", round(max(0.02, sheet.spare - slc_share), 4), "minus the fixed SLC part"
        )
    block = 16 * MIB
    if block > sheet.capacity * spare.value / 8:
        block = max(MIB // 4, 1 << (int(sheet.capacity * spare.value) // 8).bit_length() - 1)
    return {
        "spare": spare,
        "erase_block": assumed(
            block, "a block of all planes of a die [R]", min(block, 4 * MIB), max(block, 64 * MIB)
        ),
        "erase_time": assumed(5 * MS, "docs/drives.md#media", 2 * MS, 10 * MS),
        "state": specified("fresh", "a new drive"),
    }


def raw_bytes(capacity: int) -> int:
    """Return the flash (bytes) of a drive: *capacity* (bytes), rounded up to a power of two of GiB.

    >>> raw_bytes(480 * 10**9) // GIB
    512
    """
    size = GIB
    while size < capacity:
        size *= 2
    return size


def _disk(sheet: DiskSheet) -> Inputs:
    """Return the keys of a disk."""
    outer = _figure(sheet, "sequential_write")
    track, full = _seeks(sheet)
    if sheet.sequential_write_inner is None:
        half = outer.value // 2
        inner = assumed(half, "half of the outer rate, as is usual", half * 4 // 5, half * 6 // 5)
    else:
        inner = _figure(sheet, "sequential_write_inner")
    device: Inputs = {
        "kind": specified("disk", "a rotating disk"),
        "size": _figure(sheet, "capacity"),
        "outer": outer,
        "inner": inner,
        "turn_time": _by_rule(sheet, "turns", 60 * S // sheet.turns, "60 s / turns"),
        "track_seek": track,
        "full_seek": full,
        "cache": _figure(sheet, "cache"),
        "segments": assumed(32, "the caching mode page of SCSI disks of 2005 to 2010 [R]", 8, 128),
        "link": specified(INTERFACES[sheet.interface].rate, f"docs/drives.md#interfaces: {sheet.interface}"),
    }
    if sheet.media_cache is not None:
        device["shingles"] = {
            "media_cache": _figure(sheet, "media_cache"),
            "band": assumed(30 * MIB, "docs/drives.md#shingled-disks [S 5C]", 15 * MIB, 40 * MIB),
            "clean_after": assumed(S, "shingled disks clean when they are idle [R]", 100 * MS, 30 * S),
        }
    return device


MEAN_OF_ROOT: Final = 8 / 15
"""The mean of the root of the distance between two random places, as a share of the whole: integral of
2 (1 - x) sqrt(x)."""


def _seeks(sheet: DiskSheet) -> tuple[Given, Given]:
    """Return the times (ns) of a seek to the next track, and of one across the disk."""
    fast = sheet.turns >= 10_000
    if sheet.track_seek is None:
        usual = 500 * US if fast else MS
        usual = usual if sheet.mean_seek is None else min(usual, sheet.mean_seek)
        track = assumed(usual, "data sheets of disks [R]", usual // 3, usual * 2)
    else:
        track = _figure(sheet, "track_seek")
    if sheet.full_seek is not None:
        return track, _figure(sheet, "full_seek")
    if sheet.mean_seek is not None:
        full_ns = track.value + round((sheet.mean_seek - track.value) / MEAN_OF_ROOT)
        return track, _by_rule(sheet, "mean_seek", full_ns, "the mean of the root of a distance is 8/15")
    usual = 9 * MS if fast else 18 * MS
    return track, assumed(usual, "data sheets of disks [R]", usual * 2 // 3, usual * 3 // 2)
