"""Histograms of latencies: fio's bins, percentiles, and the waits of the slowest calls."""

from __future__ import annotations

from random import Random

import pytest

from wbsim.models.syscalls.latency import Latencies, Latency, bin_of, merge_bins, middle_of, percentile


def plat_val_to_idx(value: int) -> int:
    """Return the bin of *value*, as fio's stat.c has it, without the bound of its 29 groups."""
    msb = value.bit_length() - 1 if value else 0
    if msb <= 6:
        return value
    error_bits = msb - 6
    return ((error_bits + 1) << 6) + (63 & (value >> error_bits))


def plat_idx_to_val(number: int) -> float:
    """Return the middle of the bin *number*, as fio's stat.c has it."""
    if number < 128:
        return number
    error_bits = (number >> 6) - 1
    return (1 << (error_bits + 6)) + ((number % 64) + 0.5) * (1 << error_bits)


def test_bins_are_those_of_fio() -> None:
    """For all small values, for both sides of each power of two, and for random values up to 10^12 ns."""
    random = Random(1)
    near = [(1 << bits) + by for bits in range(8, 44) for by in (-1, 0, 1)]
    values = [*range(600), *near, *(random.randrange(10**12) for _ in range(3_000))]
    bins = [int(bin_of(value)) for value in values]
    assert bins == [plat_val_to_idx(value) for value in values]
    assert [middle_of(number) for number in bins] == [plat_idx_to_val(number) for number in bins]


def test_the_last_bin_has_all_longer_calls() -> None:
    """2^45 ns are ten hours; a call of a day counts in the last bin, and its maximum is exact."""
    assert [bin_of((1 << bits) - 1) for bits in (45, 46, 50)] == [40 * 64 - 1] * 3
    assert bin_of(127 << 37) == 39 * 64 - 1
    of = Latency()
    of.add(1 << 50)
    assert (of.max_ns, len(of.bins())) == (1 << 50, 1)


def test_percentiles_count_calls() -> None:
    """99 % of 200 calls do not exceed the 198th."""
    bins = {10: 100, 20: 97, 30: 1, 40: 2}
    asked = (1, 50, 50.1, 98.5, 98.6, 99, 99.1, 100)
    assert [percentile(bins, of) for of in asked] == [10, 10, 20, 20, 30, 30, 40, 40]
    assert [percentile({1: 999 * 10**k, 2: 10**k}, 99.9) for k in range(12)] == [1] * 12
    with pytest.raises(ValueError, match="there are no calls"):
        percentile({}, 50)


def test_histograms_are_merged_by_bin() -> None:
    """The merged histogram has each call once."""
    assert merge_bins([{10: 1, 20: 2}, {20: 3, 30: 4}, {}]) == {10: 1, 20: 5, 30: 4}


def test_equal_calls_count_as_single_calls_do() -> None:
    """Random lengths are counted one by one, and as groups of equal calls."""
    single, grouped, random = Latency(), Latency(), Random(2)
    for _ in range(3_000):
        ns, calls = random.randrange(1, 1 << random.randrange(1, 40)), random.randrange(1, 5)
        grouped.add(ns, calls=calls)
        for _ in range(calls):
            single.add(ns)
    assert single.count == grouped.count > 6_000
    assert (single.total_ns, single.min_ns, single.max_ns, single.bins(), single.slowest()) == (
        grouped.total_ns, grouped.min_ns, grouped.max_ns, grouped.bins(), grouped.slowest(),
    )  # fmt: skip
    assert sum(single.bins().values()) == single.count


def test_the_slowest_calls_are_whole_octaves() -> None:
    """Ten calls, from 4 096 ns on, are 1 % of 1 000; with another call, only those from 8 192 ns on are.

    The sum of their time is that of the middles of their bins.
    """
    of = Latency()
    of.add(100, calls=990)
    for _ in range(5):
        of.add(5_000, 3_000, "throttled")
    for _ in range(4):
        of.add(9_000, 8_000, "lock i_rwsem")
    of.add(9_000, 500, "throttled")
    slowest = of.slowest()
    assert slowest.from_ns == 4_096, "the empty octaves below belong to no call"
    assert (slowest.calls, slowest.total_ns) == (10, 5 * 5_024 + 5 * 9_024)
    assert slowest.waits_ns == {"throttled": 15_500, "lock i_rwsem": 32_000}
    of.add(5_000, 4_000, "throttled")
    slowest = of.slowest()
    assert (slowest.calls, slowest.from_ns, slowest.total_ns) == (5, 8_192, 5 * 9_024)
    assert slowest.waits_ns == {"lock i_rwsem": 32_000, "throttled": 500}


def test_the_longest_octave_is_always_among_the_slowest() -> None:
    """A single call of 3 ns is in the first octave; a hundred calls of 70 ns are all in the second."""
    of = Latency()
    of.add(3)
    slowest = of.slowest()
    assert (slowest.calls, slowest.from_ns, slowest.total_ns, slowest.waits_ns) == (1, 0, 3, {})
    of = Latency()
    of.add(70, calls=100)
    assert of.slowest()[:3] == (100, 64, 7_000)


def test_only_calls_that_were_made_are_named() -> None:
    """A program that wrote and fsynced."""
    of = Latencies()
    of.fsync.add(5)
    of.write.add(7)
    assert list(of.by_call()) == ["write", "fsync"]
    assert of.by_call()["fsync"] is of.fsync
