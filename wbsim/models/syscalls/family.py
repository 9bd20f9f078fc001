"""The processes of a program: a parent that forks children and waits for them."""

from __future__ import annotations

from collections.abc import Sequence

from wbsim.models.parts import Parts
from wbsim.models.scheduler.cpu import sleep
from wbsim.models.syscalls.latency import Latencies
from wbsim.models.syscalls.process import Process, SystemCalls
from wbsim.models.time_accounting import CHILDREN, IO_WORKER, PARENT, PAUSE, PROCESS, system_ns
from wbsim.sim.engine import PARK, CallError, Steps


class Family:
    """A ``parent`` and its *count* ``children``; ``live_count`` children have begun and not ended.

    ``failed``: the number of children that an error ended, by its message.  Children with an equal entry in
    *jobs* share the latencies of their system calls; without *jobs*, the parent and all children do.
    """

    def __init__(self, parts: Parts, calls: SystemCalls, count: int, jobs: Sequence[str] = ()) -> None:
        self._env = parts.env
        self._latencies = Latencies()  # of the parent, and of children without a job
        self.job_latencies = {job: Latencies() for job in jobs}
        self.parent = calls.process(parts.thread(PARENT), parts.variation(PARENT), self._latencies)
        names = [f"{PROCESS} {number}" for number in range(count)]
        self.children = [
            calls.process(
                parts.process(name),
                parts.variation(name),
                self.job_latencies[jobs[number]] if jobs else self._latencies,
            )
            for number, name in enumerate(names)
        ]
        self._workers_of: dict[Process, list[Process]] = {}
        self.io_workers: list[Process] = []
        """The threads of the children that do what io_uring hands over."""
        self.live_count = 0
        self.failed: dict[str, int] = {}
        self._parts = parts
        self._calls = calls
        self._waits = False

    @property
    def latencies(self) -> Latencies:
        """The latencies of all system calls of the parent, its children and their workers, up to now."""
        if not self.job_latencies:
            return self._latencies
        together = Latencies()
        for latencies in (self._latencies, *self.job_latencies.values()):
            together.include(latencies)
        return together

    def io_worker(self, child: Process, number: int) -> Process:
        """Return a new thread of *child*, one of ``children``, that makes writes of its ring.

        *number*: no other worker of *child* has the same.  Its system time and latencies count with those of
        *child*; `Ring` starts it.
        """
        name = f"{PROCESS} {self.children.index(child)}/{IO_WORKER} {number}"
        worker = self._calls.process(self._parts.thread(name), self._parts.variation(name), child.latencies)
        self.io_workers.append(worker)
        self._workers_of.setdefault(child, []).append(worker)
        return worker

    @property
    def system_ns(self) -> int:
        """Return the system time (ns) of all children, without the parent, as `system_ns_of` has it."""
        return self.system_ns_of(self.children)

    @property
    def user_ns(self) -> int:
        """Return the user time (ns) of all children so far, without the parent, as `user_ns_of` has it."""
        return self.user_ns_of(self.children)

    def system_ns_of(self, children: Sequence[Process]) -> int:
        """Return the system time (ns) of some *children*, as of a job, and of the workers of their rings.

        The time is work in the kernel, spinning and interrupts so far, as time(1) sees it.
        """
        workers = [worker for child in children for worker in self._workers_of.get(child, ())]
        return sum(system_ns(child.task, child.spent) for child in (*children, *workers))

    def user_ns_of(self, children: Sequence[Process]) -> int:
        """Return the user time (ns) of some *children* so far, with the pauses through which they spun.

        The workers of their rings have none.
        """
        return sum(child.spent.user + child.spent.pause for child in children)

    def fork(self, child: Process, steps: Steps, fork_ns: int, start_ns: int = 0) -> Steps:
        """Let the parent take *fork_ns* to start *child*, which runs *steps* from *start_ns* after that on.

        Use: `yield from`, in the parent; *child* then runs by itself.  A `CallError` in *steps* ends the
        child early, and ``failed`` counts it.
        """
        yield self.prints(fork_ns)
        child.forked()
        child.task.on_exit = self._exited
        self.live_count += 1
        self._env.start(child.task, self._until_error(child, steps), start_ns)

    def _until_error(self, child: Process, steps: Steps) -> Steps:
        """Run *child* until it ends; an error of a system call ends it early, as exit(2) does."""
        try:
            yield steps
        except CallError as error:
            self.failed[str(error)] = self.failed.get(str(error), 0) + 1
            yield child.exits()

    def prints(self, ns: int) -> int:
        """Add *ns* to the parent's time for forks and printing; return *ns*, which it must yield."""
        self.parent.spent.fork += ns
        return ns

    def wait(self) -> Steps:
        """Let the parent sleep until no child is running (wait(2)).  Use: `yield from`."""
        while self.live_count:
            self._waits = True
            self.parent.task.waits_for = CHILDREN
            yield PARK
            self._waits = False

    def wait_for(self, ns: int) -> Steps:
        """Let the parent sleep for *ns* while its children run, as fio does between two looks.

        Use: `yield from`.
        """
        return sleep(self.parent.task, ns, CHILDREN)

    def rest(self, ns: int) -> Steps:
        """Let the parent of an endless program sleep for *ns* between two rounds.  Use: `yield from`.

        Unlike `TimedCaller.pause`, this does not count as `Spent.paced`, because it lengthens no run.
        """
        return sleep(self.parent.task, ns, PAUSE)

    def _exited(self) -> None:
        self.live_count -= 1
        if not self.live_count and self._waits:
            self._env.wake(self.parent.task)
