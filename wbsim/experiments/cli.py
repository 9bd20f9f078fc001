"""The command line `wbsim`.

Results go to stdout, everything else to stderr.  The exit status is one of these:

* 0: done.
* 1: a claim does not hold (``calibrate`` disagrees with the committed constants, ``replay`` with the kernel),
  a run was lost, or stdout cannot be written.
* 2: bad input.
* 70: a run broke a law of the model, which is a fault of wbsim.
* 128 + N: signal N ended the command; 141: the reader of stdout has closed the pipe.
* ``capture`` returns the exit status of its command.

Large modules are imported where they are used, so that ``--help`` answers at once.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from argparse import Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final, NoReturn

from wbsim.experiments.commands.options import Parser

COMMANDS: Final = (
    "run", "sweep", "status", "plot", "timeline", "explain", "advise", "sensitivity", "show", "list",
    "diff", "schema", "describe-machine", "describe-drive", "layout", "reproduce", "compare-drives",
    "calibrate", "params", "replay", "capture", "completion",
)  # fmt: skip
"""The commands; each is a module of `experiments.commands`, with an underscore for a hyphen."""


_NOT_TAKEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def parser_of_wbsim() -> Parser:
    """Return the parser of ``wbsim`` with all commands, for `main` and for the command ``completion``.

    The parsed namespace has the name of the command as ``command``, this parser as ``parser``, and the
    command's parser as ``command_parser``.
    """
    parser = Parser(
        prog="wbsim",
        description="A discrete-event simulator of the Linux writeback path.",
        epilog="start with: wbsim reproduce P13 --quick",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="print the versions of wbsim, its model and its engine"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = _module(name)
        command = commands.add_parser(name, help=module.HELP)
        command.set_defaults(command=name, parser=parser, command_parser=command)
        module.add_options(command)
    return parser


class _Version(Action):
    def __call__(self, parser: ArgumentParser, *_: object) -> None:
        """Print the versions and exit."""
        from importlib.metadata import version

        try:
            from wbsim import sim
        except ImportError as error:
            raise SystemExit(_refused_engine(error)) from None
        from wbsim.experiments.running.version import model_version

        engine = sim.build.engine(sim.COMPILED)
        print(f"wbsim {version('wbsim')}, model {model_version()}, {engine} engine", flush=True)
        parser.exit()


def _refused_engine(error: ImportError) -> int:
    """Print why the engine cannot be chosen, and return the exit status; raise any other *error* again."""
    if error.name != "wbsim_compiled":
        raise error
    print(f"wbsim: {error}", file=sys.stderr)
    return 2


def _module(command: str) -> Any:
    return import_module(f"wbsim.experiments.commands.{command.replace('-', '_')}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in *argv*, and return the exit status (module docstring).

    *argv*: the words after ``wbsim``; None: those of this process.  Problems are printed on stderr.  Wrong
    options and --help raise SystemExit, as argparse does; an unexpected exception is not caught.  Side
    effects: --engine is put into the environment (WBSIM_ENGINE), and stdout and stderr may be replaced.
    """
    if sys.stderr is None:  # the caller has closed it
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        print("wbsim: cannot write to stdout, which is closed; redirect it to a file", file=sys.stderr)
        return 1
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # print letters that the locale lacks as escapes
            stream.reconfigure(errors="backslashreplace")
    arguments = Namespace()
    try:
        arguments, rest = parser_of_wbsim().parse_known_args(argv)
        if rest:
            arguments.command_parser.error(f"unrecognized arguments: {' '.join(rest)}")
        if getattr(arguments, "engine", None) is not None:
            os.environ["WBSIM_ENGINE"] = arguments.engine
        status = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _interrupted(arguments, signal.SIGINT)
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as error:
        if error.filename is not None or error.errno not in _NOT_TAKEN:
            raise
        print(f"wbsim: cannot write to stdout: {error.strerror}", file=sys.stderr)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  Python flushes stdout at exit, which would fail again
        return 1
    return status


def _run(arguments: Namespace) -> int:
    """Run the command, and return the exit status.

    All imports that take time come where a signal is heard, because a library may turn its exception into
    another one.
    """
    try:
        import wbsim.sim  # noqa: F401  chooses the engine
    except ImportError as error:
        return _refused_engine(error)
    from wbsim.sim.interrupts import Ended, ended_by_signals

    try:
        with ended_by_signals() as signals:
            try:
                execute: Callable[[Namespace], int] = _module(arguments.command).execute
                return execute(arguments)
            except Exception as error:
                if signals:  # a library turned the exception of the signal into this one
                    raise Ended(signals[0]) from None
                return _status_of(error)
    except Ended as ended:
        return _interrupted(arguments, ended.number)


def _status_of(error: Exception) -> int:
    """Print each problem of bad input in one line, or the broken law; raise any other *error* again."""
    from wbsim.experiments.config.problems import BadInput
    from wbsim.sim.invariants import LawBroken

    if isinstance(error, BadInput):
        for problem in error.problems:
            print(f"wbsim: {problem}", file=sys.stderr)
        return 2
    if isinstance(error, LawBroken):
        request = "this is a fault of wbsim; please report it with the command and the configuration"
        print(f"wbsim: {error}; {request}", file=sys.stderr)
        return 70
    raise error


def _interrupted(arguments: Namespace, number: int) -> int:
    directory = getattr(arguments, "out", None)
    note = "nothing was written"
    if directory is not None and directory.is_dir():
        note = f"the results of finished runs are in {directory}; repeat the command to continue"
    print(f"wbsim: interrupted; {note}", file=sys.stderr)
    return 128 + number


def program() -> NoReturn:
    """Run `main` and end the process with its status; the installed script `wbsim` calls it.

    A signal may come while a library is half loaded.  The library's destructors may then abort Python's
    finalisation, as LLVM's do.  So a process that was ended by a signal skips the finalisation.
    """
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if status > 128:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # the reader is gone or the stream is closed
                stream.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    program()
