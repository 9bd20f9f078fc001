"""The calls of a process that wait until data are on disk: fsync(2), fdatasync(2), syncfs(2) and sync(2)."""

from __future__ import annotations

from collections.abc import Callable

from wbsim.models.interfaces import Inode, Thread, Throttle
from wbsim.models.syscalls.latency import Latencies, Latency
from wbsim.models.syscalls.sync import Syncs
from wbsim.models.syscalls.write import Writer
from wbsim.models.vfs.spec import WriteCosts
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.streams import Draws


class SyncingWriter(Writer):
    """A writer that syncs, too; *mount_of* returns the superblock of a path."""

    __slots__ = ("_mount_of", "_syncs")

    def __init__(
        self,
        env: Environment,
        thread: Thread,
        factors: Draws,
        latencies: Latencies,
        costs: WriteCosts,
        throttle: Throttle,
        mount_of: Callable[[str], MountedSuperblock],
        syncs: Syncs,
    ) -> None:
        super().__init__(env, thread, factors, latencies, costs, throttle)
        self._mount_of = mount_of
        self._syncs = syncs

    def fsync(self, inode: Inode) -> Steps:
        """Write the open file *inode* and wait until it is on disk (fsync(2)).  Use: `yield from`."""
        return self._after_lead(self.latencies.fsync, self._syncs.fsync(self.thread, inode))

    def fdatasync(self, inode: Inode) -> Steps:
        """Write the data of the open file *inode* and wait until it is on disk (fdatasync(2)).

        Use: `yield from`.
        """
        call = self._syncs.fsync(self.thread, inode, datasync=True)
        return self._after_lead(self.latencies.fdatasync, call)

    def write_sync(self, inode: Inode, datasync: bool) -> Steps:
        """Do what O_SYNC or, with *datasync*, O_DSYNC adds to a write(2) of *inode*.  Yield the result.

        The time counts in the latency of the write, not of an fsync(2) (generic_write_sync).
        """
        return self._syncs.fsync(self.thread, inode, datasync)

    def syncfs(self, path: str) -> Steps:
        """Write back the filesystem of *path*, and wait (syncfs(2)).  Use: `yield from`."""
        return self._after_lead(self.latencies.syncfs, self._syncs.syncfs(self.thread, self._mount_of(path)))

    def sync(self) -> Steps:
        """Write back all filesystems, and wait (sync(2)).  Use: `yield from`."""
        return self._after_lead(self.latencies.sync, self._syncs.sync(self.thread))

    def _after_lead(self, latency: Latency, call: Steps) -> Steps:
        """Run *call* after the program's work before it, and count it in *latency*."""
        self.begins()
        if self.lead_ns:
            yield self.lead_ns
        yield from call
        self.end_call(latency)
