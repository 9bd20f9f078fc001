"""`wbsim describe-machine`: a machine file from /sys/block, /proc and sysctl of a machine.

What the kernel says is taken: processors, nodes, memory, and of each disk its queue and its size.  What it
cannot say is marked as assumed with its range: what a drive's flash or platters take, and what a processor's
paths take, which is the desk's (docs/measurements.md H) times a scale, unless a capture told it.  *root* is
/ or a folder with copies of these files.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from wbsim.experiments.config.problems import bad
from wbsim.sim.texts import text_of
from wbsim.sim.units import KIB

BASE: Final = "desk-vm"
BEGINS: Final = "# Linux "
"""Every machine file of ours."""
_VIRTUAL: Final = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")


ASSUMED: Final = (
    'processors.writer_scale = { assumed = 1.0, low = 0.3, high = 3.0, why = "times the desk\'s" }',
    'processors.flusher_scale = { assumed = 1.0, low = 0.3, high = 3.0, why = "times the desk\'s" }',
)
"""What no machine says of itself; a capture does (`wbsim.experiments.machines.costs`)."""


class Disk(NamedTuple):
    """What the kernel says of a disk, and which of ours is like it."""

    name: str
    like: str
    bytes: int
    keys: dict[str, str]


def describe(root: Path, costs: Sequence[str] = ASSUMED) -> str:
    """The machine below *root* as a machine file (TOML); *costs*: its lines on what its processors take.

    Raises:
        BadInput: it is no such folder, or has no disk.
    """
    processors = f"\n{_said(root / 'proc/cpuinfo')}".count("\nprocessor\t:")
    memory = re.search(r"^MemTotal:\s*([0-9]{1,15}) kB", _said(root / "proc/meminfo"), re.MULTILINE)
    memory_kib = int(memory[1]) if memory else 0
    nodes = max(1, len(list((root / "sys/devices/system/node").glob("node[0-9]*"))))
    if not processors or not memory_kib:
        raise bad(str(root), "does not say its processors and memory; give / or a copy of its /proc and /sys")
    disks = list(_disks(root))
    if not disks:
        raise bad(str(root), "has no disk in sys/block; those of loop, ram, dm and md devices are left out")
    release = (_said(root / "proc/sys/kernel/osrelease").split() or ["?"])[0]
    series = ".".join(release.split(".")[:2])
    lines = [
        f'{BEGINS}{release}: in the configuration, kernel.like = "{series}", kernel.dirty = {_dirty(root)}',
        f'like = "{BASE}"  # what its paths take, as measured there; no machine says that of itself',
        *costs,
        f"processors.count = {processors}",
        f"processors.nodes = {nodes}",
        f'memory.memory = "{memory_kib} KiB"',
    ]
    for disk in disks:
        lines += ["", f"[disks.{_quoted(disk.name)}]  # {disk.bytes / 1e9:.0f} GB"]
        lines.append(f'like = "{disk.like}"  # assumed: the kernel does not know how fast it is')
        lines += [f"{key} = {value}" for key, value in disk.keys.items()]
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    """*name* as a key of TOML."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name)


def _disks(root: Path) -> Iterator[Disk]:
    for path in sorted((root / "sys/block").glob("*")):
        if path.name.startswith(_VIRTUAL) or not (path / "queue").is_dir():
            continue
        size = _whole(path / "size") * 512
        if not size:
            continue
        rotates = _said(path / "queue/rotational") == "1"
        like = "sata-disk" if rotates else "pm9a3" if path.name.startswith("nvme") else "sata-ssd"
        yield Disk(path.name, like, size, dict(_queue(path / "queue")))


def _queue(queue: Path) -> Iterator[tuple[str, str]]:
    """Yield the keys of the disk's queue, one for each file in the folder *queue*."""
    if kib := _whole(queue / "max_sectors_kb"):
        yield "queue.limits.max_sectors_bytes", f'"{kib} KiB"'
    if most := _whole(queue / "max_segments"):
        yield "queue.limits.max_segments", str(most)
    if size := _whole(queue / "max_segment_size"):
        yield "queue.limits.max_segment_bytes", f'"{min(size, (1 << 32) - KIB)} B"'
    if merges := _one_of(queue / "nomerges", "0", "1", "2"):
        yield "queue.limits.nomerges", merges
    if requests := _whole(queue / "nr_requests"):
        yield "queue.nr_requests", str(requests)
        yield "queue.driver_depth", str(requests)
    if cache := _one_of(queue / "write_cache", "write back", "write through"):
        yield "queue.write_cache", f'"{cache}"'
    if scheduler := _said(queue / "scheduler"):
        chosen = scheduler.partition("[")[2].partition("]")[0] or scheduler
        ours = {"mq-deadline": "deadline", "deadline": "deadline"}.get(chosen, "noop")
        note = (
            "" if chosen in ("none", "noop", "deadline", "mq-deadline") else f"  # {chosen} is not modelled"
        )
        yield "queue.elevator.scheduler", f'"{ours}"{note}'
    if latency := _said(queue / "wbt_lat_usec", refuses="0"):
        yield "queue.wbt", "true" if _number(queue / "wbt_lat_usec", latency) > 0 else "false"


def _dirty(root: Path) -> str:
    """vm.dirty_*, as a configuration's kernel has them: those that are not 0."""
    found = []
    for name in ("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes"):
        value = _whole(root / "proc/sys/vm" / name)
        if value:
            found.append(f'{name} = "{value} B"' if name.endswith("bytes") else f"{name} = {value}")
    return "{ " + ", ".join(found) + " }"


def _said(path: Path, refuses: str | None = None) -> str:
    """Return the text of the file *path*, or "" if there is no such file.

    *refuses* is the text that EINVAL of read(2) stands for: queue_wb_lat_show returns EINVAL without wbt.

    Raises:
        BadInput: the file cannot be read, or is no text.
    """
    try:
        return text_of(path).strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        from_read = error.filename is None  # errors of stat(2) and open(2) name the file
        if from_read and error.errno == errno.EINVAL and refuses is not None:
            return refuses
        told = f"cannot be read ({error.strerror}); make it readable, or give a copy of /proc and /sys"
        raise bad(str(path), told) from None
    except UnicodeDecodeError:
        raise bad(str(path), "is no text; give / or a copy of a machine's /proc and /sys") from None


def _whole(path: Path) -> int:
    """Return the number in the file *path*, or 0 if there is no such file.

    Raises:
        BadInput: see `_said` and `_number`.
    """
    return _number(path, _said(path) or "0")


def _number(path: Path, said: str) -> int:
    """Return the number that *said*, the text of *path*, is.

    Raises:
        BadInput: the text is no whole number.
    """
    if not re.fullmatch("[0-9]{1,15}", said):
        raise bad(str(path), f"says {said[:60]!r}; a whole number was expected")
    return int(said)


def _one_of(path: Path, *known: str) -> str:
    """Which of what is *known* a file says; nothing, if it is not there."""
    said = _said(path)
    if said and said not in known:
        raise bad(str(path), f"says {said[:60]!r}; one of {', '.join(known)} was expected")
    return said
