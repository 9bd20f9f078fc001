"""Requests between plugs and driver, by scheduler: the requests that a bio finds or a dispatch takes."""

from __future__ import annotations

import pytest

from wbsim.experiments.captures.waiting import Waiting
from wbsim.models.bio import Bio, Request
from wbsim.models.block.merge import BACK, FRONT, NEW, bounds_of
from wbsim.models.block.spec import QueueLimits
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.sim.units import KIB

BOUNDS = bounds_of(
    QueueLimits(max_sectors_bytes=64 * KIB, max_segments=128, max_segment_bytes=64 * KIB, nomerges=0),
    PLUG_RULES["6.17"],
)


def waiting(scheduler: str, *starts: int) -> tuple[Waiting, list[Request]]:
    """Return the queues with a request of eight sectors at each of *starts*.

    Task 9 inserted the requests on processor 1, in lines 1, 2 ...
    """
    of, requests = Waiting(scheduler, BOUNDS), [Request(Bio(start, 8)) for start in starts]
    for line, request in enumerate(requests, 1):
        of.insert(request, 9, 1, line)
    return of, requests


@pytest.mark.parametrize(
    ("scheduler", "other", "found"),
    [
        ("none", {}, True), ("none", {"cpu": 0}, False), ("none", {"pid": 8}, True),
        ("none", {"op": "R"}, True),
        ("kyber", {}, True), ("kyber", {"cpu": 0}, False), ("kyber", {"op": "R"}, False),
        ("mq-deadline", {"cpu": 0, "pid": 8}, True), ("mq-deadline", {"op": "R"}, True),
        ("bfq", {"cpu": 0, "pid": 8}, True), ("bfq", {"sync": True}, False),
    ],
)  # fmt: skip
def test_bio_finds_the_requests_of_its_queue(scheduler: str, other: dict[str, object], found: bool) -> None:
    """The scheduler decides which bios share a queue.

    * none: the bios of a processor
    * kyber: the bios of a processor with the same operation
    * mq-deadline: all bios
    * bfq: the synchronous bios of a process, or all asynchronous bios
    """
    of, (request,) = waiting(scheduler, 0)
    where = {"pid": 9, "cpu": 1, "op": "W", "sync": False} | other
    bio = Bio(8, 8, op=str(where["op"]), sync=bool(where["sync"]))
    assert of.neighbours(bio, int(str(where["pid"])), int(str(where["cpu"]))) == ([request] if found else [])


def test_bfq_has_a_queue_for_each_synchronous_process() -> None:
    """The pid identifies the queue."""
    of = Waiting("bfq", BOUNDS)
    request = Request(Bio(0, 8, sync=True))
    of.insert(request, 9, 1, 1)
    assert of.neighbours(Bio(8, 8, sync=True), 9, 0) == [request]
    assert of.neighbours(Bio(8, 8, sync=True), 8, 1) == []
    assert of.neighbours(Bio(8, 8), 9, 1) == []


def test_front_merge_changes_the_first_sector_of_a_request() -> None:
    """The request is then issued by its new first sector."""
    of, (request,) = waiting("mq-deadline", 80)
    assert of.attempt_merge(Bio(88, 8), 9, 1) is BACK
    assert of.attempt_merge(Bio(72, 8), 9, 1) is FRONT
    assert of.attempt_merge(Bio(0, 8), 9, 1) is NEW
    assert of.insertion_line(request) == 1
    of.issue(80)
    assert of.neighbours(Bio(64, 8), 9, 1) == [request]
    of.issue(72)
    assert of.neighbours(Bio(64, 8), 9, 1) == []
    assert Waiting("none", BOUNDS).attempt_merge(Bio(0, 8), 9, 1) is NEW


@pytest.mark.parametrize(("scheduler", "left"), [("none", []), ("kyber", [3]), ("mq-deadline", [1, 2, 3])])
def test_dispatch_takes_requests_by_scheduler(scheduler: str, left: list[int]) -> None:
    """A run takes all software queues, with kyber those of one operation.  An elevator gives one request."""
    of = Waiting(scheduler, BOUNDS)
    requests = [Request(Bio(1_000 * i, 8, op="R" if i == 3 else "W")) for i in range(4)]
    for i, request in enumerate(requests):
        of.insert(request, 9, i % 2, i)
    of.issue(0)
    behind = [Bio(1_000 * i + 8, 8, op="R" if i == 3 else "W") for i in range(4)]
    assert [i for i in range(4) if of.neighbours(behind[i], 9, i % 2)] == left
    gone = [i for i in range(4) if i not in left]
    assert [of.recall(behind[i]) for i in gone] == [None, *(1_000 * i for i in gone[1:])]


def test_recalled_request_is_back_in_its_queue() -> None:
    """A bio at either end recalls the request once.

    The request counts as inserted in line 0, because the capture does not show when it came.
    """
    for sector in (8, -8):
        of, (request, other) = waiting("none", 0, 800)
        of.leave(request)
        bio = Bio(sector, 8)
        assert of.neighbours(bio, 9, 1) == []
        assert of.recall(bio) == 0
        assert of.neighbours(bio, 9, 1) == [request]
        assert (of.insertion_line(request), of.insertion_line(other)) == (0, 2)
        assert of.recall(bio) is None


def test_issued_request_is_not_recalled() -> None:
    """A request that was leaving is not recalled after its issue.

    The issue of an unknown request has no effect.
    """
    of, (request,) = waiting("none", 0)
    of.leave(request)
    of.issue(0)
    assert of.recall(Bio(8, 8)) is None
    of.issue(12_345)


def test_inserted_request_may_merge_with_a_waiting_one() -> None:
    """The elevator appends the second request to the first, so the second has no place in the queue."""
    of, (first, second) = waiting("mq-deadline", 0, 8)
    assert first.sectors == 16
    of.issue(8)
    assert of.neighbours(Bio(16, 8), 9, 1) == [first]
    assert second.bios[0] in first.bios
