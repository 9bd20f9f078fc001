"""Any input ends a command with status 0, or with status 2 and a short message; nothing ends in a traceback.

`replay` may also end with status 1.  Not tested here: whether a result is right, and whether a message names
a remedy.

EXAMPLES sets the number of inputs (``make fuzz``: `tests.fuzz`).  No simulation runs here: each run gets an
outcome by hand.  `tests.laws.test_any_scenario` tests the simulation.
"""

from __future__ import annotations

import lzma
import os
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache
from io import StringIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.experiments.outcomes import RUN, simulate_by
from wbsim.experiments.cli import main
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.jobs import Job
from wbsim.sim.units import S

PHASES: Final = [Phase.explicit, Phase.generate] if "EXAMPLES" in os.environ else list(Phase)
EXAMPLES: Final = int(os.environ.get("EXAMPLES", "100"))
CAPTURES: Final = Path(__file__).parents[1] / "captures"
SINGLE = """\
title = "Creates, and what they cost"
replications = 2

[scenario]
machine.like = "desk-vm"
machine.memory.memory = "2 GiB"
kernel.like = "6.18"
filesystem.like = "desk-xfs"
workload.command = "fs_mark -k -S0 -n 20 -s 4096 -L 2 -d a -d b"
sync_after = true

[variants.small]
quick = ["workload.loops = 1"]

[variants.large]
kernel.writeback.interval = "1 s"
rows = ["P13-wall-u"]

[sweep]
grid = { "machine.processors.count" = [1, 2, 4], "kernel.wbt" = [true, false] }
"""
SEVERAL = """\
title = "Two disks"

[scenario]
machine.like = "p13-vm"
machine.disks.ssd = { like = "sata-ssd" }
machine.disks.hdd = { like = "sata-disk" }
kernel.like = "3.11"
kernel.flusher = { kind = "parallel", by = "hash", contexts = 2 }

[scenario.mounts.mail]
like = "xfs"
disk = "ssd"
at = "/srv/mail"

[scenario.mounts.db]
like = "loop-ext4"
disk = "hdd"
at = "/srv/db"
contents = [
    { path = "old", size = "1 MiB", extents = 3 },
    { path = "/srv/db/b", size = "4 KiB" },
]

[scenario.programs]
create.command = "fs_mark -k -S0 -n 20 -s 4096 -L 2 -d /srv/mail/0"
rewrite = { command = "sudo fio jobs.fio --output=log;", start = "1 s", b = { bs = "8k", sync = 1 } }
replace = { command = "mv /srv/db/b /srv/db/old", after = "rewrite" }
last = { command = "sync", start = "2 s", after = "replace" }
[sweep]
grid = { "pause" = ["1ms", "2ms"] }
"""
JOBS = """\
; two jobs
[global]
directory=/srv/db
rw=randwrite
bs=4k
filesize=64k
create_on_open=1
fallocate=none
group_reporting
include more.fio

[a]
numjobs=2
thinktime={pause}
runtime=5m
time_based

[b]
stonewall
rw=write
rate=10m
filename=b:c
nrfiles=2
wait_for=a
io_size=3m
fsync=3
bs=4k
"""
MORE = """bs=8k,16k
end_fsync=1
direct=0
"""
COMMANDS = (
    "fs_mark -k -S0 -n 20 -s 4096 -L 2 -D 10 -d a -d b -t 2",
    "fio --rw=randwrite --bs=4k --create_on_open=1 --fallocate=none --filesize=64k --nrfiles=2 --name=a",
    "fio --name=a --rw=write --bs=16k --size=1m --create_on_open=1 --fallocate=none --numjobs=2",
    "fio --name=a --rw=randwrite --bsrange=4k-64k --size=1m --norandommap --loops=2 --runtime=9 --time_based",
    "fio --name=a --filename=x:y --rw=write --size=8k --overwrite=1 --unlink=1 --eta=never",
    "dd if=/dev/zero of=/mnt/f bs=1M count=3 conv=fsync",
    "time dd if=/dev/zero of=f bs=5000 seek=4096 count=7 &",
    "dd if=/dev/zero of=/mnt/f obs=64k conv=notrunc,fdatasync oflag=append,dsync iflag=fullblock status=none",
    "find /mnt -ctime 1", "rm -rf /mnt/a", "sync", "sync -d /mnt/f /mnt/g", "sync -f /mnt", "rm -f /mnt/f",
    "fs_mark -S 6 -n 9 -s 5000 -w 512 -D 3 -N 2 -r 20 -p 9 -l log -v -k -d a",
    "mv -f /mnt/f /mnt/g", "unlink f", "truncate -s 3M f g", "nohup fallocate -n -l 1GiB /mnt/f",
)  # fmt: skip
NONSENSE = (
    "0", "-1", "true", "nan", "inf", "1e300", "1" + "0" * 30, "0.5", "'0 s'", "'-1 B'", "'x'", "''", "[]",
    "{}", "[[]]", "{a = 1}", "'1e400 s'", "'" + "9" * 5000 + " B'", "[1, 2]", "'\\u0000'", "2026-11-23",
    "../evil",
    "/dev/null", "a/b", "é", "%s", "{name}", "$x^{$", "\x07", "1..9", "1,2..9", ",", "x0", "'4 KiB'", "10",
    "-" * 300, "None", '"', "=", "  ", "[", "1_000", "0x10", "٣", "²", "9" * 400,
    "x" + "9" * 400, "\n", "{kind = 5}", "[[[[1]]]]",
    ".".join("a" * 3000), "1e999", "4.99", "2020-01-01", "\x1b[31m", "../../evil", "[{value = 1}]",
)  # fmt: skip


class Asked(NamedTuple):
    """A command line, in a directory with *files*."""

    words: list[str]
    files: dict[str, bytes]


def mutated(text: str) -> st.SearchStrategy[str]:
    """Return *text* with one to three faults."""
    return st.lists(
        st.tuples(st.integers(0, 9), st.randoms(use_true_random=False)), min_size=1, max_size=3
    ).map(lambda faults: _with(text, faults))


def _with(text: str, faults: list[tuple[int, object]]) -> str:
    for kind, dice in faults:
        choice, below = dice.choice, dice.randrange  # type: ignore[attr-defined]
        lines, words = text.splitlines(keepends=True), [*re.finditer(r"[^\s=,\[\]{}\"]+", text)]
        if not words:
            return text
        at, word = below(len(lines)), choice(words)
        match kind:
            case 0:
                text = "".join(lines[:at] + lines[at + 1 :])
            case 1:
                text = "".join(lines[: at + 1] + lines[at:])
            case 2:
                text = text[: below(len(text))]
            case 3:
                text = "".join([*lines[at:], *lines[:at]])
            case 4:
                place = below(len(text))
                text = text[:place] + choice(NONSENSE) + text[place:]
            case 5:
                text = text[: word.start()] + word[0][:-1] + text[word.end() :]
            case 6:
                text = text[: word.start()] + word[0] + word[0] + text[word.end() :]
            case _:
                text = text[: word.start()] + choice(NONSENSE) + text[word.end() :]
    return text


@st.composite
def configurations(draw: st.DrawFn) -> Asked:
    """Draw a configuration with faults in it, in its job file or in its command line."""
    text, jobs, more = draw(st.sampled_from([SINGLE, SEVERAL])), JOBS, MORE
    match draw(st.integers(0, 4)):
        case 0:
            jobs, text = draw(mutated(JOBS)), SEVERAL
        case 1:
            command = draw(mutated(draw(st.sampled_from(COMMANDS))))
            text = SINGLE.replace("fs_mark -k -S0 -n 20 -s 4096 -L 2 -d a -d b", command)
        case 2:
            more, text = draw(mutated(MORE)), SEVERAL
        case _:
            text = draw(mutated(text))
    words = draw(
        st.sampled_from([["show", "x.toml"], ["run", "x.toml", "--out", "out"], ["sweep", "x.toml"]])
    )
    return Asked(words, {"x.toml": encoded(text), "jobs.fio": encoded(jobs), "more.fio": encoded(more)})


@st.composite
def overrides(draw: st.DrawFn) -> Asked:
    """Draw one or two settings, with good and bad keys, for a configuration without a fault."""
    keys = [line.partition(" = ")[0] for line in SINGLE.splitlines() if " = " in line and "[" not in line]
    key = st.sampled_from(
        [*keys, "machine.disks.loop0.queue.nr_requests", "kernel.dirty.dirty_ratio", "nodes"]
    )
    set_ = st.tuples(key | key.flatmap(mutated), st.sampled_from(NONSENSE)).map("=".join)
    sets = draw(st.lists(set_ | set_.flatmap(mutated), min_size=1, max_size=2))
    words = [draw(st.sampled_from(["show", "run", "sweep"])), "x.toml"]
    more = draw(st.sampled_from([[], ["--zip"], ["--lhs", "3"]])) if words[0] == "sweep" else []
    return Asked(
        [*words, *(word for each in sets for word in ("--set", each)), *more], {"x.toml": encoded(SINGLE)}
    )


_COMMANDS: Final = (
    "run", "sweep", "status", "plot", "timeline", "explain", "show", "list", "diff", "schema", "params",
    "layout", "replay", "completion", "describe-machine", "sensitivity", "advise",
)  # fmt: skip
_OPTIONS: Final = (
    "--set", "--out", "--seed", "--json", "--jobs", "--variant", "--figure", "--every", "--replications",
    "--x", "--y", "--by", "--heat", "--kernel", "--device", "--max-sectors-kb", "--nomerges", "--scheduler",
    "--quick", "--until-ci", "--lhs", "--zip", "--locks", "--cluster", "--engine", "--most", "--sobol",
    "--reference", "--trajectories", "--",
)  # fmt: skip


@st.composite
def arguments(draw: st.DrawFn) -> Asked:
    """Draw a command with options, which it may lack, and with values, which may make no sense."""
    command = draw(st.sampled_from(_COMMANDS))
    option = st.sampled_from(_OPTIONS)
    value = st.sampled_from([*NONSENSE, "x.toml", "out", ".", "c.trace", "write_iops", "P13", "3", "1 s"])
    words = draw(st.lists(option | value, max_size=5))
    if "--cluster" in words:
        words.append("--quick")  # no scheduler is there to answer
    return Asked([command, *words], {"x.toml": encoded(SINGLE), "c.trace": capture(), **results()})


@st.composite
def captures(draw: st.DrawFn) -> Asked:
    """Draw a capture with faults, compressed or not."""
    text = encoded(draw(mutated(capture().decode())))
    if draw(st.booleans()):
        text = lzma.compress(text)[: draw(st.sampled_from([None, -1, 100]))]
    command = draw(st.sampled_from([["replay"], ["replay", "--kernel", "3.11"], ["calibrate", "--from"]]))
    return Asked([*command, "c.trace"], {"c.trace": text})


@st.composite
def damaged(draw: st.DrawFn) -> Asked:
    """Draw results of which one file has faults or is missing."""
    files = dict(results())
    name = draw(st.sampled_from(sorted(files)))
    if name.endswith(".json"):
        files[name] = encoded(draw(mutated(files[name].decode())))
    else:
        place, byte = draw(st.integers(0, len(files[name]) - 1)), draw(st.binary(min_size=0, max_size=3))
        files[name] = files[name][:place] + byte + files[name][place + len(byte) :]
    if draw(st.integers(0, 9)) == 0:
        del files[name]
    command = draw(st.sampled_from([
        ["show", "out"], ["status", "out"], ["timeline", "out"], ["explain", "out"],
        ["plot", "out", "--x", "machine.processors.count", "--y", "write_iops"],
        ["run", "x.toml", "--out", "out"],
    ]))  # fmt: skip
    return Asked(command, {**files, "x.toml": encoded(SINGLE)})


def encoded(text: str) -> bytes:
    """Encode *text*, even if it has surrogates."""
    return text.encode("utf-8", "surrogatepass")


@cache
def capture() -> bytes:
    """Return the head of a real capture."""
    with lzma.open(CAPTURES / "fsmark-xfs-ag2.trace.xz") as file:
        return b"".join(islice(file, 120))


@cache
def results() -> dict[str, bytes]:
    """Return the files that a run of `SINGLE` leaves, by path."""
    return asked(Asked(["run", "x.toml", "--out", "out"], {"x.toml": encoded(SINGLE)})).left


class Came(NamedTuple):
    """The exit status, the output, the files of the output directory, and the paths of other files."""

    status: object
    out: str
    err: str
    left: dict[str, bytes]
    outside: set[str]


def _by_hand(job: Job) -> Outcome:
    return replace(RUN, seed=job.seed, replication=job.replication, uses={"vda": S, "mark": 3 * S})


def asked(of: Asked) -> Came:
    """Run the command *of* in a new directory."""
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as directory:
        deep = Path(directory) / "a" / "b"
        deep.mkdir(parents=True)
        patch.chdir(deep)
        simulate_by(patch, _by_hand)
        for name, text in of.files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(text)
        with redirect_stdout(out), redirect_stderr(err):
            try:
                status: object = main(of.words)
            except SystemExit as end:
                status = end.code
        files = {os.path.relpath(path, deep) for path in Path(directory).rglob("*") if path.is_file()}
        left = {name: Path(name).read_bytes() for name in files}
    inside = {name: text for name, text in left.items() if name.startswith("out/")}
    return Came(status, out.getvalue(), err.getvalue(), inside, {*left} - {*inside} - {*of.files})


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # a finding prints its files
@settings(max_examples=EXAMPLES, phases=PHASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(configurations() | overrides() | arguments() | captures() | damaged())
def test_any_input_ends_in_a_result_or_in_one_error(of: Asked) -> None:
    """Any input ends with an allowed status and without a traceback.

    An error has a place and a limited length.  Files are written only in the directory of --out.
    """
    came = asked(of)
    assert came.status in ((0, 1, 2) if of.words[0] == "replay" else (0, 2)), came.err
    assert "Traceback" not in came.err
    assert len(came.err) < 20_000
    if came.status == 2:
        assert came.out == "" or of.words[0] == "plot", "nothing was printed before it was refused"
        for line in came.err.splitlines():
            assert re.match(r"wbsim( [a-z-]+)?: .*\S", line) or line.startswith("  "), line
    if "--out" not in of.words:
        assert came.outside == set()
