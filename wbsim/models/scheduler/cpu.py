"""Processors: which tasks run, which tasks wait, and which tasks interrupts take time from.

A task that was `adopt`-ed runs only on a processor.  A task that sleeps (yields PARK) gives its processor up,
and wants one again when it is woken; a task that spins (yields SPIN) keeps it.  The kernel's own code is not
preempted (preempt=none): it gives way only where it calls `cond_resched`.  Code in user mode can be preempted
anywhere: `work`.

Each processor has a queue of its own.  A task that wakes gets the processor that it had last, if that is
idle, or any idle one; else it waits for the one that it had.  A processor that has nothing to do takes a task
that waits for another one.  Now and then all processors look whether one of them has more to do.  As long as
processors are free, they cost no event.

A process that sleeps keeps its seat, and with it the interrupts, until another task needs a processor.
Threads of the kernel have no seat.  A bound task waits for its processor, even beside an idle one.  Left out:
groups, affinity to several processors, the topology of caches, and the processor of the task that wakes
another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wbsim.models.scheduler.runqueue import RunQueue, SchedulerRules, virtual
from wbsim.sim.engine import IDLE, NICE_0_LOAD, PARK, URGENT, Environment, Park, Scheduler, Steps, Task
from wbsim.sim.entry import FAR_NS
from wbsim.sim.invariants import require

ANY_CPU: Final = -1


class Processors(Scheduler):
    """*count* identical processors under *rules*, of which ``idle`` run nothing.

    *uniform* returns random numbers in [0, 1).
    """

    def __init__(
        self, env: Environment, count: int, rules: SchedulerRules, uniform: Callable[[], float]
    ) -> None:
        super().__init__()
        self._env = env
        self._count = count
        self._rules = rules
        self._keeps_lag = rules.keeps_lag
        self._uniform = uniform
        self._rank = env.next_rank()
        self._runs: list[Task | None] = [None] * count
        self._queues = [RunQueue(rules) for _ in range(count)]
        self._waiting = 0  # how many are in these
        self._loose = 0  # how many of them are not bound
        self._seats: list[Task | None] = [None] * count
        self._free = list(range(count - 1, -1, -1))  # seats of nobody
        self._seatless = 0  # how many of these are taken by tasks without a seat
        self._absent: dict[Task, None] = {}  # tasks that sleep and keep their seats
        self._interruptible: dict[Task, None] = {}  # whose `work` is not over
        self._looks_ns = FAR_NS
        self._balances = False
        self.idle = count
        self._idle_ns = self._counted_ns = 0
        self._used_ns = 0
        self._running_since_ns = 0  # the sum over those that run
        self.tasks: list[Task] = []

    @property
    def count(self) -> int:
        """How many processors there are."""
        return self._count

    def adopt(self, task: Task, seated: bool = False) -> Task:
        """From its start on, *task* runs on a processor; a process has a seat there, a thread of the kernel
        none.
        """
        task.scheduler = self
        task.seated = seated
        self.tasks.append(task)
        return task

    def wants(self, task: Task) -> bool:
        """See `Scheduler.wants`."""
        slept_ns = self._env.now - task.since_ns
        if task.waits_for is IDLE:
            task.idle_ns += slept_ns
        else:
            task.slept_ns[task.waits_for] = task.slept_ns.get(task.waits_for, 0) + slept_ns
            task.waits_for = IDLE
        cpu = task.bound if task.bound >= 0 else task.cpu
        if self.idle and task.bound < 0 and (cpu < 0 or self._runs[cpu] is not None):
            cpu = self._runs.index(None)
        if self.idle and self._runs[cpu] is None:
            task.virtual_ns = self._queues[cpu].floor_ns
            self._put(task, cpu)
        else:
            self._queue(task)
            task.awaits = not task.running
        return task.running

    def sleeps(self, task: Task) -> None:
        """See `Scheduler.sleeps`."""
        if task.running:
            self._take(task)
            if task.seated:
                self._absent[task] = None
            if self._waiting:
                self._hand_on(task.cpu)

    def leave(self, task: Task) -> None:
        """See `Scheduler.leave`."""
        if task.running:
            self._take(task)
            if task.seated:
                self._give_up_seat(task)
            if self._waiting:
                self._hand_on(task.cpu)

    def work(self, task: Task, ns: int) -> Steps:
        """See `Scheduler.work`."""
        env = self._env
        end_ns = env.now + ns
        self._interruptible[task] = None
        if self._waiting:
            self._look_later()
        yield ns
        while True:
            if not task.running:
                task.awaits = True
                yield PARK
            end_ns += task.put_off_ns
            task.put_off_ns = 0
            if end_ns <= env.now:
                break
            yield end_ns - env.now
        del self._interruptible[task]

    def need_resched(self, task: Task) -> bool:
        """See `Scheduler.need_resched`: its slice is over, or the first of those that wait takes over."""
        queue = self._queues[task.cpu]
        return len(queue) > 0 and (
            self._env.now >= self._rules.over_ns(task.since_ns) or queue.takes_over(task)
        )

    def give_way(self, task: Task) -> Park | None:
        """See `Scheduler.give_way`."""
        self._requeue(task)
        task.awaits = not task.running
        return PARK if task.awaits else None

    def interrupt(self, cost_ns: int, cpu: int = ANY_CPU) -> None:
        """An interrupt of *cost_ns* hits the processor *cpu*, or any.

        The task that runs on *cpu* is charged, and owes the time; for any processor, it is the task that has
        the seat.
        """
        task = self._runs[cpu] if cpu >= 0 else self._seats[int(self._uniform() * self._count)]
        if task is not None:
            task.interrupted_ns += cost_ns
            task.owed_ns += cost_ns

    def ran_ns(self, task: Task) -> int:
        """How long *task* ran so far."""
        return task.ran_ns + (self._env.now - task.since_ns if task.running else 0)

    @property
    def idle_ns(self) -> int:
        """How long processors had nobody to run, so far; summed over all."""
        return self._idle_ns + self.idle * (self._env.now - self._counted_ns)

    @property
    def used_ns(self) -> int:
        """How long tasks had processors, so far; summed over all tasks."""
        return self._used_ns + (self._count - self.idle) * self._env.now - self._running_since_ns

    def check(self) -> None:
        """Each processor is idle or runs one task, all of the time; and nobody waits for an idle one.

        Raises:
            LawBroken: a processor was lost, or is given twice.
        """
        seated = [task for task in self._seats if task is not None]
        running = self._seatless + sum(task.running for task in seated)
        require(
            running + self.idle == self._count,
            f"processors: each of {self._count} is idle or runs a task: {self.idle} are, {running} do",
        )
        require(
            len(set(seated)) == len(seated) and len(self._free) + len(seated) == self._count,
            f"processors: each seat has one owner, or is free: {seated}, {self._free}",
        )
        require(
            all(task.running != (task in self._absent) for task in seated),
            f"processors: who keeps a seat runs or sleeps: {seated}, {list(self._absent)}",
        )
        require(
            self._waiting == sum(map(len, self._queues))
            and self._loose == sum(queue.movable for queue in self._queues),
            f"processors: who waits is in a queue: {self._waiting} do, {[len(of) for of in self._queues]}",
        )
        require(not (self.idle and self._loose), "processors: nobody waits beside an idle one, unless bound")
        there_is = self._count * self._env.now
        require(
            self.used_ns + self.idle_ns == there_is,
            f"processors: {there_is} ns are used or idle: {self.used_ns} and {self.idle_ns}",
        )

    def _put(self, task: Task, cpu: int) -> None:
        """*task* gets that idle processor."""
        now = self._env.now
        self._idle_ns += self.idle * (now - self._counted_ns)
        self._counted_ns = now
        self.idle -= 1
        self._running_since_ns += now
        self._runs[cpu] = task
        task.cpu = cpu
        task.since_ns = now
        task.running = True
        if task.seat >= 0:
            del self._absent[task]
            return
        if len(self._free) == self._seatless:
            absent = next(iter(self._absent))
            del self._absent[absent]
            self._give_up_seat(absent)
        if task.seated:
            task.seat = self._free.pop()
            self._seats[task.seat] = task
        else:
            self._seatless += 1

    def _take(self, task: Task) -> None:
        """*task* runs no longer."""
        now, queue = self._env.now, self._queues[task.cpu]
        alone = self._waiting == 0 or len(queue) == 0
        if self._keeps_lag:
            task.lag_ns = 0 if alone else queue.lag_of(task, now)
        self._idle_ns += self.idle * (now - self._counted_ns)
        self._counted_ns = now
        self.idle += 1
        self._running_since_ns -= task.since_ns
        ran_ns = now - task.since_ns
        self._used_ns += ran_ns
        self._runs[task.cpu] = None
        task.running = False
        task.since_ns = now
        task.ran_ns += ran_ns
        task.virtual_ns += ran_ns if task.weight == NICE_0_LOAD else virtual(ran_ns, task.weight)
        if alone:
            queue.floor_ns = task.virtual_ns
        if not task.seated:
            self._seatless -= 1
        if task.on_sleep:
            stops, task.on_sleep = task.on_sleep, []
            for stop in stops:
                self._env.call_at(now, URGENT, stop)

    def _give_up_seat(self, task: Task) -> None:
        self._seats[task.seat] = None
        self._free.append(task.seat)
        task.seat = -1

    def _queue(self, task: Task) -> None:
        """*task* waits for the processor that it had or, if it had none, for the one with the shortest queue.

        It may take the processor from the task that runs there.
        """
        if task.bound >= 0:
            task.cpu = task.bound
        elif task.cpu < 0:
            task.cpu = _shortest(self._queues)
        queue, running = self._queues[task.cpu], self._runs[task.cpu]
        assert running is not None, "an idle processor is taken at once"
        queue.wakes(task, running, self._env.now)
        self._count_waiting(task, 1)
        if running in self._interruptible and queue.takes_over(running):
            self._requeue(running)
        else:
            self._look_later()

    def _requeue(self, task: Task) -> None:
        """*task* runs, and gives way to the first of those that wait."""
        self._take(task)
        if task.seated:
            self._give_up_seat(task)
        cpu = task.cpu
        self._queues[cpu].keep(task, self._env.now)
        self._count_waiting(task, 1)
        self._hand_on(cpu)
        if self.idle and self._loose:
            self._hand_on(self._runs.index(None))

    def _hand_on(self, cpu: int) -> None:
        """An idle processor goes to the first task in its queue.

        If its queue is empty, the longest queue gives it one of the tasks that wait there.
        """
        if not len(self._queues[cpu]):
            if not self._loose:
                return
            self._move(_longest(self._queues), cpu)
        task, now = self._queues[cpu].pop(), self._env.now
        self._count_waiting(task, -1)
        waited_ns = now - task.since_ns
        task.ready_ns += waited_ns
        task.waits_for = IDLE
        if task in self._interruptible:
            task.put_off_ns += waited_ns
        self._put(task, cpu)
        if task.awaits:
            task.awaits = False
            self._env.resume(task)
        if self._waiting:
            self._look_later()

    def _count_waiting(self, task: Task, change: int) -> None:
        """Count that *task* waits from now on (1), or no longer (-1)."""
        self._waiting += change
        if task.bound < 0:
            self._loose += change
        self.contended = self._waiting > 0
        if self.contended and not self._balances and self._rules.balance_ns < FAR_NS:
            self._balances = True
            self._env.call_at(self._env.now + self._rules.balance_ns, self._rank, self._balance)

    def _balance(self) -> None:
        """load_balance: the longest queue gives one of those that wait to the shortest, if that has fewer."""
        if not self._waiting:
            self._balances = False
            return
        longest, shortest = _longest(self._queues), _shortest(self._queues)
        if self._queues[longest].movable and len(self._queues[longest]) > len(self._queues[shortest]):
            self._move(longest, shortest)
        self._env.call_at(self._env.now + self._rules.balance_ns, self._rank, self._balance)
        self._look_later()

    def _move(self, longest: int, shortest: int) -> None:
        """A task that waits for processor *longest* now waits for *shortest*."""
        for cpu in (longest, shortest):
            running = self._runs[cpu]
            if running is not None:
                self._queues[cpu].go_on(running, self._env.now)
        self._queues[longest].give(self._queues[shortest])

    def _look_later(self) -> None:
        """Have `_look` called when the first slice ends of a task that can be preempted.

        Only tasks count for whose processor other tasks wait.
        """
        rules, now = self._rules, self._env.now
        over = [
            rules.over_ns(task.since_ns)
            for task in self._interruptible
            if task.running and len(self._queues[task.cpu])
        ]
        if over and min(over) < self._looks_ns:
            self._looks_ns = max(min(over), now)
            self._env.call_at(self._looks_ns, self._rank, self._look)

    def _look(self) -> None:
        """The tick: a task that can be preempted gives way if its slice is over and others wait."""
        rules, now = self._rules, self._env.now
        self._looks_ns = FAR_NS
        for task in list(self._interruptible):
            if task.running and rules.over_ns(task.since_ns) <= now and len(self._queues[task.cpu]):
                self._requeue(task)
        if self._waiting:
            self._look_later()


def _longest(queues: list[RunQueue]) -> int:
    """The first processor for which most tasks wait that may run on another one."""
    return max(range(len(queues)), key=lambda cpu: queues[cpu].movable)


def _shortest(queues: list[RunQueue]) -> int:
    """The first for which fewest do."""
    return min(range(len(queues)), key=lambda cpu: len(queues[cpu]))


def cond_resched(task: Task) -> Park | None:
    """*task* gives way if it should; a returned wait is to be yielded."""
    scheduler = task.scheduler
    if scheduler is None or not scheduler.contended or not scheduler.need_resched(task):
        return None
    return scheduler.give_way(task)


def work(task: Task, ns: int) -> Steps:
    """*task* works for *ns*, and for what it owes to interrupts; where there is a scheduler, it can be
    preempted meanwhile.
    """
    ns, task.owed_ns = ns + task.owed_ns, 0
    if task.scheduler is None:
        yield ns
    else:
        yield from task.scheduler.work(task, ns)


def sleep(task: Task, ns: int, waits_for: str) -> Steps:
    """*task* sleeps for *ns*, whether it needs a processor or not."""
    task.waits_for = waits_for
    if task.scheduler is not None:
        task.scheduler.leave(task)
    yield ns
    if task.scheduler is not None and not task.scheduler.wants(task):
        yield PARK
