"""The price of a large write(2): without large folios, each page costs as much as in a call of 4 KiB."""

from __future__ import annotations

import pytest

from tests.harness import FIO, loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import build
from wbsim.sim.units import MIB, S

XEON = "paths.write = { call_ns = '550 ns', folio_ns = '1200 ns', page_ns = '715 ns' }"
"""The costs of a Xeon Gold 6240 that fit the published figures (docs/measurements.md N)."""


def write_ns(command: str, kernel: str, filesystem: str) -> int:
    """Run *command*, which nothing throttles, and return the time that its write(2) calls take."""
    text = loop_config(command, dirty_mib=1000, kernel=kernel, filesystem=filesystem)
    text = text.replace("kernel.like", f"machine.processors.{XEON}\nkernel.like", 1)
    (case,) = parse(text, "x.toml", ["machine.processors.cv=0"]).cases
    of = build(case.scenario, 1)
    of.run()
    (program,) = of.programs.values()
    assert program.share_done == 1.0
    return sum(thread.spent.write for thread in of.threads if thread.task.name.startswith("f"))


def mb_per_s(kernel: str, filesystem: str, call: str) -> float:
    """Return the rate of one fio with calls of size *call*."""
    command = f"{FIO.replace('--bs=4k', f'--bs={call}')} --rw=write --filesize=64m --name=a"
    return 64 * MIB / 1e6 / (write_ns(command, kernel, filesystem) / S)


@pytest.mark.parametrize(
    ("kernel", "filesystem", "published"),
    [
        ("6.15", "loop-ext4", (1_631, 2_088, 2_143)),
        ("6.5", "loop-xfs", (1_631, 2_088, 2_143)),
        ("6.6", "loop-xfs", (1_719, 5_092, 5_716)),
    ],
)
def test_fitted_costs_give_the_published_rate_of_each_call_size(
    kernel: str, filesystem: str, published: tuple[int, ...]
) -> None:
    """The three costs were fitted to these rows, whose calls have 4 KiB, 64 KiB and 1 MiB."""
    rates = [mb_per_s(kernel, filesystem, call) for call in ("4k", "64k", "1m")]
    assert rates == [pytest.approx(rate, rel=0.05) for rate in published]


@pytest.mark.parametrize(("kernel", "folios"), [("6.5", 4), ("6.6", 1)])
def test_fs_mark_pays_for_the_folios_of_its_calls(kernel: str, folios: int) -> None:
    """A file of 64 KiB takes four calls of four pages, and 100 ns to join the list of dirty inodes."""
    command = "fs_mark -k -S0 -n 20 -s 65536 -L 1 -d a"
    a_call = 550 + folios * 1_200 + 4 * 715
    assert write_ns(command, kernel, "loop-xfs") == 20 * (4 * a_call + 100)
