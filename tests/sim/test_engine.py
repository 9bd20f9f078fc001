"""The environment: the order of events, the light waits, and their equality with stock SimPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.machine import LIGHT, STOCK, Primitives
from wbsim.sim.engine import PARK, URGENT, Environment, GiveUp, Standstill, Steps, Task
from wbsim.sim.entry import FAR_NS
from wbsim.sim.sync import HandOff, Mutex, WakeUps

Log = list[tuple[int, str]]


def test_ties_are_resolved_by_rank() -> None:
    """Two tasks that wake at one instant run in the order of their ranks; an URGENT call precedes both."""
    env = Environment()
    log: Log = []

    def body(name: str, delays: list[int]) -> Steps:
        yield from delays
        log.append((env.now, name))

    first, second = env.task("first"), env.task("second")
    env.start(second, body("second", [10]))
    env.start(first, body("first", [3, 7]))
    env.call_at(10, URGENT, lambda: log.append((env.now, "call")))
    env.run()
    assert log == [(10, "call"), (10, "first"), (10, "second")]


@pytest.mark.parametrize("primitives", [LIGHT, STOCK], ids=["light", "stock"])
def test_clock_that_does_not_advance_ends_the_run(primitives: Primitives) -> None:
    """An error names the tasks that wait for 0 ns for ever; as many events at two instants are no error."""
    env = primitives.environment()
    env.most_at_once = 1_000

    def turning(times: int) -> Steps:
        for _ in range(times):
            yield 0
        yield 5
        for _ in range(times):
            yield 0

    env.start(env.task("well"), turning(900))
    env.run()
    assert env.now == 5
    for name in ("one", "two"):
        env.start(env.task(name), turning(10**9))
    with pytest.raises(Standstill, match=r"1000 events at 5e-09 s, .*; busy: (one, two|stock)"):
        env.run()


def test_a_parked_task_sleeps_until_it_is_woken() -> None:
    """wake() ends the wait of a task that has yielded PARK, after an optional delay."""
    env = Environment()
    log: Log = []

    def sleeper() -> Steps:
        yield PARK
        log.append((env.now, "woken"))

    task = env.start(env.task("sleeper"), sleeper())
    env.call_at(100, URGENT, lambda: env.wake(task, 5))
    env.run()
    assert log == [(105, "woken")]


def test_a_yielded_generator_runs_as_yield_from_would() -> None:
    """Yielded generators nest, need not wait, and return to their caller."""
    env = Environment()
    log: Log = []

    def nothing() -> Steps:
        return
        yield

    def inner() -> Steps:
        yield nothing()
        yield 2
        log.append((env.now, "inner"))

    def outer() -> Steps:
        yield inner()
        yield nothing()
        yield from inner()
        log.append((env.now, "outer"))

    ended: list[int] = []
    task = env.task("t")
    task.on_exit = lambda: ended.append(env.now)
    env.start(task, outer())
    env.run()
    assert log == [(2, "inner"), (4, "inner"), (4, "outer")]
    assert ended == [4]
    assert env.live_tasks == 0


def test_simpy_processes_share_the_clock_with_tasks() -> None:
    """A task may wait for a SimPy event, and plain SimPy processes run on the clock of the tasks."""
    env = Environment()
    log: Log = []
    bell = env.simpy.event()

    def listener() -> Steps:
        yield bell
        log.append((env.now, "heard"))

    def ringer() -> Any:
        yield env.simpy.timeout(7)
        bell.succeed()

    env.start(env.task("listener"), listener())
    env.simpy.process(ringer())
    env.run()
    assert log == [(7, "heard")]


@pytest.mark.parametrize("wait", [1.5, "soon", None])
def test_task_that_yields_no_wait_is_refused(wait: object) -> None:
    """A float or another object that is yielded by mistake raises an error, which names the task."""
    env = Environment()

    def body() -> Steps:
        yield wait  # type: ignore[misc]

    env.start(env.task("careless"), body())
    with pytest.raises(TypeError, match="careless"):
        env.run()


def test_run_gives_up_at_its_limit() -> None:
    """A model that never ends raises `GiveUp` at the limit."""
    env = Environment()

    def ticker() -> Steps:
        while True:
            yield 1_000

    env.start(env.task("ticker"), ticker())
    with pytest.raises(GiveUp):
        env.run(10_000)


def contention(primitives: Primitives, ticket: bool) -> tuple[Log, Any, int]:
    """Run five tasks that share a spinlock and a mutex, with many ties.

    Return the log, the counters of both locks and the spin time of all tasks.
    """
    env = primitives.environment()
    lock = primitives.spin_lock(env, "lock", HandOff(30, 90, ticket, 2))
    mutex = Mutex(env, "mutex", WakeUps(10))
    log: Log = []

    def part(task: Task, n: int) -> Steps:
        yield lock.section(task, 50, 10 * n)
        log.append((env.now, f"{task.name} left the lock"))

    def body(task: Task, n: int) -> Steps:
        for i in range(40):
            yield 20 * (n + i % 3)
            yield part(task, n)
            if not mutex.try_acquire(task):
                yield mutex.wait(task)
            yield 20 * i  # the contention moves from the spinlock to the mutex
            mutex.release()
            log.append((env.now, f"{task.name} left the mutex"))
            yield from part(task, n)
        log.append((env.now, f"{task.name} ended"))

    tasks = [env.task(f"t{n}") for n in range(5)]
    for n, task in enumerate(tasks):
        task.cpu = n  # three nodes of two processors
        env.start(task, body(task, n))
    env.run()
    return log, (lock.stat, mutex.stat), sum(task.spin_ns for task in tasks)


@pytest.mark.parametrize("ticket", [False, True])
@pytest.mark.stock
def test_light_primitives_equal_stock_simpy(ticket: bool) -> None:
    """A model gives the same log, counters and spin times with both engines, also with ties."""
    light, stock = contention(LIGHT, ticket), contention(STOCK, ticket)
    assert light == stock
    assert light[1][0].contentions > 20
    assert light[1][1].contentions > 20


def test_order_of_starts_does_not_matter() -> None:
    """Tasks get their ranks when they are made, so the order of the calls of start() has no effect."""

    def run(order: Callable[[list[int]], list[int]]) -> Log:
        env = Environment()
        log: Log = []

        def body(n: int) -> Steps:
            for _ in range(3):
                yield 5
                log.append((env.now, str(n)))

        tasks = [env.task(str(n)) for n in range(4)]
        for n in order(list(range(4))):
            env.start(tasks[n], body(n))
        env.run()
        return log

    assert run(lambda ns: ns) == run(lambda ns: ns[::-1])


@given(due=st.lists(st.tuples(st.integers(0, 50), st.integers(2, 9)), max_size=40))
def test_next_event_ns_is_the_time_of_the_earliest_event(due: list[tuple[int, int]]) -> None:
    """The time of the next event is the minimum over all events."""
    env = Environment()
    for when, rank in due:
        env.call_at(when, rank, lambda: None)
    assert env.next_event_ns() == min((when for when, _ in due), default=FAR_NS)
