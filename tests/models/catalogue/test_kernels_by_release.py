"""Rules that change with a release of Linux: one table, with the value on both sides of each change.

Every release that the code compares with has a row, and every rule that differs between kernels has one, too.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wbsim
from wbsim.models.block.schedulers import schedulers_of
from wbsim.models.catalogue.kernels import KERNELS, era_of
from wbsim.models.catalogue.mkfs import Target, made_ext4, made_xfs
from wbsim.models.catalogue.queues import nvme_queue, sata_queue, virtio_queue
from wbsim.models.release import NEWEST_PATCH, Release, has, release_of
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
        # Throttling and dirty limits
        ("dirty.dirty_background_ratio", "2.6.30", 5, 10),
        ("dirty.dirty_ratio", "2.6.30", 10, 20),
        ("dirty.least_dirty_ratio", "2.6.37", 5, 0),
        ("throttling.writes_back", "2.6.31", "any", "above_limit"),
        ("throttling.waits", "2.6.32", "congestion", "jiffies"),
        ("throttling.initial_bandwidth", "3.1", None, 100 * MIB),
        ("throttling.kind", "3.2", "caller_writes", "io_less"),
        # Flushers
        ("flusher.kind", "2.6.32", "pdflush", "per_bdi"),
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
        ("sched.stacks", "5.6", False, True),
        ("sched.hz", "6.18", 1000, 250),
        ("throttling.hz", "6.18", 1000, 250),
        ("requests", "4.3", "request_list", "tags"),
        ("wbt", "4.10", False, True),
        ("cfq_low_latency", "2.6.32", False, True),
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
        ("nvme.limits.max_segments", "4.20", 33, 128),
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
FILES: Final = {
    "filesystems.xfs": "models/filesystems/xfs/spec.py",
    "filesystems.ext4": "models/filesystems/ext4/spec.py",
    "sata": "models/catalogue/queues.py",
    "nvme": "models/catalogue/queues.py",
    "virtio": "models/catalogue/queues.py",
    "scheduler": "models/block/schedulers.py",
    "mkfs": "models/catalogue/mkfs.py",
}
"""The file that decides the rules with each beginning; kernels.py decides all others."""
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


def compared_releases(path: Path) -> set[Release]:
    """Return the releases that the source at *path* names as tuples, without those that it assigns types."""
    return {
        (node.elts[0].value, node.elts[1].value, node.elts[2].value)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Tuple)
        and len(node.elts) == 3
        and all(isinstance(part, ast.Constant) and isinstance(part.value, int) for part in node.elts)
    }  # type: ignore[misc]


PACKAGE: Final = Path(wbsim.__file__).parent
LIMITS: Final = {
    "models/catalogue/kernels.py": {(2, 6, 29), (4, 9, 0)},
    "models/block/schedulers.py": {(4, 20, 999)},
}
"""Releases at which no rule changes: the first that can be run, the last before 5.0, and 4.9, an era."""
OTHERS: Final = {"experiments/config/filesystems.py", "models/release.py"}
"""Sources with releases that are no bound: one that stands for any, and examples."""


def bound_of(change: Change) -> Release:
    """Return the release of *change* as the code writes it, with 0 for a series."""
    major, minor, patch = map(int, f"{change.release}.0".split(".")[:3])
    return major, minor, patch


def source_of(change: Change) -> str:
    """Return the source that decides the rule of *change*."""
    areas = (source for area, source in FILES.items() if change.rule.startswith(f"{area}."))
    return next(areas, "models/catalogue/kernels.py")


def test_every_release_in_the_code_has_a_row() -> None:
    """A release that a source compares with is in `CHANGES`, for a rule that this source decides."""
    missing = []
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name in OTHERS or "wbsim.models.release import" not in path.read_text():
            continue
        rows = {bound_of(change) for change in CHANGES if source_of(change) == name}
        missing += [(name, release) for release in compared_releases(path) - rows - LIMITS.get(name, set())]
    assert missing == []


def numbers_of(kernel: str) -> dict[str, Any]:
    """Return the numbers of *kernel* by their paths."""
    return {number.path: number.value for number in KERNELS[kernel].numbers()}


SERIES: Final = [
    f"{major}.{minor}" for major, most in ((3, 19), (4, 20), (5, 19), (6, 18)) for minor in range(most + 1)
]
OLD: Final = [f"2.6.{minor}" for minor in range(29, 40)]


def test_every_rule_that_differs_between_releases_has_a_row() -> None:
    """Two series in a row differ only in rules that change between them by `CHANGES`.

    A kind of throttle or flusher has other numbers than another kind; these come and go with it.
    """
    rules = {change.rule for change in CHANGES}
    kinds = ("throttling.", "flusher.", "sched.")
    found = set[str]()
    for earlier, later in zip([*OLD, *SERIES], [*OLD, *SERIES][1:], strict=False):
        old, new = numbers_of(earlier), numbers_of(later)
        found |= {
            path
            for path in old | new
            if old.get(path) != new.get(path)
            and path != "name"
            and not (path.startswith(kinds) and (path in old) != (path in new))
        }
    assert found - rules == set()


@given(st.sampled_from(SERIES))
def test_every_series_is_in_the_catalogue(series: str) -> None:
    """A patch level and the suffix of a distribution change only the name of the kernel."""
    kernel = KERNELS[series]
    assert kernel.name == series
    assert KERNELS[f"{series}.999-generic"].model_copy(update={"name": series}) == kernel
    assert f"{series}.1" in KERNELS
    assert all(number.given is not None for number in kernel.numbers())


@pytest.mark.parametrize("name", ["2.6.28", "2.6.9", "6.19", "7.0", "1", "linux", "", "3", "3."])
def test_unknown_release_is_not_in_the_catalogue(name: str) -> None:
    """The names are too old, too new, or no releases."""
    assert name not in KERNELS


def test_releases_compare_as_numbers() -> None:
    """Release 6.12 is later than 6.8.  A series counts as its newest patch level."""
    assert release_of("6.12") > release_of("6.8.300") == (6, 8, 300)
    assert release_of("5.15") == (5, 15, NEWEST_PATCH) > release_of("5.15.55-rc1")
    with pytest.raises(ValueError, match="is not a kernel version"):
        release_of("x6.1")
    assert "6.12" not in list(KERNELS), "only kernels of a report, a source or a measurement are listed"
    assert len(list(KERNELS)) == len(KERNELS)


@pytest.mark.parametrize(
    ("release", "found"),
    [
        ((5, 9, 9), False),
        ((5, 10, 88), False),
        ((5, 10, 89), True),
        ((5, 11, 999), False),
        ((5, 16, 0), True),
    ],
)
def test_stable_series_has_a_change_that_later_series_lack(release: Release, found: bool) -> None:
    """A change of 5.16 went to 5.10.89, so 5.11 to 5.15 lack it."""
    assert has(release, (5, 16, 0), (5, 10, 89)) == found


def test_repaired_kernel_of_n10_counts_pages() -> None:
    """2.6.34 with the repair of report N10 counts pages, as 2.6.35 does."""
    assert value("2.6.34-n10", "filesystems.xfs.nr_to_write_counts") == "pages"


ERAS: Final = {
    "2.6.39": ["2.6.39", "3.0"], "3.1": ["3.1", "3.7"], "3.11": ["3.8", "4.2"], "4.3": ["4.3", "4.8"],
    "4.9": ["4.9"], "4.19": ["4.10", "4.14", "4.20"],
    "5.4": ["5.0", "5.9", "5.10.88", "5.11", "5.14", "5.15.15"],
    "5.10": ["5.10.89", "5.10", "5.15.16", "5.15.54"], "5.15": ["5.15.55", "5.15"], "5.17": ["5.16", "5.17"],
    "5.18": ["5.18", "6.0", "6.1.24", "6.2.11"],
    "6.1": ["6.1.25", "6.1", "6.2", "6.3", "6.12.116"], "6.14": ["6.13", "6.16"],
    "6.17": ["6.12.117", "6.12.200", "6.17", "6.18"],
}  # fmt: skip
"""Releases whose plug is that of an era; the first and the last of each era are among them."""


@pytest.mark.parametrize(("era", "releases"), ERAS.items())
def test_release_has_the_plug_of_its_era(era: str, releases: list[str]) -> None:
    """An era lasts until the release before the next era."""
    assert [era_of(release) for release in releases] == [era] * len(releases)
