"""A process and its system calls, each with the time that it takes and the locks that it asks for.

A call returns steps or a wait, which the program yields.  The waits of two calls in a row are one event where
no other task can observe the instant between them.  Therefore a call accepts what the program does next: its
first write(2) behind creat(2), its close(2) behind a write(2).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wbsim.models.interfaces import Caller, Inode, Thread, Throttle
from wbsim.models.scheduler.cpu import cond_resched, sleep, work
from wbsim.models.syscalls.sync import Syncs
from wbsim.models.syscalls.write import Writer
from wbsim.models.time_accounting import PAUSE
from wbsim.models.vfs.spec import WriteCosts
from wbsim.models.vfs.superblock import Dentry, MountedSuperblock
from wbsim.sim.engine import Environment, Park, Steps, Wait
from wbsim.sim.streams import Draws


class Folder:
    """A directory that a process has open, as openat(2) takes it; *directory* is the filesystem's own.

    It has the methods of the filesystem that every small file needs, because they are slow to look up.
    """

    __slots__ = ("append", "close", "create", "directory", "sb")

    def __init__(self, sb: MountedSuperblock, directory: Any) -> None:
        filesystem = sb.filesystem
        self.sb = sb
        self.directory = directory
        self.create: Callable[[Caller, Any], Generator[Wait, None, Inode]] = filesystem.names.create
        self.append: Callable[[Inode, int], int] = filesystem.append
        self.close: Callable[[Inode], None] = filesystem.close


class Process(Writer):
    """One process and its system calls.

    An open file is its inode.  *mount_of* returns the superblock of a path.  *factors* are the factors by
    which the work of calls varies.
    """

    __slots__ = (
        "_ahead_ns", "_close_ns", "_closes", "_factors", "_folder", "_mount_of", "_named",
        "_price_ns", "_priced", "_syncs",
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
    ) -> None:
        super().__init__(env, thread, costs, throttle)
        self._mount_of = mount_of
        self._close_ns = costs.close_ns
        self._syncs = syncs
        self._factors = factors
        self._ahead_ns = 0  # the program's work before its next call
        self._folder: Folder | None = None  # of the last creat(2)
        self._priced = self._price_ns = 0  # the price of a write to so many pages in this folder
        self._closes = False  # the last write(2) has paid for the close(2)
        self._named: dict[Inode, Dentry] = {}  # the files that it has open by their names

    # -- the program itself

    def vary(self) -> float:
        """Draw the factor by which the next calls vary, and return it."""
        self.factor = self._factors.next()
        return self.factor

    def works(self, user_ns: int, system_ns: int) -> None:
        """Let the program work before its next call, and draw the factor by which the next calls vary.

        It works for *user_ns* itself and for *system_ns* in calls that have no method here.
        """
        self.spent.user += user_ns
        self.spent.program += system_ns
        self._ahead_ns = user_ns + system_ns + self.task.owed_ns
        self.task.owed_ns = 0
        self.factor = self._factors.next()

    def runs(self, user_ns: int, system_ns: int = 0, write_ns: int = 0) -> Wait:
        """Let the program work now, for *write_ns* in write(2) and for the other times as in `works`.

        Yield the result.
        """
        self.spent.user += user_ns
        self.spent.program += system_ns
        self.spent.write += write_ns
        return work(self.task, user_ns + system_ns + write_ns)

    def pause(self, ns: int, spin_ns: int = 0) -> Steps:
        """Pause for *ns*, because the program's options say so: spin if *ns* is below *spin_ns*, else sleep.

        The pause counts as time that the program itself sets (`Spent.paced`).
        """
        if ns < spin_ns:
            self.spent.pause += ns
            yield work(self.task, ns)
        else:
            yield from sleep(self.task, ns, PAUSE)
        self.spent.paced += ns

    def is_on_schedule(self, since_ns: int) -> None:
        """Count all time since *since_ns* as time that the program itself sets: it has just waited for it."""
        self.spent.paced = self._env.now - since_ns

    def returns(self) -> Park | None:
        """exit_to_user_mode: give the processor to another task that should have it.

        Yield the result, unless it is None.
        """
        return cond_resched(self.task)

    def _begin(self) -> None:
        """Begin a call, whose first wait covers ``lead_ns``."""
        self.lead_ns, self._ahead_ns = self._ahead_ns, 0

    # -- names

    def mkdir(self, path: str) -> Generator[Wait, None, Folder]:
        """Return the directory at *path*; make it if it does not exist (mkdir -p, and open)."""
        sb = self._mount_of(path)
        return Folder(sb, (yield from sb.directory(self.thread, path)))

    def creat(self, folder: Folder, pages: int = 0, closes: bool = False) -> Generator[Wait, None, Inode]:
        """creat(2) of a new file in *folder*; return the inode.

        *pages*: a write(2) of so many pages follows at once.  *closes*: the close(2) follows at once instead.
        """
        if folder is not self._folder:
            self._folder, self._priced = folder, 0
        if pages != self._priced:
            self._priced, self._price_ns = pages, self.write_ns(pages, folder.sb) if pages else 0
        if closes:
            self.then_ns, self._closes = int(self._close_ns * self.factor), True
            self.spent.close += self.then_ns
        else:
            self.then_ns = int(self._price_ns * self.factor)
        self._begin()
        return folder.create(self, folder.directory)

    def open(self, path: str) -> Generator[Wait, None, Inode]:
        """open(2) with O_CREAT: return the inode of the file at *path*, which is made if there is none.

        Left out: the time to look up the name of a file that exists.

        Raises:
            ValueError: no process has the file open any more.
        """
        sb = self._mount_of(path)
        dentry = sb.dentries.get(path)
        if dentry is None:
            dentry = sb.dentries[path] = Dentry(self._env)
            folder = yield from self.mkdir(path.rpartition("/")[0] or "/")
            dentry.inode = yield from self.creat(folder)
            dentry.made.complete()
        elif dentry.inode is None:
            yield from dentry.made.wait(self.task)
        elif not dentry.opens:
            raise ValueError(f"{path} was closed; that a program opens it again is not modelled")
        dentry.opens += 1
        self._named[dentry.inode] = dentry
        inode: Inode = dentry.inode
        return inode

    def stat(self, sb: MountedSuperblock) -> Steps:
        """stat(2) of a file on *sb* whose inode is not cached."""
        self._begin()
        return sb.filesystem.names.look_up(self)

    def bulkstat(self, sb: MountedSuperblock) -> Steps:
        """XFS_IOC_BULKSTAT, for one inode of *sb*."""
        self._begin()
        return sb.filesystem.names.bulkstat(self)

    def unlink(self, sb: MountedSuperblock) -> Steps:
        """unlink(2) of an empty file on *sb* whose inode is not cached."""
        self._begin()
        return sb.filesystem.names.unlink(self)

    # -- files

    def write(self, inode: Inode, pages: int, closes: bool = False) -> Wait:
        """write(2) of *pages* complete pages behind the end of the open file *inode* (O_APPEND).

        *closes*: the close(2) of the file follows at once.
        """
        copied_ns, folder = self.then_ns, self._folder
        if not copied_ns or folder is None:
            return self._copy_and_write(inode, pages, closes)
        assert pages == self._priced, "the first write(2) must have the pages that creat(2) was told"
        self.then_ns = 0
        self.spent.write += copied_ns
        return self._written(inode, folder.append(inode, pages), closes)

    def _copy_and_write(self, inode: Inode, pages: int, closes: bool) -> Steps:
        copy_ns = int(self.write_ns(pages, inode.sb) * self.factor)
        self.spent.write += copy_ns
        self._begin()
        yield self.lead_ns + copy_ns
        yield self._written(inode, inode.sb.filesystem.append(inode, pages), closes)

    def _written(self, inode: Inode, clean: int, closes: bool) -> Wait:
        """Make *clean* copied pages dirty; return the wait for the rest of write(2), and for close(2)."""
        wb, dirtier = inode.wb, self._dirtier
        wb.account_dirtied(clean)
        dirtier.dirtied(clean)
        if dirtier.nr_dirtied >= self._throttle.poll_pages(wb, dirtier):
            return self.mark_and_balance(inode, clean)
        close_ns = 0
        if closes:
            close_ns, self._closes = int(self._close_ns * self.factor), True
            self.spent.close += close_ns
        return self.mark_dirty(inode, clean, close_ns)

    def pwrite(self, inode: Inode, page: int, pages: int) -> Steps:
        """pwrite(2) of *pages* complete pages of the open file *inode* from the page number *page* on."""
        copy_ns = int(self.write_ns(pages, inode.sb) * self.factor)
        self.spent.write += copy_ns
        self._begin()
        yield self.lead_ns + copy_ns
        if wait := self.put(inode, np.arange(page, page + pages), pages):
            yield wait
        if self.due(inode.wb):
            yield from self.balance(inode.wb)

    def close(self, inode: Inode) -> Wait | None:
        """close(2), and the return to user mode.  Yield the result, unless it is None."""
        folder = self._folder
        if not self._closes or self._named or folder is None or folder.sb is not inode.sb:
            return self._close(inode)
        self._closes = False
        self.then_ns = 0
        folder.close(inode)
        return cond_resched(self.task)

    def _close(self, inode: Inode) -> Steps:
        paid, self._closes = self._closes, False
        if not self._has_other_opens(inode):
            filesystem = inode.sb.filesystem
            filesystem.close(inode)
        if not paid:
            close_ns = int(self._close_ns * self.factor)
            self.spent.close += close_ns
            self._begin()
            yield self.lead_ns + close_ns
        if (ready := self.returns()) is not None:
            yield ready

    def _has_other_opens(self, inode: Inode) -> bool:
        """Forget the name by which this process has *inode* open; return whether another open remains."""
        dentry = self._named.pop(inode, None)
        if dentry is None:
            return False
        dentry.opens -= 1
        return dentry.opens > 0

    # -- data integrity

    def fsync(self, inode: Inode) -> Steps:
        """fsync(2) of the open file *inode*."""
        return self._after_lead(self._syncs.fsync(self.thread, inode))

    def syncfs(self, path: str) -> Steps:
        """syncfs(2) of the filesystem at *path*."""
        return self._after_lead(self._syncs.syncfs(self.thread, self._mount_of(path)))

    def sync(self) -> Steps:
        """sync(2)."""
        return self._after_lead(self._syncs.sync(self.thread))

    def _after_lead(self, call: Steps) -> Steps:
        self._begin()
        if self.lead_ns:
            yield self.lead_ns
        yield from call


@dataclass(frozen=True)
class SystemCalls:
    """The system calls of one machine, which its processes make.

    * ``mount_of``: returns the superblock of a path.
    * ``costs``: the costs of write(2) and close(2).
    """

    env: Environment
    mount_of: Callable[[str], MountedSuperblock]
    costs: WriteCosts
    throttle: Throttle
    syncs: Syncs

    def process(self, thread: Thread, factors: Draws) -> Process:
        """Return a process that runs in *thread*; *factors* vary the work of its calls."""
        return Process(
            env=self.env, thread=thread, mount_of=self.mount_of, costs=self.costs, throttle=self.throttle,
            syncs=self.syncs, factors=factors,
        )  # fmt: skip
