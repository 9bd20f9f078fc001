"""The plan of a directory of results, and the names of its runs; no result is read for these."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from wbsim.experiments.config.problems import bad
from wbsim.sim.text_files import text_of

RUNS: Final = "runs"
FAILED: Final = "failed"
PLAN: Final = "plan.json"

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Whole = Annotated[int, Field(ge=0, lt=1 << 63)]
_Label = Annotated[str, Field(pattern=r"^[^\x00]*$")]


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a plan: the name of its directory, its variant, point, seed and replication."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
    variant: _Label
    point: dict[str, bool | int | _Finite | _Label]
    seed: _Whole
    replication: _Whole


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of the last command that wrote to the directory."""

    title: _Label
    axes: list[_Label]
    command: list[str]
    model: str
    runs: list[PlannedRun]


@cache
def _adapter() -> TypeAdapter[Plan]:
    from pydantic import TypeAdapter

    return TypeAdapter(Plan)


def known_names(directory: Path) -> tuple[set[str], set[str]]:
    """Return the names of the runs below *directory* that are done, and of the runs that failed.

    Both sets are empty if *directory* has no results.  Only names are read.
    """
    done, failed = (
        set(os.listdir(directory / folder)) if (directory / folder).is_dir() else set()
        for folder in (RUNS, FAILED)
    )
    return done, failed


def read_plan(directory: Path) -> Plan:
    """Return the plan in *directory*.

    Raises:
        BadInput: plan.json is missing or damaged.
    """
    try:
        plan = _adapter().validate_json(text_of(directory / PLAN), strict=True)
        for run in plan.runs:
            if not set(plan.axes) <= set(run.point):
                raise ValueError(f"{run} is at no point of its axes")
        return plan
    except (OSError, ValueError) as error:
        why = f"{PLAN} is missing" if isinstance(error, OSError) else f"{PLAN} is damaged"
        raise bad(
            str(directory), f"has no results ({why}); make some with wbsim run CONFIG.toml --out DIR"
        ) from None
