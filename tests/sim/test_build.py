"""Which build of the models runs, and when none does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wbsim.sim.build import PACKAGE, digest, engine

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "wbsim"
SAY = """
import wbsim.models.machine
from wbsim import sim
print(sim.build.engine(sim.COMPILED), sim.engine.__file__)
"""


def told(
    engine_name: str, *built: Path, command: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What a fresh process says of its engine, with *built* before all else on its path."""
    environment = dict(os.environ)
    environment.pop("WBSIM_ENGINE", None)
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, (*built, ROOT)))}
    environment |= {"WBSIM_ENGINE": engine_name} if engine_name else {}
    return subprocess.run(
        [sys.executable, *(command or ["-c", SAY])],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def build_of(folder: Path, of: str) -> Path:
    """What looks like a build, of the sources with the digest *of*."""
    package = folder / PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "digest").write_text(of)
    return folder


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A tree with one source in each of the two folders."""
    for folder in ("sim", "models/block"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "one.py").write_text("x = 1\n")
    return tmp_path


def test_any_change_of_a_source_shows(sources: Path) -> None:
    """Of its text, its name, or that it is there; and nothing else."""
    seen = {digest(sources)}
    (sources / "README").write_text("not a source")
    (sources / "sim" / "notes.txt").write_text("nor this")
    assert digest(sources) in seen
    for change in (
        lambda: (sources / "models/block/one.py").write_text("x = 2\n"),
        lambda: (sources / "sim" / "two.py").write_text(""),
        lambda: (sources / "sim" / "two.py").rename(sources / "sim" / "three.py"),
        lambda: (sources / "sim" / "three.py").unlink() or (sources / "sim" / "one.py").unlink(),
    ):
        change()
        assert digest(sources) not in seen
        seen.add(digest(sources))


@pytest.mark.parametrize("wanted", ["", "compiled"])
def test_a_build_of_other_sources_is_refused(tmp_path: Path, wanted: str) -> None:
    """One error that names the place and the remedy, status 2; and the remedy helps."""
    old = build_of(tmp_path, "of yesterday")
    run = ["-m", "wbsim.experiments.cli", "run", "--fs-mark", "fs_mark -S0 -k -d /x -n 3 -s 4096"]
    refused = told(wanted, old, command=run)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr == (
        f"wbsim: the compiled engine in {old / PACKAGE} was made of other sources than those in {SOURCES};"
        " build it anew with make compiled, or do without it: WBSIM_ENGINE=light\n"
    )
    assert told("light", old, command=run).returncode == 0
    assert told(wanted, old, command=[*run, "--engine", "light"]).returncode == 0


def test_a_build_of_these_sources_is_taken(tmp_path: Path) -> None:
    """Unless another engine is asked for; what it does not hold comes from its source."""
    new = build_of(tmp_path, digest(SOURCES))
    for wanted, runs in (("", "compiled"), ("compiled", "compiled"), ("light", "light"), ("simpy", "simpy")):
        said = told(wanted, new)
        assert said.stdout == f"{runs} {SOURCES / 'sim' / 'engine.py'}\n", said.stderr


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """A folder without a build is none; an engine that does not exist is refused."""
    (tmp_path / PACKAGE).mkdir()  # what a build that was broken off leaves
    missing = told("compiled", tmp_path, command=["-S", "-c", SAY])
    assert "the compiled engine was not built; build it with make compiled, or use light" in missing.stderr
    unknown = told("fast")
    assert unknown.returncode == 1
    assert "WBSIM_ENGINE=fast: there is no such engine; use one of simpy, light, compiled" in unknown.stderr


def test_an_engine_is_chosen_before_the_models_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Afterwards only between the two that run from the source."""
    monkeypatch.delenv("WBSIM_ENGINE", raising=False)
    assert [engine(compiled) for compiled in (True, False)] == ["compiled", "light"]
    for wanted, compiled in (("simpy", False), ("light", False), ("compiled", True)):
        monkeypatch.setenv("WBSIM_ENGINE", wanted)
        assert engine(compiled) == wanted
        with pytest.raises(ImportError, match=f"{wanted}: too late"):
            engine(not compiled)


def test_without_numba_the_light_engine_runs(tmp_path: Path) -> None:
    """Also where a build of these sources is there; who asks for it is told."""
    built = build_of(tmp_path, digest(SOURCES))
    command = ["-c", "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'; " + SAY]
    assert told("", built, command=command).stdout.startswith("light ")
    refused = told("compiled", built, command=command)
    assert "the compiled engine needs Numba; leave NUMBA_DISABLE_JIT out" in refused.stderr
