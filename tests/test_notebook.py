"""The notebooks run from top to bottom and show their pictures and results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # jupyter's own deprecations
@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.py")), ids=lambda path: path.stem)
def test_notebook_runs(path: Path) -> None:
    """Every cell runs, a picture is drawn, and the result of the merges is printed."""
    import jupytext
    from nbclient import NotebookClient

    notebook: Any = jupytext.read(path)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": "."}}
    ).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert pictures, "no picture was drawn"
    text = "".join(str(output.get("text", "")) for output in outputs)
    assert {"plug": "backmerge", "explore": "decisions are equal to the kernel's"}[path.stem] in text
