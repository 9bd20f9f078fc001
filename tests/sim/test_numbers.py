"""Units, random numbers and statistics."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from wbsim.sim.param import Bytes, BytesPerS, Ns, Spec, assumed
from wbsim.sim.stats import batch_means, confidence_95
from wbsim.sim.streams import Draws, Streams
from wbsim.sim.units import GIB, PAGE_SECTORS, SCALES, pages, parse, sectors


@pytest.mark.parametrize(
    ("text", "kind", "amount"),
    [("16 GiB", "size", 16 * GIB), ("4KiB", "size", 4096), ("1.5 ms", "time", 1_500_000),
     ("500 MB/s", "rate", 5 * 10**8), ("0 s", "time", 0), ("1e3 ns", "time", 1000)],
)  # fmt: skip
def test_quantities_are_read_exactly(text: str, kind: str, amount: int) -> None:
    """A number and a unit give a whole number of base units."""
    assert parse(text, kind) == amount


@pytest.mark.parametrize(
    ("text", "kind", "hint"),
    [
        ("4k", "size", '"4 KiB"'),
        ("4k", "size", '"4 kB"'),
        ("16", "size", "no unit"),
        ("5 GiB", "time", "use one of ns"),
        ("-1 s", "time", "negative"),
        ("soon", "time", "not a quantity"),
        ("0.5 ns", "time", "whole number of ns"),
    ],
)
def test_bad_quantities_name_the_remedy(text: str, kind: str, hint: str) -> None:
    """Ambiguous, negative and malformed amounts raise an error that states the right form."""
    with pytest.raises(ValueError, match=hint.replace("(", r"\(")):
        parse(text, kind)


def test_units_have_their_values() -> None:
    """Units with an i are powers of two, units without are powers of ten; a rate is a size per second."""
    sizes = {
        "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
        "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    }  # fmt: skip
    assert SCALES["time"] == {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
    assert SCALES["size"] == sizes
    assert SCALES["rate"] == {f"{unit}/s": size for unit, size in sizes.items()}
    assert (PAGE_SECTORS, type(PAGE_SECTORS)) == (8, int)


class Quantities(Spec):
    """A spec with a time, a size and a rate."""

    time: Ns
    size: Bytes
    rate: BytesPerS


def test_field_reads_a_quantity_of_its_kind() -> None:
    """A field reads a time, a size or a rate; for any other text the error has an example of the kind."""
    given = {"time": "2 us", "size": "1 KiB", "rate": "3 kB/s"}
    read = Quantities.model_validate(given)
    assert (read.time, read.size, read.rate) == (2_000, 1_024, 3_000)
    for name, example in (("time", '"5 ms"'), ("size", '"4 KiB"'), ("rate", '"500 MB/s"')):
        with pytest.raises(ValueError, match=f"such as {example}"):
            Quantities.model_validate({**given, name: "much"})


def test_assumed_number_keeps_its_range_in_a_rebuilt_spec() -> None:
    """A spec that is built from the inputs of a spec keeps origin, source, low, high and targets."""
    number = assumed(5, "a guess", 1, 9, ("P13-1",))
    spec = Quantities.model_validate({"time": number, "size": 1, "rate": 1})
    assert Quantities.model_validate(spec.inputs()).provenance("time") == number


def test_conversions_are_exact_or_raise() -> None:
    """Bytes that are not a multiple of pages or sectors raise an error."""
    assert (pages(8192), sectors(1024)) == (2, 2)
    with pytest.raises(ValueError, match="4 KiB pages"):
        pages(4097)
    with pytest.raises(ValueError, match="512 B sectors"):
        sectors(100)


def test_streams_are_independent_of_each_other() -> None:
    """The numbers of a stream depend on seed, replication and name alone; a name can be used once."""
    one, two = Streams(7), Streams(7)
    two.generator("another")
    assert one.generator("x").random() == two.generator("x").random()
    assert Streams(7, 1).generator("x").random() != Streams(7, 0).generator("x").random()
    with pytest.raises(ValueError, match="is in use; give another name"):
        one.generator("x")


def test_draws_return_each_number_of_each_block_in_order() -> None:
    """The second block follows the last number of the first one, and no number is left out or repeated."""
    asked: list[int] = []

    def draw(count: int) -> NDArray[np.float64]:
        asked.append(count)
        return np.arange(float(count)) + sum(asked[:-1])

    draws = Draws(draw)
    assert not asked, "an unused stream draws no numbers"
    numbers = [draws.next()]
    numbers += [draws.next() for _ in range(2 * asked[0] - 1)]
    assert numbers == list(range(2 * asked[0]))
    assert asked == 2 * asked[:1]


@pytest.mark.parametrize("block", [1, 7, 512])
def test_block_length_changes_no_number(block: int) -> None:
    """Factors and uniform numbers are those of one array."""
    for draw in (lambda: Streams(1).service_time_arrays("x", 0.3), lambda: Streams(1).generator("x").random):
        draws = Draws(draw(), block)
        assert [draws.next() for _ in range(1_100)] == draw()(1_100).tolist()


def test_service_times_have_the_stated_moments() -> None:
    """The factors have mean 1, within 4 standard errors, and the given coefficient of variation."""
    draws = Streams(1).service_times("x", 0.3)
    values = np.array([draws.next() for _ in range(20_000)])
    assert abs(values.mean() - 1) < 4 * 0.3 / sqrt(len(values))
    assert values.std() == pytest.approx(0.3, rel=0.05)
    assert Streams(1).service_times("x", 0).next() == 1.0


def test_interval_and_batch_means_match_results_by_hand() -> None:
    """The interval of three values follows Student's t; batches drop the remaining values."""
    interval = confidence_95([1.0, 2.0, 3.0])
    assert interval.mean == 2.0
    assert interval.high - 2.0 == pytest.approx(4.302653 / sqrt(3), rel=1e-5)
    assert batch_means([1, 1, 2, 2, 9], 2) == [1, 2]
    with pytest.raises(ValueError, match="give at least 2"):
        confidence_95([1.0])


def test_batches_need_a_value_each() -> None:
    """Batches of one value have this value as mean; with fewer values the error gives both numbers."""
    assert batch_means([3.0, 5.0], 2) == [3.0, 5.0]
    assert batch_means([1.0, 2.0, 3.0, 4.0, 99.0], 2) == [1.5, 3.5]
    with pytest.raises(ValueError, match="2 values do not fill 3 batches"):
        batch_means([1.0, 2.0], 3)


def test_interval_of_two_values_follows_student_s_t() -> None:
    """1 and 3 have a mean of 2 and a standard error of 1; t of one degree of freedom is 12.706."""
    mean, low, high = confidence_95([1.0, 3.0])
    assert mean == 2.0
    assert (low, high) == (pytest.approx(2 - 12.7062, abs=1e-4), pytest.approx(2 + 12.7062, abs=1e-4))
    with pytest.raises(ValueError, match="give at least 2"):
        confidence_95([1.0])
