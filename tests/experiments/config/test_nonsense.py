"""Arbitrary values for any key: each gives a refusal that names the key, or a valid scenario."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.formats.reference import FIGURES_TITLE

ROOT = Path(__file__).parents[3]
BASE = """\
title = "t"
[scenario]
machine.like = "desk-vm"
kernel.like = "{kernel}"
filesystem.like = "desk-{filesystem}"
workload.command = "{command}"
"""
COMMANDS = {
    "xfs": "fs_mark -k -S0 -n 20 -s 4096 -L 2 -d a",
    "ext4": "fio --rw=randwrite --bs=4k --create_on_open=1 --fallocate=none --filesize=64k --name=a",
}
NONSENSE = [
    "0", "-1", "true", "false", "nan", "inf", "-inf", "1e300", "1" + "0" * 30, "0.5", "'0 s'", "'0 B'",
    "'-1 B'", "'x'", "''", "[]", "{}", "[[]]", "{a = 1}", "'1e99999999 B'", "'1e400 s'", "'nan'", "'1 PiB'",
    "'10000 s'", "'" + "9" * 5000 + " B'", "[1, 2]", "'0 B/s'", "'\\u0000'", "2026-11-23", "x2",
    "{assumed = 1}", "{like = 'pm9a3'}", "{kind = [1], speed = 2}",
]  # fmt: skip


@cache
def keys() -> list[str]:
    """Return the keys of docs/reference.md, with the names of one disk and one mount."""
    text = (ROOT / "docs" / "reference.md").read_text()
    named = re.findall(r"^\| `([^`]+)` \|", text.partition(FIGURES_TITLE)[0], re.MULTILINE)
    return [key.replace("NAME", "loop0" if ".disks." in key else "desk") for key in named]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(keys()), st.sampled_from(NONSENSE), st.sampled_from(sorted(COMMANDS)),
    st.sampled_from(["2.6.30", "3.11", "6.18"]),
)  # fmt: skip
@example("workload.kind", "'x'", "xfs", "6.18")
@example("machine.device", "{kind = [1], speed = 2}", "xfs", "6.18")
@example("machine.processors", "x2", "xfs", "6.18")
@example("programs.5.start", "'1 s'", "xfs", "6.18")
@example("workload.directories", "[]", "xfs", "6.18")
@example("workload.directories", "1" + "0" * 30, "xfs", "6.18")
@example("machine.disks.loop0.device.kind", "[]", "xfs", "6.18")
@example("kernel.flusher.kind", "{}", "ext4", "3.11")
@example("machine.memory.memory", "'1e99999999 B'", "xfs", "6.18")
@example("machine.disks.loop0.queue.limits.nomerges", "true", "xfs", "6.18")
def test_nonsense_is_refused_or_gives_a_valid_scenario(
    key: str, value: str, filesystem: str, kernel: str
) -> None:
    """A refusal states the place and what is wrong, and is short.  Numbers of a scenario are finite."""
    text = BASE.format(kernel=kernel, filesystem=filesystem, command=COMMANDS[filesystem])
    problems: list[str] = []
    try:
        (case,) = parse(text, "x.toml", [f"{key}={value}"]).cases
        floats = [number.value for number in case.scenario.numbers() if isinstance(number.value, float)]
        problems += [f"it has {found}" for found in floats if not abs(found) < 1e19]
    except BadInput as refused:
        problems += [
            f"no place: {problem}"
            for problem in map(str, refused.problems)
            if not problem.startswith(("x.toml:", "--set ")) or len(problem) > 12_000
        ]
    assert problems == []


_DD = 'programs = ["dd if=/dev/zero of=/a/f bs=8k count=3"]'
_MOUNT = 'mounts.a = { like = "xfs", disk = [1], at = "/a", size = "4 GiB" }'


@pytest.mark.parametrize(
    ("old", "new", "override", "message"),
    [
        ("[scenario]", "scenario = { assumed = 1 }\n[other]", "", "x.toml:2: assumed: unknown key"),
        ("workload", "variants.a = { assumed = 1 }\nworkload", "", "x.toml:6: variants: unknown key"),
        ("[scenario]", "[variants.a]\nassumed = 1\n[scenario]", "", "x.toml:3: variants.a.assumed: unknown"),
        ("workload.command =", f"{_DD}\n#", "programs.1.start=1 s", "programs: has 1 entries, numbered"),
        ("workload.command =", "programs = 5\n#", "", "x.toml:6: programs: is 5; a table was expected"),
        ("filesystem.like =", f"{_MOUNT}\n#", "", "x.toml:5: mounts.a.disk: is [1]; a text was expected"),
        (
            "workload",
            'machine.processors = "x2"\nworkload',
            "",
            "x.toml:6: machine.processors: is a factor, but",
        ),
    ],
)
def test_nonsense_in_the_place_of_a_table_is_refused(old: str, new: str, override: str, message: str) -> None:
    text = BASE.format(kernel="6.18", filesystem="xfs", command=COMMANDS["xfs"]).replace(old, new, 1)
    with pytest.raises(BadInput) as refused:
        parse(text, "x.toml", [override] if override else [])
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("give_up=5", '5 has no unit; write a text such as "5 ms"'),
        ("machine.processors.cv=nan", "cv: is nan; use a"),
        ("kernel.wbt='yes'", "true or false was expected"),
        ("kernel.wbt=1", "true or false was expected"),
        ("machine.processors.count=true", "true is not a number"),
        ("machine.processors.count='2'", "'2' is not a number"),
        ("kernel.writeback.interval='0 s'", "greater than 0"),
        ("filesystem.log.sync_interval='0 s'", "greater than 0"),
        ("machine.queue.limits.max_sectors_bytes='0 B'", "greater than 0"),
        ("filesystem.inode_bytes='0 B'", "greater than 0"),
        ("workload.write_size='0 B'", "greater than 0"),
        ("machine.memory.memory='2000 PiB'", "is not a unit of size"),
        ("machine.memory.memory='2000000 TiB'", "less than or equal to"),
        ("workload.kind='dd'", "follows from the command; leave it out"),
        ("workload.directories=200000", "give 1 to 100000, or a list of paths"),
    ],
)
def test_value_outside_of_its_bounds_is_refused(override: str, told: str) -> None:
    """Every key has the bounds that its meaning sets."""
    text = BASE.format(kernel="6.18", filesystem="xfs", command=COMMANDS["xfs"])
    with pytest.raises(BadInput) as refused:
        parse(text, "x.toml", [override])
    assert told in str(refused.value)


def test_key_is_set_at_most_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The check prevents that the last of several values is taken silently."""
    with pytest.raises(SystemExit) as ended:
        main(["run", "x.toml", "--set", "a.loops=2", "--set", "a.b=1", "--set", "scenario.a.loops=3"])
    assert ended.value.code == 2
    assert "--set: a.loops is set twice; give each key one value" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["list kernels", "params", "schema"])
def test_output_to_a_full_device_gives_one_line(command: str) -> None:
    """The status is 1, also if the buffer is written at the end."""
    words = [sys.executable, "-m", "wbsim.experiments.cli", *command.split()]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT,
            env={**os.environ, "WBSIM_ENGINE": "light"},
        )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr == "wbsim: cannot write to stdout: No space left on device\n"
