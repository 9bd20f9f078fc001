"""Sensitivity: how far assumed numbers move a figure, on models with a known answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from tests.experiments.outcomes import RUN, simulate_by
from tests.harness import FIO, loop_config
from wbsim.experiments.cli import main
from wbsim.experiments.config.case import Case
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.pictures.axes import COLOURS
from wbsim.experiments.pictures.tornado import tornado
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.jobs import Failure, Job
from wbsim.experiments.why import guesses
from wbsim.experiments.why import sensitivity as sensitivity_module
from wbsim.experiments.why.guesses import Guess, guesses_of, with_numbers
from wbsim.experiments.why.sensitivity import TORNADO, Effect, Sensitivity, sensitivity
from wbsim.models.scenario import Scenario
from wbsim.sim.param import Origin

TEXT = loop_config(f"{FIO} --rw=write --nrfiles=2 --filesize=1m --name=a", dirty_mib=2)
WAKE, CV = "machine.processors.wake_time", "machine.processors.cv"


def case() -> Case:
    """Return the only case of `TEXT`."""
    (only,) = parse(TEXT, "x.toml").cases
    return only


def share(job: Job, path: str) -> float:
    """Return the position of a number between its ends, from 0 to 1."""
    (guess,) = (of for of in guesses_of(case().scenario) if of.path == path)
    (number,) = (of for of in job.case.scenario.numbers() if of.path == path)
    return (number.value - guess.low) / (guess.high - guess.low)


def test_every_assumed_number_with_a_range_is_a_guess() -> None:
    """No other number is a guess.  Each guess can be set alone, and keeps its origin."""
    scenario = case().scenario
    guesses = guesses_of(scenario)
    assumed = [
        n for n in scenario.numbers() if n.provenance is not None and n.provenance.origin is Origin.ASSUMED
    ]
    ranged = [n for n in assumed if n.provenance is not None and n.provenance.low != n.provenance.high]
    assert {of.path for of in guesses} == {n.path for n in ranged if not isinstance(n.value, str | bool)}
    assert len(guesses) > 10
    for guess in guesses:
        moved = with_numbers(scenario, {guess.path: guess.high})
        before = {n.path: n.value for n in scenario.numbers()}
        after = {n.path: n.value for n in moved.numbers()}
        assert {path for path in before if before[path] != after[path]} <= {guess.path}
        (number,) = (n for n in moved.numbers() if n.path == guess.path)
        assert number.provenance is not None
        assert number.provenance.origin is Origin.ASSUMED


def test_range_with_distant_ends_is_logarithmic() -> None:
    """A range is logarithmic if its high end is more than 30 times its low end, which must be above 0.

    * 1 to 10 000: the middle is 100.
    * 1 to 30: the middle is 15.5.
    * 0 to 3, in whole numbers: the middle is 2.
    * 0 to 10 000: the middle is 5 000, because 0 has no logarithm.
    """
    assert Guess("a", 1.0, 1.0, 10_000.0).value_at(0.5) == pytest.approx(100)
    assert Guess("a", 1.0, 1.0, 30.0).value_at(0.5) == 15.5
    assert Guess("a", 1, 0, 3).value_at(0.5) == 2
    assert Guess("a", 1.0, 0.0, 10_000.0).value_at(0.5) == 5_000


@pytest.mark.long
def test_effects_of_a_known_model_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure is 10 + 8 x + 2 y for the positions x and y of two numbers between their ends.

    * effects: 8 and 2, and 0 for all other numbers
    * figure at the ends of x: 8 apart
    * shares of the variance: 64 to 4
    """
    simulate_by(
        monkeypatch, lambda job: replace(RUN, wall_time=10 + 8 * share(job, WAKE) + 2 * share(job, CV))
    )
    found = sensitivity(case(), "wall_time", How(), trajectories=4, most=2, sobol=64)
    first, second, *rest = found.effects
    assert (first.guess.path, second.guess.path) == (WAKE, CV)
    assert (first.mu_star, second.mu_star) == (pytest.approx(8, rel=1e-3), pytest.approx(2, rel=1e-3))
    assert all(of.mu_star == 0 for of in rest)
    base = 10 + 8 * share(Job(case(), 1), WAKE) + 2 * share(Job(case(), 1), CV)
    assert found.value == pytest.approx(base)
    at = share(Job(case(), 1), WAKE)
    assert (first.low, first.high) == (pytest.approx(base - 8 * at), pytest.approx(base + 8 * (1 - at)))
    assert first.total == pytest.approx(64 / 68, abs=0.1)
    assert second.total == pytest.approx(4 / 68, abs=0.1)
    assert rest[0].total is None
    assert found.interval is not None
    low, high = found.interval
    assert 10 < low < 11.5 < 18.5 < high < 20
    text = found.text()
    assert text.splitlines()[0] == "Effect of the assumed numbers on wall_time of base"
    assert f"of which {len(rest)} change it by less than 1 %" in text
    json.dumps(found.document())
    panel = tornado(found).axes[0]
    assert panel.get_yticklabels()[-1].get_text().startswith("wake_time")
    assert len(panel.patches) == 2 * TORNADO + 1, "two halves of each bar, and the band of the interval"


def drawn(*effects: Effect) -> Any:
    """Return the panel of the tornado of *effects* on a wall time of 10 s."""
    found = Sensitivity("A title", "wall_time", 10.0, list(effects), None, runs=5, refusal_count=0)
    (panel,) = tornado(found).axes
    return panel


def test_longer_half_of_a_bar_hides_nothing() -> None:
    """Both ends of a range may lie on one side of the usual figure; the shorter half is then on top."""
    guess = Guess("a", 5.0, 1.0, 9.0)
    for low, high, widths in (
        (12.0, 17.0, [7, 2]),
        (17.0, 12.0, [7, 2]),
        (8.0, 3.0, [-7, -2]),
        (9.0, 11.5, [1.5, -1]),
    ):
        panel = drawn(Effect(guess, 1.0, 0.0, low, high))
        assert [bar.get_width() for bar in panel.patches] == widths
        colours = {bar.get_width(): bar.get_facecolor() for bar in panel.patches}
        assert colours[low - 10] == to_rgba(COLOURS[0])
        assert colours[high - 10] == to_rgba(COLOURS[1])


def test_tornado_has_ranges_and_figure_with_units() -> None:
    """A range is in the largest unit in which its ends are whole numbers."""
    guesses = [
        Guess("wake", 5_000, 2_000, 20_000, "ns"),
        Guess("cache", 1 << 30, 64 << 20, 2 << 30, "B"),
        Guess("cv", 0.3, 0.1, 1.0),
    ]
    panel = drawn(*(Effect(guess, 1.0, 0.0, 9.0 - place, 11.0) for place, guess in enumerate(guesses)))
    labels = [label.get_text() for label in panel.get_yticklabels()]
    assert labels == ["wake\n2 us .. 20 us", "cache\n64 MiB .. 2 GiB", "cv\n0.1 .. 1"]
    assert panel.get_xlabel() == "wall time, s"
    found = Sensitivity("t", "write_iops", 10.0, [], None, runs=1, refusal_count=0)
    assert tornado(found).axes[0].get_xlabel() == "write IOPS, 1/s"


def test_constant_figure_has_effects_and_shares_of_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends of the interval are the figure, and its variance of 0 divides nothing."""
    simulate_by(monkeypatch, lambda _: replace(RUN, wall_time=7.0))
    found = sensitivity(case(), "wall_time", How(), trajectories=2, most=2, sobol=4)
    assert [(of.mu_star, of.first, of.total) for of in found.effects[:3]] == [
        (0, 0, 0), (0, 0, 0), (0, None, None)
    ]  # fmt: skip
    assert (found.value, found.interval) == (7.0, (7.0, 7.0))
    assert "NaN" not in json.dumps(found.document())


class Figures:
    """A study in which *of* returns the figure of each run by its number."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def figures(self, shares: Any, _: Any) -> Any:
        """See `_Study.figures`."""
        return np.array([self._of(run) for run in range(len(shares))], float)


GUESSES = [Effect(Guess(name, 1.0, 0.0, 2.0), 1.0, 0.0) for name in "ab"]


@pytest.mark.source
def test_interval_is_the_middle_95_percent_of_sobol_s_runs() -> None:
    """The 64 x (2 + 2) runs result in 0, 1, ... 255.  The ends of the interval lie a fortieth inside.

    The 4 x (2 + 2) runs result in 0, 1, ... 15.
    """
    study: Any = Figures(lambda run: run)
    _, (low, high) = sensitivity_module.sobol_effects(study, GUESSES, 2, 64)
    assert [low, high] == pytest.approx([6.375, 255 - 6.375])
    _, (low, high) = sensitivity_module.sobol_effects(study, GUESSES, 2, 4)
    assert 0 < low < high < 15, "the interval of 16 runs lies between the smallest and the largest figure"


@pytest.mark.source
def test_refused_sobol_runs_count_as_the_mean_of_others() -> None:
    """Every third run is refused and all others result in 7, so no number has a share."""
    study: Any = Figures(lambda run: 7.0 if run % 3 else np.nan)
    effects, interval = sensitivity_module.sobol_effects(study, GUESSES, 2, 8)
    assert interval == (7.0, 7.0)
    assert [(of.first, of.total) for of in effects] == [(0, 0), (0, 0)]


def test_effect_without_interactions_has_no_sigma(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure rises by 8 over the range of one number, whatever values the other numbers have.

    Each step of Morris, upwards or downwards, finds the effect 8, so these effects do not scatter.
    """
    simulate_by(monkeypatch, lambda job: replace(RUN, wall_time=10 + 8 * share(job, WAKE)))
    (first, *_) = sensitivity(case(), "wall_time", How(), trajectories=6, most=2, sobol=0).effects
    assert first.guess.path == WAKE
    assert first.mu_star == pytest.approx(8, rel=1e-3)
    assert first.sigma == pytest.approx(0, abs=0.01)


def test_refused_runs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An effect needs two runs that end.  Without any such pair the analysis is refused."""

    def of(job: Job) -> Outcome | Failure:
        return (
            Failure("input", "no") if share(job, CV) > 0.9 else replace(RUN, wall_time=1 + share(job, WAKE))
        )

    simulate_by(monkeypatch, of)
    found = sensitivity(case(), "wall_time", How(), trajectories=6, most=2, sobol=0)
    assert found.refusal_count > 0
    assert found.interval is None
    assert found.effects[0].guess.path == WAKE
    assert f"{found.refusal_count} of them refused" in found.text()
    base = Job(case(), 1).case.scenario

    def only_base(job: Job) -> Any:
        return RUN if job.case.scenario == base else Failure("input", "no")

    simulate_by(monkeypatch, only_base)
    with pytest.raises(BadInput, match="refuses a run of every pair that is compared"):
        sensitivity(case(), "wall_time", How(), trajectories=2, most=2, sobol=0)


def test_refused_draw_moves_to_the_nearest_allowed_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that two keys share holds for every run, and the effect counts the distance that was moved.

    The range of WAKE is 2 000 to 20 000 ns; with this rule, only values up to 10 000 ns are allowed.
    """
    real = guesses.with_numbers

    def refuses(scenario: Any, values: Any) -> Any:
        if values.get(WAKE, 0) > 10_000:
            Scenario.model_validate({})
        return real(scenario, values)

    monkeypatch.setattr(guesses, "with_numbers", refuses)
    jobs = simulate_by(monkeypatch, lambda job: replace(RUN, wall_time=1 + share(job, WAKE)))
    found = sensitivity(case(), "wall_time", How(), trajectories=6, most=2, sobol=0)
    assert found.refusal_count == 0
    wakes = {number.value for job in jobs for number in job.case.scenario.numbers() if number.path == WAKE}
    assert 9_990 < max(wakes) <= 10_000
    assert found.effects[0].guess.path == WAKE
    assert found.effects[0].mu_star == pytest.approx(1, rel=1e-3)


DRAWN = """\
title = "Numbers with rules"
[scenario]
machine.like = "%s"
%s
kernel.like = "5.15"
filesystem.like = "%s"
workload.command = "fs_mark -S0 -n 20 -s 4096 -L 2 -d a -d b"
"""


@pytest.mark.parametrize(
    ("machine", "more", "filesystem"),
    [
        ("p13-vm", "", "p13-xfs"),
        ("server-2018", 'machine.device.like = "sata-disk"', "ext4"),
        ("server-2018", 'machine.device.like = "sata-disk"', "xfs"),
        ("n10-vm", "", "xfs"),
    ],
)
def test_no_draw_is_refused_by_the_configuration(
    monkeypatch: pytest.MonkeyPatch, machine: str, more: str, filesystem: str
) -> None:
    """Chunks are whole pages, and a filesystem without a size is made again on a disk of another size."""
    (only,) = parse(DRAWN % (machine, more, filesystem), "x.toml").cases
    jobs = simulate_by(monkeypatch, lambda _: RUN)
    found = sensitivity(only, "wall_time", How(), trajectories=3, most=2, sobol=0)
    assert found.refusal_count == 0
    drawn: dict[str, set[Any]] = {guess.path: set() for guess in guesses_of(only.scenario)}
    for job in jobs:
        for number in job.case.scenario.numbers():
            if number.path in drawn:
                drawn[number.path].add(number.value)
    for guess in guesses_of(only.scenario):
        assert len(drawn[guess.path]) > 1, f"{guess.path} moves"
        assert all(guess.low <= value <= guess.high for value in drawn[guess.path])


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_filesystem_without_size_follows_its_disk(filesystem: str) -> None:
    """The varied disk gets the filesystem that a configuration with such a disk gets, key by key."""
    sata = 'machine.device.like = "sata-disk"'
    (given,) = parse(DRAWN % ("server-2018", sata, filesystem), "x.toml").cases
    (path,) = (guess.path for guess in guesses_of(given.scenario) if guess.path.endswith("device.size"))
    for size in ("500 GB", "2 TB"):
        more = f'{sata}\nmachine.device.size = "{size}"'
        (wanted,) = parse(DRAWN % ("server-2018", more, filesystem), "x.toml").cases
        number = next(n.value for n in wanted.scenario.numbers() if n.path == path)
        varied = with_numbers(given.scenario, {path: number})
        assert varied.mounts.keys() == wanted.scenario.mounts.keys()
        for name, mount in wanted.scenario.mounts.items():
            assert varied.mounts[name].model_dump() == mount.model_dump()


def test_filesystem_with_a_size_keeps_it() -> None:
    """The user's size stays on a larger disk, and keys that the user wrote stay on any disk."""
    sata = 'machine.device.like = "sata-disk"'
    for key, value in (("size", 300 << 30), ("agcount", 7)):
        more = f"{sata}\nfilesystem.{key} = {value if key == 'agcount' else repr(f'{value} B')}"
        (given,) = parse(DRAWN % ("server-2018", more, "xfs"), "x.toml").cases
        (path,) = (guess.path for guess in guesses_of(given.scenario) if guess.path.endswith("device.size"))
        (mount,) = with_numbers(given.scenario, {path: 2_000 * 10**9}).mounts.values()
        assert getattr(mount.filesystem, key) == value


def test_multiples_stay_within_the_range() -> None:
    """A step of 4 096 between 5 000 and 13 000 leaves 8 192 and 12 288; without a multiple nothing moves."""
    guess = Guess("a", 8_192, 5_000, 13_000, step=4_096)
    assert [guess.value_at(share) for share in (0.0, 0.5, 1.0)] == [8_192, 8_192, 12_288]
    assert Guess("a", 5_500, 5_000, 6_000, step=4_096).value_at(1.0) == 5_500


def test_sensitivity_command_prints_a_table_and_draws_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong arguments are refused."""
    config = tmp_path / "x.toml"
    config.write_text(TEXT)
    words = [
        "sensitivity",
        str(config),
        "--trajectories",
        "2",
        "--sobol",
        "0",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(words) == 0
    told = capsys.readouterr()
    assert told.out.startswith("Effect of the assumed numbers on wall_time of base")
    assert (tmp_path / "out" / "tornado.png").read_bytes().startswith(b"\x89PNG")
    for more, why in (
        (["--sobol", "12"], "--sobol: 12 is not a power of two"),
        (["--figure", "x"], "--figure: is 'x'; use one of"),
        (["--quick"], "--quick: base has no smaller run"),
        (["--trajectories", "1"], "--trajectories: is 1; give at least 2"),
    ):
        assert main(["sensitivity", str(config), *more]) == 2
        assert why in capsys.readouterr().err
