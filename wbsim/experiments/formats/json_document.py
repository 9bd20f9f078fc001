"""The results of a run as one JSON document, with the names and units of the columns of frames."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import Any, Final

from wbsim.experiments.results.dataset import amounts_of_job
from wbsim.experiments.results.figures import COLUMNS, FIGURES
from wbsim.experiments.results.outcome import Outcome

_FIGURES: Final = frozenset({
    "wall_time", "on_disk_time", "system_cpu_time", "user_cpu_time", "create_rate", "write_iops",
    "write_bandwidth", "readings", "files",
})  # fmt: skip
"""The fields of an outcome that are figures, or that figures are computed from."""
_UNITS: Final = {
    "wall_time": "wall_time_s", "system_cpu_time": "system_cpu_time_s", "user_cpu_time": "user_cpu_time_s",
    "busy_time": "busy_time_s", "r_await": "r_await_ms", "w_await": "w_await_ms",
}  # fmt: skip
"""The names with a unit of fields of programs and disks; the other fields have it, or are numbers."""


def document_of(outcome: Outcome) -> dict[str, Any]:
    """Return *outcome* for ``--json``: ``figures``, by their columns in the dataset, and its other fields.

    A figure without a value, such as the rate of no files, is None.  ``readings``, ``files``, and the fields
    that ``figures`` repeats, are left out.  The times in ``programs``, ``disks`` and ``disks_at_end`` have
    their unit in the name, such as ``w_await_ms``.  A job has the keys of `amounts_of_job`, and ``calls``.
    """
    whole = asdict(outcome)
    document = {key: value for key, value in whole.items() if key not in _FIGURES}
    figures = {COLUMNS[name]: figure.whole(outcome) for name, figure in FIGURES.items()}
    document["figures"] = {
        name: value if value is not None and isfinite(value) else None for name, value in figures.items()
    }
    document["disks"], document["disks_at_end"] = (
        {name: _with_units(disk) for name, disk in whole[part].items()} for part in ("disks", "disks_at_end")
    )
    document["programs"] = {}
    for name, program in outcome.programs.items():
        jobs = {
            job: {**amounts_of_job(result), "calls": whole["programs"][name]["jobs"][job]["calls"]}
            for job, result in program.jobs.items()
        }
        document["programs"][name] = {**_with_units(whole["programs"][name]), "jobs": jobs}
    return document


def _with_units(fields: dict[str, Any]) -> dict[str, Any]:
    """Return *fields* with their units in their names."""
    return {_UNITS.get(name, name): value for name, value in fields.items()}
