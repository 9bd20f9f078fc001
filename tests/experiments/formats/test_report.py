"""Printed tables, to the character, and the value of each figure of a run."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.experiments.outcomes import RUN, SYNCED, sample, with_readings, written
from wbsim.experiments.formats.report import (
    Column,
    difference_table,
    failed_processes,
    ignored_options,
    on_disk_table,
    outcome_table,
    parts_tables,
    print_fs_mark,
    steady_table,
    texts_of,
    unfinished,
)
from wbsim.experiments.formats.table import table
from wbsim.experiments.published.figures import METRICS, published_rows
from wbsim.experiments.published.fit import Fit
from wbsim.experiments.published.reproduce import Reproduction, Row
from wbsim.experiments.published.tables import fit_table, reproduction_table
from wbsim.experiments.results.figures import FIGURES
from wbsim.experiments.results.intervals import Steady
from wbsim.experiments.results.outcome import DiskResult, JobResult, MountResult, ProgramResult
from wbsim.sim.units import S


def test_a_table_is_aligned() -> None:
    """The first column is aligned to the left and the others to the right.  No line ends with a blank."""
    assert table(("name", "n"), [("a", "1"), ("long name", "22")]) == (
        "name        n\n---------  --\na           1\nlong name  22"
    )
    assert table(("a", "bb"), [("x", "y")], left_columns=2) == "a  bb\n-  --\nx  y"


def test_outcome_table_has_a_line_for_a_run() -> None:
    """Columns about files show their creation, or their extents if they are laid out.

    A swept key has a column next to the variant.
    """
    assert outcome_table([RUN], []) == (
        "variant    wall s  sys s  w/s  wMB/s  wareq-sz KiB  wrqm %  w_await ms  files/s  fs_mark files/s\n"
        "---------  ------  -----  ---  -----  ------------  ------  ----------  -------  ---------------\n"
        "unpatched       4   2.25  250  2.048             8      75         2.5    3 000            3 457"
    )
    layout = replace(SYNCED, variant="u", point={"n": 8})
    assert outcome_table([layout], ["n"]) == (
        "variant  n  wall s  on disk s  sys s  w/s  wMB/s  wareq-sz KiB  wrqm %  w_await ms  file MB/s\n"
        "-------  -  ------  ---------  -----  ---  -----  ------------  ------  ----------  ---------\n"
        "u        8       4         38   2.25  250  2.048             8      75         2.5      12.29\n\n"
        "variant  n  extents/file  extent KiB\n"
        "-------  -  ------------  ----------\n"
        "u        8             2       2 048"
    ), "a table of more than 100 columns continues below"


def test_further_figures_have_columns_with_their_units() -> None:
    """A counter is a whole number; both tables of means have the columns."""
    base = [with_readings(replace(RUN, replication=n), flushed_files=153 + n) for n in range(2)]
    lines = outcome_table(base[:1], [], ["flushed_files", "limit", "lock_wait_time"]).splitlines()
    assert lines[4] == "variant    flushed_files  limit MiB  lock_wait_time s"
    assert lines[6].split()[-3:] == ["153", "100", "0"]
    other = [replace(run, variant="other") for run in base]
    differences = difference_table([*base, *other], [], ["limit"])
    assert differences is not None
    assert (
        differences.splitlines()[4]
        == "against unpatched, %  w_await ms    files/s  fs_mark files/s  limit MiB"
    )


def test_unknown_figures_are_dashes() -> None:
    """Means and shares have no denominator without a bio, a file or an iteration of fs_mark."""
    idle = replace(
        RUN, wall_time=0.00321, write_iops=0.0, write_bandwidth=0.0, create_rate=None, files=0,
        disks={"vda": written(0, 0, 0, 0.0)},
    )  # fmt: skip
    header, _, row = outcome_table([idle], []).splitlines()
    assert header == "variant     wall s  sys s  w/s  wMB/s  files/s", "a single row shows no unknown figure"
    assert row == "unpatched  0.00321   2.25    0      0        0"
    timeless = replace(idle, variant="timeless", wall_time=0.0, write_iops=None, write_bandwidth=None)
    *_, row, common = outcome_table([idle, timeless], []).splitlines()
    assert row == "timeless   0.00000    -      -        -"
    assert common == "in every row: sys s 2.25"


def test_unknown_replications_are_left_out_of_means() -> None:
    """Sizes of 8, 16 and 24 KiB have the mean 16 and the half-width 8 * 4.303 / sqrt(3)."""
    runs = [
        replace(RUN, replication=n, disks={"vda": written(1_000 * (n < 3), 0, 16_000 * (n + 1), 1.0)})
        for n in range(4)
    ]
    column = Column("wareq-sz KiB", "request_size")
    assert texts_of(column, [runs]) == ["16 ±20"]
    assert texts_of(column, [[runs[0], runs[3]]]) == ["8"], "a single value has no interval"
    assert texts_of(column, [[runs[3], runs[3]]]) == ["-"]
    quick = [replace(of, variant="quick") for of in runs]
    told = difference_table([*runs, *quick], [])
    assert told is not None
    assert "+0.0 ±0.0" in told
    told = difference_table([runs[0], runs[3], quick[0], quick[3]], [])
    assert told is not None
    cells = [cell.strip() for cell in told.splitlines()[2].split("  ") if cell.strip()]
    assert cells[:5] == ["quick", "+0.0 ±0.0", "+0.0 ±0.0", "+0.0 ±0.0", "+0.0 ±0.0"]


def test_on_disk_table_counts_requests_until_sync_returns() -> None:
    """5 000 requests of 16 KiB and 5 000 merges within 38 s; a run without sync(2) is left out."""
    assert on_disk_table([RUN], []) is None
    assert on_disk_table([RUN, replace(SYNCED, variant="s")], []) == (
        "until on disk   s  requests     MB    w/s  wMB/s  wareq-sz KiB  wrqm %  w_await ms\n"
        "-------------  --  --------  -----  -----  -----  ------------  ------  ----------\n"
        "s              38     5 000  81.92  131.6  2.156            16      50         6.5"
    )


def test_unfinished_writeback_is_noted() -> None:
    """Files without a block count as not on disk; dirty pages count unless a sync(2) follows."""
    assert unfinished([RUN], []) is None
    partly = replace(with_readings(RUN, dirty_at_end=3.0), extents=(0, 2, 0), point={"n": 8})
    dirty = "MiB still dirty or under writeback when the programs ended"
    remedy = f"{dirty}; with sync_after = true a sync(2)\n  follows"
    assert unfinished([partly], ["n"]) == f"2 of 3 files are not on disk yet\n3 {remedy}"
    other = replace(with_readings(partly, dirty_at_end=1.0), variant="other", extents=(1,))
    assert unfinished([partly, other], ["n"]) == (
        f"unpatched 8: 2 of 3 files are not on disk yet\n1 to 3 {remedy}"
    )
    endless = with_readings(SYNCED, dirty_at_end=1.0)
    assert unfinished([endless], []) is None, "endless programs write during the sync(2), and a file is empty"
    assert unfinished([partly, endless], ["n"]) is not None


def test_processes_that_an_error_ends_are_noted() -> None:
    """The first replication of each case counts; a case is named if there are several."""
    assert failed_processes([RUN], []) is None
    (program,) = RUN.programs.values()
    full = replace(program, failed={"No space left on device": 2, "/m/f: No such file or directory": 1})
    run = replace(RUN, programs={"mark": program, "dd": full}, point={"n": 8})
    space = "dd: No space left on device; this ended 2 processes before all was written"
    path = "dd: /m/f: No such file or directory; this ended 1 process before all was written"
    assert failed_processes([run, replace(run, replication=1)], ["n"]) == f"{space}\n{path}"
    other = replace(RUN, variant="other", point={"n": 8})
    several = f"unpatched 8: {space}\nunpatched 8: {path}"
    assert failed_processes([run, other], ["n"]) == several


def test_options_without_effect_are_noted() -> None:
    """Each program with such options has a line, and one for each variant in which they differ."""
    assert ignored_options([("v", "a", ())]) is None
    programs = [("v", "a", ("-k", "-l")), ("v", "b", ()), ("v", "c", ("status=none",)), ("v", "a", ())]
    notes = "a: without effect here: -k, -l\nc: without effect here: status=none"
    assert ignored_options(programs) == notes
    assert ignored_options([*programs, *(("w", *program[1:]) for program in programs[:3])]) == notes
    assert ignored_options([("v", "a", ("-k",)), ("w", "a", ()), ("x", "a", ("-l",))]) == (
        "v: a: without effect here: -k\nx: a: without effect here: -l"
    )


def test_jobs_of_fio_have_a_table() -> None:
    """A rate of no time is unknown; the program is named if there are several."""
    jobs = {
        "w": JobResult(2.5, 3, 5_000_000, 1_250, 2e6, 500.0, 0.25, 0.125),
        "idle": JobResult(0.0, 1, 0, 0, None, None, 0.0, 0.0),
    }
    (program,) = RUN.programs.values()
    (text,) = parts_tables(replace(RUN, programs={"fio": replace(program, jobs=jobs)}))
    assert text == (
        "job     s  MB  MB/s  writes/s  files  sys s  user s\n"
        "----  ---  --  ----  --------  -----  -----  ------\n"
        "w     2.5   5     2       500      3   0.25   0.125\n"
        "idle  0.0   0     -         -      1   0.00   0.000"
    )
    programs = {"mark": program, "fio": replace(program, jobs=jobs)}
    _, several = parts_tables(replace(RUN, programs=programs))
    assert [line.split()[:2] for line in several.splitlines()] == [
        ["program", "job"], ["-------", "----"], ["fio", "w"], ["fio", "idle"],
    ]  # fmt: skip


def test_replications_are_one_line_and_differences_are_paired() -> None:
    """The replications of a case have one line, and variants are compared replication by replication.

    * first variant: 4, 5 and 6 s, with the half-width 4.303 / sqrt(3)
    * second variant: half of each, so the difference is -50 % with the half-width 24.8 %
    """
    base = [replace(RUN, point={"n": 8}, replication=r, wall_time=4.0 + r) for r in range(3)]
    quick = [replace(of, variant="patched", wall_time=of.wall_time / 2) for of in base]
    lines = outcome_table([*base, *quick], ["n"]).splitlines()
    assert [line.split()[:3] for line in lines[2:4]] == [
        ["unpatched", "5.0", "±2.5"],
        ["patched", "2.5", "±1.2"],
    ]
    assert any(line.startswith("in every row: n 8, ") for line in lines)
    told = difference_table([*base, *quick], ["n"])
    assert told is not None
    assert told.startswith("against unpatched, %  n ")
    row = told.splitlines()[2].split()
    assert row[:6] == ["patched", "8", "-50.0", "±24.8", "+0.0", "±0.0"]
    assert difference_table([base[0], quick[0]], ["n"]) is None, "one run of each variant has no interval"
    assert difference_table([base[0], *quick], ["n"]) is None, "the other runs of the first variant failed"
    assert difference_table([*base, quick[0]], ["n"]) is None, "the other runs of the second variant failed"
    others = [replace(of, replication=of.replication + 2) for of in quick]
    assert difference_table([*base, *others], ["n"]) is None, "the two variants share only one replication"
    assert difference_table(base, ["n"]) is None, "the table has only one variant"


def test_steady_part_is_printed_if_a_run_is_partly_steady() -> None:
    """A run has 100 steps of 1 s, of which the first 19 have 10 requests and the others have 100.

    Steps are cut off in batches of five, so the steady part begins at 21 s.
    """
    ios = [10 * i if i <= 20 else 200 + 100 * (i - 20) for i in range(1, 102)]
    run = replace(RUN, samples=tuple(sample(i, 5, i, i, n, 0, 8 * n) for i, n in enumerate(ios, 1)))
    told = steady_table([run], [])
    assert told is not None
    assert "100.0 from 21 s" in told.splitlines()[2]
    assert steady_table([RUN], []) is None


def test_parts_of_a_run_have_tables_if_there_are_several() -> None:
    """Programs, disks and mounts have a table each.  A disk without requests is left out."""
    assert parts_tables(RUN) == []
    many = replace(
        RUN,
        programs={**RUN.programs, "dd": ProgramResult(2.0, 0.25, 0.125, 1, 8_000_000, 0)},
        disks={**RUN.disks, "vdb": written(0, 0, 0, 0.0), "vdc": written(500, 0, 4_000, 1.0, 0.25)},
        mounts={**RUN.mounts, "data": MountResult(0, 4_194_304, (3, 0, 1)), "new": MountResult(0, 0, (0,))},
    )
    assert parts_tables(many) == [
        "program  wall s  sys s  user s   files  file MB/s\n"
        "-------  ------  -----  ------  ------  ---------\n"
        "mark          4   2.25   0.500  12 000      12.29\n"
        "dd            2   0.25   0.125       1       4.00",
        "disk  w/s  wMB/s  wareq-sz KiB  wrqm %  w_await ms\n"
        "----  ---  -----  ------------  ------  ----------\n"
        "vda   250  2.048             8      75        2.50\n"
        "vdc   125  0.512             4       0        0.25",
        "mount  log MB  extents/file  extent KiB\n"
        "-----  ------  ------------  ----------\n"
        "mnt       5.5             1           -\n"
        "data      0.0             2       1 024\n"
        "new       0.0             -           -",
    ]
    disks_at_end = {"vda": written(0, 0, 0, 0.0), "vdb": written(400, 400, 8_000, 1.0, 12.0)}
    assert parts_tables(replace(many, on_disk_time=40.0, disks_at_end=disks_at_end))[2] == (
        "disk until on disk  requests  w/s   wMB/s  wareq-sz KiB  wrqm %  w_await ms\n"
        "------------------  --------  ---  ------  ------------  ------  ----------\n"
        "vdb                      400   10  0.1024            10      50          12"
    )
    unused = {"vda": written(0, 0, 0, 0.0), "vdb": written(0, 0, 0, 0.0)}
    idle = replace(many, disks=unused, disks_at_end=unused, on_disk_time=40.0)
    assert [text.split()[0] for text in parts_tables(idle)] == ["program", "mount"]
    none = {"mark": ProgramResult(0.0, 0.0, 0.0, 0, 0, 0), "dd": ProgramResult(0.0, 0.0, 0.0, 0, 0, 0)}
    assert parts_tables(replace(RUN, programs=none))[0].splitlines()[2].split()[-1] == "-"


def test_tables_show_r_await_when_a_disk_has_read() -> None:
    """A disk that has only read has no w_await, and a disk that has only written no r_await."""
    read = DiskResult(0, 0, 0, 1.0, reads=40, r_await=0.75, w_await=None)
    run = replace(RUN, disks={**RUN.disks, "vdb": read})
    assert parts_tables(run) == [
        "disk  w/s  wMB/s  wareq-sz KiB  wrqm %  w_await ms  r_await ms\n"
        "----  ---  -----  ------------  ------  ----------  ----------\n"
        "vda   250  2.048             8      75         2.5           -\n"
        "vdb     0  0.000             -       -           -        0.75"
    ]
    header, _, row, *_ = outcome_table([run], []).splitlines()
    assert header.endswith("w_await ms  r_await ms  files/s")
    assert row.split()[7:9] == ["2.5", "0.75"]


def test_reproduction_table_has_a_row_for_each_figure() -> None:
    """A row is calibrated, predicted or not modelled yet.  An error has its sign.

    A published range has no figure.
    """
    rows = [
        Row("P13-wall-u", 354.0, "s", 345.04, (335.95, 354.15), -0.02531, "calibrated"),
        Row("P13-iops-p", 1_500.0, "1/s", 1_560.4, None, 0.0403, "predicted"),
        Row("V13-x", None, "MB/s", None, None, None, "not modelled yet"),
        Row("W25-y", None, "1", 12.0, None, None, "predicted"),
    ]
    result = Reproduction(
        rows, {"calibrated": 3, "assumed": 42}, 12.4, 195.7, 7, "how it was got", False, [RUN]
    )
    assert reproduction_table(result) == (
        "figure      published  unit  simulated   95 % interval   error              role\n"
        "----------  ---------  ----  ---------  --------------  ------  ----------------\n"
        "P13-wall-u      354.0     s      345.0  335.9 .. 354.1  -2.5 %        calibrated\n"
        "P13-iops-p      1 500   1/s      1 560               -  +4.0 %         predicted\n"
        "V13-x               -  MB/s          -               -       -  not modelled yet\n"
        "W25-y               -     1         12               -       -         predicted\n"
        "\n"
        "interval: how it was got\n"
        "numbers: 3 calibrated, 42 assumed (see: wbsim params)\n"
        "12 s of CPU, 196 MiB, seed 7"
    )
    settled = [replace(rows[1], steady=Steady(1_950.4, 61.0)), replace(rows[0], steady=Steady(1.0, 0.0))]
    assert (
        "\n\nsteady part  simulated  unit  from\n-----------  ---------  ----  ----\n"
        "P13-iops-p       1 950   1/s  61 s\n\ninterval"
    ) in reproduction_table(replace(result, rows=settled))
    assert "\nquick: one run each" in reproduction_table(replace(result, quick=True))
    assert reproduction_table(replace(result, outcomes=[])).endswith("predicted")


def test_fit_table_has_errors_in_percent_and_a_verdict() -> None:
    """The verdict states whether the fit is within 1 % of the committed constants."""
    fit: Any = SimpleNamespace(
        constants={"writer_scale": 2.14}, committed={"writer_scale": 2.1}, errors={"P13-wall-u": -0.0251},
        agrees=False, rounds=4,
    )  # fmt: skip
    text = (
        "constant      fitted  committed\n"
        "------------  ------  ---------\n"
        "writer_scale    2.14        2.1\n\n"
        "row          error\n----------  ------\nP13-wall-u  -2.5 %\n\n"
        "after 4 rounds the fit is DIFFERENT from the committed constants"
    )
    assert fit_table(fit) == text
    fit.agrees = True
    assert fit_table(fit).endswith("after 4 rounds the fit is within 1 % of the committed constants")
    assert {"constants", "committed", "errors", "agrees", "rounds"} <= {*Fit.__dataclass_fields__, *vars(Fit)}


def test_fs_mark_table_shows_the_use_of_the_filesystem(capsys: pytest.CaptureFixture[str]) -> None:
    """The use is in percent: 12 000 files of 4 KiB take 12 % of 400 MB."""
    workload = SimpleNamespace(bytes_each=4_096)
    case: Any = SimpleNamespace(
        scenario=SimpleNamespace(
            programs={"mark": SimpleNamespace(workload=workload)},
            mounts={"mnt": SimpleNamespace(filesystem=SimpleNamespace(size=400_000_000))},
        )
    )
    print_fs_mark(case, RUN)
    assert capsys.readouterr().out == (
        "FSUse%        Count         Size    Files/sec     App Overhead\n"
        "     3         3000         4096       4000.0             1234\n"
        "    12        12000         4096       3000.0             1234\n"
        "\n"
    )


LAID_OUT = replace(
    SYNCED, extents=(3, 1), locks={"inode_hash_lock": {"wait_ns": 30}, "x": {"wait_ns": 90}},
    programs={"load": ProgramResult(7.0, 2.0, 0.5, 3, 0, 0), "sync": ProgramResult(5.0, 1.5, 0.5, 0, 0, 0)},
)  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "unit", "whole", "iteration"),
    [
        ("wall_time", "s", 4.0, 3.0),
        ("system_cpu_time", "s", 2.25, 1.75),
        ("create_rate", "files/s", 3_456.78, 3_000.0),
        ("write_iops", "1/s", 250.0, 300.0),
        ("write_bandwidth", "MB/s", 2.048, 14_400 * 512 / 1e6 / 3),
        ("throughput", "MB/s", 12.288, None),
        ("throughput", "MiB/s", 49_152_000 / 2**20 / 4, None),
        ("disk_utilisation", "percent", 75.0, None),
        ("system_cpu", "", 2.25e6 / 8.192, None),
        ("extents_total", "1", 4, None),
        ("extents_per_file", "1", 2.0, None),
        ("mean_extent", "512B sectors", 4_096.0, None),
        ("mean_extent", "MB", 2.0, None),
        ("create_wall_time", "s", 4.0, None),
        ("bulkstat_wall_time", "s", 4.0, None),
        ("lookup_wall_time", "s", 4.0, None),
        ("unlink_wall_time", "s", 4.0, None),
        ("fs_mark_wall_time", "s", 7.0, None),
        ("sync_wall_time", "s", 5.0, None),
        ("sync_system_cpu_time", "s", 1.5, None),
        ("inode_hash_remove_share_of_spin_contention", "percent", 25.0, None),
    ],
)
def test_metric_has_the_value_worked_out_by_hand(
    metric: str, unit: str, whole: float, iteration: float | None
) -> None:
    """The second iteration of the run has 900 requests and 14 400 sectors in three seconds."""
    of = METRICS[metric, unit]
    assert of.whole(LAID_OUT) == pytest.approx(whole)
    assert (of.iteration is None) == (iteration is None)
    if of.iteration is not None and iteration is not None:
        assert of.iteration(*RUN.samples) == pytest.approx(iteration)
    assert len(METRICS) == 21


def test_utilisation_is_that_of_the_busiest_disk() -> None:
    """The figure ``kernel_cpu`` divides the kernel time of all threads by the bytes of the files."""
    disks = {"a": written(1, 0, 8, 1.0), "b": written(1, 0, 8, 3.5), "c": written(0, 0, 0, 0.0)}
    lives = {"mark": {"user": 4 * S, "system lists": S, "waiting x": S}, "flusher": {"spinning l": 2 * S}}
    run = replace(RUN, disks=disks, lives=lives)
    assert FIGURES["utilisation"].whole(run) == 87.5
    assert FIGURES["kernel_cpu"].whole(run) == pytest.approx(3e6 / 49.152)


def test_published_rows_are_read_in_order() -> None:
    """A range, or a figure that was not preserved, has no value."""
    rows = published_rows()
    assert rows[0].report == "P13"
    by_id = {row.id: row for row in rows}
    assert (by_id["P13-wall-u"].value, by_id["P13-wall-u"].unit, by_id["P13-wall-u"].metric) == (
        354.0, "s", "wall_time",
    )  # fmt: skip
    assert len(by_id) == len(rows)
    assert {row.report for row in rows} == {"P13", "V13", "N10", "W25", "J09"}
