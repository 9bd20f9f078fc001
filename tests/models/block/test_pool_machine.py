"""The pool of requests and writeback throttling, compared with a literal reading.

The sources of the reading are docs/kernel/schedulers.md#the-pool-of-requests, get_request and freed_request
of block/blk-core.c, and block/blk-wbt.c.  The reading takes and frees one request at a time.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from wbsim.models.block.request_pool import POOLS, Pool
from wbsim.models.block.wbt import WritebackThrottling
from wbsim.sim.engine import Environment, Task
from wbsim.sim.units import MS, S

TASKS = st.integers(0, 2)
CLASSES = st.integers(0, 1)
TIMES = st.sampled_from([1, 19 * MS, 20 * MS, 21 * MS, S])


# The tests set the clock themselves.
pytestmark = pytest.mark.source


class Woken:
    """An environment whose clock the test sets; ``names`` are the tasks that it was asked to wake."""

    def __init__(self) -> None:
        self.now = 0
        self.names: list[str] = []

    def wake(self, task: Task) -> None:
        self.names.append(task.name)


class List:
    """A request_list of one class."""

    def __init__(self, nr: int) -> None:
        self.nr = nr
        self.count = 0
        self.full = self.congested = False
        self.ends = 0  # how often congestion ended
        self.batching: dict[str, list[int]] = {}  # [requests left, end of the 20 ms]
        self.waiting: list[str] = []

    def get_request(self, name: str, now: int) -> bool:
        batches = False
        if self.count + 1 >= self.nr:
            if not self.full:
                self.full = True
                self.batching[name] = [32, now + 20 * MS]
            else:
                left, until = self.batching.get(name, [0, 0])
                if left == 0 or now > until:
                    self.batching.pop(name, None)
                    return False
                batches = True
        if batches:
            self.batching[name][0] -= 1
        if self.count >= 3 * self.nr // 2:
            return False
        self.count += 1
        if self.count >= min(self.nr, self.nr - self.nr // 8 + 1):
            self.congested = True
        return True

    def freed_request(self) -> list[str]:
        """Free a request; return the names of the woken tasks."""
        self.count -= 1
        if self.congested and self.count < max(1, self.nr - self.nr // 8 - self.nr // 16 - 1):
            self.congested = False
            self.ends += 1
        if self.count + 1 > self.nr:
            return []
        self.full = False
        woken, self.waiting = self.waiting[:1], self.waiting[1:]
        return woken


class RequestLists(RuleBasedStateMachine):
    """The legacy path: a list for each class."""

    @initialize(nr=st.sampled_from([1, 2, 7, 16, 40, 128]))
    def begin(self, nr: int) -> None:
        self.env, self.ended = Woken(), 0
        env: Any = self.env
        self.lists: tuple[Pool, Pool] = POOLS["request_list"](env, nr, self.uncongested)
        self.plain = [List(nr), List(nr)]
        self.tasks = [Environment().task(name) for name in "abc"]

    def uncongested(self) -> None:
        self.ended += 1

    @rule(of=CLASSES, who=TASKS, times=st.sampled_from([1, 2, 35, 130]))
    def take(self, of: int, who: int, times: int) -> None:
        """Take *times* requests for task *who*, which goes to sleep if it is refused."""
        task = self.tasks[who]
        for _ in range(times):
            given = self.lists[of].take(task)
            assert given == self.plain[of].get_request(task.name, self.env.now)
            if not given:
                if task.name not in self.plain[of].waiting:
                    self.lists[of].waiters.append(task)
                    self.plain[of].waiting.append(task.name)
                return

    @rule(of=CLASSES, part=st.floats(0, 1))
    def free(self, of: int, part: float) -> None:
        """Free *part* of the taken requests, one by one."""
        for _ in range(max(1, int(part * self.plain[of].count))):
            if self.plain[of].count:
                self.env.names.clear()
                self.lists[of].free()
                assert self.env.names == self.plain[of].freed_request()

    @rule(of=CLASSES, who=TASKS)
    def one_has_slept(self, of: int, who: int) -> None:
        task = self.tasks[who]
        if task.name not in self.plain[of].waiting:
            self.lists[of].woken(task)
            self.plain[of].batching[task.name] = [32, self.env.now + 20 * MS]

    @rule(ns=TIMES)
    def time_passes(self, ns: int) -> None:
        self.env.now += ns

    @invariant()
    def both_are_the_same(self) -> None:
        for pool, plain in zip(self.lists, self.plain, strict=True):
            assert (pool.count, pool.congested) == (plain.count, plain.congested)
        assert self.ended == self.plain[0].ends


class Throttled(RuleBasedStateMachine):
    """blk-wbt in front of a device with two contexts."""

    @initialize(nr=st.integers(1, 300), write_cache=st.booleans())
    def begin(self, nr: int, write_cache: bool) -> None:
        self.env, self.write_cache = Woken(), write_cache
        self.env.now = 2 * S
        env: Any = self.env
        self.of = WritebackThrottling(env, nr, write_cache)
        self.contexts = [SimpleNamespace(held_back_ns=-S) for _ in range(2)]
        self.of.wbs = self.contexts  # type: ignore[assignment]
        # rq_depth_calc_max_depth at its last step, calc_wb_limits
        self.max_depth = 2 if nr == 1 else max(1, 3 * nr // 4)
        self.normal, self.background = self.max_depth, 1
        if self.max_depth > 2:
            self.normal, self.background = (self.max_depth + 1) // 2, (self.max_depth + 3) // 4
        self.inflight = 0
        self.sleeping: list[str] = []
        self.names = iter(Environment().task(str(number)) for number in range(1_000))

    def recent_wait(self) -> bool:
        return any(self.env.now < of.held_back_ns + S for of in self.contexts)

    def limit(self, background: bool) -> int:
        """get_limit."""
        if self.recent_wait():
            return self.max_depth
        return self.background if background else self.normal

    @rule(background=st.booleans(), requests=st.integers(1, 60))
    def submit(self, background: bool, requests: int) -> None:
        """rq_wait_inc_below: submit up to *requests* requests; a task that finds no room sleeps."""
        for _ in range(requests):
            inside = self.inflight < self.limit(background)
            assert (self.of.room(background) > 0) == inside
            if not inside:
                task = next(self.names)
                self.of.waiters.append(task)
                self.sleeping.append(task.name)
                return
            assert self.of.room(background) == self.limit(background) - self.inflight
            self.of.count += 1
            self.inflight += 1

    @rule(part=st.floats(0, 1))
    def complete(self, part: float) -> None:
        """wbt_rqw_done: complete *part* of the requests, one by one."""
        requests = min(self.inflight, max(1, int(part * self.inflight)))
        woken: list[str] = []
        for _ in range(requests):
            self.inflight -= 1
            limit = 0 if self.write_cache and not self.recent_wait() else self.normal
            if self.inflight and self.inflight >= limit:
                continue
            if not self.inflight or limit - self.inflight >= self.background // 2:
                woken += self.sleeping
                self.sleeping = []
        self.env.names.clear()
        for _ in range(requests):
            self.of.done()
        assert self.env.names == woken
        assert self.of.count == self.inflight

    @rule(of=st.integers(0, 1))
    def a_writer_is_held_back(self, of: int) -> None:
        self.contexts[of].held_back_ns = self.env.now

    @rule(ns=st.sampled_from([1, S - 1, S]))
    def time_passes(self, ns: int) -> None:
        self.env.now += ns


TestRequestLists = RequestLists.TestCase
TestRequestLists.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestThrottled = Throttled.TestCase
TestThrottled.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
