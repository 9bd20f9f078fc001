"""`wbsim advise`: the smallest number of writeback contexts whose rate is close to the best rate.

First the case runs with 1, 2, 4 ... contexts for each device, up to a largest number.  If allocation groups
pick the context, this is the number of allocation groups, otherwise the number of processors.  Contexts
behind the last one with work are not tried: with them, every file has the same context.  Then a bisection
finds the smallest number whose rate is within `SHORT_OF_BEST` of the best.

Each number runs with several seeds, `REPLICATIONS` by default, and the mean rate counts.  Numbers whose mean
rates differ by less than the rates of two seeds do are one answer, so the advice is a range.

A context is a set of a device's lists of dirty inodes, with a separate flusher (`ParallelSpec`).  A file
belongs to one context, so a case with one file on each device runs with one context only.

The rate covers the time until the last program ends, as in fio.  The time to write pages that are still dirty
is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final, Literal

from wbsim.experiments.config.case import Case, Experiment
from wbsim.experiments.config.experiment import load, smaller
from wbsim.experiments.config.problems import bad
from wbsim.experiments.formats.table import figure_text, wrapped
from wbsim.experiments.results.outcome import PAUSES_OF, START_OF, Outcome
from wbsim.experiments.running.execute import How, Runs
from wbsim.experiments.running.jobs import Job
from wbsim.experiments.why.answer import cause_of
from wbsim.experiments.why.bottlenecks import SEEN, bottleneck, busy_ns
from wbsim.experiments.why.explain import Run, rates_of, run_of, sweep_table
from wbsim.experiments.why.writeback import nothing_written_back, why_nothing
from wbsim.models.flushers.parallel import ParallelSpec
from wbsim.models.machine import build
from wbsim.models.scenario import Scenario
from wbsim.models.time_accounting import FLUSHER, PROCESS

By = Literal["allocation_group", "hash", "processor"]
"""The rules that pick the context of an inode (`ParallelSpec`)."""
AXIS: Final = "contexts"
SHORT_OF_BEST: Final = 0.05
"""A rate is good enough if it is at most this share below the best rate."""
REPLICATIONS: Final = 2
_FURTHER: Final = re.compile(r":(\d+)/flusher$")
"""The name of a flusher behind the first one of its device."""


@dataclass(frozen=True)
class Advice:
    """The outcomes of the runs; the point of each outcome is its number of contexts.

    ``title`` heads the text.  ``one_file``: no device gets more than one file.
    """

    title: str
    outcomes: list[Outcome]
    one_file: bool = False

    def __str__(self) -> str:
        return self.text()

    @property
    def runs(self) -> list[Run]:
        """The runs of the outcomes, in their order, with several seeds for each number of contexts."""
        return [run_of(outcome) for outcome in self.outcomes]

    def text(self) -> str:
        """Return the table of the runs, and the answer: a number, a range, and what else would help."""
        runs = self.runs
        unit, rate_of = _mean_rates(runs)
        contexts, best = _fewest_contexts(runs), max(rate_of, key=rate_of.__getitem__)
        are = " is" if contexts == 1 else "s are"
        answer = f"{contexts} context{are} enough: {_rate(rate_of[contexts])} {unit}"
        if self.one_file:
            answer = f"one file, so one context: {_rate(rate_of[contexts])} {unit}"
        elif contexts != best:
            answer += f", within {100 * SHORT_OF_BEST:.0f} % of the {_rate(rate_of[best])} with {best}"
        lines = [answer, *self._range_lines(unit), f"what else would help: {self._more()}"]
        return "\n\n".join([self.title, sweep_table(AXIS, runs), "\n".join(map(wrapped, lines))])

    def document(self) -> dict[str, object]:
        """Return the answer, its range, and the mean rate with each number of contexts, for ``--json``.

        ``title`` heads the text, and ``contexts`` is the answer.  ``rates`` has the mean rates by number of
        contexts, which is a text, in ``unit`` ("files/s" or "MiB/s").  ``range`` has the smallest and the
        largest number that the seeds cannot tell from ``contexts``.  ``between_seeds`` is the largest
        difference of two seeds, in ``unit``.  ``held_back_by`` is the bottleneck of the best run in words.
        """
        unit, rate_of = _mean_rates(self.runs)
        return {
            "title": self.title,
            "contexts": _fewest_contexts(self.runs),
            "range": list(self.range),
            "between_seeds": _between_seeds(self.runs),
            "unit": unit,
            "rates": {str(contexts): rate for contexts, rate in rate_of.items()},
            "held_back_by": self._cause(),
        }

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the largest number of contexts that the seeds cannot tell from the answer.

        They enclose numbers whose mean rates differ from the answer's by at most the largest difference of
        two seeds.
        """
        _, rate_of = _mean_rates(self.runs)
        contexts, noise = _fewest_contexts(self.runs), _between_seeds(self.runs)
        tried = sorted(rate_of)
        low = high = tried.index(contexts)
        while low > 0 and abs(rate_of[tried[low - 1]] - rate_of[contexts]) <= noise:
            low -= 1
        while high + 1 < len(tried) and abs(rate_of[tried[high + 1]] - rate_of[contexts]) <= noise:
            high += 1
        return tried[low], tried[high]

    def _range_lines(self, unit: str) -> list[str]:
        low, high = self.range
        if low == high or self.one_file:
            return []
        noise = _rate(_between_seeds(self.runs))
        return [
            f"between {low} and {high} contexts the difference is smaller than that of two seeds"
            f" (up to {noise} {unit})"
        ]

    def _best_run(self) -> Run:
        """Return the first run with the number of contexts that has the best mean rate."""
        _, rate_of = _mean_rates(self.runs)
        best = max(rate_of, key=rate_of.__getitem__)
        return next(run for run in self.runs if contexts_of(run) == best)

    def _cause(self) -> str:
        """Return what holds the best run back, in words."""
        run = self._best_run()
        return cause_of(run.uses, written_back=run.written_back)

    def _more(self) -> str:
        """Return a remedy for what holds the best run back."""
        resource, cause = bottleneck(self._best_run().uses), self._cause()
        if resource is None:
            return f"the best run has no bottleneck ({cause}); wbsim explain shows where its time goes"
        return f"{_remedy(resource.name)}; the bottleneck of the best run: {cause}"


def _remedy(resource: str) -> str:
    """Return what would help if *resource*, as `most_used` names it, is the bottleneck."""
    kind, _, rest = resource.partition(" ")
    if kind == "device":
        return "a faster device, or more members"
    if kind == "lock":
        return "another filesystem, or fewer writers in one place; more contexts wait for the same lock"
    if resource == "processors":
        return "more processors"
    if resource.startswith(PAUSES_OF):
        return "nothing; the programs wait by their own choice"
    if resource.startswith(START_OF):
        return "a longer run, because starting the programs takes most of it"
    if rest.endswith(FLUSHER):
        return "files that are spread more evenly, or with `by` another rule"
    if f"/{PROCESS}" in rest:
        return "more processes, or larger calls of each"
    return "less work for this thread, because it uses one processor only"


def title_of(experiment: Experiment, case: Case) -> str:
    """Return the title of advice on *case*, one of *experiment*: its label follows, if there are several."""
    return f"{experiment.title} ({case.label})" if len(experiment.cases) > 1 else experiment.title


def advise(
    config: Path,
    overrides: Sequence[str],
    variant: str | None,
    quick: bool,
    how: How,
    replications: int = REPLICATIONS,
) -> Advice:
    """Run *variant* of the file *config* with several numbers of contexts; *quick* runs its smaller version.

    *overrides* have the form ``key.path=value``.  *variant*: a variant or the label of a case; None if
    there is one case.  *how*: the settings of the runs.  *replications*: the seeds of each number.  ``wbsim
    advise`` calls this.

    Raises:
        BadInput: all problems of the configuration, *variant* does not select a single case, or a run cannot
            end.  Or nothing was written back, or one context has all files (`advise_on`).
        LawBroken: a run broke a law of the model.
        RuntimeError: a run met a fault of wbsim.
    """
    whole = load(config, overrides)
    case = whole.only_case(variant)
    title = title_of(whole, case)
    if quick:
        case = smaller(config, whole, case, overrides)
    return advise_on(case, title, how, replications, f"{config}: {case.label}")


def advise_on(case: Case, title: str, how: How, replications: int, place: str) -> Advice:
    """Run *case* with several numbers of contexts, each with *replications* seeds; return the advice.

    *title* heads the advice, *how* has the settings of the runs, and *place* is named in errors.

    Raises:
        BadInput: nothing was written back, so the contexts had no work.  Or the configured rule puts all
            files into one context, or a run cannot end.
        LawBroken: a run broke a law of the model.
        RuntimeError: a run met a fault of wbsim.
    """
    groups = _groups(case)
    rule = _rule(case, groups)

    def case_of(contexts: int) -> Case:
        flusher = ParallelSpec(by=rule, contexts=contexts)
        kernel = case.scenario.kernel.model_copy(update={"flusher": flusher})
        return replace(
            case, point={AXIS: contexts}, scenario=case.scenario.model_copy(update={"kernel": kernel})
        )

    one_file = _most_files(case.scenario) == 1
    most = 1 if one_file else _most(case, rule, groups)
    runs = Runs(how, title, (AXIS,))
    if most > 1 and rule != "hash":
        trial = Runs(how._replace(directory=None), title, (AXIS,))  # no answer, so it is not kept
        (outcome,) = trial.run([Job(case_of(most), how.seed)]).all_outcomes()
        most = min(most, _last_with_work(outcome))
    contexts = {*(1 << power for power in range((most - 1).bit_length())), most}
    while True:
        outcomes = runs.run(
            [Job(case_of(n), how.seed, dice) for n in sorted(contexts) for dice in range(replications)]
        ).all_outcomes()
        _refuse_without_work(place, outcomes)
        middle = _next([run_of(outcome) for outcome in outcomes])
        if middle is None:
            return Advice(title, outcomes, one_file)
        contexts.add(middle)


def contexts_of(run: Run) -> int:
    """Return the number of contexts of *run*, one of `Advice.runs`: the value of its point."""
    return int(run.point[AXIS])


def _groups(case: Case) -> int:
    """Return the largest number of allocation groups of a mount; 1 if its filesystem has none."""
    return int(max(sb.bdi.groups for sb in build(case.scenario, 0).mounts.values()))


def _most_files(scenario: Scenario) -> int:
    """Return the largest number of files that the programs make on one device."""
    files: dict[str, int] = {}
    for program in scenario.programs.values():
        for directory, count, _ in program.workload.makes():
            disk = scenario.mounts[scenario.mount_of(directory)].disk
            files[disk] = files.get(disk, 0) + count
    return max(files.values(), default=0)


def _rule(case: Case, groups: int) -> By:
    """Return the rule that picks the context of an inode: the configured one, or one that can spread inodes.

    Without several allocation groups, this is the hash of the inode's number.
    """
    flusher = case.scenario.kernel.flusher
    if isinstance(flusher, ParallelSpec):
        return flusher.by
    return "allocation_group" if groups > 1 else "hash"


def _most(case: Case, rule: By, groups: int) -> int:
    """Return the largest number of contexts to try.

    Raises:
        BadInput: the configured rule puts all inodes into one context.
    """
    if rule != "allocation_group":
        return case.scenario.machine.processors.count
    if groups == 1:
        kinds = " and ".join(dict.fromkeys(mount.filesystem.kind for mount in case.scenario.mounts.values()))
        raise bad(
            "kernel.flusher.by",
            f'"{rule}" puts all files of this {kinds} into one context; give "hash" or "processor"',
        )
    return groups


def _last_with_work(outcome: Outcome) -> int:
    """Return the number of contexts of a device up to the last one whose flusher has worked."""
    nothing_ns = SEEN * max(sum(life.values()) for life in outcome.lives.values())
    worked = [name for name, life in outcome.lives.items() if busy_ns(life) > nothing_ns]
    return 1 + max((int(further[1]) for name in worked if (further := _FURTHER.search(name))), default=0)


def _refuse_without_work(place: str, outcomes: Sequence[Outcome]) -> None:
    """Refuse runs in which no context had work, because their rates do not depend on the contexts.

    Raises:
        BadInput: the programs wrote no file, or nothing was written back before they ended.
    """
    for outcome in outcomes:
        if nothing_written_back(outcome):
            raise bad(place, why_nothing(outcome))
        if not (outcome.file_bytes or outcome.readings["flushed_files"]):
            raise bad(place, "the programs write no files, so no context has work; give one that writes")


def _mean_rates(runs: Sequence[Run]) -> tuple[str, dict[int, float]]:
    """Return the unit, and the mean rate with each number of contexts."""
    unit, rates = rates_of(runs)
    seeds: dict[int, list[float]] = {}
    for run, rate in zip(runs, rates, strict=True):
        seeds.setdefault(contexts_of(run), []).append(rate)
    return unit, {contexts: fmean(several) for contexts, several in seeds.items()}


def _between_seeds(runs: Sequence[Run]) -> float:
    """Return the largest difference between the rates of two seeds with one number of contexts."""
    _, rates = rates_of(runs)
    seeds: dict[int, list[float]] = {}
    for run, rate in zip(runs, rates, strict=True):
        seeds.setdefault(contexts_of(run), []).append(rate)
    return max(max(several) - min(several) for several in seeds.values())


def _rate(rate: float) -> str:
    """Return *rate* without decimals, or with four digits if it is small."""
    return figure_text(rate, 0 if rate >= 100 else None)


def _fewest_contexts(runs: Sequence[Run]) -> int:
    """Return the smallest number of contexts that is good enough."""
    _, rate_of = _mean_rates(runs)
    enough = (1 - SHORT_OF_BEST) * max(rate_of.values())
    return min(contexts for contexts, rate in rate_of.items() if rate >= enough)


def _next(runs: Sequence[Run]) -> int | None:
    """Return the next number to try: the middle between too few and enough contexts; None at the end."""
    high = _fewest_contexts(runs)
    low = max((count for run in runs if (count := contexts_of(run)) < high), default=high)
    return (low + high) // 2 if high - low > 1 else None
