"""The requests that wait between the plugs and the driver, by scheduler, and the bios that may join them.

The queues are those of `models.block.elevator`.  A dispatch first takes several requests out of their queue
and then issues them.  A capture shows only the issue, not when a request leaves its queue.  Before its issue
a request may be *leaving*: the kernel's decisions show whether a bio can still join it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from wbsim.models.bio import Bio, Request
from wbsim.models.block.elevator import Elevator, SoftwareQueue
from wbsim.models.block.merge import FRONT, NEW, Bounds, Merge
from wbsim.models.io_schedulers.deadline import Deadline
from wbsim.models.io_schedulers.spec import DeadlineRules, DeadlineSpec

SCHEDULERS: Final = ("none", "kyber", "mq-deadline", "bfq")


def _by_sector() -> Deadline:
    """Return a scheduler that sorts; a replay takes each request out as the captured kernel did."""
    return Deadline(spec=DeadlineSpec(scheduler="deadline", fifo_batch=16), rules=DeadlineRules(resumes=True))


class Waiting:
    """The requests of one device that left a plug and are not issued.

    `replay` asks which of them a bio joins.

    *scheduler* is one of `SCHEDULERS`, and *bounds* limit a request.  In all methods, task *pid* on processor
    *cpu* submits the bio or inserts the request.

    * none: one software queue per processor; a dispatch takes the requests of all queues.
    * kyber: one software queue per processor and operation; a dispatch takes all of one operation.
    * mq-deadline: one elevator.
    * bfq: one elevator for the synchronous bios of each process, and one for all other bios.
    """

    def __init__(self, scheduler: str, bounds: Bounds) -> None:
        self._scheduler = scheduler
        self._bounds = bounds
        self._queues: dict[Hashable, Elevator | SoftwareQueue] = {}
        self._places: dict[Request, Hashable] = {}
        self._by_start: dict[int, Request] = {}
        self._insertion_lines: dict[Request, int] = {}
        self._departures: dict[int, tuple[Request, Hashable]] = {}

    def attempt_merge(self, bio: Bio, pid: int, cpu: int) -> Merge:
        """Join *bio* to a waiting request if the rules allow it.

        Return BACK or FRONT if it joined, else NEW, and then nothing changes.
        """
        queue = self._queues.get(self._key(bio, pid, cpu))
        if queue is None or not queue.requests:
            return NEW
        merge = queue.attempt_merge(bio)
        if merge is FRONT:
            self._by_start.pop(bio.end_sector, None)
            target = next(
                (request for request in queue.requests if request.start_sector == bio.start_sector), None
            )
            if target is not None:
                self._by_start[bio.start_sector] = target
        return merge

    def neighbours(self, bio: Bio, pid: int, cpu: int) -> list[Request]:
        """Return the waiting requests that *bio* touches and would be tried against."""
        queue = self._queues.get(self._key(bio, pid, cpu))
        return [] if queue is None else queue.neighbours(bio)

    def insert(self, request: Request, pid: int, cpu: int, line: int) -> None:
        """Insert *request*, which left its plug for the scheduler in *line* of the capture.

        In an elevator, a request that continues a waiting one may be appended to that request.
        """
        self._insert(request, self._key(request.bios[0], pid, cpu))
        self._insertion_lines[request] = line

    def insertion_line(self, request: Request) -> int:
        """Return the line of the capture in which *request* was inserted; 0 after `recall`.

        *request* must be waiting.
        """
        return self._insertion_lines[request]

    def issue(self, start_sector: int) -> None:
        """Remove the request at *start_sector*, which is issued; the requests taken with it are leaving.

        An unknown sector changes nothing.
        """
        self._departures.pop(start_sector, None)
        request = self._by_start.get(start_sector)
        if request is None:
            return
        companions = self._taken_with(request)
        self._remove(request)
        for companion in companions:
            self.leave(companion)

    def leave(self, request: Request) -> None:
        """Take *request*, which must be waiting, out of its queue and mark it as leaving.

        No bio can join the request, which is not issued yet.
        """
        self._departures[request.start_sector] = request, self._places[request]
        self._remove(request)

    def set_one_hit(self, bio: Bio, pid: int, cpu: int) -> None:
        """Set the last merged request to the request that *bio* continues (nomerges 1).

        The kernel joined *bio*, so the request that had been taken for the last merged one has left.  Without
        an elevator, or a request that *bio* continues, nothing changes.
        """
        queue = self._queues.get(self._key(bio, pid, cpu))
        if isinstance(queue, Elevator):
            queue.set_one_hit(bio)

    def recall(self, bio: Bio) -> int | None:
        """Put the leaving request that the kernel joined *bio* to back into its queue.

        Returns:
            The first sector of the request; None if *bio* touches no leaving request.
        """
        for start, (request, key) in self._departures.items():
            if request.end_sector == bio.start_sector or start == bio.end_sector:
                del self._departures[start]
                self._insert(request, key)
                self._insertion_lines[request] = 0
                return start
        return None

    def _insert(self, request: Request, key: Hashable) -> None:
        queue = self._queues.get(key)
        if queue is None:
            sorts = self._scheduler in ("mq-deadline", "bfq")
            queue = self._queues[key] = (
                Elevator(_by_sector(), self._bounds) if sorts else SoftwareQueue(self._bounds)
            )
        if queue.insert(request):
            self._places[request] = key
            self._by_start[request.start_sector] = request

    def _taken_with(self, request: Request) -> list[Request]:
        """Return the requests that a dispatch takes with *request*."""
        if self._scheduler == "none":
            return [companion for companion in self._places if companion is not request]
        if self._scheduler == "kyber":
            return [
                companion
                for companion in self._places
                if companion is not request and companion.op == request.op
            ]
        return []

    def _remove(self, request: Request) -> None:
        queue = self._queues[self._places.pop(request)]
        self._insertion_lines.pop(request, None)
        if request in queue.requests:
            queue.remove(request)
        if self._by_start.get(request.start_sector) is request:
            del self._by_start[request.start_sector]

    def _key(self, bio: Bio, pid: int, cpu: int) -> Hashable:
        if self._scheduler == "none":
            return cpu
        if self._scheduler == "kyber":
            return cpu, bio.op
        if self._scheduler == "bfq":
            return pid if bio.sync else None
        return None
