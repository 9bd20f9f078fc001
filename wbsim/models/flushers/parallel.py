"""Several flushers per device (the series of report W25).

Each context has separate lists, a thread and separate estimates.  Stands for the array bdi->wb_ctx[], which a
mount of XFS grows to one context for each allocation group.  Stands also for an earlier posting of the
series, with as many contexts as processors (docs/kernel/flushers.md#several-contexts).  Left out: a write to
bdi/nwritebacks while files are dirty.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from wbsim.models.factories import FlushersFactory
from wbsim.models.flushers.spec import FlusherSpec
from wbsim.models.parts import Parts
from wbsim.models.writeback.context_thread import ContextFlushers
from wbsim.models.writeback.wb import BackingDevice, Places
from wbsim.sim.param import Threads

_GOLDEN_RATIO_64: Final = 0x61C8864680B583EB
_WORD: Final = 1 << 64


def _by_group(group: int, number: int, cpu: int) -> int:
    return group


def _by_hash(group: int, number: int, cpu: int) -> int:
    """Return hash_64 of the inode's number: the upper half of a product.

    >>> [_by_hash(0, number, 0) % 4 for number in (64, 65, 66, 67)]
    [0, 2, 1, 3]
    """
    return number * _GOLDEN_RATIO_64 % _WORD >> 32


def _by_processor(group: int, number: int, cpu: int) -> int:
    return cpu


_PLACES: Final[dict[str, Places]] = {
    "allocation_group": _by_group,
    "hash": _by_hash,
    "processor": _by_processor,
}


class ParallelSpec(FlusherSpec):
    """Several contexts for each device.

    * ``by``: the context of an inode follows from its allocation group, from a hash of its number, or from
      the processor that creates it.  Without allocation groups, ``allocation_group`` means the first context.
    * ``contexts``: the number of contexts; without it, one for each allocation group if ``by`` is
      ``allocation_group``, otherwise one for each processor.
    """

    kind: Literal["parallel"] = "parallel"
    by: Literal["allocation_group", "hash", "processor"]
    contexts: Threads | None = None


def parallel(*, parts: Parts, spec: ParallelSpec, **arguments: Any) -> ContextFlushers:
    """Return flushers with several contexts, and as many threads, for each device that is registered.

    *parts* makes the threads, and has the number of processors.  *arguments*: the page cache (``cache``), the
    ``writeback``, and the interval of periodic writeback (``interval_ns``), as `ContextFlushers` takes them.
    """

    def contexts(bdi: BackingDevice) -> int:
        if spec.contexts is not None:
            return spec.contexts
        return bdi.groups if spec.by == "allocation_group" else parts.processors

    return ContextFlushers(parts=parts, contexts=contexts, places=_PLACES[spec.by], **arguments)


SPEC = ParallelSpec
COMPONENT: FlushersFactory = parallel
