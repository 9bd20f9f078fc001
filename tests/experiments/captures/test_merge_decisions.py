"""The kernel's decision on each bio, derived from events that are made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from wbsim.experiments.captures.events import Event
from wbsim.experiments.captures.merge_decisions import (
    Emptied,
    Left,
    Lost,
    Moved,
    Passed,
    Piece,
    Placed,
    Step,
    Unseen,
    steps_of,
)
from wbsim.models.block.merge import BACK, FRONT, NEW

DISK = "7,0"
NAMES = {
    "Q": "block_bio_queue", "G": "block_getrq", "M": "block_bio_backmerge", "F": "block_bio_frontmerge",
    "X": "block_split", "P": "block_plug", "U": "block_unplug", "UT": "block_unplug",
    "I": "block_rq_insert", "D": "block_rq_issue", "J": "block_rq_merge", "L": "lost",
    "N": "without sectors",
}  # fmt: skip


def steps_from(*said: tuple[Any, ...], scheduler: str | None = "none", pid: int = 9) -> list[Step]:
    """Return the steps of events: each is (letter, sector, sectors or count), on a line, by task *pid*."""
    events = []
    for number, (letter, *rest) in enumerate(said, 1):
        name = NAMES[letter]
        if letter in ("U", "UT"):
            asleep = letter == "UT" if scheduler == "blkparse" else None
            events.append(Event(number, pid, 1, name, size=rest[0], asleep=asleep))
        elif letter == "L":
            events.append(Event(number, 0, 1, name, size=rest[0]))
        elif letter == "P":
            events.append(Event(number, pid, 1, name))
        else:
            sector, size, *op = rest
            events.append(Event(number, pid, 1, name, DISK, op[0] if op else "W", sector, size))
    return list(steps_of(events, "mq-deadline" if scheduler == "blkparse" else scheduler))


def piece(line: int, sector: int, sectors: int, merge: Any, tried: int, **others: Any) -> Piece:
    """Return the piece of a complete bio; the plug of its task is known."""
    made = Piece(line, 9, 1, DISK, "W", sector, sectors, merge, True, False, tried, True)
    return made._replace(**others)


def test_plug_takes_a_new_request_and_two_merges() -> None:
    """The first bio opens the plug, the second merges at the back and the third at the front.

    The end of the plug sends the request on.
    """
    first = piece(2, 8, 8, NEW, 1)
    assert steps_from(
        ("Q", 8, 8), ("G", 8, 8), ("P",), ("Q", 16, 8), ("M", 16, 8), ("Q", 0, 8), ("F", 0, 8), ("U", 1),
        ("D", 0, 24),
    ) == [
        first,
        Placed(first, True, None, True),
        piece(5, 16, 8, BACK, 4),
        piece(7, 0, 8, FRONT, 6),
        Emptied(9, None),
        Moved(9, 9, 1, DISK, 0, 24, False, True, "W"),
    ]  # fmt: skip


ONE = (("Q", 0, 8), ("G", 0, 8), ("P",))
TWO = (("Q", 80, 8), ("G", 80, 8))
FIRST, SECOND = piece(2, 0, 8, NEW, 1), piece(5, 80, 8, NEW, 4)


@pytest.mark.parametrize(
    ("scheduler", "then", "steps"),
    [
        # the plug was full, so the held request is issued at once
        ("none", [("U", 1), ("D", 0, 8), ("P",)],
         [Left(9), Moved(7, 9, 1, DISK, 0, 8, False, True, "W"), Placed(SECOND, True, True, True)]),
        # the task slept, so the held request is inserted
        ("none", [("U", 1), ("I", 0, 8), ("P",)],
         [Left(9), Moved(7, 9, 1, DISK, 0, 8, False, False, "W"), Emptied(9, None),
          Placed(SECOND, True, None, True)]),
        # only the first move of the first request counts
        ("none", [("U", 1), ("I", 0, 8), ("D", 0, 8), ("P",)],
         [Left(9), Moved(7, 9, 1, DISK, 0, 8, False, False, "W"),
          Moved(8, 9, 1, DISK, 0, 8, False, True, "W"), Emptied(9, None), Placed(SECOND, True, None, True)]),
        # with a scheduler all requests are inserted, so the reason is unknown
        ("mq-deadline", [("U", 1), ("I", 0, 8), ("P",)],
         [Left(9), Moved(7, 9, 1, DISK, 0, 8, False, False, "W"), Placed(SECOND, True, True, False)]),
        # but blkparse shows the reason
        ("blkparse", [("UT", 1), ("I", 0, 8), ("P",)],
         [Left(9), Moved(7, 9, 1, DISK, 0, 8, False, False, "W"), Emptied(9, None),
          Placed(SECOND, True, None, True)]),
        ("blkparse", [("U", 1), ("I", 0, 8), ("P",)],
         [Left(9), Moved(7, 9, 1, DISK, 0, 8, False, False, "W"), Placed(SECOND, True, True, True)]),
        # both leave together, by one unplug or by two: the second request had joined the first
        ("none", [("U", 2)], [Placed(SECOND, True, False, True), Emptied(9, None)]),
        ("none", [("U", 1), ("U", 1)],
         [Left(9), Placed(SECOND, True, False, True), Emptied(9, None)]),
        # the plug was sent on, and the second request was never in it
        ("none", [("U", 1), ("Q", 160, 8)], [Left(9), Placed(SECOND, False, None, True), Emptied(9, None)]),
        # no event follows: the request is in the plug, and may have flushed it after the end of the capture
        ("none", [], [Placed(SECOND, True, False, False)]),
        # a request that merges moves, too
        ("none", [("J", 0, 8)],
         [Moved(6, 9, 1, DISK, 0, 8, True, False, "W"), Placed(SECOND, True, False, False)]),
    ],
    ids=["full", "asleep", "first move", "nobody knows", "UT", "U", "joined", "one by one", "past", "kept",
         "merged"],
)  # fmt: skip
def test_events_after_a_request_show_where_it_went(
    scheduler: str, then: Sequence[Any], steps: list[Step]
) -> None:
    """The plug holds one request when the task gets a second."""
    head: list[Step] = [FIRST, Placed(FIRST, True, None, True), SECOND]
    assert steps_from(*ONE, *TWO, *then, scheduler=scheduler) == head + steps


def test_request_after_a_full_flush_is_in_the_next_plug() -> None:
    """The second request opens a plug, a third joins this plug, and both leave together."""
    third = piece(10, 160, 8, NEW, 9)
    steps = steps_from(*ONE, *TWO, ("U", 1), ("D", 0, 8), ("P",), ("Q", 160, 8), ("G", 160, 8), ("U", 2))
    assert steps[-3:] == [third, Placed(third, True, False, True), Emptied(9, None)]
    # the next request is placed by its own events, whatever a sleep or a full flush showed before
    steps = steps_from(
        *ONE, *TWO, ("U", 1), ("I", 0, 8), ("P",), ("Q", 160, 8), ("G", 160, 8), ("U", 1), ("D", 80, 8),
        ("P",),
    )  # fmt: skip
    assert steps[-1] == Placed(third, True, True, True)


def test_flush_and_unplugged_request_go_past_the_plug() -> None:
    """A PREFLUSH bio goes past a plug that holds a request.  Without a plug every request goes past."""
    flush = SECOND._replace(rwbs="FWFS")
    steps = steps_from(*ONE, ("Q", 80, 8, "FWFS"), ("G", 80, 8, "FWFS"), ("Q", 160, 8), ("G", 160, 8))
    assert steps[2:4] == [flush, Placed(flush, False, None, True)]
    third = piece(7, 160, 8, NEW, 6)
    assert steps[4:] == [third, Placed(third, True, False, False)]
    assert steps_from(("Q", 0, 8), ("G", 0, 8), ("Q", 8, 8)) == [FIRST, Placed(FIRST, False, None, True)]
    assert steps_from(*ONE, ("Q", 80, 8, "FWFS"), ("G", 80, 8, "FWFS"))[-1] == Placed(
        flush, False, None, True
    )
    assert steps_from(("Q", 0, 8), ("G", 0, 8))[-1] == Placed(FIRST, False, None, True)


def test_plug_is_unknown_from_a_loss_to_plug_or_unplug() -> None:
    """The placement of the request in hand is given up, and the plugs of other tasks are unknown, too."""
    lost = FIRST._replace(plug_known=False)
    assert steps_from(
        ("Q", 0, 8), ("G", 0, 8), ("L", 3), ("Q", 8, 8), ("M", 8, 8), ("P",), ("Q", 16, 8), ("M", 16, 8)
    ) == [
        FIRST, Placed(lost, False, None, True), Lost(3), piece(5, 8, 8, BACK, 4, plug_known=False),
        piece(8, 16, 8, BACK, 7),
    ]  # fmt: skip
    assert steps_from(("L", 3), ("U", 1), ("Q", 8, 8), ("M", 8, 8))[1:] == [
        Emptied(9, None),
        piece(4, 8, 8, BACK, 3),
    ]


@pytest.mark.parametrize("lost", [True, False])
def test_request_in_hand_is_placed_at_loss_or_end(lost: bool) -> None:
    """Two tasks have just got a request each.

    After a loss the place of the request is unknown.  At the end of the capture the request went straight on,
    because its task has an empty plug.
    """
    events = [
        Event(line, pid, 1, NAMES[letter], DISK, "W", 8 * pid, 8)
        for line, (pid, letter) in enumerate([(8, "Q"), (8, "G"), (9, "Q"), (9, "G")], 1)
    ]
    if lost:
        events.append(Event(5, 0, 1, "lost", size=3))
    placed = [step for step in steps_of(events, "none") if isinstance(step, Placed)]
    assert [(step.piece.pid, step.piece.plug_known, step.plugged) for step in placed] == [
        (8, not lost, False), (9, not lost, False),
    ]  # fmt: skip


def test_waiting_bio_is_tried_before_its_task_sleeps() -> None:
    """The sleep of a task flushes its plug between the trial and the request of a bio.

    line 4   the bio is queued, and the kernel tries to merge it
    line 5   the task sleeps and its plug is flushed: `Emptied` names the bio
    line 6   the bio gets a request, which finds an empty plug
    """
    queued = Piece(5, 9, 1, DISK, "W", 8, 8, None, True, False, 4, True)
    assert steps_from(*ONE, ("Q", 8, 8), ("UT", 1), ("G", 8, 8)) == [
        FIRST,
        Placed(FIRST, True, None, True),
        Emptied(9, queued),
        piece(6, 8, 8, NEW, 4),
        Placed(piece(6, 8, 8, NEW, 4), False, None, True),
    ]


def test_older_of_two_waiting_bios_is_reported() -> None:
    """The kernel was about to place the older bio when the task slept.  The other bio follows."""
    queued = Piece(6, 9, 1, DISK, "W", 8, 8, None, True, False, 4, True)
    told_of = steps_from(*ONE, ("Q", 8, 8), ("Q", 800, 8), ("UT", 1))
    assert told_of[-1] == Emptied(9, queued)


def test_split_bio_comes_in_pieces() -> None:
    """Each piece but the last is marked as split off.

    A piece is tried at the decision on the piece before, or at the split.
    """
    first = piece(3, 0, 8, NEW, 2, split_off=True)
    assert steps_from(("Q", 0, 24), ("X", 0, 8), ("G", 0, 8), ("X", 8, 16), ("M", 8, 8), ("M", 16, 8)) == [
        first,
        Placed(first, False, None, True),
        piece(5, 8, 8, BACK, 4, first=False, split_off=True),
        piece(6, 16, 8, BACK, 5, first=False),
    ]
    queued = steps_from(*ONE, ("Q", 80, 24), ("X", 80, 88), ("U", 1))[-1]
    assert queued == Emptied(9, Piece(6, 9, 1, DISK, "W", 80, 8, None, True, True, 5, True))


def test_plug_of_three_queues_has_three_unplugs() -> None:
    """The counts of the unplugs add up to all requests, so the plug was not flushed because it was full."""
    third = (("Q", 160, 8), ("G", 160, 8))
    *_, placed, last = steps_from(*ONE, *TWO, *third, ("U", 1), ("U", 1), ("U", 1))
    assert placed == Placed(piece(7, 160, 8, NEW, 6), True, False, True)
    assert last == Emptied(9, None)


@pytest.mark.parametrize(
    ("events", "steps"),
    [
        # an unplug with no request shown in the plug; the first bio may have been tried before the capture
        ([("M", 8, 8), ("U", 1)], [piece(1, 8, 8, BACK, 0), Emptied(9, None), Unseen(9)]),
        # one flush has an unplug for each of two queues: three requests, of which one is shown
        ([*ONE, ("U", 1), ("D", 0, 8), ("U", 2), ("Q", 8, 8)],
         [FIRST, Placed(FIRST, True, None), Emptied(9, None), Moved(5, 9, 1, DISK, 0, 8, False, True, "W"),
          Emptied(9, None), Unseen(9)]),
        # the next plug begins empty
        ([*ONE, ("U", 1), ("Q", 8, 8), ("U", 1)],
         [FIRST, Placed(FIRST, True, None), Emptied(9, None),
          Emptied(9, Piece(6, 9, 1, DISK, "W", 8, 8, None, True, False, 5, True)), Unseen(9)]),
        # the new request joined a plug that is not shown, and left with this plug
        ([*ONE[:2], ("U", 2), ("Q", 8, 8)],
         [FIRST, Left(9), Unseen(9), Placed(FIRST._replace(plug_known=False), False, None),
          Emptied(9, None)]),
        # the same at the end of the capture
        ([*ONE[:2], ("U", 2)], [FIRST, Left(9), Unseen(9), Placed(FIRST, False, None)]),
        # the new request flushed a full plug that is not shown, and is the first of the next plug
        ([*ONE[:2], ("U", 9), ("D", 800, 8), ("P",), ("U", 1)],
         [FIRST, Left(9), Moved(4, 9, 1, DISK, 800, 8, False, True, "W"), Unseen(9),
          Placed(FIRST._replace(plug_known=False), True, True), Emptied(9, None)]),
        # one flush has three unplugs, and two of its requests are shown
        ([*ONE, *TWO, ("U", 1), ("U", 1), ("U", 1)],
         [FIRST, Placed(FIRST, True, None), SECOND, Left(9), Placed(SECOND, True, False), Emptied(9, None),
          Emptied(9, None), Unseen(9)]),
    ],
    ids=["nothing shown", "two queues", "next", "joined", "end", "full", "one by one"],
)  # fmt: skip
def test_an_unplug_of_more_requests_than_shown_is_reported(
    events: Sequence[Any], steps: Sequence[Step]
) -> None:
    """An unplug counts the requests of the plug; what the capture does not show is `Unseen`."""
    assert steps_from(*events) == steps


def test_an_unplug_after_lost_events_reports_nothing_unseen() -> None:
    """The plug is unknown until the first unplug, so its decisions are marked already."""
    steps = steps_from(("L", 3), ("Q", 8, 8), ("M", 8, 8), ("U", 4), ("Q", 16, 8), ("M", 16, 8), ("U", 4))
    assert [type(step).__name__ for step in steps] == [
        "Lost", "Piece", "Emptied", "Piece", "Emptied", "Unseen",
    ]  # fmt: skip


def test_each_queue_has_a_block_plug_in_older_kernels() -> None:
    """Kernels up to 4.x have a plug event and an unplug event for each of two devices."""
    events = [
        Event(line, 9, 1, NAMES[letter], disk, "W", 0, size)
        for line, (letter, disk, size) in enumerate(
            [("Q", DISK, 8), ("G", DISK, 8), ("P", DISK, 0), ("Q", "8,0", 8), ("G", "8,0", 8),
             ("P", "8,0", 0), ("U", DISK, 1), ("U", "8,0", 1)], 1
        )
    ]  # fmt: skip
    assert not any(isinstance(step, Unseen) for step in steps_of(events, "none"))


def test_requests_without_sectors_are_passed_over() -> None:
    """An event without sectors does not place the request of the bio before it."""
    steps = steps_from(("Q", 0, 8), ("G", 0, 8), ("N", 0, 0, "N"), ("P",))
    first = piece(2, 0, 8, NEW, 1)
    assert steps == [first, Passed(DISK), Placed(first, True, None)]
