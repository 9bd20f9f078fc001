"""Output of commands: the keys of every JSON document, and tables.

``python -m tests.experiments.test_printed_results`` writes printed_results.tsv anew.  Review the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from tests.experiments.outcomes import RUN, simulate_by
from tests.harness import loop_config
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.results.figures import READ
from wbsim.experiments.running.reading import lives_of
from wbsim.experiments.running.simulate import simulate
from wbsim.experiments.why.bottlenecks import AWAY
from wbsim.experiments.why.guesses import Guess
from wbsim.experiments.why.sensitivity import Effect, Sensitivity

COMMITTED: Final = Path(__file__).parent / "printed_results.tsv"
CAPTURE: Final = Path(__file__).parents[1] / "captures" / "fsmark-xfs-ag2.trace.xz"
TEXT: Final = loop_config("fs_mark -S0 -n 30 -s 4096 -L 2 -d a", dirty_mib=2)
COMMANDS: Final = {
    "run": "run x.toml --out out",
    "sweep": "sweep x.toml --set workload.files=20,30 --replications 2",
    "status": "status out",
    "explain": "explain out",
    "advise": "advise x.toml",
    "sensitivity": "sensitivity x.toml --trajectories 2 --sobol 2",
    "show": "show x.toml",
    "reproduce": "reproduce J09 --quick",
    "params": "params x.toml",
    "replay": f"replay {CAPTURE} --kernel 6.17",
}


def shape(value: Any, at: str = "") -> Iterator[str]:
    """Yield the path and the kind of each single value.

    Lists, long tables and the figures that are read from a machine count by their first entry.
    """
    if isinstance(value, dict):
        names = list(value) if len(value) < 40 and not at.endswith(".readings") else list(value)[:1]
        if at.endswith(".levels"):
            names = [name for name in names if name not in READ]
        for name in names:
            yield from shape(value[name], f"{at}.{name}")
    elif isinstance(value, list):
        yield from shape(value[0], f"{at}[]") if value else [f"{at}[]\tempty"]
    else:
        kind = (
            "number"
            if isinstance(value, int | float) and not isinstance(value, bool)
            else type(value).__name__
        )
        yield f"{at}\t{kind}"


def told(directory: Path) -> str:
    """Return the shape of what each command prints with --json; runs end with an outcome made by hand."""
    lines = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        uses = {"vda flash": 0.9, "flusher:1": 0.4, "flusher:0": 0.2}
        simulate_by(
            monkeypatch, lambda job: replace(RUN, variant=job.case.variant, point=job.case.point, uses=uses)
        )
        monkeypatch.chdir(directory)
        Path("x.toml").write_text(TEXT)
        for name, words in COMMANDS.items():
            with redirect_stdout(StringIO()) as out:
                status = main([*words.split(), "--json"])
            assert status == 0, name
            lines += [f"{name}\t{line}" for line in shape(json.loads(out.getvalue()))]
    return "\n".join(lines) + "\n"


def test_json_documents_keep_their_committed_keys(tmp_path: Path) -> None:
    """A key that vanishes or changes its kind breaks the programs that read the document."""
    assert told(tmp_path) == COMMITTED.read_text()


@pytest.mark.parametrize("changes", [{"uses": {}}, {"lives": {}}, {"lives": {"mark": {"user": 0}}}])
def test_result_without_thread_times_is_damaged(
    changes: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The status is 2.  The error names the directory and the remedy."""
    simulate_by(monkeypatch, lambda _: replace(RUN, **{"uses": {"vda flash": 0.9}, **changes}))
    config, out = tmp_path / "x.toml", tmp_path / "out"
    config.write_text(TEXT)
    assert main(["run", str(config), "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["explain", str(out)]) == 2
    assert (
        "is a damaged result: it has no times of threads; delete it and run the command again"
        in capsys.readouterr().err
    )


def test_sensitivity_table_shows_effects_in_percent() -> None:
    """Effects are percentages of the value.  Ends and Sobol indices are shown if known.

    The last line counts the numbers with an effect below 1 %.
    """
    effects = [
        Effect(Guess("a.b", 4.0, 1.0, 9.0), 3.0, 0.5, 8.0, 12.0, 0.75, 0.8),
        Effect(Guess("c", 2.0, 1.0, 3.0), 0.2, 0.1, 9.9, 10.1),
        Effect(Guess("d", 5.0, 0.0, 7.0), 0.05, 0.0),
    ]
    found = Sensitivity("A title", "wall_time", 10.0, effects, (7.5, 13.0), 44, 3)
    assert found.text().split("\n") == [
        "A title",
        "",
        "assumed number  value   range  mu* %  sigma %  at low  at high    S1    ST",
        "--------------  -----  ------  -----  -------  ------  -------  ----  ----",
        "b                   4  1 .. 9   30.0      5.0     8.0     12.0  0.75  0.80",
        "c                   2  1 .. 3    2.0      1.0     9.9     10.1     -     -",
        "d                   5  0 .. 7    0.5      0.0       -        -     -     -",
        "",
        "wall_time is 10 s; within the assumed ranges, 7.5 .. 13 (95 % of Sobol's runs)",
        "3 assumed numbers, of which 1 change it by less than 1 %; 44 runs, 3 of them refused; wbsim show",
        "  prints the complete keys, and wbsim run --guesses 20 an interval over all of them",
    ]


def test_causes_that_count_as_absence_occur_in_a_run() -> None:
    """Each cause in `AWAY` except pauses is a cause of some thread, so no cause has changed its name."""
    (case,) = parse(loop_config("fs_mark -S0 -n 90 -s 4096 -L 2 -d a -d b", dirty_mib=2), "x.toml").cases
    machine = simulate(case, 1)
    causes = {cause for lives in lives_of(machine).values() for cause in lives}
    assert set(AWAY) - causes <= {"waiting a pause", "user a pause"}


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        COMMITTED.write_text(told(Path(directory)))
