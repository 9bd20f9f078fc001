"""Simulate one case in this process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.problems import bad
from wbsim.experiments.running.outcome import DiskResult, Outcome, Sample, Sampler, disk_result, outcome_of
from wbsim.experiments.running.progress import Progress
from wbsim.models.interfaces import NoSpace
from wbsim.models.machine import Machine, Primitives, build
from wbsim.models.workloads.spec import Iteration
from wbsim.sim.engine import GiveUp, Standstill
from wbsim.sim.invariants import LawBroken
from wbsim.sim.units import S

OnProgress = Callable[[Progress], None]


def run_case(
    case: Case,
    seed: int,
    replication: int = 0,
    primitives: Primitives | None = None,
    on_progress: OnProgress | None = None,
) -> Outcome:
    """Simulate *case*, call *on_progress* after each iteration, and return the figures.

    Raises:
        BadInput: the workload does not end within the scenario's ``give_up``, or comes to a standstill.
    """
    _forget_peak_rss()
    machine = build(case.scenario, seed, replication, primitives)
    counters, sampler = _Counters(case, machine, on_progress), Sampler(machine)
    started = time.process_time()
    _run(machine, case)
    cpu_s = time.process_time() - started
    outcome = outcome_of(
        case, seed, replication, machine, counters.samples, counters.disks, sampler.levels(),
        counters.written_back_pages,
    )  # fmt: skip
    return replace(outcome, cpu_s=cpu_s, peak_rss_mib=_peak_rss_mib())


class _Counters:
    """The counters of a run at the end of each iteration, until the last program ends."""

    def __init__(self, case: Case, machine: Machine, on_progress: OnProgress | None) -> None:
        self.samples: list[Sample] = []
        self.disks: dict[str, DiskResult] = {}
        self.written_back_pages = 0
        self._machine = machine
        self._label = case.label
        self._on_progress = on_progress
        programs = case.scenario.programs
        self._running = {name for name, program in programs.items() if not program.workload.endless}
        for name, program in machine.programs.items():
            program.on_iteration = partial(self._sample, name)
        if on_progress is not None:
            machine.watch(lambda: WATCH_NS, lambda: self._report(machine.env.now))

    def _sample(self, name: str, iteration: Iteration) -> None:
        if not self._running:  # the final sync(2) runs; only endless programs iterate now
            return
        program = self._machine.programs[name]
        if program.share_done >= 1:
            self._running.discard(name)
        queues = self._machine.queues
        self.written_back_pages = self._machine.cache.written
        self.disks = {disk: disk_result(queue) for disk, queue in queues.items()}
        reads = [queue.stat.reads for queue in queues.values()]
        writes = [queue.stat.writes for queue in queues.values()]
        self.samples.append(
            Sample(
                program=name,
                end_ns=iteration.end_ns,
                files_per_sec=iteration.files_per_sec,
                app_overhead_us=iteration.app_overhead_us,
                count=iteration.count,
                system_ns=program.system_ns,
                ios=sum(of.ios for of in writes),
                merges=sum(of.merges for of in writes),
                sectors=sum(of.sectors for of in writes),
                write_wait_ns=sum(of.wait_ns for of in writes),
                reads=sum(of.ios for of in reads),
                read_wait_ns=sum(of.wait_ns for of in reads),
            )
        )
        self._report(iteration.end_ns)

    def _report(self, now_ns: int) -> None:
        if self._on_progress is not None:
            share = min(program.share_done for program in self._machine.programs.values())
            self._on_progress(Progress(self._label, share, now_ns / S))


def _forget_peak_rss() -> None:
    """Reset the peak memory of this process (proc(5), clear_refs)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_rss_mib() -> float:
    """Return the peak memory (MiB) of this process since the reset."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def simulate(case: Case, seed: int) -> Machine:
    """Return the machine of *case* after its run, for tools that need more than an `Outcome`.

    Raises:
        BadInput: the workload does not end within the scenario's ``give_up``.
    """
    machine = build(case.scenario, seed)
    _run(machine, case)
    return machine


def _run(machine: Machine, case: Case) -> None:
    # A run makes no reference cycles, and the collector takes a tenth of the time with half a million inodes.
    gc.disable()
    try:
        machine.run()
    except GiveUp as error:
        raise bad(
            f"variant {case.label}", f"{error}; raise give_up, or find the cause of the stall"
        ) from None
    except Standstill as error:
        raise bad(
            f"variant {case.label}", f"{error}; check the configuration for a time or a size of 0"
        ) from None
    except NoSpace as error:
        raise bad(f"variant {case.label}", str(error)) from None
    except LawBroken as error:
        raise LawBroken(f"variant {case.label}: {error}") from error
    finally:
        gc.enable()


WATCH_NS: Final = 10 * S
"""The simulated time between two reports of progress (ns)."""
