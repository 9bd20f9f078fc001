"""`wbsim calibrate`: refit the calibrated constants, or take the costs of a machine from a capture."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import add_json, add_running, directory, how_of, print_json

HELP = "fit the calibrated constants again and compare, or take a machine's costs from a capture"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("report", nargs="?", choices=["P13", "V13", "N10", "W25"], help="the report to fit")
    choice.add_argument(
        "--from", type=Path, dest="capture", metavar="CAPTURE",
        help="print the costs in a capture that was made with --cpu, as keys of a machine file",
    )  # fmt: skip
    parser.add_argument(
        "--machine",
        type=directory,
        metavar="FILE.toml",
        help="write the fitted constants there, as a machine file",
    )
    add_running(parser)
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Fit the constants of a report and print them; return 0, or 1 if one is not the committed one.

    *arguments* are the parsed options of `add_options`.  With --machine, write the fitted constants to a new
    file.  With --from, fit nothing: print the costs in the capture and return 0.  Bad input raises
    `BadInput`, for which `cli` ends with status 2.
    """
    import sys

    _check_file(arguments.machine, of_a_fit=arguments.capture is None)
    if arguments.capture is not None:
        from wbsim.experiments.machines.costs import scales_of

        scales = scales_of(arguments.capture)
        if arguments.json:
            print_json({"flusher_scale": scales.flusher, "writer_scale": scales.writer, "why": scales.why})
        else:
            print("\n".join([*scales.table(), *scales.lines()]))
        return 0

    from wbsim.experiments.published.calibrate import CALIBRATIONS
    from wbsim.experiments.published.fit import fit, machine_file
    from wbsim.experiments.published.tables import fit_table
    from wbsim.experiments.running.store import replace_whole

    calibration = CALIBRATIONS[arguments.report]()
    result = fit(calibration, how_of(arguments), lambda line: print(line, file=sys.stderr, flush=True))
    if arguments.json:
        print_json(result.document())
    else:
        print(fit_table(result))
    if arguments.machine is not None:
        text = machine_file(calibration, result, f"wbsim calibrate {arguments.report}")
        replace_whole(arguments.machine, lambda path: path.write_text(text))
    return 0 if result.agrees else 1


def _check_file(file: Path | None, *, of_a_fit: bool) -> None:
    """Check, before the long fit, that *file* can be written and that nothing is lost by it.

    Raises:
        BadInput: there is no fit, the file exists, or its folder is missing.
    """
    from wbsim.experiments.config.problems import bad

    if file is None:
        return
    if not of_a_fit:
        raise bad("--machine", "is for the fit of a report; leave it out with --from")
    if os.path.lexists(file):
        raise bad(f"--machine {file}", "exists; give another file, or remove this one")
    if not file.parent.is_dir():
        raise bad(f"--machine {file}", "is in no folder; make the folder, or give another file")
