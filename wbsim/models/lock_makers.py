"""What the parts of a machine make locks with: the times of its processors, its kernel's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from wbsim.models.scenario import KernelSpec, ProcessorSpec
from wbsim.models.scheduler.cpu import Processors
from wbsim.sim.engine import Environment
from wbsim.sim.sync import HandOff, Line, LockClass, Mutex, RwSemaphore, RwSemaphoreRules, SpinLock

AnyLock = TypeVar("AnyLock", SpinLock, Mutex, LockClass)


class LockMakers:
    """Those of one machine; ``locks`` are all that were made.  *spin_lock* is the engine's class."""

    def __init__(
        self,
        env: Environment,
        cpu: ProcessorSpec,
        kernel: KernelSpec,
        processors: Processors,
        spin_lock: Callable[[Environment, str, HandOff, int], SpinLock],
    ) -> None:
        self._env = env
        self._cpu = cpu
        self._kernel = kernel
        self._processors = processors
        self._spin_lock = spin_lock
        self._rwsem = RwSemaphoreRules(
            kernel.rwsem_steals, kernel.rwsem_spins, kernel.rwsem_spin, kernel.rwsem_hand_off
        )
        self.locks: list[Any] = []

    def of(self, urgent: int) -> dict[str, Any]:
        """What a `Site` with that rank has of them."""
        env, cpu, make = self._env, self._cpu, self._spin_lock
        ticket = self._kernel.spinlock == "ticket"
        hand_off = HandOff(cpu.line_time, cpu.line_from_far, ticket, cpu.node_cpus)

        def known(lock: AnyLock) -> AnyLock:
            self.locks.append(lock)
            return lock

        def lines(lock: SpinLock) -> Line:
            return Line(lock, hand_off, cpu.line_own)

        return {
            "spin_lock": lambda name: known(make(env, name, hand_off, urgent)),
            "line": lambda name: lines(known(make(env, name, HandOff(0, 0), urgent))),
            "lines": lines,
            "mutex": lambda name: known(Mutex(env, name, cpu.wake_time, cpu.line_time)),
            "rw_semaphore": lambda name: RwSemaphore(env, name, self._rwsem, cpu.wake_time, cpu.line_time),
            "count_lock": lambda name, stats: known(LockClass(name, stats)),
            "wake_ns": cpu.wake_time,
            "hand_off": hand_off,
            "line_ns": (cpu.line_own, cpu.line_from_far if cpu.nodes > 1 else cpu.line_time),
        }
