"""What names a run: a digest of all that decides what it measures."""

from __future__ import annotations

from hashlib import blake2b

from wbsim.experiments.config.resolved import canonical, resolved
from wbsim.experiments.running.jobs import Job
from wbsim.experiments.running.version import model_version
from wbsim.models.scenario import Scenario


class Names:
    """Names of jobs; the text of a scenario is made once."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[Scenario, str]] = {}

    def identity(self, job: Job) -> str:
        """One line of JSON: the model's version, the dice, and every number of the scenario."""
        scenario = job.case.scenario
        if id(scenario) not in self._texts:
            self._texts[id(scenario)] = scenario, canonical(resolved(scenario))
        dice = f'"replication":{job.replication},"seed":{job.seed}'
        return f'{{"model":"{model_version()}",{dice},"scenario":{self._texts[id(scenario)][1]}}}'

    def name(self, job: Job) -> str:
        """20 hexadecimal digits."""
        return blake2b(self.identity(job).encode(), digest_size=10).hexdigest()
