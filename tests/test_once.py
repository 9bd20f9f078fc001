"""The compiled engine leaves out the tests that the source has answered, and no others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest


class Item:
    """A stand-in for a test of the file *path* with *markers*."""

    def __init__(self, path: str, *markers: str) -> None:
        self.path = Path(conftest.__file__).parent / path
        self._markers = markers

    def get_closest_marker(self, name: str) -> str | None:
        """Return the marker *name*, if the test has it."""
        return name if name in self._markers else None


@pytest.mark.parametrize("compiled", [False, True])
def test_long_and_full_size_tests_run_on_the_compiled_engine(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make test` leaves out the long and the full-size tests, so nothing has answered them."""
    monkeypatch.setattr(conftest, "COMPILED", compiled)
    left_out: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    config: Any = SimpleNamespace(hook=hook)
    path = "documents/test_documents.py"
    plain, long, full = Item(path), Item(path, "long"), Item(path, "fullsize")
    model = Item("models/block/test_queue.py")
    items: list[Any] = [plain, long, full, model]
    conftest.pytest_collection_modifyitems(config, items)
    assert items == ([long, full, model] if compiled else [plain, long, full, model])
    assert left_out == ([plain] if compiled else [])
