"""The machines of the reports and of our own measurements, by name."""

from __future__ import annotations

from typing import Any, Final

from models.block.spec import MAX_DISCARD_BYTES
from models.catalogue.devices import BM1743, PM9A3, SATA_DISK_2010, SATA_SSD_2013
from models.catalogue.paths import REFERENCE_PATHS
from models.scenario import MachineSpec
from sim.param import Given, assumed, calibrated, measured, specified
from sim.units import GIB, KIB, MIB, US

_EXTENTS: Final = "docs/measurements.md D"
_CALIBRATE_P13: Final = "wbsim calibrate P13"
_CALIBRATE_N10: Final = "wbsim calibrate N10"
_LINE_OWN: Final = assumed(20, "mechanisms.md 7.2, 7.5: an atomic operation on a line of one's own", 10, 40)
_LINE_FROM_FAR: Final = assumed(
    200, "mechanisms.md 7.2, 7.5: a line from another socket, 0.10-0.25 us; not fitted", 100, 300
)
_NO_DISCARD: Final = specified(MAX_DISCARD_BYTES, "no discard is made")

P13_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "p13-vm",
        "processors": {
            "count": specified(16, "report P13: 16p"),
            "writer_scale": calibrated(2.14, _CALIBRATE_P13, ("P13-sys-u",)),
            "flusher_scale": calibrated(
                1.57, _CALIBRATE_P13, ("P13-wall-u", "P13-rate-u", "P13-iops-u", "P13-bw-u", "P13-wall-p")
            ),
            "exit_time": calibrated(
                11_000, _CALIBRATE_P13, ("P13-wall-u", "P13-rate-u", "P13-iops-u", "P13-bw-u", "P13-wall-p")
            ),
            "cv": assumed(0.3, "path times vary with cache misses and interrupts", 0.1, 1.0),
            "nodes": assumed(1, "the report names none", 1, 4),
            "line_own": _LINE_OWN,
            "line_time": assumed(
                100, "mechanisms.md 7.2: between 40-60 ns in and 130-200 ns across sockets", 40, 200
            ),
            "line_from_far": _LINE_FROM_FAR,
            "wake_time": assumed(5 * US, "mechanisms.md 7.1 [R]: 2-5 us, more in a guest", 2 * US, 20 * US),
            "paths": REFERENCE_PATHS,
        },
        "memory": {
            "memory": specified(16 * GIB, "report P13: 16GB RAM"),
            "kernel_reserve": assumed(
                400 * MIB, "text, page structs (1/64 of memory), reserves", 256 * MIB, 1024 * MIB
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
                    "wbt": specified(True, "wbt_lat_usec is not 0 by default; only from 4.10 on"),
                    "interrupts": assumed(
                        "any", "one hardware queue, whose interrupt irqbalance moves", "any", "submitter"
                    ),
                    "write_cache": specified("write back", "virtio-blk's default; 3.11 does not ask"),
                },
                "device": {
                    "kind": specified("raid0", "report P13: 2xSSD in RAID0"),
                    "chunk": assumed(512 * KIB, "md's default", 64 * KIB, 512 * KIB),
                    "members": [SATA_SSD_2013, SATA_SSD_2013],
                },
            },
        },
    }
)


def with_map_time(costs: dict[str, Any], map_ns: Given) -> dict[str, Any]:
    """The *costs* of all filesystems, with another time of XFS's for an allocation."""
    xfs = costs["xfs"]
    return {**costs, "xfs": {**xfs, "flusher": {**xfs["flusher"], "map_ns": map_ns}}}


_LOOP_MAP: Final = measured(
    21_450, f"{_EXTENTS}: 24 us a page and 31 a run, less the other paths and half a conversion"
)

LOOP_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "loop-vm",
        "processors": {
            "count": measured(2, "nproc"),
            "writer_scale": specified(1, "the reference machine itself"),
            "flusher_scale": specified(1, "the reference machine itself"),
            "exit_time": specified(0, "a loop device on tmpfs: no request leaves the guest"),
            "cv": assumed(0.3, "path times vary with cache misses and interrupts", 0.1, 1.0),
            "nodes": measured(1, "/sys/devices/system/node"),
            "line_own": _LINE_OWN,
            "line_time": assumed(60, "mechanisms.md 7.2: one socket", 40, 100),
            "line_from_far": _LINE_FROM_FAR,
            "wake_time": assumed(5 * US, "mechanisms.md 7.1 [R]: 2-5 us, more in a guest", 2 * US, 20 * US),
            "paths": {
                **REFERENCE_PATHS,
                "write": {
                    **REFERENCE_PATHS["write"],
                    "call_ns": measured(4_250, f"{_EXTENTS}: fio's 6.6 us a write; its split is a guess"),
                    "page_ns": measured(1_600, f"{_EXTENTS}: fio's 6.6 us a write; its split is a guess"),
                },
                "filesystems": with_map_time(REFERENCE_PATHS["filesystems"], _LOOP_MAP),
            },
        },
        "memory": {
            "memory": measured(24 * GIB, "/proc/meminfo"),
            "kernel_reserve": assumed(400 * MIB, "text, page structs, reserves", 256 * MIB, 1024 * MIB),
            "inode_slab_bytes": assumed(1_700, "xfs_inode, dentry and buffers", 1_300, 2_200),
        },
        "disks": {
            "loop0": {
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
                    "wbt": specified(True, "wbt_lat_usec is not 0 by default; only from 4.10 on"),
                    "interrupts": specified("any", "a loop device has none"),
                    "write_cache": measured("write back", "/sys/block/loop0/queue/write_cache"),
                },
                "device": {"kind": specified("null", "tmpfs: the copy is in the flusher's measured time")},
            },
        },
    }
)
"""The machine of the measurements: a small guest, with a loop device on tmpfs."""

_DESK: Final = "docs/measurements.md H"
_SUBMISSION: Final = (
    "a loop device's submission was not measured apart: docs/measurements.md B, loop and virtio"
)
_REFERENCE: Final = REFERENCE_PATHS["filesystems"]
DESK_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "desk-vm",
        "processors": {
            **LOOP_MACHINE.processors.inputs(),
            "paths": {
                **REFERENCE_PATHS,
                "write": {
                    **REFERENCE_PATHS["write"],
                    "call_ns": measured(2_900, f"{_DESK}: dd with calls of 4 KiB to 1 MiB"),
                    "page_ns": measured(330, f"{_DESK}: dd with calls of 4 KiB to 1 MiB"),
                    "close_ns": assumed(
                        1_500,
                        f"{_DESK}: between ext4's close and what fs_mark's total leaves on XFS",
                        900,
                        2_200,
                    ),
                },
                "filesystems": {
                    "xfs": {
                        "writer": {
                            **_REFERENCE["xfs"]["writer"],
                            "create_ns": measured(19_500, f"{_DESK}: creat"),
                        },
                        "flusher": {
                            **_REFERENCE["xfs"]["flusher"],
                            "map_ns": measured(
                                10_200, f"{_DESK}: a small file's 11.4 us, less its page and list"
                            ),
                            "page_ns": measured(2, f"{_DESK}: a page of a dd with calls of 1 MiB"),
                            "folio_ns": measured(620, f"{_DESK}: a page of a sequential file of 4 KiB calls"),
                            "ioend_ns": measured(3_600, f"{_DESK}: conversion of a small file"),
                            "tree_map_ns": measured(29_000, f"{_DESK}: a page of a random file"),
                            "tree_ioend_ns": measured(12_000, f"{_DESK}: a page of a random file"),
                            "end_folio_ns": measured(350, f"{_DESK}: conversion of a sequential file"),
                            "rmap_ns": measured(
                                28_000, "docs/measurements.md J: what rmapbt=1 adds to a transaction"
                            ),
                            "log": {
                                **_REFERENCE["xfs"]["flusher"]["log"],
                                "record_ns": measured(
                                    50_000, f"{_DESK}: pushing and writing the log, a record"
                                ),
                            },
                        },
                    },
                    "ext4": {
                        "writer": {
                            **_REFERENCE["ext4"]["writer"],
                            "create_ns": measured(15_500, f"{_DESK}: creat"),
                        },
                        "flusher": {
                            **_REFERENCE["ext4"]["flusher"],
                            "map_ns": measured(
                                8_400, f"{_DESK}: a small file's 9.6 us, less its page and list"
                            ),
                            "page_ns": measured(2, f"{_DESK}: a page of a dd with calls of 1 MiB"),
                            "folio_ns": measured(620, f"{_DESK}: a page of a sequential file of 4 KiB calls"),
                            "ioend_ns": measured(3_300, f"{_DESK}: conversion of a small file"),
                            "end_folio_ns": measured(500, f"{_DESK}: conversion of a sequential file"),
                        },
                    },
                },
                "block": {
                    **REFERENCE_PATHS["block"],
                    "insert_ns": assumed(100, _SUBMISSION, 10, 440),
                    "request_ns": assumed(500, _SUBMISSION, 100, 1_130),
                    "dispatch_ns": assumed(300, _SUBMISSION, 30, 790),
                    "complete_ns": specified(0, "a loop device has no interrupts"),
                },
            },
        },
        "memory": LOOP_MACHINE.memory.inputs(),
        "disks": {
            "loop0": {
                "queue": LOOP_MACHINE.disks["loop0"].queue.inputs(),
                "device": {
                    "kind": specified("loop", "drivers/block/loop.c"),
                    "command_time": measured(2_500, f"{_DESK}: a direct write of 4 KiB, less its page"),
                    "page_time": measured(1_350, f"{_DESK}: what the worker takes for a page of a file"),
                },
            },
        },
    }
)
"""The machine that every number of can be measured: a guest with two processors and a loop device, whose
worker copies into tmpfs.
"""

N10_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "n10-vm",
        "processors": {
            **P13_MACHINE.processors.inputs(),
            "count": assumed(8, "the author's test machine was an 8-processor VM (mechanisms.md 2.5)", 4, 16),
            "writer_scale": calibrated(3.68, _CALIBRATE_N10, ("N10-one-bw",)),
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
        "disks": {
            "vdb": {
                "queue": P13_MACHINE.disks["vdb"].queue.inputs(),
                "device": {
                    "kind": specified("write_cache", "a controller in front of the array"),
                    "size": assumed(
                        512 * MIB, "what controllers with a battery had then", 256 * MIB, 1024 * MIB
                    ),
                    "link": calibrated(487_000_000, _CALIBRATE_N10, ("N10-two-same-bw",)),
                    "command_time": assumed(0, "part of the link's rate", 0, 50 * US),
                    "piece": specified(512 * KIB, "the array's chunk"),
                    "depth": assumed(24, "two writes for each disk", 12, 64),
                    "behind": {
                        "kind": specified("raid0", "report N10: 12 disk RAID0"),
                        "chunk": assumed(512 * KIB, "a usual chunk for twelve disks", 64 * KIB, 1024 * KIB),
                        "members": [SATA_DISK_2010] * 12,
                    },
                },
            },
        },
    }
)
"""Report N10: a guest on a host with twelve disks behind a controller.  One dd alone is bound by its
processor, two are by the way to the array, which itself gives 1.5 GB/s.
"""

_W25_SCALE: Final = calibrated(0.388, "wbsim calibrate W25", ("W25-A-pm-u", "W25-B-pm-u"))

W25_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "w25-server",
        "processors": {
            **LOOP_MACHINE.processors.inputs(),
            "count": specified(128, "mechanisms.md 6.5 [S]: 128 CPUs"),
            "nodes": assumed(2, "two sockets; the report names none", 1, 8),
            "writer_scale": _W25_SCALE,  # one processor: how many times faster than the desk's in all it does
            "flusher_scale": _W25_SCALE,
            "paths": {
                **LOOP_MACHINE.processors.paths.inputs(),
                "filesystems": DESK_MACHINE.processors.paths.inputs()["filesystems"],
            },
        },
        "memory": {
            "memory": specified(128 * GIB, "mechanisms.md 6.5 [S]: 128 GiB RAM"),
            "kernel_reserve": assumed(3 * GIB, "page structs of 1/64 of memory, and 1 GiB", 2 * GIB, 6 * GIB),
            "inode_slab_bytes": assumed(1_700, "xfs_inode, dentry and buffers", 1_300, 2_200),
        },
        "disks": {
            "nvme0n1": {
                "queue": {
                    **LOOP_MACHINE.disks["loop0"].queue.inputs(),
                    "limits": {
                        "max_sectors_bytes": assumed(
                            2 * MIB, "mechanisms.md 1.5: min(MDTS, 8 MiB)", 128 * KIB, 8 * MIB
                        ),
                        "max_segments": specified(256, "mechanisms.md 1.5 [V 6.17]: 256 SGL descriptors"),
                        "max_segment_bytes": specified(64 * KIB, "mechanisms.md 1.5 [V]"),
                        "nomerges": specified(0, "the default"),
                        "max_discard_bytes": _NO_DISCARD,
                    },
                    "nr_requests": specified(1023, "mechanisms.md 8.2 [V 6.17]: 1024 less one"),
                    "driver_depth": specified(1023, "mechanisms.md 8.2 [V 6.17]: 1024 less one"),
                    "wbt": specified(True, "wbt_lat_usec is not 0 by default; only from 4.10 on"),
                    "interrupts": specified(
                        "submitter", "drivers/nvme/host/pci.c: a queue for each processor"
                    ),
                    "write_cache": assumed(
                        "write through", "its cache outlives a power failure", "write back", "write through"
                    ),
                },
                "device": PM9A3,
            },
        },
    }
)
"""Report W25: the server of mechanisms.md 6.5, with the PM9A3."""

W25_BM1743_MACHINE: Final = MachineSpec.model_validate(
    {
        **W25_MACHINE.inputs(),
        "name": "w25-server-bm1743",
        "disks": {"nvme0n1": {"queue": W25_MACHINE.disks["nvme0n1"].queue.inputs(), "device": BM1743}},
    }
)
"""The same server with the drive of 16 KiB units."""

_V13_SCALE: Final = assumed(3.3, "to be calibrated", 1, 4)
_V13_PATHS: Final = DESK_MACHINE.processors.paths.inputs()
_INODES: Final = "docs/measurements.md L"
V13_MACHINE: Final = MachineSpec.model_validate(
    {
        **P13_MACHINE.inputs(),
        "name": "v13-vm",
        "processors": {
            **P13_MACHINE.processors.inputs(),
            "count": specified(16, "report V13: 16-way"),
            "nodes": specified(4, "report V13: a 4-node numa machine"),
            "writer_scale": _V13_SCALE,
            "flusher_scale": _V13_SCALE,
            "exit_time": assumed(11 * US, "as on the same author's machine in P13", 0, 50 * US),
            "paths": {
                **_V13_PATHS,
                "filesystems": {
                    "xfs": {
                        **_V13_PATHS["filesystems"]["xfs"],
                        "writer": {
                            **_V13_PATHS["filesystems"]["xfs"]["writer"],
                            "create_ns": measured(17_000, f"{_INODES}: creat"),
                        },
                    },
                    "ext4": {
                        **_V13_PATHS["filesystems"]["ext4"],
                        "writer": {
                            **_V13_PATHS["filesystems"]["ext4"]["writer"],
                            "create_ns": measured(19_500, f"{_INODES}: creat"),
                        },
                    },
                },
            },
        },
    }
)
"""Report V13: the machine of P13 a few weeks later, with NUMA nodes."""

MACHINES: Final = {
    machine.name: machine
    for machine in (
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
