"""What is configured of the virtual filesystem: what write(2) and inodes cost, and each era's locks."""

from __future__ import annotations

from typing import Literal

from wbsim.sim.param import Flag, Ns, Spec


class WriteCosts(Spec):
    """Processor time of write(2) and of the close(2) after it.

    ``call_ns`` is the time of a call.  ``folio_ns`` is the time of each folio that the call adds to the page
    cache, and ``page_ns`` the time of each page that it copies.  If ``folio_ns`` is None, ``page_ns``
    includes the folios, whatever their size.  ``mark_ns`` is spent under the flusher's list lock when a clean
    inode becomes dirty.
    """

    call_ns: Ns
    folio_ns: Ns | None = None
    page_ns: Ns
    close_ns: Ns
    mark_ns: Ns


class InodeCosts(Spec):
    """Processor time that keeping inodes takes, the first five under the lock of the list.

    ``add_ns`` and ``del_ns``: to put one on the superblock's list, and to take it off; ``visit_ns``: to look
    at it in a walk over all that are cached; ``unhash_ns``: to take it off its chain of the inode hash;
    ``lru_ns``: to put one on the list of unused ones, or to take it off.  ``chain_ns``: for each inode of a
    chain that a lookup walks, cold, and ``chain_again_ns`` right after that; ``reference_ns``: what a walk
    does to an inode with pages outside the lock; ``evict_ns``: the rest of an eviction; ``dentry_ns`` and
    ``reclaim_ns``: the shrinkers' time for a dentry, and for finding and freeing an inode.
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
    """How an era keeps its inodes.

    ``sb_list``: the lock of the lists of the superblocks' inodes is inode_lock, which is that of the lists of
    dirty inodes, too (to 2.6.38); one for all superblocks (to 4.2); one for each; or one for each superblock
    and NUMA node, as V13 proposed.  ``sync_walks``: sync(2) goes over all cached inodes (to 4.7), or over
    those under writeback; ``sync_mutex``: one at a time for each superblock (s_sync_lock, 4.3 and later).
    ``unhash``: inode_hash_lock is taken for each inode that is evicted, or only if it is hashed, as XFS's are
    not; ``hash_lookup``: it is taken to look an inode up, or that is done under RCU.  ``lru``: one lock for
    the lists of unused inodes and dentries, one for each superblock (3.1 to 3.11), or one for each of it and
    node; ``lru_checks``: it is not taken to remove what is not on the list.
    """

    sb_list: Literal["inode_lock", "inode_sb_list_lock", "s_inode_list_lock", "per_node"]
    sync_walks: Literal["cached", "under_writeback"]
    sync_mutex: Flag
    unhash: Literal["all", "hashed"]
    hash_lookup: Literal["locked", "rcu"]
    lru: Literal["global", "superblock", "per_node"]
    lru_checks: Flag
