"""Options that several commands share; a function ``add_...`` adds its options to *parser*."""

from __future__ import annotations

import sys
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from wbsim.experiments.config.printable import printable

if TYPE_CHECKING:
    from wbsim.experiments.running.execute import How
    from wbsim.experiments.running.progress import Reporting


_WIDE: Final = 1_000
_DIGITS: Final = 18


class Parser(ArgumentParser):
    """A parser that reports a wrong option in one line on stderr, with the remedy; `cli` builds it."""

    def error(self, message: str) -> NoReturn:
        """Print *message*, cut to 1000 characters, on stderr, and exit with status 2.

        Argparse calls this.
        """
        short = message if len(message) <= _WIDE else f"{message[:_WIDE]} ..."
        print(f"{self.prog}: {printable(short)}; see {self.prog} --help", file=sys.stderr)
        raise SystemExit(2)

    def _get_values(self, action: Action, arg_strings: list[str]) -> object:
        """See `argparse.ArgumentParser`; it would accept ``--seed=--`` as an option without a value."""
        if action.nargs is None and action.option_strings and arg_strings == ["--"]:
            self.error(f"argument {action.option_strings[-1]}: expected one argument")
        return super()._get_values(action, arg_strings)


def natural(text: str) -> int:
    """Return *text* as a whole number from 0 to 10^18 - 1; raise ArgumentTypeError if it is not one."""
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 to {10**_DIGITS - 1}")
    return int(text)


def positive(text: str) -> int:
    """Return *text* as a whole number from 1 to 100000; raise ArgumentTypeError if it is not one."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 100_000:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1 to 100000")
    return int(text)


def directory(text: str) -> Path:
    """Return *text* as a path; raise ArgumentTypeError if *text* is blank, has a NUL or is not UTF-8."""
    try:
        text.encode()  # raises: a table of results cannot hold a path that is not UTF-8
    except UnicodeEncodeError:
        raise ArgumentTypeError(f"{text!r} is not UTF-8; give another path") from None
    if not text.strip() or "\0" in text:
        raise ArgumentTypeError(f"{text!r} is blank or has a NUL character; give a path")
    return Path(text)


class EachOnce(Action):
    """The action of --set: appends KEY=VALUE, but a second value for a key ends the command with status 2.

    A second value would silently replace the first.  ``scenario.KEY`` and ``KEY`` are the same key.
    """

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, *_: object) -> None:
        """Append *values*, which is one KEY=VALUE, to the list in *namespace*; argparse calls this."""
        overrides = getattr(namespace, self.dest)
        keys = {override.partition("=")[0].removeprefix("scenario.") for override in overrides}
        if (key := values.partition("=")[0].removeprefix("scenario.")) in keys:
            parser.error(f"argument --set: {key} is set twice; give each key one value")
        setattr(namespace, self.dest, [*overrides, values])


def add_set(parser: ArgumentParser) -> None:
    """Add ``--set KEY.PATH=VALUE``, which overrides a key and may be repeated for other keys; default: []."""
    parser.add_argument(
        "--set",
        action=EachOnce,
        default=[],
        metavar="KEY.PATH=VALUE",
        help="override a key of the configuration",
    )


def add_variant(parser: ArgumentParser, words: str = "the variant; required if there are several") -> None:
    """Add ``--variant``, which selects a variant and is None by default; its help is *words*."""
    parser.add_argument("--variant", metavar="NAME", help=words)


def add_sources(parser: ArgumentParser) -> None:
    """Add the flag ``--sources``: the command prints the source of each number and the range of a guess."""
    parser.add_argument(
        "--sources", action="store_true", help="below each number, print its source and the range of a guess"
    )


def add_dry_run(parser: ArgumentParser) -> None:
    """Add the flag ``--dry-run`` of `run` and `sweep`, which then print the plan and simulate nothing."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the runs with an estimate of their time; run nothing",
    )


def add_replications(
    parser: ArgumentParser, words: str = "the runs of each case; default: as in the configuration"
) -> None:
    """Add ``--replications``, from 1 and None by default: the runs of each case.  Its help is *words*."""
    parser.add_argument("--replications", type=positive, metavar="N", help=words)


def add_json(parser: ArgumentParser) -> None:
    """Add the flag ``--json``: the command prints one JSON document, with `print_json`, instead of text."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_running(parser: ArgumentParser) -> None:
    """Add --seed, --out, --jobs, --cluster and --engine, for commands that run cases; `how_of` reads them.

    --seed is 1 by default, and the others are None.  `cli` reads --engine itself.
    """
    parser.add_argument(
        "--seed", type=natural, default=1, metavar="N", help="the seed of the random numbers; default: 1"
    )
    parser.add_argument(
        "--out",
        type=directory,
        metavar="DIR",
        help="keep the results in DIR, and do not repeat runs whose results are there",
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="the number of runs at the same time; default: the number of processors",
    )
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="run on the dask cluster at ADDRESS, such as tcp://host:8786"
    )
    parser.add_argument(
        "--engine",
        choices=["simpy", "light", "compiled"],
        help="all engines give the same results; default: compiled if it was built, otherwise light",
    )


def add_figures(parser: ArgumentParser) -> None:
    """Add ``--figure NAME``, which adds a column and may be repeated; default: [].

    `check_figures` checks the names.
    """
    parser.add_argument(
        "--figure",
        action="append",
        default=[],
        metavar="NAME",
        help="add a column with this figure; wbsim list figures has the names",
    )


def check_figures(names: Sequence[str], figures: Sequence[str]) -> None:
    """Check that *names*, which the user gave with --figure, are among *figures*.

    Raises:
        BadInput: a name is not; the message has the nearest one.
    """
    from wbsim.experiments.config.problems import bad, unknown_key

    for name in names:
        if name not in figures:
            raise bad(f"--figure {name}", unknown_key(name, list(figures)).replace("key", "figure", 1))


def how_of(arguments: Namespace) -> How:
    """Return the settings of a run, from the options of `add_running`; progress is shown on a terminal.

    Without a terminal, only long runs report their progress.

    Raises:
        BadInput: --jobs is given with --cluster, or --out is a file.
    """
    from wbsim.experiments.config.problems import bad
    from wbsim.experiments.running.execute import How
    from wbsim.experiments.running.store import refuse_file

    if arguments.cluster is not None and arguments.jobs is not None:
        raise bad("--jobs", "counts the runs on this machine; leave it out with --cluster")
    refuse_file(arguments.out)
    reporting: Reporting = "always" if sys.stderr.isatty() else "long"
    return How(
        arguments.seed, arguments.out, arguments.jobs, arguments.cluster, reporting, shorter_ways(arguments)
    )


_SHORTER: Final = {
    "config": "fewer files or bytes", "quick": "--quick", "replications": "--replications 1",
    "lhs": "fewer points", "trajectories": "--trajectories 2", "sobol": "--sobol 0",
}  # fmt: skip
"""The ways to a shorter run, by the name of the argument that a command needs for it."""


def shorter_ways(arguments: Namespace) -> tuple[str, ...]:
    """Return the ways to a shorter run that the command of *arguments* offers, as words such as "--quick".

    The progress of a long run names them.
    """
    return tuple(way for name, way in _SHORTER.items() if hasattr(arguments, name))


def print_json(document: object) -> None:
    """Print *document* as JSON on stdout, for the commands with --json.

    NaN and infinite numbers become null, also within tables and lists.
    """
    import json

    print(json.dumps(_with_nulls(document), indent=1, allow_nan=False))


def _with_nulls(value: object) -> object:
    """Return *value* with None for each number that JSON lacks, also in tables and lists."""
    if isinstance(value, dict):
        return {key: _with_nulls(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_nulls(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value
