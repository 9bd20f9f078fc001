"""The results of runs on disk: each run has a directory.

DIR/plan.json                     the last command: title, axes, and each run's variant, point and name
DIR/runs/NAME/config.json         the resolved configuration, seed and replication, and the model's version
DIR/runs/NAME/summary.json        the figures of the run: the same bytes on every machine
DIR/runs/NAME/iterations.parquet  the counters at the end of each iteration
DIR/runs/NAME/levels.parquet      the levels over time (`experiments.results.outcome`)
DIR/runs/NAME/run.json            versions, command, processor time and memory
DIR/failed/NAME/                  the same files for a failed run, with traceback.txt
DIR/dataset.parquet               a row for each run of the plan (`experiments.results.dataset`)
DIR/jobs.parquet                  a row for each job of fio in each run, if there are any

NAME is a digest of config.json.  A changed configuration or model gets other names, so an old result is never
taken for a new one.  A run is written to a directory aside, which is renamed when it is complete.  This
needs no lock and no repair.  If a process is killed, the next process removes its directory aside.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, replace
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from wbsim.experiments.config.problems import BadInput, bad
from wbsim.experiments.config.resolved_scenario import canonical, resolved
from wbsim.experiments.results.figures import READ
from wbsim.experiments.results.outcome import Outcome, Sample
from wbsim.experiments.running.jobs import Failure, Job
from wbsim.experiments.running.plan import FAILED, PLAN, RUNS, read_plan
from wbsim.experiments.running.reading import level_names
from wbsim.experiments.running.version import model_version
from wbsim.models.scenario import Scenario
from wbsim.sim import COMPILED
from wbsim.sim.build import engine
from wbsim.sim.text_files import text_of
from wbsim.sim.units import GIB

_MOST_SHOWN: Final = 60
"""The letters of a refused path that an error shows."""


class Names:
    """The names of jobs; the JSON of a scenario is made once."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[Scenario, str]] = {}

    def identity(self, job: Job) -> str:
        """Return one line of JSON: the version of the model, seed, replication, and the resolved scenario."""
        scenario = job.case.scenario
        if id(scenario) not in self._texts:
            self._texts[id(scenario)] = scenario, canonical(resolved(scenario))
        numbers = f'"replication":{job.replication},"seed":{job.seed}'
        return f'{{"model":"{model_version()}",{numbers},"scenario":{self._texts[id(scenario)][1]}}}'

    def name(self, job: Job) -> str:
        """Return the name of the directory of *job*: 20 hexadecimal digits, a digest of its `identity`."""
        return blake2b(self.identity(job).encode(), digest_size=10).hexdigest()


_ASIDE: Final = ".aside-"
_NAMED_ELSEWHERE: Final = (
    "variant",
    "point",
    "seed",
    "replication",
    "samples",
    "levels",
    "cpu_s",
    "peak_rss_mib",
)
"""The fields that summary.json omits: plan.json, the parquet files or run.json have them."""
_KEPT: Final = tuple(field.name for field in fields(Outcome) if field.name not in _NAMED_ELSEWHERE)
"""The fields that summary.json has."""
_MOST_SUMMARY_BYTES: Final = GIB  # extents of each file of a large run
_MOST_DIGITS: Final = 20
_SHORT: Final = 200
_SAMPLE: Final = tuple(field.name for field in fields(Sample))
_LIBRARIES: Final = ("wbsim", "simpy", "numpy", "numba", "pydantic")


def refuse_file(target: Path | None, asked_by: str = "--out") -> None:
    """Refuse *target* before anything is simulated unless it is, or can become, a directory; None is fine.

    *asked_by* names the option or the argument in the error.

    Raises:
        BadInput: *target* or a folder above it is a file, or no directory can have this name.
    """
    if target is None:
        return
    try:
        nearest = next(path for path in (target, *target.absolute().parents) if path.exists())
    except (OSError, ValueError) as error:  # a name that no directory can have
        why = getattr(error, "strerror", None) or str(error)
        raise bad(f"{asked_by} {str(target)[:_MOST_SHOWN]!r}", f"{why}; give a directory") from None
    if not nearest.is_dir():
        raise bad(f"{asked_by} {target}", f"{nearest} is a file; give a directory")


def refuse_other_experiment(directory: Path, title: str, axes: Sequence[str]) -> None:
    """Refuse *directory* if its plan has another title or other axes, because a new plan would replace it.

    A directory without a plan, with an empty or with a damaged one, may be used.

    Raises:
        BadInput: the directory has the results of another experiment.
    """
    try:
        plan = read_plan(directory)
    except BadInput:
        return
    if plan.runs and (plan.title, tuple(plan.axes)) != (title, tuple(axes)):
        sweep = f" over {', '.join(plan.axes)}" if plan.axes else ""
        message = f"has the results of another experiment ({plan.title}{sweep}); give another directory"
        raise bad(f"--out {directory}", message)


class Store:
    """The runs below *directory*, which is made if it does not exist.

    The constructor also removes directories that killed processes of this host left aside.

    Raises:
        BadInput: the directory cannot be written.
    """

    def __init__(self, directory: Path, names: Names) -> None:
        self.directory = directory
        self._names = names
        with _writing(directory):
            for folder in (RUNS, FAILED):
                (directory / folder).mkdir(parents=True, exist_ok=True)
            probe = self._place_aside("probe")
            probe.mkdir()
            probe.rmdir()
        self._remove_left_aside()

    def plan(self, title: str, axes: Sequence[str], jobs: Sequence[Job]) -> None:
        """Write plan.json, with *title*, the swept keys *axes* and all *jobs* of this command.

        An earlier plan is replaced; the results of its runs stay.

        Raises:
            BadInput: the plan cannot be written.
        """
        runs = [
            {
                "name": self._names.name(job), "variant": job.case.variant, "point": job.case.point,
                "seed": job.seed, "replication": job.replication,
            }
            for job in jobs
        ]  # fmt: skip
        document = {
            "title": title,
            "axes": list(axes),
            "command": sys.argv,
            "model": model_version(),
            "runs": runs,
        }
        replace_whole(
            self.directory / PLAN, lambda path: path.write_text(json.dumps(document, indent=1) + "\n")
        )

    def find(self, job: Job) -> Outcome | None:
        """Return the kept outcome of *job*, with the variant and the point of *job*; None if it has not run.

        A failed run counts as not run.

        Raises:
            BadInput: the result is damaged.
        """
        directory = self.directory / RUNS / self._names.name(job)
        if not directory.is_dir():
            return None
        outcome = read_run(directory)
        point = job.case.point
        return replace(
            outcome, variant=job.case.variant, point=point, seed=job.seed, replication=job.replication
        )

    def keep(self, job: Job, result: Outcome | Failure) -> None:
        """Write the *result* of *job*: an outcome into `RUNS`, a failure into `FAILED`.

        An outcome removes an earlier failure of the job.  If another process has kept the run, its outcome
        stays.

        Raises:
            BadInput: the result cannot be written.
        """
        name = self._names.name(job)
        failed = isinstance(result, Failure)
        run: dict[str, object] = {
            "state": "failed" if failed else "done", "command": sys.argv, "host": socket.gethostname(),
            "engine": engine(COMPILED), "python": platform.python_version(), "model": model_version(),
            "libraries": _libraries(),
        }  # fmt: skip
        with self._aside(name) as aside:
            (aside / "config.json").write_text(self._names.identity(job) + "\n")
            if isinstance(result, Failure):
                run |= {"kind": result.kind, "message": result.message, "attempts": result.attempts}
                (aside / "traceback.txt").write_text(result.traceback or result.message)
            else:
                run |= {"cpu_s": result.cpu_s, "peak_rss_mib": result.peak_rss_mib}
                (aside / "summary.json").write_text(_summary(result))
                rows = {name: [getattr(sample, name) for sample in result.samples] for name in _SAMPLE}
                _write_columns(aside / "iterations.parquet", rows)
                _write_columns(aside / "levels.parquet", result.levels)
            (aside / "run.json").write_text(json.dumps(run, indent=1) + "\n")
            self._put(aside, self.directory / (FAILED if failed else RUNS) / name)
        if not failed:
            shutil.rmtree(self.directory / FAILED / name, ignore_errors=True)

    def peaks_mib(self, jobs: Sequence[Job]) -> dict[str, float]:
        """Return the largest memory (MiB) of the kept runs of *jobs*, by variant.

        A variant without a kept run, or with an unreadable one only, is missing.
        """
        peaks: dict[str, float] = {}
        for job in jobs:
            with suppress(OSError, ValueError, KeyError):
                run = json.loads(text_of(self.directory / RUNS / self._names.name(job) / "run.json"))
                peaks[job.case.variant] = max(peaks.get(job.case.variant, 0.0), run["peak_rss_mib"])
        return peaks

    def _place_aside(self, name: str) -> Path:
        """Return the directory aside for *name*.

        It contains the host and the process ID, so that a later process can see whether this one has ended.
        """
        return self.directory / f"{_ASIDE}{socket.gethostname()}-{os.getpid()}-{name}"

    @contextmanager
    def _aside(self, name: str) -> Iterator[Path]:
        """Make a directory aside for the body, and remove what is left of it afterwards."""
        aside = self._place_aside(name)
        with _writing(self.directory):
            try:
                aside.mkdir()
                yield aside
            finally:
                shutil.rmtree(aside, ignore_errors=True)

    @staticmethod
    def _put(aside: Path, place: Path) -> None:
        """Rename *aside* to *place*; if another process was faster with the same run, its result stays."""
        if place.parent.name == FAILED:
            shutil.rmtree(place, ignore_errors=True)
        try:
            aside.rename(place)
        except OSError:
            if not place.is_dir():
                raise

    def _remove_left_aside(self) -> None:
        """Remove the directories aside of processes of this host that have ended."""
        for aside in self.directory.glob(f"{_ASIDE}{socket.gethostname()}-*"):
            pid = aside.name.removeprefix(f"{_ASIDE}{socket.gethostname()}-").partition("-")[0]
            if pid.isdigit() and not Path(f"/proc/{pid}").exists():
                shutil.rmtree(aside, ignore_errors=True)


def read_run(directory: Path) -> Outcome:
    """Return the outcome that is kept in *directory*, without its variant, point, seed and replication.

    These have neutral values: "", {}, 0 and 0; the plan has the true ones.

    Raises:
        BadInput: a file is missing or damaged, or another version of wbsim wrote other figures.
    """
    import pyarrow.parquet as pq

    with _undamaged(directory, "summary.json"):
        document = _document(text_of(directory / "summary.json", _MOST_SUMMARY_BYTES))
        if not document["wall_time"] > 0:
            raise ValueError("the run has no wall time")
        _refuse_other_version(directory, document)
    with _undamaged(directory, "run.json"):
        run = _document(text_of(directory / "run.json"))
        document |= {name: run[name] for name in ("cpu_s", "peak_rss_mib")}
    for series, name in (("samples", "iterations.parquet"), ("levels", "levels.parquet")):
        with _undamaged(directory, name):
            if not (directory / name).is_file():  # pyarrow would read a directory
                raise FileNotFoundError(name)
            table = pq.read_table(directory / name)
            document[series] = table.to_pylist() if series == "samples" else table.to_pydict()
    with _undamaged(directory, "summary.json"):
        document |= {"variant": "", "point": {}, "seed": 0, "replication": 0}
        outcome = _adapter().validate_python(document)
        if gaps := set(READ) - set(outcome.readings):
            raise ValueError(f"lacks {sorted(gaps)[0]}")
    with _undamaged(directory, "iterations.parquet"):
        if gaps := {name for sample in outcome.samples for name in READ if name not in sample.readings}:
            raise ValueError(f"lacks {sorted(gaps)[0]}")
    with _undamaged(directory, "levels.parquet"):
        if gaps := set(level_names(outcome.disks)) - set(outcome.levels):
            raise ValueError(f"lacks {sorted(gaps)[0]}")
    return outcome


def _refuse_other_version(directory: Path, summary: Mapping[str, object]) -> None:
    """Refuse a *summary* that lacks figures because another version of the model wrote it.

    Raises:
        BadInput: the run's version differs from ours, and figures are missing.
    """
    readings = summary.get("readings")
    present = {*summary, *(readings if isinstance(readings, dict) else ())}
    gap = next((name for name in (*_KEPT, *READ) if name not in present), None)
    made_by = model_version()
    with suppress(OSError, ValueError, LookupError, TypeError):
        made_by = _document(text_of(directory / "run.json"))["model"]
    if gap is not None and made_by != model_version():
        message = f"was written by another version of wbsim ({gap} is missing); run its configuration again"
        raise bad(str(directory / "summary.json"), message)


def read_configuration(directory: Path) -> object:
    """Return the resolved scenario of the run in *directory*, in tables and lists as JSON has them.

    Raises:
        BadInput: config.json is missing or damaged.
    """
    with _undamaged(directory, "config.json"):
        scenario = _document(text_of(directory / "config.json", _MOST_SUMMARY_BYTES))["scenario"]
        for table in (scenario["machine"]["disks"], scenario["programs"], scenario["mounts"]):
            if not isinstance(table, dict) or not all(isinstance(entry, dict) for entry in table.values()):
                raise TypeError("a table was expected")
    return scenario


@contextmanager
def _undamaged(directory: Path, name: str) -> Iterator[None]:
    """Report errors of the body as damage of the file *name* in *directory*.

    Raises:
        BadInput: the body raised an error.
    """
    import pyarrow

    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        why: Exception = error
    except pyarrow.ArrowException as error:
        why = error
    else:
        return
    message = f"{type(why).__name__}: {why}"
    if isinstance(why, ValidationError):
        first = why.errors()[0]
        name = {"levels": "levels.parquet", "samples": "iterations.parquet"}.get(str(first["loc"][0]), name)
        message = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    short = " ".join(message.split())[:_SHORT]
    raise bad(
        str(directory / name), f"is a damaged result ({short}); delete {directory} and run the command again"
    )


def _document(text: str) -> dict[str, Any]:
    """Parse JSON; refuse NaN, infinities and integers of more than 20 digits.

    Raises:
        ValueError: *text* is not such JSON.
    """

    def number(digits: str) -> float:
        if not isfinite(value := float(digits)):
            raise ValueError(f"{digits} is not a number")
        return value

    def whole(digits: str) -> int:
        if len(digits) > _MOST_DIGITS:
            raise ValueError(f"{digits[:_MOST_DIGITS]}... is not a number")
        return int(digits)

    document: dict[str, object] = json.loads(text, parse_constant=number, parse_float=number, parse_int=whole)
    return document


@cache
def _adapter() -> TypeAdapter[Outcome]:
    """Return the reader that checks the type of every field."""
    return TypeAdapter(Outcome)


@cache
def _libraries() -> dict[str, str]:
    """Return the versions of the libraries that decide a result."""
    return {library: version(library) for library in _LIBRARIES}


def _summary(outcome: Outcome) -> str:
    document = {key: value for key, value in asdict(outcome).items() if key not in _NAMED_ELSEWHERE}
    return json.dumps(document, indent=1) + "\n"


def _write_columns(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), path)


def refuse_foreign(path: Path, begins: str, kind: str) -> None:
    """Refuse to replace a file *path* that is not one of wbsim's *kind* files, which begin with *begins*.

    Raises:
        BadInput: *path* exists, and wbsim did not write it or it cannot be read.
    """
    try:
        is_own = not os.path.lexists(path) or text_of(path).startswith(begins)
    except (OSError, ValueError):
        is_own = False
    if not is_own:
        raise bad(f"--out {path}", f"exists and is not a {kind} file of wbsim; give another name")


def replace_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Replace *path* in one step: *write* gets the path of a new file next to it, which is then renamed.

    The folder of *path* is made if it is missing.  The new file does not have the suffix of *path*, so
    *write* must know the format.  If *write* fails, *path* stays as it was.

    Raises:
        BadInput: the folder or the file cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with _writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(partial)
            partial.replace(path)
        finally:
            with suppress(NotADirectoryError):  # then no file was begun
                partial.unlink(missing_ok=True)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Report an OSError of the body as an error that names *path*."""
    try:
        yield
    except OSError as error:
        raise bad(str(path), f"{error.strerror}; give a writable directory") from None
