"""One flusher per device (2.6.32 and later)."""

from __future__ import annotations

from typing import Any, Literal

from wbsim.models.factories import FlushersFactory
from wbsim.models.flushers.spec import FlusherSpec
from wbsim.models.writeback.context_thread import ContextFlushers
from wbsim.models.writeback.wb import first_context
from wbsim.sim.param import Ns


class PerBdiSpec(FlusherSpec):
    """One thread per device.

    * ``exits_after``: the thread is made when it is needed, and exits when it has written nothing for this
      time (2.6.32 to 3.9).  Without it, a workqueue does the work.
    """

    kind: Literal["per_bdi"] = "per_bdi"
    exits_after: Ns | None = None


def per_bdi(*, spec: PerBdiSpec, **arguments: Any) -> ContextFlushers:
    """Return flushers with one context, and one thread, for each device that is registered.

    *arguments*: ``parts``, which makes the threads, the page cache (``cache``), the ``writeback``, and the
    interval of periodic writeback (``interval_ns``), as `ContextFlushers` takes them.
    """
    return ContextFlushers(
        contexts=lambda _: 1, places=first_context, exits_after_ns=spec.exits_after, **arguments
    )


SPEC = PerBdiSpec
COMPONENT: FlushersFactory = per_bdi
