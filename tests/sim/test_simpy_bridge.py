"""SimPy's own processes beside the model, on either engine's clock."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import simpy

from tests.harness import FIO, loop_config
from wbsim.experiments.config.experiment import load
from wbsim.models.machine import LIGHT, STOCK, Machine, Primitives, build
from wbsim.sim.units import MS

BOTH = pytest.mark.parametrize("primitives", [LIGHT, STOCK])


@BOTH
def test_timeouts_resources_and_processes_share_the_clock(primitives: Primitives) -> None:
    """One slot, two users that hold it 5 ns each, and a third process that waits for both."""
    env = primitives.environment()
    desk = simpy.Resource(env.simpy, capacity=1)
    log: list[tuple[int, str]] = []

    def user(name: str) -> Generator[simpy.Event, Any, str]:
        with desk.request() as place:
            yield place
            yield env.simpy.timeout(5)
        log.append((env.simpy.now, name))
        return name

    def both() -> Generator[simpy.Event, Any, None]:
        found = yield env.simpy.process(user("a")) & env.simpy.process(user("b"))
        log.append((env.now, "".join(found.values())))

    env.simpy.process(both())
    env.call_at(7, 0, lambda: log.append((env.simpy.peek(), "is next")))
    env.run()
    assert log == [(5, "a"), (10, "is next"), (10, "b"), (10, "ab")]


def test_what_fails_is_told() -> None:
    """An exception of a process that nobody waits for ends the run, as SimPy's own run does."""
    env = LIGHT.environment()

    def fails() -> Generator[simpy.Event, Any, None]:
        yield env.simpy.timeout(3)
        raise ZeroDivisionError

    env.simpy.process(fails())
    with pytest.raises(ZeroDivisionError):
        env.run()


def test_only_the_model_s_environment_runs_and_counts_whole_ns() -> None:
    """The other two ways are answered with what is right."""
    env = LIGHT.environment()
    with pytest.raises(TypeError, match=r"0\.5: the clock counts whole ns"):
        env.simpy.timeout(0.5)
    with pytest.raises(RuntimeError, match="run the model's environment"):
        env.simpy.run()
    with pytest.raises(RuntimeError, match="run the model's environment"):
        env.simpy.step()


def administered(path: Path, primitives: Primitives) -> tuple[list[int], Machine]:
    """When each sync(2) of an administrator, one after the other 20 ms apart, returned."""
    machine = build(load(path).cases[0].scenario, 1, primitives=primitives)
    returned: list[int] = []

    def administrator() -> Generator[simpy.Event, Any, None]:
        while True:
            yield machine.env.simpy.timeout(20 * MS)
            dirty = machine.cache.dirty_and_writeback
            before = machine.cache.written
            yield machine.sync()
            assert machine.cache.written - before >= dirty, "what was dirty at the call is clean"
            returned.append(machine.env.now)

    machine.env.simpy.process(administrator())
    machine.run()
    return returned, machine


@pytest.mark.parametrize("filesystem", ["loop-xfs", "loop-ext4"])
@pytest.mark.stock
def test_an_administrator_s_syncs(filesystem: str, tmp_path: Path) -> None:
    """A plain SimPy process runs sync(2) beside a fio of large files: the same on both engines, and the run
    ends with fio although the process never does.
    """
    path = tmp_path / "x.toml"
    command = f"{FIO} --rw=write --nrfiles=2 --filesize=64m --name=a"
    path.write_text(loop_config(command, dirty_mib=16, filesystem=filesystem))
    light, stock = administered(path, LIGHT), administered(path, STOCK)
    assert len(light[0]) > 2
    assert light[0] == stock[0]
    assert light[1].env.now == stock[1].env.now
    assert [queue.stat for queue in light[1].queues.values()] == [
        queue.stat for queue in stock[1].queues.values()
    ]
