"""Processors: the tasks that run, the tasks that wait, and the tasks that lose time to interrupts.

A task that was `adopt`-ed needs a processor to run.  A task that sleeps (yields PARK) gives up its processor,
and wants one again when it is woken.  A task that spins (yields SPIN) keeps its processor.  Kernel code is
not preempted (preempt=none): it gives way only where it calls `cond_resched`.  Code in user mode can be
preempted anywhere (`work`).

Each processor has a separate queue.  A task that wakes gets the processor that it had last if that is idle.
Otherwise it gets an idle one of the same NUMA node or, if there is none, any idle one.  If no processor is
idle, the task waits for the processor that it had last.

A new task begins on the node with the most idle processors (sched_balance_find_dst_group), so tasks spread
over the nodes.  `balance` moves tasks to other processors.  As long as processors are free, they cost no
event.

A process that sleeps keeps its seat, and with the seat the interrupts, until another task needs a processor.
Kernel threads have no seat.  A bound task waits for its processor, even if another processor is idle.

Left out: groups, affinity to several processors, caches that a part of a node shares, and wake-ups on the
processor of the waking task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wbsim.models.scheduler.balance import LoadBalance, shortest
from wbsim.models.scheduler.runqueue import RunQueue, SchedulerRules, virtual
from wbsim.sim.engine import (
    IDLE,
    NICE_0_LOAD,
    PARK,
    READY,
    URGENT,
    Environment,
    Park,
    Scheduler,
    Steps,
    Task,
    Wait,
)
from wbsim.sim.entry import FAR_NS
from wbsim.sim.invariants import require

ANY_CPU: Final = -1


class Processors(Scheduler):
    """The *count* identical processors of a machine under *rules*; ``idle`` of them run no task.

    *uniform* returns random numbers in [0, 1).  Each NUMA node has *node_cpus* processors; the last nodes
    may have fewer.
    """

    def __init__(
        self, env: Environment, count: int, rules: SchedulerRules, uniform: Callable[[], float],
        node_cpus: int = 1 << 30,
    ) -> None:  # fmt: skip
        super().__init__()
        self._env = env
        self._count = count
        self._node_cpus = node_cpus
        self._rules = rules
        self._keeps_lag = rules.keeps_lag
        self._uniform = uniform
        self._rank = env.next_rank()
        self._runs: list[Task | None] = [None] * count
        self._queues = [RunQueue(rules) for _ in range(count)]
        self._ready_count = 0  # the number of tasks in the queues
        self._loose = 0  # the number of tasks in the queues that are not bound
        self._seats: list[Task | None] = [None] * count
        self._free = list(range(count - 1, -1, -1))  # the seats without an owner
        self._seatless = 0  # the number of running tasks without a seat, each of which needs a free seat
        self._absent: dict[Task, None] = {}  # tasks that sleep and keep their seats
        self._interruptible: dict[Task, None] = {}  # tasks whose `work` is not over
        self._looks_ns = FAR_NS
        self._balance = LoadBalance(
            env, self._rank, rules, self._queues, self._runs, self._hand_on, self._push, self._look_later
        )
        self._pushed: dict[Task, None] = {}  # running tasks that move to an idle processor at the next chance
        self.idle = count
        self._idle_ns = self._counted_ns = 0
        self._used_ns = 0
        self._running_since_ns = 0  # the sum of ``since_ns`` of all running tasks
        self.tasks: list[Task] = []

    @property
    def count(self) -> int:
        """The number of processors."""
        return self._count

    def adopt(self, task: Task, seated: bool = False) -> Task:
        """Let *task* need a processor from its start on, and return it; call this once, before the start.

        *seated*: the task is a process, which keeps a seat, and so is charged interrupts while it sleeps.  A
        kernel thread does not.
        """
        task.scheduler = self
        task.seated = seated
        self.tasks.append(task)
        return task

    def wants(self, task: Task, waker: Task | None = None) -> bool:
        """See `Scheduler.wants`."""
        slept_ns = self._env.now - task.since_ns
        if task.waits_for is IDLE:
            task.idle_ns += slept_ns
        else:
            task.slept_ns[task.waits_for] = task.slept_ns.get(task.waits_for, 0) + slept_ns
            task.waited_ns += slept_ns
            if slept_ns > task.longest_wait_ns:
                task.longest_wait_ns, task.longest_wait = slept_ns, task.waits_for
            task.waits_for = IDLE
        cpu = task.bound if task.bound >= 0 else task.cpu
        if self.idle and task.bound < 0 and (cpu < 0 or self._runs[cpu] is not None):
            stays = (
                waker is not None and waker.bound == cpu and self._rules.stacks and self._runs[cpu] is waker
            )
            if not stays or len(self._queues[cpu]):
                cpu = _idle_near(self._runs, cpu, self._node_cpus)
        if self.idle and self._runs[cpu] is None:
            task.virtual_ns = self._queues[cpu].floor_ns
            self._put(task, cpu)
        else:
            self._queue(task)
            task.awaits = not task.on_cpu
        return task.on_cpu

    def sleeps(self, task: Task) -> None:
        """See `Scheduler.sleeps`."""
        if task.on_cpu:
            self._take(task)
            if task.seated:
                self._absent[task] = None
            if self._ready_count:
                self._hand_on(task.cpu)

    def leave(self, task: Task) -> None:
        """See `Scheduler.leave`."""
        if task.on_cpu:
            self._take(task)
            if task.seated:
                self._give_up_seat(task)
            if self._ready_count:
                self._hand_on(task.cpu)

    def work(self, task: Task, ns: int) -> Steps:
        """See `Scheduler.work`."""
        env = self._env
        end_ns = env.now + ns
        self._interruptible[task] = None
        if self._ready_count:
            self._look_later()
        yield ns
        while True:
            if not task.on_cpu:
                task.awaits = True
                yield PARK
            end_ns += task.put_off_ns
            task.put_off_ns = 0
            if end_ns <= env.now:
                break
            yield end_ns - env.now
        del self._interruptible[task]

    def need_resched(self, task: Task) -> bool:
        """See `Scheduler.need_resched`: the slice is over, a waiting task preempts *task*, or it moves."""
        queue = self._queues[task.cpu]
        return len(queue) > 0 and (
            self._env.now >= self._rules.over_ns(task.since_ns)
            or queue.takes_over(task)
            or task in self._pushed
        )

    def give_way(self, task: Task) -> Park | None:
        """See `Scheduler.give_way`."""
        if task in self._pushed and self.idle:
            self._shift(task)
            return None
        self._requeue(task)
        task.awaits = not task.on_cpu
        return PARK if task.awaits else None

    def interrupt(self, cost_ns: int, cpu: int = ANY_CPU) -> None:
        """Charge an interrupt of *cost_ns* on the processor *cpu*; `ANY_CPU`: on a random processor.

        The task that runs on *cpu* is charged, and owes the time: it lengthens its next work.  For a random
        processor, the owner of its seat is charged, asleep or not.  Without such a task the interrupt costs
        nothing.
        """
        task = self._runs[cpu] if cpu >= 0 else self._seats[int(self._uniform() * self._count)]
        if task is not None:
            task.interrupted_ns += cost_ns
            task.owed_ns += cost_ns

    def ran_ns(self, task: Task) -> int:
        """Return the time that *task* has run until now (ns)."""
        return task.ran_ns + (self._env.now - task.since_ns if task.on_cpu else 0)

    @property
    def idle_ns(self) -> int:
        """The idle time until now (ns), summed over all processors."""
        return self._idle_ns + self.idle * (self._env.now - self._counted_ns)

    @property
    def used_ns(self) -> int:
        """The time that tasks have run until now (ns), summed over all tasks."""
        return self._used_ns + (self._count - self.idle) * self._env.now - self._running_since_ns

    def check(self) -> None:
        """Check that each processor is idle or runs one task, and that no task waits for an idle processor.

        Raises:
            LawBroken: a processor was lost or is given twice, or the times do not add up.
        """
        seated = [task for task in self._seats if task is not None]
        busy_count = self._seatless + sum(task.on_cpu for task in seated)
        require(
            busy_count + self.idle == self._count,
            f"processors: {self.idle} are idle and {busy_count} run a task, of {self._count}",
        )
        require(
            len(set(seated)) == len(seated) and len(self._free) + len(seated) == self._count,
            f"processors: each seat must have one owner or be free: {seated}, {self._free}",
        )
        require(
            all(task.on_cpu != (task in self._absent) for task in seated),
            f"processors: a task that owns a seat must run or be absent: {seated}, {list(self._absent)}",
        )
        require(
            self._ready_count == sum(map(len, self._queues))
            and self._loose == sum(queue.movable for queue in self._queues),
            f"processors: {self._ready_count} tasks wait, the queues have"
            f" {[len(queue) for queue in self._queues]}",
        )
        require(
            not any(len(queue) for queue, runs in zip(self._queues, self._runs, strict=True) if runs is None),
            "processors: a task waits in the queue of an idle processor",
        )
        require(
            not (self.idle and self._loose) or self._balance.asks,
            "processors: an unbound task waits, and an idle processor never asks for it",
        )
        there_is = self._count * self._env.now
        require(
            self.used_ns + self.idle_ns == there_is,
            f"processors: {self.used_ns} ns used and {self.idle_ns} ns idle must be {there_is} ns",
        )

    def _put(self, task: Task, cpu: int) -> None:
        """Give the idle processor *cpu* to *task*."""
        now = self._env.now
        self._idle_ns += self.idle * (now - self._counted_ns)
        self._counted_ns = now
        self.idle -= 1
        self._running_since_ns += now
        self._runs[cpu] = task
        task.cpu = cpu
        task.since_ns = now
        task.on_cpu = True
        if task.seat >= 0:
            del self._absent[task]
            return
        if len(self._free) == self._seatless:
            absent = next(iter(self._absent))  # of all tasks that sleep and keep a seat, the first to sleep
            del self._absent[absent]
            self._give_up_seat(absent)
        if task.seated:
            task.seat = self._free.pop()
            self._seats[task.seat] = task
        else:
            self._seatless += 1

    def _take(self, task: Task) -> None:
        """Take the processor of *task*, which no longer runs."""
        now, queue = self._env.now, self._queues[task.cpu]
        alone = self._ready_count == 0 or len(queue) == 0
        if self._keeps_lag:
            task.lag_ns = 0 if alone else queue.lag_of(task, now)
        self._idle_ns += self.idle * (now - self._counted_ns)
        self._counted_ns = now
        self.idle += 1
        self._running_since_ns -= task.since_ns
        ran_ns = now - task.since_ns
        self._used_ns += ran_ns
        self._runs[task.cpu] = None
        task.on_cpu = False
        task.since_ns = task.stopped_ns = now
        task.ran_ns += ran_ns
        task.virtual_ns += ran_ns if task.weight == NICE_0_LOAD else virtual(ran_ns, task.weight)
        if alone:
            queue.floor_ns = task.virtual_ns
        if not task.seated:
            self._seatless -= 1
        if self._pushed:
            self._pushed.pop(task, None)
        if task.on_sleep:
            stops, task.on_sleep = task.on_sleep, []
            for stop in stops:
                self._env.call_at(now, URGENT, stop)

    def _give_up_seat(self, task: Task) -> None:
        self._seats[task.seat] = None
        self._free.append(task.seat)
        task.seat = -1

    def _queue(self, task: Task) -> None:
        """Let *task* wait for the processor that it had; a new task waits in the shortest queue.

        A bound task waits for its processor.  The task may preempt the task that runs there.
        """
        if task.bound >= 0:
            task.cpu = task.bound
        elif task.cpu < 0:
            task.cpu = shortest(self._queues)
        queue, current = self._queues[task.cpu], self._runs[task.cpu]
        assert current is not None, "a task waits only while no processor is idle"
        queue.wakes(task, current, self._env.now)
        self._count_waiting(task, 1)
        if current in self._interruptible and queue.takes_over(current):
            self._requeue(current)
        else:
            self._look_later()

    def _requeue(self, task: Task) -> None:
        """Give the processor of *task* to the first waiting task, and let *task* wait."""
        self._take(task)
        if task.seated:
            self._give_up_seat(task)
        cpu = task.cpu
        self._queues[cpu].keep(task, self._env.now)
        self._count_waiting(task, 1)
        self._hand_on(cpu)
        if self.idle and self._loose and not self._rules.ask_ns:
            self._hand_on(self._runs.index(None))

    def _push(self, task: Task) -> None:
        """Move *task*, which runs, to an idle processor: at once, or where kernel code may give way."""
        if task in self._interruptible:
            self._shift(task)
        else:
            self._pushed[task] = None

    def _shift(self, task: Task) -> None:
        """Move *task*, which runs, to an idle processor, and give its processor to the first waiting task."""
        cpu, target = task.cpu, self._runs.index(None)
        self._take(task)
        if task.seated:
            self._give_up_seat(task)
        task.virtual_ns = self._queues[target].floor_ns
        self._put(task, target)
        self._hand_on(cpu)

    def _hand_on(self, cpu: int) -> None:
        """Give the idle processor *cpu* to the first task in its queue, or to one of another queue."""
        if not len(self._queues[cpu]) and not (self._loose and self._balance.take(cpu)):
            self._balance.processor_is_idle()
            return
        task, now = self._queues[cpu].pop(), self._env.now
        self._count_waiting(task, -1)
        waited_ns = now - task.since_ns
        task.ready_ns += waited_ns
        task.waited_ns += waited_ns
        if waited_ns > task.longest_wait_ns:
            task.longest_wait_ns, task.longest_wait = waited_ns, READY
        task.waits_for = IDLE
        if task in self._interruptible:
            task.put_off_ns += waited_ns
        self._put(task, cpu)
        if task.awaits:
            task.awaits = False
            self._env.resume(task)
        if self._ready_count:
            self._look_later()

    def _count_waiting(self, task: Task, change: int) -> None:
        """Count that *task* waits from now on (1), or no longer (-1)."""
        self._ready_count += change
        if task.bound < 0:
            self._loose += change
        self.contended = self._ready_count > 0
        if self.contended:
            self._balance.tasks_wait()
            if self.idle:
                self._balance.processor_is_idle()

    def _look_later(self) -> None:
        """Call `_look` when the first slice of a task in `work` ends.

        Only tasks count for whose processor other tasks wait.
        """
        rules, now = self._rules, self._env.now
        ends = [
            rules.over_ns(task.since_ns)
            for task in self._interruptible
            if task.on_cpu and len(self._queues[task.cpu])
        ]
        if ends and min(ends) < self._looks_ns:
            self._looks_ns = max(min(ends), now)
            self._env.call_at(self._looks_ns, self._rank, self._look)

    def _look(self) -> None:
        """The tick: preempt each task in `work` whose slice is over, if tasks wait for its processor."""
        rules, now = self._rules, self._env.now
        self._looks_ns = FAR_NS
        for task in list(self._interruptible):
            if task.on_cpu and rules.over_ns(task.since_ns) <= now and len(self._queues[task.cpu]):
                self._requeue(task)
        if self._ready_count:
            self._look_later()


def _idle_near(runs: list[Task | None], cpu: int, node_cpus: int) -> int:
    """Return the idle processor for a task that had *cpu* last; for a new task, *cpu* is `ANY_CPU`.

    *runs* has the task of each processor, and nodes have *node_cpus* processors.
    """
    if node_cpus >= len(runs):
        return runs.index(None)
    start = cpu - cpu % node_cpus
    if cpu < 0:
        starts = range(0, len(runs), node_cpus)
        start = max(starts, key=lambda first: runs[first : first + node_cpus].count(None))
    if None not in runs[start : start + node_cpus]:
        start = 0
    return runs.index(None, start)


def cond_resched(task: Task) -> Park | None:
    """Let *task* give its processor to a waiting task if it should.  Yield the result, unless it is None.

    Kernel code that runs for long calls this; without a scheduler nothing happens.
    """
    scheduler = task.scheduler
    if scheduler is None or not scheduler.contended or not scheduler.need_resched(task):
        return None
    return scheduler.give_way(task)


def work(task: Task, ns: int) -> Wait:
    """Let *task* work for *ns*, and for the time that it owes to interrupts.  Yield the result.

    A task with a scheduler can be preempted at any time.  The caller adds *ns* to the thread's `Spent`.
    """
    ns, task.owed_ns = ns + task.owed_ns, 0
    return ns if task.scheduler is None else task.scheduler.work(task, ns)


def sleep(task: Task, ns: int, waits_for: str) -> Steps:
    """Let *task* sleep for *ns*, with or without a scheduler.  Use: `yield from`.

    *waits_for* is the cause under which the task counts the time.  The task gives up its seat, and goes on
    later if no processor is free then.
    """
    task.waits_for = waits_for
    if task.scheduler is not None:
        task.scheduler.leave(task)
    yield ns
    if task.scheduler is not None and not task.scheduler.wants(task):
        yield PARK
