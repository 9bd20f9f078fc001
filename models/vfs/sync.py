"""sync(2): everything that was dirty at the call is on disk when it returns.

Stands for sys_sync, wakeup_flusher_threads, sync_inodes_sb, wait_sb_inodes and ->sync_fs (fs/sync.c,
fs/fs-writeback.c; mechanisms.md 5.1).  The contexts of a device are asked one after another, as the series of
report W25 does.  Left out: the walk over all cached inodes and its locks, the mappings of block devices.
"""

from __future__ import annotations

from collections.abc import Sequence

from models.page_cache.accounting import PageCache
from models.seams import Flushers, Thread
from models.vfs.superblock import MountedSuperblock
from models.writeback.work import Work
from sim.engine import Steps


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
