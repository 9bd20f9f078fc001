"""The places of an array's sectors on its members.  Pure.

Stands for raid0_map_submit_bio, raid10_find_phys with the layout near=2, and raid5_compute_sector with the
layout left-symmetric.
"""

from __future__ import annotations

from typing import Final, NamedTuple

COPIES: Final = 2
"""The copies that RAID10 keeps (near=2)."""


class Place(NamedTuple):
    """A run of sectors on one member; ``sector`` counts from the member's data offset."""

    member: int
    sector: int
    sectors: int


def stripe_places(sector: int, sectors: int, chunk: int, members: int) -> list[Place]:
    """Return where RAID0 puts *sectors* sectors from *sector* on, chunk (of *chunk* sectors) by chunk.

    >>> stripe_places(6, 4, 8, 2)
    [Place(member=0, sector=6, sectors=2), Place(member=1, sector=0, sectors=2)]
    """
    places = []
    end = sector + sectors
    while sector < end:
        number, offset = divmod(sector, chunk)
        row, member = divmod(number, members)
        length = min(end - sector, chunk - offset)
        places.append(Place(member, row * chunk + offset, length))
        sector += length
    return places


def mirror_places(sector: int, sectors: int, chunk: int, members: int) -> list[list[Place]]:
    """Return where RAID10 puts *sectors* sectors from *sector* on: for each part, the places of its copies.

    A part lies in one chunk, of *chunk* sectors.

    >>> mirror_places(8, 4, 8, 3)
    [[Place(member=2, sector=0, sectors=4), Place(member=0, sector=8, sectors=4)]]
    """
    parts = []
    end = sector + sectors
    while sector < end:
        number, offset = divmod(sector, chunk)
        length = min(end - sector, chunk - offset)
        places = [divmod(number * COPIES + copy, members) for copy in range(COPIES)]
        parts.append([Place(member, row * chunk + offset, length) for row, member in places])
        sector += length
    return parts


class ParityGeometry:
    """RAID5 (one parity page in a stripe) or RAID6 (two); *chunk_pages* pages of a chunk.

    A stripe is one page of each member, at the same place of all.  Stripe n is page n of each member.
    """

    def __init__(self, members: int, parities: int, chunk_pages: int) -> None:
        self.members = members
        self.parities = parities
        self.data = members - parities
        self.chunk_pages = chunk_pages
        self._row_pages = self.data * chunk_pages

    def parity_of(self, stripe: int) -> tuple[int, ...]:
        """Return the members with the parity of *stripe*: P, and Q of RAID6.

        >>> [ParityGeometry(4, 1, 1).parity_of(stripe) for stripe in range(4)]
        [(3,), (2,), (1,), (0,)]
        """
        row = stripe // self.chunk_pages
        if self.parities == 1:
            return (self.data - row % self.members,)
        p = self.members - 1 - row % self.members
        return p, (p + 1) % self.members

    def parity_mask(self, stripe: int) -> int:
        """Return the members with the parity of *stripe*, as a mask: bit i stands for member i.

        >>> bin(ParityGeometry(5, 2, 1).parity_mask(0))
        '0b10001'
        """
        mask = 0
        for member in self.parity_of(stripe):
            mask |= 1 << member
        return mask

    def place_of(self, page: int) -> tuple[int, int]:
        """Return the stripe and the member of data page *page*.

        >>> ParityGeometry(4, 1, 128).place_of(0), ParityGeometry(4, 1, 128).place_of(400)
        ((0, 0), (144, 3))
        """
        row, position = divmod(page, self._row_pages)
        number, offset = divmod(position, self.chunk_pages)
        stripe = row * self.chunk_pages + offset
        return stripe, self._member(self.parity_of(stripe), number)

    def _member(self, parity: tuple[int, ...], number: int) -> int:
        return (parity[0] + self.parities + number) % self.members

    def pages_of(self, stripe: int) -> list[tuple[int, int]]:
        """Return the data pages of *stripe*, each with its member, in ascending order.

        >>> ParityGeometry(4, 1, 128).pages_of(1)
        [(1, 0), (129, 1), (257, 2)]
        """
        row, offset = divmod(stripe, self.chunk_pages)
        first, parity = row * self._row_pages + offset, self.parity_of(stripe)
        return [
            (first + number * self.chunk_pages, self._member(parity, number)) for number in range(self.data)
        ]

    def first_page(self, first: int, pages: int) -> int:
        """Return the page with which md begins a bio of *pages* pages from *first* on.

        raid5_bio_lowest_chunk_sector: a bio that goes on to the next member begins there, at a chunk's start.

        >>> ParityGeometry(4, 1, 128).first_page(120, 64)
        128
        """
        room = self.chunk_pages - first % self.chunk_pages
        stripe, member = self.place_of(first)
        parity = self.parity_of(stripe)
        member += 1
        while member in parity:
            member += 1
        return first if room >= pages or member >= self.members else first + room
