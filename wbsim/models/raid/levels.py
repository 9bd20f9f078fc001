"""The RAID levels: their members, their parity, and the failures that they survive.  Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal

from wbsim.models.raid.geometry import COPIES

Level = Literal["raid0", "raid1", "raid10", "raid5", "raid6"]
LEAST_MEMBERS: Final[dict[str, int]] = {"raid0": 1, "raid1": 2, "raid10": 2, "raid5": 3, "raid6": 4}
"""The smallest number of members of each level."""
PARITIES: Final[dict[str, int]] = {"raid5": 1, "raid6": 2}
"""The parity pages in a stripe of the levels that have parity."""


def data_members(level: str, members: int) -> float:
    """Return the number of members whose capacity an array of *members* members has.

    >>> data_members("raid6", 8), data_members("raid10", 3)
    (6, 1.5)
    """
    if level == "raid1":
        return 1
    return members / COPIES if level == "raid10" else members - PARITIES.get(level, 0)


def has_all_data(level: str, members: int, faulty: Collection[int]) -> bool:
    """Return whether an array of *members* members has all its data without *faulty*, numbers from 0 on.

    >>> has_all_data("raid10", 4, {0, 2}), has_all_data("raid10", 4, {0, 1})
    (True, False)
    """
    if level == "raid10":
        return all(
            any((chunk * COPIES + copy) % members not in faulty for copy in range(COPIES))
            for chunk in range(members)
        )
    most = {"raid0": 0, "raid1": members - 1}.get(level, PARITIES.get(level, 0))
    return len(faulty) <= most
