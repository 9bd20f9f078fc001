"""The order of fio's random writes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import build
from wbsim.models.workloads.file_writers import FileWriters
from wbsim.models.workloads.fio import RandomMap


@given(seed=st.integers(0, 99), blocks=st.integers(1, 200))
def test_the_random_map_probes_for_the_next_free_block(seed: int, blocks: int) -> None:
    """The map returns the drawn block or the next block that was not written, like a naive walk."""
    draws = np.random.default_rng(seed).integers(0, blocks, 4_096)[:blocks].tolist()
    free = set(range(blocks))
    expected = []
    for block in draws:
        while block not in free:
            block = (block + 1) % blocks
        free.remove(block)
        expected.append(block)
    assert _order(seed, blocks) == expected


def _bursts(blocks: int) -> list[int]:
    return [min(7, blocks - first) for first in range(0, blocks, 7)]


def _order(seed: int, blocks: int) -> list[int]:
    order = RandomMap(np.random.default_rng(seed), blocks)
    return [block for count in _bursts(blocks) for block in order.take(count).tolist()]


@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_random_map_leaves_as_many_runs_as_fio(tmp_path: Path) -> None:
    """Half way through a random write, the written blocks form as many runs as in fio's own log.

    A random permutation forms more runs; the map has a fifth fewer.
    """
    log = tmp_path / "log"
    command = ["fio", "--name=x", "--ioengine=null", "--rw=randwrite", "--bs=4k", "--size=64M"]
    subprocess.run([*command, f"--write_iolog={log}"], check=True, capture_output=True, cwd=tmp_path)
    order = np.array(
        [int(line.split()[-2]) // 4096 for line in log.read_text().splitlines() if " write " in line]
    )
    dice = np.random.default_rng(1)
    fio, ours, chance = (
        _runs(o, 8_192) for o in (order, RandomMap(dice, 16_384).take(16_384), dice.permutation(16_384))
    )
    assert abs(fio - ours) < 4 * np.sqrt(ours)
    assert ours < 0.85 * chance


def _runs(order: np.ndarray, written: int) -> int:
    used = np.zeros(len(order) + 2, np.int8)
    used[order[:written] + 1] = 1
    return int((np.diff(used) == 1).sum())


@pytest.mark.parametrize(("filesystem", "search_ns"), [("xfs", 100), ("ext4", 100 + 512)])
def test_only_a_random_write_searches(filesystem: str, search_ns: int) -> None:
    """A file of 16 MiB is one doubling larger than the caches, which takes 100 ns.

    On ext4 a doubling of the extents beyond 32 takes 125 ns.  The mean over 16 units of 256 calls is 512 ns:
    the unit u begins with 256 u (1 - u / 16) extents.
    """
    ordered_ns, random_ns = (_write_ns(filesystem, rw) for rw in ("write", "randwrite"))
    assert abs(random_ns - ordered_ns - search_ns) <= 1


def _write_ns(filesystem: str, rw: str) -> float:
    """Return the mean time of the write(2)s of a file of 16 MiB that is not written back."""
    (case,) = parse(
        f"""\
title = "a file"
[scenario]
machine.like = "desk-vm"
machine.processors.cv = 0
kernel.like = "6.18"
mounts.m = {{ like = "desk-{filesystem}", disk = "loop0", at = "/m" }}
programs.p = "fio --name=a --rw={rw} --filesize=16m --create_on_open=1 --fallocate=none --directory=/m"
sync_after = false
""",
        "x.toml",
    ).cases
    machine = build(case.scenario, 1)
    machine.run()
    (program,) = machine.programs.values()
    assert isinstance(program, FileWriters)
    assert program.latencies.write.count == 4_096
    return program.family.children[0].spent.write / 4_096
