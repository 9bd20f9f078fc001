"""`wbsim replay`: compare the decisions in a capture of a real kernel with those of the model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import directory, natural, positive, print_json

HELP = "compare the model with a capture of a real kernel, decision by decision"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "capture",
        type=Path,
        metavar="CAPTURE",
        help="a text of ftrace or blkparse, plain or compressed (gz, xz)",
    )
    parser.add_argument(
        "--device", metavar="MAJ:MIN", help="the device; default: that of the header, or the only one"
    )
    parser.add_argument(
        "--max-sectors-kb", type=positive, metavar="N", help="the limit, if the header lacks it"
    )
    parser.add_argument(
        "--max-segments", type=positive, metavar="N", help="the limit, if the header lacks it"
    )
    parser.add_argument("--nomerges", type=natural, metavar="N", help="the setting, if the header lacks it")
    parser.add_argument("--scheduler", metavar="NAME", help="the scheduler, if the header lacks it")
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        help="also show the requests that this kernel would issue for the same bios",
    )
    parser.add_argument(
        "--out",
        type=directory,
        metavar="DIR",
        help="with --kernel: draw the requests of each era in DIR/requests.png",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def execute(arguments: Namespace) -> int:
    """Compare and print; return 0, or 1 if a judged decision or full flush differs from the kernel's.

    *arguments* are the parsed options of `add_options`.  With --kernel, also print the requests of that
    kernel for the same bios; --out, which needs --kernel, draws them.  --json prints one document.  The other
    options give what the header of the capture lacks; --device takes precedence over the header.  Assumptions
    are printed on stderr.  Bad input raises `BadInput`: `cli` ends with status 2.
    """
    import sys

    from wbsim.experiments.captures.conditions import Options, conditions_of, device_of
    from wbsim.experiments.captures.merge_decisions import steps_of
    from wbsim.experiments.captures.reader import open_capture
    from wbsim.experiments.captures.replay import replay
    from wbsim.experiments.captures.report import draw_eras, replay_document, replay_text
    from wbsim.experiments.captures.what_if import what_if
    from wbsim.experiments.config.problems import bad
    from wbsim.experiments.running.store import refuse_file
    from wbsim.models.catalogue.kernels import PLUG_RULES

    if arguments.out is not None and arguments.kernel is None:
        raise bad("replay", "--out draws the requests of --kernel; give --kernel, too")
    refuse_file(arguments.out)
    capture = open_capture(arguments.capture)
    names = ("kernel", "scheduler", "nomerges", "max_sectors_kb", "max_segments")
    device = device_of(arguments.device)
    conditions = conditions_of(capture, Options(device, **{name: getattr(arguments, name) for name in names}))
    for note in conditions.notes:
        print(f"wbsim: {capture.path}: {note}", file=sys.stderr)
    verdict = replay(
        steps_of(capture.events(), conditions.scheduler),
        PLUG_RULES[conditions.era],
        conditions.limits,
        conditions.scheduler,
        conditions.device,
    )
    eras = {}
    if conditions.what_if_era is not None:
        eras = what_if(
            steps_of(capture.events(), conditions.scheduler), PLUG_RULES, conditions.limits, conditions.device
        )
    if arguments.out is not None:
        draw_eras(arguments.out / "requests.png", capture.path.name, conditions, eras)
        print(f"wrote {arguments.out / 'requests.png'}", file=sys.stderr)
    if arguments.json:
        print_json(replay_document(capture.path, conditions, verdict, eras))
    else:
        print(replay_text(capture.path, conditions, verdict, eras))
    return 0 if verdict.agrees else 1
