"""A device that takes no time, so that a run shows the cost of the software alone."""

from __future__ import annotations

from collections.abc import Callable

from wbsim.models.bio import BlockDevice, Write
from wbsim.models.devices.in_order import InOrder
from wbsim.models.devices.spec import NullSpec
from wbsim.models.factories import DeviceFactory
from wbsim.sim.engine import Environment


class NullDevice(BlockDevice):
    """Completes each request at the instant of its submission."""

    def __init__(self, *, env: Environment, spec: NullSpec, name: str) -> None:
        self._env = env
        self._ends = InOrder(env)

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """Take *request*; *done* is called later at this instant."""
        self._ends.add(self._env.now, done)


SPEC = NullSpec
COMPONENT: DeviceFactory = NullDevice
