"""Runs in which nothing was written back: the rule, its reason, and the commands that refuse such a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.outcomes import RUN, with_readings
from tests.harness import FIO, loop_config
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.results.figures import FIGURES
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.results import Results
from wbsim.experiments.running.simulate import run_case
from wbsim.experiments.why.explain import UNWRITTEN, explanation, result_of
from wbsim.experiments.why.writeback import nothing_written_back, why_nothing
from wbsim.sim.units import MIB, PAGE_BYTES

UNWRITTEN_RUN = replace(
    with_readings(RUN, written_back=0), uses={"processors": 0.9}, lives={"mark": {"user": 7}},
    levels={**RUN.levels, "background": (0.2, 78.125)},
)  # fmt: skip
"""`RUN`, whose 49 MB stay below a background limit of 82 MB."""
LIMIT = "the background limit (kernel.dirty.dirty_background_ratio or dirty_background_bytes)"


@pytest.mark.parametrize(
    ("changes", "at_programs_end", "at_run_end"),
    [
        ({}, False, False),
        ({"written_back": 0}, True, True),
        ({"written_back": 0, "on_disk_time": 9.0}, True, False),
        ({"written_back": 0, "file_bytes": 0}, False, False),
    ],
    ids=["written", "unwritten", "written by the sync", "no data"],
)
def test_data_counts_when_it_is_on_disk(
    changes: dict[str, float], at_programs_end: bool, at_run_end: bool
) -> None:
    """Programs that write no data have nothing to write back; the last sync(2) counts only if asked."""
    read = {name: value for name, value in changes.items() if name == "written_back"}
    others: dict[str, Any] = {name: value for name, value in changes.items() if name not in read}
    outcome = replace(with_readings(RUN, **read), **others)
    assert nothing_written_back(outcome) is at_programs_end
    assert nothing_written_back(outcome, until_end=True) is at_run_end


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ((), f" within 10 ms; write more data, or lower {LIMIT}"),
        ((0.4, 78.125), f", and the background limit is 81.9 MB; write more than that, or lower {LIMIT}"),
        ((0.4, 0.1953125), ", above the background limit of 0.205 MB, but ended too soon; write more data"),
    ],
    ids=["no sample", "below the limit", "above the limit"],
)
def test_reason_compares_the_data_with_the_limit(limits: tuple[float, ...], told: str) -> None:
    """The last sample has the limit, in MiB: 20 000 pages, or 50 pages."""
    levels = {**RUN.levels, "background": limits}
    assert why_nothing(replace(RUN, levels=levels)) == (
        f"nothing was written back before the programs ended: they wrote 49.2 MB{told}"
    )


def outcome_of(more: str, size: str = "8m", options: str = "") -> Outcome:
    """Return the outcome of a writer of *size*, with *options*, on a machine with *more* settings."""
    command = f"{FIO} --rw=write --nrfiles=1 --filesize={size} --name=a {options}"
    (case,) = parse(loop_config(command, dirty_mib=64, more=more), "x.toml").cases
    return run_case(case, 1)


def test_pages_that_a_program_syncs_count() -> None:
    """An fsync(2) of the program writes all its pages back; without it the pages stay in memory."""
    written = FIGURES["written_back"].whole
    assert written(outcome_of("sync_after = false")) == 0
    assert written(outcome_of("sync_after = true")) == 0, "the sync(2) follows the programs"
    assert written(outcome_of("sync_after = false", "8m", "--end_fsync=1")) == 8
    outcome = outcome_of("sync_after = false", "48m")
    written_bytes = written(outcome) * MIB
    assert 0 < written_bytes < outcome.file_bytes
    assert written_bytes % PAGE_BYTES == 0


def test_explain_refuses_runs_without_writeback() -> None:
    """A sweep in which other runs were written back shows them, and says so in the row of this one."""
    with pytest.raises(Exception, match="nothing was written back before the programs ended"):
        result_of(Results("t", (), [UNWRITTEN_RUN], []))
    written = with_readings(UNWRITTEN_RUN, written_back=1)
    runs = [replace(of, point={"n": n}) for n, of in enumerate((UNWRITTEN_RUN, written))]
    first, second = explanation(result_of(Results("t", ("n",), runs, []))).splitlines()[8:10]
    assert UNWRITTEN in first
    assert "processors" not in first
    assert "processors" in second
    text = explanation(result_of(Results("t", (), [UNWRITTEN_RUN, written], [])))
    assert f"held back by nothing known: {UNWRITTEN}" in text


def test_three_commands_refuse_such_a_run_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The status is 2, and the message has the data, the limit and the remedy."""
    config, out = tmp_path / "x.toml", tmp_path / "out"
    command = "fs_mark -S0 -n 100 -s 4096 -L 2 -d /a/0 -d /a/1"
    config.write_text(loop_config(command, dirty_mib=64))
    assert main(["run", str(config), "--out", str(out)]) == 0
    reason = "nothing was written back before the programs ended: they wrote 1.64 MB"
    assert reason in capsys.readouterr().out
    for words in (["explain", str(out)], ["advise", str(config)], ["sensitivity", str(config)]):
        assert main(words) == 2
        told = capsys.readouterr()
        assert (told.out, told.err.count("\n")) == ("", 1)
        assert reason in told.err
        assert LIMIT in told.err
