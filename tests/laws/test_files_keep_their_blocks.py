"""Any calls on files leave each file the pages that a dictionary has, up to a full filesystem."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.models.syscalls.test_toy_program import Toys
from wbsim.models.filesystems.files import OneRun
from wbsim.models.interfaces import NoSpace
from wbsim.models.page_cache.pages import DIRTY_BIT, HAS_BLOCK, RESERVED, UNWRITTEN
from wbsim.models.syscalls.process import Process
from wbsim.sim.engine import Steps

NAMES = st.sampled_from(["/m/a", "/m/b", "/m/c/d"])
PLACES = st.integers(0, 400)
COUNTS = st.one_of(st.integers(1, 40), st.sampled_from([1_000, 20_000, 70_000]))


class AllEnded(Exception):
    """All processes that were started have ended."""


class RestartedToys(Toys):
    """A machine that stops when its processes have ended, and goes on when others have been started."""

    def _count_down(self) -> None:
        self.running -= 1
        if not self.running:
            raise AllEnded

    def run(self) -> None:
        """Run until all processes have ended, and check the laws."""
        with pytest.raises(AllEnded):
            self.machine.run()
        self.machine.check()


class Plain:
    """A file as its user sees it: its size, and the pages with data and with preallocated blocks."""

    def __init__(self) -> None:
        self.size = 0
        self.data: set[int] = set()
        self.preallocated: set[int] = set()

    def write(self, page: int, count: int) -> None:
        """Write *count* pages from *page* on."""
        pages = range(page, page + count)
        self.data.update(pages)
        self.preallocated.difference_update(pages)
        self.size = max(self.size, page + count)

    def cut(self, pages: int) -> None:
        """Make the file *pages* pages long."""
        if pages <= self.size:
            self.data = {page for page in self.data if page < pages}
            self.preallocated = {page for page in self.preallocated if page < pages}
        self.size = pages


def pages_of(inode: Any) -> tuple[int, set[int], set[int]]:
    """Return the size of a file, its pages with data, and its clean pages with unwritten blocks."""
    file = inode.file
    if isinstance(file, OneRun):
        return inode.dirty_pages, set(range(inode.dirty_pages)), set()
    states = file.pages.states
    is_dirty, is_unwritten = states & DIRTY_BIT != 0, states & UNWRITTEN != 0
    has_block = states & HAS_BLOCK != 0
    in_file = np.arange(len(states)) < file.size
    data = np.flatnonzero((is_dirty | (has_block & ~is_unwritten)) & in_file)
    return file.size, set(data.tolist()), set(np.flatnonzero(is_unwritten & ~is_dirty).tolist())


def dirty_pages_of(inode: Any) -> set[int]:
    """Return the dirty pages of a file."""
    file = inode.file
    if isinstance(file, OneRun):
        return set(range(inode.dirty_pages))
    return set(np.flatnonzero(file.pages.states & DIRTY_BIT).tolist())


def claimed_pages_of(inode: Any) -> set[int]:
    """Return the pages of a file that have a block or a claim to one, even behind its end."""
    file = inode.file
    if isinstance(file, OneRun):
        return set(range(inode.dirty_pages))
    return set(np.flatnonzero(file.pages.states & (HAS_BLOCK | RESERVED | DIRTY_BIT)).tolist())


class Files(RuleBasedStateMachine):
    """Calls of processes on three files of one filesystem."""

    filesystem = "xfs"
    kernel = "6.18"

    @initialize(size=st.sampled_from(["512 MiB", "1 GiB"]))
    def mount(self, size: str) -> None:
        """Mount a filesystem, small enough to be filled."""
        self.toys = RestartedToys(self.filesystem, size=size, kernel=self.kernel)
        self.mount_point = self.toys.machine.mounts["m"]
        self.plain: dict[str, Plain] = {}
        self.is_full = False

    def run(self, *bodies: Callable[[Process], Steps]) -> None:
        """Run *bodies*, each in a new process, until all end; then check the laws and the dictionary."""
        for body in bodies:
            self.toys.start(body)
        self.toys.run()
        self.toys.start(self.wait_for_writeback)
        self.toys.run()
        for path, plain in self.plain.items():
            inode = self.mount_point.dentries[path].inode
            size, data, unwritten = pages_of(inode)
            assert size == plain.size
            if self.filesystem == "ext4":
                assert (data, unwritten) == (plain.data, plain.preallocated)
            else:  # a write beyond the old end may find blocks that were reserved there
                assert data >= plain.data
                assert dirty_pages_of(inode) <= plain.data
                assert claimed_pages_of(inode) >= plain.preallocated
        assert set(self.mount_point.dentries) == set(self.plain)

    def wait_for_writeback(self, process: Process) -> Steps:
        """Wait until no page is under writeback: until then, its block counts as unwritten."""
        for dentry in self.mount_point.dentries.values():
            yield from self.mount_point.filesystem.wait_for_writeback(process.thread, dentry.inode)
        yield 1

    def on_file(self, path: str, call: Callable[[Process, Any], Steps]) -> Callable[[Process], Steps]:
        """Return a process that opens the file at *path*, makes *call*, and closes the file."""

        def body(process: Process) -> Steps:
            inode = yield from process.open(path)
            self.plain.setdefault(path, Plain())
            try:
                yield from call(process, inode)
            except NoSpace:
                self.is_full = True
                self.took_what_fits(path, inode)
            yield process.close(inode) or 0

        return body

    def took_what_fits(self, path: str, inode: Any) -> None:
        """Let the dictionary follow a call that found too few blocks: it got the first of its pages."""
        assert self.mount_point.filesystem.space.unclaimed <= 70_000
        plain = self.plain[path]
        size, data, unwritten = pages_of(inode)
        assert data >= plain.data - {page for page in plain.data if page >= size}
        plain.size, plain.data = size, data
        plain.preallocated = unwritten

    def writer(self, path: str, page: int, count: int) -> Callable[[Process], Steps]:
        """Return a process that writes to a file."""

        def call(process: Process, inode: Any) -> Steps:
            yield from process.pwrite(inode, page, count)
            self.plain[path].write(page, count)

        return self.on_file(path, call)

    @rule(path=NAMES, page=PLACES, count=COUNTS)
    def write(self, path: str, page: int, count: int) -> None:
        self.run(self.writer(path, page, count))

    @rule(path=NAMES, pages=st.lists(PLACES, min_size=2, max_size=3), count=st.integers(1, 300))
    def write_by_several(self, path: str, pages: list[int], count: int) -> None:
        """Several processes have the file open at once."""
        self.run(*[self.writer(path, page, count) for page in pages])

    @rule(path=NAMES, count=COUNTS)
    def append(self, path: str, count: int) -> None:
        def call(process: Process, inode: Any) -> Steps:
            yield process.write(inode, count)
            self.plain[path].write(self.plain[path].size, count)

        self.run(self.on_file(path, call))

    @rule(path=NAMES, pages=COUNTS, keeps_size=st.booleans())
    def fallocate(self, path: str, pages: int, keeps_size: bool) -> None:
        def call(process: Process, inode: Any) -> Steps:
            yield from process.fallocate(inode, pages, keeps_size)
            plain = self.plain[path]
            plain.preallocated |= set(range(pages)) - plain.data
            plain.size = plain.size if keeps_size else max(plain.size, pages)

        self.run(self.on_file(path, call))

    @rule(path=NAMES, pages=PLACES)
    def truncate(self, path: str, pages: int) -> None:
        def call(process: Process, inode: Any) -> Steps:
            yield from process.ftruncate(inode, pages)
            self.plain[path].cut(pages)

        self.run(self.on_file(path, call))

    @rule(path=NAMES, datasync=st.booleans())
    def sync(self, path: str, datasync: bool) -> None:
        """After an fsync(2) all pages of the file are clean."""

        def call(process: Process, inode: Any) -> Steps:
            yield from process.fdatasync(inode) if datasync else process.fsync(inode)
            assert not inode.dirty_pages

        self.run(self.on_file(path, call))

    @rule()
    def sync_all(self) -> None:
        self.run(lambda process: process.sync())

    @rule(path=NAMES, opens=st.booleans())
    def remove(self, path: str, opens: bool) -> None:
        """A process may have the file open, which then writes to it once more."""
        if path not in self.plain:
            return

        def body(process: Process) -> Steps:
            inode = (yield from process.open(path)) if opens else None
            yield from process.unlink_file(path)
            if inode is not None:
                with suppress(NoSpace):
                    yield from process.pwrite(inode, 0, 1)
                yield process.close(inode) or 0

        self.run_removal(path, body)

    def run_removal(self, path: str, body: Callable[[Process], Steps]) -> None:
        """Run *body*, after which there is no file at *path* any more."""
        del self.plain[path]
        self.run(body)

    @rule(path=NAMES, new_path=NAMES)
    def rename(self, path: str, new_path: str) -> None:
        if path not in self.plain or path == new_path:
            return
        self.plain[new_path] = self.plain.pop(path)
        self.run(lambda process: process.rename(path, new_path))

    def teardown(self) -> None:
        """Without files, all blocks are free but those of names and inodes."""
        if not hasattr(self, "plain"):
            return
        for path in list(self.plain):
            self.run_removal(path, lambda process, path=path: process.unlink_file(path))
        filesystem: Any = self.mount_point.filesystem
        assert filesystem.files == []
        assert filesystem.space.unclaimed + filesystem.space.reserve == filesystem.placement.free_blocks


@pytest.mark.parametrize(
    ("filesystem", "kernel"), [("xfs", "6.18"), ("xfs", "3.2"), ("ext4", "6.18"), ("ext4", "4.19")]
)
def test_files_have_the_pages_of_a_dictionary(filesystem: str, kernel: str) -> None:
    machine = type("FilesOf", (Files,), {"filesystem": filesystem, "kernel": kernel})
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=30))
