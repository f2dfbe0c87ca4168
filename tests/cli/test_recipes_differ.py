"""Rows that were prepared in another way than the model's: each constant of a recipe counts."""

from __future__ import annotations

import json

import pytest

from tests.cli.case import TABLE, put
from tests.cli.in_process import dkl_in, done


@pytest.mark.parametrize("key", ["shift", "factor"])
def test_recipes_that_differ_in_one_constant(tmp_path, key):
    """Only the shift, or only the factor, of one input: refused by name; the same recipe is taken."""
    put(tmp_path, {"t.csv": TABLE})
    done(tmp_path, "ingest", "t.csv", "d.zarr", "--scale", "standard")
    done(tmp_path, "fit", "d.zarr", "m.zarr", "--n-components", "10")
    done(tmp_path, "evaluate", "m.zarr", "d.zarr")
    path = tmp_path / "d.zarr" / "zarr.json"
    data = json.loads(path.read_text())
    constants = data["attributes"]["recipe"]["channels"][0][key]
    constants[0] += 0.25
    path.write_text(json.dumps(data))
    said = dkl_in(tmp_path, "evaluate", "m.zarr", "d.zarr")
    assert said.code == 1, said
    assert f"({key} of channel" in said.err
