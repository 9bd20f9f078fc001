"""README shows what its commands print today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.makers import MAKERS, Maker
from tests.documents.places import DATA, README, made_in, pictures_in, replaced

QUICK = [maker for maker in MAKERS if maker.quick]
OTHERS = [maker for maker in MAKERS if not maker.quick]


def check(maker: Maker, directory: Path) -> None:
    """What *maker* makes is what was committed."""
    shown, made = made_in(README.read_text()), maker.make(directory)
    assert set(made) == set(maker.names)
    for name, text in made.items():
        committed = (DATA / name).read_text() if name.endswith(".csv") else shown[name]
        assert committed == text, f"{name}: write it anew with python -m tests.documents {name}"


@pytest.mark.parametrize("maker", QUICK, ids=lambda maker: maker.names[0])
def test_what_is_made_quickly_is_what_was_committed(maker: Maker, tmp_path: Path) -> None:
    """To the digit."""
    check(maker, tmp_path)


@pytest.mark.fullsize
@pytest.mark.parametrize("maker", OTHERS, ids=lambda maker: maker.names[0])
def test_what_is_made_is_what_was_committed(maker: Maker, tmp_path: Path) -> None:
    """The same at full size."""
    check(maker, tmp_path)


def test_everything_has_its_place_and_its_maker() -> None:
    """No block, number or picture of README that is made lacks a maker, nor the reverse."""
    text, names = README.read_text(), {name for maker in MAKERS for name in maker.names}
    data = {f"{name}.csv" for name in pictures_in(text)} - {"lives.csv"}  # whose data are those of explain
    assert set(made_in(text)) | data == names
    assert all((DATA / name).exists() for name in data)


def test_what_is_replaced_is_the_block_and_the_number() -> None:
    """And nothing else; what nobody made stays."""
    text = "a <!--n-->1<!--/--> b <!--m-->2<!--/-->\n\n<!-- made: x -->\n\n    old\n\n    older\n\nrest\n"
    assert made_in(text) == {"n": "1", "m": "2", "x": "old\n\nolder"}
    new = replaced(text, {"n": "7", "x": "new\n\nline"})
    assert new == (
        "a <!--n-->7<!--/--> b <!--m-->2<!--/-->\n\n<!-- made: x -->\n\n    new\n\n    line\n\nrest\n"
    )
    assert made_in(new) == {"n": "7", "m": "2", "x": "new\n\nline"}
