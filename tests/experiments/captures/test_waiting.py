"""What waits between plugs and driver, per scheduler: what a bio finds there, and what a dispatch takes."""

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
    """Requests of eight sectors that task 9 inserted on processor 1, in lines 1, 2 ..."""
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
def test_who_shares_a_queue(scheduler: str, other: dict[str, object], found: bool) -> None:
    """A processor's, an operation's on it, everybody's, or a process's that is waited for."""
    of, (request,) = waiting(scheduler, 0)
    where = {"pid": 9, "cpu": 1, "op": "W", "sync": False} | other
    bio = Bio(8, 8, op=str(where["op"]), sync=bool(where["sync"]))
    assert of.touching(bio, int(str(where["pid"])), int(str(where["cpu"]))) == ([request] if found else [])


def test_a_process_that_is_waited_for_has_a_queue_of_its_own_under_bfq() -> None:
    """By its pid."""
    of = Waiting("bfq", BOUNDS)
    request = Request(Bio(0, 8, sync=True))
    of.insert(request, 9, 1, 1)
    assert of.touching(Bio(8, 8, sync=True), 9, 0) == [request]
    assert of.touching(Bio(8, 8, sync=True), 8, 1) == []
    assert of.touching(Bio(8, 8), 9, 1) == []


def test_bios_merge_there_and_are_found_at_their_new_beginning() -> None:
    """In front: the request is then issued by the sector at which it starts now."""
    of, (request,) = waiting("mq-deadline", 80)
    assert of.attempt_merge(Bio(88, 8), 9, 1) is BACK
    assert of.attempt_merge(Bio(72, 8), 9, 1) is FRONT
    assert of.attempt_merge(Bio(0, 8), 9, 1) is NEW
    assert of.since(request) == 1
    of.issue(80)
    assert of.touching(Bio(64, 8), 9, 1) == [request]
    of.issue(72)
    assert of.touching(Bio(64, 8), 9, 1) == []
    assert Waiting("none", BOUNDS).attempt_merge(Bio(0, 8), 9, 1) is NEW


@pytest.mark.parametrize(("scheduler", "left"), [("none", []), ("kyber", [3]), ("mq-deadline", [1, 2, 3])])
def test_what_a_dispatch_takes(scheduler: str, left: list[int]) -> None:
    """A run takes all software queues; kyber's those of one operation; an elevator gives one."""
    of = Waiting(scheduler, BOUNDS)
    requests = [Request(Bio(1_000 * i, 8, op="R" if i == 3 else "W")) for i in range(4)]
    for i, request in enumerate(requests):
        of.insert(request, 9, i % 2, i)
    of.issue(0)
    behind = [Bio(1_000 * i + 8, 8, op="R" if i == 3 else "W") for i in range(4)]
    assert [i for i in range(4) if of.touching(behind[i], 9, i % 2)] == left
    gone = [i for i in range(4) if i not in left]
    assert [of.recall(behind[i]) for i in gone] == [None, *(1_000 * i for i in gone[1:])]


def test_a_request_that_had_not_left_is_back_in_its_queue() -> None:
    """By either end; since the beginning, as nobody knows; once."""
    for sector in (8, -8):
        of, (request, other) = waiting("none", 0, 800)
        of.leave(request)
        bio = Bio(sector, 8)
        assert of.touching(bio, 9, 1) == []
        assert of.recall(bio) == 0
        assert of.touching(bio, 9, 1) == [request]
        assert (of.since(request), of.since(other)) == (0, 2)
        assert of.recall(bio) is None


def test_what_was_issued_does_not_come_back() -> None:
    """One that was leaving, too; what nobody knows changes nothing."""
    of, (request,) = waiting("none", 0)
    of.leave(request)
    of.issue(0)
    assert of.recall(Bio(8, 8)) is None
    of.issue(12_345)


def test_an_inserted_request_may_join_one_that_waits() -> None:
    """An elevator appends it: it has no place of its own."""
    of, (first, second) = waiting("mq-deadline", 0, 8)
    assert first.sectors == 16
    of.issue(8)
    assert of.touching(Bio(16, 8), 9, 1) == [first]
    assert second.bios[0] in first.bios
