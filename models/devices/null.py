"""A device that takes no time: what is left is the cost of the software."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wbsim.models.bio import BatchDevice, BlockDevice, Write
from wbsim.models.devices.spec import NullSpec
from wbsim.sim.engine import Environment


class NullDevice(BlockDevice, BatchDevice):
    """Completes each request at the instant at which it comes."""

    def __init__(self, *, env: Environment, spec: NullSpec, name: str) -> None:
        self._env = env
        self.batches: BatchDevice | None = self
        self.rank = env.next_rank()

    def uses(self) -> dict[str, float]:
        """See `BlockDevice.uses`: none."""
        return {}

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """See `BlockDevice.submit`."""
        self._env.call_at(self._env.now, self.rank, done)

    def submit_batch(
        self, starts: NDArray[np.int64], ends: NDArray[np.int64], done: Callable[[], None]
    ) -> None:
        """See `BatchDevice.submit_batch`."""
        self._env.call_at(self._env.now, self.rank, done)


SPEC, COMPONENT = NullSpec, NullDevice
