"""A figure is one entry: runs, their results on disk, tables and datasets follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import wbsim
from tests.experiments.outcomes import RUN, with_readings
from tests.harness import FIO, loop_config
from wbsim.experiments.cli import main
from wbsim.experiments.formats.reference import reference
from wbsim.experiments.results.figures import COLUMNS, FIGURES, READ, Figure, add

TEXT = loop_config(
    f"{FIO} --rw=write --nrfiles=4 --filesize=16m --name=a", dirty_mib=8, more="sync_after = true"
)


@pytest.fixture
def sleeps() -> Iterator[str]:
    """A counter that no other test has: the milliseconds for which the program's threads were throttled."""
    add(
        Figure(
            "throttled_time",
            "ms",
            "time for which threads of programs were throttled",
            reads=lambda m: sum(t.task.slept_ns.get("throttled", 0) for t in m.threads) / 1e6,
            counts=True,
            grows=True,
        )
    )
    yield "throttled_time"
    for names in (FIGURES, READ, COLUMNS):
        del names["throttled_time"]


def test_every_place_has_the_figure(
    sleeps: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The entry is the only text about it; nothing else has its name."""
    monkeypatch.chdir(tmp_path)
    Path("x.toml").write_text(TEXT)
    found = wbsim.load("x.toml").run(out="out")
    (outcome,) = found.outcomes
    whole_ms = FIGURES[sleeps].whole(outcome)
    assert whole_ms > 1
    assert outcome.readings[sleeps] >= whole_ms, "the run ends with a sync(2)"
    assert max(outcome.levels[sleeps]) <= outcome.readings[sleeps]
    assert found.frame()["throttled_time_ms"].tolist() == [whole_ms]
    assert found.levels()["throttled_time_ms"].is_monotonic_increasing
    assert found.iterations()["throttled_time_ms"].tolist()[-1] == whole_ms
    assert found.summary(sleeps)["throttled_time_ms"].tolist() == [whole_ms]
    assert wbsim.results("out").frame().equals(found.frame())
    assert f"| `{sleeps}` | time for which threads of programs were throttled | ms |" in reference()
    for words, heading in (
        (["run", "x.toml", "--figure", sleeps], "throttled_time ms"),
        (["timeline", "out", "--figure", sleeps], "throttled_time ms/s"),
        (["list", "figures"], sleeps),
        (
            ["sweep", "x.toml", "--set", 'workload.filesize="2 MiB","3 MiB"', "--figure", sleeps],
            "throttled_time ms",
        ),
    ):
        assert main(words) == 0
        assert heading in capsys.readouterr().out


def test_difference_of_a_counter_is_what_happened_in_an_iteration() -> None:
    """A level has its value at the end of the iteration."""
    first, last = with_readings(RUN, flushed=36.0, limit=7.0).samples
    first = replace(first, readings=first.readings | {"flushed": 4.0, "limit": 9.0})
    counter, level = FIGURES["flushed"].iteration, FIGURES["limit"].iteration
    assert counter is not None
    assert level is not None
    assert (counter(first, last), level(first, last)) == (32.0, 7.0)


def test_only_some_readings_cover_the_sync() -> None:
    """The sync(2) after the programs writes back 4 MiB more."""
    run = with_readings(RUN, written_back=36.0, flushed=36.0)
    run = replace(run, readings=run.readings | {"written_back": 40.0, "flushed": 40.0})
    assert (FIGURES["written_back"].whole(run), FIGURES["flushed"].whole(run)) == (36.0, 40.0)


@pytest.mark.parametrize(("wall_s", "mean"), [(4.0, 15.0), (3.9, 10.0), (0.5, 7.0)])
def test_level_of_a_run_is_its_mean(wall_s: float, mean: float) -> None:
    """Samples after 1 s and 4 s have 10 and 20 MiB; a run without samples has the last reading."""
    run = replace(with_readings(RUN, dirty=7.0), wall_time=wall_s)
    assert FIGURES["dirty"].whole(run) == mean


@pytest.mark.parametrize("words", [["run", "x.toml"], ["sweep", "x.toml"], ["timeline", "out"]])
def test_unknown_figure_is_refused_before_the_run(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.toml").write_text(TEXT)
    assert main([*words, "--figure", "held_writer"]) == 2
    assert "--figure held_writer: unknown figure; did you mean held_writers?" in capsys.readouterr().err


def test_figure_that_is_no_level_is_refused_over_time(capsys: pytest.CaptureFixture[str]) -> None:
    """A timeline needs a figure that is read from the machine."""
    assert main(["timeline", "out", "--figure", "wall_time"]) == 2
    assert "--figure wall_time: unknown figure; use one of dirty, writeback" in capsys.readouterr().err
