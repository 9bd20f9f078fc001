"""The latencies of a program's system calls: histograms with fio's bins, and the waits of the slowest calls.

A latency is the time from the begin of a call until the program goes on in user mode.  What interrupts take
before a call counts in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple

from mypy_extensions import i64

from wbsim.sim.entry import FAR_NS

_BITS: Final = 6
_GROUP_BINS: Final = 64
"""The bins of a group, which is an octave; FIO_IO_U_PLAT_VAL."""
_GROUPS: Final = 40
"""fio has 29 groups, up to 17 s; an fsync(2) of a slow disk may take longer."""
_BINS: Final = 2_560
SLOWEST: Final = 0.01
"""The share of the calls that are the slowest, at most; but the longest octave always belongs to them."""


def bin_of(ns: int) -> i64:
    """Return the bin of a latency (ns), as plat_val_to_idx of fio's stat.c.

    Up to 127 ns each number is a bin; from there on, each octave has 64 bins.

    >>> bin_of(127), bin_of(1_000), bin_of(1_007)
    (127, 317, 317)
    """
    octaves: i64 = ns.bit_length() - (_BITS + 1)
    rest: i64 = ns
    if octaves <= 0:
        return rest
    if octaves >= _GROUPS - 1:
        return _BINS - 1
    return (octaves << _BITS) + (rest >> octaves)


def middle_of(number: int) -> int:
    """Return the middle of the bin *number* (ns), as plat_idx_to_val of fio's stat.c.

    >>> middle_of(bin_of(1_000))
    1004
    """
    if number < 2 * _GROUP_BINS:
        return number
    shift = (number >> _BITS) - 1
    return (_GROUP_BINS + number % _GROUP_BINS << shift) + (1 << shift - 1)


def percentile(bins: Mapping[int, int], percent: float) -> int:
    """Return the latency (ns) that *percent* % of the calls do not exceed; tenths of a percent count.

    *bins* has the number of calls by the middle of their bin (ns); at least one call.

    >>> percentile({100: 90, 5_000: 10}, 90), percentile({100: 90, 5_000: 10}, 99)
    (100, 5000)

    Raises:
        ValueError: *bins* has no calls.
    """
    rank, count = -(-sum(bins.values()) * round(percent * 10) // 1_000), 0
    for middle in sorted(bins):
        count += bins[middle]
        if count >= rank:
            return middle
    raise ValueError("there are no calls; give the bins of at least one")


def merge_bins(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the bins of several histograms together, by the middle of the bin (ns).

    >>> merge_bins([{100: 1}, {100: 2, 200: 5}])
    {100: 3, 200: 5}
    """
    together: dict[int, int] = {}
    for bins in histograms:
        for middle, calls in bins.items():
            together[middle] = together.get(middle, 0) + calls
    return together


class Slowest(NamedTuple):
    """The slowest *calls* calls, which took *from_ns* or longer, and *total_ns* together, by their bins.

    *total_ns* counts each call with the middle of its bin.  ``waits_ns`` has the waits of these calls by
    cause, without causes that never waited.  All waits of a call count for the cause of the longest of them.
    The rest of the time is work.
    """

    calls: int
    from_ns: int
    total_ns: int
    waits_ns: dict[str, int]


class _Sum:
    """A sum in a machine word; a list of int would make an object for each addition."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total: i64 = 0


class _Waits:
    """The waits of calls whose longest wait had one ``cause``: their sum in each group of bins (ns)."""

    __slots__ = ("cause", "sums_ns")

    def __init__(self, cause: str) -> None:
        self.cause = cause
        self.sums_ns = [_Sum() for _ in range(_GROUPS)]


_NO_CALLS: Final = [_Sum() for _ in range(_GROUP_BINS)]


class Latency:
    """The latencies of calls of one kind, which took ``total_ns`` together.

    The shortest took ``min_ns``, and the longest ``max_ns``; without calls these are `FAR_NS` and 0.
    """

    __slots__ = ("_groups", "_waits", "_waits_of", "max_ns", "min_ns", "total_ns")

    def __init__(self) -> None:
        self._groups: list[list[_Sum]] = [[]] * _GROUPS  # the bins of a group are made for its first call
        self._waits = _Waits("")  # those of the last call that waited
        self._waits_of: dict[str, _Waits] = {}
        self.total_ns: i64 = 0
        self.min_ns: i64 = FAR_NS
        self.max_ns: i64 = 0

    def add(self, ns: int, waited_ns: i64 = 0, cause: str = "", calls: i64 = 1) -> None:
        """Count *calls* calls that took *ns* each.

        *waited_ns* of each were waits, the longest of them for *cause*.
        """
        number = bin_of(ns)
        group = self._groups[number >> _BITS]
        if not group:
            group = self._groups[number >> _BITS] = [_Sum() for _ in range(_GROUP_BINS)]
        group[number & _GROUP_BINS - 1].total += calls
        took_ns: i64 = ns
        self.total_ns += took_ns * calls
        if took_ns > self.max_ns:
            self.max_ns = took_ns
        if took_ns < self.min_ns:
            self.min_ns = took_ns
        if waited_ns:
            waits = self._waits
            if waits.cause is not cause:
                if cause not in self._waits_of:
                    self._waits_of[cause] = _Waits(cause)
                waits = self._waits = self._waits_of[cause]
            waits.sums_ns[number >> _BITS].total += waited_ns * calls

    def include(self, other: Latency) -> None:
        """Count the calls of *other* here, too, with their waits; *other* stays as it is."""
        for number, more_of in enumerate(other._groups):
            if more_of and not self._groups[number]:
                self._groups[number] = [_Sum() for _ in range(_GROUP_BINS)]
            for entry, more in zip(self._groups[number], more_of, strict=False):
                entry.total += more.total
        self.total_ns += other.total_ns
        self.min_ns, self.max_ns = min(self.min_ns, other.min_ns), max(self.max_ns, other.max_ns)
        for cause, waits in other._waits_of.items():
            if cause not in self._waits_of:
                self._waits_of[cause] = _Waits(cause)
            for entry, more in zip(self._waits_of[cause].sums_ns, waits.sums_ns, strict=True):
                entry.total += more.total

    @property
    def count(self) -> int:
        """The number of calls."""
        return sum(self.bins().values())

    def bins(self) -> dict[int, int]:
        """Return the number of calls by the middle of their bin (ns); bins without a call are left out.

        >>> latency = Latency()
        >>> latency.add(1_000, calls=3)
        >>> latency.add(5)
        >>> latency.bins()
        {5: 1, 1004: 3}
        """
        numbered = enumerate(chain.from_iterable(group or _NO_CALLS for group in self._groups))
        return {middle_of(number): int(entry.total) for number, entry in numbered if entry.total}

    def slowest(self) -> Slowest:
        """Return the slowest calls: those of the longest octaves with together at most 1 % of all calls.

        An octave is from one power of two (ns) to the next.  The longest one with calls always belongs to the
        result (`SLOWEST`).  At least one call must have been counted.
        """
        of_groups = [sum(int(entry.total) for entry in group) for group in self._groups]
        most = SLOWEST * sum(of_groups)
        group = max(group for group in range(_GROUPS) if of_groups[group])
        calls = of_groups[group]
        for lower in range(group - 1, -1, -1):
            if calls + of_groups[lower] > most:
                break
            if of_groups[lower]:
                group, calls = lower, calls + of_groups[lower]
        waits_ns = {
            cause: sum(int(entry.total) for entry in waits.sums_ns[group:])
            for cause, waits in self._waits_of.items()
        }
        from_ns = _GROUP_BINS << group - 1 if group else 0
        total_ns = sum(middle * calls for middle, calls in self.bins().items() if middle >= from_ns)
        return Slowest(calls, from_ns, total_ns, {cause: ns for cause, ns in waits_ns.items() if ns})


class Latencies:
    """The latencies of all calls of a program, by kind.

    ``write`` has pwrite(2) too, and what O_SYNC or O_DSYNC add to a call.  ``open`` has open(2) of files that
    exist, or that another process makes just then, and their truncation (O_TRUNC).
    """

    __slots__ = (
        "bulkstat", "close", "creat", "fallocate", "fdatasync", "fsync", "ftruncate", "mkdir", "open",
        "rename", "stat", "sync", "syncfs", "unlink", "write",
    )  # fmt: skip

    def __init__(self) -> None:
        self.mkdir, self.creat, self.open = Latency(), Latency(), Latency()
        self.write, self.close = Latency(), Latency()
        self.stat, self.bulkstat, self.unlink = Latency(), Latency(), Latency()
        self.rename, self.fallocate, self.ftruncate = Latency(), Latency(), Latency()
        self.fsync, self.fdatasync = Latency(), Latency()
        self.syncfs, self.sync = Latency(), Latency()

    def by_call(self) -> dict[str, Latency]:
        """Return the latencies of each kind of call that was made, by the name of its attribute here."""
        return {name: latency for name, latency in self._kinds().items() if latency.count}

    def include(self, other: Latencies) -> None:
        """Count the calls of *other* here, too, kind by kind; *other* stays as it is."""
        kinds = self._kinds()
        for name, latency in other._kinds().items():
            kinds[name].include(latency)

    def _kinds(self) -> dict[str, Latency]:
        return {
            "mkdir": self.mkdir, "creat": self.creat, "open": self.open, "write": self.write,
            "close": self.close, "stat": self.stat, "bulkstat": self.bulkstat, "unlink": self.unlink,
            "rename": self.rename, "fallocate": self.fallocate, "ftruncate": self.ftruncate,
            "fsync": self.fsync, "fdatasync": self.fdatasync, "syncfs": self.syncfs, "sync": self.sync,
        }  # fmt: skip
