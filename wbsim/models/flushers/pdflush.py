"""A pool of threads for all devices (to 2.6.31)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from wbsim.models.factories import FlushersFactory
from wbsim.models.flushers.spec import FlusherSpec
from wbsim.models.writeback.pdflush import Pdflush
from wbsim.sim.param import BadValue, Threads


class PdflushSpec(FlusherSpec):
    """A pool of threads for all devices.

    * ``min_threads``: the smallest number of threads in the pool (MIN_PDFLUSH_THREADS).
    * ``max_threads``: the largest number of threads in the pool (MAX_PDFLUSH_THREADS).
    """

    kind: Literal["pdflush"] = "pdflush"
    min_threads: Threads = 2
    max_threads: Threads = 8

    @model_validator(mode="after")
    def _check(self) -> PdflushSpec:
        if self.max_threads < self.min_threads:
            message = f"{self.max_threads} is less than min_threads; give at least {self.min_threads}"
            raise BadValue(message, "max_threads")
        return self


def pdflush(*, spec: PdflushSpec, **arguments: Any) -> Pdflush:
    """Return the pool, in which ``min_threads`` threads have begun.

    *arguments*: ``parts``, which makes the threads, the page cache (``cache``), the ``writeback``, and the
    interval of periodic writeback (``interval_ns``), as `Pdflush` takes them.
    """
    return Pdflush(min_threads=spec.min_threads, max_threads=spec.max_threads, **arguments)


SPEC = PdflushSpec
COMPONENT: FlushersFactory = pdflush
