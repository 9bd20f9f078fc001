"""The processes of a program: forks, waits, and what a fork begins with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from wbsim.models.syscalls.family import Family
from wbsim.models.syscalls.process import SystemCalls
from wbsim.models.throttling.io_less import PausedDirtier
from wbsim.models.time_accounting import Spent
from wbsim.models.vfs.spec import WriteCosts
from wbsim.sim.engine import Environment, Steps


def family(count: int) -> tuple[Environment, Family]:
    """Return a family of *count* children whose throttle is asked every four pages."""
    env = Environment()

    def thread(name: str) -> Any:
        return SimpleNamespace(task=env.task(name), spent=Spent())

    parts: Any = SimpleNamespace(env=env, thread=thread, process=thread, variation=lambda name: None)
    throttle: Any = SimpleNamespace(dirtier=PausedDirtier, poll_pages=lambda wb, dirtier: 4)
    unused: Any = SimpleNamespace()
    costs = WriteCosts(call_ns=0, page_ns=0, close_ns=0, mark_ns=0)
    return env, Family(parts, SystemCalls(env, unused, costs, throttle, unused, 1), count)


def test_each_fork_begins_with_an_empty_account() -> None:
    """The child dirties three pages each time, and may dirty one more; the next fork may dirty four."""
    env, of = family(1)
    (child,) = of.children
    wb: Any = SimpleNamespace(account_dirtied=lambda pages: None)
    rooms: list[int] = []

    def dirties() -> Steps:
        rooms.append(child.room(wb))
        child.account(wb, 3)
        rooms.append(child.room(wb))
        yield 10

    def parent() -> Steps:
        for _ in range(2):
            yield from of.fork(child, dirties(), 5)
            yield from of.wait()

    env.start(of.parent.task, parent())
    env.run()
    assert rooms == [4, 1, 4, 1]
    assert (env.now, of.parent.spent.fork, of.live_count) == (2 * 15, 10, 0)


def test_the_parent_waits_for_the_last_child() -> None:
    """Two children begin 5 and 15 ns after the parent, the second 7 ns after its fork, and run for 20 ns."""
    env, of = family(2)
    began: list[int] = []

    def child() -> Steps:
        began.append(env.now)
        yield 20

    def parent() -> Steps:
        yield from of.fork(of.children[0], child(), 5)
        yield from of.fork(of.children[1], child(), 10, 7)
        assert of.live_count == 2
        yield from of.wait()
        yield of.prints(3)

    env.start(of.parent.task, parent())
    env.run()
    assert began == [5, 22]
    assert (env.now, of.parent.spent.fork) == (42 + 3, 18)
