"""``make fuzz MINUTES=60``: runs of any scenario, questions about results, and inputs with faults.

Each processor takes one round after another until the time is over: scenarios on the source, scenarios
compiled, inputs, results.  Each round has other examples.  A failure is printed with the command that repeats
it, and the other rounds continue.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Final

SCENARIOS, INPUTS = "tests/laws/test_any_scenario.py", "tests/laws/test_any_input.py"
RESULTS = "tests/laws/test_any_result.py"
KINDS: Final = ((SCENARIOS, "light"), (SCENARIOS, "compiled"), (INPUTS, "light"), (RESULTS, "light"))


def one_round(number: int, examples: int) -> tuple[str, bool]:
    """Run round *number* with *examples* examples of each test; return its name, and whether it passed."""
    file, engine = KINDS[number % len(KINDS)]
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--hypothesis-profile=untimed",
        f"--hypothesis-seed={number}",
        file,
    ]
    environment = {**os.environ, "EXAMPLES": str(examples), "WBSIM_ENGINE": engine}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        again = f"EXAMPLES={examples} WBSIM_ENGINE={engine} {' '.join(words[1:])}"
        print(f"{ended.stdout[-30_000:]}\n{again}", flush=True)
    return f"{file} on {engine}", not ended.returncode


def main() -> None:
    """Run rounds until the time is over, and print the number of failures of each kind."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--examples", type=int, default=100, help="of each test in a round")
    parser.add_argument("--first", type=int, help="the seed of the first round; the time (s) by default")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    given = parser.parse_args()
    first = int(time.time()) if given.first is None else given.first
    print(f"each round has a seed, from {first} on; --first {first} draws the same examples", flush=True)
    until, numbers = time.monotonic() + 60 * given.minutes, count(first)
    rounds: dict[str, list[bool]] = {}

    def work() -> None:
        while time.monotonic() < until:
            what, passed = one_round(next(numbers), given.examples)
            rounds.setdefault(what, []).append(passed)

    with ThreadPoolExecutor(given.processes) as pool:
        for worker in [pool.submit(work) for _ in range(given.processes)]:
            worker.result()
    for what, passed in sorted(rounds.items()):
        print(f"{what}: {len(passed)} rounds of {given.examples} of each test, {passed.count(False)} failed")
    sys.exit(any(not all(passed) for passed in rounds.values()))


if __name__ == "__main__":
    main()
