"""The rules of an era for the writeback loop, and the costs of an inode."""

from __future__ import annotations

from typing import Literal

from wbsim.sim.param import Count, Flag, Interval, Ns, Spec


class WritebackRules(Spec):
    """The rules of an era's fs/fs-writeback.c.

    * ``plug_scope``: a plug opens per mapping, per slice (the P13 patch), per work item (4.3 and later), or
      not at all (to 2.6.38).
    * ``slice_time``: the length of a slice of writeback.
    * ``nr_to_write``: the pages that all inodes of a slice share, without a limit of time (to 2.6.39).
    * ``used_up``: the list of an inode that used up its chunk; for periodic work always more_io.
    * ``leaves``: background and periodic work ends as soon as other work is queued (2.6.38 and later).
    * ``explicit_takes``: explicit work takes the inodes that were dirty when the work began, or before each
      of its passes (to 2.6.36).
    * ``background_takes``: background work takes the inodes that were dirty before each of its passes, or (in
      3.1 and 3.2) when the work began.
    * ``background_test``: background work goes on while all dirty pages are above the background threshold
      ("global", to 3.1).  With "share" it also goes on while the context is above its share.
    * ``waits_for_io``: the work of a sync(2) waits for the I/O of each inode (to 3.10).
    * ``expire``: the age at which periodic writeback takes a dirty inode (dirty_expire_centisecs).
    * ``interval``: the time between two periodic wake-ups of the flusher (dirty_writeback_centisecs).
    """

    plug_scope: Literal["none", "mapping", "slice", "work"]
    slice_time: Interval
    nr_to_write: Count | None = None
    used_up: Literal["more_io", "redirty_tail"]
    leaves: Flag
    explicit_takes: Literal["at_start", "at_pass"]
    background_takes: Literal["at_start", "at_pass"]
    background_test: Literal["global", "share"]
    waits_for_io: Flag
    expire: Ns
    interval: Interval


class WritebackCosts(Spec):
    """Processor time of the flusher per inode, without the filesystem's and the block layer's.

    * ``take_ns``: the time to take an inode from its list, under the list lock.
    * ``requeue_ns``: the time to put an inode on a list again, under the list lock.
    * ``move_ns``: the time for each inode that queue_io moves, under the list lock.
    * ``inode_ns``: the time for an inode outside of the list lock.
    """

    take_ns: Ns
    requeue_ns: Ns
    move_ns: Ns
    inode_ns: Ns
