"""The tables of a reproduction and of a fit."""

from __future__ import annotations

from wbsim.experiments.formats.table import figure_text, table
from wbsim.experiments.published.fit import CLOSE_ENOUGH, Fit
from wbsim.experiments.published.reproduce import Reproduction, Row


def reproduction_table(result: Reproduction) -> str:
    """Return a table of published and simulated figures, with notes on the runs."""
    rows = [_reproduction_cells(row) for row in result.rows]
    text = table(("figure", "published", "unit", "simulated", "95 % interval", "error", "role"), rows)
    steady = [
        (row.id, figure_text(row.steady.value), row.unit, f"{row.steady.start_s:.0f} s")
        for row in result.rows
        if row.steady is not None and row.steady.start_s > 0
    ]
    if steady:
        text += "\n\n" + table(("steady part", "simulated", "unit", "from"), steady)
    constants = ", ".join(f"{count} {origin}" for origin, count in result.constants.items())
    notes = []
    if result.outcomes:
        notes = [
            f"interval: {result.interval}",
            f"numbers: {constants} (see: wbsim params)",
            f"{result.cpu_s:.0f} s of CPU, {result.peak_rss_mib:.0f} MiB, seed {result.seed}",
        ]
    if result.quick:
        notes.insert(
            0,
            "quick: one run each, smaller if the configuration has a smaller one; figures that grow with its"
            " size have no error",
        )
    return "\n".join([text, "", *notes]).rstrip()


def _reproduction_cells(row: Row) -> tuple[str, ...]:
    published = "-" if row.published is None else figure_text(row.published)
    if row.simulated is None:
        return (row.id, published, row.unit, "-", "-", "-", row.role)
    interval = "-" if row.ci95 is None else f"{figure_text(row.ci95[0])} .. {figure_text(row.ci95[1])}"
    error = "-" if row.relative_error is None else f"{100 * row.relative_error:+.1f} %"
    return (row.id, published, row.unit, figure_text(row.simulated), interval, error, row.role)


def fit_table(fit: Fit) -> str:
    """Return tables of the fitted and the committed constants, and of the errors (%) that remain.

    The last line says whether the two sets of constants agree, and after how many rounds.
    """
    constants = table(
        ("constant", "fitted", "committed"),
        [(name, f"{value:g}", f"{fit.committed[name]:g}") for name, value in fit.constants.items()],
    )
    errors = table(("row", "error"), [(key, f"{100 * error:+.1f} %") for key, error in fit.errors.items()])
    verdict = f"within {100 * CLOSE_ENOUGH:g} % of" if fit.agrees else "DIFFERENT from"
    return (
        f"{constants}\n\n{errors}\n\nafter {fit.rounds} rounds the fit is {verdict} the committed constants"
    )
