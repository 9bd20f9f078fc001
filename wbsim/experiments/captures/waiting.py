"""What waits between the plugs and the driver, per scheduler, and which of it a bio may join.

The queues are `models.block.elevator`'s.  When a request leaves its queue, a capture does not say: a dispatch
takes several requests first and issues them then, and only the issue is shown.  Until that a request may be
*leaving*: the kernel's own decisions tell whether it still is where a bio can join it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from wbsim.models.bio import Bio, Request
from wbsim.models.block.elevator import Elevator, SoftwareQueue
from wbsim.models.block.merge import FRONT, NEW, Bounds, Merge
from wbsim.models.block.spec import ElevatorRules

SCHEDULERS: Final = ("none", "kyber", "mq-deadline", "bfq")


class Waiting:
    """The requests of one device that left a plug and are not issued.

    none: a software queue per processor, and a run takes all; kyber: the same per operation;
    mq-deadline: one elevator; bfq: one per process that writes synchronously, one for the rest.
    """

    def __init__(self, scheduler: str, bounds: Bounds) -> None:
        self._scheduler = scheduler
        self._bounds = bounds
        self._rules = ElevatorRules.model_validate({"scheduler": "deadline", "fifo_batch": 16})
        self._queues: dict[Hashable, Elevator | SoftwareQueue] = {}
        self._places: dict[Request, Hashable] = {}
        self._by_start: dict[int, Request] = {}
        self._since: dict[Request, int] = {}
        self._leaving: dict[int, tuple[Request, Hashable]] = {}

    def attempt_merge(self, bio: Bio, pid: int, cpu: int) -> Merge:
        """BACK or FRONT if *bio*, submitted by *pid* on *cpu*, joined a waiting request, else NEW."""
        queue = self._queues.get(self._key(bio, pid, cpu))
        if queue is None or not queue.waiting:
            return NEW
        merge = queue.attempt_merge(bio)
        if merge is FRONT:
            self._by_start.pop(bio.end_sector, None)
            moved = next(
                (request for request in queue.waiting if request.start_sector == bio.start_sector), None
            )
            if moved is not None:
                self._by_start[bio.start_sector] = moved
        return merge

    def touching(self, bio: Bio, pid: int, cpu: int) -> list[Request]:
        """The requests here that *bio* would be tried against."""
        queue = self._queues.get(self._key(bio, pid, cpu))
        return [] if queue is None else queue.touching(bio)

    def insert(self, request: Request, pid: int, cpu: int, line: int) -> None:
        """*request* left its plug for the scheduler, in that *line* of the capture."""
        self._insert(request, self._key(request.bios[0], pid, cpu))
        self._since[request] = line

    def since(self, request: Request) -> int:
        """The line in which *request* came here."""
        return self._since[request]

    def issue(self, start_sector: int) -> None:
        """The request that starts there goes to the driver; who was taken with it is leaving."""
        self._leaving.pop(start_sector, None)
        request = self._by_start.get(start_sector)
        if request is None:
            return
        along = self._taken_with(request)
        self._remove(request)
        for other in along:
            self.leave(other)

    def leave(self, request: Request) -> None:
        """*request* cannot be joined, for all that the kernel did, and is not issued."""
        self._leaving[request.start_sector] = request, self._places[request]
        self._remove(request)

    def set_one_hit(self, bio: Bio, pid: int, cpu: int) -> None:
        """With nomerges 1 the kernel joined *bio* to what merged last: what was thought to be that has
        left.
        """
        queue = self._queues.get(self._key(bio, pid, cpu))
        if isinstance(queue, Elevator):
            queue.set_one_hit(bio)

    def recall(self, bio: Bio) -> int | None:
        """The kernel found a request for *bio* to join: it had not left; its first sector."""
        for start, (request, key) in self._leaving.items():
            if request.end_sector == bio.start_sector or start == bio.end_sector:
                del self._leaving[start]
                self._insert(request, key)
                self._since[request] = 0
                return start
        return None

    def _insert(self, request: Request, key: Hashable) -> None:
        queue = self._queues.get(key)
        if queue is None:
            sorts = self._scheduler in ("mq-deadline", "bfq")
            queue = self._queues[key] = (
                Elevator(self._rules, self._bounds) if sorts else SoftwareQueue(self._bounds)
            )
        if queue.insert(request):
            self._places[request] = key
            self._by_start[request.start_sector] = request

    def _taken_with(self, request: Request) -> list[Request]:
        """A run takes all software queues; kyber's, all of one operation."""
        if self._scheduler == "none":
            return [other for other in self._places if other is not request]
        if self._scheduler == "kyber":
            return [other for other in self._places if other is not request and other.op == request.op]
        return []

    def _remove(self, request: Request) -> None:
        queue = self._queues[self._places.pop(request)]
        self._since.pop(request, None)
        if request in queue.waiting:
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
