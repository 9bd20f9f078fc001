"""The reference: readable Markdown with each key and each figure."""

from __future__ import annotations

from wbsim.experiments.config.keys import sections
from wbsim.experiments.formats.reference import FIGURES_TITLE, reference
from wbsim.experiments.results.figures import COLUMNS, FIGURES


def test_reference_has_a_row_of_four_cells_for_each_key() -> None:
    """A bar in a text would add a cell."""
    keys, _, figures = reference().partition(FIGURES_TITLE)
    rows = [line for line in keys.splitlines() if line.startswith("| `")]
    assert len(rows) == sum(len(section.keys) for section in sections())
    tables = keys[keys.index("\n## ") :] + figures
    assert {line.count("|") for line in tables.splitlines() if "|" in line} == {5}
    assert "| key | meaning | takes | default |\n|---|---|---|---|\n| `title` | " in keys


def test_reference_has_a_heading_for_each_section() -> None:
    """Sections of a part stand below the title of the part."""
    text = reference()
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert len(headings) == len(set(headings)) == len(list(sections())) + 2
    order = [
        "## machine",
        "### machine.disks.NAME.queue",
        '### machine.disks.NAME.device of kind "ssd"',
        "## kernel",
    ]
    assert [line for line in headings if line in order] == order


def test_reference_has_unit_and_meaning_of_each_figure() -> None:
    figures = reference().partition(FIGURES_TITLE)[2]
    for name, of in FIGURES.items():
        assert f"| `{name}` | {of.meaning} | {of.unit} | `{COLUMNS[name]}` |" in figures
