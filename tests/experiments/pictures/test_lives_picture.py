"""The data behind the picture of threads' lives: which bar has which parts, and what it is called."""

from __future__ import annotations

from tests.experiments.why.test_explain import FAST, SLOW, SWEPT
from wbsim.experiments.pictures.lives import lives_picture
from wbsim.experiments.why.explain import Result
from wbsim.experiments.why.lives import Kind


def test_a_run_has_a_bar_for_each_kind() -> None:
    """As long as what is neither idle nor absent; the large parts bear their names."""
    slow, fast = lives_picture(Result("A title", (), [SLOW, FAST])).axes
    assert [label.get_text() for label in slow.get_yticklabels()] == ["sda/flusher x2", "a/process x8 of 9"]
    assert [round(bar.get_width()) for bar in slow.patches] == [15, 60, 5, 95]
    assert [text.get_text() for text in slow.texts] == ["pages 15", "allocate 60", "throttled 95"]
    assert len(fast.patches) == 2
    assert slow.get_title(loc="left").startswith("slow: 0.00 s, held back by")


def test_a_sweep_has_a_panel_for_each_kind() -> None:
    """With a bar for each run that has threads of it; none for a kind that never did much."""
    idle = Kind("jbd2", 1, {"user": 100_000.0, "waiting idle": 1_900_000.0}, 1)
    runs = [SWEPT[0]._replace(kinds=[*SWEPT[0].kinds, idle]), SWEPT[1]]
    flusher, process = lives_picture(Result("A title", ("contexts",), runs)).axes
    assert flusher.get_title(loc="left") == "sda/flusher, by contexts"
    assert [label.get_text() for label in flusher.get_yticklabels()] == [
        "1 (100,000 files/s)", "12 (125,000 files/s)",
    ]  # fmt: skip
    assert flusher.get_ylim() == (1.5, -0.5), "downwards"
    assert [(round(bar.get_y() + 0.36), round(bar.get_width())) for bar in flusher.patches] == [
        (0, 15), (0, 60), (1, 80), (1, 20),
    ]  # fmt: skip
    assert [round(bar.get_width()) for bar in process.patches] == [5, 95]
    little = [run._replace(kinds=[idle]) for run in runs]
    assert len(lives_picture(Result("A title", ("contexts",), little)).axes) == 1, "rather than nothing"
    both = lives_picture(
        Result("A title", ("contexts",), [*runs, *(run._replace(variant="b") for run in runs)])
    )
    assert [panel.get_title(loc="left") for panel in both.axes] == [
        "sda/flusher of a, by contexts", "a/process of a, by contexts",
        "sda/flusher of b, by contexts", "a/process of b, by contexts",
    ]  # fmt: skip
