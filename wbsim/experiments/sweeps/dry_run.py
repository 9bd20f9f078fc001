"""`--dry-run`: the runs that a command would simulate, and a rough estimate of their time."""

from __future__ import annotations

from typing import Final, NamedTuple

from wbsim.experiments.config.case import Case, Experiment
from wbsim.experiments.formats.table import UNKNOWN, column_texts, table
from wbsim.experiments.running.progress import span
from wbsim.sim.units import PAGE_BYTES

_FILE_S: Final = 65e-6
_PAGE_S: Final = 25e-6
"""The processor time of wbsim for a file and for a page of 4 KiB, without the compiled engine (s).

On the machine of docs/measurements.md, a file of one page takes 65 to 90 us, and a page of a large file 13 to
50 us.
"""
_COMPILED: Final = 0.4
"""The part of this time that the compiled engine takes."""
UNSURE: Final = "a factor of three either way"


class Planned(NamedTuple):
    """A case that would run: its runs, the files and bytes that each run writes, and its time.

    ``seconds`` of processor time are those of all its runs.
    """

    case: Case
    runs: int
    files: int
    file_bytes: int
    seconds: float


def planned(experiment: Experiment, replications: int | None, *, compiled: bool) -> list[Planned]:
    """Return each case of *experiment* with its runs, for ``--dry-run``; nothing is simulated.

    *replications*: the runs of each case; None: as the experiment says.  *compiled*: the compiled engine
    would run them, which takes less time.
    """
    runs = replications or experiment.replications
    return [_planned(case, runs, _COMPILED if compiled else 1) for case in experiment.cases]


def _planned(case: Case, runs: int, part: float) -> Planned:
    files = file_bytes = 0
    for program in case.scenario.programs.values():
        for _, count, size in program.workload.makes():
            files += count
            file_bytes += count * size
    seconds = part * runs * (files * _FILE_S + file_bytes / PAGE_BYTES * _PAGE_S)
    return Planned(case, runs, files, file_bytes, seconds)


def plan_text(cases: list[Planned], axes: tuple[str, ...], processes: int) -> str:
    """Return a table of *cases*, and the number of runs with an estimate for *processes* at a time.

    *axes* are the swept keys, which are columns.
    """
    labels = [
        (entry.case.variant, *(str(entry.case.point.get(axis, UNKNOWN)) for axis in axes)) for entry in cases
    ]
    numbers = [(entry.runs, entry.files, entry.file_bytes / 1e6) for entry in cases]
    columns = [column_texts(column) for column in zip(*numbers, strict=True)]
    rows = [(*label, *cells) for label, *cells in zip(labels, *columns, strict=True)]
    text = table(("variant", *axes, "runs", "files", "MB"), rows, left_columns=len(axes) + 1)
    runs, seconds = sum(entry.runs for entry in cases), sum(entry.seconds for entry in cases)
    at_once = min(processes, runs)
    return (
        f"{text}\n\n{runs} run{'' if runs == 1 else 's'}, {at_once} at a time:"
        f" about {span(seconds / max(1, at_once))} ({UNSURE}); nothing was simulated"
    )


def plan_document(cases: list[Planned], axes: tuple[str, ...]) -> dict[str, object]:
    """Return *cases* as the document of ``--dry-run --json``.

    ``axes`` are the swept keys.  ``runs`` and ``cpu_s`` are sums over all cases: runs, and processor time
    (s).  ``cases`` has a dict for each case: ``variant``, ``point``, ``runs``, ``files``, ``file_bytes`` and
    ``cpu_s``, as in `Planned`.
    """
    return {
        "axes": list(axes),
        "runs": sum(entry.runs for entry in cases),
        "cpu_s": sum(entry.seconds for entry in cases),
        "cases": [
            {
                "variant": entry.case.variant,
                "point": entry.case.point,
                "runs": entry.runs,
                "files": entry.files,
                "file_bytes": entry.file_bytes,
                "cpu_s": entry.seconds,
            }
            for entry in cases
        ],
    }
