"""Calls begin and end at their instants, and have only their own waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wbsim.models.syscalls.latency import Latencies
from wbsim.models.syscalls.timing import TimedCaller
from wbsim.models.time_accounting import Spent
from wbsim.sim.engine import Environment
from wbsim.sim.streams import Draws
from wbsim.sim.sync import spins


def caller() -> TimedCaller:
    """Return a process at 1 000 ns."""
    env = Environment()
    env.now = 1_000
    thread: Any = SimpleNamespace(task=env.task("p"), spent=Spent())
    return TimedCaller(env, thread, Draws(np.ones), Latencies())


def waits(of: TimedCaller, ns: int, lock: str) -> None:
    """Let *ns* pass, in which the process spins for *lock*."""
    of._env.now += ns
    spins(of.task, lock, f"lock {lock}", ns)


@pytest.mark.parametrize("by", ["begins", "began"])
def test_waits_before_a_call_are_not_its_own(by: str) -> None:
    """The process waits for a before the call, and for b in it; in the next call for c and longer for d."""
    of = caller()
    waits(of, 70, "a")
    if by == "begins":
        of.begins()
    else:
        of.began(0)
    waits(of, 20, "b")
    of.end_call(of.latencies.write)
    assert of.latencies.write.slowest().waits_ns == {"lock b": 20}
    waits(of, 3, "c")
    waits(of, 5, "d")
    of.end_call(of.latencies.fsync)
    assert of.latencies.fsync.slowest().waits_ns == {"lock d": 8}
    assert (of.latencies.write.total_ns, of.latencies.fsync.total_ns) == (20, 8)


def test_a_call_has_no_work_of_the_program() -> None:
    """The program works for 30 + 12 ns first, and owes 9 to interrupts, which the call has."""
    of = caller()
    of.task.owed_ns = 9
    of.works(30, 12)
    of.begins()
    assert of.lead_ns == 51
    of._env.now += 51 + 100
    of.leaves_out(40)
    of.end_call(of.latencies.write)
    assert of.latencies.write.total_ns == 9 + 100 - 40
    of.begins()
    of._env.now += 7
    of.end_call(of.latencies.close)
    assert (of.lead_ns, of.latencies.close.total_ns) == (0, 7), "the work belongs to one call"


def test_the_next_call_begins_where_the_last_one_ended() -> None:
    """One wait covers 60 ns of a call and 40 of the next one."""
    of = caller()
    of.began(25)
    of._env.now += 100
    of.end_call(of.latencies.creat, 40)
    of.end_call(of.latencies.write)
    assert (of.latencies.creat.total_ns, of.latencies.write.total_ns) == (25 + 60, 40)


def test_a_return_ends_one_call() -> None:
    """Only the call that ends at the return is counted, once."""
    of = caller()
    assert of.returns() is None
    assert of.latencies.by_call() == {}
    of.began(10)
    of.returning = of.latencies.stat
    assert of.returns() is None
    of._env.now += 5
    assert of.returns() is None
    assert (of.latencies.stat.count, of.latencies.stat.total_ns) == (1, 10)
