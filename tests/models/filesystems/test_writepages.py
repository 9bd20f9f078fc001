"""The page walk of `Writepages`: the pages that it takes, their bios, and the times."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.page_cache.lettered import file as lettered
from tests.models.page_cache.lettered import letters
from wbsim.models.bio import Bio
from wbsim.models.filesystems.files import PagedFile
from wbsim.models.filesystems.ioends import IoEnd, IoEnds
from wbsim.models.filesystems.writepages import Writepages, WritepagesRules
from wbsim.models.interfaces import WritebackControl
from wbsim.models.page_cache.pages import DIRTY, MAPPED, UNWRITTEN, is_delayed
from wbsim.models.time_accounting import Spent
from wbsim.models.vfs.superblock import Flight
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.units import PAGE_SECTORS

MAP_NS, PAGE_NS, BIO_PAGES, FIRST_BLOCK = 1_000, 3, 4, 1_000


class Walked:
    """The writeback of a file with these *states*, and its events.

    A page takes 3 ns and an allocation 1 us; a bio has at most 4 pages, and takes no time.  A delayed extent
    gets at most *most* blocks, from block 100 on, which may be *unwritten*.
    """

    def __init__(
        self, states: str, blocks: dict[int, int] | None = None, size: int | None = None, *,
        wraps: bool = False, calls_x4: bool = False, spans_calls: bool = True, unwritten: bool = False,
        most: int = 1 << 30, bio_pages: int = BIO_PAGES, segment: int = 1, pagevec: int = 0,
    ) -> None:  # fmt: skip
        self.env = Environment()
        self.file: Any = lettered(states, blocks, size)
        paged: Any = SimpleNamespace(
            pages=self.file.pages, base=0, size=self.file.size, writeback_index=0, conversions=None,
            flight_in=lambda whole: whole,
        )  # fmt: skip
        self.paged = paged
        self.most, self.free = most, 100
        self.bits = UNWRITTEN if unwritten else 0
        self.maps: list[tuple[int, int]] = []
        self.bios: list[tuple[int, int, int]] = []
        self.sent: list[Bio] = []
        self.clean: list[int] = []
        wb: Any = SimpleNamespace(account_writeback=lambda pages: None, account_clean=self.clean.append)
        queue = SimpleNamespace(segment_pages=lambda folio: segment, bio_pages=lambda segment: bio_pages)
        sb: Any = SimpleNamespace(
            bdi=SimpleNamespace(queue=queue), first_block=FIRST_BLOCK, flight=Flight(self.env)
        )
        self.inode: Any = SimpleNamespace(
            folio_pages=1, dirty_pages=sum(state in "dDU" for state in states), wb=wb, file=paged
        )
        self.works: list[Any] = []
        self.ioends = IoEnds(self.inode, self.works.append, lambda *_: iter(()))  # type: ignore[arg-type,return-value]
        costs: Any = SimpleNamespace(page_ns=lambda folio: PAGE_NS)
        paged.ioends = self.ioends
        rules = WritepagesRules(wraps, spans_calls, sync_data=True, calls_x4=calls_x4, pagevec=pagevec)
        self.walk = Writepages(sb=sb, mapper=self, costs=costs, rules=rules)  # type: ignore[arg-type]

    def map_extent(self, thread: Any, inode: Any, file: Any, page: int, at_most: int) -> Steps:
        """See `ExtentMapper.map_extent`."""
        yield MAP_NS
        self.maps.append((self.env.now, page))
        states = file.pages.states
        while page > 0 and is_delayed(int(states[page - 1])):
            page -= 1
        for _ in range(self.most):
            if page == len(states) or not is_delayed(int(states[page])):
                break
            states[page] = (DIRTY if states[page] == 1 else MAPPED) | self.bits
            file.pages.blocks[page] = self.free
            page, self.free = page + 1, self.free + 1

    def budget(self, file: Any, page: int, wbc: WritebackControl) -> int:
        """See `ExtentMapper.budget`."""
        return wbc.nr_to_write

    def as_paged_file(self) -> PagedFile:
        """Return the same pages as a `PagedFile`."""
        paged = PagedFile(0, is_open=True)
        paged.pages = self.file.pages
        return paged

    def _submit(self, bio: Bio) -> None:
        first = bio.start_sector // PAGE_SECTORS - FIRST_BLOCK
        self.bios.append((self.env.now, first, (bio.end_sector - bio.start_sector) // PAGE_SECTORS))
        self.sent.append(bio)

    def write(self, budget: int = 1 << 40, *, start: int = 0, visits: Any = None) -> WritebackControl:
        """Walk once, from page *start* on."""
        self.paged.writeback_index = start
        wbc = WritebackControl("background", budget, visits)
        task = self.env.task("flusher")
        self.spent = Spent()
        thread: Any = SimpleNamespace(task=task, spent=self.spent, submit_bio=self._submit)
        self.env.start(task, self.walk.write(thread, self.inode, self.paged, wbc))
        self.env.run()
        return wbc

    def places(self) -> list[tuple[int, int]]:
        """Return the first block and the pages of each bio."""
        return [(first, pages) for _, first, pages in self.bios]


def test_bio_leaves_when_the_next_page_does_not_follow() -> None:
    """The extent behind a bio has its blocks before the bio leaves.

    t        event
    1 000    pages 0 to 4 have blocks 100 to 104
    1 012    the first four pages are in a bio, which is full
    1 015    the fifth page is in the next bio
    1 021    pages 6 and 7 at block 500 do not follow: a third bio
    2 021    page 8 has block 105
    """
    of = Walked("ddddd.DDd", {6: 500, 7: 501})
    wbc = of.write()
    assert of.maps == [(1_000, 0), (2_021, 8)]
    assert of.bios == [(1_012, 100, 4), (1_015, 104, 1), (2_021, 500, 2), (2_024, 105, 1)]
    assert letters(of.file) == "mmmmm.mmm"
    assert wbc.nr_to_write == (1 << 40) - 8
    assert of.inode.dirty_pages == 0
    assert of.spent.pages == 8 * PAGE_NS


def test_bio_leaves_after_each_writepage_call_up_to_4_5() -> None:
    """The bio of a call of writepage leaves when the pages of the call have been walked."""
    of = Walked("ddddd.DDd", {6: 500, 7: 501}, spans_calls=False)
    of.write()
    assert of.bios == [(1_012, 100, 4), (1_015, 104, 1), (1_021, 500, 2), (2_024, 105, 1)]


def test_bio_may_span_several_allocations_of_an_extent() -> None:
    """Each transaction gives blocks to two pages, and a bio spans transactions if it may span calls."""
    for spans_calls, bios in ((True, [(100, 4), (104, 2)]), (False, [(100, 2), (102, 2), (104, 2)])):
        of = Walked("dddddd", most=2, spans_calls=spans_calls)
        of.write()
        assert of.places() == bios
        assert len(of.maps) == 3


def test_an_ioend_is_one_range_of_pages_and_blocks() -> None:
    """Nine pages of one extent are one ioend of three bios; a hole or a gap on disk begins another ioend."""
    of = Walked("UUUUUUUUU.UU", {**{i: 10 + i for i in range(9)}, 10: 19, 11: 40})
    of.write()
    ioends = list(dict.fromkeys(bio.context for bio in of.sent))
    assert [(ioend.page, ioend.block, ioend.pages) for ioend in ioends] == [
        (0, 10, 9),
        (10, 19, 1),
        (11, 40, 1),
    ]
    assert [ioend.bios for ioend in ioends] == [3, 1, 1]
    assert not any(ioend.is_open for ioend in ioends)
    assert letters(of.file) == "uuuuuuuuu.uu"


@pytest.mark.parametrize("spans_calls", [True, False])
@pytest.mark.parametrize(
    ("states", "bios", "ioends", "clean"),
    [
        ("DDUUU", [2, 3], [(2, 12, 3)], [2]),
        ("UUUDD", [3, 2], [(0, 10, 3)], [2]),
        ("UUDUU", [2, 1, 2], [(0, 10, 2), (3, 13, 2)], [1]),
        ("UUUUDDDDU", [4, 4, 1], [(0, 10, 4), (8, 18, 1)], [4]),
    ],
)
def test_an_ioend_has_one_type_of_extents(
    states: str, bios: list[int], ioends: list[tuple[int, int, int]], clean: list[int], spans_calls: bool
) -> None:
    """Pages with written and unwritten blocks that lie together are in different bios.

    Only ioends of unwritten blocks wait for the worker; other pages are clean at the end of their bio.
    """
    of = Walked(states, {i: 10 + i for i in range(len(states))}, spans_calls=spans_calls)
    of.write()
    first = [10 + sum(bios[:at]) for at in range(len(bios))]
    assert of.places() == list(zip(first, bios, strict=True))
    assert letters(of.file) == states.lower().replace("d", "m")
    for bio in of.sent:
        assert bio.end_io is not None
        bio.end_io(bio.context)
    assert [(ioend.page, ioend.block, ioend.pages) for ioend in of.ioends.take()] == ioends
    assert of.clean == clean


@pytest.mark.parametrize(("unwritten", "clean", "queued"), [(False, [4, 2], 0), (True, [], 1)])
def test_blocks_of_delayed_pages_may_be_unwritten(unwritten: bool, clean: list[int], queued: int) -> None:
    """From 5.10 on, the pages of a delayed extent are clean only after its conversion."""
    of = Walked("dddddd", unwritten=unwritten)
    of.write()
    for bio in of.sent:
        assert bio.end_io is not None
        bio.end_io(bio.context)
    assert (of.clean, len(of.ioends.queue)) == (clean, queued)
    assert [ioend.mapped for ioend in of.ioends.queue] == [1] * queued
    assert letters(of.file) == ("uuuuuu" if unwritten else "mmmmmm")


def test_part_of_a_segment_counts_as_a_segment() -> None:
    """A segment has three pages, and bios have 4, 4 and 1 pages."""
    of = Walked("D" * 9, {i: 10 + i for i in range(9)}, segment=3)
    of.write()
    assert [bio.segments for bio in of.sent] == [2, 2, 1]


def test_an_ioend_ends_with_its_last_bio() -> None:
    """The worker gets an ioend of three bios after the third bio has ended."""
    of = Walked("U" * 9, {i: 10 + i for i in range(9)})
    of.write()
    for left, bio in zip((2, 1, 0), of.sent, strict=True):
        assert bio.end_io is not None
        bio.end_io(bio.context)
        assert (len(of.works), len(of.ioends.queue)) == ((0, 0) if left else (1, 1))


def test_an_open_ioend_does_not_end() -> None:
    """All bios of the ioend have ended, but more pages may follow."""
    works: list[Any] = []
    of = IoEnds(SimpleNamespace(), works.append, lambda *_: iter(()))  # type: ignore[arg-type,return-value]
    one, two = (IoEnd(page, 0, SimpleNamespace()) for page in (7, 3))  # type: ignore[arg-type]
    for ioend in (one, two):
        ioend.bios = 1
        of.end_io(ioend)
        assert not of.queue
        ioend.bios, ioend.is_open = 1, False
    of.end_io(one)
    of.end_io(two)
    assert works == [of]
    assert [ioend.page for ioend in of.take()] == [3, 7]
    assert not of.queue


@pytest.mark.parametrize("spans_calls", [True, False])
def test_written_extents_are_clean_after_each_bio(spans_calls: bool) -> None:
    """An overwrite needs no conversion; up to 5.9 no new extent needs one."""
    of = Walked("D" * 9, {i: 10 + i for i in range(9)}, spans_calls=spans_calls)
    of.write()
    for bio in of.sent:
        assert bio.end_io is not None
        bio.end_io(bio.context)
    assert of.clean == [4, 4, 1]
    assert not of.works
    assert not of.ioends.queue


def test_pages_that_are_clean_together_are_in_one_flight() -> None:
    """A sync(2) closes a flight during an ioend, and later pages of the ioend still belong to that flight.

    The bios of written extents belong to the flight of their own time.
    """
    for state, pages in (("U", [9]), ("D", [4, 5])):
        of = Walked(state * 9, {i: 10 + i for i in range(9)})
        flights = [of.walk.sb.flight]

        def change(of: Walked = of, flights: list[Flight] = flights) -> None:
            of.walk.sb.flight = Flight(of.env)
            flights.append(of.walk.sb.flight)

        of.env.call_at(5, 0, change)
        of.write()
        assert [flight.pages for flight in flights if flight.pages] == pages


def test_a_budget_ends_a_walk() -> None:
    """The walk takes three pages of five, and the next walk begins behind them."""
    of = Walked("DDDDD", {i: 10 + i for i in range(5)})
    wbc = of.write(3)
    assert (of.places(), wbc.nr_to_write, of.paged.writeback_index) == ([(10, 3)], 0, 3)
    assert letters(of.file) == "mmmDD"


@pytest.mark.parametrize("wraps", [True, False])
def test_walk_wraps_once_if_the_era_wraps(wraps: bool) -> None:
    """A walk goes from page 3 to the end, and then from page 0 to page 2 if it wraps.

    The rule is docs/kernel/writeback.md#the-walk-over-pages.
    """
    of = Walked("DDDDD", {i: 10 + i for i in range(5)}, wraps=wraps)
    of.write(start=3)
    assert of.places() == ([(13, 2), (10, 3)] if wraps else [(13, 2)])
    assert of.paged.writeback_index == (3 if wraps else 0)


@pytest.mark.parametrize(
    ("states", "dirtied_ns", "start", "places", "left", "index"),
    [
        ("DDDDD", 10, 3, [(13, 2), (10, 3)], "mmmDD", 3),
        ("mmmDD", 3, 3, [(13, 2)], "mmmDD", 0),
        ("DmmDD", 8, 3, [(13, 2), (10, 1)], "mmmDD", 1),
        ("DDDDD", 14, 0, [(10, 4), (14, 1)], "mmmDD", 5),
    ],
    ids=["all before", "none before", "one before", "from page 0"],
)
def test_wrapped_walk_ends_at_the_page_where_it_began(
    states: str, dirtied_ns: int, start: int, places: list[tuple[int, int]], left: str, index: int
) -> None:
    """A process writes to pages 3 and 4 again while the walk is at its last pages.

    All four walks, at 3 ns a page (fs/write_cache_pages: end = writeback_index - 1, and index 0 has cycled):

    * all before: pages 3 and 4 until 6 ns, then pages 0 to 2; the write at 10 ns is for the next walk.
    * none before: the walk goes round from the end, meets page 3 first, and ends at page 0.
    * one before: page 0 until 9 ns; the next dirty page is page 3.
    * from page 0: the walk began at the beginning, so it does not go round for page 3.
    """
    of = Walked(states, {i: 10 + i for i in range(5)}, wraps=True)

    def write_again() -> None:
        for page in (3, 4):
            of.inode.dirty_pages += int(of.file.pages.states[page] == MAPPED)
            of.file.pages.states[page] = DIRTY

    of.env.call_at(dirtied_ns, 0, write_again)
    of.write(start=start)
    assert (of.places(), letters(of.file), of.paged.writeback_index) == (places, left, index)


def test_budget_of_two_calls_writes_eleven_pages() -> None:
    """2.6.34 lets a call cluster more pages next to its own page (docs/kernel/writeback.md#nr_to_write).

    * The first call writes its own page and clusters at most 2 times 4 pages: 9 pages.
    * The budget has become 8, and the 8 pages come off it: 0 are left.
    * A call with a budget of 0 clusters one page: 2 pages.
    """
    of = Walked(
        "D" * 30, {i: 10 + i for i in range(30)}, calls_x4=True, spans_calls=False, bio_pages=100
    )  # fmt: skip
    wbc = of.write(2)
    assert of.places() == [(10, 9), (19, 2)]
    assert (wbc.nr_to_write, of.paged.writeback_index) == (0, 11)


def test_quota_of_2_6_34_writes_six_pages_a_call() -> None:
    """The first of 1 024 calls writes 4 097 pages, and each other call two.

    The repaired kernel writes 1 024 pages.
    """
    for calls_x4, pages in ((True, 4_097 + 1_023 * 2), (False, 1_024)):
        of = Walked(
            "D" * 10_000, {i: i for i in range(10_000)}, calls_x4=calls_x4, spans_calls=False, bio_pages=128
        )  # fmt: skip
        of.write(1_024)
        assert of.paged.writeback_index == pages
        assert max(size for _, size in of.places()) == 128


def test_quota_of_single_pages_ends_after_its_calls() -> None:
    """2.6.34 multiplies the budget by four at each single page until it overflows; the calls count down."""
    of = Walked("D." * 3_000, {2 * i: 2 * i for i in range(3_000)}, calls_x4=True, spans_calls=False)
    of.write(1_024)
    assert of.inode.dirty_pages == 3_000 - 1_024


def test_pdflush_gives_up_between_two_bios() -> None:
    """Congestion is tested after each call of writepage."""
    of = Walked("DDDDDDDDDD", {i: 10 + i for i in range(10)}, spans_calls=False)
    asked: list[int] = []

    def gives_up() -> bool:
        asked.append(of.env.now)
        return len(asked) == 2

    of.write(visits=SimpleNamespace(gives_up=gives_up))
    assert asked == [12, 24]
    assert of.places() == [(10, 4), (14, 4)]


def test_end_of_a_file_is_zeroed_in_several_transactions() -> None:
    """Page 2, the first behind the end, is reserved after two others; a transaction maps one page."""
    of = Walked("rrr", size=2, most=1)
    of.inode.file = of.as_paged_file()
    task = of.env.task("writer")
    thread: Any = SimpleNamespace(task=task, spent=Spent())
    of.env.start(task, of.walk.zero_end(thread, of.inode))
    of.env.run()
    assert of.maps == [(1_000, 2), (2_000, 2), (3_000, 2)]
    assert letters(of.file) == "mmm"


@given(
    states=st.text(st.sampled_from("dDUmu.r"), min_size=1, max_size=60), most=st.integers(1, 20),
    spans_calls=st.booleans(), unwritten=st.booleans(), budgets=st.lists(st.integers(1, 40), min_size=1),
    pagevec=st.integers(0, 5),
)  # fmt: skip
def test_every_dirty_page_is_in_one_bio(
    states: str, most: int, spans_calls: bool, unwritten: bool, budgets: list[int], pagevec: int
) -> None:
    """Walks of any budget write each dirty page once, and no bio exceeds its largest size."""
    blocks = {page: 1_000 + page * (1 + page % 3 // 2) for page, of in enumerate(states) if of in "DUmu"}
    of = Walked(states, blocks, most=most, spans_calls=spans_calls, unwritten=unwritten, pagevec=pagevec)
    turn = 0
    while of.inode.dirty_pages:
        of.write(budgets[turn % len(budgets)], start=of.paged.writeback_index)
        turn += 1
        assert turn < 2 * len(states) + 2
    assert "d" not in letters(of.file)
    assert "D" not in letters(of.file)
    assert "U" not in letters(of.file)
    written = sorted(first + i for first, pages in of.places() for i in range(pages))
    assert written == sorted(
        int(block)
        for block, state in zip(of.file.pages.blocks.tolist(), states, strict=True)
        if state in "dDU"
    )
    assert max((pages for _, pages in of.places()), default=0) <= BIO_PAGES
    for bio in of.sent:
        assert bio.end_io is not None
        bio.end_io(bio.context)
    converted = sum(ioend.pages for ioend in of.ioends.take())
    assert converted == sum(state in "dU" if unwritten else state == "U" for state in states)
    assert converted + sum(of.clean) == len(written)


@pytest.mark.parametrize(
    ("pagevec", "late", "pages", "left"),
    [
        (0, 2, [0, 2, 4, 6, 8], "m.m.m.m.m"),
        (3, 2, [0, 4, 6, 8], "m.D.m.m.m"),
        (2, 2, [0, 4, 6, 8], "m.D.m.m.m"),
        (3, 1, [0, 4, 6, 8], "mD..m.m.m"),
        (3, 5, [0, 4, 6, 8], "m...mDm.m"),
        (3, 7, [0, 4, 6], "m...m.mmm"),
        (2, 5, [0, 4, 8], "m...mmm.m"),
        (3, 0, [0, 4, 6, 8], "D...m.m.m"),
    ],
    ids=["no pagevec", "between", "between, two at a time", "next to a page", "behind a page", "behind all",
         "behind all of two", "the first page again"],
)  # fmt: skip
def test_page_that_becomes_dirty_between_pages_that_were_found_waits(
    pagevec: int, late: int, pages: list[int], left: str
) -> None:
    """Pages 0, 4, 6 and 8 are dirty, and page *late* becomes dirty while the walk is at page 0.

    With a pagevec of three, the walk has found pages 0, 4 and 6 by then.  Pages that lie together are in one
    bio.
    """
    of = Walked("D...D.D.D", {i: 10 + i for i in range(9)}, pagevec=pagevec)

    def dirties() -> None:
        of.file.pages.states[late] = DIRTY
        of.file.pages.blocks[late] = 10 + late
        of.inode.dirty_pages += 1

    of.env.call_at(1, 9, dirties)
    of.write()
    assert [first - 10 for first, _ in of.places()] == pages
    assert letters(of.file) == left


def test_pagevec_of_large_folios_is_not_counted() -> None:
    """The walk looks for each page anew in folios of four pages, and finds page 2."""
    of = Walked("D...D.D.D", {i: 10 + i for i in range(9)}, pagevec=3)
    of.inode.folio_pages = 4
    of.env.call_at(1, 9, lambda: of.file.pages.states.__setitem__(2, DIRTY))
    of.file.pages.blocks[2], of.inode.dirty_pages = 12, 5
    of.write()
    assert letters(of.file) == "m.m.m.m.m"


@pytest.mark.parametrize(
    ("states", "pagevec", "bios"),
    [
        ("D" * 9, 3, [(10, 4), (14, 4), (18, 1)]),
        ("DDDDDD.D", 8, [(10, 4), (14, 2), (17, 1)]),
    ],
)
def test_pagevec_does_not_change_the_bios_of_a_run(
    states: str, pagevec: int, bios: list[tuple[int, int]]
) -> None:
    """Pages that lie together need no second look, and a bio has four pages at most."""
    of = Walked(states, {i: 10 + i for i in range(len(states))}, pagevec=pagevec)
    of.write()
    assert of.places() == bios


def test_rest_of_a_pagevec_is_used_before_the_next_look() -> None:
    """A bio of four pages is full, page 4 was found with them, and page 5 becomes dirty too late."""
    of = Walked("DDDDD..D", {i: 10 + i for i in range(8)}, pagevec=6)
    of.env.call_at(1, 9, lambda: of.file.pages.states.__setitem__(5, DIRTY))
    of.write()
    assert letters(of.file) == "mmmmmD.m"


def test_walk_with_a_pagevec_wraps_and_writes_each_page_once() -> None:
    """A walk from page 4 on finds pages 6 and 8, then pages 0 and 2, and ends before page 4."""
    of = Walked("D.D.D.D.D", {i: 10 + i for i in range(9)}, pagevec=2, wraps=True)
    of.write(start=5)
    assert [first - 10 for first, _ in of.places()] == [6, 8, 0, 2, 4]
    assert of.inode.dirty_pages == 0
