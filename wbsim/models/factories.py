"""The types of the ``COMPONENT`` of each kind: the arguments that the machine passes, and the results.

The factory of programs is in `models.workloads.spec`.  A component may be a class or a function.  Spec, rules
and costs have a different class for each kind, so they are `Any` here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from wbsim.models.bio import BlockDevice, IoScheduler
from wbsim.models.interfaces import Filesystem, Flushers, Throttle
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.parts import Parts
from wbsim.models.tracepoints import Signals
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.models.writeback.loop import Writeback
from wbsim.sim.engine import Environment

DeviceFactory = Callable[..., BlockDevice]
"""Called with ``env``, ``spec``, ``name``, and the devices for the spec's ``parts``.

A spec that asks for them also gets ``worker``, a kernel thread, and ``random``, a generator.
"""


class FilesystemFactory(Protocol):
    """Makes a mounted filesystem."""

    def __call__(
        self,
        *,
        parts: Parts,
        sb: MountedSuperblock,
        spec: Any,
        rules: Any,
        writer_costs: Any,
        flusher_costs: Any,
        cache: PageCache,
    ) -> Filesystem:
        """Return a filesystem for *sb*, which has no filesystem yet."""


class IoSchedulerFactory(Protocol):
    """Makes the I/O scheduler of a queue."""

    def __call__(self, *, spec: Any, rules: Any) -> IoScheduler:
        """Return a scheduler without requests; *rules* is None if the scheduler has no rules of eras."""


class ThrottleFactory(Protocol):
    """Makes the throttle of a machine."""

    def __call__(
        self, *, env: Environment, spec: Any, cache: PageCache, processors: int, signals: Signals
    ) -> Throttle:
        """Return a throttle that has not started."""


class FlushersFactory(Protocol):
    """Makes the flushers of a machine."""

    def __call__(
        self, *, parts: Parts, spec: Any, cache: PageCache, writeback: Writeback, interval_ns: int
    ) -> Flushers:
        """Return flushers without any device."""
