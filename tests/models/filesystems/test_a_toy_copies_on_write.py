"""A filesystem that copies on write: three small components, and the writeback that all filesystems share."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.harness import FIO, loop_config, only
from wbsim.experiments.config.experiment import parse
from wbsim.models.filesystems.blocks import Space
from wbsim.models.filesystems.completions import Completions
from wbsim.models.filesystems.costs import MapCosts, RandomFactors
from wbsim.models.filesystems.delalloc import DelallocFilesystem
from wbsim.models.filesystems.delalloc_parts import Runs
from wbsim.models.filesystems.files import FileInode, PagedFile
from wbsim.models.filesystems.inode_locks import InodeLocks
from wbsim.models.filesystems.spec import FlusherCosts
from wbsim.models.filesystems.writepages import Writepages, WritepagesRules
from wbsim.models.interfaces import Caller, Thread, WritebackControl
from wbsim.models.kinds import kinds
from wbsim.models.machine import build
from wbsim.models.page_cache.pages import DELAYED, DIRTY
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Steps, Wait

BLOCKS = 1 << 20


class ToyNames:
    """Names that consist of inodes alone."""

    def __init__(self, sb: MountedSuperblock) -> None:
        self.sb = sb

    def root(self) -> Any:
        """Return the root directory, of which nothing is kept."""

    def mkdir(self, thread: Thread) -> Generator[Wait, None, Any]:
        """Make a directory in a microsecond."""
        yield 1_000

    def create(self, caller: Caller, directory: Any) -> Generator[Wait, None, Any]:
        """Create an inode in a microsecond."""
        yield caller.lead_ns + 1_000 + caller.then_ns
        return FileInode(self.sb, self.sb.bdi.wb_of(0, 1, 0))


class ToyMetadata:
    """Metadata without a log: writing the tree of pointers anew takes no time here."""

    gives_way = False
    log_bytes = 0

    def is_full(self) -> bool:
        """Return False: no log can be full."""
        return False

    def wait_for_space(self, thread: Thread) -> Steps:
        """Do nothing; never called."""
        yield 0

    def convert(self, worker: Thread, inode: Any, ioend: Any) -> Steps:
        """Do nothing; never called, because no extent is unwritten."""
        yield 0

    def end_run(self, worker: Thread, block: int, folios: int) -> Wait:
        """Return 0: no file is one run."""
        return 0

    def run_ended(self, inode: Any) -> None:
        """Do nothing: no file is one run."""

    def sync_fs(self, thread: Thread) -> Steps:
        """Write the root of the tree in a microsecond."""
        yield 1_000

    def commit_inode(self, thread: Thread, inode: Any, datasync: bool) -> Steps:
        """Write the root of the tree in a microsecond."""
        yield 1_000

    def log_times(self, inode: Any) -> None:
        """Do nothing: the root has the time stamps of all files."""

    def change_extent(self, thread: Thread, inode: Any) -> Steps:
        """Do nothing; never called, because no file is preallocated or truncated."""
        yield 0

    def check(self) -> None:
        """Check nothing."""


class CopyOnWrite:
    """A placement that gives a page the next block of the disk at each writeback; no block is freed."""

    blocks, group_blocks, group_label, one_run_pages = BLOCKS, BLOCKS, "group", 0

    def __init__(self) -> None:
        self.files: list[PagedFile] = []
        self.space = Space(BLOCKS, 0)
        self.next_block = 0

    def group_of(self, inode: Any) -> int:
        """Return 0, the only group."""
        return 0

    def new_file(self, inode: Any, is_open: bool) -> PagedFile:
        """See `Placement.new_file`."""
        return PagedFile(0, is_open)

    def room_for(self, size: int, call_pages: int) -> int:
        """See `Placement.room_for`."""
        return size + call_pages

    def write(self, file: Any, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """Delay the pages *indices*, also those that have a block."""
        within = indices[: int(np.argmax(indices >= file.end)) if (indices >= file.end).any() else None]
        states = file.pages.states
        clean = len(np.unique(within[states[within] != DELAYED]))
        states[within] = DELAYED
        self.space.unclaimed -= clean
        file.pages.size[0] = max(file.size, *(within + 1), 0)
        return len(within), clean

    def released(self, file: Any) -> None:
        """Do nothing: no blocks are kept for a file."""

    def write_run(self, thread: Thread, inode: Any, wbc: WritebackControl, runs: Runs) -> Steps:
        """Do nothing; never called, because no file is one run."""
        yield 0

    def map_extent(self, thread: Thread, inode: Any, file: Any, page: int, at_most: int) -> Steps:
        """Give a page a block; it takes a microsecond."""
        yield 1_000
        file.pages.blocks[page] = file.reach(self.next_block, 1)
        file.pages.states[page] = DIRTY
        self.next_block += 1

    def budget(self, file: Any, page: int, wbc: WritebackControl) -> int:
        """See `ExtentMapper.budget`."""
        return wbc.nr_to_write

    def free_tables(self) -> Iterable[NDArray[np.int64]]:
        """Yield the blocks behind the last block that was given out."""
        yield np.array([[self.next_block, BLOCKS - self.next_block]])

    @property
    def free_blocks(self) -> int:
        """Return the number of these blocks, of which delayed pages have claimed some."""
        return BLOCKS - self.next_block

    def check(self) -> None:
        """Check nothing."""


def cow(*, parts: Any, sb: MountedSuperblock, **_: Any) -> DelallocFilesystem:
    """Return a mounted filesystem that copies on write."""
    flusher_costs = FlusherCosts(map_ns=1_000, page_ns=1_000, ioend_ns=0)
    costs = MapCosts(flusher_costs, 1, RandomFactors(parts, "map"), parts.hand_off)
    metadata = ToyMetadata()
    placement: Any = CopyOnWrite()
    return DelallocFilesystem(
        sb=sb, names=ToyNames(sb), placement=placement, metadata=metadata, large_folios=False, sync_data=True,
        tries_writes=False,
        locks=InodeLocks(parts, "tree lock", reads=False, each_hole=False),
        completions=Completions(
            parts.env, [parts.thread("kworker")], bound=False, queue=sb.bdi.queue, unwritten=False,
            costs=costs, metadata=metadata,
        ),
        writeback=Writepages(
            sb=sb, mapper=placement, costs=costs,
            rules=WritepagesRules(wraps=False, spans_calls=True, sync_data=True),
        ),
    )  # fmt: skip


def test_copy_on_write_filesystem_keeps_all_laws_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four calls write each page, and pages are written back more than once, to a new block each time."""
    xfs = kinds("filesystems")["xfs"]._replace(component=cow)
    monkeypatch.setitem(kinds("filesystems"), "xfs", xfs)
    command = f"{FIO.replace('4k', '1k')} --rw=randwrite --nrfiles=2 --filesize=4m --name=a"
    (case,) = parse(loop_config(command, dirty_mib=2, more="sync_after = true"), "x.toml").cases
    machine = build(case.scenario, 1)
    machine.run()
    filesystem: Any = only(machine.mounts).filesystem
    blocks = np.concatenate([file.pages.blocks[: file.size] + file.base for file in filesystem.layouts()])
    assert len(blocks) == len(set(blocks.tolist())) == 2_048
    assert filesystem.placement.next_block == machine.cache.written_pages > 3_000
    assert filesystem.space.unclaimed == filesystem.placement.free_blocks
