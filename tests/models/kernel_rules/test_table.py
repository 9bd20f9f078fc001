"""The table of rules that change with a release: its form, and its values on both sides of each change.

`CHANGES` repeats the table from the notes on the kernel, because a wrong release has no other witness.
"""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import wbsim
from wbsim.models.catalogue.kernels import FIRST, KERNELS
from wbsim.models.catalogue.mkfs import Target, made_ext4, made_xfs
from wbsim.models.catalogue.queues import nvme_queue, sata_queue, virtio_queue
from wbsim.models.io_schedulers.releases import schedulers_of
from wbsim.models.kernel_rules.lookup import rules_of
from wbsim.models.kernel_rules.rule import ABSENT, Rule
from wbsim.models.kernel_rules.table import NAMED, RULES
from wbsim.models.release import NEWEST_PATCH, bound_of, release_of
from wbsim.sim.param import specified
from wbsim.sim.units import GIB, KIB, MIB, MS, S


class Change(NamedTuple):
    """A rule has the value *before* to the release in front of *release*, and *after* from *release* on."""

    rule: str
    release: str
    before: Any
    after: Any


CHANGES: Final = tuple(
    Change(*row)
    for row in (
        # Arrays
        ("md.plugs_stripes", "3.6", False, True),
        ("md.group_threads", "3.12", False, True),
        ("md.raid6_rmw", "4.1", False, True),
        ("md.cache_grows", "4.1", False, True),
        ("md.whole_stripes", "6.0", False, True),
        ("md.mirror_writes", "3.6", "thread", "plug"),
        ("md.mirror_writes", "6.5", "plug", "direct"),
        ("md.plug_bios", "6.5", None, 32),
        ("md.flushes", "6.13", "in_turn", "at_once"),
        # Throttling and dirty limits
        ("dirty.dirty_background_ratio", "2.6.30", 5, 10),
        ("dirty.dirty_ratio", "2.6.30", 10, 20),
        ("dirty.least_dirty_ratio", "2.6.37", 5, 0),
        ("throttling.writes_back", "2.6.31", "any", "above_limit"),
        ("throttling.waits", "2.6.32", "congestion", "jiffies"),
        ("throttling.initial_bandwidth", "3.1", None, 100 * MIB),
        ("throttling.writes_back", "3.2", "above_limit", None),
        ("throttling.waits", "3.2", "jiffies", None),
        ("throttling.kind", "3.2", "caller_writes", "io_less"),
        # Flushers
        ("flusher.kind", "2.6.32", "pdflush", "per_bdi"),
        ("flusher.min_threads", "2.6.32", 2, None),
        ("flusher.max_threads", "2.6.32", 8, None),
        ("flusher.exits_after", "2.6.32", None, 300 * S),
        ("flusher.exits_after", "3.10", 300 * S, None),
        ("writeback.explicit_takes", "2.6.37", "at_pass", "at_start"),
        ("writeback.used_up", "2.6.37", "redirty_tail", "more_io"),
        ("writeback.leaves", "2.6.38", False, True),
        ("writeback.plug_scope", "2.6.39", "none", "mapping"),
        ("writeback.plug_scope", "4.3", "mapping", "work"),
        ("writeback.nr_to_write", "3.1", 1024, None),
        ("writeback.background_takes", "3.1", "at_pass", "at_start"),
        ("writeback.background_takes", "3.3", "at_start", "at_pass"),
        ("writeback.background_test", "3.2", "global", "share"),
        ("writeback.waits_for_io", "3.11", True, False),
        # Plugs
        ("plug.unplug_requests", "2.6.39", 4, None),
        ("plug.unplug_time", "2.6.39", 3 * MS, None),
        ("plug.max_requests", "3.1", None, 16),
        ("plug.max_requests", "5.10.89", 16, 32),
        ("plug.max_requests", "5.15.16", 16, 32),
        ("plug.max_requests", "5.16", 16, 32),
        ("plug.max_requests_mixed", "5.0", None, 16),
        ("plug.max_requests_mixed", "5.10.89", 16, 64),
        ("plug.max_requests_mixed", "5.15.16", 16, 64),
        ("plug.max_requests_mixed", "5.16", 16, 64),
        ("plug.flush_bytes", "4.10", None, 128 * KIB),
        ("plug.flush_of", "6.12.117", "newest", "oldest"),
        ("plug.flush_of", "6.13", "newest", "oldest"),
        ("plug.order", "3.8", "fifo", "sector"),
        ("plug.order", "5.0", "sector", "fifo"),
        ("plug.order", "5.16", "fifo", "lifo"),
        ("plug.order", "6.12.117", "lifo", "fifo"),
        ("plug.order", "6.13", "lifo", "fifo"),
        ("plug.order_scheduler", "3.8", "fifo", "sector"),
        ("plug.order_scheduler", "5.0", "sector", "fifo"),
        ("plug.order_scheduler", "5.18", "fifo", "lifo"),
        ("plug.order_scheduler", "6.1.25", "lifo", "fifo"),
        ("plug.order_scheduler", "6.2.12", "lifo", "fifo"),
        ("plug.order_scheduler", "6.3", "lifo", "fifo"),
        ("plug.order_mixed", "3.8", "queue", "sector"),
        ("plug.order_mixed", "5.0", "sector", "queue"),
        ("plug.order_mixed", "5.16", "queue", "fifo"),
        ("plug.order_mixed", "5.18", "fifo", "lifo"),
        ("plug.order_mixed", "6.1.25", "lifo", "fifo"),
        ("plug.order_mixed", "6.2.12", "lifo", "fifo"),
        ("plug.order_mixed", "6.3", "lifo", "fifo"),
        ("plug.mixed_above", "5.0", 1, 2),
        ("plug.mixed_above", "5.16", 2, 1),
        ("plug.tried", "5.16", "all", "last"),
        ("plug.tried", "5.18", "last", "newest"),
        ("plug.tried", "6.12.117", "newest", "tail"),
        ("plug.tried", "6.13", "newest", "oldest"),
        ("plug.tried", "6.17", "oldest", "tail"),
        ("plug.meta_apart", "5.15.55", False, True),
        ("plug.meta_apart", "5.18", False, True),
        ("plug.insertion_repeats", "3.8", False, True),
        # Locks, inodes and tasks
        ("spinlock", "4.2", "ticket", "queued"),
        ("rwsem_steals", "3.9", False, True),
        ("rwsem_spins", "3.16", False, True),
        ("rwsem_spin", "5.3", 0, 10_500),
        ("rwsem_hand_off", "5.3", 0, 4 * MS),
        ("inodes.sb_list", "2.6.39", "inode_lock", "inode_sb_list_lock"),
        ("inodes.sb_list", "4.3", "inode_sb_list_lock", "s_inode_list_lock"),
        ("inodes.lru", "3.1", "global", "superblock"),
        ("inodes.lru", "3.12", "superblock", "per_node"),
        ("inodes.lru_checks", "3.12", False, True),
        ("inodes.sync_mutex", "4.3", False, True),
        ("inodes.unhash", "4.3", "all", "hashed"),
        ("inodes.sync_walks", "4.8", "cached", "under_writeback"),
        ("inodes.hash_lookup", "6.11", "locked", "rcu"),
        ("sched.algorithm", "6.6", "CFS", "EEVDF"),
        ("sched.slice_time", "6.6", 750_000, 700_000),
        ("sched.ahead_time", "6.6", 3 * MS, None),
        ("sched.granularity", "6.6", MS, None),
        ("sched.stacks", "5.6", False, True),
        ("sched.hz", "6.18", 1000, 250),
        ("throttling.hz", "6.18", 1000, 250),
        ("requests", "4.3", "request_list", "tags"),
        ("wbt", "4.10", False, True),
        ("schedulers.cfq.low_latency", "2.6.32", False, True),
        ("schedulers.deadline.resumes", "5.14", False, True),
        # XFS
        ("filesystems.xfs.nr_to_write_counts", "2.6.32", "pages", "calls_x4"),
        ("filesystems.xfs.nr_to_write_counts", "2.6.35", "calls_x4", "pages"),
        ("filesystems.xfs.sync_data", "2.6.34", False, True),
        ("filesystems.xfs.tries_writes", "6.0", False, True),
        ("filesystems.xfs.prealloc", "2.6.38", "fixed", "size"),
        ("filesystems.xfs.prealloc", "3.9", "size", "preceding"),
        ("filesystems.xfs.spans_calls", "4.6", False, True),
        ("filesystems.xfs.whole_calls", "4.8", False, True),
        ("filesystems.xfs.wraps", "4.14.177", True, False),
        ("filesystems.xfs.wraps", "4.19.118", True, False),
        ("filesystems.xfs.wraps", "4.20", True, False),
        ("filesystems.xfs.pagevec", "4.16", 14, 15),
        ("filesystems.xfs.pagevec", "6.9", 15, 31),
        ("filesystems.xfs.unwritten", "5.8", False, True),
        ("filesystems.xfs.cil", "6.0", "spinlock", "per_cpu"),
        ("filesystems.xfs.log_flushes", "5.14", "records", "ends"),
        ("filesystems.xfs.large_folios", "6.6", False, True),
        ("filesystems.xfs.zeroing_converts", "6.10", False, True),
        # ext4
        ("filesystems.ext4.sync_data", "2.6.30", False, True),
        ("filesystems.ext4.bump_pages", "2.6.32", 16, 32_768),
        ("filesystems.ext4.bump_pages", "3.11", 32_768, 0),
        ("filesystems.ext4.page_bios", "2.6.37", True, False),
        ("filesystems.ext4.unwritten", "5.6", False, True),
        ("filesystems.ext4.by_order", "5.13", False, True),
        ("filesystems.ext4.packs_closed", "6.0", False, True),
        ("filesystems.ext4.goal_first", "6.0", False, True),
        ("filesystems.ext4.goal_first", "6.12.117", True, False),
        ("filesystems.ext4.goal_first", "6.17", True, False),
        ("filesystems.ext4.write_lock", "6.1.192", "shared", "exclusive"),
        ("filesystems.ext4.write_lock", "6.10", "shared", "exclusive"),
        ("filesystems.ext4.large_folios", "6.16", False, True),
        ("filesystems.ext4.goals", "6.17", "one", "per_processor"),
        # Queues of disks
        ("sata.limits.max_sectors_bytes", "3.19", 512 * KIB, 65_535 * 512),
        ("sata.limits.max_sectors_bytes", "4.3", 65_535 * 512, 1280 * KIB),
        ("sata.limits.max_sectors_bytes", "6.17", 1280 * KIB, 4 * MIB),
        ("sata.driver_depth", "4.18", 31, 32),
        ("sata.queue_depth", "4.18", 31, 32),
        ("sata.elevator.scheduler", "4.19", "cfq", "mq-deadline"),
        ("sata.nr_requests", "4.19", 128, 64),
        ("sata.wbt", "4.19", False, True),
        ("nvme.elevator.scheduler", "3.19", "noop", "none"),
        ("nvme.limits.max_segments", "4.20", 33, 127),
        ("nvme.limits.max_segments", "6.3", 127, 128),
        ("nvme.limits.max_segments", "6.17", 128, 256),
        ("virtio.elevator.scheduler", "3.13", "cfq", "none"),
        ("virtio.elevator.scheduler", "4.12", "none", "mq-deadline"),
        ("virtio.nr_requests", "4.12", 128, 256),
        ("virtio.wbt", "3.13", False, True),
        ("scheduler.none", "3.13", False, True),
        ("scheduler.mq-deadline", "4.11", False, True),
        ("scheduler.bfq", "4.12", False, True),
        ("scheduler.kyber", "4.12", False, True),
        ("scheduler.cfq", "5.0", True, False),
        # mkfs
        ("mkfs.xfs.inode_bytes", "4.1", 256, 512),
        ("mkfs.xfs.checkpoint_bytes", "5.7", 64 * MIB, 32 * MIB),
        ("mkfs.xfs.small_log", "5.15", 10 * MIB, 64 * MIB),
        ("mkfs.xfs.rmapbt", "6.5", False, True),
        ("mkfs.xfs.agcount", "6.8", 4, 16),
        ("mkfs.ext4.descriptors", "4.6", (64 + 960) * 4096, (128 + 1024) * 4096),
        ("mkfs.ext4.journal", "4.8", 128 * MIB, GIB),
    )
)
SMALL, LARGE = (Target(size * GIB, 0, 0, rotates=False, processors=16) for size in (1, 1024))
MADE: Final[dict[str, Any]] = {
    "mkfs.xfs.inode_bytes": lambda release: made_xfs(LARGE, release).inode_bytes,
    "mkfs.xfs.checkpoint_bytes": lambda release: made_xfs(LARGE, release).log.checkpoint_bytes,
    "mkfs.xfs.small_log": lambda release: made_xfs(SMALL, release).log.size,
    "mkfs.xfs.rmapbt": lambda release: made_xfs(LARGE, release).rmapbt,
    "mkfs.xfs.agcount": lambda release: made_xfs(LARGE, release).agcount,
    "mkfs.ext4.descriptors": lambda release: made_ext4(LARGE, release).descriptors,
    "mkfs.ext4.journal": lambda release: made_ext4(LARGE, release).journal.size,
}


def value(kernel: str, rule: str) -> Any:
    """Return the value of *rule* in *kernel*."""
    release, (area, *path) = release_of(kernel), rule.split(".")
    if area == "mkfs":
        return MADE[rule](release)
    if area == "scheduler":
        return path[0] in schedulers_of(release)
    queue: Any = {
        "sata": lambda: sata_queue(release), "virtio": lambda: virtio_queue(release),
        "nvme": lambda: nvme_queue(release, specified(128 * KIB, "a drive")),
    }.get(area)  # fmt: skip
    found: Any = queue() if queue else KERNELS[kernel]
    for part in path if queue else (area, *path):
        found = found[part] if hasattr(found, "keys") else getattr(found, part, None)
    return getattr(found, "value", found)


def before(release: str) -> str:
    """Return the release right before *release*; in front of a series it is the first of the series before.

    The newest of that series may have the change, because it went to stable.
    """
    *series, last = map(int, release.split("."))
    if len(series) == 2:
        return ".".join(map(str, [*series, last - 1]))
    major, minor = int(series[0]), last
    first = {3: "2.6.39", 4: "3.19", 5: "4.20", 6: "5.19"}
    return f"{major}.{minor - 1}.0" if minor else first[major]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.rule}-{change.release}")
def test_each_rule_changes_with_its_release(change: Change) -> None:
    """The release in front has the old value, and the release has the new one."""
    found = value(before(change.release), change.rule), value(change.release, change.rule)
    assert found == (change.before, change.after)


def histories() -> dict[tuple[str, str], list[Rule]]:
    """Return the rows of each key and condition, in the order of the table."""
    found: dict[tuple[str, str], list[Rule]] = {}
    for row in RULES:
        found.setdefault((row.key, row.condition), []).append(row)
    return found


def test_each_history_starts_at_the_first_release() -> None:
    """Its rows go on in time; named kernels have a row for their release alone."""
    for (key, condition), rows in histories().items():
        mainline = [row.releases[0] for row in rows]
        assert mainline == sorted(set(mainline)), key
        assert condition in NAMED or mainline[0] == bound_of(FIRST), key


def test_stable_series_get_a_change_from_a_later_mainline_release() -> None:
    for row in RULES:
        mainline, *stable = row.releases
        assert all(release < mainline for release in stable), row.key
        assert len({release[:2] for release in stable}) == len(stable), row.key


def test_each_row_changes_the_value_of_the_row_in_front() -> None:
    """Later rows say what a user sees of the change; the first row of a key has nothing to say."""
    for (key, condition), rows in histories().items():
        for earlier, later in pairwise(rows):
            assert earlier.entry.value != later.entry.value, key
        assert [bool(row.effect) for row in rows] == [condition in NAMED] + [True] * (len(rows) - 1), key


def test_each_row_has_a_source() -> None:
    assert [row.key for row in RULES if not row.entry.source] == []


NAMES: Final = {".".join(map(str, row.releases[0])) for row in RULES} | {*NAMED}


@pytest.mark.parametrize("kernel", sorted(NAMES))
def test_rules_of_a_kernel_are_its_numbers(kernel: str) -> None:
    """Each rule without a condition is a number of the kernel, at the path of its key."""
    numbers = {number.path: number.value for number in KERNELS[kernel].numbers()}
    for (key, condition), row in rules_of(release_of(kernel), kernel).items():
        if not condition and key.partition(".")[0] not in ("queue", "mkfs"):
            assert numbers.get(key, ABSENT) == row.entry.value, key


def test_each_row_is_repeated_by_a_change() -> None:
    """A row of `KernelSpec` without one could have any release."""
    stated = {(change.rule, bound_of(change.release)) for change in CHANGES}
    missing = {
        (row.key, release)
        for rows in histories().values()
        for row in rows[1:]
        if row.key.partition(".")[0] not in ("queue", "mkfs")
        for release in row.releases
        if release[2] != NEWEST_PATCH
    }
    assert missing - stated == set()


def compared_releases(source: str) -> list[int]:
    """Return the lines of *source* that compare something with a release, a tuple of three numbers."""
    compared = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Compare)]
    return [
        node.lineno
        for node in compared
        if any(isinstance(side, ast.Tuple) and len(side.elts) == 3 for side in (node.left, *node.comparators))
    ]


def test_releases_are_compared_in_the_table_alone() -> None:
    """A rule that another source decides by the release would be missing in `list rules` and `diff`."""
    sources = {path: path.read_text() for path in Path(wbsim.__file__).parent.rglob("*.py")}
    users = [path for path, text in sources.items() if "models.release import" in text]
    assert len(users) > 5
    assert [(path, lines) for path in users if (lines := compared_releases(sources[path]))] == []
    bounds = {path.name for path in users if re.search(r"import .*\bbound_of\b", sources[path])}
    assert bounds == {"rule.py", "kernels.py"}
    assert compared_releases("if release >= (6, 1, 0): pass") == [1]
