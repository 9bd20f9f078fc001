"""`wbsim layout`: the extents of the files of a run after a sync(2), as xfs_bmap or filefrag prints them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from wbsim.experiments.commands.options import add_json, add_set, add_variant, directory, natural, print_json

HELP = "print the extents of the files of a run, in the format of xfs_bmap or filefrag"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "config", type=Path, metavar="CONFIG.toml", help="the configuration of the experiment"
    )
    add_variant(parser)
    parser.add_argument("--mount", metavar="NAME", help="the mount; required if there are several")
    parser.add_argument("--filefrag", action="store_true", help="use the format of filefrag -v, also for XFS")
    add_set(parser)
    parser.add_argument(
        "--seed", type=natural, default=1, metavar="N", help="the seed of the random numbers; default: 1"
    )
    parser.add_argument("--out", type=directory, metavar="DIR", help="draw the disk in DIR/disk.png")
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Simulate, print the extents or their JSON, and draw DIR/disk.png with --out; return 0.

    *arguments* are the parsed options of `add_options`.  The files are those of one mount, after a sync(2).
    The format is that of xfs_bmap or filefrag, by the filesystem; --filefrag takes filefrag for all.  Bad
    input, also a missing --mount if there are several, raises `BadInput`: `cli` ends with status 2.
    """
    import sys

    from wbsim.experiments.config.experiment import load
    from wbsim.experiments.pictures.axes import save_png
    from wbsim.experiments.pictures.disk import disk_picture
    from wbsim.experiments.running.layout import extents_of, laid_out, layout_texts
    from wbsim.experiments.running.store import refuse_file, replace_whole

    refuse_file(arguments.out)
    experiment = load(arguments.config, arguments.set)
    case = experiment.only_case(arguments.variant)
    name, filesystem = laid_out(case, arguments.mount, arguments.seed, str(arguments.config))
    if arguments.json:
        print_json({"mount": name, "extents": extents_of(filesystem)})
    else:
        tool = "filefrag" if arguments.filefrag else case.scenario.mounts[name].filesystem.map_tool
        for text in layout_texts(filesystem, tool):
            print(text)
    if arguments.out is not None:
        picture = disk_picture(case.label, filesystem)
        replace_whole(arguments.out / "disk.png", lambda path: save_png(picture, path))
        print(f"wrote {arguments.out / 'disk.png'}", file=sys.stderr)
    return 0
