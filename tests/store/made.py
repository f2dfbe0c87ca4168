"""Sources to ingest, and data sets to look at, for the tests."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import zarr

import dkl
from dkl.sources import delimited, raw, sparse, svmlight, text, zarr_rows

OWN = ("origin", "id")
"""Attributes that say where the data set came from, not what it holds."""


def ingest(sources, dest, **how):
    """dkl.ingest without a progress line; the opened data set."""
    sources = [str(s) for s in sources] if isinstance(sources, (list, tuple)) else str(sources)
    dkl.ingest(sources, str(dest), verbose=0, **how)
    assert not Path(f"{dest}.ingest").exists()
    return zarr.open(str(dest), mode="r")


def small_segments(monkeypatch, size):
    """Segments of about `size` bytes, for every kind of source."""
    monkeypatch.setattr(delimited, "segments", functools.partial(text.segments, size=size))
    monkeypatch.setattr(svmlight, "segments", functools.partial(text.segments, size=size))
    for module in (raw, sparse, zarr_rows):
        monkeypatch.setattr(module, "SEGMENT", size)


def tree(path):
    """Every file of a Zarr tree, without the attributes that name its origin."""
    found = {}
    for file in sorted(Path(path).rglob("*")):
        if file.is_dir():
            continue
        data = file.read_bytes()
        if file.name == "zarr.json":
            meta = json.loads(data)
            for name in OWN:
                meta.get("attributes", {}).pop(name, None)
            data = json.dumps(meta).encode()
        found[str(file.relative_to(path))] = data
    return found


def table(n=400, seed=0, gaps=0.0, labels=None):
    """A frame of three numbers, a category and a target; `gaps` is the share of cells that are missing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(3, 2, n),
            "b": rng.integers(-5, 50, n).astype(float),
            "colour": rng.choice(["red", "blue", "green"], n),
            "c": rng.exponential(2, n),
        }
    )
    for name in frame.columns:
        frame.loc[rng.random(n) < gaps, name] = None
    frame["y"] = rng.integers(0, 3, n) if labels is None else rng.choice(labels, n)
    return frame
