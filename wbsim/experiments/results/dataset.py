"""The tidy dataset: a row for each run, and a column for each swept key and for each figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from wbsim.experiments.config.values import KINDS
from wbsim.experiments.results.figures import COLUMNS, FIGURES
from wbsim.experiments.results.outcome import JobResult, Outcome
from wbsim.sim.units import US, parse

if TYPE_CHECKING:
    import pandas as pd

IDENTITY = ("variant", "replication", "seed")
_UNITS: Final = "units"
"""The attribute of a frame that has the base unit of each setting."""
FACTOR: Final = "x"
"""The unit of swept factors, such as ``"x2"``."""


def tidy(outcomes: Sequence[Outcome], axes: Sequence[str]) -> pd.DataFrame:
    """Return a row for each of *outcomes*: ``variant``, *axes*, ``replication``, ``seed``, and all figures.

    *axes* are the swept keys.  The column of a figure has the unit in its name, and an unknown figure is nan
    (`experiments.results.figures`).  A swept quantity (``"4 GiB"``) is a number in its base unit (ns, B or
    B/s).  The values of an axis are texts if one of them is no number.
    """
    import pandas as pd

    rows = [
        {
            "variant": outcome.variant,
            **{axis: outcome.point.get(axis) for axis in axes},
            "replication": outcome.replication,
            "seed": outcome.seed,
            **{COLUMNS[name]: figure.whole(outcome) for name, figure in FIGURES.items()},
        }
        for outcome in outcomes
    ]
    columns = ["variant", *axes, "replication", "seed", *COLUMNS.values()]
    frame = pd.DataFrame(rows, columns=columns)
    for axis in axes:
        frame = with_setting(frame, axis, list(frame[axis]))
    return frame


def jobs_frame(outcomes: Sequence[Outcome], axes: Sequence[str]) -> pd.DataFrame:
    """Return a row for each job of fio in each of *outcomes*: its identity, its amounts and its latencies.

    The columns are ``variant``, the swept keys *axes*, ``replication``, ``seed``, ``program``, ``job``, and
    the amounts with their units (`amounts_of_job`).  Each kind of call has columns for its number and its
    percentiles, such as ``fsync_p99_us``.  Without jobs the frame is empty and has no columns.
    """
    import pandas as pd

    rows = []
    for outcome in outcomes:
        identity = {
            "variant": outcome.variant,
            **{axis: outcome.point.get(axis) for axis in axes},
            "replication": outcome.replication,
            "seed": outcome.seed,
        }
        for program, result in outcome.programs.items():
            for name, job in result.jobs.items():
                rows.append({**identity, "program": program, "job": name, **amounts_of_job(job)})
    return pd.DataFrame(rows)


def amounts_of_job(job: JobResult) -> dict[str, float | None]:
    """Return the amounts and the latencies of *job* by their columns, which have their units.

    The keys are ``time_s``, ``file_count``, ``written_mb``, ``writes``, ``bandwidth_mb_per_s``,
    ``iops_per_s``, ``system_cpu_time_s`` and ``user_cpu_time_s`` (`JobResult`).  An unknown rate is None.
    For each call that the job made, such as ``write``, ``write_calls`` is the number of calls.
    ``write_p50_us`` to ``write_p99_9_us`` and ``write_max_us`` are the percentiles and the longest of their
    latencies.
    """
    amounts: dict[str, float | None] = {
        "time_s": job.time,
        "file_count": job.files,
        "written_mb": job.bytes / 1e6,
        "writes": job.writes,
        "bandwidth_mb_per_s": None if job.bandwidth is None else job.bandwidth / 1e6,
        "iops_per_s": job.iops,
        "system_cpu_time_s": job.system_cpu_time,
        "user_cpu_time_s": job.user_cpu_time,
    }
    for call, calls in job.calls.items():
        amounts[f"{call}_calls"] = calls.count
        for percent, ns in calls.percentiles_ns.items():
            amounts[f"{call}_p{percent.replace('.', '_')}_us"] = ns / US
        amounts[f"{call}_max_us"] = calls.max_ns / US
    return amounts


def with_setting(frame: pd.DataFrame, key: str, values: Sequence[object]) -> pd.DataFrame:
    """Return a copy of *frame* with the column *key*: *values*, one for each row, in base units.

    If one of *values* is no number (`number_of`), or if only some are factors, all become texts.  If all are
    quantities of one kind, or factors, `unit_of` returns their unit; otherwise the unit is "".
    """
    quantities = [_quantity(value) for value in values]
    column: list[Any] = [number for number, _ in quantities]
    units = {unit for _, unit in quantities}
    if None in column or (FACTOR in units and len(units) > 1):
        column = [*map(str, values)]
    frame = frame.assign(**{key: column})
    frame.attrs[_UNITS] = {**frame.attrs.get(_UNITS, {}), key: units.pop() if len(units) == 1 else ""}
    return frame


def unit_of(frame: pd.DataFrame, key: str) -> str:
    """Return the unit of the setting *key* of *frame*: ns, B, B/s, `FACTOR`, or "" if *key* has none."""
    return str(frame.attrs.get(_UNITS, {}).get(key, ""))


def number_of(value: object) -> float | int | None:
    """Return the number of a swept value in its base unit (ns, B or B/s), or of a factor.

    A number without a unit stays as it is.  None: the value is another text, or True or False.

    >>> number_of("x2"), number_of("4 KiB"), number_of("xfs")
    (2.0, 4096, None)
    """
    return _quantity(value)[0]


def _quantity(value: object) -> tuple[float | int | None, str]:
    """Return the number of a swept value, None for a text, and its base unit; the unit may be empty."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value, ""
    if not isinstance(value, str):
        return None, ""
    if value.startswith("x"):
        value = value[1:]
        try:
            return float(value), FACTOR
        except ValueError:
            return None, ""
    for unit, kind in KINDS.items():
        try:
            return parse(value, kind), unit
        except ValueError:
            continue
    return None, ""
