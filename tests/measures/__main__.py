"""``python -m tests.measures [SECTION ...]``: print the measures that changes of the code are judged by.

Without a section all are printed; `rows` takes minutes.  ``--write`` lowers the bounds of prose.toml to the
counts of today; with ``--raise`` it raises them, too.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Final

from tests.measures import bounds, prose

SECTIONS: Final = {
    "prose": "prose_tables", "voice": "voice", "lines": "lines", "ways": "ways", "costs": "costs",
    "rows": "rows",
}  # fmt: skip
"""The module of each section, which is imported when it is printed: prose needs no engine."""


def main(argv: list[str] | None = None) -> None:
    """Print the sections that *argv* names, or write the bounds."""
    parser = argparse.ArgumentParser(prog="python -m tests.measures", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"one of {', '.join(SECTIONS)}; all by default"
    )
    parser.add_argument("--write", action="store_true", help="lower the bounds of prose.toml")
    parser.add_argument("--raise", dest="raises", action="store_true", help="with --write: raise them, too")
    arguments = parser.parse_args(argv)
    for name in arguments.sections:
        if name not in SECTIONS:
            parser.error(f"there is no section {name!r}; use one of {', '.join(SECTIONS)}")
    if arguments.raises and not arguments.write:
        parser.error("--raise changes what --write does; give both")
    if arguments.write and arguments.sections:
        parser.error("--write prints no section; leave the sections out")
    if arguments.write:
        counts = prose.measure().counts()
        before = bounds.read(bounds.PATH)
        after = counts if arguments.raises else bounds.lowered(before, counts)
        bounds.PATH.write_text(bounds.text_of(after))
        print(f"{bounds.PATH.name}: {bounds.total(before)} findings were allowed, now {bounds.total(after)}")
        return
    for name in arguments.sections or SECTIONS:
        report = import_module(f"tests.measures.{SECTIONS[name]}").report
        print(f"{name}\n\n{report()}\n", flush=True)


if __name__ == "__main__":
    main()
