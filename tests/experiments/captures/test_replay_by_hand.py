"""Replays of a few steps: the whole verdict, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from wbsim.experiments.captures.merge_decisions import Emptied, Left, Lost, Moved, Piece, Placed, Step
from wbsim.experiments.captures.replay import bio_of, replay
from wbsim.experiments.captures.verdict import SHOWN, Mismatch, Verdict
from wbsim.experiments.captures.what_if import what_if
from wbsim.models.block.merge import BACK, FRONT, NEW, Merge
from wbsim.models.block.spec import QueueLimits
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.sim.units import KIB

DISK, OTHER = "7,0", "8,0"


def limits(segments: int = 128, nomerges: int = 0) -> QueueLimits:
    """64 KiB a request."""
    return QueueLimits(
        max_sectors_bytes=64 * KIB, max_segments=segments, max_segment_bytes=64 * KIB, nomerges=nomerges
    )


def piece(line: int, sector: int, merge: Merge | None, sectors: int = 8, **others: Any) -> Piece:
    """A decision on a bio of task 9."""
    made = Piece(line, 9, 1, DISK, "W", sector, sectors, merge, True, False, line - 1, True)
    return made._replace(**others)


def new(line: int, sector: int, flushed: bool | None = None, sectors: int = 8, **others: Any) -> list[Step]:
    """A bio that got a request, which went into the plug."""
    made = piece(line, sector, NEW, sectors, **others)
    return [made, Placed(made, True, flushed)]


def moved(line: int, sector: int, sectors: int, *, issued: bool, merged: bool = False, pid: int = 9) -> Moved:
    """A request was issued, or inserted."""
    return Moved(line, pid, 1, DISK, sector, sectors, merged, issued, "W")


def judged(*steps: Step, era: str = "6.17", of: QueueLimits | None = None) -> Verdict:
    """The verdict on task 9's *steps*."""
    return replay(steps, PLUG_RULES[era], of or limits(), "none", DISK)


def test_merges_that_are_the_kernels() -> None:
    """Two requests of three and two bios, one a piece of a split bio, which is the same bio."""
    assert judged(
        *new(2, 8), piece(4, 16, BACK), piece(6, 0, FRONT), *new(8, 800, False, split_off=True, first=False),
        piece(10, 24, BACK), Emptied(9, None), moved(12, 0, 32, issued=True), moved(13, 800, 8, issued=True),
        era="3.11",
    ) == Verdict(
        bios=4, decisions_equal=5, decisions_total=5, full_flush_equal=1, full_flush_total=1,
        requests_kernel=2, requests_simulated=2,
    )  # fmt: skip


def test_each_difference_is_shown_with_its_line() -> None:
    """The kernel merged a discard with a write, and did not merge a write that touches; 3.11's plug was not
    full at all.
    """
    assert judged(*new(2, 8), piece(4, 16, BACK, rwbs="D"), *new(6, 24, True), era="3.11") == Verdict(
        bios=3, decisions_equal=2, decisions_total=3, full_flush_equal=0, full_flush_total=1,
        requests_kernel=2, requests_simulated=3,
        mismatches=[
            Mismatch(4, "decision", "backmerge", "getrq"),
            Mismatch(6, "full flush", "flushed", "kept"),
        ],
    )  # fmt: skip
    joins = judged(*new(2, 8), *new(6, 16, True), era="3.11")
    assert joins.mismatches == [Mismatch(6, "decision", "getrq", "backmerge")]
    flushed = judged(*new(2, 8), *new(4, 800, True), *new(6, 1_600, False), era="3.11")
    assert (flushed.full_flush_equal, flushed.full_flush_total) == (1, 2)
    assert flushed.mismatches == [Mismatch(4, "full flush", "flushed", "kept")]
    assert not flushed.agrees


def test_so_many_differences_are_shown_and_all_are_counted() -> None:
    """Twenty of thirty: discards and writes in turn, each merged with the one before."""
    verdict = judged(*new(1, 0), *(piece(2 + i, 8 + 8 * i, BACK, rwbs="DW"[i % 2]) for i in range(30)))
    assert len(verdict.mismatches) == SHOWN == 20
    assert (verdict.decisions_equal, verdict.decisions_total) == (1, 31)


def test_a_full_plug_is_judged_when_it_is_flushed_and_when_it_is_not() -> None:
    """16 requests in 3.11: the 17th flushes them; told by `Left` before it is placed. What may be a sleep is
    not judged where the simulator would not flush.
    """
    held = [step for i in range(16) for step in new(2 * i + 2, 1_000 * i, None if i == 0 else False)]
    last = piece(40, 90_000, NEW)
    verdict = judged(*held, last, Left(9), Placed(last, True, True), era="3.11")
    assert (verdict.full_flush_equal, verdict.full_flush_total) == (16, 16)
    assert verdict.agrees
    assert not judged(*held, last, Placed(last, True, False), era="3.11").agrees
    unsure = judged(*new(2, 0), *new(4, 800)[:1], Left(9), Placed(piece(4, 800, NEW), True, True, sure=False))
    assert (unsure.full_flush_total, unsure.full_flush_unknown) == (0, 1)


def test_segments_are_fewer_than_pages_where_the_kernel_merged() -> None:
    """Three pages and three, of at most four segments: one of the bios has one. A third bio of two then needs
    that there is one segment each.
    """
    verdict = judged(*new(2, 0, sectors=24), piece(4, 24, BACK, 24), of=limits(4))
    assert (verdict.by_segments, verdict.decisions_equal) == (1, 2)
    verdict = judged(*new(2, 0, sectors=24), piece(4, 24, BACK, 24), piece(6, 48, BACK, 16), of=limits(4))
    assert (verdict.by_segments, verdict.decisions_equal) == (2, 3)
    # a request of one bio a segment takes no fourth bio of three segments
    verdict = judged(
        *new(2, 0, sectors=24), piece(4, 24, BACK, 24), piece(6, 48, BACK), *new(8, 56, False), of=limits(3)
    )
    assert verdict.decisions_equal == 4
    assert judged(*new(2, 0), piece(4, 8, BACK), of=limits(2)).by_segments == 0


WAITS = [*new(2, 0), Emptied(9, None), moved(5, 0, 8, issued=False)]
"""A request that waits in its software queue."""
NEXT = piece(8, 8, NEW)
"""A bio that would continue it, and got a request of its own."""


def test_a_request_that_had_left_its_queue_is_issued_by_the_dispatch_under_way() -> None:
    """Task 7 issues from line 7 on: it had been taken by then, if this run or the next issues it."""
    for between in ([], [piece(10, 5_000, NEW, pid=7)]):
        verdict = judged(
            *WAITS,
            moved(7, 9_000, 8, issued=True, pid=7),
            NEXT,
            *between,
            moved(12, 0, 8, issued=True, pid=7),
        )
        assert (verdict.in_dispatch, verdict.agrees) == (1, True)
        assert verdict.decisions_total == 2 + len(between)


def test_each_request_that_had_left_is_counted() -> None:
    """The same a second time, elsewhere on the disk and later."""
    later = [
        piece(20, 5_000, NEW, pid=7), *new(22, 1_000), Emptied(9, None), moved(25, 1_000, 8, issued=False),
        moved(27, 9_200, 8, issued=True, pid=7), piece(28, 1_008, NEW),
        moved(32, 1_000, 8, issued=True, pid=7),
    ]  # fmt: skip
    first = [*WAITS, moved(7, 9_000, 8, issued=True, pid=7), NEXT, moved(12, 0, 8, issued=True, pid=7)]
    verdict = judged(*first, *later)
    assert (verdict.in_dispatch, verdict.agrees) == (2, True)


def test_a_whole_dispatch_that_began_later_and_passed_it_by_refutes_that() -> None:
    """Task 7's runs begin in lines 10 and 14; by the third it had not left in line 8: a mismatch there."""
    verdict = judged(
        *WAITS, NEXT, moved(10, 9_000, 8, issued=True, pid=7), piece(12, 5_000, NEW, pid=7),
        moved(14, 9_100, 8, issued=True, pid=7), moved(15, 0, 8, issued=True, pid=7),
    )  # fmt: skip
    assert verdict.in_dispatch == 0
    assert verdict.mismatches == [Mismatch(8, "decision", "getrq", "backmerge")]
    assert (verdict.decisions_equal, verdict.decisions_total) == (2, 3)


def test_a_request_that_is_joined_after_all_had_not_left() -> None:
    """The bio behind the one in doubt merges with it: the first decision is a mismatch."""
    verdict = judged(*WAITS, NEXT, piece(12, 8, BACK))
    assert verdict.in_dispatch == 0
    assert verdict.mismatches == [Mismatch(8, "decision", "getrq", "backmerge")]


def test_a_bio_that_waited_for_a_tag_was_tried_before_the_request_came() -> None:
    """It is no doubt: nothing to join was there yet."""
    verdict = judged(*WAITS, piece(8, 8, NEW, tried=4))
    assert (verdict.in_dispatch, verdict.agrees) == (0, True)


def test_other_devices_and_what_is_not_known_are_not_judged() -> None:
    """Their requests count towards a full plug; after a loss only the kernel's own are counted."""
    other = piece(2, 0, NEW, device=OTHER)
    others = [other, Placed(other, True, None), piece(4, 8, BACK, device=OTHER)]
    assert judged(*others, *new(6, 8, False)) == Verdict(
        bios=1, decisions_equal=1, decisions_total=1, full_flush_equal=1, full_flush_total=1,
        requests_kernel=1, requests_simulated=1,
    )  # fmt: skip
    assert judged(
        *new(2, 0), Lost(5), piece(4, 8, BACK, known=False), piece(6, 100, NEW, known=False),
        piece(8, 900, BACK),
    ) == Verdict(
        bios=4, decisions_equal=1, decisions_total=1, unjudged=3, events_lost=5, requests_kernel=2,
        requests_simulated=2,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rwbs", "sectors", "segments", "op", "sync", "nomerge"),
    [
        ("W", 8, 1, "W", False, False), ("W", 9, 2, "W", False, False), ("WS", 1, 1, "W", True, False),
        ("FWFS", 0, 1, "W", True, True), ("D", 2_048, 0, "D", False, False), ("R", 256, 32, "R", True, False),
    ],
)  # fmt: skip
def test_the_bio_of_a_piece(
    rwbs: str, sectors: int, segments: int, op: str, sync: bool, nomerge: bool
) -> None:
    """A segment a page; a discard has none; a flush, and a part that others follow, never merge."""
    bio = bio_of(piece(1, 40, NEW, sectors, rwbs=rwbs))
    assert (bio.start_sector, bio.sectors, bio.segments) == (40, sectors, segments)
    assert (bio.op, bio.sync, bio.nomerge, bio.queue) == (op, sync, nomerge, DISK)
    assert bio_of(piece(1, 40, NEW, split_off=True)).nomerge


def test_what_other_eras_would_have_issued() -> None:
    """Two interleaved streams of two: two requests of 3.11's whole walk, four of 6.17's; past the plug goes
    one more, and what is held at the end counts.
    """
    steps: list[Step] = [*new(2, 0), *new(4, 800), piece(6, 8, BACK), piece(8, 808, BACK), Emptied(9, None)]
    past = piece(10, 4_000, NEW, 16)
    steps += [past, Placed(past, False, None), *new(12, 5_000), *new(14, 9_000, device=OTHER)]
    found = what_if(steps, PLUG_RULES, limits(), DISK)
    assert dict(found["3.11"].lengths) == {16: 3, 8: 1}
    assert dict(found["6.1"].lengths) == {8: 5, 16: 1}
    assert (found["3.11"].requests, found["6.1"].requests) == (4, 6)
    full = [step for i in range(17) for step in new(2 * i + 2, 1_000 * i)]
    assert what_if([*full, piece(99, 8, BACK)], PLUG_RULES, limits(), DISK)["3.11"].requests == 18


def test_another_device_s_request_grows_as_the_kernel_says() -> None:
    """Its limits are not known. 120 KiB, and 4 KiB in front of it, twice: 128 KiB in the oldest request flush
    the plug; once, or one of them a request of its own, they do not.
    """

    def of(line: int, sector: int, merge: Merge, sectors: int = 8) -> list[Step]:
        other = piece(line, sector, merge, sectors, device=OTHER)
        return [other] if merge is not NEW else [other, Placed(other, True, None)]

    grown = [*of(2, 1_000, NEW, 240), *of(4, 992, FRONT), *of(6, 984, FRONT)]
    assert judged(*grown, *new(8, 8, True)).full_flush_equal == 1
    assert judged(*grown[:-1], *new(8, 8, True)).full_flush_equal == 0
    behind = [*of(2, 1_000, NEW, 240), *of(4, 1_240, BACK), *of(6, 1_248, BACK)]
    assert judged(*behind, *new(8, 8, True)).full_flush_equal == 1
    assert judged(*grown[:-1], *of(6, 984, NEW), *new(8, 8, False)).full_flush_equal == 1
