"""Names and numbers that users copy from sysctl and sysfs."""

from __future__ import annotations

from typing import Any, Final

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.linux_names import key_of
from wbsim.experiments.config.problems import BadInput
from wbsim.models.page_cache.spec import DirtyLimits

CONFIG: Final = """\
title = "t"
[scenario]
machine.like = "desk-vm"
kernel.like = "6.12"
mounts.a = { like = "loop-ext4", disk = "loop0", at = "/a" }
workload.command = "dd if=/dev/zero of=/a/x bs=4k count=1"
"""


def limits_of(text: str) -> DirtyLimits:
    """Return the dirty limits of a configuration whose ``kernel.dirty`` is *text*."""
    (case,) = parse(f"{CONFIG}kernel.dirty = {text}\n", "x.toml").cases
    limits: Any = case.scenario.kernel.dirty
    assert isinstance(limits, DirtyLimits)
    return limits


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{ dirty_ratio = 9, dirty_bytes = 0, dirty_background_ratio = 0, dirty_background_bytes = 20480 }",
         (9, None, 0, 20_480)),
        ("{ dirty_ratio = 0, dirty_bytes = 8192, dirty_background_ratio = 7, dirty_background_bytes = 0 }",
         (0, 8_192, 7, None)),
        ('{ dirty_bytes = "200 MiB", dirty_background_bytes = "0 B" }', (20, 209_715_200, 10, None)),
    ],
)  # fmt: skip
def test_dirty_limits_are_read_as_sysctl_prints_them(text: str, found: tuple[int | None, ...]) -> None:
    """A bare number is bytes.  Of a ratio and its size in bytes, the one that is not 0 counts."""
    limits = limits_of(text)
    assert found == (
        limits.dirty_ratio, limits.dirty_bytes, limits.dirty_background_ratio, limits.dirty_background_bytes,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "{ dirty_ratio = 0 }",
            "kernel.dirty.dirty_ratio: is 0, which allows no dirty page; give 1 or more",
        ),
        ("{ dirty_ratio = 0, dirty_bytes = 0 }", "dirty_ratio: is 0, which allows no dirty page"),
        ("{ dirty_bytes = 8191 }", "kernel.dirty.dirty_bytes: 8191 B is less than the kernel allows"),
        ("{ dirty_bytes = -1 }", "kernel.dirty.dirty_bytes: "),
        ("{ dirty_bytes = 1.5 }", "kernel.dirty.dirty_bytes: 1.5 has no unit"),
        ("{ dirty_bytes = true }", "kernel.dirty.dirty_bytes: true has no unit"),
    ],
)
def test_dirty_limits_that_linux_refuses_are_refused(text: str, told: str) -> None:
    """The problem has the line and the remedy."""
    with pytest.raises(BadInput, match=r"x\.toml:7: ") as caught:
        limits_of(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("vm.dirty_ratio = 1", "vm: unknown key; the settings of vm.* are keys of kernel.dirty and kernel"),
        ("kernel.dirty_ratio = 1",
         "kernel.dirty_ratio: is Linux's name; the key is kernel.dirty.dirty_ratio"),
        ("kernel.dirty.dirty_expire_centisecs = 3000",
         'is Linux\'s name; the key is kernel.writeback.expire, a time such as "30 s"'),
        ("kernel.writeback.dirty_writeback_centisecs = 500",
         'the key is kernel.writeback.interval, a time such as "5 s"'),
        ("machine.queue.wbt_lat_usec = 0", "the key is wbt, which is true where wbt_lat_usec is not 0, in"),
        ("machine.queue.max_ratio = 1", "is Linux's name of a setting that is not modelled; leave it out"),
        ('machine.queue.scheduler = "none"', "the key is elevator.scheduler, in machine.queue"),
    ],
)  # fmt: skip
def test_linux_name_in_a_configuration_gives_the_right_key(line: str, told: str) -> None:
    """A name of Linux is recognised in every table."""
    with pytest.raises(BadInput, match=r"x\.toml:7: ") as caught:
        parse(f"{CONFIG}{line}\n", "x.toml")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("vm.dirty_ratio=10", "vm.dirty_ratio: is Linux's name; the key is kernel.dirty.dirty_ratio"),
        ("dirty_bytes=5", "dirty_bytes: is Linux's name; the key is kernel.dirty.dirty_bytes"),
        ("vm.swappiness=3", "is Linux's name of a setting that is not modelled; leave it out"),
        ("nomerges=2", "the key is limits.nomerges, in machine.queue or in a disk's queue"),
        ("machine.queue.nomerges=2", "the key is limits.nomerges, in machine.queue or in a disk's queue"),
        ("vm.dirty_ration=10", "no command line contains {vm.dirty_ration}, and it is an unknown key; use"),
    ],
)
def test_linux_name_on_the_command_line_gives_the_right_key(setting: str, told: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(CONFIG, "x.toml", [setting])
    assert str(caught.value).startswith(f"--set {setting}: ")
    assert told in str(caught.value)


def test_unknown_name_of_linux_has_no_key() -> None:
    """Similar keys are proposed by another function."""
    assert key_of("dirty_ration") is None
    assert key_of("vm.dirty_bytes") == "is Linux's name; the key is kernel.dirty.dirty_bytes"
