"""The claims about J09: its published figures, from mechanism."""

from __future__ import annotations

import json

import pytest

from wbsim.experiments.cli import main
from wbsim.experiments.published.figures import published_rows
from wbsim.experiments.published.reproduce import reproduce
from wbsim.experiments.running.execute import How


@pytest.mark.long
def test_every_published_row_of_a_named_report_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """None is hidden; nothing is fitted but the device to its own figure."""
    assert main(["reproduce", "J09", "--json", "--quick"]) == 0
    document = json.loads(capsys.readouterr().out)
    expected = [row.id for row in published_rows() if row.report == "J09"]
    assert [row["id"] for row in document["rows"]] == expected
    roles = {row["id"]: row["role"] for row in document["rows"]}
    assert roles.pop("J09-seqbw") == "calibrated"
    assert set(roles.values()) == {"predicted"}
    assert all(row["simulated"] > 0 for row in document["rows"])


@pytest.mark.long
@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.fullsize)])
def test_a_flusher_of_its_own_takes_work_off_the_writers(quick: bool) -> None:
    """J09's claim of order; at a similar throughput, which a job of a second does not tell."""
    made = reproduce(["J09"], quick=quick, replications=1, how=How())
    of = {outcome.variant: outcome for outcome in made.outcomes}
    assert of["per_bdi"].system_cpu_time < of["pdflush"].system_cpu_time
    if not quick:
        assert of["per_bdi"].wall_time < 1.01 * of["pdflush"].wall_time
