"""Kernels by name: every release of the supported range, the named kernels, and the eras of plugs."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.catalogue.kernels import KERNELS, era_of
from wbsim.models.kernel_rules.rule import rule
from wbsim.models.release import NEWEST_PATCH, Release, release_of

SERIES: Final = [
    f"{major}.{minor}" for major, most in ((3, 19), (4, 20), (5, 19), (6, 18)) for minor in range(most + 1)
]


@given(st.sampled_from(SERIES))
def test_every_series_is_in_the_catalogue(series: str) -> None:
    """A patch level and the suffix of a distribution change only the name of the kernel."""
    kernel = KERNELS[series]
    assert kernel.name == series
    assert KERNELS[f"{series}.999-generic"].model_copy(update={"name": series}) == kernel
    assert f"{series}.1" in KERNELS
    assert all(number.provenance is not None for number in kernel.numbers())


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
    assert rule("a", "", "5.16 5.10.89", 1, "a test").holds(release) == found


def test_repaired_kernel_of_n10_counts_pages() -> None:
    """2.6.34 with the repair of report N10 counts pages, as 2.6.35 does."""
    assert KERNELS["2.6.34-n10"].filesystems["xfs"].nr_to_write_counts == "pages"


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
