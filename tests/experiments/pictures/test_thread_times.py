"""The data behind the picture of thread times: the parts and the label of each bar."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex

from tests.experiments.why.test_explain import FAST, SLOW, SWEPT
from wbsim.experiments.pictures.thread_times import SHORT, _colours, thread_times_picture
from wbsim.experiments.why.bottlenecks import AWAY, SEEN, Kind
from wbsim.experiments.why.explain import Result
from wbsim.models.time_accounting import PATHS


def row_of(part: Any) -> int:
    """Return the row of the bar to which *part* belongs: the middle of its height."""
    return round(part.get_y() + part.get_height() / 2)


def test_run_has_a_bar_for_each_kind_of_thread() -> None:
    """The length of a bar is the time that is neither idle nor absent.  Large parts show their names."""
    slow, fast = thread_times_picture(Result("A title", (), [SLOW, FAST])).axes
    assert [label.get_text() for label in slow.get_yticklabels()] == ["sda/flusher x2", "a/process x8 of 9"]
    assert [round(bar.get_width()) for bar in slow.patches] == [15, 60, 5, 95]
    assert [text.get_text() for text in slow.texts] == ["allocate 60", "throttled 95"]
    assert len(fast.patches) == 2
    assert slow.get_title(loc="left").startswith("slow: 0.00 s, held back by")


def test_parts_of_a_bar_lie_one_behind_the_other() -> None:
    """The flusher works on pages for 15 % of the run and then allocates for 60 %.

    The name of a part stands in its middle; parts of 5 and 15 % have no room for a name.
    """
    slow, _ = thread_times_picture(Result("A title", (), [SLOW, FAST])).axes
    parts = [(row_of(part), round(part.get_x()), round(part.get_width())) for part in slow.patches]
    assert parts == [(0, 0, 15), (0, 15, 60), (1, 0, 5), (1, 5, 95)]
    assert [text.get_position() for text in slow.texts] == [(45, 0), (52.5, 1)]


def test_name_of_a_part_is_white_on_a_dark_colour() -> None:
    """Waiting for the throttle is dark blue, and allocating is light."""
    slow, fast = thread_times_picture(Result("A title", (), [SLOW, FAST])).axes
    colours = {text.get_text(): text.get_color() for panel in (slow, fast) for text in panel.texts}
    assert colours == {
        "allocate 60": "0.15", "throttled 95": "white", "allocate 80": "0.15",
    }  # fmt: skip


def test_sweep_has_a_panel_for_each_kind_of_thread() -> None:
    """Each run with threads of the kind has a bar.  A kind that is idle nearly all the time has no panel."""
    idle = Kind("jbd2", 1, {"user": 100_000.0, "waiting idle": 1_900_000.0}, 1)
    runs = [SWEPT[0]._replace(kinds=[*SWEPT[0].kinds, idle]), SWEPT[1]]
    flusher, process = thread_times_picture(Result("A title", ("contexts",), runs)).axes
    assert flusher.get_title(loc="left") == "sda/flusher, by contexts"
    assert [label.get_text() for label in flusher.get_yticklabels()] == [
        "1 (100 000 files/s)", "12 (125 000 files/s)",
    ]  # fmt: skip
    assert flusher.get_ylim() == (1.5, -0.5), "the axis points down"
    assert [(row_of(part), round(part.get_width())) for part in flusher.patches] == [
        (0, 15), (0, 60), (1, 80), (1, 20),
    ]  # fmt: skip
    assert [round(bar.get_width()) for bar in process.patches] == [5, 95]
    little = [run._replace(kinds=[idle]) for run in runs]
    assert len(thread_times_picture(Result("A title", ("contexts",), little)).axes) == 1, (
        "at least one panel is drawn"
    )
    both = thread_times_picture(
        Result("A title", ("contexts",), [*runs, *(run._replace(variant="b") for run in runs)])
    )
    assert [panel.get_title(loc="left") for panel in both.axes] == [
        "sda/flusher of a, by contexts", "a/process of a, by contexts",
        "sda/flusher of b, by contexts", "a/process of b, by contexts",
    ]  # fmt: skip


@pytest.mark.parametrize(("share", "panels"), [(0.1, 2), (0.11, 3)])
def test_kind_active_for_a_tenth_has_no_panel(share: float, panels: int) -> None:
    """The flusher and the process have a panel each; a kind needs more than a tenth of some run."""
    length_ns = SWEPT[0].length_ns
    busy = Kind("kworker", 1, {"user": share * length_ns, "waiting idle": (1 - share) * length_ns}, 1)
    runs = [SWEPT[0]._replace(kinds=[*SWEPT[0].kinds, busy]), SWEPT[1]]
    assert len(thread_times_picture(Result("A title", ("contexts",), runs)).axes) == panels


CAUSES = (
    "user",
    "system allocate",
    "system pages",
    "spinning l",
    "ready",
    "waiting throttled",
    "waiting idle",
)


LIVES = st.dictionaries(st.sampled_from(CAUSES), st.sampled_from([1, 400, 9_000, 500_000]), min_size=1)


@given(st.lists(LIVES, min_size=1, max_size=3))
def test_a_bar_is_as_long_as_its_thread_was_busy(threads: list[dict[str, int]]) -> None:
    """A bar may lack a part that is too short to be seen.

    The legend has the colours of all parts that are drawn, and names no idle cause.
    """
    kinds = [Kind(f"k{n}x", 1, {**life}, 1) for n, life in enumerate(threads)]
    run = SLOW._replace(kinds=kinds)
    figure = thread_times_picture(Result("t", (), [run]))
    (panel,) = figure.axes
    legend = [text.get_text() for of in figure.legends for text in of.get_texts()]
    assert not set(legend) & set(AWAY)
    named = {patch.get_facecolor() for of in figure.legends for patch in of.get_patches()}
    assert named == {part.get_facecolor() for part in panel.patches}
    busy_ns = [sum(ns for cause, ns in life.items() if cause != "waiting idle") for life in threads]
    shown = [ns for ns in busy_ns if ns >= SEEN * run.length_ns]
    for place, ns in enumerate(shown or busy_ns):
        drawn = sum(part.get_width() for part in panel.patches if row_of(part) == place)
        assert drawn == pytest.approx(100 * ns / run.length_ns, abs=100 * SEEN)


def test_no_two_causes_have_one_colour() -> None:
    """A thread spends 4 % of the run in each path of the kernel, in 25 waits or at 25 locks.

    Colours that are equal on a screen (8 bits for each part) count as one.
    """
    paths = [f"system {path}" for path in PATHS if path != "user"]
    waits, locks = ([f"{state} {n}" for n in range(25)] for state in ("waiting", "spinning"))
    for causes in (["user", *paths], [*waits, "ready"], locks):
        run = SLOW._replace(kinds=[Kind("a", 1, dict.fromkeys(causes, 8e4), 1)])
        (legend,) = thread_times_picture(Result("t", (), [run])).legends
        assert sorted(text.get_text() for text in legend.get_texts()) == sorted(causes)
        assert len({to_hex(patch.get_facecolor()) for patch in legend.get_patches()}) == len(causes)


def test_a_run_without_busy_threads_has_bars_of_all_kinds() -> None:
    """The bars are empty, because idle time is not drawn.  A sweep has a panel for each kind."""
    idle = [Kind(name, 0, {"waiting idle": 2e6}, 1) for name in ("a", "b")]
    (panel,) = thread_times_picture(Result("t", (), [SLOW._replace(kinds=idle)])).axes
    assert [label.get_text() for label in panel.get_yticklabels()] == ["a", "b"]
    assert not panel.patches, "the bars are empty"
    swept = [run._replace(kinds=idle) for run in SWEPT]
    assert len(thread_times_picture(Result("t", ("contexts",), swept)).axes) == 2


def test_small_causes_are_one_part_of_the_bar() -> None:
    """Two causes of 2 % each are drawn as one part of 4 %.  A single cause of 0.01 % is not drawn."""
    small = Kind("a", 1, {"user": 1e6, "ready": 4e4, "spinning l": 4e4}, 1)
    tiny = Kind("b", 1, {"user": 1e6, "waiting absent": 9e5, "waiting throttled": 200.0}, 1)
    for kind, widths in ((small, [50, 4]), (tiny, [50])):
        figure = thread_times_picture(Result("t", (), [SLOW._replace(kinds=[kind])]))
        assert [bar.get_width() for bar in figure.axes[0].patches] == pytest.approx(widths)
        legend = [text.get_text() for text in figure.legends[0].get_texts()]
        assert legend == ["user", SHORT][: len(widths)]


def test_cause_has_one_colour_in_all_pictures() -> None:
    """Other causes of a picture change nothing, except where two would have one colour."""
    alone = _colours(["system allocate"])["system allocate"]
    causes = ["user", "system create", "system allocate", "waiting throttled", "spinning l"]
    assert _colours(causes)["system allocate"] == alone
    assert _colours(causes[::-1]) == {cause: _colours(causes)[cause] for cause in causes}
    locks = [f"waiting lock {number}" for number in range(40)]
    assert len(set(_colours(locks).values())) == 40
