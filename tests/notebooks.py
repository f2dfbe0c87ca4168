"""Notebooks are committed as a run leaves them, in one form: python -m tests.notebooks [NAME ...] runs and writes them.

The form: cells keep their ids, and have no metadata but tags; outputs have no metadata; code cells are counted from 1.
So a diff shows what was written and what it gave, and nothing of who ran it or when. The tag "timing" marks a cell
whose numbers are times, sizes of memory or the like.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
NUMBER = r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?"
NEAR, WITHIN = 0.1, 0.03
"""Numbers with a point may differ by a tenth, or (accuracies) by 0.03: another CPU rounds otherwise."""
GRID, GREY = (24, 36), 0.06
"""A picture is compared as so many means of grey, which may differ by so much (of 0 to 1) on average."""


def normal(notebook: Any) -> Any:
    """The notebook in the committed form."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    count = 0
    for cell in notebook.cells:
        cell.metadata = {"tags": cell.metadata.tags} if cell.metadata.get("tags") else {}
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            cell.outputs = [tidied(output, count) for output in merged(cell.outputs)]
    return notebook


def merged(outputs: list[Any]) -> list[Any]:
    """Neighbouring pieces of one stream are one output."""
    found: list[Any] = []
    for output in outputs:
        before = found[-1] if found else None
        if before and output.output_type == before.output_type == "stream" and output.name == before.name:
            before.text += output.text
        else:
            found.append(output)
    return found


def tidied(output: Any, count: int) -> Any:
    """One output without what changes from run to run."""
    if "data" in output:
        output.metadata = {}
        for kind in [kind for kind in output.data if kind.startswith("application/")]:
            del output.data[kind]
    if output.output_type == "execute_result":
        output.execution_count = count
    return output


def written(notebook: Any) -> str:
    """The text of the file."""
    nbformat.validate(notebook)
    return json.dumps(json.loads(nbformat.writes(notebook)), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def executed(path: Path, timeout: int = 500) -> Any:
    """The notebook after a run from top to bottom in a real kernel, in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=timeout, resources={"metadata": {"path": folder}}).execute()
    return normal(notebook)


def differences(said: Any, got: Any) -> list[str]:
    """What a run gave otherwise than the file says, one line for each output."""
    found = []
    for old, new in zip(said.cells, got.cells, strict=True):
        if old.cell_type != "code":
            continue
        kinds = [[kind_of(output) for output in cell.outputs] for cell in (old, new)]
        if kinds[0] != kinds[1]:
            found.append(f"{old.id}: outputs {kinds[0]}, now {kinds[1]}")
            continue
        timing = "timing" in old.metadata.get("tags", [])
        for a, b in zip(old.outputs, new.outputs, strict=True):
            found += [f"{old.id}: {line}" for line in unlike(a, b, timing)]
    return found


def kind_of(output: Any) -> str:
    """stream, image or text."""
    if "data" not in output:
        return str(output.output_type)
    return "image" if "image/png" in output.data else "text"


def unlike(said: Any, got: Any, timing: bool) -> list[str]:
    """How two outputs of a kind differ."""
    if kind_of(said) == "image":
        away = 0.0 if timing else distance(said.data["image/png"], got.data["image/png"])
        return [f"the picture differs by {away:.2f}"] if away > GREY else []
    old, new = (one.text if "text" in one else one.data["text/plain"] for one in (said, got))
    lines = old.strip().splitlines(), new.strip().splitlines()
    if timing:
        same = words(old) == words(new)
        return [] if same else [f"said {old.strip()!r}, now {new.strip()!r}"]
    if len(lines[0]) != len(lines[1]):
        return [f"{len(lines[0])} lines, now {len(lines[1])}"]
    return [f"said {a.strip()!r}, now {b.strip()!r}" for a, b in zip(*lines, strict=True) if not alike(a, b)]


def words(text: str) -> set[str]:
    """The words without numbers and units."""
    return {word for word in re.findall(r"[A-Za-z_]{4,}", text) if word not in ("bytes",)}


def alike(said: str, got: str) -> bool:
    """The same words; the same whole numbers; numbers with a point that are near."""
    if re.sub(r"\s+", " ", re.sub(NUMBER, "#", said)) != re.sub(r"\s+", " ", re.sub(NUMBER, "#", got)):
        return False
    pairs = zip(re.findall(NUMBER, said), re.findall(NUMBER, got), strict=True)
    return all(a == b or (any(c in a for c in ".e") and close(a, b)) for a, b in pairs)


def close(said: str, got: str) -> bool:
    """Near relative to their size, or on the scale of an accuracy; far below that scale only the power counts."""
    a, b = float(said.replace(",", "")), float(got.replace(",", ""))
    if abs(a) < 1e-6:
        return abs(b) < 1e-5
    return abs(a - b) <= max(NEAR * abs(a), WITHIN if 0.1 <= abs(a) <= 1 else 0.0)


def distance(said: str, got: str) -> float:
    """Mean difference of grey of two pictures (base64 PNG); 1 if their sizes are far apart."""
    old, new = (picture(text) for text in (said, got))
    if max(abs(a / b - 1) for a, b in zip(old.shape, new.shape, strict=True)) > 0.1:
        return 1.0
    return float(np.abs(coarse(old) - coarse(new)).mean())


def picture(text: str) -> np.ndarray:
    """Grey values in 0 to 1; transparent is white."""
    from matplotlib.image import imread

    pixels = np.asarray(imread(io.BytesIO(base64.b64decode(text)), format="png"), dtype=float)
    colour, opaque = pixels[..., :3].mean(axis=-1), pixels[..., 3] if pixels.shape[-1] == 4 else 1.0
    return np.asarray(colour * opaque + 1 - opaque)


def coarse(pixels: np.ndarray) -> np.ndarray:
    """Means over a grid."""
    rows, columns = (
        np.linspace(0, size, parts + 1).astype(int) for size, parts in zip(pixels.shape, GRID, strict=True)
    )
    sums = np.add.reduceat(np.add.reduceat(pixels, rows[:-1], axis=0), columns[:-1], axis=1)
    return np.asarray(sums / np.outer(np.diff(rows), np.diff(columns)))


def main() -> None:
    """Run notebooks and write them with their outputs."""
    parser = argparse.ArgumentParser(prog="python -m tests.notebooks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="without .ipynb (default: all)")
    names = parser.parse_args().names
    for path in [FOLDER / f"{name}.ipynb" for name in names] or sorted(FOLDER.glob("*.ipynb")):
        path.write_text(written(executed(path)), encoding="utf-8")
        print(path.name, flush=True)


if __name__ == "__main__":
    main()
