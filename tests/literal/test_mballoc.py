"""The literal multiblock allocator: against a real kernel's blocks, and the model's against it."""

from __future__ import annotations

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.literal.mballoc import GROUP_BLOCKS, Group, Mballoc, Request
from wbsim.models.filesystems.ext4.geometry import Geometry
from wbsim.models.filesystems.ext4.mballoc import Mballoc as Model

FLEX_GROUPS: Final = 16
FIRST_FREE: Final = {0: 8_743, 15: 16_384, 16: 8_225} | dict.fromkeys((1, 3, 5, 7, 9, 25, 27), 513)
"""mb_groups of a fresh filesystem of 4 GiB with one directory in each flex group: "first" of each group."""
GOAL: Final = 17 * GROUP_BLOCKS
"""The files' directory lies in the second flex group."""


def test_files_get_the_blocks_that_a_real_kernel_gave() -> None:
    """Linux 6.18 on a rotating disk: 40 files of 1 000 blocks (docs/measurements.md E)."""
    fresh = {
        number: Group([(first, GROUP_BLOCKS - first)])
        for number in range(32)
        for first in [first_free(number)]
    }
    mballoc = Mballoc(fresh, 32, FLEX_GROUPS, linear_groups=4)
    found = [mballoc.find(Request(1_000, GOAL))[0] for _ in range(40)]
    runs = [(0, 8), (16_384, 8), (8_000, 8), (24_384, 7), (32_768, 8), (49_152, 1)]
    assert found == [GOAL + first + 1_000 * at for first, count in runs for at in range(count)]


def first_free(number: int) -> int:
    """Return the first free block of group *number*, which is free from there on."""
    return FIRST_FREE.get(number, 0)


def test_search_takes_the_shortest_runs_that_suffice() -> None:
    """Linux 6.18 again: group 17 is free, and group 18 has five runs (docs/measurements.md E).

    On a rotating disk the goal's group is the first in line.
    """
    for linear_groups, block in ((0, 591_360), (4, 557_056)):
        worn = [(1_000, 1_000), (3_000, 1_000), (5_000, 1_000), (7_000, 9_384), (17_384, 15_384)]
        groups = {17: Group([(0, GROUP_BLOCKS)]), 18: Group(worn)}
        assert (groups[18].free, groups[18].fragments) == (27_768, 5)
        assert Mballoc(groups, 32, FLEX_GROUPS, linear_groups).find(Request(375, GOAL)) == (block, 375)


takes = st.tuples(
    st.integers(0, 31), st.integers(0, GROUP_BLOCKS - 1), st.sampled_from((1, 2, 5, 64, 700, 5_000))
)
lengths = st.one_of(st.integers(1, 2_048), st.sampled_from((1, 2, 8, 512, 1_024, 2_048)))


@settings(max_examples=60)
@given(
    groups=st.sampled_from((8, 32)),
    linear_groups=st.sampled_from((0, 4)),
    used=st.lists(takes, max_size=150),
    requests=st.lists(st.tuples(st.integers(0, 31), lengths), min_size=1, max_size=12),
)
def test_model_finds_the_blocks_of_the_literal_allocator(
    groups: int, linear_groups: int, used: list[tuple[int, int, int]], requests: list[tuple[int, int]]
) -> None:
    """Each search in worn groups finds the same blocks, as long as a group has enough on average."""
    model = Model(
        Geometry(groups * GROUP_BLOCKS, FLEX_GROUPS, 1_026, 16_384),
        by_order=True,
        groups_in_line=linear_groups,
    )
    for flex in range(model.geometry.flexes):
        model.read_bitmaps(flex)
    for number, first, length in used:
        model.take_exactly(number % groups * GROUP_BLOCKS + first, min(length, GROUP_BLOCKS - first))
    worn = {number: Group(group.runs()) for number, group in model.groups.items()}
    literal = Mballoc(worn, groups, FLEX_GROUPS, linear_groups)
    for goal, length in requests:
        request = Request(length, goal % groups * GROUP_BLOCKS, data=length > 1)
        try:
            found = literal.find(request)
        except NotImplementedError:
            return
        assert model.find(goal % groups, length) == found
