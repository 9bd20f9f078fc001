"""Who may have a request: tags, and the legacy list with its batchers."""

from __future__ import annotations

import pytest

from wbsim.models.block.request_pool import BATCH_NS, BATCH_REQUESTS, POOLS, RequestList, tag_classes
from wbsim.sim.engine import PARK, Environment, Steps
from wbsim.sim.units import MS


def test_tags_run_out_and_wake_as_many_as_are_freed() -> None:
    """Three tags: the fourth task sleeps; two that come back wake two, first come first served."""
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


def test_the_list_is_overdrawn_by_who_filled_it_for_20_ms() -> None:
    """Of 8: 7 for anybody; who takes the eighth may take 32 more, up to 12 in all, within 20 ms."""
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
    assert not pool.take(one), "its time is over"
    pool.woken(other)
    assert pool.take(other), "who has slept may overdraw"
    assert BATCH_REQUESTS == 32


def test_a_batcher_has_32_requests_and_20_ms() -> None:
    """Of 200: who took the last takes 32 more, the last of them after 20 ms; then, or later, none."""
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


def test_a_list_that_is_not_full_wakes_one_for_each_request() -> None:
    """Down to eight of eight, the first sleeper is woken; the pool is full until nobody sleeps."""
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
def test_tags_are_one_set_for_both_classes_and_lists_are_two(kind: str, left: int) -> None:
    """Of three requests two go to asynchronous bios: one tag is left for synchronous ones, or a list of their
    own (of which the last is for who fills it).  A synchronous one that ends wakes who waits for either.
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
