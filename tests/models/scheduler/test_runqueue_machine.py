"""Two run queues, compared with a literal reading of kernel/sched/fair.c.

Tasks wake, sleep, give way and move in any order.  The reading has lists and sums over all tasks, and keeps
only the state that the kernel keeps.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wbsim.models.scheduler.runqueue import RunQueue, SchedulerRules
from wbsim.sim.engine import Environment, Task

WEIGHTS = (3121, 1277, 1024, 820, 335, 15)
"""sched_prio_to_weight of nice -5, -1, 0, 1, 5 and 19."""
QUEUES = st.integers(0, 1)


class Entity:
    """sched_entity: ``at`` is its virtual time at its last update, for a running entity at time ``since``."""

    def __init__(self, name: str, weight: int) -> None:
        self.name = name
        self.weight = weight
        self.at = self.since = self.lag = 0
        self.deadline = self.number = 0
        self.beyond: int | None = None  # the entity preempts a task with a later virtual time

    def delta(self, ns: int) -> int:
        """calc_delta_fair."""
        return floor(Fraction(ns * 1024, self.weight))


class Plain:
    """One queue under the rules of one kernel: the ``running`` entity and the ``waiting`` ones."""

    def __init__(self, rules: SchedulerRules) -> None:
        self.rules = rules
        self.on_cpu: Entity | None = None
        self.waiting: list[Entity] = []
        self.floor = self.number = 0

    def now_of(self, entity: Entity, now: int) -> int:
        """update_curr."""
        return entity.at + (entity.delta(now - entity.since) if entity is self.on_cpu else 0)

    def average(self, now: int) -> Fraction:
        """avg_vruntime of the running and the waiting entities."""
        there = [of for of in (self.on_cpu, *self.waiting) if of is not None]
        return Fraction(sum(self.now_of(of, now) * of.weight for of in there), sum(of.weight for of in there))

    def min_vruntime(self, now: int) -> None:
        """update_min_vruntime."""
        if self.on_cpu is not None:
            self.floor = max(
                self.floor, min([self.now_of(self.on_cpu, now), *(of.at for of in self.waiting)])
            )

    def enqueue(self, entity: Entity, beyond: int | None) -> None:
        """Add *entity* to the waiting ones; its deadline is a slice away."""
        self.number += 1
        entity.number, entity.beyond = self.number, beyond
        entity.deadline = entity.at + entity.delta(self.rules.slice_ns)
        self.waiting.append(entity)

    def place(self, entity: Entity, now: int) -> None:
        """place_entity, and the virtual time from which check_preempt_wakeup preempts the running entity."""
        self.min_vruntime(now)
        if self.rules.keeps_lag:
            load = sum(of.weight for of in (self.on_cpu, *self.waiting) if of is not None)
            average = floor(self.average(now)) - entity.lag * entity.weight // load
            entity.at = average - entity.lag
            self.enqueue(entity, average)
        else:
            # A task that slept on another processor may be ahead of all, by at most the time it can have run.
            most = self.floor + entity.delta(2 * (self.rules.slice_ns + self.rules.tick_ns))
            entity.at = min(max(entity.at, self.floor - self.rules.ahead_ns), most)
            self.enqueue(entity, entity.at + self.rules.granularity_ns)

    def first(self) -> Entity:
        """Return the entity with the earliest deadline; of two, the one that came first."""
        return min(self.waiting, key=lambda of: (of.deadline, of.number))


class RunQueues(RuleBasedStateMachine):
    """Two processors, six tasks of six weights, and a clock that the rules set."""

    @initialize(
        slice_ns=st.integers(1, 900), tick_ns=st.sampled_from([0, 7, 400]), ahead_ns=st.integers(0, 300),
        granularity_ns=st.integers(0, 90), keeps_lag=st.booleans(), weights=st.permutations(WEIGHTS),
    )  # fmt: skip
    def begin(self, weights: list[int], **rules: int) -> None:
        self.rules = SchedulerRules(**rules)
        env = Environment()
        self.now = 0
        self.queues = [RunQueue(self.rules) for _ in range(2)]
        self.plain = [Plain(self.rules) for _ in range(2)]
        self.pairs: dict[str, tuple[Task, Entity]] = {}
        self.asleep: list[str] = []
        for number, weight in enumerate(weights):
            task, entity = env.task(f"t{number}"), Entity(f"t{number}", weight)
            task.weight = weight
            self.pairs[task.name] = task, entity
            self.asleep.append(task.name)
        for number in range(2):
            self.runs(number, self.pairs[self.asleep.pop()][1])

    def runs(self, number: int, entity: Entity) -> None:
        """The processor *number* runs *entity* from now on."""
        task, _ = self.pairs[entity.name]
        task.since_ns = entity.since = self.now
        self.plain[number].on_cpu = entity

    def stops(self, number: int) -> Task:
        """Update the virtual time of the task that runs on *number* and stops, as `Processors` does."""
        plain = self.plain[number]
        assert plain.on_cpu is not None
        entity = plain.on_cpu
        entity.at = plain.now_of(entity, self.now)
        plain.on_cpu = None
        task, _ = self.pairs[entity.name]
        task.virtual_ns = entity.at
        return task

    def next_runs(self, number: int) -> None:
        """Take the first task of the queue *number* and of the reading, which is the same, and run it."""
        plain = self.plain[number]
        entity = plain.first()
        plain.waiting.remove(entity)
        task = self.queues[number].pop()
        assert (task.name, task.virtual_ns) == (entity.name, entity.at)
        self.runs(number, entity)

    @rule(ns=st.integers(1, 2_000))
    def time_passes(self, ns: int) -> None:
        self.now += ns

    @precondition(lambda self: self.asleep)
    @rule(number=QUEUES, data=st.data())
    def one_wakes(self, number: int, data: st.DataObject) -> None:
        task, entity = self.pairs[data.draw(st.sampled_from(self.asleep))]
        self.asleep.remove(task.name)
        running = self.plain[number].on_cpu
        assert running is not None
        self.queues[number].wakes(task, self.pairs[running.name][0], self.now)
        self.plain[number].place(entity, self.now)
        entity.since = self.now

    def busy(self, number: int) -> bool:
        return bool(self.plain[number].waiting)

    @rule(number=QUEUES)
    def the_running_one_gives_way(self, number: int) -> None:
        if self.busy(number):
            plain = self.plain[number]
            entity = plain.on_cpu
            assert entity is not None
            self.queues[number].keep(self.stops(number), self.now)
            entity.since = self.now
            plain.enqueue(entity, None)
            self.next_runs(number)

    @rule(number=QUEUES)
    def the_running_one_sleeps(self, number: int) -> None:
        if self.busy(number):
            plain = self.plain[number]
            entity = plain.on_cpu
            assert entity is not None
            task, _ = self.pairs[entity.name]
            behind = floor(plain.average(self.now)) - plain.now_of(entity, self.now)
            entity.lag = min(max(behind, 0), max(2 * self.rules.slice_ns, self.rules.tick_ns))
            task.lag_ns = self.queues[number].lag_of(task, self.now)
            assert task.lag_ns == entity.lag
            self.stops(number)
            self.asleep.append(task.name)
            self.next_runs(number)

    @rule(source=QUEUES)
    def one_is_moved(self, source: int) -> None:
        """load_balance: the moved task keeps its distance from min_vruntime."""
        if self.busy(source):
            for queue, plain in zip(self.queues, self.plain, strict=True):
                assert plain.on_cpu is not None
                queue.go_on(self.pairs[plain.on_cpu.name][0], self.now)
                plain.min_vruntime(self.now)
            target = 1 - source
            entity = self.plain[source].first()
            moved = self.plain[target].floor - self.plain[source].floor
            self.queues[source].give(self.queues[target])
            self.plain[source].waiting.remove(entity)
            entity.at += moved
            self.plain[target].enqueue(entity, None)

    @invariant()
    def both_are_the_same(self) -> None:
        """Both have the same waiting tasks and virtual times, and the same running task gives way."""
        for queue, plain in zip(getattr(self, "queues", []), getattr(self, "plain", []), strict=True):
            assert len(queue) == len(plain.waiting)
            assert queue.floor_ns == plain.floor
            for entity in plain.waiting:
                assert self.pairs[entity.name][0].virtual_ns == entity.at
            if plain.waiting and plain.on_cpu is not None:
                first, running = plain.first(), plain.on_cpu
                gives_way = (
                    first.beyond is not None
                    and first.since >= running.since
                    and running.at + running.delta(first.since - running.since) > first.beyond
                )
                assert queue.takes_over(self.pairs[running.name][0]) == gives_way


TestRunQueues = RunQueues.TestCase
TestRunQueues.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
