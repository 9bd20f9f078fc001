"""`wbsim explain`: how the threads of a run spent their time, and which resource was the bottleneck."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import print_json

HELP = "show how the threads of a run spent their time, and its bottleneck"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "directory", type=Path, metavar="DIR", help="the directory that a command wrote with --out"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document and draw nothing")


def execute(arguments: Namespace) -> int:
    """Print the explanation and draw it into DIR/lives.png, or only print it as JSON; return 0.

    *arguments* are the parsed options of `add_options`.  `BadInput` is raised if DIR has no results that can
    be explained: `cli` ends with status 2.
    """
    import sys
    from functools import partial

    from wbsim.experiments.pictures.axes import save_png
    from wbsim.experiments.pictures.thread_times import thread_times_picture
    from wbsim.experiments.running.results import read_results
    from wbsim.experiments.running.store import replace_whole
    from wbsim.experiments.why.explain import document, explanation, result_of

    result = result_of(read_results(arguments.directory))
    if arguments.json:
        print_json(document(result))
        return 0
    print(explanation(result))
    path = arguments.directory / "lives.png"
    replace_whole(path, partial(save_png, thread_times_picture(result)))
    print(f"wrote {path}", file=sys.stderr)
    return 0
