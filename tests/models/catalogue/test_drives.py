"""The drives of the catalogue: each stands behind the queue that its own release gives it."""

from __future__ import annotations

import pytest

from wbsim.models.catalogue.data_files import purposes_in
from wbsim.models.catalogue.drives import FOLDER, drives_of
from wbsim.models.release import release_of


@pytest.mark.parametrize(
    ("name", "in_2013", "in_2025"),
    [
        ("loop", "noop", "noop"), ("sata-ssd", "cfq", "mq-deadline"), ("sata-disk", "cfq", "mq-deadline"),
        ("virtio-ssd", "cfq", "mq-deadline"), ("virtio-disk", "cfq", "mq-deadline"),
        ("pm9a3", "noop", "none"), ("bm1743", "noop", "none"),
    ],
)  # fmt: skip
def test_queue_of_a_drive_follows_the_release(name: str, in_2013: str, in_2025: str) -> None:
    """Linux 3.11 has the request queue of 2013, and 6.18 has blk-mq; the loop drive was measured on 6.18."""
    schedulers = [drives_of(release_of(of))[name].queue.elevator.scheduler for of in ("3.11", "6.18")]
    assert schedulers == [in_2013, in_2025]


def test_virtio_drive_differs_from_the_sata_drive_in_its_queue() -> None:
    """A SATA disk takes 32 commands and 168 segments; a virtio disk takes 128 commands and 126 segments."""
    drives = drives_of(release_of("6.18"))
    for of in ("ssd", "disk"):
        sata, virtio = drives[f"sata-{of}"], drives[f"virtio-{of}"]
        assert sata.device == virtio.device
        assert (sata.queue.driver_depth, sata.queue.limits.max_segments) == (32, 168)
        assert (virtio.queue.driver_depth, virtio.queue.limits.max_segments) == (128, 126)


def test_every_drive_has_a_purpose() -> None:
    """Both have the same names, in the same order."""
    assert list(drives_of(release_of("6.18"))) == list(purposes_in(FOLDER))
    assert all(purposes_in(FOLDER).values())
