"""The status of the runs of a directory, counted by file names, so that ten thousand runs are counted fast.

Only the messages of failed runs are read.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from wbsim.experiments.formats.table import table
from wbsim.experiments.running.plan import FAILED, known_names, read_plan
from wbsim.experiments.running.version import model_version
from wbsim.sim.text_files import text_of

_MOST_SHOWN = 10


class Status(NamedTuple):
    """The status of the runs of a plan.

    * ``counts`` and ``by_variant``: the numbers of runs that are done, failed or missing.
    * ``failures``: the messages of failed runs, by variant and point.
    * ``others``: the number of runs in the directory that are not part of the plan.
    * ``other_model``: another version of the model made the plan.
    """

    title: str
    counts: dict[str, int]
    by_variant: dict[str, dict[str, int]]
    failures: dict[str, str]
    others: int
    other_model: bool

    def document(self) -> dict[str, object]:
        """Return all fields by their names, as ``--json`` prints them."""
        return self._asdict()

    def text(self) -> str:
        """Return the status as text: a table by variant, and the first failures."""
        rows = [
            (variant, *(str(counts.get(state, 0)) for state in _STATES))
            for variant, counts in self.by_variant.items()
        ]
        if len(rows) > 1:
            rows.append(("all", *(str(self.counts[state]) for state in _STATES)))
        lines = [self.title, table(("variant", *_STATES), rows)]
        examples = list(self.failures.items())[:_MOST_SHOWN]
        lines += [f"failed: {label}: {message.splitlines()[0]}" for label, message in examples]
        if len(self.failures) > len(examples):
            lines.append(f"and {len(self.failures) - len(examples)} more failed runs")
        if self.others:
            lines.append(f"the directory also has {self.others} runs of earlier plans")
        if self.other_model:
            lines.append("another version of the model made these runs: the same command repeats all of them")
        return "\n".join(lines)


_STATES = ("done", "failed", "missing")


def status_of(directory: Path) -> Status:
    """Return the status of the runs in *directory*, by its plan and the names of its runs.

    Raises:
        BadInput: *directory* has no plan, or a damaged one.
    """
    plan = read_plan(directory)
    done, failed = known_names(directory)
    counts: Counter[str] = Counter(dict.fromkeys(_STATES, 0))
    by_variant: dict[str, dict[str, int]] = {}
    failures = {}
    for run in plan.runs:
        name = run.name
        state = "done" if name in done else "failed" if name in failed else "missing"
        counts[state] += 1
        variant_counts = by_variant.setdefault(run.variant, {})
        variant_counts[state] = variant_counts.get(state, 0) + 1
        if state == "failed":
            label = "-".join([run.variant, *map(str, run.point.values())])
            with suppress(OSError, ValueError, KeyError):
                failures[label] = json.loads(text_of(directory / FAILED / name / "run.json"))["message"]
    planned = {run.name for run in plan.runs}
    extra = len((done | failed) - planned)
    return Status(plan.title, dict(counts), by_variant, failures, extra, plan.model != model_version())
