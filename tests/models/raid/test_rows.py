"""The rows of strips, beside the places of md's arrays."""

from __future__ import annotations

import pytest

from wbsim.models.raid.geometry import ParityGeometry, mirror_places, stripe_places
from wbsim.models.raid.rows import RowLayout

STRIP = 128


@pytest.mark.parametrize("members", range(1, 13))
def test_rows_of_raid0_lie_as_in_md(members: int) -> None:
    """Strip n lies on member n modulo their number."""
    layout = RowLayout("raid0", members)
    for strip in range(40):
        row, position = divmod(strip, layout.data)
        (place,) = stripe_places(strip * STRIP, STRIP, STRIP, members)
        assert (layout.members_of(row, position), row * STRIP) == ((place.member,), place.sector)
        assert layout.parity_of(row) == ()


@pytest.mark.parametrize("members", range(2, 13, 2))
def test_rows_of_raid10_lie_as_in_md(members: int) -> None:
    """The copies of a strip lie on a pair of members."""
    layout = RowLayout("raid10", members)
    for strip in range(40):
        row, position = divmod(strip, layout.data)
        (places,) = mirror_places(strip * STRIP, STRIP, STRIP, members)
        assert layout.members_of(row, position) == tuple(place.member for place in places)
        assert {place.sector for place in places} == {row * STRIP}


@pytest.mark.parametrize(("level", "parities"), [("raid5", 1), ("raid6", 2)])
def test_rows_with_parity_lie_as_in_md(level: str, parities: int) -> None:
    """Data and parity of a row are on different members, which are all of them."""
    for members in range(parities + 2, 13):
        layout, geometry = RowLayout(level, members), ParityGeometry(members, parities, 1)
        assert layout.data == members - parities
        for row in range(2 * members):
            data = [layout.members_of(row, position)[0] for position in range(layout.data)]
            assert data == [member for _, member in geometry.pages_of(row)]
            assert layout.parity_of(row) == geometry.parity_of(row)
            assert sorted([*data, *layout.parity_of(row)]) == list(range(members))


def test_mirror_has_one_strip_in_a_row() -> None:
    """RAID1 of three: each row has one strip, which all members have."""
    layout = RowLayout("raid1", 3)
    assert layout.data == 1
    assert layout.members_of(5, 0) == (0, 1, 2)
