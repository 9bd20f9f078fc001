"""The folios that a write(2) makes on a mounted filesystem."""

from __future__ import annotations

from typing import Any

import pytest

from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Environment


@pytest.mark.source
@pytest.mark.parametrize(("largest", "folios"), [(1, [1, 1, 1, 1, 1, 1]), (512, [1, 2, 4, 256, 256, 512])])
def test_a_folio_is_the_largest_power_of_two_in_a_call(largest: int, folios: list[int]) -> None:
    """Calls of 1, 3, 4, 256, 300 and 2048 pages, with and without large folios."""
    parts: Any = None
    of = MountedSuperblock(Environment(), "m", parts, 0, parts)
    assert of.folio_pages(300) == 1, "without a word of the filesystem, a folio is a page"
    of.largest_folio = largest
    assert [of.folio_pages(pages) for pages in (1, 3, 4, 256, 300, 2048)] == folios
