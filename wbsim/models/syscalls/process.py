"""A process and its system calls, each with the time that it takes and the locks that it asks for.

A call returns steps or a wait, which the program yields.  The waits of two calls in a row are one event where
no other task can observe the instant between them.  Therefore a call accepts what the program does next: its
first write(2) behind creat(2), its close(2) behind a write(2).

NOTE: write(2), fallocate(2) and ftruncate(2) own the file's i_rwsem from their begin to their end, but only
if two processes have the file open.  A call that is running at the second open(2) does not own it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from mypy_extensions import i64
from numpy.typing import NDArray

from wbsim.models.interfaces import Inode, NoFile, Thread, Throttle
from wbsim.models.scheduler.cpu import cond_resched
from wbsim.models.syscalls.latency import Latencies, Latency
from wbsim.models.syscalls.sync import Syncs
from wbsim.models.syscalls.syncing import SyncingWriter
from wbsim.models.vfs.spec import WriteCosts
from wbsim.models.vfs.superblock import Dentry, MountedSuperblock
from wbsim.sim.engine import CallError, Environment, Steps, Wait
from wbsim.sim.streams import Draws
from wbsim.sim.sync import RwSemaphore


def _dentry_of(sb: MountedSuperblock, path: str) -> Dentry:
    """Return the name of the file at *path* on *sb*.

    Raises:
        NoFile: there is no file, or it is being made.
    """
    dentry = sb.dentries.get(path)
    if dentry is None or dentry.inode is None:
        raise NoFile(f"{path}: No such file or directory")
    return dentry


def size_of(inode: Inode) -> int:
    """Return the size of the file of *inode* (pages)."""
    return inode.sb.filesystem.size_of(inode)


def _copy(process: Process, inode: Inode, pages: NDArray[np.int64]) -> Steps:
    """Let *process* copy *pages*, make them dirty, and wait as the throttle says."""
    copy_ns = int(process.write_ns(len(pages), inode.sb) * process.factor)
    process.spent.write += copy_ns
    yield copy_ns
    if wait := process.put(inode, pages, len(pages)):
        yield wait
    if process.due(inode.wb):
        yield from process.balance(inode.wb)


def _alone(process: Process, inode: Inode, call: Steps) -> Steps:
    """Return *call* of *process*, which owns the i_rwsem of *inode* if another process has the file open."""
    i_rwsem = process.i_rwsem_of(inode)
    return call if i_rwsem is None else i_rwsem.own_for(process.task, call, process.thread.before_sleep)


class Folder:
    """A directory that a process has open, as openat(2) takes it; *directory* is the filesystem's own."""

    __slots__ = ("directory", "filesystem", "names", "sb")

    def __init__(self, sb: MountedSuperblock, directory: Any) -> None:
        self.sb = sb
        self.directory = directory
        self.filesystem = sb.filesystem
        self.names = sb.filesystem.names


class Process(SyncingWriter):
    """One process and its system calls.

    An open file is its inode, and a process may not open a file twice at a time.  A path must be plain
    (`plain_path`), because files are kept by it.  *mount_of* returns the superblock of a path, and raises
    ValueError outside every mount.
    """

    __slots__ = (
        "_call_latency", "_close_ns", "_closes", "_creates", "_dentries", "_folder", "_paid_ns", "_price_ns",
        "_priced",
    )  # fmt: skip

    def __init__(
        self,
        *,
        env: Environment,
        thread: Thread,
        mount_of: Callable[[str], MountedSuperblock],
        costs: WriteCosts,
        throttle: Throttle,
        syncs: Syncs,
        factors: Draws,
        latencies: Latencies,
    ) -> None:
        super().__init__(env, thread, factors, latencies, costs, throttle, mount_of, syncs)
        self._close_ns = costs.close_ns
        self._folder: Folder | None = None  # of the last creat(2)
        self._priced = self._price_ns = 0  # the price of a write to so many pages in this folder
        self._creates = False  # the end of the last creat(2) is not counted yet
        # The last wait has covered ``_paid_ns`` of the close(2) after a call that ``_call_latency`` counts.
        self._closes = False
        self._paid_ns: i64 = 0
        self._call_latency = latencies.write
        self._dentries: dict[Inode, Dentry] = {}  # the files that it has open by their names

    # -- names

    def mkdir(self, path: str) -> Generator[Wait, None, Folder]:
        """Return the directory at *path*, opened; make it if it does not exist (mkdir -p).

        Use: `yield from`.
        The call counts as a mkdir(2) only if time passed.

        Raises:
            NoSpace: no inode is free for the directory (ext4).
        """
        sb, began_ns = self._mount_of(path), self._env.now
        self.began(0)
        folder = Folder(sb, (yield from sb.directory(self.thread, path)))
        if self._env.now > began_ns:
            self.end_call(self.latencies.mkdir)
        return folder

    def creat(self, folder: Folder, pages: int = 0, closes: bool = False) -> Generator[Wait, None, Inode]:
        """Make a new file in *folder* (creat(2)); return the inode.  Use: `yield from`.

        No path leads to this file; `open` makes a file with a path.  *pages*: `write` of so many pages must
        follow at once, and counts the call.  *closes*: `close` must follow at once instead.

        Raises:
            NoSpace: no block or inode is free for the file or its name.
        """
        if folder is not self._folder:
            self._folder, self._priced = folder, 0
        if pages != self._priced:
            self._priced, self._price_ns = pages, self.write_ns(pages, folder.sb) if pages else 0
        self.begins()
        if closes:
            self.then_ns = self._pays_close(self.latencies.creat)
        elif pages:
            self.then_ns, self._creates = int(self._price_ns * self.factor), True
        else:
            return self._creat_alone(folder)
        return folder.names.create(self, folder.directory)

    def _creat_alone(self, folder: Folder) -> Generator[Wait, None, Inode]:
        self.then_ns = 0
        inode = yield from folder.names.create(self, folder.directory)
        self.end_call(self.latencies.creat)
        return inode

    def open(self, path: str, truncates: bool = False, creates: bool = True) -> Generator[Wait, None, Inode]:
        """Open the file at *path*; return its inode.  Use: `yield from`.

        If there is none, the file and its directory are made if *creates* (O_CREAT).  *truncates*: a file
        that exists loses its pages (O_TRUNC).  Left out: the time to look up the name of a file that exists.

        Raises:
            NoFile: there is no file, and the call does not make one.
            NoSpace: no block or inode is free for a new file, its name or its directory.
        """
        sb = self._mount_of(path)
        dentry = sb.dentries.get(path)
        if dentry is None:
            if not creates:
                raise NoFile(f"{path}: No such file or directory")
            dentry = sb.dentries[path] = Dentry(self._env)
            folder = yield from self.mkdir(path.rpartition("/")[0] or "/")
            dentry.inode = yield from self.creat(folder)
            dentry.creation.complete()
        elif dentry.inode is None:
            self.began(0)
            yield from dentry.creation.wait(self.task)
            self.end_call(self.latencies.open)
        elif not dentry.opens:
            sb.filesystem.reopen(dentry.inode)
        dentry.opens += 1
        if dentry.opens > 1 and dentry.i_rwsem is None:
            dentry.i_rwsem = sb.new_i_rwsem()
        self._dentries[dentry.inode] = dentry
        inode: Inode = dentry.inode
        if truncates and sb.filesystem.has_pages(inode):
            yield from self._after_lead(self.latencies.open, sb.filesystem.truncate(self.thread, inode, 0))
        return inode

    def i_rwsem_of(self, inode: Inode) -> RwSemaphore | None:
        """Return the i_rwsem of the open file *inode*; None if no other process has the file open.

        Without another process, the lock is always free, and its time is a part of the time of a call.
        """
        if not self._dentries:
            return None
        dentry = self._dentries.get(inode)
        return None if dentry is None or dentry.opens < 2 else dentry.i_rwsem

    def pages_of(self, path: str) -> int:
        """Return the size of the file at *path* (pages), in no time; -1: there is none, or not yet.

        fio looks at its files this way before it begins, and after it removes them (stat(2)).
        """
        dentry = self._mount_of(path).dentries.get(path)
        return -1 if dentry is None or dentry.inode is None else size_of(dentry.inode)

    def unlink_file(self, path: str) -> Steps:
        """Remove the name *path* of a file, whose inode is cached (unlink(2)).  Use: `yield from`.

        The inode and its blocks are freed now, or after the last close(2) if a process has it open.

        Raises:
            NoFile: there is no file.
        """
        sb = self._mount_of(path)
        dentry = _dentry_of(sb, path)
        del sb.dentries[path]
        self.begins()
        yield from sb.filesystem.names.remove_name(self, dentry.inode)
        yield from self._unlinked(dentry)
        self.end_call(self.latencies.unlink)

    def rename(self, path: str, new_path: str) -> Steps:
        """Rename the file at *path*, which replaces the file at *new_path*, if there is one.

        Use: `yield from`.
        Both lie on one filesystem.  ext4 may first start the writeback of the file.

        Raises:
            NoFile: there is no file at *path*.
            CallError: the paths are on different filesystems.
        """
        sb = self._mount_of(path)
        if self._mount_of(new_path) is not sb:
            raise CallError(f"{new_path}: Invalid cross-device link")
        dentry, replaced = _dentry_of(sb, path), sb.dentries.get(new_path)
        self.begins()
        if replaced is not None and sb.filesystem.writes_before_rename(dentry.inode):
            yield self.lead_ns
            self.lead_ns = 0
            yield from self._syncs.flush(self.thread, dentry.inode)
        yield from sb.filesystem.names.rename(self, dentry.inode)
        del sb.dentries[path]
        sb.dentries[new_path] = dentry
        if replaced is not None:
            yield from self._unlinked(replaced)
        self.end_call(self.latencies.rename)

    def _unlinked(self, dentry: Dentry) -> Steps:
        """Free the inode of *dentry*, whose name is gone, unless a process has it open."""
        dentry.unlinked = True
        if not dentry.opens:
            yield from self._evict(dentry.inode)

    def _evict(self, inode: Inode) -> Steps:
        """evict: free the blocks of *inode*, and the inode itself."""
        filesystem = inode.sb.filesystem
        if filesystem.has_pages(inode):
            yield from filesystem.truncate(self.thread, inode, 0)
        filesystem.forget(inode)
        yield from filesystem.names.free_inode(self.thread, inode)

    def stat(self, sb: MountedSuperblock) -> Steps:
        """Look up the next file on *sb* in the order on disk, whose inode is not cached (stat(2)).

        Yield the result (`Names.look_up`).

        `returns` must follow: it ends the call and counts its latency.
        """
        self.begins()
        self.returning = self.latencies.stat
        return sb.filesystem.names.look_up(self)

    def bulkstat(self, sb: MountedSuperblock) -> Steps:
        """Read the next inode of *sb*, an XFS, without its name (XFS_IOC_BULKSTAT).  Yield the result.

        `returns` must follow: it ends the call and counts its latency.
        """
        self.begins()
        self.returning = self.latencies.bulkstat
        return sb.filesystem.names.bulkstat(self)

    def unlink(self, sb: MountedSuperblock) -> Steps:
        """Remove the next empty file on *sb* in the order on disk, whose inode is not cached (unlink(2)).

        Yield the result (`Names.unlink`).  `returns` must follow: it ends the call and counts its latency.  A
        file with a path goes through `unlink_file`.
        """
        self.begins()
        self.returning = self.latencies.unlink
        return sb.filesystem.names.unlink(self)

    # -- files

    def write(self, inode: Inode, pages: int, closes: bool = False) -> Wait:
        """Write *pages* complete pages behind the end of *inode* (O_APPEND, write(2)).  Yield the result.

        Behind a `creat` with *pages*, this is that write.  *closes*: `close` must follow at once; the wait
        then covers it.

        Raises:
            NoSpace: too few blocks are free; the error comes up here or where the result is yielded.
        """
        copied_ns, folder = self.then_ns, self._folder
        if not copied_ns or folder is None:
            return self._copy_and_write(inode, pages, closes)
        assert pages == self._priced, "the first write(2) must have the pages that creat(2) was told"
        self.then_ns, self._creates = 0, False
        self.spent.write += copied_ns
        self.end_call(self.latencies.creat, copied_ns)
        return self._finish_write(inode, folder.filesystem.append(inode, pages), closes)

    def _copy_and_write(self, inode: Inode, pages: int, closes: bool) -> Steps:
        if self._creates:
            self._creates = False
            self.end_call(self.latencies.creat)
        copy_ns = int(self.write_ns(pages, inode.sb) * self.factor)
        self.spent.write += copy_ns
        self.begins()
        yield self.lead_ns + copy_ns
        yield self._finish_write(inode, inode.sb.filesystem.append(inode, pages), closes)

    def _finish_write(self, inode: Inode, clean: int, closes: bool) -> Wait:
        """Make *clean* copied pages dirty; return the wait for the rest of write(2), and for close(2)."""
        wb, dirtier = inode.wb, self._dirtier
        wb.account_dirtied(clean)
        dirtier.dirtied(clean)
        if dirtier.nr_dirtied >= self._throttle.poll_pages(wb, dirtier):
            return self.ends_after(self.latencies.write, self.mark_and_balance(inode, clean))
        if not closes:
            return self.ends_after(self.latencies.write, self.mark_dirty(inode, clean, 0))
        return self.mark_dirty(inode, clean, self._pays_close(self.latencies.write))

    def _pays_close(self, latency: Latency) -> int:
        """Return the time of a close(2), which the last wait of a call covers that *latency* counts."""
        self._paid_ns = int(self._close_ns * self.factor)
        self.spent.close += self._paid_ns
        self._closes, self._call_latency = True, latency
        return self._paid_ns

    def pwrite(self, inode: Inode, page: int, pages: int) -> Steps:
        """Write *pages* complete pages of the open file *inode* from page *page* on.  Use: `yield from`.

        Raises:
            NoSpace: too few blocks are free; the first of the pages may be written.
        """
        call = _copy(self, inode, np.arange(page, page + pages))
        return self._after_lead(self.latencies.write, _alone(self, inode, call))

    def close(self, inode: Inode) -> Wait | None:
        """Close *inode*, and return to user mode (close(2)).  Yield the result, unless it is None.

        The last close ends in the filesystem, and frees an inode whose name is gone.  Some truncated files
        are written back first.
        """
        folder = self._folder
        if not self._closes or self._dentries or folder is None or folder.sb is not inode.sb:
            return self._close(inode)
        self._closes = False
        self.then_ns = 0
        self.end_call(self._call_latency, self._paid_ns)
        filesystem = folder.filesystem
        filesystem.close(inode, False)  # a default would be slower
        return self.ends(self.latencies.close, cond_resched(self.task))

    def _close(self, inode: Inode) -> Steps:
        is_paid, self._closes = self._closes, False
        if is_paid:
            self.end_call(self._call_latency, self._paid_ns)
        dentry = self._dentries.pop(inode, None)
        if dentry is not None:
            dentry.opens -= 1
        writes_back = inode.sb.filesystem.writes_before_close(inode)
        if not writes_back:
            self._release(inode, dentry)
        if not is_paid:
            close_ns = int(self._close_ns * self.factor)
            self.spent.close += close_ns
            self.begins()
            yield self.lead_ns + close_ns
        if writes_back:
            yield from self._syncs.flush(self.thread, inode)
            self._release(inode, dentry)
        if dentry is not None and dentry.unlinked and not dentry.opens:
            yield from self._evict(inode)
        if (rest := self.ends(self.latencies.close, cond_resched(self.task))) is not None:
            yield rest

    def exits(self) -> Steps:
        """Close all files that the process has open by their names (exit(2)).  Use: `yield from`.

        Files of `creat`, which have no names, stay open.
        """
        self.then_ns, self._creates = 0, False
        for inode in list(self._dentries):
            if (ready := self.close(inode)) is not None:
                yield ready

    def _release(self, inode: Inode, dentry: Dentry | None) -> None:
        """Tell the filesystem that *inode*, which *dentry* may name, is closed, if no open remains."""
        if dentry is None or not dentry.opens:
            inode.sb.filesystem.close(inode, dentry is not None)

    def fallocate(self, inode: Inode, pages: int, keeps_size: bool = False) -> Steps:
        """Give blocks to holes among the first *pages* pages of the open file *inode* (fallocate(2)).

        Use: `yield from`.  A shorter file becomes as long, unless *keeps_size*.

        Raises:
            NoSpace: the filesystem has too few free blocks.
        """
        call = inode.sb.filesystem.preallocate(self.thread, inode, pages, keeps_size)
        return self._after_lead(self.latencies.fallocate, _alone(self, inode, call))

    def ftruncate(self, inode: Inode, pages: int) -> Steps:
        """Make the open file *inode* *pages* pages long, longer or shorter (ftruncate(2)).

        Use: `yield from`.
        """
        call = inode.sb.filesystem.truncate(self.thread, inode, pages)
        return self._after_lead(self.latencies.ftruncate, _alone(self, inode, call))


@dataclass(frozen=True)
class SystemCalls:
    """The system calls of one machine, which its processes make.

    * ``mount_of``: returns the superblock of a path.
    * ``costs``: the costs of write(2) and close(2).
    * ``tick_ns``: the resolution of the times of files.
    """

    env: Environment
    mount_of: Callable[[str], MountedSuperblock]
    costs: WriteCosts
    throttle: Throttle
    syncs: Syncs
    tick_ns: int

    def process(self, thread: Thread, factors: Draws, latencies: Latencies) -> Process:
        """Return a process that runs in *thread*; *factors* (mean 1) vary the work of its calls.

        *latencies* count its calls; the processes of a program may share them.
        """
        return Process(
            env=self.env, thread=thread, mount_of=self.mount_of, costs=self.costs, throttle=self.throttle,
            syncs=self.syncs, factors=factors, latencies=latencies,
        )  # fmt: skip
