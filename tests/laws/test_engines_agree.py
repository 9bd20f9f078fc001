"""The engines run one model: what they print of it is the same, byte for byte."""

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
    """All that a run measured in the simulation."""
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
    """On each workload and filesystem; on the compiled engine where that is what is tested."""
    config = tmp_path / "engines.toml"
    config.write_text(
        loop_config(command, dirty_mib=4, kernel=kernel, filesystem=filesystem, more="sync_after = true")
    )
    simpy, *others = [results(config, engine) for engine in ENGINES if COMPILED or engine != "compiled"]
    assert simpy["outcomes"][0]["locks"]
    for other in others:
        assert other == simpy


def rows(engine: str) -> Any:
    """Every row of every report, small, and the constants that were fitted."""
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


@pytest.mark.skipif(not COMPILED, reason="the compiled engine is not what is tested")
def test_small_reports_agree() -> None:
    """P13, N10 and W25, to the digit."""
    light = rows("light")
    assert {row["id"].partition("-")[0] for row in light["rows"]} >= {"P13", "N10", "W25"}
    assert rows("compiled") == light
