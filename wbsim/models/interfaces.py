"""READ FIRST: the objects and protocols between the parts, in the order in which a page passes them.

* write(2) dirties a page of an `Inode`, and the `Throttle` perhaps holds the writer back.
* `Flushers` have a thread pick the inode from its context (`Wb`).
* The shared loop (`writeback/loop.py`) lets the `Filesystem` write the inode's pages.
* The pages become a `Bio`, which goes through the `Thread`'s plug and the queue to the `BlockDevice`.
* The completion makes the pages clean.
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
from wbsim.sim.engine import PARK, CallError, Environment, Steps, Task, Wait
from wbsim.sim.sync import Completion, SpinLock


@mypyc_attr(allow_interpreted_subclasses=True)
class Visits(Protocol):
    """The visits of a pdflush thread to inodes, in one pass over the lists of dirty inodes.

    The thread may neither block nor visit a device that another thread is visiting.  `Writeback` calls
    `enter` before each inode and `leave` after it; a filesystem asks `gives_up` while it writes the inode.
    """

    def enter(self, wb: Wb) -> bool:
        """Begin a visit to an inode of *wb*; return False if a visit is not allowed now.

        The device may be congested, or another thread may be visiting it.
        """

    def leave(self, wb: Wb) -> None:
        """End the visit to an inode of *wb*; another thread may visit its device then."""

    def gives_up(self) -> bool:
        """Return whether the thread leaves the current file as it is, because its device is congested now.

        A visit must have begun.
        """


LONG_MAX: Final = (1 << 62) - 1
"""The nr_to_write for complete files; it fits into a machine word with a bit for a tag."""
Reason = Literal["background", "periodic", "start", "sync"]
"""The reason for writeback.  A sync(2) queues "start" work for all contexts, then "sync" work."""


# -- dirty inodes ----------------------------------------------------------------------------------------


class Inode:
    """struct inode as writeback sees it; filesystems add slots.

    ``dirtied_when`` (ns) orders the lists.  ``i_sync``: the I_SYNC flag, as the mark of the thread that
    writes the inode back.  While it is set, the inode is on no list; the thread then puts the inode on the
    right list.
    """

    __slots__ = ("dirtied_when", "dirty_pages", "i_sync", "sb", "wb")

    def __init__(self, sb: Superblock, wb: Wb) -> None:
        self.sb = sb
        self.wb = wb
        self.dirtied_when = 0
        self.dirty_pages = 0
        self.i_sync: InodeSync | None = None


class InodeSync:
    """I_SYNC as set by one thread, on one ``inode`` at a time; other threads may wait for its end.

    While the thread visits inodes, it keeps this object in ``i_syncs`` of their context.
    """

    __slots__ = ("_env", "_waiters", "inode")

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._waiters: list[Task] = []
        self.inode: Inode | None = None

    def begin(self, inode: Inode) -> None:
        """Set I_SYNC: the thread begins to write *inode* back, which it has taken off its list."""
        inode.i_sync = self
        self.inode = inode

    def end(self, inode: Inode) -> None:
        """Clear I_SYNC: *inode* was written back; wake the threads that wait (inode_sync_complete).

        The caller then puts the inode on a list, if it is still dirty.
        """
        inode.i_sync = None
        self.inode = None
        if self._waiters:
            for task in self._waiters:
                self._env.wake(task)
            self._waiters.clear()

    def wait(self, thread: Thread) -> Steps:
        """Let *thread* sleep until the present inode was written back.  Use: `yield from`.

        The caller tests ``inode.i_sync`` again then (inode_sleep_on_writeback).
        """
        thread.before_sleep()
        self._waiters.append(thread.task)
        thread.task.waits_for = I_SYNC
        yield PARK


class WritebackControl:
    """struct writeback_control: the limits of the writeback of a file.

    Up to ``nr_to_write`` pages are written, from where the file's last writeback ended (range_cyclic), or
    from the beginning of the file on (``from_start``).  For data integrity (``sync_all``: WB_SYNC_ALL), the
    complete file is written.
    """

    __slots__ = ("from_start", "nr_to_write", "reason", "sync_all", "visits")

    def __init__(
        self, reason: Reason, nr_to_write: int = LONG_MAX, visits: Visits | None = None,
        from_start: bool = False,
    ) -> None:  # fmt: skip
        self.visits = visits
        self.from_start = from_start or reason == "sync"
        self.reason: Reason = reason
        self.sync_all = reason == "sync"
        self.nr_to_write = nr_to_write


class Work(NamedTuple):
    """struct wb_writeback_work: a work item of a flusher.

    ``sb``: write only inodes of this superblock; None: of all.  ``done``: completed when the work ends.
    ``nr_pages``: the most pages to write.
    """

    reason: Reason
    nr_pages: int = LONG_MAX
    sb: Superblock | None = None
    done: Completion | None = None
    visits: Visits | None = None


class Superblock(Protocol):
    """One mounted filesystem, as its inodes see it.

    ``block_ns`` and ``cold_extent_ns``: times of a write(2) on the filesystem (`models.vfs.superblock`).
    """

    name: str
    filesystem: Filesystem
    block_ns: int
    cold_extent_ns: int

    def folio_pages(self, call_pages: int) -> int:
        """Return the pages of each folio that a write(2) of *call_pages* pages makes; at least 1.

        The result is a power of two, at most *call_pages* and the largest folio of the filesystem.
        """

    def has_pages(self) -> None:
        """Count one more inode that has pages, because a clean inode became dirty."""

    def wait_for_writeback(self, thread: Thread) -> Steps:
        """Let *thread* sleep until all pages of the superblock that are under writeback now are clean.

        Use: `yield from`.
        """


class Bandwidth(Protocol):
    """A context's write bandwidth to the device, and the rate limits of its writers (pages per s).

    ``write`` is a mean over about 3 s, which ``avg_write`` follows slowly.  ``dirtied_stamp`` and
    ``written_stamp``: the page counts at the last update.  ``stamp``: its time (jiffies).
    """

    write: int
    avg_write: int
    dirty_ratelimit: int
    balanced_ratelimit: int
    stamp: int
    dirtied_stamp: int
    written_stamp: int

    def start(self, pages_per_s: int) -> None:
        """Start all estimates at *pages_per_s*, and the stamps at 0, before anything is measured."""

    def update_write(self, elapsed: int, pages: int, hz: int) -> None:
        """Update the write bandwidth: *pages* were completed in the last *elapsed* jiffies, of 1 / *hz* s.

        This changes ``write`` and ``avg_write``; the throttle then sets the stamps.
        """


class Wb(Protocol):
    """struct bdi_writeback: the lists of one writeback context, and the counts of its dirty pages.

    * ``dirtied`` and ``written_pages``: the pages that ever became dirty, and that were written.  They only
      grow, as ``cancelled_pages`` does: the dirty pages that were removed instead.
    * ``work_list``: the work that is queued for the flusher.
    * ``i_syncs``: an entry for each thread that writes inodes of the context back.
    * ``flushed_inodes``: visits of the flusher that left the inode clean.
    * ``flushed_pages``: the pages that went under writeback while the flusher wrote.
    * ``given_back``: visits by any thread, WB_SYNC_ALL excluded, that left the inode dirty.
    * ``dirty``: the pages that are dirty now; ``dirty_and_writeback`` has those under writeback, too.
    * ``dirty_exceeded``: the context is over its limit, so its writers ask the throttle more often.
    * ``bandwidth``: the estimates of its device, from which throttling and chunks follow.

    A page that becomes dirty again counts again.  No method takes time: the caller accounts for the time
    under ``lock``.  The ``account_`` methods leave ``dirty_pages`` of the inodes to the caller.
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
    written_pages: int
    cancelled_pages: int
    dirty_exceeded: bool
    held_back_ns: int  # when a writer last began to sleep because of this context

    @property
    def dirtied(self) -> int:
        """The number of pages that ever became dirty."""

    @property
    def submitted_pages(self) -> int:
        """The number of pages that ever went under writeback, written or not."""

    def account_dirtied(self, pages: int) -> None:
        """Count *pages* pages that became dirty: ``dirty``, ``dirty_and_writeback`` and so ``dirtied`` grow.

        Stands for account_page_dirtied.
        """

    def account_writeback(self, pages: int) -> None:
        """Count *pages* dirty pages that went under writeback (set_page_writeback): ``dirty`` falls."""

    def account_clean(self, pages: int) -> None:
        """Count *pages* pages that were under writeback and are clean now (end_page_writeback).

        They move from ``dirty_and_writeback`` to ``written_pages``.
        """

    def account_cancelled(self, pages: int) -> None:
        """Count *pages* dirty pages that a truncation removed before they were written (account_cleaned).

        They move from ``dirty`` and ``dirty_and_writeback`` to ``cancelled_pages``.
        """

    def add(self, inode: Inode, now_ns: int) -> None:
        """Put *inode*, which became dirty at *now_ns*, on b_dirty as its youngest (__mark_inode_dirty).

        *inode* must be on no list.  Its ``dirtied_when`` becomes *now_ns*.
        """

    def give_back(self, inode: Inode) -> None:
        """Put *inode*, which is on no list and still dirty, back on b_dirty.

        Its ``dirtied_when`` stays, and decides its place.
        """

    def take_off(self, inode: Inode) -> None:
        """Take *inode* off its list, if any: an fsync(2) writes it, or a truncation makes it clean."""

    def queue_io(self, older_than_ns: int, superblock: Superblock | None = None) -> int:
        """Refill b_io from b_more_io and from the inodes dirtied by *older_than_ns*; return how many moved.

        All inodes of b_more_io move, and those of b_dirty whose ``dirtied_when`` is at most *older_than_ns*.
        *superblock*: move its inodes alone, where each superblock has separate lists; elsewhere no effect.
        """

    def holds(self, inodes: deque[Inode], superblock: Superblock | None) -> bool:
        """Return whether *inodes*, one of the lists, holds an inode.

        Where each superblock has separate lists, only inodes of *superblock* count; None: all count.
        """

    def take(self, superblock: Superblock, now_ns: int) -> Inode | None:
        """Take the first inode of *superblock* off b_io; None if there is no such inode.

        Inodes of other superblocks before it go back to b_dirty and count as dirtied at *now_ns*
        (redirty_tail).  Where each superblock has separate lists, they stay on b_io, in their order.
        """

    def requeue_io(self, inode: Inode) -> None:
        """Put *inode*, still dirty and on no list, on b_more_io, where it waits for its next turn."""

    def check(self) -> None:
        """Check that each inode on the lists is there once, is dirty and belongs to this context.

        Raises:
            LawBroken: an inode breaks this, or is being written back.  Or more pages are listed than counted.
        """

    def __len__(self) -> int: ...


# -- threads that write back -----------------------------------------------------------------------------


class Dirtier(Protocol):
    """A writer's account with the throttle: current->nr_dirtied.

    ``nr_dirtied``: the pages that the writer has dirtied since `Throttle.balance` last settled the account.
    """

    nr_dirtied: int

    def dirtied(self, pages: int) -> None:
        """Add *pages* to ``nr_dirtied``; the caller counts them in their context (`Wb.account_dirtied`)."""


class Throttle(Protocol):
    """Holds writers back; one throttle serves all contexts.

    *dirtier* is the account of the writer, as the method `dirtier` returned it.
    """

    def start(
        self, wbs: Sequence[Wb], flushers: Flushers, write_back: WriteBack, congestion_wait: CongestionWait
    ) -> None:
        """Start the throttle of all contexts *wbs* and their *flushers*; called once.

        *write_back* lets a writer write back, and *congestion_wait* lets it wait for queues.  Throttling from
        3.2 on uses neither.
        """

    def dirtier(self) -> Dirtier:
        """Return the account of a new writer, in which no page is counted yet.

        Each process has one, and a child begins with a new one.
        """

    def poll_pages(self, wb: Wb, dirtier: Any) -> int:
        """Return the ``nr_dirtied`` of *dirtier* from which on its writer must call `balance`.

        *wb* is the context to which it wrote last.  A write(2) dirties pages up to this number without any
        other look at the thresholds (`Writer.due`).
        """

    def balance(self, thread: Thread, wb: Wb, dirtier: Any) -> Steps:
        """Hold *thread* back, if too much is dirty: let it sleep or write back.  Use: `yield from`.

        Background writeback may start.  The account *dirtier* is settled (balance_dirty_pages): as a rule its
        ``nr_dirtied`` is 0 then.
        """

    def passes(self, wb: Wb, dirtier: Any) -> bool:
        """Return whether `balance` would not hold the thread back; no time passes (BDP_ASYNC).

        If so, the account is that of a thread that `balance` has let pass.  Background writeback may start.
        In throttling to 3.1, which lacks BDP_ASYNC, the result is always False, and nothing changes.
        """

    def wrote(self, wb: Wb, since_ns: int) -> None:
        """Update the estimate of *wb*'s write bandwidth after a slice of its flusher, begun at *since_ns*.

        This happens at most every 200 ms, and not in eras that estimate no bandwidth.
        """

    def share(self, wb: Wb, pages: int) -> int:
        """Return the part (pages) of a threshold of *pages* pages that is *wb*'s.

        The part follows from the pages of all contexts that were written recently.  A single context has all.
        """


CongestionWait = Callable[["Thread", int], Steps]
"""congestion_wait (`models.congestion`): a thread sleeps until a queue leaves congestion, or for a time."""


class WriteBack(Protocol):
    """writeback_inodes_wbc: a thread that is not a flusher writes back."""

    def __call__(self, thread: Thread, wb: Wb, pages: int) -> Generator[Wait, None, int]:
        """Write back up to *pages* pages of dirty files of *wb*; return the pages taken off this budget."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Flushers(Protocol):
    """The threads that write back, as other parts see them."""

    @property
    def threads(self) -> list[Thread]:
        """All threads that were made, also those that have ended."""

    @property
    def alive(self) -> int:
        """The number of threads that exist now; for a workqueue, the number of running work items."""

    def register(self, bdi: Any) -> None:
        """Make the contexts of the device *bdi*, a `BackingDevice`, and the threads that they need.

        The contexts go into ``wbs`` of *bdi*, whose ``places`` is set.  The machine calls this once for each
        device.
        """

    def start_background(self, wb: Wb) -> None:
        """Let background writeback of *wb* begin: wake the thread that does it, and return at once.

        The throttle calls this because too many pages are dirty.  Depending on the kind, other contexts are
        written back, too, and nothing happens if no thread is free (pdflush).
        """

    def in_progress(self, wb: Wb) -> bool:
        """Return whether writeback of *wb* runs or is about to run.

        With pdflush, this is only while one of its threads writes an inode of the device.  A throttled writer
        starts background writeback only if the result is False.
        """

    def queue(self, wb: Wb, work: Work) -> Completion | None:
        """Queue *work* for *wb*, and return its completion, for which the caller may wait.

        The completion is a new one; ``done`` of *work* is not used.  Returns None if the work was dropped:
        then only the caller can do it.
        """


# -- places on disk --------------------------------------------------------------------------------------


class NoFile(CallError):
    """ENOENT: no file has the path; it ends the process, as any other `CallError` does."""


class NoSpace(CallError):
    """ENOSPC: no block is left that a write, an allocation or a new name could claim."""


class Caller:
    """A process in a system call, as a filesystem sees it; `models.syscalls.process` has the rest of it.

    A wait of the call also covers what the process does directly before and after, so that this needs no
    other event.  The process accounts for both.

    * ``lead_ns``: the work of the process before the call, which the first work of the call covers.
    * ``then_ns``: the work of the process directly after creat(2), which its last wait covers.
    * ``factor``: the factor by which the work of the call varies.
    """

    __slots__ = ("factor", "lead_ns", "spent", "task", "then_ns", "thread")

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.task = thread.task
        self.spent = thread.spent
        self.factor = 1.0
        self.lead_ns = self.then_ns = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Names(Protocol):
    """The directories and inodes of a filesystem.

    *caller* is the process in a system call; each call covers its ``lead_ns``.  The methods add their own
    processor time to ``spent`` of the thread.  `MountedSuperblock` has the inodes by path; the process
    changes these paths, and not the methods here.
    """

    def root(self) -> Any:
        """Return the root directory, which mkfs made, as the object that `create` takes for it."""

    def new_directory(self) -> Any:
        """Return a directory that existed before the run, as the object that `create` takes for it.

        `lay_out` of a superblock needs the directory for the files of a configuration.

        Raises:
            NoSpace: no inode is free for the directory (ext4).
        """

    def new_inode(self, cpu: int, directory: Any) -> Inode:
        """Return the inode of a file that existed in *directory* before the run; no time passes.

        The inode counts as cached.  *cpu* chooses its writeback context, as the processor that runs creat(2)
        does.

        Raises:
            NoSpace: no block or inode is free for the file or its name.
        """

    def mkdir(self, thread: Thread) -> Generator[Wait, None, Any]:
        """Make a directory, and return the object that `create` takes for it.  Use: `yield from`.

        Only processor time passes; nothing is logged.

        Raises:
            NoSpace: no inode is free for the directory (ext4).
        """

    def create(self, caller: Caller, directory: Any) -> Generator[Wait, None, Inode]:
        """Run creat(2) in *directory*, which `mkdir` or `root` returned; return the inode.

        Use: `yield from`.
        The last wait covers ``then_ns`` of *caller*.

        Raises:
            NoSpace: no block or inode is free for the file or its name.
        """

    def look_up(self, caller: Caller) -> Steps:
        """Look up the name of the next file in the order on disk, whose inode is not cached, and cache it.

        Use: `yield from`.  The inode is read, perhaps from the device.
        """

    def bulkstat(self, caller: Caller) -> Steps:
        """Read the next inode in the order of the numbers, without its name, and drop it at once.

        Use: `yield from`.  The device reads nothing here.  Only XFS has bulkstat.

        Raises:
            NotImplementedError: the filesystem is an ext4.
        """

    def unlink(self, caller: Caller) -> Steps:
        """Run unlink(2) of the next empty file in the order on disk, whose inode is not cached.

        The inode is read, perhaps from the device, removed and evicted.  This takes time and room in the log;
        no inode or name becomes free for another file.  Use: `yield from`.
        """

    def remove_name(self, caller: Caller, inode: Any) -> Steps:
        """Remove a name of *inode*, which is cached; the inode stays until `free_inode`.

        Use: `yield from`.
        """

    def rename(self, caller: Caller, inode: Any) -> Steps:
        """Give *inode* another name; `Process.rename` removes the inode that had it.  Use: `yield from`."""

    def free_inode(self, thread: Thread, inode: Any) -> Steps:
        """Free *inode*, which has neither a name nor a block, after its last close(2).  Use: `yield from`.

        The inode no longer counts as cached.  Its number does not become free for another file.
        """


@mypyc_attr(allow_interpreted_subclasses=True)
class Filesystem(Protocol):
    """Gives file pages their place on disk.

    * ``names``: the directories and inodes.
    * ``group_blocks``: the number of blocks of a group.
    * ``group_label``: the name of a group in the filesystem's tools.
    * ``tries_writes``: a buffered write that would wait may fail instead (FMODE_NOWAIT, FOP_BUFFER_WASYNC).
    * ``plugs_files``: writeback of one file opens a plug, which matters where the caller has none (fsync).
    """

    plugs_files: bool
    names: Names
    group_blocks: int
    group_label: str
    tries_writes: bool

    def append(self, inode: Any, pages: int) -> int:
        """Write *pages* complete pages behind the end of the file, in no time; return how many were clean.

        The file must be open.  The caller then counts the clean ones as dirty, in the inode and its context.

        Raises:
            NoSpace: too few blocks are free.
        """

    def write(self, inode: Any, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """Write to the pages at *indices*, *call_pages* pages with each write(2), in no time.

        Returns the number of pages that were written, from the first on, and how many of them were clean.
        The caller counts the clean ones as with `append`.  If not all were written, `make_way` is due before
        the rest.
        """

    def make_way(self, thread: Thread, inode: Any) -> Steps:
        """Do the work without which a `write` that stopped cannot go on.  Use: `yield from`.

        The work zeroes the old end of the file, or finds free blocks.  The caller then calls `write` again.

        Raises:
            NoSpace: no block is free, even after all the work that frees blocks.
        """

    def writes_at_once(self, inode: Any, indices: NDArray[np.int64]) -> int:
        """Return how many pages at *indices*, from the first on, could be written now, without a wait.

        Nothing changes.  A wait for the inode's lock, and a page that needs `make_way`, end the count.  The
        result is 0, too, if too few blocks are free, or if the pages are not kept one by one (`layouts`).
        """

    def write_lock(self, thread: Thread, inode: Any, pages: NDArray[np.int64], calls: int) -> Steps | None:
        """Take the inode's lock for a moment, before write(2) makes *pages* (numbers) dirty.

        *calls*: the number of write(2)s that begin with these pages; 0: they are the rest of one.  None: no
        wait was necessary.  Otherwise, yield the result; the lock is free again then.
        """

    def size_of(self, inode: Any) -> int:
        """Return the size of the file of *inode* (pages)."""

    def has_pages(self, inode: Any) -> bool:
        """Return whether the file of *inode* has pages or blocks, even behind its end."""

    def close(self, inode: Any, has_name: bool = False) -> None:
        """Handle the last close(2) of a file, in no time; a file that *has_name* may be opened again.

        The file gives up the blocks that it kept for its growth, but not those of fallocate(2).
        """

    def reopen(self, inode: Any) -> None:
        """Handle open(2), in no time, of a file that has a name and that no process has open."""

    def lay_out(self, inode: Any, pages: int, extents: int) -> None:
        """Give *inode*, an empty file, *pages* pages in *extents* extents of equal length, before the run.

        The last extent may be shorter, and there are more if the free blocks do not lie together.  The blocks
        count as written, not as unwritten, and no time passes.

        Raises:
            NoSpace: the filesystem has too few free blocks.
        """

    def preallocate(self, thread: Thread, inode: Any, pages: int, keeps_size: bool) -> Steps:
        """Give unwritten blocks to all holes among the first *pages* pages of the open *inode*.

        Use: `yield from`; it is fallocate(2).  A shorter file becomes as long, unless *keeps_size*
        (FALLOC_FL_KEEP_SIZE).

        Raises:
            NoSpace: the filesystem has too few free blocks.
        """

    def truncate(self, thread: Thread, inode: Any, pages: int) -> Steps:
        """Make *inode* *pages* pages long (ftruncate(2)).  Use: `yield from`.

        If the file becomes shorter, *thread* first waits for its writeback.  The blocks behind are free then,
        and dirty pages behind the end count as cancelled (`Wb.account_cancelled`).  A file that becomes
        longer gets a hole.
        """

    def forget(self, inode: Any) -> None:
        """Forget the file of *inode*, which is freed, so that results no longer have it."""

    def writes_before_close(self, inode: Any) -> bool:
        """Return whether close(2) must start the writeback of *inode*, because it was truncated.

        The caller then does so.  The answer is True only once for each truncation, and only if pages of
        *inode* have no blocks yet.
        """

    def writes_before_rename(self, inode: Any) -> bool:
        """Return whether a rename of *inode* over another file first starts the writeback of *inode*.

        An ext4 with auto_da_alloc does so if pages of *inode* have no blocks yet.
        """

    def write_pages(self, thread: Thread, inode: Any, wbc: WritebackControl) -> Steps:
        """Write dirty pages of *inode*: allocate, build bios and submit them.  Use: `yield from`.

        Subtract the written pages from the inode's dirty pages and from ``wbc.nr_to_write``.  In eras that
        count calls of writepage, ``nr_to_write`` has such calls in place of pages (do_writepages).
        """

    def converts(self, inode: Any) -> bool:
        """Return whether a worker converts pages of *inode* that are under writeback now.

        fsync(2) then also waits for the wake-up of this worker.  For a file whose pages are not kept one by
        one (`layouts`), the result says only whether the filesystem allocates unwritten blocks.
        """

    def wait_for_writeback(self, thread: Thread, inode: Any) -> Steps:
        """Let *thread* sleep until the pages of *inode* that are under writeback now are clean.

        Use: `yield from` (filemap_fdatawait).  For a file whose pages are not kept one by one (`layouts`),
        the thread waits for the pages of all files of the filesystem.
        """

    def sync_fs(self, thread: Thread) -> Steps:
        """Let *thread* sleep until everything that was logged by now is on disk.  Use: `yield from`."""

    def commit_inode(self, thread: Thread, inode: Any, datasync: bool) -> Steps:
        """Let *thread* wait until the last change of *inode* is in the log; then flush the disk's cache.

        Use: `yield from`.  *datasync*: a change of time stamps alone does not count (fdatasync(2)).
        """

    def group_of(self, inode: Any) -> int:
        """Return the number of the group, from 0 on, in which the inode itself lies."""

    @property
    def log_bytes(self) -> int:
        """The bytes written to the log so far."""

    def check(self) -> None:
        """Check that no block is in two places and no page is lost; raise `LawBroken` otherwise."""

    def layouts(self) -> Sequence[Any]:
        """Return the files whose pages are kept one by one (`PagedFile`), oldest first, for results.

        A short file to which only `append` has written is as a rule not among them.
        """

    def extents_per_file(self) -> tuple[int, ...]:
        """Return the number of extents of each file of `layouts`, in the same order."""


# -- the block layer -------------------------------------------------------------------------------------


class PlugCallback(Protocol):
    """struct blk_plug_cb: what an array of disks keeps in the plug of a task."""

    def call_back(self, thread: Thread) -> Steps:
        """Let *thread*, which flushes its plug, submit what the plug keeps.  Use: `yield from`."""

    def hand_over(self) -> None:
        """Give what the plug keeps to the array's own thread, because the task goes to sleep."""


class Thread(Protocol):
    """A task as the block layer sees it: it submits bios, and may have a plug (current->plug).

    The methods add the processor time that they take to ``spent``.
    """

    task: Task
    spent: Spent
    background: bool  # whether it does background or periodic writeback

    def start_plug(self) -> bool:
        """Open the thread's plug; return False if one is open already, because nested plugs are inert.

        If it returns True, the caller must call `finish_plug`.
        """

    def finish_plug(self) -> Iterable[Wait]:
        """Issue the plug's requests, and close the plug, which is open.

        Use: `yield from thread.finish_plug()`.
        """

    def flush_plug(self) -> Iterable[Wait]:
        """Issue the requests of the plug, which is open and stays open.  Use: `yield from`."""

    def before_sleep(self) -> None:
        """Empty the plug, as schedule() does, in no time; call this before the thread sleeps.

        kblockd issues its requests, and the thread pays nothing.
        """

    def check_plugged(self, array: Any, make: Callable[[], PlugCallback]) -> PlugCallback | None:
        """Return what *array* keeps in the plug, which *make* makes at first; None: no plug is open."""

    def drop_callback(self, array: Any) -> None:
        """Take what *array* keeps, which is there, out of the plug, because the array submits it now."""

    def submit_bio(self, bio: Bio) -> Steps | None:
        """Submit *bio*; return None if it joined a plugged request, which takes no time.

        Otherwise, use `yield from` on the result: the bio joins a waiting request or gets a new one, for
        which the thread may sleep.  Its ``end_io`` is called when it is complete.
        """

    def submit_bios(self, bios: Sequence[Bio]) -> Steps:
        """Submit *bios* in order, to queues of disks.  Use: `yield from`.

        New requests in the plug take their time together.
        """
