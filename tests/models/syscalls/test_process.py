"""The system calls of a process: the pages that become dirty, their cost, and when the throttle is asked."""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import context, process
from wbsim.models.interfaces import Caller
from wbsim.models.syscalls.process import Folder
from wbsim.models.throttling.io_less import PausedDirtier
from wbsim.models.vfs.spec import WriteCosts
from wbsim.sim.engine import SPIN, Environment, Steps, Wait


class Stage:
    """A process that asks the throttle every *poll* pages; the throttle holds it for 1 000 ns.

    A call costs 100 ns and 10 ns a page, a close 30 ns, and the list of dirty inodes 7 ns.  creat(2) takes
    500 ns.  Work in calls takes *factor* times as long.
    """

    def __init__(
        self, poll: int = 4, folio_ns: int | None = None, factor: float = 1.0, cold_page_ns: int = 0
    ) -> None:
        self.env = Environment()
        self.log: list[tuple[Any, ...]] = []
        self.truncated = False
        self.wb = context(self.env)
        self.dirtier = PausedDirtier()
        self.poll = poll
        throttle: Any = SimpleNamespace(
            dirtier=lambda: self.dirtier, poll_pages=lambda wb, dirtier: poll, balance=self._balance
        )
        costs = WriteCosts(
            call_ns=100, folio_ns=folio_ns, page_ns=10, cold_page_ns=cold_page_ns, close_ns=30, mark_ns=7
        )
        self.syncs: Any = SimpleNamespace()
        self.process = process(self.env, throttle, costs, factor, self.syncs)
        self.sb: Any = SimpleNamespace(
            folio_pages=lambda _: 1, block_ns=0, filesystem=self, has_pages=lambda: self._tell("has pages")
        )
        self.names = self
        self.folder = Folder(self.sb, "a directory")

    def _tell(self, *what: Any) -> None:
        self.log.append((self.env.now, *what))

    def _balance(self, thread: Any, wb: Any, dirtier: Any) -> Steps:
        self._tell("throttled")
        dirtier.nr_dirtied = 0
        yield 1_000

    def create(self, caller: Caller, directory: Any) -> Generator[Wait, None, Any]:
        """Create a file: in the place of the filesystem's names."""
        yield caller.lead_ns + int(500 * caller.factor) + caller.then_ns
        self._tell("made in", directory)
        return self.inode()

    def append(self, inode: Any, pages: int) -> int:
        """Return the pages that were clean: all of them."""
        self._tell("appended", pages)
        return pages

    def writes_before_close(self, inode: Any) -> bool:
        """Return ``truncated``, whether close(2) starts the writeback of a file."""
        return self.truncated

    def close(self, inode: Any, named: bool = False) -> None:
        """Record the close of a file, which has no name here."""
        assert not named
        self._tell("closed")

    def inode(self, dirty_pages: int = 0, i_sync: object = None) -> Any:
        """Return an inode of the context that has *dirty_pages* dirty pages already."""
        return SimpleNamespace(wb=self.wb, sb=self.sb, dirty_pages=dirty_pages, i_sync=i_sync, dirtied_when=0)

    def run(self, steps: Steps) -> list[tuple[Any, ...]]:
        """Let the process run *steps*; return what happened, and when it ended."""
        self.env.start(self.process.task, steps)
        self.env.run()
        self._tell("end")
        return self.log


def dirty(of: Stage, inode: Any, pages: int) -> Wait:
    """Make *pages* pages of *inode* dirty, as a write(2) does."""
    of.process.account(of.wb, pages)
    return of.process.mark_dirty(inode, pages, 0)


def a_file(of: Stage, pages: list[int]) -> Steps:
    """Work for 40 + 60 ns, then make a file by write(2)s of so many *pages*."""
    of.process.works(40, 60)
    inode = yield from of.process.creat(of.folder, pages[0] if pages else 0)
    for number, each in enumerate(pages):
        yield of.process.write(inode, each, closes=number == len(pages) - 1)
    if (ready := of.process.close(inode)) is not None:
        yield ready


def test_a_file_of_one_write_costs_three_waits() -> None:
    """100 ns of the program, 500 of creat(2), 120 of write(2); then 7 for the list and 30 of close(2)."""
    of = Stage()
    assert of.run(a_file(of, [2])) == [
        (720, "made in", "a directory"), (720, "appended", 2), (720, "has pages"), (757, "closed"),
        (757, "end"),
    ]  # fmt: skip
    spent = of.process.spent
    assert (spent.user, spent.program, spent.write, spent.close) == (40, 60, 127, 30)
    assert (of.wb.dirty, of.dirtier.nr_dirtied) == (2, 2)


def test_an_empty_file_costs_no_write() -> None:
    """close(2) takes its 30 ns by itself, or in the last wait of creat(2)."""
    of = Stage()

    def joined() -> Steps:
        inode = yield from of.process.creat(of.folder, closes=True)
        if (ready := of.process.close(inode)) is not None:
            yield ready

    assert of.run(joined()) == [(530, "made in", "a directory"), (530, "closed"), (530, "end")]
    assert (of.process.spent.close, of.process.then_ns) == (30, 0)
    of = Stage()
    assert of.run(a_file(of, [])) == [(600, "made in", "a directory"), (600, "closed"), (630, "end")]
    assert (of.process.spent.write, of.process.spent.close) == (0, 30)


def test_factor_lengthens_the_calls_but_not_the_program() -> None:
    """Twice the time of creat(2), write(2) and close(2); the list's lock takes 7 ns all the same."""
    of = Stage(factor=2.0)
    assert of.run(a_file(of, [1]))[-1] == (100 + 1_000 + 220 + 7 + 60, "end")
    assert (of.process.spent.write, of.process.spent.close) == (227, 60)


def test_later_writes_copy_by_themselves() -> None:
    """The second call takes 100 + 10 ns; the inode is on the list already."""
    of = Stage(poll=100)
    assert of.run(a_file(of, [2, 1])) == [
        (720, "made in", "a directory"), (720, "appended", 2), (720, "has pages"), (837, "appended", 1),
        (867, "closed"), (867, "end"),
    ]  # fmt: skip
    assert of.process.spent.write == 120 + 7 + 110


def test_the_throttle_holds_a_write_before_the_close() -> None:
    """The fourth page is due: the process is throttled after the 7 ns of the list, then closes the file."""
    of = Stage(poll=4)
    assert of.run(a_file(of, [4]))[2:] == [
        (740, "has pages"), (747, "throttled"), (1_747, "closed"), (1_777, "end"),
    ]  # fmt: skip
    assert of.process.spent.close == 30


def test_interrupts_lengthen_the_work_of_the_program() -> None:
    """The 9 ns that the task owes come before its next call, once, and count for no path."""
    of = Stage()
    of.process.task.owed_ns = 9
    assert of.run(a_file(of, []))[0][0] == 609
    assert of.process.task.owed_ns == 0
    assert of.process.spent.system == 60 + 30


def test_a_forked_process_has_an_empty_account() -> None:
    """A fork begins with a new account of the throttle."""
    of = Stage()
    first = of.dirtier
    first.nr_dirtied = 3
    of.dirtier = PausedDirtier()
    assert of.process.room(of.wb) == 1
    of.process.forked()
    assert of.process.room(of.wb) == 4


@pytest.mark.parametrize("pages", [0, 3])
def test_a_price_belongs_to_its_folder(pages: int) -> None:
    """A write to another filesystem, where a block costs 5 ns, has another price."""
    of = Stage()
    other: Any = SimpleNamespace(**{**vars(of.sb), "block_ns": 5})
    ended = []

    def body() -> Steps:
        for folder in (of.folder, Folder(other, "another"), of.folder):
            began_ns = of.env.now
            yield from of.process.creat(folder, pages)
            of.process.then_ns = 0
            ended.append(of.env.now - began_ns)

    of.run(body())
    price = 100 + 10 * pages if pages else 0
    assert ended == [500 + price, 500 + price + 5 * pages, 500 + price]


def test_a_call_pays_for_its_folios_and_blocks() -> None:
    """A call of 100 ns copies pages of 10 ns into folios of 40 ns; each page has a block of 3 ns."""
    of = Stage(folio_ns=40)

    def price(pages: int, folio_pages: int, block_ns: int) -> int:
        sb: Any = SimpleNamespace(folio_pages=lambda _: folio_pages, block_ns=block_ns)
        return of.process.write_ns(pages, sb)

    assert [price(pages, 1, 0) for pages in (1, 8)] == [150, 500]
    assert [price(pages, 8, 0) for pages in (1, 8, 9)] == [150, 220, 270]
    assert [price(8, pages, 3) for pages in (1, 8)] == [524, 244]


def test_a_random_place_takes_longer_in_a_larger_file() -> None:
    """From 8 MiB on a doubling of the file takes 20 ns, and from 32 extents on one of the extents 3 ns."""
    of = Stage(cold_page_ns=20)
    sb: Any = SimpleNamespace(cold_extent_ns=3)
    assert [of.process.search_ns(pages, 0, sb) for pages in (1, 2_048, 4_096, 1 << 20)] == [0, 0, 20, 180]
    assert [of.process.search_ns(2_048, extents, sb) for extents in (0.5, 32, 64, 1 << 17)] == [0, 0, 3, 36]
    assert of.process.search_ns(8_192, 128, sb) == 2 * 20 + 2 * 3


def test_a_clean_inode_is_listed_once_under_the_lock() -> None:
    """The first write takes 7 ns under the lock, and the second none."""
    of = Stage()
    of.env.now = 1_000
    inode = of.inode()
    assert dirty(of, inode, 3) == 7
    assert (list(of.wb.b_dirty), inode.dirtied_when, inode.dirty_pages) == ([inode], 1_000, 3)
    assert of.wb.lock.stat.hold_ns == 7
    assert dirty(of, inode, 2) == 0
    assert (list(of.wb.b_dirty), inode.dirty_pages) == ([inode], 5)
    assert (of.wb.dirty, of.wb.dirty_and_writeback, of.wb.dirtied, of.dirtier.nr_dirtied) == (5, 5, 5, 5)
    assert of.log == [(1_000, "has pages")]


def test_inode_under_writeback_is_not_listed() -> None:
    """The thread that writes the inode back will list it."""
    of = Stage()
    assert dirty(of, of.inode(i_sync=object()), 1) == 0
    assert not of.wb.b_dirty
    assert (of.wb.dirty, of.process.spent.system) == (1, 0)


def test_writer_spins_while_the_list_is_locked() -> None:
    """The flusher holds the lock for 20 ns."""
    of = Stage()
    of.wb.lock.section(of.env.task("flusher"), 20)
    assert dirty(of, of.inode(), 1) is SPIN


def test_writer_is_due_at_the_throttle_after_poll_pages() -> None:
    """The writer may first write the rest of four pages, and at least one page."""
    of = Stage()
    inode = of.inode()
    assert (of.process.room(of.wb), of.process.due(of.wb)) == (4, False)
    dirty(of, inode, 3)
    assert (of.process.room(of.wb), of.process.due(of.wb)) == (1, False)
    dirty(of, inode, 1)
    assert (of.process.room(of.wb), of.process.due(of.wb)) == (1, True)


def test_the_program_works_before_a_call_of_any_kind() -> None:
    """100 ns of work come before fsync(2), write(2) and close(2); each takes its own time then."""
    of = Stage(poll=100)
    of.syncs.fsync = lambda thread, inode: iter([33])
    took: list[int] = []

    def body() -> Steps:
        inode = of.inode(dirty_pages=1)
        process = of.process
        for call in (process.fsync, lambda inode: process.write(inode, 1), process.close):
            began_ns = of.env.now
            process.works(40, 60)
            yield call(inode) or 0
            took.append(of.env.now - began_ns)

    of.run(body())
    assert took == [100 + 33, 100 + 110, 100 + 30]


def test_each_close_is_paid_for_once() -> None:
    """The first file pays with its write; the second, an empty one, pays 30 ns at its close."""
    of = Stage()

    def two_files() -> Steps:
        yield from a_file(of, [1])
        yield from a_file(of, [])

    assert of.run(two_files())[-1] == (100 + 500 + 110 + 7 + 30 + 100 + 500 + 30, "end")
    assert of.process.spent.close == 60


def test_close_of_a_truncated_file_starts_its_writeback() -> None:
    """The flush takes 44 ns after the 30 of close(2), and the file is closed behind it."""
    of = Stage()
    of.truncated = True
    of.syncs.flush = lambda thread, inode: takes(44)

    def body() -> Steps:
        yield of.process.close(of.inode()) or 0

    assert of.run(body()) == [(74, "closed"), (74, "end")]
    assert latencies(of) == {"close": (1, 74, 74)}
    assert of.process.spent.close == 30


def latencies(of: Stage) -> dict[str, tuple[int, int, int]]:
    """Return the number of calls of each kind, the sum of their latencies, and the longest."""
    return {
        name: (latency.count, latency.total_ns, latency.max_ns)
        for name, latency in of.process.latencies.by_call().items()
    }


def test_each_call_of_a_file_has_its_latency() -> None:
    """One wait covers 500 ns of creat(2) and 120 of write(2); another one 7 of it and 30 of close(2)."""
    of = Stage()
    of.process.task.owed_ns = 9  # what interrupts took counts in the next call; the program's work does not
    of.run(a_file(of, [2]))
    assert latencies(of) == {"creat": (1, 509, 509), "write": (1, 127, 127), "close": (1, 30, 30)}


def test_later_writes_and_pauses_have_their_latencies() -> None:
    """Two calls of 117 and 110 ns; then a call of 147 ns that the throttle holds for 1 000 ns more."""
    of = Stage(poll=100)
    of.run(a_file(of, [1, 1]))
    assert latencies(of) == {"creat": (1, 500, 500), "write": (2, 227, 117), "close": (1, 30, 30)}
    of = Stage(poll=4)
    of.run(a_file(of, [4]))
    assert latencies(of) == {"creat": (1, 500, 500), "write": (1, 1_147, 1_147), "close": (1, 30, 30)}


def test_an_empty_file_has_two_latencies() -> None:
    """close(2) takes its 30 ns by itself, or in the last wait of creat(2)."""
    for joined in (False, True):
        of = Stage()

        def body(of: Stage = of, joined: bool = joined) -> Steps:
            of.process.works(40, 60)
            inode = yield from of.process.creat(of.folder, closes=joined)
            yield of.process.close(inode) or 0

        of.run(body())
        assert latencies(of) == {"creat": (1, 500, 500), "close": (1, 30, 30)}


def takes(ns: int) -> Steps:
    """Return a call that takes *ns*."""
    yield ns


def test_calls_without_pages_have_latencies() -> None:
    """100 ns of the program come before each call, and are left out."""
    of = Stage()
    of.syncs.fsync = lambda thread, what, datasync=False: takes(31 if datasync else 33)
    of.syncs.syncfs = lambda thread, what: takes(33)
    of.syncs.sync = lambda thread: takes(44)
    calls = {name: lambda caller: takes(caller.lead_ns + 55) for name in ("look_up", "bulkstat", "unlink")}
    of.process._mount_of = lambda path: of.sb
    sb: Any = SimpleNamespace(filesystem=SimpleNamespace(names=SimpleNamespace(**calls)))

    def body() -> Steps:
        process: Any = of.process
        for call in (
            process.fsync, process.fdatasync, process.stat, process.bulkstat, process.unlink, process.syncfs,
        ):  # fmt: skip
            process.works(40, 60)
            yield call(sb)
            yield process.returns() or 0
        process.works(40, 60)
        yield process.sync()

    of.run(body())
    assert latencies(of) == {
        "stat": (1, 55, 55), "bulkstat": (1, 55, 55), "unlink": (1, 55, 55), "fsync": (1, 33, 33),
        "fdatasync": (1, 31, 31), "syncfs": (1, 33, 33), "sync": (1, 44, 44),
    }  # fmt: skip


def test_calls_of_no_length_are_counted() -> None:
    """Calls take no time if their factor is 0; only the list of dirty inodes takes 7 ns of write(2)."""
    of = Stage(factor=0.0)
    of.run(a_file(of, [2]))
    assert latencies(of) == {"creat": (1, 0, 0), "write": (1, 7, 7), "close": (1, 0, 0)}
