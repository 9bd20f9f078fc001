"""Advice on the number of contexts: the numbers that are tried, the answer, and complete runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tests.experiments.outcomes import RUN, simulate_by, with_readings
from tests.harness import FIO
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import load, parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.jobs import Job
from wbsim.experiments.running.simulate import run_case
from wbsim.experiments.why import advise as advise_module
from wbsim.experiments.why.advise import AXIS, Advice, advise
from wbsim.sim.units import MIB, S

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
    """The jobs that were tried, in order, and the wall time for each number of contexts, from 1 on."""

    jobs: list[Job]
    times: list[float]

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of contexts that were tried, each with a second seed."""
        return [job.case.point[AXIS] for job in self.jobs if job.replication == 1]

    @property
    def flushers(self) -> list[dict[str, Any]]:
        """Return the flushers as they were configured."""
        return [
            job.case.scenario.kernel.flusher.model_dump(mode="json")
            for job in self.jobs
            if job.replication == 1
        ]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two variants on a filesystem of five groups."""
    path = tmp_path / "x.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def looked_at(config: Path, monkeypatch: pytest.MonkeyPatch) -> Looked:
    """The jobs that are tried, which are not simulated; the flushers of all contexts work in each."""
    times: list[float] = []
    done = run_case(load(config, ['workload.filesize="2 MiB"']).cases[0], 1)
    works = {f"nvme0n1:{number}/flusher": {"system pages": S} for number in range(1, 6)}
    done = replace(with_readings(done, written_back=9.0), lives={**done.lives, **works})
    return Looked(
        simulate_by(monkeypatch, lambda job: replace(done, wall_time=times[job.case.point[AXIS] - 1])), times
    )


def with_filesystem(filesystem: str) -> str:
    """Return `TEXT` with another *filesystem*."""
    given = next(line for line in TEXT.splitlines() if line.startswith("filesystem"))
    return TEXT.replace(given, f"filesystem = {filesystem}")


def answer_of(text: str) -> str:
    """Return the line of *text* that answers, which is the first one below the table."""
    return text.rstrip().split("\n\n")[-1].splitlines()[0]


def advice_of(config: Path, variant: str) -> Advice:
    """Return the advice on *variant*, in full size and with one seed."""
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
def test_advice_is_the_fewest_contexts_near_the_best_rate(
    config: Path,
    looked_at: Looked,
    times: list[float],
    looks: list[int],
    wanted: int,
) -> None:
    """Powers of two up to the number of groups are tried, then numbers between too few and enough."""
    looked_at.times.extend(times)
    advice = advice_of(config, "one")
    assert looked_at.numbers == looks
    assert advice.document()["contexts"] == wanted
    assert [outcome.point for outcome in advice.outcomes] == [{AXIS: n} for n in sorted(looks) for _ in "ab"]


def test_advice_has_the_number_the_rate_and_the_comparison(config: Path, looked_at: Looked) -> None:
    """Contexts by hash are tried up to the number of processors."""
    looked_at.times.extend([4, 2, 2, 1.04, 1.02, 1])
    advice = advice_of(config, "hashed")
    assert looked_at.numbers == [1, 2, 4, 6, 3]
    assert advice.text().splitlines()[0] == "two directories (hashed)"
    assert answer_of(advice.text()) == "4 contexts are enough: 15.38 MiB/s, within 5 % of the 16 with 6"
    assert [(row["by"], row["contexts"]) for row in looked_at.flushers] == [
        ("hash", n) for n in (1, 2, 4, 6, 3)
    ]  # fmt: skip
    looked_at.times[:] = [1] * 6
    looked_at.jobs.clear()
    advice = advice_of(config, "one")
    assert answer_of(advice.text()) == "1 context is enough: 16 MiB/s"
    assert {row["by"] for row in looked_at.flushers} == {"allocation_group"}


def test_variant_and_point_select_the_run(config: Path) -> None:
    """The option --variant names one of several variants, or a point of a sweep by its label."""
    sweep = '[sweep]\nname = "n"\npoints = [{ value = 1 }, { value = 2, filesystem.agcount = 2 }]\n'
    assert parse(TEXT + sweep, "x.toml").only_case("one-2").point == {"n": 2}
    with pytest.raises(BadInput, match=r"--variant: is missing; use one of one, hashed"):
        advise(config, [], None, False, How())


def test_advise_command_finds_the_number_by_runs(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files in two groups need two contexts if processors are free.

    The runs can be explained, and a quick run is smaller.
    """
    out = tmp_path / "out"
    changes = ["--set", "filesystem.agcount=3", "--set", "machine.processors.count=12"]
    arguments = ["advise", str(config), "--variant", "one", *changes]
    assert main([*arguments, "--out", str(out)]) == 0
    assert answer_of(capsys.readouterr().out).startswith("2 contexts are enough:")
    assert main(["explain", str(out)]) == 0
    flushers = capsys.readouterr().out.partition("nvme0n1/flusher, % of the run")[2].splitlines()
    assert sorted(cell.strip() for cell in flushers[2].split("  ") if cell.strip())[:3] == [
        "1",
        "2",
        "threads",
    ], "the trial with three contexts is not kept"
    soon = ["--set", 'kernel.dirty.dirty_background_bytes="1 MiB"', "--set", 'workload.filesize="4 MiB"']
    assert main(["advise", str(config), "--variant", "hashed", "--quick", *soon, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.keys() == {"title", "contexts", "range", "between_seeds", "unit", "rates", "held_back_by"}
    assert list(told["rates"]) == ["1", "2", "4", "6"]


def test_contexts_of_a_sweep_are_replaced_by_the_numbers_tried(config: Path, looked_at: Looked) -> None:
    """An override goes over the values of ``quick``, which not every variant has."""
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
    with pytest.raises(BadInput, match=r"--quick: one has no smaller run; add quick = \[...\] to "):
        advise(config, [], "one", True, How())


def test_rule_with_one_context_for_all_files_is_refused(config: Path) -> None:
    """The error names the key that the user wrote, and nothing is run."""
    one = ["filesystem.agcount=1", 'kernel.flusher={ kind = "parallel", by = "allocation_group" }']
    message = (
        'kernel.flusher.by: "allocation_group" puts all files of this xfs into one context;'
        ' give "hash" or "processor"'
    )
    with pytest.raises(BadInput) as refused:
        advise(config, one, "one", False, How())
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "filesystem",
    ['{ like = "w25-xfs", size = "320 GiB", agcount = 1 }', '{ like = "ext4", size = "4 GiB" }'],
    ids=["xfs with one group", "ext4"],
)
def test_files_without_groups_are_spread_by_hash(config: Path, looked_at: Looked, filesystem: str) -> None:
    """Without a configured rule and without several groups, up to one context for each processor is tried."""
    looked_at.times.extend([1] * 6)
    config.write_text(with_filesystem(filesystem))
    advice = advice_of(config, "one")
    assert looked_at.numbers == [1, 2, 4, 6]
    assert {row["by"] for row in looked_at.flushers} == {"hash"}
    assert "group" not in advice.text()


@pytest.mark.parametrize("filesystem", ['{ like = "ext4", size = "4 GiB" }', '{ like = "w25-xfs" }'])
def test_one_file_needs_one_context(config: Path, looked_at: Looked, filesystem: str) -> None:
    """A file belongs to one context, so only one is tried, with either filesystem."""
    looked_at.times.append(1)
    command = f'workload.command="{FIO} --rw=write --nrfiles=1 --filesize=16m --name=a --directory=/mnt/0"'
    config.write_text(with_filesystem(filesystem))
    advice = advise(config, [command], "one", False, How())
    assert looked_at.numbers == [1]
    assert answer_of(advice.text()).startswith("one file, so one context: ")
    assert advice.document()["contexts"] == 1


def test_run_without_work_for_contexts_gets_no_advice(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case is refused if its data stayed in memory, or if its programs write no files."""
    done = run_case(load(config, ['workload.filesize="2 MiB"']).cases[0], 1)
    assert done.samples[-1].readings["written_back"] == 0
    simulate_by(monkeypatch, lambda _: done)
    with pytest.raises(BadInput, match="one: nothing was written back before the programs ended"):
        advice_of(config, "one")
    simulate_by(monkeypatch, lambda _: replace(with_readings(done, flushed_files=0), file_bytes=0))
    with pytest.raises(BadInput, match="one: the programs write no files, so no context has work"):
        advice_of(config, "one")


@pytest.mark.source
def test_filesystem_with_most_groups_limits_the_contexts(
    config: Path, looked_at: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two filesystems have three and five groups, so up to five contexts are tried in any order of mounts."""
    looked_at.times.extend([1] * 5)
    for groups in ((3, 5), (5, 3)):
        mounts = {f"/mnt/{n}": SimpleNamespace(bdi=SimpleNamespace(groups=n)) for n in groups}
        monkeypatch.setattr(advise_module, "build", lambda *_, of=mounts: SimpleNamespace(mounts=of))
        looked_at.jobs.clear()
        advice_of(config, "one")
        assert looked_at.numbers == [1, 2, 4, 5]


@pytest.mark.parametrize(("variant", "numbers"), [("one", [1, 2, 3]), ("hashed", [1, 2, 4, 6])])
def test_contexts_behind_the_last_one_with_work_are_not_tried(
    config: Path, monkeypatch: pytest.MonkeyPatch, variant: str, numbers: list[int]
) -> None:
    """The third context of five is the last one with work, so a fourth one would change nothing.

    With a hash, each number spreads the files differently, so all numbers are tried.
    """
    done = run_case(load(config, ['workload.filesize="2 MiB"']).cases[0], 1)
    works = {
        "nvme0n1:1/flusher": {"waiting absent": 2 * S},
        "nvme0n1:2/flusher": {"waiting absent": S, "system pages": S},
        "nvme0n1:3/flusher": {"waiting absent": 2 * S},
    }
    done = replace(with_readings(done, written_back=9.0), lives={**done.lives, **works})
    jobs = simulate_by(monkeypatch, lambda job: replace(done, wall_time=job.case.point[AXIS]))
    advice_of(config, variant)
    assert [job.case.point[AXIS] for job in jobs if job.replication == 1] == numbers


def test_mean_of_two_seeds_decides(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first seed is in favour of one context, and the mean of both in favour of two."""
    done = run_case(load(config, ['workload.filesize="2 MiB"']).cases[0], 1)
    works = {"nvme0n1:1/flusher": {"system pages": S}}
    done = replace(with_readings(done, written_back=9.0), lives={**done.lives, **works})
    times = {(1, 0): 1.0, (1, 1): 4.0, (2, 0): 2.0, (2, 1): 1.0}
    simulate_by(
        monkeypatch,
        lambda job: replace(done, wall_time=times.get((job.case.point[AXIS], job.replication), 1.0)),
    )
    told = advice_of(config, "one").document()
    assert told["contexts"] == 2
    assert told["rates"] == {"1": 16 * (1 + 1 / 4) / 2, "2": 16 * (1 / 2 + 1) / 2}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({1: (4.0, 4.0), 2: (2.0, 2.0), 4: (1.0, 1.1), 5: (1.02, 1.08)}, (4, 5)),
        ({1: (4.0, 4.0), 2: (2.0, 2.0), 4: (1.0, 1.0), 5: (0.97, 0.97)}, (4, 4)),
        ({1: (1.0, 1.3), 2: (1.1, 1.2), 4: (1.1, 1.1), 5: (1.2, 1.1)}, (1, 5)),
    ],
    ids=["two alike", "seeds agree", "all alike"],
)
def test_range_has_what_the_seeds_cannot_tell_apart(
    seconds: dict[int, tuple[float, float]], expected: tuple[int, int]
) -> None:
    """Numbers count as alike while their mean rates differ by at most the rates of two seeds."""
    outcomes = [
        replace(
            RUN, point={AXIS: contexts}, replication=seed, wall_time=times[seed], uses={"processors": 0.1}
        )
        for contexts, times in seconds.items()
        for seed in range(2)
    ]
    advice = Advice("t", outcomes)
    assert advice.range == expected
    low, high = expected
    line = f"between {low} and {high} contexts the difference is smaller than that of two seeds"
    assert (line in " ".join(advice.text().split())) == (low != high)


@pytest.mark.parametrize(
    ("uses", "remedy"),
    [
        (
            {"device sda head": 0.9},
            "a faster device, or more members; the bottleneck of the best run: the head of sda",
        ),
        ({"processors": 0.9}, "more processors; the bottleneck of the best run: the processors together"),
        ({"thread sda:1/flusher": 0.9}, "files that are spread more evenly"),
        ({"lock mnt/log": 0.8}, "another filesystem, or fewer writers in one place"),
        (
            {"thread mnt/kworker/xfs-conv": 0.9},
            "less work for this thread, because it uses one processor",
        ),
        ({"thread fio/process 3": 0.9}, "more processes, or larger calls of each"),
        ({"pauses of fio/process 3": 0.9}, "nothing; the programs wait by their own choice"),
        ({"processors": 0.2}, "the best run has no bottleneck (nothing in particular)"),
    ],
)
def test_remedy_follows_the_bottleneck(uses: dict[str, float], remedy: str) -> None:
    advice = Advice("t", [replace(RUN, point={AXIS: 1}, replication=seed, uses=uses) for seed in range(2)])
    assert f"what else would help: {remedy}" in " ".join(advice.text().split())


def test_replications_are_the_seeds_of_each_number(config: Path, looked_at: Looked) -> None:
    looked_at.times.extend([1] * 5)
    advise(config, [], "one", False, How(), replications=3)
    assert sorted({job.replication for job in looked_at.jobs}) == [0, 1, 2]
