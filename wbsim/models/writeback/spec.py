"""What is configured of the writeback loop: the rules of an era, and what an inode costs."""

from __future__ import annotations

from typing import Literal

from wbsim.sim.param import Count, Flag, Interval, Ns, Spec


class WritebackRules(Spec):
    """What an era's fs/fs-writeback.c decides.

    ``plug_scope``: a plug opens per mapping, per slice (the P13 patch), per work item (4.3 and later), or
    none did (to 2.6.38); ``slice_time``: a slice ends after it; ``nr_to_write``: to 2.6.39, all inodes of a
    slice share so many pages, and no time ends it; ``used_up``: where an inode goes that used its chunk up
    (periodic work: always more_io); ``leaves``: background and periodic work ends as soon as other work is
    queued (2.6.38 and later); ``explicit_takes``: explicit work takes the inodes that were dirty when the
    work began, or before each of its passes (to 2.6.36); ``waits_for_io``: the work of a sync(2) waits for
    the I/O of each inode (to 3.10); ``expire`` and ``interval``: dirty_expire_centisecs and
    dirty_writeback_centisecs.
    """

    plug_scope: Literal["none", "mapping", "slice", "work"]
    slice_time: Interval
    nr_to_write: Count | None = None
    used_up: Literal["more_io", "redirty_tail"]
    leaves: Flag
    explicit_takes: Literal["at_start", "at_pass"]
    waits_for_io: Flag
    expire: Ns
    interval: Interval


class WritebackCosts(Spec):
    """Processor time of the flusher per inode, beside the filesystem's and the block layer's.

    ``take_ns``, ``requeue_ns`` and ``move_ns`` (per inode that queue_io moves) are spent under the list
    lock, ``inode_ns`` outside of it.
    """

    take_ns: Ns
    requeue_ns: Ns
    move_ns: Ns
    inode_ns: Ns
