"""The reference: readable Markdown with each key, each figure, and each option of a program."""

from __future__ import annotations

from typing import Final

import pytest

from wbsim.experiments.config.keys import sections
from wbsim.experiments.formats.reference import FIGURES_TITLE, reference
from wbsim.experiments.results.figures import COLUMNS, FIGURES
from wbsim.models.kinds import kinds
from wbsim.models.workloads.command_line import Options

OPTIONS_TITLE: Final = "## Options of programs"
PROGRAMS: Final = {
    name: options for kind in kinds("workloads").values() for name, options in kind.spec.options().items()
}


def test_reference_has_a_row_of_four_cells_for_each_key() -> None:
    """A bar in a text would add a cell."""
    keys, _, rest = reference().partition(FIGURES_TITLE)
    rows = [line for line in keys.splitlines() if line.startswith("| `")]
    assert len(rows) == sum(len(section.keys) for section in sections())
    tables = keys[keys.index("\n## ") :] + rest.partition(OPTIONS_TITLE)[0]
    assert {line.count("|") for line in tables.splitlines() if "|" in line} == {5}
    assert "| key | meaning | takes | default |\n|---|---|---|---|\n| `title` | " in keys


def test_reference_has_a_heading_for_each_section() -> None:
    """Sections of a part stand below the title of the part, and programs below that of their options."""
    text = reference()
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert len(headings) == len(set(headings)) == len(list(sections())) + 3 + len(PROGRAMS)
    order = [
        "## machine",
        "### machine.disks.NAME.queue",
        '### machine.disks.NAME.device of kind "ssd"',
        "## kernel",
        OPTIONS_TITLE,
        "### dd",
        "### xfs_io",
    ]
    assert [line for line in headings if line in order] == order


def test_reference_has_unit_and_meaning_of_each_figure() -> None:
    figures = reference().partition(FIGURES_TITLE)[2]
    for name, of in FIGURES.items():
        assert f"| `{name}` | {of.meaning} | {of.unit} | `{COLUMNS[name]}` |" in figures


@pytest.mark.parametrize(("program", "options"), PROGRAMS.items(), ids=PROGRAMS)
def test_reference_has_each_option_once_with_its_fate(program: str, options: Options) -> None:
    """A row has the options with one fate.  A bar in a reason would add a cell."""
    text = reference().partition(OPTIONS_TITLE)[2].partition(f"\n### {program}\n")[2].partition("\n### ")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")][2:]
    if options.aliases:
        _, names = rows.pop()
        assert names.split(", ") == [f"`{new}` for `{old}`" for new, old in options.aliases.items()]
    assert rows or f"{program} has no options." in text
    fates = [(option.strip("`"), fate) for fate, names in rows for option in names.split(", ")]
    assert sorted(fates) == sorted([
        *((option, "modelled") for option in options.modelled),
        *((option, "dropped with a note") for option in options.dropped),
        *((option, f"refused: {why}" if why else "refused") for option, why in options.refusals.items()),
    ])  # fmt: skip
    assert len({option for option, _ in fates}) == len(fates)
