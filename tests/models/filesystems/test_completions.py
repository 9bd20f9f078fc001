"""The workqueue that converts what was written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.harness import BlockLayer
from wbsim.models.filesystems.completions import Completions, Submission
from wbsim.models.filesystems.dice import Dice
from wbsim.models.filesystems.lock_table import FAR, NO_ROW, UNTIL, WORKER, give_inode, take_inode
from wbsim.models.filesystems.locks import LockTable
from wbsim.models.filesystems.map_costs import MapCosts
from wbsim.models.filesystems.spec import FlusherCosts
from wbsim.models.filesystems.unwritten import Conversions
from wbsim.sim.engine import Steps


class Machine:
    """A worker, its clock and its locks, and a file; an allocation takes 40, a conversion 100."""

    def __init__(self, **costs: int) -> None:
        layer = BlockLayer(wake_ns=5)
        self.env = layer.env
        self.locks = LockTable(layer.site, 1, "i_data_sem")
        self.locks.share()
        times = FlusherCosts(map_ns=40, page_ns=0, ioend_ns=100, **costs)
        self.costs = MapCosts(times, 9, Dice(layer.site, "map"))
        self.log: list[tuple[int, str, int]] = []
        self.thread = layer.site.thread
        metadata: Any = SimpleNamespace()
        self.completions = Completions(self.env, [self.thread("kworker")], True, self.costs, metadata)
        inode: Any = SimpleNamespace(i_sync=None)
        self.conversions = Conversions(inode, self.locks.inode_lock(), self._converted)

    def _converted(self, of: Any, ranges: int) -> None:
        self.log.append((self.env.now, "ranges", ranges))

    def submit(self, pages: int, ranges: dict[int, int], folio_pages: int = 1) -> Submission:
        """So many pages went to the device."""
        clean = lambda pages: self.log.append((self.env.now, "clean", pages))  # noqa: E731
        return Submission(self.completions, self.conversions, pages, ranges, folio_pages, clean)


def test_pages_are_clean_once_their_ranges_are_converted() -> None:
    """12 pages in 6 ranges of 100 ns: 4 pages are on the device at 0, 8 at 50, and wait for the worker.

    A flusher has the file from 230 to 270: the worker, which is in its third transaction, is woken at 305
    after that, and the flusher has waited until then.
    """
    of = Machine()
    one = of.submit(12, {0: 6})
    one.written(4)
    of.env.call_at(50, 0, lambda: one.written(8))

    def flush() -> None:
        from_ns = int(take_inode(of.locks.locks, 0, 230))
        give_inode(of.locks.locks, 0, 230, from_ns, from_ns + 40)

    of.env.call_at(230, 0, flush)
    of.env.run()
    through = 300 + 5 + 40 + 5 + 300
    assert of.log == [(200, "clean", 4), (200, "ranges", 2), (through, "clean", 8), (through, "ranges", 4)]
    assert not of.conversions.busy


def test_what_lands_while_the_worker_is_busy_is_converted_together() -> None:
    """4 of 12 pages in 6 ranges at 0, and 4 each at 50 and 60: 2 ranges, and then 4."""
    of = Machine()
    one = of.submit(12, {0: 6})
    one.written(4)
    for when_ns in (50, 60):
        of.env.call_at(when_ns, 0, lambda: one.written(4))
    of.env.run()
    assert of.log == [
        (200, "clean", 4), (200, "ranges", 2), (600, "clean", 4), (600, "clean", 4), (600, "ranges", 4),
    ]  # fmt: skip


def test_a_file_of_many_extents_has_costs_of_its_own_and_folios_are_counted() -> None:
    """Up to 9 extents 100 ns a range, above 250; and 7 a folio of 4 pages."""
    of = Machine(tree_map_ns=90, tree_ioend_ns=250, end_folio_ns=7)
    for extents in (9, 10):
        of.conversions.extents = extents
        of.submit(12, {0: 2}, 4).written(12)
        assert of.costs.map_ns(of.conversions.extents) == (40 if extents == 9 else 90)
        of.env.run()
    assert [when for when, what, _ in of.log if what == "clean"] == [200 + 3 * 7, 200 + 21 + 500 + 3 * 7]


def test_a_worker_waits_for_a_flusher_that_has_the_file() -> None:
    """A thread has the file until 300: the worker is awake 5 ns later, and converts two ranges."""
    of = Machine()
    lock, thread = of.conversions.lock, of.thread("a flusher")

    def run() -> Steps:
        yield from lock.down(thread)
        assert of.locks.locks.inodes[0, UNTIL] == FAR
        yield 300
        lock.up()

    of.env.start(thread.task, run())
    of.env.call_at(10, 0, lambda: of.submit(12, {0: 2}).written(12))
    of.env.run()
    assert of.log[0] == (300 + 5 + 200, "clean", 12)
    assert of.conversions.ranges == {}
    assert of.locks.locks.inodes[0, WORKER] == NO_ROW
