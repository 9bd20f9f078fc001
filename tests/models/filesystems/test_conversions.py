"""The worker that converts what was written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from models.filesystems.conversions import Submission, Workers
from models.filesystems.dice import Dice
from models.filesystems.map_costs import MapCosts
from models.filesystems.spec import FlusherCosts
from models.filesystems.turns import NO_ROW, Turns
from models.filesystems.unwritten import Conversions
from models.spent import Spent
from sim.engine import Environment
from tests.harness import BlockLayer


def test_pages_are_clean_once_their_ranges_are_converted() -> None:
    """12 pages in 6 ranges of 100 ns: 4 pages are on the device at 0, 8 at 50, and wait for the worker; the
    flusher is at the inode from 60 on, and each range then waits for half of its 40.
    """
    env, log = Environment(), []
    inode: Any = SimpleNamespace(i_sync=None)
    conversions = Conversions(inode)
    threads: Any = [SimpleNamespace(task=env.task("kworker"), spent=Spent())]
    costs = MapCosts(FlusherCosts(map_ns=40, page_ns=0, ioend_ns=100), 9, Dice(BlockLayer()._site, "map"))
    workers = Workers(env, threads, costs, lambda of, ranges: log.append((env.now, "ranges", ranges)), None)
    one = Submission(workers, conversions, 12, {3: 6}, 1, lambda pages: log.append((env.now, "clean", pages)))
    assert costs.waits_ns(conversions) == 0
    one.written(4)
    assert costs.waits_ns(conversions) == 50
    env.call_at(50, 0, lambda: one.written(8))
    env.call_at(60, 0, lambda: setattr(inode, "i_sync", object()))
    env.run()
    assert log == [(200, "clean", 4), (200, "ranges", 2), (680, "clean", 8), (680, "ranges", 4)]
    assert not conversions.busy


def test_a_file_of_many_extents_has_costs_of_its_own_and_folios_are_counted() -> None:
    """Up to 9 extents 100 ns a range, above 250; and 7 a folio of 4 pages."""
    env: Any = Environment()
    costs = MapCosts(
        FlusherCosts(map_ns=40, page_ns=0, ioend_ns=100, tree_map_ns=90, tree_ioend_ns=250, end_folio_ns=7),
        9,
        Dice(BlockLayer()._site, "map"),
    )
    threads: Any = [SimpleNamespace(task=env.task("kworker"), spent=Spent())]
    inode: Any = SimpleNamespace(i_sync=None)
    conversions, ends = Conversions(inode), []
    workers = Workers(env, threads, costs, lambda of, ranges: ends.append(env.now), None)
    for extents in (9, 10):
        conversions.extents = extents
        Submission(workers, conversions, 12, {0: 2}, 4, lambda pages: None).written(12)
        assert costs.map_ns(conversions) == (40 if extents == 9 else 90)
        env.run()
    assert ends == [200 + 3 * 7, 200 + 21 + 500 + 3 * 7]


def test_who_takes_turns_begins_when_the_flusher_has_left_the_file_and_goes_group_by_group() -> None:
    """Two ranges in group 1 and one in group 0, of 100 each, 30 of it with the group's lock; the flusher has
    the file until 500, and somebody else group 0 from 700 to 900.
    """
    env: Any = Environment()
    threads: Any = [SimpleNamespace(task=env.task("kworker"), spent=Spent())]
    costs = MapCosts(
        FlusherCosts(map_ns=40, page_ns=0, ioend_ns=70), 9, Dice(BlockLayer()._site, "map"), group_ns=30
    )
    turns, ends = Turns(2, 1, 5), []
    workers = Workers(env, threads, costs, lambda of, ranges: ends.append((env.now, ranges)), turns)
    inode: Any = SimpleNamespace(i_sync=None)
    conversions = Conversions(inode)
    conversions.kept_ns = 500
    turns.hold(0, 700, 200)
    assert costs.waits_ns(conversions) == 0
    Submission(workers, conversions, 12, {1: 2, 0: 1}, 4, lambda pages: None).written(12)
    env.run()
    assert ends == [(900 + 5 + 30, 3)]
    assert (conversions.ranges, conversions.row) == ({}, NO_ROW)
