"""`wbsim explain`: why a run took as long as it did, from what it wrote.

For each run it names the resource that held it back (`experiments.lives.most_used` has the rule), says where
the lives of its threads went, and, for several variants, what their flushers spend on a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from experiments.lives import Kind, kinds_of, most_used
from experiments.problems import bad
from experiments.report import table
from experiments.runner import CASE_FILE
from models.spent import PATHS
from sim.units import MIB, US, S

STATES: Final = ("user", "system", "spinning", "ready", "waiting")
AWAY: Final = ("waiting a pause", "waiting children", "waiting idle", "waiting absent")
"""What nobody would call work, or waiting."""
_SEEN: Final = 0.0005  # of the run: less is left out of a table
_NEXT: Final = 3
"""How many resources are named beside the first."""


class Run(NamedTuple):
    """What a result says of one run: its length (ns), its threads by kind, its uses, and its work."""

    label: str
    length_ns: float
    kinds: list[Kind]
    uses: dict[str, float]
    files: int
    file_bytes: int


def read_runs(directory: Path) -> tuple[str, list[Run]]:
    """The title of what `wbsim run --out` wrote, and its runs; of several replications the first.

    Raises:
        BadInput: there is no result in *directory*, or it is older than this command.
    """
    try:
        document = json.loads((directory / CASE_FILE).read_text())
        runs = [_run(outcome) for outcome in document["outcomes"] if outcome["replication"] == 0]
        return document["title"], runs
    except (OSError, ValueError, KeyError) as error:
        missing = getattr(error, "filename", None)
        why = f"no {error} in it" if missing is None else f"no {Path(missing).name} in it"
        raise bad(
            str(directory),
            f"holds no result that can be explained ({why}); make one with wbsim run CONFIG.toml --out DIR",
        ) from None


def _run(outcome: Mapping[str, Any]) -> Run:
    point = "" if outcome["point"] is None else f" {outcome['point']}"
    lives = outcome["lives"]
    return Run(
        f"{outcome['variant']}{point}",
        max(sum(life.values()) for life in lives.values()),
        kinds_of(lives),
        outcome["uses"],
        outcome["files"],
        outcome["file_bytes"],
    )


def explanation(title: str, runs: Sequence[Run]) -> str:
    """All of it as text."""
    parts = [title]
    for run in runs:
        parts += [verdict(run), lives_table(run)]
    if len(runs) == 2:
        parts.append(flushers_table(*runs))
    return "\n\n".join(parts)


def document(title: str, runs: Sequence[Run]) -> dict[str, Any]:
    """The same for machines: times in ns, what was used as shares of the run, the most used first."""
    return {
        "title": title,
        "runs": [
            {
                "label": run.label,
                "length_ns": run.length_ns,
                "uses": {of.name: of.share for of in most_used(run.uses)},
                "threads": {kind.name: {"count": kind.threads, "life": kind.life} for kind in run.kinds},
            }
            for run in runs
        ],
    }


def verdict(run: Run, others: int = _NEXT) -> str:
    """Which resource held the run back, and how many others come next."""
    first, *then = most_used(run.uses)
    text = (
        f"{run.label}: {run.length_ns / S:.2f} s, held back by {first.name}, in use for"
        f" {100 * first.share:.1f} % of it"
    )
    if others:
        text += "; then " + ", ".join(f"{of.name} {100 * of.share:.1f} %" for of in then[:others])
    return text


def lives_table(run: Run) -> str:
    """Where the lives of the threads went, as shares of the run: a column for each kind of thread that did
    anything.
    """
    kinds = seen_kinds(run)
    causes = in_order(seen_causes(run, kinds))
    header = ("% of the run", *(titled(kind) for kind in kinds))
    rows = [(cause, *(_percent(kind.life.get(cause, 0), run) for kind in kinds)) for cause in causes]
    return table(header, rows)


def flushers_table(one: Run, other: Run) -> str:
    """The flushers' time a file (or a MiB, where files are large) of two runs by cause; the differences add
    up to the gain.
    """
    unit, of_one, of_other = per_file(one, other)
    causes = in_order(of_one.keys() | of_other.keys())
    figures = [(cause, of_one.get(cause, 0.0), of_other.get(cause, 0.0)) for cause in causes]
    figures.append(("all", sum(of_one.values()), sum(of_other.values())))
    rows = [
        (cause, f"{a:.3f}", f"{b:.3f}", f"{b - a:+z.3f}") for cause, a, b in figures if max(a, b) >= _SEEN
    ]
    return table((f"flushers, us a {unit}", one.label, other.label, "difference"), rows)


def per_file(one: Run, other: Run) -> tuple[str, dict[str, float], dict[str, float]]:
    """What is counted, a file or a MiB, and the flushers' time for one by cause (us), in both runs."""
    small = all(run.file_bytes <= run.files * MIB for run in (one, other))
    flushers = []
    for run in (one, other):
        done = run.files if small else run.file_bytes / MIB
        life: dict[str, float] = {}
        for kind in run.kinds:
            if kind.name.endswith("flusher"):
                for cause, ns in kind.life.items():
                    life[cause] = life.get(cause, 0.0) + kind.threads * ns / US / done
        flushers.append(life)
    return "file" if small else "MiB", flushers[0], flushers[1]


def in_order(causes: Iterable[str]) -> list[str]:
    """By state, then along the path of a page, then by name; what is no work and no waiting comes last."""
    paths = list(PATHS)

    def place(cause: str) -> tuple[bool, int, int, str]:
        state, _, what = cause.partition(" ")
        along = paths.index(what) if state == "system" and what in paths else len(paths)
        return cause in AWAY, STATES.index(state), along, what

    return sorted(causes, key=place)


def seen_kinds(run: Run) -> list[Kind]:
    """The threads that did anything."""
    return [
        kind
        for kind in run.kinds
        if _shown(sum(ns for cause, ns in kind.life.items() if cause not in AWAY), run)
    ]


def seen_causes(run: Run, kinds: Iterable[Kind]) -> set[str]:
    """What took some of the time of these."""
    return {cause for kind in kinds for cause, ns in kind.life.items() if _shown(ns, run)}


def _shown(ns: float, run: Run) -> bool:
    return ns >= _SEEN * run.length_ns


def titled(kind: Kind) -> str:
    """Its name, and of how many threads."""
    return kind.name if kind.threads == 1 else f"{kind.name} x{kind.threads}"


def _percent(ns: float, run: Run) -> str:
    return f"{100 * ns / run.length_ns:.1f}" if ns else "-"
