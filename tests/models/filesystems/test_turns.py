"""Whose turn it is at a group's lock and at those of its files, transaction by transaction."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.filesystems.turns import NO_ROW, Turns


def ends(turns: Turns, *rows: int, at: int = 0) -> list[int]:
    """When the workers of these rows are through, if nobody comes."""
    return [turns.ends_ns(row, at) for row in rows]


def test_a_worker_alone_takes_its_own_time() -> None:
    """Three transactions of 40 and 10 from 100 on; the group's lock is held in the last 10 of each."""
    turns = Turns(5)
    row = turns.begin(100, 3, 40, 10)
    assert ends(turns, row, at=100) == [250]
    held = [now for now in range(100, 260) if turns.held(now)]
    assert held == [*range(140, 150), *range(190, 200), *range(240, 250)]
    assert turns.ends_ns(row, 250) == 250
    turns.end(row)


def test_who_finds_the_group_locked_is_woken_as_its_owner() -> None:
    """Two workers from 0 on, a transaction each: the second wants the lock at 12, has it at 20 and goes on at
    25; who waits at 22 gets it after that.
    """
    turns = Turns(5)
    first, second = turns.begin(0, 1, 10, 10), turns.begin(0, 1, 12, 10)
    turns.held(22)
    assert ends(turns, first, second, at=22) == [20, 35]
    assert turns.free_ns(22) == 40
    assert turns.free_ns(35) == 35


def test_a_flusher_waits_for_its_file_and_then_the_worker_waits_for_it() -> None:
    """A worker is in its first transaction of 50 at 30: the flusher has the inode's lock at 50, though others
    want the group's; it holds both for 25, and the worker goes on at 75.
    """
    turns = Turns(5)
    row = turns.begin(0, 2, 40, 10)
    assert turns.file_free_ns(row, 30) == 50
    turns.hold(row, 75)
    assert turns.held(74)
    assert not turns.held(75)
    assert ends(turns, row, at=75) == [125]


def test_while_a_flusher_waits_for_its_file_others_come_for_the_group() -> None:
    """The flusher has the inode's lock at 50, when the group's is given to a worker that asked at 45."""
    turns = Turns(5)
    row, _ = turns.begin(0, 2, 40, 10), turns.begin(0, 1, 45, 10)
    assert turns.file_free_ns(row, 30) == 50
    assert turns.lock[0] == 65


def test_a_flusher_of_another_file_only_keeps_the_group() -> None:
    """It holds the group's lock from 0 to 60: the worker waits for that in the midst of its transaction, and
    is woken 5 later.
    """
    turns = Turns(5)
    row = turns.begin(0, 1, 40, 10)
    turns.hold(NO_ROW, 60)
    assert turns.file_free_ns(NO_ROW, 20) == 20
    turns.held(60)
    assert ends(turns, row, at=60) == [75]


def test_between_two_transactions_the_one_who_waits_comes_first() -> None:
    """At the very instant at which a worker ends one transaction, the lock of its file is the flusher's."""
    turns = Turns(0)
    row = turns.begin(0, 2, 10, 0)
    assert turns.file_free_ns(row, 10) == 10
    assert turns.file_free_ns(row, 11) == 20


def test_without_a_group_s_part_workers_are_no_concern_of_each_other() -> None:
    """No reverse mapping: ten workers take as long as one, and the group's lock is free throughout."""
    turns = Turns(5)
    rows = [turns.begin(0, 4, 25, 0) for _ in range(10)]
    assert not any(turns.held(now) for now in range(0, 110, 5))
    assert ends(turns, *rows, at=110) == [100] * 10


def test_a_row_is_used_again_once_its_worker_is_through() -> None:
    """And one that is not through keeps it."""
    turns = Turns(0)
    row = turns.begin(0, 1, 5, 5)
    with pytest.raises(AssertionError, match="nothing is left"):
        turns.end(row)
    turns.held(10)
    turns.end(row)
    assert turns.begin(10, 1, 5, 5) == row


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
    turns, now = Turns(wake_ns), 0
    rows = []
    for worker in workers:
        rows.append(turns.begin(*worker))
        now = worker[0]
    for look in looks:
        now += look
        turns.held(now)
    turns.held(1 << 40)
    assert ends(turns, *rows, at=1 << 40) == Reference(wake_ns, workers).ends
