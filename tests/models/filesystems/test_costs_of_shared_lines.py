"""Cache lines that all threads write, against queues in which each visit is an event."""

from __future__ import annotations

from functools import partial
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wbsim.models.filesystems.costs import SharedLines
from wbsim.models.filesystems.files import PagedFile
from wbsim.sim.engine import Environment, Steps, Task
from wbsim.sim.streams import Streams
from wbsim.sim.sync import HandOff, SpinLock

OWN_NS, FAR_NS = 10, 200


def task_on(env: Environment, cpu: int) -> Task:
    """Return a task that runs on processor *cpu*."""
    task = env.task(f"task on {cpu}")
    task.cpu = cpu
    return task


class Lines:
    """Two lines, of four and of three writes, and two tasks.

    Each task has its own processor and its own file; with *same_file* both have the same file.
    """

    def __init__(self, *, same_file: bool = False) -> None:
        self.env = Environment()
        self.of = SharedLines(self.env, (4, 3), OWN_NS, FAR_NS)
        self.tasks = [task_on(self.env, cpu) for cpu in range(2)]
        files = [PagedFile(0, True), PagedFile(0, True)]
        self.files = files[:1] * 2 if same_file else files
        self.added: list[int] = []

    def operate(self, *operations: tuple[int, int], lasts_ns: int = 0) -> list[int]:
        """Return what the lines add to the *operations*: the time of each, and its task."""

        def begin(number: int) -> None:
            self.added.append(self.of.operation_ns(self.tasks[number], self.files[number], lasts_ns))

        for when_ns, number in operations:
            self.env.call_at(when_ns, 0, partial(begin, number))
        self.env.run()
        return self.added


def test_a_task_has_its_lines_after_the_first_operation() -> None:
    """The first operation fetches each line from another processor, once."""
    assert Lines().operate((0, 0), (1_000, 0), (2_000, 0)) == [2 * 190, 0, 0]


def test_free_line_is_fetched_once_in_an_operation() -> None:
    """The other task wrote both lines last, and its operation is over."""
    assert Lines().operate((0, 0), (1_000, 1), (2_000, 0)) == [2 * 190] * 3


def test_busy_line_is_fetched_for_each_write() -> None:
    """Two tasks begin one after the other.

    t      first task                        second task
    0      has line 0 until 230
    100                                      waits for line 0
    230    has line 1 until 450              has line 0 until 230 + 4 * 200 = 1 030
    1 030                                    has line 1, which is free, until 1 250
    """
    assert Lines().operate((0, 0), (100, 1)) == [380, 1_250 - 100 - 70]


def test_a_task_waits_for_each_line_in_turn() -> None:
    """The second line is slow, so the second task finds the first line free and the second line busy."""
    lines = Lines()
    lines.of = SharedLines(lines.env, (1, 9), OWN_NS, FAR_NS)
    busy_until_ns = 200 + 200 + 8 * 10
    assert lines.operate((0, 0), (250, 1))[1] == busy_until_ns + 9 * 200 - 250 - 10 * OWN_NS


def test_free_line_may_move_between_two_writes() -> None:
    """The other task began two operations in the 1 000 ns since the first operation of the first task.

    An operation of 500 ns meets one of them on average, so a line moves between two writes with 1 - 1/e.
    """
    later = (3 + 2) * (FAR_NS - OWN_NS) * (1 - exp(-1))
    assert Lines().operate((0, 0), (300, 1), (600, 1), (1_000, 0), lasts_ns=500)[3] == pytest.approx(
        2 * 190 + later, abs=2
    )


def test_lines_of_a_task_alone_stay_during_long_operations() -> None:
    assert Lines().operate((0, 0), (1_000, 0), (2_000, 0), lasts_ns=900) == [380, 0, 0]


def test_operations_on_one_file_move_no_line_between_writes() -> None:
    """The operations exclude each other, so each line is fetched once for an operation."""
    lines = Lines(same_file=True)
    assert lines.operate((0, 0), (1_000, 1), (2_000, 1), (3_000, 0), lasts_ns=500) == [380, 380, 0, 380]


def written_one_by_one(users: int, writes: int, lasts_ns: int) -> float:
    """Return how often a line moves in an operation, if each write to the line is an event.

    Users begin operations of *lasts_ns* one after another; the writes are evenly apart.
    """
    env = Environment()
    owner, moves, operations = [-1], [0], 400
    random = Streams(1).generator("work")

    def body(task: Task) -> Steps:
        for _ in range(operations):
            yield int(random.exponential(lasts_ns))
            for _ in range(writes):
                moves[0] += owner[0] != task.cpu
                owner[0] = task.cpu
                yield lasts_ns // writes

    for number in range(users):
        task = task_on(env, number)
        env.start(task, body(task))
    env.run()
    return moves[0] / (users * operations)


def moved_at_once(users: int, writes: int, lasts_ns: int) -> float:
    """Return how often a line moves in an operation of `SharedLines`.

    A transfer takes 1 000 ns, and a write on the line's own processor takes no time.
    """
    env = Environment()
    of, operations, moved = SharedLines(env, (writes,), 0, 1_000), 400, [0]
    random = Streams(1).generator("work")

    def body(task: Task) -> Steps:
        file = PagedFile(0, True)
        for _ in range(operations):
            yield int(random.exponential(lasts_ns))
            moved[0] += of.operation_ns(task, file, lasts_ns)
            yield lasts_ns

    for number in range(users):
        task = task_on(env, number)
        env.start(task, body(task))
    env.run()
    return moved[0] / 1_000 / (users * operations)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 16), st.integers(1, 6))
def test_lines_move_as_with_an_event_for_each_write(users: int, writes: int) -> None:
    """Few users are no Poisson stream: with two to five users a line moves up to a quarter too seldom."""
    lasts_ns = 10_000_000
    expected = written_one_by_one(users, writes, lasts_ns)
    bound = 0.25 if 1 < users < 6 else 0.1
    assert moved_at_once(users, writes, lasts_ns) == pytest.approx(expected, rel=bound, abs=0.1)


def queued(users: int, writes: tuple[int, ...], far_ns: int, work_ns: float) -> float:
    """Return the time of an operation at the lines, in a closed queue in which each visit is an event.

    A user works for a random time, then visits one line after another.
    """
    env = Environment()
    lines = [SpinLock(env, f"line {number}", HandOff(0, 0)) for number in range(len(writes))]
    random = Streams(1).generator("work")
    operations, spent = 300, [0]

    def body(task: Task) -> Steps:
        for _ in range(operations):
            yield int(random.exponential(work_ns))
            asked_ns = env.now
            for line, times in zip(lines, writes, strict=True):
                yield line.section(task, times * far_ns)
            spent[0] += env.now - asked_ns

    for number in range(users):
        task = task_on(env, number)
        env.start(task, body(task))
    env.run()
    return spent[0] / (users * operations)


def reserved(users: int, writes: tuple[int, ...], far_ns: int, work_ns: float) -> float:
    """Return the time of an operation at the lines, from `SharedLines`, with writes that take *far_ns*."""
    env = Environment()
    of = SharedLines(env, writes, far_ns, far_ns)
    random = Streams(1).generator("work")
    operations, spent = 300, [0]

    def body(task: Task) -> Steps:
        file = PagedFile(0, True)
        for _ in range(operations):
            yield int(random.exponential(work_ns))
            lines_ns = of.operation_ns(task, file, 0) + sum(writes) * far_ns
            spent[0] += lines_ns
            yield lines_ns

    for number in range(users):
        task = task_on(env, number)
        env.start(task, body(task))
    env.run()
    return spent[0] / (users * operations)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 12), st.lists(st.integers(1, 8), min_size=1, max_size=4), st.integers(100, 400),
    st.floats(0.5, 10.0),
)  # fmt: skip
def test_shared_lines_take_as_long_as_a_closed_queue(
    users: int, writes: list[int], far_ns: int, work: float
) -> None:
    """The share of work is any number."""
    given_all = users, tuple(writes), far_ns, work * far_ns * sum(writes)
    assert reserved(*given_all) == pytest.approx(queued(*given_all), rel=0.02)
