"""What a directory of results says of itself, from names alone: its plan, and which runs are there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from wbsim.experiments.config.problems import bad
from wbsim.sim.texts import text_of

RUNS: Final = "runs"
FAILED: Final = "failed"
PLAN: Final = "plan.json"


def known_names(directory: Path) -> tuple[set[str], set[str]]:
    """The names of the runs that are done below *directory*, and of those that failed."""
    done, failed = (
        set(os.listdir(directory / folder)) if (directory / folder).is_dir() else set()
        for folder in (RUNS, FAILED)
    )
    return done, failed


def read_plan(directory: Path) -> Any:
    """The document of the plan.

    Raises:
        BadInput: there is none.
    """
    try:
        plan = json.loads(text_of(directory / PLAN))
        for run in plan["runs"]:
            if "/" in run["name"] or not isinstance(run["point"], dict):
                raise ValueError(f"{run} is none of its runs")
        return plan
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        why = f"no {PLAN} in it" if isinstance(error, OSError) else f"{PLAN} is damaged"
        raise bad(
            str(directory), f"holds no result ({why}); make one with wbsim run CONFIG.toml --out DIR"
        ) from None
