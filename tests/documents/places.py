"""The places of made results in a document (README, docs/*.md, docs/kernel/*.md).

A line ``<!-- made: NAME -->`` stands above an indented block, a table or a picture.  A number in a sentence
stands between ``<!--NAME-->`` and ``<!--/-->``.  `tests.documents.pictures` names the data of each picture.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
DOCUMENTS: Final = (README, *sorted((ROOT / "docs").rglob("*.md")))
CONFIGS: Final = ROOT / "wbsim" / "experiments" / "configs"
EXAMPLES: Final = ROOT / "docs" / "examples"
PICTURES_FOLDER: Final = ROOT / "docs"
DATA: Final = ROOT / "docs" / "data"
RATE_TITLE: Final = (
    "Four writers held to 30 MB/s each, on ext4 over an X25-E: pdflush, and a flusher for each device"
)
"""The title of docs/j09-rate.png, whose configuration belongs to its maker and not to wbsim."""
_BLOCK: Final = re.compile(r"<!-- made: (?P<name>\S+) -->\n\n(?P<text>(?:(?: {4}.*)?\n)+)")
_TABLE: Final = re.compile(r"<!-- made: (?P<name>\S+) -->\n\n(?P<text>(?:\|.*\n)+)")
_NUMBER: Final = re.compile(r"<!--(?P<name>[\w.-]+)-->(?P<text>[^<]*)<!--/-->")
_PICTURE: Final = re.compile(r"!\[[^\]]*\]\((?:docs/)?(?P<name>[\w-]+)\.png\)")


def made_in(text: str) -> dict[str, str]:
    """Return the text of each made block and number in *text*, by name."""
    found = {match["name"]: _unindented(match["text"]) for match in _BLOCK.finditer(text)}
    found |= {match["name"]: match["text"].rstrip("\n") for match in _TABLE.finditer(text)}
    return found | {match["name"]: match["text"] for match in _NUMBER.finditer(text)}


def is_data(name: str) -> bool:
    """Return whether the made result *name* is a file of docs/data, and not a text in a document."""
    return name.endswith((".csv", ".json"))


def pictures_in(text: str) -> list[str]:
    """Return the names of the pictures (docs/NAME.png) that *text* shows."""
    return [match["name"] for match in _PICTURE.finditer(text)]


def replaced(text: str, made: Mapping[str, str]) -> str:
    """Return *text* with the results *made* in their places."""

    def block(match: re.Match[str]) -> str:
        if match["name"] not in made:
            return match[0]
        lines = (f"    {line}".rstrip() for line in made[match["name"]].splitlines())
        return f"<!-- made: {match['name']} -->\n\n" + "\n".join(lines) + "\n\n"

    def table(match: re.Match[str]) -> str:
        return f"<!-- made: {match['name']} -->\n\n{made.get(match['name'], match['text'].rstrip())}\n"

    def number(match: re.Match[str]) -> str:
        return f"<!--{match['name']}-->{made.get(match['name'], match['text'])}<!--/-->"

    return _NUMBER.sub(number, _TABLE.sub(table, _BLOCK.sub(block, text)))


def _unindented(block: str) -> str:
    return "\n".join(line[4:] for line in block.rstrip("\n").split("\n"))
