"""Single mechanisms: units, dice, statistics, processors, throttling, page cache, XFS, devices."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.catalogue.devices import SATA_SSD_2013
from models.catalogue.kernels import KERNELS
from models.catalogue.machines import P13_MACHINE
from models.devices.raid0 import Raid0, Raid0Spec
from models.devices.ssd import Ssd, SsdSpec
from models.page_cache.accounting import PageCache, Thresholds
from models.page_cache.bandwidth import WriteBandwidth
from models.seams import Bio, Request
from models.throttling.io_less import POLL_PAGES, Control, IoLessSpec, Limit
from sim.cpu import Processors
from sim.engine import Environment, Steps, Task
from sim.stats import batch_means, confidence_95
from sim.streams import Streams
from sim.units import GIB, KIB, MIB, MS, PAGE_BYTES, US, S, format_quantity, pages, parse, sectors
from tests.harness import SlowDevice, only, run_small, small_scenario

# -- units, dice, statistics -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "amount"),
    [("16 GiB", "size", 16 * GIB), ("4KiB", "size", 4096), ("1.5 ms", "time", 1_500_000),
     ("500 MB/s", "rate", 5 * 10**8), ("0 s", "time", 0), ("1e3 ns", "time", 1000)],
)  # fmt: skip
def test_quantities_are_read_exactly(text: str, kind: str, amount: int) -> None:
    """A number and a unit give a whole number of base units."""
    assert parse(text, kind) == amount


@pytest.mark.parametrize(
    ("text", "kind", "hint"),
    [
        ("4k", "size", '"4 KiB"'),
        ("4k", "size", '"4 kB"'),
        ("16", "size", "no unit"),
        ("5 GiB", "time", "use one of ns"),
        ("-1 s", "time", "negative"),
        ("soon", "time", "no quantity"),
        ("0.5 ns", "time", "whole number of ns"),
    ],
)
def test_bad_quantities_name_the_remedy(text: str, kind: str, hint: str) -> None:
    """Ambiguous, negative or broken amounts raise, and say what would be right."""
    with pytest.raises(ValueError, match=hint.replace("(", r"\(")):
        parse(text, kind)


@given(st.integers(0, 10**15), st.sampled_from(["time", "size", "rate"]))
def test_formatting_is_read_back(amount: int, kind: str) -> None:
    """format_quantity is parse's inverse."""
    assert parse(format_quantity(amount, kind), kind) == amount


def test_conversions_are_exact_or_raise() -> None:
    """No silent rounding of bytes to pages or sectors."""
    assert (pages(8192), sectors(1024)) == (2, 2)
    with pytest.raises(ValueError, match="4 KiB pages"):
        pages(4097)
    with pytest.raises(ValueError, match="512 B sectors"):
        sectors(100)


def test_streams_are_named_and_independent_of_each_other() -> None:
    """A stream's numbers depend on seed, replication and name alone; a name is taken once."""
    one, two = Streams(7), Streams(7)
    two.generator("another")
    assert one.generator("x").random() == two.generator("x").random()
    assert Streams(7, 1).generator("x").random() != Streams(7, 0).generator("x").random()
    with pytest.raises(ValueError, match="already taken"):
        one.generator("x")


def test_service_times_have_the_stated_moments() -> None:
    """Mean 1 and the asked-for coefficient of variation, within 4 standard errors."""
    draw = Streams(1).service_times("x", 0.3)
    values = np.array([draw() for _ in range(20_000)])
    assert abs(values.mean() - 1) < 4 * 0.3 / sqrt(len(values))
    assert values.std() == pytest.approx(0.3, rel=0.05)
    assert Streams(1).service_times("x", 0)() == 1.0


def test_intervals_and_batches() -> None:
    """Student's t on three values, by hand; batches drop the rest."""
    interval = confidence_95([1.0, 2.0, 3.0])
    assert interval.mean == 2.0
    assert interval.high - 2.0 == pytest.approx(4.302653 / sqrt(3), rel=1e-5)
    assert batch_means([1, 1, 2, 2, 9], 2) == [1, 2]
    with pytest.raises(ValueError, match="at least two"):
        confidence_95([1.0])


# -- processors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("processors", "expected_ms"), [(1, 40), (2, 20), (4, 10), (8, 10)])
def test_processors_share_out_the_work(processors: int, expected_ms: int) -> None:
    """Four tasks of 10 ms each, on fewer processors, take turns and lose no time."""
    env = Environment()
    cpus = Processors(env, processors, 2 * MS, lambda: 0.0)

    def body(task: Task) -> Steps:
        if (ready := cpus.enter(task)) is not None:
            yield ready
        for _ in range(10):
            yield 1 * MS
            if (ready := cpus.reschedule(task)) is not None:
                yield ready
        cpus.leave(task)

    for n in range(4):
        task = env.task(str(n))
        env.start(task, body(task))
    env.run()
    assert env.now == expected_ms * MS


def test_an_interrupt_charges_whom_it_hits() -> None:
    """The running task owes the time; an idle processor's time is nobody's."""
    env = Environment()
    where = [0.0]
    cpus = Processors(env, 2, MS, lambda: where[0])
    task = env.task("t")
    cpus.enter(task)
    cpus.interrupt(500)
    where[0] = 0.9
    cpus.interrupt(500)
    assert (task.owed_ns, task.system_ns) == (500, 500)


# -- throttling ------------------------------------------------------------------------------------------

LIMITS = Thresholds(background=100_000, limit=200_000)


class Counts:
    """As many pages dirty as the test says, all of one context."""

    def __init__(self) -> None:
        self.nr_dirty = self.dirtied = self.written = 0
        self.bandwidth = WriteBandwidth()


def control(nr_dirty: int = 0, mib_per_s: int = 100) -> Control:
    """The control loop of a fresh, sole context at HZ=1000, whose hard limit is the threshold."""
    counts: Any = Counts()
    counts.nr_dirty = nr_dirty
    spec = IoLessSpec(hz=1000, initial_bandwidth=mib_per_s * MIB)
    return Control(counts, counts, Limit(spec.hz), spec, lambda pages: pages)


def position_ratio(nr_dirty: int) -> int:
    """With so many pages dirty."""
    return control(nr_dirty).position_ratio(LIMITS)


def test_the_position_ratio_s_fixed_points() -> None:
    """About 2 at freerun, 1 at the setpoint, 0 at the limit (mechanisms.md 3.3)."""
    freerun, setpoint = LIMITS.freerun, (LIMITS.freerun + LIMITS.limit) // 2
    assert position_ratio(LIMITS.limit) == 0
    assert position_ratio(setpoint) / 1024 == pytest.approx(1, rel=0.01)
    # The context's own line adds (intercept - dirty) / span to the cubic's 2.
    span = 8 * control().bandwidth.avg_write
    assert position_ratio(freerun) / 1024 == pytest.approx(2 * (1 + (setpoint - freerun) / span), rel=0.02)


@given(st.integers(0, 250_000), st.integers(0, 250_000))
def test_more_dirty_never_means_a_higher_rate(a: int, b: int) -> None:
    """The position ratio falls with what is dirty."""
    low, high = sorted((a, b))
    assert position_ratio(low) >= position_ratio(high)


def test_pauses_have_the_kernel_s_bounds() -> None:
    """At most 200 ms; less while little is dirty; the target pause grows by 10 ms per doubling of writers."""
    assert control(10**9).max_pause() == 200
    of = control()
    rate = of.bandwidth.dirty_ratelimit
    assert of.max_pause() == 1
    assert of.min_pause(200, rate) == (1 + 10 // 2, rate * 10 // 1024)
    of.bandwidth.dirty_ratelimit = of.bandwidth.avg_write // 8
    assert of.min_pause(200, of.bandwidth.dirty_ratelimit)[0] == 1 + (10 + 3 * 10_000 // 1024) // 2


def test_writers_are_held_to_the_flusher_s_rate() -> None:
    """In the long run the dirty level stays between freerun and the hard limit, and writers match writeback.

    The hard limit follows the threshold down slowly, as inode caches take memory; past it a
    writer can get by no more than it may dirty between two checks.
    """
    machine = run_small(processes=4, files=4_000, loops=3, memory_mib=64)
    cache = machine.cache
    limits = cache.thresholds()
    of = machine.throttle.controls[machine.cache.wbs[0]]  # type: ignore[attr-defined]
    hard_limit = of._limit.hard(limits)
    assert limits.freerun * 0.8 < cache.nr_dirty <= hard_limit + 4 * POLL_PAGES
    last = only(machine.programs).iterations[-2:]
    rate = 16_000 * S / (last[1].end_ns - last[0].end_ns)
    assert of.bandwidth.avg_write == pytest.approx(rate, rel=0.3)


def test_inode_caches_shrink_what_may_be_dirty() -> None:
    """Each cached inode takes its slab from dirtyable memory, until reclaim keeps the balance."""
    memory = P13_MACHINE.memory
    cache = PageCache(memory, KERNELS["3.11"].dirty)
    empty = cache.dirtyable_pages()
    assert empty == (memory.memory - memory.kernel_reserve) // PAGE_BYTES
    assert cache.thresholds() == (empty // 10, empty // 5)
    cache.cached_inodes = 10**8
    assert cache.reclaiming
    share = PAGE_BYTES / (PAGE_BYTES + memory.inode_slab_bytes)
    assert cache.dirtyable_pages() == pytest.approx(empty * share, rel=1e-3)


# -- XFS ---------------------------------------------------------------------------------------------------


def test_files_of_a_directory_lie_in_one_group_one_behind_the_other() -> None:
    """One group per directory, consecutive blocks, broken only by inode chunks and directory blocks."""
    starts: dict[int, list[int]] = {}
    scenario = small_scenario(processes=3, files=1_000, loops=2)
    group_sectors = only(scenario.mounts).filesystem.size // 512 // only(scenario.mounts).filesystem.agcount  # type: ignore[attr-defined]
    from models.seams import Signals

    signals = Signals()

    def queued(_: str, bio: Any, **__: Any) -> None:
        if bio.end_io is not None and bio.op == "W":
            starts.setdefault(bio.start_sector // group_sectors, []).append(bio.start_sector % group_sectors)

    signals.block_bio_queue.observers.append(queued)
    machine = run_small(signals=signals, processes=3, files=1_000, loops=2)
    assert len(starts) >= 3
    gaps = [b - a for places in starts.values() for a, b in pairwise(places)]
    assert len(gaps) > 0.4 * machine.cache.written
    assert sum(gap == 8 for gap in gaps) > 0.95 * len(gaps)
    # 64 + k * 8: an inode chunk is 64 sectors, a directory block 8.
    assert {gap % 8 for gap in gaps} == {0}
    assert min(gaps) > 0, "blocks are given out in order"


def test_a_held_group_makes_data_spill_into_the_next() -> None:
    """The allocator tries each AGF and moves on when it is held."""
    from models.machine import build

    machine = build(small_scenario(processes=1, files=400, loops=1, memory_mib=2), seed=1)
    first = only(machine.mounts).filesystem.groups[0]  # type: ignore[attr-defined]
    neighbour = only(machine.mounts).filesystem.groups[1]  # type: ignore[attr-defined]
    before = neighbour.free.blocks
    machine.env.call_at(10 * MS, 0, lambda: first.agf.try_acquire(machine.env.task("holder")))
    machine.env.call_at(20 * MS, 0, first.agf.release)
    machine.run()
    assert neighbour.free.blocks < before


def test_log_bytes_per_file_follow_from_the_items() -> None:
    """Create, allocate and set the size: two inode items if a checkpoint lies between, plus name and
    extents.
    """
    scenario = small_scenario(
        processes=4, files=5_000, loops=3, memory_mib=64, changes={"filesystem.log.checkpoint_bytes": 1 * MIB}
    )
    from models.machine import build

    machine = build(scenario, seed=1)
    machine.run()
    fs: Any = only(scenario.mounts).filesystem
    count = 60_000
    create = count * (fs.inode_log_bytes + fs.dirent_log_bytes)
    map_and_size = machine.cache.written * (fs.inode_log_bytes + 2 * fs.extent_log_bytes)
    assert only(machine.mounts).filesystem.log_bytes == pytest.approx(create + map_and_size, rel=0.06)


def test_a_full_log_stops_the_writers_until_its_tail_moves() -> None:
    """With a log of 2 MiB the run ends all the same, later."""
    wide = run_small(processes=2, files=3_000)
    small = {"filesystem.log.size": 2 * MIB, "filesystem.log.checkpoint_bytes": 256 * KIB}
    narrow = run_small(processes=2, files=3_000, changes=small)
    assert only(narrow.programs).iterations[-1].count == only(wide.programs).iterations[-1].count
    assert only(narrow.programs).iterations[-1].end_ns >= only(wide.programs).iterations[-1].end_ns


# -- devices -------------------------------------------------------------------------------------------------


def ssd_spec(**changes: Any) -> SsdSpec:
    """A drive with round numbers: 1 GB/s link, 10 us a command, 4 units of 4 KiB in 1 ms."""
    fields = {
        "link": 10**9, "command_time": 10 * US, "latency": 20 * US, "cache": 64 * KIB, "units": 4,
        "flash_page": 4 * KIB, "program_time": MS, "protected": True,
    }  # fmt: skip
    return SsdSpec(**{**fields, **changes})


def completions(device_of: Any, writes: list[tuple[int, int, str]]) -> list[int]:
    """When each of the *writes* (start, sectors, op), all submitted at 0, completes (ns)."""
    env = Environment()
    device = device_of(env)
    times = [0] * len(writes)

    def done(n: int) -> Any:
        def set_time() -> None:
            times[n] = env.now

        return set_time

    for n, (start, count, op) in enumerate(writes):
        device.submit(Request(Bio(start, count, op=op)), done(n))
    env.run()
    return times


def test_an_ssd_completes_into_its_cache() -> None:
    """Command, transfer, latency; the link serialises, the latency does not."""
    times = completions(lambda env: Ssd(env=env, spec=ssd_spec(), name="d"), [(0, 8, "W"), (800, 8, "W")])
    assert times == [10_000 + 4_096 + 20_000, 2 * (10_000 + 4_096) + 20_000]


def test_a_full_cache_drains_at_the_media_s_rate() -> None:
    """In the long run: units * flash page / program time, here 16 MiB/s."""
    writes = [(8 * i, 8, "W") for i in range(2_000)]
    times = completions(lambda env: Ssd(env=env, spec=ssd_spec(), name="d"), writes)
    drained = (2_000 - 16) * 4 * KIB  # all but what the cache still holds
    assert times[-1] == pytest.approx(drained * S / (4 * 4 * KIB * 1000), rel=0.01)


def test_a_flush_waits_for_a_volatile_cache_only() -> None:
    """FLUSH on a protected cache costs nothing; on a volatile one, the programming of what is in it."""
    writes = [(0, 8, "W"), (8, 8, "FW")]
    protected = completions(lambda env: Ssd(env=env, spec=ssd_spec(), name="d"), writes)
    volatile = completions(lambda env: Ssd(env=env, spec=ssd_spec(protected=False), name="d"), writes)
    assert protected[1] < MS < volatile[1]


def test_raid0_splits_at_chunks_and_waits_for_all_members() -> None:
    """Pieces of one member go as one request; the slowest member ends the whole."""
    env = Environment()
    members = [SlowDevice(env, 100), SlowDevice(env, 500)]
    spec = Raid0Spec(chunk=64 * KIB, members=(SATA_SSD_2013, SATA_SSD_2013))
    array = Raid0(env=env, spec=spec, name="md0", members=members)
    ended: list[int] = []
    array.submit(Request(Bio(64, 384)), lambda: ended.append(env.now))  # chunks 0 (half), 1, 2, 3 (half)
    env.run()
    assert [[r.sectors for r in member.requests] for member in members] == [[64 + 128], [128 + 64]]
    assert ended == [500]


def test_more_bandwidth_is_never_slower() -> None:
    """Metamorphic: a faster link or more units, an earlier end."""
    writes = [(8 * i, 8, "W") for i in range(300)]
    ends = [
        completions(lambda env, s=spec: Ssd(env=env, spec=s, name="d"), writes)[-1]
        for spec in (ssd_spec(units=2), ssd_spec(), ssd_spec(units=8), ssd_spec(units=8, link=4 * 10**9))
    ]
    assert ends == sorted(ends, reverse=True)


@pytest.mark.parametrize(
    ("order", "pages", "programs"),
    [
        (range(60, -1, -4), 4, 16),  # whole units
        (range(64), 1, 16),  # page by page, in order: each unit once
        (range(60, -1, -4), 1, 16),  # a page of each unit has all of it programmed
        (range(63, -1, -1), 1, 64),  # page by page, backwards: nothing goes on where the last write ended
        (range(58, -3, -4), 4, 32),  # across the edges: two units each
    ],
)
@pytest.mark.parametrize("batch", [True, False])
def test_an_indirection_unit_is_programmed_whole(
    order: range, pages: int, programs: int, batch: bool
) -> None:
    """Units of 16 KiB, given in one batch or one by one: as long as so many programs take."""
    env = Environment()
    spec = SsdSpec.model_validate(
        {
            **SATA_SSD_2013,
            "flash_page": 16 * KIB,
            "units": 1,
            "program_time": MS,
            "indirection_unit": 16 * KIB,
            "link": 10**15,
            "command_time": 0,
            "latency": 0,
            "cache": 16 * KIB,
        }
    )
    ssd = Ssd(env=env, spec=spec, name="ssd")
    places = [place + 4 for place in order]
    if batch:
        starts = 8 * np.array(places)
        ssd.submit_batch(starts, starts + 8 * pages, lambda: None)
    else:
        for place in places:
            ssd.submit(Request(Bio(8 * place, 8 * pages)), lambda: None)
    env.run()
    assert env.now == pytest.approx((programs - 1) * MS, abs=MS)
