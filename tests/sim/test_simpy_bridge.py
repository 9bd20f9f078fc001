"""Plain SimPy processes next to the model, on the clock of either engine."""

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
    """Two processes hold a resource for 5 ns each, one after the other, and a third one waits for both."""
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


def test_exception_of_a_simpy_process_ends_the_run() -> None:
    """An exception of a process ends the run if no process waits for it, like in SimPy."""
    env = LIGHT.environment()

    def fails() -> Generator[simpy.Event, Any, None]:
        yield env.simpy.timeout(3)
        raise ZeroDivisionError

    env.simpy.process(fails())
    with pytest.raises(ZeroDivisionError):
        env.run()


def test_simpy_environment_refuses_runs_and_fractions_of_ns() -> None:
    """Fractional timeouts, and calls of run and step, raise errors that name the right way."""
    env = LIGHT.environment()
    with pytest.raises(TypeError, match=r"0\.5 is not allowed; give a whole number of ns"):
        env.simpy.timeout(0.5)
    with pytest.raises(RuntimeError, match="SimPy processes run with the model"):
        env.simpy.run()
    with pytest.raises(RuntimeError, match="SimPy processes run with the model"):
        env.simpy.step()


def administered(path: Path, primitives: Primitives) -> tuple[list[int], Machine]:
    """Run *path* with a SimPy process that calls sync(2) 20 ms after the last one returned.

    Return the times of the returns, and the machine.
    """
    machine = build(load(path).cases[0].scenario, 1, primitives=primitives)
    returned: list[int] = []

    def administrator() -> Generator[simpy.Event, Any, None]:
        while True:
            yield machine.env.simpy.timeout(20 * MS)
            dirty = machine.cache.dirty_and_writeback
            before = machine.cache.written_pages
            yield machine.sync()
            assert machine.cache.written_pages - before >= dirty, (
                "pages that were dirty at the call are clean"
            )
            returned.append(machine.env.now)

    machine.env.simpy.process(administrator())
    machine.run()
    return returned, machine


@pytest.mark.parametrize("filesystem", ["loop-xfs", "loop-ext4"])
@pytest.mark.stock
def test_simpy_process_calls_sync_during_a_run(filesystem: str, tmp_path: Path) -> None:
    """A SimPy process calls sync(2) while fio writes large files, with the same results on both engines.

    The run ends with fio, although the process never ends.
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
