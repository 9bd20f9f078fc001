"""Time accounting, use of resources and the bottleneck of a run: by hand, and of complete runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.experiments.outcomes import RUN
from tests.harness import FIO, loop_config
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.formats.table import wrapped
from wbsim.experiments.running.reading import lives_of, uses_of
from wbsim.experiments.running.results import Results, read_results
from wbsim.experiments.running.simulate import simulate
from wbsim.experiments.why.bottlenecks import Kind, bottleneck, kinds_of, most_used
from wbsim.experiments.why.explain import (
    Result,
    Run,
    document,
    explanation,
    flushers_table,
    in_order,
    kind_table,
    lives_table,
    per_file,
    rates_of,
    result_of,
    run_of,
    sweep_table,
    verdict,
)
from wbsim.models.time_accounting import Spent, system_ns
from wbsim.sim.sync import LockClass, LockStat
from wbsim.sim.units import MIB, S

SLOW = Run(
    "slow", {}, 2_000_000, 0.001,
    [
        Kind("sda/flusher", 2, {"system allocate": 1.2e6, "system pages": 3e5, "waiting idle": 5e5}, 2),
        Kind("a/process", 8, {"user": 100_000.0, "waiting throttled": 1_900_000.0}, 9),
        Kind("jbd2", 1, {"waiting idle": 2_000_000.0}, 1),
    ],
    {"processors": 0.4, "lock sda/list_lock": 0.1, "thread sda/flusher": 0.75, "thread a/process 0": 0.05},
    100, 100 * 4_096, 100, 100 * 4_096,
)  # fmt: skip
FAST = SLOW._replace(
    variant="fast", length_ns=1_500_000, wall_time=0.0008,
    kinds=[Kind("sda/flusher", 2, {"system allocate": 1_200_000.0, "spinning sda/list_lock": 300_000.0}, 2)],
)  # fmt: skip


@pytest.mark.parametrize(
    ("uses", "named"),
    [
        ({"processors": 0.4, "lock l": 0.3, "thread t": 0.9}, ["thread t", "processors", "lock l"]),
        ({"processors": 0.995, "lock l": 0.3, "thread t": 1.0}, ["processors", "thread t", "lock l"]),
        ({"processors": 0.985, "lock l": 0.3, "thread t": 1.0}, ["thread t", "processors", "lock l"]),
        ({"lock l": 0.2, "thread p 0": 0.5, "thread p 1": 0.6}, ["thread p 1", "lock l"]),
    ],
    ids=["the most used", "as good as equal", "not quite", "of a kind"],
)
def test_most_used_resource_holds_a_run_back(uses: dict[str, float], named: list[str]) -> None:
    """Resources within 1 % are ordered by the threads that share them.

    The busiest thread of a kind stands for all threads of the kind.
    """
    assert [of.name for of in most_used(uses)] == named


@pytest.mark.parametrize(
    ("uses", "held"),
    [
        ({"device sda head": 0.5}, "device sda head"),
        ({"device sda head": 0.499}, None),
        ({"pauses of fio/process 0": 0.959, "device sda head": 0.509}, "pauses of fio/process 0"),
        ({"pauses of fio/process 0": 0.41, "device sda head": 0.509}, "device sda head"),
        ({"pauses of fio/process 0": 0.41, "device sda head": 0.409}, None),
        ({"start of dd": 0.8, "device sda head": 0.2}, "start of dd"),
    ],
)
def test_bottleneck_is_in_use_for_half_of_the_run(uses: dict[str, float], held: str | None) -> None:
    """Pauses that take up more of the run than a resource are its cause, and below a half nothing is."""
    found = bottleneck(uses)
    assert (None if found is None else found.name) == held


def test_threads_of_a_kind_are_averaged() -> None:
    """Numbers in names do not matter, and a missing cause counts as 0.

    Threads that did next to nothing are counted separately.
    """
    lives: dict[str, dict[str, int]] = {
        "p/process 0": {"user": 10_000}, "sda:1/flusher": {"user": 10}, "p/process 12": {"ready": 4_000},
        "sda:0/flusher": {"user": 5, "waiting idle": 9_995},
        "sdb:0/flusher": {"waiting idle": 10_000}, "dm-0/flusher": {"user": 10},
    }  # fmt: skip
    assert kinds_of(lives) == [
        Kind("p/process", 2, {"user": 5_000.0, "ready": 2_000.0}, 2),
        Kind("sda/flusher", 1, {"user": 10.0}, 2),
        Kind("sdb/flusher", 0, {"waiting idle": 10_000.0}, 1),
        Kind("dm-0/flusher", 1, {"user": 10.0}, 1),
    ]


def test_causes_are_in_the_order_of_a_page_s_path() -> None:
    """Causes are ordered by state.  Causes that are neither work nor waiting for a resource come last."""
    given = {
        "waiting idle", "waiting a request", "ready", "spinning b", "spinning a", "system waking",
        "system dispatch", "system create", "user", "waiting absent",
    }  # fmt: skip
    assert in_order(given) == [
        "user", "system create", "system dispatch", "system waking", "spinning a", "spinning b", "ready",
        "waiting a request", "waiting absent", "waiting idle",
    ]  # fmt: skip


def test_text_of_a_run_names_the_bottleneck() -> None:
    """The text has the bottleneck, the resources after it, and a column for each kind of busy threads."""
    assert verdict(SLOW) == (
        "slow: 0.00 s, held back by thread sda/flusher, in use for 75.0 % of it; then processors 40.0 %,"
        " lock sda/list_lock 10.0 %, thread a/process 0 5.0 %"
    )
    assert verdict(SLOW, count=0).endswith("75.0 % of it")
    half = SLOW._replace(uses={"processors": 0.1, "thread a": 0.5})
    assert verdict(half, count=0) == "slow: 0.00 s, held back by thread a, in use for 50.0 % of it"
    idle = SLOW._replace(uses={"processors": 0.1, "thread a": 0.499})
    assert verdict(idle, count=0) == (
        "slow: 0.00 s, held back by nothing in particular; most used was thread a, in use for 49.9 % of it"
    )
    paused = SLOW._replace(uses={"pauses of dd": 0.9, "processors": 0.1})
    assert verdict(paused, count=0) == (
        "slow: 0.00 s, held back by pauses of dd, which the program itself sets, for 90.0 % of it"
    )
    assert lives_table(SLOW).splitlines() == [
        "% of the run       sda/flusher x2  a/process x8 of 9",
        "-----------------  --------------  -----------------",
        "user                            -                5.0",
        "system pages                 15.0                  -",
        "system allocate              60.0                  -",
        "waiting throttled               -               95.0",
        "waiting idle                 25.0                  -",
    ]


def test_differences_of_two_runs_add_up_to_the_gain() -> None:
    """The time of both flushers is divided by the 100 files that they wrote back, of 700 that were made."""
    assert flushers_table(SLOW._replace(files=700), FAST).splitlines() == [
        "flushers, us a file       slow    fast  difference",
        "----------------------  ------  ------  ----------",
        "system pages             6.000   0.000      -6.000",
        "system allocate         24.000  24.000      +0.000",
        "spinning sda/list_lock   0.000   6.000      +6.000",
        "waiting idle            10.000   0.000     -10.000",
        "all                     40.000  30.000     -10.000",
    ]
    large = SLOW._replace(files=1, file_bytes=90 * MIB, flushed_files=7, flushed_bytes=50 * MIB)
    unit, one, _ = per_file(large, FAST)
    assert (unit, one["system pages"]) == ("MiB", 12.0)
    assert explanation(Result("A title", (), [SLOW, FAST])).count("flushers, us a file") == 1
    alone = explanation(Result("A title", (), [SLOW]))
    assert alone.split("\n\n") == ["A title", wrapped(verdict(SLOW)), lives_table(SLOW)]
    assert "flushers, us" not in explanation(Result("A title", (), [SLOW, FAST, SLOW]))


def test_idle_flusher_has_no_part_in_time_per_file() -> None:
    """A flusher has flushed a file in 0.8 us, and a second flusher was idle."""
    kinds = kinds_of(
        {
            "vda:0/flusher": {"system pages": 800, "waiting idle": 200},
            "vda:1/flusher": {"waiting idle": 1_000},
        }
    )
    _, one, _ = per_file(*[SLOW._replace(kinds=kinds, flushed_files=1)] * 2)
    assert one["system pages"] == 0.8


@pytest.mark.parametrize("on_disk_time", [None, 38.0])
def test_explanation_has_on_disk_time_of_outcome(on_disk_time: float | None) -> None:
    """The time is read off the outcome, and None without a sync(2)."""
    assert run_of(replace(RUN, on_disk_time=on_disk_time)).on_disk_time == on_disk_time


def test_flusher_time_is_unknown_without_writeback() -> None:
    """A run whose flushers wrote no file has no time for each file."""
    assert flushers_table(SLOW._replace(flushed_files=0), FAST).splitlines()[2:] == [
        "system pages                -   0.000           -",
        "system allocate             -  24.000           -",
        "spinning sda/list_lock  0.000   6.000      +6.000",
        "waiting idle                -   0.000           -",
        "all                         -  30.000           -",
    ]


def test_rates_are_unknown_without_wall_time() -> None:
    """A run of no length has no rate, and no share of the best rate."""
    row = sweep_table("contexts", [run._replace(wall_time=0.0) for run in SWEPT]).splitlines()[2]
    assert row.split()[-2:] == ["-", "-"]
    idle = sweep_table("contexts", [run._replace(files=0, file_bytes=0) for run in SWEPT]).splitlines()[2]
    assert idle.split()[-2:] == ["0", "-"]


SWEPT = [
    SLOW._replace(variant="a", point={"contexts": 1}, on_disk_time=38.25),
    FAST._replace(variant="a", point={"contexts": 12}),
]


def test_text_of_a_sweep_has_rates_and_kinds_of_threads() -> None:
    """Each run has a row with its rate while the programs ran.

    Each kind of thread has a table with a column for each run.
    """
    assert sweep_table("contexts", SWEPT).splitlines() == [
        "contexts  held back by        % of its time  wall s  on disk s  files/s  % of the best",
        "--------  ------------------  -------------  ------  ---------  -------  -------------",
        "1         thread sda/flusher           75.0  0.0010      38.25  100 000           80.0",
        "12        thread sda/flusher           75.0  0.0008          -  125 000          100.0",
    ]
    idle = [run._replace(uses={"processors": 0.455, "device sda head": 0.3}) for run in SWEPT]
    assert sweep_table("contexts", idle).splitlines()[2].split()[:5] == [
        "1", "nothing", "in", "particular", "45.5",
    ]  # fmt: skip
    backwards = sweep_table("contexts", SWEPT[::-1]).splitlines()[2:]
    assert [row.split()[-1] for row in backwards] == ["100.0", "80.0"], (
        "the percentage is relative to the best row, not to the last"
    )
    large = [run._replace(files=1, file_bytes=50 * MIB) for run in SWEPT]
    header, _, *rows = sweep_table("contexts", large).splitlines()
    assert (header.split()[-5], rows[1].split()[-2]) == ("MiB/s", "500")
    assert kind_table("a/process", SWEPT).splitlines() == [
        "a/process, % of the run       1  12",
        "-----------------------  ------  --",
        "threads                  8 of 9   -",
        "user                        5.0   -",
        "waiting throttled          95.0   -",
    ]
    other = [run._replace(variant="b") for run in SWEPT]
    text = explanation(Result("A title", ("contexts",), [*SWEPT, *other]))
    assert text.split("\n\n")[:3] == [
        "A title",
        "The flusher of sda holds the run back at every point.",
        "a:",
    ]
    assert [text.count(part) for part in ("b:", "held back by", "sda/flusher, % of", "jbd2")] == [1, 2, 2, 0]


def test_uses_are_shares_of_the_length_of_the_run() -> None:
    """The run takes 1 000 ns on two processors.

    * lock: held for 300 ns and handed over for 50 ns
    * class of locks: the busiest lock was in use for 300 ns
    * thread a: ran for 600 ns and spun for 100 ns of them, so it used 500 ns
    * thread b: ran for 800 ns and spun through its own pauses for 200 ns of them, so it used 600 ns
    * pauses of b: with those that it slept through, they set 850 ns of the run
    * program late: began after 150 ns
    * link of the device: used for 250 ns
    """
    spinner, other = (
        SimpleNamespace(
            task=SimpleNamespace(name=name, spin_ns=spun), spent=SimpleNamespace(pause=pause, paced=paced)
        )
        for name, spun, pause, paced in (("a", 100, 0, 0), ("b", 0, 200, 850))
    )
    machine: Any = SimpleNamespace(
        env=SimpleNamespace(now=1_000),
        processors=SimpleNamespace(
            count=2, used_ns=1_400, ran_ns=lambda task: {"a": 600, "b": 800}[task.name]
        ),
        locks=[
            SimpleNamespace(name="l", stat=LockStat(hold_ns=300, hand_off_ns=50, wait_ns=999)),
            LockClass("c", lambda: (LockStat(hold_ns=1_900), 300)),
        ],
        queues={"sda": SimpleNamespace(uses=lambda: {"link": 250})},
        threads=[spinner, other],
        starts={"soon": 0, "late": 150},
    )
    assert uses_of(machine) == {
        "start of late": 0.15, "pauses of b": 0.85, "processors": 0.6, "lock c": 0.3, "lock l": 0.35,
        "device sda link": 0.25, "thread a": 0.5, "thread b": 0.6,
    }  # fmt: skip


PAUSING = {
    "--rate=200m": ("user a pause", "pauses of fio/process 0"),
    "--rate=20m": ("waiting a pause", "pauses of fio/process 0"),
    "--thinktime=20us": ("user a pause", "pauses of fio/process 0"),
    "--thinktime=200us": ("waiting a pause", "pauses of fio/process 0"),
    "--startdelay=4": ("waiting absent", "pauses of fio/parent"),
}  # fmt: skip


@pytest.mark.parametrize("option", PAUSING)
def test_pauses_of_a_program_are_named_as_the_cause(option: str) -> None:
    """The writer pauses for most of the run, asleep or spinning, and no thread counts as busy meanwhile.

    fio itself takes 0.3 s to begin, so 32 MiB are written.
    """
    command = f"{FIO} --rw=write --nrfiles=1 --filesize=32m --name=a {option}"
    text = loop_config(command, dirty_mib=8, more="workload.start_time = '1 ms'\nworkload.idle_time = '0 s'")
    (case,) = parse(text, "x.toml").cases
    machine = simulate(case, 1)
    uses, process = uses_of(machine), lives_of(machine)["fio/process 0"]
    cause, named = PAUSING[option]
    assert process[cause] > machine.env.now / 2
    held = bottleneck(uses)
    assert held is not None
    assert held.name == named
    assert all(share < 0.5 for name, share in uses.items() if name != named), uses
    program = machine.programs["fio"]
    assert program.user_ns == process["user"] + process.get("user a pause", 0)


def test_rate_sets_the_run_until_its_last_pause() -> None:
    """A call of 1 MiB takes most of its period, so the pauses are short, but faster writes end no sooner."""
    command = FIO.replace("bs=4k", "bs=1m") + " --rw=write --nrfiles=1 --filesize=64m --name=a --rate=1500m"
    (case,) = parse(loop_config(command, dirty_mib=512), "x.toml").cases
    machine = simulate(case, 1)
    (process,) = (thread for thread in machine.threads if thread.task.name == "fio/process 0")
    life = lives_of(machine)["fio/process 0"]
    paused_ns = life.get("user a pause", 0) + life.get("waiting a pause", 0)
    period_ns = S * MIB // (1500 * MIB)
    assert process.spent.paced >= 63 * period_ns > 2 * paused_ns > 0


def test_waiting_for_earlier_jobs_is_no_pause() -> None:
    """The parent looks every 100 ms whether the first job is over, which sets no time of the run."""
    command = f"{FIO} --rw=write --nrfiles=1 --filesize=16m --thinktime=500us --name=a --name=b --stonewall"
    text = loop_config(command, dirty_mib=8, more="workload.idle_time = '0 s'")
    (case,) = parse(text, "x.toml").cases
    machine = simulate(case, 1)
    assert "pauses of fio/parent" not in uses_of(machine)
    assert "waiting a pause" not in lives_of(machine)["fio/parent"]


def test_start_of_a_program_is_named_as_the_cause() -> None:
    """A dd that begins after 9 s of a run of little more holds the run back; an endless sync does not."""
    text = loop_config("x", dirty_mib=8).replace('workload.command = "x"', (
        'programs.dd = { command = "dd if=/dev/zero of=/a bs=1M count=16", start = "9 s" }\n'
        'programs.sync = { command = "sync", every = "1 s", start = "8 s" }'
    ))  # fmt: skip
    (case,) = parse(text, "x.toml").cases
    machine = simulate(case, 1)
    held = bottleneck(uses_of(machine))
    assert held is not None
    assert held.name == "start of dd"
    assert not [name for name in uses_of(machine) if name.startswith(("start of sync", "pauses of sync"))]


def test_system_time_is_the_time_that_time_1_reports() -> None:
    """System time has all kernel paths, spinning and interrupts, without the program's user time."""
    spent = Spent()
    spent.user, spent.create, spent.write = 5, 70, 8
    task: Any = SimpleNamespace(spin_ns=900, interrupted_ns=4_000)
    assert system_ns(task, spent) == 4_978


COMMANDS = {
    "fs_mark": "fs_mark -S0 -n 200 -s 8192 -L 2 -D 9 -d a -d b",
    "fs_mark 64k": "fs_mark -S0 -k -n 60 -s 65536 -d a -d b",
    "fio": f"{FIO} --rw=randwrite --nrfiles=3 --filesize=8m --numjobs=2 --name=a",
}  # fmt: skip


@pytest.mark.parametrize("sync", ["true", "false"])
@pytest.mark.parametrize("kernel", ["2.6.39", "3.11", "6.18"])
@pytest.mark.parametrize("filesystem", ["loop-xfs", "loop-ext4"])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_time_of_every_thread_is_accounted_for(command: str, filesystem: str, kernel: str, sync: str) -> None:
    """The causes add up to the length of the run, to the ns, and no time has the cause ``other``.

    For a thread that runs at the end the last step may be missing.
    """
    text = loop_config(
        command, dirty_mib=4, kernel=kernel, filesystem=filesystem, more=f"sync_after = {sync}"
    )
    (case,) = parse(text, "x.toml").cases
    machine = simulate(case, 1)
    of = lives_of(machine)
    assert not [name for name, life in of.items() if "system other" in life]
    lengths = {thread.task.name: thread.task.on_cpu for thread in machine.threads}
    assert {name for name, life in of.items() if sum(life.values()) != machine.env.now} <= {
        name for name, running in lengths.items() if running
    }
    uses = uses_of(machine)
    assert all(0 <= share <= 1 for share in uses.values()), uses
    if sync == "true":
        assert "waiting writeback" in of["sync"]


def test_waits_of_a_writer_have_their_causes() -> None:
    """The writer is throttled on XFS, and a sync(2) follows."""
    text = loop_config(COMMANDS["fio"], dirty_mib=4, more="sync_after = true")
    (case,) = parse(text, "x.toml").cases
    of = lives_of(simulate(case, 1))
    assert of["fio/process 0"]["waiting throttled"] > of["fio/process 0"]["system write"] > 0
    assert of["fio/parent"]["waiting children"] > of["fio/parent"]["user"] > 0
    assert of["sync"].keys() - {"ready"} == {
        "waiting absent",
        "waiting writeback",
        "waiting the device",
        "waiting the log's write",
    }


def test_rate_is_in_files_of_up_to_a_mib() -> None:
    """Two files of 1 MiB count as files.  With one more byte in both together MiB count."""
    run = SLOW._replace(files=2, file_bytes=2 * MIB)
    assert rates_of([run])[0] == "files/s"
    assert rates_of([run, run._replace(file_bytes=2 * MIB + 1)])[0] == "MiB/s"


def test_document_has_times_uses_and_threads_of_a_run() -> None:
    """Times are in ns, except those of programs in s.  The most used resource comes first."""
    (told,) = document(Result("t", (), [SLOW]))["runs"]
    threads = told.pop("threads")
    assert threads["a/process"] == {
        "count": 8, "of": 9, "life": {"user": 100_000.0, "waiting throttled": 1_900_000.0},
    }  # fmt: skip
    assert list(threads) == ["sda/flusher", "a/process", "jbd2"]
    assert list(told["uses"].items()) == [
        ("thread sda/flusher", 0.75), ("processors", 0.4), ("lock sda/list_lock", 0.1),
        ("thread a/process 0", 0.05),
    ]  # fmt: skip
    del told["uses"]
    assert told.pop("calls") == {}
    assert told.pop("held_back_by") == "thread sda/flusher"
    idle = SLOW._replace(uses={"processors": 0.455})
    assert document(Result("t", (), [idle]))["runs"][0]["held_back_by"] is None  # type: ignore[index]
    assert told == {
        "label": "slow", "length_ns": 2_000_000, "wall_time": 0.001, "on_disk_time": None, "point": {},
    }  # fmt: skip


def result(tmp_path: Path) -> Path:
    """Return the results of a small run of two variants."""
    config = tmp_path / "x.toml"
    variants = '\n[variants.one]\n[variants.two]\nkernel.writeback.plug_scope = "mapping"\n'
    config.write_text(loop_config(COMMANDS["fs_mark"], dirty_mib=4) + variants.replace("\\\n", "\n"))
    assert main(["run", str(config), "--out", str(tmp_path / "out")]) == 0
    return tmp_path / "out"


def test_explain_prints_a_text_or_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text comes with a picture."""
    out = result(tmp_path)
    capsys.readouterr()
    assert main(["explain", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("held back by") == 2
    assert "flushers, us a file" in printed.out
    assert (out / "lives.png").stat().st_size > 10_000
    assert main(["explain", str(out), "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told == json.loads(json.dumps(document(result_of(read_results(out)))))
    assert [run["label"] for run in told["runs"]] == ["one", "two"]


def test_first_replication_of_each_point_is_explained() -> None:
    """A run is as long as the longest time of a thread."""
    runs = [
        replace(
            RUN, variant="a", point=point, replication=n, uses={"t": 1.0},
            lives={"t": {"user": 7}, "u": {"user": 3}},
        )
        for point in ({}, {"n": 4}) for n in (0, 1)
    ]  # fmt: skip
    told = result_of(Results("t", ("n",), runs, []))
    assert (told.title, told.axes) == ("t", ("n",))
    assert [(run.label, run.length_ns) for run in told.runs] == [("a", 7), ("a 4", 7)]
