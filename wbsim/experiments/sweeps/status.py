"""The status of the runs of a directory, counted by file names, so that ten thousand runs are counted fast.

Only the messages of failed runs are read.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from wbsim.experiments.formats.table import table
from wbsim.experiments.running.plan import FAILED, known_names, read_plan
from wbsim.experiments.running.version import model_version
from wbsim.sim.text_files import text_of

_MOST_SHOWN = 10


class Status(NamedTuple):
    """The status of the runs of a plan, which has this ``title``.

    * ``counts``: the numbers of runs that are ``done``, ``failed`` and ``missing``.
    * ``by_variant``: the same of each variant.
    * ``failures``: the messages of failed runs, if they can be read.  The key is a label: the variant, the
      values of the point, and the replication if the plan has several.
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
            (variant, *(str(counts[state]) for state in _STATES))
            for variant, counts in self.by_variant.items()
        ]
        if len(rows) > 1:
            rows.append(("all", *(str(self.counts[state]) for state in _STATES)))
        lines = [self.title, table(("variant", *_STATES), rows)]
        examples = list(self.failures.items())[:_MOST_SHOWN]
        lines += [f"failed: {label}: {message.splitlines()[0]}" for label, message in examples]
        if more := self.counts["failed"] - len(examples):
            lines.append(f"and {more} more failed runs")
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
    counts = dict.fromkeys(_STATES, 0)
    by_variant: dict[str, dict[str, int]] = {}
    repeats = any(run.replication for run in plan.runs)
    failures = {}
    for run in plan.runs:
        name = run.name
        state = "done" if name in done else "failed" if name in failed else "missing"
        counts[state] += 1
        by_variant.setdefault(run.variant, dict.fromkeys(_STATES, 0))[state] += 1
        if state == "failed":
            label = "-".join([run.variant, *map(str, run.point.values())])
            if repeats:
                label += f", replication {run.replication}"
            with suppress(OSError, ValueError, KeyError):
                failures[label] = json.loads(text_of(directory / FAILED / name / "run.json"))["message"]
    planned = {run.name for run in plan.runs}
    extra = len((done | failed) - planned)
    return Status(plan.title, counts, by_variant, failures, extra, plan.model != model_version())
