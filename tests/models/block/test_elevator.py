"""The elevator and software queues."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.bio import Bio, Request
from wbsim.models.block.elevator import Elevator, SoftwareQueue
from wbsim.models.block.merge import Merge, bounds_of, try_join, try_merge
from wbsim.models.block.plug import Plug
from wbsim.models.block.spec import ElevatorRules, QueueLimits
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.sim.units import KIB

ERAS = pytest.mark.parametrize("era", PLUG_RULES)
RULES = PLUG_RULES["6.17"]


def limits(kib: int = 512, segments: int = 128, nomerges: int = 0) -> QueueLimits:
    """Queue limits with 64 KiB segments."""
    return QueueLimits(
        max_sectors_bytes=kib * KIB, max_segments=segments, max_segment_bytes=64 * KIB, nomerges=nomerges
    )


def elevator(scheduler: str, of: QueueLimits | None = None) -> Elevator:
    """An empty elevator."""
    return Elevator(ElevatorRules(scheduler=scheduler, fifo_batch=16), bounds_of(of or limits(), RULES))


def drain(of: Elevator) -> list[Request]:
    """All requests, in dispatch order."""
    return [of.next() for _ in range(len(of.waiting))]


@pytest.mark.parametrize(("scheduler", "front"), [("noop", Merge.NEW), ("deadline", Merge.FRONT)])
def test_only_a_sorting_scheduler_finds_who_starts_at_a_sector(scheduler: str, front: Merge) -> None:
    """noop has a hash of ends alone; in front it merges only with what merged last."""
    of = elevator(scheduler)
    of.insert(Request(Bio(400, 8)))
    of.insert(Request(Bio(800, 8)))
    assert of.attempt_merge(Bio(408, 8)) is Merge.BACK
    assert of.attempt_merge(Bio(792, 8)) is front
    assert of.attempt_merge(Bio(784 if front is Merge.FRONT else 392, 8)) is Merge.FRONT
    assert of.attempt_merge(Bio(900, 8)) is Merge.NEW


@pytest.mark.parametrize(
    ("nomerges", "last", "other"), [(0, Merge.BACK, Merge.BACK), (1, Merge.BACK, Merge.NEW)]
)
def test_nomerges_1_leaves_the_one_hit_merge(nomerges: int, last: Merge, other: Merge) -> None:
    """Only the request that merged last is tried; with 2 none is."""
    of = elevator("deadline", limits(nomerges=nomerges))
    of.insert(Request(Bio(400, 8)))
    of.insert(Request(Bio(800, 8)))
    assert of.attempt_merge(Bio(408, 8)) is last
    assert of.attempt_merge(Bio(808, 8)) is other


def test_a_refusal_leaves_what_merged_last_alone() -> None:
    """The full request at 800 refuses a bio for its size, and gets NOMERGE; the one at 400 merged last, and
    noop has it grow in front still.
    """
    of = elevator("noop", limits(64, 16))
    of.insert(Request(Bio(400, 8)))
    of.insert(Request(Bio(800, 128)))
    assert of.attempt_merge(Bio(928, 8)) is Merge.NEW
    assert of.attempt_merge(Bio(392, 8)) is Merge.FRONT


def test_a_gap_that_closes_joins_its_neighbours() -> None:
    """attempt_back_merge: the bio between two waiting requests leaves one."""
    of = elevator("deadline")
    for start in (0, 16):
        of.insert(Request(Bio(start, 8)))
    assert of.attempt_merge(Bio(8, 8)) is Merge.BACK
    assert [(r.start_sector, r.end_sector) for r in drain(of)] == [(0, 24)]


def test_a_software_queue_tries_its_newest_eight() -> None:
    """The ninth newest is out of reach; a refusal for size ends the walk."""
    of = SoftwareQueue(bounds_of(limits(64, 16), RULES))
    for start in range(0, 9_000, 1_000):
        of.insert(Request(Bio(start, 8)))
    assert of.attempt_merge(Bio(8, 8)) is Merge.NEW
    assert of.attempt_merge(Bio(1_008, 8)) is Merge.BACK
    of.insert(Request(Bio(20_000, 128)))
    assert of.attempt_merge(Bio(20_128, 8)) is Merge.NEW


def test_insertion_appends_whole_requests() -> None:
    """Sort-merge insertion: a flushed request joins the waiting one that it follows."""
    of = elevator("noop")
    assert of.insert(Request(Bio(0, 8)))
    assert not of.insert(Request(Bio(8, 8)))
    assert [(r.start_sector, r.end_sector) for r in drain(of)] == [(0, 16)]


@pytest.mark.parametrize(
    ("nomerges", "ends"),
    [
        (0, {0: 24, 400: 416}),
        (1, {0: 8, 8: 16, 16: 24, 400: 416}),
        (2, {0: 8, 8: 16, 16: 24, 400: 408, 408: 416}),
    ],
)
def test_an_insertion_that_closes_a_gap(nomerges: int, ends: dict[int, int]) -> None:
    """What came behind its follower was joined to nothing; the next one that follows has that looked at
    again. With nomerges 1 only the request that merged last is tried; with 2 none is.
    """
    of = elevator("deadline", limits(nomerges=nomerges))
    for start in (400, 8, 0, 16, 408):
        of.insert(Request(Bio(start, 8)))
    assert {request.start_sector: request.end_sector for request in drain(of)} == ends


@given(
    starts=st.lists(st.integers(0, 60), min_size=1, max_size=60, unique=True),
    scheduler=st.sampled_from(["noop", "deadline"]),
)
def test_the_elevator_loses_nothing(starts: list[int], scheduler: str) -> None:
    """Bios merged, requests inserted and dispatched in between: every sector leaves once."""
    of = elevator(scheduler, limits(32, 16))
    left: list[Request] = []
    for n, start in enumerate(starts):
        bio = Bio(8 * start, 8)
        if of.attempt_merge(bio) is Merge.NEW:
            of.insert(Request(bio))
        if n % 5 == 4:
            left.append(of.next())
    left += drain(of)
    assert sorted(bio.start_sector // 8 for request in left for bio in request.bios) == sorted(starts)
    assert all(request.sectors == 8 * len(request.bios) <= 64 for request in left)


def test_deadline_sweeps_and_noop_does_not() -> None:
    """Dispatch order: by sector from the oldest on, wrapping, against arrival."""
    starts = [500, 900, 100, 700]
    for scheduler, expected in (("noop", starts), ("deadline", [500, 700, 900, 100])):
        of = elevator(scheduler)
        for start in starts:
            of.insert(Request(Bio(start, 8)))
        assert [request.start_sector for request in drain(of)] == expected


@pytest.mark.parametrize(("first", "then"), [(False, False), (True, True), (True, False), (False, True)])
@ERAS
def test_metadata_joins_no_data_where_the_era_keeps_them_apart(era: str, first: bool, then: bool) -> None:
    """REQ_META on both or on neither, from 5.18 on: in a plug, an elevator, a software queue and between
    requests, in front and behind; a refusal sets no NOMERGE.
    """
    rules = PLUG_RULES[era]
    bounds, joins = bounds_of(limits(), rules), first == then or not rules.meta_apart
    for start, fate in ((8, Merge.BACK), (-8, Merge.FRONT)):
        expected = fate if joins else Merge.NEW
        plug, request, bio = Plug(rules), Request(Bio(0, 8, meta=first)), Bio(start, 8, meta=then)
        plug.add(request)
        assert plug.attempt_merge(bio, bounds) is expected
        assert not request.nomerge
        waiting: Elevator | SoftwareQueue
        for waiting in (
            Elevator(ElevatorRules(scheduler="deadline", fifo_batch=16), bounds), SoftwareQueue(bounds)
        ):  # fmt: skip
            waiting.insert(Request(Bio(0, 8, meta=first)))
            assert waiting.attempt_merge(bio) is expected
        assert try_merge(Request(Bio(0, 8, meta=first)), bio, bounds) is expected
    of = Elevator(ElevatorRules(scheduler="noop", fifo_batch=16), bounds)
    of.insert(Request(Bio(0, 8, meta=first)))
    assert of.insert(Request(Bio(8, 8, meta=then))) != joins
    assert try_join(Request(Bio(0, 8, meta=first)), Request(Bio(8, 8, meta=then)), bounds) == joins


def test_a_request_that_may_not_merge_does_not_end_the_search() -> None:
    """The newest touches and is NOMERGE; the one before it takes the bio."""
    of = SoftwareQueue(bounds_of(limits(64, 16), RULES))
    of.insert(Request(Bio(16, 8)))
    apart = Request(Bio(0, 8))
    apart.nomerge = True
    of.insert(apart)
    assert of.attempt_merge(Bio(8, 8)) is Merge.FRONT
