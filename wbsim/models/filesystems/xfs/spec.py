"""The decisions of mkfs.xfs and mount, the costs of XFS's paths, and the rules of each era."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator

from wbsim.models.filesystems.spec import FilesystemSpec, FlusherCosts
from wbsim.sim.param import (
    BadValue,
    Bytes,
    BytesOrNone,
    Count,
    Flag,
    Interval,
    Ns,
    Spec,
)
from wbsim.sim.units import GIB, PAGE_BYTES

CHUNK_INODES: Final = 64  # XFS_INODES_PER_CHUNK
MAX_GROUP_BYTES: Final = GIB << 10  # XFS_AG_MAX_BYTES
_PROFILE: Final = "docs/measurements.md B: cpu-clock profile of the flusher, Linux 6.18"
_INODES: Final = "docs/measurements.md L: a million inodes on Linux 6.18"
_FS_MARK: Final = "docs/measurements.md A: fs_mark -v on XFS, Linux 6.18"


class XfsRules(Spec):
    """The rules of an era's fs/xfs for the place of file pages.

    * ``prealloc``: the reservation behind the end of a growing file.  It is constant ("fixed", to 2.6.37), a
      power of two up to the file's size ("size", to 3.8), or twice the extents in front ("preceding").
    * ``zeroing_converts``: before a write that leaves a gap behind the old end, the delayed extent at that
      end gets its blocks (6.10 and later).
    * ``nr_to_write_counts``: the budget of a page walk, nr_to_write, counts pages ("pages") or calls of
      writepage ("calls_x4", 2.6.32 to 2.6.34).  With "calls_x4", XFS multiplies nr_to_write by four in each
      call, and the call may write this number of further pages.
    * ``whole_calls``: a reservation is counted from the end of the write(2), not of the page (iomap: 4.8 and
      later).
    * ``wraps``: a walk that reaches the end of the file continues at its beginning, once (to 4.19;
      stable 4.14 and 4.19 to early 2020).
    * ``unwritten``: blocks are allocated as unwritten, and converted after the write (5.8 and later).
    * ``large_folios``: a folio is as large as the write(2) that made it (6.6 and later).
    * ``spans_calls``: an ioend may contain the pages of several calls of writepage (4.6 and later).
    * ``sync_data``: the data that fsync(2) or sync(2) writes carries REQ_SYNC (2.6.34 and later).
    * ``tries_writes``: a write of io_uring that would wait fails, so that a worker gets it (6.0 and later);
      otherwise a worker gets every write.
    * ``pagevec``: the dirty pages that a page walk looks up at a time (14, from 4.16 on 15, from 6.9 on 31).
      A page that becomes dirty between two of them is left to the next walk.
    * ``cil``: a commit adds its items to the CIL under the filesystem's xc_cil_lock (to 5.19), or to a list
      of its processor (6.0 and later).
    * ``log_flushes``: each record of the log has a flush and FUA (to 5.13), or only the ends of a checkpoint
      (5.14 and later).  There the first record has a flush, and the last has both.
    """

    prealloc: Literal["fixed", "size", "preceding"]
    zeroing_converts: Flag
    nr_to_write_counts: Literal["pages", "calls_x4"]
    whole_calls: Flag
    wraps: Flag
    unwritten: Flag
    large_folios: Flag
    spans_calls: Flag
    sync_data: Flag
    tries_writes: Flag
    pagevec: Annotated[Count, Field(le=255)]
    cil: Literal["spinlock", "per_cpu"]
    log_flushes: Literal["records", "ends"]


class LogSpec(Spec):
    """The log: its size, its in-core buffers, and when it is pushed.

    The sizes grow: ``record_header`` < ``iclog_bytes`` <= ``checkpoint_bytes`` <= half of ``size``.

    * ``size``: the size of the log.
    * ``iclog_bytes``: the size of an in-core buffer, and so of a log record.
    * ``iclogs``: the number of in-core buffers, and so of log records in flight.
    * ``record_header``: the bytes of a log record that contain no items.
    * ``checkpoint_bytes``: the size for the background push of the CIL (XLOG_CIL_SPACE_LIMIT).
    * ``sync_interval``: the time after which the log is forced and the complete AIL is pushed
      (fs.xfs.xfssyncd_centisecs).
    * ``ail_pause``: the time between two passes of xfsaild.
    """

    size: Bytes
    iclog_bytes: Bytes
    iclogs: Count
    record_header: BytesOrNone
    checkpoint_bytes: Bytes
    sync_interval: Interval
    ail_pause: Interval

    @model_validator(mode="after")
    def _check(self) -> LogSpec:
        if not self.record_header < self.iclog_bytes <= self.checkpoint_bytes <= self.size // 2:
            raise ValueError(
                "give record_header < iclog_bytes <= checkpoint_bytes <= half of size; the kernel pushes a"
                " checkpoint at an eighth of size"
            )
        return self


class LogCosts(Spec):
    """Processor time of the log.

    * ``commit_ns``: the time of a commit, under xc_cil_lock if a commit takes that lock.
    * ``item_ns``: the time of each item of a commit that takes xc_cil_lock, under the lock.
    * ``record_ns``: the time of the CIL worker for a full log record; a shorter one takes its share.
    * ``buffer_ns``: the time of xfsaild for each buffer.
    """

    commit_ns: Ns
    item_ns: Ns
    record_ns: Ns
    buffer_ns: Ns


class XfsWriterCosts(Spec):
    """Processor time of system calls, without the locks of inodes (`models.vfs.inodes`) and of the CIL.

    * ``create_ns``: the time of a creat(2).
    * ``agi_ns``: the part of ``create_ns`` under the AGI of the directory's group.  0: creat(2) does not take
      this lock, as on the machines that were fitted without it.
    * ``iget_ns``: the time of an inode that is read into the cache.
    * ``bulkstat_ns``: the time of an inode that bulkstat reads and drops.
    * ``remove_ns``: the time of an unlink(2) for the name.
    * ``inactivate_ns``: the time of an unlink(2) for the inode.
    * ``chunk_ns``: the time of the allocation of an inode chunk, under the AGF.
    * ``dir_block_ns``: the time of the allocation of a directory block, under the AGF.
    * ``mkdir_ns``: the time of a mkdir(2).
    """

    create_ns: Ns
    agi_ns: Ns = 0
    iget_ns: Ns
    bulkstat_ns: Ns
    remove_ns: Ns
    inactivate_ns: Ns
    chunk_ns: Ns
    dir_block_ns: Ns
    mkdir_ns: Ns

    @model_validator(mode="after")
    def _check(self) -> XfsWriterCosts:
        if self.agi_ns > self.create_ns:
            raise BadValue(
                f"{self.agi_ns} ns is longer than create_ns, which includes it; give at most"
                f" {self.create_ns} ns",
                "agi_ns",
            )
        return self


class XfsFlusherCosts(FlusherCosts):
    """The costs of the flusher, of the conversion workers, and of the log.

    ``map_ns`` is spent under the AGF.

    * ``rmap_ns``: the time that an allocation takes more with reverse mapping, under the AGF.
    * ``rmap_ioend_ns``: the time that a conversion takes more with reverse mapping.
    * ``reserve_ns``: the part of ``map_ns`` and of ``ioend_ns`` before the ILOCK is taken, in which the
      transaction gets its log space; without it, 0.
    * ``search_ns``: the time that an allocation takes more if it searches both trees of free extents
      (xfs_alloc_ag_vextent_locality); without it, 0.
    """

    TRANSACTIONS: ClassVar = FlusherCosts.TRANSACTIONS | {
        "rmap_ns", "rmap_ioend_ns", "reserve_ns", "search_ns", "log",
    }  # fmt: skip

    rmap_ns: Ns
    rmap_ioend_ns: Ns
    reserve_ns: Ns | None = None
    search_ns: Ns | None = None
    log: LogCosts

    @model_validator(mode="after")
    def _check_reserve(self) -> XfsFlusherCosts:
        self._includes("reserve_ns", "map_ns")
        self._includes("reserve_ns", "ioend_ns")
        return self


class XfsCosts(Spec):
    """The costs of system calls and of writeback."""

    writer: XfsWriterCosts
    flusher: XfsFlusherCosts


class XfsSpec(FilesystemSpec):
    """One XFS, and the bytes that its operations log.

    * ``agcount``: the number of allocation groups.
    * ``rmapbt``: the filesystem has reverse mapping.
    * ``group_head``: the bytes that mkfs keeps at the start of each group.
    * ``stripe_unit``: the stripe unit, whole pages (su of mkfs.xfs); without it, no stripe.
    * ``allocsize``: the mount option, a power of two from 64 KiB to 1 GiB; without it, the kernel's rule
      reserves blocks.
    * ``inode_bytes``: the size of an inode on disk.
    * ``cluster_bytes``: the buffer in which inodes are written; it holds whole inodes and divides a chunk of
      64.
    * ``dirent_bytes``: the growth of a directory on disk for each name.
    * ``inode_log_bytes``: the size of the log item of an inode, headers included.
    * ``extent_log_bytes``: the bytes that the block mapping adds to the log item.
    * ``dirent_log_bytes``: the bytes that a new name logs in the directory's data and leaf blocks.
    * ``create_items``: the log items of a transaction that makes an inode.
    * ``extent_items``: the log items of a transaction that maps an extent.
    * ``remove_items``: the log items of a transaction that removes a name.
    * ``inactivate_items``: the log items of a transaction that frees an inode.
    """

    Costs: ClassVar = XfsCosts
    Rules: ClassVar = XfsRules
    map_tool: ClassVar = "xfs_bmap"
    has_bulkstat: ClassVar = True
    hashed_inodes: ClassVar = False
    kind: Literal["xfs"] = "xfs"
    agcount: Count
    rmapbt: Flag
    group_head: BytesOrNone
    stripe_unit: Bytes | None = None
    allocsize: Bytes | None = None
    inode_bytes: Bytes
    cluster_bytes: Bytes
    dirent_bytes: Bytes
    inode_log_bytes: Bytes
    extent_log_bytes: Bytes
    dirent_log_bytes: Bytes
    create_items: Count
    extent_items: Count
    remove_items: Count
    inactivate_items: Count
    log: LogSpec

    @model_validator(mode="after")
    def _check(self) -> XfsSpec:
        if self.cluster_bytes % self.inode_bytes or CHUNK_INODES * self.inode_bytes % self.cluster_bytes:
            raise BadValue(
                f"{self.cluster_bytes} B does not hold a number of inodes that divides 64; give"
                " 32 * inode_bytes",
                "cluster_bytes",
            )
        size, group = self.allocsize, self.size // self.agcount
        if size is not None and (not 16 * PAGE_BYTES <= size <= GIB or size & (size - 1)):
            raise BadValue(
                f"{size} B is outside the allowed values; give a power of two from 64 KiB to 1 GiB",
                "allocsize",
            )
        for name in ("inode_log_bytes", "extent_log_bytes", "dirent_log_bytes"):
            if getattr(self, name) > self.log.checkpoint_bytes:
                most = self.log.checkpoint_bytes
                raise BadValue(
                    f"{getattr(self, name)} B does not fit into a checkpoint of {most} B; give less", name
                )
        unit = self.stripe_unit
        if unit is not None and (not unit or unit % PAGE_BYTES):
            raise BadValue(
                f"{unit} B is not a whole number of pages; give a multiple of {PAGE_BYTES} B", "stripe_unit"
            )
        if not self.group_head < group <= MAX_GROUP_BYTES:
            raise BadValue(
                f"a group has {group} B; it must be larger than group_head and at most 1 TiB: change"
                " size or agcount", "size",
            )  # fmt: skip
        if self.log.size >= group - self.group_head:
            message = (
                f"{self.log.size} B does not fit into an allocation group; give a smaller log or fewer groups"
            )
            raise BadValue(message, "log", "size")
        return self

    @property
    def room(self) -> int:
        """See `FilesystemSpec.room`: the size without the start of each group and the log."""
        return self.size - self.agcount * self.group_head - self.log.size

    @property
    def writeback_groups(self) -> int:
        """See `FilesystemSpec.writeback_groups`.

        A mount asks for one writeback context for each allocation group
        (docs/kernel/flushers.md#several-contexts).
        """
        return self.agcount

    def bytes_of(self, files: int, bytes_each: int) -> int:
        """See `FilesystemSpec.bytes_of`; adds ``inode_bytes`` and ``dirent_bytes`` for each file."""
        return super().bytes_of(files, bytes_each) + files * (self.inode_bytes + self.dirent_bytes)
