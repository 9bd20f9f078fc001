"""sync(2), syncfs(2) and fsync(2): when they return, the data that was dirty at the call is on disk.

A call follows a file that grows meanwhile: it writes the file to its end, and the end moves.  So next to a
stream of writes, it may return only when the stream ends, under every kernel.  Real kernels from 2.6.36 on
mark the dirty pages first (PAGECACHE_TAG_TOWRITE), which is left out.  In these kernels up to 4.13 a sync(2)
therefore ends sooner than here; from 4.14 on its last wait follows the stream as well.

Stands for sys_sync, sync_filesystem, wakeup_flusher_threads, sync_inodes_sb, wait_sb_inodes and ->sync_fs
(fs/sync.c, fs/fs-writeback.c; docs/kernel/inodes.md#sync), and for vfs_fsync and filemap_flush.  The contexts
of a device get their work one after another, as in the series of report W25.  Left out, too: the mappings of
block devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from wbsim.models.interfaces import Flushers, Inode, InodeSync, Thread, Wb, Work, WritebackControl
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.scheduler.cpu import sleep
from wbsim.models.time_accounting import WAKE_UP
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.sync import WakeUps

LOG_WORKERS: Final = 2
"""The wake-ups in a forced log write: of the CIL's worker and of the end of its record; twice of jbd2."""
Perform = Callable[[Thread, Wb, Work], Steps]
"""wb_writeback (`models.writeback.loop.Writeback.perform`)."""


class Syncs:
    """The system calls that write back dirty data, for any thread.

    The flushers do the work.  If they drop a work, the caller does it with *perform*.  *wakes* are the
    wake-ups of the tasks that hand the work of an fsync(2) to each other.
    """

    def __init__(
        self,
        *,
        env: Environment,
        superblocks: Sequence[MountedSuperblock],
        flushers: Flushers,
        cache: PageCache,
        perform: Perform,
        wakes: WakeUps,
    ) -> None:
        self._wakes = wakes
        self._env = env
        self._superblocks = superblocks
        self._flushers = flushers
        self._cache = cache
        self._perform = perform

    def sync(self, thread: Thread) -> Steps:
        """Write back all superblocks, and wait (sync(2)).  Use: `yield from`.

        *thread* waits for the flushers, or does the work that they drop.
        """
        superblocks = self._superblocks
        for bdi in dict.fromkeys(sb.bdi for sb in superblocks):
            for wb in bdi.wbs:
                if len(wb):  # no thread waits for this work, so it may be dropped
                    self._flushers.queue(wb, Work("start", self._cache.dirty))
        for sb in superblocks:
            yield from self._sync_inodes(thread, sb)
        for sb in superblocks:
            yield from sb.filesystem.sync_fs(thread)

    def syncfs(self, thread: Thread, sb: MountedSuperblock) -> Steps:
        """Write back *sb*, and wait (syncfs(2)).  Use: `yield from`.

        Like `sync`, but for one superblock, and the first work is waited for, too (writeback_inodes_sb).
        """
        for wb in sb.bdi.wbs:
            if len(wb):
                yield from self._have_done(thread, wb, Work("start", self._cache.dirty, sb))
        yield from self._sync_inodes(thread, sb)
        yield from sb.filesystem.sync_fs(thread)

    def _sync_inodes(self, thread: Thread, sb: MountedSuperblock) -> Steps:
        """sync_inodes_sb."""
        for wb in sb.bdi.wbs:
            yield from self._have_done(thread, wb, Work("sync", sb=sb))
        yield from sb.wait_sb_inodes(thread)

    def _have_done(self, thread: Thread, wb: Wb, work: Work) -> Steps:
        """Have *work* done on *wb*, and wait for its end."""
        done = self._flushers.queue(wb, work)
        if done is not None:
            yield from done.wait(thread.task)
        else:
            yield from self._perform(thread, wb, work)

    def fsync(self, thread: Thread, inode: Inode, datasync: bool = False) -> Steps:
        """Let *thread* write the dirty pages of *inode*, and wait for writeback and the log.

        Use: `yield from`.
        *datasync*: fdatasync(2), which does not wait for time stamps.
        NOTE: each sleep of the caller ends with wake-ups: of the task itself, and of the workers on the way.
        These convert extents and write the log.  Here all of them follow the last one's work.  Other waits
        for kernel threads take no time for wake-ups, because costs were fitted without it.
        """
        sb = inode.sb
        while inode.i_sync is not None:
            yield from inode.i_sync.wait(thread)
        if inode.dirty_pages:
            yield from self._write_inode(thread, inode, WritebackControl("sync"))
        converts, waits_ns = sb.filesystem.converts(inode), self._env.now
        yield from sb.filesystem.wait_for_writeback(thread, inode)
        if self._env.now > waits_ns:
            yield from self._wake(thread, 1 + converts)
        waits_ns = self._env.now
        yield from sb.filesystem.commit_inode(thread, inode, datasync)
        if self._env.now > waits_ns:
            yield from self._wake(thread, 1 + LOG_WORKERS)

    def _wake(self, thread: Thread, count: int) -> Steps:
        """Let *thread* sleep for the time of *count* wake-ups, one after another."""
        yield from sleep(thread.task, sum(self._wakes.next_ns() for _ in range(count)), WAKE_UP)

    def flush(self, thread: Thread, inode: Inode) -> Steps:
        """Let *thread* start the writeback of all dirty pages of *inode*, without a wait for its end.

        Use: `yield from`.  close(2) and rename(2) call it for files that replace others (filemap_flush).
        """
        while inode.i_sync is not None:
            yield from inode.i_sync.wait(thread)
        if inode.dirty_pages:
            yield from self._write_inode(thread, inode, WritebackControl("start", from_start=True))

    def _write_inode(self, thread: Thread, inode: Inode, wbc: WritebackControl) -> Steps:
        """filemap_fdatawrite: *thread* itself writes the dirty pages of *inode*."""
        wb, i_sync = inode.wb, InodeSync(self._env)
        wb.take_off(inode)
        wb.i_syncs.append(i_sync)
        i_sync.begin(inode)
        plugged = inode.sb.filesystem.plugs_files and thread.start_plug()
        yield from inode.sb.filesystem.write_pages(thread, inode, wbc)
        if plugged:
            yield from thread.finish_plug()
        i_sync.end(inode)
        wb.i_syncs.remove(i_sync)
        if inode.dirty_pages:
            wb.give_back(inode)
