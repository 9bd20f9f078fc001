"""Small runs of the complete model: conservation, the scope of the plug, determinism, effects of changes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tests.harness import FIO, attributes_of, loop_config, only, run_small, small_scenario
from wbsim.experiments.config.experiment import parse
from wbsim.models.interfaces import Work
from wbsim.models.machine import LIGHT, STOCK, Machine, build
from wbsim.models.tracepoints import Signals
from wbsim.sim.units import MIB, S


def iterations(machine: Machine) -> list[Any]:
    """Return the iterations of fs_mark."""
    return list(only(machine.programs).iterations)


@settings(
    max_examples=15, deadline=None, phases=[Phase.explicit, Phase.generate]
)  # shrinking a failing run takes long
@given(
    patched=st.booleans(),
    processes=st.integers(1, 5),
    files=st.integers(1, 300),
    memory_mib=st.sampled_from([4, 16, 64]),
    size=st.sampled_from([1, 4096, 20_000, 1 * MIB, 9 * MIB]),
)
@example(
    patched=False, processes=5, files=131, memory_mib=4, size=9 * MIB
)  # the file grows while its blocks are allocated
def test_no_page_is_lost(patched: bool, processes: int, files: int, memory_mib: int, size: int) -> None:
    """At the end of the program each dirtied page is dirty, under writeback or written.

    After a sync all pages are written.
    """
    machine = build(
        small_scenario(
            patched=patched, processes=processes, files=files * 4096 // (4096 + size) + 1, loops=2,
            memory_mib=memory_mib, changes={"workload.file_size": size},
        ),
        seed=1,
    )  # fmt: skip
    cache, plan, env = machine.cache, only(machine.programs).plan, machine.env
    pages = 2 * plan.processes * plan.files * -(-size // 4096)

    def ended() -> None:
        assert cache.dirtied == pages == cache.dirty + cache.writeback + cache.written_pages
        machine.flushers.queue(machine.cache.wbs[0], Work("sync"))
        env.call_at(env.now + 120 * S, 0, env.halt)

    only(machine.programs).on_end = ended
    machine.env.run(600 * S)
    assert (cache.written_pages, cache.dirty, cache.writeback) == (pages, 0, 0)
    assert len(machine.cache.wbs[0]) == 0
    assert only(machine.queues).stat.in_flight == 0
    assert iterations(machine)[-1].count == 2 * plan.processes * plan.files


def data_requests(machine_of: dict[str, Any]) -> list[int]:
    """Run a small scenario and return the sizes (sectors) of its data writes, in order of issue."""
    signals = Signals()
    sizes: list[int] = []

    def issued(_: str, request: Any) -> None:
        if request.bios[0].end_io is not None and request.op == "W":
            sizes.append(request.sectors)

    signals.block_rq_issue.observers.append(issued)
    run_small(signals=signals, **machine_of)
    return sizes


def test_plug_scope_decides_whether_small_files_merge() -> None:
    """The scope of the plug decides whether bios of several files merge (report P13).

    * per mapping: a request for each file
    * per slice: less than 15 % as many requests
    * per work item: at most 20 % more requests than per slice
    """
    of: dict[str, Any] = {"processes": 4, "files": 2_000, "loops": 3}
    mapping = data_requests(of)
    slices = data_requests({**of, "patched": True})
    work = data_requests({**of, "changes": {"kernel.writeback.plug_scope": "work"}})
    assert len(mapping) > 1_000
    assert sum(size == 8 for size in mapping) > 0.95 * len(mapping)
    assert len(slices) < 0.15 * len(mapping)
    assert len(work) <= 1.2 * len(slices)


def test_large_file_merges_with_a_plug_per_mapping() -> None:
    """A plug per mapping still merges the bios of one file (docs/kernel/plugs.md#where-plugs-are-opened)."""
    sizes = data_requests(
        {"processes": 1, "files": 30, "memory_mib": 64, "changes": {"workload.file_size": 4 * MIB}}
    )
    assert max(sizes) > 900
    assert sum(sizes) / len(sizes) > 500


def test_more_streams_than_the_plug_holds_do_not_merge() -> None:
    """12 interleaved streams merge; 24 do not, because every new request finds the plug full with 16."""

    def mean(processes: int) -> float:
        files = 24_000 // processes
        sizes = data_requests(
            {"patched": True, "processes": processes, "files": files, "loops": 1, "memory_mib": 32,
             "changes": {"machine.processors.count": 64}}
        )  # fmt: skip
        assert len(sizes) > 100
        return sum(sizes) / len(sizes)

    assert mean(12) > 4 * mean(24)


@pytest.mark.parametrize("patched", [False, True])
@pytest.mark.stock
def test_light_and_stock_primitives_agree_on_the_whole_model(patched: bool) -> None:
    """One seed gives the same results to the ns with the light primitives and with stock SimPy."""

    def trace(primitives: Any) -> tuple[Any, ...]:
        machine = run_small(patched=patched, primitives=primitives, processes=6, files=300)
        wb = machine.cache.wbs[0]
        return (
            iterations(machine), only(machine.queues).stat, [lock.stat for lock in machine.locks],
            only(machine.programs).system_ns, only(machine.mounts).filesystem.log_bytes,
            [getattr(wb.bandwidth, name) for name in attributes_of(wb.bandwidth)],
        )  # fmt: skip

    assert trace(LIGHT) == trace(STOCK)


@pytest.mark.parametrize(
    ("kernel", "filesystem", "command"),
    [
        ("6.18", "loop-xfs", "--rw=randwrite --nrfiles=3 --filesize=4m --name=a --name=b --directory=/b"),
        ("6.18", "loop-ext4", "--rw=randwrite --nrfiles=3 --filesize=4m --name=a --directory=/a"),
        ("3.11", "loop-xfs", "--rw=write --nrfiles=2 --filesize=6m --name=a --directory=/a"),
        ("2.6.34", "n10-xfs", "--rw=randwrite --nrfiles=2 --filesize=6m --name=a --name=b --directory=/b"),
    ],
)
@pytest.mark.stock
def test_large_files_give_the_same_results_on_stock_simpy(kernel: str, filesystem: str, command: str) -> None:
    """Compiled walks end where the light engine would have an event, so both engines agree to the ns."""
    text = loop_config(f"{FIO} {command}", dirty_mib=4, kernel=kernel, filesystem=filesystem)
    (case,) = parse(text, "x.toml").cases
    found = []
    for primitives in (LIGHT, STOCK):
        machine = build(case.scenario, 1, primitives=primitives)
        machine.run()
        filesystem_of = only(machine.mounts).filesystem
        found.append(
            (machine.env.now, only(machine.queues).stat, filesystem_of.extents_per_file(),
             [lock.stat for lock in machine.locks], only(machine.programs).system_ns)
        )  # fmt: skip
    assert found[0] == found[1]
    assert found[0][1].writes.ios > 10


GOLDEN = """\
import hashlib
from tests.harness import only, run_small, small_scenario
m = run_small(processes=3, files=200)
program = only(m.programs)
print(hashlib.sha256(repr((program.iterations, only(m.queues).stat, program.system_ns)).encode()).hexdigest())
"""


def test_results_do_not_depend_on_the_hash_seed() -> None:
    """Two processes with different hash seeds and this process give the same results."""
    digests = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", GOLDEN], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(run.stdout.strip())
    machine = run_small(processes=3, files=200)
    here = repr(
        (only(machine.programs).iterations, only(machine.queues).stat, only(machine.programs).system_ns)
    )
    digests.add(hashlib.sha256(here.encode()).hexdigest())
    assert len(digests) == 1


def test_another_seed_gives_other_results() -> None:
    """The random numbers of a seed change the results."""
    assert iterations(run_small(seed=1)) != iterations(run_small(seed=2))


def test_tiny_run_gives_the_golden_log_of_block_events() -> None:
    """A patched run of five files gives the flusher's block events as the kernel would trace them."""
    signals = Signals()
    log: list[str] = []

    def block(name: str, **fields: Any) -> None:
        thing = fields.get("bio") or fields.get("request")
        if thing is not None:
            log.append(f"{name} {thing.op} {thing.start_sector} + {thing.sectors}")
        else:
            log.append(f"{name} {len(fields['requests'])}" if "requests" in fields else name)

    for name in ("block_bio_queue", "block_bio_backmerge", "block_getrq", "block_plug", "block_unplug",
                 "block_rq_issue"):  # fmt: skip
        getattr(signals, name).observers.append(block)
    machine = run_small(signals=signals, patched=True, processes=1, files=5, loops=1, memory_mib=1)
    machine.flushers.queue(machine.cache.wbs[0], Work("sync"))
    machine.env.call_at(machine.env.now + 50_000_000, 0, machine.env.halt)
    machine.env.run()
    first = 128 + 72  # the group's head, an inode chunk of 64 sectors, a directory block of 8
    expected = ["block_plug"]
    for i in range(5):
        expected.append(f"block_bio_queue W {first + 8 * i} + 8")
        expected.append(f"{'block_bio_backmerge' if i else 'block_getrq'} W {first + 8 * i} + 8")
    expected += ["block_unplug 1", f"block_rq_issue W {first} + 40"]
    expected += ["block_plug"]  # the slice that finds nothing more
    assert log == expected


@pytest.mark.parametrize("factor", [3, 7])
def test_slower_processors_stretch_an_unthrottled_run(factor: int) -> None:
    """An unthrottled run takes *factor* times longer if every code path does."""

    def wall_ns(scale: float) -> int:
        lines = dict.fromkeys(("line_own", "line_time", "line_from_far"), 0)  # cache lines, not code paths
        changes = {"machine.processors.cv": 0}
        changes |= {f"machine.processors.{of}_scale": scale for of in ("writer", "flusher")}
        changes |= {f"machine.processors.{name}": ns for name, ns in lines.items()}
        end_ns: int = iterations(run_small(processes=2, files=50, memory_mib=64, changes=changes))[-1].end_ns
        return end_ns

    assert wall_ns(2.0 * factor) / wall_ns(2.0) == pytest.approx(factor, rel=0.01)


def test_a_cheaper_flusher_is_never_slower() -> None:
    """Less work per inode never makes a run longer, because throttled writers follow the flusher."""
    walls = [
        iterations(run_small(files=2_000, changes={"machine.processors.flusher_scale": scale}))[-1].end_ns
        for scale in (0.5, 2.0, 8.0)
    ]
    assert walls == sorted(walls)
    assert walls[2] > 1.5 * walls[0]


def test_forty_writers_finish_on_sixteen_processors() -> None:
    """Forty processes on sixteen processors all finish, and each one has used processor time."""
    machine = run_small(processes=40, files=50, loops=2)
    assert iterations(machine)[-1].count == 4_000
    assert all(process.spent.system > 0 for process in only(machine.programs).family.children)
