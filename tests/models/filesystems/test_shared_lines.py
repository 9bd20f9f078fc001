"""Lines that all write, met in compiled steps: against queues of which each visit is an event."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wbsim.models.filesystems.shared_lines import SharedLines
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.streams import Streams
from wbsim.sim.sync import HandOff, SpinLock

OWN_NS = 10


def settle(of: SharedLines, env: Environment, users: int, work_ns: float) -> float:
    """What an operation of *work_ns* takes on the lines beside, once so many users know of each other."""
    times = [0.0] * users

    def body() -> Steps:
        for _ in range(40):
            for user in range(users):
                times[user] = of.operation_ns(user)
                of.used(user, 1_000, round(1_000 * (work_ns + times[user])))
            yield 1

    env.start(env.task("all"), body())
    env.run()
    return sum(times) / users


def queued(users: int, transfers: tuple[int, ...], far_ns: int, work_ns: float) -> float:
    """The same of a closed queue: each transfer waits for its line, with a part of the work, of random
    length, in front.
    """
    env = Environment()
    lines = [SpinLock(env, f"line {number}", HandOff(0, 0)) for number in range(len(transfers))]
    random = Streams(1).generator("work")
    visits = [line for line, times in zip(lines, transfers, strict=True) for _ in range(times)]
    operations, spent = 300, [0]

    def body(task: object) -> Steps:
        for _ in range(operations):
            for number in random.permutation(len(visits)):
                yield max(int(random.exponential(work_ns / len(visits))), 1)
                asked_ns = env.now
                yield visits[number].section(task, far_ns)  # type: ignore[arg-type]
                spent[0] += env.now - asked_ns

    for number in range(users):
        task = env.task(str(number))
        task.cpu = number
        env.start(task, body(task))
    env.run()
    return spent[0] / (users * operations)


@settings(max_examples=12, deadline=None)
@given(
    st.integers(2, 12), st.lists(st.integers(1, 8), min_size=1, max_size=4), st.integers(100, 400),
    st.floats(1.0, 10.0),
)  # fmt: skip
def test_they_are_a_closed_queue(users: int, transfers: list[int], far_ns: int, work: float) -> None:
    """The throughput within a quarter, if an operation works for half again as long as it has lines, or
    longer; within three tenths, if for as long (29 % at most: eight users of three lines, one transfer each).
    The lines come from another processor throughout.
    """
    work_ns = work * far_ns * sum(transfers)
    env = Environment()
    of = SharedLines(env, tuple(transfers), far_ns, far_ns, processors=users)
    on_lines_ns = settle(of, env, users, work_ns) + far_ns * sum(transfers)
    wanted_ns = queued(users, tuple(transfers), far_ns, work_ns)
    assert work_ns + on_lines_ns == pytest.approx(work_ns + wanted_ns, rel=0.25 if work >= 1.5 else 0.3)


def test_alone_an_operation_takes_what_it_takes() -> None:
    """Nobody else, nobody any more, and others that do nothing."""
    env = Environment()
    of = SharedLines(env, (4, 3), OWN_NS, 200, processors=8)
    assert of.operation_ns("a") == 0
    of.used("a", 10, 1_000)
    assert of.operation_ns("a") == 0
    assert of.operation_ns("b") > 0
    of.used("b", 0, 1_000)
    assert of.operation_ns("a") == 0


def test_who_has_ended_is_in_nobody_s_way() -> None:
    """What is known of one holds for as long as it said, and no longer."""
    env = Environment()
    of = SharedLines(env, (4, 3), OWN_NS, 200, processors=8)
    of.operation_ns("a")
    of.used("a", 10, 1_000)
    seen = []
    for at_ns in (1_000, 1_001):
        env.call_at(at_ns, 0, lambda: seen.append(of.operation_ns("b")))
    env.run()
    assert seen[0] > 0 == seen[1]


def test_a_newcomer_finds_every_line_gone() -> None:
    """One of eight processors does an operation a microsecond: the seven transfers come from the others with
    seven eighths, and nobody is before it; what it has done itself counts the next time: half of them do.
    """
    env = Environment()
    of = SharedLines(env, (4, 3), OWN_NS, 210, processors=8)
    of.operation_ns("a")
    of.used("a", 1_000, 1_000_000)
    assert of.operation_ns("b") == int(7 * 200 * 7 / 8)
    of.used("b", 1_000, 1_000_000)
    again_ns = of.operation_ns("b")
    assert again_ns == int(7 * 200 * 7 / 16)
    assert of.operation_ns("a") > again_ns  # b's shares of its time are before it, a's were none


def test_who_comes_waits_for_half_of_a_transfer() -> None:
    """Each does an operation a microsecond. b had all of its lines from a, at 185 each: 0.74 and 0.555 of its
    time, all of it writing. a has half of them from b, at 97.5, and waits for what is left of b's.
    """
    env = Environment()
    of = SharedLines(env, (4, 3), OWN_NS, 210, processors=8)
    for user in "ab":
        of.operation_ns(user)
        of.used(user, 1_000, 1_000_000)
    on_lines_ns = 4 * 97.5 * (1 + 0.74 - 0.37) + 3 * 97.5 * (1 + 0.555 - 0.2775)
    assert of.operation_ns("a") == int(on_lines_ns) - 7 * OWN_NS


def test_who_was_left_alone_is_on_no_line() -> None:
    """A line came from another one before; while nobody else writes, it does not, and a newcomer is as fast
    as ever.
    """
    env = Environment()
    of = SharedLines(env, (4, 3), OWN_NS, 210, processors=8)
    fresh_ns = []
    for others in ([], ["b"]):
        for user in others:
            of.operation_ns(user)
            of.used(user, 1_000, 1_000_000)
        of.operation_ns("a")
        for user in others:
            of.used(user, 0, 0)
        of.operation_ns("a")
        of.used("a", 1_000, 1_000_000)
        fresh_ns.append(of.operation_ns(f"newcomer to {len(others)}"))
    assert fresh_ns[0] == fresh_ns[1] == int(7 * 200 * 7 / 8)


def test_on_one_processor_nothing_comes_from_another() -> None:
    """Two who take turns there."""
    env = Environment()
    of = SharedLines(env, (4, 3), OWN_NS, 210, processors=1)
    of.operation_ns("a")
    of.used("a", 1, 1_000)
    assert of.operation_ns("b") == 0
