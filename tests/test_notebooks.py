"""Notebooks run from top to bottom in a real kernel, and a fit shows its progress there."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"


SLOW = {"learning.ipynb"}
PATHS = [
    pytest.param(path, id=path.name, marks=pytest.mark.long if path.name in SLOW else ())
    for path in sorted(FOLDER.glob("*.ipynb"))
]


@pytest.mark.parametrize("path", PATHS)
def test_notebook_runs(path, tmp_path):
    """Every cell of the notebook runs."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


def test_progress_is_shown_in_a_notebook(tmp_path):
    """A slow pass leaves one line with all rows done in the output of its cell."""
    code = """
import time
import dask.array as da
import numpy as np
import dkl

def slow(block):
    time.sleep(0.3)
    return block

X = da.from_array(np.random.default_rng(0).random((4096, 3)), chunks=(256, 3)).map_blocks(slow)
dkl.SingleKernelRegressor(n_components=10, sigma=1.0).fit(X, np.arange(4096.0))
None
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [o["data"]["text/plain"] for o in notebook.cells[0].outputs if "data" in o]
    assert len(shown) == 1
    assert "4,096/4,096 rows" in shown[0]
    assert "rows/s" in shown[0]
