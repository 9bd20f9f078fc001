"""The elevator, compared after each step with a list that is searched from end to end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.harness import io_scheduler, leave
from wbsim.models.bio import Bio, Request
from wbsim.models.block.elevator import Elevator
from wbsim.models.block.merge import Merge, bounds_of, try_join, try_merge
from wbsim.models.block.spec import QueueLimits
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.sim.units import KIB, MS, S

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
        nomerges=st.integers(0, 2), era=st.sampled_from(["2.6.39", "6.17"]), resumes=st.booleans(),
    )  # fmt: skip
    def begin(self, scheduler: Any, batch: int, nomerges: int, era: str, resumes: bool) -> None:
        self.bounds = bounds_of(limits(nomerges), PLUG_RULES[era])
        self.put: list[Request] = []
        order = io_scheduler(scheduler, new=resumes or scheduler == "cfq", fifo_batch=batch)
        self.of, self.resumes = Elevator(order, self.bounds, self.put.append), resumes
        self.scheduler, self.sorts, self.batch, self.nomerges = (
            scheduler,
            scheduler != "noop",
            batch,
            nomerges,
        )
        self.arrived: list[Request] = []
        self.hashed: set[int] = set()  # the ids of the requests in the hash of ends
        self.last: Request | None = None  # q->last_merge
        self.now = self.joined = 0
        self.heads = dict.fromkeys([True, False], 0)
        self.kind, self.left, self.starved = False, 0, 0
        self.slice_ends = 0
        self.sectors: set[int] = set()

    @rule(
        place=st.integers(0, 30), nomerge=st.integers(0, 9), sync=st.booleans(), meta=st.integers(0, 5),
        op=st.sampled_from("WWWWRD"),
    )  # fmt: skip
    def submit(self, place: int, nomerge: int, sync: bool, meta: int, op: str) -> None:
        """Submit a bio of eight sectors, unless a waiting request has these sectors."""
        if place in self.sectors:
            return
        self.sectors.add(place)

        def bio() -> Bio:
            return Bio(8 * place, 8, nomerge=not nomerge, sync=sync, meta=not meta, op=op)

        merge, expected = self.of.attempt_merge(bio()), self.plain_merge(bio())
        assert merge is expected
        if merge is Merge.NEW:
            assert self.of.insert(Request(bio(), self.now)) == self.plain_insert(Request(bio(), self.now))
            if self.scheduler == "cfq" and sync and not self.kind:
                self.left = 0

    def leaves(self, request: Request) -> None:
        """Forget *request*, which no longer waits; Python may use its id again."""
        self.arrived.remove(request)
        self.hashed.discard(id(request))

    def neighbours(self, name: str, sector: int) -> Request | None:
        """Return the oldest waiting request whose attribute *name* is *sector*."""
        return next((of for of in self.arrived if getattr(of, name) == sector), None)

    def plain_merge(self, bio: Bio) -> Merge:
        """elv_merge, and the merge of a request that has grown with its neighbours."""
        if not self.arrived or self.nomerges == 2:
            return Merge.NEW
        last = self.last
        if (
            last is not None
            and self.alike(last, bio)
            and bio.start_sector in (last.end_sector, last.start_sector - 8)
        ):
            return self.grown(last, bio)
        if self.nomerges == 1:
            return Merge.NEW
        before = self.neighbours("end_sector", bio.start_sector)
        found = before is not None and id(before) in self.hashed and self.alike(before, bio)
        if found and before is not None and self.grown(before, bio) is Merge.BACK:
            return Merge.BACK
        after = self.neighbours("start_sector", bio.start_sector + 8) if self.sorts else None
        return Merge.NEW if after is None or not self.alike(after, bio) else self.grown(after, bio)

    def alike(self, request: Request, other: Bio | Request) -> bool:
        """CFQ merges a synchronous request with synchronous ones only, and an asynchronous one alike."""
        return self.scheduler != "cfq" or request.sync == other.sync

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
            after = self.neighbours("start_sector", request.end_sector)
            if after is not None:
                self.joins(request, after)
        elif self.sorts:
            self.joins_predecessors(request)
        return merge

    def joins(self, request: Request, follower: Request) -> bool:
        """Append the waiting *follower* to *request*; return whether they joined."""
        if not self.alike(request, follower) or not try_join(request, follower, self.bounds):
            return False
        self.leaves(follower)
        self.hashed.add(id(request))
        self.last = request
        self.joined += 1
        return True

    def joins_predecessors(self, request: Request) -> None:
        """Join *request* with the request that ends where it starts, and so on."""
        while True:
            before = self.neighbours("end_sector", request.start_sector)
            if before is None or id(before) not in self.hashed or not self.joins(before, request):
                return
            request = before

    def plain_insert(self, request: Request) -> bool:
        """elv_attempt_insert_merge: return whether *request* was added and not joined with another."""
        if self.arrived and self.nomerges < 2:
            places = [self.last]
            if not self.nomerges:
                before = self.neighbours("end_sector", request.start_sector)
                places.append(before if before is not None and id(before) in self.hashed else None)
            for number, place in enumerate(places):
                if place is None or not self.alike(place, request):
                    continue
                if try_join(place, request, self.bounds):
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

    @rule(ms=st.sampled_from([1, 30, 60, 200, 3_000, 9_000]))
    def wait(self, ms: int) -> None:
        """Let time pass."""
        self.now += ms * MS

    @rule()
    def dispatch(self) -> None:
        """Dispatch the next request."""
        if not self.arrived:
            return
        match self.scheduler:
            case "noop":
                expected = self.arrived[0]
            case "deadline":
                expected = self.next_by_deadline()
            case _:
                expected = self.next_by_cfq()
        taken = leave(self.of, self.now)
        assert facts(taken) == facts(expected)
        self.leaves(expected)
        if self.last is expected:
            self.last = None
        self.sectors -= {bio.start_sector // 8 for bio in taken.bios}
        self.heads[self.first_kind(taken)] = taken.end_sector

    def first_kind(self, request: Request) -> bool:
        """Return whether *request* is of the kind that goes first: a read, or synchronous with CFQ."""
        return request.sync if self.scheduler == "cfq" else request.op == "R"

    def of_kind(self, kind: bool) -> list[Request]:
        """Return the waiting requests of a kind, oldest first."""
        return [request for request in self.arrived if self.first_kind(request) == kind]

    def ahead(self, requests: list[Request]) -> Request | None:
        """Return the first of *requests*, by sector, at or behind the end of the last one of their kind."""
        head = self.heads[self.first_kind(requests[0])] if requests else 0
        found = [request for request in requests if request.start_sector >= head]
        return min(found, key=lambda request: request.start_sector, default=None)

    def next_by_deadline(self) -> Request:
        """deadline_dispatch_requests: R R W R R W, each a batch by sector that an expired one may begin."""
        reads, writes = self.of_kind(True), self.of_kind(False)
        ahead = self.ahead(reads if self.kind else writes)
        if self.left and ahead is not None:
            self.left -= 1
            return ahead
        before = self.kind
        self.kind = bool(reads) and not (writes and self.starved == 2)
        self.starved = self.starved + 1 if self.kind and writes else self.starved if self.kind else 0
        self.left = self.batch - 1
        mine = reads if self.kind else writes
        ahead = self.ahead(mine) if self.resumes or self.kind == before else None
        expire = 500 * MS if self.kind else 5_000 * MS
        return mine[0] if ahead is None or self.now - mine[0].started_ns >= expire else ahead

    def next_by_cfq(self) -> Request:
        """cfq_select_queue: 100 ms for synchronous requests, then 40 ms and 16 for asynchronous ones."""
        sync, others = self.of_kind(True), self.of_kind(False)
        over, was_sync = self.now >= self.slice_ends, self.kind
        if sync and others:
            over = over or (not self.kind and self.left <= 0)
            self.kind = not self.kind if over else self.kind
        else:
            self.kind = bool(sync)
        begins = over or self.kind != was_sync
        if begins:
            self.slice_ends, self.left = self.now + (100 if self.kind else 40) * MS, 0 if self.kind else 16
        if self.kind:
            return sync[0]
        self.left -= 1
        if begins and self.now - others[0].started_ns >= 250 * MS:
            return others[0]
        return self.ahead(others) or min(others, key=lambda request: request.start_sector)

    @rule(place=st.integers(0, 30))
    def look(self, place: int) -> None:
        """Compare the requests that a bio at *place* would be tried against."""
        found = [self.neighbours("end_sector", 8 * place), self.neighbours("start_sector", 8 * place + 8)]
        if found[0] is not None and id(found[0]) not in self.hashed:
            found[0] = None
        if not self.sorts:
            found[1] = None
        for sync in (True, False):
            bio = Bio(8 * place, 8, sync=sync)
            tried = [
                of for of in found
                if of and self.alike(of, bio) and self.nomerges < (1 if of is not self.last else 2)
            ]  # fmt: skip
            assert [facts(of) for of in self.of.neighbours(bio)] == [facts(of) for of in tried]

    @invariant()
    def both_are_the_same(self) -> None:
        """Both hold the same requests in the same order, and each sector once.

        Requests stay within the limits, and each joined request is put once.
        """
        assert [facts(request) for request in self.of.requests] == [facts(of) for of in self.arrived]
        held = [bio.start_sector // 8 for request in self.of.requests for bio in request.bios]
        assert sorted(held) == sorted(self.sectors)
        assert all(request.sectors <= MOST_SECTORS for request in self.of.requests)
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


def starts(of: Elevator, *now_ns: int) -> list[int]:
    """Dispatch a request at each of *now_ns*; return their start sectors."""
    return [leave(of, now).start_sector for now in now_ns]


def filled(scheduler: str, batch: int, *requests: tuple[int, int, bool]) -> Elevator:
    """Return an elevator with *requests*: start sector, time of arrival, synchronous or not."""
    of = Elevator(io_scheduler(scheduler, fifo_batch=batch), BOUNDS)
    for start, came_ns, sync in requests:
        of.insert(Request(Bio(start, 8, sync=sync), came_ns))
    return of


def test_deadline_batch_goes_on_by_sector() -> None:
    """A batch goes on where the last one ended; at the end of a sweep it begins with the oldest request.

    500, 900, 100, 700 and 300 wait, in this order; a batch has two requests.

    * first batch from sector 0 on: 100 and 300
    * second batch: 500 and 700
    * third batch: 900; nothing is ahead then

    700, 20 and 800 come: nothing is behind 908, so the next batch begins with 700, the oldest.  It has 800,
    too.  Nothing is ahead again, so 20 begins a batch.
    """
    of = filled("deadline", 2, *((start, 0, False) for start in (500, 900, 100, 700, 300)))
    assert starts(of, *[0] * 5) == [100, 300, 500, 700, 900]
    for start in (700, 20, 800):
        of.insert(Request(Bio(start, 8)))
    assert starts(of, 0, 0, 0) == [700, 800, 20]


@pytest.mark.parametrize(("waited_ns", "expected"), [(5 * S - 1, [20, 40, 60]), (5 * S, [900, 20, 40])])
def test_deadline_batch_begins_with_an_expired_write(waited_ns: int, expected: list[int]) -> None:
    """A write that is 5 s old begins the next batch; its sector is far ahead of the others.

    900 came at 1 s, the others 4 s later.  A batch has one request.  Behind 900 the sweep begins again.
    """
    of = filled("deadline", 1, (900, S, False), *((at, 5 * S, False) for at in (20, 40, 60)))
    assert starts(of, *[S + waited_ns] * 3) == expected


def test_deadline_serves_two_batches_of_reads_before_writes() -> None:
    """Batches of one request leave in the order R R W R R W, as long as both kinds wait."""
    of = Elevator(io_scheduler("deadline", fifo_batch=1), BOUNDS)
    for place in range(4):
        of.insert(Request(Bio(100 * place, 8, op="R")))
        of.insert(Request(Bio(100 * place + 50, 8, op="W")))
    assert "".join(leave(of).op for _ in range(8)) == "RRWRRWWW"


@pytest.mark.parametrize(("new", "third"), [(True, 700), (False, 20)])
def test_change_of_direction_keeps_or_loses_the_position(new: bool, third: int) -> None:
    """deadline of 5.14 and later has a position for each direction; before, a change of direction loses it.

    The writes 500 and 600 leave, then a read; after it the writes 20, which is older, and 700 wait.
    """
    of = Elevator(io_scheduler("deadline", new=new, fifo_batch=2), BOUNDS)
    for start in (500, 600):
        of.insert(Request(Bio(start, 8)))
    assert starts(of, 0, 0) == [500, 600]
    of.insert(Request(Bio(0, 8, op="R")))
    for start in (20, 700):
        of.insert(Request(Bio(start, 8)))
    assert starts(of, 0, 0) == [0, third]


def test_synchronous_request_preempts_the_asynchronous_slice_of_cfq() -> None:
    """Three asynchronous requests wait; after the first one a synchronous request comes, and goes next."""
    of = filled("cfq", 16, *((start, 0, False) for start in (100, 200, 300)))
    assert starts(of, 0) == [100]
    of.insert(Request(Bio(900, 8, sync=True)))
    assert starts(of, 1, 2, 3) == [900, 200, 300]


def test_asynchronous_requests_of_cfq_have_a_slice_beside_synchronous_ones() -> None:
    """A synchronous request is always waiting, and one leaves every 10 ms.

    * to 100 ms: ten synchronous requests
    * 100 ms: the slice of the asynchronous ones begins, and 5 000 leaves
    * 110 ms: a synchronous request has come, and goes next
    """
    of = filled("cfq", 16, (5_000, 0, False), (6_000, 0, False), (0, 0, True))
    left = []
    for tick in range(13):
        left += starts(of, tick * 10 * MS)
        of.insert(Request(Bio(10 + 10 * tick, 8, sync=True), tick * 10 * MS))
    assert left == [0, *range(10, 100, 10), 5_000, 100, 110]


@pytest.mark.parametrize(("waited_ns", "first"), [(250 * MS - 1, 200), (250 * MS, 900)])
def test_slice_of_cfq_begins_with_an_expired_request(waited_ns: int, first: int) -> None:
    """The head is at 108; 900 came first, at 1 s, and begins a slice if it has waited for 250 ms."""
    of = filled("cfq", 16, (100, S, False), (900, S, False), (200, S, False))
    assert starts(of, S, S + waited_ns) == [100, first]


def test_asynchronous_slice_of_cfq_has_40_ms_or_16_requests() -> None:
    """Behind 100 ms of synchronous requests, 16 asynchronous ones leave, or those of 40 ms."""
    for every_ms, count in ((1, 16), (10, 4)):
        of = filled("cfq", 16, (0, 0, True), *((1_000 + 10 * n, 0, False) for n in range(30)))
        of.insert(Request(Bio(100, 8, sync=True)))
        assert starts(of, 0) == [0]
        served = [leave(of, (100 + every_ms * n) * MS).sync for n in range(count + 1)]
        assert served == [False] * count + [True]


def issued(of: Elevator, now_ns: int) -> list[Request]:
    """Return the requests that leave at *now_ns*, until none may."""
    taken: list[Request] = []
    while of.requests and (request := of.next(now_ns)) is not None:
        taken.append(request)
    return taken


def test_cfq_holds_asynchronous_requests_back_during_synchronous_ones() -> None:
    """Without a synchronous request, all asynchronous ones leave; with one in the device, none does.

    A flush, which passes the scheduler, has no effect at its end.
    """
    of = filled("cfq", 16, *((start, 0, False) for start in range(0, 1_000, 20)))
    of.complete(Request(Bio(0, 8, sync=True)), 300 * MS)
    assert len(issued(of, 300 * MS)) == 50
    of = filled("cfq", 16, (0, 0, True), (100, 0, True), (200, 0, False), (300, 0, False))
    first, second = issued(of, 0)
    assert (first.start_sector, second.start_sector) == (0, 100)
    of.complete(first, 1)
    assert issued(of, 1) == []
    of.complete(second, 2)
    assert [request.start_sector for request in issued(of, 2)] == [200, 300]


@pytest.mark.parametrize(
    ("took_ms", "later_ms", "most"), [(124, 0, 50), (125, 0, 1), (125, 199, 1), (125, 200, 2), (125, 399, 3)]
)
def test_delayed_synchronous_request_limits_the_depth_of_cfq(took_ms: int, later_ms: int, most: int) -> None:
    """After one that took 125 ms, the device may have one asynchronous request, and one more each 100 ms."""
    of = filled("cfq", 16, (0, 0, True))
    (request,) = issued(of, 0)
    of.complete(request, took_ms * MS)
    now_ns = (took_ms + later_ms) * MS
    for start in range(1_000, 2_000, 20):
        of.insert(Request(Bio(start, 8), now_ns))
    taken = issued(of, now_ns)
    assert len(taken) == most
    of.complete(taken[0], now_ns)
    assert len(issued(of, now_ns)) == (1 if most < 50 else 0)


def test_cfq_without_low_latency_has_sixteen_in_the_device() -> None:
    """A delayed synchronous request changes nothing; a request that is complete makes room for one."""
    of = Elevator(io_scheduler("cfq", new=False), BOUNDS)
    of.insert(Request(Bio(0, 8, sync=True)))
    (request,) = issued(of, 0)
    of.complete(request, 300 * MS)
    for start in range(1_000, 2_000, 20):
        of.insert(Request(Bio(start, 8), 300 * MS))
    taken = issued(of, 300 * MS)
    assert len(taken) == 16
    of.complete(taken[5], 300 * MS)
    assert len(issued(of, 300 * MS)) == 1


def test_cfq_keeps_synchronous_and_asynchronous_requests_apart() -> None:
    """cfq_allow_merge: neither a bio nor a request joins one of the other kind; noop joins them."""
    for scheduler, apart in (("cfq", True), ("deadline", False)):
        of = filled(scheduler, 16, (100, 0, False))
        assert (of.attempt_merge(Bio(108, 8, sync=True)) is Merge.NEW) == apart
        of = filled(scheduler, 16, (100, 0, False))
        assert (of.attempt_merge(Bio(92, 8, sync=True)) is Merge.NEW) == apart
        of = filled(scheduler, 16, (100, 0, False))
        assert of.insert(Request(Bio(108, 8, sync=True))) == apart
