"""Named kernels: which variant and constant each era has.

Numbers are read in the sources that mechanisms.md lists, unless a line says otherwise.
"""

from __future__ import annotations

import re
from typing import Any, Final

from models.block.plug import PlugRules
from models.scenario import KernelSpec
from models.variants import variants
from sim.param import Given, assumed, measured, specified
from sim.units import KIB, MIB, MS, S

_RULES: Final = "mechanisms.md 1.2, 1.3"


def _plug(
    tried: str, held: int | None, mixed: int | None, flush_bytes: int | None, flush_of: str, order: str,
    order_mixed: str, kernel: str, mixed_above: int = 1,
) -> dict[str, Given]:  # fmt: skip
    source = f"{_RULES} [V {kernel}]"
    return {
        "tried": specified(tried, source),
        "max_requests": specified(held, source),
        "max_requests_mixed": specified(mixed, source),
        "flush_bytes": specified(flush_bytes, source),
        "flush_of": specified(flush_of, source),
        "order": specified(order, source),
        "order_mixed": specified(order_mixed, source),
        "mixed_above": specified(mixed_above, source),
    }


_PLUGS: Final = {
    "2.6.39": _plug("all", None, None, None, "newest", "fifo", "queue", "2.6.39"),
    "3.1": _plug("all", 16, None, None, "newest", "fifo", "queue", "3.1"),
    "3.11": _plug("all", 16, None, None, "newest", "sector", "sector", "3.10, 3.11"),
    "4.3": _plug("all", 16, None, None, "newest", "sector", "sector", "4.3, single hardware queue"),
    "4.9": _plug("all", 16, None, None, "newest", "sector", "sector", "4.9"),
    "5.4": _plug("all", 16, None, 128 * KIB, "newest", "sector", "sector", "5.4"),
    "5.10": _plug("all", 32, 64, 128 * KIB, "newest", "fifo", "sector", "5.10.89, 5.15.55", 2),
    "5.17": _plug("newest", 32, 64, 128 * KIB, "newest", "lifo", "lifo", "5.17-rc5"),
    "6.1": _plug("newest", 32, 64, 128 * KIB, "newest", "lifo", "lifo", "6.1"),
    "6.14": _plug("oldest", 32, 64, 128 * KIB, "oldest", "fifo", "fifo", "6.14"),
    "6.17": _plug("tail", 32, 64, 128 * KIB, "oldest", "fifo", "fifo", "6.12.117, 6.17"),
}

PLUG_RULES: Final = {name: PlugRules.model_validate(given) for name, given in _PLUGS.items()}
"""The plug's rules of every era that had plugs on the stack."""

_SINCE: Final = (
    ((2, 6, 39), "2.6.39"),
    ((3, 1, 0), "3.1"),
    ((3, 10, 0), "3.11"),
    ((4, 3, 0), "4.3"),
    ((4, 9, 0), "4.9"),
    ((5, 4, 0), "5.4"),
    ((5, 10, 0), "5.10"),
    ((5, 16, 0), "5.17"),
    ((6, 1, 0), "6.1"),
    ((6, 12, 117), "6.17"),
    ((6, 13, 0), "6.14"),
    ((6, 17, 0), "6.17"),
)


def era_of(release: str) -> str:
    """The key in `PLUG_RULES` of a kernel *release*, such as "3.11" or "6.18.44-rc1".

    Without a patch level the series' newest is meant.  Between two versions that were read, the earlier
    one's rules are taken.

    Raises:
        ValueError: no version, or one from before plugs were on the stack.
    """
    version = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", release)
    if version is None:
        raise ValueError(f"{release!r} is no kernel version; give one such as {', '.join(PLUG_RULES)}")
    major, minor, patch = version.groups(default="999")
    found = [era for since, era in _SINCE if since <= (int(major), int(minor), int(patch))]
    if not found:
        raise ValueError(f"{release} had no plug on the stack; the first was 2.6.39")
    return found[-1]


_HZ: Final = assumed(1000, "CONFIG_HZ of x86_64_defconfig; the report names none", 100, 1000)


def _kernel(
    name: str, *, spinlock: str, requests: str, plug: str, plug_scope: str, source: str, hz: Given = _HZ
) -> KernelSpec:
    given: dict[str, Any] = {
        "name": name,
        "spinlock": specified(spinlock, "mechanisms.md 7.1"),
        "requests": specified(requests, "mechanisms.md 1.6, 1.3"),
        "plug": _PLUGS[plug],
        "writeback": {
            "plug_scope": specified(plug_scope, source),
            "slice_time": specified(100 * MS, "mechanisms.md 2.2 [V 3.11, 4.3, 6.17]: HZ/10"),
            "used_up": specified("more_io", "mechanisms.md 2.1 [V 3.11, 6.17]"),
            "expire": specified(30 * S, "mechanisms.md 0 [V all]: dirty_expire_centisecs"),
            "interval": specified(5 * S, "mechanisms.md 0 [V all]: dirty_writeback_centisecs"),
        },
        "flusher": {"kind": specified("per_bdi", "mechanisms.md 4.2 [V 3.10]")},
        "throttling": {
            "kind": specified("io_less", "mechanisms.md 3.3 [V 3.11]"),
            "hz": hz,
            "initial_bandwidth": specified(100 * MIB, "mm/backing-dev.c: INIT_BW"),
        },
        "dirty": {
            "dirty_background_ratio": specified(10, "mechanisms.md 0 [V all]"),
            "dirty_ratio": specified(20, "mechanisms.md 0 [V all]"),
        },
        "filesystems": {
            kind: variant.spec.rules_of(name) for kind, variant in variants("filesystems").items()
        },
    }
    return KernelSpec.model_validate(given)


def _2_6_34(name: str) -> KernelSpec:
    """Writers write back, 1024 pages a pass, and the queue plugs, not the thread."""
    given = _kernel(
        name,
        spinlock="ticket",
        requests="request_list",
        plug="2.6.39",
        plug_scope="none",
        source="mechanisms.md 2.6 [V 2.6.34]",
    ).inputs()
    given["writeback"] |= {
        "quota_pages": specified(1024, "mechanisms.md 2.2 [V 2.6.34]: MAX_WRITEBACK_PAGES"),
        "used_up": specified("redirty_tail", "mechanisms.md 2.1 [V 2.6.34]"),
    }
    given["throttling"] = {
        "kind": specified("caller_writes", "mechanisms.md 3.2 [V 2.6.34]"),
        "hz": assumed(1000, "CONFIG_HZ of the author's configuration is not told", 100, 1000),
    }
    return KernelSpec.model_validate(given)


lacking: Final[dict[str, str]] = {}
"""The kernels that are known and cannot be run, each with what is missing."""

KERNELS: Final = {
    kernel.name: kernel
    for kernel in (
        _2_6_34("2.6.34"),
        _2_6_34("2.6.34-n10"),
        _kernel(
            "3.11",
            spinlock="ticket",
            requests="request_list",
            plug="3.11",
            plug_scope="mapping",
            source="mechanisms.md 2.6 [V 3.11]",
        ),
        _kernel(
            "3.11-p13",
            spinlock="ticket",
            requests="request_list",
            plug="3.11",
            plug_scope="slice",
            source="report P13: the patch",
        ),
        _kernel(
            "4.3",
            spinlock="queued",
            requests="tags",
            plug="4.3",
            plug_scope="work",
            source="mechanisms.md 2.6 [V 4.3]",
        ),
        _kernel(
            "6.17",
            spinlock="queued",
            requests="tags",
            plug="6.17",
            plug_scope="work",
            source="mechanisms.md 2.6 [V 6.12]",
        ),
        _kernel(
            "6.18",
            spinlock="queued",
            requests="tags",
            plug="6.17",
            plug_scope="work",
            source="mechanisms.md 2.6 [V 6.12]",
            hz=measured(250, "docs/measurements.md: CONFIG_HZ of the kernel that was measured"),
        ),
    )
}
"""The kernels that can be run."""
