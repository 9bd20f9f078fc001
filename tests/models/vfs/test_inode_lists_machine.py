"""The inodes of two superblocks under the locks of every era, against a naive model.

The naive model follows docs/kernel/inodes.md#sync and #lists-and-locks: the lock of each step, the hold time,
and the cache lines that another processor wrote last.  The machine has two nodes and four processors.  Steps
come one after another, except two that want a list at the same time.  tests/sim has the waits for a contended
lock.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.harness import BlockLayer, page_cache
from wbsim.models.parts import Parts
from wbsim.models.time_accounting import Spent
from wbsim.models.vfs.inodes import SuperblockInodes, inode_locks, shared_locks
from wbsim.models.vfs.spec import InodeCosts, InodeRules
from wbsim.sim.engine import Environment, Steps, Task, Wait
from wbsim.sim.sync import HandOff, SpinLock

OWN, NEAR, FAR, NODE_CPUS, BUCKETS = 3, 19, 83, 2, 4
COSTS: Final = InodeCosts(
    add_ns=101, del_ns=211, visit_ns=307, unhash_ns=401, lru_ns=503, chain_ns=601, chain_again_ns=701,
    reference_ns=809, dentry_ns=907, evict_ns=1_009, reclaim_ns=1_103,
)  # fmt: skip
RULES: Final = st.builds(
    InodeRules,
    sb_list=st.just("inode_lock"),  # each value has its own state machine below
    sync_walks=st.sampled_from(["cached", "under_writeback"]),
    sync_mutex=st.booleans(),
    unhash=st.sampled_from(["all", "hashed"]),
    hash_lookup=st.sampled_from(["locked", "rcu"]),
    lru=st.sampled_from(["global", "superblock", "per_node"]),
    lru_checks=st.booleans(),
)
STEPS: Final = ("add", "del", "lru_add", "lru_del")
SB, CPU = st.integers(0, 1), st.integers(0, 3)

# The test replaces the threads of the machine.
pytestmark = pytest.mark.source


class Visits:
    """The visits to a lock: their number, their hold time in all, and the contentions."""

    def __init__(self) -> None:
        self.times = self.held_ns = self.contended = 0


class Lists(RuleBasedStateMachine):
    """Steps of four threads, each of which has its own processor."""

    sb_list = "inode_lock"

    @initialize(rules=RULES, hashed=st.tuples(st.booleans(), st.booleans()))
    def begin(self, rules: InodeRules, hashed: tuple[bool, bool]) -> None:
        era = rules.model_copy(update={"sb_list": self.sb_list})
        self.era, self.hashed = era, hashed
        self.env = Environment()
        self.real: dict[str, SpinLock] = {}
        hand_off = HandOff(NEAR, FAR, node_cpus=NODE_CPUS)

        def spin_lock(env: Environment, name: str, hand_off: HandOff, _: int) -> SpinLock:
            return self.real.setdefault(name, SpinLock(env, name, hand_off))

        supply = BlockLayer().supply
        times = replace(supply.times, hand_off=hand_off, line_own_ns=OWN)
        supply = replace(supply, env=self.env, times=times, spin_lock=spin_lock)
        if self.sb_list == "inode_lock":
            supply.inode_lock = Parts(supply).spin_lock("inode_lock")
        parts = Parts(supply)
        shared, self.cache = shared_locks(parts, era), page_cache()
        self.inodes: list[SuperblockInodes] = []
        for name, on_a_chain in zip("ab", hashed, strict=True):
            bdi: Any = SimpleNamespace(name=name)
            locks = inode_locks(parts.for_part(name), era, shared, 2, NODE_CPUS)
            self.inodes.append(
                SuperblockInodes(
                    bdi=bdi, locks=locks, rules=era, costs=COSTS, cache=self.cache, hashed=on_a_chain,
                    buckets=BUCKETS,
                )
            )  # fmt: skip
        self.threads: list[Any] = []
        for cpu in range(4):
            task = self.env.task(f"t{cpu}")
            task.cpu = cpu
            self.threads.append(SimpleNamespace(task=task, spent=Spent()))
        self.cached, self.paged, self.lumps = [0, 0], [0, 0], [1, 1]
        self.seen = [0, 0]  # contentions, at the last step of an eviction
        self.visits: dict[str, Visits] = {}
        self.wrote: dict[tuple[str, str], int] = {}
        self.worked_ns = [0] * 4

    # -- the naive model

    def lock(self, what: str, sb: int, cpu: int) -> str:
        """Return the lock of a superblock's list, of its list of unused inodes, or of the hash."""
        name, node, one = "ab"[sb], cpu // NODE_CPUS, self.sb_list == "inode_lock"
        match what:
            case "hash":
                return "inode_lock" if one else "inode_hash_lock"
            case "list" if self.sb_list == "per_node":
                return f"{name}/s_inode_list/{node}"
            case "list":
                return self.sb_list if self.sb_list.startswith("inode") else f"{name}/{self.sb_list}"
        return {
            "global": "lru_lock", "superblock": f"{name}/s_inode_lru_lock",
            "per_node": f"{name}/s_inode_lru/{node}",
        }[self.era.lru]  # fmt: skip

    def visit(self, what: str, sb: int, cpu: int, work_ns: int, lines: int) -> int:
        """Take the lock of *what* once, and return the hold time: *work_ns* and the fetch of *lines* lines.

        A line is as far away as the processor that wrote it last.
        """
        name = self.lock(what, sb, cpu)
        fetch_ns = 0
        if lines:
            last = self.wrote.get((what, name), -1)
            near = (max(last, 0) // NODE_CPUS) == cpu // NODE_CPUS
            fetch_ns = OWN if last == cpu else NEAR if near else FAR
            self.wrote[what, name] = cpu
        held_ns = work_ns + lines * fetch_ns
        of = self.visits.setdefault(name, Visits())
        of.times += 1
        of.held_ns += held_ns
        return held_ns

    def chain_ns(self, sb: int, each_ns: int) -> int:
        return self.cached[sb] * 1_000 // BUCKETS * each_ns // 1_000

    def unhashes(self, sb: int) -> bool:
        return self.hashed[sb] or self.era.unhash == "all"

    # -- the steps

    def took(self, step: Wait) -> int:
        """Return how long a thread is in *step*."""

        def body() -> Steps:
            yield step

        began_ns = self.env.now
        self.env.start(self.env.task("alone"), body())
        self.env.run()
        return self.env.now - began_ns

    @rule(
        sb=SB, cpu=CPU, then_ns=st.integers(0, 50), what=st.sampled_from(["add", "del", "lru_add", "lru_del"])
    )
    def a_list(self, sb: int, cpu: int, then_ns: int, what: str) -> None:
        """Add to a list or remove from it; only a removal from the superblock's list fetches two cache lines.

        With *lru_checks* a removal from the list of unused inodes does not take the lock.
        """
        inodes, thread = self.inodes[sb], self.threads[cpu]
        lru_ns = COSTS.lru_ns
        match what:
            case "add":
                step, held_ns = inodes.sb_list_add(thread, then_ns), self.visit("list", sb, cpu, 101, 1)
            case "del":
                step, held_ns = inodes.sb_list_del(thread, then_ns), self.visit("list", sb, cpu, 211, 2)
            case "lru_del" if self.era.lru_checks:
                step, held_ns = inodes.lru_del(thread, then_ns), 0
            case _:
                step, held_ns = getattr(inodes, what)(thread, then_ns), self.visit("lru", sb, cpu, lru_ns, 1)
        assert self.took(step) == held_ns + then_ns
        self.worked_ns[cpu] += held_ns

    @rule(sb=SB, cpu=CPU, then_ns=st.integers(0, 50))
    def the_hash(self, sb: int, cpu: int, then_ns: int) -> None:
        """Look an inode up without success, look it up again and insert it, and remove it."""
        inodes, thread = self.inodes[sb], self.threads[cpu]
        found_ns = self.chain_ns(sb, COSTS.chain_ns)
        if self.era.hash_lookup == "locked":
            self.visit("hash", sb, cpu, found_ns, 0)
        assert self.took(inodes.look_up(thread)) == found_ns
        added_ns = self.visit("hash", sb, cpu, self.chain_ns(sb, COSTS.chain_again_ns) + COSTS.unhash_ns, 1)
        assert self.took(inodes.add_to_hash(thread, then_ns)) == added_ns + then_ns
        removed_ns = 0
        if self.unhashes(sb):
            removed_ns = self.visit("hash", sb, cpu, COSTS.unhash_ns, 2 if self.hashed[sb] else 0)
        assert self.took(inodes.unhash(thread, then_ns)) == removed_ns + then_ns
        self.worked_ns[cpu] += found_ns + added_ns + removed_ns

    @rule(sb=SB, cpus=st.tuples(CPU, CPU).map(sorted))
    def two_want_a_list(self, sb: int, cpus: list[int]) -> None:
        """Let two threads want a list; the second waits if both want the same list."""
        cpu, other = cpus
        name = self.lock("list", sb, cpu)
        self.visits.setdefault(name, Visits()).contended += name == self.lock("list", sb, other)
        for of in cpus:
            self.worked_ns[of] += self.visit("list", sb, of, COSTS.add_ns, 1)
            task = self.env.task("one of two")
            task.cpu = of
            self.env.start(task, self.adds(sb, task, of))
        self.env.run()

    def adds(self, sb: int, task: Task, cpu: int) -> Steps:
        thread: Any = SimpleNamespace(task=task, spent=self.threads[cpu].spent)
        yield self.inodes[sb].sb_list_add(thread)

    @rule(sb=SB, inodes=st.integers(0, 90), pages=st.integers(0, 40))
    def some_are_read(self, sb: int, inodes: int, pages: int) -> None:
        """Read *inodes* inodes, and give *pages* of all inodes pages, but no more than all."""
        self.inodes[sb].add_cached(inodes)
        self.cached[sb] += inodes
        for _ in range(pages):
            self.inodes[sb].has_pages()
        self.paged[sb] = min(self.cached[sb], self.paged[sb] + pages)

    @rule(sb=SB, cpu=CPU, wanted=st.integers(1, 100))
    def evict(self, sb: int, cpu: int, wanted: int) -> None:
        """Evict inodes from all their lists, in lumps that double up to 32 until a lock is contended."""
        thread, began_ns, expected_ns = self.threads[cpu], self.env.now, 0
        before_ns = thread.spent.reclaim
        self.env.start(thread.task, self.inodes[sb].evict(thread, wanted))
        self.env.run()
        worked_ns, left = 0, wanted
        while left and self.cached[sb]:
            contended = sum(
                self.visits.get(self.lock(what, sb, cpu), Visits()).contended for what in ("list", "hash")
            )
            self.lumps[sb] = min(32, 2 * self.lumps[sb]) if contended == self.seen[sb] else 1
            self.seen[sb] = contended
            lump = min(self.lumps[sb], left, self.cached[sb])
            left -= lump
            gone = -(-self.paged[sb] * lump // self.cached[sb])
            self.paged[sb] -= gone
            self.cached[sb] -= lump
            worked_ns += lump * (COSTS.dentry_ns + COSTS.evict_ns + COSTS.reclaim_ns)
            on_lru = lump * (2 if self.era.lru_checks else 3)
            expected_ns += self.visit("lru", sb, cpu, on_lru * COSTS.lru_ns, on_lru)
            expected_ns += self.visit("list", sb, cpu, lump * COSTS.del_ns, 2 * lump)
            if self.unhashes(sb):
                lines = 2 * lump if self.hashed[sb] else 0
                expected_ns += self.visit("hash", sb, cpu, lump * COSTS.unhash_ns, lines)
        assert self.env.now - began_ns == expected_ns + worked_ns
        assert thread.spent.reclaim - before_ns == worked_ns
        self.worked_ns[cpu] += expected_ns

    @precondition(lambda self: max(self.cached) > 0)
    @rule(sb=SB, cpu=CPU)
    def walk(self, sb: int, cpu: int) -> None:
        """Walk over each list in one hold, and one more for each paged inode, if the era has such a walk."""
        thread, began_ns = self.threads[cpu], self.env.now
        before_ns = thread.spent.sync
        self.env.start(thread.task, self.inodes[sb].walk(thread))
        self.env.run()
        took_ns = 0
        if self.era.sync_walks == "cached":
            lists = [0, NODE_CPUS] if self.sb_list == "per_node" else [cpu]
            left, left_paged = self.cached[sb], self.paged[sb]
            for number, at in enumerate(lists):
                last = number == len(lists) - 1
                here, paged = (left, left_paged) if last else (left // 2, left_paged // 2)
                left, left_paged = left - here, left_paged - paged
                for hold_ns in [(here - paged) * COSTS.visit_ns, *[COSTS.visit_ns] * paged]:
                    took_ns += self.visit("list", sb, at, hold_ns, 0)
                took_ns += paged * COSTS.reference_ns
        assert self.env.now - began_ns == thread.spent.sync - before_ns == took_ns

    # -- the invariant

    @invariant()
    def both_are_the_same(self) -> None:
        assert [of.cached for of in self.inodes] == self.cached
        assert [of.paged for of in self.inodes] == self.paged
        assert (self.cache.cached_inodes, self.cache.paged_inodes) == (sum(self.cached), sum(self.paged))
        assert [thread.spent.inodes for thread in self.threads] == self.worked_ns
        for name, lock in self.real.items():
            of = self.visits.get(name, Visits())
            found = (lock.stat.acquisitions, lock.stat.hold_ns, lock.stat.contentions)
            assert found == (of.times, of.held_ns, of.contended), name


class OneForAll(Lists):
    """The lists of 2.6.39 to 4.2: one lock for all superblocks."""

    sb_list = "inode_sb_list_lock"


class OneForEach(Lists):
    """The lists of 4.3 and later: one lock for each superblock."""

    sb_list = "s_inode_list_lock"


class OneForEachNode(Lists):
    """The lists that report V13 proposed: one for each node."""

    sb_list = "per_node"


MACHINES: Final = (Lists, OneForAll, OneForEach, OneForEachNode)
for machine in MACHINES:
    machine.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestLists, TestOneForAll, TestOneForEach, TestOneForEachNode = (machine.TestCase for machine in MACHINES)
