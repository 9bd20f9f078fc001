"""The locks of the literal kernel, by hand; a wake-up takes 5 ns and a line 1 ns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.literal.clock import HANDOFF_NS, SLEEP, Clock, LockCounts, RwSemaphore, Semaphore, Steps, Task

Body = Callable[[Task], Steps]


class Play:
    """Tasks that begin at given times; ``log`` has the time when each one gets its lock."""

    def __init__(self, spin_ns: int = 6) -> None:
        self.clock, self.counts, self.log = Clock(0), LockCounts(), list[tuple[int, str]]()
        self.semaphore = Semaphore(self.clock, self.counts, 5)
        self.rwsem = RwSemaphore(self.clock, self.counts, 5, 1, spin_ns)

    def begin(self, at_ns: int, body: Body) -> Task:
        """Start a task with *body* at *at_ns*; a later task has a higher rank."""
        task = Task(self.clock, at_ns)
        self.clock.at(at_ns, at_ns, lambda: task.start(body(task)))
        return task

    def writer(self, name: str, hold_ns: int) -> Body:
        """Return a writer that has the lock for *hold_ns*."""

        def body(task: Task) -> Steps:
            yield from self.rwsem.down_write(task)
            self.log.append((self.clock.now, name))
            yield hold_ns
            self.rwsem.up_write(task)

        return body

    def reader(self, name: str) -> Body:
        """Return a reader that gives the lock up at once."""

        def body(task: Task) -> Steps:
            yield from self.rwsem.down_read(task)
            self.log.append((self.clock.now, name))
            self.rwsem.up_read()

        return body


def test_semaphore_is_handed_over_in_order() -> None:
    """The next task owns the semaphore from the release on, and runs a wake-up later."""
    play = Play()

    def body(task: Task) -> Steps:
        yield from play.semaphore.down(task)
        play.log.append((play.clock.now, "has it"))
        yield 10
        play.semaphore.up()

    for at_ns in (0, 2, 3):
        play.begin(at_ns, body)
    play.clock.run()
    assert play.log == [(0, "has it"), (15, "has it"), (30, "has it")]
    assert (play.counts.acquisitions, play.counts.contentions, play.counts.hold_ns) == (3, 2, 10 + 15 + 15)


@pytest.mark.parametrize(("spin_ns", "last"), [(6, 27), (4, 31)])
def test_writer_spins_and_reader_owns_the_lock_while_it_wakes(spin_ns: int, last: int) -> None:
    """A spinning writer gets the lock before a sleeping reader, which owns the lock while it wakes up.

    * 0: the first writer has the lock until 10; the second one spins from 2, and a reader sleeps from 3.
    * 11: the second writer has the lock until 21.
    * 21: the reader owns the lock; it runs at 26 and gives the lock up.
    * 22: the last writer spins.  It gets the lock at 27, or sleeps at 26 and is woken if *spin_ns* is 4.
    """
    play = Play(spin_ns)
    play.begin(0, play.writer("first", 10))
    play.begin(2, play.writer("second", 10))
    play.begin(3, play.reader("reader"))
    play.begin(22, play.writer("last", 10))
    play.clock.run()
    assert play.log == [(0, "first"), (11, "second"), (26, "reader"), (last, "last")]
    assert (play.counts.acquisitions, play.counts.contentions, play.counts.hold_ns) == (3, 2, 30)


def test_sleeping_writer_may_be_overtaken() -> None:
    """A writer that is woken may be overtaken, but still comes before a later reader.

    * 5: the owner sleeps, and so does the writer that spins since 1.
    * 100: the owner gives the lock up, and the writer is woken.
    * 102: another writer takes the lock until 152; a reader comes at 103.
    * 105: the first writer finds the lock taken and sleeps again.
    * 157: the first writer has the lock, until 167; the reader has it at 172.
    """
    play, slept = Play(), list[int]()

    def owner(task: Task) -> Steps:
        yield from play.rwsem.down_write(task)
        yield 5
        yield SLEEP
        play.rwsem.up_write(task)

    of_owner = play.begin(0, owner)
    spins = play.begin(1, play.writer("slept", 10))
    spins.before_sleep = lambda: slept.append(play.clock.now)
    play.clock.at(95, 0, lambda: of_owner.wake(5))
    play.begin(102, play.writer("overtakes", 50))
    play.begin(103, play.reader("reader"))
    play.clock.run()
    assert slept == [5, 105]
    assert play.log == [(102, "overtakes"), (157, "slept"), (172, "reader")]


def test_writer_that_slept_for_4_ms_is_handed_the_lock() -> None:
    """A writer that has slept for 4 ms is handed the lock, so a later writer finds the lock taken."""
    play = Play()
    play.begin(0, play.writer("owner", HANDOFF_NS))
    sleeper = play.begin(1, play.writer("slept", 10))
    play.clock.at(2, 0, lambda: play.rwsem.owner_sleeps())
    play.begin(HANDOFF_NS + 2, play.writer("overtakes", 100))
    play.begin(HANDOFF_NS + 103, play.writer("late", 10))
    play.clock.run()
    assert sleeper.running is False
    assert [name for _, name in play.log] == ["owner", "overtakes", "slept", "late"]
    assert play.log[2] == (HANDOFF_NS + 107, "slept")
