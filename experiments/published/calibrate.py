"""The fit of the calibrated constants: a command that anyone can rerun.

Three constants of P13's machine are fitted, each to the rows that it names in `models.catalogue.machines`:

* ``writer_scale`` to the system time of the unpatched run;
* ``flusher_scale`` and ``exit_time`` together: what a file costs the flusher without the patch (by the
  other unpatched rows, least squares of their relative errors) and with it (by the patched wall time
  alone).  The unpatched column cannot tell the two apart: with one request a file they are one sum.

All other patched rows are predictions.

Two constants of N10's machine are fitted, each to the throughput of one row: ``writer_scale`` and the
device's ``link``. No row of extents is used.

Four constants of V13's are fitted, each to one row of the kernel before the patches: the ``scale`` of its
processors to the creation of files, ``item_ns`` of the CIL's lock to their removal, both of XFS; ``visit_ns``
of a cached inode to 101 syncs at once; ``chain_ns`` of the inode hash to ext4's lookup.

Two constants of W25's machine are fitted: the one that is its ``writer_scale`` and its ``flusher_scale``, to
the throughput of one flusher with both workloads on the PM9A3; ``line_from_far`` to that of several with the
first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any, Final

from wbsim.experiments.config.experiment import Case, load
from wbsim.experiments.published.figures import METRICS, published_rows
from wbsim.experiments.published.reproduce import config_path
from wbsim.experiments.running.runner import Outcome, run_all
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.scenario import PathCosts
from wbsim.sim.param import Origin, Spec

START: Final[Mapping[str, float]] = {"writer_scale": 2.0, "flusher_scale": 2.0, "exit_time": 5_000}
STEPS: Final = {
    "writer_scale": 0.01, "flusher_scale": 0.01, "exit_time": 100, "link": 1_000_000,
    "scale": 0.01, "item_ns": 1, "visit_ns": 1, "chain_ns": 1,
}  # fmt: skip
"""What the constants are rounded to: finer than the fit can tell."""
CLOSE_ENOUGH: Final = 0.01
"""The fit ends when no target is to move by more than this; the tolerance of the claims is 0.05."""
MAX_ROUNDS: Final = 8


@dataclass(frozen=True)
class Fit:
    """The fitted constants beside the committed ones, and the relative errors that remain."""

    fitted: dict[str, float]
    committed: dict[str, float]
    errors: dict[str, float]
    rounds: int

    @property
    def agrees(self) -> bool:
        """Whether the fit gives the committed constants."""
        return self.fitted == self.committed


def calibrate_p13(seed: int, progress: bool, tell: Callable[[str], None]) -> Fit:
    """Fit P13's constants from `START` on, at full size."""
    constants = dict(START)
    for number in range(1, MAX_ROUNDS + 1):
        constants = {name: _rounded(name, value) for name, value in constants.items()}
        unpatched, patched = _run(constants, seed, progress)
        errors = _log_errors(load(config_path("plug.toml")).cases, (unpatched, patched))
        change = {
            "sys": -errors["P13-sys-u"],
            "unpatched": -(
                errors["P13-wall-u"] - errors["P13-rate-u"] - errors["P13-iops-u"] - errors["P13-bw-u"]
            )
            / 4,
            "patched": -errors["P13-wall-p"],
        }
        wanted = {name: f"{100 * value:+.1f} %" for name, value in change.items()}
        tell(f"round {number}: {_shown(constants)}; to change by {_shown(wanted)}")
        if max(map(abs, change.values())) < CLOSE_ENOUGH:
            break
        constants = _improved(constants, change, patched)
    committed = _calibrated(MACHINES["p13-vm"].processors)
    return Fit(constants, committed, {key: exp(error) - 1 for key, error in errors.items()}, number)


def calibrate_n10(seed: int, progress: bool, tell: Callable[[str], None]) -> Fit:
    """Fit N10's: the writers' scale to the throughput of one dd, the way to the array to that of two."""
    constants: dict[str, float] = {"writer_scale": 2.0, "link": 600_000_000}
    experiment = load(config_path("streams.toml"))
    for number in range(1, MAX_ROUNDS + 1):
        constants = {name: _rounded(name, value) for name, value in constants.items()}
        overrides = [
            f"machine.processors.writer_scale={constants['writer_scale']}",
            f'machine.device.link="{int(constants["link"])} B/s"',
        ]
        cases = [
            c for c in load(config_path("streams.toml"), overrides).cases if c.variant in ("one", "two-same")
        ]
        jobs = [(case, replication) for case in cases for replication in range(experiment.replications)]
        errors = _log_errors(cases, run_all(jobs, seed, progress))
        change = {"writer_scale": errors["N10-one-bw"], "link": -errors["N10-two-same-bw"]}
        wanted = {name: f"{100 * value:+.1f} %" for name, value in change.items()}
        tell(f"round {number}: {_shown(constants)}; to change by {_shown(wanted)}")
        if max(map(abs, change.values())) < CLOSE_ENOUGH:
            break
        constants = {name: value * exp(change[name]) for name, value in constants.items()}
    machine = MACHINES["n10-vm"]
    committed = {"writer_scale": machine.processors.writer_scale, "link": machine.disks["vdb"].device.link}  # type: ignore[attr-defined]
    fitted = {
        key: exp(error) - 1 for key, error in errors.items() if key in ("N10-one-bw", "N10-two-same-bw")
    }
    return Fit(constants, committed, fitted, number)


_V13: Final = {
    "scale": ("V13-xfs-create-u", ("writer_scale={}", "flusher_scale={}")),
    "item_ns": ("V13-xfs-unlink-u", ('paths.filesystems.xfs.flusher.log.item_ns="{} ns"',)),
    "visit_ns": ("V13-cleansync-total-u", ('paths.inodes.visit_ns="{} ns"',)),
    "chain_ns": ("V13-ext4-lookup-u", ('paths.inodes.chain_ns="{} ns"',)),
}
"""Each constant's row, and where it stands in ``machine.processors``."""


def calibrate_v13(seed: int, progress: bool, tell: Callable[[str], None]) -> Fit:
    """Fit V13's, each to its row; what one moves of another's row, the next round mends."""
    constants: dict[str, float] = {"scale": 2.0, "item_ns": 150, "visit_ns": 100, "chain_ns": 50}
    for number in range(1, MAX_ROUNDS + 1):
        constants = {name: _rounded(name, value) for name, value in constants.items()}
        overrides = [
            f"machine.processors.{key.format(constants[name])}"
            for name, (_, keys) in _V13.items()
            for key in keys
        ]
        rows = {row for row, _ in _V13.values()}
        cases = [case for case in load(config_path("inodes.toml"), overrides).cases if rows & set(case.rows)]
        errors = _log_errors(cases, run_all([(case, 0) for case in cases], seed, progress))
        change = {name: -errors[row] for name, (row, _) in _V13.items()}
        wanted = {name: f"{100 * value:+.1f} %" for name, value in change.items()}
        tell(f"round {number}: {_shown(constants)}; to change by {_shown(wanted)}")
        if max(map(abs, change.values())) < CLOSE_ENOUGH:
            break
        constants = {name: value * exp(change[name]) for name, value in constants.items()}
    cpu = MACHINES["v13-vm"].processors
    xfs: Any = cpu.paths.filesystems["xfs"]
    committed = {
        "scale": cpu.writer_scale, "item_ns": xfs.flusher.log.item_ns,
        "visit_ns": cpu.paths.inodes.visit_ns, "chain_ns": cpu.paths.inodes.chain_ns,
    }  # fmt: skip
    return Fit(constants, committed, {row: exp(errors[row]) - 1 for row, _ in _V13.values()}, number)


def calibrate_w25(seed: int, progress: bool, tell: Callable[[str], None]) -> Fit:
    """Fit W25's: the scale of all work to the throughputs of one flusher, so that their relative errors are
    opposite, and the time of a line that all write to that of several.
    """
    scale, line_ns = 0.15, 490.0
    targets, contended = ("W25-A-pm-u", "W25-B-pm-u"), "W25-A-pm-p"
    for number in range(1, MAX_ROUNDS + 1):
        scale, line_ns = round(scale, 3), round(line_ns)
        overrides = [f"machine.processors.{name}={scale}" for name in ("writer_scale", "flusher_scale")]
        overrides.append(f'machine.processors.line_from_far="{line_ns} ns"')
        experiment = load(config_path("fragmentation.toml"), overrides)
        cases = [case for case in experiment.cases if {*targets, contended} & set(case.rows)]
        errors = _log_errors(cases, run_all([(case, 0) for case in cases], seed, progress))
        change = sum(errors[row] for row in targets) / len(targets)
        line_change = 2 * errors[contended]  # half of an operation's time is on the lines
        wanted = f"{100 * change:+.1f} %, {100 * line_change:+.1f} %"
        tell(f"round {number}: scale {scale}, line {line_ns} ns; to change by {wanted}")
        if max(abs(change), abs(line_change)) < CLOSE_ENOUGH:
            break
        scale, line_ns = scale * exp(change), line_ns * exp(line_change)
    committed = _calibrated(MACHINES["w25-server"].processors)
    remain = {row: exp(errors[row]) - 1 for row in (*targets, contended)}
    fitted = dict.fromkeys(committed, scale) | {"line_from_far": line_ns}
    return Fit(fitted, committed, remain, number)


def _calibrated(cpu: Spec) -> dict[str, float]:
    """The constants of *cpu* that are marked as calibrated."""
    return {
        name: getattr(cpu, name)
        for name in type(cpu).model_fields
        if (given := cpu.given(name)) is not None and given.origin is Origin.CALIBRATED
    }


def _run(constants: Mapping[str, float], seed: int, progress: bool) -> tuple[Outcome, Outcome]:
    experiment = load(
        config_path("plug.toml"),
        [
            f"machine.processors.writer_scale={constants['writer_scale']}",
            f"machine.processors.flusher_scale={constants['flusher_scale']}",
            f'machine.processors.exit_time="{int(constants["exit_time"])} ns"',
        ],
    )
    jobs: list[tuple[Case, int]] = [(case, 0) for case in experiment.cases]
    unpatched, patched = run_all(jobs, seed, progress)
    return unpatched, patched


def _log_errors(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> dict[str, float]:
    """log(simulated / published) of the rows that *cases* stand for; the geometric mean of several runs of
    one.
    """
    errors = {}
    for row in published_rows():
        case = next((case for case in cases if row.id in case.rows), None)
        if case is not None and row.value is not None:
            metric = METRICS[row.metric, row.unit]
            runs = [metric.whole(outcome) for outcome in outcomes if outcome.variant == case.variant]
            errors[row.id] = sum(log(value / row.value) for value in runs) / len(runs)
    return errors


def _improved(
    constants: Mapping[str, float], change: Mapping[str, float], patched: Outcome
) -> dict[str, float]:
    """The constants that change the flusher's time per file as wanted, were its time all that counts.

    Unpatched a file costs ``scale * (inode + request) + exit``, patched the request's part is shared
    by the *n* files of a request.
    """
    inode_ns, request_ns = _flusher_ns(MACHINES["p13-vm"].processors.paths)
    n = patched.samples[-1].count / (patched.write_iops * patched.wall_time)
    scale, exit_ns = constants["flusher_scale"], constants["exit_time"]
    unpatched_ns = (scale * (inode_ns + request_ns) + exit_ns) * exp(change["unpatched"])
    patched_ns = (scale * (inode_ns + request_ns / n) + exit_ns / n) * exp(change["patched"])
    scale = (patched_ns - unpatched_ns / n) / (inode_ns * (1 - 1 / n))
    return {
        "writer_scale": constants["writer_scale"] * exp(change["sys"]),
        "flusher_scale": scale,
        "exit_time": max(unpatched_ns - scale * (inode_ns + request_ns), 0),
    }


def _flusher_ns(paths: PathCosts) -> tuple[int, int]:
    """The flusher's time per inode of one page, and per request, on the reference machine."""
    writeback, block = paths.writeback, paths.block
    fs: Any = paths.filesystems["xfs"].flusher  # type: ignore[attr-defined]
    inode_ns = (
        writeback.take_ns
        + writeback.inode_ns
        + writeback.requeue_ns
        + fs.map_ns
        + fs.page_ns
        + fs.log.commit_ns
    )
    return inode_ns, block.request_ns + block.insert_ns + block.dispatch_ns


def _rounded(name: str, value: float) -> float:
    steps = round(value / STEPS[name])
    return round(steps * STEPS[name], 2) if STEPS[name] < 1 else steps * STEPS[name]


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


CALIBRATIONS: Final = {"P13": calibrate_p13, "V13": calibrate_v13, "N10": calibrate_n10, "W25": calibrate_w25}
"""The fits, by report."""
