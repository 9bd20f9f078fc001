"""Every question about the result of any small scenario: an answer, or one error if there is none.

EXAMPLES sets the number of scenarios (``make fuzz``: `tests.fuzz`), and WBSIM_ENGINE the engine.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.harness import FIO, loop_config
from tests.strategies import scenarios
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.results.dataset import tidy
from wbsim.experiments.results.figures import FIGURES
from wbsim.experiments.running.results import read_results

pytestmark = pytest.mark.long
PHASES: Final = [Phase.explicit, Phase.generate] if "EXAMPLES" in os.environ else list(Phase)
EXAMPLES: Final = int(os.environ.get("EXAMPLES", "8"))
NO_ANSWER: Final = {
    "explain": ["nothing was written back before the programs ended: they wrote "],
    "timeline": [
        r" ms, and the first sample is at 10 ms; give it more work",
        r"--every: .* s: 0 intervals in a run",
    ],
    "layout": ["has only files of one extent", "no file has a block yet"],
    "plot": [r"at one point of the picture differ in .*; give --by KEY or --where KEY=VALUE"],
}
"""The questions without an answer: a run that is too short or wrote nothing back, files without extents, and
too many panels.
"""
SWEPT: Final = (
    ("machine.processors.count", "1,2"), ("kernel.dirty.dirty_bytes", '"1 MiB","3 MiB"'),
    ("kernel.writeback.interval", '"7 ms","50 ms"'), ("sync_after", "true,false"),
    ("kernel.writeback.expire", '"0 s","20 ms","2 s"'),
)  # fmt: skip


def asked(*words: str, status: int | None = None) -> str:
    """Run the command *words* and return its output: an answer, or an error of `NO_ANSWER`."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        ended = main(list(words))
    told = err.getvalue()
    assert "Traceback" not in told
    if ended == 2 and status is None:
        assert any(re.search(why, told) for why in NO_ANSWER.get(words[0], [])), told
        assert told.count("\n") == 1
    else:
        assert ended == (status or 0), told
        assert "nan" not in re.split(r"[^a-z]+", out.getvalue()), out.getvalue()
    return out.getvalue()


def ran(text: str, directory: Path, command: Sequence[str], more: Sequence[str] = ()) -> tuple[str, str]:
    """Run a configuration in *directory*; return the paths of the configuration and of the results."""
    config, out = directory / "x.toml", directory / "out"
    config.write_text(text)
    asked(command[0], str(config), *command[1:], "--jobs", "1", "--out", str(out), *more)
    return str(config), str(out)


def ask_everything(out: str) -> None:
    """Run each command on the results in *out*, and read back the exported files."""
    results = read_results(Path(out))
    frame = pd.read_parquet(Path(out) / "dataset.parquet")
    pd.testing.assert_frame_equal(frame, tidy(results.outcomes, results.axes), check_dtype=False)
    assert json.loads(asked("status", out, "--json"))
    asked("status", out)
    first = [of for of in results.outcomes if of.replication == 0]
    if explained := asked("explain", out, "--json"):
        document = json.loads(explained)
        assert [of["wall_time"] for of in document["runs"]] == [of.wall_time for of in first]
        text = asked("explain", out)
        assert all(of["label"].split()[0] in text for of in document["runs"])
        assert (Path(out) / "lives.png").read_bytes().startswith(b"\x89PNG")
    else:
        assert not any(of.readings["written_back"] for of in results.outcomes)
    for more in ([], ["--every", "1 ms"]):
        asked("timeline", out, *more)
    for path in filter(lambda line: line.startswith("/"), asked("plot", out).splitlines()):
        assert Path(path).read_bytes().startswith(b"\x89PNG")


def ask_where_files_lie(config: str, text: str, out: str, changes: Sequence[str] = ()) -> None:
    """Print the layout of the files of each mount."""
    (case, *_) = parse(text, "x.toml", list(changes)).cases
    for mount in case.scenario.mounts:
        for more in ([], ["--filefrag"]):
            asked("layout", config, "--mount", mount, "--out", out, *more)


ONE_AWAIT: Final = """\
title = "requests complete in one part of the run only, so its picture has one value of w_await"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 3
kernel.like = "4.9"
kernel.dirty.dirty_bytes = "1 MiB"
kernel.dirty.dirty_background_bytes = "300 KiB"
kernel.writeback.interval = "50 ms"
kernel.writeback.expire = "2000 ms"
sync_after = true
machine.disks.d0.like = "loop"
machine.disks.d0.queue.elevator = { scheduler = "none" }
machine.disks.d0.queue.nr_requests = 4
machine.disks.d0.queue.driver_depth = 128
mounts.m0 = { like = "loop-ext4", disk = "d0", at = "/m0", size = "4 GiB" }
mounts.m1 = { like = "loop-ext4", disk = "d0", at = "/m1", size = "4 GiB" }
programs.p0 = { command = "FIO", start = "0 ms" }
programs.p1 = { command = "fs_mark -k -S0 -n 20 -s 12288 -L 2 -d /m0/0 -d /m0/1", start = "0 ms" }
""".replace(
    "FIO",
    "fio --bs=4k --create_on_open=1 --fallocate=none --rw=randwrite --numjobs=1 --nrfiles=1 --filesize=80k"
    " --end_fsync=1 --name=a --directory=/m0",
)


@settings(max_examples=EXAMPLES, phases=PHASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    scenarios(),
    st.sampled_from(["lock_stat", "perf"]),
    st.booleans(),
    st.lists(st.sampled_from(sorted(FIGURES)), max_size=3),
)
@example(ONE_AWAIT, "perf", False, ["merged"])
def test_any_result_answers_every_question(text: str, locks: str, synced: bool, figures: list[str]) -> None:
    """A run is printed as tables and as JSON, drawn, explained and exported, with and without a sync."""
    if not synced:
        text = text.replace("sync_after = true", "sync_after = false")
    with TemporaryDirectory() as directory:
        config, out = ran(text, Path(directory), ["run"], ["--locks", locks])
        (outcome,) = json.loads(asked("run", config, "--out", out, "--json"))["outcomes"]
        assert outcome["programs"].keys() == {f"p{n}" for n in range(len(outcome["programs"]))}
        ask_everything(out)
        asked(
            "plot",
            out,
            "--x",
            "kernel.dirty.dirty_bytes",
            *(word for name in figures for word in ("--y", name)),
        )
        ask_where_files_lie(config, text, out)


@st.composite
def sweeps(draw: st.DrawFn) -> list[str]:
    """Return the words of a sweep of one to three keys: a grid or a zip, with up to two replications."""
    keys = draw(st.lists(st.sampled_from(SWEPT), min_size=1, max_size=3, unique=True))
    together = (
        ["--zip"] if len({values.count(",") for _, values in keys}) == 1 and draw(st.booleans()) else []
    )
    sets = [word for key, values in keys for word in ("--set", f"{key}={values}")]
    return ["sweep", *sets, *together, "--replications", str(draw(st.integers(1, 2)))]


@settings(max_examples=EXAMPLES // 2, phases=PHASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenarios(), sweeps(), st.data())
def test_any_sweep_answers_every_question(text: str, words: list[str], data: st.DataObject) -> None:
    """Lines and maps of any figures over any keys: a picture, or an error that asks for a choice."""
    with TemporaryDirectory() as directory:
        _, out = ran(text, Path(directory), words)
        ask_everything(out)
        frame = pd.read_parquet(Path(out) / "dataset.parquet")
        keys = [*frame.columns[: list(frame.columns).index("replication")], "kernel.writeback.interval"]
        key, figure = st.sampled_from(keys), st.sampled_from(sorted(FIGURES))
        x, by, y = data.draw(key | figure), data.draw(st.lists(key, max_size=2)), data.draw(figure)
        asked("plot", out, "--x", x, "--y", y, *(word for name in by for word in ("--by", name)))
        across, up = (
            data.draw(st.lists(key, min_size=2, max_size=2, unique=True)) if len(keys) > 1 else keys * 2
        )
        asked("plot", out, "--x", across, "--heat", up, "--y", y)
        value = data.draw(st.sampled_from(list(frame[keys[1]])))
        asked("plot", out, "--x", x, "--y", y, "--where", f"{keys[1]}={value}")


SEVERAL: Final = """\
title = "several"
[scenario]
machine.like = "loop-vm"
machine.disks.sd = { like = "sata-ssd", count = 3 }
mounts.d = { like = "loop-ext4", each = "sd", at = "/d{n}" }
kernel.like = "6.18"
"""


@pytest.mark.parametrize(
    "text",
    [
        loop_config("dd if=/dev/zero of=/mnt/a bs=4k count=1", dirty_mib=40),
        loop_config("sync", dirty_mib=40),
        loop_config("fs_mark -k -S0 -n 4 -s 0 -L 2 -d a -d b", dirty_mib=40, more="sync_after = true"),
        loop_config(f"{FIO} --rw=write --filesize=4m --name=a", dirty_mib=2),
        SEVERAL + 'programs.a.command = "dd if=/dev/zero of=/d1/x bs=64k count=99"\n'
        'programs.s = { command = "sync", start = "1 ms", times = 2, every = "3 ms" }\n',
        SEVERAL + 'programs.a.command = "sync -f /d0"\nprograms.b.command = "sync"\n',
        SEVERAL.replace("count = 3", "count = 1") + "sync_after = true\n"
        'programs.a = { command = "dd if=/dev/zero of=/d0/x bs=1M count=9", start = "5 s" }\n',
    ],
    ids=["no request", "no file", "no byte", "one disk", "endless", "only syncs", "a late start"],
)  # fmt: skip
def test_an_unusual_result_answers_every_question(text: str, tmp_path: Path) -> None:
    """Runs without a request, a file or a byte, and endless programs, have answers, too."""
    config, out = ran(text, tmp_path, ["run"], ["--locks", "lock_stat"])
    assert json.loads(asked("run", config, "--out", out, "--json"))["outcomes"]
    ask_everything(out)
    ask_where_files_lie(config, text, out)
    for name in FIGURES:
        asked("plot", out, "--x", "variant", "--y", name)
