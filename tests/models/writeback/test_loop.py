"""The loop of the flusher, visit by visit: the inodes that it takes, their times, and its end."""

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
    """A superblock of *filesystem*."""

    def __init__(self, filesystem: Any) -> None:
        self.filesystem = filesystem

    def wait_for_writeback(self, thread: Any) -> Steps:
        """Wait 1 000 ns for all I/O."""
        yield 1_000


class Loop:
    """A context, whose flusher logs its events with their times.

    To write an inode takes 100 ns.  Under the list lock, it takes 1 ns to take an inode, 2 ns to put it back,
    and 10 ns to move it.  5 ns more are spent outside of the lock.
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
            "background_takes": "at_pass", "background_test": "share", "waits_for_io": False,
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
        """Write up to ``nr_to_write`` and `writes_at_most` pages of *inode* in 100 ns."""
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
        """Dirty *inodes* (name, time, pages) of *sb*, or of the only superblock."""
        sb = sb or self.sb
        for name, when_ns, pages in inodes:
            inode: Any = SimpleNamespace(name=name, sb=sb, wb=self.wb, dirty_pages=pages, i_sync=None)
            self.wb.add(inode, when_ns)
            self.wb.dirty += pages
            self.wb.dirty_and_writeback += pages
            self.cache.dirty += pages

    def perform(self, work: Work, at_ns: int = 0) -> list[tuple[Any, ...]]:
        """Perform *work* from *at_ns* on; return the log."""

        def body() -> Steps:
            yield from self.writeback.perform(self.thread, self.wb, work)
            self.log.append((self.env.now, "over"))

        self.env.start(self.thread.task, body(), at_ns)
        self.env.run(10 * MS)
        return self.log

    def left(self) -> tuple[list[str], list[str], list[str]]:
        """Return the names of the inodes on b_dirty, b_io and b_more_io."""
        wb: Any = self.wb
        return tuple([inode.name for inode in of] for of in (wb.b_dirty, wb.b_io, wb.b_more_io))  # type: ignore[return-value]


def test_periodic_work_takes_expired_inodes() -> None:
    """Periodic work takes inodes that were dirtied at least 1 000 ns ago; younger inodes stay.

    * 1 050: two inodes are moved (20 ns); the first one is taken (6).
    * 1 076: a is written (100); it is put back and b is taken (8).
    * 1 184: b is written (100) and put back (8).
    * 1 292: a second slice finds no inode (6).
    """
    loop = Loop()
    loop.dirty(("a", 0, 3), ("b", 50, 3), ("young", 500, 3))
    assert loop.perform(Work("periodic"), 1_050) == [(1_076, "a"), (1_184, "b"), (1_298, "over")]
    assert loop.left() == (["young"], [], [])
    lists = loop.wb.lock.stat  # two moves, two first takes, two puts
    assert (lists.acquisitions, lists.hold_ns) == (6, 20 + 1 + 3 + 3 + 0 + 1)
    loop = Loop()
    loop.dirty(("a", 51, 3))
    assert loop.perform(Work("periodic"), 1_050) == [(1_056, "over")]


def test_background_work_takes_late_inodes_and_sync_does_not() -> None:
    """Background work takes an inode that is dirtied during its first slice; a sync does not."""
    for reason, names in (("background", ["a", "late"]), ("sync", ["a"])):
        loop = Loop()
        loop.dirty(("a", 0, 3))
        loop.env.call_at(60, 0, lambda loop=loop: loop.dirty(("late", 60, 3)))  # type: ignore[misc]
        assert [name for _, name in loop.perform(Work(reason), 50)] == [*names, "over"]  # type: ignore[arg-type]


@pytest.mark.parametrize(("slice_time", "slices"), [(114, 3), (115, 2), (222, 2), (223, 1)])
def test_a_slice_ends_with_its_time(slice_time: int, slices: int) -> None:
    """A slice takes 6 ns and 108 ns for each of three inodes, and tests its time after each inode."""
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
    """Each slice writes three of nine dirty pages; slices follow while more than *background* are dirty."""
    loop = Loop(slice_time=1, background=background)
    loop.dirty(("a", 0, 3), ("b", 0, 3), ("c", 0, 3))
    assert [name for _, name in loop.perform(Work("background"))] == [*names, "over"]


def test_background_work_continues_while_a_context_exceeds_its_share() -> None:
    """Six dirty pages are below the background threshold of ten, but the share of this context is two."""
    loop = Loop(slice_time=1, background=10)
    loop.share = lambda pages: pages // 5
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    assert [name for _, name in loop.perform(Work("background"))] == ["a", "b", "over"]
    assert not loop.writeback.over_background(loop.wb)


def test_background_work_to_3_1_ignores_the_share() -> None:
    """Six dirty pages are below the threshold of ten, so nothing is written, whatever the share is."""
    loop = Loop(slice_time=1, background=10, background_test="global")
    loop.share = lambda pages: pages // 5
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    assert loop.perform(Work("background")) == [(0, "over")]


def test_background_work_of_3_1_takes_no_late_inode() -> None:
    """An inode that is dirtied during the first pass waits for other work in 3.1 and 3.2."""
    loop = Loop(background_takes="at_start")
    loop.dirty(("a", 0, 3))
    loop.env.call_at(60, 0, lambda: loop.dirty(("late", 60, 3)))
    assert [name for _, name in loop.perform(Work("background"), 50)] == ["a", "over"]


@pytest.mark.parametrize(
    ("avg_write", "limit", "nr_pages", "budget"),
    [
        (5_000, 10**6, LONG_MAX, 3_072),  # half a second: 2 500 pages, plus 1 024, rounded down
        (2_046, 10**6, LONG_MAX, 1_024),
        (2_048, 10**6, LONG_MAX, 2_048),
        (10**6, 8 * 1_500, LONG_MAX, 2_048),  # an eighth of the limit
        (10**6, 10**6, 700, 700),  # a chunk of 1 024, but the work needs only 700
    ],
)
def test_a_chunk_is_half_a_second_of_bandwidth(
    avg_write: int, limit: int, nr_pages: int, budget: int
) -> None:
    """writeback_chunk_size: half a second of bandwidth in chunks of 1 024 pages, at most limit / 8."""
    loop = Loop(avg_write=avg_write, limit=limit)
    loop.dirty(("a", 0, 3))
    loop.perform(Work("start", nr_pages))
    assert loop.budgets == [budget]


def test_sync_has_an_unlimited_budget_for_each_inode() -> None:
    """The nr_to_write of a sync is LONG_MAX for each inode, because a sync writes complete files."""
    loop = Loop()
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    loop.perform(Work("sync"))
    assert loop.budgets == [LONG_MAX] * 2


def test_explicit_work_counts_cleaned_inodes_like_pages() -> None:
    """A cleaned inode counts like a page: two inodes with 3 pages use up a budget of eight.

    The third inode is left on b_io.
    """
    loop = Loop()
    loop.dirty(("a", 0, 3), ("b", 0, 3), ("c", 0, 3))
    loop.perform(Work("start", 8))
    assert loop.left() == ([], ["c"], [])
    assert loop.budgets == [8, 4]


def test_pass_with_nr_to_write_may_exceed_the_requested_pages() -> None:
    """To 2.6.39 a pass may write nr_to_write pages (five here), although the work asks for four.

    The pass writes three pages of the first inode and two of the second.
    """
    loop = Loop(nr_to_write=5, used_up="more_io", slice_time=1)
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    loop.perform(Work("start", 4))
    assert loop.budgets == [5, 2]


def test_all_inodes_of_a_pass_share_nr_to_write_pages() -> None:
    """To 2.6.39 all inodes of a pass share nr_to_write pages (five here); cleaned inodes do not count.

    * pass 1: 3 pages of a, and 2 of 3 pages of b, which goes to b_more_io
    * pass 2: 3 pages of c, and the last page of b

    Pass 2 leaves a part of the quota, so it is the last one.
    """
    loop = Loop(nr_to_write=5, used_up="more_io", slice_time=1)
    loop.dirty(("a", 0, 3), ("b", 0, 3), ("c", 0, 3))
    loop.perform(Work("background"))
    assert loop.budgets == [5, 2, 5, 2]
    assert [name for _, name in loop.log] == ["a", "b", "c", "b", "over"]
    assert len(loop.slices) == 2


def test_partly_written_inode_is_redirtied_at_the_tail() -> None:
    """An inode with unwritten pages counts as dirtied again and moves to the tail of b_dirty.

    The filesystem writes 2 of its 3 pages.
    """
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


def test_work_for_one_superblock_redirties_inodes_of_others() -> None:
    """Work for one superblock redirties inodes of others at the tail of b_dirty."""
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
def test_plug_opens_around_mapping_slice_or_work(scope: str, names: list[str]) -> None:
    """A plug opens around a mapping, a slice (the second slice finds no inode) or the work."""
    loop = Loop(plug_scope=scope)
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    assert [name for _, name in loop.perform(Work("sync"))] == names


def test_waiter_of_a_work_wakes_after_the_last_plug() -> None:
    """The waiter of a work wakes after the plug of the work is finished."""
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


def test_writer_writes_back_inodes_of_the_lists_of_the_flusher() -> None:
    """writeback_inodes_wbc: a writer writes up to four pages and returns the pages off its budget."""
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


def test_pages_beyond_the_budget_are_charged_to_the_budget() -> None:
    """A filesystem that writes seven pages with a budget of four takes seven pages off the budget."""
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
def test_periodic_pass_refills_b_io_only_if_it_is_empty(reason: Any, waits: bool, names: list[str]) -> None:
    """generic_sync_sb_inodes: kupdate adds expired inodes to an empty b_io; other work adds all inodes."""
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


def test_each_visit_emits_writeback_single_inode() -> None:
    """The signal writeback_single_inode reports each visited inode and its written pages."""
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
def test_periodic_work_empties_b_io_before_it_calls_queue_io(reason: Any, budgets: list[int]) -> None:
    """Periodic work with a quota empties b_io before it calls queue_io again; other work does not.

    Inodes have three pages and the quota is four.  Late expires during the first pass.

    periodic work:

    * pass 1: 3 pages of a and 1 of b, which goes to b_more_io; c is left on b_io
    * pass 2: 3 pages of c alone
    * pass 3: queue_io adds b and late: 2 pages of b and 2 of late

    background work, which takes late at once:

    * pass 1: 3 pages of a and 1 of b
    * pass 2: 3 pages of c and 1 of late
    * pass 3: 2 pages of b and 2 of late
    """
    loop = Loop(nr_to_write=4, used_up="more_io", expire=1_000)
    loop.dirty(("a", 0, 3), ("b", 0, 3), ("c", 0, 3), ("late", 60, 3))
    loop.perform(Work(reason), 1_050)
    assert loop.budgets[: len(budgets)] == budgets


@pytest.mark.parametrize(("pages", "slices"), [(3, 1), (4, 2)])
def test_pass_that_uses_up_its_quota_is_followed_by_another(pages: int, slices: int) -> None:
    """A pass that uses up its quota of four pages is followed by another, because more may be dirty."""
    loop = Loop(nr_to_write=4)
    loop.dirty(("a", 0, pages))
    loop.perform(Work("start", 100), 50)
    assert len(loop.slices) == slices


@pytest.mark.parametrize(
    ("reason", "leaves", "names"),
    [("background", True, ["a"]), ("periodic", True, ["a"]), ("background", False, ["a", "b"]),
     ("periodic", False, ["a", "b"]), ("start", True, ["a", "b"]), ("sync", True, ["a", "b"])],
)  # fmt: skip
def test_background_and_periodic_work_end_early_for_other_work(reason: Any, leaves: bool, names: Any) -> None:
    """A sync is queued during the first of two slices; to 2.6.37 it waits for both slices."""
    loop = Loop(slice_time=1, leaves=leaves)
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    loop.env.call_at(1_060, 0, lambda: loop.wb.work_list.append(Work("sync")))
    assert [name for _, name in loop.perform(Work(reason), 1_000)] == [*names, "over"]


def test_background_work_does_nothing_if_other_work_is_queued() -> None:
    """Background work does not take the list lock while other work is queued."""
    loop = Loop()
    loop.dirty(("a", 0, 3))
    loop.wb.work_list.append(Work("sync"))
    assert loop.perform(Work("background")) == [(0, "over")]
    assert loop.wb.lock.stat.acquisitions == 0


@pytest.mark.parametrize(("takes", "names"), [("at_start", ["a"]), ("at_pass", ["a", "late"])])
@pytest.mark.parametrize("reason", ["start", "sync"])
def test_explicit_work_takes_inodes_dirty_at_start_or_at_pass(
    reason: Any, takes: str, names: list[str]
) -> None:
    """An inode that is dirtied during the first pass is taken if work takes inodes at each pass."""
    loop = Loop(explicit_takes=takes)
    loop.dirty(("a", 0, 3))
    loop.env.call_at(60, 0, lambda: loop.dirty(("late", 60, 3)))
    assert [name for _, name in loop.perform(Work(reason), 50)] == [*names, "over"]


@pytest.mark.parametrize(("reason", "end_ns"), [("sync", 26 + 2 * 1_108), ("start", 26 + 2 * 108)])
def test_flusher_waits_for_the_io_of_each_synced_inode(reason: Any, end_ns: int) -> None:
    """To 3.10 a sync flushes its plug and waits for the I/O of each inode; other work does not wait."""
    loop = Loop(waits_for_io=True)
    loop.dirty(("a", 0, 3), ("b", 0, 3))
    log = loop.perform(Work(reason))
    assert log[-1] == (end_ns + 6, "over")  # a second pass finds nothing
    assert ("before sleep" in [name for _, name in log]) == (reason == "sync")


@pytest.mark.parametrize(
    ("own", "log"), [(True, [(6, "before sleep"), (5_016, "a"), (5_130, "over")]), (False, [(6, "over")])]
)
def test_sync_waits_for_writeback_of_an_inode_by_another_thread(own: bool, log: Any) -> None:
    """A sync waits for the writeback of an inode by another thread, if the inode is of its superblock.

    The other thread ends at 5 000 and leaves the inode dirty, so the sync writes it.
    """
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
def test_sync_adds_a_pass_for_an_inode_given_back_dirty(reason: Any, names: list[str]) -> None:
    """A sync adds a pass if another thread, not for data integrity, gave back a dirty inode during its pass.

    Other work does not.
    """
    loop = Loop(nr_to_write=1_024, explicit_takes="at_pass")
    loop.dirty(("mine", 0, 3), ("a", 0, 3))
    inode: Any = loop.wb.b_dirty.pop()

    def gives_back() -> None:
        loop.writeback._requeue(loop.wb, inode, WritebackControl("background"), 0, Slice())

    loop.env.call_at(50, 0, gives_back)
    assert [name for _, name in loop.perform(Work(reason, nr_pages=10**6))] == ["mine", *names, "over"]
    assert loop.wb.given_back == 1


def test_inode_left_dirty_by_sync_is_not_given_back() -> None:
    """An inode that a sync leaves dirty does not count as given back, or the sync might never end."""
    loop = Loop(explicit_takes="at_pass")
    loop.writes_at_most = 2
    loop.dirty(("a", 0, 3))
    assert [name for _, name in loop.perform(Work("sync"))] == ["a", "a", "over"]
    assert loop.wb.given_back == 0


@pytest.mark.parametrize("nr_to_write", [None, 1_024])
def test_work_ends_while_another_superblock_has_more_io(nr_to_write: int | None) -> None:
    """Inodes of another superblock stay on b_more_io and keep their age, if lists are separate."""
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
    """A work calls queue_io although b_io holds an inode of another superblock, if lists are separate."""
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
def test_work_continues_after_foreign_inodes_left_on_b_io(nr_to_write: int | None) -> None:
    """A work redirties an inode that another work left on b_io and then takes inodes from b_dirty.

    An era without nr_to_write calls queue_io for the first time then.
    """
    loop = Loop(nr_to_write=nr_to_write)
    mine: Any = Sb(loop)
    loop.dirty(("other", 0, 3))
    loop.wb.queue_io(0)
    loop.dirty(("mine", 0, 3), sb=mine)
    assert [name for _, name in loop.perform(Work("sync", sb=mine))] == ["mine", "over"]
    assert loop.left() == (["other"], [], [])


@pytest.mark.parametrize(("reason", "at_most", "flushed"), [("start", 9, (2, 8)), ("sync", 3, (1, 6))])
def test_cleaned_inodes_and_written_pages_are_counted(
    reason: Any, at_most: int, flushed: tuple[int, int]
) -> None:
    """Written pages and cleaned inodes are counted.

    Inodes have 3 and 5 pages; if a visit can write 3 pages, only the first inode is left clean.
    """
    loop = Loop(avg_write=4_096)
    loop.writes_at_most = at_most
    loop.dirty(("a", 0, 3), ("b", 0, 5))
    loop.perform(Work(reason))
    assert (loop.wb.flushed_inodes, loop.wb.flushed_pages) == flushed


def test_flushed_pages_exclude_pages_sent_by_another_thread() -> None:
    """Seven pages that an fsync(2) sent before the flusher wrote three do not count as flushed."""
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
def test_inode_with_used_up_chunk_is_requeued_or_redirtied(
    left: int, used_up: str, reason: Any, more: bool
) -> None:
    """requeue_inode: an inode whose chunk is used up goes to b_more_io or to the tail, by era and reason.

    The inode has five pages, and a chunk three.
    """
    loop, seen = Loop(nr_to_write=3, used_up=used_up, expire=0), list[Any]()
    loop.writes_at_most = 3 - left
    loop.dirty(("a", 0, 5))
    loop.env.call_at(117, 9, lambda: seen.append((loop.left(), loop.env.now)))
    loop.perform(Work(reason, 3))
    assert seen[0] == ((([], [], ["a"]) if more else (["a"], [], [])), 117)


@pytest.mark.parametrize(
    ("reason", "background"), [("background", True), ("periodic", True), ("start", False), ("sync", False)]
)
def test_background_and_periodic_work_mark_the_flusher_as_background(reason: Any, background: bool) -> None:
    """Background and periodic work set ``Thread.background``; writeback throttling has a lower limit then."""
    loop = Loop()
    loop.perform(Work(reason, 1))
    assert loop.thread.background == background
