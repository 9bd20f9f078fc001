"""Speed and memory, as ratios in one run: make bench.

The bench is no test, because the machine may be shared.  It prints:

* the cost of a run of `wbsim --help`, of a run in a sweep, and of an event of a replay
* the cost of a file, a page, a write of 4 KiB and a merge on each engine, measured in turns
* the cost of a random write to RAID5 relative to one to a member
* P13: the time per file at full size relative to a tenth, and the largest resident set
* W25: the time per page of 120 and 144 GiB relative to 1 GiB, and the largest resident set
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench_engines import compare
from tests.bench_raid import parity_cost
from wbsim.experiments.captures.reader import open_capture
from wbsim.experiments.config.experiment import config_path, load
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.execute import How, run_jobs
from wbsim.experiments.running.jobs import Job
from wbsim.experiments.running.simulate import run_case
from wbsim.sim import COMPILED
from wbsim.sim.units import GIB

CLI = "wbsim.experiments.cli"


def main() -> None:
    """Print all measurements, the short ones first."""
    print(f"wbsim --help: {help_s():.2f} s of CPU")
    print(compare(["simpy", "light", *(["compiled"] if COMPILED else [])]))
    print(f"a run in a sweep: {overhead_ms():.2f} ms beyond the run itself, kept in a store")
    print(f"replay: {replay_us():.1f} us to read an event of a capture (1 M in as many s)")
    print(parity_cost())
    if "--short" not in sys.argv:
        full_size()
        large_files()


def large_files() -> None:
    """Print CPU time, memory, and time per page relative to 1 GiB of the same files, for the complete W25.

    Each case runs in a separate process.
    """
    for variant, small in (("A-pm-u", "7 MiB"), ("B-pm-u", "170 MiB")):
        tiny = [f'workload.filesize="{small}"', 'machine.memory.memory="1088 MiB"',
                'machine.memory.kernel_reserve="25 MiB"']  # fmt: skip
        whole, part = (_alone(variant, overrides) for overrides in ([], tiny))
        print(
            f"{variant:>10}: {whole.cpu_s:.0f} s of CPU for {whole.file_bytes // GIB} GiB in"
            f" {len(whole.extents)} files,"
            f" {whole.peak_rss_mib:.0f} MiB; time per page"
            f" {(whole.cpu_s / whole.file_bytes) / (part.cpu_s / part.file_bytes):.2f} times that of 1 GiB"
            " of them"
        )


def _alone(variant: str, overrides: list[str]) -> Outcome:
    cases = load(config_path("fragmentation.toml"), overrides).cases
    case = next(case for case in cases if case.variant == variant)
    with ProcessPoolExecutor(1) as pool:
        pool.submit(
            run_case, load(config_path("extents_dirty.toml")).cases[0], 1
        ).result()  # compile, or load, first
        return pool.submit(run_case, case, 1).result()


def help_s() -> float:
    """Return the CPU time of `wbsim --help` (s)."""
    before = os.times()
    subprocess.run([sys.executable, "-m", CLI, "--help"], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def overhead_ms(runs: int = 400) -> float:
    """Return the wall time that a run by a warm worker with a store takes longer than the run alone (ms)."""
    (case,) = load(config_path("question.toml"), ["workload.files=5", "workload.loops=2"]).cases
    jobs = [Job(case, 1, dice) for dice in range(runs)]
    run_case(*jobs[0])
    started = time.monotonic()
    for job in jobs:
        run_case(*job)
    alone_s = time.monotonic() - started
    with TemporaryDirectory() as directory:
        how = How(directory=Path(directory, "out"), processes=1)
        run_jobs(jobs[:2], how)
        started = time.monotonic()
        run_jobs(jobs, how)
        return 1e3 * (time.monotonic() - started - alone_s) / runs


def replay_us() -> float:
    """Return the CPU time per event of reading the largest committed capture (us)."""
    capture = open_capture(Path(__file__).parent / "captures" / "fsmark-xfs-ag8.trace.xz")
    before = time.process_time()
    events = sum(1 for _ in capture.events())
    return (time.process_time() - before) / events * 1e6


def full_size() -> None:
    """Print CPU time, memory, and time per file relative to a tenth of the files, for the complete P13."""
    full = load(config_path("plug.toml")).cases
    tenth = load(config_path("plug.toml"), ["workload.loops=12", 'machine.memory.memory="1638 MiB"',
                                            'machine.memory.kernel_reserve="40 MiB"']).cases  # fmt: skip
    started = time.monotonic()
    jobs = [Job(case, 1) for case in (*full, *tenth)]
    outcomes = run_jobs(jobs, How(progress="always" if sys.stderr.isatty() else "nothing")).all_outcomes()
    for whole, part in zip(outcomes[: len(full)], outcomes[len(full) :], strict=True):
        ratio = (whole.cpu_s / whole.samples[-1].count) / (part.cpu_s / part.samples[-1].count)
        print(
            f"{whole.variant:>10}: {whole.cpu_s:.0f} s of CPU for {whole.samples[-1].count} files,"
            f" {whole.peak_rss_mib:.0f} MiB; time per file {ratio:.2f} times that of a tenth of them"
        )
    print(f"all four runs took {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
