"""Documents show the current output of their commands, and their links lead to files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents.makers import MAKERS, Maker
from tests.documents.pictures import PICTURES
from tests.documents.places import DATA, DOCUMENTS, README, ROOT, is_data, made_in, pictures_in, replaced
from wbsim.experiments.formats.reference import reference

QUICK = [maker for maker in MAKERS if maker.quick]
OTHERS = [maker for maker in MAKERS if not maker.quick]


def everything() -> str:
    """Return the text of all documents."""
    return "\n".join(document.read_text() for document in DOCUMENTS)


def check(maker: Maker, directory: Path) -> None:
    """Assert that the results of *maker* are the committed ones."""
    shown, made = made_in(everything()), maker.make(directory)
    assert set(made) == set(maker.names)
    for name, text in made.items():
        committed = (DATA / name).read_text() if is_data(name) else shown[name]
        assert committed == text, f"{name}: write it anew with python -m tests.documents {name}"


@pytest.mark.long
@pytest.mark.parametrize("maker", QUICK, ids=lambda maker: maker.names[0])
def test_quick_makers_give_the_committed_results(maker: Maker, tmp_path: Path) -> None:
    """The results have the same digits."""
    check(maker, tmp_path)


@pytest.mark.fullsize
@pytest.mark.parametrize("maker", OTHERS, ids=lambda maker: maker.names[0])
def test_slow_makers_give_the_committed_results(maker: Maker, tmp_path: Path) -> None:
    """The results at full size have the same digits."""
    check(maker, tmp_path)


def test_each_made_result_has_a_place_and_a_maker() -> None:
    """Each block, number and picture in a document has a maker, and each maker has a place."""
    text, names = everything(), {name for maker in MAKERS for name in maker.names}
    assert set(pictures_in(text)) == set(PICTURES)
    data = {picture.data for picture in PICTURES.values()}
    assert set(made_in(text)) | data == names


def test_replaced_changes_only_blocks_and_numbers() -> None:
    """Blocks and numbers with a new result are replaced; all other text stays."""
    text = "a <!--n-->1<!--/--> b <!--m-->2<!--/-->\n\n<!-- made: x -->\n\n    old\n\n    older\n\nrest\n"
    assert made_in(text) == {"n": "1", "m": "2", "x": "old\n\nolder"}
    new = replaced(text, {"n": "7", "x": "new\n\nline"})
    assert new == (
        "a <!--n-->7<!--/--> b <!--m-->2<!--/-->\n\n<!-- made: x -->\n\n    new\n\n    line\n\nrest\n"
    )
    assert made_in(new) == {"n": "7", "m": "2", "x": "new\n\nline"}


def test_table_is_replaced_without_an_indent() -> None:
    """The lines of a Markdown table begin at the margin; the text behind the table stays."""
    text = "<!-- made: t -->\n\n| a |\n|---|\n| 1 |\n\nrest\n\n<!-- made: b -->\n\n    block\n\n"
    assert made_in(text) == {"t": "| a |\n|---|\n| 1 |", "b": "block"}
    new = replaced(text, {"t": "| a |\n|---|\n| 2 |\n| 3 |"})
    assert made_in(new) == {"t": "| a |\n|---|\n| 2 |\n| 3 |", "b": "block"}
    assert replaced(new, made_in(text)) == text
    assert replaced(text, {}) == text


def test_readme_fits_on_a_page() -> None:
    """README has at most 150 lines of at most 100 characters."""
    lines = README.read_text().splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_existing_files(document: Path) -> None:
    """Every link of a document leads to a file of the tree."""
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / target).exists(), target


def anchor_of(heading: str) -> str:
    """Return the anchor that GitHub gives a *heading*."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_existing_headings(document: Path) -> None:
    """The part of a link behind # is the anchor of a heading of its document."""
    for target, anchor in re.findall(r"\]\(([^)#]*\.md|)#([^)]+)\)", document.read_text()):
        linked = document.parent / target if target else document
        headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
        assert anchor in map(anchor_of, headings), (target, anchor)


def test_sources_cite_existing_headings_of_the_kernel_pages() -> None:
    """A source such as docs/kernel/plugs.md#the-plug-of-a-task leads to a heading of that page."""
    sources = [path.read_text() for folder in ("wbsim", "tests") for path in (ROOT / folder).rglob("*.py")]
    cited = {found for text in sources for found in re.findall(r"docs/kernel/(\w+)\.md(?:#([\w-]+))?", text)}
    pages = {path.stem: path.read_text() for path in (ROOT / "docs" / "kernel").glob("*.md")}
    anchors = {
        (page, anchor_of(heading))
        for page, text in pages.items()
        for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }
    assert {page for page, _ in cited} <= pages.keys()
    assert {(page, anchor) for page, anchor in cited if anchor} - anchors == set()
    assert len(cited) > 30


def test_reference_matches_the_specs() -> None:
    """docs/reference.md is the output of `wbsim schema --reference`, which writes it anew."""
    assert reference().strip() == (ROOT / "docs" / "reference.md").read_text().strip()
