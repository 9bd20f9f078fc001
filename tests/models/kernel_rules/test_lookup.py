"""The rules of a release, and those that two kernels have differently."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import FIO
from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue.kernels import KERNELS, Kernels
from wbsim.models.kernel_rules import lookup
from wbsim.models.kernel_rules.lookup import changes, inputs_of, rule_for, rules_of
from wbsim.models.kernel_rules.rule import ABSENT, rule
from wbsim.models.kernel_rules.table import NAMED, NVME, RULES, SATA
from wbsim.models.machine import build
from wbsim.models.release import release_of

SERIES: Final = [f"2.6.{minor}" for minor in range(29, 40)] + [
    f"{major}.{minor}" for major, most in ((3, 19), (4, 20), (5, 19), (6, 18)) for minor in range(most + 1)
]
ALIKE: Final = [pair for pair in pairwise(SERIES) if not list(changes(*pair))]


def numbers_of(kernel: str) -> dict[str, Any]:
    """Return the numbers of *kernel* by their paths, without its name."""
    numbers = {number.path: number.value for number in KERNELS[kernel].numbers()}
    return {path: value for path, value in numbers.items() if path != "name"}


@given(st.sampled_from([*SERIES, *NAMED, "5.10.88", "6.12.116"]), st.sampled_from([*SERIES, *NAMED]))
def test_changes_are_the_numbers_that_differ(before: str, after: str) -> None:
    """A number that only one of both has is a change, too."""
    old, new = numbers_of(before), numbers_of(after)
    differ = {path for path in old | new if old.get(path, ABSENT) != new.get(path, ABSENT)}
    found = {change.new.key for change in changes(before, after)}
    assert {key for key in found if key.partition(".")[0] not in ("queue", "mkfs")} == differ


@given(st.sampled_from(SERIES), st.sampled_from(SERIES))
def test_changes_go_back_as_they_came(before: str, after: str) -> None:
    there, back = list(changes(before, after)), list(changes(after, before))
    assert [(change.new, change.old) for change in back] == [(change.old, change.new) for change in there]


@given(st.sampled_from(SERIES), st.sampled_from(SERIES))
def test_steps_lead_to_the_later_row(before: str, after: str) -> None:
    """A change that the earlier kernel took over from a later release may be missing instead."""
    for change in changes(before, after):
        if change.steps:
            assert change.steps[-1] == change.new
        else:
            assert change.old.releases > change.new.releases


def test_changes_come_in_the_order_of_the_table() -> None:
    keys = list(dict.fromkeys(row.key for row in RULES))
    found = [keys.index(change.new.key) for change in changes("2.6.29", "6.18")]
    assert found == sorted(found)


def test_condition_chooses_the_row() -> None:
    release = release_of("4.18")
    assert rule_for("queue.blk_mq", release, SATA).value is False
    assert rule_for("queue.blk_mq", release, NVME).value is True
    with pytest.raises(KeyError):
        rule_for("queue.blk_mq", release)


def test_name_of_a_kernel_is_a_condition_for_itself_only() -> None:
    """3.11 and its patched form have one release."""
    assert inputs_of("3.11-p13")["writeback"]["plug_scope"].value == "slice"
    assert inputs_of("3.11")["writeback"]["plug_scope"].value == "mapping"
    assert inputs_of("3.11-other")["writeback"]["plug_scope"].value == "mapping"


def test_rule_that_ended_is_no_input() -> None:
    assert inputs_of("2.6.38")["plug"]["unplug_requests"].value == 4
    assert "unplug_requests" not in inputs_of("2.6.39")["plug"]


def figures_of(kernel: str, machine: str, filesystem: str) -> tuple[Any, ...]:
    """Write two random files under *kernel*, on what mkfs of its time makes; return the run's figures."""
    config = f"""\
title = "two random files"
[scenario]
machine.like = "{machine}"
kernel.like = "{kernel}"
kernel.dirty.dirty_bytes = "2 MiB"
kernel.dirty.dirty_background_bytes = "1 MiB"
filesystem.like = "{filesystem}"
workload.command = "{FIO} --rw=randwrite --nrfiles=2 --filesize=2m --name=a --directory=/a"
"""
    (case,) = parse(config, "x.toml", ()).cases
    built = build(case.scenario, 1)
    built.run()
    return (
        built.env.now, built.cache.written_pages,
        [queue.stat for queue in built.queues.values()],
        [sb.filesystem.extents_per_file() for sb in built.mounts.values()],
        [lock.stat for lock in built.locks],
    )  # fmt: skip


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
@pytest.mark.parametrize("machine", ["desktop-2018", "server-2018"])
@pytest.mark.parametrize("pair", [ALIKE[0], ALIKE[len(ALIKE) // 2], ALIKE[-1]], ids=" ".join)
def test_kernels_without_a_change_run_alike(pair: tuple[str, str], machine: str, filesystem: str) -> None:
    before, after = (figures_of(kernel, machine, filesystem) for kernel in pair)
    assert before == after


def test_there_are_neighbours_without_a_change() -> None:
    assert len(ALIKE) > 20
    assert ("5.1", "5.2") in ALIKE


@pytest.fixture
def new_default() -> Iterator[None]:
    """A release has another default: one row more in the table."""
    rules_of.cache_clear()
    row = rule(
        "dirty.dirty_ratio", "", "6.14", 25, "docs/kernel/throttling.md#limits [V 6.14]", "More dirty pages."
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "RULES", (*RULES, row))
        yield
    rules_of.cache_clear()


@pytest.mark.usefixtures("new_default")
def test_one_row_is_a_new_default() -> None:
    """The kernels from 6.14 on have it, and the difference says so."""
    kernels = Kernels()
    assert [kernels[name].dirty.dirty_ratio for name in ("6.13", "6.14", "6.18")] == [20, 25, 25]
    assert "More dirty pages." in [change.new.effect for change in changes("6.13", "6.14")]
