"""One flusher per device (2.6.32 and later)."""

from __future__ import annotations

from typing import Any, Literal

from models.flushers.spec import FlusherSpec
from models.writeback.context_thread import ContextFlushers


class PerBdiSpec(FlusherSpec):
    """One thread per device."""

    kind: Literal["per_bdi"] = "per_bdi"


class PerBdi(ContextFlushers):
    """One context, and one thread, for each device."""

    def __init__(self, *, spec: PerBdiSpec, **parts: Any) -> None:
        super().__init__(contexts=1, **parts)


SPEC, COMPONENT = PerBdiSpec, PerBdi
