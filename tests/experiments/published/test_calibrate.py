"""The fits, on models whose constants are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.experiments.formats.test_report import RUN, sample
from wbsim.experiments.published import calibrate
from wbsim.experiments.published.calibrate import calibrate_n10, calibrate_p13, calibrate_w25
from wbsim.models.catalogue.machines import MACHINES


def p13(truth: Mapping[str, float], asked: list[dict[str, float]]) -> Any:
    """A model of P13 that has the published figures with the constants of *truth*: the flusher's time per
    file is all that counts, and the writers' scale all of the system time.
    """
    inode_ns, request_ns = calibrate._flusher_ns(MACHINES["p13-vm"].processors.paths)

    def per_file_ns(constants: Mapping[str, float], files_per_request: int) -> float:
        of_request = constants["flusher_scale"] * request_ns + constants["exit_time"]
        return constants["flusher_scale"] * inode_ns + of_request / files_per_request

    def run(constants: Mapping[str, float], seed: int, progress: bool) -> Any:
        asked.append(dict(constants))
        slower = per_file_ns(constants, 1) / per_file_ns(truth, 1)
        unpatched = replace(
            RUN, variant="unpatched", wall_time=354.0 * slower, create_rate=32_500 / slower,
            write_iops=28_000 / slower, write_bandwidth=150e6 / slower,
            system_cpu_time=932.0 * constants["writer_scale"] / truth["writer_scale"],
        )  # fmt: skip
        wall = 199.0 * per_file_ns(constants, 10) / per_file_ns(truth, 10)
        last = sample(wall, 1, 9_600_000, 1, 1, 1, 1)
        patched = replace(RUN, variant="patched", wall_time=wall, write_iops=960_000 / wall, samples=(last,))
        return unpatched, patched

    return run


def test_p13_s_constants_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the start of the fit on, two-sided: one is to rise, two to fall; the verdict is against the
    committed ones.
    """
    truth = {"writer_scale": 2.5, "flusher_scale": 1.4, "exit_time": 3_000}
    asked: list[dict[str, float]] = []
    said: list[str] = []
    monkeypatch.setattr(calibrate, "_run", p13(truth, asked))
    fit = calibrate_p13(1, False, said.append)
    assert fit.fitted == {
        "writer_scale": pytest.approx(2.5, rel=0.011), "flusher_scale": pytest.approx(1.4, rel=0.02),
        "exit_time": pytest.approx(3_000, rel=0.05),
    }  # fmt: skip
    assert not fit.agrees
    assert set(fit.committed) == set(truth)
    assert asked[0] == calibrate.START
    assert (fit.rounds, len(said)) == (len(asked), len(asked))
    assert fit.rounds < calibrate.MAX_ROUNDS
    assert max(abs(fit.errors[row]) for row in ("P13-sys-u", "P13-wall-u", "P13-wall-p")) < 0.011
    first = "round 1: writer_scale 2.0, flusher_scale 2.0, exit_time 5000; to change by sys +22.3 %"
    assert said[0].startswith(first), "the logarithm of 2.5 / 2"


def test_a_fit_that_gives_the_committed_constants_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's truth is what is committed."""
    committed = {name: getattr(MACHINES["p13-vm"].processors, name) for name in calibrate.START}
    monkeypatch.setattr(calibrate, "START", committed)
    monkeypatch.setattr(calibrate, "_run", p13(committed, []))
    fit = calibrate_p13(1, False, lambda _: None)
    assert fit.agrees
    assert (fit.rounds, fit.fitted) == (1, committed)


def test_n10_s_constants_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One dd is as fast as its writer's paths, two are as fast as the way to the array; every replication
    counts.
    """
    replications: list[tuple[str, int]] = []

    def run_all(jobs: Sequence[tuple[Any, int]], seed: int, progress: bool) -> Any:
        outcomes = []
        for case, replication in jobs:
            replications.append((case.variant, replication))
            machine = case.scenario.machine
            (disk,) = machine.disks.values()
            one = 440.0 * 2.6 / machine.processors.writer_scale
            two = 520.0 * disk.device.link / 500_000_000
            rate = one if case.variant == "one" else two
            outcomes.append(
                replace(RUN, variant=case.variant, wall_time=1.0, file_bytes=round(rate * 1e6), extents=(1,))
            )
        return outcomes

    monkeypatch.setattr(calibrate, "run_all", run_all)
    said: list[str] = []
    fit = calibrate_n10(1, False, said.append)
    assert fit.fitted == {
        "writer_scale": pytest.approx(2.6, rel=0.011), "link": pytest.approx(500_000_000, rel=0.011)
    }  # fmt: skip
    assert set(fit.errors) == {"N10-one-bw", "N10-two-same-bw"}
    assert max(map(abs, fit.errors.values())) < 0.011
    assert {variant for variant, _ in replications} == {"one", "two-same"}
    assert len({replication for _, replication in replications}) > 1
    assert len(said) == fit.rounds


def test_w25_s_scale_is_between_its_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One workload alone asks for a scale of 0.2, the other for 0.3125: the fit is 0.25, off by a quarter
    either way; several flushers are half as fast with twice that and lines of 250 ns. Nothing else is run.
    """
    variants = set()

    def run_all(jobs: Sequence[tuple[Any, int]], seed: int, progress: bool) -> Any:
        outcomes = []
        for case, _ in jobs:
            variants.add(case.variant)
            cpu = case.scenario.machine.processors
            wanted, asks = (368.0, 0.2) if "W25-A-pm-u" in case.rows else (315.0, 0.3125)
            rate = wanted * asks / cpu.flusher_scale
            if "W25-A-pm-p" in case.rows:
                rate = 1634.0 * 0.5 / (cpu.flusher_scale + cpu.line_from_far / 1_000)
            outcomes.append(
                replace(
                    RUN, variant=case.variant, wall_time=1.0, file_bytes=round(rate * 2**20), extents=(1,)
                )
            )
        return outcomes

    monkeypatch.setattr(calibrate, "run_all", run_all)
    said: list[str] = []
    fit = calibrate_w25(1, False, said.append)
    assert fit.fitted == {
        "writer_scale": pytest.approx(0.25, rel=0.011), "flusher_scale": pytest.approx(0.25, rel=0.011),
        "line_from_far": pytest.approx(250, rel=0.02),
    }  # fmt: skip
    assert abs(fit.errors["W25-A-pm-p"]) < 0.01
    assert fit.errors["W25-A-pm-u"] == pytest.approx(-0.2, abs=0.01)
    assert fit.errors["W25-B-pm-u"] == pytest.approx(0.25, abs=0.015)
    assert len(variants) == 3
    assert 1 < len(said) == fit.rounds < calibrate.MAX_ROUNDS


def test_the_flusher_s_time_on_the_reference_machine() -> None:
    """An inode: 150 + 300 + 150 of lists, 9 600 to map, 3 040 for its page, 150 to commit; a request: 1 130
    to make, 440 to insert, 1 790 to issue.
    """
    assert calibrate._flusher_ns(MACHINES["p13-vm"].processors.paths) == (13_390, 3_360)


def test_a_round_of_p13_s_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both variants in full, once, with the constants to be tried; nothing else differs."""
    asked: list[tuple[Any, ...]] = []

    def run_all(jobs: Any, seed: int, progress: bool) -> list[str]:
        for case, replication in jobs:
            cpu = case.scenario.machine.processors
            asked.append((case.variant, replication, cpu.writer_scale, cpu.flusher_scale, cpu.exit_time))
        asked.append((seed, progress))
        return [case.variant for case, _ in jobs]

    monkeypatch.setattr(calibrate, "run_all", run_all)
    constants = {"writer_scale": 2.25, "flusher_scale": 1.5, "exit_time": 7_000.0}
    assert calibrate._run(constants, 5, True) == ("unpatched", "patched")
    tried = (0, 2.25, 1.5, 7_000)
    assert asked == [("unpatched", *tried), ("patched", *tried), (5, True)]
