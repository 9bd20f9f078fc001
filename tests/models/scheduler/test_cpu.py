"""Processors: the tasks that run, the tasks that wait, and the tasks that interrupts take time from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.machine import build
from wbsim.models.scheduler.cpu import Processors, cond_resched, sleep, work
from wbsim.models.scheduler.runqueue import RunQueue, SchedulerRules
from wbsim.sim.engine import PARK, URGENT, Environment, Steps, Task
from wbsim.sim.stock_simpy import StockEnvironment
from wbsim.sim.sync import HandOff, SpinLock
from wbsim.sim.units import MS, US, S

ENDLESS = SchedulerRules(10**15)

WEIGHTS = dict(zip(range(-5, 6), (3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335), strict=True))
"""sched_prio_to_weight, by nice value."""


def processors(env: Any, count: int, rules: SchedulerRules = ENDLESS) -> Processors:
    """Return *count* processors; interrupts hit the first seat."""
    return Processors(env, count, rules, lambda: 0.0)


def start(env: Any, of: Processors, body: Callable[[Task], Steps], at: int = 0, **how: Any) -> Task:
    """Start a task with *body* on the processors *of*, at time *at*."""
    task: Task = of.adopt(env.task("t"), **how)
    env.start(task, body(task), at)
    return task


@pytest.mark.parametrize("seated", [True, False])
@pytest.mark.parametrize(("count", "expected_ms"), [(1, 40), (2, 20), (4, 10), (8, 10)])
def test_processors_share_out_the_work(count: int, expected_ms: int, seated: bool) -> None:
    """Four tasks of 10 ms take turns on *count* processors and lose no time.

    On one processor, each task is ready while the others run.
    """
    env = Environment()
    of = processors(env, count, SchedulerRules(2 * MS))

    def body(task: Task) -> Steps:
        for _ in range(10):
            yield 1 * MS
            if (ready := cond_resched(task)) is not None:
                yield ready

    tasks = [start(env, of, body, seated=seated) for _ in range(4)]
    env.call_at(7 * MS, 9, of.check)  # while some tasks have seats, too
    env.run()
    of.check()
    assert env.now == expected_ms * MS
    assert [task.ran_ns for task in tasks] == [10 * MS] * 4
    assert (of.used_ns, of.idle_ns) == (40 * MS, count * env.now - 40 * MS)
    if count == 1:
        assert [task.ready_ns for task in tasks] == [30 * MS] * 4


def test_interrupt_time_is_charged_to_the_owner_of_the_seat() -> None:
    """A process owes the time of interrupts that hit its seat, also while it sleeps.

    A seat without an owner charges no task.  The process loses its seat when other processes need both
    processors.
    """
    env = Environment()
    where = [0.0]
    of = Processors(env, 2, ENDLESS, lambda: where[0])

    def body(_: Task) -> Steps:
        yield PARK

    process = start(env, of, body, seated=True)
    kernel = start(env, of, body)
    of.interrupt(500)
    where[0] = 0.9
    of.interrupt(500)
    assert (process.owed_ns, process.interrupted_ns, sum(task.interrupted_ns for task in of.tasks)) == (
        500,
        500,
        500,
    )
    env.run()
    where[0] = 0.0
    of.interrupt(7)
    assert (process.owed_ns, kernel.owed_ns) == (507, 0)
    others = [start(env, of, body, seated=True) for _ in range(2)]  # they need both processors
    of.interrupt(9)
    where[0] = 0.9
    of.interrupt(20)
    assert process.owed_ns == 507
    assert sorted(other.owed_ns for other in others) == [9, 20]


def test_task_that_slept_waits_for_a_busy_processor() -> None:
    """A task that has slept waits for a processor again.  There is one processor.

    * 0: the first task sleeps until 10.
    * 1: the second task gets the processor for 24.
    * 10: the first task is ready.
    * 25: the second task ends; the first one gets the processor.
    """
    env = Environment()
    of = processors(env, 1)
    log: list[tuple[int, str]] = []

    def one(task: Task) -> Steps:
        yield from sleep(task, 10, "a pause")
        log.append((env.now, "first"))

    def two(_: Task) -> Steps:
        yield 24
        log.append((env.now, "second"))

    first = start(env, of, one)
    start(env, of, two, at=1)
    env.run()
    assert log == [(25, "second"), (25, "first")]
    assert (first.ready_ns, first.ran_ns, of.idle_ns) == (15, 0, 1)


def test_idle_time_after_a_wait_for_a_processor_is_idle() -> None:
    """A task that waited for a processor and parks later is idle, not waiting.

    * 0: the first task has the only processor until 25; the second task is ready.
    * 25: the second task works for 5.
    * 30: the second task parks for 10, which count as idle.
    """
    env = Environment()
    of = processors(env, 1)

    def hog(_: Task) -> Steps:
        yield 25

    def body(task: Task) -> Steps:
        yield 5
        env.call_at(env.now + 10, 0, lambda: env.wake(task))
        yield PARK
        yield 1

    start(env, of, hog)
    second = start(env, of, body)
    env.run()
    assert (env.now, second.ready_ns, second.idle_ns, sum(second.slept_ns.values())) == (41, 25, 10, 0)


def test_without_a_scheduler_a_task_needs_no_processor() -> None:
    """A task without a scheduler sleeps for 10 ns and then runs without a processor."""
    env = Environment()
    task = env.task("t")
    env.start(task, sleep(task, 10, "a pause"))
    env.run()
    assert (env.now, task.ran_ns) == (10, 0)


def test_spinning_task_keeps_its_processor() -> None:
    """A task that spins keeps its processor.

    There are two processors.  The first task holds the lock until 100 and the second one spins for the lock,
    so the third task runs at 100.
    """
    env = Environment()
    of = processors(env, 2)
    lock = SpinLock(env, "l", HandOff(0, 0))
    began: list[int] = []

    def holder(task: Task) -> Steps:
        yield lock.section(task, 100)

    def third(_: Task) -> Steps:
        began.append(env.now)
        yield 1

    start(env, of, holder)
    start(env, of, holder)
    start(env, of, third)
    env.run()
    assert began == [100]
    assert (env.now, of.used_ns) == (200, 100 + 200 + 1)


def test_program_is_preempted_at_the_first_tick_after_its_slice() -> None:
    """The end of a slice of 1.5 ms is noticed at the next multiple of 4 ms.

    Two programs of 10 ms start at 1 ms:

    * the first runs from 1 to 4, 8 to 12 and 16 to 19 ms
    * the second runs from 4 to 8, 12 to 16 and 19 to 21 ms
    """
    env = Environment()
    of = processors(env, 1, SchedulerRules(1500 * US, tick_ns=4 * MS))
    ended = []

    def body(task: Task) -> Steps:
        yield from of.work(task, 10 * MS)
        ended.append(env.now)

    tasks = [start(env, of, body, at=MS) for _ in range(2)]
    env.run()
    of.check()
    assert ended == [19 * MS, 21 * MS]
    assert [(task.ran_ns, task.ready_ns) for task in tasks] == [(10 * MS, 8 * MS), (10 * MS, 10 * MS)]


@pytest.mark.parametrize(
    ("rules", "began_us"),
    [
        (SchedulerRules(4 * MS, ahead_ns=4 * MS), 3_000),
        (SchedulerRules(4 * MS, ahead_ns=0), 4_000),  # as far as the running task: waits for its slice
        (SchedulerRules(4 * MS, ahead_ns=1), 3_000),
        (SchedulerRules(4 * MS, ahead_ns=2 * MS, granularity_ns=2 * MS - 1), 3_000),
        (
            SchedulerRules(4 * MS, ahead_ns=2 * MS, granularity_ns=2 * MS),
            4_000,
        ),  # equals the granularity
        (
            SchedulerRules(4 * MS, ahead_ns=4 * MS, granularity_ns=3 * MS),
            4_000,
        ),  # new: starts at 0
    ],
)
def test_waking_task_preempts_a_task_that_is_far_enough_ahead(rules: SchedulerRules, began_us: int) -> None:
    """A task that wakes at 3 ms preempts a task that runs since 0 if their virtual times differ enough.

    The waking task comes up to ``ahead_ns`` before the running one; the distance must exceed
    ``granularity_ns``.
    """
    env = Environment()
    of = processors(env, 1, rules)
    began = []

    def hog(task: Task) -> Steps:
        yield from of.work(task, 20 * MS)

    def waker(_: Task) -> Steps:
        began.append(env.now)
        yield 100 * US

    first = start(env, of, hog)
    second = start(env, of, waker, at=3 * MS)
    env.run()
    assert began == [began_us * US]
    assert env.now == 20 * MS + 100 * US
    assert (first.ready_ns, second.ready_ns) == (100 * US, (began_us - 3_000) * US)


def test_new_task_preempts_at_the_first_of_the_shortest_queues() -> None:
    """A new task waits at the first of the shortest queues and preempts the task there.

    Two tasks run on two processors, since 0 and since 2 ms, when a third one starts at 3 ms.
    """
    env = Environment()
    of = processors(env, 2, SchedulerRules(50 * MS, ahead_ns=MS))

    def hog(task: Task) -> Steps:
        yield from of.work(task, 10 * MS)

    def waker(_: Task) -> Steps:
        yield 100 * US

    first, second = start(env, of, hog), start(env, of, hog, at=2 * MS)
    start(env, of, waker, at=3 * MS)
    env.run()
    assert (first.ready_ns, second.ready_ns) == (100 * US, 0)


def test_preempted_task_preempts_no_other_task() -> None:
    """A preempted task waits for its processor and preempts no other task, even one of less weight.

    * 0: a program runs on the first processor.
    * 2 ms: a light kernel thread runs on the second one; another task waits for the first one.
    * 4 ms: the slice of the program ends, and the other task runs for 3 ms.
    * 7 ms: the program runs again; the kernel thread has kept its processor.
    """
    env = Environment()
    of = processors(env, 2, SchedulerRules(4 * MS))

    def program(task: Task) -> Steps:
        yield from of.work(task, 20 * MS)

    def kernel(task: Task) -> Steps:
        for _ in range(5):
            yield 1 * MS
            if (ready := cond_resched(task)) is not None:
                yield ready

    def other(_: Task) -> Steps:
        yield 3 * MS

    first, second = start(env, of, program), start(env, of, kernel, at=2 * MS)
    second.weight = WEIGHTS[5]
    start(env, of, other, at=2 * MS + 1)
    env.run()
    assert second.ready_ns == 0
    assert first.ready_ns == 3 * MS


def test_kernel_code_gives_way_only_at_cond_resched() -> None:
    """The slice of kernel code is over at 1 ms; the other task runs at 5 ms, after cond_resched."""
    env = Environment()
    of = processors(env, 1, SchedulerRules(MS))
    began = []

    def kernel(task: Task) -> Steps:
        yield 5 * MS
        if (ready := cond_resched(task)) is not None:
            yield ready
        began.append(env.now)

    def other(_: Task) -> Steps:
        began.append(env.now)
        yield 2 * MS

    start(env, of, kernel)
    start(env, of, other)
    env.run()
    assert began == [5 * MS, 7 * MS]


def test_waking_task_waits_at_its_last_processor() -> None:
    """A waking task waits for its last processor, unless another one becomes idle before.

    * 0: the first task has processor 0 until 50; the second has processor 1 until 5 and sleeps until 15.
    * 7: another task has processor 1 until 102.
    * 15: the second task wakes and waits for processor 1.
    * 50: processor 0 is idle and takes the second task.
    """
    env = Environment()
    of = processors(env, 2)
    log: list[tuple[int, int]] = []

    def first(_: Task) -> Steps:
        yield 10
        yield 40

    def second(task: Task) -> Steps:
        yield 5
        yield from sleep(task, 10, "a pause")
        log.append((env.now, task.cpu))
        yield 1

    def other(_: Task) -> Steps:
        yield 95

    start(env, of, first)
    start(env, of, second)
    start(env, of, other, at=7)
    env.run()
    assert log == [(50, 0)], "the first processor is free earlier and takes the task"


def test_idle_processor_takes_the_next_waiting_task() -> None:
    """A processor that becomes idle runs the next task of its queue.

    * 0: tasks of 10 and 4 ms run; a task of 10 ms waits for each processor.
    * 4 ms: the second processor runs its waiting task until 14 ms.
    * 10 ms: the first processor runs its waiting task until 20 ms.
    """
    env = Environment()
    of = processors(env, 2, SchedulerRules(50 * MS))
    ended: list[tuple[int, int]] = []

    def body(ms: int) -> Callable[[Task], Steps]:
        def run(task: Task) -> Steps:
            yield from of.work(task, ms * MS)
            ended.append((env.now // MS, task.cpu))

        return run

    for ms in (10, 4, 10, 10):
        start(env, of, body(ms))
    env.run()
    of.check()
    assert ended == [(4, 1), (10, 0), (14, 1), (20, 0)]


def test_bound_task_waits_although_another_processor_is_idle() -> None:
    """A bound task waits for its processor, also if another one is idle.

    * 0: kernel code runs on processor 0; its slice is over at 50.
    * 10: a task that is bound to processor 0 wakes.
    * 100: the code calls cond_resched; the bound task runs, and the code continues on processor 1.
    """
    env = Environment()
    of = processors(env, 2, SchedulerRules(50))
    log: list[tuple[str, int, int]] = []

    def code(task: Task) -> Steps:
        for _ in range(3):
            yield 100
            log.append(("code", env.now, task.cpu))
            if (ready := cond_resched(task)) is not None:
                yield ready

    def worker(task: Task) -> Steps:
        yield 30
        log.append(("worker", env.now, task.cpu))

    start(env, of, code)
    bound = of.adopt(env.task("worker"))
    bound.bound = 0
    env.start(bound, worker(bound), 10)
    env.call_at(50, 9, of.check)
    env.run()
    of.check()
    assert log == [("code", 100, 0), ("worker", 130, 0), ("code", 200, 1), ("code", 300, 1)]
    assert bound.ready_ns == 90


def noted(env: Environment, task: Task, ns: int, ended: list[tuple[str, int, int]]) -> Steps:
    """Work for *ns*; append the name, the end and the processor to *ended*."""
    yield ns
    ended.append((task.name, env.now, task.cpu))


def test_no_processor_takes_a_bound_task_from_another() -> None:
    """A processor takes tasks from another one, but not bound tasks.

    Processor 0 has 100 ns of code, and a bound task and then a free task in its queue.  Processor 1 is idle
    from 20 on and takes the free task.  With ``balance_ns``, the free task moves to its queue before.
    """
    for rules in (SchedulerRules(10**6), SchedulerRules(10**6, balance_ns=15)):
        env = Environment()
        of = processors(env, 2, rules)
        ended: list[tuple[str, int, int]] = []
        for name, ns, at, bound in (
            ("code", 100, 0, -1),
            ("short", 20, 0, -1),
            ("bound", 5, 1, 0),
            ("free", 5, 1, -1),
        ):
            task = of.adopt(env.task(name))
            task.bound, task.cpu = bound, 0
            env.start(task, noted(env, task, ns, ended), at)
        env.run()
        of.check()
        assert ended == [("short", 20, 1), ("free", 25, 1), ("code", 100, 0), ("bound", 105, 0)]


def test_load_balance_gives_three_loops_equal_processor_time() -> None:
    """Three busy loops on two processors get equal time with load_balance, and not without.

    Every 9 ms a waiting loop moves to the other queue.  With an even number of slices the same loop would
    move each time.
    """
    env = Environment()
    of = processors(env, 2, SchedulerRules(1 * MS, balance_ns=9 * MS))
    tasks = [start(env, of, lambda task: of.work(task, S)) for _ in range(3)]
    env.call_at(90 * MS, 0, env.halt)
    env.run()
    assert sorted({task.cpu for task in tasks}) == [0, 1]
    assert all(of.ran_ns(task) == pytest.approx(60 * MS, rel=0.12) for task in tasks)
    alone = processors(env := Environment(), 2, SchedulerRules(1 * MS))
    tasks = [start(env, alone, lambda task: alone.work(task, S)) for _ in range(3)]
    env.call_at(90 * MS, 0, env.halt)
    env.run()
    assert sorted(alone.ran_ns(task) // MS for task in tasks) == [45, 45, 90]


def test_task_that_load_balance_moves_preempts_an_expired_slice() -> None:
    """A task that load_balance moves runs at once if the slice of the running user work is over.

    * 5: user work, which can be preempted, runs on processor 1.
    * 40: kernel code has processor 0 for 50 ms.
    * 1 000 010: A wakes and waits for processor 0; B follows 20 ns later.
    * 10 000 010: load_balance moves A to processor 1, where A runs at once.
    * 19 000 010: load_balance moves B.
    """
    env = Environment()
    of = processors(env, 2, SchedulerRules(MS, balance_ns=9 * MS))
    went_on: list[tuple[str, int]] = []

    def once(name: str) -> Callable[[Task], Steps]:
        def body(task: Task) -> Steps:
            yield 10
            yield from sleep(task, MS, "a pause")
            went_on.append((name, env.now))
            yield 1

        return body

    def kernel(_: Task) -> Steps:
        yield 50 * MS

    start(env, of, once("A"))
    start(env, of, lambda task: of.work(task, 100 * MS), at=5)
    start(env, of, once("B"), at=20)
    start(env, of, kernel, at=40)
    env.run()
    assert went_on == [("A", 10_000_010), ("B", 19_000_010)]


def test_sleeper_next_to_a_busy_loop_is_late_as_measured() -> None:
    """A sleeper nearly always runs at once next to a busy loop, because it keeps its lag.

    When its lag is used up, the sleeper waits for a tick: the 99th percentile is 3.4 to 3.7 ms on one
    processor (docs/measurements.md G).
    """
    env = Environment()
    of = processors(env, 1, KERNELS["6.18"].sched.rules(1))
    late: list[int] = []

    def sleeper(task: Task) -> Steps:
        while True:
            due_ns = env.now + MS
            yield from sleep(task, MS, "a pause")
            late.append(env.now - due_ns)
            yield from of.work(task, 100 * US)

    start(env, of, lambda task: of.work(task, 100 * S))
    start(env, of, sleeper)
    env.call_at(10 * S, 0, env.halt)
    env.run()
    assert np.percentile(late, [50, 90]).tolist() == [0, 0]
    assert 2 * MS < np.percentile(late, 99) < 4 * MS


def test_sleeping_task_keeps_its_lag_up_to_a_limit() -> None:
    """The lag of a task is its distance behind the average, at most two slices or a tick.

    A task ahead of the average has no lag.  The hog is at 20 and a light task at 10, so the average is 15.
    """
    queue = RunQueue(SchedulerRules(100, keeps_lag=True))
    hog, light, late = (Environment().task(name) for name in ("hog", "light", "late"))
    hog.virtual_ns = light.virtual_ns = 0
    queue.keep(light, 0)
    assert (queue.lag_of(hog, 20), queue.lag_of(hog, 0)) == (0, 0)
    assert queue.pop() is light
    hog.virtual_ns = 20
    queue.keep(hog, 0)
    light.virtual_ns = 10
    assert queue.lag_of(light, 0) == 5
    light.virtual_ns = -10_000
    assert queue.lag_of(light, 0) == 200
    # A task wakes with its lag of 6: it pulls the average from 20 to 14, and is 6 behind that.
    queue.pop()
    hog.since_ns, late.lag_ns = 0, 6
    queue.wakes(late, hog, 0)
    assert late.virtual_ns == 20 - 2 * 6
    assert queue.takes_over(hog)
    queue.pop()
    late.lag_ns = 0
    queue.wakes(late, hog, 0)
    assert not queue.takes_over(hog), "a task with exactly its share continues"
    # A task of double weight pulls the average by twice its lag.
    queue.pop()
    late.weight, late.lag_ns = 2_048, 6
    queue.wakes(late, hog, 0)
    assert late.virtual_ns == 20 - 2 * 6 - 6


@pytest.mark.parametrize("make", [Environment, pytest.param(StockEnvironment, marks=pytest.mark.stock)])
@given(
    count=st.integers(1, 3),
    rules=st.builds(
        SchedulerRules,
        st.integers(1, 50),
        st.integers(0, 20),
        st.integers(0, 50),
        st.integers(0, 20),
        st.booleans(),
        st.integers(1, 100),
    ),
    plans=st.lists(
        st.tuples(
            st.integers(0, 30),
            st.booleans(),
            st.integers(-5, 5),
            st.sampled_from([-1, -1, 0, 2]),
            st.lists(st.tuples(st.sampled_from(["run", "kernel", "sleep"]), st.integers(0, 60)), max_size=8),
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_times_of_tasks_and_processors_are_conserved(
    make: Any, count: int, rules: SchedulerRules, plans: Sequence[tuple[int, bool, int, int, list[Any]]]
) -> None:
    """Times add up for any tasks under any rules.

    * Each task works as long as planned.
    * The time of a task is work, waits for a processor and sleep.
    * Work and idle time add up to the time of all processors.
    * A task waits next to an idle processor only if it is bound, and a bound task runs on its processor.
    """
    env = make()
    of = processors(env, count, rules)
    lives: list[tuple[Task, int, int, list[Any]]] = []

    def body(task: Task, steps: list[Any]) -> Steps:
        began_ns = env.now
        for what, ns in steps:
            if what == "run":
                yield from of.work(task, ns)
            elif what == "kernel":
                yield ns
                if (ready := cond_resched(task)) is not None:
                    yield ready
            else:
                yield from sleep(task, ns, "a pause")
            of.check()
            assert task.bound in (-1, task.cpu)
        lives.append((task, began_ns, env.now, steps))

    for at, seated, nice, bound, steps in plans:
        task = of.adopt(env.task("t"), seated)
        task.bound = min(bound, count - 1)
        task.weight = WEIGHTS[nice]
        env.start(task, body(task, steps), at)
    env.run()
    of.check()
    assert len(lives) == len(plans)
    for (task, began_ns, ended_ns, steps), ready_ns in zip(
        lives, (task.ready_ns for task, *_ in lives), strict=True
    ):
        worked = sum(ns for what, ns in steps if what != "sleep")
        slept = sum(ns for what, ns in steps if what == "sleep")
        assert task.ran_ns == worked
        assert worked + slept + ready_ns - (ended_ns - began_ns) >= 0  # it may have waited before its start
    assert of.used_ns == sum(task.ran_ns for task, *_ in lives)


def arrive(
    env: Environment, of: Processors, gaps: Any, sizes: Any, job: Callable[[Task, int], Steps]
) -> None:
    """Start a task for each of *sizes*, each after its gap of *gaps*."""

    def arrivals(_: Task) -> Steps:
        for gap, ns in zip(gaps.astype(int).tolist(), sizes.astype(int).tolist(), strict=True):
            yield gap
            task = of.adopt(env.task("job"))
            env.start(task, job(task, ns))

    source = env.task("source")
    env.start(source, arrivals(source))


@pytest.mark.parametrize("count", [1, 3])
def test_mean_wait_for_a_processor_follows_erlang_c(count: int) -> None:
    """The mean wait for one of *count* processors at load 0.7 is Erlang's C; tasks are not preempted."""
    env = Environment()
    of = processors(env, count)
    draw, jobs, mean_ns = np.random.default_rng(1), 200_000, 1_000
    waits: list[int] = []

    def job(task: Task, ns: int) -> Steps:
        waits.append(task.ready_ns)
        yield ns

    arrive(env, of, draw.exponential(mean_ns / (0.7 * count), jobs), draw.exponential(mean_ns, jobs), job)
    env.run()
    load = 0.7 * count
    terms = [load**k / np.prod(range(1, k + 1)) for k in range(count + 1)]
    full = terms[count] / (1 - 0.7)
    waiting = full / (sum(terms[:count]) + full)
    assert np.mean(waits) == pytest.approx(waiting * mean_ns / (count * (1 - 0.7)), rel=0.05)


def test_short_slices_give_processor_sharing() -> None:
    """Programs with short slices take work / (1 - load), whatever the work of the others is.

    The work of the programs varies much more than an exponential.
    """
    env = Environment()
    of = processors(env, 1, SchedulerRules(20))
    draw, jobs = np.random.default_rng(1), 20_000
    took: list[tuple[int, int]] = []

    def job(task: Task, ns: int) -> Steps:
        began_ns = env.now - task.ready_ns
        yield from of.work(task, ns)
        took.append((ns, env.now - began_ns))

    sizes = np.where(draw.random(jobs) < 0.9, 500, 5_500)  # the mean is 1 000
    arrive(env, of, draw.exponential(1_000 / 0.6, jobs), sizes, job)
    env.run()
    for size in (500, 5_500):
        assert np.mean([t for ns, t in took if ns == size]) == pytest.approx(size / 0.4, rel=0.1)


@pytest.mark.parametrize(
    ("count", "nices", "measured_s"),
    [
        (1, (0, 0), (1.501, 1.506)),
        (1, (0, 5), (2.260, 0.749)),
        (2, (0, 0, 0), (1.967, 1.953, 2.027)),
        (2, (0, 0, 5, 5), (3.025, 2.949, 0.999, 1.007)),
    ],
)
def test_busy_loops_share_as_measured(count: int, nices: Sequence[int], measured_s: Sequence[float]) -> None:
    """docs/measurements.md G: the processor time of each loop within 3 (or 4) s, on 6.18 with 250 Hz."""
    env = Environment()
    of = processors(env, count, KERNELS["6.18"].sched.rules(count))
    tasks = []
    for nice in nices:
        task = start(env, of, lambda task: of.work(task, 100 * S), seated=True)
        task.weight = WEIGHTS[nice]
        tasks.append(task)
    wall_s = round(sum(measured_s) / count)
    env.call_at(wall_s * S, 0, env.halt)
    env.run()
    got = [task.ran_ns + (env.now - task.since_ns if task.on_cpu else 0) for task in tasks]
    assert [ns / S for ns in got] == pytest.approx(measured_s, rel=0.04)


def test_average_virtual_time_is_weighted() -> None:
    """A task of weight 2 048 waits at 30, and one of weight 1 024 runs at 0.

    The average is 20, so the lag of the lighter task is 20.
    """
    queue = RunQueue(SchedulerRules(100, keeps_lag=True))
    heavy, light = (Environment().task(name) for name in ("heavy", "light"))
    heavy.weight, heavy.virtual_ns = 2_048, 30
    queue.keep(heavy, 0)
    light.virtual_ns = 0
    assert queue.lag_of(light, 0) == 20


@pytest.mark.parametrize(("since_ms", "over_ms"), [(0, 4), (1, 4), (2, 8), (5, 8), (6, 12)])
def test_slice_that_ends_on_a_tick_is_over_then(since_ms: int, over_ms: int) -> None:
    """A slice of 3 ms that ends at 4 or 8 ms is over at this tick of HZ 250."""
    assert SchedulerRules(3 * MS, tick_ns=4 * MS).over_ns(since_ms * MS) == over_ms * MS


@pytest.mark.parametrize(
    ("weight", "was_ns", "is_ns"),
    [(1_024, 1_300, 1_300), (1_024, 1_301, 1_300), (512, 1_600, 1_600), (512, 9_000, 1_600)],
)
def test_cfs_limits_how_far_a_waking_task_is_ahead(weight: int, was_ns: int, is_ns: int) -> None:
    """CFS lets a waking task be ahead of the queue by two slices and two ticks.

    Slices have 100 ns and ticks 50, so a task of weight 1 024 is at most 300 ahead of a queue at 1 000.
    Half the weight gives twice the virtual time.
    """
    queue = RunQueue(SchedulerRules(100, tick_ns=50))
    running, task = (Environment().task(name) for name in ("running", "late"))
    running.virtual_ns = 1_000
    task.weight, task.virtual_ns = weight, was_ns
    queue.wakes(task, running, 0)
    assert (queue.floor_ns, task.virtual_ns) == (1_000, is_ns)


def test_task_that_gave_way_does_not_preempt() -> None:
    """A task that gave way does not preempt the running task, however far it is behind."""
    queue = RunQueue(SchedulerRules(100))
    waiting, running = (Environment().task(name) for name in ("waiting", "running"))
    waiting.virtual_ns, running.virtual_ns = 0, 10_000
    queue.keep(waiting, 5)
    assert not queue.takes_over(running)


def test_moved_task_keeps_its_distance_from_the_queue() -> None:
    """A queue at 1 000 gives a task at 1 030 to a queue at 50, where the task is at 80."""
    one, other = RunQueue(SchedulerRules(100)), RunQueue(SchedulerRules(100))
    one.floor_ns, other.floor_ns = 1_000, 50
    task = Environment().task("moved")
    task.virtual_ns = 1_030
    one.keep(task, 0)
    one.give(other)
    assert (len(one), len(other), task.virtual_ns) == (0, 1, 80)


@given(st.lists(st.tuples(st.integers(0, 99), st.booleans()), min_size=1, max_size=12))
def test_first_task_that_is_not_bound_is_moved(tasks: list[tuple[int, bool]]) -> None:
    """Moved tasks come in order; the other tasks of the queue keep their order."""
    env = Environment()
    one, other = RunQueue(SchedulerRules(100)), RunQueue(SchedulerRules(100))
    expected: list[tuple[int, int, Task]] = []
    for number, (virtual_ns, bound) in enumerate(tasks):
        task = env.task(f"task {number}")
        task.virtual_ns, task.bound = virtual_ns, 0 if bound else -1
        one.keep(task, 0)
        expected.append((virtual_ns, number, task))
    expected.sort(key=lambda of: of[:2])
    free = [task for *_, task in expected if task.bound < 0]
    assert one.movable == len(free)
    moved = free[: len(free) // 2]
    for _ in moved:
        one.give(other)
    assert (one.movable, other.movable) == (len(free) - len(moved), len(moved))
    assert [other.pop() for _ in moved] == moved
    left = [task for *_, task in expected if task not in moved]
    assert [one.pop() for _ in left] == left


def test_waking_task_gets_its_last_processor_if_idle() -> None:
    """The second task gets the second processor again, although the first one is idle, too."""
    env = Environment()
    of = processors(env, 2)
    had: list[int] = []

    def body(ns: int) -> Callable[[Task], Steps]:
        def run(task: Task) -> Steps:
            yield 5
            yield from sleep(task, ns, "a pause")
            had.append(task.cpu)

        return run

    start(env, of, body(100))
    start(env, of, body(50))
    env.run()
    assert had == [1, 0]


def test_idle_processor_keeps_the_virtual_time_of_its_last_task() -> None:
    """A task that gets an idle processor starts at the virtual time of the last task there.

    * 0: the first task runs alone until 100, which is its virtual time then.
    * 100: the second task starts, at virtual time 100.
    * 150: the first task wakes, 50 behind, and preempts the second one (``granularity_ns`` is 40).
    """
    env = Environment()
    of = processors(env, 1, SchedulerRules(10**6, ahead_ns=1_000, granularity_ns=40))
    ended: list[int] = []

    def first(task: Task) -> Steps:
        yield from of.work(task, 100)
        yield from sleep(task, 50, "a pause")
        yield from of.work(task, 10)
        ended.append(env.now)

    start(env, of, first)
    start(env, of, lambda task: of.work(task, 500), at=100)
    env.run()
    assert ended == [160]


@pytest.mark.parametrize("kernel", ["6.18", "6.1"])
def test_task_that_ran_alone_gets_its_full_share_later(kernel: str) -> None:
    """A busy loop that had a processor alone for 10 s gets its share when other tasks come.

    From 10 s on three loops share two processors, so one must be moved.  Each gets two thirds of a processor,
    to an eighth.
    """
    env = Environment()
    of = processors(env, 2, KERNELS[kernel].sched.rules(2))

    def late(task: Task) -> Steps:
        yield from of.work(task, MS)
        yield from sleep(task, 10 * S, "a pause")
        yield from of.work(task, 100 * S)

    bodies = [
        (lambda task: of.work(task, 100 * S), 0),
        (late, 1),
        (lambda task: of.work(task, 100 * S), 5 * S),
    ]
    tasks = [start(env, of, body, at) for body, at in bodies]
    before: list[int] = []
    env.call_at(10 * S + 2 * MS, 0, lambda: before.extend(of.ran_ns(task) for task in tasks))
    env.call_at(13 * S, 0, env.halt)
    env.run()
    got = [(of.ran_ns(task) - ran_ns) / S for task, ran_ns in zip(tasks, before, strict=True)]
    assert got == [pytest.approx(2, rel=0.125)] * 3


def test_interrupt_of_a_processor_charges_the_task_that_runs_there() -> None:
    """A kernel thread is charged like any task, an idle processor charges none; no random number is drawn."""
    env = Environment()
    of = Processors(env, 2, ENDLESS, pytest.fail)

    def body(_: Task) -> Steps:
        yield 10 * MS

    kernel, process = start(env, of, body), start(env, of, body, seated=True)
    env.call_at(5 * MS, URGENT, lambda: of.interrupt(500, kernel.cpu))
    env.call_at(11 * MS, URGENT, lambda: of.interrupt(70, process.cpu))
    env.run()
    assert (kernel.interrupted_ns, process.interrupted_ns) == (500, 0)


@pytest.mark.parametrize("scheduled", [False, True])
def test_work_takes_the_time_that_a_task_owes(scheduled: bool) -> None:
    """A task that owes 30 ns to interrupts works for 130 ns in place of 100, once."""
    env = Environment()
    of, ends = processors(env, 1), list[int]()

    def body(task: Task) -> Steps:
        task.owed_ns = 30
        for _ in range(2):
            yield work(task, 100)
            ends.append(env.now)

    if scheduled:
        start(env, of, body)
    else:
        task = env.task("alone")
        env.start(task, body(task))
    env.run()
    assert ends == [130, 230]


def test_new_tasks_spread_over_the_nodes() -> None:
    """Five processors on nodes of two: each new task begins where the most processors are idle."""
    env = Environment()
    of = Processors(env, 5, ENDLESS, lambda: 0.0, 2)

    def body(_: Task) -> Steps:
        yield 100

    tasks = [start(env, of, body, at) for at in range(5)]
    env.run()
    assert [task.cpu for task in tasks] == [0, 2, 1, 3, 4]


def runs(ns: int) -> Callable[[Task], Steps]:
    """Return the steps of a task that runs for *ns*."""

    def body(_: Task) -> Steps:
        yield ns

    return body


def runs_and_sleeps(task: Task) -> Steps:
    """Run for 10 ns, sleep for 40, and run again."""
    yield 10
    yield from sleep(task, 40, "a pause")
    yield 10


@pytest.mark.parametrize(("last_is_busy", "got"), [(False, 3), (True, 0)])
def test_woken_task_stays_on_its_node_if_it_can(last_is_busy: bool, got: int) -> None:
    """A task of processor 2 wakes, and another task runs there; processor 3 is idle or runs a bound task."""
    env = Environment()
    of = Processors(env, 4, ENDLESS, lambda: 0.0, 2)
    start(env, of, runs(30))
    woken = start(env, of, runs_and_sleeps, 1)
    other = start(env, of, runs(100), 15)
    if last_is_busy:
        bound = of.adopt(env.task("bound"))
        bound.bound = 3
        env.start(bound, runs(100)(bound), 20)
    env.run()
    assert (other.cpu, woken.cpu) == (2, got)


def test_woken_task_of_the_first_processor_stays_on_its_node() -> None:
    """A bound task runs on processor 0 when its last task wakes; the other node has more idle processors."""
    env = Environment()
    of = Processors(env, 4, ENDLESS, lambda: 0.0, 2)
    woken = start(env, of, runs_and_sleeps)
    bound = of.adopt(env.task("bound"))
    bound.bound = 0
    env.start(bound, runs(100)(bound), 20)
    env.run()
    assert woken.cpu == 1


def test_programs_of_a_machine_run_on_both_nodes() -> None:
    """Two processes of fs_mark on two nodes of two processors: each node has one."""
    (case,) = parse(
        """
title = "two processes"
[scenario]
machine.like = "server-2024"
machine.processors = { count = 4, nodes = 2 }
kernel.like = "6.17"
filesystem.like = "xfs"
workload.command = "fs_mark -S0 -n 50 -s 0 -k -d /a/0 -d /a/1"
""",
        "x.toml",
    ).cases
    machine = build(case.scenario, 1)
    machine.run()
    processes = [task for task in machine.processors.tasks if "process" in task.name]
    assert {task.cpu // 2 for task in processes} == {0, 1}
