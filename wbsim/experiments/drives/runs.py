"""The runs of fio that data sheets and reviews report, on a drive of the model.

A run keeps some requests in flight at the device itself; no filesystem and no page cache takes part.  The
host needs `HOST_NS` between the end of a request and the next one.  A run on a full or a worn drive takes a
small drive of the same rates: their ratios do not depend on the capacity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from wbsim.models.bio import FLUSH, READ, Bio, BlockDevice, Request
from wbsim.models.block.flush import FlushQueue
from wbsim.models.catalogue.sheets import HOST_NS
from wbsim.models.devices.disk import Disk
from wbsim.models.devices.spec import DiskSpec, SsdSpec
from wbsim.models.devices.ssd import Ssd
from wbsim.models.scenario import DriveSpec
from wbsim.sim.engine import Environment
from wbsim.sim.param import Inputs, bare
from wbsim.sim.units import GIB, KIB, MIB, SECTOR_BYTES, S

RATE: Final = "B/s"
PER_SECOND: Final = "/s"
TIME: Final = "ns"
RATIO: Final = ""
SMALL: Final = 16 * GIB
"""The capacity of the small drive."""
SMALL_BLOCK: Final = 2 * MIB
"""Its blocks: 8192 of them, as many pages in each as theory needs, and few of them open or free."""


class Run(NamedTuple):
    """A kind of run, such as random_write_qdN.

    ``unit``: of the result.  ``what``: a few words on it.  ``measure``: simulates the run on a drive, with
    the number in the name, and returns the result.
    """

    unit: str
    what: str
    measure: Callable[[DriveSpec, int], float]


def run_of(name: str) -> tuple[Run, int]:
    """Return the run *name*, such as random_write_qd32, and the number in it (1 if it has none).

    The number is N in a name of `RUNS`: requests in flight or jobs.

    Raises:
        KeyError: there is no such run.
    """
    match = re.fullmatch(r"(.*?_(?:qd|writes_))([1-9][0-9]{0,3})(_steady)?", name)
    if name in RUNS:
        return RUNS[name], 1
    if match is None:
        raise KeyError(name)
    return RUNS[f"{match[1]}N{match[3] or ''}"], int(match[2])


def _device(drive: DriveSpec, **changes: Any) -> tuple[Environment, BlockDevice]:
    """Return an environment, and the device of *drive* with *changes* in it."""
    env, spec = Environment(), drive.device
    if isinstance(spec, DiskSpec):
        return env, Disk(env=env, spec=spec, name="sda")
    assert isinstance(spec, SsdSpec)
    spec = SsdSpec.model_validate({**bare(spec.inputs()), **changes})
    return env, Ssd(env=env, spec=spec, name="sda", random=np.random.default_rng(1))


def _small(spec: SsdSpec, **ftl: Any) -> Inputs:
    """Return the changes that make *spec* a small drive with the same shares of SLC and spare flash."""
    if spec.size is None or spec.ftl is None:
        return {}
    inputs, scale = bare(spec.inputs()), SMALL / spec.size
    block = max(SMALL_BLOCK, spec.indirection_unit or 0)
    erase_ns = inputs["ftl"]["erase_time"] * block // inputs["ftl"]["erase_block"]
    blocks = {"erase_block": block, "erase_time": erase_ns}
    changes: Inputs = {"size": SMALL, "ftl": {**inputs["ftl"], **blocks, **ftl}}
    if spec.slc is not None:
        sizes = {key: round(inputs["slc"][key] * scale) for key in ("fixed", "dynamic")}
        changes["slc"] = {**inputs["slc"], **sizes}
    return changes


def _least_cache(spec: SsdSpec) -> int:
    """Return the size of a cache with which all planes work; a larger one takes longer to fill."""
    return min(spec.cache, max(4 * MIB, 2 * spec.units * spec.flash_page))


def _ends(env: Environment, device: BlockDevice, requests: Iterator[Request], depth: int) -> list[int]:
    """Give *requests* to *device*, *depth* at a time; return when each ended (ns)."""
    ends: list[int] = []

    def give() -> None:
        request = next(requests, None)
        if request is not None:
            device.submit(request, end)

    def end() -> None:
        ends.append(env.now)
        env.call_at(env.now + HOST_NS, 0, give)

    for _ in range(depth):
        give()
    env.run()
    return ends


def _rate(ends: list[int], skip: int) -> float:
    """Return the requests a second behind the first *skip* ones."""
    return (len(ends) - skip - 1) * S / (ends[-1] - ends[skip])


def _places(span: int, size: int, count: int, op: str = "W") -> Iterator[Request]:
    """Yield *count* requests of *size* bytes at random within *span* bytes."""
    sectors = size // SECTOR_BYTES
    for place in np.random.default_rng(3).integers(0, span // size, count).tolist():
        yield Request(Bio(place * sectors, sectors, op=op))


def _in_order(first: int, last: int, size: int = MIB) -> Iterator[Request]:
    """Yield requests of *size* bytes from byte *first* to byte *last*."""
    for begin in range(first, last, size):
        yield Request(Bio(begin // SECTOR_BYTES, min(size, last - begin) // SECTOR_BYTES))


def _depth(drive: DriveSpec, depth: int) -> int:
    return min(depth, drive.queue.driver_depth)


def _largest(drive: DriveSpec) -> int:
    return min(MIB, drive.queue.limits.max_sectors_bytes)


def _sequential(drive: DriveSpec, first: int, last: int, changes: Inputs, skip: int = 0) -> float:
    """Return the rate (B/s) of writing from *first* to *last* in order, with 4 requests in flight."""
    env, device = _device(drive, **changes)
    size = _largest(drive)
    ends = _ends(env, device, _in_order(first, last, size), _depth(drive, 4))
    return _rate(ends, skip // size) * size


def _sequential_write(drive: DriveSpec, number: int) -> float:
    """Write behind what fills the cache; the SLC part has more room than that."""
    spec = drive.device
    changes: Inputs = {"cache": _least_cache(spec)} if isinstance(spec, SsdSpec) else {}
    return _sequential(drive, 0, GIB, changes, skip=GIB // 2)


def _sequential_write_after(drive: DriveSpec, number: int) -> float:
    """Write a small drive completely, and take the last quarter."""
    spec = drive.device
    assert isinstance(spec, SsdSpec)
    return _sequential(drive, 0, SMALL, _small(spec), skip=SMALL * 3 // 4)


def _sequential_write_all(drive: DriveSpec, number: int) -> float:
    spec = drive.device
    assert isinstance(spec, SsdSpec)
    return _sequential(drive, 0, SMALL, {**_small(spec), "cache": _least_cache(spec)})


def _random_write(drive: DriveSpec, depth: int) -> float:
    """Write at random: a disk within 1 GiB, as reviews do; a flash drive everywhere."""
    spec = drive.device
    if isinstance(spec, DiskSpec):
        env, device = _device(drive)
        return _rate(_ends(env, device, _places(GIB, 4 * KIB, 2_000), _depth(drive, depth)), 1_000)
    assert isinstance(spec, SsdSpec)
    env, device = _device(drive, **_small(spec))
    slow = spec.units * spec.flash_page * S < 20_000_000 * spec.program_time
    skip = 3 * spec.cache // (spec.indirection_unit or 4 * KIB)
    count = skip + (50 if slow else 10_000)
    span = SMALL if spec.ftl is not None else spec.capacity or SMALL
    return _rate(_ends(env, device, _places(span, 4 * KIB, count), _depth(drive, depth)), skip)


def _random_write_512k(drive: DriveSpec, depth: int) -> float:
    env, device = _device(drive)
    size, span = 512 * KIB, GIB
    requests = _pieces(_places(span, size, 300), _largest(drive))
    ends = _ends(env, device, requests, _depth(drive, depth))
    pieces = -(-size // _largest(drive))
    return _rate(ends, 50 * pieces) / pieces * size


def _pieces(requests: Iterator[Request], largest: int) -> Iterator[Request]:
    """Yield *requests* cut into pieces of at most *largest* bytes."""
    for request in requests:
        yield from _in_order(request.start_sector * SECTOR_BYTES, request.end_sector * SECTOR_BYTES, largest)


def _random_read(drive: DriveSpec, depth: int) -> float:
    env, device = _device(drive)
    return _rate(_ends(env, device, _places(GIB, 4 * KIB, 1_000, READ), _depth(drive, depth)), 100)


def _steady(drive: DriveSpec) -> tuple[float, float]:
    """Return the rate of random writes (/s) of a worn drive with 32 in flight, and its amplification."""
    spec = drive.device
    assert isinstance(spec, SsdSpec)
    changes: Inputs = {**_small(spec, state="steady"), "cache": _least_cache(spec)}
    changes.pop("slc", None)
    env, device = _device(drive, **changes)
    ends = _ends(env, device, _places(SMALL, 4 * KIB, 60_000), _depth(drive, 32))
    assert isinstance(device, Ssd)
    flash = device._ftl
    assert flash is not None
    return _rate(ends, 20_000), 1 + flash.map.moves / len(ends)


def _random_write_steady(drive: DriveSpec, depth: int) -> float:
    return _steady(drive)[0]


def _write_amplification(drive: DriveSpec, number: int) -> float:
    return _steady(drive)[1]


def _durable_writes(drive: DriveSpec, jobs: int) -> float:
    """Return the writes of 4 KiB a second of *jobs* jobs, each made durable before the job's next one."""
    env, device = _device(drive)
    flushes = FlushQueue(env, device, fua=drive.queue.fua)
    ends, most = list[int](), 400 * jobs

    def write(job: int) -> None:
        if len(ends) < most:
            device.submit(Request(Bio(job * 8_000 + 8 * len(ends), 8)), lambda: flush(job))

    def flush(job: int) -> None:
        if drive.device.volatile:
            flushes.submit(Request(Bio(0, 0, op=FLUSH)), lambda: end(job))
        else:
            end(job)

    def end(job: int) -> None:
        ends.append(env.now)
        env.call_at(env.now + HOST_NS, 0, lambda: write(job))

    for job in range(jobs):
        write(job)
    env.run()
    return _rate(ends[:most], most // 4)


def _mean_seek(drive: DriveSpec, number: int) -> float:
    """Return the mean time (ns) of a seek between two random places."""
    spec = drive.device
    assert isinstance(spec, DiskSpec)
    share = np.random.default_rng(3).random((2, 100_000))
    roots = np.sqrt(np.abs(share[0] - share[1]))
    return float(spec.track_seek + (spec.full_seek - spec.track_seek) * roots.mean())


RUNS: Final = {
    "sequential_write": Run(RATE, "sequential writes", _sequential_write),
    "sequential_write_after": Run(RATE, "sequential writes behind the SLC part", _sequential_write_after),
    "sequential_write_all": Run(RATE, "sequential writes of the whole drive", _sequential_write_all),
    "random_write_qdN": Run(PER_SECOND, "random writes of 4 KiB with N in flight", _random_write),
    "random_write_512k_qdN": Run(RATE, "random writes of 512 KiB with N in flight", _random_write_512k),
    "random_write_steady": Run(PER_SECOND, "random writes of 4 KiB on a worn drive", _random_write_steady),
    "write_amplification": Run(
        RATIO, "flash pages for each written one on a worn drive", _write_amplification
    ),
    "random_read_qdN": Run(PER_SECOND, "random reads of 4 KiB with N in flight", _random_read),
    "durable_writes_N": Run(PER_SECOND, "writes of 4 KiB that N jobs make durable", _durable_writes),
    "mean_seek": Run(TIME, "a mean seek", _mean_seek),
}
"""The runs by name; N stands for a number."""
