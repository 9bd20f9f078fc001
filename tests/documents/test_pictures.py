"""Each picture of the documents has the texts that today's drawing code gives its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from tests.documents.pictures import PICTURES, comments_of, read_comments, texts_of
from tests.documents.places import DATA, PICTURES_FOLDER
from wbsim.experiments.pictures import plots, thread_times
from wbsim.experiments.pictures import tornado as tornado_picture


@pytest.mark.parametrize("name", PICTURES)
def test_picture_has_the_texts_of_today(name: str) -> None:
    """The PNG says which texts and data it was drawn with; both are those of today."""
    picture, path = PICTURES[name], PICTURES_FOLDER / f"{name}.png"
    today = comments_of(picture, picture.draw(DATA / picture.data))
    remedy = f"{path.name} is older than its texts or data; python -m tests.documents.pictures {name}"
    assert read_comments(path) == today, remedy


def test_each_committed_picture_is_known() -> None:
    """No PNG of the documents is without a drawing function."""
    assert {path.stem for path in PICTURES_FOLDER.glob("*.png")} == set(PICTURES)


def test_texts_of_a_figure_are_its_words() -> None:
    """Titles, labels, names at ticks, notes and legends count; numbers at ticks and in notes do not."""
    figure = Figure()
    left, right = figure.subplots(1, 2)
    figure.suptitle("all\nof it")
    left.barh(["3.1", "3.11"], [1, 2])
    left.set(xlabel="requests", title="a panel")
    left.text(0, 0, "3 244")
    right.plot([1, 1000], [1, 1000], label="line")
    right.set(ylabel="KiB", xscale="log")
    right.set_yticks([1, 1000], ["low", "7"])
    right.text(1, 1, "a plug holds 16")
    right.legend()
    assert texts_of(figure).splitlines() == [
        "title: all / of it",
        "panel: a panel", "x: requests", "y tick: 3.1", "y tick: 3.11",
        "y: KiB", "y tick: low", "note: a plug holds 16", "legend: line",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "name", "new", "picture"),
    [
        (thread_times, "SHORT", "all that is shorter", "lives"),
        (plots, "figure_label", str.upper, "extents"),
        (tornado_picture, "distinct_ends", list, "tornado-p13"),
    ],
)
def test_changed_text_in_the_drawing_code_is_seen(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, new: Any, picture: str
) -> None:
    """A label of the code that has changed differs from that of the committed picture."""
    path: Path = DATA / PICTURES[picture].data
    monkeypatch.setattr(place, name, new)
    today = comments_of(PICTURES[picture], PICTURES[picture].draw(path))
    assert read_comments(PICTURES_FOLDER / f"{picture}.png")["Description"] != today["Description"]
