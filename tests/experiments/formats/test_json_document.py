"""The results of a run as a JSON document: figures by the frame's columns, and units in names."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.experiments.outcomes import RUN, with_calls
from wbsim.experiments.formats.json_document import document_of
from wbsim.experiments.results.dataset import tidy
from wbsim.experiments.results.outcome import JobResult


def test_figures_have_the_names_and_values_of_the_frame() -> None:
    """A figure without a value is null, because JSON has no NaN."""
    figures = document_of(RUN)["figures"]
    frame = tidy([RUN], ())
    assert figures.keys() <= set(frame)
    assert (figures["wall_time_s"], figures["fsync_latency_p99_us"]) == (4.0, None)
    assert document_of(with_calls({"fsync": {3_000: 1}}))["figures"]["fsync_latency_max_us"] == 3.0
    json.dumps(document_of(RUN), allow_nan=False)


def test_times_of_programs_and_disks_have_units_in_their_names() -> None:
    """The busy time is in s, and the mean waits are in ms."""
    document = document_of(RUN)
    assert document["programs"]["mark"]["system_cpu_time_s"] == 2.25
    assert (document["disks"]["vda"]["busy_time_s"], document["disks"]["vda"]["w_await_ms"]) == (3.0, 2.5)


def test_jobs_have_the_amounts_of_the_frame_and_their_calls() -> None:
    """A job that has taken no time has no rate."""
    (calls,) = with_calls({"write": {1_000: 2}}).programs.values()
    job = JobResult(2.5, 3, 5_000_000, 1_250, 2e6, 500.0, 0.25, 0.125, calls.calls)
    jobs = {"w": job, "idle": JobResult(0.0, 1, 0, 0, None, None, 0.0, 0.0)}
    document = document_of(replace(RUN, programs={"f": replace(calls, jobs=jobs)}))["programs"]["f"]["jobs"]
    assert (document["w"]["time_s"], document["w"]["calls"]["write"]["count"]) == (2.5, 2)
    assert document["idle"]["calls"] == {}
