"""Kernels of every release from the first to the last that can be run; each rule is tested alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.catalogue.kernels import KERNELS, era_of
from wbsim.models.release import NEWEST_PATCH, release_of
from wbsim.sim.units import MS

RULES = {
    "throttling.kind": ("3.2", "caller_writes", "io_less"),
    "writeback.plug_scope": ("4.3", "mapping", "work"),
    "writeback.waits_for_io": ("3.11", True, False),
    "spinlock": ("4.3", "ticket", "queued"),
    "wbt": ("4.10", False, True),
    "rwsem_spin": ("5.3", 0, 10_500),
    "sched.algorithm": ("6.6", "CFS", "EEVDF"),
    "inodes.lru_checks": ("3.12", False, True),
    "inodes.sync_walks": ("4.8", "cached", "under_writeback"),
    "inodes.hash_lookup": ("6.12", "locked", "rcu"),
    "filesystems.xfs.whole_calls": ("4.8", False, True),
    "filesystems.xfs.wraps": ("4.20", True, False),
    "filesystems.xfs.unwritten": ("5.10", False, True),
    "filesystems.xfs.large_folios": ("5.18", False, True),
    "filesystems.xfs.zeroing_converts": ("6.10", False, True),
    "filesystems.xfs.cil": ("6.0", "spinlock", "per_cpu"),
    "filesystems.ext4.bump_pages": ("3.11", 32_768, 0),
    "filesystems.ext4.unwritten": ("5.6", False, True),
    "filesystems.ext4.by_order": ("5.13", False, True),
    "filesystems.ext4.packs_closed": ("6.0", False, True),
    "filesystems.ext4.large_folios": ("6.16", False, True),
    "filesystems.ext4.goals": ("6.17", "one", "per_processor"),
    "plug.tried": ("6.17", "oldest", "tail"),
}
"""The release of each change, with the value before it and the value from it on."""


def has(kernel: str, path: str) -> Any:
    """Return the value of *kernel* at *path*."""
    value: Any = KERNELS[kernel]
    for part in path.split("."):
        value = value[part] if hasattr(value, "keys") else getattr(value, part)
    return value


def before(release: str) -> str:
    """Return the series right before *release*."""
    major, minor, _ = release_of(release)
    last_of = {3: "2.6.39", 4: "3.19", 5: "4.20", 6: "5.19"}
    return f"{major}.{minor - 1}" if minor else last_of[major]


@pytest.mark.parametrize("path", RULES)
def test_each_rule_changes_with_its_release(path: str) -> None:
    """The series before the release has the old value, and the release has the new one."""
    since, old, new = RULES[path]
    assert (has(before(since), path), has(since, path)) == (old, new)


def test_inode_lru_lock_changes_with_3_1_and_3_12() -> None:
    """mechanisms.md 5.2: inode_lru_lock to 3.0, s_inode_lru_lock from 3.1 on, and list_lru from 3.12 on."""
    found = [has(kernel, "inodes.lru") for kernel in ("3.0", "3.1", "3.11", "3.12")]
    assert found == ["global", "superblock", "superblock", "per_node"]


SERIES = [
    f"{major}.{minor}" for major, most in ((3, 19), (4, 20), (5, 19), (6, 18)) for minor in range(most + 1)
]


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


OLD: dict[str, dict[str, Any]] = {
    "flusher.kind": {"2.6.31": "pdflush", "2.6.32": "per_bdi"},
    "dirty.dirty_ratio": {"2.6.29": 10, "2.6.30": 20},
    "dirty.dirty_background_ratio": {"2.6.29": 5, "2.6.30": 10},
    "throttling.writes_back": {"2.6.30": "any", "2.6.31": "above_limit"},
    "throttling.waits": {"2.6.31": "congestion", "2.6.32": "jiffies"},
    "plug.unplug_requests": {"2.6.38": 4, "2.6.39": None},
    "plug.unplug_time": {"2.6.38": 3 * MS, "2.6.39": None},
    "writeback.used_up": {"2.6.36": "redirty_tail", "2.6.37": "more_io"},
    "writeback.explicit_takes": {"2.6.36": "at_pass", "2.6.37": "at_start"},
    "writeback.leaves": {"2.6.37": False, "2.6.38": True},
    "inodes.sb_list": {"2.6.38": "inode_lock", "2.6.39": "inode_sb_list_lock"},
    "filesystems.xfs.nr_to_write_counts": {
        "2.6.31": "pages", "2.6.32": "calls_x4", "2.6.34": "calls_x4", "2.6.34-n10": "pages",
        "2.6.35": "pages",
    },
    "filesystems.ext4.bump_pages": {"2.6.31": 16, "2.6.32": 32_768},
}  # fmt: skip
"""The values before 3.0 on both sides of each change, by release."""


@pytest.mark.parametrize(("path", "of"), OLD.items())
def test_each_rule_before_3_0_changes_with_its_release(path: str, of: dict[str, Any]) -> None:
    """The kernels on both sides of a change have the values of `OLD`."""
    assert {kernel: has(kernel, path) for kernel in of} == of


ERAS = {
    "2.6.39": ["2.6.39", "3.0"], "3.1": ["3.1", "3.9"], "3.11": ["3.10", "4.2"], "4.3": ["4.3", "4.8"],
    "4.9": ["4.9", "5.3"], "5.4": ["5.4", "5.9"], "5.10": ["5.10", "5.15"], "5.17": ["5.16", "6.0"],
    "6.1": ["6.1", "6.12.116"], "6.14": ["6.13", "6.16"], "6.17": ["6.12.117", "6.12.200", "6.17", "6.18"],
}  # fmt: skip
"""Releases whose plug is that of an era; the first and the last of each era are among them."""


@pytest.mark.parametrize(("era", "releases"), ERAS.items())
def test_release_has_the_plug_of_its_era(era: str, releases: list[str]) -> None:
    """An era lasts until the release before the next era."""
    assert [era_of(release) for release in releases] == [era] * len(releases)
