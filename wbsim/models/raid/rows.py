"""Rows of strips: a row has one strip of each member.  Pure.

A row has ``data`` strips with different data, and otherwise copies or parity.  RAID10 has pairs of members.
"""

from __future__ import annotations

from wbsim.models.raid.geometry import COPIES, ParityGeometry
from wbsim.models.raid.levels import PARITIES, data_members


class RowLayout:
    """The rows of an array of *level* with *members* members; ``data`` is the number of data strips."""

    def __init__(self, level: str, members: int) -> None:
        self.members = members
        self.data = int(data_members(level, members))
        self._copies = {"raid1": members, "raid10": COPIES}.get(level, 1)
        parities = PARITIES.get(level, 0)
        self._geometry = ParityGeometry(members, parities, 1) if parities else None

    def members_of(self, row: int, position: int) -> tuple[int, ...]:
        """Return the members that have data strip *position* of *row*.

        >>> RowLayout("raid10", 4).members_of(7, 1), RowLayout("raid5", 4).members_of(0, 1)
        ((2, 3), (1,))
        """
        if self._geometry is not None:
            return (self._geometry.place_of(row * self.data + position)[1],)
        first = position * self._copies
        return tuple(range(first, first + self._copies))

    def parity_of(self, row: int) -> tuple[int, ...]:
        """Return the members with the parity of *row*; levels without parity have none.

        >>> RowLayout("raid6", 5).parity_of(0), RowLayout("raid0", 5).parity_of(0)
        ((4, 0), ())
        """
        return () if self._geometry is None else self._geometry.parity_of(row)
