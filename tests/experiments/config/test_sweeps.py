"""Sweeps: the values of lists and ranges, and the scenario at each point."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import FIO, loop_config
from wbsim.experiments.config.case import Case, Experiment
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.config.quantities import multiply
from wbsim.experiments.config.sweeps import Asked, latin_hypercube, values_of
from wbsim.experiments.config.tree import Factor, Items, factor_in
from wbsim.sim.units import MIB

TEXT = loop_config(f"{FIO} --rw=write --nrfiles=2 --filesize=1m --name=a", dirty_mib=2)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", [3]),
        ("1,2,4..64", [1, 2, 4, 8, 16, 32, 64]),
        ("1,2..5", [1, 2, 3, 4, 5]),
        ("10,20..50,7", [10, 20, 30, 40, 50, 7]),
        ("9,6..0", [9, 6, 3, 0]),
        ("8,4,2..1", [8, 4, 2, 1]),
        ("0.5,1..2", [0.5, 1.0, 1.5, 2.0]),
        ("1 GiB,2 GiB,4 GiB..16 GiB", ["1 GiB", "2 GiB", "4 GiB", "8 GiB", "16 GiB"]),
        ('"a,b",c', ["a,b", "c"]),
        ('[1, 2],{ kind = "x", n = 2 }', [[1, 2], {"kind": "x", "n": 2}]),
        ("true,false", [True, False]),
        ("x0.5,x1", ["x0.5", "x1"]),
        ("3.11,5.15", [3.11, 5.15]),
        ('"3.11","../x"', ["3.11", "../x"]),
    ],
)
def test_list_of_a_command_line_is_read(text: str, values: list[Any]) -> None:
    """A list has commas, ranges that add or multiply, units, quotes and brackets."""
    assert values_of(text) == values


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("4..64", "4..64 has no step; write 4,NEXT..64"),
        ("1,2,5..64", "has no constant step before its ..; write the values one by one"),
        ("1,3..8", "1,3..8 does not reach 8: its last value is 7"),
        ("1,2,4..60", "does not reach 60: its last value is 32"),
        ("1,2..1", "does not reach 1: its last value is 2"),
        ("1 GiB,2 GiB..4 MiB", "mixes units; give all values in the same unit"),
        ("a,b..c", "a is not a number; both ends of a range are numbers"),
        ("1,1", "1,1 has the value 1 twice"),
        ("1,1..9", "does not reach 9"),
    ],
)
def test_ambiguous_range_is_refused(text: str, why: str) -> None:
    """The error states the reason."""
    with pytest.raises(ValueError, match=re.escape(why)):
        values_of(text)


@given(st.integers(-50, 50), st.integers(1, 9), st.integers(2, 30))
def test_range_with_a_constant_step_equals_python_range(first: int, step: int, count: int) -> None:
    """The range includes its first and its last value."""
    last = first + step * count
    expected = list(range(first, last + 1, step))
    assert values_of(f"{first},{first + step}..{last}") == expected
    assert values_of(f"{last},{last - step}..{first}") == expected[::-1]


@given(st.integers(1, 40), st.integers(1, 300), st.integers(1, 1_000), st.integers(1, 5))
def test_latin_hypercube_has_a_point_in_each_part(samples: int, low: int, width: int, keys: int) -> None:
    """Each key's range is divided into *samples* equal parts, and each part has one point.

    Whole numbers lie between their ends, quantities keep their unit, and every call draws the same points.
    """
    ends = {f"k{n}": Items([low / 7, low / 7 + width]) for n in range(keys)}
    axis = latin_hypercube(
        samples, {**ends, "whole": Items([low, low + width]), "size": Items(["1 KiB", "3 KiB"])}
    )
    assert len(axis.steps) == samples
    for key, (first, last) in ends.items():
        shares = [(step.labels[key] - first) / (last - first) for step in axis.steps]
        assert sorted(int(share * samples + 1e-4) for share in shares) == pytest.approx(
            list(range(samples)), abs=1
        )
    assert all(low <= step.labels["whole"] <= low + width for step in axis.steps)
    assert all(isinstance(step.labels["whole"], int) for step in axis.steps)
    assert all(step.labels["size"].endswith("B") for step in axis.steps)
    assert axis == latin_hypercube(
        samples, {**ends, "whole": Items([low, low + width]), "size": Items(["1 KiB", "3 KiB"])}
    )


@pytest.mark.parametrize(
    ("value", "by", "result"),
    [(3, 2.0, 6), (3, 0.5, 2), (1.5, 2.0, 3.0), ("500 MB/s", 2.0, "1000 MB/s"), ("1 GiB", 0.5, "536870912 B"),
     ("3 ms", 1.5, "4500000 ns")],
)  # fmt: skip
def test_factor_multiplies_a_number(value: Any, by: float, result: Any) -> None:
    """Whole numbers stay whole, with halves rounded to even.  Quantities stay exact."""
    assert multiply(value, by) == result
    assert factor_in(f"x{by}") == Factor(by)
    assert factor_in("x") == "x"
    with pytest.raises(ValueError, match="is not a number"):
        multiply("xfs", by)


def experiment(*lists: str, text: str = TEXT, **options: Any) -> Experiment:
    """Return the experiment that the command line describes."""
    return parse(text, "x.toml", sweep=Asked(lists, **options))


def read(of: Case) -> tuple[Any, ...]:
    """Return what a point sets: the number of files, their size (KiB) and the dirty limit (MiB)."""
    (program,) = of.scenario.programs.values()
    files = program.workload.total_files
    dirty = of.scenario.kernel.dirty.dirty_bytes
    return files, program.workload.total_bytes // files >> 10, (dirty or 0) >> 20


def test_grid_combines_all_values_and_zip_pairs_them() -> None:
    """The lists of a configuration and of a command line give the same points in the same order."""
    lists = ("workload.nrfiles=1,2", 'kernel.dirty.dirty_bytes="3 MiB","4 MiB"')
    grid = experiment(*lists)
    assert grid.axes == ("workload.nrfiles", "kernel.dirty.dirty_bytes")
    assert [read(of) for of in grid.cases] == [(1, 1024, 3), (1, 1024, 4), (2, 1024, 3), (2, 1024, 4)]
    assert grid.cases[1].point == {"workload.nrfiles": 1, "kernel.dirty.dirty_bytes": "4 MiB"}
    assert grid.cases[1].label == "base-1-4 MiB"
    together = experiment(*lists, together=True)
    assert [read(of) for of in together.cases] == [(1, 1024, 3), (2, 1024, 4)]
    inner = '{ "workload.nrfiles" = [1, 2], "kernel.dirty.dirty_bytes" = ["3 MiB", "4 MiB"] }'
    for kind, same in (("grid", grid), ("zip", together)):
        written = parse(f"{TEXT}[sweep]\n{kind} = {inner}\n", "x.toml")
        assert written.axes == same.axes
        assert [(of.point, read(of)) for of in written.cases] == [(of.point, read(of)) for of in same.cases]
    both = experiment(
        lists[0], text=f'{TEXT}[sweep]\ngrid = {{ "workload.filesize" = ["2 MiB", "4 MiB"] }}\n'
    )
    assert [read(of)[:2] for of in both.cases] == [(1, 2048), (2, 2048), (1, 4096), (2, 4096)]


def test_latin_hypercube_samples_ranges_and_keeps_lists() -> None:
    """Each value of a list is combined with each sampled point."""
    asked = experiment("workload.nrfiles=1..9", "kernel.dirty.dirty_bytes=x1,x2", samples=3)
    assert len(asked.cases) == 6
    assert sorted((of.point["workload.nrfiles"] - 1) // 3 for of in asked.cases) == [0, 0, 1, 1, 2, 2]
    text = f'{TEXT}[sweep]\nlhs = {{ samples = 3, "workload.nrfiles" = [1, 9] }}\n'
    assert {read(of)[0] for of in parse(text, "x.toml").cases} == {read(of)[0] for of in asked.cases}


def test_factor_multiplies_the_existing_number() -> None:
    """The number comes from the catalogue, the configuration, an override or another factor.

    The source of the product names the place of the factor.
    """
    cases = experiment("kernel.dirty.dirty_bytes=x1,x2,x1.5", "workload.nrfiles=x1,x3").cases
    assert [read(of)[::2] for of in cases] == [(2, 2), (6, 2), (2, 4), (6, 4), (2, 3), (6, 3)]
    (doubled,) = parse(TEXT, "x.toml", ["machine.processors.wake_time=x2"]).cases
    (once,) = parse(TEXT, "x.toml").cases
    cpu = doubled.scenario.machine.processors
    assert cpu.wake_time == 2 * once.scenario.machine.processors.wake_time
    given_at = cpu.provenance("wake_time")
    assert given_at is not None
    assert given_at.source == "--set machine.processors.wake_time=x2: times 2"
    four = parse(TEXT, "x.toml", ["workload.nrfiles=x2"], sweep=Asked(("workload.nrfiles=x2,x1",))).cases
    assert [read(of)[0] for of in four] == [8, 4]


def test_list_entries_and_command_lines_can_be_swept() -> None:
    """A key may have the number of a list's entry.  A name in braces is replaced in any text."""
    text = TEXT.replace("--nrfiles=2", "--nrfiles={files} --size={kib}k").replace("--filesize=1m ", "")
    cases = experiment("files=1,2", "kib=8,16", text=text).cases
    assert [read(of)[:2] for of in cases] == [(1, 8), (1, 16), (2, 4), (2, 8)]
    assert cases[0].point == {"files": 1, "kib": 8}
    lines = TEXT.replace("[scenario]", '[scenario]\nprograms = ["fs_mark -S0 -k -n 3 -s 4096 -d /a"]')
    lines = "\n".join(line for line in lines.splitlines() if not line.startswith("workload"))
    swept = experiment(
        'programs.0="fs_mark -S0 -k -n 5 -s 4096 -d /a","fs_mark -S0 -k -n 6 -s 4096 -d /a"', text=lines
    )
    assert [next(iter(of.scenario.programs.values())).workload.total_files for of in swept.cases] == [5, 6]


NAMED = TEXT.replace("workload.command =", "programs.job =")


@pytest.mark.parametrize("key", ["programs.job.nrfiles", "programs.job.workload.nrfiles", "workload.nrfiles"])
def test_keys_of_a_named_program_can_be_swept(key: str) -> None:
    """The key is written as in the configuration, as `wbsim show` prints it, or as that of the only program.

    A program may consist of its command.
    """
    assert [read(of)[0] for of in experiment(f"{key}=1,3,x2", text=NAMED).cases] == [1, 3, 4]
    (case,) = parse(NAMED, "x.toml", [f"{key}=5"]).cases
    assert read(case)[0] == 5
    (mount,) = parse(TEXT, "x.toml", ["filesystem.agcount=2"]).cases[0].scenario.mounts.values()
    assert mount.filesystem.agcount == 2  # type: ignore[attr-defined]


def test_name_in_braces_can_be_set_for_one_run() -> None:
    """The override of `wbsim run` replaces the name in the command line."""
    (case,) = parse(TEXT.replace("--nrfiles=2", "--nrfiles={files}"), "x.toml", ["files=3"]).cases
    assert read(case)[0] == 3


@pytest.mark.parametrize(
    ("lists", "told"),
    [
        (["workload.nrfiles"], "--set workload.nrfiles: has no values; write --set key.path=1,2,4"),
        (
            ["kernel.dirty.dirty_byts=1,2"],
            "--set kernel.dirty.dirty_byts=1,2: kernel.dirty.dirty_byts: unknown key; did",
        ),
        (["threads=1,2"], "threads: no command line contains {threads}, and it is an unknown key; use one"),
        (
            ["workload.nrfiles=1,2", "workload.nrfiles=3"],
            "workload.nrfiles is swept twice; give one list for it",
        ),
        (["workload.nrfiles=4..9"], "--set workload.nrfiles=4..9: 4..9 has no step"),
        (["kernel.like=x2"], "kernel.like"),
        (
            ["machine.processors.no=x2"],
            "machine.processors.no: is a factor, but the key has no number to multiply; give a value",
        ),
        (["workload.nrfiles=0,1"], "workload.nrfiles"),
        (["machine.processors.wake_time=5,6"], "has no unit"),
    ],
)
def test_wrong_sweep_is_reported_with_its_place(lists: list[str], told: str) -> None:
    """The problem is reported before anything runs."""
    with pytest.raises(BadInput) as refused:
        experiment(*lists)
    assert told in str(refused.value)


def test_every_wrong_list_is_reported() -> None:
    """Three wrong lists give three problems."""
    with pytest.raises(BadInput) as refused:
        experiment("workload.nrfiles=4..9", "workload.bs=", "nonsense")
    assert [problem.place for problem in refused.value.problems] == [
        "--set workload.nrfiles=4..9", "--set nonsense", "--set workload.bs=",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kinds"), [("1,2..4", {int}), ("1.0,2.0..4.0", {float}), ("1,1.5..3", {int, float})]
)
def test_whole_numbers_stay_whole(text: str, kinds: set[type]) -> None:
    """A label shows 4 and not 4.0."""
    assert {type(value) for value in values_of(text)} == kinds


@pytest.mark.parametrize(
    "values", ["4,4.0", "64 MiB,65536 KiB", "1 s,1000 ms", "x2,x2", "a,a", "1 min,5 s,60 s"]
)
def test_equal_values_in_different_words_are_refused(values: str) -> None:
    """Equal values would give equal runs."""
    with pytest.raises(ValueError, match=r"has the value .* twice; give each value once$"):
        values_of(values)


@pytest.mark.parametrize(
    "values", ['"3.1","3.10"', "1 MiB,1 MB", "1 s,1 B", "true,1", "a,b", "1 KiB/s,1 KiB"]
)
def test_similar_but_different_values_are_swept(values: str) -> None:
    """The pairs are texts that are no quantities, or values of different units."""
    assert len(values_of(values)) == 2


def test_range_given_twice_is_refused() -> None:
    """Two ranges of one key are refused like two lists of one key."""
    ends = ("machine.memory.memory=1 GiB..2 GiB", "machine.memory.memory=3 GiB..4 GiB")
    with pytest.raises(BadInput, match=r"machine\.memory\.memory is swept twice"):
        parse(TEXT, "x.toml", sweep=Asked(ends, samples=3))


def test_factor_multiplies_a_number_in_a_list_of_programs() -> None:
    """The second program has a memory to multiply.  The first program has none, so its factor is refused."""
    text = loop_config("X", dirty_mib=2).replace(
        'workload.command = "X"',
        'programs = ["dd if=/dev/zero of=a bs=1M count=1", { command = "sync", memory = "8 MiB" }]',
    )
    (case,) = parse(text, "x.toml", ["programs.1.memory=x2"]).cases
    assert [program.memory for program in case.scenario.programs.values()] == [0, 16 * MIB]
    with pytest.raises(BadInput, match=r"programs\.0\.memory: is a factor"):
        parse(text, "x.toml", ["programs.0.memory=x2"])


@pytest.mark.parametrize(
    ("sweep", "told"),
    [
        ("grid = 3", "x.toml:{n}: sweep.grid: is 3; a table was expected"),
        ('grid = { "workload.nrfiles" = 3 }', "is 3; a list of values was expected"),
        (
            'zip = { "workload.nrfiles" = [1, 2], "give_up" = ["1 s"] }',
            "zipped lists have different lengths",
        ),
        (
            'lhs = { "workload.nrfiles" = [1, 2] }',
            "sweep.lhs.samples: is missing; give the number of points, from 1 to 10000",
        ),
        ('lhs = { samples = 2, "workload.nrfiles" = [1] }', "has 1 values; give two, the smallest and"),
        ('lhs = { samples = 2, "give_up" = ["1 s", "2 ms"] }', "give both ends in the same unit"),
        (
            'grid = { "give_up" = ["1 s"] }\nzip = { "give_up" = ["2 s"] }',
            "sweep: sweeps give_up twice; sweep it once",
        ),
    ],
)
def test_wrong_sweep_of_a_configuration_is_refused(sweep: str, told: str) -> None:
    """The problem has the line of the configuration."""
    with pytest.raises(BadInput) as refused:
        parse(f"{TEXT}[sweep]\n{sweep}\n", "x.toml")
    assert told.format(n=len(TEXT.splitlines()) + 2) in str(refused.value)


def test_sweep_of_too_many_points_is_refused() -> None:
    """The sweep is refused before its points are made."""
    with pytest.raises(BadInput, match="has 110889 points; give fewer values, for at most 10000 points"):
        experiment("workload.nrfiles=1,2..333", "workload.runs=1,2..333")
