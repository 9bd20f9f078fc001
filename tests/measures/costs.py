"""The cost of a run as a number that is the same in each run: counted work times measured weights.

A change that makes a run slower is found here, in the default suite, and not a month later in a benchmark.
The time of a run differs from run to run, so the work of tiny runs of P13, W25 and V13 is counted instead:

| count | meaning |
|---|---|
| steps | instructions of Python's interpreter in `sim` and `models` |
| calls | calls in them |
| names | look-ups by name: getattr, setattr, hasattr, `__dict__` |
| objects | calls of `__init__` |
| starts | generators that begin |
| resumptions | waits of generators, each of which is resumed |
| pushes | entries that are put on the agenda |
| Numba calls | calls of functions that Numba compiled |
| interpreted calls | calls of Python's interpreter by the compiled engine, in `sim` and `models` |

All but the last are counted on the interpreted engine, which runs the same source.  The weights (ns) are
those of the compiled engine; ``--weigh`` measures them again.  The sum of a report may grow by `MOST`.  A
commit that needs more raises the committed sum, with a reason and the ratio of P13's CPU times in pairs
(`make bench`):

    python -m tests.measures.costs --write --because "fsync waits for its file" --pairs 1.03

costs.toml has the counts, and stops.tsv a line for each stop: commit, sums, ratio of the pairs, reason.
"""

from __future__ import annotations

import argparse
import dis
import inspect
import json
import os
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

Counts = dict[str, int]

ROOT: Final = Path(__file__).parent.parent.parent
PATH: Final = Path(__file__).parent / "costs.toml"
STOPS: Final = Path(__file__).parent / "stops.tsv"
COUNTED: Final = (f"{os.sep}wbsim{os.sep}sim{os.sep}", f"{os.sep}wbsim{os.sep}models{os.sep}")
MOST: Final = 1.02
"""The largest ratio of a sum to the committed one."""
PYTHON: Final = (3, 11)
"""The release of Python whose instructions are committed; another one has others."""
WEIGHTS: Final = {
    "steps": 1.8, "calls": 0.0, "names": 28.0, "objects": 80.0, "starts": 0.0, "resumptions": 0.0,
    "pushes": 0.0, "Numba calls": 1_880.0, "interpreted calls": 100.0,
}  # fmt: skip
"""The time of each count (ns).

`--weigh` gave those of steps and of Numba calls.  In its runs, calls, starts, resumptions and pushes take no
time beyond that of their steps.  The others were timed alone on the compiled engine: getattr, the making of a
request, and an empty function.
"""
_BY_NAME: Final = ("getattr", "setattr", "hasattr", "__dict__")


class Run(NamedTuple):
    """A case of a configuration, made smaller by *overrides*."""

    config: str
    variant: str
    overrides: tuple[str, ...]


def _p13(variant: str) -> Run:
    memory = ('machine.memory.memory="40 MiB"', 'machine.memory.kernel_reserve="20 MiB"')
    return Run("plug.toml", variant, ("workload.loops=2", "workload.files=200", *memory))


def _w25(variant: str) -> Run:
    memory = ('machine.memory.memory="136 MiB"', 'machine.memory.kernel_reserve="3 MiB"')
    return Run("fragmentation.toml", variant, ('workload.filesize="256 KiB"', *memory))


def _v13(variant: str, *overrides: str) -> Run:
    return Run("inodes.toml", variant, ("mounts.scratch.files=4000", *overrides))


_FEW: Final = ("programs.make.loops=1", "programs.make.files=60")
RUNS: Final = {
    "P13": (_p13("unpatched"), _p13("patched")),
    "W25": (_w25("A-pm-u"), _w25("A-pm-p")),
    "V13": (_v13("create", *_FEW), _v13("unlink")),
}
"""The runs whose costs are added, by report."""


class Work:
    """The instructions that ran, by code and place; `trace` is for sys.settrace."""

    def __init__(self) -> None:
        self._ran: dict[CodeType, list[int]] = {}
        self._globals: dict[CodeType, dict[str, Any]] = {}
        self._begins: dict[CodeType, int] = {}  # the place of the instruction at which a call begins
        self._begun: Counter[CodeType] = Counter()

    def trace(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        """Begin to count the instructions of *frame*, if its code is of `sim` or `models`."""
        code = frame.f_code
        if not any(part in code.co_filename for part in COUNTED):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if code not in self._ran:
            self._ran[code], self._globals[code] = [0] * len(code.co_code), frame.f_globals
            self._begins[code] = next(at.offset for at in dis.get_instructions(code) if at.opname == "RESUME")
        self._begun[code] += frame.f_lasti == self._begins[code]
        ran = self._ran[code]

        def count(frame: FrameType, event: str, arg: object) -> Any:
            if event == "opcode":
                ran[frame.f_lasti] += 1
            return count

        return count

    def counts(self) -> Counts:
        """Return the counts of all instructions so far."""
        from wbsim.models.arrays.compiled import Compiled

        found: Counter[str] = Counter(dict.fromkeys(WEIGHTS, 0))
        del found["interpreted calls"]
        for code, ran in self._ran.items():
            found["steps"] += sum(ran)
            begun = self._begun[code]
            found["objects"] += begun if code.co_name == "__init__" else 0
            found["pushes"] += begun if code.co_qualname in ("Agenda.push", "Agenda.pushpop") else 0
            found["starts"] += begun if code.co_flags & inspect.CO_GENERATOR else 0
            for at in dis.get_instructions(code):
                times = ran[at.offset]
                if at.opname in ("CALL", "CALL_FUNCTION_EX"):
                    found["calls"] += times
                elif at.opname == "YIELD_VALUE":
                    found["resumptions"] += times
                elif at.opname in ("LOAD_GLOBAL", "LOAD_ATTR"):
                    found["names"] += times if at.argval in _BY_NAME else 0
                    if at.opname == "LOAD_GLOBAL":
                        value = self._globals[code].get(at.argval)
                        found["Numba calls"] += times if isinstance(value, Compiled) else 0
        return dict(found)


def machine_of(run: Run) -> Any:
    """Return a machine that is ready for *run*."""
    from wbsim.experiments.config.experiment import config_path, load
    from wbsim.models.machine import build

    (case,) = load(config_path(run.config), run.overrides, run.variant).cases
    return build(case.scenario, 1)


def counts_of(run: Run) -> Counts:
    """Return the counts of *run*, in this process."""
    from wbsim.sim import COMPILED

    machine_of(run).run()  # Numba compiles, or loads, its functions
    machine = machine_of(run)
    if COMPILED:
        return {"interpreted calls": _interpreted_calls(machine)}
    work = Work()
    sys.settrace(work.trace)
    try:
        machine.run()
    finally:
        sys.settrace(None)
    return work.counts()


def _interpreted_calls(machine: Any) -> int:
    """Return how many functions of `sim` and `models` the interpreter runs in a run of *machine*."""
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        if event == "call" and any(part in frame.f_code.co_filename for part in COUNTED):
            calls += 1

    sys.setprofile(count)
    try:
        machine.run()
    finally:
        sys.setprofile(None)
    return calls


def cost(counts: Counts) -> float:
    """Return the weighted sum of *counts* (ms)."""
    return sum(WEIGHTS[name] * count for name, count in counts.items()) / 1e6


def measure(engine: str) -> dict[str, Counts]:
    """Return the counts of each report on *engine*, from a new process (about 20 s on the source)."""
    command = [sys.executable, "-m", "tests.measures.costs", "--json"]
    environment = {**os.environ, "WBSIM_ENGINE": engine, "PYTHONHASHSEED": "0"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"the costs cannot be counted:\n{ran.stderr}")
    found: dict[str, Counts] = json.loads(ran.stdout)
    return found


def counts_by_report() -> dict[str, Counts]:
    """Return the counts of each report, in this process."""
    sums = {}
    for report, runs in RUNS.items():
        found: Counter[str] = Counter()
        for run in runs:
            found.update(counts_of(run))
        sums[report] = dict(found)
    return sums


def read(path: Path = PATH) -> dict[str, Counts]:
    """Return the committed counts by report."""
    found: dict[str, Counts] = tomllib.loads(path.read_text())
    return found


def text_of(counts: dict[str, Counts]) -> str:
    """Return the content of costs.toml."""
    parts = ["# The counted work of tiny runs: see `tests.measures.costs`, which writes this file.\n"]
    for report, of in counts.items():
        parts += [f"\n[{report}]\n", *(f'"{name}" = {count}\n' for name, count in of.items())]
    return "".join(parts)


def excesses(counts: dict[str, Counts], committed: dict[str, Counts]) -> list[str]:
    """Return a line for each report whose cost is more than `MOST` times the *committed* one.

    Only names that are in *counts* are compared, so each engine compares what it counts.
    """
    lines = []
    for report, now in counts.items():
        before = {name: committed[report][name] for name in now}
        ratio = cost(now) / cost(before)
        if ratio > MOST:
            grown = ", ".join(
                f"{name} {before[name]} -> {count}" for name, count in now.items() if count > before[name]
            )
            lines.append(
                f"{report} costs {ratio:.3f} of the committed sum ({grown}); make it cheaper, or run `make"
                " bench AGAINST=` and python -m tests.measures.costs --write --because REASON --pairs RATIO"
            )
    return lines


def stop_line(counts: dict[str, Counts], because: str, pairs: str) -> str:
    """Return the line of this stop: day, commit before, sums (ms), ratio of the pairs, reason."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    sums = (f"{cost(counts[report]):.2f}" for report in RUNS)
    return "\t".join((time.strftime("%Y-%m-%d"), commit, *sums, pairs, because)) + "\n"


def report() -> str:
    """Return the table of the costs, and of what is committed."""
    from wbsim.experiments.formats.table import table

    counts, committed = measure("light"), read()
    names = [name for name in WEIGHTS if name != "interpreted calls"]
    rows = [(name, *(f"{counts[of][name]} ({committed[of][name]})" for of in counts)) for name in names]
    return table(("count (committed)", *counts), rows)


def weigh() -> None:
    """Print the weights that explain the CPU time of small runs on the compiled engine best.

    Each run is counted on the interpreted engine, and timed on the compiled one: the least of nine times.
    Look-ups by name are too few in these runs; the weight of one is the time of getattr.
    """
    import numpy as np
    from scipy.optimize import nnls

    runs = [run for of in RUNS.values() for run in of]
    runs += [
        _v13("bulkstat"), _v13("lookup"), _w25("A-bm-p"), _w25("A-bm-u"),
        Run("question.toml", "base", ("workload.loops=2", "workload.files=200")),
    ]  # fmt: skip
    names = [name for name in WEIGHTS if name not in ("interpreted calls", "names")]
    counted = {str(run): _of_other_process("light", run) for run in runs}
    times = np.array([_of_other_process("compiled", run)["ns"] for run in runs], float)
    work = np.array([[counted[str(run)][name] for name in names] for run in runs], float)
    found, _ = nnls(work / times[:, None], np.ones(len(runs)))
    for name, weight in zip(names, found, strict=True):
        print(f"{name:>12}: {weight:.1f} ns")
    for run, ns, ratio in zip(runs, times, work @ found / times, strict=True):
        print(f"{run.config} {run.variant}: {ns / 1e6:.1f} ms, {ratio:.2f} by the weights")


def _of_other_process(engine: str, run: Run) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.measures.costs", "--run", json.dumps(run)]
    environment = {**os.environ, "WBSIM_ENGINE": engine, "PYTHONHASHSEED": "0"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(ran.stdout)
    return found


def _counted_or_timed(run: Run) -> dict[str, int]:
    """Return the counts of *run* or, on the compiled engine, its least CPU time of nine (ns)."""
    from wbsim.sim import COMPILED

    if not COMPILED:
        return counts_of(run)
    times = []
    for _ in range(9):
        machine = machine_of(run)
        began = time.process_time_ns()
        machine.run()
        times.append(time.process_time_ns() - began)
    return {"ns": min(times)}


def main(argv: list[str] | None = None) -> None:
    """Print the costs, or write them to costs.toml and stops.tsv."""
    parser = argparse.ArgumentParser(prog="python -m tests.measures.costs", description=__doc__)
    parser.add_argument("--json", action="store_true", help="count in this process and print JSON")
    parser.add_argument("--run", metavar="JSON", help="count or time one run in this process")
    parser.add_argument("--weigh", action="store_true", help="measure the weights (minutes)")
    parser.add_argument("--write", action="store_true", help="write costs.toml, and a line of stops.tsv")
    parser.add_argument("--because", metavar="REASON", help="with --write: why the sums changed")
    parser.add_argument(
        "--pairs", metavar="RATIO", help="with --write: the median ratio of make bench AGAINST="
    )
    arguments = parser.parse_args(argv)
    if arguments.json:
        print(json.dumps(counts_by_report()))
    elif arguments.run:
        config, variant, overrides = json.loads(arguments.run)
        print(json.dumps(_counted_or_timed(Run(config, variant, tuple(overrides)))))
    elif arguments.weigh:
        weigh()
    elif arguments.write:
        if not arguments.because or not arguments.pairs:
            parser.error("--write needs a reason and a measurement: give --because REASON and --pairs RATIO")
        counts = measure("light")
        for of, compiled in measure("compiled").items():
            counts[of] |= compiled
        PATH.write_text(text_of(counts))
        with STOPS.open("a") as stops:
            stops.write(stop_line(counts, arguments.because, arguments.pairs))
    else:
        print("\n".join(excesses(measure("light"), read())) or "no cost grew by more than 2 %")


if __name__ == "__main__":
    main()
