"""The thread of a flusher: the order of its works, and its exit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.harness import context
from wbsim.models.interfaces import Inode, Work
from wbsim.models.time_accounting import Spent
from wbsim.models.writeback.context_thread import ContextThread
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.units import S


def test_explicit_work_comes_first_and_in_order() -> None:
    """A flusher performs explicit work in order, then the periodic check, then the background check.

    * 3 s: two works are queued and performed.
    * 5 s and 10 s: periodic work, every five seconds while an inode is dirty.
    * 7 s: the background threshold is exceeded; background work is performed.
    """
    env, log = Environment(), []

    def perform(thread: Any, wb: Any, work: Work) -> Steps:
        log.append((env.now // S, work.reason, work.nr_pages if work.reason == "start" else 0))
        yield 1

    over: list[bool] = []
    writeback: Any = SimpleNamespace(perform=perform, over_background=lambda wb: bool(over) and over.pop())
    thread: Any = SimpleNamespace(task=env.task("flusher"), spent=Spent())
    wb = context(env)
    wb.b_dirty.append(Inode(None, wb))  # type: ignore[arg-type]
    parts: Any = SimpleNamespace(env=env, urgent=0)
    flusher = ContextThread(parts, thread, wb, writeback, 5 * S)

    def ask() -> None:
        flusher.queue(Work("start", 1))
        flusher.queue(Work("start", 2))

    env.call_at(3 * S, 0, ask)
    env.call_at(7 * S, 0, lambda: over.append(True))
    env.call_at(7 * S, 1, flusher.wake)
    env.call_at(11 * S, 0, env.halt)
    env.run()
    later = [(5, "periodic", 0), (7, "background", 0), (10, "periodic", 0)]
    assert log == [(3, "start", 1), (3, "start", 2), *later]


def test_idle_thread_exits_at_the_first_tick_after_its_limit() -> None:
    """A thread exits at the first tick at which it has been idle for more than *exits_after_ns*.

    * 5 s: the thread is made for its first work.
    * 15 s: the thread has been idle for 10 s, which is not more than its limit of 10 s.
    * 20 s: the thread has been idle for longer and exits.
    """
    env, alive = Environment(), list[bool]()

    def perform(thread: Any, wb: Any, work: Work) -> Steps:
        yield 1

    writeback: Any = SimpleNamespace(perform=perform, over_background=lambda wb: False)
    thread: Any = SimpleNamespace(task=env.task("flusher"), spent=Spent())
    parts: Any = SimpleNamespace(env=env, urgent=0)
    flusher = ContextThread(parts, thread, context(env), writeback, 5 * S, 10 * S)
    env.call_at(5 * S, 1, lambda: flusher.queue(Work("start", 1)))
    for at in (4, 6, 16, 21):
        env.call_at(at * S, 1, lambda: alive.append(flusher.alive))
    env.call_at(22 * S, 0, env.halt)
    env.run()
    assert alive == [False, True, True, False]
