"""The parts of components: their names, their ranks and their times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.harness import BlockLayer
from wbsim.models.interfaces import Thread
from wbsim.models.parts import LockTimes, Parts, Supply
from wbsim.sim.engine import URGENT, Environment
from wbsim.sim.streams import Streams
from wbsim.sim.sync import HandOff, LockStat, RwSemaphoreRules, SpinLock

Made = list[tuple[str, object, object]]
"""The name of each thread and spinlock that was made, and two of its arguments."""
OWN, NEAR, FAR, MUTEX, WAKE, WAKER = 1, 20, 300, 4_000, 50_000, 700
HAND_OFF = HandOff(NEAR, FAR, node_cpus=2)


@pytest.fixture
def made() -> Made:
    """Return a list for the makers of `supply` to fill."""
    return []


@pytest.fixture
def supply(made: Made) -> Supply:
    """Return a supply with a different number for each time."""
    layer = BlockLayer()

    def thread(name: str, seated: bool) -> Thread:
        made.append((name, "thread", seated))
        return layer._thread(name, seated)

    def spin_lock(env: Environment, name: str, hand_off: HandOff, rank: int) -> SpinLock:
        made.append((name, hand_off, rank))
        return SpinLock(env, name, hand_off, rank)

    times = LockTimes(HAND_OFF, RwSemaphoreRules(True, True, 0, 0), WAKE, WAKER, MUTEX, OWN, FAR)
    return replace(layer.supply, times=times, make_thread=thread, spin_lock=spin_lock, locks=[], cv=0.3)


def test_threads_have_the_names_of_their_owners(supply: Supply, made: Made) -> None:
    """A process has a seat, and a thread of the kernel has none."""
    parts = Parts(supply).for_part("sda").for_part("mnt")
    parts.thread("aild"), parts.process("dd")
    assert made == [("sda/mnt/aild", "thread", False), ("sda/mnt/dd", "thread", True)]


def test_parts_without_an_owner_have_plain_names(supply: Supply, made: Made) -> None:
    parts = Parts(supply)
    assert parts.for_part("") is parts
    parts.thread("kswapd0")
    assert made == [("kswapd0", "thread", False)]


def test_spin_locks_and_lines_have_the_rank_of_their_owner(supply: Supply, made: Made) -> None:
    """A line without a lock in the kernel has a hand-off of 0 ns."""
    parts = Parts(supply, urgent=URGENT - 1).for_part("sda")
    parts.spin_lock("queue_lock"), parts.line("head")
    assert made == [("sda/queue_lock", HAND_OFF, URGENT - 1), ("sda/head", HandOff(0, 0), URGENT - 1)]


def test_lines_from_another_node_take_longer(supply: Supply) -> None:
    parts = Parts(supply)
    for line in (parts.line("a"), parts.lines(parts.spin_lock("b"))):
        task, took = supply.env.task("t"), []
        for cpu in (0, 0, 1, 3):
            task.cpu = cpu
            took.append(line.fetch_ns(task))
        assert took[1:] == [OWN, NEAR, FAR]


def test_rw_semaphores_are_counted_only_by_their_class(supply: Supply) -> None:
    """Each spinlock, line and mutex is counted alone."""
    parts = Parts(supply).for_part("mnt")
    parts.spin_lock("s"), parts.line("l"), parts.mutex("m"), parts.rw_semaphores("ILOCK")()
    parts.count_lock("ILOCK", lambda: (LockStat(), 0))
    assert [lock.name for lock in supply.locks] == ["mnt/s", "mnt/l", "mnt/m", "mnt/ILOCK"]


def test_wake_ups_of_two_mounts_are_drawn_apart(supply: Supply) -> None:
    """Each mount has its own random numbers; a second one of the same name is refused."""
    for mount in ("a", "b"):
        Parts(supply).for_part(mount).rw_semaphores("ILOCK")
    with pytest.raises(ValueError, match="a/wake-ups of ILOCK"):
        Parts(supply).for_part("a").rw_semaphores("ILOCK")


def test_parts_give_the_times_of_lines_and_wake_ups(supply: Supply) -> None:
    """`line_ns` is the time of the processor's own line and that of the farthest line."""
    parts = Parts(supply)
    assert (parts.line_ns, parts.hand_off) == ((OWN, FAR), HAND_OFF)


def test_random_streams_are_named_after_the_owner(supply: Supply) -> None:
    """Every kind of draw uses the stream of the name; times of paths vary by the machine's *cv*."""
    parts, streams = Parts(replace(supply, streams=Streams(5))).for_part("dd"), Streams(5)
    assert parts.variation("a").next() == streams.service_times("dd/a", 0.3).next()
    assert parts.variations("b")(3).tolist() == streams.service_time_arrays("dd/b", 0.3)(3).tolist()
    assert parts.uniforms("c").next() == streams.uniforms("dd/c").next()
    assert parts.random("d").random() == streams.generator("dd/d").random()
