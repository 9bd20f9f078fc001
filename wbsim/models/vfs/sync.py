"""sync(2), syncfs(2) and fsync(2): everything that was dirty at the call, or of a file, is on disk when it
returns.

Stands for sys_sync, sync_filesystem, wakeup_flusher_threads, sync_inodes_sb, wait_sb_inodes and ->sync_fs
(fs/sync.c, fs/fs-writeback.c; mechanisms.md 5.1), and for vfs_fsync.  The contexts of a device are asked one
after another, as the series of report W25 does.  Left out: the walk over all cached inodes and its locks, the
mappings of block devices; fsync(2) waits for whatever its filesystem has under writeback, not for its file's
pages alone.

`SystemCalls` is what a program asks of the kernel, other than of a filesystem alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wbsim.models.interfaces import Flushers, Inode, InodeSync, Thread, Wb, Work, WritebackControl
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.models.vfs.write import BufferedWriter
from wbsim.sim.engine import Environment, Steps

Perform = Callable[[Thread, Wb, Work], Steps]
"""wb_writeback (`models.writeback.loop.Writeback.perform`)."""


class Syncs:
    """The system calls that write back what is dirty, by whichever thread.

    Flushers do it; a work that they drop is done by the caller itself, with *perform*.
    """

    def __init__(
        self,
        *,
        env: Environment,
        superblocks: Sequence[MountedSuperblock],
        flushers: Flushers,
        cache: PageCache,
        perform: Perform,
    ) -> None:
        self._env = env
        self._superblocks = superblocks
        self._flushers = flushers
        self._cache = cache
        self._perform = perform

    def sync(self, thread: Thread) -> Steps:
        """sync(2): of all superblocks."""
        superblocks = self._superblocks
        for bdi in dict.fromkeys(sb.bdi for sb in superblocks):
            for wb in bdi.wbs:
                if len(wb):  # nobody waits for this work: it may be dropped
                    self._flushers.queue(wb, Work("start", self._cache.dirty))
        for sb in superblocks:
            yield from self._sync_inodes(thread, sb)
        for sb in superblocks:
            yield from sb.filesystem.sync_fs(thread)

    def syncfs(self, thread: Thread, sb: MountedSuperblock) -> Steps:
        """syncfs(2): writeback_inodes_sb, and sync(2) of *sb* alone."""
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
        """Have *work* done on *wb*, and wait for that."""
        done = self._flushers.queue(wb, work)
        if done is not None:
            yield from done.wait(thread.task)
        else:
            yield from self._perform(thread, wb, work)

    def fsync(self, thread: Thread, inode: Inode, sb: MountedSuperblock) -> Steps:
        """fsync(2) of a file of *sb*: *thread* writes what is dirty of it, and waits for it and the log."""
        while inode.i_sync is not None:
            yield from inode.i_sync.wait(thread)
        if inode.dirty_pages:
            yield from self._write_inode(thread, inode, sb)
        yield from sb.wait_for_writeback(thread)
        yield from sb.filesystem.commit_log(thread)

    def _write_inode(self, thread: Thread, inode: Inode, sb: MountedSuperblock) -> Steps:
        """filemap_fdatawrite: *thread* itself writes the dirty pages of *inode*."""
        wb, i_sync = inode.wb, InodeSync(self._env)
        wb.take_off(inode)
        wb.i_syncs.append(i_sync)
        i_sync.begin(inode)
        plugged = thread.start_plug()
        yield from sb.filesystem.write_pages(thread, inode, WritebackControl("sync"))
        if plugged:
            yield from thread.finish_plug()
        i_sync.end(inode)
        wb.i_syncs.remove(i_sync)
        if inode.dirty_pages:
            wb.give_back(inode)


@dataclass(frozen=True)
class SystemCalls:
    """``mount_of`` a path, ``writer`` for a thread that is to write, and ``syncs``."""

    mount_of: Callable[[str], MountedSuperblock]
    writer: Callable[[Thread], BufferedWriter]
    syncs: Syncs
