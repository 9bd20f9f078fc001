"""The specs of the virtual filesystem: the costs of write(2) and of inodes, and the locks of each era."""

from __future__ import annotations

from typing import Literal

from wbsim.sim.param import Flag, Ns, Spec


class WriteCosts(Spec):
    """The processor time of write(2) and of the close(2) after it.

    * ``call_ns``: the time of a call of write(2), without its folios and pages.
    * ``folio_ns``: the time of each folio that the call adds to the page cache; without it, ``page_ns``
      includes the folios, whatever their size.
    * ``page_ns``: the time of each page that the call copies.
    * ``cold_page_ns``: the time that a call at a random place of a file takes longer, for each doubling of
      the file beyond 8 MiB.  The page and its place in the page tree are in no cache of the processor.
    * ``punt_ns``: the time that io_uring takes to hand a call to a worker, which then takes the time of the
      call itself.
    * ``close_ns``: the time of the close(2).
    * ``mark_ns``: the time under the flusher's list lock when a clean inode becomes dirty.
    """

    call_ns: Ns
    folio_ns: Ns | None = None
    page_ns: Ns
    cold_page_ns: Ns | None = None
    punt_ns: Ns | None = None
    close_ns: Ns
    mark_ns: Ns


class InodeCosts(Spec):
    """The processor time of the upkeep of cached inodes.

    * ``add_ns``: the time to put an inode on the superblock's list, under the list's lock.
    * ``del_ns``: the time to take an inode off the superblock's list, under the list's lock.
    * ``visit_ns``: the time to look at an inode in a walk over all cached inodes, under the list's lock.
    * ``unhash_ns``: the time to put an inode on its chain of the inode hash, or to take it off, under the
      hash's lock.
    * ``lru_ns``: the time to put an inode or a dentry on the list of unused ones, or to take it off, under
      the list's lock.
    * ``chain_ns``: the first lookup's time for each inode on the chain, which is cold; without the hash's
      lock in some eras.
    * ``chain_again_ns``: the second lookup's time for each inode on the chain, under the hash's lock.
    * ``reference_ns``: a walk's work on an inode with pages, outside the locks.
    * ``dentry_ns``: the shrinkers' time to free a dentry, outside the locks.
    * ``evict_ns``: the rest of an eviction, outside the locks.
    * ``reclaim_ns``: the shrinkers' time to find and free an inode, outside the locks.
    """

    add_ns: Ns
    del_ns: Ns
    visit_ns: Ns
    unhash_ns: Ns
    lru_ns: Ns
    chain_ns: Ns
    chain_again_ns: Ns
    reference_ns: Ns
    dentry_ns: Ns
    evict_ns: Ns
    reclaim_ns: Ns


class InodeRules(Spec):
    """The lists of inodes in an era, and their locks.

    * ``sb_list``: the lock of the list of a superblock's inodes.  ``inode_lock`` (to 2.6.38) also protects
      the lists of dirty inodes.  ``inode_sb_list_lock`` (to 4.2) serves all superblocks, and
      ``s_inode_list_lock`` one.  ``per_node``: each superblock has one for each NUMA node, as report V13
      proposed.
    * ``sync_walks``: sync(2) walks over all ``cached`` inodes (to 4.7), or over those ``under_writeback``.
    * ``sync_mutex``: s_sync_lock admits one sync(2) at a time to a superblock (4.3 and later).
    * ``unhash``: an eviction takes inode_hash_lock for ``all`` inodes, or for ``hashed`` inodes only.  XFS
      does not hash its inodes.
    * ``hash_lookup``: a lookup takes inode_hash_lock (``locked``), or uses ``rcu``.
    * ``lru``: the lock of the lists of unused inodes and dentries.  It serves all superblocks (``global``),
      one ``superblock`` (to 3.11), or one superblock on one NUMA node (``per_node``).
    * ``lru_checks``: the lock is not taken to remove an inode that is not on the list.
    """

    sb_list: Literal["inode_lock", "inode_sb_list_lock", "s_inode_list_lock", "per_node"]
    sync_walks: Literal["cached", "under_writeback"]
    sync_mutex: Flag
    unhash: Literal["all", "hashed"]
    hash_lookup: Literal["locked", "rcu"]
    lru: Literal["global", "superblock", "per_node"]
    lru_checks: Flag
