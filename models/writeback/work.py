"""struct wb_writeback_work: what others ask a flusher to do, and the rules and costs of doing it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from models.seams import UNLIMITED_PAGES, Superblock
from sim.param import Count, Ns, Spec
from sim.sync import Completion


class WritebackRules(Spec):
    """What an era's fs/fs-writeback.c decides.

    ``plug_scope``: a plug opens per mapping, per slice (the P13 patch), per work item (4.3 and later), or
    none did (to 2.6.38); ``slice_time``: a slice ends after it; ``quota_pages``: to 2.6.39, all inodes of a
    slice share so many pages, and no time ends it; ``used_up``: where an inode goes that used its chunk up
    (periodic work: always more_io); ``expire`` and ``interval``: dirty_expire_centisecs and
    dirty_writeback_centisecs.
    """

    plug_scope: Literal["none", "mapping", "slice", "work"]
    slice_time: Ns
    quota_pages: Count | None = None
    used_up: Literal["more_io", "redirty_tail"]
    expire: Ns
    interval: Ns


class WritebackCosts(Spec):
    """Processor time of the flusher per inode, beside the filesystem's and the block layer's.

    ``take_ns``, ``requeue_ns`` and ``move_ns`` (per inode that queue_io moves) are spent under the list
    lock, ``inode_ns`` outside of it.
    """

    take_ns: Ns
    requeue_ns: Ns
    move_ns: Ns
    inode_ns: Ns


class Work(NamedTuple):
    """What to write and until when; of one superblock alone if ``sb`` says so; ``done`` hears of its end.

    A sync(2) is two kinds: "start" (wakeup_flusher_threads: so many pages, in chunks) and "sync"
    (WB_SYNC_ALL).
    """

    reason: Literal["background", "periodic", "start", "sync"]
    nr_pages: int = UNLIMITED_PAGES
    sb: Superblock | None = None
    done: Completion | None = None
