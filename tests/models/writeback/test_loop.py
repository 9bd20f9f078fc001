"""The flusher's loop, visit by visit: what it takes, when, and where it stops."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.models.interfaces import LONG_MAX, InodeSync, Work, WritebackControl
from wbsim.models.time_accounting import Spent
from wbsim.models.tracepoints import Signals
from wbsim.models.writeback.loop import Slice, Writeback
from wbsim.models.writeback.wb import WritebackContext
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.sync import Completion, HandOff, SpinLock
from wbsim.sim.units import MS


class Sb:
    """A superblock of this filesystem."""

    def __init__(self, filesystem: Any) -> None:
        self.filesystem = filesystem

    def wait_for_writeback(self, thread: Any) -> Steps:
        """All I/O takes 1 000."""
        yield 1_000


class Loop:
    """A context whose inodes take 100 ns each, under a list lock: 1 ns to take one, 2 to put it back, 10 to
    move it; 5 outside of the lock. What happens is logged with its time.
    """

    def __init__(self, *, avg_write: int = 4, limit: int = 80, background: int = 0, **rules: Any) -> None:
        self.env = Environment()
        self.sb = Sb(self)
        self.log: list[tuple[Any, ...]] = []
        self.slices: list[tuple[int, int]] = []
        self.budgets: list[int] = []
        cache: Any = SimpleNamespace(
            wbs=[], thresholds=lambda: SimpleNamespace(background=background, limit=limit), dirty=0
        )
        self.cache = cache
        self.wb = WritebackContext("vda", SpinLock(self.env, "list_lock", HandOff(0, 0)), cache)
        self.wb.bandwidth.avg_write = avg_write
        self.share = lambda pages: pages
        throttle: Any = SimpleNamespace(
            wrote=lambda wb, since_ns: self.slices.append((since_ns, self.env.now)),
            share=lambda wb, pages: self.share(pages),
        )
        chosen = {
            "plug_scope": "none", "slice_time": 10_000, "nr_to_write": None, "used_up": "redirty_tail",
            "expire": 1_000, "interval": 5_000, "leaves": True, "explicit_takes": "at_start",
            "waits_for_io": False,
        } | rules  # fmt: skip
        costs: Any = SimpleNamespace(take_ns=1, requeue_ns=2, move_ns=10, inode_ns=5)
        self.signals = Signals()
        self.writeback = Writeback(
            env=self.env, rules=SimpleNamespace(**chosen), costs=costs, cache=cache,  # type: ignore[arg-type]
            throttle=throttle, signals=self.signals,
        )  # fmt: skip
        task = self.env.task("flusher")
        self.thread: Any = SimpleNamespace(
            task=task, spent=Spent(), start_plug=self._start_plug, finish_plug=self._finish_plug,
            before_sleep=lambda: self.log.append((self.env.now, "before sleep")),
        )  # fmt: skip
        self.writes_at_most = LONG_MAX

    def _start_plug(self) -> bool:
        self.log.append((self.env.now, "plug"))
        return True

    def _finish_plug(self) -> Steps:
        self.log.append((self.env.now, "unplug"))
        yield 1_000

    def write_pages(self, thread: Any, inode: Any, wbc: WritebackControl) -> Steps:
        """The filesystem's."""
        budget = wbc.nr_to_write
        assert inode.i_sync is not None
        self.log.append((self.env.now, inode.name))
        self.budgets.append(budget)
        yield 100
        written = min(inode.dirty_pages, budget, self.writes_at_most)
        inode.dirty_pages -= written
        self.wb.dirty -= written
        self.cache.dirty -= written
        wbc.nr_to_write -= written

    def dirty(self, *inodes: tuple[str, int, int], sb: Any = None) -> None:
        """Inodes by name, when they were dirtied and how many pages; of one superblock, or of *sb*."""
        sb = sb or self.sb
        for name, when_ns, pages in inodes:
            inode: Any = SimpleNamespace(name=name, sb=sb, wb=self.wb, dirty_pages=pages, i_sync=None)
            self.wb.add(inode, when_ns)
            self.wb.dirty += pages
            self.wb.dirty_and_writeback += pages
            self.cache.dirty += pages

    def perform(self, work: Work, at_ns: int = 0) -> list[tuple[Any, ...]]:
        """What happens until *work*, which begins then, is over."""

        def body() -> Steps:
            yield from self.writeback.perform(self.thread, self.wb, work)
            self.log.append((self.env.now, "over"))

        self.env.start(self.thread.task, body(), at_ns)
        self.env.run(10 * MS)
        return self.log

    def left(self) -> tuple[list[str], list[str], list[str]]:
        """The lists: b_dirty, b_io, b_more_io."""
        wb: Any = self.wb
        return tuple([inode.name for inode in of] for of in (wb.b_dirty, wb.b_io, wb.b_more_io))  # type: ignore[return-value]


def test_periodic_work_takes_what_has_expired() -> None:
    """At 1 050 what was dirtied by 50: two inodes are moved (20 ns), the first is taken (6), each is written
    (100) and put back as the next is taken (8); a second look finds nothing (6). Younger ones stay.
    """
    loop = Loop()
    loop.dirty(("a", 0, 3), ("b", 50, 3), ("young", 500, 3))
    assert loop.perform(Work("periodic"), 1_050) == [(1_076, "a"), (1_184, "b"), (1_298, "over")]
    assert loop.left() == (["young"], [], [])
    lists = loop.wb.lock.stat  # both looks and both first takes, and two that put one back
    assert (lists.acquisitions, lists.hold_ns) == (6, 20 + 1 + 3 + 3 + 0 + 1)
    loop = Loop()
    loop.dirty(("a", 51, 3))
    assert loop.perform(Work("periodic"), 1_050) == [(1_056, "over")]


def test_other_work_takes_all_and_a_sync_what_was_dirty_at_its_beginning() -> None:
    """An inode that is dirtied in the middle of the first slice is background work's, too."""
    for reason, names in (("background", ["a", "late"]), ("sync", ["a"])):
        loop = Loop()
        loop.dirty(("a", 0, 3))
        loop.env.call_at(60, 0, lambda loop=loop: loop.dirty(("late", 60, 3)))  # type: ignore[misc]
        assert [name for _, name in loop.perform(Work(reason), 50)] == [*names, "over"]  # type: ignore[arg-type]


@pytest.mark.parametrize(("slice_time", "slices"), [(114, 3), (115, 2), (222, 2), (223, 1)])
def test_a_slice_ends_with_its_time(slice_time: int, slices: int) -> None:
    """Three inodes: 6, and 108 for each; the time is looked at after each."""
    loop = Loop(slice_time=slice_time)
    loop.dirty(("a", 0, 3), ("b", 0, 3), ("c", 0, 3))
    loop.perform(Work("background"), 10)
    assert len(loop.slices) == slices
    assert loop.slices[0][0] == 40
    assert [name for _, name in loop.log] == ["a", "b", "c", "over"]


@pytest.mark.parametrize(
    ("background", "names"), [(8, ["a"]), (6, ["a"]), (5, ["a", "b"]), (2, ["a", "b", "c"])]
)
def test_background_work_ends_at_the_threshold(background: int, names: list[str]) -> None:
    """Of nine dirty pages, three go with each slice; it goes on while more than *background* are left."""
    loop = Loop(slice_time=1, background=background)
    loop.dirty(("a", 0, 3), ("b", 0, 3), ("c", 0, 3))
    assert [name for _, name in loop.perform(Work("background"))] == [*names, "over"]


def test_background_work_goes_on_while_a_context_has_more_than_its_share() -> None:
    """Nothing is over the threshold of all, but this context may have two of its ten."""
    loop = Loop(slice_time=1, background=10)
    loop.share = lambda pages: pages // 5
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    assert [name for _, name in loop.perform(Work("background"))] == ["a", "b", "over"]
    assert not loop.writeback.over_background(loop.wb)


@pytest.mark.parametrize(
    ("avg_write", "limit", "nr_pages", "budget"),
    [
        (5_000, 10**6, LONG_MAX, 3_072),  # half a second: 2 500, and one chunk more, rounded down
        (2_046, 10**6, LONG_MAX, 1_024),
        (2_048, 10**6, LONG_MAX, 2_048),
        (10**6, 8 * 1_500, LONG_MAX, 2_048),  # an eighth of the limit
        (10**6, 10**6, 700, 700),  # a chunk of 1 024, of which the work wants 700
    ],
)
def test_a_chunk_is_half_a_second_of_bandwidth(
    avg_write: int, limit: int, nr_pages: int, budget: int
) -> None:
    """writeback_chunk_size."""
    loop = Loop(avg_write=avg_write, limit=limit)
    loop.dirty(("a", 0, 3))
    loop.perform(Work("start", nr_pages))
    assert loop.budgets == [budget]


def test_a_sync_s_budget_is_no_count() -> None:
    """The whole file is meant, whatever was written before it."""
    loop = Loop()
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    loop.perform(Work("sync"))
    assert loop.budgets == [LONG_MAX] * 2


def test_asked_for_pages_are_counted_with_their_inodes() -> None:
    """Eight pages are asked for: 3 and an inode, and again, are eight: the third is left on b_io."""
    loop = Loop()
    loop.dirty(("a", 0, 3), ("b", 0, 3), ("c", 0, 3))
    loop.perform(Work("start", 8))
    assert loop.left() == ([], ["c"], [])
    assert loop.budgets == [8, 4]


def test_a_pass_has_its_quota_even_where_less_is_left_to_do() -> None:
    """To 2.6.39: four pages are asked for, and the pass may write five: two of the second's three."""
    loop = Loop(nr_to_write=5, used_up="more_io", slice_time=1)
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    loop.perform(Work("start", 4))
    assert loop.budgets == [5, 2]


def test_a_quota_counts_pages_alone_and_is_for_all_inodes() -> None:
    """To 2.6.39: of a quota of 5, the first takes 3, the second 2 of its 3; that goes to b_more_io where the
    era puts it, and comes last in the next turn. A turn that leaves a part of the quota is the last.
    """
    loop = Loop(nr_to_write=5, used_up="more_io", slice_time=1)
    loop.dirty(("a", 0, 3), ("b", 0, 3), ("c", 0, 3))
    loop.perform(Work("background"))
    assert loop.budgets == [5, 2, 5, 2]
    assert [name for _, name in loop.log] == ["a", "b", "c", "b", "over"]
    assert len(loop.slices) == 2


def test_an_inode_that_is_not_done_waits_at_the_tail() -> None:
    """It could write 2 of 3 pages: dirtied again now, it comes after what waits."""
    loop = Loop()
    loop.writes_at_most = 2
    loop.dirty(("a", 0, 3))
    assert [name for _, name in loop.perform(Work("background"))] == ["a", "a", "over"]
    loop = Loop()
    loop.writes_at_most = 2
    loop.dirty(("a", 0, 3))
    loop.perform(Work("sync"))
    assert loop.left()[0] == ["a"]
    assert loop.wb.b_dirty[0].dirtied_when == 116


def test_work_for_one_superblock_passes_others_over() -> None:
    """Theirs are dirtied again, at the tail."""
    loop = Loop()
    mine: Any = Sb(loop)
    loop.dirty(("other", 0, 3))
    loop.dirty(("mine", 0, 3), sb=mine)
    assert loop.perform(Work("sync", sb=mine)) == [(26, "mine"), (140, "over")]
    assert loop.left() == (["other"], [], [])
    assert loop.wb.b_dirty[0].dirtied_when == 26


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ("none", ["a", "b", "over"]),
        ("mapping", ["plug", "a", "unplug", "plug", "b", "unplug", "over"]),
        ("slice", ["plug", "a", "b", "unplug", "plug", "unplug", "over"]),
        ("work", ["plug", "a", "b", "unplug", "over"]),
    ],
)
def test_where_a_plug_opens(scope: str, names: list[str]) -> None:
    """Around a mapping, a slice (the second one finds nothing) or the work."""
    loop = Loop(plug_scope=scope)
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    assert [name for _, name in loop.perform(Work("sync"))] == names


def test_who_asked_hears_of_the_end() -> None:
    """After the last plug."""
    loop = Loop(plug_scope="work")
    done = Completion(loop.env, "it")
    told: list[int] = []
    waiter = loop.env.task("waiter")

    def wait() -> Steps:
        yield from done.wait(waiter)
        told.append(loop.env.now)

    loop.env.start(waiter, wait())
    loop.dirty(("a", 0, 3))
    assert loop.perform(Work("background", done=done))[-1][0] == told[0] == 10 + 6 + 100 + 8 + 1_000


def test_a_writer_takes_its_turn_on_the_same_lists() -> None:
    """writeback_inodes_wbc: up to so many pages; what that took off the budget."""
    loop = Loop(nr_to_write=1_024, used_up="more_io")
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    took: list[int] = []

    def body() -> Steps:
        took.append((yield from loop.writeback.write_inodes(loop.thread, loop.wb, 4)))

    loop.env.start(loop.thread.task, body())
    loop.env.run()
    assert took == [4]
    assert loop.log == [(26, "a"), (134, "b")]
    assert loop.left() == ([], [], ["b"])


def test_a_filesystem_that_writes_more_than_its_budget_is_charged_for_all() -> None:
    """The first file's seven pages at once, of a budget of four: three too many are off it, too."""
    loop = Loop(nr_to_write=1_024, used_up="more_io")

    def write_whole(thread: Any, inode: Any, wbc: WritebackControl) -> Steps:
        yield 100
        wbc.nr_to_write -= inode.dirty_pages
        loop.wb.dirty -= inode.dirty_pages
        inode.dirty_pages = 0

    loop.sb.filesystem = SimpleNamespace(write_pages=write_whole)
    loop.dirty(("a", 0, 7), ("b", 0, 3))
    took: list[int] = []

    def body() -> Steps:
        took.append((yield from loop.writeback.write_inodes(loop.thread, loop.wb, 4)))

    loop.env.start(loop.thread.task, body())
    loop.env.run()
    assert took == [7]
    assert loop.left() == ([], ["b"], [])


@pytest.mark.parametrize(
    ("reason", "waits", "names"),
    [("periodic", False, ["a"]), ("periodic", True, ["left"]), ("background", True, ["left", "a", "young"])],
)
def test_a_periodic_pass_refills_its_list_where_that_is_empty(
    reason: Any, waits: bool, names: list[str]
) -> None:
    """generic_sync_sb_inodes for kupdate: with what has expired; other work adds to it what is dirty."""
    loop = Loop(nr_to_write=1_024)
    if waits:
        loop.dirty(("left", 0, 3))
        loop.wb.queue_io(0)
    loop.dirty(("a", 0, 3), ("young", 500, 3))

    def body() -> Steps:
        yield from loop.writeback.pass_over(loop.thread, loop.wb, Work(reason), 1_024)

    loop.env.start(loop.thread.task, body(), 1_050)
    loop.env.run()
    assert [name for _, name in loop.log] == names


def test_each_visit_is_told() -> None:
    """writeback_single_inode, with what was written."""
    loop = Loop()
    told: list[tuple[str, int]] = []
    loop.signals.writeback_single_inode.observers.append(
        lambda _, inode, wrote: told.append((inode.name, wrote))
    )
    loop.dirty(("a", 0, 3), ("b", 0, 5))
    loop.perform(Work("background"))
    assert told == [("a", 3), ("b", 5)]


@pytest.mark.parametrize(
    ("reason", "budgets"), [("periodic", [4, 1, 4, 4, 2]), ("background", [4, 1, 4, 1, 4, 2])]
)
def test_with_a_quota_only_periodic_work_empties_its_list_before_it_looks_again(
    reason: Any, budgets: list[int]
) -> None:
    """Three inodes of three pages and a quota of four: one and a third are written, and two are left, one of
    them in b_io. Periodic work takes that alone, and then the rest of the other with what has expired since;
    other work looks for more at once, so that its second slice is of two inodes, too.
    """
    loop = Loop(nr_to_write=4, used_up="more_io", expire=1_000)
    loop.dirty(("a", 0, 3), ("b", 0, 3), ("c", 0, 3), ("late", 60, 3))
    loop.perform(Work(reason), 1_050)
    assert loop.budgets[: len(budgets)] == budgets


@pytest.mark.parametrize(("pages", "slices"), [(3, 1), (4, 2)])
def test_a_quota_that_was_used_up_is_followed_by_another(pages: int, slices: int) -> None:
    """To the last page: there may be more, which came meanwhile."""
    loop = Loop(nr_to_write=4)
    loop.dirty(("a", 0, pages))
    loop.perform(Work("start", 100), 50)
    assert len(loop.slices) == slices


@pytest.mark.parametrize(
    ("reason", "leaves", "names"),
    [("background", True, ["a"]), ("periodic", True, ["a"]), ("background", False, ["a", "b"]),
     ("periodic", False, ["a", "b"]), ("start", True, ["a", "b"]), ("sync", True, ["a", "b"])],
)  # fmt: skip
def test_background_and_periodic_work_leave_for_other_work(reason: Any, leaves: bool, names: Any) -> None:
    """It is queued at 60, while the first of two slices runs; to 2.6.37 it has to wait for both."""
    loop = Loop(slice_time=1, leaves=leaves)
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    loop.env.call_at(1_060, 0, lambda: loop.wb.work_list.append(Work("sync")))
    assert [name for _, name in loop.perform(Work(reason), 1_000)] == [*names, "over"]


def test_work_that_finds_other_work_does_nothing() -> None:
    """Not even the lists are looked at."""
    loop = Loop()
    loop.dirty(("a", 0, 3))
    loop.wb.work_list.append(Work("sync"))
    assert loop.perform(Work("background")) == [(0, "over")]
    assert loop.wb.lock.stat.acquisitions == 0


@pytest.mark.parametrize(("takes", "names"), [("at_start", ["a"]), ("at_pass", ["a", "late"])])
@pytest.mark.parametrize("reason", ["start", "sync"])
def test_explicit_work_takes_what_was_dirty_at_its_start_or_at_each_pass(
    reason: Any, takes: str, names: list[str]
) -> None:
    """An inode is dirtied at 60, during the first pass."""
    loop = Loop(explicit_takes=takes)
    loop.dirty(("a", 0, 3))
    loop.env.call_at(60, 0, lambda: loop.dirty(("late", 60, 3)))
    assert [name for _, name in loop.perform(Work(reason), 50)] == [*names, "over"]


@pytest.mark.parametrize(("reason", "end_ns"), [("sync", 26 + 2 * 1_108), ("start", 26 + 2 * 108)])
def test_a_flusher_waits_for_the_io_of_each_inode_that_it_syncs(reason: Any, end_ns: int) -> None:
    """To 3.10; before it sleeps its plug is emptied, and other work does not wait."""
    loop = Loop(waits_for_io=True)
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    log = loop.perform(Work(reason))
    assert log[-1] == (end_ns + 6, "over")  # a second pass finds nothing
    assert ("before sleep" in [name for _, name in log]) == (reason == "sync")


@pytest.mark.parametrize(
    ("own", "log"), [(True, [(6, "before sleep"), (5_016, "a"), (5_130, "over")]), (False, [(6, "over")])]
)
def test_a_sync_waits_for_an_inode_that_another_thread_writes_back(own: bool, log: Any) -> None:
    """Until 5 000: the inode is still dirty then, and written.  One of another superblock is let alone."""
    loop = Loop()
    loop.dirty(("a", 0, 3))
    inode, i_sync = loop.wb.b_dirty.popleft(), InodeSync(loop.env)
    i_sync.begin(inode)
    loop.wb.i_syncs.append(i_sync)

    def end() -> None:
        i_sync.end(inode)
        loop.wb.give_back(inode)

    loop.env.call_at(5_000, 0, end)
    sb: Any = loop.sb if own else Sb(loop)
    assert loop.perform(Work("sync", sb=sb)) == log


@pytest.mark.parametrize(("reason", "names"), [("background", []), ("start", []), ("sync", ["a"])])
def test_a_sync_meets_what_another_thread_gave_back_during_its_pass(reason: Any, names: list[str]) -> None:
    """Whose writeback was not for data integrity: another pass follows, and none after that."""
    loop = Loop(nr_to_write=1_024, explicit_takes="at_pass")
    loop.dirty(("mine", 0, 3), ("a", 0, 3))
    inode: Any = loop.wb.b_dirty.pop()

    def gives_back() -> None:
        loop.writeback._requeue(loop.wb, inode, WritebackControl("background"), 0, Slice())

    loop.env.call_at(50, 0, gives_back)
    assert [name for _, name in loop.perform(Work(reason, nr_pages=10**6))] == ["mine", *names, "over"]
    assert loop.wb.given_back == 1


def test_what_data_integrity_leaves_dirty_was_dirtied_later() -> None:
    """A sync does not meet it again, or it would never end."""
    loop = Loop(explicit_takes="at_pass")
    loop.writes_at_most = 2
    loop.dirty(("a", 0, 3))
    assert [name for _, name in loop.perform(Work("sync"))] == ["a", "a", "over"]
    assert loop.wb.given_back == 0


@pytest.mark.parametrize("nr_to_write", [None, 1_024])
def test_work_ends_while_another_superblock_has_more_io(nr_to_write: int | None) -> None:
    """Inodes of another superblock stay on b_more_io, as old as they were, if its lists are separate."""
    loop = Loop(nr_to_write=nr_to_write)
    loop.wb.per_superblock = True
    mine: Any = Sb(loop)
    loop.dirty(("other", 0, 3))
    loop.wb.requeue_io(loop.wb.b_dirty.popleft())
    loop.dirty(("mine", 0, 3), sb=mine)
    assert [name for _, name in loop.perform(Work("sync", sb=mine))] == ["mine", "over"]
    assert loop.left() == ([], [], ["other"])
    assert loop.wb.b_more_io[0].dirtied_when == 0


@pytest.mark.parametrize("nr_to_write", [None, 1_024])
def test_work_moves_its_inodes_while_another_superblock_has_io(nr_to_write: int | None) -> None:
    """An inode of another superblock on b_io keeps no work from queue_io, if its lists are separate."""
    loop = Loop(nr_to_write=nr_to_write)
    loop.wb.per_superblock = True
    mine: Any = Sb(loop)
    loop.dirty(("other", 0, 3))
    loop.wb.queue_io(0)
    loop.dirty(("mine", 0, 3), sb=mine)
    loop.wb.requeue_io(loop.wb.b_dirty.popleft())
    assert [name for _, name in loop.perform(Work("sync", sb=mine))] == ["mine", "over"]
    assert loop.left() == ([], ["other"], [])


@pytest.mark.parametrize("nr_to_write", [None, 1_024])
def test_work_goes_on_past_what_another_left_of_another_superblock(nr_to_write: int | None) -> None:
    """An era without nr_to_write has not looked at b_dirty then."""
    loop = Loop(nr_to_write=nr_to_write)
    mine: Any = Sb(loop)
    loop.dirty(("other", 0, 3))
    loop.wb.queue_io(0)
    loop.dirty(("mine", 0, 3), sb=mine)
    assert [name for _, name in loop.perform(Work("sync", sb=mine))] == ["mine", "over"]
    assert loop.left() == (["other"], [], [])


@pytest.mark.parametrize(("reason", "at_most", "flushed"), [("start", 9, (2, 8)), ("sync", 3, (1, 6))])
def test_what_was_flushed_is_counted(reason: Any, at_most: int, flushed: tuple[int, int]) -> None:
    """Inodes of 3 and 5 pages: both are left clean or, if 3 pages can be written, the first is."""
    loop = Loop(avg_write=4_096)
    loop.writes_at_most = at_most
    loop.dirty(("a", 0, 3), ("b", 0, 5))
    loop.perform(Work(reason))
    assert (loop.wb.flushed_inodes, loop.wb.flushed_pages) == flushed


def test_what_another_thread_sends_is_not_the_flusher_s() -> None:
    """Seven pages of the context went under writeback by an fsync(2) before the flusher wrote its three."""
    loop = Loop()
    loop.dirty(("a", 0, 3))
    loop.wb.account_dirtied(7)
    loop.wb.account_writeback(7)
    loop.perform(Work("background"))
    assert (loop.wb.flushed_pages, loop.wb.dirtied, loop.wb.dirty) == (3, 10, 0)


@pytest.mark.parametrize(
    ("left", "used_up", "reason", "more"),
    [
        (1, "more_io", "background", False),
        (0, "more_io", "background", True),
        (0, "redirty_tail", "background", False),
        (0, "redirty_tail", "periodic", True),
        (1, "redirty_tail", "periodic", False),
    ],
)
def test_an_inode_that_used_its_chunk_up_waits_for_more_io_or_at_the_tail(
    left: int, used_up: str, reason: Any, more: bool
) -> None:
    """requeue_inode, by era: an inode of five pages, of which three may be written, after the first visit."""
    loop, seen = Loop(nr_to_write=3, used_up=used_up, expire=0), list[Any]()
    loop.writes_at_most = 3 - left
    loop.dirty(("a", 0, 5))
    loop.env.call_at(117, 9, lambda: seen.append((loop.left(), loop.env.now)))
    loop.perform(Work(reason, 3))
    assert seen[0] == ((([], [], ["a"]) if more else (["a"], [], [])), 117)


@pytest.mark.parametrize(
    ("reason", "background"), [("background", True), ("periodic", True), ("start", False), ("sync", False)]
)
def test_a_flusher_that_nobody_waits_for_says_so(reason: Any, background: bool) -> None:
    """Writeback throttling gives it less of the queue."""
    loop = Loop()
    loop.perform(Work(reason, 1))
    assert loop.thread.background == background
