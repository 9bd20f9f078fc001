"""The plug of a request queue (to 2.6.38): what comes to an idle queue waits for company.

Stands for blk_plug_device, blk_remove_plug, blk_unplug_timeout and what elv_insert does with them
(block/blk-core.c, block/elevator.c; mechanisms.md 1.1).  A request that comes to an empty elevator closes the
plug; so many requests, a time, a synchronous one, a task that waits for a request, or the end of one open it.
Left out: hints by whoever waits for a page that is not under a sync's writeback, and that kblockd runs the
queue for the timer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from wbsim.models.block.spec import PlugRules
from wbsim.sim.engine import Environment


class QueuePlug:
    """``closed``: requests wait though the driver has room; from *requests* on it does not hold.  *feed* is
    called when its time is over, with *rank*.
    """

    def __init__(
        self, env: Environment, rank: int, requests: int, delay_ns: int, feed: Callable[[], None]
    ) -> None:
        self._env = env
        self._rank = rank
        self._delay_ns = delay_ns
        self._feed = feed
        self._closings = 0
        self.requests = requests
        self.closed = False

    def close(self) -> None:
        """blk_plug_device."""
        if not self.closed:
            self.closed = True
            self._closings += 1
            self._env.call_at(
                self._env.now + self._delay_ns, self._rank, partial(self._timeout, self._closings)
            )

    def _timeout(self, closing: int) -> None:
        if self.closed and closing == self._closings:
            self.closed = False
            self._feed()


def plug_of(rules: PlugRules, env: Environment, rank: int, feed: Callable[[], None]) -> QueuePlug | None:
    """The plug of a queue, where queues have one."""
    if rules.unplug_requests is None or rules.unplug_time is None:
        return None
    return QueuePlug(env, rank, rules.unplug_requests, rules.unplug_time, feed)
