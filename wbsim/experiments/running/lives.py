"""Where the threads of a run spent their lives, and what the run used, as the model has counted it."""

from __future__ import annotations

from wbsim.models.machine import Machine
from wbsim.models.spent import life_of
from wbsim.sim.sync import LockClass

Lives = dict[str, dict[str, int]]
"""For each thread, by name: where its time went (ns), by state and cause ("system allocate")."""


def lives_of(machine: Machine) -> Lives:
    """The life of every thread, until the end of the run."""
    return {
        thread.task.name: {
            f"{state} {cause}".strip(): ns
            for (state, cause), ns in life_of(thread.task, thread.spent, machine.env.now).items()
        }
        for thread in machine.threads
    }


def uses_of(machine: Machine) -> dict[str, float]:
    """For which share of the run each resource was in use: those that most threads share come first.

    All processors together are one resource; a lock is in use while it is held or handed on, a class of locks
    while the busiest of them is; the parts of a
    device are named after its disk; a thread, which can use one processor only, while it runs and does not
    spin.
    """
    now = machine.env.now
    uses = {"processors": machine.processors.used_ns / machine.processors.count}
    for lock in machine.locks:
        uses[f"lock {lock.name}"] = lock.used_ns if isinstance(lock, LockClass) else lock.stat.used_ns
    for name, queue in machine.queues.items():
        uses.update({f"device {name} {part}": used_ns for part, used_ns in queue.uses().items()})
    for thread in machine.threads:
        ran_ns = machine.processors.ran_ns(thread.task)
        uses[f"thread {thread.task.name}"] = ran_ns - thread.task.spin_ns
    return {name: used_ns / now for name, used_ns in uses.items()}
