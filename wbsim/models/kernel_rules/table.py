"""The table of all rules that change with a release of Linux.

To add a change, add one line to the history of its key.  It has the release, the new value, the evidence, and
what a user sees of the change.  The first releases of stable series that have the change, too, may follow the
release: ``"5.16 5.10.89"``, or ``6.6.y`` if the patch level is not known.  `ABSENT` ends a rule that
later releases do not have.  A value without an origin comes from the kernel's source.  The page of the
evidence, and ``CHANGES`` in tests/models/kernel_rules/test_table.py, state the change as well.

Most keys are paths in `KernelSpec`: ``plug.max_requests`` is ``kernel.plug.max_requests`` in a configuration.
The others say which queue a disk gets and which I/O schedulers exist (``queue``), and what mkfs of the time
makes (``mkfs``).  Some depend on a *condition*: the driver of the disk, or the name of a patched
kernel.

The order of the keys is that of a page: limits, throttling, flusher, filesystem, plug, queue.  Locks and
tasks come next, and mkfs last.
"""

from __future__ import annotations

from typing import Any, Final

from wbsim.models.kernel_rules.rule import ABSENT, Rule, rule
from wbsim.sim.param import assumed, measured
from wbsim.sim.units import GIB, KIB, MIB, MS, US, S

N10: Final = "2.6.34-n10"
"""2.6.34 with the repair of report N10: a page walk counts pages, as from 2.6.35 on."""
P13: Final = "3.11-p13"
"""3.11 with the patch of report P13: a plug around a slice of writeback."""
MMOTM: Final = "3.11-mmotm"
"""The tree of July 2013 that report V13 patches: 3.11-rc and the list_lru series."""
V13: Final = "3.11-v13"
"""The tree of July 2013 with all patches of report V13."""
NAMED: Final = (N10, P13, MMOTM, V13)
"""The kernels of reports, each a condition of the rows that make it differ from its release."""

SATA: Final = "SATA"
NVME: Final = "NVMe"
VIRTIO: Final = "virtio"
LEGACY: Final = "legacy queue"
ONE_QUEUE: Final = "blk-mq, one hardware queue"

_QUEUE_PLUG: Final = "docs/kernel/plugs.md#the-plug-of-a-queue"
_PLUG: Final = "docs/kernel/plugs.md#the-plug-of-a-task"
_LATE_PLUG: Final = "docs/kernel/plugs.md#the-plug-since-516"
_SCOPE: Final = "docs/kernel/plugs.md#where-plugs-are-opened"
_LIMITS: Final = "docs/kernel/merging.md#limits-of-a-request"
_APART: Final = "docs/kernel/merging.md#requests-that-stay-apart"
_INSERTION: Final = "docs/kernel/merging.md#insertion-from-a-plug"
_SCHEDULERS: Final = "docs/kernel/schedulers.md#which-scheduler-a-disk-gets"
_CFQ: Final = "docs/kernel/schedulers.md#cfq"
_DEADLINE: Final = "docs/kernel/schedulers.md#deadline-and-mq-deadline"
_TAGS: Final = "docs/kernel/schedulers.md#tags"
_WBT: Final = "docs/kernel/schedulers.md#blk-wbt"
_DIRTY: Final = "docs/kernel/throttling.md#limits"
_CALLERS: Final = "docs/kernel/throttling.md#writers-that-write-back"
_SLEEPERS: Final = "docs/kernel/throttling.md#writers-that-sleep"
_PDFLUSH: Final = "docs/kernel/flushers.md#pdflush"
_PER_BDI: Final = "docs/kernel/flushers.md#a-flusher-for-each-device"
_LISTS: Final = "docs/kernel/writeback.md#dirty-inodes-and-their-lists"
_WORK: Final = "docs/kernel/writeback.md#work-and-slices"
_VISIT: Final = "docs/kernel/writeback.md#pages-of-a-visit"
_WALK: Final = "docs/kernel/writeback.md#the-walk-over-pages"
_NR_TO_WRITE: Final = "docs/kernel/writeback.md#nr_to_write"
_INTERVALS: Final = "docs/kernel/writeback.md#intervals"
_XFS_SIZE: Final = "docs/kernel/xfs.md#how-much-at-once"
_XFS_UNWRITTEN: Final = "docs/kernel/xfs.md#unwritten-extents"
_XFS_END: Final = "docs/kernel/xfs.md#space-behind-the-end"
_XFS_WRITES: Final = "docs/kernel/xfs.md#writes"
_XFS_LOG: Final = "docs/kernel/xfs.md#the-log"
_EXT4: Final = "docs/kernel/ext4.md#where-blocks-go"
_EXT4_BIOS: Final = "docs/kernel/ext4.md#bios-and-folios"
_EXT4_UNWRITTEN: Final = "docs/kernel/ext4.md#unwritten-extents"
_SYNC: Final = "docs/kernel/inodes.md#sync"
_INODES: Final = "docs/kernel/inodes.md#lists-and-locks"
_LOCKS: Final = "docs/kernel/locks.md#kinds-of-locks"
_MD: Final = "docs/kernel/md.md"
_PATCHES: Final = "report V13: the patch series"
_FAIR: Final = "kernel/sched/fair.c [R], from memory"

Change = tuple[Any, ...]
"""Since when, the value, the source, and the effect, which the first row of a key does not have."""


def _history(key: str, *changes: Change, condition: str = "") -> list[Rule]:
    """Return the rows of *key* from the oldest to the newest."""
    return [rule(key, condition, *change) for change in changes]


_LIMITS_AND_THROTTLING: Final = (
    _history(
        "dirty.dirty_background_ratio",
        ("2.6.29", 5, f"{_DIRTY} [V 2.6.29]"),
        ("2.6.30", 10, f"{_DIRTY} [V 2.6.30]", "Background writeback begins at twice as many dirty pages."),
    ),
    _history(
        "dirty.dirty_ratio",
        ("2.6.29", 10, f"{_DIRTY} [V 2.6.29]"),
        ("2.6.30", 20, f"{_DIRTY} [V 2.6.30]", "Writers are throttled at twice as many dirty pages."),
    ),
    _history(
        "dirty.least_dirty_ratio",
        ("2.6.29", 5, f"{_DIRTY} [V 2.6.29, 2.6.36]"),
        ("2.6.37", 0, f"{_DIRTY} [V 2.6.36, 2.6.37]",
         "vm.dirty_ratio below 5 counts as given, and no longer as 5."),
    ),
    _history(
        "throttling.kind",
        ("2.6.29", "caller_writes", f"{_CALLERS} [V 2.6.29, 3.1.3]"),
        ("3.2", "io_less", f"{_SLEEPERS} [V 3.1.3, 3.2.0, 3.11]",
         "Throttled writers sleep, and no longer write back other files' pages."),
    ),
    _history(
        "throttling.writes_back",
        ("2.6.29", "any", f"{_CALLERS} [V 2.6.29, 2.6.30]"),
        ("2.6.31", "above_limit", f"{_CALLERS} [V 2.6.30, 2.6.32]; in 2.6.31 [R]",
         "A writer writes back only while the device is over its share: more and smaller chunks."),
        ("3.2", ABSENT, _SLEEPERS, "Writers no longer write back."),
    ),
    _history(
        "throttling.waits",
        ("2.6.29", "congestion", f"{_CALLERS} [V 2.6.29, 2.6.30]; in 2.6.31 [R]"),
        ("2.6.32", "jiffies", f"{_CALLERS} [V 2.6.32, 2.6.34]",
         "A writer sleeps for 1 jiffy, 2, 4 up to 100 ms, and no longer until a queue leaves congestion."),
        ("3.2", ABSENT, _SLEEPERS, "Pauses follow the bandwidth of the device."),
    ),
    _history(
        "throttling.initial_bandwidth",
        ("2.6.29", None, f"{_VISIT} [V 2.6.39, 3.0.8]"),
        ("3.1", 100 * MIB, f"{_SLEEPERS} [V 3.0.8, 3.1.3]; INIT_BW [V 3.11, 6.12]",
         "Each device has an estimate of its bandwidth, which chunks and shares follow."),
    ),
)  # fmt: skip

_FLUSHERS: Final = (
    _history(
        "flusher.kind",
        ("2.6.29", "pdflush", f"{_PDFLUSH} [V 2.6.29, 2.6.30]"),
        ("2.6.32", "per_bdi", f"{_PER_BDI} [V 2.6.32, 3.10; S commit 03ba3782]",
         "Each device has a flusher, which blocks for requests where pdflush skipped a congested queue."),
    ),
    *(
        _history(
            f"flusher.{key}",
            ("2.6.29", threads, f"{_PDFLUSH} [V 2.6.29, 2.6.30]"),
            ("2.6.32", ABSENT, _PER_BDI, "The pool of pdflush threads is gone."),
        )
        for key, threads in (("min_threads", 2), ("max_threads", 8))
    ),
    _history(
        "flusher.exits_after",
        ("2.6.29", ABSENT, _PDFLUSH),
        ("2.6.32", 300 * S, f"{_PER_BDI} [V 2.6.32, 2.6.37]", "An idle flusher ends after five minutes."),
        ("3.10", None, f"{_PER_BDI} [V 3.9.6, 3.10]", "Flushers are works of a workqueue, which do not end."),
    ),
)  # fmt: skip

_WRITEBACK: Final = (
    _history(
        "writeback.slice_time",
        ("2.6.29", 100 * MS, f"{_WORK} [V 3.1.3, 3.11, 4.3, 6.17]: HZ/10; nr_to_write replaces it to 3.0"),
    ),
    _history("writeback.expire", ("2.6.29", 30 * S, f"{_INTERVALS} [V all]: dirty_expire_centisecs")),
    _history("writeback.interval", ("2.6.29", 5 * S, f"{_INTERVALS} [V all]: dirty_writeback_centisecs")),
    _history(
        "writeback.nr_to_write",
        ("2.6.29", 1024, f"{_WORK} [V 2.6.29, 2.6.32, 2.6.34, 3.0.8]: MAX_WRITEBACK_PAGES"),
        ("3.1", None, f"{_VISIT} [V 3.0.8, 3.1.3]",
         "A visit writes half a second of the device's bandwidth, and at least 4 MiB, instead of 4 MiB."),
    ),
    _history(
        "writeback.used_up",
        ("2.6.29", "redirty_tail", f"{_LISTS} [V 2.6.29, 2.6.34]"),
        ("2.6.37", "more_io", f"{_LISTS} [V 2.6.34, 2.6.37, 3.11]",
         "A file that used up its pages waits for the next round, and not behind all other dirty files."),
    ),
    _history(
        "writeback.leaves",
        ("2.6.29", False, f"{_WORK} [R]"),
        ("2.6.38", True, f"{_WORK} [V 3.11; R: 2.6.38]",
         "Periodic and background writeback end as soon as other work is queued, such as a sync."),
    ),
    _history(
        "writeback.explicit_takes",
        ("2.6.29", "at_pass", f"{_LISTS} [R]: writeback_inodes_wb of 2.6.34 has start = jiffies"),
        ("2.6.37", "at_start", f"{_LISTS} [V 3.11, 6.17; R: 2.6.37]",
         "Explicit work leaves files alone that became dirty after its start."),
    ),
    _history(
        "writeback.background_takes",
        ("2.6.29", "at_pass", f"{_LISTS} [V 2.6.39]"),
        ("3.1", "at_start", f"{_LISTS} [V 2.6.39, 3.1.3, 3.2.0]",
         "Long background work ignores files that became dirty after its start."),
        ("3.3", "at_pass", f"{_LISTS} [V 3.2.0, 3.3.8]",
         "Background work takes files that were dirty when its pass began."),
    ),
    _history(
        "writeback.background_test",
        ("2.6.29", "global", f"{_WORK} [V 2.6.39, 3.1.3]"),
        ("3.2", "share", f"{_WORK} [V 3.1.3, 3.2.0]: over_bground_thresh",
         "A device over its share of the threshold goes on, even if few pages are dirty in all."),
    ),
    _history(
        "writeback.waits_for_io",
        ("2.6.29", True, f"{_SYNC} [V 3.10.4]"),
        ("3.11", False, f"{_SYNC} [V 3.10.4, 3.11]",
         "The flusher no longer waits for the I/O of each inode during sync(2)."),
    ),
    _history(
        "writeback.plug_scope",
        ("2.6.29", "none", f"{_SCOPE} [V 2.6.29-2.6.38]"),
        ("2.6.39", "mapping", f"{_SCOPE} [V 2.6.39, 3.1, 3.11]",
         "The flusher has a plug for each file: small files do not merge in it."),
        ("4.3", "work", f"{_SCOPE} [V 4.2.8, 4.3, 6.1, 6.12; S commit 505a666e]",
         "The flusher keeps its plug for all files of a work item, so small files merge."),
    ),
    _history(
        "writeback.plug_scope",
        ("3.11", "slice", "report P13: the patch", "The flusher keeps its plug for a slice of 100 ms."),
        condition=P13,
    ),
    _history(
        "writeback.plug_scope",
        ("3.11", "slice", "report V13: plug at a high level, the patch of P13",
         "The flusher keeps its plug for a slice of 100 ms."), condition=V13,
    ),
)  # fmt: skip

_XFS: Final = (
    _history(
        "filesystems.xfs.nr_to_write_counts",
        ("2.6.29", "pages", f"{_NR_TO_WRITE} [R]"),
        ("2.6.32", "calls_x4", f"{_NR_TO_WRITE} [V 2.6.34]; since 2.6.32 [R]",
         "A visit counts calls of writepage, and writes 24 MiB, a third of it in pieces of 8 KiB."),
        ("2.6.35", "pages", f"{_NR_TO_WRITE} [V 2.6.34, 2.6.35]", "A visit counts pages again."),
    ),
    _history(
        "filesystems.xfs.nr_to_write_counts",
        ("2.6.34", "pages", "report N10: the repair", "A visit counts pages, and writes 4 MiB."),
        condition=N10,
    ),
    _history(
        "filesystems.xfs.prealloc",
        ("2.6.29", "fixed", f"{_XFS_END} [V 2.6.34, 2.6.37]"),
        ("2.6.38", "size", f"{_XFS_END} [V 2.6.37, 2.6.38, 3.1]",
         "A growing file reserves as much space behind its end as it has: fewer extents."),
        ("3.9", "preceding", f"{_XFS_END} [V 3.8.13, 3.9.6, 3.11, 6.17]",
         "The reservation follows the extents in front; a file below 64 KiB has none."),
    ),
    _history(
        "filesystems.xfs.sync_data",
        ("2.6.29", False, f"{_XFS_WRITES} [R]"),
        ("2.6.34", True, f"{_XFS_WRITES} [R]",
         "Data that fsync(2) writes is synchronous to the scheduler, and leaves first under CFQ."),
    ),
    _history(
        "filesystems.xfs.spans_calls",
        ("2.6.29", False, f"{_XFS_SIZE} [R]"),
        ("4.6", True, f"{_XFS_SIZE} [R]: xfs_writepage_ctx",
         "An ioend goes on over calls of writepage: fewer completions and bios."),
    ),
    _history(
        "filesystems.xfs.whole_calls",
        ("2.6.29", False, f"{_XFS_WRITES} [R]"),
        ("4.8", True, f"{_XFS_WRITES} [R]: fs/iomap; on 6.18: docs/measurements.md D",
         "write(2) reserves space once for all pages of the call, and not for each page."),
    ),
    _history(
        "filesystems.xfs.pagevec",
        ("2.6.29", 14, f"{_WALK} [V 2.6.29-3.11]: PAGEVEC_SIZE"),
        ("4.16", 15, f"{_WALK} [V 6.1; R: 4.16]", "The flusher finds 15 dirty pages at a time, not 14."),
        ("6.9", 31, f"{_WALK} [V 6.12; R: 6.9]",
         "The flusher finds 31 dirty pages at a time: more pages that become dirty between them wait."),
    ),
    _history(
        "filesystems.xfs.wraps",
        ("2.6.29", True, f"{_WALK} [V 4.18, 4.19.0]"),
        ("4.20 4.14.177 4.19.118", False, f"{_WALK} [V 4.14.177, 4.20; R: 4.19.118]; traces of 6.18",
         "A visit of a growing file ends at its end, and does not go on at its first page."),
    ),
    _history(
        "filesystems.xfs.unwritten",
        ("2.6.29", False, f"{_XFS_UNWRITTEN} [V 5.7.14]"),
        ("5.8", True, f"{_XFS_UNWRITTEN} [V 5.7.14, 5.8.1]",
         "A worker converts each extent after its I/O, in a second transaction that takes ILOCK and AGF."),
    ),
    _history(
        "filesystems.xfs.tries_writes",
        ("2.6.29", False, f"{_XFS_WRITES} [V 5.19]"),
        ("6.0", True, f"{_XFS_WRITES} [V 5.19, 6.0]: FMODE_BUF_WASYNC",
         "io_uring tries a buffered write at once, and hands it to a worker only if it would sleep."),
    ),
    _history(
        "filesystems.xfs.cil",
        ("2.6.29", "spinlock", f"{_XFS_LOG} [V 5.19]: one xc_cil_lock"),
        ("6.0", "per_cpu", f"{_XFS_LOG} [V 5.19, 6.0]",
         "Commits no longer share one lock: creat(2) and unlink(2) grow with the processors."),
    ),
    _history(
        "filesystems.xfs.log_flushes",
        ("2.6.29", "records", f"{_XFS_LOG} [V 5.11]: xlog_write_iclog"),
        ("5.14", "ends", f"{_XFS_LOG} [V 5.11, 5.14.2]: XLOG_ICL_NEED_FLUSH, XLOG_ICL_NEED_FUA",
         "A checkpoint costs two flushes instead of one for each record, on drives with a volatile cache."),
    ),
    _history(
        "filesystems.xfs.large_folios",
        ("2.6.29", False, f"{_XFS_WRITES} [V 5.19, 6.4.6, 6.5]"),
        ("6.6", True, f"{_XFS_WRITES} [V 6.5, 6.6]; on 6.18: docs/measurements.md H",
         "A large write(2) makes large folios: less processor time a page, and fewer segments a request."),
    ),
    _history(
        "filesystems.xfs.zeroing_converts",
        ("2.6.29", False, f"{_XFS_WRITES} [V 6.9]"),
        ("6.10", True, f"{_XFS_WRITES} [V 6.9, 6.10]; on 6.18: docs/measurements.md D",
         "A write behind a gap allocates the delayed blocks in front of it."),
    ),
)  # fmt: skip

_EXT4_ROWS: Final = (
    _history(
        "filesystems.ext4.bump_pages",
        ("2.6.29", 16, f"{_NR_TO_WRITE} [V 2.6.30]: s_mb_stream_request"),
        ("2.6.32", 32_768, f"{_NR_TO_WRITE} [V 2.6.31, 2.6.32, 3.10.4]: s_max_writeback_mb_bump",
         "A visit writes up to 128 MiB of pages that lie together."),
        ("3.11", 0, f"{_NR_TO_WRITE} [V 3.10.4, 3.11]", "A visit writes no more than the flusher asks for."),
    ),
    _history(
        "filesystems.ext4.page_bios",
        ("2.6.29", True, f"{_EXT4_BIOS} [V 2.6.34, 2.6.36]"),
        ("2.6.37", False, f"{_EXT4_BIOS} [V 2.6.36, 2.6.37]",
         "A bio holds a run of pages, and not a single page: less processor time."),
    ),
    _history(
        "filesystems.ext4.sync_data",
        ("2.6.29", False, f"{_EXT4_BIOS} [R]"),
        ("2.6.30", True, f"{_EXT4_BIOS} [R]: __block_write_full_page",
         "Data that fsync(2) writes is synchronous to the scheduler, and leaves first under CFQ."),
    ),
    _history(
        "filesystems.ext4.unwritten",
        ("2.6.29", False, f"{_EXT4_UNWRITTEN} [V 5.4]"),
        ("5.6", True, f"{_EXT4_UNWRITTEN} [V 5.4, 5.6.4]: dioread_nolock by default",
         "A worker converts each extent after its I/O, and a commit waits for no data of files."),
    ),
    _history(
        "filesystems.ext4.by_order",
        ("2.6.29", False, f"{_EXT4} [R]"),
        ("5.13", True, f"{_EXT4} [R]: mb_optimize_scan; [V 5.14.2, 5.19]",
         "The search for free space takes groups by the size of their free runs, and not in line."),
    ),
    _history(
        "filesystems.ext4.packs_closed",
        ("2.6.29", False, f"{_EXT4} [V 3.10, 5.19.0, 6.0-rc1]"),
        ("6.0", True, f"{_EXT4} [R]; [V 6.0-rc1, 6.1.192]",
         "Small files that are closed lie next to each other, as open ones do."),
    ),
    _history(
        "filesystems.ext4.goal_first",
        ("2.6.29", False, f"{_EXT4} [V 5.19]"),
        ("6.0", True, f"{_EXT4} [V 5.19, 6.1.192]", "The search begins in the group of the goal."),
        ("6.17 6.12.117", False, f"{_EXT4} [V 6.12.117; R: 6.17]; on 6.18: docs/measurements.md E",
         "The goal's group is one of four that are searched in line on a rotating disk."),
    ),
    _history(
        "filesystems.ext4.goals",
        ("2.6.29", "one", f"{_EXT4} [V 6.14]"),
        ("6.17", "per_processor", f"{_EXT4} [V 6.14, 6.17]; on 6.18: docs/measurements.md E",
         "Large files continue at one place for each processor, and not at a single one."),
    ),
    _history(
        "filesystems.ext4.large_folios",
        ("2.6.29", False, f"{_EXT4_BIOS} [V 6.14]"),
        ("6.16", True, f"{_EXT4_BIOS} [V 6.14, 6.17; R: 6.16]; on 6.18: docs/measurements.md H",
         "A large write(2) makes large folios: less processor time a page, and fewer segments a request."),
    ),
    _history(
        "filesystems.ext4.write_lock",
        ("2.6.29", "shared", f"{_EXT4} [R]: ext4_da_map_blocks"),
        ("6.10 6.1.192 6.6.y", "exclusive", f"{_EXT4} [V 6.1.192; R: 6.10 and the newest 6.6]",
         "write(2) takes i_data_sem for writing, so a writer and the flusher exclude each other."),
    ),
)  # fmt: skip

_PLUGS: Final = (
    _history(
        "plug.unplug_requests",
        ("2.6.29", 4, f"{_QUEUE_PLUG} [V 2.6.29-2.6.37]: q->unplug_thresh"),
        ("2.6.39", ABSENT, f"{_PLUG} [V 2.6.38, 2.6.39]", "The task has the plug, and no longer the queue."),
    ),
    _history(
        "plug.unplug_time",
        ("2.6.29", 3 * MS, f"{_QUEUE_PLUG} [V 2.6.29-2.6.37]: q->unplug_delay"),
        ("2.6.39", ABSENT, f"{_PLUG} [V 2.6.38, 2.6.39]", "The task has the plug, and no longer the queue."),
    ),
    _history(
        "plug.tried",
        ("2.6.29", "all", f"{_PLUG} [V 2.6.39-5.15]"),
        ("5.16", "last", f"{_LATE_PLUG} [V 5.15.85, 5.17-rc5]",
         "Streams that alternate no longer merge in the plug: a bio is tried against one request."),
        ("5.18", "newest", f"{_LATE_PLUG} [V 5.17-rc5, 5.19]",
         "A bio is tried against the newest request of its queue: members of an array merge again."),
        ("6.13", "oldest", f"{_LATE_PLUG} [V 6.12.0, 6.13.7, 6.14]",
         "A single stream merges only until the plug has two requests."),
        ("6.17 6.12.117", "tail", f"{_LATE_PLUG} [V 6.12.117, 6.17, 6.18.2]",
         "A bio is tried against the newest request in the plug, or else the oldest of its queue."),
    ),
    _history(
        "plug.max_requests",
        ("2.6.29", None, f"{_PLUG} [V 2.6.39, 3.0.8]"),
        ("3.1", 16, f"{_PLUG} [V 3.0.8, 3.1.3]", "A plug with 16 requests is flushed before a further one."),
        ("5.16 5.10.89 5.15.16", 32, f"{_PLUG} [V 5.10.7, 5.10.89, 5.14.2, 5.15.55]",
         "A plug holds 32 requests: 17 to 32 streams that alternate merge."),
    ),
    _history(
        "plug.max_requests_mixed",
        ("2.6.29", None, f"{_PLUG} [V 2.6.39-4.20]"),
        ("5.0", 16, f"{_PLUG} [V 4.20, 5.0.1]",
         "16 is the limit of the plug, and no longer of each queue in it: arrays get smaller requests."),
        ("5.16 5.10.89 5.15.16", 64, f"{_PLUG} [V 5.14.2, 5.15.55]",
         "A plug with requests of several queues holds 64."),
    ),
    _history(
        "plug.flush_bytes",
        ("2.6.29", None, f"{_PLUG} [V 2.6.39, 4.9]"),
        ("4.10", 128 * KIB, f"{_PLUG} [V 4.9, 4.10.17]",
         "A new request flushes the plug if another has 128 KiB: large streams that alternate merge less."),
    ),
    _history(
        "plug.flush_of",
        ("2.6.29", "newest", f"{_PLUG} [V 4.10.17-6.12.0]"),
        ("6.13 6.12.117", "oldest", f"{_PLUG} [V 6.12.0, 6.12.117, 6.14]",
         "The oldest request is judged by its 128 KiB, and not the newest."),
    ),
    _history(
        "plug.order",
        ("2.6.29", "fifo", f"{_PLUG} [V 2.6.39, 3.1, 3.6.5]"),
        ("3.8", "sector", f"{_PLUG} [V 3.6.5, 3.8.13]", "A flush issues requests by sector."),
        ("5.0", "fifo", f"{_PLUG} [V 4.20, 5.0.1]", "A flush issues requests in order of arrival."),
        ("5.16", "lifo", f"{_LATE_PLUG} [V 5.15.85, 5.17-rc5]",
         "Without a scheduler the newest request leaves first: the device sees descending sectors."),
        ("6.13 6.12.117", "fifo", f"{_LATE_PLUG} [V 6.12.0, 6.12.117, 6.13.7]",
         "Requests leave in order of arrival, also without a scheduler."),
    ),
    _history(
        "plug.order_scheduler",
        ("2.6.29", "fifo", f"{_PLUG} [V 2.6.39, 3.1, 3.6.5]"),
        ("3.8", "sector", f"{_PLUG} [V 3.6.5, 3.8.13]", "A flush hands over requests by sector."),
        ("5.0", "fifo", f"{_PLUG} [V 4.20, 5.0.1]", "A flush hands over requests in order of arrival."),
        ("5.18", "lifo", f"{_LATE_PLUG} [V 5.17-rc5, 5.19, 6.0-rc1]",
         "The scheduler gets the newest request first: fewer merges at insertion, and seeks backwards."),
        ("6.3 6.1.25 6.2.12", "fifo", f"{_LATE_PLUG} [V 6.1.192, 6.2.12, 6.4.6; R: 6.1.25]",
         "The scheduler gets requests in order of arrival."),
    ),
    _history(
        "plug.order_mixed",
        ("2.6.29", "queue", f"{_PLUG} [V 2.6.39, 3.1, 3.6.5]"),
        ("3.8", "sector", f"{_PLUG} [V 3.6.5, 3.8.13]", "Each queue of an array gets requests by sector."),
        ("5.0", "queue", f"{_PLUG} [V 4.20, 5.0.1]", "Each queue of an array gets requests as they arrived."),
        ("5.16", "fifo", f"{_LATE_PLUG} [V 5.17-rc5]", "Queues of an array get requests in turns."),
        ("5.18", "lifo", f"{_LATE_PLUG} [V 5.17-rc5, 5.19, 6.0-rc1]",
         "Queues of an array get the newest request first."),
        ("6.3 6.1.25 6.2.12", "fifo", f"{_LATE_PLUG} [V 6.1.192, 6.2.12, 6.4.6; R: 6.1.25]",
         "Queues of an array get requests in order of arrival."),
    ),
    _history(
        "plug.mixed_above",
        ("2.6.29", 1, f"{_PLUG} [V 2.6.39-4.20]"),
        ("5.0", 2, f"{_PLUG} [V 4.20, 5.0.1, 5.9.1]", "Two requests of two queues leave as they arrived."),
        ("5.16", 1, f"{_LATE_PLUG} [V 5.17-rc5]", "Any plug of several queues has the mixed order."),
    ),
    _history(
        "plug.insertion_repeats",
        ("2.6.29", False, f"{_INSERTION} [V 2.6.39, 3.4, 3.6.5]"),
        ("3.8", True, f"{_INSERTION} [V 3.6.5, 3.8.13; S commit bee0393c]",
         "A waiting request that took in a plugged one also joins the request in front of it."),
    ),
    _history(
        "plug.meta_apart",
        ("2.6.29", False, f"{_APART} [V 5.17-rc5]"),
        ("5.18 5.15.55", True, f"{_APART} [V 5.15.55, 5.17-rc5, 5.19]; on 6.18",
         "Metadata no longer merges with data next to it."),
    ),
)  # fmt: skip

_QUEUES: Final = (
    _history(
        "requests",
        ("2.6.29", "request_list", "docs/kernel/schedulers.md#the-pool-of-requests [V 2.6.30, 3.10]"),
        ("4.3", "tags", f"{_TAGS} [V 4.3]",
         "Requests are tags that reads and writes share; wbsim has them for all disks from here on."),
    ),
    _history(
        "schedulers.cfq.low_latency",
        ("2.6.29", False, f"{_CFQ} [V 2.6.30]"),
        ("2.6.32", True, f"{_CFQ} [R]: cfq_latency; [V 2.6.34]",
         "CFQ holds asynchronous writes back after a synchronous request that was late."),
    ),
    _history(
        "schedulers.deadline.resumes",
        ("2.6.29", False, f"{_DEADLINE} [R]"),
        ("5.14", True, f"{_DEADLINE} [R]: a position for each direction and priority",
         "A batch in the other direction goes on where the last one ended, not with the oldest request."),
    ),
    _history(
        "wbt",
        ("2.6.29", False, f"{_WBT} [V 4.9]"),
        ("4.10", True, f"{_WBT} [V 4.9, 4.10.17]; on 6.18: docs/measurements.md I",
         "Writeback throttling limits the flusher's requests in the device while others read or sync."),
    ),
    _history(
        "queue.blk_mq",
        ("2.6.29", False, f"{_SCHEDULERS} [V 4.18]"),
        ("4.19", True, f"{_SCHEDULERS} [V 4.18, 4.19.0]: CONFIG_SCSI_MQ_DEFAULT",
         "A SATA disk has tags and mq-deadline, and no longer CFQ."),
        condition=SATA,
    ),
    _history(
        "queue.blk_mq",
        ("2.6.29", False, f"{_SCHEDULERS} [R]"),
        ("3.13", True, f"{_SCHEDULERS} [R]", "A virtio disk has tags and no scheduler, and no longer CFQ."),
        condition=VIRTIO,
    ),
    _history(
        "queue.blk_mq",
        ("2.6.29", False, f"{_SCHEDULERS} [V 3.16, 3.18]"),
        ("3.19", True, f"{_SCHEDULERS} [V 3.18, 3.19.8]", "An NVMe drive has a request queue: it can merge."),
        condition=NVME,
    ),
    _history("queue.scheduler", ("2.6.29", "cfq", f"{_SCHEDULERS} [V 3.11, 4.9]"), condition=LEGACY),
    _history(
        "queue.scheduler",
        ("2.6.29", "none", f"{_SCHEDULERS} [R]: blk-mq has no default scheduler before 4.12"),
        ("4.12", "mq-deadline", f"{_SCHEDULERS} [V 4.12, 4.18, 5.4, 6.18]: elevator_init_mq",
         "A disk with one hardware queue has mq-deadline, and twice as many requests."),
        condition=ONE_QUEUE,
    ),
    _history(
        "queue.max_sectors_bytes",
        ("2.6.29", 512 * KIB, f"{_LIMITS} [V 2.6.29-3.16, 3.18]"),
        ("3.19", None, f"{_LIMITS} [V 3.18, 3.19.8, 4.1, 4.2.8]",
         "A request may be as large as the drive takes: 32 MiB for SATA."),
        ("4.3", 1280 * KIB, f"{_LIMITS} [V 4.2.8, 4.3, 6.14]", "A request has at most 1280 KiB."),
        ("6.17", 4 * MIB, f"{_LIMITS} [V 6.14, 6.17]", "A request has at most 4 MiB."),
    ),
    _history(
        "queue.max_segments",
        ("2.6.29", None, f"{_LIMITS} [R]: a segment for each page of a command, plus one"),
        ("4.20", 127, f"{_LIMITS} [V 6.1.192]: NVME_MAX_SEGS; from 4.20 on [R]",
         "A command of an NVMe drive has at most 127 segments."),
        ("6.3", 128, f"{_LIMITS} [V 6.1.192, 6.12.117]: NVME_MAX_SEGS; from 6.3 on [R]",
         "A command of an NVMe drive has at most 128 segments."),
        ("6.17", 256, f"{_LIMITS} [V 6.17]; its first release is [R]",
         "A command of an NVMe drive has at most 256 segments."),
        condition=NVME,
    ),
    _history(
        "queue.driver_depth",
        ("2.6.29", 31, f"{_TAGS} [V 2.6.29, 3.10]"),
        ("4.18", 32, f"{_TAGS} [R]", "A SATA disk takes 32 commands at once, and not 31."),
        condition=SATA,
    ),
    *(
        _history(
            f"queue.schedulers.{name}",
            ("2.6.29", True, f"{_SCHEDULERS} [V 4.20]"),
            ("5.0", ABSENT, f"{_SCHEDULERS} [V 4.20, 5.0.1]", f"{name} is gone with the legacy block layer."),
        )
        for name in ("noop", "deadline", "cfq")
    ),
    *(
        _history(
            f"queue.schedulers.{name}",
            ("2.6.29", ABSENT, f"{_SCHEDULERS} [R]"),
            (release, True, f"{_SCHEDULERS} {tag}", f"{name} exists."),
        )
        for name, release, tag in (
            ("none", "3.13", "[R]"), ("mq-deadline", "4.11", "[V 4.10.17, 4.12]"),
            ("bfq", "4.12", "[V 4.12]"), ("kyber", "4.12", "[V 4.12]"),
        )
    ),
)  # fmt: skip

_LOCKS_INODES_AND_TASKS: Final = (
    _history(
        "spinlock",
        ("2.6.29", "ticket", f"{_LOCKS} [V 3.10, 4.1.15]"),
        ("4.2", "queued", f"{_LOCKS} [V 4.1.15, 4.2.8, 4.3]",
         "A contended spinlock no longer slows down with each processor that waits for it."),
    ),
    _history(
        "rwsem_steals",
        ("2.6.29", False, f"{_LOCKS} [R]"),
        ("3.9", True, f"{_LOCKS} [R]: rwsem_down_write_failed",
         "A writer takes a free rwsem before tasks that sleep for it."),
    ),
    _history(
        "rwsem_spins",
        ("2.6.29", False, f"{_LOCKS} [R]"),
        ("3.16", True, f"{_LOCKS} [R]: kernel/locking/rwsem-xadd.c",
         "A writer spins while the owner of the rwsem runs, instead of going to sleep."),
    ),
    _history(
        "rwsem_spin",
        ("2.6.29", 0, f"{_LOCKS} [R]"),
        ("5.3", 10_500, f"{_LOCKS} [V 5.3.1, 6.1, 6.12]: rwsem_rspin_threshold for one reader",
         "A writer spins for some microseconds while readers own the rwsem."),
    ),
    _history(
        "rwsem_hand_off",
        ("2.6.29", 0, f"{_LOCKS} [R]"),
        ("5.3", 4 * MS, f"{_LOCKS} [V 6.1, 6.12; R: 5.3]: RWSEM_WAIT_TIMEOUT; docs/measurements.md R",
         "A writer that has slept for 4 ms gets the rwsem next: no one starves."),
    ),
    _history(
        "inodes.sb_list",
        ("2.6.29", "inode_lock", f"{_INODES} [V 2.6.29, 2.6.37]"),
        ("2.6.39", "inode_sb_list_lock", f"{_INODES} [V 2.6.39, 3.11]",
         "The list of all inodes has a lock apart from their states; all filesystems share it."),
        ("4.3", "s_inode_list_lock", f"{_INODES} [V 4.2.8, 4.3, 6.18]",
         "Each filesystem has a list lock: creates on two filesystems no longer meet."),
    ),
    _history(
        "inodes.sb_list",
        ("3.11", "per_node", _PATCHES, "Each NUMA node has a list of the filesystem's inodes."),
        condition=V13,
    ),
    _history(
        "inodes.sync_walks",
        ("2.6.29", "cached", f"{_SYNC} [V 2.6.29, 3.11, 4.3]"),
        ("4.8", "under_writeback", f"{_SYNC} [V 4.7.4, 4.8.15, 6.12]: s_inodes_wb",
         "sync(2) visits inodes under writeback only: millions of cached inodes no longer cost seconds."),
    ),
    _history(
        "inodes.sync_walks",
        ("3.11", "under_writeback", _PATCHES, "sync(2) visits inodes under writeback only."), condition=V13,
    ),
    _history(
        "inodes.sync_mutex",
        ("2.6.29", False, f"{_SYNC} [V 3.11]"),
        ("4.3", True, f"{_SYNC} [V 4.3; S commit e97fedb9]: s_sync_lock",
         "Tasks in sync(2) wait for each other asleep, and no longer spin for the list."),
    ),
    _history(
        "inodes.sync_mutex", ("3.11", True, _PATCHES, "Tasks in sync(2) wait for each other asleep."),
        condition=V13,
    ),
    _history(
        "inodes.unhash",
        ("2.6.29", "all", f"{_INODES} [V 3.11]"),
        ("4.3", "hashed", f"{_INODES} [V 3.11, 4.3]: hlist_fake",
         "Inodes of XFS no longer take the lock of the inode hash when they leave the cache."),
    ),
    _history(
        "inodes.unhash",
        ("3.11", "hashed", _PATCHES, "Inodes of XFS leave the cache without the lock of the hash."),
        condition=V13,
    ),
    _history(
        "inodes.hash_lookup",
        ("2.6.29", "locked", f"{_INODES} [V 3.11, 6.1, 6.10]"),
        ("6.11", "rcu", f"{_INODES} [R]; [V 6.10, 6.12]",
         "ext4 looks up inodes without the global lock of the hash."),
    ),
    _history(
        "inodes.hash_lookup",
        ("3.11", "rcu", _PATCHES, "ext4 looks up inodes without the global lock of the hash."), condition=V13,
    ),
    _history(
        "inodes.lru",
        ("2.6.29", "global", f"{_INODES} [V 2.6.39]"),
        ("3.1", "superblock", f"{_INODES} [V 2.6.39, 3.1, 3.11]",
         "Each filesystem has a list of unused inodes."),
        ("3.12", "per_node", f"{_INODES} [V 3.11, 3.13]: list_lru",
         "Each NUMA node has a list of unused inodes."),
    ),
    *(
        _history(
            "inodes.lru",
            ("3.11", "per_node", "report V13: mmotm has the list_lru series of 3.12",
             "Each NUMA node has a list of unused inodes."), condition=name,
        )
        for name in (MMOTM, V13)
    ),
    _history(
        "inodes.lru_checks",
        ("2.6.29", False, f"{_INODES} [R]"),
        ("3.12", True, f"{_INODES} [R]; report V13: the last two patches",
         "An inode looks at the list of unused inodes before it takes the lock."),
    ),
    _history(
        "inodes.lru_checks",
        ("3.11", True, "report V13: the last two patches",
         "An inode looks at the list of unused inodes before it takes the lock."), condition=V13,
    ),
    _history(
        "sched.algorithm",
        ("2.6.29", "CFS", "kernel/sched/fair.c from 2.6.23 on [R]"),
        ("6.6", "EEVDF", "kernel/sched/fair.c from 6.6 on [R]",
         "Tasks go by virtual deadlines: a task that wakes up preempts less often."),
    ),
    _history(
        "sched.slice_time",
        ("2.6.29", assumed(750 * US, f"min_granularity: {_FAIR}", 750 * US, 4 * MS)),
        ("6.6", assumed(700 * US, f"base_slice: {_FAIR}; ticks hide its effect (docs/measurements.md G)",
                        700 * US, 3 * MS), "", "The slice has another name; ticks hide the difference."),
    ),
    _history(
        "sched.ahead_time",
        ("2.6.29", assumed(3 * MS, f"half of sched_latency, 6 ms: {_FAIR}", 0, 10 * MS)),
        ("6.6", ABSENT, _FAIR, "EEVDF has no such bound."),
    ),
    _history(
        "sched.granularity",
        ("2.6.29", assumed(MS, f"wakeup_granularity: {_FAIR}", 0, 10 * MS)),
        ("6.6", ABSENT, _FAIR, "EEVDF has no such bound."),
    ),
    _history(
        "sched.stacks",
        ("2.6.29", False, "select_idle_sibling [R]"),
        ("5.6", True, "select_idle_sibling: from 5.6 on [R; V 6.12]",
         "A task that a bound worker wakes stays on the worker's processor."),
    ),
    *(
        _history(
            key,
            ("2.6.29", assumed(1000, "CONFIG_HZ of x86_64_defconfig; the reports do not name it", 100, 1000)),
            ("6.18", measured(250, "docs/measurements.md: CONFIG_HZ of the kernel that was measured"), "",
             "The kernel that was measured has 250 ticks a second; yours may have another CONFIG_HZ."),
        )
        for key in ("sched.hz", "throttling.hz")
    ),
)  # fmt: skip

_ARRAYS: Final = (
    _history(
        "md.plugs_stripes",
        ("2.6.29", False, f"{_MD}#the-plug [V 3.5]"),
        ("3.6", True, f"{_MD}#the-plug [V 3.5, 3.6.5]: raid5_unplug",
         "RAID5 gets the stripes of a plug at once, so more of them are complete, and fewer must read."),
    ),
    _history(
        "md.group_threads",
        ("2.6.29", False, f"{_MD}#threads [V 3.11]"),
        ("3.12", True, f"{_MD}#threads [V 3.11, 3.13]: group_thread_cnt",
         "RAID5 may have worker threads, so one processor no longer limits an array of fast drives."),
    ),
    _history(
        "md.raid6_rmw",
        ("2.6.29", False, f"{_MD}#what-a-write-reads [V 3.19]"),
        ("4.1", True, f"{_MD}#what-a-write-reads [V 3.19, 4.1]: PARITY_ENABLE_RMW",
         "A small write to a wide RAID6 reads three pages, and no longer all the data of its stripe."),
    ),
    _history(
        "md.cache_grows",
        ("2.6.29", False, f"{_MD}#the-stripe-cache [V 3.19]"),
        ("4.1", True, f"{_MD}#the-stripe-cache [V 3.19, 4.1]: grow_one_stripe",
         "The stripe cache grows slowly while tasks wait for a stripe."),
    ),
    _history(
        "md.whole_stripes",
        ("2.6.29", False, f"{_MD}#the-stripe-cache [R]"),
        ("6.0", True, f"{_MD}#the-stripe-cache [V 6.1, 6.12]: make_stripe_request",
         "A large bio completes one stripe after the other, so a small stripe cache limits it less."),
    ),
    _history(
        "md.mirror_writes",
        ("2.6.29", "thread", f"{_MD}#mirrors [V 3.5]"),
        ("3.6", "plug", f"{_MD}#mirrors [V 3.5, 3.6.5]: raid1_unplug",
         "The writing task submits the writes of RAID1 and RAID10 itself, and no longer the array's thread."),
        ("6.5 6.1.y", "direct", f"{_MD}#mirrors [V 6.1, 6.12]: raid1_add_bio_to_plug",
         "Without a bitmap, writes of RAID1 and RAID10 do not wait in the plug of the array."),
    ),
    _history(
        "md.flushes",
        ("2.6.29", "in_turn", f"{_MD}#flushes [V 6.1]"),
        ("6.13 6.12.y", "at_once", f"{_MD}#flushes [V 6.12.117; 6.13 R]: md_flush_request",
         "Several tasks flush an array at the same time, and the data of a log write does not wait."),
    ),
    _history(
        "md.plug_bios",
        ("2.6.29", None, f"{_MD}#mirrors [V 6.1]"),
        ("6.5", 32, f"{_MD}#mirrors [V 6.12]: MAX_PLUG_BIO",
         "A task submits its writes to RAID1 and RAID10 after 32, instead of an unbounded number."),
    ),
)  # fmt: skip

_MKFS: Final = (
    _history(
        "mkfs.xfs.inode_bytes",
        ("2.6.29", 256, "mkfs.xfs: without CRCs [R]"),
        ("4.1", 512, "mkfs.xfs: with CRCs, from xfsprogs 3.2.3 on [R]", "An inode takes 512 bytes."),
    ),
    _history(
        "mkfs.xfs.most_checkpoint_bytes",
        ("2.6.29", None, f"{_XFS_LOG} [V 5.6.4]: XLOG_CIL_SPACE_LIMIT, an eighth of the log"),
        ("5.7", 32 * MIB, f"{_XFS_LOG} [V 5.6.4, 5.7.14]: an eighth, and at most 32 MiB",
         "A checkpoint has at most 32 MiB: log writes are spread."),
    ),
    _history(
        "mkfs.xfs.least_log_bytes",
        ("2.6.29", 10 * MIB, "mkfs.xfs: calculate_log_size [R]"),
        ("5.15", 64 * MIB, "mkfs.xfs: calculate_log_size [R]", "The log of a small filesystem has 64 MiB."),
    ),
    _history(
        "mkfs.xfs.rmapbt",
        ("2.6.29", False, "mkfs.xfs [R]"),
        ("6.5", True, "mkfs.xfs: rmapbt=1 is the default from 6.5 on [R]",
         "Each extent has a second entry, which takes the AGF once more."),
    ),
    _history(
        "mkfs.xfs.group_per_processor",
        ("2.6.29", False, "mkfs.xfs: calc_default_ag_geometry [R]"),
        ("6.8", True, "mkfs.xfs: calc_concurrency_ag_geometry [R]; W25's 128 groups on 128 processors",
         "A drive without moving parts has a group for each processor, of 4 GiB at least."),
    ),
    _history(
        "mkfs.ext4.descriptor_bytes",
        ("2.6.29", 32, "mke2fs [R]"),
        ("4.6", 64, "mke2fs: 64bit, from e2fsprogs 1.43 on [R]", "Descriptors of groups take twice as much."),
    ),
    _history(
        "mkfs.ext4.most_journal_bytes",
        ("2.6.29", 128 * MIB, "mke2fs: to e2fsprogs 1.43.1 [R]"),
        ("4.8", GIB, "mke2fs: ext2fs_default_journal_size [R]",
         "The journal of a large filesystem has up to 1 GiB."),
    ),
)  # fmt: skip

RULES: Final[tuple[Rule, ...]] = tuple(
    row
    for part in (
        _LIMITS_AND_THROTTLING, _FLUSHERS, _WRITEBACK, _XFS, _EXT4_ROWS, _PLUGS, _QUEUES,
        _LOCKS_INODES_AND_TASKS, _ARRAYS, _MKFS,
    )
    for history in part
    for row in history
)  # fmt: skip
"""All rows, in the order of a page's way through the kernel."""
