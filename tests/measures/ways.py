"""Five ways through the code: the files and folders that each touches, and its changes to another file.

A change is a call or a return whose code lies in another file than the step before (`Way.changes`).

Each way is a small run on the interpreted engine *light*, in a new process.  ``NUMBA_DISABLE_JIT=1`` lets the
profile function see what Numba compiles otherwise.  All modules are imported before.

| way | window |
|---|---|
| small page | fs_mark writes a second file of 4 KiB: from the filesystem's part of write(2) to clean |
| large page | dd writes a second file of 256 pages in one call: from its last 224 pages to clean |
| inodes | sync(2) with three dirty inodes, on V13's machine: from the call to the return |
| configuration | ten lines of TOML: `execute` of `wbsim run`, without `run_case` (build, simulate) |
| capture | the smallest committed capture: `execute` of `wbsim replay` |

A count by hand is smaller: 34 files and 130 changes for the small page.  A window holds everything that runs
at the time.  For a page that is the exit of the writer, the flusher's tick and the flusher's empty second
pass.  Every push and pop of the agenda counts, too.  The last column leaves out the layer `sim`: the event
loop and the locks.  The periodic flusher writes the pages, since sync(2) would add its own steps.  `wbsim
run` stays in this process: a loop over `attempt` takes the place of the forked workers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from tests.measures.lines import LAYERS
from tests.measures.prose import ROOT
from tests.measures.tracing import Place, Way, Window, traced

_OPTIONAL: Final = ("wbsim.experiments.running.cluster",)
"""Modules whose packages need not be installed."""
ENVIRONMENT: Final = {"WBSIM_ENGINE": "light", "NUMBA_DISABLE_JIT": "1", "PYTHONHASHSEED": "0"}

_CLEAN: Final = Place("wbsim/models/vfs/superblock.py", "Flight.end")
_APPEND: Final = Place("wbsim/models/filesystems/delalloc.py", "DelallocFilesystem.append")
_WRITE: Final = Place("wbsim/models/filesystems/delalloc.py", "DelallocFilesystem.write")
_RUN: Final = Place("wbsim/experiments/commands/run.py", "execute")
_RUN_CASE: Final = Place("wbsim/experiments/running/simulate.py", "run_case")
_REPLAY: Final = Place("wbsim/experiments/commands/replay.py", "execute")
_SYNC: Final = Place("wbsim/models/syscalls/sync.py", "Syncs.sync")

_PAGE: Final = """\
title = "two writes, each of which the periodic flusher writes back two seconds later or more"
[scenario]
machine.like = "p13-vm"
kernel.like = "3.11-p13"
kernel.writeback.expire = "1 s"
filesystem.like = "p13-xfs"
programs.first = {{ command = "{first}" }}
programs.second = {{ command = "{second}", start = "8 s" }}
programs.sync = {{ command = "sync", start = "12 s" }}
"""
_INODES: Final = """\
title = "a process calls sync(2) while three inodes are dirty"
[scenario]
machine.like = "v13-vm"
kernel.like = "3.11-mmotm"
mounts.scratch = { like = "v13-xfs", at = "/mnt/scratch" }
programs.load = { command = "fs_mark -D 10000 -S0 -n 3 -s 4096 -L 1 -k -d /mnt/scratch/0" }
programs.sync = { command = "sync", start = "1 s" }
"""
_CONFIGURATION: Final = """\
title = "Small files on a small server"

[scenario]
machine.like = "p13-vm"
machine.processors.count = 8
machine.memory = { memory = "128 MiB", kernel_reserve = "0 B" }
machine.device.speed = 0.5
kernel.like = "5.15"
filesystem.like = "p13-xfs"
workload.command = "fs_mark -D 10000 -S0 -n 5 -s 4096 -L 6 -d /srv/0 -d /srv/1"
"""
_CAPTURE: Final = "tests/captures/discards.trace.xz"


class Count(NamedTuple):
    """The numbers of files, folders and changes of a way.

    ``changes_above``: the number of changes if the calls and returns in the layer `sim` are left out.
    """

    name: str
    files: int
    folders: int
    changes: int
    changes_above: int


def simulated(config: str) -> Callable[[], object]:
    """Return a run of the machine that *config* describes; it is built now."""
    from wbsim.experiments.config.experiment import load
    from wbsim.models.machine import build

    with TemporaryDirectory() as directory:
        path = Path(directory, "way.toml")
        path.write_text(config)
        (case,) = load(path).cases
    return build(case.scenario, seed=1).run


def commanded(*arguments: str) -> Callable[[], object]:
    """Return a run of the command line in this process; its output is dropped.

    Raises:
        RuntimeError: its exit status is not 0.
    """
    from wbsim.experiments.cli import main
    from wbsim.experiments.running.jobs import Ended, Job, OnJobProgress, attempt
    from wbsim.experiments.running.workers import Workers

    def in_process(_: Workers, jobs: Sequence[Job], on_progress: OnJobProgress | None) -> Ended:
        del on_progress
        yield from ((place, attempt(job)) for place, job in enumerate(jobs))

    def run() -> None:
        output = StringIO()
        with patch.object(Workers, "run", in_process), redirect_stdout(output), redirect_stderr(output):
            status = main(arguments)
        if status:
            raise RuntimeError(f"wbsim {' '.join(arguments)}: status {status}: {output.getvalue()}")

    return run


def ways() -> dict[str, Way]:
    """Return the five ways; the process must have `ENVIRONMENT`.

    The window of a page is warm: it opens at the last call of `_APPEND` or `_WRITE`, which the second program
    makes.
    """
    import_all()
    fs_mark = "fs_mark -D 10000 -S0 -n 1 -s 4096 -L 1 -k -d /srv/{}"
    dd = "dd if=/dev/zero of=/srv/{} bs=1M count=1"
    with TemporaryDirectory() as directory:
        path = Path(directory, "ten_lines.toml")
        path.write_text(_CONFIGURATION)
        configuration = traced(commanded("run", str(path)), Window(_RUN, _RUN, without=_RUN_CASE))
    return {
        "small page": traced(two_writes(fs_mark), Window(_APPEND, _CLEAN, warm=True)),
        "large page": traced(two_writes(dd), Window(_WRITE, _CLEAN, warm=True)),
        "inodes": traced(simulated(_INODES), Window(_SYNC, _SYNC)),
        "configuration": configuration,
        "capture": traced(commanded("replay", str(ROOT / _CAPTURE)), Window(_REPLAY, _REPLAY)),
    }


def two_writes(command: str) -> Callable[[], object]:
    """Return a run in which two programs run *command*, each on its own path."""
    return simulated(_PAGE.format(first=command.format("0"), second=command.format("1")))


def import_all() -> None:
    """Import every module of the layers, so that no way holds an import."""
    for layer in LAYERS:
        package = import_module(layer.replace("/", "."))
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if module.name not in _OPTIONAL:
                import_module(module.name)


def counts() -> list[Count]:
    """Return the counts of the five ways, from a process of their own.

    Raises:
        RuntimeError: the process failed; the message holds what it wrote.
    """
    command = [sys.executable, "-m", "tests.measures.ways"]
    run = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{run.stderr}")
    found: list[list[Any]] = json.loads(run.stdout)
    return [Count(*one) for one in found]


def count_of(name: str, way: Way) -> Count:
    """Return the counts of *way*."""
    return Count(name, len(way.files), len(way.folders), way.changes, way.without("wbsim/sim").changes)


def report() -> str:
    """Return the table of `counts`."""
    from wbsim.experiments.formats.table import table

    rows = [(of.name, *map(str, of[1:])) for of in counts()]
    return table(("way", "files", "folders", "changes", "without sim"), rows)


if __name__ == "__main__":
    print(json.dumps([count_of(name, way) for name, way in ways().items()]))
