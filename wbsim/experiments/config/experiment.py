"""Experiment configurations: TOML text -> the scenarios of its variants and sweep.

title = "..."                      # what the experiment shows
[scenario]                         # the common scenario; `like` names what a part starts from
machine.like = "p13-vm"
kernel.like = "3.11"
filesystem.like = "p13-xfs"        # one disk and one mount need no name, nor does one program:
workload.command = "fs_mark -D 10000 -S0 ..."
sync_after = true                  # optional: a sync(2) follows; by default, where files are looked at
machine.memory.memory = "16 GiB"   # any number of a spec can be given
[variants.patched]                 # what sets a variant apart
rows = ["P13-wall-p"]              # optional: the published figures that it stands for
kernel.writeback.plug_scope = "slice"
quick = ["workload.loops=12"]      # optional, here or in a variant: what --quick sets
replications = 8                   # optional: how often `wbsim reproduce` runs it
[sweep]                            # optional: see `experiments.config.sweeps`
name = "threads"
points = [
{ value = 1, workload.processes = 1 },
{ value = 2, workload.processes = 2 },
]

Several of them have names (`experiments.config.scenarios`):

machine.disks.sd = { like = "sata-ssd", count = 2 }        # sd0 and sd1, beside those that the machine has
mounts.d = { like = "loop-ext4", each = "sd", at = "/d{n}" }
programs.make = "fs_mark ... -d /d0/a"                     # a path picks its mount
programs.copy = { command = "dd of=/d1/x ...", start = "5 s" }
programs.sync = { command = "sync", start = "4 s", times = 3, every = "10 s" }   # or sync -f PATH
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Final

from wbsim.experiments.config.axes import NOTHING, Asked
from wbsim.experiments.config.case import Case, Experiment
from wbsim.experiments.config.key_places import Places
from wbsim.experiments.config.problems import BadInput, bad
from wbsim.experiments.config.reader import Reader
from wbsim.experiments.config.toml_document import NotToml, document_of
from wbsim.sim.text_files import text_of
from wbsim.sim.units import MIB

MOST_BYTES: Final = 4 * MIB
"""Of a configuration."""


def load(
    file: Path, overrides: Sequence[str] = (), only: str | None = None, asked: Asked = NOTHING
) -> Experiment:
    """The experiment in *file*, with *overrides* of the form ``key.path=value``, and what else is *asked* to
    be swept; of its variants, *only* that one, if it is given.  A name without a folder is also that of a
    configuration of the package.

    Raises:
        BadInput: all that is wrong with it.
    """
    file = _by_name(file)
    try:
        text = text_of(file, MOST_BYTES)
    except OSError as error:
        raise bad(str(file), f"{error.strerror}; give the path of an experiment's .toml file") from None
    except UnicodeDecodeError as error:
        line, byte = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
        what = f"is not text: the byte {byte:#x} is no UTF-8; give an experiment's .toml file, in UTF-8"
        raise bad(f"{file}:{line}", what) from None
    except ValueError:  # a path with a NUL
        raise bad(str(file), "is no path; give that of an experiment's .toml file") from None
    return parse(text, str(file), overrides, only, asked)


def config_path(name: str) -> Path:
    """Return the path of a configuration that comes with the package."""
    return Path(str(files("wbsim.experiments").joinpath("configs", name)))


def _by_name(file: Path) -> Path:
    """Return *file*, or the configuration of the package that has this name where there is no such file."""
    with suppress(OSError, ValueError):  # no file can have such a name
        if file.parent == Path() and not file.exists() and config_path(file.name).is_file():
            return config_path(file.name)
    return file


def parse(
    text: str, name: str, overrides: Sequence[str] = (), only: str | None = None, asked: Asked = NOTHING
) -> Experiment:
    """The experiment in *text*, which is called *name* in messages, and whose job files lie beside that; see
    `load`.

    Raises:
        BadInput: all that is wrong with it.
    """
    try:
        document = document_of(text)
    except NotToml as error:
        raise bad(name if error.line is None else f"{name}:{error.line}", str(error)) from None
    except ValueError as error:
        raise bad(name, str(error)) from None
    return Reader(document, Places(name, text), overrides, Path(name).parent, asked).experiment(only)


def from_command(command: str, overrides: Sequence[str] = (), asked: Asked = NOTHING) -> Experiment:
    """P13's machine and kernel under another fs_mark command.

    Raises:
        BadInput: all that is wrong with it.
    """
    quoted = command.replace("\\", "\\\\").replace('"', '\\"')
    text = f"""title = "fs_mark on P13's machine"
[scenario]
machine.like = "p13-vm"
kernel.like = "3.11"
filesystem.like = "p13-xfs"
workload.command = "{quoted}"
"""
    return parse(text, "--fs-mark", overrides, asked=asked)


def smaller(file: Path, whole: Experiment, case: Case, overrides: Sequence[str] = ()) -> Case:
    """The smaller run that *file* names for *case*, one of *whole*; *overrides* go over what makes it
    smaller.

    Raises:
        BadInput: it names none.
    """
    if not case.quick:
        raise bad("--quick", f"{case.label} names no smaller run; give it quick = [...] in {file}")
    try:
        return load(file, [*case.quick, *overrides]).cases[whole.cases.index(case)]
    except BadInput as error:  # nobody wrote --set
        told = [problem._replace(place=_of_quick(problem.place, case, file)) for problem in error.problems]
        raise BadInput(told) from None


def _of_quick(place: str, case: Case, file: Path) -> str:
    for override in case.quick:
        place = place.replace(f"--set {override}", f"{file}: quick = [{override!r}]")
    return place
