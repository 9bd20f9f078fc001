"""The locks of a run in the formats of the kernel's tools: /proc/lock_stat and ``perf lock contention``.

lock_stat has times in us (formats.md 5), and an `Outcome` has them in ns.  lock_stat leaves out locks that
were not taken, and perf leaves out locks without contention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wbsim.sim.units import US

Counters = Mapping[str, int]
"""The fields of `sim.sync.LockStat`."""
_WIDTH: Final = 14
_HEAD: Final = (
    "con-bounces", "contentions", "waittime-min", "waittime-max", "waittime-total", "waittime-avg",
    "acq-bounces", "acquisitions", "holdtime-min", "holdtime-max", "holdtime-total", "holdtime-avg",
)  # fmt: skip


def lock_stat(locks: Mapping[str, Counters]) -> str:
    """Return the table of /proc/lock_stat, version 0.4, most contended first, without contention points.

    *locks*: the counters of each lock (ns) by its name.  Locks that were not taken are left out.
    """
    stats = {name: counters for name, counters in locks.items() if counters["acquisitions"]}
    names = sorted(stats, key=lambda name: (-stats[name]["contentions"], name))
    wide = max((len(name) for name in names), default=0) + 1
    rule = "-" * (wide + 2 + len(_HEAD) * (_WIDTH + 1))
    lines = ["lock_stat version 0.4", rule]
    lines.append(" " * (wide + 2) + " ".join(f"{head:>{_WIDTH}}" for head in _HEAD))
    lines += [rule, ""]
    for name in names:
        counters = stats[name]
        fields = [
            str(counters["con_bounces"]), str(counters["contentions"]),
            *_times(counters, "wait", "contentions"),
            str(counters["bounces"]), str(counters["acquisitions"]),
            *_times(counters, "hold", "acquisitions"),
        ]  # fmt: skip
        lines.append(f"{name:>{wide}}: " + " ".join(f"{field:>{_WIDTH}}" for field in fields))
    return "\n".join(lines)


def _times(counters: Counters, kind: str, count: str) -> list[str]:
    """Return the smallest, the largest, the sum and the mean of the times *kind* (us)."""
    total = counters[f"{kind}_ns"]
    times_ns = (
        counters[f"{kind}_min_ns"],
        counters[f"{kind}_max_ns"],
        total,
        total / max(counters[count], 1),
    )
    return [f"{ns / US:.2f}" for ns in times_ns]


def perf_lock_contention(locks: Mapping[str, Counters]) -> str:
    """Return the table of ``perf lock contention -l``, longest total wait first.

    *locks*: the counters of each lock (ns) by its name.  Locks without contention are left out.
    """
    lines = [" contended   total wait     max wait     avg wait   lock", ""]
    for name in sorted(locks, key=lambda name: (-locks[name]["wait_ns"], name)):
        counters = locks[name]
        if counters["contentions"]:
            waits_ns = (
                counters["wait_ns"],
                counters["wait_max_ns"],
                counters["wait_ns"] / counters["contentions"],
            )
            times = " ".join(f"{_with_unit(ns):>12}" for ns in waits_ns)
            lines.append(f"{counters['contentions']:>10} {times}   {name}")
    return "\n".join(lines)


def _with_unit(ns: float) -> str:
    """Return a time as perf prints it."""
    for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= scale:
            return f"{ns / scale:.2f} {unit}"
    return f"{ns:.0f} ns"


TABLES: Final[dict[str, Callable[[Mapping[str, Counters]], str]]] = {
    "lock_stat": lock_stat,
    "perf": perf_lock_contention,
}
"""The formats by their names on the command line."""
