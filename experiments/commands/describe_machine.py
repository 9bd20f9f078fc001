"""`wbsim describe-machine`: a machine file of the machine that it runs on, or of a copy of its /proc and
/sys.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

HELP = "write a machine file from what /proc and /sys say"


def add_options(parser: ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument(
        "root", nargs="?", type=Path, default=Path("/"), metavar="DIR|TAR",
        help="a folder or a tarball with copies of proc and sys; this machine by default",
    )  # fmt: skip
    parser.add_argument(
        "--costs", type=Path, metavar="CAPTURE", help="with the costs that a capture with --cpu tells"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE.toml", help="write it there; like finds it by its name"
    )


def execute(arguments: Namespace) -> int:
    """Print it, or write it; returns the exit status."""
    import sys
    import tarfile
    from tempfile import TemporaryDirectory

    from wbsim.experiments.config.problems import BadInput, bad
    from wbsim.experiments.machines.costs import scales_of
    from wbsim.experiments.machines.describe import ASSUMED, describe
    from wbsim.experiments.running.store import replace_whole
    from wbsim.sim.texts import MOST_BYTES

    costs = ASSUMED if arguments.costs is None else scales_of(arguments.costs).lines()
    if arguments.root.is_file():
        with TemporaryDirectory() as folder:
            try:
                with tarfile.open(arguments.root) as tar:
                    if sum(member.size for member in tar) > MOST_BYTES:
                        raise tarfile.TarError(f"holds more than {MOST_BYTES >> 20} MiB")
                    tar.extractall(folder, filter="data")
            except (tarfile.TarError, OSError) as error:
                raise bad(str(arguments.root), f"is no tarball ({error}); make one of proc and sys") from None
            try:
                text = describe(Path(folder), costs)
            except BadInput as error:
                raise BadInput(
                    [
                        of._replace(place=of.place.replace(folder, str(arguments.root)))
                        for of in error.problems
                    ]
                ) from None
    else:
        text = describe(arguments.root, costs)
    if arguments.out is None:
        print(text, end="")
    else:
        replace_whole(arguments.out, lambda path: path.write_text(text))
        print(f'wrote {arguments.out}; use it with machine.like = "./{arguments.out.name}"', file=sys.stderr)
    return 0
