"""Paragraphs of documents: what is prose and what is not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.measures.markdown import paragraphs, prose_of

_DOCUMENT = """\
# Heading

First line
of a [paragraph
in two lines](docs/x.md).
    Indented, but of the paragraph.

    code, after an empty line

    more code

* item one
  continues
* item two

    second paragraph of the item

      code of the item

1. numbered

| told | a table |
|---|---|
After the table. <!-- told
told --> It ends.

```text
told
    ~~~
```
> quoted
column one      column two
![a picture, told](x.png)
---
>>> doctest()
Last.
"""


def test_paragraphs_leave_code_tables_and_pictures_out() -> None:
    assert paragraphs(_DOCUMENT) == [
        "First line\nof a paragraph\nin two lines.\nIndented, but of the paragraph.",
        "item one\ncontinues",
        "item two",
        "second paragraph of the item",
        "numbered",
        "After the table.\nIt ends.",
        "quoted",
        "Last.",
    ]


def test_prose_has_headings_and_tables_on_their_lines() -> None:
    """Line n of the prose is line n of the document, also behind links and comments of several lines."""
    lines = prose_of(_DOCUMENT).splitlines()
    document = _DOCUMENT.splitlines()
    assert len(lines) == len(document)
    for word in (
        "Heading",
        "two lines",
        "item two",
        "numbered",
        "a table",
        "It ends",
        "quoted",
        "column",
        "Last",
    ):
        assert [word in line for line in lines] == [word in line for line in document]
    assert "".join(lines).count("told") == 1, (
        "only the word in the table counts, not in code, comments and pictures"
    )


@given(
    st.lists(
        st.sampled_from(
            ["word", "* item", "", "    code", "```", "# head", "| a |", "<!-- c", "-->", "[a", "b](c)"]
        )
    )
)
def test_prose_keeps_the_number_of_lines(lines: list[str]) -> None:
    text = "\n".join([*lines, "end"])
    assert len(prose_of(text).split("\n")) == len(lines) + 1


def test_fence_closes_with_its_own_mark() -> None:
    assert paragraphs("````\n```\ncode\n````\nText.\n\n~~~\n```\ncode\n~~~\nMore.") == ["Text.", "More."]
