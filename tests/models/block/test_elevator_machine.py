"""The elevator, compared after each step with a list that is searched from end to end."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from wbsim.models.bio import Bio, Request
from wbsim.models.block.elevator import Elevator
from wbsim.models.block.merge import Merge, bounds_of, try_join, try_merge
from wbsim.models.block.spec import ElevatorRules, QueueLimits
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.sim.units import KIB

MOST_SECTORS = 32


def limits(nomerges: int = 0) -> QueueLimits:
    """Return queue limits of 16 KiB and four segments a request."""
    return QueueLimits(
        max_sectors_bytes=16 * KIB, max_segments=4, max_segment_bytes=64 * KIB, nomerges=nomerges
    )


BOUNDS = bounds_of(limits(), PLUG_RULES["6.17"])


class Sweep(RuleBasedStateMachine):
    """An elevator with any scheduler and batches of one to four, next to a list of the waiting requests.

    The list holds copies of the requests in order of arrival, and every search walks the complete list.
    `try_merge` and `try_join`, which have tests elsewhere, decide whether two requests may merge.
    """

    @initialize(
        scheduler=st.sampled_from(["noop", "deadline", "cfq"]), batch=st.integers(1, 4),
        nomerges=st.integers(0, 2), era=st.sampled_from(["2.6.39", "6.17"]),
    )  # fmt: skip
    def begin(self, scheduler: Any, batch: int, nomerges: int, era: str) -> None:
        self.bounds = bounds_of(limits(nomerges), PLUG_RULES[era])
        self.put: list[Request] = []
        rules = ElevatorRules(scheduler=scheduler, fifo_batch=batch)
        self.of = Elevator(rules, self.bounds, self.put.append)
        self.scheduler, self.sorts, self.batch, self.nomerges = (
            scheduler,
            scheduler != "noop",
            batch,
            nomerges,
        )
        self.arrived: list[Request] = []
        self.hashed: set[int] = set()  # the ids of the requests in the hash of ends
        self.last: Request | None = None  # q->last_merge
        self.head = self.left = self.joined = 0
        self.sectors: set[int] = set()

    @rule(
        place=st.integers(0, 30), nomerge=st.integers(0, 9), sync=st.booleans(), meta=st.integers(0, 5),
        discard=st.integers(0, 9),
    )  # fmt: skip
    def submit(self, place: int, nomerge: int, sync: bool, meta: int, discard: int) -> None:
        """Submit a bio of eight sectors, unless a waiting request has these sectors."""
        if place in self.sectors:
            return
        self.sectors.add(place)

        def bio() -> Bio:
            return Bio(
                8 * place, 8, nomerge=not nomerge, sync=sync, meta=not meta, op="W" if discard else "D"
            )

        merge, expected = self.of.attempt_merge(bio()), self.plain_merge(bio())
        assert merge is expected
        if merge is Merge.NEW:
            assert self.of.insert(Request(bio())) == self.plain_insert(Request(bio()))

    def leaves(self, request: Request) -> None:
        """Forget *request*, which no longer waits; Python may use its id again."""
        self.arrived.remove(request)
        self.hashed.discard(id(request))

    def touching(self, name: str, sector: int) -> Request | None:
        """Return the oldest waiting request whose attribute *name* is *sector*."""
        return next((of for of in self.arrived if getattr(of, name) == sector), None)

    def plain_merge(self, bio: Bio) -> Merge:
        """elv_merge, and the merge of a request that has grown with its neighbours."""
        if not self.arrived or self.nomerges == 2:
            return Merge.NEW
        last = self.last
        if last is not None and bio.start_sector in (last.end_sector, last.start_sector - 8):
            return self.grown(last, bio)
        if self.nomerges == 1:
            return Merge.NEW
        before = self.touching("end_sector", bio.start_sector)
        if before is not None and id(before) in self.hashed and self.grown(before, bio) is Merge.BACK:
            return Merge.BACK
        after = self.touching("start_sector", bio.start_sector + 8) if self.sorts else None
        return Merge.NEW if after is None else self.grown(after, bio)

    def grown(self, request: Request, bio: Bio) -> Merge:
        """Add *bio* to *request*; a scheduler that sorts then joins *request* with its neighbours."""
        merge = try_merge(request, bio, self.bounds)
        if merge is Merge.NEW:
            if request.nomerge and self.last is request:
                self.last = None
            return merge
        self.last = request
        self.hashed.add(id(request))
        if self.sorts and merge is Merge.BACK:
            after = self.touching("start_sector", request.end_sector)
            if after is not None:
                self.joins(request, after)
        elif self.sorts:
            self.joins_predecessors(request)
        return merge

    def joins(self, request: Request, follower: Request) -> bool:
        """Append the waiting *follower* to *request*; return whether they joined."""
        if not try_join(request, follower, self.bounds):
            return False
        self.leaves(follower)
        self.hashed.add(id(request))
        self.last = request
        self.joined += 1
        return True

    def joins_predecessors(self, request: Request) -> None:
        """Join *request* with the request that ends where it starts, and so on."""
        while True:
            before = self.touching("end_sector", request.start_sector)
            if before is None or id(before) not in self.hashed or not self.joins(before, request):
                return
            request = before

    def plain_insert(self, request: Request) -> bool:
        """elv_attempt_insert_merge: return whether *request* was added and not joined with another."""
        if self.arrived and self.nomerges < 2:
            places = [self.last]
            if not self.nomerges:
                before = self.touching("end_sector", request.start_sector)
                places.append(before if before is not None and id(before) in self.hashed else None)
            for number, place in enumerate(places):
                if place is not None and try_join(place, request, self.bounds):
                    self.hashed.add(id(place))
                    self.last = place
                    self.joined += 1
                    if number:
                        self.joins_predecessors(place)
                    return False
        self.arrived.append(request)
        if not request.nomerge:
            self.hashed.add(id(request))
            self.last = self.last or request
        return True

    @rule()
    def dispatch(self) -> None:
        """Dispatch the next request.

        * noop: the oldest request.
        * deadline: the next sector from the head on, else the lowest sector.  A batch begins with the oldest
          request.
        * CFQ: the oldest synchronous request, else like deadline, but without batches.
        """
        if not self.arrived:
            return
        expected = self.arrived[0]
        synchronous = [request for request in self.arrived if request.sync]
        if self.scheduler == "cfq" and synchronous:
            expected = synchronous[0]
        elif self.sorts:
            if self.scheduler == "deadline" and self.left == 0:
                self.left, self.head = self.batch, expected.start_sector
            ahead = [request for request in self.arrived if request.start_sector >= self.head]
            expected = min(ahead or self.arrived, key=lambda request: request.start_sector)
        taken = self.of.next()
        assert facts(taken) == facts(expected)
        self.leaves(expected)
        if self.last is expected:
            self.last = None
        self.sectors -= {bio.start_sector // 8 for bio in taken.bios}
        self.head = taken.end_sector
        self.left = self.left - 1 if self.arrived else 0

    @rule(place=st.integers(0, 30))
    def look(self, place: int) -> None:
        """Compare the requests that a bio at *place* would be tried against."""
        found = [self.touching("end_sector", 8 * place), self.touching("start_sector", 8 * place + 8)]
        if found[0] is not None and id(found[0]) not in self.hashed:
            found[0] = None
        if not self.sorts:
            found[1] = None
        tried = [of for of in found if of and self.nomerges < (1 if of is not self.last else 2)]
        assert [facts(of) for of in self.of.touching(Bio(8 * place, 8))] == [facts(of) for of in tried]

    @invariant()
    def both_are_the_same(self) -> None:
        """Both hold the same requests in the same order, and each sector once.

        Requests stay within the limits, and each joined request is put once.
        """
        assert [facts(request) for request in self.of.waiting] == [facts(of) for of in self.arrived]
        held = [bio.start_sector // 8 for request in self.of.waiting for bio in request.bios]
        assert sorted(held) == sorted(self.sectors)
        assert all(request.sectors <= MOST_SECTORS for request in self.of.waiting)
        assert len(self.put) == self.joined
        self.of.check()


def facts(request: Request) -> tuple[Any, ...]:
    """Return the compared attributes of *request*."""
    return (
        request.start_sector, request.end_sector, request.segments, request.merges, request.nomerge,
        request.sync, [bio.start_sector for bio in request.bios],
    )  # fmt: skip


Sweep.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestSweep: Any = Sweep.TestCase


def test_a_batch_begins_with_the_oldest() -> None:
    """A batch of deadline begins with the oldest request and sweeps upwards; batches have two requests here.

    500, 900, 100, 700 and 300 wait, in this order:

    * first batch: 500 (the oldest) and 700
    * second batch: 900 (the oldest), then the sweep wraps to 100
    * third batch: 300; the elevator is empty, so the batch ends

    50, 900 and 20 come: the next batch is 50 and 900, then follows 20.
    """
    of = Elevator(ElevatorRules(scheduler="deadline", fifo_batch=2), BOUNDS)
    for start in (500, 900, 100, 700, 300):
        of.insert(Request(Bio(start, 8)))
    assert [of.next().start_sector for _ in range(5)] == [500, 700, 900, 100, 300]
    for start in (50, 900, 20):
        of.insert(Request(Bio(start, 8)))
    assert [of.next().start_sector for _ in range(3)] == [50, 900, 20]
