"""Tasks that sleep until a condition may hold (struct wait_queue_head)."""

from __future__ import annotations

from wbsim.models.interfaces import Thread
from wbsim.sim.engine import PARK, Environment, Steps, Task


class WaitQueue:
    """The tasks that sleep for one *cause*."""

    def __init__(self, env: Environment, cause: str) -> None:
        self._env = env
        self._cause = cause
        self._tasks: list[Task] = []

    def sleep(self, thread: Thread) -> Steps:
        """Let *thread* sleep until `wake_all`; then it must test its condition again.  Use: `yield from`."""
        thread.before_sleep()
        self._tasks.append(thread.task)
        thread.task.waits_for = self._cause
        yield PARK

    def wake_all(self) -> None:
        """Wake all tasks that sleep here; each tests its condition again (wake_up_all)."""
        if self._tasks:
            tasks, self._tasks = self._tasks, []
            for task in tasks:
                self._env.wake(task)
