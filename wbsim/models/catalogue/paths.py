"""The costs of code paths on the reference machine, each with the place of its measurement.

The costs of filesystems are in their specs.
"""

from __future__ import annotations

from typing import Final

from wbsim.models.kinds import kinds
from wbsim.sim.param import Inputs, assumed, measured

_LOCK_COSTS: Final = "docs/kernel/locks.md#what-a-lock-costs"
_LINES: Final = "docs/kernel/locks.md#lines-that-every-processor-writes"

_PROFILE: Final = "docs/measurements.md B: cpu-clock profile of the flusher, Linux 6.18"
_INODES: Final = "docs/measurements.md L: a million inodes on Linux 6.18"
_FS_MARK: Final = "docs/measurements.md A: fs_mark -v on XFS, Linux 6.18"
_SPLIT: Final = (
    f"{_FS_MARK}: a write of one page takes 6 us [5-9]; the model has 8, so that all paths add up to 44 us"
    " of system time; the split into call and page is a guess"
)

LINE_OWN: Final = assumed(
    20, f"{_LOCK_COSTS}: an atomic operation on a line that the processor holds", 10, 40
)
LINE_FROM_FAR: Final = assumed(
    200, f"{_LINES}: a line from another socket, 0.10-0.25 us; not fitted", 100, 300
)
"""The time that the hardware takes for a cache line (ns)."""
WAKER_TIME: Final = assumed(
    1_000, "try_to_wake_up and an interrupt to an idle processor, 2.3 us in our guest", 300, 3_000
)
"""The time that the wake-up of an idle processor takes the waker (ns)."""

REFERENCE_PATHS: Final[Inputs] = {
    "write": {
        "call_ns": assumed(6_000, _SPLIT, 3_000, 8_000),
        "page_ns": assumed(2_000, _SPLIT, 500, 4_000),
        "punt_ns": assumed(2_200, "as on the desk, docs/measurements.md U", 1_000, 4_000),
        "close_ns": measured(5_000, f"{_FS_MARK}: close"),
        "mark_ns": assumed(100, "a list insertion: two or three cache lines from other cores", 50, 300),
    },
    "inodes": {
        "add_ns": measured(16, f"{_INODES}: inode_sb_list_add without contention"),
        "del_ns": assumed(20, f"{_INODES}: too short to be measured", 10, 50),
        "visit_ns": measured(174, f"{_INODES}: a walk over a million clean inodes"),
        "unhash_ns": assumed(20, f"{_INODES}: too short to be measured", 10, 50),
        "lru_ns": assumed(20, "a list insertion", 10, 50),
        "chain_ns": assumed(60, "an atomic operation and a cold line", 20, 200),
        "chain_again_ns": assumed(15, "an atomic operation on a warm line", 5, 50),
        "reference_ns": assumed(400, f"{_INODES}: less than 900 ns, with dropping the page", 200, 900),
        "evict_ns": measured(600, f"{_INODES}: evict and destroy_inode"),
        "dentry_ns": measured(1_000, f"{_INODES}: drop_caches, the part of dentries"),
        "reclaim_ns": measured(1_000, f"{_INODES}: drop_caches, the remaining part"),
    },
    "filesystems": {name: dict(kind.spec.reference_costs) for name, kind in kinds("filesystems").items()},
    "writeback": {
        "take_ns": measured(150, f"{_PROFILE}: a quarter of list handling"),
        "requeue_ns": measured(150, f"{_PROFILE}: a quarter of list handling"),
        "move_ns": assumed(30, "list_move of a cold inode, prefetched", 10, 100),
        "inode_ns": measured(300, f"{_PROFILE}: the rest of list handling"),
    },
    "block": {
        "request_ns": measured(1_130, f"{_PROFILE}: getting a request, and submit_bio without a merge"),
        "insert_ns": measured(440, f"{_PROFILE}: insertion into the elevator"),
        "dispatch_ns": measured(1_790, f"{_PROFILE}: dispatch and queue_rq on virtio without the kick"),
        "complete_ns": measured(1_000, "docs/measurements.md B: hard IRQ per request on virtio"),
    },
}
"""Processor time per path on the reference machine (an AMD EPYC guest, Linux 6.18)."""
