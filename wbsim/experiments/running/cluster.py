"""Runs jobs on a dask cluster; the process that asked for them keeps the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wbsim.experiments.config.problems import bad
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.jobs import ATTEMPTS, Ended, Failure, Job, OnJobProgress, attempt
from wbsim.experiments.running.version import model_version


class Cluster:
    """Runs jobs on the workers of the scheduler at *address* (``tcp://host:8786``)."""

    def __init__(self, address: str) -> None:
        self._address = address

    def run(self, jobs: Sequence[Job], on_progress: OnJobProgress | None) -> Ended:
        """Run *jobs*, and yield the place in *jobs* and the result of each as it ends.

        A job that was lost, or met a fault of wbsim, runs up to `ATTEMPTS` times.  Workers of a cluster do
        not report their progress, so *on_progress* is not called.

        Raises:
            BadInput: dask is not installed, or no scheduler answers at the address.
        """
        client, as_completed = _client(self._address)
        try:
            places = {self._submit(client, job): place for place, job in enumerate(jobs)}
            attempts = [0] * len(jobs)
            futures = as_completed(list(places))
            for future in futures:
                place = places.pop(future)
                attempts[place] += 1
                result = _result(future)
                if isinstance(result, Failure) and result.again and attempts[place] < ATTEMPTS:
                    once_more = self._submit(client, jobs[place])
                    places[once_more] = place
                    futures.add(once_more)
                    continue
                yield (
                    place,
                    replace(result, attempts=attempts[place]) if isinstance(result, Failure) else result,
                )
        finally:
            client.close()

    @staticmethod
    def _submit(client: Any, job: Job) -> object:
        return client.submit(_attempt, job, model_version(), pure=False)


def _attempt(job: Job, version: str) -> Outcome | Failure:
    """Run *job* on a worker; a worker with other sources than *version* would give other results."""
    if model_version() != version:
        message = f"a worker has the model {model_version()}, not {version}; install the same wbsim on it"
        return Failure("input", message)
    return attempt(job)


def _result(future: Any) -> Outcome | Failure:
    """Return the result of *future*, or a failure if its worker was lost."""
    if future.status == "finished":
        result: Outcome | Failure = future.result()
        return result
    return Failure("lost", f"its worker was lost ({future.exception()})")


def _client(address: str) -> tuple[Any, Any]:
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise bad(
            "--cluster", "needs dask.distributed; install it with pip install 'wbsim[cluster]'"
        ) from None
    try:
        connect: Any = Client
        return connect(address, timeout="5s"), as_completed
    except (OSError, TimeoutError, ValueError) as error:
        raise bad(
            "--cluster", f"{address} does not answer ({error}); give the address of a dask scheduler"
        ) from None
