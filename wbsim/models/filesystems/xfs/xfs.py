"""The parts of a mounted XFS.

Stands for xfs_mountfs.
"""

from __future__ import annotations

from typing import Final

from wbsim.models.block.gendisk import GenDisk
from wbsim.models.filesystems.blocks import Space
from wbsim.models.filesystems.completions import Completions
from wbsim.models.filesystems.costs import MapCosts, RandomFactors, SharedLines
from wbsim.models.filesystems.delalloc import DelallocFilesystem
from wbsim.models.filesystems.inode_locks import InodeLocks
from wbsim.models.filesystems.writepages import Writepages, WritepagesRules
from wbsim.models.filesystems.xfs.free_space import FreeSpace, FreeTables
from wbsim.models.filesystems.xfs.groups import Group
from wbsim.models.filesystems.xfs.log import XfsLog
from wbsim.models.filesystems.xfs.metadata import XfsMetadata
from wbsim.models.filesystems.xfs.names import XfsNames
from wbsim.models.filesystems.xfs.placement import XfsPlacement
from wbsim.models.filesystems.xfs.spec import XfsFlusherCosts, XfsRules, XfsSpec, XfsWriterCosts
from wbsim.models.interfaces import Thread
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.parts import Parts
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.sync import lock_stats_of
from wbsim.sim.units import PAGE_BYTES, PAGE_SECTORS

AGF: Final = "AGF"
AGI: Final = "AGI"
"""The name of the lock of a group's inodes."""
_KEPT_BLOCKS: Final = 8_192  # xfs_default_resblks
_INODE_CORE_BYTES: Final = 176
"""The size of struct xfs_dinode with metadata CRCs."""
_EXTENT_BYTES: Final = 16
_WRITES: Final = {True: (4, 3, 4, 4), False: (3, 2, 2, 2)}
"""The writes of an operation to l_reserve_head, l_write_head, xc_ctx_lock and the checkpoint's order_id.

With reverse mapping (True) an operation rolls its transaction once [V 6.12]
(docs/kernel/locks.md#lines-that-every-processor-writes).
"""


def xfs(
    *,
    parts: Parts,
    sb: MountedSuperblock,
    spec: XfsSpec,
    rules: XfsRules,
    writer_costs: XfsWriterCosts,
    flusher_costs: XfsFlusherCosts,
    cache: PageCache,
) -> DelallocFilesystem:
    """Return a mounted XFS on *sb*, without files; the threads of its log and its workers have begun.

    The caller sets ``sb.filesystem`` to the result.  This function sets ``sb.largest_folio`` (pages).

    *parts* makes the threads and the locks.  While *cache* reclaims memory, xfsaild pushes the complete AIL.
    *spec* has the decisions of mkfs and mount, and *rules* those of the era.  *writer_costs* and
    *flusher_costs* are the times of system calls and of writeback.
    """
    groups = _groups(parts, spec)
    kworkers = _kworkers(parts, rules)
    inline, rmap_ns = (spec.inode_bytes - _INODE_CORE_BYTES) // _EXTENT_BYTES, flusher_costs.rmap_ns
    lines = None
    if rules.cil == "per_cpu":
        lines = SharedLines(parts.env, _WRITES[spec.rmapbt], *parts.line_ns)
    group_ns = rmap_ns if spec.rmapbt else 0
    costs = MapCosts(flusher_costs, inline, RandomFactors(parts, "map"), parts.hand_off, group_ns, lines)
    log = _log(parts, sb, spec, rules, flusher_costs, cache, groups[spec.agcount // 2])
    free_blocks = sum(group.free.blocks for group in groups)
    space = Space(free_blocks, min(free_blocks // 20, _KEPT_BLOCKS))
    metadata = XfsMetadata(sb, log, spec, flusher_costs, costs, groups, rules.unwritten)
    log.start()
    if writer_costs.agi_ns:
        parts.count_lock(AGI, lambda: lock_stats_of(group.agi.stat for group in groups))
    parts.count_lock(AGF, lambda: lock_stats_of(group.agf.stat for group in groups))
    completions = Completions(
        parts.env, kworkers, bound=rules.unwritten, queue=sb.bdi.queue, unwritten=rules.unwritten,
        costs=costs, metadata=metadata,
    )  # fmt: skip
    placement = XfsPlacement(
        spec=spec, rules=rules, groups=groups, costs=costs, metadata=metadata, space=space,
        reserve_ns=flusher_costs.reserve_ns or 0,
        search_ns=flusher_costs.search_ns or 0,
    )  # fmt: skip
    of_era = WritepagesRules(
        rules.wraps, rules.spans_calls, rules.sync_data, calls_x4=rules.nr_to_write_counts == "calls_x4",
        pagevec=rules.pagevec,
    )  # fmt: skip
    return DelallocFilesystem(
        sb=sb, metadata=metadata, large_folios=rules.large_folios, sync_data=rules.sync_data,
        tries_writes=rules.tries_writes, completions=completions,
        locks=InodeLocks(parts, "ILOCK", reads=False, each_hole=not rules.whole_calls),
        placement=placement, writeback=Writepages(sb=sb, mapper=placement, costs=costs, rules=of_era),
        names=XfsNames(sb=sb, spec=spec, costs=writer_costs, groups=groups, log=log, space=space),
        flushes_truncated="truncated", flushes_renamed=False, tick_ns=parts.tick_ns,
        plugs_files=not rules.spans_calls,  # generic_writepages plugs, write_cache_pages (4.6) does not
    )  # fmt: skip


def _kworkers(parts: Parts, rules: XfsRules) -> list[Thread]:
    """Return the completion workers.

    xfs-conv has a worker for each processor.  xfs-data has one, for the processor that handles completions.
    """
    if rules.unwritten:
        return [parts.thread(f"kworker/xfs-conv-{number}") for number in range(parts.processors)]
    return [parts.thread("kworker/xfs-data")]


def _groups(parts: Parts, spec: XfsSpec) -> list[Group]:
    free, blocks = FreeTables(spec.agcount), spec.size // PAGE_BYTES // spec.agcount
    head, new_agf, new_agi = spec.group_head // PAGE_BYTES, parts.semaphores(AGF), parts.semaphores(AGI)
    return [
        Group(number, number * blocks, FreeSpace(head, blocks - head, free, number), new_agf(), new_agi())
        for number in range(spec.agcount)
    ]


def _log(
    parts: Parts, sb: MountedSuperblock, spec: XfsSpec, rules: XfsRules, costs: XfsFlusherCosts,
    cache: PageCache, middle: Group,
) -> XfsLog:  # fmt: skip
    """Return the log, which lies in the *middle* group, where mkfs puts it."""
    start_block = middle.first_block + middle.take(spec.log.size // PAGE_BYTES)
    queue: GenDisk = sb.bdi.queue
    return XfsLog(
        parts=parts, queue=queue, spec=spec.log, costs=costs.log, rules=rules,
        start_sector=(sb.first_block + start_block) * PAGE_SECTORS,
        first_sector=sb.first_block * PAGE_SECTORS, cache=cache,
    )  # fmt: skip
