"""Signals at any moment of long commands: the status follows the convention, and no file is half written.

The gate sends two signals to each command, ``-m fullsize`` fifty.  Signals during sweeps are tested in
`tests.experiments.sweeps.test_disturbed`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest

from tests.experiments.sweeps.test_disturbed import all_gone, ended, hear_all
from tests.harness import loop_config

CAPTURE: Final = Path(__file__).parents[1] / "captures" / "fsmark-xfs-ag2.trace.xz"
TEXT: Final = loop_config("fs_mark -S0 -n 4000 -s 4096 -L 5 -d a -d b", dirty_mib=2)
COMMANDS: Final = {
    "run": ["x.toml", "--out", "out"],
    "reproduce": ["J09", "--quick", "--out", "out"],
    "advise": ["x.toml", "--out", "out"],
    "replay": [str(CAPTURE), "--kernel", "3.11", "--out", "out"],
    "plot": ["done"],
}
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def begin(directory: Path, command: str) -> subprocess.Popen[str]:
    """Start *command* in a new session, in which Ctrl-C reaches it."""
    return subprocess.Popen(
        [sys.executable, "-m", "wbsim.experiments.cli", command, *COMMANDS[command]], cwd=directory,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=hear_all,
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a configuration, and with its results for `wbsim plot`."""
    directory = tmp_path_factory.mktemp("signals")
    (directory / "x.toml").write_text(TEXT)
    words = [sys.executable, "-m", "wbsim.experiments.cli", "run", "x.toml", "--out", "done"]
    subprocess.run(words, cwd=directory, check=True, capture_output=True)
    return directory


def assert_whole(directory: Path) -> None:
    """Assert that every file in *directory* can be read, and that none has the name of an unfinished file."""
    for path in directory.rglob("*"):
        assert not path.name.startswith("."), path
        match path.suffix:
            case ".json":
                json.loads(path.read_text())
            case ".parquet":
                pq.read_table(path)
            case ".png":
                assert path.read_bytes().endswith(b"IEND\xaeB`\x82"), path


@pytest.mark.long
@pytest.mark.parametrize("times", [2, pytest.param(50, marks=pytest.mark.fullsize)])
@pytest.mark.parametrize("command", COMMANDS)
def test_signal_at_any_moment_ends_a_command_cleanly(command: str, times: int, place: Path) -> None:
    """The status is 128 plus the signal's number, or the usual status if the signal comes too late.

    `Popen` reports minus the number if the signal kills the process.  A command prints at most three lines.
    """
    subprocess.run(["rm", "-rf", place / "out"], check=True)  # the results of another command
    begun = time.monotonic()
    process = begin(place, command)
    assert ended(process)[0] in (0, 1)
    took_s = time.monotonic() - begun
    dice = random.Random(command)
    for turn in range(times):
        number, after_s = SIGNALS[turn % len(SIGNALS)], dice.uniform(0.1, 1) * took_s
        subprocess.run(["rm", "-rf", place / "out"], check=True)
        process = begin(place, command)
        time.sleep(after_s)
        process.send_signal(number)
        status, told = ended(process)
        case = f"{command}, {number.name} after {after_s:.3f} of {took_s:.3f} s: {status}, {told}"
        assert status in (0, 1, 128 + number, -number), case
        assert "Traceback" not in told, case
        assert told.count("\n") <= 3, case
        assert all_gone(process), case
        assert_whole(place)


@pytest.mark.parametrize(
    ("status", "finalised"), [(0, True), (2, True), (128, True), (130, False), (143, False)]
)
def test_process_ended_by_a_signal_is_not_finalised(status: int, finalised: bool) -> None:
    """Destructors of a half-loaded library could abort the process.  Its output is flushed before."""
    code = f"""\
import atexit
from wbsim.experiments import cli
atexit.register(print, "finalised")
print("printed")
cli.main = lambda: {status}
cli.program()
"""
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    ran = subprocess.run([sys.executable, "-c", code], env=buffered, capture_output=True, text=True)
    assert ran.returncode == status
    assert ran.stdout == ("printed\nfinalised\n" if finalised else "printed\n")
