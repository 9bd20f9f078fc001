"""ext4: what it is made of.

Stands for ext4_fill_super.
"""

from __future__ import annotations

from wbsim.models.filesystems.completions import Completions
from wbsim.models.filesystems.delalloc import DelallocFilesystem
from wbsim.models.filesystems.dice import Dice
from wbsim.models.filesystems.ext4.journal import Journal
from wbsim.models.filesystems.ext4.layout import ROOT_EXTENTS
from wbsim.models.filesystems.ext4.mballoc import Mballoc
from wbsim.models.filesystems.ext4.metadata import Ext4Metadata
from wbsim.models.filesystems.ext4.names import Ext4Names
from wbsim.models.filesystems.ext4.placement import Ext4Placement
from wbsim.models.filesystems.ext4.spec import Ext4FlusherCosts, Ext4Rules, Ext4Spec, Ext4WriterCosts
from wbsim.models.filesystems.horizon import Horizon
from wbsim.models.filesystems.locks import LockTable
from wbsim.models.filesystems.map_costs import MapCosts
from wbsim.models.filesystems.walk import PageWalk
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.site import Site
from wbsim.models.vfs.superblock import MountedSuperblock


def ext4(
    *,
    site: Site,
    sb: MountedSuperblock,
    spec: Ext4Spec,
    rules: Ext4Rules,
    writer_costs: Ext4WriterCosts,
    flusher_costs: Ext4FlusherCosts,
    cache: PageCache,
) -> DelallocFilesystem:
    """One mounted ext4."""
    sb.block_ns = writer_costs.block_ns
    kworker, geometry = site.thread("kworker/ext4-rsv"), spec.geometry
    costs = MapCosts(flusher_costs, ROOT_EXTENTS, Dice(site, "map"))
    mballoc = Mballoc(geometry, by_order=rules.by_order)
    journal = Journal(
        site=site, queue=sb.bdi.queue, spec=spec.journal, block_ns=flusher_costs.journal_ns,
        runs=geometry.journal_runs, first_block=sb.first_block,
    )  # fmt: skip
    metadata = Ext4Metadata(
        journal=journal, geometry=geometry, map_credits=spec.journal.map_credits,
        ioend_ns=flusher_costs.ioend_ns, unwritten=rules.unwritten, costs=costs,
    )  # fmt: skip
    names = Ext4Names(site=site, sb=sb, spec=spec, costs=writer_costs, mballoc=mballoc, journal=journal)
    horizon = Horizon(site.env, sb.bdi, site.lengths.ahead_ns)
    locks = LockTable(site, 1, "i_data_sem")
    if rules.unwritten:
        horizon.apart.add(kworker.task.rank)
    completions = Completions(site.env, [kworker], rules.unwritten, costs, metadata)
    placement = Ext4Placement(
        env=site.env, name=sb.name, spec=spec, rules=rules, processors=site.processors, mballoc=mballoc,
        names=names, costs=costs, metadata=metadata, locks=locks,
    )  # fmt: skip
    filesystem = DelallocFilesystem(
        sb=sb, names=names, metadata=metadata, placement=placement, completions=completions,
        large_folios=rules.large_folios,
        writeback=PageWalk(
            sb=sb, placement=placement, metadata=metadata, costs=costs, completions=completions,
            horizon=horizon, locks=locks, lengths=site.lengths,
        ),
    )  # fmt: skip
    journal.start()
    return filesystem
