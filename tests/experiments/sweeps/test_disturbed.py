"""Sweeps whose processes are disturbed: a rerun completes the sweep, and no result is lost.

The gate has five disturbances, ``-m fullsize`` has a hundred.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pandas as pd
import pytest

from tests.harness import loop_config

TEXT: Final = loop_config("fs_mark -S0 -n {files} -s 4096 -L 3 -d a -d b", dirty_mib=2)
SWEEP: Final = [
    sys.executable, "-m", "wbsim.experiments.cli", "sweep", "x.toml", "--out", "out",
    "--replications", "2", "--set", "files=200,300..700", "--jobs", "2",
]  # fmt: skip
RUNS: Final = 12
pytestmark = pytest.mark.long


def begin(directory: Path) -> subprocess.Popen[str]:
    """Start the sweep in a new session."""
    (directory / "x.toml").write_text(TEXT)
    return subprocess.Popen(
        SWEEP, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=hear_all,
    )  # fmt: skip


def hear_all() -> None:
    """Restore the default actions of SIGINT, SIGTERM and SIGHUP.

    A shell or nohup may ignore these signals for a process in the background.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit status of *process* and its stderr."""
    try:
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, told


def session_of(process: subprocess.Popen[str]) -> set[int]:
    """Return the processes in the session of *process* that have not ended."""
    found = set()
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                state, _, _, session = (path / "stat").read_text().rpartition(")")[2].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(session) == process.pid and state not in "ZX":
                found.add(int(path.name))
    return found


def all_gone(process: subprocess.Popen[str]) -> bool:
    """Return whether the session of *process* is empty within five seconds."""
    deadline = time.monotonic() + 5
    while session_of(process) and time.monotonic() < deadline:
        os.sched_yield()
    return not session_of(process)


def made(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Return the time and the summary of each finished run, by the name of the run."""
    runs = directory / "out" / "runs"
    if not runs.exists():
        return {}
    return {
        run.name: ((run / "run.json").stat().st_mtime_ns, (run / "summary.json").read_bytes())
        for run in runs.iterdir()
    }


def values(directory: Path) -> pd.DataFrame:
    """Return the dataset."""
    return pd.read_parquet(directory / "out" / "dataset.parquet")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sweep without a disturbance."""
    directory = tmp_path_factory.mktemp("whole")
    status, told = ended(begin(directory))
    assert (status, told) == (0, "wrote out; draw it with: wbsim plot out\n")
    assert len(made(directory)) == RUNS
    return directory


def _to_us(number: int) -> Callable[[subprocess.Popen[str]], int]:
    def disturb(process: subprocess.Popen[str]) -> int:
        process.send_signal(number)
        return -number if number == signal.SIGKILL else 128 + number

    return disturb


def _keyboard(process: subprocess.Popen[str]) -> int:
    os.killpg(process.pid, signal.SIGINT)
    return 130


DICE: Final = random.Random(1)
"""The random numbers that choose the worker to kill."""


def _kill_a_worker(process: subprocess.Popen[str]) -> int:
    workers = session_of(process) - {process.pid}
    with suppress(ProcessLookupError, IndexError):  # no worker is left, or it has ended
        os.kill(DICE.choice(sorted(workers)), signal.SIGKILL)
    return 0


DISTURBANCES: Final = {
    "Ctrl-C": _keyboard, "TERM": _to_us(signal.SIGTERM), "HUP": _to_us(signal.SIGHUP),
    "kill -9": _to_us(signal.SIGKILL), "kill -9 of a worker": _kill_a_worker,
}  # fmt: skip


def disturbed(
    directory: Path, whole: Path, disturb: Callable[[subprocess.Popen[str]], int], until: int
) -> None:
    """Start the sweep, *disturb* it when *until* runs are finished, and start it again."""
    process = begin(directory)
    while len(made_names(directory)) < until and process.poll() is None:
        os.sched_yield()
    wanted = disturb(process)
    status, told = ended(process)
    assert status in (wanted, 0), told
    assert "Traceback" not in told
    assert all_gone(process)
    before = made(directory)
    assert len(before) >= min(until, RUNS)
    again, told = ended(begin(directory))
    assert again == 0, told
    after = made(directory)
    assert {name: after[name] for name in before} == before, "completed runs must not run again"
    assert {name: of[1] for name, of in after.items()} == {name: of[1] for name, of in made(whole).items()}
    pd.testing.assert_frame_equal(values(directory), values(whole))
    left = sorted(path.name for path in (directory / "out").iterdir())
    assert left == ["dataset.parquet", "failed", "plan.json", "runs"]
    assert list((directory / "out" / "failed").iterdir()) == []


def made_names(directory: Path) -> list[str]:
    """Return the names of the finished runs."""
    runs = directory / "out" / "runs"
    return os.listdir(runs) if runs.exists() else []


@pytest.mark.parametrize("name", DISTURBANCES)
def test_disturbed_sweep_is_completed_by_the_same_command(name: str, tmp_path: Path, whole: Path) -> None:
    """The status shows the signal, and no process is left.

    No run is lost or made twice, and all values are those of the undisturbed sweep.
    """
    disturbed(tmp_path, whole, DISTURBANCES[name], 3)


@pytest.mark.fullsize
@pytest.mark.parametrize("number", range(100))
def test_sweep_survives_a_disturbance_at_any_moment(number: int, tmp_path: Path, whole: Path) -> None:
    """The moments are random, and include those before the first run is finished and after the last one."""
    dice = random.Random(number)
    time.sleep(dice.random())
    disturbed(tmp_path, whole, dice.choice(sorted(DISTURBANCES.items()))[1], dice.randrange(RUNS + 1))


def test_configuration_edited_during_a_sweep_does_not_change_it(tmp_path: Path, whole: Path) -> None:
    """The sweep runs what it read at the beginning.

    The next command runs the new cases, and keeps the results of the old ones.
    """
    process = begin(tmp_path)
    while not made_names(tmp_path) and process.poll() is None:
        os.sched_yield()
    (tmp_path / "x.toml").write_text(TEXT.replace("4096", "8192"))
    assert ended(process)[0] == 0
    pd.testing.assert_frame_equal(values(tmp_path), values(whole))
    edited = subprocess.run(SWEEP, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert edited.returncode == 0
    assert len(made_names(tmp_path)) == 2 * RUNS
    assert not values(tmp_path).equals(values(whole))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem with room for a few runs."""
    disk = tmp_path / "out"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "wbsim-test", str(disk)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("options", ["size=200k", "ro"], ids=["a full disk", "a disk that is read only"])
def test_full_or_read_only_disk_loses_no_result(
    options: str, tmp_path: Path, small_disk: Path, whole: Path
) -> None:
    """The error is one line with the place, and kept results are complete.

    The same command continues when the disk has room.
    """
    subprocess.run(["mount", "-o", f"remount,{options}", str(small_disk)], check=True)
    status, told = ended(begin(tmp_path))
    assert status == 2, told
    assert ("No space left on device" if options != "ro" else "Read-only file system") in told
    assert len(told.splitlines()) == 1
    before = made(tmp_path)
    assert len(before) < RUNS
    subprocess.run(["mount", "-o", "remount,rw,size=64m", str(small_disk)], check=True)
    assert ended(begin(tmp_path))[0] == 0
    after = made(tmp_path)
    assert {name: after[name] for name in before} == before
    assert_same(tmp_path, whole)


def test_hash_seed_and_number_of_processes_change_no_byte(tmp_path: Path, whole: Path) -> None:
    """The sweep runs in one process with another hash seed, and in two processes without."""
    (tmp_path / "x.toml").write_text(TEXT)
    words = [*SWEEP[:-1], "1"]
    subprocess.run(
        words, cwd=tmp_path, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": "4242"}
    )
    assert_same(tmp_path, whole)


def assert_same(directory: Path, whole: Path) -> None:
    """Assert that all summaries are equal to the byte, and that the datasets have equal values."""
    assert {name: of[1] for name, of in made(directory).items()} == {
        name: of[1] for name, of in made(whole).items()
    }
    pd.testing.assert_frame_equal(values(directory), values(whole))


def test_another_engine_changes_no_byte(tmp_path: Path, whole: Path) -> None:
    """Stock SimPy gives the results of the engine of these tests, which is interpreted or compiled."""
    (tmp_path / "x.toml").write_text(TEXT)
    environment = {**os.environ, "WBSIM_ENGINE": ""}
    subprocess.run(
        [*SWEEP, "--engine", "simpy"], cwd=tmp_path, check=True, capture_output=True, env=environment
    )
    assert_same(tmp_path, whole)


def _runs(python: Path) -> bool:
    """Return whether *python* exists and runs; a stand-in of pyenv may exist and fail."""
    return (
        python.exists()
        and not subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode
    )


@pytest.mark.fullsize
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_another_python_changes_no_byte(python: str, tmp_path: Path, whole: Path) -> None:
    """Each Python has its own environment with the pinned versions.

    A version that is missing here is skipped.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places = [*pyenv.glob(f"versions/{python}.*/bin/python"), Path(shutil.which(f"python{python}") or "none")]
    found = next((path for path in places if _runs(path)), None)
    if found is None:
        pytest.skip(f"Python {python} is not installed")
    root = Path(__file__).parents[3]
    subprocess.run([str(found), "-m", "venv", str(tmp_path / "env")], check=True)
    install = [str(tmp_path / "env/bin/pip"), "install", "-q", "-c", str(root / "constraints.txt"), str(root)]
    subprocess.run(install, check=True, capture_output=True)
    (tmp_path / "x.toml").write_text(TEXT)
    words, light = [str(tmp_path / "env/bin/python"), *SWEEP[1:]], {**os.environ, "WBSIM_ENGINE": "light"}
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, env=light)
    assert_same(tmp_path, whole)


@pytest.mark.filterwarnings("ignore")  # warnings of dask
def test_cluster_changes_no_byte(tmp_path: Path, whole: Path) -> None:
    """The sweep runs on two workers of a local dask cluster."""
    from distributed import LocalCluster

    (tmp_path / "x.toml").write_text(TEXT)
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, protocol="tcp"
    ) as cluster:
        words = [*SWEEP[:-2], "--cluster", cluster.scheduler_address]
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    assert_same(tmp_path, whole)


def test_missing_cluster_is_one_error(tmp_path: Path) -> None:
    """The error has the address."""
    (tmp_path / "x.toml").write_text(TEXT)
    words = [*SWEEP[:-2], "--cluster", "tcp://127.0.0.1:9"]
    told = subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert told.returncode == 2, told.stderr
    assert "--cluster: tcp://127.0.0.1:9 does not answer" in told.stderr
