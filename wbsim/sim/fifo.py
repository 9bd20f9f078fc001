"""A queue: items are taken in the order in which they were added.

It is a list with the place of its first item.  mypyc compiles its methods, but calls those of a deque through
Python, which takes five times as long.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

T = TypeVar("T")
_KEPT: Final = 1_024
"""The number of items that are taken before their places are given up."""


class Fifo(Generic[T]):
    """A queue, which is empty at first."""

    __slots__ = ("_first", "_items")

    def __init__(self) -> None:
        self._items: list[T] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._items) - self._first

    def add(self, item: T) -> None:
        """Add *item* behind all others."""
        self._items.append(item)

    def first(self) -> T:
        """Return the first item; there must be one."""
        return self._items[self._first]

    def last(self) -> T:
        """Return the last item; there must be one."""
        return self._items[-1]

    def take(self) -> T:
        """Remove the first item, and return it; there must be one."""
        item = self._items[self._first]
        self._first += 1
        if self._first == len(self._items):
            self._items.clear()
            self._first = 0
        elif self._first == _KEPT:
            del self._items[:_KEPT]
            self._first = 0
        return item

    def items(self) -> list[T]:
        """Return all items in their order, in a new list; they stay in the queue."""
        return self._items[self._first :]
