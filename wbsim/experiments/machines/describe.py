"""`wbsim describe-machine`: a machine file from /sys/block, /proc and sysctl of a machine.

The kernel reports the number of processors and nodes, the size of memory, and the queue and size of each
disk.  It does not report the speed of a drive, so that is assumed.  The times of kernel paths are those of
the desk (docs/measurements.md H), times a scale with a range, unless a capture has them.  Comments in the
file name the missing parts of a dump.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from wbsim.experiments.machines.dump import Dump
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.kernels import FIRST, KERNELS, LAST
from wbsim.models.io_schedulers.releases import legacy_names, modelled, refusal
from wbsim.sim.units import KIB

BASE: Final = "desk-vm"
BEGINS: Final = "# Linux "
"""The first characters of every machine file that wbsim writes."""
_VIRTUAL: Final = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")
_WHOLE_DISK: Final = re.compile(r"(?:sd|hd|vd|xvd)[a-z]+|nvme[0-9]+n[0-9]+|mmcblk[0-9]+")
_PERIODS: Final = {
    "dirty_expire_centisecs": ("kernel.writeback.expire", 3000),
    "dirty_writeback_centisecs": ("kernel.writeback.interval", 500),
}
"""By sysctl: the key, and the kernel's default (centiseconds)."""

ASSUMED: Final = (
    'processors.writer_scale = { assumed = 1.0, low = 0.3, high = 3.0, why = "times the desk\'s" }',
    'processors.flusher_scale = { assumed = 1.0, low = 0.3, high = 3.0, why = "times the desk\'s" }',
)
"""The scales of a processor's times.  No file of a dump has them; a capture does (`machines.costs`)."""


class Disk(NamedTuple):
    """A disk of the machine.

    ``size``: in bytes; None: unknown.  ``keys``: the keys of its queue.  ``like``: the drive of the catalogue
    that stands for the disk; ``why``: the reason.
    """

    name: str
    like: str
    why: str
    size: int | None
    keys: dict[str, str]


def describe(root: Path, costs: Sequence[str] = ASSUMED) -> str:
    """Return the text of a machine file (TOML) for the machine whose files lie in *root* or below.

    *root* is "/" for this machine.  *costs*: the lines (TOML) on the times of processors, which are copied
    into the text.  Comments say which values are unknown.

    Raises:
        BadInput: no folder in *root* has a machine's files, or several have.  Or a file cannot be read, or
            has an unexpected text.
    """
    dump = Dump(root)
    lines = [
        *_kernel(dump),
        f'like = "{BASE}"  # costs of code paths, measured on that machine: /proc and /sys lack them',
        *costs,
        *_processors(dump),
        *_memory(dump),
    ]
    disks = list(_disks(dump))
    if not disks:
        why = "has only loop, ram, dm, md and empty devices" if dump.has("sys/block") else "is missing"
        lines += [
            "",
            f"# No disk is known, so the disks of {BASE} are used: sys/block {why}.",
            '# Write each disk, such as disks.sda = { like = "sata-disk" }; wbsim list disks has the names.',
        ]
    for disk in disks:
        size = "size unknown" if disk.size is None else f"{disk.size / 1e9:.0f} GB"
        lines += ["", f"[disks.{_quoted(disk.name)}]  # {size}"]
        lines.append(f'like = "{disk.like}"  # {disk.why}')
        lines += [f'device.size = "{disk.size} B"'] if disk.size else []
        lines += [f"{key} = {value}" for key, value in disk.keys.items()]
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    """Return *name* as a key of TOML."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name)


_RELEASE: Final = re.compile(r"2\.6\.[0-9]{1,3}|[0-9]{1,3}\.[0-9]{1,3}(\.[1-9][0-9]{0,3})?")
"""A release with its patch level; level 0 stands for one that a distribution does not show (6.1.0-13)."""


def _kernel(dump: Dump) -> Iterator[str]:
    """Yield comments with the values for a configuration: the release, and the limits of dirty pages."""
    release, keys, notes = dump.release, [], []
    if version := _RELEASE.match(release):
        if version[0] in KERNELS:
            keys.append(f'kernel.like = "{version[0]}"')
        else:
            notes.append(
                f"# Linux {version[0]} is not modelled; kernel.like takes releases from {FIRST} to {LAST}"
            )
    else:
        notes.append("# The release is unknown: proc/sys/kernel/osrelease and proc/version lack it")
    dirty = _dirty(dump)
    if dirty:
        keys.append(f"kernel.dirty = {{ {', '.join(dirty)} }}")
    else:
        notes.append("# vm.dirty_* is missing, so the kernel's defaults are used")
    for name, (key, default) in _PERIODS.items():
        value = dump.setting(f"vm.{name}")
        if value == 0 and key.endswith("interval"):
            notes.append(f"# vm.{name} is 0, which turns periodic writeback off; this is not modelled")
        elif value not in (None, default):
            keys.append(f'{key} = "{10 * value} ms"')
    settings = ", ".join(keys) or "nothing"
    yield f"{BEGINS}{release or 'of an unknown release'}: in the configuration, {settings}"
    yield from notes


def _dirty(dump: Dump) -> list[str]:
    """Return vm.dirty_* as keys of ``kernel.dirty``.

    Zeros are left out, because a ratio is 0 if its size is set and vice versa.  If the background ratio and
    the background size are both 0, the ratio stays.
    """
    names = ("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes")
    values = {name: dump.setting(f"vm.{name}") for name in names}
    settings = {name: value for name, value in values.items() if value}
    if values["dirty_background_ratio"] == 0 and not values["dirty_background_bytes"]:
        settings["dirty_background_ratio"] = 0
    return [
        f'{name} = "{size} B"' if "bytes" in name else f"{name} = {size}" for name, size in settings.items()
    ]


def _processors(dump: Dump) -> Iterator[str]:
    """Yield the lines on the numbers of processors and nodes."""
    count = len(re.findall(r"^processor\s*[0-9]*\s*:", dump.text_of("proc/cpuinfo"), re.MULTILINE))
    count = count or _listed_cpus(dump.text_of("sys/devices/system/cpu/online"))
    if count:
        yield f"processors.count = {count}"
    else:
        yield "# The number of processors is unknown: proc/cpuinfo and sys/devices/system/cpu/online lack it"
    nodes = len(list((dump.root / "sys/devices/system/node").glob("node[0-9]*")))
    if not nodes and not dump.has("sys/devices/system"):
        yield "# sys/devices/system is missing, so one node is assumed"
    yield f"processors.nodes = {max(1, nodes)}"


def _listed_cpus(ranges: str) -> int:
    """Return the number of processors in a list such as ``0-7,16``; 0 if *ranges* is no such list."""
    count = 0
    for part in ranges.split(","):
        if (span := re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", part.strip())) is None:
            return 0
        count += int(span[2] or span[1]) - int(span[1]) + 1
    return count


def _memory(dump: Dump) -> Iterator[str]:
    """Yield the line on the size of memory."""
    total = re.compile(r"^(?:Node [0-9]{1,5} )?MemTotal:\s*([0-9]{1,15}) kB", re.MULTILINE)
    kib = sum(map(int, total.findall(dump.text_of("proc/meminfo"))[:1]))
    if not kib:
        folder = dump.root / "sys/devices/system/node"
        files = [str(path.relative_to(dump.root)) for path in sorted(folder.glob("node[0-9]*/meminfo"))]
        kib = sum(int(size) for name in files for size in total.findall(dump.text_of(name)))
    if kib:
        yield f'memory.memory = "{kib} KiB"'
    else:
        yield "# The size of the memory is unknown: proc/meminfo lacks it"


def _disks(dump: Dump) -> Iterator[Disk]:
    """Yield the disks of sys/block; if the dump lacks that folder, the disks of proc/partitions."""
    sizes = dict(dump.partitions())
    folder = next((name for name in ("sys/block", "sys/class/block") if dump.has(name)), None)
    if folder is None:
        for name in sizes:
            if _WHOLE_DISK.fullmatch(name):
                why = "assumed: sys/block is missing, so the queue is that of this drive"
                yield Disk(name, _drive(name), why, sizes[name], {})
        return
    for path in sorted((dump.root / folder).glob("*")):
        disk = f"{folder}/{path.name}"
        if path.name.startswith(_VIRTUAL) or not dump.has(f"{disk}/queue"):
            continue
        sectors = dump.whole(f"{disk}/size")
        size = sizes.get(path.name) if sectors is None else sectors * 512
        if size == 0:
            continue
        like, why = _like(path.name, dump.text_of(f"{disk}/queue/rotational") == "1")
        keys = dict(_queue(dump, disk))
        device = DRIVES[like].device
        cache = dump.one_of(f"{disk}/queue/write_cache", "write back", "write through")
        if cache == "write through" and device.volatile:
            key, value = device.made_safe
            keys[f"device.{key}"] = value  # the drive says so: it asks for no flush
        elif cache == "write back" and not device.volatile:
            keys["device.protected"] = "false"
        yield Disk(path.name, like, why, size, keys)


def _drive(name: str) -> str:
    """Return the flash drive of the catalogue that stands for the disk *name*."""
    return "pm9a3" if name.startswith("nvme") else "sata-ssd"


def _like(name: str, rotates: bool) -> tuple[str, str]:
    """Return the drive of the catalogue that stands for the disk *name*, and the reason."""
    if name.startswith(("vd", "xvd")):
        says = ", for which rotational is 1 whatever the host uses" if rotates else ""
        return "virtio-ssd", f"assumed: a virtual disk{says}; the kernel does not know its speed"
    like = "sata-disk" if rotates else _drive(name)
    return like, "assumed: the kernel does not know its speed"


def _queue(dump: Dump, disk: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of the queue of *disk*, a folder of the dump; a missing file yields no key."""
    queue = f"{disk}/queue"
    if kib := dump.whole(f"{queue}/max_sectors_kb"):
        yield "queue.limits.max_sectors_bytes", f'"{kib} KiB"'
    if most := dump.whole(f"{queue}/max_segments"):
        yield "queue.limits.max_segments", str(most)
    if size := dump.whole(f"{queue}/max_segment_size"):
        yield "queue.limits.max_segment_bytes", f'"{min(size, (1 << 32) - KIB)} B"'
    if merges := dump.one_of(f"{queue}/nomerges", "0", "1", "2"):
        yield "queue.limits.nomerges", merges
    requests = dump.whole(f"{queue}/nr_requests")
    if requests:
        yield "queue.nr_requests", str(requests)
    if depth := dump.whole(f"{disk}/device/queue_depth"):
        yield "queue.queue_depth", str(depth)
    if depth := depth or requests:
        yield "queue.driver_depth", str(depth)
    if fua := dump.one_of(f"{queue}/fua", "0", "1"):
        yield "queue.fua", "true" if fua == "1" else "false"
    if scheduler := dump.text_of(f"{queue}/scheduler"):
        selection = scheduler.partition("[")[2].partition("]")[0] or scheduler
        yield "queue.elevator.scheduler", _scheduler(selection, dump.release)
    latency = f"{queue}/wbt_lat_usec"
    if text := dump.text_of(latency, refuses="0"):
        yield "queue.wbt", "true" if dump.number(latency, text) > 0 else "false"


def _scheduler(name: str, kernel: str) -> str:
    """Return the scheduler *name* as a value that a configuration with that *kernel* accepts.

    Distributions backport the schedulers of blk-mq to older releases; the legacy name replaces them there.
    """
    if name not in modelled():
        return f'"noop"  # {name} is not modelled'
    if refusal(name, kernel) is not None:
        name = legacy_names().get(name, name)
    return f'"{name}"'
