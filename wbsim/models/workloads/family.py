"""A program's processes: a parent, which starts its children and waits for them."""

from __future__ import annotations

from wbsim.models.parts import Parts
from wbsim.models.seams import Thread
from wbsim.models.spent import CHILDREN, PARENT, PROCESS, system_ns
from wbsim.sim.engine import PARK, Steps


class Family:
    """A ``parent``, and so many ``children``; ``running``: how many of these have begun and are not over."""

    def __init__(self, parts: Parts, children: int) -> None:
        self._env = parts.env
        self.parent = parts.thread(PARENT)
        self.children: list[Thread] = [parts.process(f"{PROCESS} {i}") for i in range(children)]
        self.running = 0
        self._waits = False

    @property
    def system_ns(self) -> int:
        """System time of all children: work and spinning, as time(1) sees it."""
        return sum(system_ns(child.task, child.spent) for child in self.children)

    @property
    def user_ns(self) -> int:
        """User time of all children."""
        return sum(child.spent.user for child in self.children)

    def fork(self, child: Thread, steps: Steps, fork_ns: int, start_ns: int = 0) -> Steps:
        """The parent takes *fork_ns* to start *child*, which begins *start_ns* later."""
        self.parent.spent.fork += fork_ns
        yield fork_ns
        child.task.on_exit = self._exited
        self.running += 1
        self._env.start(child.task, steps, start_ns)

    def wait(self) -> Steps:
        """wait(2), until no child is running."""
        while self.running:
            self._waits = True
            self.parent.task.waits_for = CHILDREN
            yield PARK
            self._waits = False

    def _exited(self) -> None:
        self.running -= 1
        if not self.running and self._waits:
            self._env.wake(self.parent.task)
