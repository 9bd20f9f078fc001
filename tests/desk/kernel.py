"""One row on this machine's kernel: a fresh filesystem on a loop device over tmpfs, the programs, a sync.

This needs root, util-linux, xfsprogs, e2fsprogs, fio and fs_mark.  All changed settings are restored.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.desk.results import Result
from tests.desk.rows import IMAGE_BYTES, MOUNT, Row

_TMPFS: Final = Path("/mnt/desk-tmpfs")
_VM: Final = Path("/proc/sys/vm")
_SECOND: Final = Path("/sys/devices/system/cpu/cpu1/online")
_MKFS: Final = {
    "xfs": "mkfs.xfs -q -f -K -d agcount=4 {}",
    "ext4": "mkfs.ext4 -q -F -E nodiscard {}",
}
_OPTIONS: Final = {"xfs": "noatime", "ext4": "noatime,init_itable=0"}
_PF_KTHREAD: Final = 0x200000


@contextmanager
def loop_device() -> Iterator[str]:
    """Make a loop device whose file has all of its pages; yield its name."""
    _TMPFS.mkdir(exist_ok=True)
    Path(MOUNT).mkdir(exist_ok=True)
    _run(f"mount -t tmpfs -o size={IMAGE_BYTES + (64 << 20)} desk {_TMPFS}")
    try:
        _run(f"dd if=/dev/zero of={_TMPFS}/image bs=1M count={IMAGE_BYTES >> 20}")
        device = _run(f"losetup -f --show {_TMPFS}/image").strip()
        try:
            yield device
        finally:
            _run(f"losetup -d {device}")
    finally:
        _run(f"umount {_TMPFS}")


@contextmanager
def limits(row: Row) -> Iterator[None]:
    """Set vm.dirty_bytes and vm.dirty_background_bytes of *row*, and restore the old limits afterwards."""
    names = ("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes")
    before = {name: (_VM / name).read_text() for name in names}
    most, background = row.dirty_bytes
    (_VM / "dirty_background_bytes").write_text(str(background))
    (_VM / "dirty_bytes").write_text(str(most))
    try:
        yield
    finally:
        for name, text in before.items():
            if int(text):
                (_VM / name).write_text(text)


def measure(row: Row, device: str) -> Result:
    """Run *row* once, on a fresh filesystem of *device*; return its result."""
    with mounted(row.filesystem, device):
        for number in range(1, 9):
            Path(MOUNT, str(number)).mkdir()
        _run("sync")
        with limits(row), processors(row.processors):
            return _watch(row, device)


@contextmanager
def processors(count: int) -> Iterator[None]:
    """Take the second processor offline if *count* is 1, and bring it back afterwards."""
    if count == 1:
        _SECOND.write_text("0")
    try:
        yield
    finally:
        if count == 1:
            _SECOND.write_text("1")


@contextmanager
def mounted(filesystem: str, device: str) -> Iterator[None]:
    """Make a *filesystem* on *device*, and mount it at `MOUNT`."""
    _run(_MKFS[filesystem].format(device))
    _run(f"mount -o {_OPTIONS[filesystem]} {device} {MOUNT}")
    try:
        yield
    finally:
        _run(f"umount {MOUNT}")


def _watch(row: Row, device: str) -> Result:
    threads, (ios, merges), began = _kernel_threads(), _writes(device), time.monotonic()
    running = [
        subprocess.Popen(
            shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=_TMPFS
        )
        for command in row.commands
    ]
    cpu_s, printed = 0.0, []
    for program in running:
        assert program.stdout is not None
        printed.append(program.stdout.read())
        _, status, usage = os.wait4(program.pid, 0)
        assert status == 0, printed[-1]
        cpu_s += usage.ru_utime + usage.ru_stime
    wall_s = time.monotonic() - began
    _run(f"sync -f {MOUNT}")
    time.sleep(0.05)
    later, (all_ios, all_merges) = _kernel_threads(), _writes(device)
    return Result(
        wall_s=wall_s,
        rate=rate_of(printed[0]) if "fs_mark" in row.commands[0] else 0.0,
        ios=all_ios - ios,
        merges=all_merges - merges,
        extents=_extents(row),
        program_s=cpu_s,
        kernel_s=sum(ns - threads.get(pid, 0) for pid, ns in later.items()) / 1e9,
    )


def rate_of(printed: str) -> float:
    """Return the mean of the Files/sec that fs_mark *printed*."""
    lines = [line.split() for line in printed.splitlines() if re.match(r"\s+\d+\s+\d+\s+\d+\s+[\d.]+", line)]
    return sum(float(line[3]) for line in lines) / len(lines)


def _extents(row: Row) -> float:
    """Return the mean number of extents of the files of fio and dd; 0 without such files."""
    files = [str(path) for path in Path(MOUNT).rglob("*") if path.is_file() and path.stat().st_size > 1 << 20]
    if not files:
        return 0.0
    counts = re.findall(r": (\d+) extents? found", _run(f"filefrag {' '.join(map(shlex.quote, files))}"))
    return sum(map(int, counts)) / len(counts)


def _kernel_threads() -> dict[int, int]:
    """Return the processor time of each kernel thread (ns)."""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                flags = int((path / "stat").read_text().rpartition(")")[2].split()[6])
                if flags & _PF_KTHREAD:
                    found[int(path.name)] = int((path / "schedstat").read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                continue  # the thread has ended
    return found


def _writes(device: str) -> tuple[int, int]:
    fields = Path("/sys/block", Path(device).name, "stat").read_text().split()
    return int(fields[4]), int(fields[5])


def _run(command: str) -> str:
    return subprocess.run(shlex.split(command), check=True, capture_output=True, text=True).stdout
