"""`wbsim advise`: the smallest number of writeback contexts whose rate is close to the best rate.

First the case runs with 1, 2, 4 ... contexts for each device, up to a largest number.  If allocation groups
pick the context, this is the number of allocation groups, otherwise the number of processors.  Then a
bisection finds the smallest number whose rate is within `SHORT_OF_BEST` of the best.

The rate covers the time until the last program ends, as in fio.  The time to write pages that are still dirty
is left out.
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
"""A rate is good enough if it is at most this share below the best rate."""


@dataclass(frozen=True)
class Advice:
    """The outcomes of the runs; the point of each outcome is its number of contexts."""

    title: str
    outcomes: list[Outcome]

    @property
    def runs(self) -> list[Run]:
        """Return the runs of the outcomes."""
        return [run_of(outcome) for outcome in self.outcomes]

    def text(self) -> str:
        """Return the table of the runs and the answer."""
        runs = self.runs
        unit, rates = rates_of(runs)
        rate_of = dict(zip(map(contexts_of, runs), rates, strict=True))
        wanted, best = _wanted(runs), max(rate_of, key=rate_of.__getitem__)
        answer = f"{wanted} context{' is' if wanted == 1 else 's are'} enough: {rate_of[wanted]:,.0f} {unit}"
        if wanted != best:
            answer += f", within {100 * SHORT_OF_BEST:.0f} % of the {rate_of[best]:,.0f} with {best}"
        return "\n\n".join([self.title, sweep_table(AXIS, runs), answer])

    def document(self) -> dict[str, object]:
        """Return the answer and the rate with each number of contexts, for ``--json``."""
        runs = self.runs
        unit, rates = rates_of(runs)
        return {
            "title": self.title,
            "contexts": _wanted(runs),
            "unit": unit,
            "rates": {str(contexts_of(run)): rate for run, rate in zip(runs, rates, strict=True)},
        }


def advise(config: Path, overrides: Sequence[str], variant: str | None, quick: bool, how: How) -> Advice:
    """Run *variant* of *config* with several numbers of contexts; *quick* runs its smaller version.

    Raises:
        BadInput: all problems of the configuration, or *variant* does not select a single case.
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
    """Return the number of contexts of *run*."""
    return int(run.point[AXIS])


def _by(case: Case) -> Literal["allocation_group", "hash", "processor"]:
    """Return the rule that picks the context of an inode."""
    flusher = case.scenario.kernel.flusher
    return flusher.by if isinstance(flusher, ParallelSpec) else "allocation_group"


def _most(case: Case) -> int:
    """Return the largest number of contexts to try."""
    machine = build(case.scenario, 0)
    if _by(case) != "allocation_group":
        return machine.processors.count
    groups = int(max(sb.bdi.groups for sb in machine.mounts.values()))
    if groups == 1:
        raise bad(
            "kernel.flusher",
            "all inodes are in one allocation group and thus in one context;"
            ' give { kind = "parallel", by = "hash" }',
        )
    return groups


def _wanted(runs: Sequence[Run]) -> int:
    """Return the smallest number of contexts that is good enough."""
    _, rates = rates_of(runs)
    enough = (1 - SHORT_OF_BEST) * max(rates)
    return min(contexts_of(run) for run, rate in zip(runs, rates, strict=True) if rate >= enough)


def _next(runs: Sequence[Run]) -> int | None:
    """Return the next number to try: the middle between too few and enough contexts; None at the end."""
    wanted = _wanted(runs)
    below = max((count for run in runs if (count := contexts_of(run)) < wanted), default=wanted)
    return (below + wanted) // 2 if wanted - below > 1 else None
