"""``filesystem.like = "xfs"`` and ``"ext4"``: what mkfs makes on the disk of the mount."""

from __future__ import annotations

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.models.catalogue.mkfs import Target, made_ext4, made_xfs
from wbsim.models.filesystems.ext4.spec import Ext4Spec
from wbsim.models.filesystems.spec import FilesystemSpec
from wbsim.models.filesystems.xfs.spec import XfsSpec
from wbsim.models.release import release_of
from wbsim.models.scenario import Scenario
from wbsim.sim.units import GIB, KIB, MIB

DISK = 10**12
RAID = 'device = { kind = "raid0", chunk = "64 KiB", members = { like = "sata-disk", count = 4 } }'


def scenario(
    filesystem: str,
    *,
    disk: str = 'like = "sata-disk"',
    kernel: str = "6.1",
    command: str = "dd bs=4k count=9",
) -> Scenario:
    """Read a configuration of one program on a *filesystem* of a *disk*."""
    text = "\n".join(
        [
            'title = "x"', "[scenario]", 'machine.like = "loop-vm"', f'kernel.like = "{kernel}"',
            f"machine.disks.sda = {{ {disk} }}",
            f'mounts.m = {{ {filesystem}, disk = "sda", at = "/m" }}',
            f'workload.command = "{command.replace("dd ", "dd if=/dev/zero of=/m/x ")}"',
        ]
    )  # fmt: skip
    (case,) = parse(text, "x.toml").cases
    return case.scenario


def made(filesystem: str, **more: str) -> FilesystemSpec:
    """Return the filesystem of `scenario`."""
    return scenario(filesystem, **more).mounts["m"].filesystem


@pytest.mark.parametrize(
    ("kernel", "inode_bytes", "journal"), [("2.6.32", 256, 128 * MIB), ("6.1", 512, GIB)]
)
def test_filesystem_has_the_size_of_its_disk(kernel: str, inode_bytes: int, journal: int) -> None:
    """The program mkfs takes the complete disk, with the defaults of the kernel's time.

    A TB has 244 140 625 blocks of 4 KiB: four groups of XFS, and a log of a 2 048th, 119 209 blocks.
    """
    release = release_of(kernel)
    xfs, ext4 = made('like = "xfs"', kernel=kernel), made('like = "ext4"', kernel=kernel)
    assert isinstance(xfs, XfsSpec)
    assert isinstance(ext4, Ext4Spec)
    assert (xfs.size, xfs.agcount, xfs.log.size, xfs.inode_bytes) == (DISK, 4, 119_209 * 4_096, inode_bytes)
    assert (ext4.size, ext4.journal.size) == (DISK, journal)
    assert (xfs, ext4) == (made_xfs(Target(DISK), release), made_ext4(Target(DISK), release))


def test_given_size_decides_the_geometry() -> None:
    """XFS on 900 GB has a log that fits into its groups; ext4 on 10 GB has a journal of 64 MiB."""
    xfs = made('like = "xfs", size = "900 GB"')
    assert isinstance(xfs, XfsSpec)
    assert (xfs.size, xfs.agcount, xfs.log.size) == (900 * 10**9, 4, 107_288 * 4 * KIB)
    ext4 = made('like = "ext4", size = "10 GB"')
    assert isinstance(ext4, Ext4Spec)
    assert (ext4.journal.size, ext4.inodes_per_group) == (64 * MIB, 8144)


def test_other_keys_go_over_the_defaults() -> None:
    """Keys that are not given keep their defaults."""
    xfs = made('like = "xfs", agcount = 32, log.iclog_bytes = "256 KiB"')
    assert isinstance(xfs, XfsSpec)
    assert (xfs.agcount, xfs.log.iclog_bytes, xfs.log.iclogs) == (32, 256 * KIB, 8)


def test_array_gives_its_chunk_to_mkfs() -> None:
    """Four disks of a TiB have 32 groups, with the chunk as stripe unit.

    Groups of 128 GiB would be whole stripes, so each group is a stripe unit shorter.  The remaining 2 MiB are
    too small for another group.
    """
    raid = RAID.replace("count", 'size = "1 TiB", count')
    xfs = made('like = "xfs"', disk=f'like = "sata-disk", {raid}')
    assert isinstance(xfs, XfsSpec)
    assert (xfs.stripe_unit, xfs.agcount) == (64 * KIB, 32)
    assert xfs.size == 32 * (128 * GIB - 64 * KIB)
    assert xfs == made_xfs(Target(4 << 40, 64 * KIB, 256 * KIB), release_of("6.1"))


CACHE = 'size = "1 GiB", link = "1 GB/s", command_time = "1 us", piece = "64 KiB", depth = 4'
CACHED = (
    f'like = "sata-disk", device = {{ kind = "write_cache", {CACHE}, behind = {{ like = "sata-disk" }} }}'
)


@pytest.mark.parametrize(("disk", "groups"), [('like = "sata-disk"', 4), (CACHED, 4), ('like = "pm9a3"', 12)])
def test_mkfs_gives_only_flash_a_group_for_each_processor(disk: str, groups: int) -> None:
    """The mkfs.xfs of 6.8 and later checks whether the disk rotates, also behind a write cache."""
    disk = f"{disk} }}\nmachine.processors = {{ count = 12"
    xfs = made('like = "xfs"', disk=disk, kernel="6.8")
    assert isinstance(xfs, XfsSpec)
    assert xfs.agcount == groups


@pytest.mark.parametrize(
    ("filesystem", "disk", "message"),
    [
        ('like = "xfs"', 'like = "loop"',
         "x.toml:6: mounts.m.size: is missing, and the device of sda has no capacity; give the size"),
        ('like = "xfs", size = "200 MiB"', 'like = "sata-disk"',
         "x.toml:6: mounts.m.size: 209715200 B is too small for mkfs.xfs; give 300 MiB or more"),
        ('like = "ext4", size = "400 MiB"', 'like = "sata-disk"',
         "x.toml:6: mounts.m.size: 419430400 B is too small; give 512 MiB or more, blocks of 1 KiB"),
        ('like = "xfs", size = 5', 'like = "sata-disk"', "x.toml:6: mounts.m.size: 5 has no unit"),
        ('like = "xfs", size = "5 apples"', 'like = "sata-disk"', "x.toml:6: mounts.m.size: "),
        ('like = "xfs", size = "2 TB"', 'like = "sata-disk"',
         "x.toml:6: mounts.m.size: the filesystems on sda need 2000000000000 B, and the device has"),
        ('like = "ext3"', 'like = "sata-disk"',
         "x.toml:6: mounts.m.like: 'ext3' is not known; did you mean 'ext4'; use one of 'xfs', 'ext4', "),
    ],
)  # fmt: skip
def test_impossible_filesystem_is_refused(filesystem: str, disk: str, message: str) -> None:
    """The only problem that is reported has the place of the key."""
    with pytest.raises(BadInput) as refused:
        scenario(filesystem, disk=disk)
    assert [str(problem).startswith(message) for problem in refused.value.problems] == [True]


FS_MARK = "fs_mark -k -S0 -s 0 -L 1 -D 4 -d /m/a -n"


def test_ext4_refuses_files_without_an_inode() -> None:
    """The mke2fs of 1 GiB makes 65 536 inodes and uses 11 of them.  XFS allocates inodes from free blocks."""
    small = 'like = "ext4", size = "1 GiB"'
    assert scenario(small, command=f"{FS_MARK} 65000")
    with pytest.raises(BadInput, match="65526 files and directories need an inode each, and m has 65525"):
        scenario(small, command=f"{FS_MARK} 65525")
    assert scenario('like = "xfs", size = "1 GiB"', command=f"{FS_MARK} 200000")


@pytest.mark.parametrize("mib", [64, 128, 1024])
def test_journal_spans_block_groups(mib: int) -> None:
    """The runs of a journal have all of its blocks, and no group holds more blocks than it has."""
    of = made(f'like = "ext4", size = "64 GiB", journal.size = "{mib} MiB"')
    assert isinstance(of, Ext4Spec)
    runs = of.geometry.journal_runs
    assert sum(length for _, length in runs) == mib * MIB // (4 * KIB)
    taken = [of.geometry.head_blocks(group) for group in range(of.geometry.groups)]
    without = [of.geometry.metadata_blocks(group) for group in range(of.geometry.groups)]
    assert sum(taken) - sum(without) == mib * MIB // (4 * KIB)
    assert max(taken) <= 32_768
    assert of.size == 64 * GIB


def test_filesystem_without_a_base_must_have_all_keys() -> None:
    """The remedy is the base that brings the others."""
    text = """\
title = "t"
[scenario]
machine.like = "desktop-2018"
kernel.like = "6.1"
filesystem = { kind = "ext4", size = "10 GB" }
workload.command = "dd if=/dev/zero of=/f bs=1M count=1"
"""
    with pytest.raises(BadInput) as refused:
        parse(text, "x.toml")
    assert str(refused.value).startswith("x.toml:5: filesystem: lacks flex_groups, descriptors")
    assert 'give filesystem.like = "ext4", which brings what is missing' in str(refused.value)
