"""Whose turn it is at a group's lock and at those of its files, transaction by transaction."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from models.filesystems.turns import NO_ROW, Turns, take_file


def ends(turns: Turns, *rows: int, at: int = 0) -> list[int]:
    """When the workers of these rows are through, if nobody comes."""
    return [turns.ends_ns(row, at) for row in rows]


def held(turns: Turns, instants: range, group: int = 0) -> list[int]:
    """At which of these the group's lock is somebody's."""
    return [now for now in instants if turns.held(group, now)]


def test_a_worker_alone_takes_its_own_time() -> None:
    """Three transactions of 40 and 10 from 100 on; the group's lock is held in the last 10 of each."""
    turns = Turns(2, 1, 5)
    turns.begin(0, 1, 100, 3, 40, 10)
    assert ends(turns, 0, at=100) == [250]
    assert held(turns, range(100, 260), 1) == [*range(140, 150), *range(190, 200), *range(240, 250)]
    assert not held(turns, range(100, 260), 0)
    assert ends(turns, 0, at=250) == [250]


def test_who_finds_the_group_locked_is_woken_as_its_owner() -> None:
    """Two workers from 0 on, a transaction each: the second wants the lock at 12, has it at 20 and goes on at
    25; who asks at 22 to have it for 8 wakes at 40, and who asks at 48 has it at once.
    """
    turns = Turns(1, 2, 5)
    turns.begin(0, 0, 0, 1, 10, 10)
    turns.begin(1, 0, 0, 1, 12, 10)
    turns.held(0, 22)
    assert ends(turns, 0, 1, at=22) == [20, 35]
    assert turns.hold(0, 22, 8) == 48
    assert turns.hold(0, 48, 3) == 51


def test_who_comes_from_behind_has_the_lock_where_nobody_else_has() -> None:
    """It is held from 100 to 200 and from 300 to 350. For 60 from 50 on there is no room before 200; for 100
    from 205 on, none before 350, and for 40, at 60 or at 205, at once.
    """
    cases = [(50, 60, 265), (205, 100, 455), (60, 40, 100), (205, 40, 245), (120, 40, 245)]
    for asks_ns, length_ns, until_ns in cases:
        turns = Turns(1, 1, 5)
        turns.hold(0, 100, 100)
        turns.hold(0, 300, 50)
        assert not turns.held(0, 99)
        assert turns.hold(0, asks_ns, length_ns) == until_ns
        assert turns.held(0, until_ns - 1)
        assert turns.held(0, 100)
        assert turns.held(0, 349)


def test_what_is_long_past_is_forgotten() -> None:
    """The older half of 512 stretches; what comes after them is kept apart all the same."""
    turns = Turns(1, 1, 0)
    for number in range(513):
        assert turns.hold(0, 10 * number, 5) == 10 * number + 5
    assert not turns.held(0, 2_550)
    assert turns.held(0, 2_560)
    assert turns.hold(0, 5_116, 2) == 5_118
    assert turns.hold(0, 3, 4) == 7
    assert turns.locks.counts.tolist() == [259]
    assert held(turns, range(2_558, 2_567)) == [*range(2_560, 2_565)]


def test_a_flusher_waits_for_its_file_and_then_the_worker_is_woken() -> None:
    """A worker is in its first transaction of 50 at 30: the flusher is given the inode's lock at 50 and wakes
    at 55; it has it for 25, and the worker begins again at 85.
    """
    turns = Turns(1, 1, 5)
    turns.begin(0, 0, 0, 2, 40, 10)
    assert turns.keep_file(0, 30, 25) == 55
    assert ends(turns, 0, at=85) == [135]


def test_a_flusher_that_is_back_before_the_worker_is_awake_has_the_file_again() -> None:
    """From 0 to 40; at 43, when the worker sleeps until 45, and then not again before 100."""
    turns = Turns(1, 1, 5)
    assert turns.keep_file(NO_ROW, 7, 40) == 7
    turns.begin(0, 0, 0, 2, 30, 0)
    assert turns.keep_file(0, 0, 40) == 0
    assert turns.keep_file(0, 43, 40) == 43
    assert ends(turns, 0, at=83) == [83 + 5 + 60]
    assert turns.keep_file(0, 100, 10) == 118 + 5


def test_while_a_flusher_has_the_file_its_worker_asks_for_nothing() -> None:
    """It is through with its first transaction at 20, whose group it would ask for again at 30."""
    turns = Turns(1, 1, 0)
    turns.begin(0, 0, 0, 2, 10, 10)
    assert take_file(turns.locks, 0, 20) == 20
    assert not held(turns, range(20, 100))


def test_a_flusher_that_waits_lets_others_have_the_group() -> None:
    """The flusher has the inode's lock at 50, when the group's is given to a worker that asked at 45."""
    turns = Turns(1, 2, 5)
    turns.begin(0, 0, 0, 2, 40, 10)
    turns.begin(1, 0, 0, 1, 45, 10)
    assert turns.keep_file(0, 30, 1) == 55
    assert ends(turns, 1, at=60) == [65]


def test_a_flusher_of_another_file_only_keeps_the_group() -> None:
    """It holds the group's lock from 0 to 60: the worker waits for that in the midst of its transaction, and
    is woken 5 later.
    """
    turns = Turns(1, 1, 5)
    turns.begin(0, 0, 0, 1, 40, 10)
    turns.hold(0, 0, 60)
    assert turns.keep_file(NO_ROW, 20, 9) == 20
    assert ends(turns, 0, at=60) == [75]


def test_without_a_group_s_part_workers_are_no_concern_of_each_other() -> None:
    """No reverse mapping: ten workers take as long as one, and the group's lock is free throughout."""
    turns = Turns(1, 10, 5)
    for row in range(10):
        turns.begin(row, 0, 0, 4, 25, 0)
    assert not held(turns, range(0, 110, 5))
    assert ends(turns, *range(10), at=110) == [100] * 10


class Reference:
    """The same, stupidly: a transaction is a list of instants, and everybody asks in order of time."""

    def __init__(self, wake_ns: int, workers: Sequence[tuple[int, int, int, int]]) -> None:
        self.held_until = 0
        self.ends = [0] * len(workers)
        asks = [(begins + alone, number) for number, (begins, _, alone, _) in enumerate(workers)]
        left = [ranges for _, ranges, _, _ in workers]
        while asks:
            asks.sort()
            when, number = asks.pop(0)
            _, _, alone, both = workers[number]
            end = when
            if both:
                end = (when if when >= self.held_until else self.held_until + wake_ns) + both
                self.held_until = end
            self.ends[number] = end
            left[number] -= 1
            if left[number]:
                asks.append((end + alone, number))


WORKER = st.tuples(st.integers(0, 50), st.integers(1, 5), st.integers(0, 30), st.integers(0, 30))


@given(st.integers(0, 10), st.lists(WORKER, min_size=1, max_size=7), st.lists(st.integers(1, 40), max_size=9))
def test_it_is_what_asking_in_order_gives(
    wake_ns: int, workers: list[tuple[int, int, int, int]], looks: list[int]
) -> None:
    """However often somebody looks meanwhile; begun in order of time."""
    workers.sort(key=lambda worker: worker[0])
    turns, now = Turns(2, len(workers), wake_ns), 0
    for row, worker in enumerate(workers):
        turns.begin(row, 1, *worker)
        now = worker[0]
    for look in looks:
        now += look
        turns.held(1, now)
    turns.held(1, 1 << 40)
    assert ends(turns, *range(len(workers)), at=1 << 40) == Reference(wake_ns, workers).ends
