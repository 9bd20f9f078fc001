"""The part of a flash drive whose cells hold one bit each (SLC): it programs fast, and it is small.

The host's data goes there while there is room.  In a long pause the drive folds: it reads the data of this
part and programs it into the other cells.  When the part is full, the drive programs the other cells
directly, or it folds a page for each page that the host writes.

Left out: data that is overwritten is folded nevertheless.  In the map (`page_map`), each page has its final
place at once.
"""

from __future__ import annotations

from collections.abc import Callable

from wbsim.models.devices.planes import Planes
from wbsim.models.devices.spec import SlcSpec


class SlcPart:
    """The part, on *planes* that program *flash_page* bytes at a time.

    Folding a page takes *fold_ns*.  *fill* returns the share of the drive's capacity that has data.
    ``filled``: the bytes in the part.  ``folded``: the bytes that were folded.  Begins and ends are times on
    the clock.
    """

    def __init__(
        self,
        spec: SlcSpec,
        planes: Planes,
        flash_page: int,
        fold_ns: int,
        fill: Callable[[], float],
    ) -> None:
        self._spec = spec
        self._planes = planes
        self._page = flash_page
        self._fold_ns = fold_ns
        self._fill = fill
        self.filled = self.folded = 0

    @property
    def size(self) -> int:
        """The size (bytes) of the part now: ``fixed`` plus ``dynamic`` x (1 - *fill*)."""
        return self._spec.fixed + int(self._spec.dynamic * (1 - self._fill()))

    def program(self, begin_ns: int) -> int:
        """Program a flash page of the host, not before *begin_ns*; return its end (ns).

        If the part is full, the drive programs other cells directly, or folds a page first (``when_full`` of
        `SlcSpec`).  A pause before *begin_ns* may have folded some.
        """
        self._fold_in_pause(begin_ns)
        spec, page = self._spec, self._page
        if self.filled + page <= self.size:
            self.filled += page
            return self._planes.do(begin_ns, spec.program_time)
        if spec.when_full == "direct" or self.filled < page:
            return self._planes.program(begin_ns)
        self.folded += page
        return self._planes.do(begin_ns, self._fold_ns + spec.program_time)

    def _fold_in_pause(self, until_ns: int) -> None:
        """Fold what the planes had time for since their last work."""
        after_ns = self._spec.fold_after
        if after_ns is None or not self.filled:
            return
        idle_ns = until_ns - self._planes.idle_since_ns - after_ns
        if idle_ns > 0:
            pages = min(self._planes.fit(idle_ns, self._fold_ns), -(-self.filled // self._page))
            self._planes.count_pause(pages * self._fold_ns)
            self.folded += min(self.filled, pages * self._page)
            self.filled = max(0, self.filled - pages * self._page)
