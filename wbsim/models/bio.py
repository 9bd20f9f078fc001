"""struct bio and struct request: a thread submits bios, and a driver gets requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from mypy_extensions import mypyc_attr

READ: Final = "R"
"""The op of a read."""
FLUSH: Final = "FW"
"""The op of a flush, or of a write with PREFLUSH: earlier writes are safe before it."""
FLUSH_FUA: Final = "FWF"
"""The op of a write with PREFLUSH and FUA, such as a record of a log: it is safe, too, when it completes.

A device with a volatile cache gets the steps of both: a flush, ``F``, and a write, with FUA (``WF``) or not.
"""
FUA: Final = "WF"
"""The op of a write with FUA alone: it is safe when it completes."""
DISCARD: Final = "D"
"""The op of a discard, which has a separate size limit."""


class Write(Protocol):
    """A request as a device sees it: contiguous sectors and an ``op``, such as `READ`, `DISCARD` or ``W``.

    ``end_sector`` is the sector behind the last one; a flush has no sectors.
    """

    start_sector: int
    end_sector: int
    op: str

    @property
    def sectors(self) -> int:
        """The length in sectors of 512 B."""
        return self.end_sector - self.start_sector


@mypyc_attr(free_list_len=1)  # reuse the memory of the object that was freed last
class Bio(Write):
    """A contiguous run of sectors for one *queue*.

    Pure code may pass any object as *queue*, which then only distinguishes queues.  ``nomerge``: the bio
    carries PREFLUSH, FUA or NOMERGE.  ``meta``: it carries REQ_META.  ``end_io(context)`` is called when the
    bio is complete.

    ``sync``: it carries REQ_SYNC, so a task waits for it.  ``unplug``: it opens the plug of its queue (to
    2.6.38: BIO_RW_UNPLUG), which data that fsync(2) or sync(2) writes does not (WRITE_SYNC_PLUG).
    """

    __slots__ = (
        "context", "end_io", "end_sector", "meta", "nomerge", "op", "queue", "segments", "start_sector",
        "sync", "unplug",
    )  # fmt: skip

    def __init__(
        self,
        start_sector: int,
        sectors: int,
        *,
        segments: int = 1,
        op: str = "W",
        queue: Any = None,
        sync: bool = False,
        nomerge: bool = False,
        meta: bool = False,
        unplug: bool = False,
        end_io: Callable[[Any], None] | None = None,
        context: Any = None,
    ) -> None:
        self.start_sector = start_sector
        self.end_sector = start_sector + sectors
        self.segments = segments
        self.op = op
        self.queue = queue
        self.sync = sync
        self.nomerge = nomerge
        self.meta = meta
        self.unplug = unplug
        self.end_io = end_io
        self.context = context

    def __repr__(self) -> str:
        return f"<Bio {self.op} {self.start_sector} + {self.sectors}>"


@mypyc_attr(free_list_len=1)
class Request(Write):
    """One or more merged bios, contiguous on disk; ``merges`` counts the bios that joined the first one.

    ``started_ns``: the time of its block_getrq, from which its wait counts (start_time_ns of struct request).
    """

    __slots__ = (
        "bios", "cpu", "discard", "end_sector", "merges", "meta", "nomerge", "op", "queue", "segments",
        "start_sector", "started_ns", "sync",
    )  # fmt: skip

    def __init__(self, bio: Bio, started_ns: int = 0) -> None:
        self.start_sector = bio.start_sector
        self.end_sector = bio.end_sector
        self.segments = bio.segments
        self.op = bio.op
        self.discard = bio.op == DISCARD
        self.queue = bio.queue
        self.sync = bio.sync
        self.nomerge = bio.nomerge
        self.meta = bio.meta
        self.bios = [bio]
        self.merges = 0
        self.started_ns = started_ns
        self.cpu = -1  # the processor that handles the completion; the queue sets it

    def __repr__(self) -> str:
        return f"<Request {self.op} {self.start_sector} + {self.sectors} of {len(self.bios)} bios>"


@mypyc_attr(free_list_len=1)
class Piece(Write):
    """A part of a request, in sectors: for a member of a composed device, or one step of a flush."""

    __slots__ = ("end_sector", "op", "start_sector")

    def __init__(self, start_sector: int, end_sector: int, op: str) -> None:
        self.start_sector = start_sector
        self.end_sector = end_sector
        self.op = op


class BlockDevice(Protocol):
    """Takes requests, and completes each of them after some time."""

    def uses(self) -> dict[str, float]:
        """Return how long (ns) each part of the device was used so far, by name: a link, a head, flash.

        For a part such as flash, whose planes work at once, this is the mean of the planes.
        Empty: the device does not count this.  Results show from these times what limits a run.
        """
        return {}

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """Start *request*, and return at once; *done* is called once, when it completes.

        That may be at this instant, but not before `submit` has returned.
        """


def programmed_bytes(device: BlockDevice) -> int:
    """Return how many bytes the flash of *device* programmed so far, with those that it moved.

    0: the device has no method ``programmed_bytes``, no flash, or has programmed nothing.
    """
    programmed: Callable[[], int] | None = getattr(device, "programmed_bytes", None)
    return 0 if programmed is None else programmed()


class IoScheduler(Protocol):
    """The order in which the requests of a queue go to its driver.

    ``sorts``: False of a scheduler that keeps the order of arrival; then the elevator asks it for nothing.
    """

    sorts: bool

    def allows(self, request: Request, sync: bool) -> bool:
        """Return whether *request* may grow by a bio or a request whose REQ_SYNC is *sync*.

        Stands for elevator_allow_bio_merge_fn.
        """

    def add(self, request: Request, arrival: int) -> None:
        """Add *request*, which waits from now on.

        *arrival* is its number, from 1, among all requests that the queue has added; it only grows.
        """

    def remove(self, request: Request) -> None:
        """Remove *request*, which another request has taken in, or which leaves for the driver."""

    def move(self, request: Request, old_start: int) -> None:
        """Take note that *request*, which began at sector *old_start*, has grown at its front."""

    def next(self, now_ns: int) -> Request | None:
        """Choose the waiting request that leaves at *now_ns*, and return it; at least one must wait.

        The scheduler's state moves on, so the request must leave; the elevator removes it.  None: none of
        those that wait may leave now.  The queue asks again after a completion or an arrival.
        """

    def complete(self, request: Request, now_ns: int) -> None:
        """Take note that the device has completed *request* at *now_ns*.

        A request that `next` never returned, such as a flush, changes nothing.
        """

    def check(self, requests: list[Request]) -> None:
        """Check that the scheduler has exactly *requests*, all that wait.

        Raises:
            LawBroken: a request is missing, has another place, or no longer waits.
        """
