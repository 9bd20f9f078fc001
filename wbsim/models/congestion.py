"""congestion_wait: sleep until any queue of the machine leaves congestion, or for a time.

Stands for congestion_wait and clear_bdi_congested of mm/backing-dev.c.  All sleepers wake at once
(docs/kernel/schedulers.md#the-pool-of-requests).
"""

from __future__ import annotations

from functools import partial

from wbsim.models.interfaces import Thread
from wbsim.models.time_accounting import CONGESTION
from wbsim.sim.engine import PARK, Environment, Steps, Task


class Congestion:
    """The tasks in congestion_wait; *rank* orders their timers."""

    def __init__(self, env: Environment, rank: int) -> None:
        self._env = env
        self._rank = rank
        self.sleepers: dict[Task, int] = {}
        self._sleeps = 0

    def wait(self, thread: Thread, at_most_ns: int) -> Steps:
        """Let *thread* sleep until a queue leaves congestion, at most for *at_most_ns*.

        Use: `yield from`.
        """
        task = thread.task
        thread.before_sleep()
        self._sleeps += 1
        self.sleepers[task] = self._sleeps
        self._env.call_at(self._env.now + at_most_ns, self._rank, partial(self._timeout, task, self._sleeps))
        task.waits_for = CONGESTION
        yield PARK

    def end(self) -> None:
        """Wake all sleepers, because a queue left congestion.

        The pool of that queue's requests calls this (`models.block.request_pool.RequestList`).
        """
        sleepers = list(self.sleepers)
        self.sleepers.clear()
        for task in sleepers:
            self._env.wake(task)

    def _timeout(self, task: Task, sleep: int) -> None:
        if self.sleepers.get(task) == sleep:
            del self.sleepers[task]
            self._env.wake(task)
