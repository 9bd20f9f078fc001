"""The plug of a thread: the merges in it, and the order in which it issues its requests."""

from __future__ import annotations

import pytest

from tests.harness import BlockLayer
from wbsim.models.bio import Bio, Request
from wbsim.models.block.merge import BACK, NEW, Merge
from wbsim.models.block.plug import Plug
from wbsim.models.block.queue import Queue
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import Steps


def test_take_empties_the_plug() -> None:
    """`Plug.take` empties the plug: a second call returns no request, and the plug is not full."""
    queue, plug = BlockLayer().queue, Plug(PLUG_RULES["3.11"])
    bio = Bio(80, 8, queue=queue)
    assert plug.attempt_merge(bio, queue.bounds) == NEW
    plug.add(Request(bio))
    assert plug.attempt_merge(Bio(88, 8, queue=queue), queue.bounds) == BACK
    (request,) = plug.take(direct=True)
    assert (request.start_sector, request.end_sector, request.merges) == (80, 96, 1)
    assert plug.take(direct=True) == []
    assert not plug.must_flush(queue, queue.bounds)
    assert plug.attempt_merge(Bio(96, 8, queue=queue), queue.bounds) == NEW


@pytest.mark.parametrize(
    ("newest", "start", "fate"),
    [("own", 108, BACK), ("own", 8, NEW), ("other", 8, BACK), ("other", 108, NEW)],
)
def test_tail_rule_tries_newest_request_or_oldest_of_own_queue(newest: str, start: int, fate: Merge) -> None:
    """6.17 tries the newest request if it is of the bio's queue, else the oldest request of this queue.

    The plug has requests 0 to 8 and 100 to 108 of this queue, in this order.  A request of another queue came
    before both or after both.
    """
    queue, plug = BlockLayer().queue, Plug(PLUG_RULES["6.17"])
    bios = [Bio(0, 8, queue=queue), Bio(100, 8, queue=queue)]
    bios.insert(0 if newest == "own" else 2, Bio(1_000, 8, queue=BlockLayer().queue))
    for bio in bios:
        plug.add(Request(bio))
    assert plug.attempt_merge(Bio(start, 8, queue=queue), queue.bounds) == fate


def test_requests_leave_queue_by_queue() -> None:
    """Bios of two queues alternate; the plug issues the requests queue by queue, sorted by sector."""
    one, other, plug = BlockLayer().queue, BlockLayer().queue, Plug(PLUG_RULES["3.11"])
    for start, queue in ((800, one), (80, other), (400, one), (8, other)):
        plug.add(Request(Bio(start, 8, queue=queue)))
    found = [(request.queue, request.start_sector) for request in plug.take(direct=True)]

    def of(queue: Queue) -> list[tuple[Queue, int]]:
        return [(queue, start) for start in ((400, 800) if queue is one else (8, 80))]

    assert found in (of(one) + of(other), of(other) + of(one))


@pytest.mark.parametrize(
    ("scheduler", "sleeps", "order"),
    [("none", False, [80, 400, 800]), ("none", True, [800, 400, 80]), ("mq-deadline", False, [800, 400, 80])],
)
def test_plug_of_6_1_is_reversed_on_the_direct_path(scheduler: str, sleeps: bool, order: list[int]) -> None:
    """Requests at 800, 400 and 80 come; only without a scheduler and without sleep the order is reversed."""
    block, left = BlockLayer(era="6.1", scheduler=scheduler), list[int]()
    block.queue.signals.block_unplug.observers.append(
        lambda _, task, requests: left.extend(request.start_sector for request in requests)
    )

    def body(thread: Thread) -> Steps:
        thread.start_plug()
        for start in (800, 400, 80):
            yield from block.submit(thread, block.bio(start))
        if sleeps:
            thread.before_sleep()
        yield from thread.finish_plug()

    block.run(body)
    assert left == order
