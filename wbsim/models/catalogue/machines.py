"""The machines of the reports, and all machines by name."""

from __future__ import annotations

from typing import Final

from wbsim.models.block.spec import MAX_DISCARD_BYTES
from wbsim.models.catalogue.data_files import part_in
from wbsim.models.catalogue.desks import DESK_MACHINE, LOOP_MACHINE, as_fitted
from wbsim.models.catalogue.paths import LINE_FROM_FAR, LINE_OWN, REFERENCE_PATHS, WAKER_TIME
from wbsim.models.catalogue.queues import NO_DISCARD
from wbsim.models.scenario import MachineSpec
from wbsim.sim.param import Inputs, assumed, calibrated, measured, specified
from wbsim.sim.units import GIB, KIB, MIB, US

_SCHEDULERS: Final = "docs/kernel/schedulers.md#which-scheduler-a-disk-gets"
_TAGS: Final = "docs/kernel/schedulers.md#tags"
_LOCK_COSTS: Final = "docs/kernel/locks.md#what-a-lock-costs"
_LOCKS: Final = "docs/kernel/locks.md#kinds-of-locks"
_LIMITS: Final = "docs/kernel/merging.md#limits-of-a-request"
_DEADLINE: Final = "docs/kernel/schedulers.md#deadline-and-mq-deadline"
_POOL: Final = "docs/kernel/schedulers.md#the-pool-of-requests"
_COUNTS: Final = "docs/kernel/writeback.md#nr_to_write"
_N10: Final = "docs/kernel/xfs.md#what-report-n10-implies"
_W25: Final = "docs/kernel/xfs.md#what-report-w25-implies"

_CALIBRATE_P13: Final = "wbsim calibrate P13"
_CALIBRATE_N10: Final = "wbsim calibrate N10"
_CALIBRATE_V13: Final = "wbsim calibrate V13"
_CIL_ITEM: Final = calibrated(209, _CALIBRATE_V13, ("V13-xfs-unlink-u",))
"""The hold time of xc_cil_lock per item on the reference machine (ns), with the kernels of P13 and V13."""
_XFS: Final[Inputs] = REFERENCE_PATHS["filesystems"]["xfs"]


def _device(drive: str) -> Inputs:
    """Return the device of the *drive* of data/drives."""
    device: Inputs = part_in("drives", drive)["device"]
    return device


P13_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "p13-vm",
        "processors": {
            "count": specified(16, "report P13: 16p"),
            "writer_scale": calibrated(2.06, _CALIBRATE_P13, ("P13-sys-u",)),
            "flusher_scale": calibrated(
                1.46, _CALIBRATE_P13, ("P13-wall-u", "P13-rate-u", "P13-iops-u", "P13-bw-u", "P13-wall-p")
            ),
            "exit_time": calibrated(
                11_100, _CALIBRATE_P13, ("P13-wall-u", "P13-rate-u", "P13-iops-u", "P13-bw-u", "P13-wall-p")
            ),
            "cv": assumed(0.3, "path times vary with cache misses and interrupts", 0.1, 1.0),
            "nodes": assumed(1, "the report does not name the nodes", 1, 4),
            "line_own": LINE_OWN,
            "line_time": assumed(
                100, f"{_LOCK_COSTS}: 40-60 ns within and 130-200 ns across sockets", 40, 200
            ),
            "line_from_far": LINE_FROM_FAR,
            "wake_time": assumed(5 * US, f"{_LOCKS} [R]: 2-5 us, more in a guest", 2 * US, 20 * US),
            "waker_time": WAKER_TIME,
            "paths": {
                **REFERENCE_PATHS,
                "filesystems": {
                    **REFERENCE_PATHS["filesystems"],
                    "xfs": {
                        **_XFS,
                        "flusher": {
                            **_XFS["flusher"],
                            "log": {**_XFS["flusher"]["log"], "item_ns": _CIL_ITEM},
                        },
                    },
                },
            },
        },
        "memory": {
            "memory": specified(16 * GIB, "report P13: 16GB RAM"),
            "kernel_reserve": assumed(
                400 * MIB, "kernel text, page structs (1/64 of memory), reserves", 256 * MIB, 1024 * MIB
            ),
            "inode_slab_bytes": assumed(
                1_700,
                "xfs_inode 960 B, dentry 192 B, log item 200 B, 1/32 of a cluster buffer, slack",
                1_300,
                2_200,
            ),
        },
        "disks": {
            "vdb": {
                "queue": {
                    "limits": {
                        "max_sectors_bytes": specified(512 * KIB, f"{_LIMITS} [V 3.10]"),
                        "max_segments": specified(126, f"{_LIMITS} [R]: virtio-blk's seg_max"),
                        "max_segment_bytes": specified(64 * KIB, f"{_LIMITS} [V]"),
                        "nomerges": specified(0, "the kernel's default"),
                        "max_discard_bytes": specified(MAX_DISCARD_BYTES, "the model issues no discards"),
                    },
                    "elevator": {
                        "scheduler": assumed("noop", "usual for virtio disks of guests", "noop", "deadline"),
                        "fifo_batch": specified(16, f"{_DEADLINE} [V 3.10]"),
                    },
                    "nr_requests": specified(128, f"{_POOL} [V 3.10]"),
                    "driver_depth": assumed(128, "ring of virtio-blk, indirect descriptors", 32, 256),
                    "wbt": specified(True, "wbt_lat_usec is not 0 by default, from 4.10 on"),
                    "interrupts": assumed(
                        "any", "one hardware queue, whose interrupt irqbalance moves", "any", "submitter"
                    ),
                    "write_cache": specified("write back", "the default of virtio-blk; 3.11 does not use it"),
                },
                "device": {
                    "kind": specified("raid0", "report P13: 2xSSD in RAID0"),
                    "chunk": assumed(512 * KIB, "the default of md", 64 * KIB, 512 * KIB),
                    "members": [_device("p13-ssd")] * 2,
                },
            },
        },
    }
)

N10_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "n10-vm",
        "processors": {
            **P13_MACHINE.processors.inputs(),
            "count": assumed(8, f"the author's test machine was an 8-processor VM ({_COUNTS})", 4, 16),
            "writer_scale": calibrated(3.68, _CALIBRATE_N10, ("N10-one-bw",)),
            "exit_time": assumed(11 * US, "as on the machine of P13, by the same author", 0, 50 * US),
        },
        "memory": {
            "memory": assumed(
                4 * GIB,
                f"{_N10} [G]: derived from the rows that are its targets",
                2 * GIB,
                8 * GIB,
                targets=("N10-two-same-extent", "N10-eight-extent"),
            ),
            "kernel_reserve": assumed(
                208 * MIB, "as in P13: 144 MiB and page structs of 1/64 of memory", 128 * MIB, 512 * MIB
            ),
            "inode_slab_bytes": assumed(1_700, "as in P13; the run has few inodes", 1_300, 2_200),
        },
        "disks": {
            "vdb": {
                "queue": P13_MACHINE.disks["vdb"].queue.inputs(),
                "device": {
                    "kind": specified("write_cache", "a controller in front of the array"),
                    "size": assumed(512 * MIB, "usual for controllers with a battery", 256 * MIB, 1024 * MIB),
                    "link": calibrated(487_000_000, _CALIBRATE_N10, ("N10-two-same-bw",)),
                    "command_time": assumed(0, "included in the rate of the link", 0, 50 * US),
                    "piece": specified(512 * KIB, "the array's chunk"),
                    "depth": assumed(24, "two writes for each disk", 12, 64),
                    "behind": {
                        "kind": specified("raid0", "report N10: 12 disk RAID0"),
                        "chunk": assumed(512 * KIB, "a usual chunk for twelve disks", 64 * KIB, 1024 * KIB),
                        "members": [_device("sata-disk")] * 12,
                    },
                },
            },
        },
    }
)
"""Report N10: a guest on a host with twelve disks behind a controller.

A single dd is limited by its processor, two dds by the path to the array.  The array itself gives 1.5 GB/s.
"""

_CALIBRATE_W25: Final = "wbsim calibrate W25"
_AS_THE_DESK: Final = (
    "as on the desk, a guest on a server of these years; the catalogue has 0.8 to 1.3 for 2018 to 2024"
)
W25_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "w25-server",
        "processors": {
            **LOOP_MACHINE.processors.inputs(),
            "count": specified(128, f"{_W25} [S]: 128 CPUs"),
            "nodes": assumed(2, "two sockets; the report does not name them", 1, 8),
            "writer_scale": assumed(1.0, _AS_THE_DESK, 0.6, 1.8),
            "flusher_scale": assumed(1.0, _AS_THE_DESK, 0.6, 1.8),
            "transaction_scale": calibrated(0.293, _CALIBRATE_W25, ("W25-A-pm-u", "W25-B-pm-u")),
            "paths": {
                **LOOP_MACHINE.processors.paths.inputs(),
                "write": DESK_MACHINE.processors.paths.inputs()["write"],
                "filesystems": as_fitted(DESK_MACHINE.processors.paths.inputs()["filesystems"]),
            },
        },
        "memory": {
            "memory": specified(128 * GIB, f"{_W25} [S]: 128 GiB RAM"),
            "kernel_reserve": assumed(3 * GIB, "page structs of 1/64 of memory, and 1 GiB", 2 * GIB, 6 * GIB),
            "inode_slab_bytes": assumed(1_700, "xfs_inode, dentry and buffers", 1_300, 2_200),
        },
        "disks": {
            "nvme0n1": {
                "queue": {
                    **LOOP_MACHINE.disks["loop0"].queue.inputs(),
                    "limits": {
                        "max_sectors_bytes": assumed(
                            2 * MIB, f"{_LIMITS}: min(MDTS, 8 MiB)", 128 * KIB, 8 * MIB
                        ),
                        "max_segments": specified(256, f"{_LIMITS} [V 6.17]: 256 SGL descriptors"),
                        "max_segment_bytes": specified(64 * KIB, f"{_LIMITS} [V]"),
                        "nomerges": specified(0, "the kernel's default"),
                        "max_discard_bytes": NO_DISCARD,
                    },
                    "nr_requests": specified(1023, f"{_TAGS} [V 6.17]: 1024 minus one"),
                    "driver_depth": specified(1023, f"{_TAGS} [V 6.17]: 1024 minus one"),
                    "wbt": specified(True, "wbt_lat_usec is not 0 by default, from 4.10 on"),
                    "interrupts": specified(
                        "submitter", "drivers/nvme/host/pci.c: a queue for each processor"
                    ),
                    "write_cache": assumed(
                        "write through",
                        "the drive's cache survives a power failure",
                        "write back",
                        "write through",
                    ),
                },
                "device": _device("pm9a3"),
            },
        },
    }
)
"""Report W25: the server, with the PM9A3 (docs/kernel/xfs.md#what-report-w25-implies)."""

W25_BM1743_MACHINE: Final = MachineSpec.model_validate(
    {
        **W25_MACHINE.inputs(),
        "name": "w25-server-bm1743",
        "disks": {
            "nvme0n1": {"queue": W25_MACHINE.disks["nvme0n1"].queue.inputs(), "device": _device("bm1743")}
        },
    }
)
"""Report W25: the server with the drive of 16 KiB units."""

_V13_SCALE: Final = calibrated(2.67, _CALIBRATE_V13, ("V13-xfs-create-u",))
_V13_PATHS: Final = DESK_MACHINE.processors.paths.inputs()
_V13_FILESYSTEMS: Final = as_fitted(_V13_PATHS["filesystems"])
_V13_XFS: Final = _V13_FILESYSTEMS["xfs"]
_V13_EXT4: Final = _V13_FILESYSTEMS["ext4"]
_INODES: Final = "docs/measurements.md L"


V13_MACHINE: Final = MachineSpec.model_validate(
    {
        **P13_MACHINE.inputs(),
        "name": "v13-vm",
        "processors": {
            **P13_MACHINE.processors.inputs(),
            "count": specified(16, "report V13: 16-way"),
            "nodes": specified(4, "report V13: a 4-node numa machine"),
            "writer_scale": _V13_SCALE,  # one factor for its age
            "flusher_scale": _V13_SCALE,
            "exit_time": assumed(11 * US, "as on the machine of P13, by the same author", 0, 50 * US),
            "paths": {
                **_V13_PATHS,
                "inodes": {
                    **_V13_PATHS["inodes"],
                    "visit_ns": calibrated(65, _CALIBRATE_V13, ("V13-cleansync-total-u",)),
                    "chain_ns": calibrated(85, _CALIBRATE_V13, ("V13-ext4-lookup-u",)),
                },
                "filesystems": {
                    "xfs": {
                        "writer": {
                            **_V13_XFS["writer"],
                            "create_ns": measured(17_000, f"{_INODES}: creat"),
                        },
                        "flusher": {
                            **_V13_XFS["flusher"],
                            "log": {
                                **_V13_XFS["flusher"]["log"],
                                "item_ns": _CIL_ITEM,
                            },
                        },
                    },
                    "ext4": {
                        **_V13_EXT4,
                        "writer": {
                            **_V13_EXT4["writer"],
                            "create_ns": measured(19_500, f"{_INODES}: creat"),
                        },
                    },
                },
            },
        },
    }
)
"""Report V13: the machine of P13 a few weeks later, with NUMA nodes."""

_J09_SCALE: Final = assumed(1.5, "a server of 2009, relative to the reference machine", 1, 3)

J09_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "j09-server",
        "processors": {
            **LOOP_MACHINE.processors.inputs(),
            "count": assumed(8, "two sockets of 2009; the report does not name them", 2, 16),
            "writer_scale": _J09_SCALE,
            "flusher_scale": _J09_SCALE,
            "exit_time": specified(0, "bare metal, no exits to a hypervisor"),
            "paths": REFERENCE_PATHS,
        },
        "memory": {
            **LOOP_MACHINE.memory.inputs(),
            "memory": assumed(4 * GIB, "the report does not name the size", 1 * GIB, 8 * GIB),
            "kernel_reserve": assumed(
                192 * MIB, "about as in P13, for 4 GiB of memory", 128 * MIB, 512 * MIB
            ),
        },
        "disks": {
            "sda": {
                "queue": {
                    **P13_MACHINE.disks["vdb"].queue.inputs(),
                    "limits": {
                        **P13_MACHINE.disks["vdb"].queue.limits.inputs(),
                        "max_segments": specified(168, f"{_LIMITS} [V 2.6.29]: AHCI"),
                    },
                    "elevator": {
                        "scheduler": assumed("cfq", f"{_SCHEDULERS} [R]", "cfq", "deadline"),
                        "fifo_batch": specified(16, f"{_DEADLINE}"),
                    },
                    "driver_depth": specified(31, f"{_LIMITS} [V 2.6.29]: NCQ"),
                    "interrupts": assumed("any", "one vector, moved by irqbalance", "any", "submitter"),
                },
                "device": _device("x25-e"),
            },
        },
    }
)
"""Report J09: an X25-E in a server that the report does not describe."""

MACHINES: Final = {
    machine.name: machine
    for machine in (
        J09_MACHINE,
        P13_MACHINE,
        V13_MACHINE,
        N10_MACHINE,
        W25_MACHINE,
        W25_BM1743_MACHINE,
        LOOP_MACHINE,
        DESK_MACHINE,
    )
}
"""The machines that a configuration can name."""
PURPOSES: Final = {
    "j09-server": "report J09: an X25-E in a server of 2009",
    "p13-vm": "report P13: fs_mark on two SSDs in a guest",
    "v13-vm": "report V13: inode locks and sync on four nodes",
    "n10-vm": "report N10: dd on twelve disks behind a controller",
    "w25-server": "report W25: many flushers, 128 processors",
    "w25-server-bm1743": "report W25: the drive with units of 16 KiB",
    "loop-vm": "our first measurements: a null device",
    "desk-vm": "our measurements of 6.18; machine files start from this machine",
}
"""The purposes of machines, by name."""
