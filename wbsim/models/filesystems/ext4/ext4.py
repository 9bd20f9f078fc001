"""The parts of a mounted ext4.

Stands for ext4_fill_super.
"""

from __future__ import annotations

from typing import Final

from wbsim.models.filesystems.blocks import Space
from wbsim.models.filesystems.completions import Completions
from wbsim.models.filesystems.costs import MapCosts, RandomFactors
from wbsim.models.filesystems.delalloc import DelallocFilesystem
from wbsim.models.filesystems.ext4.extent_tree import ROOT_EXTENTS
from wbsim.models.filesystems.ext4.journal import Journal
from wbsim.models.filesystems.ext4.layout import MAX_REQUEST_PAGES
from wbsim.models.filesystems.ext4.mballoc import Mballoc
from wbsim.models.filesystems.ext4.metadata import Ext4Metadata
from wbsim.models.filesystems.ext4.names import Ext4Names
from wbsim.models.filesystems.ext4.placement import Ext4Placement
from wbsim.models.filesystems.ext4.spec import Ext4FlusherCosts, Ext4Rules, Ext4Spec, Ext4WriterCosts
from wbsim.models.filesystems.inode_locks import InodeLocks
from wbsim.models.filesystems.writepages import Writepages, WritepagesRules
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.parts import Parts
from wbsim.models.vfs.superblock import MountedSuperblock

_KEPT_BLOCKS: Final = 4_096  # ext4_set_resv_clusters


def ext4(
    *,
    parts: Parts,
    sb: MountedSuperblock,
    spec: Ext4Spec,
    rules: Ext4Rules,
    writer_costs: Ext4WriterCosts,
    flusher_costs: Ext4FlusherCosts,
    cache: PageCache,
) -> DelallocFilesystem:
    """Return a mounted ext4 on *sb*, whose journal thread and worker have begun.

    *spec* has the choices of mkfs and mount, *rules* those of the era.  *parts* supplies threads, locks and
    random numbers, and serves this mount alone.  *cache* is unused: each kind of filesystem gets the same
    arguments.  The times of a write(2) on *sb* are set from *writer_costs*, and its largest folio from
    *rules*.  The caller sets ``sb.filesystem``.
    """
    sb.block_ns, sb.cold_extent_ns = writer_costs.block_ns, writer_costs.cold_extent_ns
    kworker, geometry = parts.thread("kworker/ext4-rsv"), spec.geometry
    costs = MapCosts(flusher_costs, ROOT_EXTENTS, RandomFactors(parts, "map"), parts.hand_off)
    in_line = rules.groups_in_line(sb.rotates)
    mballoc = Mballoc(geometry, by_order=rules.by_order, groups_in_line=in_line, stripe=spec.stripe)
    journal = Journal(
        parts=parts, queue=sb.bdi.queue, spec=spec.journal, block_ns=flusher_costs.journal_ns,
        runs=geometry.journal_runs, first_block=sb.first_block,
    )  # fmt: skip
    free_blocks = sum(mballoc.free_blocks(flex) for flex in range(geometry.flexes))
    space = Space(free_blocks, min(free_blocks // 50, _KEPT_BLOCKS))
    metadata = Ext4Metadata(
        journal=journal, geometry=geometry, map_credits=spec.journal.map_credits,
        ioend_ns=flusher_costs.ioend_ns, unwritten=rules.unwritten, costs=costs, mballoc=mballoc,
        sb=sb, space=space,
    )  # fmt: skip
    names = Ext4Names(
        parts=parts, sb=sb, spec=spec, costs=writer_costs, mballoc=mballoc, journal=journal, space=space,
    )  # fmt: skip
    completions = Completions(
        parts.env, [kworker], bound=False, queue=sb.bdi.queue, unwritten=rules.unwritten, costs=costs,
        metadata=metadata,
    )  # fmt: skip
    placement = Ext4Placement(
        name=sb.name, spec=spec, rules=rules, processors=parts.processors, mballoc=mballoc, names=names,
        costs=costs, metadata=metadata, space=space,
    )  # fmt: skip
    of_era = WritepagesRules(
        wraps=True, spans_calls=False, sync_data=rules.sync_data, call_pages=MAX_REQUEST_PAGES,
        page_bios=rules.page_bios,
    )  # fmt: skip
    filesystem = DelallocFilesystem(
        sb=sb, names=names, metadata=metadata, placement=placement, completions=completions,
        large_folios=rules.large_folios, sync_data=rules.sync_data, tries_writes=False, tick_ns=parts.tick_ns,
        flushes_truncated="emptied" if spec.auto_da_alloc else "never", flushes_renamed=spec.auto_da_alloc,
        locks=InodeLocks(parts, "i_data_sem", reads=rules.write_lock == "shared", each_hole=True),
        writeback=Writepages(sb=sb, mapper=placement, costs=costs, rules=of_era),
    )  # fmt: skip
    journal.start()
    return filesystem
