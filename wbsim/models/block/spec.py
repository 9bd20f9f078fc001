"""The specs of the block layer: limits of a queue, its scheduler, the plug, and costs of a request."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from wbsim.models.io_schedulers.spec import AnyIoScheduler
from wbsim.sim.param import BadValue, Bytes, BytesOrNone, Count, Flag, Ns, Spec, number
from wbsim.sim.units import PAGE_BYTES, SECTOR_BYTES

MAX_DISCARD_BYTES: Final = (1 << 32) - SECTOR_BYTES
"""The size of the largest bio, and so of a discard on a device that reports no limit."""


class QueueLimits(Spec):
    """The limits in /sys/block/*/queue.

    A request and a segment hold at least one page (blk_validate_limits).  Discards have no segments.

    * ``max_sectors_bytes``: the size of the largest request (max_sectors_kb).
    * ``max_segments``: the largest number of segments of a request.
    * ``max_segment_bytes``: the size of the largest segment (max_segment_size).
    * ``nomerges``: 0 tries all merges, 1 only cheap merges, 2 none.
    * ``max_discard_bytes``: the size of the largest discard (discard_max_bytes).
    """

    max_sectors_bytes: Annotated[Bytes, Field(ge=PAGE_BYTES, multiple_of=SECTOR_BYTES)]
    max_segments: Count
    max_segment_bytes: Annotated[Bytes, Field(ge=PAGE_BYTES)]
    nomerges: Annotated[Literal[0, 1, 2], BeforeValidator(number)]
    max_discard_bytes: BytesOrNone = MAX_DISCARD_BYTES

    def segments_of(self, size_bytes: int, page_bytes: int = PAGE_BYTES) -> int:
        """Return the number of segments of *size_bytes* of memory in contiguous runs of *page_bytes* each.

        A segment has one run, or ``max_segment_bytes`` of it if that is less.  The number is rounded up.
        """
        run = min(self.max_segment_bytes, page_bytes)
        return -(-size_bytes // run)


class PlugRules(Spec):
    """The rules of a plug in one era (docs/kernel/plugs.md), and a rule for merges.

    To 2.6.38 each queue has a plug, and no task has.

    * ``tried``: the plugged requests of its queue against which a bio is tried.  ``newest`` is the newest
      request of the bio's queue.  ``last`` is the newest request in the plug, if it is of the bio's queue.
      ``tail`` is that request, too, or otherwise the oldest request of the bio's queue.
    * ``max_requests``: the largest number of requests in a plug; without it, no limit.
    * ``max_requests_mixed``: the limit for a plug with requests of several queues; without it,
      ``max_requests`` limits the requests of each queue separately.
    * ``flush_bytes``: a new request flushes the plug first if the ``flush_of`` request has this size and the
      queue merges at all; without it, never.
    * ``flush_of``: the request whose size is compared with ``flush_bytes``.
    * ``order``: the order in which a flush issues requests of one queue directly: without a scheduler, and
      while the task goes on.
    * ``order_scheduler``: the order for one queue with a scheduler, or when the task goes to sleep.
    * ``order_mixed``: the order for a plug of several queues that holds more than ``mixed_above`` requests.
      ``queue`` is the order of arrival, queue by queue.
    * ``mixed_above``: the number of requests above which ``order_mixed`` holds.
    * ``meta_apart``: a bio and a request merge only if both or neither have REQ_META.
    * ``insertion_repeats``: a waiting request that took in a plugged one then joins the request in front of
      it, and so on (3.8 and later).
    * ``unplug_requests``: the number of requests at which the plug of a queue opens (q->unplug_thresh);
      without it, the queue has no plug.
    * ``unplug_time``: the time after which the plug of a queue opens (q->unplug_delay); without it, the queue
      has no plug.
    """

    tried: Literal["all", "newest", "last", "oldest", "tail"]
    max_requests: Count | None
    max_requests_mixed: Count | None
    flush_bytes: Bytes | None
    flush_of: Literal["newest", "oldest"]
    order: Literal["sector", "fifo", "lifo"]
    order_scheduler: Literal["sector", "fifo", "lifo"]
    order_mixed: Literal["sector", "fifo", "lifo", "queue"]
    mixed_above: Count
    meta_apart: Flag
    insertion_repeats: Flag
    unplug_requests: Count | None = None
    unplug_time: Ns | None = None


class QueueSpec(Spec):
    """One request queue: its limits, its scheduler, its pool and the driver's depth.

    * ``nr_requests``: the number of requests in the pool of the queue.
    * ``driver_depth``: the largest number of requests that the driver has at once.
    * ``write_cache``: the kind of the device's cache, as in sysfs.  The device decides, so it may be left
      out: a device with a volatile cache is write back, any other is write through.
    * ``fua``: the device completes a write with FUA only when it is safe.
    * ``wbt``: the queue has writeback throttling, in kernels that have it; wbt_lat_usec is not 0.
    * ``interrupts``: the processor that the end of a request interrupts.  ``any``: a random processor.
      ``submitter``: the processor that submitted the request, as with a hardware queue for each processor.
    * ``queue_depth``: the depth that a SCSI driver sets for the device, from which writeback throttling
      computes its limits; without it, ``nr_requests``.
    """

    limits: QueueLimits
    elevator: AnyIoScheduler
    nr_requests: Count
    driver_depth: Count
    wbt: Flag
    interrupts: Literal["any", "submitter"]
    write_cache: Literal["write back", "write through"] | None = None
    fua: Flag = False
    queue_depth: Count | None = None

    @model_validator(mode="after")
    def _check(self) -> QueueSpec:
        try:
            self.elevator.pool_size(self.nr_requests)
        except BadValue as error:
            raise BadValue(str(error), "elevator", *error.path) from None
        return self


class BlockCosts(Spec):
    """The processor time per request.

    * ``request_ns``: the submitter's time to make the request.
    * ``insert_ns``: the submitter's time to insert the request under the queue lock.
    * ``dispatch_ns``: the submitter's time to issue the request.
    * ``complete_ns``: the time of the interrupt that completes the request.
    """

    request_ns: Ns
    insert_ns: Ns
    dispatch_ns: Ns
    complete_ns: Ns
