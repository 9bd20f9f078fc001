"""The tables of latencies, of calls made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.experiments.outcomes import RUN, simulate_by, with_calls
from wbsim.experiments.cli import main
from wbsim.experiments.formats.latencies import calls_of, latency_table, slowest_table
from wbsim.experiments.formats.table import duration_text
from wbsim.experiments.running.reading import call_result
from wbsim.experiments.why.explain import Result, explanation, run_of
from wbsim.models.syscalls.latency import Latency


def test_latency_table_names_what_differs() -> None:
    """One program of one variant has no column for its name; two programs, or two variants, have."""
    one = with_calls({"write": {1_000: 990, 3_000_000: 10}, "fsync": {250_000_000: 1}})
    assert latency_table([one]) == (
        "call   calls    mean     p50     p90     p99   p99.9     max\n"
        "-----  -----  ------  ------  ------  ------  ------  ------\n"
        "write  1 000   31 us    1 us    1 us    1 us    3 ms    3 ms\n"
        "fsync      1  250 ms  250 ms  250 ms  250 ms  250 ms  250 ms"
    )


def test_a_run_without_calls_has_no_table() -> None:
    """`RUN` has no calls; and calls that only work have no slowest ones to explain."""
    assert latency_table([RUN]) is None
    assert slowest_table(calls_of(RUN)) is None
    assert slowest_table(calls_of(with_calls({"write": {1_000: 5}}))) is None


def test_slowest_table_has_the_waits_of_the_slowest_calls() -> None:
    """Ten of 1 000 calls of the first program were throttled for half of their time; close(2) only worked."""
    run = with_calls({"write": {1_000: 990, 4_096: 10}, "close": {500: 7}}, {"write": {6_000: 1}})
    assert slowest_table(calls_of(run)) == (
        "program  call   the slowest calls  from    their time\n"
        "-------  -----  -----------------  ------  -------------------------\n"
        "a        write  10 of 1 000        4.1 us  throttled 50 %, work 50 %\n"
        "b        write  1 of 1             4.1 us  throttled 50 %, work 50 %"
    )


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"), (999, "999 ns"), (999.6, "1 us"), (1_234, "1.23 us"), (999_499, "999 us"),
        (999_500, "1 ms"), (306_000_000, "306 ms"), (19_700_000_000, "19.7 s"), (3_600 * 10**9, "3 600 s"),
    ],
)  # fmt: skip
def test_a_duration_has_three_digits(ns: float, text: str) -> None:
    """The unit is the largest in which the rounded value is at least 1."""
    assert duration_text(ns) == text


def test_variants_are_named_in_one_table() -> None:
    """Two variants of a program with one kind of call."""
    run = with_calls({"write": {1_000: 1}})
    text = latency_table([run, replace(run, variant="patched")])
    assert text is not None
    assert [line.split()[0] for line in text.splitlines()] == ["variant", "---------", "unpatched", "patched"]


def test_the_longest_waits_come_first() -> None:
    """The cause with the longest sum comes first; equal sums come in the order of their names."""
    latency = Latency()
    for waited_ns, cause in ((10, "a request"), (40, "throttled"), (10, "DISK")):
        latency.add(100, waited_ns, cause)
    assert list(call_result(latency).slowest.waits_ns) == ["throttled", "DISK", "a request"]


def test_run_prints_latencies_and_sweep_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sweep has many runs, each with a table."""
    run = with_calls({"write": {1_000: 990, 4_096: 10}})
    simulate_by(monkeypatch, lambda job: replace(run, variant=job.case.variant, point=job.case.point))
    assert main(["run", "question.toml"]) == 0
    assert "write  1 000" in capsys.readouterr().out
    assert main(["sweep", "question.toml", "--set", "workload.files=100,200"]) == 0
    assert "write  1 000" not in capsys.readouterr().out


def test_explanation_has_the_slowest_calls() -> None:
    """The table follows that of the threads."""
    run = with_calls({"write": {1_000: 990, 4_096: 10}})
    seen = replace(run, uses={"processors": 0.9})
    assert slowest_table(calls_of(run)) == explanation(Result("t", (), [run_of(seen)])).split("\n\n")[-1]
