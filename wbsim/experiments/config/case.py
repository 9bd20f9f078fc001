"""Experiments and their cases; each case has one scenario."""

from __future__ import annotations

from dataclasses import dataclass

from wbsim.experiments.config.problems import bad, listed
from wbsim.experiments.config.sweeps import Point
from wbsim.models.scenario import Scenario


@dataclass(frozen=True)
class Case:
    """One case of an experiment: a variant at one point of the sweep; without a sweep the point is empty.

    ``rows``: the ids of the published figures that the case reproduces; ``quick``: the overrides of a shorter
    run.
    """

    variant: str
    point: Point
    scenario: Scenario
    rows: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return a name for tables and files."""
        return "-".join([self.variant, *map(str, self.point.values())])


@dataclass(frozen=True)
class Experiment:
    """A complete, validated configuration; ``axes`` are the names of the swept keys."""

    title: str
    axes: tuple[str, ...]
    cases: tuple[Case, ...]
    replications: int = 1

    def only_case(self, variant: str | None) -> Case:
        """Return the case whose variant or label is *variant*; None: the only case.

        Raises:
            BadInput: no case matches, or several do.
        """
        cases = [case for case in self.cases if variant in (None, case.label, case.variant)]
        if len(cases) != 1:
            names = listed([case.label for case in self.cases])
            what = "is missing" if variant is None else f"{variant} names {len(cases)} runs"
            raise bad("--variant", f"{what}; use one of {names}")
        return cases[0]
