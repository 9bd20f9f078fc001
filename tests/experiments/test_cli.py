"""The command line: the help, the arguments, the output and the exit status of each command."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import wbsim.experiments.captures.record
import wbsim.experiments.published.reproduce
from tests.harness import FIO, loop_config
from wbsim.experiments.captures.record import Recorded
from wbsim.experiments.cli import main, parser_of_wbsim
from wbsim.experiments.commands.options import print_json
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.published import fit
from wbsim.experiments.published.fit import Fit
from wbsim.experiments.published.reproduce import Reproduction
from wbsim.experiments.running import execute, simulate
from wbsim.experiments.running.execute import How
from wbsim.sim.interrupts import Ended
from wbsim.sim.param import Origin

COMMITTED = Path(__file__).with_name("options.tsv")


def helps() -> str:
    """Return a line for each option of each command, independent of the layout of argparse.

    ``python -m tests.experiments.test_cli`` writes options.tsv anew.
    """
    top: Any = parser_of_wbsim()
    (commands,) = (action for action in top._actions if isinstance(action.choices, dict))
    lines = [f"{top.prog}: {top.description} {top.epilog}\n"]
    lines += [f"{about.dest}: {about.help}\n" for about in commands._choices_actions]
    for name, parser in commands.choices.items():
        for of in parser._actions:
            says = of.help or "", of.metavar or "", of.default, of.nargs, of.required, of.choices
            lines.append("\t".join(map(str, (name, "/".join(of.option_strings) or of.dest, *says))) + "\n")
    return "".join(lines)


def test_help_of_every_option_is_as_committed() -> None:
    """The file options.tsv has the help, the default and the number of values of every option."""
    assert helps() == COMMITTED.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: COMMAND; see wbsim --help"),
        (
            ["run", "x", "--seed", "-1"],
            "argument --seed: '-1' is not a whole number from 0 to 999999999999999999; see wbsim run --help",
        ),
        (["reproduce", "--replications", "0"], "'0' is not a whole number from 1 to 100000"),
        (["replay", "x", "--nomerges", "a"], "'a' is not a whole number from 0 to"),
        (["run"], "wbsim: run: give either CONFIG.toml or --fs-mark LINE"),
        (["run", "x.toml", "--fs-mark", "y"], "wbsim: run: give either CONFIG.toml or --fs-mark LINE"),
        (
            ["capture", "--out", "x", "--device", "7", "--", "true"],
            "--device: is '7'; give MAJ:MIN, such as 7:0",
        ),
        (["capture", "--out", "x", "--device", "a:0", "--", "true"], "--device: is 'a:0'; give MAJ:MIN"),
    ],
)
def test_wrong_arguments_exit_with_status_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error on stderr names the argument and the remedy."""
    try:
        status: Any = main(arguments)
    except SystemExit as end:
        status = end.code
    assert status == 2
    assert said in capsys.readouterr().err


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """An experiment of two small files."""
    path = tmp_path / "x.toml"
    path.write_text(loop_config(f"{FIO} --rw=write --nrfiles=2 --filesize=1m --name=a", dirty_mib=2))
    return path


@pytest.mark.parametrize("command", ["run", "sweep", "reproduce", "calibrate", "advise", "layout", "replay"])
def test_out_below_a_file_is_refused_before_anything_runs(
    command: str, config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command checks --out first.  It simulates nothing if --out lies below a file."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("something was run")

    monkeypatch.setattr(execute, "Workers", never)
    monkeypatch.setattr(simulate, "simulate", never)
    more = {"reproduce": ["P13"], "calibrate": ["P13"], "replay": ["nowhere", "--kernel", "3.11"]}
    out = config / "there" / "deeper"
    assert main([command, *more.get(command, [str(config)]), "--out", str(out)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"wbsim: --out {out}: {config} is a file; give a directory\n"


def test_reproduce_passes_its_options_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reports, --quick, --replications and the settings of the run arrive as they were given."""
    asked: list[tuple[Any, ...]] = []
    found = Reproduction(
        rows=[], constants={"assumed": 3}, cpu_s=1.234, peak_rss_mib=5.67, seed=7, interval="t", quick=True,
        outcomes=["an outcome"],  # type: ignore[list-item]
    )  # fmt: skip

    def reproduce(reports: Any, **options: Any) -> Reproduction:
        asked.append((reports, options))
        return found

    monkeypatch.setattr(wbsim.experiments.published.reproduce, "reproduce", reproduce)
    out, ways = tmp_path / "out", ("--quick", "--replications 1")
    options = ["--quick", "--replications", "3", "--seed", "7", "--out", str(out), "--jobs", "4"]
    assert main(["reproduce", "P13", "N10", *options, "--json"]) == 0
    assert asked == [
        (["P13", "N10"], {"quick": True, "replications": 3, "how": How(7, out, 4, None, "long", ways)})
    ]
    assert json.loads(capsys.readouterr().out) == {
        "rows": [], "constants": {"assumed": 3}, "cpu_s": 1.23, "peak_rss_mib": 5.7, "seed": 7,
        "interval": "t", "quick": True,
    }  # fmt: skip
    asked.clear()
    assert main(["reproduce"]) == 0
    assert asked == [([], {"quick": False, "replications": None, "how": How(progress="long", shorter=ways)})]
    assert "seed 7" in capsys.readouterr().out


@pytest.mark.parametrize(("agrees", "status"), [(True, 0), (False, 1)])
def test_calibrate_fails_if_fit_differs_from_committed_constants(
    agrees: bool,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The rounds go to stderr and the table goes to stdout.  The status is 1 if the fit differs.

    A machine file gets the constants, and each names the rows that decide it.
    """

    def fake(of: Any, how: How, report: Any) -> Fit:
        assert how == How(seed=9, progress="long")
        assert set(of.constants) == {"writer_scale", "link"}
        report("round 1")
        found = {"link": 5_000_000, "writer_scale": 3.5}
        return Fit(found, found | {"link": 5_000_000 if agrees else 6}, {"a-row": 0.01}, 1)

    monkeypatch.setattr(fit, "fit", fake)
    file = tmp_path / "mine.toml"
    assert main(["calibrate", "N10", "--seed", "9", "--machine", str(file)]) == status
    told = capsys.readouterr()
    assert told.err == "round 1\n"
    assert "link" in told.out
    config = f'title = "t"\n[scenario]\nmachine.like = "{file}"\nkernel.like = "3.11"\n'
    more = 'filesystem.like = "n10-xfs"\nworkload.command = "dd if=/dev/zero of=/f bs=1M count=1"\n'
    (case,) = parse(config + more, str(tmp_path / "x.toml")).cases
    machine: Any = case.scenario.machine
    for spec, name, value in (
        (machine.processors, "writer_scale", 3.5),
        (machine.disks["vdb"].device, "link", 5_000_000),
    ):
        given = spec.provenance(name)
        assert (getattr(spec, name), given.origin) == (value, Origin.CALIBRATED)
        assert given.targets == (("N10-one-bw",) if name == "writer_scale" else ("N10-two-same-bw",))
        assert given.source == f"{file}:{2 if name == 'writer_scale' else 3}: wbsim calibrate N10"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["N10", "--machine", "here.toml"],
            "--machine here.toml: exists; give another file, or remove this one",
        ),
        (["N10", "--machine", "no/x.toml"], "--machine no/x.toml: is in no folder; make the folder"),
        (["--from", "x.trace", "--machine", "x.toml"], "--machine: is for the fit of a report; leave it out"),
    ],
)
def test_calibrate_refuses_its_file_before_the_fit(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """A file that exists is not replaced."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.toml").write_text("mine")
    assert main(["calibrate", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert (tmp_path / "here.toml").read_text() == "mine"


def test_cluster_and_jobs_exclude_each_other(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The option --jobs counts processes of this machine, so a command with --cluster refuses it."""
    assert main(["run", str(config), "--jobs", "2", "--cluster", "tcp://x:1"]) == 2
    assert "--jobs: counts the runs on this machine; leave it out with --cluster" in capsys.readouterr().err


def test_run_without_writeback_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """A note explains w/s 0: nothing was written back before the programs ended."""
    assert main(["run", "--fs-mark", "fs_mark -S0 -n 20 -s 4096 -L 2 -d /mnt/a"]) == 0
    assert "nothing was written back before the programs ended" in capsys.readouterr().out


def test_run_shows_when_everything_was_on_disk(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sync(2) writes two files of 64 KiB: no request completes before the programs end, some do after."""
    config.write_text(config.read_text().replace("--filesize=1m", "--filesize=64k"))
    assert main(["run", str(config)]) == 0
    first, on_disk, *_ = capsys.readouterr().out.split("\n\n")
    cells = dict(zip(*(re.split("  +", first.splitlines()[line]) for line in (1, 3)), strict=True))
    assert cells["w/s"] == "0"
    assert not {"wareq-sz KiB", "wrqm %"} & cells.keys(), "no request completed"
    assert 0 < float(cells["wall s"]) <= float(cells["on disk s"])
    cells = dict(zip(*(re.split("  +", on_disk.splitlines()[line]) for line in (0, 2)), strict=True))
    assert float(cells["requests"]) >= 1
    assert float(cells["MB"]) >= 2 * 65_536 / 1e6
    assert float(cells["w/s"]) > 0


def test_run_notes_files_that_are_not_on_disk(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a sync(2), files below the background limit stay in memory; unknown figures are null."""
    config.write_text(config.read_text().replace("--filesize=1m", "--filesize=64k") + "sync_after = false\n")
    assert main(["run", str(config)]) == 0
    told = capsys.readouterr().out
    assert "\n2 of 2 files are not on disk yet\n0.125 MiB still dirty or under writeback when" in told
    assert "until on disk" not in told
    assert main(["run", str(config), "--json"]) == 0
    text = capsys.readouterr().out
    (outcome,) = json.loads(text, parse_constant=pytest.fail)["outcomes"]
    figures = outcome["figures"]
    assert (figures["on_disk_time_s"], figures["dirty_at_end_mib"]) == (None, 0.125)


def test_run_notes_a_full_filesystem_and_options_without_effect(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The JSON document has the error and the number of processes that it ended."""
    lines = config.read_text().splitlines()
    command = "dd if=/dev/zero of=/m/f bs=1M count=2048 status=progress"
    lines[-1] = f"filesystem.size = '1 GiB'\nworkload.command = '{command}'"
    config.write_text("\n".join(line for line in lines if 'workload.command = "' not in line))
    assert main(["run", str(config)]) == 0
    texts = capsys.readouterr().out.rstrip().split("\n\n")
    assert "dd: No space left on device; this ended 1 process before all was written" in texts
    assert "dd: without effect here: status=progress" in texts
    assert main(["run", str(config), "--json"]) == 0
    (outcome,) = json.loads(capsys.readouterr().out)["outcomes"]
    program = outcome["programs"]["dd"]
    assert program["failed"] == {"No space left on device": 1}
    assert 5e8 < program["file_bytes"] < 1 << 30


def test_json_has_null_for_unknown_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has no tokens for NaN and Infinity, so both are printed as null."""
    print_json({"a": [1.5, float("nan")], "b": (float("inf"), {"c": float("nan"), "d": "NaN", "e": 0})})
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told == {"a": [1.5, None], "b": [None, {"c": None, "d": "NaN", "e": 0}]}


def test_failing_variant_is_reported_and_others_are_printed(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variant that does not end gives status 2.  The error names the variant and the remedy."""
    config.write_text(f'{config.read_text()}[variants.a]\n[variants.b]\ngive_up = "1 ms"\n')
    assert main(["run", str(config)]) == 2
    told = capsys.readouterr()
    assert [line.split()[0] for line in told.out.split("\n\n")[0].splitlines()[3:]] == ["a"]
    assert told.err.startswith("wbsim: variant b: ")
    assert "raise give_up" in told.err


def test_sweep_prints_a_column_for_each_key(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table has a column for each swept key, and each mean has its half-width.

    --until-ci adds replications until the figure is precise, and refuses an unknown figure and a value
    without a percent sign.
    """
    words = ["--set", "workload.nrfiles=1,2", "--set", "give_up=9 s", "--zip"]
    assert main(["sweep", str(config), "--set", "workload.nrfiles=1,2", "--replications", "2"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.split("\n\n")[0].splitlines()[3:]]
    assert [row[0] for row in rows] == ["1", "2"]
    assert all(row[2].startswith("±") for row in rows)
    assert main(["sweep", str(config), *words]) == 2
    assert (
        "zipped lists have different lengths: workload.nrfiles has 2, give_up has 1"
        in capsys.readouterr().err
    )
    assert main(["sweep", str(config), "--until-ci", "write_iops=50%", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["outcomes"]) >= 5
    assert [outcome["replication"] for outcome in document["outcomes"]] == list(
        range(len(document["outcomes"]))
    )
    for text, told in (("write_iop=2%", "did you mean write_iops?"), ("write_iops=2", "write write_iops=2%")):
        assert main(["sweep", str(config), "--until-ci", text]) == 2
        assert told in capsys.readouterr().err


def test_run_prints_how_to_plot_its_results(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of an experiment and a run of an fs_mark line print the command on stderr."""
    out = config.parent / "out"
    assert main(["run", str(config), "--out", str(out)]) == 0
    told = capsys.readouterr()
    assert told.err == f"wrote {out}; draw it with: wbsim plot {out}\n"
    title, header, *_ = told.out.splitlines()
    assert title == "on the machine that was measured"
    assert header.split("  ")[0] == "variant"
    mark, out = "fs_mark -S0 -n 20 -s 4096 -L 2 -d a", config.parent / "marked"
    assert main(["run", "--fs-mark", mark, "--out", str(out), "--seed", "5", "--json"]) == 0
    told = capsys.readouterr()
    assert told.err == f"wrote {out}; draw it with: wbsim plot {out}\n"
    document = json.loads(told.out)
    assert (document["title"], document["axes"]) == ("fs_mark on P13's machine", [])
    assert [outcome["seed"] for outcome in document["outcomes"]] == [5]


def test_layout_writes_everything_back_first(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The experiment is laid out as with sync(2), even if it has ``sync_after = false``."""
    text = config.read_text().replace("--filesize=1m", "--filesize=64k")
    told = []
    for sync in ("true", "false"):
        config.write_text(f"{text}sync_after = {sync}\n")
        assert main(["layout", str(config)]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert told[0].count(" 000000") == 2, "each file has one extent"


def test_program_tables_name_their_variants_if_there_are_several(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of two variants has a table of programs with its name.

    A single variant has a table without a name.
    """
    text = config.read_text().replace("workload.command =", "programs.two.command =")
    other = f"{FIO} --rw=write --filesize=1m --name=b --directory=/b"
    text += f'programs.one = {{ command = "{other}", start = "1 ms" }}\n'
    config.write_text(text)
    assert main(["run", str(config)]) == 0
    assert "\nprogram  wall s" in capsys.readouterr().out
    config.write_text(f'{text}[variants.a]\n[variants.b]\nkernel.writeback.interval = "1 s"\n')
    assert main(["run", str(config)]) == 0
    told = capsys.readouterr().out
    assert "\na:\nprogram  wall s" in told
    assert "\nb:\nprogram  wall s" in told


def test_layout_prints_files_as_xfs_bmap_or_filefrag(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file is printed as the tool of its filesystem prints it, or as filefrag with --filefrag.

    --variant must choose one of several variants.  --out adds a picture.
    """
    assert main(["layout", str(config)]) == 0
    as_xfs = capsys.readouterr().out
    assert " EXT: FILE-OFFSET" in as_xfs
    assert main(["layout", str(config), "--filefrag"]) == 0
    assert "logical_offset" in capsys.readouterr().out
    config.write_text(f"{config.read_text()}[variants.a]\n[variants.b]\nworkload.nrfiles = 3\n")
    assert main(["layout", str(config)]) == 2
    assert "--variant: is missing; use one of a, b" in capsys.readouterr().err
    assert main(["layout", str(config), "--variant", "c"]) == 2
    assert "--variant: c matches 0 cases; use one of a, b" in capsys.readouterr().err
    assert main(["layout", str(config), "--variant", "b"]) == 0
    assert capsys.readouterr().out.count(" EXT: FILE-OFFSET") == 3
    assert main(["layout", str(config), "--variant", "a", "--mount", "x"]) == 2
    assert "--mount: is 'x'; use one of" in capsys.readouterr().err
    out = config.parent / "drawn"
    assert main(["layout", str(config), "--variant", "a", "--out", str(out)]) == 0
    told = capsys.readouterr()
    assert told.out == as_xfs
    assert told.err == f"wrote {out / 'disk.png'}\n"
    assert (out / "disk.png").read_bytes().startswith(b"\x89PNG")
    assert main(["layout", str(config), "--variant", "b", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    extents = document["extents"]
    assert document["mount"] == "mnt"
    assert sum(extent["length_bytes"] for extent in extents) == 3 * 2**20
    assert {extent["file"] for extent in extents} == {0, 1, 2}
    assert extents[0]["file_offset_bytes"] == 0
    assert extents[0]["disk_offset_bytes"] > 0


def test_small_files_have_no_layout(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run keeps only the count of small files, so `wbsim layout` refuses them."""
    config.write_text(loop_config("fs_mark -S0 -n 9 -s 4096 -L 2 -d a", dirty_mib=2))
    assert main(["layout", str(config)]) == 2
    assert "has only files of one extent, of which the model keeps just the number" in capsys.readouterr().err


def test_params_lists_the_numbers_of_an_experiment(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default experiment is that of P13."""
    assert main(["params", "--json"]) == 0
    paths = [number["path"] for number in json.loads(capsys.readouterr().out)["numbers"]]
    assert "machine.processors.exit_time" in paths
    assert main(["params", str(config)]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[0].split() == ["number", "value", "origin"]
    assert "x.toml:6" not in told
    assert main(["params", str(config), "--sources"]) == 0
    assert "x.toml:6" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        (Recorded(0, "7,0", 12, 0, 0), "wrote there: 12 bios for 7,0\n"),
        (
            Recorded(3, "7,0", 12, 4, 5),
            "wrote there: 12 bios for 7,0, 4 for other devices\n"
            "wbsim: 5 events were lost; raise --buffer-mib\n",
        ),
    ],
)
def test_capture_returns_exit_status_of_its_command(
    recorded: Recorded, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts of bios, of bios for other devices and of lost events are printed on stderr."""
    asked: list[tuple[Any, ...]] = []

    def record(*parts: Any) -> Recorded:
        asked.append(parts)
        return recorded

    monkeypatch.setattr(wbsim.experiments.captures.record, "record", record)
    options = ["--buffer-mib", "9", "--device", "7:0"]
    assert main(["capture", "--out", "there", *options, "--", "sh", "-c", "true"]) == recorded.status
    assert main(["capture", "--out", "there", "--cpu", "--", "true"]) == recorded.status
    assert asked == [
        (Path("there"), ["sh", "-c", "true"], 9, "7,0", False),
        (Path("there"), ["true"], 64, None, True),
    ]
    assert capsys.readouterr().err == 2 * said


def test_interrupt_exits_with_130_and_closed_pipe_with_141(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupt (130) and SIGTERM (143) print one line.  A closed pipe (141) prints nothing."""

    def ends_with(error: type[BaseException]) -> int:
        def raises(*_: object, **__: object) -> None:
            raise error()

        monkeypatch.setattr(wbsim.experiments.published.reproduce, "reproduce", raises)
        return main(["reproduce"])

    assert ends_with(KeyboardInterrupt) == 130
    assert capsys.readouterr().err == "wbsim: interrupted; nothing was written\n"
    assert ends_with(partial(Ended, 15)) == 143  # type: ignore[arg-type]
    assert capsys.readouterr().err == "wbsim: interrupted; nothing was written\n"
    closed: list[bool] = []
    monkeypatch.setattr(
        "sys.stderr", SimpleNamespace(isatty=lambda: False, close=lambda: closed.append(True))
    )
    assert ends_with(BrokenPipeError) == 141
    assert closed == [True]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_is_recognised_if_a_library_raises_another_error(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupt while pydantic makes a class becomes an error of pydantic.

    Without a signal the error is raised as it is.
    """

    def raises(*_: object, **__: object) -> None:
        try:
            if number in arrives:
                signal.raise_signal(number)
        finally:
            raise RuntimeError("a class is not fully defined")

    monkeypatch.setattr(wbsim.experiments.published.reproduce, "reproduce", raises)
    arrives = [number]
    assert main(["reproduce"]) == 128 + number
    assert capsys.readouterr().err == "wbsim: interrupted; nothing was written\n"
    arrives.clear()
    with pytest.raises(RuntimeError):
        main(["reproduce"])


def test_signals_are_heard_before_pydantic_is_imported() -> None:
    """A SIGINT in the import of pydantic's classes was an error of pydantic, with a traceback."""
    program = """
import sys
from wbsim.experiments import cli
from wbsim.sim import interrupts

def hears():
    sys.exit(8 if "pydantic" in sys.modules else 7)

interrupts.ended_by_signals = hears
cli.main(["reproduce"])
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 7


@pytest.mark.parametrize(
    ("closed", "status", "told"),
    [
        ("stdout", 1, "wbsim: cannot write to stdout, which is closed; redirect it to a file\n"),
        ("stderr", 0, ""),
    ],
)
def test_closed_stdout_is_an_error_and_closed_stderr_is_allowed(closed: str, status: int, told: str) -> None:
    """A command needs stdout.  Without stderr it drops its messages."""
    script = f'exec "$0" -m wbsim.experiments.cli completion bash {">&-" if closed == "stdout" else "2>&-"}'
    ran = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (status, told)
    assert bool(ran.stdout) == (closed == "stderr")


def test_letters_that_the_locale_lacks_are_escaped(tmp_path: Path) -> None:
    """An error message shows a letter that ASCII lacks by its code."""
    (tmp_path / "x.toml").write_text('title = "é→"\nscenari = 1\n')
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(
        [sys.executable, "-m", "wbsim.experiments.cli", "show", "é→.toml"], env=environment, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "\\xe9\\u2192.toml" in ran.stderr


@pytest.mark.parametrize("word", ["", " ", "a\0b", "o\udcff"])
def test_invalid_directory_name_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty or blank name, a NUL and a lone surrogate are refused before anything runs."""
    with pytest.raises(SystemExit) as end:
        main(["run", "x.toml", "--out", word])
    assert end.value.code == 2
    assert f"argument --out: {word!r} is " in capsys.readouterr().err.replace("\\\\", "\\")


def test_error_about_an_argument_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Line feeds and control characters of the argument are escaped."""
    with pytest.raises(SystemExit):
        main(["list", "kernels", "plug", "a\n\x1b[31mb"])
    assert capsys.readouterr().err == (
        "wbsim list: unrecognized arguments: a\\n\\x1b[31mb; see wbsim list --help\n"
    )


def test_too_long_directory_name_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error is the message of the system in one line."""
    config = tmp_path / "x.toml"
    config.write_text(loop_config("dd if=/dev/zero of=/a bs=4k count=1", dirty_mib=2))
    assert main(["run", str(config), "--out", "o" * 300]) == 2
    assert capsys.readouterr().err.endswith("File name too long; give a directory\n")


if __name__ == "__main__":
    COMMITTED.write_text(helps())
