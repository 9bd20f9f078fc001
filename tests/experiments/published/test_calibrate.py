"""Fits, on models whose constants are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.experiments.outcomes import RUN, sample, simulate_by
from wbsim.experiments.config.experiment import config_path, load
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.published.calibrate import CALIBRATIONS, flusher_ns, p13_improved
from wbsim.experiments.published.fit import MAX_ROUNDS, Calibration, Fit, fit, log_errors
from wbsim.experiments.published.reproduce import CONFIGS
from wbsim.experiments.results.outcome import MountResult, Outcome
from wbsim.experiments.running.execute import How
from wbsim.experiments.running.jobs import Job
from wbsim.models.catalogue.machines import MACHINES


def fitted(report: str, said: list[str]) -> Fit:
    """Return the fit of *report*, with seed 5; *said* receives the progress."""
    return fit(CALIBRATIONS[report](), How(seed=5), said.append)


def p13(job: Job, truth: Mapping[str, float]) -> Outcome:
    """Return the outcome of a model of P13, which has the published figures with the constants *truth*.

    Wall time follows only from the flusher's time per file.  System time is proportional to the writers'
    scale.
    """
    inode_ns, request_ns = flusher_ns(MACHINES["p13-vm"].processors.paths)
    cpu = job.case.scenario.machine.processors
    tried = {name: getattr(cpu, name) for name in truth}

    def per_file_ns(constants: Mapping[str, float], files_per_request: int) -> float:
        of_request = constants["flusher_scale"] * request_ns + constants["exit_time"]
        return constants["flusher_scale"] * inode_ns + of_request / files_per_request

    if job.case.variant == "unpatched":
        slower = per_file_ns(tried, 1) / per_file_ns(truth, 1)
        return replace(
            RUN, variant="unpatched", wall_time=354.0 * slower, create_rate=32_500 / slower,
            write_iops=28_000 / slower, write_bandwidth=150e6 / slower,
            system_cpu_time=932.0 * tried["writer_scale"] / truth["writer_scale"],
        )  # fmt: skip
    wall = 199.0 * per_file_ns(tried, 10) / per_file_ns(truth, 10)
    last = sample(wall, 1, 9_600_000, 1, 1, 1, 1)
    return replace(RUN, variant="patched", wall_time=wall, write_iops=960_000 / wall, samples=(last,))


def test_p13_s_constants_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fit starts from neutral values, of which one is too small and two are too large.

    Each round runs both variants once, in full size, with the given seed.  The verdict compares the fit with
    the committed constants.
    """
    truth = {"writer_scale": 2.5, "flusher_scale": 1.4, "exit_time": 3_000}
    said: list[str] = []
    ran = simulate_by(monkeypatch, lambda job: p13(job, truth))
    made = fitted("P13", said)
    assert made.constants == {
        "writer_scale": pytest.approx(2.5, rel=0.011), "flusher_scale": pytest.approx(1.4, rel=0.02),
        "exit_time": pytest.approx(3_000, rel=0.05),
    }  # fmt: skip
    assert not made.agrees
    assert set(made.committed) == set(truth)
    assert (len(ran), len(said)) == (2 * made.rounds, made.rounds)
    assert {(job.seed, job.replication) for job in ran} == {(5, 0)}
    assert made.rounds < MAX_ROUNDS
    assert max(abs(made.errors[row]) for row in ("P13-sys-u", "P13-wall-u", "P13-wall-p")) < 0.011
    first = "round 1: writer_scale 2.0, flusher_scale 2.0, exit_time 5000; wanted change sys +22.3 %"
    assert said[0].startswith(first), "the logarithm of 2.5 / 2"


def test_fit_to_the_committed_constants_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model has the committed constants and the fit starts from them, so one round is enough."""
    of: Calibration = CALIBRATIONS["P13"]()
    near = {name: constant._replace(start=constant.committed) for name, constant in of.constants.items()}
    truth = {name: constant.committed for name, constant in of.constants.items()}
    simulate_by(monkeypatch, lambda job: p13(job, truth))
    made = fit(replace(of, constants=near), How(), lambda _: None)
    assert made.agrees
    assert (made.rounds, made.constants) == (1, truth)


@pytest.mark.parametrize(("fitted", "agrees"), [(2.07, True), (2.05, True), (2.081, False), (2.039, False)])
def test_fit_agrees_within_its_own_tolerance(fitted: float, agrees: bool) -> None:
    """The fit ends when no constant is to move by more than 1 %, so it may end 1 % off.

    All constants must agree.
    """
    both = {"link": 5.0, "writer_scale": 2.06}
    assert Fit(both | {"writer_scale": fitted}, both, {}, 2).agrees is agrees


def test_fit_refuses_unknown_figure() -> None:
    """A run without a rate gives the fit no value for its row, which the message names."""
    cases = load(config_path(CONFIGS["P13"])).cases
    runs = [replace(RUN, variant=case.variant, write_iops=None) for case in cases]
    with pytest.raises(
        BadInput, match="row P13-iops-u: write_iops is unknown in a run; fit with a longer run"
    ):
        log_errors(cases, runs)


def test_n10_s_constants_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One dd is limited by the paths of its writer, and two are limited by the link to the array.

    All replications count.
    """

    def of(job: Job) -> Outcome:
        machine: Any = job.case.scenario.machine
        one = 440.0 * 2.6 / machine.processors.writer_scale
        two = 520.0 * machine.disks["vdb"].device.link / 500_000_000
        rate = (one if job.case.variant == "one" else two) * (1.1 if job.replication % 2 else 0.9)
        return replace(
            RUN,
            variant=job.case.variant,
            wall_time=1.0,
            file_bytes=round(rate * 1e6),
            extents=(1,),
            mounts={"mnt": MountResult(0, round(rate * 1e6), (1,))},
        )

    ran, said = simulate_by(monkeypatch, of), list[str]()
    made = fitted("N10", said)
    assert made.constants == {
        "writer_scale": pytest.approx(2.6, rel=0.011), "link": pytest.approx(500_000_000, rel=0.011)
    }  # fmt: skip
    assert set(made.errors) == {"N10-one-bw", "N10-two-same-bw"}
    assert max(map(abs, made.errors.values())) < 0.011
    assert {job.case.variant for job in ran} == {"one", "two-same"}
    assert {job.replication for job in ran} == set(range(8))
    assert len(said) == made.rounds


def test_v13_s_constants_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of each row is proportional to one constant.  No other case is run."""
    rows = {
        "V13-xfs-create-u": (268.0, "scale"), "V13-xfs-unlink-u": (406.0, "item_ns"),
        "V13-cleansync-total-u": (146.08, "visit_ns"), "V13-ext4-lookup-u": (286.0, "chain_ns"),
    }  # fmt: skip
    truth = {"scale": 3.2, "item_ns": 90, "visit_ns": 140, "chain_ns": 31}

    def of(job: Job) -> Outcome:
        cpu: Any = job.case.scenario.machine.processors
        tried = {
            "scale": cpu.flusher_scale, "item_ns": cpu.paths.filesystems["xfs"].flusher.log.item_ns,
            "visit_ns": cpu.paths.inodes.visit_ns, "chain_ns": cpu.paths.inodes.chain_ns,
        }  # fmt: skip
        seconds, name = next(rows[row] for row in job.case.rows if row in rows)
        wall_s = seconds * tried[name] / truth[name]
        program = replace(RUN.programs["mark"], wall_time=wall_s)
        return replace(RUN, variant=job.case.variant, wall_time=wall_s, programs={"sync": program})

    simulate_by(monkeypatch, of)
    made = fitted("V13", [])
    assert made.constants == {name: pytest.approx(value, rel=0.02) for name, value in truth.items()}
    assert set(made.errors) == set(rows)


def test_w25_s_scale_is_between_its_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One workload needs a scale of 0.2 and the other needs 0.3125, so the fit is 0.25.

    No other case is run, and no other constant is changed.
    """

    def of(job: Job) -> Outcome:
        cpu = job.case.scenario.machine.processors
        wanted, asks = (368.0, 0.2) if "W25-A-pm-u" in job.case.rows else (315.0, 0.3125)
        assert cpu.transaction_scale is not None
        rate = wanted * asks / cpu.transaction_scale
        assert (cpu.writer_scale, cpu.flusher_scale, cpu.line_from_far) == (1.0, 1.0, 200)
        return replace(
            RUN, variant=job.case.variant, wall_time=1.0, file_bytes=round(rate * 2**20), extents=(1,)
        )

    ran, said = simulate_by(monkeypatch, of), list[str]()
    made = fitted("W25", said)
    assert made.constants == {"transaction_scale": pytest.approx(0.25, rel=0.011)}
    assert made.errors["W25-A-pm-u"] == pytest.approx(-0.2, abs=0.01)
    assert made.errors["W25-B-pm-u"] == pytest.approx(0.25, abs=0.015)
    assert len({job.case.variant for job in ran}) == 2
    assert 1 < len(said) == made.rounds < MAX_ROUNDS


def test_flusher_time_on_reference_machine_is_sum_of_paths() -> None:
    """The times are in ns.

    * inode: lists 150 + 300 + 150, map 9 600, page 3 040, commit 150
    * request: make 1 130, insert 440, issue 1 790
    """
    assert flusher_ns(MACHINES["p13-vm"].processors.paths) == (13_390, 3_360)


def test_fitted_exit_time_is_never_negative() -> None:
    """The scale that fits the patched run takes more than the complete unpatched time."""
    patched = replace(RUN, variant="patched", samples=(sample(4, 1, 40_000, 1, 1, 1, 1),))
    constants = {"writer_scale": 2.0, "flusher_scale": 2.0, "exit_time": 100.0}
    change = {"sys": 0.0, "unpatched": -0.5, "patched": 0.5}
    assert p13_improved(constants, change, [RUN, patched])["exit_time"] == 0


@pytest.mark.parametrize("report", CALIBRATIONS)
def test_catalogue_names_the_rows_that_decide_each_constant(report: str) -> None:
    """The targets in a machine's file are the rows of the fit."""
    of = CALIBRATIONS[report]()
    numbers = {f"machine.{number.path}": number.provenance for number in MACHINES[of.machine].numbers()}
    for constant in of.constants.values():
        for key in constant.keys:
            path = key.partition("=")[0].replace("machine.device", "machine.disks.vdb.device")
            given = numbers[path]
            assert given is not None
            assert given.targets == constant.rows, path
