"""Notebooks run from top to bottom in a real kernel, and a fit shows its progress there."""

from __future__ import annotations

import base64
import copy
import io

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from tests.notebooks import FOLDER, alike, differences, distance, executed, normal, written

DEFAULT = {"start_here", "histograms"}
"""Notebooks that the default suite runs; `make test-long` runs all of them."""
PATHS = sorted(FOLDER.glob("*.ipynb"))
MARKED = [pytest.param(path, id=path.stem, marks=() if path.stem in DEFAULT else pytest.mark.long) for path in PATHS]


@pytest.mark.parametrize("path", MARKED)
def test_a_run_gives_the_committed_outputs(path):
    """Every cell runs, and gives what the file says, up to timing and rounding."""
    assert differences(nbformat.read(path, as_version=4), executed(path)) == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_notebook_has_its_outputs_in_the_committed_form(path):
    """A story with pictures, run from top to bottom, without metadata; python -m tests.notebooks NAME writes it so."""
    notebook = nbformat.read(path, as_version=4)
    assert path.read_text(encoding="utf-8") == written(normal(copy.deepcopy(notebook)))
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in codes for output in cell.outputs]
    assert notebook.cells[0].source.startswith("# ")
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 1
    drawing = [cell for cell in codes if "dkl.plot.plot_" in cell.source or "plt.subplots(" in cell.source]
    assert [cell.id for cell in drawing if not any("data" in output for output in cell.outputs)] == []
    assert path.stat().st_size < 600_000


def png(shade, size=(120, 160), bar=40):
    """A grey picture with a black bar, as base64."""
    from matplotlib.image import imsave

    pixels, file = np.full((*size, 3), shade), io.BytesIO()
    pixels[:, bar : bar + 30] = 0
    imsave(file, pixels, format="png")
    return base64.b64encode(file.getvalue()).decode()


@pytest.mark.parametrize(
    ("said", "got", "same"),
    [
        ("accuracy 0.951", "accuracy 0.949", True),
        ("accuracy 0.95", "accuracy 0.85", False),
        ("25 of 30", "24 of 30", False),
        ("R2 0.951", "accuracy 0.951", False),
        ("alpha 6.10:  error 1.2e-04", "alpha 6.11: error 1.3e-04", True),
        ("error 1.2e-04", "error 1.2e-02", False),
        ("1,347 rows", "1,348 rows", False),
    ],
)
def test_what_counts_as_the_same_line(said, got, same):
    """Words and whole numbers must be the same, others near."""
    assert alike(said, got) == same


def test_what_counts_as_the_same_picture():
    """The same up to shades; another size, or a bar elsewhere, is another picture."""
    assert distance(png(1.0), png(0.98)) < 0.03
    assert distance(png(1.0), png(1.0, bar=100)) > 0.1
    assert distance(png(1.0), png(1.0, size=(160, 160))) == 1.0


def test_changed_outputs_are_noticed(tmp_path):
    """A file whose number, picture or output was changed differs from a run; one with other times does not."""
    new = nbformat.v4
    cells = ["print('R2 0.91')", "import time; print(f'{time.perf_counter():.3f} seconds')",
             "import matplotlib.pyplot as plt; plt.subplots()[1].plot([0, 1]);"]  # fmt: skip
    notebook = new.new_notebook(cells=[new.new_code_cell(cell) for cell in cells])
    notebook.cells[1].metadata.tags = ["timing"]
    (tmp_path / "a.ipynb").write_text(nbformat.writes(notebook))
    said = executed(tmp_path / "a.ipynb")
    assert written(said) == written(normal(copy.deepcopy(said)))
    assert differences(said, executed(tmp_path / "a.ipynb")) == []
    for change in ("text", "picture", "missing"):
        wrong = copy.deepcopy(said)
        if change == "text":
            wrong.cells[0].outputs[0].text = "R2 0.51\n"
        elif change == "picture":
            wrong.cells[2].outputs[0].data["image/png"] = png(0.2, size=(413, 547))
        else:
            wrong.cells[1].outputs = []
        assert len(differences(wrong, said)) == 1, change


def test_the_first_picture_of_dkl_leaves_those_after_it_visible():
    """plot_ functions draw inside a context of settings; what a notebook's backend turns on stays on."""
    code = ["import matplotlib.pyplot as plt\nimport dkl\n"
            "dkl.plot.plot_scaling({'rows': [1, 2], 'seconds': [1.0, 2.0]}, 'rows', 'seconds');",
            "plt.subplots()[1].plot([0, 1]);"]  # fmt: skip
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in code])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert [["image/png" in o.get("data", {}) for o in cell.outputs] for cell in notebook.cells] == [[True], [True]]


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
    *widgets, line = shown
    assert all(one.startswith("HTML(") for one in widgets)  # drawn while the pass ran, if ipywidgets is there
    assert len(widgets) <= 1
    assert "4,096/4,096 rows" in line
    assert "rows/s" in line
