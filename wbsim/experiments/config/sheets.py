"""A disk of a configuration that is described by its data sheet; `models.catalogue.sheets` has the rule."""

from __future__ import annotations

from pydantic import ValidationError

from wbsim.experiments.config.problems import Problems, from_validation
from wbsim.experiments.config.tree import Table, place_tree
from wbsim.models.catalogue.sheets import drive_of, spec_of
from wbsim.sim.param import Inputs


def drive_in(problems: Problems, sheet: Table) -> Inputs | None:
    """Return the entries ``queue`` and ``device`` that follow from *sheet*, whose figures are `Given`.

    Return None if a figure is missing, unknown or contradicts another one, which is noted in *problems*.
    """
    try:
        return drive_of(dict(sheet))
    except ValidationError as error:
        problems.entries += from_validation(error, spec_of(sheet), sheet)
        return None


def with_sheet(problems: Problems, disk: Table) -> Table | None:
    """Return only the queue and the device that follow from the ``sheet`` of *disk*.

    The table has the key of *disk* and the place of the sheet.  None if the sheet is not valid, which is
    noted in *problems*.  The caller puts the other keys of *disk* over the table.
    """
    sheet = problems.table(disk, "sheet")
    drive = drive_in(problems, sheet)
    if drive is None:
        return None
    table: Table = place_tree(drive, disk.key, sheet.where)
    return table
