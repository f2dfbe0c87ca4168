"""Rows that were prepared in another way than the model's: each constant of a recipe counts."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from tests.cli.case import TABLE, put
from tests.cli.cases_models import seal
from tests.cli.in_process import dkl_in, done


@pytest.mark.parametrize("key", ["shift", "factor"])
def test_recipes_that_differ_in_one_constant(tmp_path, key):
    """Only the shift, or only the factor, of one input: refused by name; the same recipe is taken."""
    put(tmp_path, {"t.csv": TABLE})
    done(tmp_path, "ingest", "t.csv", "d.zarr", "--scale", "standard")
    done(tmp_path, "fit", "d.zarr", "m.zarr", "--n-components", "10")
    done(tmp_path, "evaluate", "m.zarr", "d.zarr")
    group = zarr.open_group(tmp_path / "d.zarr", mode="r+")
    known = dict(group.attrs)["recipe"]
    known["channels"][0][key][0] += 0.25
    group.attrs["recipe"] = known
    seal(group)
    said = dkl_in(tmp_path, "evaluate", "m.zarr", "d.zarr")
    assert said.code == 1, said
    assert f"({key} of channel" in said.err


def test_raw_images_and_a_whitened_data_set(tmp_path):
    """A model of whitened rows predicts the same for the file itself; another matrix is another recipe."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 256, (90, 8, 8)).astype(np.uint8), np.arange(90) % 2
    np.savez(tmp_path / "a.npz", X=X.reshape(90, -1), y=y)
    np.savez(tmp_path / "b.npz", X=X[:80].reshape(80, -1), y=y[:80])
    done(tmp_path, "ingest", "a.npz", "a.zarr", "--scale", "gcn,zca")
    done(tmp_path, "ingest", "b.npz", "b.zarr", "--scale", "gcn,zca")
    done(tmp_path, "fit", "a.zarr", "m.zarr", "--n-components", "20", "--random-state", "0")
    done(tmp_path, "predict", "m.zarr", "a.npz", "raw.csv")
    done(tmp_path, "predict", "m.zarr", "a.zarr", "stored.csv")
    assert (tmp_path / "raw.csv").read_bytes() == (tmp_path / "stored.csv").read_bytes()
    assert "(scale gcn:0+zca:0.1)" in done(tmp_path, "inspect", "m.zarr")
    assert "gcn:0+zca:0.1" in done(tmp_path, "inspect", "a.zarr")
    done(tmp_path, "ingest", "b.npz", "c.zarr", "--like", "m.zarr")
    done(tmp_path, "evaluate", "m.zarr", "c.zarr")
    said = dkl_in(tmp_path, "evaluate", "m.zarr", "b.zarr")
    assert said.code == 1
    assert "(whitening of channel" in said.err
    said = dkl_in(tmp_path, "ingest", "b.npz", "d.zarr", "--scale", "gcn,zac")
    assert said.code == 1
    assert "did you mean 'zca'?" in said.err
