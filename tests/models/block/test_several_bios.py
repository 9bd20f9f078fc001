"""A thread that submits several bios at once, beside one that submits each of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import BlockLayer
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import Steps
from wbsim.sim.units import S


def history(starts: list[int], at_once: bool, plugged: bool, **keys: Any) -> tuple[Any, ...]:
    """Return the requests of a thread with the times at which the device got them, its time and its end."""
    block = BlockLayer(latency_ns=S, **keys)
    spent: list[Any] = []

    def body(thread: Thread) -> Steps:
        bios = [block.bio(8 * start) for start in starts]
        if plugged:
            thread.start_plug()
        if at_once:
            yield from thread.submit_bios(bios)
        else:
            for bio in bios:
                yield from block.submit(thread, bio)
        spent.append((thread.spent.request, thread.spent.insert, block.env.now))
        if plugged:
            yield from thread.finish_plug()

    block.run(body)
    requests = [(request.start_sector, request.sectors) for request in block.device.requests]
    return requests, block.device.times, block.ended, spent


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=60, unique=True),
    st.booleans(),
    st.sampled_from(["3.11", "5.10", "6.1", "6.17"]),
    st.sampled_from([1, 4, 128]),
    st.sampled_from([8, 40, 128]),
    st.booleans(),
)
def test_bios_take_the_same_ways_and_time(
    starts: list[int], plugged: bool, era: str, depth: int, nr_requests: int, wbt: bool
) -> None:
    """The requests, their times and the thread's time are those of bios that are submitted one by one."""
    keys = {"era": era, "depth": depth, "nr_requests": nr_requests, "wbt": wbt, "pool": "tags"}
    one_by_one = history(starts, False, plugged, **keys)
    assert history(starts, True, plugged, **keys) == one_by_one


@pytest.mark.parametrize("wbt", [False, True])
def test_full_plug_is_flushed_before_the_next_bio(wbt: bool) -> None:
    """40 bios that do not touch each other: the device gets 16 or more before the last one is submitted."""
    starts = [3 * number for number in range(40)]
    requests, times, *_ = history(starts, True, True, era="3.11", depth=128, wbt=wbt)
    assert len(requests) == 40
    assert times[0] < times[-1]


def test_bio_joins_a_request_that_waits_for_the_driver() -> None:
    """A full plug was flushed to a driver that takes one request; the next bio joins the third that waits."""
    starts = [*(3 * number for number in range(17)), 7]
    at_once = history(starts, True, True, era="3.11", depth=1)
    assert (48, 16) in at_once[0]
    assert at_once == history(starts, False, True, era="3.11", depth=1)
