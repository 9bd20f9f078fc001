"""When a step of a walk holds its locks."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.config import parse
from models.machine import build
from tests.harness import FIO, loop_config, only

TEXT = loop_config(
    f"{FIO} --rw=randwrite --nrfiles=3 --filesize=8m --name=a --directory=/a --name=b --directory=/b",
    dirty_mib=4, kernel="3.11", more='kernel.flusher = { kind = "parallel", by = "hash", contexts = 2 }',
)  # fmt: skip
"""Two contexts and six files."""


@pytest.mark.source
def test_a_step_that_gives_no_blocks_takes_no_locks() -> None:
    """Though others' events come before its end; one that gives blocks takes them there, and one that ends in
    the middle of an allocation takes them anyhow.
    """
    machine = build(parse(TEXT, "x.toml").cases[0].scenario, 1)
    filesystem: Any = only(machine.mounts).filesystem
    placement, env = filesystem.placement, machine.env
    walk, lock = placement.step, placement.lock
    steps: list[dict[str, bool]] = []

    def seen_walk(inode: Any, at: Any, *rest: Any) -> int:
        ended = walk(inode, at, *rest)
        steps.append(
            {
                "gives": bool(at.mapped_extents), "allocating": bool(at.allocating),
                "crosses": at.elapsed_ns > env.next_event_ns() - env.now, "locked": False,
            }
        )  # fmt: skip
        return int(ended)

    def seen_lock(*parts: Any) -> None:
        steps[-1]["locked"] = True
        lock(*parts)

    placement.step, placement.lock = seen_walk, seen_lock
    machine.run()
    for step in steps:
        assert step["locked"] == (step["allocating"] or (step["gives"] and step["crosses"]))
    kinds = {tuple(step.values()) for step in steps}
    assert (False, False, True, False) in kinds, "a step crossed an event and gave no blocks"
    assert (True, False, True, True) in kinds, "a step crossed an event and gave blocks"
    assert any(step["allocating"] for step in steps)
