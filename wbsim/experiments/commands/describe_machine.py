"""`wbsim describe-machine`: write a machine file for this machine, or for a copy of /proc and /sys."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wbsim.experiments.commands.options import directory

if TYPE_CHECKING:
    from tarfile import TarInfo

HELP = "write a machine file from the contents of /proc and /sys"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "root", nargs="?", type=Path, default=Path("/"), metavar="DIR|TAR",
        help="a folder or a tarball that contains copies of proc and sys at any depth; default: this machine",
    )  # fmt: skip
    parser.add_argument(
        "--costs", type=Path, metavar="CAPTURE", help="add the costs from a capture that was made with --cpu"
    )
    parser.add_argument(
        "--measure", action="store_true",
        help="measure the costs of system calls on this machine, with half a minute of writes and creates,"
        " or more on a machine that is busy; needs root",
    )  # fmt: skip
    parser.add_argument(
        "--out",
        type=directory,
        metavar="FILE.toml",
        help="write the machine file there; `like` finds it by its name",
    )


def execute(arguments: Namespace) -> int:
    """Print the machine file, or write it to --out; return 0.

    *arguments* are the parsed options of `add_options`.  With --measure, first measure the costs of system
    calls on this machine; --costs then gives only the costs of the flusher.  --out may replace an earlier
    machine file of this command, but no other file.  Bad input raises `BadInput`: `cli` ends with status 2.
    """
    import sys

    from wbsim.experiments.config.problems import bad
    from wbsim.experiments.machines.costs import scales_of
    from wbsim.experiments.machines.describe import ASSUMED, BEGINS, describe
    from wbsim.experiments.machines.measure import cost_lines, measure, with_captured
    from wbsim.experiments.running.store import refuse_foreign, replace_whole

    if arguments.out is not None:
        refuse_foreign(arguments.out, BEGINS, "machine")
    costs = ASSUMED if arguments.costs is None else scales_of(arguments.costs).lines()
    if arguments.measure:
        if arguments.root.resolve() != Path("/"):
            raise bad("--measure", f"measures this machine, not {arguments.root}; leave one of them out")
        captured = () if arguments.costs is None else costs
        costs = with_captured(cost_lines(measure()), captured)
    root = arguments.root
    text = _describe_tarball(root, costs) if _is_file(root) else describe(root, costs)
    if arguments.out is None:
        print(text, end="")
    else:
        replace_whole(arguments.out, lambda path: path.write_text(text))
        print(f'wrote {arguments.out}; use it with machine.like = "./{arguments.out.name}"', file=sys.stderr)
    return 0


def _describe_tarball(path: Path, costs: Sequence[str]) -> str:
    """Describe the machine in the tarball *path*; see `experiments.machines.describe.describe`.

    Errors name the place in the tarball.

    Raises:
        BadInput: *path* is not a tarball, or its files do not describe a machine.
    """
    import tarfile
    import zlib
    from tempfile import TemporaryDirectory

    from wbsim.experiments.config.problems import BadInput, bad
    from wbsim.experiments.machines.describe import describe
    from wbsim.experiments.machines.dump import is_wanted
    from wbsim.sim.text_files import MOST_BYTES

    with TemporaryDirectory() as folder:
        try:
            with tarfile.open(path) as tar:
                members = [member for member in tar if is_wanted(member.name)]
                if sum(member.size for member in members) > MOST_BYTES:
                    raise tarfile.TarError(f"holds more than {MOST_BYTES >> 20} MiB")
                tar.extractall(folder, members, filter=_inside)
        except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
            message = f"is not a tarball ({_first_line(error)}); give a tarball of proc and sys"
            raise bad(str(path), message) from None
        try:
            return describe(Path(folder), costs)
        except BadInput as error:
            places = [
                problem._replace(place=problem.place.replace(folder, str(path))) for problem in error.problems
            ]
            raise BadInput(places) from None


def _inside(member: TarInfo, folder: str) -> TarInfo | None:
    """Return *member* as tarfile's data filter changes it; None for a device or a path out of *folder*."""
    import tarfile

    try:
        return tarfile.data_filter(member, folder)
    except tarfile.FilterError:
        return None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:100]


def _is_file(root: Path) -> bool:
    """Return whether *root* is a file.

    Raises:
        BadInput: *root* is not a valid path, or cannot be looked up.
    """
    from wbsim.experiments.config.problems import bad

    try:
        return root.is_file()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise bad(str(root)[:100], f"{why}; give / or a copy of a machine's /proc and /sys") from None
