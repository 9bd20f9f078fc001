"""The inodes of one superblock, as the virtual filesystem keeps them: their list, their hash, their number.

Stands for fs/inode.c (new_inode, inode_sb_list_add, iget_locked, evict), for wait_sb_inodes, inode_attach_wb,
and for prune_dcache_sb and prune_icache_sb (mechanisms.md 5.1, 5.2).  Clean inodes are counts: which one is
evicted makes no difference.  What a filesystem knows of an inode, it keeps itself.  Left out: the LRU's lock
in creat(2), the inodes of block devices.

`InodeLocks` are the locks of an era around them, and `Kswapds` evict inodes when memory is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from wbsim.models.interfaces import Thread, Wb
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.parts import Parts
from wbsim.models.scheduler.cpu import cond_resched
from wbsim.models.vfs.spec import InodeCosts, InodeRules
from wbsim.models.writeback.wb import BackingDevice
from wbsim.sim.engine import PARK, Steps, Task, Wait
from wbsim.sim.invariants import require
from wbsim.sim.sync import Line, Mutex
from wbsim.sim.units import KIB

BUCKET_BYTES: Final = 16 * KIB
"""The inode hash has a chain for each so many bytes of memory (inode_init)."""


class SharedLocks(NamedTuple):
    """What all superblocks share: ``hash`` is inode_hash_lock; the others are there in some eras."""

    hash: Line
    sb_list: Line | None
    lru: Line | None


class InodeLocks(NamedTuple):
    """Where the inodes of one superblock are kept: under one of ``sb_lists`` for each node, or the only one;
    in the only one of ``hashes``, of all superblocks; on one of the ``lrus``, like the lists; ``sync`` is
    s_sync_lock, if there is one.  A node has *node_cpus* processors.
    """

    sb_lists: list[Line]
    lrus: list[Line]
    hashes: list[Line]
    sync: Mutex | None
    node_cpus: int


def shared_locks(parts: Parts, rules: InodeRules) -> SharedLocks:
    """Those of a machine."""
    lines = parts.lines
    sb_list = None if parts.inode_lock is None else lines(parts.inode_lock)
    if rules.sb_list == "inode_sb_list_lock":
        sb_list = lines(parts.spin_lock("inode_sb_list_lock"))
    lru = lines(parts.spin_lock("lru_lock")) if rules.lru == "global" else None
    return SharedLocks(lines(parts.inode_lock or parts.spin_lock("inode_hash_lock")), sb_list, lru)


def inode_locks(
    parts: Parts, rules: InodeRules, shared: SharedLocks, nodes: int, node_cpus: int
) -> InodeLocks:
    """Return the locks of the superblock that *parts* belongs to."""

    def locks(name: str, of_each_node: bool) -> list[Line]:
        names = [f"{name}/{node}" for node in range(nodes)] if of_each_node else [f"{name}_lock"]
        return [parts.lines(parts.spin_lock(each)) for each in names]

    sb_lists = [shared.sb_list] if shared.sb_list else locks("s_inode_list", rules.sb_list == "per_node")
    lrus = [shared.lru] if shared.lru else locks("s_inode_lru", rules.lru == "per_node")
    sync = parts.mutex("s_sync_lock") if rules.sync_mutex else None
    return InodeLocks(sb_lists, lrus, [shared.hash], sync, node_cpus)


BATCH: Final = 128  # SHRINK_BATCH
_LUMP: Final = 32
"""The most inodes that are evicted in one step while nobody else wants their locks."""
# Lines that another processor wrote last (mechanisms.md 5.2): the neighbour of a new inode is the one that
# was added last; one that goes has two.
_ADD: Final = 1
_DEL: Final = 2


class SuperblockInodes:
    """The cached inodes on *bdi*: so many are ``cached``, and ``paged`` of these have pages.

    ``hashed``: whether the filesystem's inodes are on the chains of the hash, of which there are *buckets*.
    """

    __slots__ = (
        "_bdi",
        "_buckets",
        "_cache",
        "_contentions",
        "_costs",
        "_locked_lookup",
        "_locks",
        "_lru_visits",
        "_lump",
        "_rules",
        "add_ns",
        "cached",
        "evict_ns",
        "hashed",
        "paged",
    )  # fmt: skip

    def __init__(
        self, *, bdi: BackingDevice, locks: InodeLocks, rules: InodeRules, costs: InodeCosts,
        cache: PageCache, hashed: bool, buckets: int,
    ) -> None:  # fmt: skip
        self._bdi = bdi
        self._locks = locks
        self._rules = rules
        self._costs = costs
        self._cache = cache
        self._buckets = buckets
        self._locked_lookup = rules.hash_lookup == "locked"
        self._lump = 1
        self._contentions = 0
        self._lru_visits = 2 if rules.lru_checks else 3  # dentry, inode; and the inode again, in evict
        self.hashed = hashed
        self.cached = self.paged = 0
        self.add_ns = costs.add_ns
        """What `sb_list_add` takes with nobody else at the lock."""
        self.evict_ns = costs.evict_ns
        """What the eviction of one takes beside the locks."""

    # -- one inode

    def sb_list_add(self, thread: Thread, then_ns: int = 0) -> Wait:
        """inode_sb_list_add by *thread*, which goes on for *then_ns*: to be yielded."""
        return self._locked(self._locks.sb_lists, thread, _ADD, self.add_ns, then_ns)

    def sb_list_del(self, thread: Thread, then_ns: int = 0) -> Wait:
        """inode_sb_list_del: the same."""
        return self._locked(self._locks.sb_lists, thread, _DEL, self._costs.del_ns, then_ns)

    def lru_add(self, thread: Thread, then_ns: int = 0) -> Wait:
        """d_lru_add, when the last user of a name is gone: the same."""
        return self._locked(self._locks.lrus, thread, _ADD, self._costs.lru_ns, then_ns)

    def lru_del(self, thread: Thread, then_ns: int = 0) -> Wait:
        """inode_lru_list_del of an inode that is not on the list: the same; no lock where that is looked at
        first.
        """
        return then_ns if self._rules.lru_checks else self.lru_add(thread, then_ns)

    def unhash(self, thread: Thread, then_ns: int = 0) -> Wait:
        """remove_inode_hash: the same, and no lock for an inode that is not hashed, where that is known."""
        if self.hashed or self._rules.unhash == "all":
            lines = _DEL if self.hashed else 0
            return self._locked(self._locks.hashes, thread, lines, self._costs.unhash_ns, then_ns)
        return then_ns

    def look_up(self, thread: Thread) -> Wait:
        """find_inode_fast, the first look of iget_locked, which finds nothing: to be yielded."""
        walk_ns = self._chain() * self._costs.chain_ns // 1_000
        if self._locked_lookup:
            return self._locked(self._locks.hashes, thread, 0, walk_ns, 0)
        thread.spent.inodes += walk_ns
        return walk_ns

    def add_to_hash(self, thread: Thread, then_ns: int = 0) -> Wait:
        """The second look of iget_locked or insert_inode_locked, and __hlist_add: to be yielded.

        NOTE: iget_locked takes the superblock's list lock within this one; here it comes behind it, so that
        only its hold and not its wait is in this one's.
        """
        walk_ns = self._chain() * self._costs.chain_again_ns // 1_000
        return self._locked(self._locks.hashes, thread, _ADD, walk_ns + self._costs.unhash_ns, then_ns)

    def _locked(self, locks: list[Line], thread: Thread, lines: int, work_ns: int, then_ns: int) -> Wait:
        """*thread* works under its node's lock, and fetches so many *lines*."""
        line, task = self._of_node(locks, thread.task), thread.task
        hold_ns = work_ns + lines * line.fetch_ns(task) if lines else work_ns
        thread.spent.inodes += hold_ns
        return line.lock.section(task, hold_ns, then_ns)

    def new(self, task: Task, group: int, number: int) -> Wb:
        """*task* has made inode *number* in that *group*: it is cached; returns its writeback context."""
        self.cached += 1
        self._cache.add_inodes(1)
        return self._bdi.wb_of(group, number, task.cpu)

    def add_cached(self, inodes: int = 1) -> None:
        """So many *inodes* were read from the disk: they are cached."""
        self.cached += inodes
        self._cache.add_inodes(inodes)

    def _forget(self, inodes: int) -> None:
        """So many are cached no longer: of those with pages, their share."""
        paged = -(-self.paged * inodes // self.cached)
        self.paged -= paged
        self.cached -= inodes
        self._cache.paged_inodes -= paged
        self._cache.cached_inodes -= inodes

    def _of_node(self, locks: list[Line], task: Task) -> Line:
        return locks[0] if len(locks) == 1 else locks[max(task.cpu, 0) // self._locks.node_cpus]

    def _chain(self) -> int:
        """How many inodes a chain of the hash has: thousandths."""
        return self.cached * 1_000 // self._buckets

    def has_pages(self) -> None:
        """An inode has its first pages.

        NOTE: nobody knows which inodes lost theirs; so one that is written to again after writeback counts
        again, and there are never more of them than inodes.
        """
        if self.paged < self.cached:
            self.paged += 1
            self._cache.paged_inodes += 1

    @property
    def room_left(self) -> int:
        """How many more fit before kswapd begins."""
        return max(0, self._cache.room - self._cache.cached_inodes)

    @property
    def reclaiming(self) -> bool:
        """Whether memory is full of inodes."""
        return self._cache.reclaiming

    @property
    def must_reclaim(self) -> bool:
        """Whether who makes an inode has to evict others first (direct reclaim)."""
        return self._cache.must_reclaim

    # -- many

    def evict(self, thread: Thread, inodes: int) -> Steps:
        """prune_dcache_sb and prune_icache_sb: *thread* evicts so many, or as many as there are.

        NOTE: while nobody else wants the locks, several are evicted in one step, twice as many each time;
        once somebody had to wait, they go one by one again.
        """
        task, costs, locks = thread.task, self._costs, self._locks
        left = inodes
        while left > 0 and self.cached:
            lump = min(self.next_lump(task), left, self.cached)  # others evict at the same time
            left -= lump
            self._forget(lump)
            work_ns = lump * (costs.dentry_ns + costs.evict_ns + costs.reclaim_ns)
            thread.spent.reclaim += work_ns
            yield work_ns
            visits = lump * self._lru_visits
            yield self._locked(locks.lrus, thread, visits, visits * costs.lru_ns, 0)
            yield self._locked(locks.sb_lists, thread, lump * _DEL, lump * costs.del_ns, 0)
            if self.hashed or self._rules.unhash == "all":
                lines = lump * _DEL if self.hashed else 0
                yield self._locked(locks.hashes, thread, lines, lump * costs.unhash_ns, 0)
            if (ready := cond_resched(task)) is not None:
                yield ready

    def next_lump(self, task: Task) -> int:
        """Return how many inodes *task* evicts before it looks at the locks again.

        The number doubles each time, and is 1 where a lock was contended since the last time.
        """
        sb_list = self._of_node(self._locks.sb_lists, task)
        contentions = sb_list.lock.stat.contentions + self._locks.hashes[0].lock.stat.contentions
        self._lump = min(2 * self._lump, _LUMP) if contentions == self._contentions else 1
        self._contentions = contentions
        return self._lump

    def lock_sync(self, task: Task) -> Steps:
        """Take s_sync_lock, in eras that have it."""
        mutex = self._locks.sync
        if mutex is not None and not mutex.try_acquire(task):
            yield mutex.wait(task)

    def unlock_sync(self) -> None:
        """The walk is over, and so is the wait for what is under writeback."""
        if self._locks.sync is not None:
            self._locks.sync.release()

    def walk(self, thread: Thread) -> Steps:
        """The walk of sync(2) over all cached inodes, in eras that make it (wait_sb_inodes).

        Those without pages are passed with the lock held.  For one with pages the lock is dropped, and taken
        again.
        """
        if self._rules.sync_walks != "cached":
            return
        task, costs, lists = thread.task, self._costs, self._locks.sb_lists
        for number, line in enumerate(lists):
            paged = _share(self.paged, number, len(lists))
            clean_ns = (_share(self.cached, number, len(lists)) - paged) * costs.visit_ns
            thread.spent.sync += clean_ns
            yield line.lock.section(task, clean_ns)
            for _ in range(paged):
                thread.spent.sync += costs.visit_ns + costs.reference_ns
                yield line.lock.section(task, costs.visit_ns, costs.reference_ns)
                if (ready := cond_resched(task)) is not None:
                    yield ready

    def check(self) -> None:
        """Raises `LawBroken` where there are more inodes with pages than inodes."""
        require(
            0 <= self.paged <= self.cached,
            f"{self._bdi.name}: of {self.cached} cached inodes, {self.paged} have pages",
        )


def _share(count: int, number: int, shares: int) -> int:
    """Which part of *count* things is that of this *number*."""
    return count * (number + 1) // shares - count * number // shares


class Kswapds:
    """kswapd: *nodes* threads, which sleep until *cache* is full and then evict inodes and their pages.

    Stands for balance_pgdat and shrink_slab, one thread for each NUMA node.  Left out: zones, the LRU lists
    of pages, swap; what is dirty is left to the flushers.
    """

    def __init__(self, parts: Parts, nodes: int, cache: PageCache, of: Sequence[SuperblockInodes]) -> None:
        self._env = parts.env
        self._cache = cache
        self._of = of
        self._new = [parts.thread(f"kswapd{node}") for node in range(nodes)]
        self._idle: list[Thread] = []
        cache.on_full = self.wake

    def wake(self) -> None:
        """wakeup_kswapd; the first time, they begin."""
        new, idle, self._new, self._idle = self._new, self._idle, [], []
        for thread in new:
            self._env.start(thread.task, self._run(thread))
        for thread in idle:
            self._env.wake(thread.task)

    def _run(self, thread: Thread) -> Steps:
        while True:
            while self._cache.is_low and any(inodes.cached for inodes in self._of):
                for inodes in self._of:
                    if inodes.cached:
                        yield from inodes.evict(thread, BATCH)
            self._idle.append(thread)
            yield PARK
