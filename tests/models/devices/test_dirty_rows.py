"""The lines of a controller's cache, and the way in which rows reach the members."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.devices.dirty_rows import DirtyRows, Row, Runs, with_run
from wbsim.models.devices.row_writes import MemberSectors, RowWrites, writes_of
from wbsim.models.raid.rows import RowLayout

STRIP = 16
"""The sectors of a strip."""


def row_of(lines: dict[int, Runs], number: int = 0) -> Row:
    """Return a row with these dirty *lines*."""
    row = Row(number, 0)
    row.lines = lines
    return row


def sectors(runs: Runs) -> set[int]:
    """Return the sectors of *runs*."""
    return {sector for start, end in runs for sector in range(start, end)}


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=20))
def test_runs_match_a_set_of_sectors(writes: list[tuple[int, int]]) -> None:
    """Runs hold the same sectors as a set, in ascending order, with gaps between them."""
    runs: Runs = []
    plain = set[int]()
    for start, length in writes:
        runs = with_run(runs, start, start + length)
        plain |= set(range(start, start + length))
    assert sectors(runs) == plain
    assert all(one[1] < other[0] for one, other in itertools.pairwise(runs))


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 200), st.integers(1, 60)),
        st.integers(0, 5),  # a row leaves, in a sweep from this row on
        st.none(),  # the row that left first is on the members
    ),
    max_size=40,
)


@given(ACTIONS, st.integers(1, 4))
def test_rows_match_a_set_of_sectors(actions: list[tuple[int, int] | int | None], data: int) -> None:
    """Each sector leaves once for each time that it became dirty; no row leaves twice at a time."""
    rows = DirtyRows(data, STRIP)
    dirty, departures = set[int](), list[Row]()
    for now, action in enumerate(actions):
        if isinstance(action, tuple):
            start, end = action[0], sum(action)
            lines = {sector // STRIP for sector in dirty}
            touched = {sector // STRIP for sector in range(start, end)}
            assert rows.new_lines(start, end) == len(touched - lines)
            numbers = [row.number for row in rows.add(start, end, now)]
            dirty |= set(range(start, end))
            assert numbers == sorted({strip // data for strip in touched})
        elif action is None:
            if departures:
                rows.end(departures.pop(0))
        else:
            row = rows.take(action)
            ready = {sector // STRIP // data for sector in dirty} - {other.number for other in departures}
            assert (row is None) == (not ready)
            if row is not None:
                content = {
                    (row.number * data + position) * STRIP + sector
                    for position, runs in row.lines.items()
                    for sector in sectors(runs)
                }
                whole = {
                    number
                    for number in ready
                    if all(sector in dirty for sector in _sectors_of_row(number, data))
                }
                choices = whole or ready
                assert row.number == min((n for n in choices if n >= action), default=min(choices))
                assert content == {sector for sector in dirty if sector // STRIP // data == row.number}
                dirty -= content
                departures.append(row)
        assert rows.lines == len({sector // STRIP for sector in dirty})
        assert rows.leaving_lines == sum(len(row.lines) for row in departures)
        assert (rows.oldest_ns is None) == (not dirty)


def _sectors_of_row(number: int, data: int) -> range:
    return range(number * data * STRIP, (number + 1) * data * STRIP)


def test_oldest_row_is_the_one_that_was_written_first() -> None:
    """A later write to a row does not make it younger."""
    rows = DirtyRows(2, STRIP)
    for now, start in ((5, 64), (6, 0), (7, 64)):
        rows.add(start, start + 8, now)
    assert rows.oldest_ns == 5
    rows.take(2)
    assert rows.oldest_ns == 6


def test_row_filled_on_its_way_is_complete() -> None:
    """Row 0 leaves, is filled again, and passes row 1 when it may leave again."""
    rows = DirtyRows(2, STRIP)
    rows.add(0, 8, 0)
    row = rows.take(0)
    assert row is not None
    rows.add(0, 2 * STRIP, 1)
    rows.add(2 * STRIP, 2 * STRIP + 8, 1)
    rows.end(row)
    again, last = rows.take(1), rows.take(1)
    assert again is not None
    assert last is not None
    assert (again.number, last.number) == (0, 1)


def test_cached_sectors_are_found_in_both_copies_of_a_row() -> None:
    """A part of a strip is on its way, and the next part has come since: together they serve a read."""
    rows = DirtyRows(1, STRIP)
    rows.add(0, 8, 0)
    assert rows.has(0, 0, 2, 8)
    assert not rows.has(0, 0, 2, 9)
    rows.take(0)
    rows.add(8, 12, 1)
    assert rows.has(0, 0, 2, 12)
    assert not rows.has(0, 0, 2, 13)


@pytest.mark.parametrize(("level", "parities"), [("raid5", 1), ("raid6", 2)])
def test_reads_of_complete_strips_equal_the_rule(level: str, parities: int) -> None:
    """k of d strips are overwritten: the smaller number of k + parities and d - k strips is read."""
    for members in range(parities + 2, 13):
        layout = RowLayout(level, members)
        for count in range(1, layout.data + 1):
            row = row_of({position: [(0, STRIP)] for position in range(count)}, number=3)
            plan = writes_of(row, layout, STRIP, ())
            modify, reconstruct = count + parities, layout.data - count
            assert len(plan.reads) == min(modify, reconstruct)
            assert len(plan.writes) == count + parities
            assert {(part.start, part.end) for part in plan.writes} == {(3 * STRIP, 4 * STRIP)}
            units = 2 * count if modify < reconstruct else layout.data
            assert plan.parity_sectors == units * STRIP * parities


def test_random_write_reads_its_own_sectors() -> None:
    """RAID5 of eight: a write of 4 KiB reads its old data and parity, and writes both."""
    plan = writes_of(row_of({2: [(4, 12)]}), RowLayout("raid5", 8), STRIP, ())
    assert plan == RowWrites([(2, 4, 12), (7, 4, 12)], [(2, 4, 12), (7, 4, 12)], 16)  # type: ignore[list-item]


def test_parity_covers_all_dirty_sectors_of_a_row() -> None:
    """Two strips have dirty sectors at different places: one read of parity covers both."""
    plan = writes_of(row_of({0: [(0, 4)], 1: [(12, 16)]}), RowLayout("raid5", 8), STRIP, ())
    assert set(plan.reads) == {(0, 0, 4), (1, 12, 16), (7, 0, 16)}
    assert set(plan.writes) == {(0, 0, 4), (1, 12, 16), (7, 0, 16)}
    assert plan.parity_sectors == 2 * 8


def test_copies_go_to_each_member_that_works() -> None:
    """RAID10 without member 2: its pair has one copy."""
    row = row_of({0: [(0, 8)], 1: [(0, 4), (8, 16)]})
    plan = writes_of(row, RowLayout("raid10", 4), STRIP, {2})
    assert (plan.reads, plan.parity_sectors) == ([], 0)
    assert plan.writes == [(0, 0, 8), (1, 0, 8), (3, 0, 4), (3, 8, 16)]


RUNS = st.lists(st.tuples(st.integers(0, STRIP - 1), st.integers(1, STRIP)), min_size=1, max_size=3)


@given(st.sampled_from(["raid5", "raid6"]), st.integers(4, 9), st.data())
def test_reads_are_enough_for_new_parity(level: str, members: int, data: st.DataObject) -> None:
    """Column by column, the sectors that are read and the new data determine each new parity.

    Either all other data is sources, perhaps computed from all the rest, or the old parity and old data are.
    """
    parities = 1 if level == "raid5" else 2
    layout, number = RowLayout(level, members), data.draw(st.integers(0, 20))
    faulty = data.draw(st.sets(st.integers(0, members - 1), max_size=parities))
    lines: dict[int, Runs] = {}
    for position in data.draw(st.sets(st.integers(0, layout.data - 1), min_size=1)):
        lines[position] = []
        for start, length in data.draw(RUNS):
            lines[position] = with_run(lines[position], start, min(STRIP, start + length))
    plan = writes_of(row_of(lines, number), layout, STRIP, faulty)
    parity, base = set(layout.parity_of(number)), number * STRIP
    assert not faulty & {part.member for part in (*plan.reads, *plan.writes)}
    new = {layout.members_of(number, position)[0]: sectors(runs) for position, runs in lines.items()}
    for member in set(range(members)) - faulty:
        places = {s - base for part in plan.writes if part.member == member for s in range(*part[1:])}
        every = set().union(*new.values())
        if member in parity:
            assert every <= places <= set(range(min(every), max(every) + 1))
        else:
            assert places == new.get(member, set())
    if parity <= faulty:
        assert not plan.reads
        return
    for column in range(*_range_of(plan, parity, base)):
        sources = {part.member for part in plan.reads if part.start <= base + column < part.end}
        if members - len(sources) <= parities:
            continue  # all the rest can be computed
        dirty = {member for member, places in new.items() if column in places}
        others = set(range(members)) - parity - dirty
        assert others <= sources or dirty | parity - faulty <= sources


def _range_of(plan: RowWrites, parity: set[int], base: int) -> tuple[int, int]:
    part: MemberSectors = next(part for part in plan.writes if part.member in parity)
    return part.start - base, part.end - base
