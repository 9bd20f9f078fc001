"""Several flushers per device (the series of report W25): each context has lists, a thread and estimates of
its own.
"""

from __future__ import annotations

from typing import Any, Literal

from models.flushers.spec import FlusherSpec
from models.writeback.context_thread import ContextFlushers
from sim.param import Count


class ParallelSpec(FlusherSpec):
    """How many ``contexts`` each device has; new inodes get one in turn."""

    kind: Literal["parallel"] = "parallel"
    contexts: Count


def parallel(*, spec: ParallelSpec, **parts: Any) -> ContextFlushers:
    """Several contexts, and as many threads, for each device."""
    return ContextFlushers(contexts=spec.contexts, **parts)


SPEC, COMPONENT = ParallelSpec, parallel
