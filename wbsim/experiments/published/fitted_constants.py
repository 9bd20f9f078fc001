"""The constants that were fitted to a report, and the runs that use them outside of the report."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from wbsim.experiments.config.case import Case
from wbsim.experiments.formats.table import wrapped
from wbsim.sim.param import Origin, Spec

_REPORT: Final = re.compile(r"\b(?:P13|V13|N10|W25|J09)\b")


def fitted_to(spec: Spec, *, to_rows: bool = False) -> dict[str, list[str]]:
    """Return the paths of the constants of *spec* that were fitted to a report or set from one, by report.

    *to_rows*: return only constants that were fitted to rows of the report, not those set from its
    measurements of a drive.
    """
    constants: dict[str, list[str]] = {}
    for number in spec.numbers():
        provenance = number.provenance
        if (
            provenance is not None
            and provenance.origin is Origin.CALIBRATED
            and (provenance.targets or not to_rows)
        ):
            for report in sorted({*_REPORT.findall(" ".join((*provenance.targets, provenance.source)))}):
                constants.setdefault(report, []).append(number.path)
    return constants


def fitted_elsewhere(cases: Iterable[Case]) -> str | None:
    """Return a note on constants that were fitted to a report and are used by *cases* of no report.

    Only constants of the machine count.  The note is None if there are no such constants.
    """
    constants: dict[str, dict[str, None]] = {}
    machines = {id(case.scenario.machine): case.scenario.machine for case in cases if not case.rows}
    for machine in machines.values():  # points of a sweep share an unchanged machine
        for report, paths in fitted_to(machine, to_rows=True).items():
            constants.setdefault(report, {}).update(dict.fromkeys(paths))
    if not constants:
        return None
    names = ", ".join(f"{', '.join(map(_short, paths))} ({report})" for report, paths in constants.items())
    return wrapped(
        f"these constants of the machine were fitted to another report: {names};"
        " wbsim list machines shows which machines were fitted to nothing"
    )


def _short(path: str) -> str:
    """Return the end of *path* that names the constant."""
    return path.rpartition(".")[2]
