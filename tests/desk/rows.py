"""The runs on the kernel and in the model: their programs, filesystems and dirty limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from wbsim.sim.units import MIB

MOUNT: Final = "/mnt/desk"
DISK: Final = "loop0"
IMAGE_BYTES: Final = 8 << 30
JOBS: Final = Path(__file__).with_name("jobs")
"""The job files of `usual`."""


class Row(NamedTuple):
    """One run: its programs start together; ``dirty_mib``: vm.dirty_bytes, twice the background limit.

    ``processors``: how many of the two processors are online.
    """

    name: str
    filesystem: str
    dirty_mib: int
    commands: Sequence[str]
    processors: int = 2

    @property
    def dirty_bytes(self) -> tuple[int, int]:
        """Return vm.dirty_bytes and vm.dirty_background_bytes."""
        return self.dirty_mib * MIB, self.dirty_mib * MIB // 2


def key(row: Row) -> str:
    """Return the unique name of *row*."""
    alone = ", one processor" if row.processors == 1 else ""
    return f"{row.filesystem} {row.dirty_mib}M {row.name}{alone}"


def _fs_mark(directories: int, size: int, files: int) -> str:
    where = " ".join(f"-d {MOUNT}/{i}" for i in range(1, directories + 1))
    return f"fs_mark -D 10000 -S0 -n {files // directories} -s {size} -L 3 {where}"


def _fio(rw: str, jobs: int, files: int, mib: int) -> str:
    each = " ".join(f"--name={i} --directory={MOUNT}/{i}" for i in range(1, jobs + 1))
    return (
        f"fio --ioengine=psync --rw={rw} --bs=4k --nrfiles={files} --filesize={mib}m --create_on_open=1"
        f" --fallocate=none {each}"
    )


def _dd(streams: int, mib: int, apart: bool) -> list[str]:
    return [
        f"dd if=/dev/zero of={MOUNT}/{i if apart else 1}/f{i} bs=1024k count={mib}"
        for i in range(1, streams + 1)
    ]


def rows() -> Iterator[Row]:
    """Yield all rows, on XFS and on ext4."""
    for filesystem in ("xfs", "ext4"):
        for directories in (1, 2, 4, 8):
            yield Row(f"fs_mark 4k x{directories}", filesystem, 32, [_fs_mark(directories, 4096, 16_000)])
            yield Row(f"fs_mark 64k x{directories}", filesystem, 64, [_fs_mark(directories, 65536, 4_000)])
        for dirty in (32, 64, 128):
            yield Row("fio randwrite 1x4x64m", filesystem, dirty, [_fio("randwrite", 1, 4, 64)])
        yield Row("fio randwrite 4x1x64m", filesystem, 96, [_fio("randwrite", 4, 1, 64)])
        yield Row("fio write 1x4x128m", filesystem, 64, [_fio("write", 1, 4, 128)])
        yield Row("dd 1 x 512m", filesystem, 64, _dd(1, 512, apart=False))
        yield Row("dd 4 x 256m, together", filesystem, 64, _dd(4, 256, apart=False))
        yield Row("dd 4 x 256m, apart", filesystem, 64, _dd(4, 256, apart=True))
        both = [_fs_mark(1, 4096, 16_000), _fio("randwrite", 1, 2, 64).replace(f"{MOUNT}/1", f"{MOUNT}/2")]
        yield Row("fs_mark 4k and fio randwrite", filesystem, 64, both)


def unseen() -> Iterator[Row]:
    """Yield rows that were predicted before they were measured, and that no constant has seen."""
    for filesystem in ("xfs", "ext4"):
        yield Row("fio randwrite 2x2x48m", filesystem, 24, [_fio("randwrite", 2, 2, 48)])
        yield Row("fio randwrite 1x2x256m", filesystem, 256, [_fio("randwrite", 1, 2, 256)])
        yield Row("fs_mark 16k x3", filesystem, 48, [_fs_mark(3, 16_384, 9_000)])
        both = [*_dd(2, 256, apart=True), _fs_mark(1, 4096, 16_000).replace(f"{MOUNT}/1", f"{MOUNT}/3")]
        yield Row("dd 2 x 256m and fs_mark 4k", filesystem, 64, both)
        both = [_fio("write", 2, 1, 128), _fio("randwrite", 1, 1, 64).replace(f"{MOUNT}/1", f"{MOUNT}/3")]
        yield Row("fio write 2x1x128m and randwrite 1x1x64m", filesystem, 64, both)
    yield Row("fs_mark 4k x2", "xfs", 32, [_fs_mark(2, 4096, 16_000)], processors=1)
    yield Row("fio randwrite 2x1x64m", "ext4", 64, [_fio("randwrite", 2, 1, 64)], processors=1)


def usual() -> Iterator[Row]:
    """Yield usual commands at the largest size that this machine has memory for, and sixteen writers."""
    commands = {
        "fio random": f"fio {JOBS}/random.fio",
        "fio sequential": f"fio {JOBS}/sequential.fio",
        "fs_mark": f"fs_mark -k -D 10000 -S0 -n 100000 -s 4096 -L 2 -d {MOUNT}/1 -d {MOUNT}/2",
        "dd": f"dd if=/dev/zero of={MOUNT}/1/f bs=1M count=6144",
        "fio sixteen": f"fio {JOBS}/sixteen.fio",
    }
    for name, command in commands.items():
        for filesystem in ("xfs", "ext4"):
            yield Row(name, filesystem, 1024, [command])
