"""Constants that were fitted to a report: a run outside of the report names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import FIO, loop_config
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import load, parse
from wbsim.experiments.published.fitted_constants import fitted_elsewhere, fitted_to
from wbsim.models.catalogue.machines import MACHINES

CONFIGS = Path(__file__).parents[3] / "wbsim/experiments/configs"
TEXT = loop_config(f"{FIO} --rw=write --filesize=1m --name=a", dirty_mib=2)


@pytest.mark.parametrize(
    ("machine", "note"),
    [
        ("loop-vm", None),
        ("desk-vm", None),
        ("p13-vm", "writer_scale, flusher_scale, exit_time (P13), item_ns (V13);"),
        ("w25-server", ": transaction_scale (W25);"),
    ],
)
def test_a_run_outside_of_a_report_names_its_constants(machine: str, note: str | None) -> None:
    """Only machines of reports have such constants."""
    found = fitted_elsewhere(parse(TEXT, "x.toml", [f'machine.like="{machine}"']).cases)
    assert (found is None) if note is None else (found is not None and note in " ".join(found.split()))


def test_user_s_value_replaces_a_fitted_constant() -> None:
    """A value of the configuration is not reported as fitted."""
    changes = [f"machine.processors.{key}" for key in ("writer_scale=1.0", "flusher_scale=1.0")]
    (case,) = parse(TEXT, "x.toml", ['machine.like="p13-vm"', *changes]).cases
    assert fitted_to(case.scenario.machine) == {
        "P13": ["processors.exit_time"],
        "V13": ["processors.paths.filesystems.xfs.flusher.log.item_ns"],
    }


def test_a_report_uses_its_own_constants() -> None:
    """Cases with published rows have no note."""
    assert fitted_elsewhere(load(CONFIGS / "plug.toml").cases) is None
    assert set(fitted_to(MACHINES["n10-vm"])) == {"N10", "P13", "V13"}


def test_the_note_stands_under_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`run` prints the note once, at the end, and no note for a machine without fitted constants."""
    config = tmp_path / "x.toml"
    config.write_text(TEXT)
    assert main(["run", str(config), "--set", 'machine.like="p13-vm"']) == 0
    assert "\n\nthese constants of the machine were fitted to another report" in capsys.readouterr().out
    assert main(["run", str(config)]) == 0
    assert "fitted" not in capsys.readouterr().out
