"""The specs of the block layer: limits of a queue, its scheduler, the plug, and costs of a request."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from wbsim.models.block.schedulers import BY_DEADLINE, FIRST_IN_FIRST_OUT, Scheduler, modelled
from wbsim.sim.param import BadValue, Bytes, BytesOrNone, Count, Flag, Ns, Spec, number
from wbsim.sim.units import PAGE_BYTES, SECTOR_BYTES

MAX_DISCARD_BYTES: Final = (1 << 32) - SECTOR_BYTES
"""What a bio can hold, and hence a discard on a device that does not say."""


class QueueLimits(Spec):
    """The limits in /sys/block/*/queue; ``nomerges`` 0 merges all, 1 only cheap ones, 2 none.

    A page fits into a request and a segment (blk_validate_limits).
    Discards have a limit of their own (discard_max_bytes) and no segments.
    """

    max_sectors_bytes: Annotated[Bytes, Field(ge=PAGE_BYTES, multiple_of=SECTOR_BYTES)]
    max_segments: Count
    max_segment_bytes: Annotated[Bytes, Field(ge=PAGE_BYTES)]
    nomerges: Annotated[Literal[0, 1, 2], BeforeValidator(number)]
    max_discard_bytes: BytesOrNone = MAX_DISCARD_BYTES

    def segments_of(self, size_bytes: int, page_bytes: int = PAGE_BYTES) -> int:
        """Physical segments of *size_bytes* in memory whose runs are *page_bytes* long."""
        run = min(self.max_segment_bytes, page_bytes)
        return -(-size_bytes // run)


class PlugRules(Spec):
    """The rules of a plug in one era (mechanisms.md 1.2, 1.3), and what two that merge have in common.

    ``tried``: which plugged requests of its queue a bio is tried against (tail: the newest of all or, where
    that is another queue's, the oldest of its own); ``max_requests`` and
    ``max_requests_mixed``: how many requests a plug holds at most (a plug of several queues may
    hold more); ``flush_bytes``: a new request flushes the plug first if the ``flush_of`` request has
    this size and the queue merges at all; ``order``: in which order a flush issues; ``order_mixed``: the same
    for a plug of several queues that holds more than ``mixed_above`` requests (queue: as they came, queue by
    queue); ``meta_apart``: a bio with REQ_META joins no request without, nor the reverse.

    To 2.6.38 no task has a plug, but each queue (mechanisms.md 1.1): it holds less than ``unplug_requests``,
    for ``unplug_time`` (q->unplug_thresh, q->unplug_delay); None: it has none.
    """

    tried: Literal["all", "newest", "oldest", "tail"]
    max_requests: Count | None
    max_requests_mixed: Count | None
    flush_bytes: Bytes | None
    flush_of: Literal["newest", "oldest"]
    order: Literal["sector", "fifo", "lifo"]
    order_mixed: Literal["sector", "fifo", "lifo", "queue"]
    mixed_above: Count
    meta_apart: Flag
    unplug_requests: Count | None = None
    unplug_time: Ns | None = None


class ElevatorRules(Spec):
    """The I/O scheduler of a queue.

    ``scheduler`` is a name as in sysfs.  deadline and mq-deadline dispatch by sector in batches of
    ``fifo_batch``.  cfq dispatches synchronous requests first, by sector from the end of the last request.

    ``async_depth``: how many of the queue's requests may be others than synchronous reads, where mq-deadline
    has the limit (5.14 and later; three quarters of nr_requests to 6.8, none on 6.18); None: all.
    """

    scheduler: Annotated[Scheduler, BeforeValidator(modelled)]
    fifo_batch: Count
    async_depth: Count | None = None

    @model_validator(mode="after")
    def _check(self) -> ElevatorRules:
        if self.async_depth is not None and self.scheduler not in BY_DEADLINE:
            what = f"{self.async_depth}: {self.scheduler} has no such limit; leave it out"
            raise BadValue(what, "async_depth")
        return self

    @property
    def sorts(self) -> bool:
        """True if the scheduler dispatches by sector."""
        return self.scheduler not in FIRST_IN_FIRST_OUT


class QueueSpec(Spec):
    """One request queue: its limits, its scheduler, its pool and the driver's depth.

    ``write_cache`` as in sysfs; ``wbt``: whether wbt_lat_usec is not 0, where the kernel has it;
    ``interrupts``: whether any processor that runs a process hears of a request's end, or the one that
    submitted it, as where each has a hardware queue of its own.

    ``queue_depth``: the depth that a SCSI driver sets for the device, from which writeback throttling
    computes its limits; None: ``nr_requests``.
    """

    limits: QueueLimits
    elevator: ElevatorRules
    nr_requests: Count
    driver_depth: Count
    write_cache: Literal["write back", "write through"]
    wbt: Flag
    interrupts: Literal["any", "submitter"]
    queue_depth: Count | None = None

    @model_validator(mode="after")
    def _check(self) -> QueueSpec:
        depth = self.elevator.async_depth
        if depth is not None and depth > self.nr_requests:
            what = f"{depth} is more than nr_requests, {self.nr_requests}; give less"
            raise BadValue(what, "elevator", "async_depth")
        return self


class BlockCosts(Spec):
    """Processor time per request: of the submitter to make, to insert (under the queue lock) and to issue
    it, and of the interrupt that completes it, whoever is interrupted.
    """

    request_ns: Ns
    insert_ns: Ns
    dispatch_ns: Ns
    complete_ns: Ns
