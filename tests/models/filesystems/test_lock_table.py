"""The record of times of an inode's lock, as compiled steps book them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.models.filesystems.lock_times import begin, ends, keep, table
from wbsim.models.filesystems.lock_table import (
    ACQUISITIONS,
    CONTENTIONS,
    FAR,
    HANDOFF_NS,
    HOLD,
    UNTIL,
    WAIT_MAX,
    advance,
    take_inode,
)


def test_a_worker_alone_takes_its_own_time() -> None:
    """Three transactions of 50 from 100 on."""
    locks = table(2)
    begin(locks, 0, 100, 3, 50)
    assert ends(locks, 0, at=250) == 250
    assert locks.inodes[0, [ACQUISITIONS, CONTENTIONS, HOLD]].tolist() == [3, 0, 150]
    assert not locks.inodes[1].any() or locks.inodes[1, ACQUISITIONS] == 0


def test_a_flusher_waits_for_its_file_and_then_the_worker_is_woken() -> None:
    """The flusher asks in the first of two transactions of 50.

    t     worker        flusher
    0     begins
    30                  asks
    50    ends          is given the lock
    55                  is awake
    80                  gives it up
    85    begins again
    """
    locks = table()
    begin(locks, 0, 0, 2, 50)
    assert keep(locks, 0, 30, 25) == 55
    assert ends(locks, 0, at=135) == 135
    assert locks.inodes[0, ACQUISITIONS:].tolist() == [3, 2, 20 + 50, 50, 125]


def test_a_flusher_that_is_back_before_the_worker_is_awake_has_the_file_again() -> None:
    """From 0 to 40; at 43, when the worker sleeps until 45, and then not again before 100."""
    locks = table()
    begin(locks, 0, 0, 2, 30)
    assert keep(locks, 0, 0, 40) == 0
    assert keep(locks, 0, 43, 40) == 43
    assert keep(locks, 0, 100, 10) == 118 + 5
    assert ends(locks, 0, at=1_000) == 133 + 5 + 30


def test_a_worker_that_spins_has_the_file_before_the_flusher_is_back() -> None:
    """A line takes 2, a wake-up 5.

    t      worker                 flusher
    40     spins                  gives the lock up
    42     has it
    43                            sleeps, to read
    72     gives it up, spins     has it, to read
    77                            is awake, and spins to write
    79     has it
    109    gives it up
    111                           has it

    With nothing more to convert, the flusher has the lock once it is awake.
    """
    locks = table(relay_ns=2)
    begin(locks, 0, 0, 3, 30)
    assert keep(locks, 0, 0, 40) == 0
    assert keep(locks, 0, 43, 40) == 72 + 5 + 2 + 30 + 2
    assert keep(locks, 0, 154, 40) == 153 + 30 + 5
    assert ends(locks, 0, at=1_000) == 183
    assert locks.inodes[0, [ACQUISITIONS, CONTENTIONS]].tolist() == [6, 5]


def test_a_worker_that_spins_is_too_late_for_what_is_asked_at_once() -> None:
    """The flusher is back after 1, the line comes after 2."""
    locks = table(relay_ns=2)
    begin(locks, 0, 0, 1, 30)
    assert [keep(locks, 0, now, 40) for now in (0, 41, 82)] == [0, 41, 82]
    assert ends(locks, 0, at=1_000) == 122 + 2 + 30


def test_how_much_of_it_was_worked_off_is_nothing_to_the_flusher() -> None:
    """The worker's first transaction ends at 20, whenever an event has looked.

    A flusher that asks at 5 or at 15 is awake at 25, and has the file after the second, at 27 + 20 + 2.
    """
    for asks_ns, looked_ns in ((5, 0), (15, 0), (15, 12)):
        locks = table(relay_ns=2)
        begin(locks, 0, 0, 3, 20)
        advance(locks, 0, looked_ns)
        assert keep(locks, 0, asks_ns, 9) == 20 + 5 + 2 + 20 + 2


def test_a_worker_is_overtaken_for_four_milliseconds_at_most() -> None:
    """A flusher has the inode's lock for a millisecond at a time, and is back before the worker is awake."""
    locks = table()
    begin(locks, 0, 1, 2, 30)
    now, got = 0, []
    while now < 2 * HANDOFF_NS:
        got.append(keep(locks, 0, now, 1_000_000))
        now = got[-1] + 1_000_000 + 1
    waits = np.diff(got) - 1_000_001
    assert sorted(waits.tolist()) == [0] * (len(waits) - 1) + [5 + 30 + 5 - 1]
    assert locks.inodes[0, WAIT_MAX] < HANDOFF_NS + 1_000_000 + 10
    assert ends(locks, 0, at=now + 100) == now - 1 + 5 + 30


def test_a_lock_that_only_events_know_the_end_of_is_not_taken() -> None:
    """An inode's that an event has."""
    locks = table()
    locks.inodes[0, UNTIL] = FAR
    assert take_inode(locks, 0, 50) == FAR


@given(
    st.tuples(st.integers(0, 50), st.integers(1, 9), st.integers(0, 30)),
    st.lists(st.integers(1, 40), max_size=9),
)
def test_a_look_changes_nothing(worker: tuple[int, int, int], looks: list[int]) -> None:
    """A worker takes as long as its transactions, however often an event looks."""
    locks, now = table(), 0
    begin(locks, 0, *worker)
    for look in looks:
        now += look
        advance(locks, 0, now)
    begins_ns, ranges, range_ns = worker
    assert ends(locks, 0, at=1 << 40) == begins_ns + ranges * range_ns
