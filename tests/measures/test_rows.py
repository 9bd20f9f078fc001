"""Digests of rows change with the last bit of a value and with nothing of the host."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.experiments.outcomes import RUN
from tests.measures.rows import digest, digests_of, exact
from wbsim.experiments.published.reproduce import Reproduction, Row

_ROWS = [
    Row("P13-wall-u", 354.0, "s", 341.7, (341.1, 342.3), -0.035, "calibrated"),
    Row("P13-wall-p", None, "s", None, None, None, "not modelled yet"),
]


def reproduction(rows: list[Row] = _ROWS, **changes: object) -> Reproduction:
    """Return a reproduction of two rows and one run, which *changes* replace."""
    return Reproduction(rows, {}, 1.0, 2.0, 1, "t", True, [replace(RUN, **changes)])  # type: ignore[arg-type]


def test_digests_are_the_same_twice_and_count_rows_and_runs() -> None:
    first, second = digests_of([reproduction()]), digests_of([reproduction()])
    assert first == second
    assert first[2:] == (2, 1)
    assert digests_of([reproduction(), reproduction()])[2:] == (4, 2)
    assert len({first.rows, first.runs}) == 2


@pytest.mark.parametrize(
    "change",
    [{"id": "P13-wall-x"}, {"unit": "ms"}, {"simulated": math.nextafter(341.7, 0)}, {"simulated": None}],
)
def test_digest_of_rows_changes_with_any_value(change: dict[str, object]) -> None:
    changed = [replace(_ROWS[0], **change), _ROWS[1]]  # type: ignore[arg-type]
    before, after = digests_of([reproduction()]), digests_of([reproduction(changed)])
    assert after.rows != before.rows
    assert after.runs == before.runs


def test_digest_of_rows_depends_on_their_order() -> None:
    assert digests_of([reproduction()]).rows != digests_of([reproduction(_ROWS[::-1])]).rows


@pytest.mark.parametrize(
    "change",
    [
        {"replication": 1},
        {"seed": 2},
        {"variant": "patched"},
        {"samples": RUN.samples[:1]},
        {"samples": (RUN.samples[0], replace(RUN.samples[1], system_ns=1))},
        {"samples": (RUN.samples[0], replace(RUN.samples[1], files_per_sec=math.nextafter(3_000.0, 0)))},
    ],
)
def test_digest_of_runs_changes_with_any_counter(change: dict[str, object]) -> None:
    before, after = digests_of([reproduction()]), digests_of([reproduction(_ROWS, **change)])
    assert after.runs != before.runs
    assert after.rows == before.rows


def test_digests_ignore_the_host() -> None:
    """Time and memory of the host, intervals, errors and roles are in no digest."""
    rows = [replace(row, ci95=(0.0, 1.0), relative_error=1.0, role="predicted") for row in _ROWS]
    host = replace(reproduction(rows, cpu_s=9.0, peak_rss_mib=9.0), cpu_s=9.0, peak_rss_mib=9.0)
    assert digests_of([host]) == digests_of([reproduction()])


@given(st.floats(), st.floats())
def test_exact_texts_differ_as_bits_do(one: float, other: float) -> None:
    """Two floats have one text only if their bits are equal, or both are not a number."""
    equal = struct.pack("d", one) == struct.pack("d", other) or (one != one and other != other)
    assert (exact(one) == exact(other)) is equal
    assert exact(np.float64(one)) == exact(one)


def test_exact_text_depends_on_type_and_refuses_objects() -> None:
    texts = [exact(value) for value in (1, 1.0, "1", None, True)]
    assert len(set(texts)) == 5
    assert exact(np.int64(7)) == exact(7)
    with pytest.raises(TypeError, match="has no exact text"):
        exact(object())


def test_digest_keeps_values_apart() -> None:
    assert digest(["a", "b"]) != digest(["ab"])
    assert digest(["a\nb"]) != digest(["a", "b"])
    assert digest([]) != digest([None])
