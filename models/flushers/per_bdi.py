"""One flusher per device (2.6.32 and later)."""

from __future__ import annotations

from typing import Any, Literal

from wbsim.models.flushers.spec import FlusherSpec
from wbsim.models.writeback.context_thread import ContextFlushers
from wbsim.models.writeback.wb import first_context


class PerBdiSpec(FlusherSpec):
    """One thread per device."""

    kind: Literal["per_bdi"] = "per_bdi"


def per_bdi(*, spec: PerBdiSpec, **parts: Any) -> ContextFlushers:
    """One context, and one thread, for each device."""
    return ContextFlushers(contexts=lambda _: 1, places=first_context, **parts)


SPEC, COMPONENT = PerBdiSpec, per_bdi
