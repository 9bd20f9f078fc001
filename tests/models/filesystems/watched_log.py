"""An XFS log over a watched block layer, for tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.harness import BlockLayer
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.filesystems.xfs.log import MetaBuffer, XfsLog
from wbsim.models.filesystems.xfs.spec import LogCosts, LogSpec
from wbsim.sim.units import KIB, MIB, S


class Log:
    """A log of 1 MiB at sector 5 000, in a filesystem that begins at sector 100.

    Two records of 4 KiB may be in flight, and 512 bytes of each are its header.  A checkpoint is pushed at
    16 KiB.  The plug of 2.6.39 keeps the order of the bios, so the device sees the log's own order.
    """

    def __init__(self, kernel: str = "2.6.39", volatile: bool = False, **changes: Any) -> None:
        self.layer = BlockLayer(era="2.6.39", pool="request_list", volatile=volatile)
        self.env = self.layer.env
        self.cache: Any = SimpleNamespace(reclaiming=False)
        fields = {
            "size": MIB, "iclog_bytes": 4 * KIB, "iclogs": 2, "record_header": 512,
            "checkpoint_bytes": 16 * KIB, "sync_interval": 30 * S, "ail_pause": 1_000_000,
        }  # fmt: skip
        self.log = XfsLog(
            parts=self.layer.parts, queue=self.layer.queue,
            spec=LogSpec.model_validate({**fields, **changes}),
            costs=LogCosts(commit_ns=0, item_ns=0, record_ns=1_000, buffer_ns=10),
            rules=KERNELS[kernel].filesystems["xfs"],
            start_sector=5_000, first_sector=100, cache=self.cache,
        )  # fmt: skip
        self.log.start()

    def commit(self, size: int, *buffers: MetaBuffer) -> None:
        """Commit a transaction that logs *size* bytes of *buffers*."""
        for buffer in buffers:
            self.log.insert_item(buffer)
        self.log.commit(size)

    def run(self, until_ns: int = S) -> list[tuple[int, int, str]]:
        """Run until *until_ns*, and return the requests of the device: first sector, sectors, op."""
        self.env.call_at(until_ns, 0, self.env.halt)
        self.env.run()
        return [(r.start_sector, r.sectors, r.op) for r in self.layer.device.requests]

    def at(self, when_ns: int, act: Any, *arguments: Any) -> None:
        """Call *act* with *arguments* at *when_ns*."""
        self.env.call_at(when_ns, 0, lambda: act(*arguments))
