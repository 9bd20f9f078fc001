"""The text of a problem: its place, its key and its remedy."""

from __future__ import annotations

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput, Problem, bad, unknown_key


def test_problem_prints_its_nonempty_parts() -> None:
    """An empty key is left out.  Several problems have a line each."""
    assert str(Problem("x:1", "a.b", "is wrong")) == "x:1: a.b: is wrong"
    assert str(Problem("x:1", "", "is wrong")) == "x:1: is wrong"
    several = BadInput([Problem("x", "", "one"), Problem("y", "k", "two")])
    assert str(several) == "x: one\ny: k: two"
    assert len(several.problems) == 2
    assert str(bad("here", "is wrong", "key")) == "here: key: is wrong"


@pytest.mark.parametrize(
    ("key", "known", "message"),
    [
        ("memroy", ["cpu", "memory"], "unknown key; did you mean memory?"),
        ("zzz", ["cpu", "memory"], "unknown key; use one of cpu, memory"),
        ("zzz", [], "unknown key"),
    ],
)
def test_unknown_key_gets_the_nearest_key_or_all(key: str, known: list[str], message: str) -> None:
    """The message proposes a similar key, or else lists the known keys."""
    assert unknown_key(key, known) == message


PARTS = """
title = "parts that lack keys"
[scenario]
machine.like = "desktop-2018"
kernel.like = "6.12"
mounts.m = {{ like = "ext4", disk = "{disk}", at = "/", size = "100 GB" }}
workload.command = "dd if=/dev/zero of=/f bs=1M count=10"
"""
ARRAY = '{ kind = "raid0", chunk = "64 KiB", members = { like = "sata-disk", count = 2 } }'


@pytest.mark.parametrize(
    ("disk", "lines", "told"),
    [
        ("md0", [f"machine.disks.md0.device = {ARRAY}"], "machine.disks.md0.queue: is missing; give a value"),
        (
            "md0", [f"machine.disks.md0.device = {ARRAY}", "machine.disks.md0.queue.nr_requests = 4"],
            "machine.disks.md0.queue: lacks limits, elevator, driver_depth, wbt, interrupts;"
            " give a value for each",
        ),
        ("new", ["machine.disks.new = {}"], "machine.disks.new: lacks queue, device; give a value for each"),
        (
            "sda", ['machine.device = { kind = "disk" }'],
            "machine.device: lacks size, outer, inner, turn_time, track_seek, full_seek, cache, segments,"
            " link; give a value for each",
        ),
        (
            "sda", ['machine.device = { kind = "raid0", chunk = "64 KiB", members = [{}] }'],
            "machine.device.members.0.kind: is missing; use one of controller, disk, loop, null, raid0, ssd,"
            " write_cache",
        ),
    ],
)  # fmt: skip
def test_remedy_for_missing_keys_works(disk: str, lines: list[str], told: str) -> None:
    """The error names the ``like`` that brings the keys; with this line, the configuration is read."""
    text = PARTS.format(disk=disk) + "\n".join(lines)
    with pytest.raises(BadInput) as refused:
        parse(text, "x.toml")
    (problem,) = refused.value.problems
    said, _, remedy = f"{problem.key}: {problem.message}".partition(", or give ")
    assert said == told
    key, _, value = remedy.removesuffix(", which brings what is missing").partition(" = ")
    assert (key.rpartition(".")[2], value) == ("like", '"sata-disk"')
    parse(text, "x.toml", [f"{key}={value}"])
