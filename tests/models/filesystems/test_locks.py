"""The locks of groups and inodes: their laws, asked of events, compiled steps and workers at once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness import BlockLayer, lock_table
from wbsim.models.filesystems.lock_table import (
    FAR,
    HANDOFF_NS,
    UNTIL,
    WAIT_MAX,
    advance,
    give_inode,
    hold,
    is_free,
    take_inode,
)
from wbsim.models.filesystems.locks import LockTable
from wbsim.models.scheduler.cpu import sleep
from wbsim.models.seams import Thread
from wbsim.sim.engine import Steps

Stretch = tuple[int, int]


class World:
    """Two groups and two inodes, each inode with a worker of its own; who had which lock when."""

    def __init__(self, wake_ns: int) -> None:
        layer = BlockLayer(wake_ns=wake_ns)
        self.env = layer.env
        self._thread = layer.site.thread
        self.table = LockTable(layer.site, 2, 2, "AGF", "ILOCK")
        self.table.share()
        self.inodes = [self.table.inode_lock() for _ in range(2)]
        self.groups: list[list[Stretch]] = [[], []]
        self.files: list[list[Stretch]] = [[], []]
        self.started = self.ended = 0

    def start(self, at_ns: int, body: Any) -> None:
        """Begin *body* with a thread of its own."""
        thread = self._thread(f"thread {self.started}")
        self.started += 1

        def run() -> Steps:
            yield from body(thread)
            self.ended += 1

        self.env.start(thread.task, run(), at_ns)

    def event(self, group: int, hold_ns: int, longer_ns: int) -> Any:
        """A thread that has a group's lock for so long; *longer_ns* more than it said, if it has no end."""
        lock = self.table.groups[group]

        def body(thread: Thread) -> Steps:
            if not lock.try_down(thread.task, hold_ns):
                yield from lock.down(thread, hold_ns)
            from_ns = self.env.now
            length = hold_ns + (longer_ns if lock._owner is thread.task else 0)
            yield length
            self.groups[group].append((from_ns, self.env.now))
            lock.up(thread.task)

        return body

    def flusher(self, inode: int, group: int, steps: list[tuple[int, int]], wait: bool) -> Any:
        """A flusher that allocates ahead of the clock: so long after the last, for so long.

        Where a lock's end is not known, or if it is to *wait*, it waits for its locks as an event, and lends
        them to a step.
        """
        lock, agf = self.inodes[inode], self.table.groups[group]

        def body(thread: Thread) -> Steps:
            for gap_ns, hold_ns in steps:
                yield gap_ns
                locks, now = self.table.locks, self.env.now
                from_ns = FAR if wait else int(take_inode(locks, 0 + inode, now))
                if from_ns < FAR:
                    advance(locks, group, from_ns)
                    if is_free(locks, group, from_ns):
                        ends_ns = int(hold(locks, group, from_ns, hold_ns))
                        give_inode(locks, inode, now, from_ns, ends_ns)
                        self.groups[group].append((ends_ns - hold_ns, ends_ns))
                        self.files[inode].append((from_ns, ends_ns))
                        yield from sleep(thread.task, ends_ns - now, "a step")
                        continue
                    give_inode(locks, inode, now, from_ns, from_ns)
                ends_ns = 0
                while not ends_ns:
                    yield from lock.down(thread)
                    if not agf.try_down(thread.task, 0):
                        yield from agf.down(thread, 0)
                    lock.lend()
                    agf.lend(thread.task)
                    now = self.env.now
                    assert take_inode(self.table.locks, inode, now) == now
                    if self.table.locks.groups[group, UNTIL] < FAR:  # it is no other event's
                        ends_ns = int(hold(self.table.locks, group, now, hold_ns))
                    give_inode(self.table.locks, inode, now, now, ends_ns or now)
                    lock.hand_on()
                    agf.hand_on()
                self.groups[group].append((ends_ns - hold_ns, ends_ns))
                self.files[inode].append((now, ends_ns))
                yield from sleep(thread.task, ends_ns - now, "a step")

        return body

    def worker(self, inode: int, group: int, ranges: list[tuple[int, int]]) -> Any:
        """The worker of an inode: transactions of so long alone, and then so long with both locks."""
        lock = self.inodes[inode]

        def body(thread: Thread) -> Steps:
            for alone_ns, both_ns in ranges:
                lock.begin(inode, group, 1, alone_ns, both_ns)
                yield from lock.finish(thread, inode)
                now = self.env.now
                self.files[inode].append((now - both_ns - alone_ns, now))  # at least
                if both_ns:
                    self.groups[group].append((now - both_ns, now))

        return body


NS = st.integers(1, 60)
EVENTS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 1), NS, st.integers(0, 20)), max_size=6)
STEPS = st.lists(st.tuples(st.integers(0, 40), NS), max_size=8)
FLUSHER = st.tuples(st.integers(0, 1), STEPS, st.booleans())
RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)
WORKER = st.tuples(st.integers(0, 100), st.integers(0, 1), RANGES)


@settings(max_examples=500)
@given(st.integers(0, 9), EVENTS, st.tuples(FLUSHER, FLUSHER), st.tuples(WORKER, WORKER))
def test_nobody_has_a_lock_with_another_and_everybody_gets_it(
    wake_ns: int, events: Any, flushers: Any, workers: Any
) -> None:
    """Exclusion, and no lost wake-up; at the end all is free.

    A hold that lasts longer than was said overlaps with nobody's, either, if it began without end.
    """
    world = World(wake_ns)
    for at_ns, group, hold_ns, longer_ns in events:
        world.start(at_ns, world.event(group, hold_ns, longer_ns))
    for inode, (group, steps, wait) in enumerate(flushers):
        world.start(0, world.flusher(inode, group, steps, wait))
    for inode, (at_ns, group, ranges) in enumerate(workers):
        world.start(at_ns, world.worker(inode, group, ranges))
    world.env.run()
    assert world.ended == world.started
    for stretches in (*world.groups, *world.files):
        stretches = sorted(stretch for stretch in stretches if stretch[1] > stretch[0])
        assert all(before[1] <= after[0] for before, after in pairwise(stretches)), stretches
    now = world.env.now
    assert world.table.at_work == 0
    assert all(lock.is_free() for lock in world.table.groups)
    assert all(until <= now for until in world.table.locks.inodes[:2, UNTIL].tolist())


@given(st.integers(1, 9), st.lists(st.tuples(st.integers(0, 200), NS), min_size=1, max_size=9))
def test_events_get_a_group_s_lock_in_the_order_of_asking(wake_ns: int, asks: list[Stretch]) -> None:
    """And each of them as soon as it can: at once, or awake when the one before has given it up."""
    world, got = World(wake_ns), list[tuple[int, int]]()
    for at_ns, hold_ns in asks:

        def body(thread: Thread, hold_ns: int = hold_ns) -> Steps:
            lock, asked_ns = world.table.groups[0], world.env.now
            if not lock.try_down(thread.task, hold_ns):
                yield from lock.down(thread, hold_ns)
            got.append((asked_ns, world.env.now))
            yield hold_ns
            lock.up(thread.task)
            world.groups[0].append((got[-1][1], world.env.now))

        world.start(at_ns, body)
    world.env.run()
    assert [asked for asked, _ in got] == sorted(at_ns for at_ns, _ in asks)
    ended_ns = -1
    for (asked_ns, got_ns), (_, until_ns) in zip(got, world.groups[0], strict=True):
        at_once = got_ns == asked_ns >= ended_ns
        assert at_once or got_ns == ended_ns + wake_ns >= asked_ns
        ended_ns = until_ns
    stat = world.table._group_stats()[0]
    waited = sum(got_ns > asked_ns for asked_ns, got_ns in got)
    assert (stat.acquisitions, stat.contentions) == (len(asks), waited)
    assert stat.hold_ns == sum(hold_ns for _, hold_ns in asks) + waited * wake_ns


def test_one_that_sleeps_for_an_inode_is_overtaken_for_four_milliseconds_at_most() -> None:
    """A thread gives the lock up every millisecond and takes it again at once; two others wait for it, and a
    worker, which sleeps while the lock is promised to one of them.
    """
    world, got = World(5), list[int]()
    lock = world.inodes[0]

    def greedy(thread: Thread) -> Steps:
        for _ in range(20):
            yield from lock.down(thread)
            yield 1_000_000
            world.files[0].append((world.env.now - 1_000_000, world.env.now))
            lock.up()

    def patient(thread: Thread) -> Steps:
        asked_ns = world.env.now
        yield from lock.down(thread)
        got.append(world.env.now - asked_ns)
        yield 10
        world.files[0].append((world.env.now - 10, world.env.now))
        lock.up()

    world.start(0, greedy)
    world.start(100, patient)
    world.start(200, patient)
    world.start(300, world.worker(0, 0, [(3, 0)] * 4))
    world.env.run()
    assert world.ended == 4
    assert all(before[1] <= after[0] for before, after in pairwise(sorted(world.files[0])))
    assert all(HANDOFF_NS <= waited < HANDOFF_NS + 2_100_000 for waited in got)
    assert world.table.locks.inodes[0, WAIT_MAX] >= max(got) - 5


def test_a_flusher_that_has_waited_lends_its_locks_to_its_next_step() -> None:
    """It has both from 0; at 100 a step books both until 150, before a thread that waited for the group since
    20, which wakes 5 after that; the worker that began at 30 comes after it.
    """
    world = World(5)
    lock, agf = world.inodes[0], world.table.groups[0]

    def flusher(thread: Thread) -> Steps:
        yield from lock.down(thread)
        assert agf.try_down(thread.task, 50)
        yield 100
        lock.lend()
        agf.lend(thread.task)
        locks = world.table.locks
        assert take_inode(locks, 0, 100) == 100
        assert hold(locks, 0, 100, 50) == 150
        give_inode(locks, 0, 100, 100, 150)
        lock.hand_on()
        agf.hand_on()
        assert not agf.is_free()

    world.start(0, flusher)
    world.start(20, world.event(0, 10, 3))
    world.start(30, world.worker(0, 0, [(20, 10)]))
    world.env.run()
    assert world.ended == 3
    assert world.groups[0] == [(155, 165), (150 + 5 + 20, 150 + 5 + 20 + 10)]


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=9), NS)
def test_a_writer_waits_as_its_calls_met_the_lock(holds: list[tuple[int, int]], calls: int) -> None:
    """As calls do that come at all instants alike: for the rest of a hold, and to wake up."""
    world, now = World(7), 0
    locks, lock = world.table.locks, world.inodes[0]
    waits = []
    for gap_ns, hold_ns in holds:
        give_inode(locks, 0, now + gap_ns, now + gap_ns, now + gap_ns + hold_ns)
        waits += [0] * gap_ns + [hold_ns - i - 0.5 + 7 for i in range(hold_ns)]
        now += gap_ns + hold_ns
    world.env.now = now
    expected = calls * sum(waits) / len(waits)
    assert abs(lock.wait_ns(calls) - expected) <= 1
    world.env.now += 50
    assert lock.wait_ns(calls) == 0, "nobody has had it since"


def test_what_an_event_has_before_the_first_step_is_told_to_it() -> None:
    """Of three groups one is an event's from 10 on; another was, and is free again."""
    table = lock_table(3)
    tasks = [table.env.task(name) for name in "ab"]
    table.env.now = 10
    for lock, task in zip(table.groups, tasks, strict=False):
        assert lock.try_down(task, 5)
        assert not lock.is_free()
        assert not lock.try_down(task, 5)
    table.env.now = 30
    table.groups[1].up(tasks[1])
    locks = table.share()
    assert [is_free(locks, group, 30) for group in range(3)] == [False, True, True]
    table.groups[0].up(tasks[0])
    assert is_free(locks, 0, 30)
    assert [lock.held_ns for lock in table.groups] == [20, 20, 0]
