"""The elevator and software queues."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import io_scheduler, leave
from wbsim.models.bio import Bio, Request
from wbsim.models.block.elevator import Elevator, SoftwareQueue
from wbsim.models.block.merge import Merge, bounds_of, try_join, try_merge
from wbsim.models.block.plug import Plug
from wbsim.models.block.spec import QueueLimits
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.sim.units import KIB

ERAS = pytest.mark.parametrize("era", PLUG_RULES)
RULES = PLUG_RULES["6.17"]


def limits(kib: int = 512, segments: int = 128, nomerges: int = 0) -> QueueLimits:
    """Return queue limits with 64 KiB segments."""
    return QueueLimits(
        max_sectors_bytes=kib * KIB, max_segments=segments, max_segment_bytes=64 * KIB, nomerges=nomerges
    )


def elevator(scheduler: str, of: QueueLimits | None = None) -> Elevator:
    """Return an empty elevator."""
    return Elevator(io_scheduler(scheduler), bounds_of(of or limits(), RULES))


def drain(of: Elevator) -> list[Request]:
    """Take all requests, in dispatch order."""
    return [leave(of) for _ in range(len(of.requests))]


@pytest.mark.parametrize(("scheduler", "front"), [("noop", Merge.NEW), ("deadline", Merge.FRONT)])
def test_only_a_sorting_scheduler_finds_requests_by_their_start(scheduler: str, front: Merge) -> None:
    """noop hashes only the ends of requests, so it front-merges only into the request that merged last."""
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
    """The elevator tries only the request that merged last if nomerges is 1."""
    of = elevator("deadline", limits(nomerges=nomerges))
    of.insert(Request(Bio(400, 8)))
    of.insert(Request(Bio(800, 8)))
    assert of.attempt_merge(Bio(408, 8)) is last
    assert of.attempt_merge(Bio(808, 8)) is other


def test_refused_bio_does_not_change_the_request_that_merged_last() -> None:
    """A request that refuses a bio for its size does not change the request that merged last.

    * The full request at 800 refuses the bio and becomes NOMERGE.
    * The request at 400 still is the one that merged last, so noop front-merges a bio into it.
    """
    of = elevator("noop", limits(64, 16))
    of.insert(Request(Bio(400, 8)))
    of.insert(Request(Bio(800, 128)))
    assert of.attempt_merge(Bio(928, 8)) is Merge.NEW
    assert of.attempt_merge(Bio(392, 8)) is Merge.FRONT


def test_bio_that_closes_a_gap_joins_both_neighbours() -> None:
    """attempt_back_merge: a bio between two waiting requests joins both into one request."""
    of = elevator("deadline")
    for start in (0, 16):
        of.insert(Request(Bio(start, 8)))
    assert of.attempt_merge(Bio(8, 8)) is Merge.BACK
    assert [(r.start_sector, r.end_sector) for r in drain(of)] == [(0, 24)]


def test_software_queue_tries_its_newest_eight_requests() -> None:
    """A software queue does not try its ninth newest request; a refusal for size ends the walk."""
    of = SoftwareQueue(bounds_of(limits(64, 16), RULES))
    for start in range(0, 9_000, 1_000):
        of.insert(Request(Bio(start, 8)))
    assert of.attempt_merge(Bio(8, 8)) is Merge.NEW
    assert of.attempt_merge(Bio(1_008, 8)) is Merge.BACK
    of.insert(Request(Bio(20_000, 128)))
    assert of.attempt_merge(Bio(20_128, 8)) is Merge.NEW


def test_inserted_request_joins_the_request_that_ends_at_its_start() -> None:
    """Sort-merge insertion: a flushed request joins the waiting request that ends where it starts."""
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
def test_inserted_request_joins_its_predecessors(nomerges: int, ends: dict[int, int]) -> None:
    """An insertion that closes a gap joins the inserted request with all its predecessors.

    * 400, 8, 0, 16 and 408 are inserted, in this order.
    * 0 joins no request, because insertion looks only for a request that ends where the new one starts.
    * 16 joins 8, and then this request joins 0.
    * With nomerges 1 only the request that merged last (400) is tried; with 2 no request is.
    """
    of = elevator("deadline", limits(nomerges=nomerges))
    for start in (400, 8, 0, 16, 408):
        of.insert(Request(Bio(start, 8)))
    assert {request.start_sector: request.end_sector for request in drain(of)} == ends


@given(
    starts=st.lists(st.integers(0, 60), min_size=1, max_size=60, unique=True),
    scheduler=st.sampled_from(["noop", "deadline"]),
)
def test_elevator_dispatches_each_sector_once(starts: list[int], scheduler: str) -> None:
    """Every sector is dispatched once, in any mix of merges, insertions and dispatches."""
    of = elevator(scheduler, limits(32, 16))
    left: list[Request] = []
    for n, start in enumerate(starts):
        bio = Bio(8 * start, 8)
        if of.attempt_merge(bio) is Merge.NEW:
            of.insert(Request(bio))
        if n % 5 == 4:
            left.append(leave(of))
    left += drain(of)
    assert sorted(bio.start_sector // 8 for request in left for bio in request.bios) == sorted(starts)
    assert all(request.sectors == 8 * len(request.bios) <= 64 for request in left)


def test_deadline_sweeps_and_noop_does_not() -> None:
    """deadline dispatches by sector; noop in order of arrival."""
    starts = [500, 900, 100, 700]
    for scheduler, expected in (("noop", starts), ("deadline", [100, 500, 700, 900])):
        of = elevator(scheduler)
        for start in starts:
            of.insert(Request(Bio(start, 8)))
        assert [request.start_sector for request in drain(of)] == expected


@pytest.mark.parametrize(("first", "then"), [(False, False), (True, True), (True, False), (False, True)])
@ERAS
def test_metadata_and_data_never_merge_from_5_18_on(era: str, first: bool, then: bool) -> None:
    """From 5.18 on a merge needs REQ_META on both sides or on neither; the refusal does not set NOMERGE.

    The rule holds in a plug, an elevator and a software queue, for two requests, at the front and the back.
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
            Elevator(io_scheduler("deadline"), bounds), SoftwareQueue(bounds)
        ):  # fmt: skip
            waiting.insert(Request(Bio(0, 8, meta=first)))
            assert waiting.attempt_merge(bio) is expected
        assert try_merge(Request(Bio(0, 8, meta=first)), bio, bounds) is expected
    of = Elevator(io_scheduler("noop"), bounds)
    of.insert(Request(Bio(0, 8, meta=first)))
    assert of.insert(Request(Bio(8, 8, meta=then))) != joins
    assert try_join(Request(Bio(0, 8, meta=first)), Request(Bio(8, 8, meta=then)), bounds) == joins


def test_software_queue_passes_over_a_nomerge_request() -> None:
    """The newest request is adjacent to the bio but NOMERGE, so the bio joins the request before it."""
    of = SoftwareQueue(bounds_of(limits(64, 16), RULES))
    of.insert(Request(Bio(16, 8)))
    apart = Request(Bio(0, 8))
    apart.nomerge = True
    of.insert(apart)
    assert of.attempt_merge(Bio(8, 8)) is Merge.FRONT
