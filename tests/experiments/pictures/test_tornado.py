"""The tornado picture: the place, the length and the colour of each half of a bar."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.colors import to_hex

from wbsim.experiments.pictures.axes import COLOURS
from wbsim.experiments.pictures.tornado import tornado
from wbsim.experiments.why.guesses import Guess
from wbsim.experiments.why.sensitivity import Effect, Sensitivity

LOW, HIGH = COLOURS[:2]
"""The colours of a half towards the low end, and towards the high end, of a guess."""


def found(
    *ends: tuple[float | None, float | None], value: float = 10.0, interval: Any = (4.0, 13.0)
) -> Sensitivity:
    """Return guesses called g0, g1, ... that have these figures at their *ends*, around a figure of 10 s."""
    effects = [
        Effect(Guess(f"g{number}", 2.0, 1.0, 5_000.0), 1.0, 0.0, low, high)
        for number, (low, high) in enumerate(ends)
    ]
    return Sensitivity("A title", "wall_time", value, effects, interval, runs=9, refusal_count=0)


def halves(panel: Any) -> list[tuple[int, str, float, float]]:
    """Return the row, the colour, and both ends of each half of a bar; the second end is at the guess's."""
    return [
        (
            round(bar.get_y() + 0.35), to_hex(bar.get_facecolor()), bar.get_x(),
            bar.get_x() + bar.get_width(),
        )
        for bar in panel.patches
        if bar.get_height() == pytest.approx(0.7)
    ]  # fmt: skip


def names(panel: Any) -> list[str]:
    """Return the guess of each row, from the lowest row up."""
    return [label.get_text().split("\n")[0] for label in panel.get_yticklabels()]


def test_bar_reaches_from_the_figure_to_both_ends() -> None:
    """The figure is 10 s; a larger g0 raises it from 7 to 15 s.  The shorter half is drawn last."""
    (panel,) = tornado(found((7.0, 15.0))).axes
    assert halves(panel) == [(0, HIGH, 10, 15), (0, LOW, 10, 7)]
    assert panel.get_xlabel() == "wall time, s"
    assert [label.get_text() for label in panel.get_yticklabels()] == ["g0\n1 .. 5000"]


def test_larger_guess_that_lowers_the_figure_points_left() -> None:
    """The figure of 10 s is 12 s at the low end and 4 s at the high end, so blue points left."""
    (panel,) = tornado(found((12.0, 4.0))).axes
    assert halves(panel) == [(0, HIGH, 10, 4), (0, LOW, 10, 12)]


def test_both_ends_may_lie_on_one_side_of_the_figure() -> None:
    """A figure that is largest in the middle of a range: 6 s at one end and 9 s at the other."""
    (panel,) = tornado(found((6.0, 9.0))).axes
    assert halves(panel) == [(0, LOW, 10, 6), (0, HIGH, 10, 9)]


def test_figure_below_zero_has_bars_towards_smaller_figures() -> None:
    """The figure is -10 (a difference): it is -30 at the low end and -5 at the high end."""
    (panel,) = tornado(found((-30.0, -5.0), value=-10.0)).axes
    assert halves(panel) == [(0, LOW, -10, -30), (0, HIGH, -10, -5)]


def test_longest_bar_is_on_top_whatever_its_sign() -> None:
    """The ends are 2, 8, 3, 5 and 0 s apart; the guesses with 8 and 3 s lower the figure."""
    (panel,) = tornado(found((9.0, 11.0), (14.0, 6.0), (11.0, 8.0), (9.0, 14.0), (10.0, 10.0))).axes
    assert names(panel) == ["g4", "g0", "g2", "g3", "g1"]
    assert halves(panel)[-2:] == [(4, LOW, 10, 14), (4, HIGH, 10, 6)]


def test_figure_of_zero_at_an_end_is_a_bar() -> None:
    """A guess whose figure is 0 at one end is drawn; a guess that was not run at one end is left out."""
    (panel,) = tornado(found((0.0, 10.0), (None, 12.0), (8.0, None))).axes
    assert names(panel) == ["g0"]
    assert halves(panel) == [(0, LOW, 10, 0), (0, HIGH, 10, 10)]


def test_ten_guesses_of_eleven_are_shown() -> None:
    """The effects are in order, so the eleventh is the one that matters least."""
    (panel,) = tornado(found(*((10.0, 30.0 - number) for number in range(11)))).axes
    assert names(panel) == [f"g{number}" for number in range(9, -1, -1)]


def test_band_is_the_interval_of_the_figure() -> None:
    """The grey band reaches from 4 to 13 s behind the bars, and a line marks the figure of 10 s."""
    panel: Any = tornado(found((7.0, 15.0))).axes[0]
    (band,) = (patch for patch in panel.patches if patch.get_height() != pytest.approx(0.7))
    assert (band.get_x(), band.get_x() + band.get_width(), band.get_zorder()) == (4, 13, 0)
    assert [line.get_xdata()[0] for line in panel.lines] == [10]
    (panel,) = tornado(found((7.0, 15.0), interval=None)).axes
    assert len(panel.patches) == 2


def test_legend_names_the_ends_with_their_colours() -> None:
    """Red is the low end, and blue is the high end."""
    (legend,) = tornado(found((7.0, 15.0))).legends
    texts = [text.get_text() for text in legend.get_texts()]
    colours = [to_hex(patch.get_facecolor()) for patch in legend.get_patches()]
    assert list(zip(texts, colours, strict=True)) == [
        ("low end of the range", LOW), ("high end of the range", HIGH),
    ]  # fmt: skip
