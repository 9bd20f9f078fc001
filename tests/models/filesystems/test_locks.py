"""The locks of inodes: their laws, asked of events, compiled steps and workers at once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness import BlockLayer
from wbsim.models.filesystems.lock_table import FAR, HANDOFF_NS, UNTIL, WAIT_MAX, give_inode, take_inode
from wbsim.models.filesystems.locks import LockTable
from wbsim.models.scheduler.cpu import sleep
from wbsim.models.seams import Thread
from wbsim.sim.engine import Steps

Stretch = tuple[int, int]


class World:
    """Two inodes, each with a worker of its own; ``files`` says when each lock was held."""

    def __init__(self, wake_ns: int) -> None:
        layer = BlockLayer(wake_ns=wake_ns)
        self.env = layer.env
        self._thread = layer.site.thread
        self.table = LockTable(layer.site, 2, "i_data_sem")
        self.table.share()
        self.inodes = [self.table.inode_lock() for _ in range(2)]
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

    def flusher(self, inode: int, steps: list[tuple[int, int]], wait: bool) -> Any:
        """A flusher that allocates ahead of the clock: so long after the last, for so long.

        Where a lock's end is not known, or if it is to *wait*, it has the lock as an event.
        """
        lock = self.inodes[inode]

        def body(thread: Thread) -> Steps:
            for gap_ns, hold_ns in steps:
                yield gap_ns
                locks, now = self.table.locks, self.env.now
                from_ns = FAR if wait else int(take_inode(locks, inode, now))
                if from_ns < FAR:
                    ends_ns = from_ns + hold_ns
                    give_inode(locks, inode, now, from_ns, ends_ns)
                    self.files[inode].append((from_ns, ends_ns))
                    yield from sleep(thread.task, ends_ns - now, "a step")
                    continue
                yield from lock.down(thread)
                from_ns = self.env.now
                yield hold_ns
                self.files[inode].append((from_ns, self.env.now))
                lock.up()

        return body

    def worker(self, inode: int, ranges: list[int]) -> Any:
        """The worker of an inode: transactions of so long."""
        lock = self.inodes[inode]

        def body(thread: Thread) -> Steps:
            for range_ns in ranges:
                lock.begin(inode, 1, range_ns)
                yield from lock.finish(thread, inode)
                now = self.env.now
                self.files[inode].append((now - range_ns, now))

        return body


NS = st.integers(1, 60)
STEPS = st.lists(st.tuples(st.integers(0, 40), NS), max_size=8)
FLUSHER = st.tuples(STEPS, st.booleans())
WORKER = st.tuples(st.integers(0, 100), st.lists(st.integers(0, 80), max_size=8))


@settings(max_examples=500)
@given(st.integers(0, 9), st.tuples(FLUSHER, FLUSHER), st.tuples(WORKER, WORKER))
def test_a_lock_has_one_owner_and_each_task_gets_it(wake_ns: int, flushers: Any, workers: Any) -> None:
    """Exclusion, and no lost wake-up; at the end all is free."""
    world = World(wake_ns)
    for inode, (steps, wait) in enumerate(flushers):
        world.start(0, world.flusher(inode, steps, wait))
    for inode, (at_ns, ranges) in enumerate(workers):
        world.start(at_ns, world.worker(inode, ranges))
    world.env.run()
    assert world.ended == world.started
    for held in world.files:
        stretches = sorted(stretch for stretch in held if stretch[1] > stretch[0])
        assert all(before[1] <= after[0] for before, after in pairwise(stretches)), stretches
    now = world.env.now
    assert all(until <= now for until in world.table.locks.inodes[:2, UNTIL].tolist())


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
    world.start(300, world.worker(0, [3] * 4))
    world.env.run()
    assert world.ended == 4
    assert all(before[1] <= after[0] for before, after in pairwise(sorted(world.files[0])))
    assert all(HANDOFF_NS <= waited < HANDOFF_NS + 2_100_000 for waited in got)
    assert world.table.locks.inodes[0, WAIT_MAX] >= max(got) - 5


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
