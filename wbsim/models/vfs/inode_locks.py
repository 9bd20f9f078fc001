"""Which locks an era keeps its inodes under: those that all superblocks share, and each one's own."""

from __future__ import annotations

from typing import Final, NamedTuple

from wbsim.models.parts import Parts
from wbsim.models.vfs.spec import InodeRules
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
