"""Locks: exact laws, and the theory of the ticket lock."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.engine import Environment, Steps, Task
from sim.probe import Gauge
from sim.sync import HandOff, LockStat, Mutex, SpinLock

QUEUED, TICKET = HandOff(100, 0), HandOff(100, 110)


@given(
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 300)), min_size=1, max_size=12),
    st.sampled_from([QUEUED, TICKET]),
)
def test_mutual_exclusion_fifo_and_work_conservation(
    arrivals: list[tuple[int, int]], hand_off: HandOff
) -> None:
    """Sections never overlap, are served in order of arrival, and a free lock is taken at once."""
    env = Environment()
    lock = SpinLock(env, "lock", hand_off)
    served: list[tuple[int, int, int]] = []  # arrival, start, end

    def body(task: Task, at_ns: int, hold_ns: int) -> Steps:
        yield at_ns
        arrived = env.now
        yield lock.section(task, hold_ns)
        served.append((arrived, env.now - hold_ns, env.now))

    for at_ns, hold_ns in arrivals:
        task = env.task("t")
        env.start(task, body(task, at_ns, hold_ns))
    env.run()
    assert len(served) == len(arrivals)
    for (_, _, end), (arrived, start, _) in pairwise(served):
        assert start >= end
        assert arrived == start or start >= end + hand_off.line_ns
    assert [arrival for arrival, _, _ in served] == sorted(arrival for arrival, _, _ in served)
    assert lock.stat.hold_ns == sum(hold_ns for _, hold_ns in arrivals)


@pytest.mark.parametrize(("waiters", "ticket_ns"), [(1, 155), (2, 210), (15, 925)])
def test_a_ticket_lock_s_hand_off_grows_and_a_queued_one_s_does_not(waiters: int, ticket_ns: int) -> None:
    """line + per_waiter * k / 2 against a constant."""
    assert TICKET.after(waiters) == ticket_ns
    assert QUEUED.after(waiters) == 100


def test_little_s_law_holds_exactly() -> None:
    """The integral of the number waiting equals the sum of the waits, in whole ns."""
    env = Environment()
    mutex = Mutex(env, "m", wake_ns=0)
    waiting = Gauge(env)
    waits: list[int] = []
    draw = np.random.default_rng(1)

    def body(task: Task) -> Steps:
        for think, hold in draw.integers(1, 400, (200, 2)).tolist():
            yield think
            since = env.now
            waiting.add(1)
            if not mutex.try_acquire(task):
                yield mutex.wait(task)
            waiting.add(-1)
            waits.append(env.now - since)
            yield hold
            mutex.release()

    for _ in range(5):
        task = env.task("t")
        env.start(task, body(task))
    env.run()
    assert sum(waits) > 0
    assert waiting.area == sum(waits)


def speed_up(n: int, think_ns: float, section_ns: float, hand_off: HandOff, seed: int) -> float:
    """Sections per think-and-section time of *n* tasks, simulated."""
    env = Environment()
    lock = SpinLock(env, "lock", hand_off)
    draw = np.random.default_rng(seed)
    sections = 20_000
    done = 0

    def body(task: Task) -> Steps:
        nonlocal done
        while done < sections:
            yield int(draw.exponential(think_ns))
            yield lock.section(task, int(draw.exponential(section_ns)))
            done += 1

    for _ in range(n):
        task = env.task("t")
        env.start(task, body(task))
    env.run()
    return done / env.now


def markov_rate(n: int, think_ns: float, section_ns: float, hand_off: HandOff) -> float:
    """Sections per ns of Boyd-Wickizer's chain: state k holds or waits; mean service with its hand-off."""
    weights = [1.0]
    for k in range(1, n + 1):
        arrival = (n - k + 1) / think_ns
        waiting = k - 1
        service = 1 / (
            section_ns + (hand_off.line_ns + hand_off.per_waiter_ns * waiting / 2 if waiting else 0)
        )
        weights.append(weights[-1] * arrival / service)
    probability = np.array(weights) / sum(weights)
    return float(sum(p * (n - k) / think_ns for k, p in enumerate(probability)))


@pytest.mark.parametrize("n", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("hand_off", [HandOff(0, 0), HandOff(50, 110)], ids=["free", "ticket"])
def test_throughput_meets_the_ticket_lock_chain(n: int, hand_off: HandOff) -> None:
    """The machine repairman with hand-offs, to within 4 standard errors and the chain's own 6 %.

    The chain draws each hand-off anew from the state's rate; the model fixes it at the release.
    """
    rates = [speed_up(n, 4_000, 300, hand_off, seed) for seed in range(5)]
    exact = markov_rate(n, 4_000, 300, hand_off)
    allowed = 4 * stdev(rates) / sqrt(len(rates)) + (0.06 * exact if hand_off.per_waiter_ns else 0)
    assert abs(fmean(rates) - exact) <= allowed


def test_collapse_is_the_ticket_lock_s_alone() -> None:
    """Past the knee, more cores make a ticket lock slower and leave a queued one where it was."""
    ticket = [speed_up(n, 2_000, 300, HandOff(100, 110), 1) for n in (8, 48)]
    queued = [speed_up(n, 2_000, 300, HandOff(100, 0), 1) for n in (8, 48)]
    assert ticket[1] < 0.5 * ticket[0]
    assert queued[1] > 0.95 * queued[0]


def test_a_mutex_is_fair_and_its_waiters_spin_not() -> None:
    """Waiters sleep in order, each woken wake_ns after the release."""
    env = Environment()
    mutex = Mutex(env, "m", wake_ns=70)
    log: list[tuple[str, int]] = []
    tasks = []

    def body(task: Task, at_ns: int) -> Steps:
        yield at_ns
        if not mutex.try_acquire(task):
            yield mutex.wait(task)
        log.append((task.name, env.now))
        yield 1_000
        mutex.release()

    for n, at_ns in enumerate((0, 20, 10)):
        tasks.append(env.task(str(n)))
        env.start(tasks[-1], body(tasks[-1], at_ns))
    env.run()
    assert log == [("0", 0), ("2", 1_070), ("1", 2_140)]
    assert all(task.spin_ns == 0 for task in tasks)


def test_a_lock_s_counters_by_hand() -> None:
    """Held 100 from 0; asked for at 30 and at 60, for 20 and 10, with a hand-off of 5: waits of 75 and 70."""
    env = Environment()
    lock = SpinLock(env, "lock", HandOff(5, 0))
    tasks = [env.task(str(number)) for number in range(3)]
    ends: list[int] = []

    def body(number: int, start_ns: int, hold_ns: int) -> Steps:
        yield start_ns
        yield lock.section(tasks[number], hold_ns, 1)
        ends.append(env.now)

    assert lock.stat == LockStat(0, 0, 0, 0, 0)
    for number, (start_ns, hold_ns) in enumerate(((0, 100), (30, 20), (60, 10))):
        env.start(tasks[number], body(number, start_ns, hold_ns))
    env.run()
    assert ends == [101, 126, 141]
    assert lock.stat == LockStat(
        acquisitions=3, contentions=2, wait_ns=75 + 70, wait_max_ns=75, hold_ns=130, hand_off_ns=10
    )
    assert [task.spin_ns for task in tasks] == [0, 75, 70]
    assert [task.spun_ns for task in tasks] == [{}, {"lock": 75}, {"lock": 70}]
