"""The filesystems that mkfs makes without options, by the device and by the release of its time.

Stands for mkfs.xfs of xfsprogs 6.1 and mke2fs of e2fsprogs 1.47, which tests compare with the tools' output
(tests/models/catalogue/test_mkfs.py).  The rules of other versions come from their history, and have the tag
[R].  A block has 4 KiB.  A release is (major, minor, patch).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from wbsim.models.catalogue.data_files import part_in
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS, INODES_PER_BLOCK, kept_blocks
from wbsim.models.filesystems.ext4.spec import Ext4Spec
from wbsim.models.filesystems.xfs.spec import XfsSpec
from wbsim.models.kernel_rules.lookup import rule_for
from wbsim.models.release import Release
from wbsim.sim.param import assumed, followed, specified
from wbsim.sim.units import GIB, KIB, MIB, PAGE_BYTES

_P13_XFS: Final = part_in("filesystems", "p13-xfs")
_XFS_METADATA: Final = {
    name: _P13_XFS[name]
    for name in (
        "inode_bytes", "cluster_bytes", "dirent_bytes", "inode_log_bytes", "extent_log_bytes",
        "dirent_log_bytes", "create_items", "extent_items", "remove_items", "inactivate_items",
    )
}  # fmt: skip
"""The sizes of metadata, and the items of transactions, which mkfs does not choose."""
_XFS_LOG: Final = {
    name: _P13_XFS["log"][name] for name in ("iclogs", "record_header", "ail_pause", "sync_interval")
}
_EXT4_JOURNAL: Final = part_in("filesystems", "loop-ext4")["journal"]
_XFSPROGS: Final = "mkfs.xfs of xfsprogs 6.1"
_E2FSPROGS: Final = "mke2fs of e2fsprogs 1.47"
_TIB: Final = GIB << 10


class Target(NamedTuple):
    """The device that a filesystem is made on, as mkfs sees it.

    ``size`` is in bytes.  ``stripe_unit`` and ``stripe_width`` are the bytes that an array reports as io_min
    and io_opt, 0 without an array.  ``rotates`` is true of rotating disks.  ``processors`` is the number of
    the machine's processors.
    """

    size: int
    stripe_unit: int = 0
    stripe_width: int = 0
    rotates: bool = True
    processors: int = 1


class XfsGeometry(NamedTuple):
    """The numbers that `mkfs.xfs -N` prints: data blocks, groups, blocks of a group and of the log."""

    blocks: int
    groups: int
    group_blocks: int
    log_blocks: int


_LEAST_GROUP_BLOCKS: Final = 16 * MIB // PAGE_BYTES
_MOST_GROUP_BLOCKS: Final = (_TIB - 1) // PAGE_BYTES
_LOG_RATIO: Final = 2_048
_MOST_LOG_BLOCKS: Final = (2 * GIB - 10 * MIB) // PAGE_BYTES
_MOST_LOG_UNIT: Final = 256 * KIB
_MULTIDISK_SHIFTS: Final = ((128 * MIB, 2), (8 * GIB + 1, 3), (512 * GIB + 1, 4))
"""(size, shift): an array below this size has 2 to the power of *shift* groups, a larger array has 32."""


def xfs_geometry(target: Target, release: Release) -> XfsGeometry:
    """Return the geometry that mkfs.xfs of the time of *release* gives *target*.

    The result has numbers: blocks, groups, blocks of a group, and blocks of the log.

    >>> xfs_geometry(Target(100 * GIB), (6, 1, 0))
    XfsGeometry(blocks=26214400, groups=4, group_blocks=6553600, log_blocks=16384)

    Raises:
        ValueError: *target* has less than 300 MiB, or its log does not fit into a group.
    """
    if target.size < 300 * MIB:
        raise ValueError(f"{target.size} B is too small for mkfs.xfs; give 300 MiB or more")
    blocks = target.size // PAGE_BYTES
    unit = target.stripe_unit // PAGE_BYTES
    group_blocks = _group_blocks(blocks, striped=bool(unit))
    for_processors = rule_for("mkfs.xfs.group_per_processor", release).value
    if for_processors and not target.rotates and not unit:
        group_blocks = min(group_blocks, _for_processors(blocks, target.processors))
    groups = -(-blocks // group_blocks)
    if unit:
        group_blocks = _aligned(group_blocks, unit, target.stripe_width // PAGE_BYTES, groups)
        groups = -(-blocks // group_blocks)
    if 0 < blocks % group_blocks < _LEAST_GROUP_BLOCKS:  # the last group is too small, and is left out
        groups -= 1
        blocks = groups * group_blocks
    log_blocks = _log_blocks(blocks, target, release)
    if log_blocks >= group_blocks:
        log, group = log_blocks * PAGE_BYTES, group_blocks * PAGE_BYTES
        raise ValueError(
            f"{target.size} B is too small: the log of {log} B does not fit into a group of {group} B;"
            " give a larger size"
        )
    return XfsGeometry(blocks, groups, group_blocks, log_blocks)


def _group_blocks(blocks: int, *, striped: bool) -> int:
    """Return the size of a group (blocks) before its alignment (calc_default_ag_geometry).

    >>> _group_blocks(26_214_400, striped=False), _group_blocks(26_214_400, striped=True)
    (6553600, 1638400)
    """
    size = blocks * PAGE_BYTES
    if size >= 32 * _TIB or (size >= 4 * _TIB and not striped):
        return _MOST_GROUP_BLOCKS
    shift = 2
    if striped:
        shift = next((shift for limit, shift in _MULTIDISK_SHIFTS if size < limit), 5)
    return min(-(-blocks >> shift), _MOST_GROUP_BLOCKS) if blocks % (1 << shift) else blocks >> shift


def _for_processors(blocks: int, processors: int) -> int:
    """Return the size of a group (blocks) for a drive without moving parts.

    xfsprogs from 6.8 on makes a group for each processor, of 4 GiB at least (calc_concurrency_ag_geometry
    [R]; W25's 128 groups on 128 processors).

    >>> _for_processors(26_214_400, processors=16)
    1638400
    """
    groups = max(1, min(processors, blocks // (4 * GIB // PAGE_BYTES)))
    return -(-blocks // groups)


def _aligned(group_blocks: int, unit: int, width: int, groups: int) -> int:
    """Return the size of a group (blocks) in complete stripe units, but not in stripes (align_ag_geometry).

    Groups that begin at a stripe would all put their headers on one disk of the array.

    >>> _aligned(6_553_600, unit=128, width=512, groups=4), _aligned(6_553_600, unit=128, width=0, groups=4)
    (6553472, 6553600)
    """
    aligned = -(-group_blocks // unit) * unit
    if aligned > _MOST_GROUP_BLOCKS:
        aligned = group_blocks // unit * unit
    if width and aligned % width == 0 and width != unit and groups > 1:
        aligned -= unit
    return aligned


def _log_blocks(blocks: int, target: Target, release: Release) -> int:
    """Return the size of the internal log in blocks (calculate_log_size)."""
    least: int = rule_for("mkfs.xfs.least_log_bytes", release).value
    log_blocks = min(max(blocks // _LOG_RATIO, least // PAGE_BYTES), _MOST_LOG_BLOCKS)
    unit = target.stripe_unit if target.stripe_unit <= _MOST_LOG_UNIT else 32 * KIB
    if unit:
        log_blocks = -(-log_blocks // (unit // PAGE_BYTES)) * (unit // PAGE_BYTES)
        if log_blocks > _MOST_LOG_BLOCKS:
            log_blocks -= unit // PAGE_BYTES
    return log_blocks


@lru_cache(maxsize=1024)
def made_xfs(target: Target, release: Release) -> XfsSpec:
    """Return the XFS that mkfs.xfs of the time of *release* makes on *target*.

    Raises:
        ValueError: *target* is too small, as in `xfs_geometry`.
    """
    geometry = xfs_geometry(target, release)
    inode_bytes = rule_for("mkfs.xfs.inode_bytes", release)
    log_bytes = geometry.log_blocks * PAGE_BYTES
    most_checkpoint = rule_for("mkfs.xfs.most_checkpoint_bytes", release)
    checkpoint_bytes = min(log_bytes // 8, most_checkpoint.value or log_bytes)
    return XfsSpec.model_validate(
        {
            **_XFS_METADATA,
            "kind": specified("xfs", _XFSPROGS),
            "size": followed(geometry.blocks * PAGE_BYTES, f"{_XFSPROGS}: the size of the device"),
            "agcount": specified(geometry.groups, f"{_XFSPROGS}: calc_default_ag_geometry"),
            "rmapbt": rule_for("mkfs.xfs.rmapbt", release),
            "group_head": assumed(64 * KIB, "headers and the first inodes", 48 * KIB, 512 * KIB),
            "inode_bytes": inode_bytes,
            "cluster_bytes": specified(32 * inode_bytes.value, "fs/xfs: 8 KiB, scaled by inode size"),
            "stripe_unit": (
                specified(target.stripe_unit, "the chunk of the array (io_min)")
                if target.stripe_unit
                else None
            ),
            "log": {
                **_XFS_LOG,
                "size": specified(
                    log_bytes, f"{_XFSPROGS}: calculate_log_size; up to 5.14 at least 10 MiB [R]"
                ),
                "iclog_bytes": specified(32 * KIB, "mount default (logbsize)"),
                "checkpoint_bytes": specified(checkpoint_bytes, most_checkpoint.source),
            },
        }
    )


class Ext4Geometry(NamedTuple):
    """The numbers that dumpe2fs prints: blocks, groups, inodes of a group, descriptors, the journal.

    ``descriptor_blocks``: the blocks of descriptors, and the blocks that are reserved for growing.
    """

    blocks: int
    groups: int
    group_inodes: int
    descriptor_blocks: int
    journal_blocks: int


_JOURNALS: Final = (
    (128 * MIB, 4 * MIB), (1 * GIB, 16 * MIB), (2 * GIB, 32 * MIB), (16 * GIB, 64 * MIB),
    (32 * GIB, 128 * MIB), (64 * GIB, 256 * MIB), (128 * GIB, 512 * MIB),
)  # fmt: skip
"""(size, bytes): the journal of a device below that size (ext2fs_default_journal_size), otherwise 1 GiB."""
_EARLIER_JOURNALS: Final = (
    (128 * MIB, 4 * MIB), (1 * GIB, 16 * MIB), (2 * GIB, 32 * MIB), (4 * GIB, 64 * MIB),
)  # fmt: skip
"""(size, bytes): the journal of a device below that size to e2fsprogs 1.43.1 [R], otherwise 128 MiB."""
_MOST_RESERVED: Final = PAGE_BYTES // 4
_MOST_32_BIT: Final = (1 << 32) - 1


def ext4_geometry(target: Target, release: Release) -> Ext4Geometry:
    """Return the geometry that mke2fs of the time of *release* gives *target*.

    The result has numbers: blocks, groups, inodes of a group, blocks of descriptors, and blocks of the
    journal.

    >>> geometry = ext4_geometry(Target(100 * GIB), (6, 1, 0))
    >>> geometry.groups, geometry.descriptor_blocks, geometry.journal_blocks
    (800, 1037, 131072)

    Raises:
        ValueError: *target* has less than 512 MiB; mke2fs makes blocks of 1 KiB there, which are not
            modelled.
    """
    if target.size < 512 * MIB:
        raise ValueError(
            f"{target.size} B is too small; give 512 MiB or more, blocks of 1 KiB are not modelled"
        )
    blocks = target.size // PAGE_BYTES
    per_block = PAGE_BYTES // rule_for("mkfs.ext4.descriptor_bytes", release).value
    # inode_ratio of mke2fs.conf: a larger filesystem is "big" from 4 TiB on, and "huge" from 16 TiB on.
    ratio = 16 * KIB if target.size < 4 * _TIB else 32 * KIB if target.size < 16 * _TIB else 64 * KIB
    inodes = blocks * PAGE_BYTES // ratio
    while True:  # ext2fs_initialize leaves out a last group that is too small, and then begins again
        groups = -(-blocks // GROUP_BLOCKS)
        group_inodes = -(-inodes // groups // INODES_PER_BLOCK) * INODES_PER_BLOCK
        described = _descriptor_blocks(blocks, groups, per_block)
        usable_blocks = kept_blocks(blocks, described, group_inodes)
        if usable_blocks == blocks:
            break
        blocks = usable_blocks
    most = rule_for("mkfs.ext4.most_journal_bytes", release).value
    table = _JOURNALS if most == GIB else _EARLIER_JOURNALS
    journal = next((size for limit, size in table if target.size < limit), most)
    return Ext4Geometry(blocks, groups, group_inodes, described, journal // PAGE_BYTES)


def _descriptor_blocks(blocks: int, groups: int, per_block: int) -> int:
    """Return the number of blocks of descriptors, with those reserved for growing.

    Stands for calc_reserved_gdt_blocks; a block holds *per_block* descriptors.
    """
    descriptors = -(-groups // per_block)
    if blocks > _MOST_32_BIT:
        return descriptors
    most_groups = -(-min(blocks * 1024, _MOST_32_BIT) // GROUP_BLOCKS)
    return descriptors + min(-(-most_groups // per_block) - descriptors, _MOST_RESERVED)


@lru_cache(maxsize=1024)
def made_ext4(target: Target, release: Release) -> Ext4Spec:
    """Return the ext4 that mke2fs of the time of *release* makes on *target*.

    Raises:
        ValueError: *target* has less than 512 MiB.
    """
    geometry = ext4_geometry(target, release)
    return Ext4Spec.model_validate(
        {
            "kind": specified("ext4", _E2FSPROGS),
            "size": followed(geometry.blocks * PAGE_BYTES, f"{_E2FSPROGS}: the size of the device"),
            "flex_groups": specified(16, f"{_E2FSPROGS}: flex_bg_size"),
            "descriptors": specified(geometry.descriptor_blocks * PAGE_BYTES, f"{_E2FSPROGS}: resize_inode"),
            "inodes_per_group": specified(geometry.group_inodes, f"{_E2FSPROGS}: inode_ratio of mke2fs.conf"),
            "stripe_width": specified(
                target.stripe_width or None, f"{_E2FSPROGS}: the stripe of the array (io_opt)"
            ),
            "journal": {
                **_EXT4_JOURNAL,
                "size": specified(
                    geometry.journal_blocks * PAGE_BYTES,
                    f"{_E2FSPROGS}: ext2fs_default_journal_size; up to 1.43.1 at most 128 MiB [R]",
                ),
            },
        }
    )
