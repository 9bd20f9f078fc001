"""``python -m tests.documents [NAME ...]``: make the results in documents again, and write them there.

Names choose the results; without a name all results are made.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.documents.makers import MAKERS
from tests.documents.pictures import PICTURES, write_picture
from tests.documents.places import DATA, DOCUMENTS, is_data, replaced


def write(names: list[str]) -> None:
    """Run the makers of *names*, and write their results into the documents."""
    for maker in MAKERS:
        if names and not set(names) & set(maker.names):
            continue
        DATA.mkdir(exist_ok=True)
        with TemporaryDirectory() as directory:
            made = maker.make(Path(directory))
            for name, text in made.items():
                if is_data(name):
                    (DATA / name).write_text(text)
            for name, picture in PICTURES.items():
                if picture.data in made:
                    write_picture(name)
        for document in DOCUMENTS:
            document.write_text(replaced(document.read_text(), made))
        print("made", *maker.names, flush=True)


write(sys.argv[1:])
