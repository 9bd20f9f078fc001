"""How many contexts are enough: the numbers that are looked at, and the answer; a whole run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tests.experiments.outcomes import simulate_by
from tests.harness import FIO
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import load, parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.jobs import Job
from wbsim.experiments.running.simulate import run_case
from wbsim.experiments.why import advise as advise_module
from wbsim.experiments.why.advise import AXIS, Advice, advise
from wbsim.sim.units import MIB

TEXT = f"""\
title = "two directories"
[scenario]
machine.like = "w25-server"
machine.memory = {{ memory = "256 MiB", kernel_reserve = "6 MiB" }}
machine.processors.count = 6
kernel.like = "6.17"
filesystem = {{ like = "w25-xfs", size = "320 GiB", agcount = 5 }}
workload.command = "{FIO} --rw=randwrite --nrfiles=4 --filesize=16m --name=a --directory=/mnt/0 --name=b --directory=/mnt/1"
[variants.one]
[variants.hashed]
kernel.flusher = {{ kind = "parallel", by = "hash" }}
quick = ['workload.filesize="1 MiB"']
"""  # noqa: E501


class Looked(NamedTuple):
    """Which numbers of contexts were looked at, in turn, as which jobs; how long a run takes, from one on."""

    jobs: list[Job]
    times: list[float]

    @property
    def numbers(self) -> list[int]:
        """Of contexts."""
        return [job.case.point[AXIS] for job in self.jobs]

    @property
    def flushers(self) -> list[dict[str, Any]]:
        """As they were configured."""
        return [job.case.scenario.kernel.flusher.model_dump(mode="json") for job in self.jobs]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two variants on a filesystem of five groups."""
    path = tmp_path / "x.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def looked_at(config: Path, monkeypatch: pytest.MonkeyPatch) -> Looked:
    """Runs are not simulated."""
    times: list[float] = []
    done = run_case(load(config, ['workload.filesize="2 MiB"']).cases[0], 1)
    return Looked(
        simulate_by(monkeypatch, lambda job: replace(done, wall_time=times[job.case.point[AXIS] - 1])), times
    )


def advice_of(config: Path, variant: str) -> Advice:
    """With one seed, in full size."""
    return advise(config, [], variant, False, How())


@pytest.mark.parametrize(
    ("times", "looks", "wanted"),
    [
        ([1, 1, 1, 1, 1], [1, 2, 4, 5], 1),
        ([3, 2, 1, 1, 1], [1, 2, 4, 5, 3], 3),
        ([3, 2, 1.1, 1, 1], [1, 2, 4, 5, 3], 4),
        ([1.052, 2, 9, 9, 1], [1, 2, 4, 5], 1),
        ([1.053, 2, 9, 2, 1], [1, 2, 4, 5], 5),
        ([9, 9, 0.9, 1, 1], [1, 2, 4, 5, 3], 3),
    ],
    ids=["all alike", "found by halving", "not enough", "within", "not within", "better between"],
)
def test_the_fewest_that_are_as_good_as_the_best(
    config: Path,
    looked_at: Looked,
    times: list[float],
    looks: list[int],
    wanted: int,
) -> None:
    """Powers of two up to the number of groups; then between too few and enough."""
    looked_at.times.extend(times)
    advice = advice_of(config, "one")
    assert looked_at.numbers == looks
    assert advice.document()["contexts"] == wanted
    assert [outcome.point for outcome in advice.outcomes] == [{AXIS: n} for n in sorted(looks)]


def test_what_is_said(config: Path, looked_at: Looked) -> None:
    """How many, how fast, and against what; of contexts by hash, there are as many as processors."""
    looked_at.times.extend([4, 2, 2, 1.04, 1.02, 1])
    advice = advice_of(config, "hashed")
    assert looked_at.numbers == [1, 2, 4, 6, 3]
    assert advice.text().splitlines()[0] == "two directories: hashed"
    assert advice.text().splitlines()[-1] == "4 contexts are enough: 15 MiB/s, within 5 % of the 16 with 6"
    assert [(row["by"], row["contexts"]) for row in looked_at.flushers] == [
        ("hash", n) for n in (1, 2, 4, 6, 3)
    ]  # fmt: skip
    looked_at.times[:] = [1] * 6
    looked_at.jobs.clear()
    advice = advice_of(config, "one")
    assert advice.text().splitlines()[-1] == "1 context is enough: 16 MiB/s"
    assert {row["by"] for row in looked_at.flushers} == {"allocation_group"}


def test_which_run_is_meant(config: Path) -> None:
    """Of several variants, the one that is named; of a sweep, the point."""
    sweep = '[sweep]\nname = "n"\npoints = [{ value = 1 }, { value = 2, filesystem.agcount = 2 }]\n'
    assert parse(TEXT + sweep, "x.toml").only_case("one-2").point == {"n": 2}
    with pytest.raises(BadInput, match=r"--variant: is missing; use one of one, hashed"):
        advise(config, [], None, False, How())


def test_a_whole_run_of_the_command(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files in two groups want two contexts where processors are free.

    The runs can be explained, and a quick run is smaller.
    """
    out = tmp_path / "out"
    changes = ["--set", "filesystem.agcount=3", "--set", "machine.processors.count=12"]
    arguments = ["advise", str(config), "--variant", "one", *changes]
    assert main([*arguments, "--out", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("2 contexts are enough:")
    assert main(["explain", str(out)]) == 0
    flushers = capsys.readouterr().out.partition("nvme0n1/flusher, % of the run")[2].splitlines()
    assert flushers[2].split("  ")[-1].strip() == "2 of 3"
    assert main(["advise", str(config), "--variant", "hashed", "--quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.keys() == {"title", "contexts", "unit", "rates"}
    assert list(told["rates"]) == ["1", "2", "4", "6"]


def test_a_sweep_s_own_contexts_are_not_those_that_are_tried(config: Path, looked_at: Looked) -> None:
    """And what is given by hand goes over what makes a run quick, which some have not."""
    looked_at.times.extend([2, 2, 2, 2, 1, 1])
    flusher = '{ kind = "parallel", by = "processor", contexts = 64 }'
    config.write_text(TEXT + f'[sweep]\nname = "n"\npoints = [{{ value = 2, kernel.flusher = {flusher} }}]\n')
    advice_of(config, "one-2")
    assert [row["contexts"] for row in looked_at.flushers] == [1, 2, 4, 6, 5]
    assert {row["by"] for row in looked_at.flushers} == {"processor"}
    config.write_text(TEXT)
    for overrides, mib in (([], 1), (['workload.filesize="3 MiB"'], 3)):
        looked_at.jobs.clear()
        advise(config, overrides, "hashed", True, How())
        (program,) = looked_at.jobs[0].case.scenario.programs.values()
        assert program.workload.total_bytes == 8 * mib * MIB
    with pytest.raises(BadInput, match=r"--quick: one names no smaller run; give it quick = \[...\] in "):
        advise(config, [], "one", True, How())


def test_one_group_is_one_context(config: Path) -> None:
    """Which is said, not run."""
    one = ["filesystem.agcount=1"]
    with pytest.raises(
        BadInput, match=r"kernel.flusher: all inodes are of one allocation group, .* \"hash\" }"
    ):
        advise(config, one, "one", False, How())


@pytest.mark.source
def test_of_several_filesystems_the_one_with_most_groups_counts(
    config: Path, looked_at: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three groups and five: up to five contexts are tried, whichever is mounted first."""
    looked_at.times.extend([1] * 5)
    for groups in ((3, 5), (5, 3)):
        mounts = {f"/mnt/{n}": SimpleNamespace(bdi=SimpleNamespace(groups=n)) for n in groups}
        monkeypatch.setattr(advise_module, "build", lambda *_, of=mounts: SimpleNamespace(mounts=of))
        looked_at.jobs.clear()
        advice_of(config, "one")
        assert looked_at.numbers == [1, 2, 4, 5]
