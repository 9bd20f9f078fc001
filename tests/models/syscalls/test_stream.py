"""A stream of write(2)s: which calls are one event, where an event ends, and what a call costs."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

from wbsim.models.syscalls.latency import Latencies, Latency, bin_of, middle_of
from wbsim.models.syscalls.stream import Calls, Stream
from wbsim.models.workloads.file_writers import sequential
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.entry import FAR_NS
from wbsim.sim.units import PAGE_BYTES


class Stage:
    """A process that writes to *files* files; a call takes 2 ns and 10 ns for each page.

    The factor of a unit is its number, from 1 on.  ``log`` has each event: its begin, its end, the file, the
    pages, and whether the calls were joined.
    """

    def __init__(
        self, calls: Calls, *, files: int = 1, most: int = 1_000, length: int = 600, until_ns: int = FAR_NS
    ) -> None:
        self.env = Environment()
        self.log: list[tuple[int, int, int, list[int], bool]] = []
        self.locked, self.spare = -1, 1_000
        self.draws, self.factor, self.call_ns, self.balances = 0, 1.0, 2, 0
        self.clean = True  # whether the inodes have no dirty pages
        self.waiters = False
        self.task = SimpleNamespace(scheduler=self, owed_ns=0)
        self.latencies = Latencies()
        self.call_began_ns = 0
        self.thread = SimpleNamespace(task=self.task, before_sleep=self.before_sleep)
        sb = SimpleNamespace(filesystem=self)
        self.inodes: list[Any] = [
            SimpleNamespace(number=number, dirty_pages=0, wb=None, sb=sb, stops_at=-1, size=0)
            for number in range(files)
        ]
        process: Any = self
        self.stream = Stream(
            self.env, process, self.inodes, [sequential() for _ in range(files)], calls, length, most,
            until_ns=until_ns,
        )  # fmt: skip
        self.synced: list[tuple[int, int, bool]] = []
        self.began_ns = 0
        self.joint: list[tuple[int, list[int]]] = []
        self.searched: list[tuple[int, float]] = []
        self.i_rwsem: Any = None
        self.holds = 0
        self.on_balance: Callable[[], object] = lambda: None

    @property
    def contended(self) -> bool:
        """Return whether another task waits for the processor."""
        return self.waiters

    def before_sleep(self) -> None:
        """Stand for sched_submit_work."""

    def write_ns(self, pages: int, sb: Any) -> int:
        """Return the time of a call."""
        return 2 + 10 * pages

    def search_ns(self, pages: int, extents: float, sb: Any) -> float:
        """Return what a call at a random place takes longer: the extents, rounded, in steps of 1 000 ns."""
        self.searched.append((pages, extents))
        return 1_000.0 * round(extents)

    def vary(self) -> float:
        """Draw the next factor."""
        self.draws += 1
        self.factor = float(self.draws)
        return self.factor

    def room(self, wb: Any) -> int:
        """Return the pages that may be dirtied."""
        return self.spare

    def due(self, wb: Any) -> bool:
        """Return whether the throttle is due."""
        return self.spare <= 0

    def balance(self, wb: Any) -> Steps:
        """Stand for the throttle, which takes 500 ns."""
        self.balances += 1
        self.spare = 1_000
        self.on_balance()
        yield 500

    def i_rwsem_of(self, inode: Any) -> Any:
        """Return the lock of a file that another process has open, too."""
        return self.i_rwsem

    def own_for(self, task: Any, call: Steps, before_sleep: Any) -> Steps:
        """Stand for the lock of a shared file, which takes 40 ns to take."""
        assert (task, before_sleep) == (self.task, self.before_sleep)
        yield 40
        began_ns = self.env.now
        yield from call
        self.holds += self.env.now - began_ns

    def size_of(self, inode: Any) -> int:
        """Return the size of a file."""
        size: int = inode.size
        return size

    def write_sync(self, inode: Any, datasync: bool) -> Steps:
        """Stand for what O_SYNC or O_DSYNC adds, which takes 30 ns."""
        yield 30
        self.synced.append((self.env.now, inode.number, datasync))

    def began(self, ago_ns: int) -> None:
        """Begin a call."""
        self.call_began_ns = self.env.now - ago_ns

    def leaves_out(self, ns: int) -> None:
        """Leave the program's own time out of the call."""
        self.call_began_ns += ns

    def end_call(self, latency: Latency) -> None:
        """End a call."""
        latency.add(self.env.now - self.call_began_ns, 0, "")

    def took(self) -> dict[int, int]:
        """Return the number of calls by their latency; up to 127 ns, each ns is a bin."""
        return self.latencies.write.bins()

    def returns(self) -> None:
        """Return at once to the program."""

    def runs(self, user_ns: int, system_ns: int, write_ns: int = 0) -> Steps:
        """Take the time of one or more calls."""
        self.began_ns = self.env.now
        yield user_ns + system_ns + write_ns
        for number, pages in self.joint:
            self.log.append((self.began_ns, self.env.now, number, pages, True))
        self.joint.clear()

    def writes_at_once(self, inode: Any, pages: Any) -> int:
        """Return the pages up to the one for which work is due; none if the lock is taken."""
        if self.locked == inode.number:
            return 0
        return [*pages.tolist(), inode.stops_at].index(inode.stops_at)

    def write_lock(self, thread: Any, inode: Any, pages: Any, calls: int) -> None:
        """Take the free lock."""

    def write(self, inode: Any, pages: Any, call_pages: int) -> tuple[int, int]:
        """Stand for the filesystem: dirty *pages* of joined calls."""
        assert self.writes_at_once(inode, pages) == len(pages)
        self.joint.append((inode.number, pages.tolist()))
        return len(pages), len(pages)

    def account(self, wb: Any, pages: int) -> None:
        """Count pages that become dirty."""
        self.spare -= pages

    def mark_dirty(self, inode: Any, pages: int, then_ns: int) -> int:
        """Put the pages on the account of the inode."""
        inode.dirty_pages += pages
        return then_ns

    def put(self, inode: Any, pages: Any, call_pages: int, calls: int = 1) -> int:
        """Stand for the end of one call: its pages are dirty."""
        self.account(None, len(pages))
        self.mark_dirty(inode, len(pages), 0)
        inode.size = max(inode.size, int(pages[-1]) + 1)
        if inode.stops_at in pages.tolist():
            inode.stops_at = -1
        self.log.append((self.began_ns, self.env.now, inode.number, pages.tolist(), False))
        return 0

    def run(self, pages: int) -> list[tuple[int, int, int, list[int], bool]]:
        """Write *pages* pages, and return the events."""

        def body() -> Steps:
            while (done := self.stream.done) < pages:
                yield from self.stream.write(pages - done)

        self.env.start(self.env.task("writer"), body())
        self.env.run()
        assert self.stream.done == pages
        return self.log


def test_calls_are_joined_up_to_the_next_event() -> None:
    """A call takes 12 ns, and another task has an event at 100 ns: it sees seven calls that are over.

    The eighth is an event alone, from 96 to 108.
    """
    stage = Stage(Calls())
    stage.env.call_at(100, 0, lambda: None)
    assert [(begin, end, len(pages), joint) for begin, end, _, pages, joint in stage.run(20)] == [
        (0, 12, 1, False), (12, 96, 7, True), (96, 108, 1, False), (108, 240, 11, True),
    ]  # fmt: skip


def test_joined_calls_end_before_the_next_event() -> None:
    """The fourth call would end at 48 ns, the instant of an event; the order of the two would be lost."""
    stage = Stage(Calls())
    stage.env.call_at(48, 0, lambda: None)
    assert [end for _, end, *_ in stage.run(10)][:3] == [12, 36, 48]


def test_calls_that_might_wait_are_separate_events() -> None:
    """The lock is taken, or another task waits for the processor."""
    for name, value in (("locked", 0), ("waiters", True)):
        stage = Stage(Calls())
        setattr(stage, name, value)
        assert [(end, joint) for _, end, _, _, joint in stage.run(6)] == [
            (12 * call, False) for call in range(1, 7)
        ]


def test_calls_to_several_files_are_joined_in_turn() -> None:
    """Three files: the first call to each is an event, and the next seven calls are one event.

    The second file gets the eleventh call, because it is its turn.
    """
    stage = Stage(Calls(), files=3)
    stage.env.call_at(125, 0, lambda: None)
    assert [(end, number, pages, joint) for _, end, number, pages, joint in stage.run(11)] == [
        (12, 0, [0], False), (24, 1, [0], False), (36, 2, [0], False),
        (120, 0, [1, 2, 3], True), (120, 1, [1, 2], True), (120, 2, [1, 2], True), (132, 1, [3], False),
    ]  # fmt: skip


class StandIn:
    """A ring that hands the page *refused* over, and whose tick lasts for *left_ns*; handing over takes 5 ns.

    A file of *busy* may not be joined.
    """

    def __init__(self, stage: Stage, left_ns: int, passed_on: int = -1) -> None:
        self.stage = stage
        self.left_ns = left_ns
        self.passed_on = passed_on
        self.busy = False
        self.handed: list[tuple[int, int, int]] = []

    def takes(self, inode: Any, pages: Any) -> bool:
        """Return whether the call is done at once."""
        return self.passed_on not in pages.tolist()

    def is_free(self, inode: Any) -> bool:
        """Return whether calls to the file may be joined."""
        return not self.busy

    def wait_for_place(self) -> Steps:
        """Do not wait, because there is a place."""
        yield from ()

    def tick_left_ns(self) -> int:
        """Return the rest of the tick."""
        return self.left_ns

    def lock(self, inode: Any, pages: Any) -> None:
        """Take the lock."""

    def hand_over(self, inode: Any, pages: Any, write_ns: int, began_ns: int) -> int:
        """Note the page, the time of the call, and when it began."""
        self.handed.append((int(pages[0]), write_ns, began_ns))
        return 5


def with_ring(left_ns: int, passed_on: int = -1) -> tuple[Stage, StandIn]:
    """Return a stage whose stream has a ring."""
    stage = Stage(Calls())
    process: Any = stage
    process.punt_ns = 4
    process.put_locked = lambda inode, pages, call_pages: stage.put(inode, pages, call_pages, 1)
    ring: Any = StandIn(stage, left_ns, passed_on)
    stage.stream = Stream(stage.env, process, stage.inodes, [sequential()], Calls(), 600, 1_000, ring)
    return stage, ring


def test_joined_calls_of_a_ring_end_within_the_tick() -> None:
    """The tick lasts for 37 ns from each event on, so three calls of 12 ns are over before it ends."""
    stage, _ = with_ring(37)
    assert [(end, joint) for _, end, _, _, joint in stage.run(7)] == [(12, False), (48, True), (84, True)]
    stage, ring = with_ring(1_000)
    ring.busy = True
    assert not any(joint for *_, joint in stage.run(7))


def test_a_stream_goes_on_behind_a_handed_over_call() -> None:
    """Page 1 is handed over: 4 ns from 12 on, and 5 ns for the wake-up; page 2 follows at 21."""
    stage, ring = with_ring(1_000, passed_on=1)
    stage.spare = 1
    events = stage.run(3)
    assert [(begin, end, pages) for begin, end, _, pages, _ in events] == [(0, 12, [0]), (21, 33, [2])]
    assert ring.handed == [(1, 12, 12)]
    assert not stage.balances, "the ring asks the throttle before a call"


def test_joined_calls_end_in_front_of_a_file_that_waits() -> None:
    """The second of three files is locked, has work in front of page 2, or belongs to another context."""
    stage = Stage(Calls(), files=3)
    stage.run(3)
    stage.locked = 1
    assert [(number, pages) for _, _, number, pages, _ in stage.run(6)[3:]] == [(0, [1]), (1, [1]), (2, [1])]
    stage = Stage(Calls(), files=3)
    stage.inodes[1].stops_at = 2
    assert [(number, pages, joint) for _, _, number, pages, joint in stage.run(10)[3:]] == [
        (0, [1, 2], True), (1, [1], True), (2, [1], True), (1, [2], False), (2, [2], True), (0, [3], True),
    ]  # fmt: skip
    stage = Stage(Calls(), files=3)
    stage.inodes[1].wb = "another"
    assert [number for _, _, number, _, _ in stage.run(9)] == [0, 1, 2, 0, 1, 2, 0, 1, 2]
    assert [end for _, end, *_ in stage.log] == [12, 24, 36, 48, 60, 84, 84, 96, 108]


def test_factor_belongs_to_256_pages_from_the_first_call_on() -> None:
    """The first 256 pages take 12 ns each, the next 256 take 24, and the last 88 take 36."""
    for most in (1, 7, 1_000):
        stage = Stage(Calls(), most=most)
        events = stage.run(600)
        assert events[-1][1] == 256 * 12 + 256 * 24 + 88 * 36
        assert stage.draws == 3
        assert max(len(pages) for _, _, _, pages, _ in events) == min(most, 256)


def test_an_event_ends_where_the_throttle_is_due() -> None:
    """Ten pages may be dirty: the first call, nine that are joined, and the throttle for 500 ns."""
    stage = Stage(Calls())
    stage.spare = 10
    assert [(begin, end, len(pages)) for begin, end, _, pages, _ in stage.run(12)] == [
        (0, 12, 1), (12, 120, 9), (620, 644, 2),
    ]  # fmt: skip
    assert stage.balances == 1


def test_calls_of_several_pages_are_joined_as_a_whole() -> None:
    """A call of four pages takes 42 ns.  Room for 14 pages ends a call after its second page."""
    stage = Stage(Calls(4))
    stage.spare = 14
    assert [(end, pages) for _, end, _, pages, _ in stage.run(20)] == [
        (42, [0, 1, 2, 3]), (126, list(range(4, 12))), (147, [12, 13]), (668, [14, 15]),
        (710, [16, 17, 18, 19]),
    ]  # fmt: skip


def test_joined_calls_end_in_front_of_work_of_the_filesystem() -> None:
    """The filesystem has work in front of page 5, so its call is an event, which does the work itself."""
    stage = Stage(Calls())
    stage.inodes[0].stops_at = 5
    assert [(end, pages, joint) for _, end, _, pages, joint in stage.run(8)] == [
        (12, [0], False), (60, [1, 2, 3, 4], True), (72, [5], False), (96, [6, 7], True),
    ]  # fmt: skip


def test_a_call_at_a_random_place_searches() -> None:
    """The file has 1 024 pages, so after 0, 256, 512 and 768 it has 0, 192, 256 and 192 extents."""
    for most in (1, 100, 1_000):
        stage = Stage(Calls(random=True), most=most, length=1_024)
        stage.spare = 2_000
        events = stage.run(1_024)
        assert stage.searched == [(1_024, 0.0), (1_024, 192.0), (1_024, 256.0), (1_024, 192.0)]
        of_units = (12, 2 * 192_012, 3 * 256_012, 4 * 192_012)
        assert events[-1][1] == 256 * sum(of_units)


def test_a_random_call_of_several_pages_searches_once() -> None:
    """A call of four pages of 512 searches; after 256 pages the file has 32 extents of 4 pages."""
    stage = Stage(Calls(4, random=True), length=512)
    events = stage.run(512)
    assert stage.searched == [(512, 0.0), (512, 32.0)]
    assert events[-1][1] == 64 * 42 + 64 * 2 * (42 + 32_000)


def test_files_and_parts_of_pages_share_the_random_places() -> None:
    """Two files of 512 pages, each in two parts: after 256 calls of 2 048, 64 pages of each are written."""
    stage = Stage(Calls(1, 2, random=True), files=2, length=1_024)
    stage.run(257)
    assert stage.searched == [(512, 0.0), (512, 64 * (1 - 128 / 1_024))]


def test_a_call_in_order_does_not_search() -> None:
    """Only calls at random places do."""
    stage = Stage(Calls())
    stage.run(600)
    assert not stage.searched


def test_time_that_a_task_owes_shortens_an_event() -> None:
    """The task owes 30 ns to its processor, so its calls end 30 ns later: four fit in front of 100 ns."""
    stage = Stage(Calls())
    stage.task.owed_ns = 30
    stage.env.call_at(100, 0, lambda: None)
    assert [len(pages) for _, _, _, pages, _ in stage.run(20)][:2] == [1, 4]
    assert np.concatenate([pages for _, _, _, pages, _ in stage.log]).tolist() == list(range(20))


def test_joined_calls_have_the_latency_of_single_calls() -> None:
    """Ten calls of 12 ns; the first also takes the 5 ns that the task owes to interrupts."""
    for most in (1, 2, 3, 1_000):
        stage = Stage(Calls(user_ns=100), most=most)
        stage.inodes[0].dirty_pages = 1  # so the first calls may be joined, too
        stage.task.owed_ns = 5
        stage.runs = pays_what_it_owes(stage)  # type: ignore[method-assign]
        stage.run(10)
        assert stage.took() == {17: 1, 12: 9}
        assert stage.latencies.write.total_ns == 17 + 9 * 12


def pays_what_it_owes(stage: Stage) -> Callable[[int, int, int], Steps]:
    """Return `Stage.runs` that also takes the time that the task owes, once."""
    runs = stage.runs

    def more(user_ns: int, system_ns: int, write_ns: int) -> Steps:
        owed_ns, stage.task.owed_ns = stage.task.owed_ns, 0
        return runs(user_ns + owed_ns, system_ns, write_ns)

    return more


def test_a_pause_of_the_throttle_belongs_to_the_call_before() -> None:
    """The tenth call of 12 ns is held for 500 ns, whether it is joined with others or not."""
    for most in (1, 4, 1_000):
        stage = Stage(Calls(), most=most)
        stage.spare = 10
        stage.run(12)
        assert (stage.latencies.write.count, stage.latencies.write.max_ns) == (12, 512)
        assert stage.latencies.write.total_ns == 12 * 12 + 500


def test_a_call_that_the_throttle_cuts_is_one_call() -> None:
    """The throttle is due after two of the four pages of a call.  Its 42 ns do not have the program's 40."""
    stage = Stage(Calls(4, user_ns=24, system_ns=16))
    stage.spare = 14
    stage.run(20)
    write = stage.latencies.write
    assert (write.count, write.min_ns, write.max_ns, write.total_ns) == (5, 42, 542, 5 * 42 + 500)


def until(until_ns: int, pages: int, calls: Calls, spare: int = 1_000) -> tuple[int, int]:
    """Return how many pages are written until *until_ns*, and when the last call ends."""
    stage = Stage(calls, until_ns=until_ns)
    stage.spare = spare
    stage.env.start(stage.env.task("writer"), stage.stream.write(pages))
    stage.env.run()
    return stage.stream.done, stage.env.now


@pytest.mark.parametrize(
    ("until_ns", "pages", "end_ns"),
    [(1, 1, 12), (12, 1, 12), (13, 2, 24), (96, 8, 96), (97, 9, 108), (100, 9, 108), (10_000, 20, 240)],
)
def test_no_call_begins_at_the_end_of_a_stream(until_ns: int, pages: int, end_ns: int) -> None:
    """A call of 12 ns that has begun goes on, whether it is joined with others or not."""
    assert until(until_ns, 20, Calls()) == (pages, end_ns)


def test_call_that_the_throttle_cuts_goes_on_behind_the_end() -> None:
    """The first call writes two of its four pages, waits for 500 ns, and writes the other two."""
    assert until(22, 20, Calls(4), spare=2) == (4, 542)


def test_sync_takes_a_turn_of_several_files() -> None:
    """After a call to each of files 0 and 1 it is the turn of file 2, and file 0 has the next call.

    The files are not equally far any more, so no calls are joined.
    """
    stage = Stage(Calls(), files=3, length=20)
    stage.run(2)
    assert stage.stream.pass_turn() is stage.inodes[2]
    assert [(number, pages, joint) for _, _, number, pages, joint in stage.run(7)[2:]] == [
        (0, [1], False), (1, [1], False), (2, [0], False), (0, [2], False), (1, [2], False),
    ]  # fmt: skip


def test_sync_of_the_only_file_leaves_its_calls_joined() -> None:
    """The stream goes on with the same file."""
    stage = Stage(Calls(), length=20)
    stage.run(2)
    assert stage.stream.pass_turn() is stage.inodes[0]
    assert [(pages, joint) for _, _, _, pages, joint in stage.run(20)[2:]] == [(list(range(2, 20)), True)]
    assert stage.stream.pass_turn() is stage.inodes[0]


def test_complete_file_is_passed_by_a_sync() -> None:
    """File 0 has its two pages; after a turn of each file for a sync, file 2 is complete before file 1."""
    stage = Stage(Calls(), files=3, length=2)
    stage.run(3)
    stage.run(4)
    assert stage.stream.pass_turn() is stage.inodes[1]
    stage.run(5)
    assert stage.stream.pass_turn() is stage.inodes[1]


def appending(a_page: int, calls: int) -> list[tuple[str, list[int]]]:
    """Return the pages of *calls* calls of each of two processes, which append to one file in turn."""
    stage = Stage(Calls(1, a_page, appends=True), length=calls)
    process: Any = stage
    other = Stream(
        stage.env, process, stage.inodes, [sequential()], Calls(1, a_page, appends=True), calls, 1_000
    )
    log: list[tuple[str, list[int]]] = []

    def body(name: str, stream: Stream) -> Steps:
        for done in range(1, calls + 1):
            while stream.done < done:
                yield from stream.write(1)
            log.append((name, stage.log[-1][3]))
            yield 1_000

    for name, stream, delay_ns in (("a", stage.stream, 0), ("b", other, 500)):
        stage.env.start(stage.env.task(name), body(name, stream), delay_ns)
    stage.env.run()
    assert not any(joint for *_, joint in stage.log)
    return log


def test_processes_that_append_alternate_behind_the_end() -> None:
    """Each call goes behind the end that its file has by then."""
    assert appending(1, 3) == [("a", [0]), ("b", [1]), ("a", [2]), ("b", [3]), ("a", [4]), ("b", [5])]


def test_appended_part_goes_to_the_last_page() -> None:
    """Two parts make a page: each second call of a process writes to the page at the end."""
    assert [pages for _, pages in appending(2, 4)] == [[0], [1], [1], [1], [2], [3], [3], [3]]


@pytest.mark.parametrize(("sync", "datasync"), [("O_SYNC", False), ("O_DSYNC", True)])
def test_synchronous_call_waits_within_its_latency(
    sync: Literal["O_SYNC", "O_DSYNC"], datasync: bool
) -> None:
    """Each call of 12 ns takes 30 ns more for its own file, and no calls are joined."""
    stage = Stage(Calls(user_ns=5, sync=sync), files=2)
    assert [(begin, end, joint) for begin, end, *_, joint in stage.run(3)] == [
        (0, 17, False), (47, 64, False), (94, 111, False),
    ]  # fmt: skip
    assert stage.synced == [(47, 0, datasync), (94, 1, datasync), (141, 0, datasync)]
    assert stage.took() == {42: 3}


def test_synchronous_call_of_several_pages_waits_once() -> None:
    """The throttle cuts the call of four pages after the second one; the sync follows the fourth."""
    stage = Stage(Calls(4, sync="O_SYNC"))
    stage.spare = 2
    stage.run(4)
    assert stage.synced == [(42 + 500 + 30, 0, False)]
    assert stage.latencies.write.max_ns == 572


@pytest.mark.parametrize(
    ("calls", "count", "steps"),
    [
        (Calls(), 1, 1), (Calls(), PAGE_BYTES, 1), (Calls(), PAGE_BYTES + 1, 2),
        (Calls(), 99 * PAGE_BYTES, 12), (Calls(2), 1, 2), (Calls(2), 2 * PAGE_BYTES + 1, 4),
        (Calls(1, 4), 1, 1), (Calls(1, 4), PAGE_BYTES, 4),
    ],
)  # fmt: skip
def test_steps_for_bytes_are_those_of_whole_calls(calls: Calls, count: int, steps: int) -> None:
    """A file has 12 pages, or parts of pages."""
    stage = Stage(calls, length=12)
    assert stage.stream.steps_for(count) == steps
    assert stage.stream.total_bytes == 12 * PAGE_BYTES // calls.a_page


@pytest.mark.parametrize(("spare", "ns", "balances"), [(1_000, 22, 0), (1, 522, 1)])
def test_call_to_a_shared_file_waits_for_its_lock(spare: int, ns: int, balances: int) -> None:
    """The program's own 5 ns and 3 ns come first; the wait is a part of the call, and so is the throttle.

    A call of two pages takes 22 ns.  With room for one page, the throttle's 500 ns are between the pages.
    """
    stage = Stage(Calls(pages=2, user_ns=5, system_ns=3))
    stage.i_rwsem, stage.spare = stage, spare
    stage.run(2)
    assert (stage.env.now, stage.took()) == (8 + 40 + ns, {middle_of(int(bin_of(40 + ns))): 1})
    assert (stage.holds, stage.balances) == (ns, balances)


def test_calls_to_a_shared_file_are_not_joined() -> None:
    """Each waits for the lock, and each has the program's time before it."""
    stage = Stage(Calls(user_ns=5))
    stage.i_rwsem = stage
    assert [(event[1], event[-1]) for event in stage.run(3)] == [(57, False), (114, False), (171, False)]
    assert stage.took() == {52: 3}


def test_call_that_runs_at_the_second_open_owns_no_lock() -> None:
    """Another process opens the file while the throttle lets the call sleep; only the next call waits."""
    stage = Stage(Calls(pages=2))
    stage.spare = 1
    stage.on_balance = lambda: setattr(stage, "i_rwsem", stage)
    assert [pages for _, _, _, pages, _ in stage.run(4)] == [[0], [1], [2, 3]]
    assert stage.holds == 22
