"""What the spec of every filesystem says: its size, what its paths cost, and what each era decides."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import model_validator

from wbsim.models.kinds import by_kind, kind_field
from wbsim.sim.param import BadValue, Bytes, CountOrNone, Inputs, Named, Ns, Spec
from wbsim.sim.units import PAGE_BYTES


class NoNumbers(Spec):
    """Nothing to say."""


class FlusherCosts(Spec):
    """What writeback pays: ``map_ns`` per extent given its blocks; ``page_ns`` per page walked and added to a
    bio; ``ioend_ns`` per file or range completed, by the completion worker.

    Where these were measured apart: ``tree_map_ns`` and ``tree_ioend_ns``: the same in a file of more extents
    than its inode holds; ``folio_ns`` and ``end_folio_ns``: per folio, beside its pages, that
    is walked and that the worker makes clean; ``map_locked_ns`` and ``ioend_locked_ns``: the part of
    ``map_ns`` and of ``ioend_ns`` that passes under the inode's lock (without them, all of it);
    ``map_lines`` and ``ioend_lines``: the cache lines of a file that an allocation and a conversion get from
    another processor, if the one before ran there (without them, none).
    """

    map_ns: Ns
    page_ns: Ns
    ioend_ns: Ns
    tree_map_ns: Ns | None = None
    tree_ioend_ns: Ns | None = None
    folio_ns: Ns | None = None
    end_folio_ns: Ns | None = None
    map_locked_ns: Ns | None = None
    ioend_locked_ns: Ns | None = None
    map_lines: CountOrNone | None = None
    ioend_lines: CountOrNone | None = None

    @model_validator(mode="after")
    def _check(self) -> FlusherCosts:
        for part, whole in (("map_locked_ns", "map_ns"), ("ioend_locked_ns", "ioend_ns")):
            part_ns, whole_ns = getattr(self, part), getattr(self, whole)
            if part_ns is not None and part_ns > whole_ns:
                raise BadValue(f"{part_ns} ns are more than {whole}, {whole_ns}; it is a part", part)
        return self


class FilesystemCosts(Spec):
    """Processor time of its paths: those of system calls, and those of writeback."""

    writer: NoNumbers
    flusher: NoNumbers


class FilesystemSpec(Spec):
    """What mkfs and mount decided.

    ``Costs`` and ``Rules`` are the specs of what its paths cost and of what each era decides;
    ``reference_costs`` are the former as measured on the reference machine.
    """

    Costs: ClassVar[type[Spec]] = FilesystemCosts
    Rules: ClassVar[type[Spec]] = NoNumbers
    reference_costs: ClassVar[Inputs] = {"writer": {}, "flusher": {}}
    has_bulkstat: ClassVar[bool] = False
    """Whether inodes can be read in bulk, without their names."""
    hashed_inodes: ClassVar[bool] = True
    """Whether its inodes are on the chains of the inode hash."""
    map_tool: ClassVar[str] = "filefrag"
    """What people print the extents of its files with."""
    kind: str
    size: Bytes

    @classmethod
    def rules_of(cls, kernel: str) -> Inputs:
        """The inputs of its ``Rules`` in *kernel* (a name in `models.catalogue.kernels`)."""
        return {}

    @property
    def room(self) -> int:
        """What files can take (bytes)."""
        return self.size

    @property
    def most_files(self) -> int | None:
        """The number of inodes for files and directories; None if inodes take blocks from the files' room."""
        return None

    @property
    def writeback_groups(self) -> int:
        """How many groups of its files may have a writeback context of their own."""
        return 1

    def bytes_of(self, files: int, bytes_each: int) -> int:
        """What so many *files* of *bytes_each* take on disk."""
        return files * -(-bytes_each // PAGE_BYTES) * PAGE_BYTES


AnyFilesystem = Annotated[FilesystemSpec, kind_field("filesystems")]
"""The spec of any kind in this folder."""
CostsOfFilesystems = Annotated[Named[Spec], by_kind("filesystems", "Costs")]
RulesOfFilesystems = Annotated[Named[Spec], by_kind("filesystems", "Rules")]
