"""Inodes of several superblocks on the lists of several contexts, and their pages, against plain lists."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.harness import inodes_of, no_lock, process, run_for
from wbsim.models.interfaces import Inode, InodeSync
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.page_cache.spec import DirtyLimits, MemorySpec
from wbsim.models.throttling.io_less import PausedDirtier
from wbsim.models.time_accounting import Spent
from wbsim.models.vfs.spec import WriteCosts
from wbsim.models.vfs.superblock import Flight, MountedSuperblock
from wbsim.models.writeback.wb import WritebackContext
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.sync import HandOff, SpinLock
from wbsim.sim.units import MIB

INODES, CONTEXTS = 12, 2


class Lists(RuleBasedStateMachine):
    """Twelve inodes of three superblocks on two contexts; plain lists hold the inodes and count the pages."""

    @initialize()
    def begin(self) -> None:
        self.env = env = Environment()
        self.cache = PageCache(
            MemorySpec(memory=64 * MIB, kernel_reserve=0, inode_slab_bytes=0),
            DirtyLimits(dirty_background_ratio=10, dirty_ratio=20),
        )
        throttle: Any = SimpleNamespace(dirtier=PausedDirtier)
        self.writer = process(env, throttle, WriteCosts(call_ns=0, page_ns=0, close_ns=0, mark_ns=0))
        self.wbs = [
            WritebackContext(str(i), SpinLock(env, "list_lock", HandOff(0, 0)), self.cache)
            for i in range(CONTEXTS)
        ]
        bdi: Any = SimpleNamespace(queue=SimpleNamespace(unplug=lambda: None))
        self.sbs = [
            MountedSuperblock(
                env, name, bdi, 0, inodes_of(env, bdi, self.cache), is_root="/".__eq__, new_i_rwsem=no_lock
            )
            for name in "abc"
        ]
        self.inodes = [Inode(self.sbs[i % 3], self.wbs[i % CONTEXTS]) for i in range(INODES)]
        self.lists: list[dict[str, list[int]]] = [{"dirty": [], "io": [], "more_io": []} for _ in self.wbs]
        self.when: dict[int, int] = {}
        self.dirty, self.flying, self.clean = [0] * INODES, [0] * INODES, [0] * INODES
        self.taken: set[int] = set()
        self.flights: list[tuple[int, Flight, int]] = []
        self.landed: list[tuple[int, set[Any]]] = []

    @rule(number=st.integers(0, INODES - 1), pages=st.integers(1, 9))
    def write(self, number: int, pages: int) -> None:
        """Dirty *pages* pages: a clean inode goes to the tail of b_dirty, unless a flusher has taken it."""
        if not self.dirty[number] and number not in self.taken:
            self._put("dirty", number)
            self.when[number] = self.env.now
        self.dirty[number] += pages
        self.writer.account(self.inodes[number].wb, pages)
        self.writer.mark_dirty(self.inodes[number], pages, 0)

    @rule(ns=st.integers(1, 5))
    def let_pass(self, ns: int) -> None:
        run_for(self.env, ns)

    @rule(context=st.integers(0, CONTEXTS - 1), age_ns=st.integers(0, 9))
    def queue_io(self, context: int, age_ns: int) -> None:
        """Move b_more_io to b_io, and then the old enough inodes of b_dirty, superblock by superblock."""
        lists, before = self.lists[context], self.env.now - age_ns
        expired = [number for number in lists["dirty"] if self.when[number] <= before]
        in_order = [n for sb in dict.fromkeys(n % 3 for n in expired) for n in expired if n % 3 == sb]
        moved = lists["more_io"] + in_order
        lists["io"], lists["more_io"] = lists["io"] + moved, []
        lists["dirty"] = [number for number in lists["dirty"] if number not in expired]
        assert self.wbs[context].queue_io(before) == len(moved)

    @rule(context=st.integers(0, CONTEXTS - 1))
    def take(self, context: int) -> None:
        """Let the flusher take the next inode off b_io."""
        if self.lists[context]["io"]:
            number = self.lists[context]["io"].pop(0)
            inode = self.wbs[context].b_io.popleft()
            assert inode is self.inodes[number]
            InodeSync(self.env).begin(inode)
            self.taken.add(number)

    @rule(data=st.data(), waits=st.booleans())
    def write_back(self, data: st.DataObject, waits: bool) -> None:
        """Put some pages of a taken inode under writeback.

        If pages are left, the inode goes to b_more_io (*waits*) or to the tail of b_dirty.
        """
        if not self.taken:
            return
        number = data.draw(st.sampled_from(sorted(self.taken)))
        pages = data.draw(st.integers(0, self.dirty[number]))
        inode, flight = self.inodes[number], self.sbs[number % 3].flight
        self.taken.remove(number)
        self.dirty[number] -= pages
        inode.dirty_pages -= pages
        inode.i_sync.end(inode)
        if pages:
            self.flying[number] += pages
            self.flights.append((number, flight, pages))
            flight.add(inode.wb, pages)
        if self.dirty[number]:
            self._put("more_io" if waits else "dirty", number)
            self.when[number] = self.when[number] if waits else self.env.now
            wb = self.wbs[number % CONTEXTS]
            wb.requeue_io(inode) if waits else wb.add(inode, self.env.now)

    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        """Complete some pages under writeback, which are clean then."""
        if self.flights:
            at = data.draw(st.integers(0, len(self.flights) - 1))
            number, flight, pages = self.flights.pop(at)
            done = data.draw(st.integers(1, pages))
            if done < pages:
                self.flights.append((number, flight, pages - done))
            self.flying[number] -= done
            self.clean[number] += done
            flight.end(self.inodes[number].wb, done)

    @rule(sb=st.integers(0, 2))
    def wait_for_writeback(self, sb: int) -> None:
        """Let a task wait until all pages of *sb* that are under writeback now are clean."""
        waits_for = {flight for number, flight, _ in self.flights if number % 3 == sb}
        thread: Any = SimpleNamespace(task=self.env.task("sync"), spent=Spent())

        def body() -> Steps:
            yield from self.sbs[sb].wait_for_writeback(thread)
            still = {flight for _, flight, _ in self.flights}
            assert not waits_for & still, "the sync(2) returned too early"
            self.landed.append((sb, waits_for))

        self.env.start(thread.task, body())
        run_for(self.env, 0)
        if not waits_for:
            assert self.landed[-1] == (sb, set())

    @invariant()
    def lists_and_counts_agree(self) -> None:
        if not hasattr(self, "wbs"):
            return
        for number, wb in enumerate(self.wbs):
            own = range(number, INODES, CONTEXTS)
            found = [wb.b_dirty, wb.b_io, wb.b_more_io]
            assert [[self.inodes.index(inode) for inode in of] for of in found] == [
                self.lists[number][name] for name in ("dirty", "io", "more_io")
            ]
            assert wb.dirty == sum(self.dirty[i] for i in own)
            assert wb.dirty_and_writeback == sum(self.dirty[i] + self.flying[i] for i in own)
            assert wb.written_pages == sum(self.clean[i] for i in own)
            assert [inode.dirtied_when for inode in wb.b_dirty] == [
                self.when[i] for i in self.lists[number]["dirty"]
            ]
            wb.check()
        cache = self.cache
        assert (cache.dirty, cache.writeback, cache.written_pages) == (
            sum(self.dirty), sum(self.flying), sum(self.clean)
        )  # fmt: skip
        assert cache.dirtied == sum(self.dirty) + sum(self.flying) + sum(self.clean)
        for number, sb in enumerate(self.sbs):
            assert sb.under_writeback == sum(self.flying[number::3])

    def teardown(self) -> None:
        """Complete all writeback, after which no task may wait."""
        if hasattr(self, "wbs"):
            for number, flight, pages in self.flights:
                flight.end(self.inodes[number].wb, pages)
            self.flights = []
            run_for(self.env, 1)
            assert self.env.live_tasks == 0

    def _put(self, name: str, number: int) -> None:
        self.lists[number % CONTEXTS][name].append(number)


Lists.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestLists: Any = pytest.mark.source(Lists.TestCase)
