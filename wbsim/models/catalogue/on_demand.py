"""Parts of the catalogue that are made when they are first used.

A configuration names one machine and one drive of many, so the others need not be built and checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from wbsim.sim.param import Spec

PartT = TypeVar("PartT", bound=Spec)


class OnDemand(Mapping[str, PartT]):
    """Parts by name, in the order of *makers*; each is made once, by the maker of its name."""

    def __init__(self, makers: Mapping[str, Callable[[], PartT]]) -> None:
        self._makers = dict(makers)
        self._parts: dict[str, PartT] = {}

    def __getitem__(self, name: str) -> PartT:
        if name not in self._parts:
            self._parts[name] = self._makers[name]()
        return self._parts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
