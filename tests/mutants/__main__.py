"""``make mutants PART=wbsim/models/block``: plant seeded mutants in a part, and print the survivors.
Without a part, forty are planted in each of nine parts, which together are all sources.

Each worker has a copy of the tree and writes a mutant there.  A forked process then runs the tests that
reach the mutant, the fastest first, until one fails.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing import Pool, current_process
from multiprocessing.pool import Pool as Workers
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.mutants.operators import Mutant, count, mutants
from tests.mutants.reach import Reach, measured

ROOT: Final = Path(__file__).parent.parent.parent
SOURCES: Final = ("wbsim",)
_EQUIVALENT: Final = Path(__file__).parent / "equivalent.toml"
_COPIED: Final = (
    *SOURCES,
    "tests",
    "notebooks",
    "docs",
    "pyproject.toml",
    "README.md",
    "compiled.toml",
    "constraints.txt",
    "Makefile",
)


PARTS: Final = {
    "processors": ("wbsim/models/scheduler",),
    "block layer": ("wbsim/models/block",),
    "throttling": ("wbsim/models/throttling", "wbsim/models/page_cache"),
    "locks and walks": (
        "wbsim/models/vfs",
        "wbsim/models/writeback",
        "wbsim/models/flushers",
        "wbsim/sim/sync.py",
    ),
    "filesystems": ("wbsim/models/filesystems",),
    "devices": ("wbsim/models/devices",),
    "why and runner": ("wbsim/experiments/why", "wbsim/experiments/running", "wbsim/experiments/sweeps"),
    "captures": ("wbsim/experiments/captures", "wbsim/experiments/machines", "wbsim/experiments/published"),
}
"""The parts by name; all other sources are the ninth part."""
_MOST_BYTES: Final = 4 << 30
_IMPORTED_ONCE: Final = (
    "matplotlib.figure", "numba", "pandas", "pyarrow.parquet", "pydantic", "pytest", "scipy.stats", "simpy",
    "sortedcontainers",
)  # fmt: skip


class Verdict(NamedTuple):
    """The result of the tests of a mutant.

    * ``fate``: "killed", "survived" or, if the tests did not end, "hung".
    * ``tests``: the number of tests.
    * ``killer``: the test that killed the mutant; the first test if the mutant cannot be imported.
    """

    mutant: Mutant
    fate: str
    tests: int
    killer: str


class Score(NamedTuple):
    """The number of mutants with each fate."""

    killed: int
    hung: int
    survived: int
    equivalent: int


class Job(NamedTuple):
    """A mutant, the tests that reach it (nearest first), and the time of each test without a mutant (s)."""

    mutant: Mutant
    tests: tuple[list[str], list[str]]
    seconds: dict[str, float]
    compiles: bool = False


def files_below(part: str) -> list[Path]:
    """Return the sources of a file or a folder."""
    top = ROOT / part
    files = [top] if top.is_file() else sorted(top.rglob("*.py"))
    if not files:
        sys.exit(f"PART={part}: no such file or folder; give one below {', '.join(SOURCES)}")
    return [file.relative_to(ROOT) for file in files]


def parts() -> dict[str, list[Path]]:
    """Return all sources, by part."""
    of = {name: [path for top in tops for path in files_below(top)] for name, tops in PARTS.items()}
    taken = {path for paths in of.values() for path in paths}
    return of | {"others": [path for top in SOURCES for path in files_below(top) if path not in taken]}


def sample(paths: Sequence[Path], most: int, seed: int) -> list[Mutant]:
    """Return *most* random mutants of all mutants of the files at *paths*."""
    places = [(path, number) for path in paths for number in range(count(ROOT / path))]
    chosen = random.Random(seed).sample(places, min(most, len(places)))
    found: list[Mutant] = []
    for path in paths:
        found += mutants(ROOT, path, sorted(number for of, number in chosen if of == path))
    return found


def judged_equivalent() -> dict[tuple[str, str, str], str]:
    """Return the reason why a mutant changes nothing, by its file and the line before and after."""
    entries = tomllib.loads(_EQUIVALENT.read_text()).get("mutant", [])
    return {(entry["file"], entry["before"], entry["after"]): entry["why"] for entry in entries}


def _judge(job: Job) -> Verdict:
    mutant, tests, _, _ = job
    copy = ROOT / ".mutants" / f"copy-{current_process().name.rsplit('-', 1)[-1]}"
    _bring_up_to_date(copy)
    target = copy / mutant.path
    original = target.read_bytes()
    try:
        target.write_text(mutant.code)
        killer = copy / ".killer"
        killer.write_text(next(iter([*tests[0], *tests[1]]), ""))
        fate = _fate(copy, job)
        return Verdict(mutant, fate, sum(map(len, tests)), killer.read_text() if fate != "survived" else "")
    finally:
        target.write_bytes(original)
        source = (ROOT / mutant.path).stat()
        os.utime(target, ns=(source.st_atime_ns, source.st_mtime_ns))
        _forget_compiled(copy)


def _forget_compiled(copy: Path) -> None:
    """Remove what Numba cached in *copy* for a mutant."""
    mine = {folder.name for folder in (ROOT / "wbsim" / "models" / "__pycache__").glob("numba-*")}
    for folder in (copy / "wbsim" / "models" / "__pycache__").glob("numba-*"):
        if folder.name not in mine:
            shutil.rmtree(folder, ignore_errors=True)


def _bring_up_to_date(copy: Path) -> None:
    if (copy / ".ready").exists():
        return
    copy.mkdir(exist_ok=True)
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            but = shutil.ignore_patterns("__pycache__", "mutants")
            shutil.rmtree(copy / name, ignore_errors=True)
            shutil.copytree(source, copy / name, symlinks=True, ignore=but)
        else:
            shutil.copy2(source, copy / name)
    (copy / ".ready").touch()
    _fate(copy, _WARM_UP)  # so that no mutant waits for Numba


_SAID: Final = ".said"
_WARM_UP: Final = Job(
    Mutant(Path(), 0, "", "", ""), (["tests/contracts", "tests/models/block"], []), {}, True
)


def _fate(copy: Path, job: Job) -> str:
    """Run the tests of *job* in *copy*, in a separate process; return the fate of the mutant."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        try:
            _run(copy, job)
        finally:
            os._exit(2)  # the child must never continue as the parent
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # processes that a test left behind
    if ended == -signal.SIGALRM:
        return "hung"
    return "killed" if ended else "survived"


def _run(copy: Path, job: Job) -> None:
    """Run pytest in the forked process, over each list of tests until one fails; keep no files."""
    signal.alarm(60)  # for the imports; each test sets another alarm
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    said = os.open(copy / _SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    current_process().daemon = False  # a test may start processes
    for name in [name for name in sys.modules if name.split(".")[0] in ("wbsim", "tests")]:
        del sys.modules[name]
    os.chdir(copy)
    sys.path[:] = [str(copy), *(entry for entry in sys.path if entry not in ("", str(ROOT)))]
    os.environ |= {"PYTHONPATH": str(copy), "WBSIM_MUTANTS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
    witness = _Witness(job)
    os._exit(int(any(pytest.main([*options, *chosen], [witness]) for chosen in job.tests if chosen)))


class _Witness:
    """A pytest plugin that records the failed test, and ends the process if a test takes far too long."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        seconds = self._job.seconds.get(nodeid, 10.0) + (60 if self._job.compiles else 0)
        signal.alarm(int(10 + 5 * seconds))
        Path(".killer").write_text(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            Path(".killer").write_text(report.nodeid)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("part", nargs="?", help="a file or a folder: wbsim/sim, wbsim/models/block ...")
    parser.add_argument("--most", type=int, help="how many mutants; 150 of one part, or 40 of each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--last-reach", action="store_true", help="do not measure again what reaches what")
    given = parser.parse_args()
    reach = measured(ROOT, SOURCES, given.last_reach)
    for ready in (ROOT / ".mutants").glob("copy-*/.ready"):
        ready.unlink()
    asked = {given.part: files_below(given.part)} if given.part else parts()
    most = given.most or (150 if given.part else 40)
    for name in _IMPORTED_ONCE:  # before the fork
        import_module(name)
    with Pool(given.processes) as pool:
        scores = [_plant(part, sample(paths, most, given.seed), reach, pool) for part, paths in asked.items()]
    if len(scores) > 1:
        _tell("all", *map(sum, zip(*scores, strict=True)))


def _plant(part: str, found: Sequence[Mutant], reach: Reach, pool: Workers) -> Score:
    """Run the tests for the mutants *found* in *part*, print the score and return it."""
    jobs = []
    for mutant in found:
        tests = reach.tests_of(mutant.path, mutant.line)
        compiles = "wbsim.models.arrays.compiled" in mutant.code
        jobs.append(Job(mutant, tests, reach.seconds([*tests[0], *tests[1]]), compiles))
    score, killers = report(pool.imap_unordered(_judge, jobs), part)
    whole = jobs[0].mutant._replace(code=(ROOT / jobs[0].mutant.path).read_text())
    without = pool.apply(_judge, (Job(whole, (sorted(killers), []), reach.seconds(sorted(killers))),))
    if without.fate != "survived":
        print(f"without any mutant, too, {without.fate}: {without.killer}; so the figures say nothing")
        sys.exit(f"what pytest said is in .mutants/copy-*/{_SAID}")
    return score


def report(found: Iterator[Verdict], part: str) -> tuple[Score, set[str]]:
    """Print each survivor when it is found, and the score; return the score and the killing tests."""
    equivalent = judged_equivalent()
    killers: set[str] = set()
    tally = {"killed": 0, "hung": 0, "survived": 0, "equivalent": 0}
    for verdict in found:
        mutant = verdict.mutant
        fate = verdict.fate
        if fate == "survived" and (str(mutant.path), mutant.before, mutant.after) in equivalent:
            fate = "equivalent"
        tally[fate] += 1
        killers.add(verdict.killer if fate == "killed" else "")
        if fate == "survived":
            print(f"{mutant}  [{verdict.tests} tests]", flush=True)
    score = Score(**tally)
    _tell(part, *score)
    return score, killers - {""}


def _tell(part: str, killed: int, hung: int, survived: int, equivalent: int) -> None:
    seen, judged = killed + hung, killed + hung + survived
    print(
        f"{part}: {seen} of {judged} killed ({100 * seen / max(judged, 1):.0f} %), {hung} of them hung;"
        f" {equivalent} judged equivalent",
        flush=True,
    )


if __name__ == "__main__":
    main()
