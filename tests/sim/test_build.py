"""The choice of the build of the models that runs, and the builds that are refused."""

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
    """Run a new process, with *built* first on its path, that prints its engine; return the process."""
    environment = dict(os.environ)
    environment.pop("WBSIM_ENGINE", None)
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, (*built, ROOT)))}
    environment |= {"WBSIM_ENGINE": engine_name} if engine_name else {}
    return subprocess.run(
        [sys.executable, *(command or ["-c", SAY])],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def build_of(folder: Path, of: str) -> Path:
    """Make a package in *folder* that looks like a build of sources with the digest *of*; return *folder*."""
    package = folder / PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "digest").write_text(of)
    return folder


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Return a tree with one source in each of two folders."""
    for folder in ("sim", "models/block"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "one.py").write_text("x = 1\n")
    return tmp_path


def test_digest_changes_with_any_change_of_a_source(sources: Path) -> None:
    """The digest changes with the text, the name and the existence of a source, and not with other files."""
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
def test_build_of_other_sources_is_refused(tmp_path: Path, wanted: str) -> None:
    """One error names the place and the remedy, with status 2, and the remedy works."""
    old = build_of(tmp_path, "of yesterday")
    run = ["-m", "wbsim.experiments.cli", "run", "--fs-mark", "fs_mark -S0 -k -d /x -n 3 -s 4096"]
    refused = told(wanted, old, command=run)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr == (
        f"wbsim: the compiled engine in {old / PACKAGE} does not have the sources in {SOURCES};"
        " build it again with make compiled, or use WBSIM_ENGINE=light\n"
    )
    assert told("light", old, command=run).returncode == 0
    assert told(wanted, old, command=[*run, "--engine", "light"]).returncode == 0


def test_build_of_these_sources_is_used(tmp_path: Path) -> None:
    """A build of these sources runs unless another engine is chosen; its missing modules are interpreted."""
    new = build_of(tmp_path, digest(SOURCES))
    for wanted, runs in (("", "compiled"), ("compiled", "compiled"), ("light", "light"), ("simpy", "simpy")):
        said = told(wanted, new)
        assert said.stdout == f"{runs} {SOURCES / 'sim' / 'engine.py'}\n", said.stderr


def test_missing_build_and_unknown_engine_are_refused(tmp_path: Path) -> None:
    """A folder without modules is no build, and an unknown engine is refused."""
    (tmp_path / PACKAGE).mkdir()  # an interrupted build leaves this
    missing = told("compiled", tmp_path, command=["-S", "-c", SAY])
    assert "the compiled engine is not built; build it with make compiled, or use light" in missing.stderr
    unknown = told("fast")
    assert unknown.returncode == 1
    assert "WBSIM_ENGINE=fast is not an engine; use one of simpy, light, compiled" in unknown.stderr


def test_engine_is_chosen_before_the_models_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded model can only change between the two engines that run from the sources."""
    monkeypatch.delenv("WBSIM_ENGINE", raising=False)
    assert [engine(compiled) for compiled in (True, False)] == ["compiled", "light"]
    for wanted, compiled in (("simpy", False), ("light", False), ("compiled", True)):
        monkeypatch.setenv("WBSIM_ENGINE", wanted)
        assert engine(compiled) == wanted
        with pytest.raises(ImportError, match=f"{wanted} has no effect after"):
            engine(not compiled)


def test_light_engine_runs_without_numba(tmp_path: Path) -> None:
    """The light engine runs even if a build of these sources exists; the choice of the build is refused."""
    built = build_of(tmp_path, digest(SOURCES))
    command = ["-c", "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'; " + SAY]
    assert told("", built, command=command).stdout.startswith("light ")
    refused = told("compiled", built, command=command)
    assert "the compiled engine needs Numba; unset NUMBA_DISABLE_JIT" in refused.stderr
