"""The drives of report W25 under direct writes, compared with measurements of W25 and with data sheets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wbsim.models.bio import Bio, Request
from wbsim.models.catalogue.data_files import part_in
from wbsim.models.devices.spec import SsdSpec
from wbsim.models.devices.ssd import Ssd
from wbsim.sim.engine import Environment
from wbsim.sim.units import KIB, MIB, SECTOR_BYTES, S

PM9A3, BM1743 = (part_in("drives", name)["device"] for name in ("pm9a3", "bm1743"))

DEPTH = 32
WRITES = 40_000
CACHE = 8 * MIB
"""The size of the drive's cache: small, so that most of the run has a full cache."""


def rate(device: dict[str, Any], size: int, *, random: bool) -> float:
    """Return the rate (MB/s) of direct writes of *size* bytes, of which the drive always has `DEPTH`."""
    env = Environment()
    drive = Ssd(env=env, spec=SsdSpec.model_validate({**device, "cache": CACHE}), name="d")
    sectors = size // SECTOR_BYTES
    places = np.arange(WRITES)
    if random:
        np.random.default_rng(1).shuffle(places)
    left = iter((places * sectors).tolist())
    ended: list[int] = []

    def submit() -> None:
        if (start := next(left, None)) is not None:
            drive.submit(Request(Bio(start, sectors, op="W")), done)

    def done() -> None:
        ended.append(env.now)
        submit()

    for _ in range(DEPTH):
        submit()
    env.run()
    first, last = WRITES // 2, WRITES - DEPTH
    return (last - first) * size / (ended[last] - ended[first]) * S / 1e6


@pytest.mark.parametrize(
    ("device", "mib"), [(PM9A3, 2_132), (BM1743, 457)], ids=["PM9A3", "BM1743"]
)  # fmt: skip
def test_small_random_writes_are_as_fast_as_measured(device: dict[str, Any], mib: float) -> None:
    """The rates are those of docs/kernel/devices.md#figures [S W25], to which the drives were set."""
    assert rate(device, 4 * KIB, random=True) == pytest.approx(mib * MIB / 1e6, rel=0.01)


@pytest.mark.parametrize(
    ("device", "mb"), [(PM9A3, 4_000), (BM1743, 2_000)], ids=["PM9A3", "BM1743"]
)  # fmt: skip
def test_sequential_writes_are_as_fast_as_the_data_sheet_says(device: dict[str, Any], mb: float) -> None:
    """The rates are those of docs/kernel/devices.md#figures; no number of the BM1743 was set from them."""
    assert rate(device, 128 * KIB, random=False) == pytest.approx(mb, rel=0.05)


def test_random_writes_of_whole_units_are_as_fast_as_sequential() -> None:
    """Random writes of 16 KiB, the BM1743's indirection unit, are as fast as sequential writes.

    The PM9A3 writes at the rate at which its flash programs.  A fresh drive collects no garbage.
    """
    assert rate(BM1743, 16 * KIB, random=True) == pytest.approx(
        rate(BM1743, 128 * KIB, random=False), rel=0.02
    )
    assert rate(BM1743, 16 * KIB, random=True) == pytest.approx(
        4 * rate(BM1743, 4 * KIB, random=True), rel=0.02
    )
    assert rate(PM9A3, 16 * KIB, random=True) == pytest.approx(4_000, rel=0.05)
