"""The picture of the latencies of a system call: its steps, its axes, its lines and its panels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.experiments.outcomes import RUN
from tests.experiments.pictures.test_plots import lines
from tests.harness import loop_config
from wbsim.experiments.cli import main
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.pictures.latency import latency_picture, steps_of
from wbsim.experiments.pictures.plots import Wanted, plot_directory
from wbsim.experiments.results.dataset import with_setting
from wbsim.experiments.results.outcome import Outcome

FIO_JOB = "fio --name=a --rw=write --size=64k --create_on_open=1 --fallocate=none"
KEY = "kernel.dirty.dirty_bytes"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a short run."""
    place = tmp_path_factory.mktemp("result")
    (place / "a.toml").write_text(loop_config(FIO_JOB, dirty_mib=64))
    assert main(["run", str(place / "a.toml"), "--out", str(place / "out")]) == 0
    return place / "out"


def outcome(**bins: dict[int, int]) -> Outcome:
    """Return a run in which each program has these histograms of fsync."""
    programs: dict[str, Any] = {
        name: SimpleNamespace(calls={"fsync": SimpleNamespace(bins_ns=of)}) for name, of in bins.items()
    }
    return replace(RUN, programs=programs)


def frame_of(sizes: list[str]) -> pd.DataFrame:
    """Return a row for each run, of which *sizes* has the value of `KEY`."""
    return with_setting(pd.DataFrame({"variant": ["base"] * len(sizes)}), KEY, sizes)


def test_steps_stand_at_the_share_of_slower_calls() -> None:
    """One call takes 10 ns, two take 20 and one takes 40; half a call stands for none at the end."""
    slower, latencies = steps_of({20: 2, 10: 1, 40: 1})
    assert slower == [1, 0.75, 0.75, 0.25, 0.25, 0.125]
    assert latencies == [10, 10, 20, 20, 40, 40]


@given(st.dictionaries(st.integers(1, 10**9), st.integers(1, 10**6), min_size=1))
def test_a_line_counts_the_calls_that_a_latency_includes(bins: dict[int, int]) -> None:
    """At the end of a step, all calls up to its latency are counted."""
    slower, latencies = steps_of(bins)
    total = sum(bins.values())
    for share, latency in list(zip(slower, latencies, strict=True))[1:-1:2]:
        assert share == pytest.approx(sum(count for ns, count in bins.items() if ns > latency) / total)
    assert slower == sorted(slower, reverse=True)
    assert latencies == sorted(latencies)


def test_each_value_has_a_line_over_all_programs_and_replications() -> None:
    """The first two runs are replications, whose programs count together; the axis ends at half of 1 of 8."""
    runs = [outcome(a={1_000: 4}, b={2_000: 2}), outcome(a={1_000: 2}), outcome(a={8_000: 1})]
    figure = latency_picture(frame_of(["64 MiB", "64 MiB", "1 GiB"]), runs, "fsync", ["variant", KEY], "Why")
    (panel,) = figure.axes
    assert lines(panel) == {
        "64 MiB": [(1, 1_000), (4, 1_000), (4, 2_000), (16, 2_000)],
        "1 GiB": [(1, 8_000), (2, 8_000)],
    }
    assert panel.get_xlim() == (1, 16)
    assert [text.get_text() for text in panel.get_xticklabels()] == ["0", "50", "90"]
    assert panel.yaxis.get_major_formatter()(5_000_000, 0) == "5 ms"
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("% of the calls of fsync(2)", "take at most")
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")


def test_a_key_that_labels_no_line_divides_panels() -> None:
    """Each panel has the run of its value alone, in the colour of its line."""
    runs = [outcome(a={1_000: 1}), outcome(a={8_000: 1})]
    figure = latency_picture(frame_of(["64 MiB", "1 GiB"]), runs, "fsync", ["variant"], "Why")
    assert [panel.get_title() for panel in figure.axes] == [f"{KEY} = 64 MiB", f"{KEY} = 1 GiB"]
    assert [next(iter(lines(panel).values()))[0] for panel in figure.axes] == [(1, 1_000), (1, 8_000)]


def test_a_call_that_no_run_makes_is_refused() -> None:
    """The message names the calls that they make."""
    with pytest.raises(BadInput, match="is fdatasync, and no run has such a call; use one of fsync"):
        latency_picture(frame_of(["64 MiB"]), [outcome(a={1: 1})], "fdatasync", [], "Why")


@pytest.mark.parametrize(
    ("more", "option"), [({"x": "seed"}, "--x"), ({"y": ("file_rate",)}, "--y"), ({"heat": "seed"}, "--heat")]
)
def test_a_picture_of_latencies_has_no_other_axis(more: dict[str, Any], option: str, result: Path) -> None:
    """Each of the options of other pictures is refused with its name."""
    with pytest.raises(BadInput, match=f"{option}: is .*; a picture of latencies has no other"):
        list(plot_directory(result, Wanted(latency="write", **more)))


def test_a_directory_gives_a_picture_named_after_the_call(result: Path) -> None:
    """The picture of one run needs no sweep."""
    (picture,) = plot_directory(result, Wanted(latency="write"))
    assert picture == str(result / "write_latency.png")
    assert (result / "write_latency.png").stat().st_size > 10_000
