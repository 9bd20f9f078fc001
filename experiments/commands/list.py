"""`wbsim list`: what a configuration can name."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

HELP = "the machines, disks, kernels, filesystems, workloads and figures that can be named"
_WHAT = ("machines", "disks", "devices", "kernels", "filesystems", "workloads", "figures")


def add_options(parser: ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument("what", choices=_WHAT, metavar="|".join(_WHAT))


def execute(arguments: Namespace) -> int:
    """Print the names, each with a word about it; returns the exit status."""
    from wbsim.experiments.formats.table import table

    heading, rows = _ROWS[arguments.what]()
    print(table(heading, rows, left=len(heading)))
    return 0


_Rows = tuple[tuple[str, ...], list[tuple[str, ...]]]


def _machines() -> _Rows:
    from wbsim.models.catalogue.machines import MACHINES

    rows: list[tuple[str, ...]] = []
    for name, of in MACHINES.items():
        disks = ", ".join(f"{disk} ({drive.device.kind})" for disk, drive in of.disks.items())
        rows.append((name, str(of.processors.count), f"{of.memory.memory / 2**30:.4g} GiB", disks))
    return ("machine", "processors", "memory", "disks"), rows


def _devices() -> _Rows:
    from wbsim.models.catalogue.drives import DRIVES
    from wbsim.models.variants import variants

    rows: list[tuple[str, ...]] = [(name, of.device.kind, "a disk: like") for name, of in DRIVES.items()]
    rows += [(kind, kind, "a device: kind") for kind in variants("devices")]
    return ("name", "kind", "named as"), rows


def _kernels() -> _Rows:
    from wbsim.models.catalogue.kernels import FIRST, KERNELS, LAST

    rows: list[tuple[str, ...]] = [
        (name, of.throttling.kind, of.writeback.plug_scope) for name, of in KERNELS.items()
    ]
    rows.append((f"{FIRST} to {LAST}", "", "any release, by its own rules"))
    return ("kernel", "throttling", "the plug opens around a"), rows


def _filesystems() -> _Rows:
    from wbsim.experiments.formats.table import figure_text
    from wbsim.models.catalogue.filesystems import FILESYSTEMS

    return ("filesystem", "kind", "size"), [
        (name, of.kind, f"{figure_text(of.size / 2**30)} GiB") for name, of in FILESYSTEMS.items()
    ]


def _workloads() -> _Rows:
    from wbsim.models.variants import variants

    rows: list[tuple[str, ...]] = []
    for variant in variants("workloads").values():
        said = (variant.component.__doc__ or "").strip().split("\n")[0]
        rows.append((", ".join(variant.spec.programs), said))
    return ("command", "what it does"), rows


def _figures() -> _Rows:
    from wbsim.experiments.statistics.figures import COLUMNS, FIGURES

    return ("figure", "column of the dataset", "meaning"), [
        (name, COLUMNS[name], of.meaning) for name, of in FIGURES.items()
    ]


_ROWS = {
    "machines": _machines, "disks": _devices, "devices": _devices, "kernels": _kernels,
    "filesystems": _filesystems, "workloads": _workloads, "figures": _figures,
}  # fmt: skip
