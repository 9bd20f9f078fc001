"""`wbsim capture`: record a capture of the block layer on this machine."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import positive

HELP = "record a capture for wbsim replay on this machine (needs root)"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="the capture; compressed if the name ends in .xz or .gz",
    )
    parser.add_argument(
        "--device",
        metavar="MAJ:MIN",
        help="the device to record the limits of; default: the device with the most bios",
    )
    parser.add_argument(
        "--buffer-mib",
        type=positive,
        default=64,
        metavar="N",
        help="the size of the trace buffer of each processor, in MiB; default: 64",
    )
    parser.add_argument(
        "--cpu", action="store_true", help="also record sched_switch, for calibrate --from (more events)"
    )
    parser.add_argument(
        "run",
        nargs="+",
        metavar="COMMAND",
        help="the command to record, after --; a sync runs before and after it",
    )


def execute(arguments: Namespace) -> int:
    """Record a capture to --out while the command runs; return the command's exit status (-N: signal N).

    *arguments* are the parsed options of `add_options`.  Print the number of bios, and of lost events, on
    stderr.  Without root, or with bad input, raise `BadInput`: `cli` ends with status 2.
    """
    import sys

    from wbsim.experiments.captures.conditions import device_of
    from wbsim.experiments.captures.record import record

    device = device_of(arguments.device)
    recorded = record(arguments.out, arguments.run, arguments.buffer_mib, device, arguments.cpu)
    rest = f", {recorded.foreign_bios} for other devices" if recorded.foreign_bios else ""
    print(f"wrote {arguments.out}: {recorded.bios} bios for {recorded.device}{rest}", file=sys.stderr)
    if recorded.losses:
        print(f"wbsim: {recorded.losses} events were lost; raise --buffer-mib", file=sys.stderr)
    return recorded.status
