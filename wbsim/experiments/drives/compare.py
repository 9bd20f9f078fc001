"""`wbsim compare-drives`: each drive of the catalogue beside the figures that are known of it.

A figure of the sheet is an input: the drive is built from it.  All others are predicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from wbsim.experiments.config.problems import Problems
from wbsim.experiments.config.sheets import drive_in
from wbsim.experiments.drives.describe import sheet_names, sheet_of
from wbsim.experiments.drives.runs import PER_SECOND, RATE, TIME, run_of
from wbsim.experiments.formats.table import figure_text
from wbsim.models.catalogue.data_files import part_in
from wbsim.models.catalogue.drives import FOLDER, disk_of
from wbsim.models.catalogue.kernels import LAST
from wbsim.models.release import release_of
from wbsim.models.scenario import DriveSpec
from wbsim.sim.param import Inputs
from wbsim.sim.units import MS, quantity

RUN_OF_INPUT: Final = {
    "sequential_write": "sequential_write",
    "sequential_write_after": "sequential_write_after",
    "random_write": "random_write_qd256",
    "random_write_qd1": "random_write_qd1",
    "durable_writes": "durable_writes_1",
    "mean_seek": "mean_seek",
}
"""The run that measures a figure of a sheet, by the key of the figure."""


class Comparison(NamedTuple):
    """A figure of a drive beside that of the model; both have the ``unit``.

    ``figure``: the name of the run.  ``is_input``: the drive is built from it.  ``origin`` and ``source``:
    those of the published figure.
    """

    drive: str
    figure: str
    unit: str
    published: float
    model: float
    is_input: bool
    origin: str
    source: str

    @property
    def error(self) -> float:
        """The deviation of the model, as a share of the published figure: 0.1 if it is 10 % above."""
        return self.model / self.published - 1


def known_figures(part: Inputs) -> dict[str, float]:
    """Return the figures of a drive of the catalogue, by key of a sheet, for ``wbsim list disks``.

    *part* is the contents of its file.  The keys are sequential_write (B/s), random_write and durable_writes
    (/s); an unknown figure is missing.  Random writes are those of a worn drive if they were measured, and
    else the most of a fresh one.
    """
    numbers = {**part.get("sheet", {}), **part.get("figures", {})}
    figures = {key: numbers[key].value for key in ("sequential_write", "durable_writes") if key in numbers}
    random = [key for key in numbers if key.startswith("random_write_qd") or key == "random_write"]
    if "random_write_steady" in numbers:
        random = ["random_write_steady"]
    if random:
        figures["random_write"] = max(numbers[key].value for key in random)
    return figures


def comparisons(names: Iterable[str]) -> Iterator[Comparison]:
    """Yield the comparisons of each of the drives *names*, inputs first; a name may be a file with a sheet.

    Each comparison simulates a run, which may take seconds.  A file has inputs only.

    Raises:
        BadInput: there is no such drive or file, or its sheet is missing or not valid.
    """
    for name in names:
        sheet, problems = sheet_of(name), Problems()
        entries = drive_in(problems, sheet)
        problems.raise_found()
        assert entries is not None
        drive = DriveSpec.model_validate(disk_of(entries, release_of(LAST)))
        inputs = {RUN_OF_INPUT[key]: number for key, number in sheet.items() if key in RUN_OF_INPUT}
        others = part_in(FOLDER, name).get("figures", {}) if name in sheet_names() else {}
        for figures, is_input in ((inputs, True), (others, False)):
            for figure, number in figures.items():
                run, count = run_of(figure)
                published = _base_unit(number.value)
                model = run.measure(drive, count)
                yield Comparison(
                    name, figure, run.unit, published, model, is_input, number.origin, number.source
                )


def _base_unit(value: Any) -> float:
    """Return *value*, which may be a text with a unit, in the base unit."""
    return float(quantity(value)) if isinstance(value, str) else float(value)


def median_error(rows: Sequence[Comparison]) -> float | None:
    """Return the median of the predicted figures' errors, without sign, as a share of the published figures.

    None if *rows* have no predicted figure.
    """
    errors = [abs(row.error) for row in rows if not row.is_input]
    return median(errors) if errors else None


HEADING: Final = ("drive", "figure", "origin", "published", "model", "error", "is")


def cells(row: Comparison) -> tuple[str, ...]:
    """Return *row* as cells of a table, with the columns of `HEADING`."""
    return (
        row.drive,
        row.figure,
        row.origin,
        _text(row.published, row.unit),
        _text(row.model, row.unit),
        f"{100 * row.error:+.1f} %",
        "input" if row.is_input else "predicted",
    )


def _text(value: float, unit: str) -> str:
    if unit == RATE:
        return f"{figure_text(value / 1e6)} MB/s"
    if unit == TIME:
        return f"{figure_text(value / MS)} ms"
    return f"{figure_text(value)} /s" if unit == PER_SECOND else figure_text(value)


def document(rows: Sequence[Comparison]) -> dict[str, Any]:
    """Return the comparisons *rows* as the document of ``--json``, in base units (B/s, /s, ns).

    ``figures`` is a list with the fields of each `Comparison` and its ``error``.
    ``median_error_of_predictions`` is that of `median_error`.  Errors are shares of the published figures.
    """
    entries = [{**row._asdict(), "error": row.error} for row in rows]
    return {"figures": entries, "median_error_of_predictions": median_error(rows)}
