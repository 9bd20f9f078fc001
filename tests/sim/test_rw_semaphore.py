"""The rw_semaphore, compared with the literal one, and by hand under the rules of older kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.literal import clock as literal
from tests.sim.test_sync import Running
from wbsim.sim.engine import PARK, CallError, Environment, Steps, Task
from wbsim.sim.streams import Streams
from wbsim.sim.sync import RwSemaphore, RwSemaphoreRules, WakeUps

pytestmark = pytest.mark.source

MODERN = RwSemaphoreRules(steals=True, spins=True, reader_spin_ns=60, hand_off_ns=literal.HANDOFF_NS)
WAKE_NS, LINE_NS = 50, 3
WAKER_NS = 7


class Use(NamedTuple):
    """One use of the lock: from *at_ns* on, for *runs_ns* on the processor, then *sleeps_ns* asleep."""

    at_ns: int
    reads: bool
    runs_ns: int
    sleeps_ns: int


class Play:
    """Tasks that use one lock; ``log`` has the times when each task gets the lock and gives it up."""

    def __init__(self, uses: Sequence[Use], rules: RwSemaphoreRules = MODERN, waker_ns: int = 0) -> None:
        self.env = Environment()
        self.lock = RwSemaphore(self.env, "mnt/ILOCK", rules, WakeUps(WAKE_NS, waker_ns), LINE_NS)
        self.log: list[tuple[int, str, str]] = []
        self.slept: list[tuple[int, str]] = []
        self.tasks = [self.env.task(str(number)) for number in range(len(uses))]
        Running(self.tasks)
        for task, use in zip(self.tasks, uses, strict=True):
            self.env.start(task, self._use(task, use), use.at_ns)
        self.env.run()

    def _use(self, task: Task, use: Use) -> Steps:
        lock, name = self.lock, task.name
        if use.reads:
            if not lock.try_read():
                yield lock.down_read(task)
        elif not lock.try_write(task):
            yield from lock.down_write(task, lambda: self.slept.append((self.env.now, name)))
        self.log.append((self.env.now, name, "has it"))
        yield use.runs_ns
        if use.sleeps_ns:
            self.env.call_at(self.env.now + use.sleeps_ns, task.rank, partial(self.env.wake, task))
            yield PARK
        yield lock.up_read(task) if use.reads else lock.up_write()
        self.log.append((self.env.now, name, "gave it up"))

    @property
    def had(self) -> list[tuple[int, str]]:
        """Return the time at which each task got the lock, and its name."""
        return [(ns, name) for ns, name, what in self.log if what == "has it"]


def literally(uses: Sequence[Use], waker_ns: int) -> tuple[list[tuple[int, str, str]], literal.LockCounts]:
    """Return the log of the same *uses* with the literal lock, and the counts of this lock."""
    clock, counts, log = literal.Clock(0), literal.LockCounts(), list[tuple[int, str, str]]()
    lock = literal.RwSemaphore(clock, counts, WAKE_NS, LINE_NS, MODERN.reader_spin_ns, waker_ns)

    def use_of(task: literal.Task, use: Use, name: str) -> literal.Steps:
        if use.reads:
            yield from lock.down_read(task)
        else:
            yield from lock.down_write(task)
        log.append((clock.now, name, "has it"))
        yield use.runs_ns
        if use.sleeps_ns:
            task.wake(use.sleeps_ns)
            yield literal.SLEEP
        yield lock.up_read() if use.reads else lock.up_write(task)
        log.append((clock.now, name, "gave it up"))

    for number, use in enumerate(uses):
        task = literal.Task(clock, number)
        begin: Callable[[], None] = partial(task.start, use_of(task, use, str(number)))
        clock.at(use.at_ns, number, begin)
    clock.run()
    return log, counts


USES = st.lists(
    st.builds(
        Use, st.integers(0, 900), st.booleans(), st.integers(1, 300),
        st.one_of(st.just(0), st.integers(1, 200)),
    ),
    min_size=2,
    max_size=9,
)  # fmt: skip


@given(USES, st.sampled_from([0, WAKER_NS]))
@example([Use(0, False, 100, 0), Use(10, False, 100, 0), Use(20, True, 50, 0), Use(220, False, 10, 0)], 0)
@example([Use(0, True, 100, 0), Use(1, False, 10, 0), Use(70, False, 10, 0), Use(90, True, 10, 0)], WAKER_NS)
def test_rw_semaphore_matches_the_literal_one(uses: list[Use], waker_ns: int) -> None:
    """Each task gets the lock, gives the lock up and has woken others at the same nanosecond."""
    of_literal, counts = literally(uses, waker_ns)
    instants = [ns for ns, _, _ in of_literal]
    assume(len(set(instants)) == len(instants) or len(uses) == 2)
    play = Play(uses, waker_ns=waker_ns)
    assert play.log == of_literal
    stat = play.lock.stat
    assert (stat.acquisitions, stat.contentions, stat.hold_ns) == (
        counts.acquisitions, counts.contentions, counts.hold_ns,
    )  # fmt: skip


@given(
    USES, st.sampled_from([RwSemaphoreRules(False, False, 0, 0), RwSemaphoreRules(True, True, 0, 0), MODERN])
)
def test_rw_semaphore_excludes_and_loses_no_task(uses: list[Use], rules: RwSemaphoreRules) -> None:
    """A writer is alone with the lock, each task has the lock once, and each wait is counted."""
    play = Play(uses, rules)
    owners: set[str] = set()
    for _, name, what in play.log:
        if what == "gave it up":
            owners.remove(name)
            continue
        assert not any(not uses[int(other)].reads or not uses[int(name)].reads for other in owners)
        owners.add(name)
    assert len(play.log) == 2 * len(uses)
    assert play.lock.free
    writers = sum(not use.reads for use in uses)
    assert play.lock.stat.acquisitions == writers
    assert play.lock.read_stat.acquisitions == len(uses) - writers
    waits = sum(
        ns - use.at_ns for (ns, _), use in zip(sorted(play.had, key=lambda of: int(of[1])), uses, strict=True)
    )
    woken = sum(ns for ns in (play.lock.stat.wait_ns, play.lock.read_stat.wait_ns))
    assert woken <= waits <= woken + WAKE_NS * len(uses)


def test_rwsem_before_3_9_is_given_in_order_of_arrival() -> None:
    """No running task overtakes, and readers share the lock only if they wait next to each other.

    * 0 ns: writer 0 has the lock until 100 ns; writer 1, readers 2 and 3, writer 4 and reader 5 sleep.
    * 100 ns: writer 1 owns the lock and runs from 150 to 160 ns.
    * 160 ns: readers 2 and 3 own the lock and run from 210 to 220 ns.
    * 220 ns: writer 4 owns the lock and runs from 270 to 280 ns; then reader 5.
    """
    kinds = (False, False, True, True, False, True)
    uses = [Use(10 * number, reads, 10, 0) for number, reads in enumerate(kinds)]
    uses[0] = Use(0, False, 100, 0)
    play = Play([*uses, Use(120, False, 10, 0)], RwSemaphoreRules(False, False, 0, 0))
    assert play.had == [(0, "0"), (150, "1"), (210, "2"), (210, "3"), (270, "4"), (330, "5"), (390, "6")]


@pytest.mark.parametrize(("spins", "had"), [(False, 150), (True, 103)])
def test_writer_spins_on_a_writer_from_3_16_on(spins: bool, had: int) -> None:
    """A second writer that sleeps is woken at the release; one that spins takes the lock at once."""
    rules = RwSemaphoreRules(True, spins, 0, 0)
    assert Play([Use(0, False, 100, 0), Use(10, False, 10, 0)], rules).had == [(0, "0"), (had, "1")]
    assert Play([Use(0, True, 100, 0), Use(10, False, 10, 0)], rules).had == [(0, "0"), (150, "1")], (
        "a writer does not spin on a reader"
    )


def test_writer_does_not_spin_with_need_resched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer whose processor another task wants sleeps at once, and is woken at the release."""
    monkeypatch.setattr(Running, "need_resched", lambda self, task: True)
    play = Play([Use(0, False, 100, 0), Use(10, False, 10, 0)])
    assert (play.slept, play.had) == ([(10, "1")], [(0, "0"), (150, "1")])


@pytest.mark.parametrize(("until", "had", "slept"), [(69, 72, []), (71, 121, [(70, "1")])])
def test_writer_spins_on_readers_for_the_threshold(
    until: int, had: int, slept: list[tuple[int, str]]
) -> None:
    """The writer comes at 10 ns and spins to 70 ns; a reader that stays longer sends it to sleep."""
    play = Play([Use(0, True, until, 0), Use(10, False, 10, 0)])
    assert play.had == [(0, "0"), (had, "1")]
    assert play.slept == slept


def test_no_writer_spins_once_readers_have_stayed() -> None:
    """Writer 1 sleeps at 70 ns; writer 2, at 80 ns, does not spin, and both wait for the reader's end."""
    play = Play([Use(0, True, 100, 0), Use(10, False, 10, 0), Use(80, False, 10, 0), Use(300, True, 50, 0),
                 Use(310, False, 10, 0)])  # fmt: skip
    assert play.slept == [(70, "1"), (80, "2")]
    assert play.had == [(0, "0"), (150, "1"), (210, "2"), (300, "3"), (353, "4")]


def test_writers_that_spin_sleep_with_the_owner() -> None:
    """The owner sleeps from 20 to 120 ns; both writers flush their plugs, and are woken in order."""
    play = Play([Use(0, False, 20, 100), Use(5, False, 10, 0), Use(6, False, 10, 0)])
    assert play.slept == [(20, "1"), (20, "2")]
    assert play.had == [(0, "0"), (170, "1"), (230, "2")]
    assert [task.spun_ns for task in play.tasks] == [{}, {"mnt/ILOCK": 15}, {"mnt/ILOCK": 14}]


def test_writer_that_has_slept_for_4_ms_comes_next() -> None:
    """Writer 1 is overtaken once, asks for the hand-off, and gets the lock at the next release.

    * 0 ns: the owner sleeps until 4 ms, so writer 1 sleeps at 10 ns.
    * 4 000 000 ns: writer 1 is woken; writer 2 takes the free lock at 4 000 020 ns.
    * 4 000 030 ns: writer 3 spins.  At 4 000 050 ns, writer 1 finds the lock taken.
    * 4 000 060 ns: writer 4 may not spin.
    * 4 000 120 ns: writer 1 owns the lock, and runs at 4 000 170 ns until 4 000 180 ns.
    * 4 000 183 ns: writer 3 has the lock; 4 000 193 ns: writer 4 is woken.
    """
    ms = 1_000_000
    play = Play([Use(0, False, 10, 4 * ms - 10), Use(5, False, 10, 0), Use(4 * ms + 20, False, 100, 0),
                 Use(4 * ms + 30, False, 10, 0), Use(4 * ms + 60, False, 10, 0)])  # fmt: skip
    later = [(20, "2"), (170, "1"), (183, "3"), (243, "4")]
    assert play.had == [(0, "0"), *((4 * ms + ns, name) for ns, name in later)]
    assert play.slept == [(10, "1"), (4 * ms + 50, "1"), (4 * ms + 60, "4")]


def test_overtaken_writer_is_woken_once() -> None:
    """A writer that another writer overtakes while it wakes up is not woken again.

    * 100 ns: writer 1 is woken.
    * 105 ns: writer 2 takes the lock, until 115 ns.
    * 150 ns: writer 1 runs and takes the lock.
    """
    play = Play([Use(0, False, 10, 90), Use(50, False, 100, 0), Use(105, False, 10, 0), Use(170, True, 5, 0)])
    assert play.log[2:] == [
        (105, "2", "has it"), (115, "2", "gave it up"), (150, "1", "has it"), (250, "1", "gave it up"),
        (300, "3", "has it"), (305, "3", "gave it up"),
    ]  # fmt: skip


def test_a_writer_that_is_woken_already_takes_no_time() -> None:
    """The owner wakes writer 1 from 100 to 107 ns; writer 2 overtakes it, and need not wake it at 115 ns."""
    play = Play([Use(0, False, 10, 90), Use(50, False, 100, 0), Use(105, False, 10, 0)], waker_ns=WAKER_NS)
    assert [(ns, name) for ns, name, what in play.log if what == "gave it up"] == [
        (107, "0"), (115, "2"), (250, "1"),
    ]  # fmt: skip


def test_spin_threshold_counts_for_each_turn_of_readers() -> None:
    """A threshold that began with other readers does not end the spinning.

    * 0 to 20 ns: reader 0; writer 1 spins from 10 ns and has the lock from 23 to 33 ns.
    * 33 to 93 ns: reader 2, which wakes up first; writer 3 spins from 40 to 96 ns.
    """
    play = Play([Use(0, True, 20, 0), Use(10, False, 10, 0), Use(25, True, 10, 0), Use(40, False, 10, 0)])
    assert play.had == [(0, "0"), (23, "1"), (83, "2"), (96, "3")]


def test_reader_waits_behind_a_writer_while_readers_own_the_lock() -> None:
    """Readers do not starve a writer: reader 2 comes while reader 0 owns the lock and writer 1 sleeps."""
    rules = RwSemaphoreRules(True, True, 0, 0)
    play = Play([Use(0, True, 100, 0), Use(10, False, 10, 0), Use(20, True, 10, 0)], rules)
    assert play.had == [(0, "0"), (150, "1"), (210, "2")]
    assert play.lock.read_stat.contentions == 1


@pytest.mark.parametrize("reads", [False, True])
def test_free_lock_may_be_passed_through(reads: bool) -> None:
    """The lock is passed through three times; not while a task owns it, and not while one waits for it."""
    env = Environment()
    lock = RwSemaphore(env, "mnt/ILOCK", MODERN, WakeUps(WAKE_NS), LINE_NS)
    owner, waiter = env.task("owner"), env.task("waiter")
    assert lock.pass_through(3, reads)
    assert ((lock.read_stat if reads else lock.stat).acquisitions, lock.free) == (3, True)
    assert (lock.stat if reads else lock.read_stat).acquisitions == 0
    assert lock.try_read()
    assert not lock.pass_through(1, reads)
    assert lock.up_read(owner) == 0
    assert lock.try_write(owner)
    assert not lock.pass_through(1, reads)
    env.start(waiter, lock.down_write(waiter))
    env.call_at(10, 0, lock.up_write)
    env.call_at(11, 0, lambda: seen.append((lock.free, lock.idle, lock.pass_through(1, reads))))
    seen: list[tuple[bool, bool, bool]] = []
    env.run()
    assert seen == [(True, False, False)], "the waiter wakes up at 60"


def test_a_release_takes_as_long_as_its_wake_ups() -> None:
    """Each task that is woken takes the waker 7 ns, which count as waking.

    * 0 to 10 ns: the owner sleeps for 90 ns; readers 1 and 2 and writer 3 sleep for the lock.
    * 100 ns: the owner wakes two readers, which takes until 114 ns.
    * 150 ns: the readers run.  At 160 ns the last one wakes writer 3, which takes until 167 ns.
    * 210 to 220 ns: the writer runs, and wakes no task.
    """
    play = Play(
        [Use(0, False, 10, 90), Use(20, True, 10, 0), Use(21, True, 10, 0), Use(22, False, 10, 0)],
        waker_ns=WAKER_NS,
    )
    assert [(ns, name) for ns, name, what in play.log if what == "gave it up"] == [
        (114, "0"), (160, "1"), (167, "2"), (220, "3"),
    ]  # fmt: skip
    assert [task.waking_ns for task in play.tasks] == [14, WAKE_NS, WAKE_NS + 7, WAKE_NS]


def test_a_busy_processor_takes_no_time_of_the_waker() -> None:
    """The woken writer gets no processor at once, so no idle processor is woken."""
    env = Environment()
    lock = RwSemaphore(env, "mnt/ILOCK", MODERN, WakeUps(WAKE_NS, WAKER_NS), LINE_NS)
    owner, waiter = env.task("owner"), env.task("waiter")
    Running([owner])
    busy = Running([waiter])
    assert lock.try_write(owner)
    env.start(waiter, lock.down_write(waiter))
    env.run()
    busy.wants = lambda task, by=None: False  # type: ignore[method-assign]
    waiter.on_cpu = False
    assert lock.up_write() == 0


def taken_by(wakes: WakeUps) -> int:
    """Return the time of one wake-up (ns)."""
    env = Environment()
    task = env.task("sleeper")
    assert wakes.wake(env, task) == wakes.waker_ns
    return task.when


def test_wake_ups_are_a_tenth_shorter_at_most() -> None:
    """The median is the given time, and one in a hundred takes more than one and a half of it."""
    wakes = WakeUps(10_000, 0, Streams(1).exponentials("wake-ups"))
    taken = sorted(taken_by(wakes) for _ in range(20_000))
    assert taken[0] == pytest.approx(9_000, rel=0.001)
    assert taken[10_000] == pytest.approx(10_000, rel=0.01)
    assert taken[19_800] == pytest.approx(9_000 + 1_500 * math.log(100), rel=0.03)
    assert {taken_by(WakeUps(10_000)) for _ in range(9)} == {10_000}


def test_a_call_that_fails_gives_the_lock_up() -> None:
    """The error reaches the caller, and the next task wakes up in 20 ns and works for 5 ns."""
    env, log = Environment(), []

    def fails() -> Steps:
        yield 10
        raise CallError("full")

    def works() -> Steps:
        yield 5

    def caller(task: Task, call: Steps, name: str) -> Steps:
        try:
            yield lock.own_for(task, call, lambda: None)
        except CallError as error:
            name = str(error)
        log.append((env.now, name))

    lock = RwSemaphore(env, "l", MODERN, WakeUps(20), 3)
    for number, (call, name) in enumerate([(fails(), "first"), (works(), "second")]):
        task = env.task(f"t{number}")
        env.start(task, caller(task, call, name), number)
    env.run()
    assert log == [(10, "full"), (35, "second")]


def test_owner_wakes_the_next_task_before_it_goes_on() -> None:
    """0 to 10 ns: it owns the lock, and sleeps for 90 ns.  At 100 ns it wakes the waiter, until 107 ns."""
    env, ends = Environment(), []
    lock = RwSemaphore(env, "l", MODERN, WakeUps(WAKE_NS, WAKER_NS), LINE_NS)

    def call(task: Task) -> Steps:
        yield 10
        env.call_at(env.now + 90, task.rank, partial(env.wake, task))
        yield PARK

    def owner(task: Task) -> Steps:
        yield lock.own_for(task, call(task), lambda: None)
        ends.append(env.now)

    tasks = [env.task("owner"), env.task("waiter")]
    Running(tasks)
    env.start(tasks[0], owner(tasks[0]))
    env.start(tasks[1], lock.down_write(tasks[1]), 20)
    env.run()
    assert ends == [107]
