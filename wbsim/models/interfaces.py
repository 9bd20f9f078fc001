"""READ FIRST: what passes between the parts, and the protocols between them, in the order of a page's life.

write(2) dirties a page of an `Inode` -> `Throttle` perhaps holds the writer back -> `Flushers` have a thread
pick the inode from its context (`Wb`) -> the shared loop (`writeback/loop.py`) asks the `Filesystem` to write
its pages -> `Bio` -> the `Thread`'s plug -> the queue -> `BlockDevice` -> completion -> clean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np
from mypy_extensions import mypyc_attr
from numpy.typing import NDArray

from wbsim.models.bio import Bio
from wbsim.models.time_accounting import I_SYNC, Spent
from wbsim.sim.engine import PARK, Environment, Steps, Task, Wait
from wbsim.sim.sync import Completion, SpinLock


@mypyc_attr(allow_interpreted_subclasses=True)
class Visits(Protocol):
    """The visits of one thread to inodes, which may neither block nor meet another thread (pdflush).

    They belong to one pass over the lists of dirty inodes.
    """

    def enter(self, wb: Wb) -> bool:
        """Whether it may visit an inode of *wb* now."""

    def leave(self, wb: Wb) -> None:
        """The visit is over."""

    def gives_up(self) -> bool:
        """Whether it leaves the file that it is in as it is."""


LONG_MAX: Final = (1 << 62) - 1
"""The nr_to_write of what goes over whole files: a machine word with a bit for a tag."""
Reason = Literal["background", "periodic", "start", "sync"]
"""Why something is written back; a sync(2) has two: the work that it starts everywhere, and its own."""


# -- what is dirty ---------------------------------------------------------------------------------------


class Inode:
    """struct inode as writeback sees it: *dirtied_when* (ns) orders the lists; filesystems add slots.

    ``i_sync``: the I_SYNC flag, as the mark of the thread that writes the inode back.  Meanwhile the inode is
    on no list; that thread puts it where it belongs.
    """

    __slots__ = ("dirtied_when", "dirty_pages", "i_sync", "sb", "wb")

    def __init__(self, sb: Superblock, wb: Wb) -> None:
        self.sb = sb
        self.wb = wb
        self.dirtied_when = 0
        self.dirty_pages = 0
        self.i_sync: InodeSync | None = None


class InodeSync:
    """I_SYNC as one thread sets it: on one ``inode`` at a time, whose end others may wait for."""

    __slots__ = ("_env", "_waiters", "inode")

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._waiters: list[Task] = []
        self.inode: Inode | None = None

    def begin(self, inode: Inode) -> None:
        """Its thread begins to write *inode* back."""
        inode.i_sync = self
        self.inode = inode

    def end(self, inode: Inode) -> None:
        """inode_sync_complete: *inode* was written back; the threads that wait for that wake."""
        inode.i_sync = None
        self.inode = None
        if self._waiters:
            for task in self._waiters:
                self._env.wake(task)
            self._waiters.clear()

    def wait(self, thread: Thread) -> Steps:
        """inode_sleep_on_writeback: *thread* sleeps until the present inode was written back."""
        thread.before_sleep()
        self._waiters.append(thread.task)
        thread.task.waits_for = I_SYNC
        yield PARK


class WritebackControl:
    """struct writeback_control: ``nr_to_write`` pages of a file may be written, from where its last writeback
    ended (range_cyclic) or, for data integrity (``sync_all``: WB_SYNC_ALL), the whole file.
    """

    __slots__ = ("nr_to_write", "reason", "sync_all", "visits")

    def __init__(self, reason: Reason, nr_to_write: int = LONG_MAX, visits: Visits | None = None) -> None:
        self.visits = visits
        self.reason: Reason = reason
        self.sync_all = reason == "sync"
        self.nr_to_write = nr_to_write


class Work(NamedTuple):
    """struct wb_writeback_work: what to write and until when.

    ``sb``: the one superblock whose inodes it writes, if any; ``done``: completed when the work ends.
    """

    reason: Reason
    nr_pages: int = LONG_MAX
    sb: Superblock | None = None
    done: Completion | None = None
    visits: Visits | None = None


class Superblock(Protocol):
    """One mounted filesystem, as its inodes see it."""

    name: str
    filesystem: Filesystem
    block_ns: int

    def folio_pages(self, call_pages: int) -> int:
        """Return the pages of each folio that a write(2) of *call_pages* pages makes."""

    def has_pages(self) -> None:
        """One more of its inodes has pages."""

    def wait_for_writeback(self, thread: Thread) -> Steps:
        """*thread* sleeps until all that is under writeback now is clean."""


class Bandwidth(Protocol):
    """A context's write bandwidth to the device, and the rate limits of its writers (pages per s).

    The stamps hold the page counts at the last update of these, and its time (jiffies).
    """

    write: int
    avg_write: int
    dirty_ratelimit: int
    balanced_ratelimit: int
    stamp: int
    dirtied_stamp: int
    written_stamp: int

    def start(self, pages_per_s: int) -> None:
        """Nothing was measured yet."""

    def update_write(self, elapsed: int, written: int, hz: int) -> None:
        """*written* pages were completed in the last *elapsed* jiffies."""


class Wb(Protocol):
    """struct bdi_writeback: the lists of one writeback context, and the counts of its own dirty pages.

    ``dirtied`` and ``written`` only grow.  ``work_list`` holds the work that its flusher is asked to do;
    ``i_syncs`` has one entry for each thread that writes its inodes back.  ``flushed_inodes`` counts visits
    of its flusher that left an inode clean, ``flushed_pages`` what went under writeback meanwhile;
    ``given_back`` counts the visits, of any thread but for data integrity, that left one dirty.
    """

    name: str
    lock: SpinLock
    work_list: deque[Work]
    flushed_inodes: int
    flushed_pages: int
    given_back: int
    i_syncs: list[InodeSync]
    b_dirty: deque[Inode]
    b_io: deque[Inode]
    b_more_io: deque[Inode]
    bandwidth: Bandwidth
    dirty: int
    dirty_and_writeback: int
    written: int
    dirty_exceeded: bool
    held_back_ns: int  # when a writer last began to sleep for its sake

    @property
    def dirtied(self) -> int:
        """Pages that ever became dirty."""

    def account_dirtied(self, pages: int) -> None:
        """*pages* became dirty (account_page_dirtied)."""

    def account_writeback(self, pages: int) -> None:
        """*pages* went under writeback (set_page_writeback)."""

    def account_clean(self, pages: int) -> None:
        """*pages* were written (end_page_writeback)."""

    def add(self, inode: Inode, now_ns: int) -> None:
        """A clean inode became dirty (__mark_inode_dirty)."""

    def give_back(self, inode: Inode) -> None:
        """*inode* was taken off the lists, is still dirty, and is as old as before."""

    def take_off(self, inode: Inode) -> None:
        """*inode*, which is listed, is on no list from now on."""

    def queue_io(self, older_than_ns: int, only: Superblock | None = None) -> int:
        """Refill b_io from b_more_io and from the inodes dirtied by *older_than_ns*; return how many moved.

        *only*: move inodes of this superblock alone, where each superblock has separate lists.
        """

    def holds(self, inodes: deque[Inode], only: Superblock | None) -> bool:
        """Return whether *inodes*, one of the lists, holds an inode; *only* as in `queue_io`."""

    def take(self, only: Superblock, now_ns: int) -> Inode | None:
        """Take the first inode of the superblock *only* off b_io; None if there is no such inode.

        Inodes of other superblocks before it go back to b_dirty and count as dirtied at *now_ns*
        (redirty_tail).  Where each superblock has separate lists, they stay on b_io, in their order.
        """

    def requeue_io(self, inode: Inode) -> None:
        """*inode*, which is still dirty, waits on b_more_io for its next turn."""

    def check(self) -> None:
        """Each dirty inode is on one of its lists; raises `LawBroken` otherwise."""

    def __len__(self) -> int: ...


# -- who writes back -------------------------------------------------------------------------------------


class Dirtier(Protocol):
    """A writer's own account with the throttle: current->nr_dirtied."""

    nr_dirtied: int

    def dirtied(self, pages: int) -> None:
        """It dirtied *pages* more."""


class Throttle(Protocol):
    """Holds writers back.  One for all contexts."""

    def start(
        self, wbs: Sequence[Wb], flushers: Flushers, write_back: WriteBack, congestion_wait: CongestionWait
    ) -> None:
        """Called once: the contexts, their flushers, how a writer writes back or waits for queues."""

    def dirtier(self) -> Dirtier:
        """The account of a new writer."""

    def poll_pages(self, wb: Wb, dirtier: Any) -> int:
        """How many pages *dirtier* may have dirtied, the last in *wb*, before it has to call `balance`."""

    def balance(self, thread: Thread, wb: Wb, dirtier: Any) -> Steps:
        """balance_dirty_pages; may sleep, and starts background writeback."""

    def wrote(self, wb: Wb, since_ns: int) -> None:
        """The flusher of *wb* ended a slice that began at *since_ns*."""

    def share(self, wb: Wb, pages: int) -> int:
        """The part of a threshold of *pages* that is *wb*'s."""


CongestionWait = Callable[["Thread", int], Steps]
"""congestion_wait (`models.congestion`): a thread sleeps until a queue is not congested, or so long (ns)."""


class WriteBack(Protocol):
    """writeback_inodes_wbc: a thread that is no flusher writes back."""

    def __call__(self, thread: Thread, wb: Wb, pages: int) -> Generator[Wait, None, int]:
        """Write back up to *pages* of any dirty files of *wb*; what it took off this budget."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Flushers(Protocol):
    """The threads that write back: how others see them."""

    @property
    def threads(self) -> list[Thread]:
        """All that were made."""

    @property
    def alive(self) -> int:
        """How many there are now (of works of a workqueue: how many run)."""

    def register(self, bdi: Any) -> None:
        """Make the contexts of *bdi*, and what threads these need."""

    def start_background(self, wb: Wb) -> None:
        """Too much is dirty: write *wb* back until it is not."""

    def in_progress(self, wb: Wb) -> bool:
        """Whether writeback of *wb* runs or is about to."""

    def queue(self, wb: Wb, work: Work) -> Completion | None:
        """Have *work* done on *wb*; returns its completion.

        Returns None if the work was dropped: then no thread but the caller does it.
        """


# -- where pages lie -------------------------------------------------------------------------------------


class NoSpace(Exception):
    """ENOSPC: no block is left for delayed pages; the model does not reserve blocks for them."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Names(Protocol):
    """The directories and inodes of a filesystem."""

    def mkdir(self, thread: Thread) -> Generator[Wait, None, Any]:
        """A new directory; returns what `create` takes for it."""

    def create(
        self, thread: Thread, directory: Any, *, lead_ns: int = 0, factor: float = 1.0, then_ns: int = 0
    ) -> Generator[Wait, None, Inode]:
        """Run creat(2) in *directory*, which `mkdir` returned, and return the new inode.

        The work of the call is scaled by *factor*, which varies from call to call.  The caller works for
        *lead_ns* before the call and for *then_ns* in write(2) after it: given here, they need no events of
        their own.  All but *lead_ns* is charged to *thread*.
        """

    def look_up(self, thread: Thread, lead_ns: int, factor: float) -> Steps:
        """A name of an inode that is not cached is looked up, after *lead_ns*, scaled by *factor*."""

    def bulkstat(self, thread: Thread, lead_ns: int, factor: float) -> Steps:
        """The same for an inode that is read without its name, and dropped at once."""

    def unlink(self, thread: Thread, lead_ns: int, factor: float) -> Steps:
        """The same for unlink(2) of an empty file whose inode is not cached."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Filesystem(Protocol):
    """Gives file pages their place on disk.

    ``names``: its directories and inodes; ``group_blocks``: how many blocks each of its groups has;
    ``group_label``: what its tools call one.
    """

    names: Names
    group_blocks: int
    group_label: str

    def append(self, inode: Any, pages: int) -> int:
        """Write the next *pages* behind the end of the file, whole; returns how many of them were clean."""

    def write(self, inode: Any, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """The pages at *indices* are written to, *call_pages* with each write(2).

        Returns how many were done, and how many of these were clean; `zero_end` is due before the rest.
        """

    def zero_end(self, thread: Thread, inode: Any) -> Steps:
        """What a write behind the end of the file has to do first."""

    def write_lock(self, thread: Thread, inode: Any, calls: int) -> Steps | None:
        """So many calls of write(2) ask for the inode's lock; what they wait for is to be delegated to."""

    def close(self, inode: Any) -> None:
        """The last close(2) of a file."""

    def write_pages(self, thread: Thread, inode: Any, wbc: WritebackControl) -> Steps:
        """do_writepages: allocate, build bios and submit them.

        Subtracts what it wrote from the inode's dirty pages and from ``wbc.nr_to_write``.  The unit is pages,
        unless the era counts otherwise.
        """

    def sync_fs(self, thread: Thread) -> Steps:
        """->sync_fs: what was logged by now is on disk when it ends."""

    def commit_log(self, thread: Thread) -> Steps:
        """The same for fsync(2), which leaves metadata where it is."""

    def group_of(self, inode: Any) -> int:
        """The group that the inode itself lies in."""

    @property
    def log_bytes(self) -> int:
        """Bytes written to the log so far."""

    def check(self) -> None:
        """No block is in two places, no page is lost; raises `LawBroken` otherwise."""

    def layouts(self) -> Sequence[Any]:
        """The files whose pages are kept one by one, as created (`models.page_cache.file_pages`)."""

    def extents_per_file(self) -> tuple[int, ...]:
        """How many extents each of these lies in."""


# -- the block layer -------------------------------------------------------------------------------------


class Thread(Protocol):
    """A task as the block layer sees it: it submits bios, and may have a plug (current->plug)."""

    task: Task
    spent: Spent
    background: bool  # whether it does background or periodic writeback

    def start_plug(self) -> bool:
        """blk_start_plug; False where one is open already: nested plugs are inert."""

    def finish_plug(self) -> Iterable[Wait]:
        """blk_finish_plug: issue what the plug holds; to be delegated to."""

    def flush_plug(self) -> Iterable[Wait]:
        """blk_flush_plug: the same, and the plug stays open."""

    def before_sleep(self) -> None:
        """What schedule() does to a plug: it is emptied by kblockd, for which the thread pays nothing."""

    def submit_bio(self, bio: Bio) -> Steps | None:
        """Submit *bio*; None: it joined a plugged request, which takes no time.

        What is returned has to be delegated to: the bio joins a waiting request or gets one of its own, for
        which the thread may sleep.
        """
