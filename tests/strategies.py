"""The strategies of property tests: kernels, queues, filesystems and scenarios with one or two of each part.

A property test that fixes one of these says why.  Texts are TOML, like a user's.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.harness import FIO
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.io_schedulers.releases import modelled, refusal
from wbsim.models.raid.levels import LEAST_MEMBERS
from wbsim.models.step_lengths import StepLengths

DISKS = ("loop", "sata-ssd", "sata-disk", "pm9a3", "bm1743", "980-pro-1tb", "seagate-archive-8tb")
_STEADY = 'ftl = { spare = 0.1, erase_block = "64 MiB", erase_time = "3 ms", state = "steady" }'
_FULL = 'ftl = { spare = 0.5, erase_block = "256 MiB", erase_time = "0 s", state = "fresh", fill = 0.9 }'
_SLC = (
    'slc = { fixed = "256 KiB", dynamic = "1 MiB", program_time = "90 us", when_full = "fold",'
    ' fold_after = "2 ms" }'
)
_SHINGLES = 'shingles = { media_cache = "256 KiB", band = "64 KiB", clean_after = "3 ms" }'
_FLASH: list[list[str]] = [[], [], [_STEADY], [_FULL, _SLC], [_SLC, 'suspend_time = "30 us"']]
STATES: dict[str, list[list[str]]] = {
    "loop": [[]],
    "sata-ssd": [*_FLASH, ['flush_time = "700 us"']],
    "sata-disk": [[], ["segments = 2"], ['cache = "0 B"'], ['cache = "64 KiB"', "segments = 1"]],
    "pm9a3": [*_FLASH, ["protected = false", 'flush_time = "1 ms"']],
    "bm1743": _FLASH,
    "980-pro-1tb": [[], ['ftl.state = "steady"'], ["ftl.fill = 0.97", 'slc.fixed = "1 MiB"']],
    "seagate-archive-8tb": [[], [_SHINGLES], [_SHINGLES, 'cache = "0 B"']],
}
"""By drive, the keys of its device of which one list is drawn."""
CONTROLLER = "perc-h710"
"""The drive whose keys `controllers` draws."""
FLUSHERS = (
    '{ kind = "per_bdi" }', '{ kind = "pdflush" }',
    '{ kind = "pdflush", min_threads = 1, max_threads = 3 }',
    '{ kind = "parallel", by = "hash", contexts = 3 }', '{ kind = "parallel", by = "allocation_group" }',
    '{ kind = "parallel", by = "processor" }',
)  # fmt: skip
KIB_OF = (4, 8, 12, 64, 300)
CHUNKS = (64, 128, 1024)


def kernels() -> st.SearchStrategy[str]:
    """Draw any kernel of the catalogue, of all eras."""
    return st.sampled_from(sorted(KERNELS))


def filesystems() -> st.SearchStrategy[str]:
    """Draw XFS or ext4 on a small disk."""
    return st.sampled_from(["loop-xfs", "loop-ext4"])


def step_lengths() -> st.SearchStrategy[StepLengths]:
    """Draw the usual lengths of steps, or others down to the shortest."""
    return st.builds(StepLengths, calls=st.sampled_from([1, 2, 7, 256]))


@st.composite
def controllers(draw: st.DrawFn) -> list[str]:
    """Draw the keys of a RAID controller: up to 12 members, perhaps degraded, and a small cache."""
    level = draw(st.sampled_from(sorted(LEAST_MEMBERS)))
    count = draw(st.integers(max(LEAST_MEMBERS[level], 2), 12))
    count -= count % 2 if level == "raid10" else 0
    strip = draw(st.sampled_from([4, *CHUNKS]))
    watermark = draw(st.sampled_from([0, 0.5, 1]))
    member = draw(st.sampled_from([name for name in DISKS if name != "loop"]))
    lines = [
        f'level = "{level}"',
        f'members = {{ like = "{member}", count = {count} }}',
        f'strip = "{strip} KiB"',
        f'cache = "{strip * draw(st.sampled_from([1, 3, 40]))} KiB"',
        f"high_watermark = {watermark}",
        f"low_watermark = {watermark / 2}",
        f'policy = "{draw(st.sampled_from(["write_back", "write_through", "always_write_back"]))}"',
        f'battery = "{draw(st.sampled_from(["good", "learning", "failed"]))}"',
        f'flush_after = "{draw(st.sampled_from(["3 ms", "4 s"]))}"',
        f"depth = {draw(st.sampled_from([1, 5, 64]))}",
    ]
    if level != "raid0" and draw(st.booleans()):
        lines.append(f"faulty = [{draw(st.integers(0, count - 1))}]")
    return lines


@st.composite
def queues(draw: st.DrawFn, name: str, kernel: str) -> list[str]:
    """Draw the disk *name*: a device, and a queue with any scheduler that *kernel* has, any depth and
    number of requests.
    """
    there = [name for name in modelled() if refusal(name, kernel) is None]
    scheduler = draw(st.sampled_from(there))
    batch = ", fifo_batch = 3" if scheduler in ("deadline", "mq-deadline") else ""
    disk = draw(st.sampled_from((*DISKS, CONTROLLER)))
    lines = draw(controllers() if disk == CONTROLLER else st.sampled_from(STATES[disk]))
    return [
        f'machine.disks.{name}.like = "{disk}"',
        *(f"machine.disks.{name}.device.{line}" for line in lines),
        f'machine.disks.{name}.queue.elevator = {{ scheduler = "{scheduler}"{batch} }}',
        f"machine.disks.{name}.queue.nr_requests = {draw(st.sampled_from([4, 31, 128]))}",
        f"machine.disks.{name}.queue.driver_depth = {draw(st.sampled_from([1, 3, 128]))}",
    ]


@st.composite
def arrays(draw: st.DrawFn, name: str, kernel: str) -> list[str]:
    """Draw the array *name* of up to 12 disks of two kinds, perhaps degraded, and the queues of its disks."""
    level = draw(st.sampled_from(sorted(LEAST_MEMBERS)))
    least = LEAST_MEMBERS[level]
    members = [f"{name}m{number}" for number in range(draw(st.integers(least, draw(st.integers(least, 12)))))]
    kinds = [draw(queues(members[0], kernel)), draw(queues(members[-1], kernel))]
    lines = [
        line.replace(f"disks.{owner}.", f"disks.{member}.")
        for member in members
        for owner, lines in [(members[0], kinds[0]) if member != members[-1] else (members[-1], kinds[1])]
        for line in lines
    ]
    keys = [f'level = "{level}"', f"members = {members}", f'chunk = "{draw(st.sampled_from(CHUNKS))} KiB"']
    if level in ("raid5", "raid6"):
        keys += [
            f"stripe_cache_size = {draw(st.sampled_from([17, 40, 256]))}",
            f"rmw_level = {draw(st.sampled_from([0, 1, 2]))}",
        ]
        if KERNELS[kernel].md.group_threads:
            keys.append(f"group_thread_cnt = {draw(st.sampled_from([0, 0, 1, 3]))}")
    if level != "raid0":
        keys.append(f'bitmap_chunk = "{draw(st.sampled_from(["0 B", "64 KiB", "64 MiB"]))}"')
        if draw(st.booleans()):
            keys.append(f'faulty = ["{draw(st.sampled_from(members))}"]')
    return [*lines, f"machine.arrays.{name} = {{ {', '.join(keys)} }}".replace("'", '"')]


@st.composite
def limits(draw: st.DrawFn) -> list[str]:
    """Draw the limits of dirty memory, and the interval and age of periodic writeback."""
    dirty = draw(st.sampled_from([1, 2, 3, 7, 40]))
    return [
        f'kernel.dirty.dirty_bytes = "{dirty} MiB"',
        f'kernel.dirty.dirty_background_bytes = "{draw(st.integers(1, 9)) * dirty * 100} KiB"',
        f'kernel.writeback.interval = "{draw(st.sampled_from([7, 50, 900]))} ms"',
        f'kernel.writeback.expire = "{draw(st.sampled_from([0, 20, 2_000]))} ms"',
    ]


OWN = "OWN"
"""Stands for the name of the program."""
FIO_OPTIONS = (
    " --fsync_on_close=1", " --end_fsync=1", " --thinktime=200", " --fsync=3", " --fdatasync=2", " --sync=1",
    " --sync=dsync", " --create_on_open=0", " --create_on_open=0 --fallocate=native", " --loops=2",
    " --create_on_open=0 --fallocate=keep", " --create_on_open=0 --fallocate=truncate", " --overwrite=1",
    " --filename=shared --nrfiles=1", " --file_append=1", " --norandommap", " --runtime=1",
    " --rate_iops=900",
)  # fmt: skip
DD_OPERANDS = (
    " conv=noerror", " conv=fsync", " conv=fdatasync", " conv=noerror oflag=append", " conv=noerror seek=256",
    " conv=noerror oflag=sync", " conv=noerror oflag=dsync",
)  # fmt: skip
CALLS = (
    "truncate -s 64M OF", "fallocate -l K OF", "fallocate -n -l K OF", "sync -d OF", "sync OF", "mv OF OF2",
)  # fmt: skip
"""Calls for the file OF that drop no dirty page; K is a size."""


@st.composite
def programs(draw: st.DrawFn, mounts: list[str]) -> str:
    """Draw a command line, with one or two directories of *mounts*; its files are called `OWN`."""
    where = draw(st.lists(st.sampled_from(mounts), min_size=1, max_size=2))
    size, count = draw(st.sampled_from(KIB_OF)), draw(st.integers(1, 30))
    match draw(st.sampled_from(["fs_mark", "fio", "dd", "sync", "one call"])):
        case "fs_mark":
            ways = " ".join(f"-d {at}/{n}" for n, at in enumerate(where))
            files, loops = count * len(where), draw(st.integers(1, 3))
            method = draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 5, 6]))
            return f"fs_mark -k -S{method} -n {files} -s {size << 10} -L {loops} {ways}"
        case "fio":
            rw, numjobs = draw(st.sampled_from(["write", "randwrite"])), draw(st.integers(1, 3))
            more = draw(st.sampled_from(["", *FIO_OPTIONS]))
            each = f"--numjobs={numjobs} --nrfiles={draw(st.integers(1, 3))} --filesize={4 * count}k"
            if "norandommap" not in more and draw(st.booleans()):
                more += f" --ioengine=io_uring --iodepth={draw(st.sampled_from([1, 2, 7, 32]))}"
            return f"{FIO} --rw={rw} {each} --name={OWN} --directory={where[0]}{more}"
        case "dd":
            more = draw(st.sampled_from(DD_OPERANDS))
            if draw(st.booleans()):
                name = f"{OWN}x{draw(st.integers(0, 9))}"
            else:
                name, more = "shared", more.replace("conv=", "conv=notrunc,")
            return f"dd if=/dev/zero of={where[0]}/{name} bs={size}k count={count}{more}"
        case "one call":
            return draw(st.sampled_from(CALLS)).replace("OF", f"{where[0]}/shared").replace("K", f"{size}K")
    return "sync"


@st.composite
def scenarios(draw: st.DrawFn) -> str:
    """Draw a configuration with one or two of each part, on any kernel, with any flusher."""
    disks = [f"d{n}" for n in range(draw(st.integers(1, 2)))]
    kernel = draw(kernels())
    lines = [
        'title = "any"', "[scenario]", 'machine.like = "loop-vm"',
        f"machine.processors.count = {draw(st.integers(1, 4))}", f'kernel.like = "{kernel}"',
        *draw(limits()), "sync_after = true",
    ]  # fmt: skip
    if draw(st.booleans()):
        lines.append(f"kernel.flusher = {draw(st.sampled_from(FLUSHERS))}")
    for name in disks:
        lines += draw(st.one_of(queues(name, kernel), queues(name, kernel), arrays(name, kernel)))
    mounts = [f"/m{n}" for n in range(draw(st.integers(1, 3)))]
    for at in mounts:
        filesystem, disk = draw(filesystems()), draw(st.sampled_from(disks))
        lines.append(
            f'mounts.{at[1:]} = {{ like = "{filesystem}", disk = "{disk}", at = "{at}", size = "4 GiB" }}'
        )
    commands = draw(st.lists(programs(mounts), min_size=1, max_size=3))
    if all(command == "sync" for command in commands):
        commands.append(f"dd if=/dev/zero of={mounts[0]}/y bs=8k count=9")
    for n, command in enumerate(commands):
        start = draw(st.sampled_from([0, 3, 40]))
        lines.append(
            f'programs.p{n} = {{ command = "{command.replace(OWN, f"p{n}")}", start = "{start} ms" }}'
        )
    return "\n".join(lines)
