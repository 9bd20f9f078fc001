"""Processors: who runs, and whom interrupts take time from."""

from __future__ import annotations

import pytest

from sim.cpu import Processors
from sim.engine import Environment, Steps, Task
from sim.units import MS


@pytest.mark.parametrize(("processors", "expected_ms"), [(1, 40), (2, 20), (4, 10), (8, 10)])
def test_processors_share_out_the_work(processors: int, expected_ms: int) -> None:
    """Four tasks of 10 ms each, on fewer processors, take turns and lose no time."""
    env = Environment()
    cpus = Processors(env, processors, 2 * MS, lambda: 0.0)

    def body(task: Task) -> Steps:
        if (ready := cpus.enter(task)) is not None:
            yield ready
        for _ in range(10):
            yield 1 * MS
            if (ready := cpus.reschedule(task)) is not None:
                yield ready
        cpus.leave(task)

    for n in range(4):
        task = env.task(str(n))
        env.start(task, body(task))
    env.run()
    assert env.now == expected_ms * MS


def test_an_interrupt_charges_whom_it_hits() -> None:
    """The running task owes the time; an idle processor's time is nobody's."""
    env = Environment()
    where = [0.0]
    cpus = Processors(env, 2, MS, lambda: where[0])
    task = env.task("t")
    cpus.enter(task)
    cpus.interrupt(500)
    where[0] = 0.9
    cpus.interrupt(500)
    assert (task.owed_ns, task.system_ns) == (500, 500)


def test_who_slept_waits_for_a_processor_again() -> None:
    """One processor: the first sleeps from 0 to 10 and wants it back while the second has it until 25."""
    env = Environment()
    processors = Processors(env, 1, 1_000, lambda: 0.0)
    log: list[tuple[int, str]] = []
    first, second = env.task("first"), env.task("second")

    def one() -> Steps:
        assert processors.enter(first) is None
        yield from processors.sleep(first, 10)
        log.append((env.now, "first"))
        processors.leave(first)

    def two() -> Steps:
        yield 1
        assert processors.enter(second) is None
        yield 24
        log.append((env.now, "second"))
        processors.leave(second)

    env.start(first, one())
    env.start(second, two())
    env.run()
    assert log == [(25, "second"), (25, "first")]
