"""Reads the results of a directory; every command that needs results uses this module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from wbsim.experiments.config.problems import bad
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.plan import RUNS, known_names, read_plan
from wbsim.experiments.running.store import read_configuration, read_run


class Results(NamedTuple):
    """The results of a directory: the title and the axes of its plan, and the outcomes of the ended runs.

    ``directories`` has the directory of each outcome.
    """

    title: str
    axes: tuple[str, ...]
    outcomes: list[Outcome]
    directories: list[Path]

    def configurations(self) -> Iterator[object]:
        """Yield the resolved scenario of each outcome: all keys with their values, in dicts as JSON has them.

        Raises:
            BadInput: a config.json is missing or damaged.
        """
        for directory in self.directories:
            yield read_configuration(directory)


def read_results(directory: Path) -> Results:
    """Return the outcomes of the plan in *directory*, in its order; runs that are missing are left out.

    Raises:
        BadInput: *directory* has no plan, no run has ended, or a result or the plan is damaged.
    """
    plan = read_plan(directory)
    done, _ = known_names(directory)
    runs = [run for run in plan.runs if run.name in done]
    directories = [directory / RUNS / run.name for run in runs]
    outcomes = [
        replace(
            read_run(place),
            variant=run.variant, point=run.point, seed=run.seed, replication=run.replication,
        )
        for run, place in zip(runs, directories, strict=True)
    ]  # fmt: skip
    if not outcomes:
        raise bad(str(directory), "has no finished run; repeat the command that began the runs")
    return Results(plan.title, tuple(plan.axes), outcomes, directories)


_SHORT: Final = {
    "workload": ("programs", "workload"), "filesystem": ("mounts", "filesystem"),
    "device": ("machine", "disks", "device"), "queue": ("machine", "disks", "queue"),
}  # fmt: skip
"""Keys that need no name where the machine has one disk, mount or program: the path to the part."""


def setting_of(scenario: Any, key: str) -> Any:
    """Return the value of a resolved *scenario* at *key*; None if *key* is missing or has several values.

    *scenario* is one of `Results.configurations`.  The parts of *key* have dots between them; an item of a
    list is named by its place, from 0.  A key without a name, such as ``device.speed``, stands for the only
    disk, mount or program.  A table or a list is None, too.
    """
    parts = key.split(".")
    short = parts[1] if parts[0] == "machine" and len(parts) > 1 else parts[0]
    if short in _SHORT and short not in scenario["machine"]:
        *tables, section = _SHORT[short]
        entries = scenario
        for table in tables:
            entries = entries[table]
        if len(entries) != 1:
            return None
        (name,) = entries
        parts = [*tables, name, section, *parts[parts.index(short) + 1 :]]
    value = scenario
    for part in parts:
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return None
    return None if isinstance(value, dict | list) else value
