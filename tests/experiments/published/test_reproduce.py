"""Published against simulated figures: the runs, the run that each row reads, and the role of a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.experiments.outcomes import RUN, simulate_by
from wbsim.experiments.config.experiment import config_path, load
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.published.figures import Published
from wbsim.experiments.published.reproduce import CONFIGS, constants_of, reproduce, row_of
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.jobs import Job

WALL = Published("X-wall", "X", "wall_time", 5.0, "s")
IOPS = Published("X-iops", "X", "write_iops", 200.0, "1/s")


@pytest.mark.parametrize(
    ("published", "smaller", "simulated", "error", "role"),
    [
        (WALL, False, 4.0, -0.2, "predicted"),
        (WALL, True, 4.0, None, "predicted"),  # no error: the figure grows with the run
        (IOPS, False, 250.0, 0.25, "calibrated"),
        (IOPS, True, 250.0, 0.25, "calibrated"),
        (replace(IOPS, value=None), False, 250.0, None, "calibrated"),
        (replace(IOPS, unit="1/h"), False, None, None, "not modelled yet"),
    ],
)
def test_row_has_the_relative_error_of_its_figure(
    published: Published, smaller: bool, simulated: float | None, error: float | None, role: str
) -> None:
    """The error is a fraction of the published figure: a value that is a quarter too large has 0.25."""
    row = row_of(published, [RUN], {"X-iops"}, smaller)
    assert (row.id, row.published, row.unit, row.role) == (
        published.id, published.value, published.unit, role,
    )  # fmt: skip
    assert row.simulated == simulated
    assert row.relative_error == (error if error is None else pytest.approx(error))
    assert row_of(published, [], {"X-iops"}, smaller).role == "not modelled yet"


def test_row_has_an_interval_if_it_has_two_runs() -> None:
    """A single run without iterations has no interval."""
    assert row_of(WALL, [RUN], set(), False).ci95 is None
    two = row_of(WALL, [RUN, replace(RUN, wall_time=6.0)], set(), False)
    assert two.simulated == 5.0
    assert two.ci95 is not None
    assert two.ci95[0] == pytest.approx(5 - 12.706, abs=0.01)  # t of one degree of freedom, standard error 1
    assert two.ci95[1] == pytest.approx(5 + 12.706, abs=0.01)


def test_row_of_unknown_figure_has_no_error() -> None:
    """A figure that is unknown in every run is None, and not nan."""
    unknown = [replace(RUN, write_iops=None)]
    row = row_of(IOPS, unknown, set(), False)
    assert (row.simulated, row.ci95, row.relative_error, row.role) == (None, None, None, "predicted")


Asked = list[tuple[str, int, int, int]]


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The runs that are asked for: variant, replication, number of files and seed.

    No run is simulated.
    """
    asked: Asked = []

    def of(job: Job) -> Outcome:
        programs = job.case.scenario.programs
        first = next(iter(programs.values()))
        asked.append((job.case.variant, job.replication, first.workload.total_files, job.seed))
        return replace(
            RUN, variant=job.case.variant, write_iops=100.0 * job.seed + job.replication, extents=(2,),
            programs=dict.fromkeys(programs, RUN.programs["mark"]),
            locks={"inode_hash_lock": {"wait_ns": 1}, "other": {"wait_ns": 3}},
        )  # fmt: skip

    simulate_by(monkeypatch, of)
    return asked


def test_every_replication_of_every_variant_is_run_and_read(jobs: list[Any]) -> None:
    """Each variant has two runs with the given seed, and its rows have the means of these runs."""
    result = reproduce(["P13"], quick=False, replications=2, how=How(seed=3))
    assert jobs == [(variant, n, 9_600_000, 3) for variant in ("unpatched", "patched") for n in (0, 1)]
    rows = {row.id: row for row in result.rows}
    assert list(rows) == [
        f"P13-{figure}-{of}" for figure in ("wall", "sys", "rate", "iops", "bw") for of in "up"
    ]
    assert rows["P13-iops-u"].simulated == rows["P13-iops-p"].simulated == 300.5
    assert rows["P13-wall-u"].relative_error == pytest.approx(4 / 354 - 1)
    roles = {key: row.role for key, row in rows.items()}
    assert {key for key, role in roles.items() if role == "predicted"} == {
        "P13-sys-p", "P13-rate-p", "P13-iops-p", "P13-bw-p",
    }  # fmt: skip
    assert set(roles.values()) == {"predicted", "calibrated"}
    assert (result.seed, result.quick, len(result.outcomes)) == (3, False, 4)
    assert result.constants["calibrated"] == 4


def test_quick_reproduction_is_smaller_and_runs_once(jobs: list[Any]) -> None:
    """The configuration gives a fiftieth of the files.  Figures that grow with the files have no error."""
    result = reproduce(["P13"], quick=True, replications=None, how=How())
    assert jobs == [("unpatched", 0, 192_000, 1), ("patched", 0, 192_000, 1)]
    errors = {row.id: row.relative_error for row in result.rows}
    assert {key for key, error in errors.items() if error is None} == {
        "P13-wall-u", "P13-wall-p", "P13-sys-u", "P13-sys-p",
    }  # fmt: skip
    assert result.quick


def test_configuration_gives_the_number_of_replications(jobs: list[Any]) -> None:
    """N10 runs each variant eight times, or once if quick.

    Its figures do not grow with the run, so they have their errors in a quick run, too.
    """
    whole = reproduce(["N10"], quick=False, replications=None, how=How())
    assert len(jobs) == 8 * len({variant for variant, *_ in jobs})
    assert sorted({n for _, n, *_ in jobs}) == list(range(8))
    jobs.clear()
    quick = reproduce(["N10"], quick=True, replications=None, how=How())
    assert {n for _, n, *_ in jobs} == {0}
    assert [row.relative_error is None for row in quick.rows] == [
        row.relative_error is None for row in whole.rows
    ]


def test_report_named_twice_counts_once_and_default_is_all(jobs: list[Any]) -> None:
    """Each report has all of its rows.  An unknown report is refused."""
    result = reproduce(["J09", "J09"], quick=True, replications=1, how=How())
    assert [row.id for row in result.rows] == ["J09-util-u", "J09-util-p", "J09-cpu-order", "J09-seqbw"]
    assert {variant for variant, *_ in jobs} == {"pdflush", "per_bdi", "sequential"}
    every = reproduce([], quick=True, replications=1, how=How())
    assert {row.id.split("-")[0] for row in every.rows} == {"P13", "V13", "N10", "W25", "J09"}
    (share,) = (row for row in every.rows if row.id == "V13-hash-share")
    assert (share.simulated, share.relative_error) == (25, None), "the report gives a range"
    with pytest.raises(BadInput) as caught:
        reproduce(["P13", "p13"], quick=True, replications=1, how=How())
    assert str(caught.value) == "reproduce: 'p13' is not a report; use one of P13, V13, N10, W25, J09"


def test_document_has_rounded_costs(jobs: list[Any]) -> None:
    """Processor time is rounded to 0.01 s and memory to 0.1 MiB.

    The memory is that of the largest worker.
    """
    result = reproduce(["P13"], quick=True, replications=1, how=How())
    assert result.peak_rss_mib >= 99.6
    document = replace(result, cpu_s=1.23456, peak_rss_mib=99.66).document()
    assert (document["cpu_s"], document["peak_rss_mib"], document["quick"]) == (1.23, 99.7, True)
    row = {
        "published": 354.0,
        "unit": "s",
        "simulated": 4.0,
        "relative_error": None,
        "role": "calibrated",
        "steady": None,
    }
    assert document["rows"][0] == {"id": "P13-wall-u", "ci95": None, **row}
    assert list(document) == [
        "rows", "constants", "cpu_s", "peak_rss_mib", "seed", "interval", "quick",
    ]  # fmt: skip


def test_each_constant_is_counted_once() -> None:
    """Two variants of one experiment share their constants.  Two experiments have separate constants."""
    p13, n10 = (load(config_path(CONFIGS[report])) for report in ("P13", "N10"))
    assert constants_of([p13])["calibrated"] == 4
    assert constants_of([p13, n10])["calibrated"] == 4 + constants_of([n10])["calibrated"]
