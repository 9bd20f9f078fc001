"""What of a machine can be watched."""

from __future__ import annotations

from wbsim.sim.tracing import Signal


class Signals:
    """What can be watched; the names are those of the kernel's tracepoints.  Watching changes nothing."""

    def __init__(self) -> None:
        self.balance_dirty_pages = Signal("balance_dirty_pages")
        self.block_bio_backmerge = Signal("block_bio_backmerge")
        self.block_bio_frontmerge = Signal("block_bio_frontmerge")
        self.block_bio_queue = Signal("block_bio_queue")
        self.block_getrq = Signal("block_getrq")
        self.block_plug = Signal("block_plug")
        self.block_rq_complete = Signal("block_rq_complete")
        self.block_rq_issue = Signal("block_rq_issue")
        self.block_rq_merge = Signal("block_rq_merge")
        self.block_unplug = Signal("block_unplug")
        self.writeback_single_inode = Signal("writeback_single_inode")
