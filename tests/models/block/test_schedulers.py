"""The names of I/O schedulers, by release, and what each name makes the queue do."""

from __future__ import annotations

import pytest

from tests.harness import FIO, loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.models.io_schedulers.releases import schedulers_of
from wbsim.models.machine import build
from wbsim.models.release import release_of
from wbsim.models.scenario import Scenario

KEY = "machine.disks.d.queue.elevator.scheduler"


def scenario(kernel: str, scheduler: str) -> Scenario:
    """Return the scenario of a disk with *scheduler* under *kernel*."""
    command = f"{FIO} --rw=randwrite --filesize=4m --name=a --directory=/d"
    text = loop_config(command, dirty_mib=2, more='machine.disks.d.like = "sata-disk"').replace(
        'filesystem.like = "loop-xfs"', 'mounts.m = { like = "loop-xfs", disk = "d", at = "/d" }'
    )
    queues = ["machine.disks.d.queue.driver_depth=1", 'machine.disks.d.device.cache="0 B"']
    changes = [*queues, f'kernel.like="{kernel}"', f'{KEY}="{scheduler}"']
    (case,) = parse(text, "x.toml", changes).cases
    return case.scenario


@pytest.mark.parametrize(
    ("release", "names"),
    [
        ("2.6.32", ["noop", "deadline", "cfq"]),
        ("3.12", ["noop", "deadline", "cfq"]),
        ("3.13", ["noop", "deadline", "cfq", "none"]),
        ("4.11", ["noop", "deadline", "cfq", "none", "mq-deadline"]),
        ("4.20", ["noop", "deadline", "cfq", "none", "mq-deadline", "bfq", "kyber"]),
        ("5.0", ["none", "mq-deadline", "bfq", "kyber"]),
    ],
)
def test_each_release_has_its_schedulers(release: str, names: list[str]) -> None:
    """blk-mq came with none in 3.13 and mq-deadline in 4.11; the legacy queue went with 5.0."""
    assert schedulers_of(release_of(release)) == names


@pytest.mark.parametrize(
    ("kernel", "scheduler", "message"),
    [
        ("6.18", "cfq", "cfq does not exist in Linux 6.18; use one of none, mq-deadline"),
        ("5.0", "cfq", "cfq does not exist in Linux 5.0; use one of none, mq-deadline"),
        ("3.11", "none", "none does not exist in Linux 3.11; use one of noop, deadline, cfq"),
        (
            "4.9",
            "mq-deadline",
            "mq-deadline does not exist in Linux 4.9; use one of noop, deadline, cfq",
        ),
        ("6.18", "bfq", "bfq is not modelled; use one of cfq, deadline, mq-deadline, noop, none"),
        ("4.12", "kyber", "kyber is not modelled; use one of cfq"),
        ("6.18", "mq", "is 'mq'; use one of cfq, deadline, mq-deadline, none, noop"),
    ],
)
def test_a_scheduler_that_a_release_lacks_is_refused(kernel: str, scheduler: str, message: str) -> None:
    """The error stands at the key and lists the modelled schedulers of the release."""
    with pytest.raises(BadInput, match=message) as refused:
        scenario(kernel, scheduler)
    assert [KEY in str(problem) for problem in refused.value.problems] == [True]


@pytest.mark.parametrize(
    ("scheduler", "same", "other"),
    [("none", "noop", "deadline"), ("mq-deadline", "deadline", "noop")],
)
def test_both_names_of_a_scheduler_do_the_same(scheduler: str, same: str, other: str) -> None:
    """``noop`` and ``deadline`` are accepted under every kernel, as other names of the blk-mq schedulers."""
    counted = run_of(scenario("6.18", scheduler))
    assert counted == run_of(scenario("6.18", same))
    assert counted != run_of(scenario("6.18", other))


def test_the_last_release_with_cfq_runs_it() -> None:
    """CFQ went with the legacy queue after 4.20."""
    assert scenario("4.20", "cfq").machine.disks["d"].queue.elevator.scheduler == "cfq"


def run_of(of: Scenario) -> object:
    """Run *of* and return what its queue counted."""
    model = build(of, 1)
    model.run()
    return {name: queue.stat for name, queue in model.queues.items()}
