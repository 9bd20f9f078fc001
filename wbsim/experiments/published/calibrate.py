"""The fits of the calibrated constants, which `wbsim calibrate` repeats.

Each fit begins with neutral values, and its runs have full size.  Rows that no fit uses are predictions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any, Final

from wbsim.experiments.config.experiment import config_path
from wbsim.experiments.published.fit import Calibration, Constant, Errors, each_by_its_own
from wbsim.experiments.published.reproduce import CONFIGS
from wbsim.experiments.results.figures import FIGURES
from wbsim.experiments.results.outcome import Outcome
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.scenario import PathCosts


def _of_processors(*names: str, unit: str = "") -> tuple[str, ...]:
    return tuple(
        f'machine.processors.{name}="{{}}{unit}"' if unit else f"machine.processors.{name}={{}}"
        for name in names
    )


def _p13() -> Calibration:
    """Return the fit of three constants of the machine of report P13 (the plug patch of 2013).

    * ``writer_scale`` is fitted to the system time of the unpatched run.
    * ``flusher_scale`` and ``exit_time`` are fitted together to the flusher's time per file.  Without the
      patch this time follows from the other unpatched rows (least squares of their errors).  With the patch
      it follows from the wall time alone.

    The unpatched rows fix only the sum of these two costs, because each file is one request there.
    """
    cpu = MACHINES["p13-vm"].processors
    rows = ("P13-wall-u", "P13-rate-u", "P13-iops-u", "P13-bw-u", "P13-wall-p")
    constants = {
        "writer_scale": Constant(2.0, 0.01, ("P13-sys-u",), _of_processors("writer_scale"), cpu.writer_scale),
        "flusher_scale": Constant(2.0, 0.01, rows, _of_processors("flusher_scale"), cpu.flusher_scale),
        "exit_time": Constant(5_000, 100, rows, _of_processors("exit_time", unit=" ns"), cpu.exit_time),
    }

    def change(errors: Errors) -> dict[str, float]:
        unpatched = errors["P13-wall-u"] - errors["P13-rate-u"] - errors["P13-iops-u"] - errors["P13-bw-u"]
        return {"sys": -errors["P13-sys-u"], "unpatched": -unpatched / 4, "patched": -errors["P13-wall-p"]}

    return Calibration(config_path(CONFIGS["P13"]), "p13-vm", constants, change, p13_improved)


def p13_improved(
    constants: Mapping[str, float], change: Mapping[str, float], outcomes: Sequence[Outcome]
) -> dict[str, float]:
    """Return the next values of the three constants of P13, from the present *constants*.

    *change* has the logarithms of the factors by which three quantities must change.  These are the system
    time (``sys``), and the flusher's time per file without and with the patch (``unpatched``, ``patched``).
    *outcomes* are those of the runs with *constants*.  ``exit_time`` is in ns, and the scales are factors.

    The flusher's times per file change as wanted if nothing else counts.  Without the patch a file costs
    ``scale * (inode + request) + exit``.  With the patch, the *n* files of a request share the times of
    ``request`` and ``exit``.
    """
    patched = next(outcome for outcome in outcomes if outcome.variant == "patched")
    inode_ns, request_ns = flusher_ns(MACHINES["p13-vm"].processors.paths)
    n = patched.samples[-1].count / (FIGURES["write_iops"].whole(patched) * patched.wall_time)
    scale, exit_ns = constants["flusher_scale"], constants["exit_time"]
    unpatched_ns = (scale * (inode_ns + request_ns) + exit_ns) * exp(change["unpatched"])
    patched_ns = (scale * (inode_ns + request_ns / n) + exit_ns / n) * exp(change["patched"])
    scale = (patched_ns - unpatched_ns / n) / (inode_ns * (1 - 1 / n))
    return {
        "writer_scale": constants["writer_scale"] * exp(change["sys"]),
        "flusher_scale": scale,
        "exit_time": max(unpatched_ns - scale * (inode_ns + request_ns), 0),
    }


def flusher_ns(paths: PathCosts) -> tuple[int, int]:
    """Return the flusher's time per inode of XFS with one page, and per request, at a scale of 1 (ns)."""
    writeback, block = paths.writeback, paths.block
    fs: Any = paths.filesystems["xfs"].flusher  # type: ignore[attr-defined]
    lists_ns = writeback.take_ns + writeback.inode_ns + writeback.requeue_ns
    inode_ns = lists_ns + fs.map_ns + fs.page_ns + fs.log.commit_ns
    return inode_ns, block.request_ns + block.insert_ns + block.dispatch_ns


def _n10() -> Calibration:
    """Return the fit of two constants of report N10.

    ``writer_scale`` is fitted to the throughput of one dd.  ``link``, the bandwidth to the disk array, is
    fitted to the throughput of two.  The rows on extents are not used.
    """
    machine: Any = MACHINES["n10-vm"]
    constants = {
        "writer_scale": Constant(
            2.0, 0.01, ("N10-one-bw",), _of_processors("writer_scale"), machine.processors.writer_scale
        ),
        "link": Constant(
            600_000_000,
            1_000_000,
            ("N10-two-same-bw",),
            ('machine.device.link="{} B/s"',),
            machine.disks["vdb"].device.link,
        ),
    }

    def change(errors: Errors) -> dict[str, float]:
        return {"writer_scale": errors["N10-one-bw"], "link": -errors["N10-two-same-bw"]}

    return Calibration(config_path(CONFIGS["N10"]), "n10-vm", constants, change, each_by_its_own)


def _v13() -> Calibration:
    """Return the fit of four constants of report V13, each to one row of the kernel before the patches.

    * The scale of the processors is fitted to the creation of files on XFS.
    * ``item_ns``, under the lock of the CIL, is fitted to the removal of files on XFS.
    * ``visit_ns``, for each cached inode, is fitted to 101 syncs at once.
    * ``chain_ns``, of the inode hash, is fitted to lookups on ext4.
    """
    cpu: Any = MACHINES["v13-vm"].processors
    item = "paths.filesystems.xfs.flusher.log.item_ns"
    item_ns = cpu.paths.filesystems["xfs"].flusher.log.item_ns
    inodes = cpu.paths.inodes

    def time(start: float, row: str, key: str, committed: float) -> Constant:
        return Constant(start, 1, (row,), _of_processors(key, unit=" ns"), committed)

    scales = _of_processors("writer_scale", "flusher_scale")
    constants = {
        "scale": Constant(2.0, 0.01, ("V13-xfs-create-u",), scales, cpu.writer_scale),
        "item_ns": time(150, "V13-xfs-unlink-u", item, item_ns),
        "visit_ns": time(100, "V13-cleansync-total-u", "paths.inodes.visit_ns", inodes.visit_ns),
        "chain_ns": time(50, "V13-ext4-lookup-u", "paths.inodes.chain_ns", inodes.chain_ns),
    }

    def change(errors: Errors) -> dict[str, float]:
        return {name: -errors[row] for name, constant in constants.items() for row in constant.rows}

    return Calibration(config_path(CONFIGS["V13"]), "v13-vm", constants, change, each_by_its_own)


def _w25() -> Calibration:
    """Return the fit of the one constant of report W25: the scale of its transactions.

    The scale is fitted to the throughputs of one flusher with both workloads on the PM9A3.  After the fit the
    two errors are opposite.
    """
    cpu = MACHINES["w25-server"].processors
    scale = cpu.transaction_scale
    assert scale is not None, "the machine has its fitted value"
    rows = ("W25-A-pm-u", "W25-B-pm-u")
    constants = {"transaction_scale": Constant(0.2, 0.001, rows, _of_processors("transaction_scale"), scale)}

    def change(errors: Errors) -> dict[str, float]:
        return {"transaction_scale": (errors["W25-A-pm-u"] + errors["W25-B-pm-u"]) / 2}

    return Calibration(config_path(CONFIGS["W25"]), "w25-server", constants, change, each_by_its_own)


CALIBRATIONS: Final = {"P13": _p13, "V13": _v13, "N10": _n10, "W25": _w25}
"""The functions that return the fits, by report."""
