"""The costs of the engines, measured in turns: a part of make bench.

Run as a program, it measures the engine that WBSIM_ENGINE names, and prints one JSON document.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import blake2b
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

from tests.harness import LIMITS, BlockLayer
from wbsim.experiments.config.experiment import config_path, load
from wbsim.experiments.running.simulate import run_case
from wbsim.models.bio import Bio
from wbsim.models.block.plug import plug_decisions
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.models.devices.ssd import Ssd
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import Steps
from wbsim.sim.units import PAGE_BYTES, PAGE_SECTORS

TURNS: Final = 3
FILES: Final = ["workload.files=2500", "workload.loops=12", 'machine.memory.memory="256 MiB"',
                'machine.memory.kernel_reserve="0 B"']  # fmt: skip
PAGES: Final = ['workload.filesize="2 MiB"', 'machine.memory.memory="320 MiB"',
                'machine.memory.kernel_reserve="25 MiB"']  # fmt: skip
PLUGGED: Final = 1_024
WRITES: Final = 300_000
BIOS: Final = 1_000_000
STREAMS: Final = 8


class Cost(NamedTuple):
    """A measurement: the CPU time of one item (us), and a digest of the results."""

    name: str
    us: float
    results: str


def compare(engines: list[str]) -> str:
    """Return a table of the costs of *engines*, and of the ratios of the last two, measured in turns."""
    measured: dict[str, dict[str, list[float]]] = {}
    results: dict[str, str] = {}
    for _ in range(TURNS):
        for engine in engines:
            for name, us, digest in _measure(engine):
                measured.setdefault(name, {}).setdefault(engine, []).append(us)
                assert results.setdefault(name, digest) == digest, f"{name}: the results of {engine} differ"
    heads = [f"us of CPU, the least of {TURNS}", *engines, "times"]
    table = [heads] + [_line(name, [of.get(engine) for engine in engines]) for name, of in measured.items()]
    lines = [f"{row[0]:<38}" + "".join(f"{cell:>10}" for cell in row[1:]) for row in table]
    lines.append(f"times: {engines[-2]} to {engines[-1]}, in the median; the results are the same")
    return "\n".join(lines)


def _line(name: str, us: list[list[float] | None]) -> list[str]:
    cells = ["" if of is None else f"{min(of):.3f}" if min(of) < 1 else f"{min(of):.2f}" for of in us]
    slower, faster = us[-2] or [], us[-1] or []
    ratios = [a / b for a, b in zip(slower, faster, strict=False)]
    return [name, *cells, f"{median(ratios):.1f}" if ratios else ""]


def _measure(engine: str) -> Iterator[Cost]:
    command = [sys.executable, "-m", "tests.bench_engines"]
    environment = {**os.environ, "WBSIM_ENGINE": engine}
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return (Cost(*row) for row in json.loads(run.stdout))


def costs() -> Iterator[Cost]:
    """Yield all costs on the engine that runs here; on SimPy without the parts that run alone."""
    for case in load(config_path("plug.toml"), FILES).cases:
        outcome = run_case(case, 1)
        yield _cost(f"P13 {case.variant}: a file", outcome.cpu_s, outcome.samples[-1].count, outcome)
    cases = load(config_path("fragmentation.toml"), PAGES).cases
    case = next(case for case in cases if case.variant == "A-pm-u")
    run_case(case, 1)  # compile, or load, first
    outcome = run_case(case, 1)
    yield _cost("W25 A: a page", outcome.cpu_s, outcome.file_bytes // PAGE_BYTES, outcome)
    if os.environ.get("WBSIM_ENGINE") == "simpy":
        return
    for order in ("sequential", "random"):
        yield _writes(order, WRITES)
    for era in ("3.11", "6.17"):
        yield from _merging(era)


def _cost(name: str, cpu_s: float, of: int, results: Any) -> Cost:
    if hasattr(results, "samples"):
        results = (results.samples, results.locks, results.merges, results.log_bytes, results.extents)
    return Cost(name, cpu_s / of * 1e6, blake2b(repr(results).encode(), digest_size=8).hexdigest())


def _writes(order: str, count: int) -> Cost:
    """Measure *count* writes of 4 KiB through plug and queue to a PM9A3."""
    spec = DRIVES["pm9a3"].device
    layer = BlockLayer(
        era="6.17", pool="tags", nr_requests=1_023, depth=1_023,
        device=lambda env: Ssd(env=env, spec=spec, name="nvme0n1"),
    )  # fmt: skip
    blocks = np.arange(count) if order == "sequential" else 2 * np.random.default_rng(1).permutation(count)
    starts = (blocks * PAGE_SECTORS).tolist()

    def body(thread: Thread) -> Steps:
        for at in range(0, count, PLUGGED):
            thread.start_plug()
            for start in starts[at : at + PLUGGED]:
                yield from layer.submit(thread, layer.bio(start))
            yield from thread.finish_plug()

    started = time.process_time()
    layer.run(body)
    cpu_s = time.process_time() - started
    assert len(layer.ended) == count, "each write must end once"
    return _cost(f"4 KiB {order}: a write", cpu_s, count, (layer.env.now, layer.queue.stat.writes.ios))


def _merging(era: str) -> Iterator[Cost]:
    """Measure a million bios of 4 KiB in eight interleaved streams through one plug of *era*."""
    rules, at = PLUG_RULES[era], np.arange(BIOS)
    blocks = ((at % STREAMS << 25) + at // STREAMS).tolist()
    bios = [Bio(block * PAGE_SECTORS, PAGE_SECTORS, queue="sda") for block in blocks]
    gc.disable()
    started = time.process_time()
    _decisions, batches = plug_decisions(bios, rules, LIMITS)
    cpu_s = time.process_time() - started
    gc.enable()
    requests = sum(len(batch) for batch in batches)
    yield _cost(f"merging, {era}: a bio", cpu_s, BIOS, requests)


if __name__ == "__main__":
    print(json.dumps(list(costs())))
