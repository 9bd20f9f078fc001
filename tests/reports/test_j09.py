"""The claims about report J09: its published figures follow from the mechanism."""

from __future__ import annotations

import json

import pytest

from wbsim.experiments.cli import main
from wbsim.experiments.published.figures import published_rows
from wbsim.experiments.published.reproduce import reproduce
from wbsim.experiments.running.execute import How


@pytest.mark.long
def test_every_published_row_of_a_named_report_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The command shows every published row; only the device is fitted, to its published speed."""
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
def test_flusher_per_device_takes_work_off_the_writers(quick: bool) -> None:
    """Writers use less processor time with a flusher per device than with pdflush, at a similar throughput.

    A quick job of a second does not show the throughput.
    """
    made = reproduce(["J09"], quick=quick, replications=1, how=How())
    of = {outcome.variant: outcome for outcome in made.outcomes}
    assert of["per_bdi"].system_cpu_time < of["pdflush"].system_cpu_time
    if not quick:
        assert of["per_bdi"].wall_time < 1.01 * of["pdflush"].wall_time
