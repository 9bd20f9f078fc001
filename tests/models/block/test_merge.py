"""The merge rules of every era: laws, bounds, and comparison with a literal walk of the list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wbsim.models.bio import Bio, Request
from wbsim.models.block.merge import Merge
from wbsim.models.block.plug import plug_decisions
from wbsim.models.block.spec import PlugRules, QueueLimits
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.sim.units import KIB

ERAS = st.sampled_from(list(PLUG_RULES))
THOROUGH = settings(max_examples=100)
"""Settings of tests that draw an era: 100 examples for all eras together."""


def limits(kib: int = 512, segments: int = 128, nomerges: int = 0) -> QueueLimits:
    """Return queue limits with 64 KiB segments."""
    return QueueLimits(
        max_sectors_bytes=kib * KIB, max_segments=segments, max_segment_bytes=64 * KIB, nomerges=nomerges
    )


@dataclass
class Listed:
    """A request of the reference: its bios in sector order."""

    queue: object
    op: str
    bios: list[Bio]
    nomerge: bool

    @property
    def start(self) -> int:
        return self.bios[0].start_sector

    @property
    def end(self) -> int:
        return self.bios[-1].end_sector

    def has_room(self, bio: Bio, of: QueueLimits) -> bool:
        size = sum(b.sectors for b in self.bios) + bio.sectors
        return (
            size * 512 <= of.max_sectors_bytes
            and sum(b.segments for b in self.bios) + bio.segments <= of.max_segments
        )


@dataclass
class Literal:
    """The plug as a list with the newest request last; every search walks the list."""

    rules: PlugRules
    of: QueueLimits
    direct: bool
    plug: list[Listed] = field(default_factory=list)
    flushed: list[list[Listed]] = field(default_factory=list)

    def submit(self, bio: Bio) -> tuple[Merge, bool]:
        merge = Merge.NEW if self.of.nomerges == 2 else self.try_merge(bio)
        if merge is not Merge.NEW:
            return merge, False
        full = self.is_full(bio)
        if full:
            self.flush()
        self.plug.append(Listed(bio.queue, bio.op, [bio], bio.nomerge))
        return merge, full

    def try_merge(self, bio: Bio) -> Merge:
        same = [r for r in self.plug if r.queue is bio.queue]
        if self.rules.tried == "last" and (not self.plug or self.plug[-1].queue is not bio.queue):
            candidates = []
        elif self.rules.tried == "all":
            candidates = same[::-1]
        elif self.rules.tried in ("newest", "last") or (
            self.rules.tried == "tail" and self.plug and self.plug[-1].queue is bio.queue
        ):
            candidates = same[-1:]
        else:
            candidates = same[:1]
        for request in candidates:
            if request.nomerge or bio.nomerge or request.op != bio.op:
                continue
            if request.end == bio.start_sector:
                if request.has_room(bio, self.of):
                    request.bios.append(bio)
                    return Merge.BACK
                request.nomerge = True
            elif request.start == bio.end_sector:
                if request.has_room(bio, self.of):
                    request.bios.insert(0, bio)
                    return Merge.FRONT
                request.nomerge = True
        return Merge.NEW

    def is_full(self, bio: Bio) -> bool:
        if not self.plug:
            return False
        several = any(r.queue is not bio.queue for r in self.plug)
        if self.rules.max_requests is not None:
            counts_all = self.rules.max_requests_mixed is not None
            held = len(self.plug) if counts_all else sum(r.queue is bio.queue for r in self.plug)
            bound = self.rules.max_requests_mixed if counts_all and several else self.rules.max_requests
            assert bound is not None
            if held >= bound:
                return True
        if self.rules.flush_bytes is None or self.of.nomerges == 2:
            return False
        judged = self.plug[-1] if self.rules.flush_of == "newest" else self.plug[0]
        return 512 * (judged.end - judged.start) >= self.rules.flush_bytes

    def flush(self) -> None:
        if self.plug:
            queues = [r.queue for r in self.plug]
            mixed = len(set(queues)) > 1
            by_era = self.rules.order if self.direct and not mixed else self.rules.order_scheduler
            if mixed and len(queues) > self.rules.mixed_above:
                by_era = self.rules.order_mixed
            ordered = {
                "sector": lambda p: sorted(p, key=lambda r: r.start),
                "fifo": list,
                "lifo": lambda p: p[::-1],
                "queue": list,
            }
            issued = ordered[by_era](self.plug)
            seen = list(dict.fromkeys(r.queue for r in issued))
            self.flushed.append([r for queue in seen for r in issued if r.queue is queue])
            self.plug = []


QUEUES = ("sda", "sdb")


@st.composite
def bio_streams(draw: st.DrawFn) -> list[Bio]:
    """Draw interleaved sequential streams, forwards and backwards, on two queues; some bios are barriers."""
    heads = {i: 100_000 * i for i in range(draw(st.integers(1, 40)))}
    bios = []
    for _ in range(draw(st.integers(1, 120))):
        stream = draw(st.sampled_from(sorted(heads)))
        sectors = draw(st.sampled_from([8, 8, 8, 64, 256, 512]))
        if draw(st.integers(0, 9)) == 0:  # in front of the stream's last bio
            start = heads[stream] - 2 * sectors
        else:
            start = heads[stream]
            heads[stream] += sectors
        if start < 0:
            continue
        nomerge = draw(st.integers(0, 19)) == 0
        owner = QUEUES[1] if stream % 7 == 6 else QUEUES[0]
        op = "R" if stream % 5 == 4 else "W"
        bios.append(Bio(start, sectors, segments=sectors // 8, op=op, queue=owner, nomerge=nomerge))
    return bios


def shape(batches: Sequence[Sequence[Request]]) -> list[list[tuple[int, int, int]]]:
    """Return start, end and number of bios of each request."""
    return [[(r.start_sector, r.end_sector, len(r.bios)) for r in batch] for batch in batches]


@THOROUGH
@given(
    era=ERAS,
    bios=bio_streams(),
    of=st.sampled_from([limits(), limits(64, 16), limits(1280, 128), limits(nomerges=2)]),
    direct=st.booleans(),
)
def test_plug_decisions_match_a_literal_walk(
    era: str, bios: list[Bio], of: QueueLimits, direct: bool
) -> None:
    """Every merge, every full flush and every batch equals the result of a walk over the list."""
    rules = PLUG_RULES[era]
    literal = Literal(rules, of, direct)
    expected = [literal.submit(bio) for bio in bios]
    literal.flush()
    decisions, batches = plug_decisions(bios, rules, of, direct)
    assert [tuple(decision) for decision in decisions] == expected
    assert shape(batches) == [[(r.start, r.end, len(r.bios)) for r in batch] for batch in literal.flushed]


@THOROUGH
@given(era=ERAS, bios=bio_streams())
def test_no_sector_is_lost_invented_or_reordered(era: str, bios: list[Bio]) -> None:
    """Requests hold each submitted bio once and in place, stay within the limits, and keep barriers apart."""
    of = limits(256, 40)
    _, batches = plug_decisions(bios, PLUG_RULES[era], of)
    requests = [request for batch in batches for request in batch]
    assert sorted(map(id, (bio for request in requests for bio in request.bios))) == sorted(map(id, bios))
    for request in requests:
        assert request.bios[0].start_sector == request.start_sector
        assert request.bios[-1].end_sector == request.end_sector
        for before, after in zip(request.bios, request.bios[1:], strict=False):
            assert before.end_sector == after.start_sector
        assert len({(bio.queue, bio.op) for bio in request.bios}) == 1
        if len(request.bios) > 1:
            assert request.sectors * 512 <= of.max_sectors_bytes
            assert sum(bio.segments for bio in request.bios) <= of.max_segments
            assert not any(bio.nomerge for bio in request.bios)


@THOROUGH
@given(era=ERAS, bios=bio_streams())
def test_merging_never_makes_more_requests_than_bios(era: str, bios: list[Bio]) -> None:
    """Each bio is a request if nomerges is 2; merging gives at most as many requests."""
    _, batches = plug_decisions(bios, PLUG_RULES[era], limits(nomerges=2))
    assert sum(map(len, batches)) == len(bios)
    _, merged = plug_decisions(bios, PLUG_RULES[era], limits())
    assert sum(map(len, merged)) <= len(bios)


@pytest.mark.parametrize(
    ("era", "held"), [(era, rules.max_requests) for era, rules in PLUG_RULES.items() if rules.max_requests]
)
def test_a_plug_holds_exactly_its_limit(era: str, held: int) -> None:
    """The request after the limit flushes the plug; the request at the limit does not."""
    bios = [Bio(1_000 * i, 8, queue="sda") for i in range(held + 1)]
    decisions, batches = plug_decisions(bios, PLUG_RULES[era], limits())
    assert [decision.full_flush for decision in decisions] == [False] * held + [True]
    assert list(map(len, batches)) == [held, 1]


def test_plug_of_2_6_39_has_no_limit() -> None:
    """The plug of 2.6.39 grows until a sleep or finish_plug."""
    _, batches = plug_decisions([Bio(1_000 * i, 8) for i in range(500)], PLUG_RULES["2.6.39"], limits())
    assert list(map(len, batches)) == [500]


@pytest.mark.parametrize(
    ("era", "held"), [("4.19", 32), ("5.4", 16), ("5.10", 64), ("5.17", 64), ("6.1", 64), ("6.17", 64)]
)
def test_a_plug_of_several_queues_holds_another_number(era: str, held: int) -> None:
    """Bios of two queues alternate: 16 requests for each queue to 4.20, for the plug to 5.14, later 64."""
    bios = [Bio(1_000 * i, 8, queue="sda" if i % 2 else "sdb") for i in range(held + 1)]
    decisions, _ = plug_decisions(bios, PLUG_RULES[era], limits())
    assert [i for i, decision in enumerate(decisions) if decision.full_flush] == [held]


@pytest.mark.parametrize(
    ("era", "kib", "flushes"),
    [
        ("4.9", (128, 128, 128), []), ("4.19", (4, 128, 4), [2]), ("5.4", (128, 4, 4), [1]),
        ("5.10", (4, 124, 4), []), ("5.10", (4, 128, 4), [2]), ("5.10", (128, 4, 4), [1]),
        ("6.17", (124, 128, 4), []), ("6.17", (128, 4, 4), [1]), ("6.14", (4, 128, 4), []),
    ],
)  # fmt: skip
def test_128_kib_rule_tests_newest_or_oldest_request_by_era(
    era: str, kib: tuple[int, ...], flushes: list[int]
) -> None:
    """From 4.10 on a new request flushes a plug whose newest request (6.14, 6.17: oldest) has 128 KiB."""
    bios = [Bio(100_000 * i, 2 * size) for i, size in enumerate(kib)]
    decisions, _ = plug_decisions(bios, PLUG_RULES[era], limits())
    assert [i for i, decision in enumerate(decisions) if decision.full_flush] == flushes


@pytest.mark.parametrize(
    ("of", "fits"), [(limits(512, 128), 128), (limits(512, 126), 126), (limits(64, 128), 16)]
)
def test_a_request_grows_to_the_limits_and_no_further(of: QueueLimits, fits: int) -> None:
    """A request of 4 KiB bios grows until it reaches the limit of sectors or of segments."""
    bios = [Bio(8 * i, 8) for i in range(fits + 1)]
    decisions, batches = plug_decisions(bios, PLUG_RULES["3.11"], of)
    assert [decision.merge for decision in decisions] == [Merge.NEW] + [Merge.BACK] * (fits - 1) + [Merge.NEW]
    assert [len(request.bios) for request in batches[0]] == [fits, 1]


def test_interleaved_streams_merge_only_if_all_requests_are_tried() -> None:
    """Eight interleaved streams become eight requests in 3.11 and do not merge in 6.1."""
    bios = [Bio(100_000 * (i % 8) + 8 * (i // 8), 8) for i in range(64)]
    assert sum(map(len, plug_decisions(bios, PLUG_RULES["3.11"], limits())[1])) == 8
    assert sum(map(len, plug_decisions(bios, PLUG_RULES["6.1"], limits())[1])) == 64


@pytest.mark.parametrize(
    ("era", "direct", "scheduler"),
    [
        ("3.1", "abc", "abc"), ("3.11", "bca", "bca"), ("4.19", "bca", "bca"), ("5.4", "abc", "abc"),
        ("5.15", "abc", "abc"), ("5.17", "cba", "abc"), ("5.18", "cba", "cba"), ("6.1", "cba", "abc"),
        ("6.14", "abc", "abc"), ("6.17", "abc", "abc"),
    ],
)  # fmt: skip
def test_order_of_a_plug_flush_depends_on_release_and_path(era: str, direct: str, scheduler: str) -> None:
    """Requests a, b and c came in this order; their sectors are 3 000, 1 000 and 2 000."""
    bios = {"a": 3_000, "b": 1_000, "c": 2_000}
    names = {start: name for name, start in bios.items()}
    for is_direct, expected in ((True, direct), (False, scheduler)):
        _, batches = plug_decisions(
            [Bio(start, 8) for start in bios.values()], PLUG_RULES[era], limits(), is_direct
        )
        assert "".join(names[request.start_sector] for request in batches[0]) == expected


@pytest.mark.parametrize("era", ["5.4", "5.10", "5.15"])
def test_requests_of_two_queues_leave_queue_by_queue_above_two(era: str) -> None:
    """5.0 to 5.15: two requests of two queues leave as they came, three queue by queue, never by sector."""
    for starts, order in (([900, 100], [900, 100]), ([900, 100, 500], [900, 500, 100])):
        bios = [Bio(start, 8, queue=number % 2) for number, start in enumerate(starts)]
        _, batches = plug_decisions(bios, PLUG_RULES[era], limits())
        assert [request.start_sector for request in batches[0]] == order


@pytest.mark.parametrize(
    ("era", "merges"), [("5.17", [False, False]), ("5.18", [True, False]), ("6.1", [True, False])]
)
def test_newest_request_of_another_queue_ends_the_search(era: str, merges: list[bool]) -> None:
    """The plug has requests at 0 and at 1 000 of sda, and at 0 of sdb as the newest.

    From 5.18 on a bio of sda at 1 008 joins the newest request of sda.  No kernel here tries the oldest.
    """
    before = [Bio(0, 8, queue="sda"), Bio(1_000, 8, queue="sda"), Bio(0, 8, queue="sdb")]
    fates = [
        plug_decisions([*before, Bio(start, 8, queue="sda")], PLUG_RULES[era], limits())[0][-1].merge
        for start in (1_008, 8)
    ]
    assert [fate is Merge.BACK for fate in fates] == merges
