"""The published figures of arrays and of controllers, each beside a run of the model.

The sources do not say all that a run needs, so the rest of each run is a guess, which `MACHINES` shows.  No
number of the model was fitted to a figure.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Final, NamedTuple

import numpy as np

from tests.harness import LAST
from tests.models.md.rig import Rig
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.formats.table import table
from wbsim.experiments.running.execute import How, run_jobs
from wbsim.experiments.running.jobs import Job
from wbsim.models.bio import Bio, BlockDevice
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.devices.spec import DeviceSpec
from wbsim.models.interfaces import Thread
from wbsim.models.kinds import component_of
from wbsim.models.md.spec import REFERENCE_COSTS, MdCosts
from wbsim.models.time_accounting import DEVICE
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.sync import Completion
from wbsim.sim.units import PAGE_BYTES, S

_FIO: Final = (
    "fio --name=w --directory=/data --rw=randwrite --bs={block} --size={size} --numjobs={jobs} --overwrite=1"
    " --sync=dsync --norandommap --time_based --runtime={seconds}"
)
MACHINES: Final = {
    "P420": (
        'machine.like = "server-2012"', 'kernel.like = "3.11"',
        'machine.disks.d = { like = "smart-array-p420", device.members = { like = "sata-ssd", count = 4 } }',
    ),
    "H710, RAID0": (
        'machine.like = "server-2012"', 'kernel.like = "3.11"', 'machine.memory.memory = "1 GiB"',
        'machine.disks.d = { like = "perc-h710", device.level = "raid0",'
        ' device.members = { like = "disk-2014", count = 2 } }',
    ),
    "H710, RAID5": (
        'machine.like = "server-2012"', 'kernel.like = "3.11"',
        'machine.disks.d = { like = "perc-h710", device.members = { like = "sata-disk", count = 8 } }',
    ),
    "md, null": (
        'machine.like = "server-2024"', 'kernel.like = "6.1"',
        'machine.disks.m = { like = "loop", count = 5 }',
        'machine.arrays.d = { level = "raid5", members = "m", chunk = "64 KiB", bitmap_chunk = "0 B",'
        ' group_thread_cnt = 8, stripe_cache_size = 8192 }',
    ),
    "md, four NVMe": (
        'machine.like = "server-2024"', 'kernel.like = "5.15"', 'machine.processors.count = 64',
        'machine.memory.memory = "8 GiB"', 'machine.disks.m = { like = "p5520-1920gb", count = 4 }',
        'machine.arrays.d = { level = "raid5", members = "m" }',
    ),
}  # fmt: skip
"""The machine of each run, and its kernel."""


class Case(NamedTuple):
    """A published figure, and the run that has it.

    * ``published`` is a rate per second, or of bytes (MB/s) if the command writes ``megabytes``.
    """

    what: str
    published: float
    source: str
    machine: str
    command: str
    overrides: tuple[str, ...] = ()
    megabytes: bool = False


def _fio(block: str, size: str, jobs: int, seconds: int) -> str:
    return _FIO.format(block=block, size=size, jobs=jobs, seconds=seconds)


_BUFFERED: Final = (
    "fio --name=w --directory=/data --rw=randwrite --bs=64k --size=512m --numjobs=32 --overwrite=1"
    " --time_based --runtime=4"
)
_CACHE: Final = "machine.arrays.d.stripe_cache_size = 32768"
_NO_BITMAP: Final = 'machine.arrays.d.bitmap_chunk = "0 B"'
CASES: Final = (
    Case("P420, four SSDs in RAID5, 8 KiB, 64 jobs", 28_508, "WQ", "P420", _fio("8k", "64m", 64, 4)),
    Case("two 1 TB disks in RAID0, sequential", 263, "DM", "H710, RAID0",
         "dd if=/dev/zero of=/data/f bs=1M count=6144", ("sync_after = true",), megabytes=True),
    Case("two 1 TB disks in RAID0, 4 KiB, 512 jobs", 598, "DM", "H710, RAID0", _fio("4k", "8m", 512, 60)),
    Case("write and fsync, one job, controller with a cache", 23_000, "PY", "H710, RAID5",
         _fio("4k", "64m", 1, 1).replace("--sync=dsync", "--fsync=1")),
    Case("RAID5 of null devices, 512 jobs, eight workers", 463_000, "AP", "md, null",
         _fio("4k", "16m", 512, 1)),
    Case("four NVMe drives in RAID5, defaults", 675, "IN", "md, four NVMe", _BUFFERED, megabytes=True),
    Case("the same, 32 768 stripes, eight workers, no bitmap", 1_248, "IN", "md, four NVMe", _BUFFERED,
         (_CACHE, _NO_BITMAP, "machine.arrays.d.group_thread_cnt = 8"), megabytes=True),
)  # fmt: skip


def config_of(case: Case) -> str:
    """Return the configuration of the run of *case*."""
    lines = [
        f'title = "{case.what}"', "[scenario]", *MACHINES[case.machine],
        'mounts.data = { like = "ext4", disk = "d", at = "/data", size = "100 GiB" }',
        f'workload.command = "{case.command}"',
    ]  # fmt: skip
    return "\n".join(lines)


def model_of(case: Case) -> float:
    """Return the figure of *case* in the model."""
    (of_run,) = parse(config_of(case), "case.toml", case.overrides).cases
    (outcome,) = run_jobs([Job(of_run, 1)], How()).all_outcomes()
    if case.megabytes:
        return outcome.file_bytes / (outcome.on_disk_time or outcome.wall_time) / 1e6
    (program,) = outcome.programs.values()
    return program.calls["write"].count / outcome.wall_time


class RawCase(NamedTuple):
    """A published rate of random writes of 4 KiB to md itself (direct I/O), with *jobs* of them in flight.

    ``bitmap_chunk`` 0 stands for no bitmap.
    """

    what: str
    published: float
    source: str
    drive: str
    jobs: int
    kernel: str
    bitmap_chunk: int = 0


_PRO: Final = ("GP", "980-pro-1tb", 1, "5.14")
_GIB: Final = 1 << 30
RAW_CASES: Final = (
    RawCase("980 PRO, RAID5, no bitmap", 20_600, *_PRO),
    RawCase("the same, regions of 64 MiB", 174, *_PRO, _GIB // 16),
    RawCase("the same, regions of 512 MiB", 285, *_PRO, _GIB // 2),
    RawCase("the same, regions of 1 GiB", 10_300, *_PRO, _GIB),
    RawCase("the same, regions of 2 GiB", 17_000, *_PRO, 2 * _GIB),
)  # fmt: skip
"""Five members each; the array's 8 TB are written at random for 40 s, of which the last ten count."""


def raw_rate(case: RawCase) -> float:
    """Return the writes per second of *case* in the model."""
    spec = DRIVES[case.drive].device
    rig = Rig(
        "raid5", 5, kernel=case.kernel, volatile=spec.volatile, costs=MdCosts.model_validate(REFERENCE_COSTS),
        devices=partial(_member, spec), bitmap=case.bitmap_chunk > 0, region=case.bitmap_chunk,
        request_ns=1_000,
    )  # fmt: skip
    random, ends = Random(1), list[int]()

    def job(thread: Thread) -> Steps:
        while True:
            yield 2_000  # the system call
            landed = Completion(rig.env, DEVICE)
            page = random.randrange(8 * 10**12 // PAGE_BYTES)
            bio = Bio(8 * page, 8, queue=rig.array, sync=True, nomerge=True, end_io=_complete, context=landed)
            if (rest := thread.submit_bio(bio)) is not None:
                yield from rest
            yield from landed.wait(thread.task)
            ends.append(rig.env.now)

    for number in range(case.jobs):
        thread: Thread = rig.parts.thread(f"job{number}")
        rig.env.start(thread.task, job(thread))
    rig.env.call_at(40 * S, LAST, rig.env.halt)
    rig.env.run()
    return sum(end >= 30 * S for end in ends) / 10


def _member(spec: DeviceSpec, env: Environment, number: int) -> BlockDevice:
    more = {"random": np.random.default_rng(number)} if spec.draws else {}
    device: BlockDevice = component_of("devices", spec)(env=env, spec=spec, name=f"d{number}", **more)
    return device


def _complete(landed: Completion) -> None:
    landed.complete()


def figures_of_arrays() -> str:
    """Return the table of all cases."""
    rows = []
    for case in (*CASES, *RAW_CASES):
        model = raw_rate(case) if isinstance(case, RawCase) else model_of(case)
        unit = "MB/s" if isinstance(case, Case) and case.megabytes else "/s"
        numbers = [f"{number:,.0f} {unit}".replace(",", " ") for number in (case.published, model)]
        rows.append((case.what, case.source, *numbers, f"{100 * (model / case.published - 1):+.0f} %"))
    return table(("case", "source", "published", "model", "error"), rows)
