"""The tracepoints of a machine: signals with the names and fields of the kernel's, for observers."""

from __future__ import annotations

from collections.abc import Callable


class Signal:
    """A tracepoint.  ``if signal.observers: signal.emit(...)`` costs one test when unwatched."""

    __slots__ = ("name", "observers")

    def __init__(self, name: str) -> None:
        self.name = name
        self.observers: list[Callable[..., None]] = []

    def emit(self, **fields: object) -> None:
        """Call every observer with the name of this signal and the *fields*.

        The fields have the names of the kernel's tracepoint.
        """
        for observer in self.observers:
            observer(self.name, **fields)


class Signals:
    """All tracepoints of a machine.  Observers change no result."""

    def __init__(self) -> None:
        self.balance_dirty_pages = Signal("balance_dirty_pages")
        self.block_bio_backmerge = Signal("block_bio_backmerge")
        self.block_bio_frontmerge = Signal("block_bio_frontmerge")
        self.block_bio_queue = Signal("block_bio_queue")
        self.block_getrq = Signal("block_getrq")
        self.block_plug = Signal("block_plug")
        self.block_rq_complete = Signal("block_rq_complete")
        self.block_rq_insert = Signal("block_rq_insert")
        self.block_rq_issue = Signal("block_rq_issue")
        self.block_rq_merge = Signal("block_rq_merge")
        self.block_unplug = Signal("block_unplug")
        self.writeback_single_inode = Signal("writeback_single_inode")
