"""The code blocks of README and docs run: commands and Python in an empty folder, within a limit of time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.documents.code_blocks import Block, blocks_of
from tests.documents.places import DOCUMENTS
from wbsim.experiments.config.experiment import load

LIMIT_S: Final = 120
"""The limit of one command.  README promises seconds to half a minute, and the machine may be busy."""

TEXT: Final = """
Text.

    wbsim run a.toml --set x=1,2 \\
        --out b    # two lines
    wbsim plot b

<!-- file: a.toml -->

    title = "a"

    [scenario]

* item
  of two lines

<!-- not run: output -->

    wall s

    import wbsim

<!-- made: table -->

    1 2

Then:

    import wbsim

    wbsim.load("a.toml")
"""


def test_blocks_have_their_kinds_and_lines() -> None:
    """A comment above a block gives its kind; blocks of commands and Python need none."""
    blocks = blocks_of(TEXT)
    assert [(block.kind, block.name, block.line) for block in blocks] == [
        ("commands", "", 4), ("file", "a.toml", 10), ("not run", "output", 19), ("made", "table", 25),
        ("python", "", 29),
    ]  # fmt: skip
    assert blocks[1].text == 'title = "a"\n\n[scenario]'
    assert blocks[2].text == "wall s\n\nimport wbsim"


def test_commands_are_joined_and_lose_their_comments() -> None:
    """A backslash continues a command, and a comment at its end is left out."""
    assert list(blocks_of(TEXT)[0].commands()) == [
        ["run", "a.toml", "--set", "x=1,2", "--out", "b"], ["plot", "b"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("    make test", "line 3: say above"),
        ("    wbsim run a.toml\n    make test", "line 3: say above"),
        ("    wbsims run a.toml", "line 3: say above"),
        ("```\nwbsim\n```", "line 3: indent"),
    ],
)
def test_block_of_an_unknown_kind_is_refused(block: str, message: str) -> None:
    """The error names the line of the block."""
    with pytest.raises(ValueError, match=message):
        blocks_of(f"Text.\n\n{block}\n")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_each_block_of_a_document_has_a_kind(document: Path) -> None:
    """The kinds decide what is run, so no block is left out by accident."""
    blocks_of(document.read_text())


def run(words: list[str], folder: Path) -> None:
    """Run the command *words* in *folder*, and assert that it ends with status 0 within `LIMIT_S`."""
    environment = {**os.environ, "WBSIM_ENGINE": os.environ.get("WBSIM_ENGINE", "light")}
    ran = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert ran.returncode == 0, f"{' '.join(words)}\n{ran.stdout}\n{ran.stderr}"


def write_files(blocks: list[Block], folder: Path) -> None:
    """Write the files among *blocks* to *folder*, and assert that the configurations among them are valid."""
    files = [(folder / block.name, block.text) for block in blocks if block.kind == "file"]
    for path, text in files:
        path.write_text(text + "\n")
    for path, text in files:
        if path.suffix == ".toml" and "scenario" in tomllib.loads(text):
            load(path)


def runs(document: Path) -> bool:
    """Return whether *document* has a file, commands or Python; its blocks may still be faulty."""
    return re.search(r"^(<!-- file: |    (wbsim|import|from) )", document.read_text(), re.M) is not None


@pytest.mark.long
@pytest.mark.parametrize(
    "document", [document for document in DOCUMENTS if runs(document)], ids=lambda path: path.stem
)
def test_blocks_of_a_document_run(document: Path, tmp_path: Path) -> None:
    """The files of a document are written to one folder; its commands run there in order, Python last."""
    blocks = blocks_of(document.read_text())
    write_files(blocks, tmp_path)
    for block in blocks:
        for words in block.commands() if block.kind == "commands" else ():
            run(["-m", "wbsim.experiments.cli", *words], tmp_path)
    if program := "\n".join(block.text for block in blocks if block.kind == "python"):
        run(["-c", program], tmp_path)
