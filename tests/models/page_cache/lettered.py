"""Files whose pages are written as letters.

.    a hole
d    delayed
r    reserved
m    mapped
D    dirty
H    a hole with a held block
h    a delayed page with a held block
u    mapped, with an unwritten block
U    dirty, with an unwritten block
s    dirty, with an unwritten block whose extent must be split first
"""

from __future__ import annotations

from wbsim.models.page_cache.file_pages import FilePages
from wbsim.models.page_cache.pages import DELAYED, DIRTY, HELD, HOLE, MAPPED, RESERVED, UNWRITTEN

LETTERS = {
    ".": HOLE, "d": DELAYED, "r": RESERVED, "m": MAPPED, "D": DIRTY, "H": HOLE | HELD, "h": DELAYED | HELD,
    "u": MAPPED | UNWRITTEN, "U": DIRTY | UNWRITTEN, "s": DELAYED | UNWRITTEN,
}  # fmt: skip


def file(
    states: str, blocks: dict[int, int] | None = None, size: int | None = None, base: int = 0
) -> FilePages:
    """Return a file with pages in these *states*; *blocks* has the block of a page.

    The file ends behind the last letter, or at *size*.
    """
    made = FilePages(len(states), base)
    made.pages.states[:] = [LETTERS[letter] for letter in states]
    made.pages.blocks[:] = -1
    for page, block in (blocks or {}).items():
        made.pages.blocks[page] = block
    made.pages.size[0] = len(states) if size is None else size
    return made


def letters(of: FilePages) -> str:
    """Return the states of the pages as letters."""
    names = {state: letter for letter, state in LETTERS.items()}
    return "".join(names[state] for state in of.pages.states.tolist())
