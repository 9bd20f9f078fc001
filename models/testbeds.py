"""The machines and filesystems of the reports and of our own measurements, by name."""

from __future__ import annotations

from typing import Any, Final

from models.block.merge import MAX_DISCARD_BYTES
from models.filesystems.ext4 import Ext4Spec
from models.filesystems.xfs_extents import XfsExtentsSpec
from models.hardware import P13_MACHINE, P13_XFS, REFERENCE_PATHS
from models.machine import MachineSpec
from sim.param import Spec, assumed, calibrated, measured, specified
from sim.units import GIB, KIB, MIB, MS, PAGE_BYTES, US

_EXTENTS: Final = "docs/measurements.md D"
_EXT4: Final = "docs/measurements.md E"
_CALIBRATE: Final = "wbsim calibrate N10"
_NO_DISCARD: Final = specified(MAX_DISCARD_BYTES, "no discard is made")

LOOP_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "loop-vm",
        "processors": {
            "count": measured(2, "nproc"),
            "slice_time": assumed(3 * MS, "EEVDF's base slice on two processors", MS, 6 * MS),
            "writer_scale": specified(1, "the reference machine itself"),
            "flusher_scale": specified(1, "the reference machine itself"),
            "exit_time": specified(0, "a loop device on tmpfs: no request leaves the guest"),
            "cv": assumed(0.3, "path times vary with cache misses and interrupts", 0.1, 1.0),
            "line_time": assumed(60, "mechanisms.md 7.2: one socket", 40, 100),
            "line_from_far": specified(0, "queued spinlocks wait each on a line of its own"),
            "wake_time": assumed(5 * US, "mechanisms.md 7.1 [R]: 2-5 us, more in a guest", 2 * US, 20 * US),
            "paths": {
                **REFERENCE_PATHS,
                "write": {
                    **REFERENCE_PATHS["write"],
                    "call_ns": measured(4_250, f"{_EXTENTS}: fio's 6.6 us a write; its split is a guess"),
                    "page_ns": measured(1_600, f"{_EXTENTS}: fio's 6.6 us a write; its split is a guess"),
                },
                "flusher": {
                    **REFERENCE_PATHS["flusher"],
                    "map_ns": measured(
                        21_450, f"{_EXTENTS}: 24 us a page and 31 a run, less the other paths and half a conversion"
                    ),
                },
            },
        },
        "memory": {
            "memory": measured(24 * GIB, "/proc/meminfo"),
            "kernel_reserve": assumed(400 * MIB, "text, page structs, reserves", 256 * MIB, 1024 * MIB),
            "inode_slab_bytes": assumed(1_700, "xfs_inode, dentry and buffers", 1_300, 2_200),
        },
        "queue": {
            "limits": {
                "max_sectors_bytes": measured(1280 * KIB, "/sys/block/loop0/queue"),
                "max_segments": measured(128, "/sys/block/loop0/queue"),
                "max_segment_bytes": measured(64 * KIB, "/sys/block/loop0/queue"),
                "nomerges": measured(0, "/sys/block/loop0/queue"),
                "max_discard_bytes": _NO_DISCARD,
            },
            "elevator": {
                "scheduler": assumed("noop", "stands for none", "noop", "deadline"),
                "fifo_batch": specified(16, "mechanisms.md 1.4 [V 6.12]"),
            },
            "nr_requests": measured(128, "/sys/block/loop0/queue with none"),
            "driver_depth": specified(128, "drivers/block/loop.c: LOOP_DEFAULT_HW_Q_DEPTH"),
        },
        "device": {"kind": specified("null", "tmpfs: the copy is in the flusher's measured time")},
    }
)
"""The machine of the measurements: a small guest, with a loop device on tmpfs."""


_SATA_DISK_2010: Final[dict[str, Any]] = {
    "kind": specified("disk", "report N10: XFS on 12 disk RAID0"),
    "size": assumed(1000 * 10**9, "a SATA disk of 2009", 500 * 10**9, 2000 * 10**9),
    "outer": specified(125_000_000, "report N10: 1.5 GB/s of 12 disks [D]"),
    "inner": assumed(62_000_000, "half of the outer rate, as usual", 50_000_000, 80_000_000),
    "turn_time": specified(8_333_333, "7200 turns a minute"),
    "track_seek": assumed(1 * MS, "data sheets of 2009", 500 * US, 2 * MS),
    "full_seek": assumed(18 * MS, "data sheets of 2009", 12 * MS, 25 * MS),
    "cache": specified(64 * MIB, "report N10: 64-128 MB in SATA drives now"),
    "link": specified(300_000_000, "SATA 3 Gbit/s less 8b/10b"),
}

N10_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "n10-vm",
        "processors": {
            **P13_MACHINE.processors.inputs(),
            "count": assumed(8, "the author's test machine was an 8-processor VM (mechanisms.md 2.5)", 4, 16),
            "writer_scale": calibrated(3.69, _CALIBRATE, ("N10-one-bw",)),
            "exit_time": assumed(11 * US, "as on the same author's machine in P13", 0, 50 * US),
        },
        "memory": {
            "memory": assumed(
                4 * GIB,
                "mechanisms.md 6.4 [G]: read off the rows named",
                2 * GIB,
                8 * GIB,
                targets=("N10-two-same-extent", "N10-eight-extent"),
            ),
            "kernel_reserve": assumed(
                208 * MIB, "as in P13: 144 MiB and page structs of 1/64 of memory", 128 * MIB, 512 * MIB
            ),
            "inode_slab_bytes": assumed(1_700, "as in P13; a handful of inodes", 1_300, 2_200),
        },
        "queue": P13_MACHINE.queue.inputs(),
        "device": {
            "kind": specified("write_cache", "a controller in front of the array"),
            "size": assumed(512 * MIB, "what controllers with a battery had then", 256 * MIB, 1024 * MIB),
            "link": calibrated(487_000_000, _CALIBRATE, ("N10-two-same-bw",)),
            "command_time": assumed(0, "part of the link's rate", 0, 50 * US),
            "piece": specified(512 * KIB, "the array's chunk"),
            "depth": assumed(24, "two writes for each disk", 12, 64),
            "behind": {
                "kind": specified("raid0", "report N10: 12 disk RAID0"),
                "chunk": assumed(512 * KIB, "a usual chunk for twelve disks", 64 * KIB, 1024 * KIB),
                "members": [_SATA_DISK_2010] * 12,
            },
        },
    }
)
"""Report N10: a guest on a host with twelve disks behind a controller.  One dd alone is bound by its processor, two are
by the way to the array, which itself gives 1.5 GB/s.
"""

PM9A3: Final[dict[str, Any]] = {
    "kind": specified("ssd", "report W25: PM9A3"),
    "link": assumed(6_500_000_000, "PCIe 4 x4 [R]: about 7 GB/s", 5_000_000_000, 7_000_000_000),
    "command_time": assumed(
        1 * US, "mechanisms.md 8.1: 546 k writes/s of 4 KiB at QD 32, as measured in W25", 500, 2 * US
    ),
    "latency": assumed(12 * US, "an NVMe write into DRAM with power-loss protection", 8 * US, 20 * US),
    "cache": assumed(512 * MIB, "a part of the drive's DRAM", 64 * MIB, 2 * GIB),
    "units": assumed(128, "mechanisms.md 8.2 [G]: 64-128 planes", 64, 256),
    "flash_page": assumed(64 * KIB, "mechanisms.md 8.2 [R]: a superpage of several planes", 16 * KIB, 64 * KIB),
    "program_time": assumed(2_100 * US, "128 x 64 KiB in 2.1 ms is the data sheet's 4 GB/s", 1_500 * US, 4 * MS),
    "protected": specified(True, "data centre drive with power-loss protection"),
}

BM1743: Final[dict[str, Any]] = {
    **PM9A3,
    "kind": specified("ssd", "report W25: BM1743"),
    "flash_page": specified(16 * KIB, "mechanisms.md 8.1 [S]: 16 KiB units; programmed one by one here"),
    "units": assumed(256, "mechanisms.md 8.2 [R]: QLC, 2-3 ms a page, 2.0 GB/s in all", 128, 512),
    "program_time": assumed(2_180 * US, "256 x 16 KiB in 2.18 ms is the 117 k units/s measured in W25", MS, 3 * MS),
    "indirection_unit": specified(16 * KIB, "mechanisms.md 8.1 [S]: IU of 16 KiB"),
}

W25_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "w25-server",
        "processors": {
            **LOOP_MACHINE.processors.inputs(),
            "count": specified(128, "mechanisms.md 6.5 [S]: 128 CPUs"),
            "paths": {
                **LOOP_MACHINE.processors.paths.inputs(),
                "flusher": {
                    **LOOP_MACHINE.processors.paths.flusher.inputs(),
                    "map_ns": assumed(
                        10 * US,
                        "mechanisms.md 6.5: 14 us a run in all, read off the row named",
                        6 * US,
                        24 * US,
                        targets=("W25-A-pm-u",),
                    ),
                },
            },
        },
        "memory": {
            "memory": specified(128 * GIB, "mechanisms.md 6.5 [S]: 128 GiB RAM"),
            "kernel_reserve": assumed(3 * GIB, "page structs of 1/64 of memory, and 1 GiB", 2 * GIB, 6 * GIB),
            "inode_slab_bytes": assumed(1_700, "xfs_inode, dentry and buffers", 1_300, 2_200),
        },
        "queue": {
            **LOOP_MACHINE.queue.inputs(),
            "limits": {
                "max_sectors_bytes": assumed(2 * MIB, "mechanisms.md 1.5: min(MDTS, 8 MiB)", 128 * KIB, 8 * MIB),
                "max_segments": specified(256, "mechanisms.md 1.5 [V 6.17]: 256 SGL descriptors"),
                "max_segment_bytes": specified(64 * KIB, "mechanisms.md 1.5 [V]"),
                "nomerges": specified(0, "the default"),
                "max_discard_bytes": _NO_DISCARD,
            },
            "nr_requests": specified(1023, "mechanisms.md 8.2 [V 6.17]: 1024 less one"),
            "driver_depth": specified(1023, "mechanisms.md 8.2 [V 6.17]: 1024 less one"),
        },
        "device": PM9A3,
    }
)
"""Report W25: the server of mechanisms.md 6.5, with the PM9A3."""

W25_BM1743_MACHINE: Final = MachineSpec.model_validate(
    {**W25_MACHINE.inputs(), "name": "w25-server-bm1743", "device": BM1743}
)
"""The same server with the drive of 16 KiB units."""

MACHINES: Final = {
    machine.name: machine for machine in (P13_MACHINE, N10_MACHINE, W25_MACHINE, W25_BM1743_MACHINE, LOOP_MACHINE)
}
"""The machines that a configuration can name."""

N10_XFS: Final = XfsExtentsSpec.model_validate(
    {
        "kind": specified("xfs_extents", "report N10"),
        "size": assumed(
            10 * GIB, "four groups, mkfs's default, of the 2.5 GiB that the report's offsets show", 10 * GIB, 40 * GIB
        ),
        "agcount": assumed(4, "mkfs.xfs of 2010 without a stripe: four groups", 4, 16),
        "group_head": specified(48 * KIB, "report N10: the first file starts at sector 96"),
    }
)
W25_XFS: Final = XfsExtentsSpec.model_validate(
    {
        "kind": specified("xfs_extents", "report W25"),
        "size": specified(128 * 117_188_604 * 4096, "mechanisms.md 6.5 [S]: the mkfs output of the thread"),
        "stripe_unit": specified(16 * KIB, "mechanisms.md 6.5 [S]: sunit of 4 blocks"),
        "agcount": specified(128, "mechanisms.md 6.5 [S]"),
        "group_head": assumed(64 * KIB, "headers and the first inodes", 48 * KIB, 512 * KIB),
    }
)
LOOP_XFS: Final = XfsExtentsSpec.model_validate(
    {
        "kind": specified("xfs_extents", _EXTENTS),
        "size": measured(12 * GIB, _EXTENTS),
        "agcount": measured(4, _EXTENTS),
        "group_head": assumed(64 * KIB, "headers and the first inodes", 48 * KIB, 512 * KIB),
    }
)
LOOP_EXT4: Final = Ext4Spec.model_validate(
    {
        "kind": specified("ext4", _EXT4),
        "size": measured(12 * GIB, _EXT4),
        "flex_groups": measured(16, f"{_EXT4}: dumpe2fs"),
        "descriptors": measured(1026 * PAGE_BYTES, f"{_EXT4}: dumpe2fs; 2 blocks and 1024 reserved"),
        "journal": measured(64 * MIB, f"{_EXT4}: dumpe2fs"),
    }
)
FILESYSTEMS: Final[dict[str, Spec]] = {
    "p13-xfs": P13_XFS,
    "n10-xfs": N10_XFS,
    "w25-xfs": W25_XFS,
    "loop-xfs": LOOP_XFS,
    "loop-ext4": LOOP_EXT4,
}
"""The filesystems that a configuration can name."""
