"""``python -m tests.documents [NAME ...]``: make the results in documents again, and write them there.

Names choose the results; without a name all results are made.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.documents.makers import MAKERS
from tests.documents.places import DATA, DOCUMENTS, ROOT, pictures_in, replaced


def write(names: list[str]) -> None:
    """Run the makers of *names*, and write their results into the documents."""
    for maker in MAKERS:
        if names and not set(names) & set(maker.names):
            continue
        DATA.mkdir(exist_ok=True)
        with TemporaryDirectory() as directory:
            made = maker.make(Path(directory))
            for name, text in made.items():
                if name.endswith(".csv"):
                    (DATA / name).write_text(text)
            for name in {name for document in DOCUMENTS for name in pictures_in(document.read_text())}:
                drawn = Path(directory, f"{name}.png")
                if drawn.exists():
                    (ROOT / "docs" / drawn.name).write_bytes(drawn.read_bytes())
        for document in DOCUMENTS:
            document.write_text(replaced(document.read_text(), made))
        print("made", *maker.names, flush=True)


write(sys.argv[1:])
