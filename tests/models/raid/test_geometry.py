"""The places of an array's pages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.md.spec import data_offset
from wbsim.models.raid.geometry import ParityGeometry, mirror_places, stripe_places

MEMBERS = st.integers(1, 12)
CHUNKS = st.sampled_from([8, 16, 128, 1024, 2048])


@given(st.integers(0, 10**7), st.integers(1, 5_000), CHUNKS, MEMBERS)
def test_raid0_puts_each_sector_where_its_chunk_goes(
    sector: int, sectors: int, chunk: int, members: int
) -> None:
    """Sector by sector: chunk n lies on member n modulo their number, in the row of all of them."""
    places = stripe_places(sector, sectors, chunk, members)
    sectors_of = [(place.member, place.sector + i) for place in places for i in range(place.sectors)]
    assert sectors_of == [
        ((s // chunk) % members, s // chunk // members * chunk + s % chunk)
        for s in range(sector, sector + sectors)
    ]
    assert all(place.sectors <= chunk for place in places)


@given(st.integers(0, 10**5), st.integers(1, 3_000), CHUNKS, st.integers(2, 12))
def test_raid10_copies_lie_on_two_members(sector: int, sectors: int, chunk: int, members: int) -> None:
    """The copies of a chunk follow each other: number 2n and 2n + 1 of all places, row by row."""
    position = sector
    for copies in mirror_places(sector, sectors, chunk, members):
        for copy, place in enumerate(copies):
            number = 2 * (position // chunk) + copy
            assert (place.member, place.sector) == (
                number % members, number // members * chunk + position % chunk,
            )  # fmt: skip
        assert copies[0].member != copies[1].member
        assert copies[0].sectors == copies[1].sectors
        position += copies[0].sectors
    assert position == sector + sectors


@given(st.sampled_from([1, 2]), st.integers(0, 8), st.sampled_from([1, 2, 16, 128]), st.data())
def test_parity_geometry_is_a_bijection(parities: int, more: int, chunk: int, data: st.DataObject) -> None:
    """Each data page has one place, no data lies on parity, and a stripe has all its pages."""
    geometry = ParityGeometry(parities + 2 + more, parities, chunk)
    stripe = data.draw(st.integers(0, 5_000))
    pages, parity = geometry.pages_of(stripe), geometry.parity_of(stripe)
    assert len(set(parity)) == parities
    members = sorted([*(member for _, member in pages), *parity])
    assert members == list(range(geometry.members))
    assert [geometry.place_of(page) for page, _ in pages] == [(stripe, member) for _, member in pages]


def test_left_symmetric_layout_by_hand() -> None:
    """RAID5 of four members with chunks of a page, as in the manual of md(4): parity moves to the left."""
    geometry = ParityGeometry(4, 1, 1)
    rows = [["P"] * 4 for _ in range(4)]
    for page in range(12):
        stripe, member = geometry.place_of(page)
        rows[stripe][member] = str(page)
    assert [" ".join(row) for row in rows] == ["0 1 2 P", "4 5 P 3", "8 P 6 7", "P 9 10 11"]


def test_raid6_has_q_behind_p() -> None:
    """RAID6 of four members: P begins on the last one and moves to the left, Q follows it."""
    geometry = ParityGeometry(4, 2, 1)
    assert [geometry.parity_of(row) for row in range(4)] == [(3, 0), (2, 3), (1, 2), (0, 1)]
    assert [geometry.place_of(page) for page in range(4)] == [(0, 1), (0, 2), (1, 0), (1, 1)]


def test_bio_that_goes_on_to_the_next_member_begins_there() -> None:
    """A bio of two chunks from the middle of one on begins with the page at the start of the next chunk."""
    geometry = ParityGeometry(4, 1, 16)
    assert geometry.first_page(8, 8) == 8
    assert geometry.first_page(8, 9) == 16
    assert geometry.first_page(40, 16) == 40  # member 2 is followed by parity, and then by the next row


def test_data_begins_behind_the_headroom() -> None:
    """mdadm leaves 129 MiB on a disk of 4 TB, and about a thousandth on smaller ones."""
    assert data_offset(4 * 10**12 // 512) == 264_192
    assert data_offset(16 << 21) == 34_816  # 16 GiB: 16 MiB of headroom and 1 MiB
    assert data_offset(1 << 21) == 4_096
