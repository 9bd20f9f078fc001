"""Bad input: all problems are reported at once, each with a place and a remedy, and nothing is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import config_path, from_command, load, parse, smaller
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.config.toml_tree import NotToml, document_of

GOOD = """\
title = "a small run"
[scenario]
machine.like = "p13-vm"
machine.memory.memory = "64 MiB"
machine.memory.kernel_reserve = "0 B"
kernel.like = "3.11"
filesystem.like = "p13-xfs"
workload.command = "fs_mark -S0 -n 200 -s 4096 -L 4 -D 100 -d a -d b"
[variants.unpatched]
[variants.patched]
kernel.writeback.plug_scope = "slice"
"""


def problems(text: str, *overrides: str) -> list[str]:
    """Return the problems of *text* with *overrides*, as printed."""
    with pytest.raises(BadInput) as caught:
        parse(text, "x.toml", overrides)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("name", sorted(path.name for path in config_path("").glob("*.toml")))
def test_shipped_configurations_load(name: str) -> None:
    """The variants of a configuration differ from each other."""
    experiment = load(config_path(name))
    assert len({case.scenario for case in experiment.cases}) == len(experiment.cases)


def test_group_of_disks_can_have_a_mount_on_each() -> None:
    """The number of the disk replaces ``{n}`` in the path of the mount."""
    text = GOOD.replace('filesystem.like = "p13-xfs"\n', "").replace("-d a -d b", "-d /m/0 -d /m/2")
    text = text.replace(
        "[variants.unpatched]",
        """machine.disks.d = { like = "sata-ssd", count = 3 }
mounts.m = { each = "d", at = "/m/{n}", like = "xfs" }
[variants.unpatched]""",
    )
    scenario = parse(text, "x.toml").cases[0].scenario
    assert [name for name in scenario.machine.disks if name.startswith("d")] == ["d0", "d1", "d2"]
    assert [(m.disk, m.at) for m in scenario.mounts.values()] == [
        ("d0", "/m/0"),
        ("d1", "/m/1"),
        ("d2", "/m/2"),
    ]


def test_job_file_is_found_next_to_the_configuration(tmp_path: Path) -> None:
    """A missing job file is reported by its name."""
    text = (
        'title = "t"\n[scenario]\nmachine.like = "loop-vm"\nkernel.like = "6.18"\n'
        'filesystem.like = "loop-xfs"\nworkload.command = "fio {}"\n'
    )
    config = tmp_path / "a.toml"
    (tmp_path / "jobs.fio").write_text(
        "[global]\nsize=8m\ndirectory=/d\ncreate_on_open=1\nfallocate=none\n[one]\nrw=write\n[two]\nrw=randwrite\n"
    )
    config.write_text(text.format("jobs.fio"))
    (program,) = load(config).cases[0].scenario.programs.values()
    assert (program.workload.kind, program.workload.total_files) == ("fio", 2)
    config.write_text(text.format("none.fio"))
    with pytest.raises(
        BadInput, match=r"a\.toml:6: workload\.command: the job file none\.fio cannot be read: No"
    ):
        load(config)


def test_programs_in_a_list_are_named_after_their_kind() -> None:
    """The second fs_mark is fs_mark-2, the third fs_mark-3."""
    line = "fs_mark -S0 -n 200 -s 4096 -L 4 -D 100 -d a -d b"
    text = GOOD.replace(f'workload.command = "{line}"', f'programs = ["{line}", "{line}", "{line}"]')
    assert list(parse(text, "x.toml").cases[0].scenario.programs) == ["fs_mark", "fs_mark-2", "fs_mark-3"]


def test_override_goes_over_variant_and_variant_over_scenario() -> None:
    """A number that a variant sets has the line of the variant as its source."""
    experiment = parse(GOOD, "x.toml", ["workload.files=7", 'machine.memory.memory="1 GiB"'])
    unpatched, patched = (case.scenario for case in experiment.cases)
    assert unpatched.kernel.writeback.plug_scope == "mapping"
    assert patched.kernel.writeback.plug_scope == "slice"
    assert unpatched.programs["fs_mark"].workload.files == 7  # type: ignore[attr-defined]
    assert patched.machine.memory.memory == 1 << 30
    given = patched.kernel.writeback.provenance("plug_scope")
    assert given is not None
    assert given.source == "x.toml:11"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            'machine.memory.memory = "64 MiB"',
            'machine.memory.memroy = "64 MiB"',
            "x.toml:4: machine.memory.memroy: unknown key; did you mean memory?",
        ),
        (
            '"64 MiB"',
            '"64 s"',
            "x.toml:4: machine.memory.memory: 's' is not a unit of size; use one of",
        ),
        ('"64 MiB"', '"4k"', "x.toml:4: machine.memory.memory: '4k' is ambiguous; write \"4 KiB\""),
        ('"64 MiB"', "4096", "x.toml:4: machine.memory.memory: 4096 has no unit; write a text"),
        ('"64 MiB"', '"-1 MiB"', "x.toml:4: machine.memory.memory: '-1 MiB' is negative"),
        (
            'machine.like = "p13-vm"',
            'machine.like = "p13"',
            "x.toml:3: machine.like: 'p13' is not known; use",
        ),
        ("-S0", "-S7", "x.toml:8: workload.command: -S 7 is refused by fs_mark; give at most 6"),
        (
            'plug_scope = "slice"',
            'plug_scope = "file"',
            "x.toml:11: kernel.writeback.plug_scope: is 'file'; use",
        ),
        (
            "[variants.patched]",
            "[variants.patched]\nkernal.name = 'x'",
            "x.toml:11: variants.patched.kernal: unknown key; did you mean kernel?",
        ),
        (
            "-d a -d b",
            "-d a -d b -t 3",
            "x.toml:8: workload.processes: 3 processes are not a multiple of 2 directories",
        ),
        (
            '"64 MiB"',
            '"1 KiB"',
            "x.toml:4: machine.memory.memory: 1024 B leaves less than 1 MiB after kernel_reserve",
        ),
        (
            'filesystem.like = "p13-xfs"',
            'mounts.m = { like = "loop-xfs", size = "1 GiB", files = 4000000 }',
            "x.toml:7: mounts.m.files: the files that exist at the start need 2336000000 B, and the"
            " filesystem has 1006370816 B; give fewer or smaller files",
        ),
        (
            'filesystem.like = "p13-xfs"',
            'mounts.m = { like = "loop-xfs", size = "1 GiB", contents = [{ path = "f", size = "2 GiB" }] }',
            "x.toml:7: mounts.m.contents: the files that exist at the start need 2147484232 B, and the"
            " filesystem has 1006370816 B; give fewer or smaller files",
        ),
        ('title = "a small run"', "", "title: is missing"),
        (
            'plug_scope = "slice"',
            'plug_scope = "slice"\nkernel.throttling = { kind = "caller_writes", hz = 1000 }',
            "x.toml:11: kernel.writeback.nr_to_write: is missing: with throttling of kind",
        ),
        ("kernel.like", "kernel.writeback.quota_pages = 5\nkernel.like", "is now called nr_to_write"),
        ("kernel.like", "kernel.scheduler.hz = 250\nkernel.like", "kernel.scheduler: is now called sched"),
        (
            'plug_scope = "slice"',
            'plug_scope = "slice"\nkernel.throttling.kind = "caller_writes"',
            "kernel.throttling.hz: is missing; give a value",
        ),
    ],
)
def test_each_problem_has_a_place_and_a_remedy(old: str, new: str, expected: str) -> None:
    """The form is file:line: key: what is wrong; what would be right."""
    found = problems(GOOD.replace(old, new))
    assert any(expected in problem for problem in found), found


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('title = "a small run"', "title = 3", ["x.toml:1: title: is 3; give a sentence that says what the"
         " experiment shows"]),
        ('title = "a small run"', 'titel = "x"', ["x.toml:1: titel: unknown key; did you mean title?",
         "x.toml: title: is missing; give a sentence that says what the experiment shows"]),
        ("[variants.unpatched]", "replications = 0\n[variants.unpatched]",
         ["x.toml:9: replications: unknown key; use one of machine, kernel, filesystem, mounts, workload,"
          " programs, give_up, sync_after"]),
        ("[variants.unpatched]", "[variants.unpatched]\nrows = 'x'",
         ["x.toml:10: variants.unpatched.rows: is 'x'; a list of texts was expected"]),
        ("[variants.unpatched]", "[variants.unpatched]\nquick = [1]",
         ["x.toml:10: variants.unpatched.quick: is [1]; a list of texts was expected"]),
        ("[variants.unpatched]", "[sweep]\npoints = 3\n[variants.unpatched]",
         ["x.toml:10: sweep.points: is 3; give a list of tables, each with a value and the keys"]),
        ("[variants.unpatched]", "[sweep]\npoints = [{ x = 1 }]\n[variants.unpatched]",
         ["x.toml:10: sweep.points: is [{'x': 1}]; give a list of tables, each with a value"]),
        ("[variants.unpatched]", "[sweep]\npionts = 3\npoints = [{ value = 1 }]\n[variants.unpatched]",
         ["x.toml:10: sweep.pionts: unknown key; did you mean points?"]),
        ('kernel.like = "3.11"', "kernel = 3", ["x.toml:6: kernel: is 3; a table was expected",
         "x.toml:6: kernel.like: is missing; use one of "]),
        ('filesystem.like = "p13-xfs"', "filesystem = 3",
         ["x.toml:7: filesystem: is 3; a table was expected"]),
        ('filesystem.like = "p13-xfs"', "mounts = 3", ["x.toml:7: mounts: is 3; a table was expected"]),
    ],
)  # fmt: skip
def test_configuration_of_another_shape_is_refused(old: str, new: str, expected: list[str]) -> None:
    """Each problem states the type that was expected."""
    found = problems(GOOD.replace(old, new))
    assert len(found) >= len(expected)
    for problem in expected:
        assert any(line.startswith(problem) for line in found), found


@pytest.mark.parametrize(("text", "runs"), [("2", 2), ("0", 0), ("true", 0), ("'x'", 0)])
def test_replications_are_a_whole_number_above_0(text: str, runs: int) -> None:
    """Other values are refused."""
    text = f"replications = {text}\n{GOOD}"
    if runs:
        assert parse(text, "x.toml").replications == runs
    else:
        (problem,) = problems(text)
        assert problem.startswith("x.toml:1: replications: is ")
        assert problem.endswith("; a whole number from 1 to 100000 was expected")


def test_file_without_a_configuration_is_refused(tmp_path: Path) -> None:
    """A missing file, binary data and bad TOML give an error each, with the line if it is known."""
    digits = b"9" * 5_000
    for content, message in (
        (None, ": No such file or directory; give the path of an experiment's .toml file"),
        (b"\xff\xfe", ":1: is not text: the byte 0xff is not UTF-8; give an experiment's"),
        (b"a = 1\n# \xe4\n", ":2: is not text: the byte 0xe4 is not UTF-8; give an experiment's"),
        (b"a = = 1", ":1: not TOML: Invalid value; write texts in quotes (column 5)"),
        (b"a = 1\n\na = 2\n", ":3: not TOML: a key is given twice; remove one of them (column 6)"),
        (b"a = 1\nb = " + digits, ":2: not TOML: a whole number exceeds 64 bits; give a smaller one"),
        (b"a = 1\nb = [\n1,\n0x" + digits, ":"),
        (b"a = 1\nb = [\n1,\n0x" + digits + b"]", ":4: b.1: not TOML: a whole number exceeds 64 bits"),
        (b"a = " + b"a." * 20_000 + b"a = 1", ": is nested deeper than 32 levels"),
        (b".".join([b"a"] * 33) + b" = 1", ": is nested deeper than 32 levels"),
    ):
        path = tmp_path / "x.toml"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(BadInput) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(("number", "fits"), [(2**63 - 1, True), (-(2**63), True), (2**63, False)])
def test_whole_number_has_64_bits(number: int, fits: bool) -> None:
    """The bound is that of TOML.  A float has no bound."""
    text = f"a = 1e30\nb = {number}\n"
    if fits:
        assert document_of(text)["b"] == number
    else:
        with pytest.raises(NotToml) as refused:
            document_of(text)
        assert refused.value.line == 2


def test_mistake_in_quick_is_reported_as_quick(tmp_path: Path) -> None:
    """The user did not write --set for the overrides of ``quick``."""
    path = tmp_path / "x.toml"
    path.write_text(GOOD.replace("[scenario]", 'quick = ["nosuch.key=5"]\n[scenario]', 1))
    whole = load(path)
    with pytest.raises(BadInput) as refused:
        smaller(path, whole, whole.cases[0], ["workload.loops=0"])
    told = str(refused.value)
    assert f"{path}: quick = ['nosuch.key=5']: nosuch.key: no command line contains {{nosuch.key}}" in told
    assert "--set nosuch" not in told


@pytest.mark.parametrize(
    ("size", "credits_asked", "told"),
    [
        ("828 KiB", 1, ""),
        (
            "824 KiB",
            1,
            "68 blocks, and create_credits need 69; give at least 828 KiB",
        ),
        ("828 KiB", 34, ""),
        (
            "828 KiB",
            35,
            "69 blocks, and convert_credits need 70; give at least 840 KiB",
        ),
    ],
)
def test_journal_has_room_for_a_handle(size: str, credits_asked: int, told: str) -> None:
    """A transaction is at most a third of the journal, and each handle must fit into it.

    * create: 47 credits and 22 for descriptors are 69 blocks, which need a journal of 828 KiB.
    * convert: only half of a transaction can be reserved, so 35 credits need 70 blocks and 840 KiB.
    """
    journal = f'{{ size = "{size}", convert_credits = {credits_asked} }}'
    text = GOOD.replace('"p13-xfs"', f'"loop-ext4"\nfilesystem.journal = {journal}').replace(
        "kernel.writeback.plug_scope", "#"
    )
    if told:
        assert any(told in of for of in problems(text))
    else:
        parse(text, "x.toml")


def test_variant_has_its_own_rows_and_quick() -> None:
    """The experiment's quick counts for variants without one.  The label of a case ends with its point."""
    text = f"quick = ['a=1']\n{GOOD}rows = ['P-1', 'P-2']\nquick = ['b=2']\n"
    first, second = parse(text, "x.toml").cases
    assert (first.rows, first.quick) == ((), ("a=1",))
    assert (second.rows, second.quick) == (("P-1", "P-2"), ("b=2",))
    assert (first.label, replace(first, point={"n": 7}).label) == ("unpatched", "unpatched-7")
    assert parse(GOOD, "x.toml").axes == ()
    alone = GOOD.split("[variants")[0]
    assert [case.variant for case in parse(alone, "x.toml").cases] == ["base"]


@pytest.mark.parametrize(
    ("override", "read"),
    [("workload.files=7", 7), ("scenario.workload.files=7", 7), (" workload.files =7", 7)],
)
def test_override_is_read_as_toml_or_text(override: str, read: int) -> None:
    """The prefix ``scenario.`` may be left out, and spaces are ignored."""
    (case, _) = parse(GOOD, "x.toml", [override]).cases
    assert case.scenario.programs["fs_mark"].workload.files == read  # type: ignore[attr-defined]
    (case, _) = parse(GOOD, "x.toml", ["machine.memory.memory=65 MiB"]).cases
    assert case.scenario.machine.memory.memory == 65 << 20
    assert "has no value; write --set key.path=value" in problems(GOOD, "=3")[0]


def test_give_up_and_sync_after_are_keys_of_the_scenario() -> None:
    """A run is given up after 100 000 s by default."""
    of = parse(GOOD, "x.toml").cases[0].scenario
    assert (of.give_up, of.sync_after) == (100_000 * 10**9, False)
    of = parse(GOOD, "x.toml", ['give_up="9 s"', "sync_after=true"]).cases[0].scenario
    assert (of.give_up, of.sync_after) == (9 * 10**9, True)


def test_an_fs_mark_line_runs_on_p13_s_machine() -> None:
    """The quotes of the line are read as a shell reads them."""
    experiment = from_command('fs_mark -S0 -L 2 -n 3 -s 4096 -d "a b"', ["workload.loops=5"])
    (case,) = experiment.cases
    assert case.scenario.kernel.name == "3.11"
    (program,) = case.scenario.programs.values()
    assert program.workload.directories == ("a b",)
    assert program.workload.loops == 5  # type: ignore[attr-defined]
    with pytest.raises(BadInput, match=r"^--fs-mark:6: workload.command: -S 7 is refused by"):
        from_command("fs_mark -S7 -L 2 -d a")


def test_all_problems_are_reported_at_once() -> None:
    """A text with three mistakes has three problems."""
    text = GOOD.replace("64 MiB", "64").replace("0 B", "0 s").replace('"3.11"', '"7.12"')
    assert len(problems(text)) == 3
    text = GOOD.replace("64 MiB", "64").replace("0 B", "0 s").replace('"slice"', '"file"')
    assert len(problems(text)) == 3


def test_unknown_key_is_reported_for_its_own_kind() -> None:
    """The key allocsize belongs to XFS, so ext4 refuses it and lists only its own keys."""
    text = GOOD.replace("p13-xfs", "loop-ext4").replace('"64 MiB"', '"64 GiB"')
    (problem,) = problems(text, 'filesystem.allocsize="64 MiB"')
    assert "filesystem.allocsize: unknown key; use one of auto_da_alloc, descriptors, flex_groups" in problem


def test_contradicting_settings_are_refused() -> None:
    """The number of processes must be a multiple of the number of directories."""
    assert "multiple" in problems(GOOD, "workload.processes=3")[0]


def test_place_of_an_override_is_its_option() -> None:
    """The text of --set stands where a line number would stand."""
    assert problems(GOOD, "machine.memory.memroy=1")[0].startswith("--set machine.memory.memroy=1: ")
    assert "has no value" in problems(GOOD, "machine.memory")[0]


@pytest.mark.parametrize(
    "arguments",
    [["run", "nowhere.toml"], ["run"], ["run", "--fs-mark", "fs_mark -S7 -L 2 -d x"], ["plot", "nowhere"],
     ["reproduce", "P99"]],
)  # fmt: skip
def test_bad_input_exits_with_2_and_writes_nothing(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command prints one line on stderr and no line on stdout, and writes no file."""
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("wbsim: ")
    assert list(tmp_path.iterdir()) == []


def test_run_prints_json_and_writes_complete_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The option --json prints one document.  The folder of --out holds results for `wbsim plot`."""
    config = tmp_path / "x.toml"
    config.write_text(GOOD)
    out = tmp_path / "out"
    assert main(["run", str(config), "--json", "--out", str(out), "--set", "workload.loops=3"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [outcome["variant"] for outcome in document["outcomes"]] == ["unpatched", "patched"]
    assert document["outcomes"][0]["samples"][-1]["count"] == 1_200
    assert sorted(path.name for path in out.iterdir()) == ["dataset.parquet", "failed", "plan.json", "runs"]
    assert main(["plot", str(out)]) == 0
    assert (out / "time.png").read_bytes().startswith(b"\x89PNG")
    assert main(["plot", str(out / "no")]) == 2
    assert f"{out / 'no'}: has no results (plan.json is missing)" in capsys.readouterr().err


def test_sweep_over_texts_is_plotted(tmp_path: Path) -> None:
    """Schedulers have no order, so the picture has points without lines."""
    config, out = tmp_path / "x.toml", tmp_path / "out"
    points = ", ".join(
        f'{{ value = "{s}", machine.queue.elevator.scheduler = "{s}" }}' for s in ("noop", "deadline")
    )
    config.write_text(f'{GOOD}\n[sweep]\nname = "scheduler"\npoints = [{points}]\n')
    assert main(["run", str(config), "--out", str(out)]) == 0
    assert main(["plot", str(out)]) == 0
    assert (out / "scheduler.png").read_bytes().startswith(b"\x89PNG")


def test_fs_mark_run_prints_the_table_of_fs_mark(capsys: pytest.CaptureFixture[str]) -> None:
    """The columns of `wbsim run --fs-mark` are those of the tool."""
    assert main(["run", "--fs-mark", "fs_mark -S0 -n 50 -s 4096 -L 2 -d /mnt/a"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "FSUse%        Count         Size    Files/sec     App Overhead"
    assert lines[1].split()[:3] == ["0", "50", "4096"]


def test_shipped_configuration_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the current folder comes first.  A path with a folder never means a shipped configuration."""
    monkeypatch.chdir(tmp_path)
    named = load(Path("question.toml"))
    assert named == load(config_path("question.toml"))
    with pytest.raises(BadInput, match=r"^no_such\.toml: No such file"):
        load(Path("no_such.toml"))
    with pytest.raises(BadInput, match="No such file"):
        load(Path("below/question.toml"))
    (tmp_path / "question.toml").write_text(GOOD)
    assert load(Path("question.toml")).title != named.title
