"""The record of times of a group's and an inode's lock, as compiled steps book them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.models.filesystems.lock_times import begin, ends, held, keep, table
from wbsim.models.filesystems.lock_table import (
    ACQUISITIONS,
    CONTENTIONS,
    FAR,
    HANDOFF_NS,
    HOLD,
    LEFT,
    STRETCHES,
    UNTIL,
    WAIT,
    WAIT_MAX,
    advance,
    end_open,
    has_room,
    hold,
    is_free,
    take_inode,
)


def test_a_worker_alone_takes_its_own_time() -> None:
    """Three transactions of 40 and 10 from 100 on; the group's lock is held in the last 10 of each."""
    locks = table(2)
    begin(locks, 0, 1, 100, 3, 40, 10)
    assert held(locks, range(100, 260), 1) == [*range(140, 150), *range(190, 200), *range(240, 250)]
    assert not held(locks, range(100, 260), 0)
    assert ends(locks, 0, at=250) == [250]
    assert locks.inodes[0, [ACQUISITIONS, CONTENTIONS, HOLD]].tolist() == [3, 0, 150]
    assert locks.groups[1, [ACQUISITIONS, CONTENTIONS, HOLD]].tolist() == [3, 0, 30]


def test_a_task_that_finds_the_group_locked_is_woken_as_its_owner() -> None:
    """Two workers from 0 on, a transaction each: the second wants the lock at 12, has it at 20 and goes on at
    25; one that asks at 22 to have it for 8 wakes at 40, and one that asks at 48 has it at once.
    """
    locks = table(1, 2)
    begin(locks, 0, 0, 0, 1, 10, 10)
    begin(locks, 1, 0, 0, 1, 12, 10)
    assert ends(locks, 0, 1, at=22) == [20, 35]
    assert hold(locks, 0, 22, 8) == 48
    assert hold(locks, 0, 48, 3) == 51
    assert locks.groups[0, ACQUISITIONS:].tolist() == [4, 2, 8 + 13, 13, 31]


def test_a_task_from_behind_has_the_lock_where_nobody_else_has() -> None:
    """It is held from 100 to 200 and from 300 to 350. For 60 from 50 on there is no room before 200; for 100
    from 205 on, none before 350, and for 40, at 60 or at 205, at once.
    """
    cases = [(50, 60, 265), (205, 100, 455), (60, 40, 100), (205, 40, 245), (120, 40, 245)]
    for asks_ns, length_ns, until_ns in cases:
        locks = table()
        hold(locks, 0, 100, 100)
        hold(locks, 0, 300, 50)
        assert is_free(locks, 0, 99)
        assert has_room(locks, 0, asks_ns, length_ns) == (asks_ns + length_ns == until_ns)
        assert hold(locks, 0, asks_ns, length_ns) == until_ns
        assert not is_free(locks, 0, until_ns - 1)
        assert held(locks, range(100, 101)) == [100]
        assert held(locks, range(349, 350)) == [349]


def test_what_is_long_past_is_forgotten() -> None:
    """The older half of 512 stretches; what comes after them is kept apart all the same."""
    locks = table(wake_ns=0)
    for number in range(513):
        assert hold(locks, 0, 10 * number, 5) == 10 * number + 5
    assert is_free(locks, 0, 2_550)
    assert not is_free(locks, 0, 2_560)
    assert hold(locks, 0, 5_116, 2) == 5_118
    assert hold(locks, 0, 3, 4) == 7
    assert locks.groups[0, STRETCHES] == 259
    assert held(locks, range(2_558, 2_567)) == [*range(2_560, 2_565)]


def test_while_an_event_has_the_group_its_workers_wait_for_the_end() -> None:
    """An event has the lock from 10 without end: a worker that asks at 20 is not worked off, another that
    needs no group is; given up at 60, the first wakes at 65.
    """
    locks = table(1, 2)
    begin(locks, 0, 0, 0, 1, 20, 10)
    begin(locks, 1, 0, 0, 1, 20, 0)
    locks.groups[0, UNTIL] = FAR
    advance(locks, 0, 60)
    assert locks.workers[:, LEFT].tolist() == [1, 0]
    assert not is_free(locks, 0, 1_000)
    end_open(locks, 0, 10, 60)
    assert ends(locks, 0, at=60) == [75]


def test_a_flusher_waits_for_its_file_and_then_the_worker_is_woken() -> None:
    """A worker is in its first transaction of 50 at 30: the flusher is given the inode's lock at 50 and wakes
    at 55; it has it for 25, and the worker begins again at 85.
    """
    locks = table()
    begin(locks, 0, 0, 0, 2, 40, 10)
    assert keep(locks, 0, 30, 25) == 55
    assert ends(locks, 0, at=135) == [135]
    assert locks.inodes[0, ACQUISITIONS:].tolist() == [3, 2, 20 + 50, 50, 125]


def test_a_flusher_that_is_back_before_the_worker_is_awake_has_the_file_again() -> None:
    """From 0 to 40; at 43, when the worker sleeps until 45, and then not again before 100."""
    locks = table()
    begin(locks, 0, 0, 0, 2, 30, 0)
    assert keep(locks, 0, 0, 40) == 0
    assert keep(locks, 0, 43, 40) == 43
    assert keep(locks, 0, 100, 10) == 118 + 5
    assert ends(locks, 0, at=1_000) == [133 + 5 + 30]


def test_a_worker_that_spins_has_the_file_before_the_flusher_is_back() -> None:
    """From 0 to 40; at 42 it has it, and the flusher sleeps from 43 on. It is through at 72: the flusher
    wakes until 77 and only reads, and at 79 the worker writes again; the flusher spins, and has the file at
    111. With nothing more to convert, the flusher has it once it is awake.
    """
    locks = table(relay_ns=2)
    begin(locks, 0, 0, 0, 3, 30, 0)
    assert keep(locks, 0, 0, 40) == 0
    assert keep(locks, 0, 43, 40) == 72 + 5 + 2 + 30 + 2
    assert keep(locks, 0, 154, 40) == 153 + 30 + 5
    assert ends(locks, 0, at=1_000) == [183]
    assert locks.inodes[0, [ACQUISITIONS, CONTENTIONS]].tolist() == [6, 5]


def test_a_worker_that_spins_is_too_late_for_what_is_asked_at_once() -> None:
    """The flusher is back after 1, the line comes after 2."""
    locks = table(relay_ns=2)
    begin(locks, 0, 0, 0, 1, 30, 0)
    assert [keep(locks, 0, now, 40) for now in (0, 41, 82)] == [0, 41, 82]
    assert ends(locks, 0, at=1_000) == [122 + 2 + 30]


def test_a_spinning_worker_that_waits_for_a_group_is_waited_for() -> None:
    """Its second transaction asks at 10 for a group that is held until 100: the flusher, which would be awake
    at 25, waits for its end.
    """
    locks = table(relay_ns=2)
    begin(locks, 0, 0, 0, 2, 10, 10)
    hold(locks, 0, 37, 63)
    assert keep(locks, 0, 5, 9) == 100 + 5 + 10 + 2


def test_how_much_of_it_was_worked_off_is_nothing_to_the_flusher() -> None:
    """The worker's first transaction is until 20, whoever has looked since: a flusher that asks
    at 5 or at 15 is awake at 25, and has the file after the second, at 27 + 20 + 2.
    """
    for asks_ns, looked_ns in ((5, 0), (15, 0), (15, 12)):
        locks = table(relay_ns=2)
        begin(locks, 0, 0, 0, 3, 10, 10)
        advance(locks, 0, looked_ns)
        assert keep(locks, 0, asks_ns, 9) == 20 + 5 + 2 + 20 + 2


def test_a_spinning_worker_whose_group_an_event_has_comes_later() -> None:
    """It is through with its first transaction at 20; an event has the group from then on without end: the
    flusher is awake at 25, and has the file; the worker after that, at 36.
    """
    locks = table(relay_ns=2)
    begin(locks, 0, 0, 0, 2, 10, 10)
    advance(locks, 0, 19)
    locks.groups[0, UNTIL] = FAR
    assert keep(locks, 0, 15, 9) == 20 + 5
    end_open(locks, 0, 20, 40)
    assert ends(locks, 0, at=1_000) == [36 + 10 + 10]


def test_a_worker_is_overtaken_for_four_milliseconds_at_most() -> None:
    """A flusher has the inode's lock for a millisecond at a time, and is back before the worker is awake."""
    locks = table()
    begin(locks, 0, 0, 1, 2, 30, 0)
    now, got = 0, []
    while now < 2 * HANDOFF_NS:
        got.append(keep(locks, 0, now, 1_000_000))
        now = got[-1] + 1_000_000 + 1
    waits = np.diff(got) - 1_000_001
    assert sorted(waits.tolist()) == [0] * (len(waits) - 1) + [5 + 30 + 5 - 1]
    assert locks.inodes[0, WAIT_MAX] < HANDOFF_NS + 1_000_000 + 10
    assert ends(locks, 0, at=now + 100) == [now - 1 + 5 + 30]


def test_a_lock_that_only_events_know_the_end_of_is_not_taken() -> None:
    """An inode's that an event has; one whose worker waits for a group that an event has."""
    locks = table()
    locks.inodes[0, UNTIL] = FAR
    assert take_inode(locks, 0, 50) == FAR
    locks = table()
    begin(locks, 0, 0, 0, 1, 20, 10)
    locks.groups[0, UNTIL] = FAR
    before = locks.workers.tolist(), locks.inodes.tolist()
    assert take_inode(locks, 0, 50) == FAR
    assert (locks.workers.tolist(), locks.inodes.tolist()) == before


def test_while_a_flusher_has_the_file_its_worker_asks_for_nothing() -> None:
    """It is through with its first transaction at 20, whose group it would ask for again at 30."""
    locks = table(wake_ns=0)
    begin(locks, 0, 0, 0, 2, 10, 10)
    assert take_inode(locks, 0, 20) == 20
    assert not held(locks, range(20, 100))


def test_a_flusher_that_waits_lets_others_have_the_group() -> None:
    """The flusher has the inode's lock at 50, when the group's is given to a worker that asked at 45."""
    locks = table(1, 2)
    begin(locks, 0, 0, 0, 2, 40, 10)
    begin(locks, 1, 0, 0, 1, 45, 10)
    assert keep(locks, 0, 30, 1) == 55
    assert ends(locks, 1, at=60) == [65]


def test_a_flusher_of_another_file_only_keeps_the_group() -> None:
    """It holds the group's lock from 0 to 60: the worker waits for that in the midst of its transaction, and
    is woken 5 later.
    """
    locks = table(1, 2)
    begin(locks, 0, 0, 0, 1, 40, 10)
    hold(locks, 0, 0, 60)
    assert keep(locks, 1, 20, 9) == 20
    assert ends(locks, 0, at=60) == [75]
    assert locks.groups[0, WAIT] == 20


def test_without_a_group_s_part_workers_are_no_concern_of_each_other() -> None:
    """No reverse mapping: ten workers take as long as one, and the group's lock is free throughout."""
    locks = table(1, 10)
    for row in range(10):
        begin(locks, row, 0, 0, 4, 25, 0)
    assert not held(locks, range(0, 110, 5))
    assert ends(locks, *range(10), at=110) == [100] * 10


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


A_WORKER = st.tuples(st.integers(0, 50), st.integers(1, 5), st.integers(0, 30), st.integers(0, 30))


@given(
    st.integers(0, 10), st.lists(A_WORKER, min_size=1, max_size=7), st.lists(st.integers(1, 40), max_size=9)
)
def test_it_is_what_asking_in_order_gives(
    wake_ns: int, workers: list[tuple[int, int, int, int]], looks: list[int]
) -> None:
    """However often somebody looks meanwhile; begun in order of time."""
    workers.sort(key=lambda worker: worker[0])
    locks, now = table(2, len(workers), wake_ns), 0
    for row, worker in enumerate(workers):
        now = worker[0]
        advance(locks, 1, now)
        begin(locks, row, 1, *worker)
    for look in looks:
        now += look
        advance(locks, 1, now)
    assert ends(locks, *range(len(workers)), at=1 << 40) == Reference(wake_ns, workers).ends
