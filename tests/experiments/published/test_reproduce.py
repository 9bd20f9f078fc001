"""Published against simulated: which runs are made, which row reads which of them, and in which role."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import wbsim.experiments.published.reproduce
from tests.experiments.formats.test_report import RUN
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.published.figures import Published, published_rows
from wbsim.experiments.published.reproduce import _constants, _row, reproduce
from wbsim.experiments.running.runner import Outcome

WALL = Published("X-wall", "X", "wall_time", 5.0, "s")
IOPS = Published("X-iops", "X", "write_iops", 200.0, "1/s")


@pytest.mark.parametrize(
    ("published", "smaller", "simulated", "error", "role"),
    [
        (WALL, False, 4.0, -0.2, "predicted"),
        (WALL, True, 4.0, None, "predicted"),  # what grows with the run says nothing of a smaller one
        (IOPS, False, 250.0, 0.25, "calibrated"),
        (IOPS, True, 250.0, 0.25, "calibrated"),
        (replace(IOPS, value=None), False, 250.0, None, "calibrated"),
        (replace(IOPS, unit="1/h"), False, None, None, "not modelled yet"),
    ],
)
def test_a_row(
    published: Published, smaller: bool, simulated: float | None, error: float | None, role: str
) -> None:
    """The error is a fraction of the published figure: a quarter too many is 0.25."""
    row = _row(published, [RUN], {"X-iops"}, smaller)
    assert (row.id, row.published, row.unit, row.role) == (
        published.id, published.value, published.unit, role,
    )  # fmt: skip
    assert row.simulated == simulated
    assert row.relative_error == (error if error is None else pytest.approx(error))
    assert _row(published, [], {"X-iops"}, smaller).role == "not modelled yet"


def test_a_row_s_interval() -> None:
    """Of one run without iterations none; of two, theirs."""
    assert _row(WALL, [RUN], set(), False).ci95 is None
    two = _row(WALL, [RUN, replace(RUN, wall_time=6.0)], set(), False)
    assert two.simulated == 5.0
    assert two.ci95 is not None
    assert two.ci95[0] == pytest.approx(5 - 12.706, abs=0.01)  # t of one degree of freedom, times 1
    assert two.ci95[1] == pytest.approx(5 + 12.706, abs=0.01)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int, bool]]:
    """What is run instead of being simulated: variant, replication, files, and with which seed."""
    asked: list[tuple[str, int, int, bool]] = []

    def run_all(jobs: Any, seed: int, progress: bool) -> list[Outcome]:
        for case, replication in jobs:
            program, *_ = case.scenario.programs.values()
            asked.append((case.variant, replication, program.workload.total_files, progress))
        mark = RUN.programs["mark"]
        return [
            replace(
                RUN, variant=case.variant, write_iops=100.0 * seed + replication, extents=(2,),
                programs=dict.fromkeys(case.scenario.programs, mark),
                locks={"inode_hash_lock": {"wait_ns": 1}, "other": {"wait_ns": 3}},
            )
            for case, replication in jobs
        ]  # fmt: skip

    monkeypatch.setattr(wbsim.experiments.published.reproduce, "run_all", run_all)
    return asked


def test_every_replication_of_every_variant_is_run_and_read(jobs: list[Any]) -> None:
    """Two of each: the rows of a variant are the means of its own; the seed is handed on."""
    result = reproduce(["P13"], quick=False, replications=2, seed=3, progress=True)
    assert jobs == [(variant, n, 9_600_000, True) for variant in ("unpatched", "patched") for n in (0, 1)]
    rows = {row.id: row for row in result.rows}
    assert list(rows) == [row.id for row in published_rows() if row.report == "P13"]
    assert rows["P13-iops-u"].simulated == rows["P13-iops-p"].simulated == 300.5
    assert rows["P13-wall-u"].relative_error == pytest.approx(4 / 354 - 1)
    roles = {key: row.role for key, row in rows.items()}
    assert {key for key, role in roles.items() if role == "predicted"} == {
        "P13-sys-p", "P13-rate-p", "P13-iops-p", "P13-bw-p",
    }  # fmt: skip
    assert set(roles.values()) == {"predicted", "calibrated"}
    assert (result.seed, result.quick, len(result.outcomes)) == (3, False, 4)
    assert result.constants["calibrated"] == 4


def test_a_quick_one_is_smaller_and_run_once(jobs: list[Any]) -> None:
    """As the configuration says: a fiftieth of the files."""
    result = reproduce(["P13"], quick=True, replications=None, seed=1, progress=False)
    assert jobs == [("unpatched", 0, 192_000, False), ("patched", 0, 192_000, False)]
    errors = {row.id: row.relative_error for row in result.rows}
    assert {key for key, error in errors.items() if error is None} == {
        "P13-wall-u", "P13-wall-p", "P13-sys-u", "P13-sys-p",
    }  # fmt: skip
    assert result.quick


def test_replications_are_the_configuration_s(jobs: list[Any]) -> None:
    """N10 is run eight times, and each of its variants; what stays as large keeps its errors when quick."""
    whole = reproduce(["N10"], quick=False, replications=None, seed=1, progress=False)
    assert len(jobs) == 8 * len({variant for variant, *_ in jobs})
    assert sorted({n for _, n, *_ in jobs}) == list(range(8))
    jobs.clear()
    quick = reproduce(["N10"], quick=True, replications=None, seed=1, progress=False)
    assert {n for _, n, *_ in jobs} == {0}
    assert [row.relative_error is None for row in quick.rows] == [
        row.relative_error is None for row in whole.rows
    ]


def test_reports_are_named_once_and_all_by_default(jobs: list[Any]) -> None:
    """What is not modelled has its rows, and no run; what does not exist is refused."""
    assert len(reproduce(["J09", "J09"], quick=True, replications=1, seed=1, progress=False).rows) == sum(
        row.report == "J09" for row in published_rows()
    )
    assert jobs == []
    every = reproduce([], quick=True, replications=1, seed=1, progress=False)
    assert {row.id.split("-")[0] for row in every.rows} == {"P13", "V13", "N10", "W25"}
    (share,) = (row for row in every.rows if row.id == "V13-hash-share")
    assert (share.simulated, share.relative_error) == (25, None), "it is published as a range"
    with pytest.raises(BadInput) as caught:
        reproduce(["P13", "p13"], quick=True, replications=1, seed=1, progress=False)
    assert str(caught.value) == "reproduce: there is no report 'p13'; use one of P13, V13, N10, W25, J09"


def test_the_document_has_rounded_costs(jobs: list[Any]) -> None:
    """Processor time to a hundredth of a second, memory to a tenth of a MiB: the workers' largest."""
    result = reproduce(["P13"], quick=True, replications=1, seed=1, progress=False)
    assert result.peak_rss_mib >= 99.6
    document = replace(result, cpu_s=1.23456, peak_rss_mib=99.66).document()
    assert (document["cpu_s"], document["peak_rss_mib"], document["quick"]) == (1.23, 99.7, True)
    row = {"published": 354.0, "unit": "s", "simulated": 4.0, "relative_error": None, "role": "calibrated"}
    assert document["rows"][0] == {"id": "P13-wall-u", "ci95": None, **row}
    assert list(document) == [
        "rows", "constants", "cpu_s", "peak_rss_mib", "seed", "interval", "quick",
    ]  # fmt: skip


def test_each_constant_is_counted_once(jobs: list[Any]) -> None:
    """Two variants of one experiment share their numbers; two experiments have each their own."""
    one = reproduce(["P13"], quick=False, replications=1, seed=1, progress=False).experiments
    assert _constants(one)["calibrated"] == 4
    twice = _constants([*one, *one])
    assert twice == {origin: 2 * count for origin, count in _constants(one).items()}
    assert set(twice) == {"specified", "measured", "calibrated", "assumed"}
