"""Simulate one case in this process."""

from __future__ import annotations

import gc
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.problems import bad
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.reading import Iterations, LevelsOverTime, OnProgress, outcome_of
from wbsim.models.interfaces import NoSpace
from wbsim.models.machine import Machine, Primitives, build
from wbsim.sim.engine import GiveUp, Standstill
from wbsim.sim.invariants import LawBroken


def run_case(
    case: Case,
    seed: int,
    replication: int = 0,
    primitives: Primitives | None = None,
    on_progress: OnProgress | None = None,
) -> Outcome:
    """Simulate *case* in this process, and return its outcome, with the cost of the run.

    ``cpu_s`` is the processor time (s) of the run, without the building of its machine.  ``peak_rss_mib`` is
    the largest memory of this process since the call.

    *seed* and *replication* decide the random numbers.  *on_progress* is called after each iteration and
    every 10 s of simulated time.  *primitives*: those of another engine; None: the chosen engine's.

    Raises:
        BadInput: the workload does not end within the scenario's ``give_up``, comes to a standstill, or finds
            no space.
        LawBroken: the run broke a law of the model.
    """
    _forget_peak_rss()
    machine = build(case.scenario, seed, replication, primitives)
    iterations, levels = Iterations(case, machine, on_progress), LevelsOverTime(machine)
    start_s = time.process_time()
    _run(machine, case)
    cpu_s = time.process_time() - start_s
    outcome = outcome_of(case, seed, replication, machine, iterations, levels.levels())
    return replace(outcome, cpu_s=cpu_s, peak_rss_mib=_peak_rss_mib())


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

    *seed*: of the random numbers; the replication is 0.

    Raises:
        BadInput: the workload does not end within the scenario's ``give_up``, comes to a standstill, or finds
            no space.
        LawBroken: the run broke a law of the model.
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
