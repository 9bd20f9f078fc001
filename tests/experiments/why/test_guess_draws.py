"""Intervals over drawn guesses: seeds and guesses differ from draw to draw, and the usual run is apart."""

from __future__ import annotations

import pytest

from tests.experiments.outcomes import RUN, simulate_by
from tests.harness import loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.running.execute import How
from wbsim.experiments.why.guess_draws import Drawn, Draws, drawn_intervals
from wbsim.experiments.why.guesses import guesses_of

TEXT = loop_config("fs_mark -S0 -n 60 -s 4096 -L 2 -d a", dirty_mib=2)


def test_interval_is_the_middle_of_the_draws() -> None:
    """Ten draws: the median lies between both ends, the usual run has no guess drawn, equal calls agree."""
    case = parse(TEXT, "x.toml").cases[0]
    draws = drawn_intervals(case, ["dirty_at_end"], How(processes=1), 10)
    assert (draws.guesses, draws.runs + draws.refusals) == (len(guesses_of(case.scenario)), 10)
    wall = next(entry for entry in draws.figures if entry.figure == "wall_time")
    assert wall.low < wall.middle < wall.high
    assert "dirty_at_end" in {entry.figure for entry in draws.figures}
    assert drawn_intervals(case, ["dirty_at_end"], How(processes=1), 10) == draws
    fixed = drawn_intervals(case, [], How(seed=2, processes=1), 5)
    assert fixed.figures[0].usual != wall.usual


def test_draws_have_other_seeds_and_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual run comes first; each draw has its own random numbers, and its own value of each guess."""
    jobs = simulate_by(monkeypatch, lambda _: RUN)
    drawn_intervals(parse(TEXT, "x.toml").cases[0], [], How(processes=1), 6)
    assert [job.replication for job in jobs] == [0, *range(6)]
    values = [job.case.scenario.machine.processors.cv for job in jobs]
    assert len(set(values)) == 7


def test_table_says_what_was_drawn() -> None:
    draws = Draws("base", 7, 19, 1, [Drawn("wall_time", 2.0, 2.5, 1.5, 3.25)])
    assert draws.text().splitlines() == [
        "base: 7 assumed numbers drawn from their ranges, 19 runs, and 1 more were refused",
        "figure       usual  median  2.5 %  97.5 %",
        "-----------  -----  ------  -----  ------",
        "wall_time s   2.00    2.50   1.50    3.25",
    ]


def test_few_draws_are_refused() -> None:
    case = parse(TEXT, "x.toml").cases[0]
    with pytest.raises(BadInput, match="--guesses: is 4; an interval needs at least 5 draws"):
        drawn_intervals(case, [], How(processes=1), 4)
