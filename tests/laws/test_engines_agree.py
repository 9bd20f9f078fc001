"""All engines run the same model and print the same results, byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness import FIO, loop_config
from wbsim.sim import COMPILED
from wbsim.sim.build import ENGINES

RUNS = [
    ("3.11", "loop-xfs", "fs_mark -S0 -n 300 -s 4096 -L 2 -d /a -d /b"),
    ("6.18", "loop-ext4", "fs_mark -S0 -n 200 -s 16384 -L 2 -d /a"),
    ("6.18", "loop-xfs", "dd if=/dev/zero of=/a/f bs=1024k count=24"),
    ("2.6.34", "loop-xfs", f"{FIO} --rw=randwrite --filesize=6m --nrfiles=2 --name=a --directory=/a"),
    ("2.6.30", "loop-ext4", f"{FIO} --rw=randwrite --filesize=6m --nrfiles=2 --name=a --directory=/a"),
    ("6.18", "loop-ext4", f"{FIO} --rw=write --filesize=6m --nrfiles=2 --name=a --directory=/a"),
]


def results(config: Path, engine: str) -> Any:
    """Run *config* on *engine*; return its results without processor time and memory."""
    command = [
        sys.executable,
        "-m",
        "wbsim.experiments.cli",
        "run",
        str(config),
        "--json",
        "--engine",
        engine,
    ]
    run = subprocess.run(command, env={**os.environ, "WBSIM_ENGINE": ""}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    for outcome in document["outcomes"]:
        assert outcome.pop("cpu_s") >= 0
        assert outcome.pop("peak_rss_mib") > 0
    return document


@pytest.mark.parametrize(("kernel", "filesystem", "command"), RUNS)
def test_engines_agree(kernel: str, filesystem: str, command: str, tmp_path: Path) -> None:
    """All engines give the same results for each workload; the compiled one runs in a compiled build only."""
    config = tmp_path / "engines.toml"
    config.write_text(
        loop_config(command, dirty_mib=4, kernel=kernel, filesystem=filesystem, more="sync_after = true")
    )
    simpy, *others = [results(config, engine) for engine in ENGINES if COMPILED or engine != "compiled"]
    assert simpy["outcomes"][0]["locks"]
    for other in others:
        assert other == simpy


def rows(engine: str) -> Any:
    """Return every row of every report, at small size, and the fitted constants."""
    command = [
        sys.executable,
        "-m",
        "wbsim.experiments.cli",
        "reproduce",
        "--quick",
        "--json",
        "--engine",
        engine,
    ]
    run = subprocess.run(command, env={**os.environ, "WBSIM_ENGINE": ""}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    return {name: document[name] for name in ("rows", "constants", "seed", "quick")}


@pytest.mark.skipif(not COMPILED, reason="this test needs the compiled engine")
def test_small_reports_agree() -> None:
    """The rows of P13, N10 and W25 have the same digits on the light and the compiled engine."""
    light = rows("light")
    assert {row["id"].partition("-")[0] for row in light["rows"]} >= {"P13", "N10", "W25"}
    assert rows("compiled") == light
