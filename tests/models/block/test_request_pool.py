"""The pools of requests: tags, and the legacy request_list with its batchers."""

from __future__ import annotations

import pytest

from wbsim.models.block.request_pool import BATCH_NS, BATCH_REQUESTS, POOLS, RequestList, tag_classes
from wbsim.sim.engine import PARK, Environment, Steps
from wbsim.sim.units import MS


def test_each_freed_tag_wakes_one_sleeper() -> None:
    """Each freed tag wakes one sleeper, first come first served.

    * t=0: six tasks ask for one of three tags; tasks 3, 4 and 5 sleep.
    * t=100: two tags are freed and wake tasks 3 and 4.
    * t=200: one tag is freed and wakes task 5.
    """
    env = Environment()
    (pool, _), log = tag_classes(env, 3), list[tuple[int, int]]()

    def body(number: int) -> Steps:
        task = tasks[number]
        while not pool.take(task):
            pool.waiters.append(task)
            yield PARK
            pool.woken(task)
        log.append((env.now, number))
        yield 0

    tasks = [env.task(str(n)) for n in range(6)]
    for n, task in enumerate(tasks):
        env.start(task, body(n), n)
    for at_ns in (100, 100, 200):
        env.call_at(at_ns, 0, pool.free)
    env.run()
    assert log == [(0, 0), (1, 1), (2, 2), (100, 3), (100, 4), (200, 5)]
    assert pool.count == 3
    assert not pool.take(tasks[0])


def test_batcher_may_overdraw_the_request_list_for_20_ms() -> None:
    """A task that takes the last request of a list becomes a batcher: it may overdraw the list for 20 ms.

    * ``other`` takes 7 of 8 requests.
    * ``one`` takes the eighth and becomes a batcher; ``other`` is refused.
    * ``one`` takes 4 more: the list has 12 requests at most, 3/2 of 8.
    * After 20 ms ``one`` is refused.  ``other`` slept and was woken, so it is a batcher now.
    """
    env = Environment()
    pool = RequestList(env, 8)
    one, other = env.task("one"), env.task("other")
    assert [pool.take(other) for _ in range(7)] == [True] * 7
    assert pool.take(one)
    assert not pool.take(other)
    assert [pool.take(one) for _ in range(5)] == [True] * 4 + [False]
    assert pool.count == 12
    env.now = BATCH_NS + 1
    for _ in range(3):
        pool.free()
    assert not pool.take(one), "the batch of the task has expired"
    pool.woken(other)
    assert pool.take(other), "a task that slept may exceed the limit"
    assert BATCH_REQUESTS == 32


def test_a_batcher_has_32_requests_and_20_ms() -> None:
    """A batcher may take 32 more requests, within 20 ms.

    * 32 more are taken: the next one is refused at 20 ms.
    * 31 more are taken: the next one is refused at 20 ms and 1 ns.
    * After another wake-up, a request is granted at exactly 20 ms.
    """
    env = Environment()
    for taken in (32, 31):
        pool = RequestList(env, 200)
        one, other = env.task("one"), env.task("other")
        assert all(pool.take(other) for _ in range(199))
        assert all(pool.take(one) for _ in range(1 + taken))
        env.now += 20 * MS + (taken == 31)
        assert not pool.take(one)
    pool.woken(one)
    env.now += 20 * MS
    assert pool.take(one)


def test_freed_request_wakes_one_sleeper_if_the_list_has_room() -> None:
    """A freed request wakes one sleeper if fewer than nr_requests are taken then.

    * t=10: 2 of 2 requests are taken; no task wakes.
    * t=20: 1 is taken; the first sleeper wakes.
    * t=30: 0 are taken; the second sleeper wakes.
    """
    env = Environment()
    pool, woken = RequestList(env, 2), []

    def sleeper(number: int) -> Steps:
        yield PARK
        woken.append(number)

    for number in range(2):
        task = env.task(str(number))
        env.start(task, sleeper(number))
        pool.waiters.append(task)
    pool.count = 3
    env.call_at(10, 0, pool.free)
    env.call_at(20, 0, pool.free)
    env.call_at(30, 0, pool.free)
    env.run()
    assert woken == [0, 1]
    assert pool.count == 0


@pytest.mark.parametrize(("kind", "left"), [("tags", 0), ("request_list", 2)])
def test_sync_and_async_requests_share_tags_but_not_request_lists(kind: str, left: int) -> None:
    """Synchronous and asynchronous requests have one set of tags, or a request_list each.

    * Two asynchronous requests and a synchronous one are taken, of three.
    * Tags: a second synchronous request is refused.  A freed synchronous tag wakes an asynchronous sleeper.
    * Lists: the synchronous list has two more requests, and its sleepers are separate.
    """
    env = Environment()
    pool, sync = POOLS[kind](env, 3)
    task, woken = env.task("somebody"), []
    assert (pool.take(task), pool.take(task), sync.take(task)) == (True, True, True)
    assert (pool.count, sync.count) == (2, 1)
    for _ in range(left):
        assert sync.take(task)
        sync.free()
    assert sync.take(task) == (left > 0)

    def sleeper() -> Steps:
        yield PARK
        woken.append(env.now)

    env.start(waits := env.task("sleeper"), sleeper())
    pool.waiters.append(waits)
    env.call_at(10, 0, sync.free)
    env.run()
    assert woken == ([10] if kind == "tags" else [])
