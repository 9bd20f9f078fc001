"""The model's extent tree, compared with a literal one: blocks that each needs, leaves, goals."""

from __future__ import annotations

from random import Random
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.literal.extent_tree import Extent, Tree
from wbsim.models.filesystems.ext4.extent_tree import NO_BLOCK, ExtentTree

PAGES: Final = 3_000


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1 << 20), passes=st.integers(1, 4), longest=st.integers(1, 6), far=st.integers(0, 2),
    any_order=st.booleans(),
)  # fmt: skip
def test_tree_grows_and_merges_as_the_literal_one_does(
    seed: int, passes: int, longest: int, far: int, any_order: bool
) -> None:
    """Extents come in passes of ascending pages, as from a flusher, or in any order.

    Some lie next to each other on disk.  They are converted in the order in which they came, at any time.
    """
    order = Random(seed)
    parts: list[list[int]] = [[] for _ in range(passes)]
    for start in range(0, PAGES, longest):
        parts[order.randrange(passes)].append(start)
    if any_order:
        order.shuffle(parts[0])
    literal, model = Tree(), ExtentTree()
    waiting: list[tuple[int, int]] = []
    for page in (page for part in parts for page in part):
        length = longest if order.random() < 0.7 else order.randint(1, longest)
        block = 10_000 + page + far * PAGES * order.randrange(3)
        assert model.goal(page) == (NO_BLOCK if (goal := literal.goal(page)) is None else goal)
        needed: list[int | None] = []
        literal.insert(Extent(page, block, length), needed.append)
        assert model.has_room(page) == (not needed)
        if needed:
            model.grow(page, 77)
        model.insert(page, block, length)
        waiting.append((page, length))
        if order.random() < 0.3:
            for ioend in waiting[: order.randint(1, len(waiting))]:
                assert (model.convert(*ioend) != NO_BLOCK) == literal.convert(*ioend)
                waiting.remove(ioend)
        assert leaves_of(model) == leaves_of_literal(literal)


def leaves_of(tree: ExtentTree) -> list[tuple[int, list[int]]]:
    """Return the page and the extents of each leaf."""
    return [(leaf.page, leaf.pages) for leaf in tree.leaves]


def leaves_of_literal(tree: Tree) -> list[tuple[int, list[int]]]:
    """Return the page and the extents of each leaf."""
    return [(leaf.page, [extent.page for extent in leaf.extents]) for leaf in tree.leaves]
