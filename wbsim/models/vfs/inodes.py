"""The inodes of one superblock, as the virtual filesystem keeps them: their list, their hash, their number.

Stands for fs/inode.c (new_inode, inode_sb_list_add, iget_locked, evict), for wait_sb_inodes, inode_attach_wb,
and for prune_dcache_sb and prune_icache_sb (docs/kernel/inodes.md).  Clean inodes are only counted, because
it makes no difference which inode is evicted.  The data of an inode is kept by its filesystem.  Left out: the
LRU's lock in creat(2), the inodes of block devices.

`InodeLocks` are the locks around the inodes in an era.  `Kswapds` evict inodes when memory is full.
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
"""The bytes of memory for each chain of the inode hash (inode_init)."""


class SharedLocks(NamedTuple):
    """The locks that all superblocks share; ``sb_list`` and ``lru`` are None in eras without them.

    ``hash`` is inode_hash_lock or, in eras that have it, inode_lock.
    """

    hash: Line
    sb_list: Line | None
    lru: Line | None


class InodeLocks(NamedTuple):
    """The locks around the inodes of one superblock.

    * ``sb_lists``: the locks of the list of inodes, either a single one or one for each node.
    * ``lrus``: the locks of the list of unused inodes, either a single one or one for each node.
    * ``hashes``: one lock, of the inode hash of all superblocks.
    * ``sync``: s_sync_lock; None in eras without it.
    * ``node_cpus``: the number of processors in a node.
    """

    sb_lists: list[Line]
    lrus: list[Line]
    hashes: list[Line]
    sync: Mutex | None
    node_cpus: int


def shared_locks(parts: Parts, rules: InodeRules) -> SharedLocks:
    """Return the locks that all superblocks of a machine share; the machine calls this once.

    *parts* makes and counts those locks that the era of *rules* has.
    """
    lines = parts.lines
    sb_list = None if parts.inode_lock is None else lines(parts.inode_lock)
    if rules.sb_list == "inode_sb_list_lock":
        sb_list = lines(parts.spin_lock("inode_sb_list_lock"))
    lru = lines(parts.spin_lock("lru_lock")) if rules.lru == "global" else None
    return SharedLocks(lines(parts.inode_lock or parts.spin_lock("inode_hash_lock")), sb_list, lru)


def inode_locks(
    parts: Parts, rules: InodeRules, shared: SharedLocks, nodes: int, node_cpus: int
) -> InodeLocks:
    """Return the locks of one superblock, whose threads and locks *parts* makes.

    Locks that the era shares come from *shared*; the others are new.  *nodes* and *node_cpus*: the NUMA
    nodes, and the processors of each.
    """

    def locks(name: str, of_each_node: bool) -> list[Line]:
        names = [f"{name}/{node}" for node in range(nodes)] if of_each_node else [f"{name}_lock"]
        return [parts.lines(parts.spin_lock(lock_name)) for lock_name in names]

    sb_lists = [shared.sb_list] if shared.sb_list else locks("s_inode_list", rules.sb_list == "per_node")
    lrus = [shared.lru] if shared.lru else locks("s_inode_lru", rules.lru == "per_node")
    sync = parts.mutex("s_sync_lock") if rules.sync_mutex else None
    return InodeLocks(sb_lists, lrus, [shared.hash], sync, node_cpus)


BATCH: Final = 128  # SHRINK_BATCH
_LUMP: Final = 32
"""The largest number of inodes that are evicted in one step while their locks are not contended."""
# The cache lines that another processor wrote last: docs/kernel/inodes.md#what-lies-inside-each-hold.
# list_add writes to one neighbour, the inode that was added last; list_del writes to two neighbours.
_ADD: Final = 1
_DEL: Final = 2


class SuperblockInodes:
    """The inodes of a superblock on *bdi*: ``cached`` are in memory, and ``paged`` of these have pages.

    ``hashed``: the inodes of the filesystem are on the *buckets* chains of the hash.

    A method that takes a lock adds the time under the lock to ``spent.inodes`` of its *thread*, but `walk`
    adds all its time to ``spent.sync``.  `evict` adds the time outside the locks to ``spent.reclaim``.
    *then_ns* is the caller's to add, under its own path.
    """

    __slots__ = (
        "_bdi",
        "_buckets",
        "_cache",
        "_contentions",
        "_costs",
        "_del_ns",
        "_locked_lookup",
        "_locks",
        "_lru_ns",
        "_lru_visits",
        "_lump",
        "_reclaim_ns",
        "_rules",
        "_unhash_ns",
        "_unhashes_all",
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
        # Copies: a spec's own attributes are slow to read.
        self._reclaim_ns = costs.dentry_ns + costs.evict_ns + costs.reclaim_ns
        self._lru_ns, self._del_ns, self._unhash_ns = costs.lru_ns, costs.del_ns, costs.unhash_ns
        self._unhashes_all = rules.unhash == "all"
        self._locked_lookup = rules.hash_lookup == "locked"
        self._lump = 1
        self._contentions = 0
        self._lru_visits = 2 if rules.lru_checks else 3  # dentry and inode; in evict perhaps the inode again
        self.hashed = hashed
        self.cached = self.paged = 0
        self.add_ns = costs.add_ns
        """The time of `sb_list_add` without contention (ns)."""
        self.evict_ns = costs.evict_ns
        """The time to evict one inode, without the locks (ns)."""

    # -- one inode

    def sb_list_add(self, thread: Thread, then_ns: int = 0) -> Wait:
        """Take the list lock of *thread*'s node to add an inode, then work for *then_ns* (ns).

        Yield the result.
        Only time passes (inode_sb_list_add): `new` and `add_cached` count the inode.
        """
        return self._locked(self._locks.sb_lists, thread, _ADD, self.add_ns, then_ns)

    def sb_list_del(self, thread: Thread, then_ns: int = 0) -> Wait:
        """Take the list lock of *thread*'s node to remove an inode, then work for *then_ns* (ns).

        Yield the result.
        Only time passes (inode_sb_list_del): `forget` counts the inode off.
        """
        return self._locked(self._locks.sb_lists, thread, _DEL, self._del_ns, then_ns)

    def lru_add(self, thread: Thread, then_ns: int = 0) -> Wait:
        """Take the LRU lock of *thread*'s node for d_lru_add, then work for *then_ns* (ns).

        Yield the result.
        Only time passes: `add_cached` counts the inode.  `Names.look_up` calls it for each name that it has
        read.
        """
        return self._locked(self._locks.lrus, thread, _ADD, self._lru_ns, then_ns)

    def lru_del(self, thread: Thread, then_ns: int = 0) -> Wait:
        """Take the LRU lock for an inode that is not on the list, then work for *then_ns* (ns).

        Yield the result.
        Eras that test this first take no lock, so the result is *then_ns* (inode_lru_list_del).
        """
        return then_ns if self._rules.lru_checks else self.lru_add(thread, then_ns)

    def unhash(self, thread: Thread, then_ns: int = 0) -> Wait:
        """Take the hash lock to unhash an inode, then work for *then_ns* (ns).  Yield the result.

        Only time passes (remove_inode_hash).  Eras that test whether an inode is hashed take no lock for an
        inode that is not, so the result is *then_ns*.
        """
        if self.hashed or self._unhashes_all:
            lines = _DEL if self.hashed else 0
            return self._locked(self._locks.hashes, thread, lines, self._unhash_ns, then_ns)
        return then_ns

    def look_up(self, thread: Thread) -> Wait:
        """Let *thread* walk over a chain of the hash, which does not have the inode.  Yield the result.

        This is the first lookup of iget_locked (find_inode_fast): under the hash's lock, or without it in
        eras with RCU.
        """
        walk_ns = self._chain() * self._costs.chain_ns // 1_000
        if self._locked_lookup:
            return self._locked(self._locks.hashes, thread, 0, walk_ns, 0)
        thread.spent.inodes += walk_ns
        return walk_ns

    def add_to_hash(self, thread: Thread, then_ns: int = 0) -> Wait:
        """Let *thread* hash an inode under the lock, then work for *then_ns* (ns).  Yield the result.

        Only time passes: the second lookup of iget_locked or insert_inode_locked, and __hlist_add.
        NOTE: iget_locked takes the superblock's list lock while it holds this lock.  In the model the caller
        takes the list lock afterwards, so this lock's hold does not include it.
        """
        walk_ns = self._chain() * self._costs.chain_again_ns // 1_000
        return self._locked(self._locks.hashes, thread, _ADD, walk_ns + self._unhash_ns, then_ns)

    def _locked(self, locks: list[Line], thread: Thread, lines: int, work_ns: int, then_ns: int) -> Wait:
        """Let *thread* work under the lock of its node, and fetch *lines* cache lines.  Yield the result."""
        line, task = self._of_node(locks, thread.task), thread.task
        hold_ns = work_ns + lines * line.fetch_ns(task) if lines else work_ns
        thread.spent.inodes += hold_ns
        return line.lock.section(task, hold_ns, then_ns)

    def new(self, cpu: int, group: int, number: int) -> Wb:
        """Count a new inode; return its writeback context, which *group*, *number* and *cpu* choose.

        *group*: its allocation group; *number*: its inode number; *cpu*: the processor of the task that makes
        it.  Memory may be full now, which wakes kswapd.
        """
        self.cached += 1
        self._cache.add_inodes(1)
        return self._bdi.wb_of(group, number, cpu)

    def add_cached(self, inodes: int = 1) -> None:
        """Count *inodes* more cached inodes, which were read from the disk, in no time.

        A run begins with such inodes, and each lookup adds one.  Memory may be full now, which wakes kswapd.
        """
        self.cached += inodes
        self._cache.add_inodes(inodes)

    def forget(self, inodes: int) -> None:
        """Count *inodes* fewer cached inodes, in no time; the share of inodes with pages stays as it is.

        At least *inodes* must be cached.  An eviction and the end of a file call this.
        """
        paged = -(-self.paged * inodes // self.cached)
        self.paged -= paged
        self.cached -= inodes
        self._cache.paged_inodes -= paged
        self._cache.cached_inodes -= inodes

    def _of_node(self, locks: list[Line], task: Task) -> Line:
        return locks[0] if len(locks) == 1 else locks[max(task.cpu, 0) // self._locks.node_cpus]

    def _chain(self) -> int:
        """Return the mean number of inodes on a chain of the hash, in thousandths."""
        return self.cached * 1_000 // self._buckets

    def has_pages(self) -> None:
        """Count an inode that has got its first pages.

        NOTE: the model does not record which inodes lost their pages.  An inode that is written to again
        after writeback counts twice; the count is at most ``cached``.
        """
        if self.paged < self.cached:
            self.paged += 1
            self._cache.paged_inodes += 1

    @property
    def room_left(self) -> int:
        """The number of inodes that still fit into memory before kswapd begins; 0: memory is full.

        Until then no task evicts inodes.  `Pace`, which computes the rest of a program, stops at this number.
        """
        return max(0, self._cache.room - self._cache.cached_inodes)

    @property
    def reclaiming(self) -> bool:
        """See `PageCache.reclaiming`."""
        return self._cache.reclaiming

    @property
    def must_reclaim(self) -> bool:
        """True if a task must evict inodes before it makes or reads one (`PageCache.must_reclaim`)."""
        return self._cache.must_reclaim

    # -- many

    def evict(self, thread: Thread, inodes: int) -> Steps:
        """Let *thread* evict *inodes* inodes, or all if fewer are cached.  Use: `yield from`.

        kswapd and direct reclaim call this (prune_dcache_sb and prune_icache_sb).
        NOTE: while the locks are not contended, one step evicts several inodes, twice as many each time.
        After a task had to wait for a lock, a step evicts one inode again.
        """
        task, locks = thread.task, self._locks
        inodes_left = inodes
        while inodes_left > 0 and self.cached:
            lump = min(self.next_lump(task), inodes_left, self.cached)  # other threads evict at the same time
            inodes_left -= lump
            self.forget(lump)
            work_ns = lump * self._reclaim_ns
            thread.spent.reclaim += work_ns
            yield work_ns
            visits = lump * self._lru_visits
            yield self._locked(locks.lrus, thread, visits, visits * self._lru_ns, 0)
            yield self._locked(locks.sb_lists, thread, lump * _DEL, lump * self._del_ns, 0)
            if self.hashed or self._unhashes_all:
                lines = lump * _DEL if self.hashed else 0
                yield self._locked(locks.hashes, thread, lines, lump * self._unhash_ns, 0)
            if (ready := cond_resched(task)) is not None:
                yield ready

    def next_lump(self, task: Task) -> int:
        """Return how many inodes *task* evicts in the next step of `evict`.

        The number doubles at each call, up to 32, but is 1 if a lock was contended since the last call.
        """
        sb_list = self._of_node(self._locks.sb_lists, task)
        contentions = sb_list.lock.stat.contentions + self._locks.hashes[0].lock.stat.contentions
        self._lump = min(2 * self._lump, _LUMP) if contentions == self._contentions else 1
        self._contentions = contentions
        return self._lump

    def lock_sync(self, task: Task) -> Steps:
        """Let *task* take s_sync_lock, in eras that have it; otherwise nothing happens.  Use: `yield from`.

        So one sync(2) at a time walks over the inodes.
        """
        mutex = self._locks.sync
        if mutex is not None and not mutex.try_acquire(task):
            yield mutex.wait(task)

    def unlock_sync(self) -> Steps:
        """Release s_sync_lock, in eras that have it, after the walk and the wait for writeback.

        Use: `yield from`.
        """
        if self._locks.sync is not None and (waker_ns := self._locks.sync.release()):
            yield waker_ns

    def walk(self, thread: Thread) -> Steps:
        """Let *thread* walk over all cached inodes, in eras in which sync(2) does so.  Use: `yield from`.

        Only time passes.  The list's lock is held while inodes without pages are passed.  For each inode with
        pages it is dropped and taken again.
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
        """Check that at most as many inodes have pages as are cached.

        Raises:
            LawBroken: more inodes have pages.
        """
        require(
            0 <= self.paged <= self.cached,
            f"{self._bdi.name}: {self.paged} inodes have pages, but {self.cached} are cached",
        )


def _share(count: int, number: int, shares: int) -> int:
    """Return the size of part *number* if *count* things are divided into *shares* parts.

    >>> [_share(10, number, 3) for number in range(3)]
    [3, 3, 4]
    """
    return count * (number + 1) // shares - count * number // shares


class Kswapds:
    """kswapd: *nodes* threads, which sleep until *cache* is full and then evict inodes and their pages.

    Stands for balance_pgdat and shrink_slab, one thread for each NUMA node.  Dirty pages are left to the
    flushers.  Left out: zones, the LRU lists of pages, swap.
    """

    def __init__(
        self, parts: Parts, nodes: int, cache: PageCache, superblocks: Sequence[SuperblockInodes]
    ) -> None:
        self._env = parts.env
        self._cache = cache
        self._superblocks = superblocks
        self._new = [parts.thread(f"kswapd{node}") for node in range(nodes)]
        self._idle: list[Thread] = []
        cache.on_full = self.wake

    def wake(self) -> None:
        """Wake the threads that sleep; the first call starts all threads.

        `PageCache.add_inodes` calls this as ``on_full`` when memory is full (wakeup_kswapd).
        """
        new, idle, self._new, self._idle = self._new, self._idle, [], []
        for thread in new:
            self._env.start(thread.task, self._run(thread))
        for thread in idle:
            self._env.wake(thread.task)

    def _run(self, thread: Thread) -> Steps:
        while True:
            while self._cache.is_low and any(inodes.cached for inodes in self._superblocks):
                for inodes in self._superblocks:
                    if inodes.cached:
                        yield from inodes.evict(thread, BATCH)
            self._idle.append(thread)
            yield PARK
