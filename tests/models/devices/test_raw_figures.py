"""The drives of W25 alone, under direct writes: against what was measured there, and their data sheets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wbsim.models.bio import Bio, Request
from wbsim.models.catalogue.devices import BM1743, PM9A3
from wbsim.models.devices.spec import SsdSpec
from wbsim.models.devices.ssd import Ssd
from wbsim.sim.engine import Environment
from wbsim.sim.units import KIB, MIB, SECTOR_BYTES, S

DEPTH = 32
WRITES = 40_000
CACHE = 8 * MIB
"""Soon full: it is the long run that counts."""


def rate(device: dict[str, Any], size: int, *, random: bool) -> float:
    """MB/s of direct writes of *size* bytes, so many that the drive has `DEPTH` of them at any time."""
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
    """mechanisms.md 6.5 [S]; the numbers were set from these."""
    assert rate(device, 4 * KIB, random=True) == pytest.approx(mib * MIB / 1e6, rel=0.01)


@pytest.mark.parametrize(
    ("device", "mb"), [(PM9A3, 4_000), (BM1743, 2_000)], ids=["PM9A3", "BM1743"]
)  # fmt: skip
def test_a_sequence_is_as_fast_as_the_data_sheet_says(device: dict[str, Any], mb: float) -> None:
    """mechanisms.md 8.1; of the BM1743 nothing was set from it."""
    assert rate(device, 128 * KIB, random=False) == pytest.approx(mb, rel=0.05)


def test_whole_units_at_random_are_as_fast_as_in_sequence() -> None:
    """16 KiB is the BM1743's unit; the PM9A3 takes what its flash programs.  A fresh drive collects no
    garbage.
    """
    assert rate(BM1743, 16 * KIB, random=True) == pytest.approx(
        rate(BM1743, 128 * KIB, random=False), rel=0.02
    )
    assert rate(BM1743, 16 * KIB, random=True) == pytest.approx(
        4 * rate(BM1743, 4 * KIB, random=True), rel=0.02
    )
    assert rate(PM9A3, 16 * KIB, random=True) == pytest.approx(4_000, rel=0.05)
