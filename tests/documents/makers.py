"""The makers of the numbers, tables and pictures in documents, each with the run that they come from.

A maker runs commands in a separate directory and returns texts by name.  These are blocks, numbers, and the
data of pictures (NAME.csv or NAME.json), which `tests.documents.pictures` draws.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from tests.desk.rows import rows
from tests.desk.table import lines
from tests.documents.array_figures import figures_of_arrays
from tests.documents.places import CONFIGS, EXAMPLES, RATE_TITLE, ROOT
from wbsim.experiments.captures.conditions import Options, conditions_of
from wbsim.experiments.captures.merge_decisions import steps_of
from wbsim.experiments.captures.reader import open_capture
from wbsim.experiments.captures.what_if import what_if
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import load
from wbsim.experiments.config.values import amount
from wbsim.experiments.formats.kernel_rules import histories_table
from wbsim.experiments.formats.table import table
from wbsim.experiments.published.figures import METRICS, published_rows
from wbsim.experiments.results.figures import COLUMNS
from wbsim.experiments.running.execute import How, run_jobs
from wbsim.experiments.running.jobs import Job
from wbsim.experiments.running.results import read_results
from wbsim.experiments.running.simulate import simulate
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.models.catalogue.mkfs import Target, made_ext4, made_xfs
from wbsim.models.kernel_rules.table import RULES
from wbsim.models.release import release_of
from wbsim.sim.units import MIB


class Maker(NamedTuple):
    """A maker of the results ``names``; a ``quick`` one takes less than half a minute."""

    make: Callable[[Path], dict[str, str]]
    names: tuple[str, ...]
    quick: bool = False


def printed(*words: str) -> str:
    """Return the output of a command.

    Raises:
        AssertionError: the command failed.
    """
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        status = main(list(words))
    assert status == 0, errors.getvalue()
    return out.getvalue()


def _dataset(directory: Path, config: str, *options: str) -> pd.DataFrame:
    """Run a configuration and return its dataset."""
    printed("run", str(CONFIGS / config), "--out", str(directory), *options)
    return pd.read_parquet(directory / "dataset.parquet")


def _table(text: str, first: str) -> str:
    """Return the lines of *text* from the table header *first* on, without the cost of the run itself."""
    lines = text[text.index(first) :].splitlines()
    return "\n".join(line.rstrip() for line in lines if "s of CPU" not in line).rstrip()


def p13(directory: Path) -> dict[str, str]:
    """Return the table of P13."""
    return {"p13": _table(printed("reproduce", "P13"), "figure ")}


def j09(directory: Path) -> dict[str, str]:
    """Return the table of J09, below its command."""
    return {"j09": "$ wbsim reproduce J09\n" + _table(printed("reproduce", "J09"), "figure ")}


def explained(directory: Path) -> dict[str, str]:
    """Return the bottlenecks of P13's runs, the flushers' time for each file, and the times of threads."""
    printed("run", str(CONFIGS / "plug.toml"), "--out", str(directory))
    text = printed("explain", str(directory))
    verdicts = [line for line in text.splitlines() if "held back by" in line]
    table = text[text.index("flushers, us a file") :].splitlines()
    shown = (
        "flushers",
        "---",
        "system pages",
        "system allocate",
        "system request",
        "system insert",
        "system dispatch",
    )
    rows = [line for line in table if line.startswith(shown)]
    last = next(line for line in table if line.startswith("all "))
    lives = [
        {"variant": of.variant, "wall_time": of.wall_time, "lives": of.lives, "uses": of.uses}
        for of in read_results(directory).outcomes
    ]
    return {"explain": "\n".join([*verdicts, "", *rows, "...", last]), "lives.json": _json(lives)}


def extents(directory: Path) -> dict[str, str]:
    """Return the tables of N10 and W25."""
    table = _table(printed("reproduce", "N10", "W25"), "figure ")
    return {"n10-w25": table[: table.index("\n\n")]}


def inodes(_: Path) -> dict[str, str]:
    """Return V13's operations and syncs, without the slow ones: ext4's creat, and syncs next to fs_mark."""
    published = {row.id: row for row in published_rows()}
    cases = [case for case in load(CONFIGS / "inodes.toml").cases if "fs_mark" not in case.variant]
    cases = [case for case in cases if "ext4-create" not in case.variant]
    fitted = {
        target
        for number in cases[0].scenario.numbers()
        if number.provenance
        for target in number.provenance.targets
    }
    lines = []
    for case, outcome in zip(
        cases, run_jobs([Job(case, 1) for case in cases], How()).all_outcomes(), strict=True
    ):
        for row in (published[name] for name in case.rows):
            simulated = METRICS[row.metric, row.unit].whole(outcome)
            error = f"{100 * (simulated / row.value - 1):+.1f} %" if row.value else "-"
            role = "calibrated" if row.id in fitted else "predicted"
            lines.append((row.id, f"{row.value or '5-10'}", row.unit, f"{simulated:.4g}", error, role))
    return {"v13": table(("figure", "published", "unit", "simulated", "error", "role"), sorted(lines))}


def threads(directory: Path) -> dict[str, str]:
    """Return the requests that the plug saves, against the number of streams, with three replications."""
    config = str(CONFIGS / "plug_threads.toml")
    printed("sweep", config, "--replications", "3", "--out", str(directory))
    of = pd.read_parquet(directory / "dataset.parquet")
    iops = of.pivot_table(index="threads", columns="variant", values="write_iops_per_s")
    saved = 1 - iops["patched"] / iops["unpatched"]
    apart = 1 - iops["patched-72-processors"] / iops["unpatched-72-processors"]
    data = of[
        ["variant", "threads", "replication", "write_iops_per_s", "file_rate_per_s", "request_size_kib"]
    ]
    return {
        "threads.csv": data.to_csv(index=False, float_format="%.6g"),
        "threads.to-16": f"{100 * saved[saved.index <= 16].min():.0f}",
        "threads.from-17": f"{100 * saved[saved.index > 16].min():.0f}",
        "threads.apart-from-17": f"{100 * apart[apart.index > 16].max():.0f}",
        "threads.apart-last": f"{100 * apart.iloc[-1]:.0f}",
    }


def advised(directory: Path) -> dict[str, str]:
    """Return the advised number of flushers for W25's machine."""
    config = str(CONFIGS / "fragmentation.toml")
    text = printed("advise", config, "--variant", "A-pm-p", "--quick", "--out", str(directory))
    table = text[text.index("contexts ") :].splitlines()
    contexts = ("1", "2", "4", "8", "12")
    rows = [line for line in table[2:] if line.split(" ")[0] in contexts and "enough" not in line]
    last = next(line for line in table if "are enough" in line or "is enough" in line)
    return {"advise": "\n".join([*(line.rstrip() for line in table[:2] + rows), "...", last])}


def two_disks(directory: Path) -> dict[str, str]:
    """Return the output of a run with a program on each of two disks."""
    text = printed("run", "two_disks.toml")
    command = "$ wbsim run two_disks.toml\n"
    return {"two-disks": command + text[text.index("Two kinds") :].rstrip()}


def programs(directory: Path) -> dict[str, str]:
    """Return the blocks of docs/programs.md: the file that each shows, and what wbsim prints for it."""
    shown = {}
    for name, file, command in (
        ("faulty-job-file", "db.fio", "run db.toml"), ("overwrite", "overwrite.toml", "run overwrite.toml"),
        ("rename", "rename.toml", "run rename.toml"),
    ):  # fmt: skip
        text = (EXAMPLES / file).read_text()
        config = EXAMPLES / command.split()[1]
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(errors), chdir(config.parent):
            main(["run", config.name])
        lines = [line.rstrip() for line in (out.getvalue() or errors.getvalue()).splitlines()]
        shown[name] = "\n".join([f"$ cat {file}", text.rstrip(), f"$ wbsim {command}", *_short(lines)])
    return shown


def fsyncs(directory: Path) -> dict[str, str]:
    """Return the histograms of fsync of the picture in docs/programs.md."""
    printed("run", str(EXAMPLES / "fsync.toml"), "--out", str(directory))
    rows = ["dirty_bytes,latency_ns,calls"]
    for outcome in read_results(directory).outcomes:
        size = outcome.point["kernel.dirty.dirty_bytes"]
        bins = outcome.programs["db"].calls["fsync"].bins_ns
        rows += [f"{size},{latency},{calls}" for latency, calls in bins.items()]
    return {"fsync.csv": "\n".join(rows) + "\n"}


def garbage(directory: Path) -> dict[str, str]:
    """Return the runs of drives in several states: over time, and the amplification of each."""
    frame = _dataset(directory, "garbage.toml")
    names = ("write_bandwidth", "write_amplification", "held_writers")
    rows = [
        (row["variant"], *(f"{row[COLUMNS[name]]:#.3g}" for name in names)) for _, row in frame.iterrows()
    ]
    return {"garbage.csv": _levels(directory), "garbage": table(("variant", *names), rows)}


def fsync_drives(directory: Path) -> dict[str, str]:
    """Return the histograms of fsync by drive."""
    printed("run", str(CONFIGS / "fsync_drives.toml"), "--out", str(directory))
    rows = ["variant,latency_ns,calls"]
    for outcome in read_results(directory).outcomes:
        (program,) = outcome.programs.values()
        rows += [f"{outcome.variant},{ns},{calls}" for ns, calls in program.calls["fsync"].bins_ns.items()]
    return {"fsync-drives.csv": "\n".join(rows) + "\n"}


def big_copy(directory: Path) -> dict[str, str]:
    """Return the samples of a copy to three drives over time."""
    printed("run", str(CONFIGS / "big_copy.toml"), "--out", str(directory))
    return {"big-copy.csv": _levels(directory)}


def small_limits(directory: Path) -> dict[str, str]:
    """Return the rate of ten streams against the limit of dirty memory."""
    printed("sweep", str(CONFIGS / "small_limits.toml"), "--out", str(directory))
    frame = pd.read_parquet(directory / "dataset.parquet")
    names = ["on_disk_bandwidth", "on_disk_request_size"]
    data = frame[["variant", "kernel.dirty.dirty_bytes", *(COLUMNS[name] for name in names)]]
    return {"small-limits.csv": data.to_csv(index=False, float_format="%.6g")}


def drives(_: Path) -> dict[str, str]:
    """Return the drives of the catalogue beside their figures."""
    return {"drives": "$ wbsim compare-drives\n" + printed("compare-drives").rstrip()}


def _short(lines: list[str]) -> list[str]:
    """Return the first table of a run and the table of its calls; all *lines* if they have no table."""
    starts = [number for number, line in enumerate(lines) if " call " in f" {line}"]
    if not starts:
        return lines
    end = lines.index("")
    return [*lines[:end], "...", *lines[starts[0] :]]


def extents_streams(directory: Path) -> dict[str, str]:
    """Return the extents against the number of streams."""
    of = _dataset(directory, "extents_streams.toml")
    data = of[["variant", "streams", "extents_per_file", "mean_extent_kib", "file_bandwidth_mb_per_s"]]
    return {"extents.csv": data.to_csv(index=False, float_format="%.6g")}


def raid(directory: Path) -> dict[str, str]:
    """Return the curves of the experiments with arrays and with a controller."""
    sweeps = {
        "raid-threads": ("raid_threads.toml", "threads", "file_rate", "write_iops", "read_iops"),
        "raid-allocsize": (
            "raid_allocsize.toml", "mounts.data.allocsize", "extents_per_file", "read_iops",
            "on_disk_bandwidth",
        ),
        "stripe-cache": (
            "stripe_cache.toml", "machine.arrays.md0.stripe_cache_size", "file_bandwidth", "read_iops",
        ),
        "controller": ("controller.toml", "jobs", "write_iops", "w_await"),
    }  # fmt: skip
    data = {}
    for name, (config, x, *figures) in sweeps.items():
        frame = _dataset(directory / name, config)
        columns = frame[["variant", x, *(COLUMNS[figure] for figure in figures)]]
        data[f"{name}.csv"] = columns.to_csv(index=False, float_format="%.6g")
    return data


def raid_figures(_: Path) -> dict[str, str]:
    """Return the published figures of arrays and controllers, beside the model."""
    return {"raid-figures": figures_of_arrays()}


def patches(directory: Path) -> dict[str, str]:
    """Return the wall time and processors of each operation with V13's patches, alone and combined."""
    of = _dataset(directory, "patches.toml")
    columns = of["variant"], of["operation"], of["wall_time_s"], of["system_cpu_time_s"]
    cells = {
        (variant, operation): f"{wall_s:#.4g} ({cpu_s / wall_s:.1f})"
        for variant, operation, wall_s, cpu_s in zip(*columns, strict=True)
    }
    operations = list(dict.fromkeys(of["operation"]))
    rows = [
        (name, *(cells[name, operation] for operation in operations)) for name in dict.fromkeys(of["variant"])
    ]
    return {"patches": table(("s (processors in the kernel)", *operations), rows)}


def processors(directory: Path) -> dict[str, str]:
    """Return bulkstat's inodes a second and used processors against processors."""
    of = _dataset(directory, "inode_processors.toml")
    data = of[["variant", "processors", "file_rate_per_s", "system_processors", "waiting_processors"]]
    return {"processors.csv": data.to_csv(index=False, float_format="%.6g")}


def mkfs(_: Path) -> dict[str, str]:
    """Return what mkfs chooses for drives of three sizes, by the kernel of its time."""
    sizes = {"100 GB": 100 * 10**9, "500 GB": 500 * 10**9, "4 TB": 4 * 10**12}
    columns = ("XFS groups on a disk", "on an SSD", "reverse mapping", "XFS log, MiB", "ext4 journal, MiB")
    lines = [f"| kernel | drive | {' | '.join(columns)} |", f"|{'---|' * (2 + len(columns))}"]
    for kernel, (name, size) in product(("3.10", "4.15", "5.15", "6.12"), sizes.items()):
        release = release_of(kernel)
        disk, ssd = (
            made_xfs(Target(size, rotates=rotates, processors=16), release) for rotates in (True, False)
        )
        journal = made_ext4(Target(size), release).journal.size
        cells = (
            kernel, name, disk.agcount, ssd.agcount, "yes" if disk.rmapbt else "no", disk.log.size // MIB,
            journal // MIB,
        )  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return {"mkfs": "\n".join(lines)}


def rules(_: Path) -> dict[str, str]:
    """Return the history of each rule that depends on the release of the kernel."""
    return {"rules": histories_table(RULES)}


def desk(_: Path) -> dict[str, str]:
    """Return the model's errors against a real kernel, for all workloads measured on the desk."""
    return {"desk": "\n".join(lines(rows()))}


def disk(_: Path) -> dict[str, str]:
    """Return the extents of eight dd streams of report N10 on the disk."""
    case = load(CONFIGS / "streams.toml").only_case("eight")
    flushed = replace(case, scenario=case.scenario.model_copy(update={"sync_after": True}))
    (mount,) = simulate(flushed, 1).mounts.values()
    rows = [
        (file, *row, mount.filesystem.group_blocks)
        for file, of in enumerate(mount.filesystem.layouts())
        for row in of.extent_table().tolist()
    ]
    columns = ["file", "page", "block", "pages", "group_blocks"]
    return {"disk.csv": pd.DataFrame(rows, columns=columns).to_csv(index=False)}


def eras(_: Path) -> dict[str, str]:
    """Return the lengths (sectors) of the requests that the plugs of each era issue for a captured run."""
    capture = open_capture(ROOT / "tests" / "captures" / "fsmark-xfs-ag8.trace.xz")
    of = conditions_of(capture, Options(kernel="3.11"))
    issued = what_if(steps_of(capture.events(), of.scheduler), PLUG_RULES, of.limits, of.device)
    lengths = {name: dict(sorted(of_era.lengths.items())) for name, of_era in issued.items()}
    document = {"capture": capture.path.name, "era": of.era, "asked": of.what_if_era, "lengths": lengths}
    return {"eras.json": _json(document)}


def j09_time(directory: Path) -> dict[str, str]:
    """Return the samples of J09's runs over time."""
    printed("run", str(CONFIGS / "pdflush.toml"), "--out", str(directory))
    return {"j09-time.csv": _levels(directory)}


RATE = f'''
title = "{RATE_TITLE}"

[scenario]
machine.like = "j09-server"
kernel.like = "2.6.30"
filesystem.like = "j09-ext4"
workload.command = "fio --ioengine=psync --rw=write --bs=4k --rate=30m --create_on_open=1 --fallocate=none \
--numjobs=4 --nrfiles=1 --size=512m --name=j --directory=/mnt"

[variants.pdflush]

[variants.per_bdi]
kernel.flusher = {{ kind = "per_bdi", exits_after = "300 s" }}
'''
"""J09's machine under four writers that no throttle holds back."""


def j09_rate(directory: Path) -> dict[str, str]:
    """Return the samples of the two runs of `RATE` over time."""
    config = directory / "rate.toml"
    config.write_text(RATE)
    printed("run", str(config), "--out", str(directory / "out"))
    return {"j09-rate.csv": _levels(directory / "out")}


def j09_grid(directory: Path) -> dict[str, str]:
    """Return the utilisation of J09's disk over patterns, memory and writers."""
    printed("sweep", str(CONFIGS / "pdflush_grid.toml"), "--out", str(directory))
    of = pd.read_parquet(directory / "dataset.parquet")
    data = of[["variant", "workload.rw", "machine.memory.memory", "workload.numjobs", COLUMNS["utilisation"]]]
    sizes = [amount(int(size), "B") for size in data["machine.memory.memory"]]
    return {
        "j09-grid.csv": data.assign(**{"machine.memory.memory": sizes}).to_csv(
            index=False, float_format="%.4g"
        )
    }


def tornado_p13(directory: Path) -> dict[str, str]:
    """Return the effects of the guesses on the patched write IOPS of P13."""
    return {
        "tornado-p13.json": _sensitivity("plug.toml", "--variant=patched", "--figure=write_iops", "--sobol=0")
    }


def tornado_w25(directory: Path) -> dict[str, str]:
    """Return the effects of the guesses on the throughput of W25's flushers."""
    options = ("--variant=A-pm-p", "--figure=file_bandwidth", "--trajectories=4", "--sobol=16")
    return {"tornado-w25.json": _sensitivity("fragmentation.toml", *options)}


def _sensitivity(config: str, *options: str) -> str:
    """Return the JSON document of an analysis of the smaller run of *config*, without its refusals."""
    document = json.loads(printed("sensitivity", str(CONFIGS / config), "--quick", "--json", *options))
    return _json({name: part for name, part in document.items() if name != "refusals"})


def _levels(directory: Path) -> str:
    """Return the samples over time of the runs in *directory* as CSV."""
    frames = [
        pd.DataFrame({"variant": of.variant, **{name: [*values] for name, values in of.levels.items()}})
        for of in read_results(directory).outcomes
    ]
    return pd.concat(frames).to_csv(index=False)


def _json(document: object) -> str:
    return json.dumps(document, indent=1) + "\n"


MAKERS = (
    Maker(two_disks, ("two-disks",), quick=True),
    Maker(programs, ("faulty-job-file", "overwrite", "rename"), quick=True),
    Maker(fsyncs, ("fsync.csv",)),
    Maker(garbage, ("garbage.csv", "garbage")),
    Maker(fsync_drives, ("fsync-drives.csv",)),
    Maker(big_copy, ("big-copy.csv",)),
    Maker(small_limits, ("small-limits.csv",)),
    Maker(raid, ("raid-threads.csv", "raid-allocsize.csv", "stripe-cache.csv", "controller.csv")),
    Maker(raid_figures, ("raid-figures",)),
    Maker(drives, ("drives",)),
    Maker(p13, ("p13",)),
    Maker(j09, ("j09",)),
    Maker(explained, ("explain", "lives.json")),
    Maker(
        threads,
        ("threads.csv", "threads.to-16", "threads.from-17", "threads.apart-from-17",
         "threads.apart-last"),
    ),
    Maker(advised, ("advise",)),
    Maker(extents_streams, ("extents.csv",)),
    Maker(extents, ("n10-w25",)),
    Maker(inodes, ("v13",)),
    Maker(patches, ("patches",)),
    Maker(processors, ("processors.csv",)),
    Maker(mkfs, ("mkfs",), quick=True),
    Maker(rules, ("rules",), quick=True),
    Maker(desk, ("desk",), quick=True),
    Maker(disk, ("disk.csv",)),
    Maker(eras, ("eras.json",)),
    Maker(j09_time, ("j09-time.csv",)),
    Maker(j09_rate, ("j09-rate.csv",)),
    Maker(j09_grid, ("j09-grid.csv",)),
    Maker(tornado_p13, ("tornado-p13.json",)),
    Maker(tornado_w25, ("tornado-w25.json",)),
)  # fmt: skip
