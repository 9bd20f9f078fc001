"""sync(2) and fsync(2): everything that was dirty at the call, or of a file, is on disk when it returns.

Stands for sys_sync, wakeup_flusher_threads, sync_inodes_sb, wait_sb_inodes and ->sync_fs (fs/sync.c,
fs/fs-writeback.c; mechanisms.md 5.1), and for vfs_fsync.  The contexts of a device are asked one after
another, as the series of report W25 does.  Left out: the walk over all cached inodes and its locks, the
mappings of block devices; fsync(2) waits for a flusher that is at its file, and for whatever its filesystem
has under writeback then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from models.page_cache.accounting import PageCache
from models.seams import UNLIMITED_PAGES, Flushers, Inode, Thread
from models.vfs.superblock import MountedSuperblock
from models.writeback.work import Work
from sim.cpu import sleep
from sim.engine import Environment, Steps
from sim.units import US

_POLL_NS: Final = 100 * US
"""How often fsync(2) looks whether the flusher has left its file."""


def sync(
    thread: Thread, superblocks: Sequence[MountedSuperblock], flushers: Flushers, cache: PageCache
) -> Steps:
    """Everybody's sync(2) on *superblocks*, by *thread*."""
    for bdi in dict.fromkeys(sb.bdi for sb in superblocks):
        for wb in bdi.wbs:
            if len(wb):
                flushers.queue(wb, Work("start", cache.dirty))
    for sb in superblocks:
        for wb in sb.bdi.wbs:
            done = flushers.queue(wb, Work("sync", sb=sb))
            if done is not None:
                yield from done.wait(thread.task)
        yield from sb.wait_for_writeback(thread)
    for sb in superblocks:
        yield from sb.filesystem.sync_fs(thread)


def fsync(env: Environment, thread: Thread, inode: Inode, sb: MountedSuperblock) -> Steps:
    """fsync(2) of a file of *sb*: *thread* itself writes what is dirty of it, and waits for it and for the
    log.
    """
    while inode.syncing:
        yield from sleep(thread.task, _POLL_NS, "lock I_SYNC")
    if inode.dirty_pages:
        wb = inode.wb
        for inodes in (wb.b_dirty, wb.b_io, wb.b_more_io):
            if inode in inodes:
                inodes.remove(inode)
        inode.syncing = True
        plugged = thread.start_plug()
        yield from sb.filesystem.write_pages(thread, inode, UNLIMITED_PAGES)
        if plugged:
            yield from thread.finish_plug()
        inode.syncing = False
        if inode.dirty_pages:
            wb.add(inode, env.now)
    yield from sb.wait_for_writeback(thread)
    yield from sb.filesystem.commit_log(thread)
