"""struct bio and struct request: what is submitted, and what it is merged into.

Left out: bi_io_vec itself; a bio knows only how many physical segments it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Bio:
    """A contiguous run of sectors for one queue.

    *owner* tells queues apart (the request_queue; any object in pure use).  A bio that is
    ``nomerge`` carries PREFLUSH, FUA or NOMERGE.  ``end_io(context)`` is called when it is done.
    """

    __slots__ = ("context", "end_io", "nomerge", "op", "owner", "sectors", "segments", "start_sector", "sync")

    def __init__(
        self,
        start_sector: int,
        sectors: int,
        *,
        segments: int = 1,
        op: str = "W",
        owner: object = None,
        sync: bool = False,
        nomerge: bool = False,
        end_io: Callable[[Any], None] | None = None,
        context: Any = None,
    ) -> None:
        self.start_sector = start_sector
        self.sectors = sectors
        self.segments = segments
        self.op = op
        self.owner = owner
        self.sync = sync
        self.nomerge = nomerge
        self.end_io = end_io
        self.context = context

    @property
    def end_sector(self) -> int:
        """The sector after the last."""
        return self.start_sector + self.sectors

    def __repr__(self) -> str:
        return f"<Bio {self.op} {self.start_sector} + {self.sectors}>"


class Request:
    """One or more merged bios, contiguous on disk, in sector order of their merging."""

    __slots__ = ("bios", "end_sector", "nomerge", "op", "owner", "segments", "start_sector", "submitted_ns", "sync")

    def __init__(self, bio: Bio) -> None:
        self.start_sector = bio.start_sector
        self.end_sector = bio.start_sector + bio.sectors
        self.segments = bio.segments
        self.op = bio.op
        self.owner = bio.owner
        self.sync = bio.sync
        self.nomerge = bio.nomerge
        self.bios = [bio]
        self.submitted_ns = 0

    @property
    def sectors(self) -> int:
        """The length (sectors)."""
        return self.end_sector - self.start_sector

    def __repr__(self) -> str:
        return f"<Request {self.op} {self.start_sector} + {self.sectors} of {len(self.bios)} bios>"
