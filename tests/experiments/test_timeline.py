"""The text of a run over time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.outcomes import RUN, simulate_by, written
from tests.harness import FIO, loop_config
from wbsim.experiments.cli import main
from wbsim.experiments.formats.timeline import intervals_of, levels_at, rates, timeline, variation
from wbsim.experiments.results.figures import READ
from wbsim.sim.units import MS, S

LEVELS = {
    **dict.fromkeys(READ, (0, 0, 0)), "time_ns": (S, 2 * S, 4 * S),
    "dirty": (1, 2, 4), "writeback": (0, 1, 0),
    "background": (2,) * 3, "limit": (4,) * 3, "flushers": (0, 1, 2), "held_writers": (0, 0, 4),
    "sda ios": (10, 30, 30), "sda sectors": (2_000, 6_000, 6_000), "sda busy_ns": (S // 2, 3 * S // 2, 2 * S),
    "sda queued": (1, 7, 0), "sda write_wait_ns": (50 * MS, 250 * MS, 250 * MS), "sda reads": (0, 0, 0),
    "sda read_wait_ns": (0, 0, 0),
}  # fmt: skip
OF = replace(RUN, levels=LEVELS, disks={"sda": written(30, 0, 6_000, 2.0)})


def test_intervals_show_rates_of_counters_and_last_levels() -> None:
    """The first interval begins with the run.  Samples after the last complete interval are left out."""
    ends = intervals_of(OF, 1.5)
    assert ends.tolist() == [0, 1.5, 3.0]
    assert rates(OF, "sda ios", ends).tolist() == pytest.approx([20 / 1.5, 10 / 1.5])
    assert levels_at(OF, "sda queued", ends).tolist() == [1, 7]
    assert levels_at(OF, "flushers", intervals_of(OF, 0.5)).tolist() == [0, 0, 0, 1, 1, 1, 1, 2]
    assert variation(np.array([1.0, 3.0])) == 0.5
    assert variation(np.zeros(3)) == 0.0


def test_timeline_has_a_line_for_each_interval() -> None:
    """The columns are those of iostat.  The last line has the variation of the write rate."""
    assert timeline(OF, 1.0).splitlines() == [
        "s  dirty MiB  writeback  background  limit  flushers  held  w/s  wMB/s  w_await ms  queued  %util",
        "-  ---------  ---------  ----------  -----  --------  ----  ---  -----  ----------  ------  -----",
        "1          1          0           2      4         0     0   10  1.024           5       1     50",
        "2          2          1           2      4         1     0   20  2.048          10       7    100",
        "3          2          1           2      4         1     0    0  0.000           -       7     25",
        "4          4          0           2      4         2     4    0  0.000           -       0     25",
        "",
        "sda: 0.8 MB/s, coefficient of variation 1.11",
    ]
    counted = replace(OF, levels=LEVELS | {"flushed": (5, 7, 11), "dirty_at_end": (1, 2, 3)})
    columns = [
        line.split()[-2:] for line in timeline(counted, 1.0, ["flushed", "dirty_at_end"]).splitlines()[2:6]
    ]
    assert columns == [["5", "1"], ["2", "2"], ["2", "2"], ["2", "3"]], (
        "a counter has its rate, and a level its end"
    )


def test_timeline_of_two_disks_has_a_table_for_each() -> None:
    """One table would have 150 characters in a line."""
    two = replace(OF, disks={"sda": OF.disks["sda"], "sdb": OF.disks["sda"]})
    levels = {**LEVELS, **{name.replace("sda", "sdb"): of for name, of in LEVELS.items()}}
    text = timeline(replace(two, levels=levels), 2.0).splitlines()
    heads = [line for line in text if line.startswith("s ")]
    assert [line.split()[-1] for line in heads] == ["held", "%util", "%util"]
    assert [line.split()[1] for line in heads] == ["dirty", "sda", "sdb"]
    assert max(map(len, text)) <= 100
    assert text[-1].startswith("sdb: 0.8 MB/s")


def test_timeline_leaves_out_disks_without_requests() -> None:
    """A disk without requests has no columns.  If no disk has requests, all disks are shown."""
    idle = {name.replace("sda", "sdb"): (0, 0, 0) for name in LEVELS if name.startswith("sda")}
    two = {"sda": OF.disks["sda"], "sdb": written(0, 0, 0, 0.0)}
    assert timeline(replace(OF, disks=two, levels={**LEVELS, **idle}), 1.0) == timeline(OF, 1.0)
    none = {**LEVELS, **idle, **{name: (0, 0, 0) for name in LEVELS if name.startswith("sda")}}
    assert "sdb w/s" in timeline(replace(OF, disks=two, levels=none), 1.0)


def test_timeline_shows_r_await_of_a_disk_that_reads() -> None:
    """The column has the mean wait of the reads in each interval of 1 s.

    * first: 4 reads of 3 ms each
    * second: no reads
    * third and fourth: 2 reads of 8 ms in both together
    """
    reads = {"sda reads": (4, 4, 6), "sda read_wait_ns": (12 * MS, 12 * MS, 28 * MS)}
    lines = timeline(replace(OF, levels={**LEVELS, **reads}), 1.0).splitlines()
    head = next(number for number, line in enumerate(lines) if line.endswith("%util  r_await ms"))
    assert [line.split()[-1] for line in lines[head + 2 : head + 6]] == ["3", "-", "8", "8"]


def test_timeline_command_prints_first_replication_of_each_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interval that is no time, or that gives no lines or too many, is refused."""
    simulate_by(monkeypatch, lambda job: replace(OF, variant=job.case.variant, replication=job.replication))
    config = tmp_path / "x.toml"
    text = loop_config(f"{FIO} --rw=write --filesize=1m --name=a", dirty_mib=2)
    config.write_text(f"{text}[variants.a]\n[variants.b]\n")
    out = str(tmp_path / "out")
    assert main(["sweep", str(config), "--replications", "2", "--out", out]) == 0
    capsys.readouterr()
    assert main(["timeline", out, "--every", "2 s"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("on the machine")] == [
        "on the machine that was measured (a)", "on the machine that was measured (b)",
    ]  # fmt: skip
    assert main(["timeline", out, "--every", "2 s", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["variant"] for run in document["runs"]] == ["a", "b"]
    first = document["runs"][0]
    assert first["time_s"] == [2.0, 4.0]
    assert first["sda_write_iops_per_s"] == [15.0, 0.0]
    assert {"dirty_mib", "limit_mib", "sda_utilisation_percent", "sda_w_await_ms"} <= first.keys()
    for every, told in (
        ("5 s", "allowed are 1 to 10000"),
        ("0 s", "--every"),
        ("x", "is not a quantity"),
        ("1 us", "4000000 intervals"),
    ):
        assert main(["timeline", out, "--every", every]) == 2
        assert told in capsys.readouterr().err
