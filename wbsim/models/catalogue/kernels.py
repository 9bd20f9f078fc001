"""Named kernels: the variants and constants of each era.

Numbers come from the sources that mechanisms.md lists, unless a line says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from wbsim.models.block.spec import PlugRules
from wbsim.models.kinds import kinds
from wbsim.models.release import Release, has, release_of
from wbsim.models.scenario import KernelSpec
from wbsim.sim.param import Given, Inputs, assumed, measured, specified
from wbsim.sim.units import KIB, MIB, MS, US, S

_RULES: Final = "mechanisms.md 1.2, 1.3"


def _plug(
    tried: str, most: tuple[int | None, int | None], flush: tuple[int | None, str],
    orders: tuple[str, str, str], kernel: str, mixed_above: int = 1, meta_apart: bool = False,
    insertion_repeats: bool = True,
) -> dict[str, Given]:  # fmt: skip
    """Return the rules of a plug.

    *most* is the largest number of requests.  *flush* is the size of a request that flushes the plug, and
    which request is judged.  *orders* has the orders of issue: directly, through a scheduler, for several
    queues.
    """
    source = f"{_RULES} [V {kernel}]"
    return {
        "tried": specified(tried, source),
        "max_requests": specified(most[0], source),
        "max_requests_mixed": specified(most[1], source),
        "flush_bytes": specified(flush[0], source),
        "flush_of": specified(flush[1], source),
        "order": specified(orders[0], source),
        "order_scheduler": specified(orders[1], source),
        "order_mixed": specified(orders[2], source),
        "mixed_above": specified(mixed_above, source),
        "meta_apart": specified(
            meta_apart, "block/blk-cgroup.h: blk_cgroup_mergeable, from 5.18 on [V 5.17-rc5, 5.19]; on 6.18"
        ),
        "insertion_repeats": specified(
            insertion_repeats, "block/elevator.c: commit bee0393c, from 3.8 on [V 3.6.5, 3.8.13]"
        ),
    }


_FIFO: Final = ("fifo", "fifo", "queue")
_SORTED: Final = ("sector", "sector", "sector")
_PLUGS: Final = {
    "2.6.39": _plug("all", (None, None), (None, "newest"), _FIFO, "2.6.39, 3.0.8", insertion_repeats=False),
    "3.1": _plug("all", (16, None), (None, "newest"), _FIFO, "3.1, 3.6.5", insertion_repeats=False),
    "3.11": _plug("all", (16, None), (None, "newest"), _SORTED, "3.8.13, 3.10, 3.11"),
    "4.3": _plug("all", (16, None), (None, "newest"), _SORTED, "4.3, single hardware queue"),
    "4.9": _plug("all", (16, None), (None, "newest"), _SORTED, "4.9"),
    "4.19": _plug("all", (16, None), (128 * KIB, "newest"), _SORTED, "4.10.17, 4.12, 4.20"),
    "5.4": _plug("all", (16, 16), (128 * KIB, "newest"), _FIFO, "5.0.1, 5.4, 5.14.2", 2),
    "5.10": _plug("all", (32, 64), (128 * KIB, "newest"), _FIFO, "5.10.89", 2),
    "5.15": _plug("all", (32, 64), (128 * KIB, "newest"), _FIFO, "5.15.55, 5.15.85", 2, meta_apart=True),
    "5.17": _plug("last", (32, 64), (128 * KIB, "newest"), ("lifo", "fifo", "fifo"), "5.17-rc5"),
    "5.18": _plug("newest", (32, 64), (128 * KIB, "newest"), ("lifo",) * 3, "5.19, 6.0-rc1", meta_apart=True),
    "6.1": _plug(
        "newest", (32, 64), (128 * KIB, "newest"), ("lifo", "fifo", "fifo"), "6.1.192, 6.2.12, 6.4 to 6.12.0",
        meta_apart=True,
    ),
    "6.14": _plug("oldest", (32, 64), (128 * KIB, "oldest"), ("fifo",) * 3, "6.14", meta_apart=True),
    "6.17": _plug("tail", (32, 64), (128 * KIB, "oldest"), ("fifo",) * 3, "6.12.117, 6.17", meta_apart=True),
}  # fmt: skip
"""The rules of plugs by era.  An era has the name of a release or of a long-term series in it."""

_QUEUE_PLUG: Final = {
    **_PLUGS["2.6.39"],
    "unplug_requests": specified(4, "mechanisms.md 1.1 [V 2.6.29-2.6.37]: q->unplug_thresh"),
    "unplug_time": specified(3 * MS, "mechanisms.md 1.1 [V 2.6.29-2.6.37]: q->unplug_delay"),
}
"""The rules of kernels whose queue has the plug (to 2.6.38).

Tasks have no plug there (`plug_scope` none), so the other rules are unused.
"""

PLUG_RULES: Final = {name: PlugRules.model_validate(given) for name, given in _PLUGS.items()}
"""The rules of the plug in every era with plugs on the stack."""

_SINCE: Final[tuple[tuple[str, tuple[Release, ...]], ...]] = (
    ("2.6.39", ((2, 6, 39),)),
    ("3.1", ((3, 1, 0),)),
    ("3.11", ((3, 8, 0),)),
    ("4.3", ((4, 3, 0),)),
    ("4.9", ((4, 9, 0),)),
    ("4.19", ((4, 10, 0),)),
    ("5.4", ((5, 0, 0),)),
    ("5.10", ((5, 16, 0), (5, 10, 89), (5, 15, 16))),
    ("5.15", ((5, 18, 0), (5, 15, 55))),
    ("5.17", ((5, 16, 0),)),
    ("5.18", ((5, 18, 0),)),
    ("6.1", ((6, 3, 0), (6, 1, 25), (6, 2, 12))),
    ("6.14", ((6, 13, 0),)),
    ("6.17", ((6, 17, 0), (6, 12, 117))),
)
"""The releases from which the rules of each era hold: mainline's first, then those of stable series.

The last era that holds is that of a release.  The patch levels are those that were read first with the rule,
so a few earlier ones may have it, too.  6.1.25 is of the same day as 6.2.12, which was read.
"""


def era_of(release: str) -> str:
    """Return the key in `PLUG_RULES` of a kernel *release*, such as "3.11" or "6.18.44-rc1".

    A release without a patch level stands for the newest of its series.

    Raises:
        ValueError: *release* is not a version, or is older than plugs on the stack.
    """
    try:
        release_number = release_of(release)
    except ValueError as error:
        raise ValueError(f"{error}; give a release such as {', '.join(PLUG_RULES)}") from None
    found = [era for era, (since, *stable) in _SINCE if has(release_number, since, *stable)]
    if not found:
        raise ValueError(f"Linux {release} has no plug on the stack; give 2.6.39 or later")
    return found[-1]


_INITIAL_BANDWIDTH: Final = specified(100 * MIB, "mm/backing-dev.c: INIT_BW")
_HZ: Final = assumed(1000, "CONFIG_HZ of x86_64_defconfig; the reports do not name it", 100, 1000)
_FAIR: Final = "kernel/sched/fair.c [R], from memory; mechanisms.md does not have it"
_CFS: Final = {
    "algorithm": specified("CFS", "kernel/sched/fair.c from 2.6.23 [R]"),
    "slice_time": assumed(750 * US, f"min_granularity: {_FAIR}", 750 * US, 4 * MS),
    "ahead_time": assumed(3 * MS, f"half of sched_latency, 6 ms: {_FAIR}", 0, 10 * MS),
    "granularity": assumed(MS, f"wakeup_granularity: {_FAIR}", 0, 10 * MS),
    "hz": _HZ,
}
_HZ_OF_6_18: Final = measured(250, "docs/measurements.md: CONFIG_HZ of the kernel that was measured")
_EEVDF: Final = {
    "algorithm": specified("EEVDF", "kernel/sched/fair.c from 6.6 [R]"),
    "slice_time": assumed(
        700 * US, f"base_slice: {_FAIR}; ticks hide its effect (docs/measurements.md G)", 700 * US, 3 * MS
    ),
    "hz": _HZ,
}


_RWSEM: Final = "kernel/locking/rwsem.c: rwsem_rspin_threshold for one reader, from 5.3 on [R]"


def _rwsem(release: Release) -> dict[str, Given]:
    """Return the rules of struct rw_semaphore."""
    return {
        "rwsem_steals": specified(
            release >= (3, 9, 0), "lib/rwsem.c: rwsem_down_write_failed, from 3.9 on, commit ce6711f3 [R]"
        ),
        "rwsem_spins": specified(
            release >= (3, 16, 0), "kernel/locking/rwsem-xadd.c: from 3.16 on, commit 4fc828e2 [R]"
        ),
        "rwsem_spin": specified(10_500 if release >= (5, 3, 0) else 0, _RWSEM),
        "rwsem_hand_off": specified(
            4 * MS if release >= (5, 3, 0) else 0,
            "kernel/locking/rwsem.c: RWSEM_WAIT_TIMEOUT, from 5.3 on [R]; on 6.18: docs/measurements.md R",
        ),
    }


def _inodes(
    sb_list: str, source: str, *, walks: str = "cached", mutex: bool = False, unhash: str = "all",
    lookup: str = "locked", lru: str = "per_node", lru_checks: bool = True,
) -> dict[str, Given]:  # fmt: skip
    """Return the rules of inodes; *source* says when the list of inodes had the lock *sb_list*."""
    return {
        "sb_list": specified(sb_list, f"mechanisms.md 5.1: {source}"),
        "sync_walks": specified(walks, "mechanisms.md 5.1 [V 3.11, 4.3, 4.9, 6.12]: s_inodes_wb from 4.8 on"),
        "sync_mutex": specified(mutex, "mechanisms.md 5.1 [V 4.3]: s_sync_lock"),
        "unhash": specified(unhash, "mechanisms.md 5.2: hlist_fake in 4.3, not in 3.11 [V 3.11, 4.3]"),
        "lru": specified(lru, "mechanisms.md 5.2 [V 2.6.39, 3.1, 3.11, 3.16]: per node from 3.12 on"),
        "lru_checks": specified(lru_checks, "report V13: the last two patches; from 3.12 on [R]"),
        "hash_lookup": specified(lookup, "fs/inode.c: commit 7180f8d9, RCU from 6.11 on [R; V 6.10, 6.12]"),
    }


def _sched(release: Release) -> Mapping[str, Given]:
    """Return the scheduler of tasks."""
    sched = _EEVDF if release >= (6, 6, 0) else _CFS
    stacks = specified(release >= (5, 6, 0), "select_idle_sibling: commit 52262ee5, from 5.6 on [R; V 6.12]")
    hz = {"hz": _HZ_OF_6_18} if release >= (6, 18, 0) else {}
    return {**sched, "stacks": stacks, **hz}


def _writeback(release: Release, plug_scope: str, source: str) -> dict[str, Given]:
    """Return the rules of the writeback loop; *source* says when a plug had the scope *plug_scope*."""
    return {
        "plug_scope": specified(plug_scope, source),
        "slice_time": specified(100 * MS, "mechanisms.md 2.2 [V 3.11, 4.3, 6.17]: HZ/10"),
        "used_up": specified("more_io", "mechanisms.md 2.1 [V 2.6.37, 3.11, 6.17]"),
        "leaves": specified(True, "mechanisms.md 2.2 [V 3.11]; since 2.6.38, commit aa373cf5 [R]"),
        "explicit_takes": specified("at_start", "mechanisms.md 2.1 [V 3.11, 6.17]"),
        "background_takes": specified(
            "at_start" if (3, 1, 0) <= release < (3, 3, 0) else "at_pass",
            "fs/fs-writeback.c: all inodes to 3.0; commit 1bc36b64, from 3.3 on [V 3.0.8, 3.1.3, 3.3.8]",
        ),
        "background_test": specified(
            "share" if release >= (3, 2, 0) else "global",
            "fs/fs-writeback.c: over_bground_thresh, commit b00949aa, from 3.2 on [V 3.1.3, 3.2.0]",
        ),
        "waits_for_io": specified(release < (3, 11, 0), "fs/fs-writeback.c: up to 3.10, commit 7747bd4b [R]"),
        "expire": specified(30 * S, "mechanisms.md 0 [V all]: dirty_expire_centisecs"),
        "interval": specified(5 * S, "mechanisms.md 0 [V all]: dirty_writeback_centisecs"),
    }


def _kernel(name: str, plug_scope: str, source: str) -> Inputs:
    """Return the inputs of a kernel with IO-less throttling and one flusher per device.

    They follow from its release.
    """
    release = release_of(name)
    sched = _sched(release)
    lists = release >= (3, 12, 0)
    lru = "per_node" if lists else "superblock" if release >= (3, 1, 0) else "global"
    return {
        "name": name,
        "spinlock": specified(
            "queued" if release >= (4, 2, 0) else "ticket", "mechanisms.md 7.1: from 4.2 on [V 4.1.15, 4.2.8]"
        ),
        **_rwsem(release),
        "sched": sched,
        "requests": specified("tags" if release >= (4, 3, 0) else "request_list", "mechanisms.md 1.6, 1.3"),
        "cfq_low_latency": specified(
            release >= (2, 6, 32), "block/cfq-iosched.c: cfq_latency, from 2.6.32 on [R]; [V 2.6.30, 2.6.34]"
        ),
        "wbt": specified(
            release >= (4, 10, 0), "block/blk-wbt.c from 4.10 on [R]; on 6.18: docs/measurements.md I"
        ),
        "plug": _PLUGS[era_of(name)] if release >= (2, 6, 39) else _QUEUE_PLUG,
        "writeback": _writeback(release, plug_scope, source),
        "inodes": _inodes("inode_sb_list_lock", "2.6.39 to 4.2 [V 2.6.39, 3.11]", lru=lru, lru_checks=lists),
        "flusher": {
            "kind": specified("per_bdi", "mechanisms.md 4.2 [V 3.10]"),
            "exits_after": specified(
                300 * S if release < (3, 10, 0) else None, "mechanisms.md 4.2 [V 2.6.32, 2.6.37, 3.10]"
            ),
        },
        "throttling": {
            "kind": specified("io_less", "mechanisms.md 3.3 [V 3.11]"),
            "hz": sched["hz"],
            "initial_bandwidth": _INITIAL_BANDWIDTH,
        },
        "dirty": {
            "dirty_background_ratio": specified(10, "mechanisms.md 0 [V all]"),
            "dirty_ratio": specified(20, "mechanisms.md 0 [V all]"),
            "least_dirty_ratio": _least_dirty_ratio(release),
        },
        "filesystems": {kind: of_kind.spec.rules_of(name) for kind, of_kind in kinds("filesystems").items()},
    }


def _least_dirty_ratio(release: Release) -> Given:
    return specified(
        5 if release < (2, 6, 37) else 0,
        "mm/page-writeback.c: commit 4cbec4c8, from 2.6.37 on [V 2.6.29, 2.6.36, 2.6.37]",
    )


def _callers_write(given: Inputs, source: str, bandwidth: Given, nr_to_write: Given) -> Inputs:
    """Return *given* for a kernel whose writers write back themselves (to 3.1)."""
    writeback = {**given["writeback"], "nr_to_write": nr_to_write}
    throttling = {
        "kind": specified("caller_writes", f"mechanisms.md 3.2 {source}"),
        "hz": _HZ,
        "initial_bandwidth": bandwidth,
    }
    return {**given, "writeback": writeback, "throttling": throttling}


def _2_6_32(name: str) -> Inputs:
    """Return the inputs of a kernel from 2.6.32 to 2.6.38.

    Writers write back, 1024 pages a pass.  The queue has the plug, and not the task.
    """
    source, release = "[V 2.6.32, 2.6.34, 2.6.37]", release_of(name)
    given = _kernel(name, "none", f"mechanisms.md 2.6 {source}")
    given["inodes"] = _inodes("inode_lock", "up to 2.6.38 [V 2.6.29, 2.6.37]", lru="global", lru_checks=False)
    used_up = "redirty_tail" if release < (2, 6, 37) else "more_io"
    takes = "at_pass" if release < (2, 6, 37) else "at_start"
    given["writeback"] |= {
        "used_up": specified(used_up, f"mechanisms.md 2.1 {source}"),
        "leaves": specified(release >= (2, 6, 38), "fs/fs-writeback.c: from 2.6.38 on, commit aa373cf5 [R]"),
        "explicit_takes": specified(takes, "writeback_inodes_wb of 2.6.34: start = jiffies [R]"),
    }
    return _callers_write(given, source, specified(None, f"mechanisms.md 2.3 {source}"), _nr_to_write(source))


def _2_6_29(name: str) -> Inputs:
    """Return the inputs of a kernel to 2.6.31.

    A pool of pdflush threads serves all devices.  Writers wait for queues to leave congestion.
    """
    source, release = "[V 2.6.29, 2.6.30]", release_of(name)
    given = _2_6_32(name)
    pool = f"mechanisms.md 4.1 {source}"
    given["flusher"] = {
        "kind": specified("pdflush", pool), "min_threads": specified(2, pool),
        "max_threads": specified(8, pool),
    }  # fmt: skip
    writes_back = "any" if release < (2, 6, 31) else "above_limit"
    given["throttling"] |= {
        "writes_back": specified(writes_back, f"mechanisms.md 3.2 {source}"),
        "waits": specified("congestion", f"mechanisms.md 3.2 {source}; in 2.6.31 [R]"),
    }
    if release < (2, 6, 30):
        given["dirty"] = {
            "dirty_background_ratio": specified(5, "mechanisms.md 3.1 [V 2.6.29]"),
            "dirty_ratio": specified(10, "mechanisms.md 3.1 [V 2.6.29]"),
            "least_dirty_ratio": _least_dirty_ratio(release),
        }
    return given


def _nr_to_write(source: str) -> Given:
    return specified(1024, f"mechanisms.md 2.2 {source}: MAX_WRITEBACK_PAGES")


def _2_6_39(name: str) -> Inputs:
    """Return the inputs of 2.6.39 and 3.0, the first with a plug on the stack; writers still write back."""
    source = "[V 2.6.39, 3.0.8]"
    given = _kernel(name, "mapping", f"mechanisms.md 2.6 {source}")
    return _callers_write(given, source, specified(None, f"mechanisms.md 2.3 {source}"), _nr_to_write(source))


def _3_1(name: str) -> Inputs:
    """Return the inputs of 3.1: writers still write back, but chunks follow the bandwidth."""
    source = "[V 3.1]"
    given = _kernel(name, "mapping", f"mechanisms.md 2.6 {source}")
    return _callers_write(given, source, _INITIAL_BANDWIDTH, specified(None, f"mechanisms.md 2.3 {source}"))


def _3_2(name: str) -> Inputs:
    """Return the inputs of a kernel from 3.2 to 4.2, with IO-less throttling."""
    return _kernel(name, "mapping", "mechanisms.md 2.6 [V 3.11]")


def _4_3(name: str) -> Inputs:
    """Return the inputs of a kernel from 4.3 on.

    The plug belongs to the work item, and each superblock has a separate list lock.
    """
    release = release_of(name)
    inodes = _inodes(
        "s_inode_list_lock", "from 4.3 on [V 4.3]", mutex=True, unhash="hashed",
        walks="under_writeback" if release >= (4, 8, 0) else "cached",
        lookup="rcu" if release >= (6, 11, 0) else "locked",
    )  # fmt: skip
    return {**_kernel(name, "work", "mechanisms.md 2.6 [V 4.3, 6.1, 6.12]"), "inodes": inodes}


_PATCHED: Final = "report V13: the patch series"


def _v13(name: str, *, patched: bool) -> Inputs:
    """Return the inputs of mmotm of July 2013 (3.11-rc and the list_lru series).

    *patched*: with all of V13's patches.
    """
    given = _3_2(name)
    given["inodes"] |= {"lru": specified("per_node", "report V13: mmotm has the list_lru series of 3.12")}
    if patched:
        given["writeback"] |= {
            "plug_scope": specified("slice", "report V13: plug at a high level, the patch of P13")
        }
        given["inodes"] = _inodes(
            "per_node", _PATCHED, walks="under_writeback", mutex=True, unhash="hashed", lookup="rcu"
        )
    return given


def _p13(name: str) -> Inputs:
    """Return the inputs of 3.11 with P13's patch."""
    return _kernel(name, "slice", "report P13: the patch")


_MAKERS: Final[tuple[tuple[Release, Callable[[str], Inputs]], ...]] = (
    ((2, 6, 29), _2_6_29), ((2, 6, 32), _2_6_32), ((2, 6, 39), _2_6_39),
    ((3, 1, 0), _3_1), ((3, 2, 0), _3_2), ((4, 3, 0), _4_3),
)  # fmt: skip
_NAMED: Final[dict[str, Callable[[str], Inputs]]] = {
    "2.6.34-n10": _2_6_32, "3.11-p13": _p13, "3.11-mmotm": partial(_v13, patched=False),
    "3.11-v13": partial(_v13, patched=True),
}  # fmt: skip
_SHOWN: Final = (
    "2.6.29", "2.6.30", "2.6.32", "2.6.34", "2.6.34-n10", "2.6.37", "2.6.39", "3.1",
    "3.11", "3.11-p13", "3.11-mmotm", "3.11-v13", "4.3", "4.9", "4.19", "5.4", "5.10", "5.15", "5.17", "5.18",
    "6.1", "6.14", "6.17", "6.18",
)  # fmt: skip
FIRST: Final = "2.6.29"
LAST: Final = "6.18"
"""The first and the last release that can be run by its number."""


class Kernels(Mapping[str, KernelSpec]):
    """Kernels by name.

    Iteration and length cover the kernels that a report, a source or a measurement stands for.  Any release
    from 2.6.29 to 6.18 can be looked up, and has the rules of its era.
    """

    def __init__(self) -> None:
        self._made: dict[str, KernelSpec] = {}

    def __getitem__(self, name: str) -> KernelSpec:
        if name not in self._made:
            self._made[name] = KernelSpec.model_validate(self._maker(name)(name))
        return self._made[name]

    @staticmethod
    def _maker(name: str) -> Callable[[str], Inputs]:
        if name in _NAMED:
            return _NAMED[name]
        try:
            release = release_of(name)
        except (ValueError, TypeError):
            raise KeyError(name) from None
        if not _MAKERS[0][0] <= release <= release_of(LAST):
            raise KeyError(name)
        return [maker for since, maker in _MAKERS if since <= release][-1]

    def __iter__(self) -> Iterator[str]:
        return iter(_SHOWN)

    def __len__(self) -> int:
        return len(_SHOWN)


KERNELS: Final = Kernels()
"""The kernels that can be run."""
