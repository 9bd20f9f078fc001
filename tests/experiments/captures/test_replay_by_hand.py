"""Replays of a few steps that are made by hand: the complete verdict."""

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
    """Return limits of 64 KiB a request."""
    return QueueLimits(
        max_sectors_bytes=64 * KIB, max_segments=segments, max_segment_bytes=64 * KIB, nomerges=nomerges
    )


def piece(line: int, sector: int, merge: Merge | None, sectors: int = 8, **others: Any) -> Piece:
    """Return a decision on a bio of task 9."""
    made = Piece(line, 9, 1, DISK, "W", sector, sectors, merge, True, False, line - 1, True)
    return made._replace(**others)


def new(line: int, sector: int, flushed: bool | None = None, sectors: int = 8, **others: Any) -> list[Step]:
    """Return the steps of a bio that gets a request, which goes into the plug."""
    made = piece(line, sector, NEW, sectors, **others)
    return [made, Placed(made, True, flushed)]


def moved(line: int, sector: int, sectors: int, *, issued: bool, merged: bool = False, pid: int = 9) -> Moved:
    """Return the step of a request that is issued, merged or inserted."""
    return Moved(line, pid, 1, DISK, sector, sectors, merged, issued, "W")


def judged(*steps: Step, era: str = "6.17", of: QueueLimits | None = None) -> Verdict:
    """Return the verdict on task 9's *steps*."""
    return replay(steps, PLUG_RULES[era], of or limits(), "none", DISK)


def test_equal_merges_give_no_mismatch() -> None:
    """A request has four bios.

    Another request has the later piece of a split bio, which is not a new bio.
    """
    assert judged(
        *new(2, 8), piece(4, 16, BACK), piece(6, 0, FRONT), *new(8, 800, False, split_off=True, first=False),
        piece(10, 24, BACK), Emptied(9, None), moved(12, 0, 32, issued=True), moved(13, 800, 8, issued=True),
        era="3.11",
    ) == Verdict(
        bios=4, decisions_equal=5, decisions_total=5, full_flush_equal=1, full_flush_total=1,
        requests_kernel=2, requests_simulated=2,
    )  # fmt: skip


def test_each_difference_is_shown_with_its_line() -> None:
    """The kernel differs from the rules in three ways.

    * It merges a discard with a write.
    * It does not merge a write that touches a request.
    * It flushes a plug that is not full in 3.11.
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


def test_first_20_differences_are_shown_and_all_are_counted() -> None:
    """Discards and writes alternate in 30 bios, and each bio merges with the bio before."""
    verdict = judged(*new(1, 0), *(piece(2 + i, 8 + 8 * i, BACK, rwbs="DW"[i % 2]) for i in range(30)))
    assert len(verdict.mismatches) == SHOWN == 20
    assert (verdict.decisions_equal, verdict.decisions_total) == (1, 31)


def test_full_flush_and_missing_full_flush_are_judged() -> None:
    """The 17th request of 3.11 flushes a plug of 16.  `Left` reports the flush before the request is placed.

    A flush that may be a sleep is not judged if the simulator would not flush.
    """
    held = [step for i in range(16) for step in new(2 * i + 2, 1_000 * i, None if i == 0 else False)]
    last = piece(40, 90_000, NEW)
    verdict = judged(*held, last, Left(9), Placed(last, True, True), era="3.11")
    assert (verdict.full_flush_equal, verdict.full_flush_total) == (16, 16)
    assert verdict.agrees
    assert not judged(*held, last, Placed(last, True, False), era="3.11").agrees
    unsure = judged(*new(2, 0), *new(4, 800)[:1], Left(9), Placed(piece(4, 800, NEW), True, True, sure=False))
    assert (unsure.full_flush_total, unsure.full_flush_unknown) == (0, 1)


def test_kernel_merge_proves_fewer_segments_than_pages() -> None:
    """A request has at most four segments, and the kernel merges two bios of three pages each.

    So one of the bios has one segment.  A third bio of two pages then counts as one segment, too.
    """
    verdict = judged(*new(2, 0, sectors=24), piece(4, 24, BACK, 24), of=limits(4))
    assert (verdict.by_segments, verdict.decisions_equal) == (1, 2)
    verdict = judged(*new(2, 0, sectors=24), piece(4, 24, BACK, 24), piece(6, 48, BACK, 16), of=limits(4))
    assert (verdict.by_segments, verdict.decisions_equal) == (2, 3)
    # with at most three segments, a request of three bios takes no fourth bio
    verdict = judged(
        *new(2, 0, sectors=24), piece(4, 24, BACK, 24), piece(6, 48, BACK), *new(8, 56, False), of=limits(3)
    )
    assert verdict.decisions_equal == 4
    assert judged(*new(2, 0), piece(4, 8, BACK), of=limits(2)).by_segments == 0


WAITS = [*new(2, 0), Emptied(9, None), moved(5, 0, 8, issued=False)]
"""A request that waits in its software queue."""
NEXT = piece(8, 8, NEW)
"""A bio that would continue the request of `WAITS`, but got a new request."""


def test_request_taken_by_a_dispatch_cannot_be_joined() -> None:
    """A request had been taken if the dispatch under way or the next one issues it.

    line 7    task 7 issues another request
    line 8    a bio does not merge with the waiting request
    line 12   task 7 issues this request, in the same run or in the next one
    """
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


def test_each_request_in_dispatch_is_counted() -> None:
    """The second one comes later, elsewhere on the disk."""
    later = [
        piece(20, 5_000, NEW, pid=7), *new(22, 1_000), Emptied(9, None), moved(25, 1_000, 8, issued=False),
        moved(27, 9_200, 8, issued=True, pid=7), piece(28, 1_008, NEW),
        moved(32, 1_000, 8, issued=True, pid=7),
    ]  # fmt: skip
    first = [*WAITS, moved(7, 9_000, 8, issued=True, pid=7), NEXT, moved(12, 0, 8, issued=True, pid=7)]
    verdict = judged(*first, *later)
    assert (verdict.in_dispatch, verdict.agrees) == (2, True)


def test_later_dispatch_without_the_request_refutes_the_doubt() -> None:
    """A request that had left its queue is never issued after a complete run that began later.

    line 8    a bio does not merge with the waiting request, which is a mismatch
    line 10   task 7 begins a run without the request
    line 14   task 7 begins the next run
    line 15   task 7 issues the request
    """
    verdict = judged(
        *WAITS, NEXT, moved(10, 9_000, 8, issued=True, pid=7), piece(12, 5_000, NEW, pid=7),
        moved(14, 9_100, 8, issued=True, pid=7), moved(15, 0, 8, issued=True, pid=7),
    )  # fmt: skip
    assert verdict.in_dispatch == 0
    assert verdict.mismatches == [Mismatch(8, "decision", "getrq", "backmerge")]
    assert (verdict.decisions_equal, verdict.decisions_total) == (2, 3)


def test_request_that_is_joined_later_had_not_left() -> None:
    """A second bio merges with the request in doubt, so the first decision is a mismatch."""
    verdict = judged(*WAITS, NEXT, piece(12, 8, BACK))
    assert verdict.in_dispatch == 0
    assert verdict.mismatches == [Mismatch(8, "decision", "getrq", "backmerge")]


def test_bio_that_waited_for_a_tag_was_tried_earlier() -> None:
    """The request was not in the queue yet when the kernel tried the bio, so there is no doubt."""
    verdict = judged(*WAITS, piece(8, 8, NEW, attempt_line=4))
    assert (verdict.in_dispatch, verdict.agrees) == (0, True)


def test_other_devices_and_unknown_plugs_are_not_judged() -> None:
    """Requests of other devices count towards a full plug.  After a loss only the kernel's requests count."""
    other = piece(2, 0, NEW, device=OTHER)
    others = [other, Placed(other, True, None), piece(4, 8, BACK, device=OTHER)]
    assert judged(*others, *new(6, 8, False)) == Verdict(
        bios=1, decisions_equal=1, decisions_total=1, full_flush_equal=1, full_flush_total=1,
        requests_kernel=1, requests_simulated=1,
    )  # fmt: skip
    assert judged(
        *new(2, 0), Lost(5), piece(4, 8, BACK, plug_known=False), piece(6, 100, NEW, plug_known=False),
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
def test_piece_becomes_a_bio_with_a_segment_a_page(
    rwbs: str, sectors: int, segments: int, op: str, sync: bool, nomerge: bool
) -> None:
    """A discard has no segment.  A flush and a piece that is split off never merge."""
    bio = bio_of(piece(1, 40, NEW, sectors, rwbs=rwbs))
    assert (bio.start_sector, bio.sectors, bio.segments) == (40, sectors, segments)
    assert (bio.op, bio.sync, bio.nomerge, bio.queue) == (op, sync, nomerge, DISK)
    assert bio_of(piece(1, 40, NEW, split_off=True)).nomerge


def test_interleaved_streams_merge_by_the_rules_of_an_era() -> None:
    """Two interleaved streams have two bios each, and another request goes past the plug.

    The walk of 3.11 over all requests makes two requests of the streams.  The rules of 6.1 make four.
    Requests that are held at the end count, too.
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


def test_request_of_another_device_grows_as_the_kernel_decides() -> None:
    """The limits of the other device are unknown.  Its oldest request begins with 120 KiB.

    * Two merges of 4 KiB give 128 KiB, and the next request flushes the plug.
    * One merge does not, and neither does a new request in place of the second merge.
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
