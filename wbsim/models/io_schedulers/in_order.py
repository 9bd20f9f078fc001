"""noop and none: requests go to the driver in the order of their arrival."""

from __future__ import annotations

from wbsim.models.bio import IoScheduler
from wbsim.models.io_schedulers.spec import InOrderSpec
from wbsim.sim.param import Spec


class InOrder(IoScheduler):
    """The elevator has the requests in this order, so nothing is left to do."""

    def __init__(self, *, spec: InOrderSpec, rules: Spec | None) -> None:
        self.sorts = False


SPEC, COMPONENT = InOrderSpec, InOrder
