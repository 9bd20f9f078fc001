"""`wbsim sensitivity`: how much the assumed numbers could change a figure."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import (
    add_json,
    add_running,
    add_set,
    add_variant,
    how_of,
    natural,
    positive,
    print_json,
)

HELP = "show how far the assumed numbers could change a figure"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "config", type=Path, metavar="CONFIG.toml", help="the configuration of the experiment"
    )
    add_variant(parser)
    parser.add_argument(
        "--figure",
        default="wall_time",
        metavar="NAME",
        help="the figure, such as write_iops; default: wall_time",
    )
    parser.add_argument(
        "--quick", action="store_true", help="run the smaller experiment of the configuration (its key quick)"
    )
    parser.add_argument(
        "--trajectories",
        type=positive,
        default=6,
        metavar="N",
        help="the trajectories of Morris' method; default: 6",
    )
    parser.add_argument(
        "--most",
        type=positive,
        default=5,
        metavar="N",
        help="the assumed numbers in Sobol's method; default: 5",
    )
    parser.add_argument(
        "--sobol",
        type=natural,
        default=32,
        metavar="N",
        help="the base samples of Sobol's method; 0 leaves it out; default: 32",
    )
    add_set(parser)
    add_running(parser)
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Vary the assumed numbers, print the table or its JSON, draw --out/tornado.png, and return 0.

    *arguments* are the parsed options of `add_options`.  The table has the change of --figure by each number.
    --quick runs a smaller experiment, and --sobol 0 leaves Sobol's method out.  A bad configuration, an
    unknown figure, or a --sobol that is no power of two raises `BadInput`: `cli` ends with status 2.
    """
    import sys
    from functools import partial

    from wbsim.experiments.config.experiment import load, smaller
    from wbsim.experiments.pictures.axes import save_png
    from wbsim.experiments.pictures.tornado import tornado
    from wbsim.experiments.running.store import replace_whole
    from wbsim.experiments.why.sensitivity import sensitivity

    experiment = load(arguments.config, arguments.set)
    case = experiment.only_case(arguments.variant)
    if arguments.quick:
        case = smaller(arguments.config, experiment, case, arguments.set)
    how = how_of(arguments)
    analysis = sensitivity(
        case, arguments.figure, how, arguments.trajectories, arguments.most, arguments.sobol
    )
    if arguments.out is not None:
        path = arguments.out / "tornado.png"
        replace_whole(path, partial(save_png, tornado(analysis)))
        print(f"wrote {path}", file=sys.stderr)
    if arguments.json:
        print_json(analysis.document())
    else:
        print(analysis.text())
    return 0
