"""The tests that reach a line, and the time of each test.

They are measured once for a state of the tests: the complete suite runs under coverage, with a context for
each test.  Coverage does not see code that Numba compiles or that runs at an import.  Such a line is reached
by all tests that reach any line of the file.  The tests of the mirrored folder, the contracts, and the tests
of the catalogue reach such a line, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from coverage import CoverageData

_KEPT: Final = Path(".mutants")
BUDGET_S: Final = 60.0
"""The most seconds of tests that run for one mutant, the fastest first."""


class Reach:
    """The tests by line, and their times (s)."""

    def __init__(
        self, root: Path, by_line: dict[str, dict[str, list[str]]], seconds: dict[str, float]
    ) -> None:
        self._root = root
        self._by_line = by_line
        self._seconds = seconds
        self._files = {test.split("::")[0] for test in seconds}

    def tests_of(self, path: Path, line: int) -> tuple[list[str], list[str]]:
        """Return the ids of the tests that reach *line* of *path*, the fastest first.

        The tests of the mirrored folder and the others are two lists.
        """
        lines = self._by_line.get(str(path), {})
        found = lines.get(str(line)) or {*chain.from_iterable(lines.values()), *self._mirrored(path)}
        near, far, spent_s = self._unmeasured(path), list[str](), 0.0
        mirrored = f"tests/{_mirror(path)}/"
        for test in sorted(found, key=lambda test: self._seconds.get(test, 0.0)):
            spent_s += self._seconds.get(test, 0.0)
            if spent_s > BUDGET_S and (near or far):
                break
            (near if test.startswith(mirrored) else far).append(test)
        return near, far

    def seconds(self, tests: Sequence[str]) -> dict[str, float]:
        """Return the time (s) of each of *tests* that was measured."""
        return {test: self._seconds[test] for test in tests if test in self._seconds}

    def _unmeasured(self, path: Path) -> list[str]:
        """Return the test files in the mirrored folder that are newer than the measurement."""
        found = (self._root / "tests" / _mirror(path)).glob("test_*.py")
        names = (str(file.relative_to(self._root)) for file in found)
        return sorted(name for name in names if name not in self._files)

    def _mirrored(self, path: Path) -> list[str]:
        folders = f"tests/{_mirror(path)}/", "tests/contracts/", "tests/models/catalogue/"
        return [test for test in self._seconds if test.startswith(folders)]


def _mirror(path: Path) -> Path:
    """Return the folder with the tests of *path*; the parts of a variant are tested in its folder."""
    place = path.relative_to("wbsim")
    return Path(*place.parts[:2]) if place.parts[0] == "models" else place.parent


def measured(root: Path, sources: Sequence[str], last: bool) -> Reach:
    """Return the reach of the tests below *root* into *sources*.

    It is measured unless a measurement of this state, or with *last* of any state, is kept.
    """
    kept = root / _KEPT / f"reach-{_digest(root, sources)}.json"
    before = sorted((root / _KEPT).glob("reach-*.json"), key=lambda file: file.stat().st_mtime)
    if last and before and not kept.exists():
        kept = before[-1]
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        print("which tests reach what: the whole suite once, under coverage (minutes)", flush=True)
        kept.write_text(json.dumps(_measure(root, sources)))
    return Reach(root, **json.loads(kept.read_text()))


def _digest(root: Path, sources: Sequence[str]) -> str:
    digest = blake2b(digest_size=8)
    for top in (*sources, "tests"):
        for file in sorted((root / top).rglob("*.py")):
            if "mutants" not in file.parts:
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _measure(root: Path, sources: Sequence[str]) -> dict[str, object]:
    data, times = root / _KEPT / "coverage", root / _KEPT / "times.xml"
    config = root / _KEPT / "coveragerc"
    config.write_text(f"[run]\ndata_file = {data}\nparallel = true\n")
    command = [
        sys.executable, "-m", "pytest", "-q", "-n", "auto", f"--junitxml={times}", "--cov-context=test",
        "--cov-report=", f"--cov-config={config}", *(f"--cov={source}" for source in sources),
    ]  # fmt: skip
    subprocess.run(command, cwd=root, check=True)
    coverage = CoverageData(str(data))
    coverage.read()
    by_line = {
        str(Path(file).relative_to(root.resolve())): {
            str(line): sorted({context.rsplit("|", 1)[0] for context in contexts if context})
            for line, contexts in coverage.contexts_by_lineno(file).items()
        }
        for file in coverage.measured_files()
    }
    return {"by_line": by_line, "seconds": _seconds(times)}


def _seconds(times: Path) -> dict[str, float]:
    """Return the time (s) of each test, by its id."""
    return {
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}": float(case.get("time", 0))
        for case in ElementTree.parse(times).iter("testcase")
    }
