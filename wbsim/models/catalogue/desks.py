"""The machines of our own measurements: small guests with loop devices."""

from __future__ import annotations

from typing import Final

from wbsim.models.catalogue.paths import LINE_FROM_FAR, LINE_OWN, REFERENCE_PATHS, WAKER_TIME
from wbsim.models.catalogue.queues import NO_DISCARD
from wbsim.models.scenario import MachineSpec
from wbsim.sim.param import Given, Inputs, assumed, measured, specified
from wbsim.sim.units import GIB, KIB, MIB, US

_LOCK_COSTS: Final = "docs/kernel/locks.md#what-a-lock-costs"
_LOCKS: Final = "docs/kernel/locks.md#kinds-of-locks"
_DEADLINE: Final = "docs/kernel/schedulers.md#deadline-and-mq-deadline"

_EXTENTS: Final = "docs/measurements.md D"


def as_fitted(filesystems: Inputs) -> Inputs:
    """Return *filesystems* with the reference values of system calls' costs that are newer than the fits.

    The costs of writeback stay.
    """
    xfs, ext4 = filesystems["xfs"], filesystems["ext4"]
    reference = REFERENCE_PATHS["filesystems"]
    agi_ns, of_ext4 = reference["xfs"]["writer"]["agi_ns"], reference["ext4"]["writer"]
    later = {name: of_ext4[name] for name in ("block_ns", "cold_extent_ns")}
    return {
        "xfs": {**xfs, "writer": {**xfs["writer"], "agi_ns": agi_ns}},
        "ext4": {**ext4, "writer": {**ext4["writer"], **later}},
    }


def with_map_time(costs: Inputs, map_ns: Given) -> dict[str, object]:
    """Return the *costs* of all filesystems, with *map_ns* as XFS's time of an allocation."""
    xfs = costs["xfs"]
    return {**costs, "xfs": {**xfs, "flusher": {**xfs["flusher"], "map_ns": map_ns}}}


_LOOP_MAP: Final = measured(
    21_450, f"{_EXTENTS}: 24 us a page and 31 us a run, minus other paths and half a conversion"
)

LOOP_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "loop-vm",
        "processors": {
            "count": measured(2, "nproc"),
            "writer_scale": specified(1, "this is the reference machine"),
            "flusher_scale": specified(1, "this is the reference machine"),
            "exit_time": specified(0, "a loop device on tmpfs: no request leaves the guest"),
            "cv": assumed(0.3, "path times vary with cache misses and interrupts", 0.1, 1.0),
            "nodes": measured(1, "/sys/devices/system/node"),
            "line_own": LINE_OWN,
            "line_time": assumed(60, f"{_LOCK_COSTS}: processors of one socket", 40, 100),
            "line_from_far": LINE_FROM_FAR,
            "wake_time": assumed(5 * US, f"{_LOCKS} [R]: 2-5 us, more in a guest", 2 * US, 20 * US),
            "waker_time": WAKER_TIME,
            "paths": {
                **REFERENCE_PATHS,
                "write": {
                    **REFERENCE_PATHS["write"],
                    "call_ns": measured(4_250, f"{_EXTENTS}: fio takes 6.6 us a write; the split is a guess"),
                    "page_ns": measured(1_600, f"{_EXTENTS}: fio takes 6.6 us a write; the split is a guess"),
                },
                "filesystems": with_map_time(REFERENCE_PATHS["filesystems"], _LOOP_MAP),
            },
        },
        "memory": {
            "memory": measured(24 * GIB, "/proc/meminfo"),
            "kernel_reserve": assumed(
                400 * MIB, "kernel text, page structs and reserves", 256 * MIB, 1024 * MIB
            ),
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
                        "max_discard_bytes": NO_DISCARD,
                    },
                    "elevator": {
                        "scheduler": assumed(
                            "noop", "noop stands for the scheduler none", "noop", "deadline"
                        ),
                        "fifo_batch": specified(16, f"{_DEADLINE} [V 6.12]"),
                    },
                    "nr_requests": measured(128, "/sys/block/loop0/queue, with the scheduler none"),
                    "driver_depth": specified(128, "drivers/block/loop.c: LOOP_DEFAULT_HW_Q_DEPTH"),
                    "wbt": specified(True, "wbt_lat_usec is not 0 by default, from 4.10 on"),
                    "interrupts": specified("any", "a loop device has no interrupts"),
                    "write_cache": measured("write back", "/sys/block/loop0/queue/write_cache"),
                },
                "device": {"kind": specified("null", "tmpfs: the flusher's measured times include the copy")},
            },
        },
    }
)
"""The machine of the first measurements: a small guest, with a loop device on tmpfs."""

_DESK: Final = "docs/measurements.md H"
_TREE: Final = "docs/measurements.md R"
_SEARCH: Final = "docs/measurements.md V"
_LINES: Final = "docs/measurements.md R, lines from another processor"
_WAKE_UPS: Final = "docs/measurements.md T"
_FOLIOS: Final = "docs/measurements.md N"
_RANDOM: Final = "docs/measurements.md S"
_IO_URING: Final = "docs/measurements.md U"
_SUBMISSION: Final = (
    "docs/measurements.md B, loop and virtio: the submission to a loop device was not measured separately"
)
_REFERENCE: Final = REFERENCE_PATHS["filesystems"]
DESK_MACHINE: Final = MachineSpec.model_validate(
    {
        "name": "desk-vm",
        "processors": {
            **LOOP_MACHINE.processors.inputs(),
            "line_time": measured(170, "docs/measurements.md L: a cache line moves to the other processor"),
            "wake_time": measured(6 * US, f"{_WAKE_UPS}: an idle processor"),
            "waker_time": measured(2_300, f"{_WAKE_UPS}: the waker, without its system call"),
            "paths": {
                **REFERENCE_PATHS,
                "write": {
                    **REFERENCE_PATHS["write"],
                    "call_ns": assumed(1_200, f"{_FOLIOS}: 1.1 to 1.9 us a repeated write", 700, 1_900),
                    "folio_ns": assumed(1_700, f"{_FOLIOS}: 2.9 us of {_DESK}, minus the call", 1_200, 2_200),
                    "page_ns": measured(330, f"{_DESK}: dd with calls of 4 KiB to 1 MiB"),
                    "cold_page_ns": measured(100, f"{_RANDOM}: files of 64 MiB to 4 GiB"),
                    "punt_ns": measured(2_200, f"{_IO_URING}: fio's system time with force_async"),
                    "close_ns": assumed(
                        1_500,
                        f"{_DESK}: between the close of ext4 and the rest of fs_mark's total on XFS",
                        900,
                        2_200,
                    ),
                },
                "filesystems": {
                    "xfs": {
                        "writer": {
                            **_REFERENCE["xfs"]["writer"],
                            "create_ns": measured(19_500, f"{_DESK}: creat"),
                            "agi_ns": assumed(
                                11_300,
                                "docs/measurements.md O: 58 % of the time of creat",
                                9_000,
                                14_000,
                            ),
                        },
                        "flusher": {
                            **_REFERENCE["xfs"]["flusher"],
                            "map_ns": measured(
                                10_200, f"{_DESK}: 11.4 us for a small file, minus its page and the lists"
                            ),
                            "page_ns": measured(2, f"{_DESK}: a page of dd with calls of 1 MiB"),
                            "folio_ns": measured(
                                620, f"{_DESK}: a page of a sequential file, calls of 4 KiB"
                            ),
                            "ioend_ns": measured(3_600, f"{_DESK}: conversion of a small file"),
                            "tree_map_ns": measured(
                                15_200, f"{_TREE}: all tasks on one processor, minus the search"
                            ),
                            "search_ns": measured(
                                11_700, f"{_SEARCH}: the first eighth of a file, minus its later quarters"
                            ),
                            "tree_ioend_ns": measured(5_700, f"{_TREE}: all tasks on one processor"),
                            "end_folio_ns": measured(350, f"{_DESK}: conversion of a sequential file"),
                            "reserve_ns": measured(1_900, f"{_TREE}: time outside the ILOCK"),
                            "map_lines": measured(30, f"{_LINES}: 5.1 us at 170 ns a line"),
                            "ioend_lines": measured(20, f"{_LINES}: 3.4 us at 170 ns a line"),
                            "rmap_ns": measured(
                                22_000, f"{_TREE}: extra time of an allocation with rmapbt=1"
                            ),
                            "rmap_ioend_ns": measured(
                                15_000, f"{_TREE}: extra time of a conversion with rmapbt=1"
                            ),
                            "log": {
                                **_REFERENCE["xfs"]["flusher"]["log"],
                                "record_ns": measured(
                                    50_000, f"{_DESK}: time to push and write one record of the log"
                                ),
                            },
                        },
                    },
                    "ext4": {
                        "writer": {
                            **_REFERENCE["ext4"]["writer"],
                            "create_ns": measured(15_500, f"{_DESK}: creat"),
                            "block_ns": assumed(
                                550, f"{_FOLIOS}: 0.7 us, but write(2) took 1.3 times its time in H", 300, 700
                            ),
                            "cold_extent_ns": measured(125, f"{_RANDOM}: 1 024 to 131 072 extents"),
                        },
                        "flusher": {
                            **_REFERENCE["ext4"]["flusher"],
                            "map_ns": measured(
                                8_400, f"{_DESK}: 9.6 us for a small file, minus its page and the lists"
                            ),
                            "page_ns": measured(2, f"{_DESK}: a page of dd with calls of 1 MiB"),
                            "folio_ns": measured(
                                620, f"{_DESK}: a page of a sequential file, calls of 4 KiB"
                            ),
                            "ioend_ns": measured(3_300, f"{_DESK}: conversion of a small file"),
                            "tree_map_ns": measured(7_000, f"{_TREE}: all tasks on one processor"),
                            "tree_ioend_ns": measured(2_700, f"{_TREE}: all tasks on one processor"),
                            "end_folio_ns": measured(500, f"{_DESK}: conversion of a sequential file"),
                            "map_lines": measured(14, f"{_LINES}: 2.4 us at 170 ns a line"),
                            "ioend_lines": measured(8, f"{_LINES}: 1.4 us at 170 ns a line"),
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
                    "command_time": measured(2_500, f"{_DESK}: a direct write of 4 KiB, minus its page"),
                    "page_time": measured(1_350, f"{_DESK}: the worker's time for a page of a file"),
                },
            },
        },
    }
)
"""The machine whose numbers can all be measured: a guest with two processors and a loop device.

The worker of the loop device copies into tmpfs.
"""
