"""Rows that were prepared in another way than the model's: each constant of a recipe counts."""

from __future__ import annotations

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
