"""`wbsim advise`: the smallest number of writeback contexts that is as good as the best.

The same run with 1, 2, 4 ... contexts of each device, up to one for each allocation group where these pick
the context, else one for each processor.  Then what lies between the smallest that is good enough and the
largest below it is halved, until these are neighbours.  What counts is when the programs end, as for fio:
what they leave in memory then is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.experiment import load, smaller
from wbsim.experiments.config.problems import bad
from wbsim.experiments.running.execute import How, Runs
from wbsim.experiments.running.jobs import Job
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.why.explain import Run, rates_of, run_of, sweep_table
from wbsim.models.flushers.parallel import ParallelSpec
from wbsim.models.machine import build

AXIS: Final = "contexts"
SHORT_OF_BEST: Final = 0.05
"""Who is no further from the best is as good."""


@dataclass(frozen=True)
class Advice:
    """What was run, by number of contexts: *outcomes* have it as their point."""

    title: str
    outcomes: list[Outcome]

    @property
    def runs(self) -> list[Run]:
        """What the outcomes say of their runs."""
        return [run_of(outcome) for outcome in self.outcomes]

    def text(self) -> str:
        """The table of the runs, and the answer."""
        runs = self.runs
        unit, rates = rates_of(runs)
        rate_of = dict(zip(map(contexts_of, runs), rates, strict=True))
        wanted, best = _wanted(runs), max(rate_of, key=rate_of.__getitem__)
        answer = f"{wanted} context{' is' if wanted == 1 else 's are'} enough: {rate_of[wanted]:,.0f} {unit}"
        if wanted != best:
            answer += f", within {100 * SHORT_OF_BEST:.0f} % of the {rate_of[best]:,.0f} with {best}"
        return "\n\n".join([self.title, sweep_table(AXIS, runs), answer])

    def document(self) -> dict[str, object]:
        """The answer, and what each number of contexts achieved."""
        runs = self.runs
        unit, rates = rates_of(runs)
        return {
            "title": self.title,
            "contexts": _wanted(runs),
            "unit": unit,
            "rates": {str(contexts_of(run)): rate for run, rate in zip(runs, rates, strict=True)},
        }


def advise(config: Path, overrides: Sequence[str], variant: str | None, quick: bool, how: How) -> Advice:
    """Run that *variant* of *config* with ever more contexts; a *quick* one is smaller, as it says itself.

    Raises:
        BadInput: all that is wrong with it, or it does not say which run is meant.
    """
    whole = load(config, overrides)
    given = whole.only_case(variant)
    label = given.label
    if quick:
        given = smaller(config, whole, given, overrides)

    def case_of(contexts: int) -> Case:
        flusher = ParallelSpec(by=_by(given), contexts=contexts)
        kernel = given.scenario.kernel.model_copy(update={"flusher": flusher})
        return replace(
            given, point={AXIS: contexts}, scenario=given.scenario.model_copy(update={"kernel": kernel})
        )

    most = _most(case_of(1))
    runs = Runs(how, f"{whole.title}: {label}", (AXIS,))
    contexts = {*(1 << power for power in range((most - 1).bit_length())), most}
    while True:
        outcomes = runs.run([Job(case_of(count), how.seed) for count in sorted(contexts)]).all_outcomes()
        between = _next([run_of(outcome) for outcome in outcomes])
        if between is None:
            return Advice(f"{whole.title}: {label}", outcomes)
        contexts.add(between)


def contexts_of(run: Run) -> int:
    """With how many contexts it was."""
    return int(run.point[AXIS])


def _by(case: Case) -> Literal["allocation_group", "hash", "processor"]:
    """What picks the context of an inode."""
    flusher = case.scenario.kernel.flusher
    return flusher.by if isinstance(flusher, ParallelSpec) else "allocation_group"


def _most(case: Case) -> int:
    """How many contexts are tried at most."""
    machine = build(case.scenario, 0)
    if _by(case) != "allocation_group":
        return machine.processors.count
    groups = int(max(sb.bdi.groups for sb in machine.mounts.values()))
    if groups == 1:
        raise bad(
            "kernel.flusher",
            "all inodes are of one allocation group, and so of one context;"
            ' give { kind = "parallel", by = "hash" }',
        )
    return groups


def _wanted(runs: Sequence[Run]) -> int:
    """The fewest contexts that are as good as the best."""
    _, rates = rates_of(runs)
    enough = (1 - SHORT_OF_BEST) * max(rates)
    return min(contexts_of(run) for run, rate in zip(runs, rates, strict=True) if rate >= enough)


def _next(runs: Sequence[Run]) -> int | None:
    """Which number of contexts to look at, between the most that fall short and the fewest that do not."""
    wanted = _wanted(runs)
    below = max((count for run in runs if (count := contexts_of(run)) < wanted), default=wanted)
    return (below + wanted) // 2 if wanted - below > 1 else None
