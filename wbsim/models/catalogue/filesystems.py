"""The filesystems of the reports and of our own measurements, by name."""

from __future__ import annotations

from typing import Final

from wbsim.models.filesystems.ext4.spec import Ext4Spec
from wbsim.models.filesystems.spec import FilesystemSpec
from wbsim.models.filesystems.xfs.spec import XfsSpec
from wbsim.sim.param import assumed, measured, specified
from wbsim.sim.units import GIB, KIB, MIB, MS, PAGE_BYTES, S

_HOLDS: Final = "docs/kernel/inodes.md#what-lies-inside-each-hold"
_W25: Final = "docs/kernel/xfs.md#what-report-w25-implies"

_EXTENTS: Final = "docs/measurements.md D"
_EXT4: Final = "docs/measurements.md E"
_JOURNAL: Final = "docs/measurements.md F"
_MKFS: Final = "mkfs.xfs 3.2 defaults for 500 TB with metadata CRCs [R]"
_LOG_ITEM: Final = "struct xfs_inode_log_format and xfs_icdinode of 3.11 with op headers [R]"

_ITEMS: Final = f"fs/xfs transactions of 3.11 [R]; {_HOLDS} has 6-8 items for a create"

P13_XFS: Final = XfsSpec.model_validate(
    {
        "kind": specified("xfs", "report P13"),
        "size": specified(500 * 10**12, "report P13: 500TB sparse"),
        "agcount": specified(500, f"{_MKFS}: groups of 1 TB"),
        "rmapbt": specified(False, "reverse mapping came in 2016"),
        "group_head": assumed(64 * KIB, "headers and the first inodes", 48 * KIB, 512 * KIB),
        "inode_bytes": specified(512, f"{_MKFS}: CRCs need 512 B"),
        "cluster_bytes": specified(
            16 * KIB, "fs/xfs of 3.11: 8 KiB, scaled by inode size; docs/measurements.md C: bios of 16 KiB"
        ),
        "dirent_bytes": specified(
            72, "name of 40 characters: 56 B in the data block, 8 B in the leaf, headers"
        ),
        "inode_log_bytes": specified(256, f"{_LOG_ITEM}: 56 + 176 + 2 x 12 B"),
        "extent_log_bytes": specified(28, f"{_LOG_ITEM}: one extent and its header"),
        "dirent_log_bytes": specified(
            76, "the 128 B regions of the name, logged once per checkpoint, and the leaf entry"
        ),
        "create_items": specified(7, f"{_ITEMS}: two inodes, AGI and its btree, directory, buffers"),
        "extent_items": specified(4, f"{_ITEMS}: inode, AGF and its two btrees"),
        "remove_items": specified(6, f"{_ITEMS}: two inodes, directory, AGI, unlinked bucket"),
        "inactivate_items": specified(4, f"{_ITEMS}: inode, its buffer, AGI, inode btree"),
        "log": {
            "size": specified(2038 * MIB, f"{_MKFS}: the largest log"),
            "iclog_bytes": assumed(
                256 * KIB,
                "logbsize: the report names no mount options; report N10, by the same author, mounts its"
                " scratch disk with logbsize=262144; the default is 32 KiB",
                32 * KIB,
                256 * KIB,
            ),
            "iclogs": specified(8, "mount default (logbufs)"),
            "record_header": specified(512, "struct xlog_rec_header"),
            "checkpoint_bytes": specified(
                2038 * MIB // 8, "fs/xfs/xfs_log_priv.h of 3.11: XLOG_CIL_SPACE_LIMIT [R]"
            ),
            "ail_pause": specified(50 * MS, "fs/xfs/xfs_trans_ail.c of 3.11: tout after a complete pass [R]"),
            "sync_interval": specified(30 * S, "fs.xfs.xfssyncd_centisecs 3000; xfs_log_worker"),
        },
    }
)

XFS_METADATA: Final[dict[str, object]] = {
    name: P13_XFS.inputs()[name]
    for name in (
        "inode_bytes",
        "cluster_bytes",
        "dirent_bytes",
        "inode_log_bytes",
        "extent_log_bytes",
        "dirent_log_bytes",
        "create_items",
        "extent_items",
        "remove_items",
        "inactivate_items",
    )
}

XFS_LOG: Final[dict[str, object]] = {
    name: P13_XFS.log.inputs()[name] for name in ("iclogs", "record_header", "ail_pause", "sync_interval")
}

N10_XFS: Final = XfsSpec.model_validate(
    {
        "kind": specified("xfs", "report N10"),
        "size": assumed(
            10 * GIB,
            "report N10: offsets show groups of 2.5 GiB; mkfs makes four groups by default",
            10 * GIB,
            40 * GIB,
        ),
        "agcount": assumed(4, "mkfs.xfs of 2010 without a stripe: four groups", 4, 16),
        "rmapbt": specified(False, "reverse mapping came in 2016"),
        "group_head": specified(48 * KIB, "report N10: the first file starts at sector 96"),
        **XFS_METADATA,
        "log": {
            **XFS_LOG,
            "size": assumed(
                10 * MIB, "mkfs.xfs of 2010: 2560 blocks for a filesystem of 10 GiB [R]", 10 * MIB, 128 * MIB
            ),
            "iclog_bytes": specified(256 * KIB, "report N10: logbsize=262144"),
            "checkpoint_bytes": specified(
                10 * MIB // 8,
                "an eighth of the log, as from 2.6.35 on; earlier kernels write each transaction [R]",
            ),
        },
    }
)
V13_XFS: Final = XfsSpec.model_validate(
    {
        **P13_XFS.inputs(),
        "kind": specified("xfs", "report V13"),
        "size": specified(100 * 10**12, "report V13: 100TB sparse filesystem image"),
        "agcount": specified(100, f"{_MKFS}: groups of 1 TB"),
    }
)
W25_XFS_BM1743: Final = XfsSpec.model_validate(
    {
        "kind": specified("xfs", "report W25"),
        "size": specified(128 * 117_188_604 * 4096, f"{_W25} [S]: the mkfs output of the thread"),
        "stripe_unit": specified(16 * KIB, f"{_W25} [S]: sunit of 4 blocks"),
        "agcount": specified(128, f"{_W25} [S]"),
        "rmapbt": specified(True, f"{_W25} [S]: rmapbt=1"),
        "group_head": assumed(64 * KIB, "headers and the first inodes", 48 * KIB, 512 * KIB),
        **XFS_METADATA,
        "log": {
            **XFS_LOG,
            "size": specified(2038 * MIB, f"{_MKFS}: the largest log"),
            "iclog_bytes": specified(32 * KIB, "mount default (logbsize)"),
            "checkpoint_bytes": specified(2038 * MIB // 8, "fs/xfs/xfs_log_priv.h: XLOG_CIL_SPACE_LIMIT [R]"),
        },
    }
)
W25_XFS: Final = XfsSpec.model_validate(
    {
        **W25_XFS_BM1743.inputs(),
        "size": assumed(
            3_840 * 10**9,
            "a PM9A3 of 3.84 TB; the thread has mkfs output of the BM1743 alone",
            960 * 10**9,
            15_360 * 10**9,
        ),
    }
)
LOOP_XFS: Final = XfsSpec.model_validate(
    {
        "kind": specified("xfs", _EXTENTS),
        "size": measured(12 * GIB, _EXTENTS),
        "agcount": measured(4, _EXTENTS),
        "rmapbt": measured(False, "mkfs.xfs of xfsprogs 6.1: rmapbt=1 is the default from 6.5 on"),
        "group_head": assumed(64 * KIB, "headers and the first inodes", 48 * KIB, 512 * KIB),
        **XFS_METADATA,
        "log": {
            **XFS_LOG,
            "size": measured(64 * MIB, f"{_EXTENTS}: mkfs.xfs 6.1"),
            "iclog_bytes": measured(32 * KIB, "docs/measurements.md C: records of 32 KiB"),
            "checkpoint_bytes": specified(64 * MIB // 8, "fs/xfs/xfs_log_priv.h: XLOG_CIL_SPACE_LIMIT [R]"),
        },
    }
)
EXT4_JOURNAL: Final[dict[str, object]] = {
    "commit_interval": specified(5 * S, "fs/jbd2: JBD2_DEFAULT_MAX_COMMIT_AGE"),
    "expire": specified(30 * S, "vm.dirty_expire_centisecs, for the mapping of the device"),
    "create_credits": measured(47, f"{_JOURNAL}: credits of handles"),
    "map_credits": measured(32, f"{_JOURNAL}: credits of handles"),
    "convert_credits": measured(18, f"{_JOURNAL}: credits of reserved handles"),
    "names_per_leaf": measured(57, f"{_JOURNAL}: 0.0168 to 0.018 blocks a file with names of 40 characters"),
}
LOOP_EXT4: Final = Ext4Spec.model_validate(
    {
        "kind": specified("ext4", _EXT4),
        "size": measured(12 * GIB, _EXT4),
        "flex_groups": measured(16, f"{_EXT4}: dumpe2fs"),
        "descriptors": measured(1026 * PAGE_BYTES, f"{_EXT4}: dumpe2fs: 2 blocks and 1024 reserved ones"),
        "inodes_per_group": measured(8_192, f"{_EXT4}: dumpe2fs"),
        "journal": {
            **EXT4_JOURNAL,
            "size": measured(64 * MIB, f"{_EXT4}: dumpe2fs"),
        },
    }
)
V13_EXT4: Final = Ext4Spec.model_validate(
    {
        **LOOP_EXT4.inputs(),
        "kind": specified("ext4", "report V13"),
        "size": assumed(
            16 * GIB << 10, "the largest size without the 64bit feature", 1 * GIB << 10, 64 * GIB << 10
        ),
        "journal": {
            **LOOP_EXT4.journal.inputs(),
            "size": assumed(
                120 * MIB,
                "mkfs.ext4 of 2013: 128 MiB [R]; chosen so that it fits into one group",
                64 * MIB,
                1 * GIB,
            ),
        },
    }
)
J09_EXT4: Final = Ext4Spec.model_validate(
    {
        **LOOP_EXT4.inputs(),
        "kind": specified("ext4", "report J09"),
        "size": specified(30 * GIB - GIB // 4, "report J09: 32G, minus a small part"),
    }
)
DESK_XFS: Final = XfsSpec.model_validate(
    {**LOOP_XFS.inputs(), "size": measured(8 * GIB, "docs/measurements.md H: mkfs.xfs -d agcount=4")}
)
DESK_EXT4: Final = Ext4Spec.model_validate(
    {
        **LOOP_EXT4.inputs(),
        "size": measured(8 * GIB, "docs/measurements.md H: mkfs.ext4"),
        "descriptors": measured(
            1024 * PAGE_BYTES, "docs/measurements.md H: dumpe2fs, one block and 1023 reserved ones"
        ),
    }
)
FILESYSTEMS: Final[dict[str, FilesystemSpec]] = {
    "p13-xfs": P13_XFS,
    "v13-xfs": V13_XFS,
    "v13-ext4": V13_EXT4,
    "n10-xfs": N10_XFS,
    "w25-xfs": W25_XFS,
    "w25-xfs-bm1743": W25_XFS_BM1743,
    "loop-xfs": LOOP_XFS,
    "loop-ext4": LOOP_EXT4,
    "j09-ext4": J09_EXT4,
    "desk-xfs": DESK_XFS,
    "desk-ext4": DESK_EXT4,
}
"""The filesystems that a configuration can name."""
PURPOSES: Final = {
    "p13-xfs": "report P13: 500 TB, sparse",
    "v13-xfs": "report V13: 100 TB, sparse",
    "v13-ext4": "report V13",
    "n10-xfs": "report N10: four groups of 2.5 GiB",
    "w25-xfs": "report W25: 128 groups on the PM9A3",
    "w25-xfs-bm1743": "report W25: 128 groups on the BM1743",
    "loop-xfs": "our first measurements",
    "loop-ext4": "our first measurements",
    "j09-ext4": "report J09: on the X25-E",
    "desk-xfs": "our measurements of 6.18",
    "desk-ext4": "our measurements of 6.18",
}
"""The purposes of filesystems, by name."""
