"""A thread's plug: single bios and arrays of them, and what it gives away."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import BlockLayer
from wbsim.models.bio import Bio
from wbsim.models.block.blk_plug import BlkPlug
from wbsim.models.block.merge import IS_BACK, IS_NEW
from wbsim.models.catalogue.kernels import PLUG_RULES


def starts(plug: BlkPlug) -> list[list[int]]:
    """The first sectors of what it gives away, batch by batch."""
    return [[request.start_sector for request in batch.requests()] for batch in plug.take()]


def test_what_it_gave_away_is_gone() -> None:
    """A bio alone, then an array, of which one page continues it: two requests, once."""
    queue, plug, told = BlockLayer().queue, BlkPlug(PLUG_RULES["3.11"]), list[tuple[str, int]]()
    bio = Bio(80, 8, queue=queue, end_io=lambda _: told.append(("bio", 1)))
    assert plug.attempt_merge(bio) == IS_NEW
    plug.add(bio)
    pages = np.array([[11, 1], [40, 2]])
    made, done, flushed = plug.add_runs(
        queue, pages, 1, lambda count: told.append(("array", count)), 99, False
    )
    assert (made, done, flushed) == (1, 2, [])
    (batch,) = plug.take()
    assert (len(batch), batch.pages) == (2, 4)
    assert plug.take() == []
    assert not plug.must_flush(queue)
    for request in batch.requests_that_end():
        for one in request.bios:
            assert one.end_io is not None
            one.end_io(one.context)
    assert sorted(told) == [("array", 3), ("bio", 1)]


def test_a_bio_joins_what_came_in_an_array() -> None:
    """The rows are objects again, and nothing is lost or there twice."""
    queue, plug = BlockLayer().queue, BlkPlug(PLUG_RULES["3.11"])
    plug.add_runs(queue, np.array([[10, 2], [50, 1]]), 1, lambda count: None, 99, False)
    assert plug.attempt_merge(Bio(96, 8, queue=queue)) == IS_BACK
    assert starts(plug) == [[80, 400]]
    assert starts(plug) == []


@pytest.mark.parametrize(
    ("newest", "start", "fate"),
    [("own", 108, IS_BACK), ("own", 8, IS_NEW), ("other", 8, IS_BACK), ("other", 108, IS_NEW)],
)
def test_of_two_queues_the_newest_of_all_is_tried_or_else_the_oldest_of_its_own(
    newest: str, start: int, fate: int
) -> None:
    """6.17: of the bio's queue 0 to 8 came first and 100 to 108 then; one of another queue before both or
    after.
    """
    queue, plug = BlockLayer().queue, BlkPlug(PLUG_RULES["6.17"])
    bios = [Bio(0, 8, queue=queue), Bio(100, 8, queue=queue)]
    bios.insert(0 if newest == "own" else 2, Bio(1_000, 8, queue=BlockLayer().queue))
    for bio in bios:
        plug.add(bio)
    assert plug.attempt_merge(Bio(start, 8, queue=queue)) == fate


def test_each_queue_has_a_batch() -> None:
    """Bios of two queues in turn: queue by queue, by sector."""
    one, other, plug = BlockLayer().queue, BlockLayer().queue, BlkPlug(PLUG_RULES["3.11"])
    for start, queue in ((800, one), (80, other), (400, one), (8, other)):
        plug.add(Bio(start, 8, queue=queue))
    batches = plug.take()
    assert [batch.queue for batch in batches] in ([one, other], [other, one])
    found = {id(batch.queue): [request.start_sector for request in batch.requests()] for batch in batches}
    assert found == {id(one): [400, 800], id(other): [8, 80]}
