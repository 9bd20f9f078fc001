"""struct super_block: one mounted filesystem, its device, its directories, and its pages under writeback."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final

from wbsim.models.bio import FLUSH, READ, Bio
from wbsim.models.interfaces import Filesystem, Superblock, Thread, Wb
from wbsim.models.time_accounting import DEVICE
from wbsim.models.vfs.inodes import SuperblockInodes
from wbsim.models.writeback.wb import BackingDevice
from wbsim.sim.engine import Environment, Steps, Wait
from wbsim.sim.sync import Completion, RwSemaphore
from wbsim.sim.units import PAGE_SECTORS

_I_RWSEM: Final = "lock i_rwsem"


class Flight:
    """The pages that went under writeback between two waits for all of them.

    They are those of a superblock or, within *whole*, the flight of a superblock, those of one file.
    """

    __slots__ = ("_closed", "_env", "_whole", "landed", "pages")

    def __init__(self, env: Environment, whole: Flight | None = None) -> None:
        self._env = env
        self._whole = whole
        self.landed = Completion(env, DEVICE)
        self.pages = 0
        self._closed = False

    def of_file(self) -> Flight:
        """Return a new flight within this one, the superblock's, for the pages of one file."""
        return Flight(self._env, self)

    def takes(self, whole: Flight) -> bool:
        """Return whether more pages of this flight's file may join it.

        They may if this flight is not closed and was made in *whole*, which is the superblock's flight now.
        """
        return self._whole is whole and not self._closed

    def add(self, wb: Wb, pages: int) -> None:
        """Count *pages* of inodes of *wb* that go under writeback, here and in the superblock's flight.

        The context *wb* counts them, too.  The caller takes them off ``dirty_pages`` of the inode.
        """
        self.pages += pages
        if self._whole is None:
            wb.account_writeback(pages)
        else:
            self._whole.add(wb, pages)

    def end(self, wb: Wb, pages: int) -> None:
        """Count *pages* of inodes of *wb* that are clean now, here, in the superblock's flight and in *wb*.

        The last page of a closed flight completes ``landed``.
        """
        if self._whole is None:
            wb.account_clean(pages)
        else:
            self._whole.end(wb, pages)
        self.pages -= pages
        if not self.pages and self._closed:
            self.landed.complete()

    def close(self) -> None:
        """Let no more pages join; ``landed`` completes when all are clean, or at once if there are none.

        fsync(2) and sync(2) close a flight before they wait for it.
        """
        if self._closed:
            return
        self._closed = True
        if not self.pages:
            self.landed.complete()


class Dentry:
    """A named file: its ``inode``, None until the ``creation`` is complete, and its ``opens`` still open.

    ``unlinked``: the name is gone, and the inode is freed when no process has it open any more.
    ``i_rwsem``: the inode's lock for write(2), fallocate(2) and ftruncate(2), from the second open on.
    """

    __slots__ = ("creation", "i_rwsem", "inode", "opens", "unlinked")

    def __init__(self, env: Environment) -> None:
        self.inode: Any = None
        self.i_rwsem: RwSemaphore | None = None
        self.unlinked = False
        self.creation = Completion(env, _I_RWSEM)
        self.opens = 0


class MountedSuperblock(Superblock):
    """See `models.interfaces.Superblock`.

    *first_block* is the first block of its part of the disk.  At the start it has *files* empty files.
    *is_root* returns whether a path is the mount point.  ``rotates`` is queue/rotational at the mount.
    ``new_i_rwsem`` returns the lock of an inode for calls that write to its file.
    """

    filesystem: Filesystem

    def __init__(
        self, env: Environment, name: str, bdi: BackingDevice, first_block: int, inodes: SuperblockInodes,
        files: int = 0, *, is_root: Callable[[str], bool], new_i_rwsem: Callable[[], RwSemaphore],
        rotates: bool = False,
    ) -> None:  # fmt: skip
        self._is_root = is_root
        self.new_i_rwsem = new_i_rwsem
        self.rotates = rotates
        self._env = env
        self.directories: dict[str, Any] = {}
        self.dentries: dict[str, Dentry] = {}
        """The files that programs name by a path; files in their millions have no names here."""
        self._in_making: dict[str, Completion] = {}
        self._landing: list[Flight] = []
        self.name = name
        self.bdi = bdi
        self.first_block = first_block
        self.inodes = inodes
        self.files = files
        self.flight = Flight(env)
        self.largest_folio = 1
        """The pages of the largest folio that its page cache makes (mapping_max_folio_order)."""
        self.block_ns = 0
        """The time of a write(2) for each new block, without the copy of its page (ns)."""
        self.cold_extent_ns = 0
        """The time that a write(2) at a random place takes longer for each doubling of the extents (ns)."""

    def folio_pages(self, call_pages: int) -> int:
        """See `Superblock.folio_pages`."""
        return min(1 << max(0, call_pages.bit_length() - 1), self.largest_folio)

    @property
    def now(self) -> int:
        """The present simulated time (ns)."""
        return self._env.now

    @property
    def under_writeback(self) -> int:
        """The number of pages of its inodes that are under writeback."""
        return self.flight.pages + sum(flight.pages for flight in self._landing)

    def directory(self, thread: Thread, path: str) -> Generator[Wait, None, Any]:
        """Return the directory at *path*, as `Names.create` takes it; make it if it does not exist.

        Use: `yield from`.  The root exists since mkfs.  If another process is making the directory, *thread*
        waits for that.  *path* must be plain, because directories are kept by it.

        Raises:
            NoSpace: no inode is free for the directory (ext4).
        """
        if path in self._in_making:
            yield from self._in_making[path].wait(thread.task)
        elif path not in self.directories and self._is_root(path):
            self.directories[path] = self.filesystem.names.root()
        elif path not in self.directories:
            completion = self._in_making[path] = Completion(self._env, _I_RWSEM)
            self.directories[path] = yield from self.filesystem.names.mkdir(thread)
            del self._in_making[path]
            completion.complete()
        return self.directories[path]

    def lay_out(self, path: str, pages: int, extents: int) -> None:
        """Make the file at *path* with *pages* pages in *extents* extents, and its directory, in no time.

        The machine calls this for each file that exists when the run begins; its data is on disk.  *path*
        must be plain, because files are kept by it.

        Raises:
            NoSpace: the filesystem has too few free blocks or inodes.
        """
        folder, names = path.rpartition("/")[0] or "/", self.filesystem.names
        if folder not in self.directories:
            self.directories[folder] = names.root() if self._is_root(folder) else names.new_directory()
        dentry = self.dentries[path] = Dentry(self._env)
        dentry.inode = names.new_inode(0, self.directories[folder])
        dentry.creation.complete()
        self.filesystem.lay_out(dentry.inode, pages, extents)
        self.filesystem.close(dentry.inode, True)

    def wait_sb_inodes(self, thread: Thread) -> Steps:
        """Let *thread* walk over all cached inodes (to 4.7), and wait until pages under writeback are clean.

        Use: `yield from`.  Pages that go under writeback later are not awaited.  s_sync_lock is held
        meanwhile, in eras that have it (wait_sb_inodes).
        """
        yield from self.inodes.lock_sync(thread.task)
        yield from self.inodes.walk(thread)
        yield from self.wait_for_writeback(thread)
        yield from self.inodes.unlock_sync()

    def read(self, thread: Thread, sector: int, sectors: int) -> Steps:
        """Let *thread* read *sectors* sectors of metadata from *sector* on, and wait.  Use: `yield from`.

        *sector* counts from the start of the filesystem.
        """
        landed = Completion(self._env, DEVICE)
        bio = Bio(
            self.first_block * PAGE_SECTORS + sector, sectors, op=READ, queue=self.bdi.queue, sync=True,
            meta=True, unplug=True, end_io=lambda _: landed.complete(),
        )  # fmt: skip
        if (rest := thread.submit_bio(bio)) is not None:
            yield from rest
        thread.before_sleep()
        yield from landed.wait(thread.task)

    def flush(self, thread: Thread) -> Steps:
        """Let *thread* wait until the device's volatile cache is on its medium.  Use: `yield from`.

        A device without such a cache gets no flush (blkdev_issue_flush).  `Filesystem.commit_inode` calls
        this.
        """
        queue = self.bdi.queue
        if not queue.has_cache:
            return
        landed = Completion(self._env, DEVICE)
        bio = Bio(
            self.first_block * PAGE_SECTORS, 0, op=FLUSH, queue=queue, sync=True, nomerge=True, unplug=True,
            end_io=lambda _: landed.complete(),
        )  # fmt: skip
        if (rest := thread.submit_bio(bio)) is not None:
            yield from rest
        thread.before_sleep()
        queue.unplug()
        yield from landed.wait(thread.task)

    def has_pages(self) -> None:
        """See `Superblock.has_pages`."""
        self.inodes.has_pages()

    def wait_for_writeback(self, thread: Thread) -> Steps:
        """See `Superblock.wait_for_writeback`."""
        self.bdi.queue.unplug()
        # Pages that go under writeback from now on are in another flight, so no writer prolongs the wait.
        flight, self.flight = self.flight, Flight(self._env)
        flight.close()
        self._landing = [early for early in [*self._landing, flight] if not early.landed.done]
        for early in list(self._landing):
            yield from early.landed.wait(thread.task)
