"""Named devices and machines, every number with its source."""

from __future__ import annotations

from typing import Any, Final

from models.block.merge import MAX_DISCARD_BYTES
from models.filesystems.xfs import XfsSpec
from models.machine import MachineSpec
from sim.param import assumed, calibrated, measured, specified
from sim.units import GIB, KIB, MIB, MS, US, S

_PROFILE: Final = "docs/measurements.md B: cpu-clock profile of the flusher, Linux 6.18"
_FS_MARK: Final = "docs/measurements.md A: fs_mark -v on XFS, Linux 6.18"
_SPLIT: Final = (
    f"{_FS_MARK}: a write of one page takes 6 us [5-9]; 8 here, so that all paths sum to the 44 us of system"
    " time; its split into call and page is a guess"
)
_CALIBRATE: Final = "wbsim calibrate P13"

REFERENCE_PATHS: Final[dict[str, Any]] = {
    "write": {
        "call_ns": assumed(6_000, _SPLIT, 3_000, 8_000),
        "page_ns": assumed(2_000, _SPLIT, 500, 4_000),
        "close_ns": measured(5_000, f"{_FS_MARK}: close"),
        "mark_ns": assumed(100, "a list insertion: two or three cache lines from other cores", 50, 300),
    },
    "writer": {
        "create_ns": measured(29_000, f"{_FS_MARK}: creat"),
        "sb_list_ns": assumed(100, "a list insertion: two or three cache lines from other cores", 50, 300),
        "chunk_ns": assumed(40_000, "a btree insertion in AGF and AGI and 64 inodes to format", 10_000, 100_000),
        "dir_block_ns": assumed(10_000, "one block allocation; a data extent takes 9.6 us", 5_000, 20_000),
        "mkdir_ns": assumed(60_000, "two creat's worth", 30_000, 120_000),
    },
    "flusher": {
        "map_ns": measured(9_600, f"{_PROFILE}: block allocation transaction"),
        "page_ns": measured(3_040, f"{_PROFILE}: page walk, bio alloc and add, merge attempt"),
        "ioend_ns": measured(5_100, f"{_PROFILE}: conversion worker per file"),
        "log": {
            "commit_ns": assumed(150, "xc_cil_lock: move the items and sum their space", 100, 500),
            "record_ns": assumed(8_000, "copying 32 KiB of items and writing the record", 3_000, 20_000),
            "buffer_ns": assumed(10_000, "flushing 32 inodes into their cluster buffer", 5_000, 30_000),
        },
    },
    "writeback": {
        "take_ns": measured(150, f"{_PROFILE}: a quarter of list handling"),
        "requeue_ns": measured(150, f"{_PROFILE}: a quarter of list handling"),
        "move_ns": assumed(30, "list_move of a cold inode, prefetched", 10, 100),
        "inode_ns": measured(300, f"{_PROFILE}: the rest of list handling"),
    },
    "block": {
        "request_ns": measured(1_130, f"{_PROFILE}: get, and submit_bio without a merge"),
        "insert_ns": measured(440, f"{_PROFILE}: insert"),
        "dispatch_ns": measured(1_790, f"{_PROFILE}: dispatch and queue_rq on virtio without the kick"),
        "complete_ns": measured(1_000, "docs/measurements.md B: hard IRQ per request on virtio"),
    },
}
"""Processor time per path on the reference machine (an AMD EPYC guest, Linux 6.18)."""

SATA_SSD_2013: Final[dict[str, Any]] = {
    "kind": specified("ssd", "report P13: 2xSSD"),
    "link": specified(550_000_000, "SATA 6 Gbit/s less 8b/10b and framing"),
    "command_time": assumed(10 * US, "mechanisms.md 8.2 [R]: SATA 10-20 us a command", 5 * US, 20 * US),
    "latency": assumed(50 * US, "mechanisms.md 8.1 [R]: 40-80 us into the cache", 40 * US, 80 * US),
    "cache": assumed(128 * MIB, "DRAM of 2013 drives, most of it for the map", 16 * MIB, 512 * MIB),
    "units": assumed(64, "8 channels x 4 dies x 2 planes", 32, 128),
    "flash_page": assumed(8 * KIB, "MLC of 2013", 4 * KIB, 16 * KIB),
    "program_time": assumed(1_100 * US, "MLC of 2013: 64 x 8 KiB in 1.1 ms is 477 MB/s", 900 * US, 1_600 * US),
    "protected": assumed(
        True, "flushes were cheap enough to go unnoticed; hardware caches, says the report", False, True
    ),
}

P13_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "p13-vm",
        "processors": {
            "count": specified(16, "report P13: 16p"),
            "slice_time": assumed(3 * MS, "sched_min_granularity on 16 processors", MS, 12 * MS),
            "writer_scale": calibrated(2.14, _CALIBRATE, ("P13-sys-u",)),
            "flusher_scale": calibrated(
                1.57, _CALIBRATE, ("P13-wall-u", "P13-rate-u", "P13-iops-u", "P13-bw-u", "P13-wall-p")
            ),
            "exit_time": calibrated(
                11_000, _CALIBRATE, ("P13-wall-u", "P13-rate-u", "P13-iops-u", "P13-bw-u", "P13-wall-p")
            ),
            "cv": assumed(0.3, "path times vary with cache misses and interrupts", 0.1, 1.0),
            "line_time": assumed(100, "mechanisms.md 7.2: between 40-60 ns in and 130-200 ns across sockets", 40, 200),
            "line_from_far": assumed(
                110, "mechanisms.md 7.3 (about 0.1 us) and 5.2 [D], which reads it out of V13's figures", 50, 200
            ),
            "wake_time": assumed(5 * US, "mechanisms.md 7.1 [R]: 2-5 us, more in a guest", 2 * US, 20 * US),
            "paths": REFERENCE_PATHS,
        },
        "memory": {
            "memory": specified(16 * GIB, "report P13: 16GB RAM"),
            "kernel_reserve": assumed(
                400 * MIB, "text, page structs (1/64 of memory), reserves", 256 * MIB, 1024 * MIB
            ),
            "inode_slab_bytes": assumed(
                1_700, "xfs_inode 960 B, dentry 192 B, log item 200 B, 1/32 of a cluster buffer, slack", 1_300, 2_200
            ),
        },
        "queue": {
            "limits": {
                "max_sectors_bytes": specified(512 * KIB, "mechanisms.md 1.5 [V 3.10]"),
                "max_segments": specified(126, "mechanisms.md 1.5 [R]: virtio-blk's seg_max"),
                "max_segment_bytes": specified(64 * KIB, "mechanisms.md 1.5 [V]"),
                "nomerges": specified(0, "the default"),
                "max_discard_bytes": specified(MAX_DISCARD_BYTES, "no discard is made"),
            },
            "elevator": {
                "scheduler": assumed("noop", "usual for a guest's virtio disk", "noop", "deadline"),
                "fifo_batch": specified(16, "mechanisms.md 1.4 [V 3.10]"),
            },
            "nr_requests": specified(128, "mechanisms.md 1.6 [V 3.10]"),
            "driver_depth": assumed(128, "virtio-blk's ring with indirect descriptors", 32, 256),
        },
        "device": {
            "kind": specified("raid0", "report P13: 2xSSD in RAID0"),
            "chunk": assumed(512 * KIB, "md's default", 64 * KIB, 512 * KIB),
            "members": [SATA_SSD_2013, SATA_SSD_2013],
        },
    }
)

_MKFS: Final = "mkfs.xfs 3.2 defaults for 500 TB with metadata CRCs [R]"
_LOG_ITEM: Final = "struct xfs_inode_log_format and xfs_icdinode of 3.11 with op headers [R]"

P13_XFS: Final = XfsSpec.model_validate(
    {
        "kind": specified("xfs", "report P13"),
        "size": specified(500 * 10**12, "report P13: 500TB sparse"),
        "agcount": specified(500, f"{_MKFS}: groups of 1 TB"),
        "inode_bytes": specified(512, f"{_MKFS}: CRCs need 512 B"),
        "cluster_bytes": specified(16 * KIB, "fs/xfs of 3.11: 8 KiB scaled by inode size; 16 KiB bios are measured, C"),
        "dirent_bytes": specified(72, "56 B in the data block for 40 characters, 8 B in the leaf, headers"),
        "inode_log_bytes": specified(256, f"{_LOG_ITEM}: 56 + 176 + 2 x 12 B"),
        "extent_log_bytes": specified(28, f"{_LOG_ITEM}: one extent and its header"),
        "dirent_log_bytes": specified(76, "the name's 128 B regions, logged once per checkpoint, and its leaf entry"),
        "log": {
            "size": specified(2038 * MIB, f"{_MKFS}: the largest log"),
            "iclog_bytes": assumed(
                256 * KIB,
                "logbsize; the report names no mount options, its author's mount line for the scratch disk in report"
                " N10 has logbsize=262144. The default is 32 KiB",
                32 * KIB,
                256 * KIB,
            ),
            "iclogs": specified(8, "mount default (logbufs)"),
            "record_header": specified(512, "struct xlog_rec_header"),
            "checkpoint_bytes": specified(2038 * MIB // 8, "fs/xfs/xfs_log_priv.h of 3.11: XLOG_CIL_SPACE_LIMIT [R]"),
            "ail_pause": specified(50 * MS, "fs/xfs/xfs_trans_ail.c of 3.11: tout after a whole pass [R]"),
            "sync_interval": specified(30 * S, "fs.xfs.xfssyncd_centisecs 3000; xfs_log_worker"),
        },
    }
)
FS_MARK_PROGRAM: Final[dict[str, Any]] = {
    "app_user_time": measured(3_600, f"{_FS_MARK}: user time per file"),
    "app_system_time": measured(1_400, f"{_FS_MARK}: app overhead less user time (mkdir of what exists, the clock)"),
    "fork_time": assumed(150 * US, "fork and exit of a small process", 50 * US, 500 * US),
    "start_time": assumed(500 * US, "open the log, statfs, mkdir", 100 * US, 2 * MS),
    "report_time": assumed(
        1 * MS, f"{_FS_MARK}: fork, start and report together take about 2 ms an iteration", 500 * US, 2 * MS
    ),
}
"""What fs_mark itself costs on the reference machine."""

FIO_PROGRAM: Final[dict[str, Any]] = {
    "app_time": measured(750, "docs/measurements.md D: user time per write"),
    "fork_time": assumed(150 * US, "as fs_mark's: fork and exit of a small process", 50 * US, 500 * US),
}
"""What fio itself costs on the reference machine."""

DD_PROGRAM: Final[dict[str, Any]] = {
    "zero_page_time": assumed(500, "clearing 4 KiB that are not in the cache: 8 GB/s", 250, 1_000),
    "fork_time": assumed(1 * MS, "a shell forks and starts dd in the background", 500 * US, 5 * MS),
}
"""What dd itself costs on the reference machine."""
