"""write(2): the pages that become dirty, their cost, and when the writer calls the throttle."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.harness import context
from wbsim.models.throttling.io_less import PausedDirtier
from wbsim.models.time_accounting import Spent
from wbsim.models.vfs.spec import WriteCosts
from wbsim.models.vfs.write import BufferedWriter
from wbsim.sim.engine import SPIN, Environment


class Writer:
    """A writer that calls the throttle every *poll* pages.

    A call costs 100 ns and 10 ns a page, a close 30 ns, and the list of dirty inodes 7 ns.
    """

    def __init__(self, poll: int = 4, folio_ns: int | None = None) -> None:
        self.env = Environment()
        self.env.now = 1_000
        self.asked: list[Any] = []
        self.paged: list[int] = []
        self.wb = context(self.env)
        self.dirtier = PausedDirtier()
        throttle: Any = SimpleNamespace(
            dirtier=lambda: self.dirtier, poll_pages=lambda wb, dirtier: poll,
            balance=lambda *parts: self.asked.append(parts),
        )  # fmt: skip
        self.task = self.env.task("writer")
        self.spent = Spent()
        self.thread: Any = SimpleNamespace(task=self.task, spent=self.spent)
        costs = WriteCosts(call_ns=100, folio_ns=folio_ns, page_ns=10, close_ns=30, mark_ns=7)
        self.writer = BufferedWriter(env=self.env, thread=self.thread, costs=costs, throttle=throttle)

    def inode(self, dirty_pages: int = 0, i_sync: object = None) -> Any:
        """Return an inode of the context that has *dirty_pages* dirty pages already."""
        sb = SimpleNamespace(has_pages=lambda: self.paged.append(self.env.now))
        return SimpleNamespace(wb=self.wb, sb=sb, dirty_pages=dirty_pages, i_sync=i_sync, dirtied_when=0)


def superblock(folio_pages: int = 1, block_ns: int = 0) -> Any:
    """Return a stand-in for a superblock whose page cache makes folios of *folio_pages* pages."""
    return SimpleNamespace(folio_pages=lambda _: folio_pages, block_ns=block_ns)


def test_a_clean_inode_is_listed_once_under_the_lock() -> None:
    """The first write takes 7 ns under the lock and the caller's *then_ns*; the second takes *then_ns*."""
    of = Writer()
    inode = of.inode()
    assert of.writer.dirty(inode, 3, 50) == 57
    assert (list(of.wb.b_dirty), inode.dirtied_when, inode.dirty_pages) == ([inode], 1_000, 3)
    assert of.wb.lock.stat.hold_ns == 7
    assert of.writer.dirty(inode, 2, 40) == 40
    assert (list(of.wb.b_dirty), inode.dirty_pages) == ([inode], 5)
    assert (of.wb.dirty, of.wb.dirty_and_writeback, of.wb.dirtied, of.dirtier.nr_dirtied) == (5, 5, 5, 5)
    assert (of.spent.write, of.spent.close, of.spent.system) == (7, 90, 97)
    assert (of.writer.copy_ns(3, superblock()), of.writer.close_ns) == (130, 30)


def test_a_call_pays_for_its_folios() -> None:
    """A call of 100 ns copies pages of 10 ns into folios of 40 ns: one for each page, or one for eight."""
    of = Writer(folio_ns=40)
    assert [of.writer.copy_ns(pages, superblock()) for pages in (1, 8)] == [150, 500]
    assert [of.writer.copy_ns(pages, superblock(8)) for pages in (1, 8, 9)] == [150, 220, 270]


def test_a_call_pays_for_the_blocks_of_its_filesystem() -> None:
    """Each page has a block of 3 ns, however large the folio is."""
    of = Writer(folio_ns=40)
    assert [of.writer.copy_ns(8, superblock(pages, 3)) for pages in (1, 8)] == [524, 244]


def test_inode_under_writeback_is_not_listed() -> None:
    """The thread that writes the inode back will list it."""
    of = Writer()
    assert of.writer.dirty(of.inode(i_sync=object()), 1, 50) == 50
    assert not of.wb.b_dirty
    assert (of.wb.dirty, of.spent.system) == (1, 50)


def test_an_empty_file_is_not_listed() -> None:
    """The file has no page to write, and its close takes the usual time."""
    of = Writer()
    assert of.writer.dirty(of.inode(), 0, 50) == 50
    assert (list(of.wb.b_dirty), of.wb.dirty) == ([], 0)


def test_writer_spins_while_the_list_is_locked() -> None:
    """The flusher holds the lock until 1 020."""
    of = Writer()
    of.wb.lock.section(of.env.task("flusher"), 20)
    assert of.writer.dirty(of.inode(), 1, 50) is SPIN


def test_writer_is_due_at_the_throttle_after_poll_pages() -> None:
    """The writer may first write the rest of four pages, and at least one page."""
    of = Writer()
    inode = of.inode()
    assert (of.writer.room(of.wb), of.writer.due(of.wb)) == (4, False)
    of.writer.dirty(inode, 3, 0)
    assert (of.writer.room(of.wb), of.writer.due(of.wb)) == (1, False)
    of.writer.dirty(inode, 1, 0)
    assert (of.writer.room(of.wb), of.writer.due(of.wb)) == (1, True)
    of.writer.balance(of.wb)
    assert of.asked == [(of.thread, of.wb, of.dirtier)]
