"""The filesystems that mkfs makes without options, compared with the output of the tools.

``python -m tests.models.catalogue.test_mkfs`` writes the tables anew with mkfs.xfs, mke2fs, dumpe2fs and
debugfs.  It makes sparse files in the current folder, which must allow 20 TB (tmpfs does).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

import pytest

from wbsim.models.catalogue.mkfs import Target, ext4_geometry, made_ext4, made_xfs, xfs_geometry
from wbsim.models.release import release_of
from wbsim.sim.units import GIB, KIB, MIB

TABLE: Final = Path(__file__).with_name("mkfs.tsv")
DRAWN: Final = Path(__file__).with_name("mkfs_drawn.tsv")
"""A row for each size of `drawn_sizes` and of `EDGES`: see `_last_groups`."""
SEED: Final = 63
EDGES: Final = tuple(
    (groups * 32_768 + rest) * 4_096
    for groups, least in ((8, 508), (9, 660), (80, 558), (81, 1586), (5000, 564), (131072, 180))
    for rest in (least - 1, least)
)
"""Sizes (bytes) whose last group is one block too small, and just large enough.

Groups 9 and 81 have a superblock.
"""
CHECKED: Final = release_of("6.1")
"""The release of xfsprogs 6.1; e2fsprogs 1.47 is of the same time."""
SIZES: Final = (
    1 * GIB, 3 * GIB, 10_000_000_000, 100 * GIB, 500_107_862_016, 1_000_204_886_016, 4_000_787_030_016,
    12_000_138_625_024,
)  # fmt: skip
STRIPES: Final = {"none": (0, 0), "stripe": (64 * KIB, 4), "wide": (512 * KIB, 2), "4k": (0, 0)}
"""By geometry: the stripe unit and the number of disks."""
_XFS_OPTIONS: Final = {
    "none": [], "stripe": ["-d", "su=64k,sw=4"], "wide": ["-d", "su=512k,sw=2"], "4k": ["-s", "size=4096"],
}  # fmt: skip
_EXT4_OPTIONS: Final = {
    "none": "", "stripe": ",stride=16,stripe_width=64", "wide": ",stride=128,stripe_width=256", "4k": "",
}  # fmt: skip


def rows() -> list[list[str]]:
    """Return the table: kind, geometry, size, and the numbers that the tool printed."""
    return [line.split("\t") for line in TABLE.read_text().splitlines()]


def drawn_sizes() -> list[int]:
    """Return 40 sizes (bytes) from 512 MiB to 20 TB, drawn by the seed 63, as many in each power of two."""
    random = Random(SEED)
    return [int(512 * MIB * (20 * 10**12 / (512 * MIB)) ** random.random()) for _ in range(40)]


def drawn_rows() -> list[list[str]]:
    """Return the table of drawn sizes: the size, total inodes, free blocks, and the numbers of `_ext4`."""
    return [line.split("\t") for line in DRAWN.read_text().splitlines()]


def target(geometry: str, size: str) -> Target:
    """Return a rotating device of *size* bytes with that *geometry*."""
    unit, disks = STRIPES[geometry]
    return Target(int(size), unit, unit * disks)


@pytest.mark.parametrize("row", [row for row in rows() if row[0] == "xfs"], ids="-".join)
def test_xfs_geometry_equals_the_output_of_mkfs(row: list[str]) -> None:
    """Data blocks, groups, blocks of a group and of the log are equal."""
    _, geometry, size, *numbers = row
    assert [str(number) for number in xfs_geometry(target(geometry, size), CHECKED)] == numbers


@pytest.mark.parametrize("row", [row for row in rows() if row[0] == "ext4"], ids="-".join)
def test_ext4_geometry_equals_the_output_of_the_tools(row: list[str]) -> None:
    """Blocks, groups, inodes, descriptors and the journal are equal."""
    _, geometry, size, *numbers, first, behind = row
    place = target(geometry, size)
    assert [str(number) for number in ext4_geometry(place, CHECKED)] == numbers
    made = made_ext4(place, CHECKED)
    assert made.journal.blocks == int(numbers[-1])
    assert made.stripe == place.stripe_width // (4 * KIB)
    runs = made.geometry.journal_runs
    assert (runs[0][0], sum(runs[-1])) == (int(first), int(behind))


@pytest.mark.parametrize("row", drawn_rows(), ids=lambda row: row[0])
def test_ext4_of_a_drawn_size_equals_the_tools(row: list[str]) -> None:
    """Inodes, free blocks, groups and the journal are equal, whatever the size of the last group."""
    size, inodes, free, *numbers, first, behind = row
    place = Target(int(size))
    assert [str(number) for number in ext4_geometry(place, CHECKED)] == numbers
    made = made_ext4(place, CHECKED)
    assert (made.geometry.inodes, made.room // (4 * KIB)) == (int(inodes), int(free))
    runs = made.geometry.journal_runs
    assert (runs[0][0], sum(runs[-1])) == (int(first), int(behind))


def test_drawn_table_has_the_sizes_of_its_seed() -> None:
    """The sizes are those that the seed draws, and the edges; so no row was chosen or left out."""
    assert [int(row[0]) for row in drawn_rows()] == [*drawn_sizes(), *EDGES]


def test_edges_lie_on_both_sides_of_the_least_group() -> None:
    """mke2fs leaves out the last group of each first size, and keeps that of each second size."""
    groups = [int(row[4]) for row in drawn_rows()[-len(EDGES) :]]
    assert [kept - left_out for left_out, kept in zip(groups[::2], groups[1::2], strict=True)] == [1] * 6


def test_table_has_eight_sizes_and_each_geometry() -> None:
    """The table has a row of both filesystems for each size and geometry."""
    assert {(row[0], row[1], row[2]) for row in rows()} == {
        (kind, geometry, str(size)) for kind in ("xfs", "ext4") for geometry in STRIPES for size in SIZES
    }


@pytest.mark.parametrize(
    ("release", "log", "inode", "rmapbt", "checkpoint"),
    [
        ("2.6.32", 10 * MIB, 256, False, 10 * MIB // 8), ("4.1", 10 * MIB, 512, False, 10 * MIB // 8),
        ("5.14", 10 * MIB, 512, False, 10 * MIB // 8), ("5.15", 64 * MIB, 512, False, 8 * MIB),
        ("6.5", 64 * MIB, 512, True, 8 * MIB),
    ],
)  # fmt: skip
def test_defaults_of_xfs_follow_the_release(
    release: str, log: int, inode: int, rmapbt: bool, checkpoint: int
) -> None:
    """The defaults of the log, the inode size and reverse mapping depend on the release."""
    made = made_xfs(Target(10 * GIB), release_of(release))
    assert (made.log.size, made.inode_bytes, made.rmapbt) == (log, inode, rmapbt)
    assert made.log.checkpoint_bytes == checkpoint
    assert made.cluster_bytes == 32 * inode


def test_checkpoint_size_has_a_bound_from_5_7_on() -> None:
    """A checkpoint has an eighth of 2038 MiB before 5.7, and 32 MiB from 5.7 on."""
    sizes = [made_xfs(Target(8 << 40), release_of(r)).log.checkpoint_bytes for r in ("5.6", "5.7")]
    assert sizes == [2038 * MIB // 8, 32 * MIB]


@pytest.mark.parametrize(
    ("size", "processors", "release", "groups"),
    [
        (61_440_000_000_000, 128, "6.17", 128),  # report W25
        (61_440_000_000_000, 128, "6.1", 56),
        (500_107_862_016, 16, "6.8", 16),
        (500_107_862_016, 2, "6.8", 4),
        (20 * GIB, 16, "6.8", 5),
    ],
)
def test_flash_gets_a_group_for_each_processor(size: int, processors: int, release: str, groups: int) -> None:
    """mkfs.xfs makes a group for each processor from 6.8 on, if the groups then have at least 4 GiB."""
    place = Target(size, rotates=False, processors=processors)
    assert xfs_geometry(place, release_of(release)).groups == groups


@pytest.mark.parametrize(
    ("release", "journal", "descriptors"), [("4.5", 128 * MIB, 1024), ("4.8", GIB, 1024 + 16)]
)
def test_defaults_of_ext4_follow_the_release(release: str, journal: int, descriptors: int) -> None:
    """The journal has 1 GiB from 4.8 on, and descriptors have 64 B from 4.6 on."""
    of = ext4_geometry(Target(128 * GIB), release_of(release))
    assert (of.journal_blocks * 4 * KIB, of.descriptor_blocks) == (journal, descriptors)


@pytest.mark.parametrize(
    ("what", "releases", "before", "after"),
    [
        ("inode_bytes", ("4.0", "4.1"), 256, 512), ("rmapbt", ("6.4", "6.5"), False, True),
        ("least log", ("5.14", "5.15"), 10 * MIB, 64 * MIB), ("groups on flash", ("6.7", "6.8"), 4, 16),
        ("descriptors", ("4.5", "4.6"), 1024, 1024 + 16), ("journal", ("4.7", "4.8"), 128 * MIB, GIB),
    ],
)  # fmt: skip
def test_default_of_mkfs_changes_with_its_release(
    what: str, releases: tuple[str, str], before: object, after: object
) -> None:
    """Each default has one value in the release before its bound, and another one from the bound on."""

    def default(release: str) -> object:
        kernel, disk = release_of(release), Target(128 * GIB)
        xfs, ext4 = made_xfs(Target(10 * GIB), kernel), ext4_geometry(disk, kernel)
        flash = Target(500_107_862_016, rotates=False, processors=16)
        return {
            "inode_bytes": xfs.inode_bytes, "rmapbt": xfs.rmapbt, "least log": xfs.log.size,
            "groups on flash": xfs_geometry(flash, kernel).groups, "descriptors": ext4.descriptor_blocks,
            "journal": ext4.journal_blocks * 4 * KIB,
        }[what]  # fmt: skip

    assert [default(release) for release in releases] == [before, after]


@pytest.mark.parametrize(
    ("size", "unit", "width", "geometry"),
    [
        # the last group has 16 MiB, or a block less: then it is left out
        ((5 * 268_435_455 + 4_096) * 4_096, 0, 0, (1_342_181_371, 6, 268_435_455, 521_728)),
        ((5 * 268_435_455 + 4_095) * 4_096, 0, 0, (1_342_177_275, 5, 268_435_455, 521_728)),
        # an array of 8 GiB has 8 groups, and a larger array has 16
        (8 * GIB, 64 * KIB, 256 * KIB, (2_097_024, 8, 262_128, 16_384)),
        (8 * GIB + 4_096, 64 * KIB, 256 * KIB, (2_097_153, 16, 131_088, 16_384)),
        # the largest log, 521 728 blocks, is not a multiple of 48 blocks, so it is rounded down
        (12 << 40, 192 * KIB, 768 * KIB, (3_221_223_936, 32, 100_663_248, 521_712)),
        # a log unit has at most 256 KiB; mkfs.xfs takes 32 KiB in place of a larger one
        (12 << 40, 256 * KIB, 512 * KIB, (3_221_223_424, 32, 100_663_232, 521_728)),
        (500_107_862_016, 256 * KIB, 512 * KIB, (122_096_640, 16, 7_631_040, 59_648)),
        (12 << 40, 260 * KIB, 520 * KIB, (3_221_225_472, 32, 100_663_355, 521_728)),
    ],
)
def test_xfs_geometry_at_a_bound_equals_the_output_of_mkfs(
    size: int, unit: int, width: int, geometry: tuple[int, int, int, int]
) -> None:
    """mkfs.xfs 6.1 printed these numbers of data blocks, groups, blocks of a group and of the log."""
    assert xfs_geometry(Target(size, unit, width), CHECKED) == geometry


def test_a_log_as_large_as_a_group_is_refused() -> None:
    """mkfs.xfs 6.1 refuses 512 MiB with a stripe of one disk: eight groups of 64 MiB, and a log of 64 MiB."""
    with pytest.raises(ValueError, match="the log of 67108864 B does not fit into a group of 67108864 B"):
        xfs_geometry(Target(512 * MIB, 64 * KIB, 64 * KIB), CHECKED)


@pytest.mark.parametrize(
    ("size", "inodes"),
    [
        ((4 << 40) - 4_096, 268_435_456), (4 << 40, 134_217_728),
        ((16 << 40) - 4_096, 536_870_912), (16 << 40, 268_435_456),
    ],
)  # fmt: skip
def test_large_ext4_has_fewer_inodes(size: int, inodes: int) -> None:
    """An inode for 16 KiB below 4 TiB, for 32 KiB below 16 TiB, for 64 KiB from there on (mke2fs -n 1.47)."""
    found = ext4_geometry(Target(size), CHECKED)
    assert found.groups * found.group_inodes == inodes


@pytest.mark.parametrize(
    ("release", "size", "journal"),
    [
        ("6.1", 512 * MIB, 4_096), ("6.1", GIB - 4_096, 4_096), ("6.1", GIB, 8_192),
        ("4.7", GIB - 4_096, 4_096), ("4.7", GIB, 8_192), ("4.7", 2 * GIB - 4_096, 8_192),
        ("4.7", 2 * GIB, 16_384), ("4.7", 4 * GIB - 4_096, 16_384), ("4.7", 4 * GIB, 32_768),
        ("4.7", 100 * GIB, 32_768),
    ],
)  # fmt: skip
def test_journal_has_its_size_on_both_sides_of_a_bound(release: str, size: int, journal: int) -> None:
    """Blocks of the journal: dumpe2fs 1.47 printed those of 6.1; those of 4.7 are e2fsprogs 1.43 [R]."""
    assert ext4_geometry(Target(size), release_of(release)).journal_blocks == journal


def test_the_largest_groups_are_multiples_of_the_stripe_unit() -> None:
    """mkfs.xfs 6.1 printed these numbers for 50 TB.

    Groups at the limit of 1 TiB are rounded down to a multiple of the stripe unit.
    """
    found = xfs_geometry(target("stripe", "50000000000000"), CHECKED)
    assert found == (12_207_031_250, 46, 268_435_440, 521_728)
    one_disk = Target(50_000_000_000_000, 64 * KIB, 64 * KIB)
    assert xfs_geometry(one_disk, CHECKED) == found


def test_inodes_lie_in_groups_one_after_another() -> None:
    """Numbers begin at 1: the first group has the inodes 1 to 8192."""
    geometry = made_ext4(Target(10 * GIB), CHECKED).geometry
    assert [geometry.group_of(number) for number in (1, 8192, 8193)] == [0, 0, 1]


def test_journals_grow_with_the_filesystem() -> None:
    """Each size has twice the journal of the size before it, up to 1 GiB."""
    sizes = [
        ext4_geometry(Target(gib * GIB), CHECKED).journal_blocks for gib in (1, 2, 16, 32, 64, 128, 9_000)
    ]
    assert [after / before for before, after in pairwise(sizes)] == [2, 2, 2, 2, 2, 1]


@pytest.mark.parametrize("mib", [300, 400, 512])
def test_a_log_larger_than_a_group_is_refused(mib: int) -> None:
    """mkfs.xfs 6.1 refuses stripes of 300 and 400 MiB; a log of 10 MiB fits."""
    place = Target(mib * MIB, 64 * KIB, 256 * KIB)
    with pytest.raises(ValueError, match="the log of 67108864 B does not fit"):
        xfs_geometry(place, CHECKED)
    assert xfs_geometry(place, release_of("5.14")).groups == 8


@pytest.mark.parametrize("make", [made_xfs, made_ext4])
def test_a_device_that_is_too_small_is_refused(make: object) -> None:
    """The error gives the smallest size."""
    with pytest.raises(ValueError, match=r"[35](00|12) MiB"):
        make(Target(299 * MIB), CHECKED)  # type: ignore[operator]


def printed() -> Iterator[str]:
    """Yield the lines of the table, as the tools of this machine print them."""
    image = Path("mkfs.img")
    for size in SIZES:
        for geometry in STRIPES:
            with image.open("wb") as file:
                file.truncate(size)
            yield "\t".join(["xfs", geometry, str(size), *_xfs(image, geometry)])
            yield "\t".join(["ext4", geometry, str(size), *_ext4(image, geometry)])
            image.unlink()


def drawn() -> Iterator[str]:
    """Yield the lines of the table of drawn sizes, as the tools of this machine print them."""
    image = Path("mkfs.img")
    for size in (*drawn_sizes(), *EDGES):
        with image.open("wb") as file:
            file.truncate(size)
        (inodes,) = _found(
            r"4k blocks and (\d+) inodes", _run("mke2fs", "-n", "-F", "-t", "ext4", str(image))
        )
        numbers = _ext4(image, "none")
        (free,) = _found(r"Free blocks: *(\d+)", _run("dumpe2fs", "-h", str(image)))
        yield "\t".join([str(size), inodes, free, *numbers])
        image.unlink()


def _xfs(image: Path, geometry: str) -> list[str]:
    text = _run("mkfs.xfs", "-N", "-f", *_XFS_OPTIONS[geometry], str(image))
    groups, group_blocks = _found(r"agcount=(\d+), agsize=(\d+)", text)
    return [*_found(r"data .*blocks=(\d+)", text), groups, group_blocks, *_found(r"log .*blocks=(\d+)", text)]


def _ext4(image: Path, geometry: str) -> list[str]:
    lazy = "nodiscard,lazy_itable_init=1,lazy_journal_init=1"
    _run("mke2fs", "-q", "-t", "ext4", "-F", "-E", f"{lazy}{_EXT4_OPTIONS[geometry]}", str(image))
    text = _run("dumpe2fs", "-h", str(image))
    (blocks,), (per_group,) = _found(r"Block count: *(\d+)", text), _found(r"Blocks per group: *(\d+)", text)
    groups = -(-int(blocks) // int(per_group))
    reserved = re.search(r"Reserved GDT blocks: *(\d+)", text)  # above 16 TiB, no line and no block
    descriptors = -(-groups // 64) + (0 if reserved is None else int(reserved[1]))
    extents = [*re.findall(r"\):(\d+)-(\d+)", _run("debugfs", "-R", "stat <8>", str(image)))]
    return [
        blocks, str(groups), *_found(r"Inodes per group: *(\d+)", text),
        str(descriptors), *_found(r"Total journal blocks: *(\d+)", text),
        extents[0][0], str(int(extents[-1][1]) + 1),
    ]  # fmt: skip


def _found(pattern: str, text: str) -> tuple[str, ...]:
    found = re.search(pattern, text)
    assert found is not None, pattern
    return found.groups()


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    TABLE.write_text("".join(f"{line}\n" for line in printed()))
    DRAWN.write_text("".join(f"{line}\n" for line in drawn()))
