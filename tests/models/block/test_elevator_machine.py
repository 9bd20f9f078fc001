"""The elevator against a list that is searched from end to end, step by step."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from wbsim.models.bio import Bio, Request
from wbsim.models.block.elevator import Elevator
from wbsim.models.block.merge import Merge, bounds_of
from wbsim.models.block.spec import ElevatorRules, QueueLimits
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.sim.units import KIB

MOST_SECTORS = 32


def limits() -> QueueLimits:
    """16 KiB and four segments a request."""
    return QueueLimits(max_sectors_bytes=16 * KIB, max_segments=4, max_segment_bytes=64 * KIB, nomerges=0)


BOUNDS = bounds_of(limits(), PLUG_RULES["6.17"])


class Sweep(RuleBasedStateMachine):
    """A deadline elevator with batches of three: what waits, and which goes next, by looking at all."""

    @initialize()
    def begin(self) -> None:
        self.of = Elevator(ElevatorRules(scheduler="deadline", fifo_batch=3), BOUNDS)
        self.arrived: list[Request] = []
        self.sectors: set[int] = set()
        self.head = self.left = 0

    @rule(place=st.integers(0, 30))
    def submit(self, place: int) -> None:
        """A bio of eight sectors that nobody has: it joins none but a request that it touches and that has
        room; else it waits as a request of its own.
        """
        if place in self.sectors:
            return
        self.sectors.add(place)
        bio = Bio(8 * place, 8)
        touched = [
            request
            for request in self.arrived
            if request.end_sector == bio.start_sector or request.start_sector == bio.end_sector
        ]
        fits = [r for r in touched if r.sectors + 8 <= MOST_SECTORS and not r.nomerge]
        merge = self.of.attempt_merge(bio)
        assert merge is Merge.NEW or fits
        if merge is Merge.NEW:
            request = Request(bio)
            if self.of.insert(request):
                self.arrived.append(request)
            else:
                assert fits, "a request is appended to one that has room"
        self.arrived = [request for request in self.arrived if request in self.of.waiting]

    @rule()
    def dispatch(self) -> None:
        """The next by sector from the head on, or the lowest; each batch begins with who came first."""
        if not self.arrived:
            return
        if self.left == 0:
            self.left, self.head = 3, self.arrived[0].start_sector
        ahead = [request for request in self.arrived if request.start_sector >= self.head]
        expected = min(ahead or self.arrived, key=lambda request: request.start_sector)
        taken = self.of.next()
        assert taken is expected
        self.arrived.remove(taken)
        self.sectors -= {bio.start_sector // 8 for bio in taken.bios}
        self.head = taken.end_sector
        self.left = self.left - 1 if self.arrived else 0

    @invariant()
    def nothing_is_lost(self) -> None:
        """Every sector waits once, in requests within the limits whose bios lie behind each other."""
        if not hasattr(self, "of"):
            return
        held: list[int] = []
        for request in self.of.waiting:
            starts = [bio.start_sector for bio in request.bios]
            assert starts == list(range(request.start_sector, request.end_sector, 8))
            assert request.sectors <= MOST_SECTORS
            assert (request.segments, request.merges) == (len(starts), len(starts) - 1)
            held += [start // 8 for start in starts]
        assert sorted(held) == sorted(self.sectors)


Sweep.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestSweep: Any = Sweep.TestCase


def test_a_batch_begins_with_the_oldest() -> None:
    """Of 500, 900, 100, 700, 300 in batches of two: from the oldest on, 500 and 700; then from 900 and round
    to the lowest, 100; then 300. With one request left, a new batch begins.
    """
    of = Elevator(ElevatorRules(scheduler="deadline", fifo_batch=2), BOUNDS)
    for start in (500, 900, 100, 700, 300):
        of.insert(Request(Bio(start, 8)))
    assert [of.next().start_sector for _ in range(5)] == [500, 700, 900, 100, 300]
    for start in (50, 900, 20):
        of.insert(Request(Bio(start, 8)))
    assert [of.next().start_sector for _ in range(3)] == [50, 900, 20]
