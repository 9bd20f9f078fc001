"""The calls and returns of the repository's functions in a part of a run.

A generator that is resumed counts as called, and a generator that yields as returning.  Left out: code of
other packages, and code that dataclasses and pydantic make.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tests.measures.lines import LAYERS
from tests.measures.prose import ROOT


class Place(NamedTuple):
    """A function: its file, relative to the root, and its qualified name."""

    file: str
    name: str


class Window(NamedTuple):
    """The part of a run from the first call of *opens* to the last return of *closes*, both included.

    With *warm* the window begins at the last call of *opens*, so that nothing in it is done for the first
    time.  Calls within *without* are left out; the call of *without* itself counts.
    """

    opens: Place
    closes: Place
    without: Place | None = None
    warm: bool = False


class Way(NamedTuple):
    """The files of consecutive calls and returns, and their counts."""

    steps: list[str]

    @property
    def files(self) -> set[str]:
        """The files of the functions that are called."""
        return set(self.steps)

    @property
    def folders(self) -> set[str]:
        """The folders of these files."""
        return {str(Path(file).parent) for file in self.steps}

    @property
    def changes(self) -> int:
        """The number of consecutive calls or returns whose code lies in different files."""
        return sum(before != after for before, after in pairwise(self.steps))

    def without(self, layer: str) -> Way:
        """Return the way without the files of *layer*."""
        return Way([file for file in self.steps if not file.startswith(f"{layer}/")])


class Recorder:
    """A profile function (`sys.setprofile`) that keeps the calls and returns within *window*."""

    def __init__(self, window: Window, root: Path = ROOT) -> None:
        self._window = window
        self._root = root.resolve()
        self._places: dict[CodeType, Place | None] = {}
        self._steps: list[str] = []
        self._open = False
        self._last = 0  # the number of steps up to the last return of `closes`
        self._hidden: FrameType | None = None
        self._imported = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Keep the *event* if it is a call or a return of the repository's code."""
        if event not in ("call", "return"):
            return
        place = self._place(frame.f_code)
        if place is None:
            return
        if event == "call" and place == self._window.opens and (self._window.warm or not self._open):
            self._open, self._last = True, 0
            self._steps.clear()
        if event == "return" and frame is self._hidden:
            self._hidden = None
        if not self._open or self._hidden is not None:
            return
        if place.name == "<module>":
            self._imported = place.file
        self._steps.append(place.file)
        if event == "return" and place == self._window.closes:
            self._last = len(self._steps)
        if event == "call" and place == self._window.without:
            self._hidden = frame

    def _place(self, code: CodeType) -> Place | None:
        """Return the place of *code*; None for code that is not the repository's."""
        if code not in self._places:
            file = Path(code.co_filename).resolve()
            inside = any(file.is_relative_to(self._root / layer) for layer in LAYERS)
            place = Place(str(file.relative_to(self._root)), code.co_qualname) if inside else None
            self._places[code] = place
        return self._places[code]

    def way(self) -> Way:
        """Return the recorded way.

        Raises:
            LookupError: a function has another name now, or a module was imported within the window.
        """
        if self._imported:
            raise LookupError(f"{self._imported} is imported within the window; import it before the window")
        for place, seen in ((self._window.opens, self._open), (self._window.closes, self._last)):
            if not seen:
                raise LookupError(
                    f"{place.file} has no call of {place.name}; give the present name of the function"
                )
        return Way(self._steps[: self._last])


def traced(run: Callable[[], object], window: Window, root: Path = ROOT) -> Way:
    """Return the way of *run* within *window*; see `Recorder.way` for errors."""
    recorder = Recorder(window, root)
    sys.setprofile(recorder)
    try:
        run()
    finally:
        sys.setprofile(None)
    return recorder.way()
