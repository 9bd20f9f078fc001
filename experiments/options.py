"""What the command line `wbsim` takes."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any, NoReturn


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}; see {self.prog} --help", file=sys.stderr)
        raise SystemExit(2)


def parser_of_wbsim() -> ArgumentParser:
    """What the command line takes; ``command`` is the name of the one that was given."""
    parser = _Parser(
        prog="wbsim",
        description="A discrete-event laboratory of the Linux writeback path.",
        epilog="start with: wbsim reproduce P13 --quick",
        formatter_class=RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    _run_options(commands)
    _reproduce_options(commands)
    _calibrate_options(commands)
    _params_options(commands)
    _layout_options(commands)
    _plot_options(commands)
    _explain_options(commands)
    _advise_options(commands)
    _replay_options(commands)
    _capture_options(commands)
    return parser


def _run_options(commands: Any) -> None:
    run = commands.add_parser("run", help="simulate one experiment")
    run.set_defaults(command="run")
    run.add_argument("config", nargs="?", type=Path, metavar="CONFIG.toml")
    run.add_argument("--fs-mark", metavar="LINE", help="an fs_mark command line, run on P13's machine")
    run.add_argument(
        "--set", action="append", default=[], metavar="KEY.PATH=VALUE", help="override a setting"
    )
    run.add_argument(
        "--locks", choices=["lock_stat", "perf"],
        help="print the locks, too, as /proc/lock_stat or perf lock contention do",
    )  # fmt: skip
    _common(run)


def _reproduce_options(commands: Any) -> None:
    reproduce = commands.add_parser("reproduce", help="published figures against simulated ones")
    reproduce.set_defaults(command="reproduce")
    reproduce.add_argument(
        "reports", nargs="*", metavar="REPORT", help="such as P13; all that are modelled by default"
    )
    reproduce.add_argument("--quick", action="store_true", help="smaller experiments, in less memory")
    reproduce.add_argument(
        "--replications", type=_positive, metavar="N", help="as each configuration says by default"
    )
    _common(reproduce)


def _calibrate_options(commands: Any) -> None:
    calibrate = commands.add_parser("calibrate", help="refit the calibrated constants and compare")
    calibrate.set_defaults(command="calibrate")
    calibrate.add_argument("report", choices=["P13", "V13", "N10", "W25"])
    calibrate.add_argument("--seed", type=_natural, default=1)


def _params_options(commands: Any) -> None:
    params = commands.add_parser("params", help="every number with its unit, origin and source")
    params.set_defaults(command="params")
    params.add_argument("config", nargs="?", type=Path, metavar="CONFIG.toml", help="plug.toml by default")
    params.add_argument("--json", action="store_true")


def _layout_options(commands: Any) -> None:
    layout = commands.add_parser(
        "layout", help="where the files of a run lie, as xfs_bmap or filefrag print it"
    )
    layout.set_defaults(command="layout")
    layout.add_argument("config", type=Path, metavar="CONFIG.toml")
    layout.add_argument("--variant", metavar="NAME", help="of several")
    layout.add_argument("--mount", metavar="NAME", help="of several")
    layout.add_argument("--filefrag", action="store_true", help="as filefrag -v prints it, on XFS, too")
    layout.add_argument(
        "--set", action="append", default=[], metavar="KEY.PATH=VALUE", help="override a setting"
    )
    layout.add_argument("--seed", type=_natural, default=1)
    layout.add_argument("--out", type=Path, metavar="DIR", help="draw the disk there")


def _plot_options(commands: Any) -> None:
    plot = commands.add_parser("plot", help="draw what a run wrote with --out")
    plot.set_defaults(command="plot")
    plot.add_argument("directory", type=Path, metavar="DIR")


def _explain_options(commands: Any) -> None:
    explain = commands.add_parser(
        "explain", help="where the threads of a run spent their time, and what held it back"
    )
    explain.set_defaults(command="explain")
    explain.add_argument("directory", type=Path, metavar="DIR", help="what a run wrote with --out")
    explain.add_argument("--json", action="store_true", help="print one JSON document, draw nothing")


def _advise_options(commands: Any) -> None:
    advise = commands.add_parser("advise", help="how many writeback contexts a device wants")
    advise.set_defaults(command="advise")
    advise.add_argument("config", type=Path, metavar="CONFIG.toml")
    advise.add_argument("--variant", metavar="NAME", help="of several")
    advise.add_argument("--quick", action="store_true", help="the smaller run that the configuration names")
    advise.add_argument(
        "--set", action="append", default=[], metavar="KEY.PATH=VALUE", help="override a setting"
    )
    _common(advise)


def _replay_options(commands: Any) -> None:
    replay = commands.add_parser("replay", help="judge a capture of a real kernel, decision by decision")
    replay.set_defaults(command="replay")
    replay.add_argument(
        "capture", type=Path, metavar="CAPTURE", help="ftrace's text or blkparse's; plain, gz or xz"
    )
    replay.add_argument("--device", metavar="MAJ:MIN", help="of several; the header's by default")
    replay.add_argument("--max-sectors-kb", type=_positive, metavar="N", help="where the header does not say")
    replay.add_argument("--max-segments", type=_positive, metavar="N", help="where the header does not say")
    replay.add_argument("--nomerges", type=_natural, metavar="N", help="where the header does not say")
    replay.add_argument("--scheduler", metavar="NAME", help="where the header does not say")
    replay.add_argument("--kernel", metavar="NAME", help="what if this kernel had been given the same bios")
    replay.add_argument(
        "--out", type=Path, metavar="DIR", help="with --kernel: draw what each era would have issued"
    )
    replay.add_argument("--json", action="store_true", help="print one JSON document")


def _capture_options(commands: Any) -> None:
    capture = commands.add_parser("capture", help="record such a capture on this machine (root)")
    capture.set_defaults(command="capture")
    capture.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="packed if it ends in .xz or .gz"
    )
    capture.add_argument(
        "--device", metavar="MAJ:MIN", help="whose limits to note; that of most bios by default"
    )
    capture.add_argument(
        "--buffer-mib", type=_positive, default=64, metavar="N", help="room for events, per processor"
    )
    capture.add_argument(
        "run", nargs="+", metavar="COMMAND", help="after --; a sync comes before and after it"
    )


def _common(parser: ArgumentParser) -> None:
    parser.add_argument("--seed", type=_natural, default=1)
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the results there")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--engine",
        choices=["simpy", "light", "compiled"],
        help="all give the same results; compiled by default where it was built, else light",
    )


def _natural(text: str) -> int:
    if not text.isdigit():
        raise ValueError
    return int(text)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise ValueError
    return int(text)


_natural.__name__, _positive.__name__ = "whole number", "number of one or more"
