"""The specs of I/O schedulers; `models.bio.IoScheduler` is what their components do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator

from wbsim.models.io_schedulers.releases import every_name
from wbsim.models.kinds import by_kind, kind_field, kinds
from wbsim.sim.param import BadValue, Count, Flag, Inputs, Named, NoNumbers, Spec, bare, specified


class IoSchedulerSpec(Spec):
    """The I/O scheduler of a queue.

    ``Rules``: the spec for the rules of an era.  ``defaults``: the kernel's values of keys that may be left
    out, with their sources.

    * ``scheduler``: the name of the scheduler as in sysfs.  If a scheduler has two, the first is that of the
      legacy request queue and the other that of blk-mq.
    """

    Rules: ClassVar[type[Spec]] = NoNumbers
    defaults: ClassVar[Inputs] = {}
    scheduler: str

    def pool_size(self, nr_requests: int) -> int:
        """Return the number of requests in each pool of a queue with *nr_requests*; here *nr_requests*.

        This is also the largest number of asynchronous requests.

        Raises:
            BadValue: a key of the scheduler does not fit *nr_requests*.
        """
        return nr_requests


class InOrderSpec(IoSchedulerSpec):
    """No scheduler: requests go to the driver in the order of their arrival."""

    scheduler: Literal["noop", "none"]


class DeadlineRules(Spec):
    """The rules of an era.

    * ``resumes``: a batch in the other direction goes on where the last one of that direction ended (5.14 and
      later).  Earlier, it begins with the oldest request.
    """

    resumes: Flag


class DeadlineSpec(IoSchedulerSpec):
    """Batches of reads or of writes, by sector.

    * ``fifo_batch``: the number of requests in a batch.
    * ``async_depth``: the limit of mq-deadline for requests that are not synchronous reads (5.14 and later);
      without it, no limit.  It is three quarters of nr_requests to 6.8; 6.18 has no limit.
    """

    Rules: ClassVar = DeadlineRules
    defaults: ClassVar[Inputs] = {
        "fifo_batch": specified(16, "docs/kernel/schedulers.md#deadline-and-mq-deadline [V 3.10, 6.12]")
    }
    scheduler: Literal["deadline", "mq-deadline"]
    fifo_batch: Count
    async_depth: Count | None = None

    def pool_size(self, nr_requests: int) -> int:
        """Return the number of requests in each pool of a queue: ``async_depth``, or else *nr_requests*.

        The limit for asynchronous requests is the limit for all here.  The kernel leaves the rest to
        synchronous reads, and the model has only those of metadata.

        Raises:
            BadValue: ``async_depth`` is more than *nr_requests*.
        """
        depth = self.async_depth
        if depth is not None and depth > nr_requests:
            raise BadValue(f"{depth} is more than nr_requests; give at most {nr_requests}", "async_depth")
        return depth or nr_requests


class CfqRules(Spec):
    """The rules of an era.

    * ``low_latency``: few asynchronous requests follow a delayed synchronous one (2.6.32 and later); earlier,
      the device never has more than 16 of them.
    """

    low_latency: Flag


class CfqSpec(IoSchedulerSpec):
    """A slice of time for synchronous requests, then one for the others."""

    Rules: ClassVar = CfqRules
    scheduler: Literal["cfq"]


def _with_its_keys(value: Any) -> Any:
    """Return the table *value*, of which each key must be one of its scheduler.

    Raises:
        BadValue: the kernel's scheduler is not modelled, or a key belongs to another one.
    """
    name = bare(value.get("scheduler")) if isinstance(value, Mapping) else None
    schedulers = kinds("io_schedulers")
    if name in every_name() and name not in schedulers:
        raise BadValue(f"{name} is not modelled; use one of {', '.join(schedulers)}", "scheduler")
    if name in schedulers:
        all_keys = {key for kind in schedulers.values() for key in kind.spec.model_fields}
        for key in value:
            if key in all_keys - set(schedulers[name].spec.model_fields):
                message = f"{bare(value[key])} has no effect: {name} does not have {key}; leave it out"
                raise BadValue(message, key)
    return value


AnyIoScheduler = Annotated[
    IoSchedulerSpec, kind_field("io_schedulers", "scheduler"), BeforeValidator(_with_its_keys)
]
"""The spec of any scheduler in this folder."""
RulesOfIoSchedulers = Annotated[Named[Spec], by_kind("io_schedulers", "Rules")]
"""The rules of the schedulers that have any, by name."""
