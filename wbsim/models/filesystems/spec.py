"""The spec that all filesystems share: the size, the costs of the paths, and the rules of each era."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import model_validator

from wbsim.models.kinds import by_kind, kind_field
from wbsim.sim.param import BadValue, Bytes, CountOrNone, Inputs, Named, NoNumbers, Ns, Spec
from wbsim.sim.units import PAGE_BYTES


class FlusherCosts(Spec):
    """Processor time of writeback.

    * ``map_ns``: the time for each extent that gets its blocks.
    * ``page_ns``: the time for each page that is walked and added to a bio.
    * ``ioend_ns``: the time for each file or range that the completion worker completes.
    * ``tree_map_ns``: ``map_ns`` in a file with more extents than its inode holds; without it, ``map_ns``.
    * ``tree_ioend_ns``: ``ioend_ns`` in a file with more extents than its inode holds; without it,
      ``ioend_ns``.
    * ``folio_ns``: the time for each folio that is walked, without its pages; without it, 0.
    * ``end_folio_ns``: the time for each folio that the worker makes clean, without its pages; without it, 0.
    * ``map_locked_ns``: the part of ``map_ns`` under the inode's lock; without it, all of it.
    * ``ioend_locked_ns``: the part of ``ioend_ns`` under the inode's lock; without it, all of it.
    * ``map_lines``: the cache lines that an allocation fetches if the file's last operation ran on another
      processor; without it, 0.
    * ``ioend_lines``: the cache lines that a conversion fetches if the file's last operation ran on another
      processor; without it, 0.
    """

    TRANSACTIONS: ClassVar = frozenset({
        "map_ns", "tree_map_ns", "map_locked_ns", "ioend_ns", "tree_ioend_ns", "ioend_locked_ns",
    })  # fmt: skip
    """The times of the transactions that give extents their blocks, and convert them."""

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
        self._includes("map_locked_ns", "map_ns")
        self._includes("ioend_locked_ns", "ioend_ns")
        return self

    def _includes(self, part: str, whole: str) -> None:
        """Refuse a *part* that is longer than the *whole*."""
        part_ns, whole_ns = getattr(self, part), getattr(self, whole)
        if part_ns is not None and part_ns > whole_ns:
            raise BadValue(
                f"{part_ns} ns is longer than {whole}, which includes it; give at most {whole_ns} ns", part
            )


class FilesystemCosts(Spec):
    """Processor time of the paths: ``writer`` for system calls, ``flusher`` for writeback."""

    writer: NoNumbers
    flusher: NoNumbers


class FilesystemSpec(Spec):
    """The decisions of mkfs and mount.

    ``Costs`` and ``Rules``: the specs for the costs of the paths and the rules of an era.
    ``reference_costs``: the costs on a machine whose file in the catalogue does not have the filesystem.

    * ``size``: the size of the filesystem.
    """

    Costs: ClassVar[type[Spec]] = FilesystemCosts
    Rules: ClassVar[type[Spec]] = NoNumbers
    reference_costs: ClassVar[Inputs] = {"writer": {}, "flusher": {}}
    has_bulkstat: ClassVar[bool] = False
    """True: inodes can be read in bulk, without their names."""
    hashed_inodes: ClassVar[bool] = True
    """True: the inodes are on the chains of the inode hash."""
    map_tool: ClassVar[str] = "filefrag"
    """The tool that prints the extents of a file."""
    kind: str
    size: Bytes

    @property
    def room(self) -> int:
        """The bytes that files can take, without the metadata that mkfs places."""
        return self.size

    @property
    def most_files(self) -> int | None:
        """The number of inodes for files and directories; None if inodes take blocks from the files' room."""
        return None

    @property
    def writeback_groups(self) -> int:
        """The number of groups of files that may have separate writeback contexts (`ParallelSpec`)."""
        return 1

    def bytes_of(self, files: int, bytes_each: int) -> int:
        """Return the bytes that *files* files of *bytes_each* bytes take on disk, each in whole blocks.

        A filesystem adds its inodes and names, as far as they take blocks of ``room``.
        """
        return files * -(-bytes_each // PAGE_BYTES) * PAGE_BYTES


AnyFilesystem = Annotated[FilesystemSpec, kind_field("filesystems")]
"""The spec of any kind in this folder."""
CostsOfFilesystems = Annotated[Named[Spec], by_kind("filesystems", "Costs")]
RulesOfFilesystems = Annotated[Named[Spec], by_kind("filesystems", "Rules")]
