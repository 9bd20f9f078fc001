"""struct super_block: one mounted filesystem, its device, its directories, and what it has under
writeback.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from models.seams import Filesystem, Thread, Wb
from models.writeback.wb import BackingDevice
from sim.engine import Environment, Steps, Wait
from sim.sync import Completion


class Flight:
    """The pages that went under writeback between two calls of `wait_for_writeback`."""

    __slots__ = ("_closed", "_landed", "_pages")

    def __init__(self, env: Environment) -> None:
        self._landed = Completion(env)
        self._closed = False
        self._pages = 0

    def add(self, wb: Wb, pages: int) -> None:
        """*pages* of inodes of *wb* go under writeback."""
        self._pages += pages
        wb.dirty -= pages

    def end(self, wb: Wb, pages: int) -> None:
        """They are clean."""
        wb.nr_dirty -= pages
        wb.written += pages
        self._pages -= pages
        if not self._pages and self._closed:
            self._landed.complete()

    def close(self) -> Completion:
        """Take no more; the result completes when all are clean."""
        self._closed = True
        if not self._pages:
            self._landed.complete()
        return self._landed


class MountedSuperblock:
    """See `models.seams.Superblock`; *first_block* is where its part of the disk begins."""

    filesystem: Filesystem

    def __init__(self, env: Environment, name: str, bdi: BackingDevice, first_block: int) -> None:
        self._env = env
        self._directories: dict[str, Any] = {}
        self._in_making: dict[str, Completion] = {}
        self._landing: list[Completion] = []
        self.name = name
        self.bdi = bdi
        self.first_block = first_block
        self.flight = Flight(env)

    def directory(self, thread: Thread, path: str) -> Generator[Wait, None, Any]:
        """The directory at *path*, which is made if it is not there."""
        if path in self._in_making:
            yield from self._in_making[path].wait(thread.task)
        elif path not in self._directories:
            made = self._in_making[path] = Completion(self._env)
            self._directories[path] = yield from self.filesystem.mkdir(thread)
            del self._in_making[path]
            made.complete()
        return self._directories[path]

    def wait_for_writeback(self, thread: Thread) -> Steps:
        """wait_sb_inodes: until all that is under writeback now is clean."""
        flight, self.flight = self.flight, Flight(self._env)
        self._landing = [landed for landed in self._landing if not landed.done] + [flight.close()]
        for landed in list(self._landing):
            yield from landed.wait(thread.task)
