"""The command line `wbsim`.

Results go to stdout, everything else to stderr.  Exit status: 0 done; 1 a claim does not hold
(``calibrate`` disagrees with the committed constants, ``replay`` with the kernel); 2 bad input;
130 interrupted.  Heavy imports are made where they are used, so that ``--help`` answers at once.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from wbsim.experiments.options import parser_of_wbsim


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    arguments = parser_of_wbsim().parse_args(argv)
    if getattr(arguments, "engine", None) is not None:
        os.environ["WBSIM_ENGINE"] = arguments.engine
    try:
        from wbsim.experiments.config.problems import BadInput
        from wbsim.sim.laws import LawBroken

        status = _COMMANDS[arguments.command](arguments)
    except ImportError as error:
        if error.name != "wbsim_compiled":
            raise
        print(f"wbsim: {error}", file=sys.stderr)
        return 2
    except BadInput as error:
        for problem in error.problems:
            print(f"wbsim: {problem}", file=sys.stderr)
        return 2
    except LawBroken as error:
        print(f"wbsim: {error}; the fault is wbsim's: please report it with what was run", file=sys.stderr)
        return 70
    except KeyboardInterrupt:
        print("wbsim: interrupted; nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    return status


def _run(arguments: Namespace) -> int:
    from wbsim.experiments.config.experiment import from_command, load
    from wbsim.experiments.config.problems import bad
    from wbsim.experiments.formats.locks import TABLES
    from wbsim.experiments.formats.report import outcome_table, parts_tables, print_fs_mark
    from wbsim.experiments.running.runner import run_all, write_outcomes

    if (arguments.config is None) == (arguments.fs_mark is None):
        raise bad("run", "give either CONFIG.toml or --fs-mark LINE")
    overrides = arguments.set
    if arguments.config is not None:
        experiment = load(arguments.config, overrides)
    else:
        experiment = from_command(arguments.fs_mark, overrides)
    _refuse_file(arguments.out)
    outcomes = run_all([(case, 0) for case in experiment.cases], arguments.seed, sys.stderr.isatty())
    scenarios = {case.label: case.scenario for case in experiment.cases}
    if arguments.out is not None:
        write_outcomes(arguments.out, experiment.title, experiment.axis, outcomes, scenarios)
        drawn = experiment.axis is not None or any(len(outcome.samples) > 1 for outcome in outcomes)
        hint = (
            f"wbsim plot {arguments.out}"
            if drawn
            else f"wbsim layout {arguments.config} --out {arguments.out}"
        )
        print(f"wrote {arguments.out}; draw it with: {hint}", file=sys.stderr)
    if arguments.json:
        from dataclasses import asdict

        _print_json(
            {"title": experiment.title, "axis": experiment.axis, "outcomes": [asdict(o) for o in outcomes]}
        )
        return 0
    if arguments.fs_mark is not None:
        print_fs_mark(experiment.cases[0], outcomes[0])
    else:
        print(experiment.title)
    print(outcome_table(outcomes, experiment.axis))
    for outcome in outcomes:
        locks = [TABLES[arguments.locks](outcome.locks)] if arguments.locks else []
        for text in [*parts_tables(outcome), *locks]:
            print(f"\n{text}" if len(outcomes) == 1 else f"\n{outcome.variant}: {text}")
    return 0


def _reproduce(arguments: Namespace) -> int:
    from wbsim.experiments.formats.report import reproduction_table
    from wbsim.experiments.published.reproduce import cases_of, reproduce
    from wbsim.experiments.running.runner import write_outcomes

    _refuse_file(arguments.out)
    result = reproduce(
        arguments.reports,
        quick=arguments.quick,
        replications=arguments.replications,
        seed=arguments.seed,
        progress=sys.stderr.isatty(),
    )
    if arguments.out is not None and result.outcomes:
        scenarios = {case.label: case.scenario for case in cases_of(result)}
        write_outcomes(arguments.out, result.experiments[0].title, None, result.outcomes, scenarios)
    if arguments.json:
        _print_json(result.document())
    else:
        print(reproduction_table(result))
    return 0


def _calibrate(arguments: Namespace) -> int:
    from wbsim.experiments.formats.report import fit_table
    from wbsim.experiments.published.calibrate import CALIBRATIONS

    progress = sys.stderr.isatty()
    fit = CALIBRATIONS[arguments.report](
        arguments.seed, progress, lambda line: print(line, file=sys.stderr, flush=True)
    )
    print(fit_table(fit))
    return 0 if fit.agrees else 1


def _params(arguments: Namespace) -> int:
    from wbsim.experiments.config.experiment import load
    from wbsim.experiments.formats.report import numbers_document, numbers_table
    from wbsim.experiments.published.reproduce import config_path

    scenario = load(arguments.config or config_path("plug.toml")).cases[0].scenario
    if arguments.json:
        _print_json(numbers_document(scenario))
    else:
        print(numbers_table(scenario))
    return 0


def _layout(arguments: Namespace) -> int:
    from wbsim.experiments.config.experiment import load
    from wbsim.experiments.config.problems import bad
    from wbsim.experiments.pictures.disk import disk_picture, layout_texts
    from wbsim.experiments.pictures.plots import save_png
    from wbsim.experiments.running.runner import replace_whole, simulate

    _refuse_file(arguments.out)
    experiment = load(arguments.config, arguments.set)
    case = experiment.only_case(arguments.variant)
    mounts = case.scenario.mounts
    name = arguments.mount if arguments.mount is not None else next(iter(mounts))
    if name not in mounts or (arguments.mount is None and len(mounts) > 1):
        raise bad(
            "--mount",
            f"{arguments.mount or 'is missing: it'} names no single mount; use one of {', '.join(mounts)}",
        )
    filesystem = simulate(case, arguments.seed).mounts[name].filesystem
    if not filesystem.layouts():
        raise bad(str(arguments.config), "each of its files lies in one run, of which only the count is kept")
    for text in layout_texts(
        filesystem, "filefrag" if arguments.filefrag else mounts[name].filesystem.map_tool
    ):
        print(text)
    if arguments.out is not None:
        picture = disk_picture(case.label, filesystem)
        replace_whole(arguments.out / "disk.png", lambda path: save_png(picture, path))
        print(f"wrote {arguments.out / 'disk.png'}", file=sys.stderr)
    return 0


def _plot(arguments: Namespace) -> int:
    from wbsim.experiments.pictures.plots import plot_directory

    for path in plot_directory(arguments.directory):
        print(path)
    return 0


def _explain(arguments: Namespace) -> int:
    from functools import partial

    from wbsim.experiments.pictures.lives import lives_picture
    from wbsim.experiments.pictures.plots import save_png
    from wbsim.experiments.running.runner import replace_whole
    from wbsim.experiments.why.explain import document, explanation, read_result

    result = read_result(arguments.directory)
    if arguments.json:
        _print_json(document(result))
        return 0
    print(explanation(result))
    path = arguments.directory / "lives.png"
    replace_whole(path, partial(save_png, lives_picture(result)))
    print(f"wrote {path}", file=sys.stderr)
    return 0


def _advise(arguments: Namespace) -> int:
    from wbsim.experiments.running.runner import write_outcomes
    from wbsim.experiments.why.advise import AXIS, advise

    _refuse_file(arguments.out)
    advice = advise(
        arguments.config,
        arguments.set,
        arguments.variant,
        arguments.quick,
        arguments.seed,
        sys.stderr.isatty(),
    )
    if arguments.out is not None:
        write_outcomes(arguments.out, advice.title, AXIS, advice.outcomes, advice.scenarios)
        print(f"wrote {arguments.out}; see why with: wbsim explain {arguments.out}", file=sys.stderr)
    if arguments.json:
        _print_json(advice.document())
    else:
        print(advice.text())
    return 0


def _replay(arguments: Namespace) -> int:
    from wbsim.experiments.captures.conditions import Options, conditions_of
    from wbsim.experiments.captures.reader import open_capture
    from wbsim.experiments.captures.replay import replay
    from wbsim.experiments.captures.report import draw_eras, replay_document, replay_text
    from wbsim.experiments.captures.story import story_of
    from wbsim.experiments.captures.whatif import what_if
    from wbsim.experiments.config.problems import bad
    from wbsim.models.catalogue.kernels import PLUG_RULES

    if arguments.out is not None and arguments.kernel is None:
        raise bad("replay", "--out draws a what-if; give --kernel, too")
    _refuse_file(arguments.out)
    capture = open_capture(arguments.capture)
    names = ("kernel", "scheduler", "nomerges", "max_sectors_kb", "max_segments")
    device = _device(arguments.device)
    of = conditions_of(capture, Options(device, **{name: getattr(arguments, name) for name in names}))
    for note in of.notes:
        print(f"wbsim: {capture.path}: {note}", file=sys.stderr)
    verdict = replay(
        story_of(capture.events(), of.scheduler), PLUG_RULES[of.era], of.limits, of.scheduler, of.device
    )
    eras = {}
    if of.asked is not None:
        eras = what_if(story_of(capture.events(), of.scheduler), PLUG_RULES, of.limits, of.device)
    if arguments.out is not None:
        draw_eras(arguments.out / "requests.png", capture.path.name, of, eras)
        print(f"wrote {arguments.out / 'requests.png'}", file=sys.stderr)
    if arguments.json:
        _print_json(replay_document(capture.path, of, verdict, eras))
    else:
        print(replay_text(capture.path, of, verdict, eras))
    return 0 if verdict.agrees else 1


def _capture(arguments: Namespace) -> int:
    from wbsim.experiments.captures.record import record

    recorded = record(arguments.out, arguments.run, arguments.buffer_mib, _device(arguments.device))
    others = f", {recorded.others} for other devices" if recorded.others else ""
    print(f"wrote {arguments.out}: {recorded.bios} bios for {recorded.device}{others}", file=sys.stderr)
    if recorded.lost:
        print(f"wbsim: {recorded.lost} events were lost; give more room with --buffer-mib", file=sys.stderr)
    return recorded.status


def _device(text: str | None) -> str | None:
    """MAJ:MIN as the tracepoints write it, MAJ,MIN."""
    from wbsim.experiments.config.problems import bad

    if text is None:
        return None
    major, separator, minor = text.replace(",", ":").partition(":")
    if not (separator and major.isdigit() and minor.isdigit()):
        raise bad("--device", f"{text} is no device; write it as 7:0")
    return f"{major},{minor}"


def _refuse_file(out: Path | None) -> None:
    """Before anything is simulated: --out has to be, or to become, a directory."""
    from wbsim.experiments.config.problems import bad

    if out is None:
        return
    nearest = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise bad(f"--out {out}", f"{nearest} is a file; give a directory")


def _print_json(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=1))


_COMMANDS: Final[dict[str, Callable[[Namespace], int]]] = {
    "run": _run,
    "reproduce": _reproduce,
    "calibrate": _calibrate,
    "params": _params,
    "layout": _layout,
    "plot": _plot,
    "explain": _explain,
    "advise": _advise,
    "replay": _replay,
    "capture": _capture,
}


if __name__ == "__main__":
    sys.exit(main())
