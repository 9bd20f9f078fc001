"""The places that ext4 gives to pages."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.page_cache.lettered import file, letters
from wbsim.models.filesystems.ext4.layout import (
    placed_in,
    window,
    write_all,
)
from wbsim.models.filesystems.ext4.placement import is_delayed

MANY = 1 << 40
"""More unclaimed blocks than these tests claim."""


def test_written_pages_become_dirty_in_any_state() -> None:
    """The call stops at the first page behind the room of the file.

    Holes claim a block, even if one is held for them.  A clean page with an unwritten block is mapped again.
    """
    of = file(".mdDHh....", {1: 5, 3: 6}, size=6)
    assert write_all(of.pages, np.array([0, 1, 2, 3, 4, 5, 7, 9, 6]), 9, MANY) == (7, 4, 3)
    assert letters(of) == "dDdDhh.d.."
    assert of.size == 8
    of = file("uUs", {0: 5, 1: 6, 2: 7})
    assert write_all(of.pages, np.arange(3), 3, MANY) == (3, 1, 0)
    assert letters(of) == "sUs"


@pytest.mark.parametrize(
    ("left", "done", "clean", "claims", "after"),
    [(2, 8, 4, 2, "dDdDhhs."), (1, 4, 2, 1, "dDdDHhu."), (0, 0, 0, 0, ".mdDHhu."), (-1, 0, 0, 0, ".mdDHhu.")],
)
def test_writes_end_when_no_block_is_left(left: int, done: int, clean: int, claims: int, after: str) -> None:
    """A page with a block, or with a claim, is written at any time.

    Fewer than no blocks are left once a tree has taken blocks that were kept.
    """
    of = file(".mdDHhu.", {1: 5, 3: 6, 4: 7, 5: 8, 6: 9}, size=7)
    indices = np.array([0, 1, 2, 3, 4, 5, 6, 0, 7])
    assert write_all(of.pages, indices, 8, left) == (done, clean, claims)
    assert letters(of) == after
    of = file("mdDhuUs", {page: page for page in range(7)})
    assert write_all(of.pages, np.arange(7), 7, left) == (7, 2, 0)
    assert letters(of) == "DdDhsUs"


@pytest.mark.parametrize(
    ("page", "count", "size", "expected"),
    [
        (0, 1, 1, (0, 4)), (0, 4, 4, (0, 4)), (4, 1, 5, (0, 8)), (0, 256, 256, (0, 256)),
        (0, 1, 257, (0, 512)),
        (600, 1, 1_024, (512, 1_024)), (600, 1, 1_025, (0, 1_024)), (1_500, 1, 2_048, (1_024, 2_048)),
        (1_500, 1, 2_049, (0, 2_048)), (3_000, 2, 3_002, (2_048, 4_096)),
        (250, 10, 255, (0, 512)),
    ],
)  # fmt: skip
def test_window_has_16_kib_to_8_mib_by_file_size(
    page: int, count: int, size: int, expected: tuple[int, int]
) -> None:
    """A file of up to 1 MiB is one window of 16 KiB to 1 MiB.

    * Windows have 2 MiB in a file up to 4 MiB.
    * Windows have 4 MiB in a file up to 8 MiB.
    * Windows have 8 MiB in a larger file.
    """
    of = file("." * 8_192, size=size)
    assert window(of.pages, page, count) == expected


@pytest.mark.parametrize(
    ("page", "count", "got", "placed"),
    [
        (0, 10, 50, 100), (140, 10, 50, 100), (141, 10, 50, 141), (149, 10, 50, 149), (150, 10, 50, 150),
        (151, 10, 50, 150), (199, 1, 50, 150),
    ],
)  # fmt: skip
def test_fewer_blocks_than_the_window_cover_the_request(page: int, count: int, got: int, placed: int) -> None:
    """The window has the pages 100 to 199.

    * The blocks belong to its first pages if these cover the request.
    * They belong to its last pages if the request begins among these.
    * Otherwise they begin with the request.
    """
    assert placed_in(100, 200, page, count, got) == placed


def test_pages_with_and_without_held_blocks_are_delayed() -> None:
    """Dirty and mapped pages have their blocks, also unwritten ones."""
    assert is_delayed(file(".drmDHhuU").pages.states).tolist() == [
        letter in "dh" for letter in ".drmDHhuU"
    ]  # fmt: skip
