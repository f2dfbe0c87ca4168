"""Coordinates of an xarray Zarr in the data set made of it: names of inputs, what else lies along them and the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import dkl
from tests.cli.in_process import dkl_in, done

N, M = 80, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, M)).astype(np.float32)
Y = X[:, 0] + X[:, 1] ** 2
NAMES = ["red", "green", "blue", "nir"]
WAVES = np.array([0.65, 0.55, 0.45, 0.85])
DAYS = pd.date_range("2020-01-01", periods=N, freq="D")
SITES = np.array([f"s{i % 7}" for i in range(N)])


def made(path, names=NAMES, order=slice(None), rows=slice(None)):
    """A Zarr group as xarray writes it, with columns and rows in some order."""
    xr.Dataset(
        {"X": (("time", "band"), X[rows][:, order]), "y": ("time", Y[rows])},
        coords={
            "time": DAYS[rows], "band": np.array(names)[order],
            "wave": ("band", WAVES[order]), "site": ("time", SITES[rows]),
        },
    ).to_zarr(path, zarr_format=2, consolidated=False)  # fmt: skip
    return str(path)


def test_coordinates_are_kept(tmp_path):
    """Names, wavelengths, times and sites, in every split; xarray reads them back."""
    dkl.ingest(made(tmp_path / "rows.zarr"), tmp_path / "d.zarr", split={"test": 0.3}, task="regression", verbose=0)
    for split in ("train", "test"):
        found = xr.open_zarr(tmp_path / "d.zarr" / split, consolidated=False).load()
        numbers = found["row"].values
        assert len(numbers) > 10
        assert found["input"].values.tolist() == NAMES
        np.testing.assert_array_equal(found["wave"], WAVES)
        np.testing.assert_array_equal(found["time"], DAYS[numbers])
        assert found["site"].values.tolist() == SITES[numbers].tolist()
        np.testing.assert_array_equal(found["X"], X[numbers])
        np.testing.assert_array_equal(found["y"], Y[numbers])
        assert {"wave", "time", "site"} <= set(found.coords)


def test_models_of_such_data_sets_know_the_names(tmp_path):
    """In Python: names of the model, refusals of another order from xarray, Zarr and another data set."""
    dkl.ingest(made(tmp_path / "rows.zarr"), tmp_path / "d.zarr", task="regression", verbose=0)
    options = {"n_components": 20, "sigma": 0.5, "random_state": 0, "groups": "wave", "verbose": 0}
    model = dkl.SingleKernelRegressor(**options).fit(tmp_path / "d.zarr")
    assert model.feature_names_in_.tolist() == NAMES
    model.save(tmp_path / "m.zarr")
    turned = made(tmp_path / "turned.zarr", order=[3, 2, 1, 0])
    dkl.ingest(turned, tmp_path / "other.zarr", task="regression", verbose=0)
    for one in (model, dkl.load(tmp_path / "m.zarr")):
        for rows in (turned, tmp_path / "other.zarr", xr.open_zarr(turned, consolidated=False)["X"]):
            with pytest.raises(ValueError, match="feature names must be in the same order"):
                one.predict(rows)
        wanted = np.asarray(one.predict(tmp_path / "d.zarr"))
        np.testing.assert_array_equal(one.predict(xr.open_zarr(tmp_path / "d.zarr", consolidated=False)["X"]), wanted)


def test_the_command_line_goes_by_name(tmp_path):
    """predict reads columns of another order by name, as those of tables; names that are not there are refused."""
    rows, turned = made(tmp_path / "rows.zarr"), made(tmp_path / "turned.zarr", order=[3, 2, 1, 0])
    other = made(tmp_path / "other.zarr", names=["red", "green", "blue", "swir"])
    done(tmp_path, "ingest", rows, "d.zarr", "--task", "regression")
    done(tmp_path, "fit", "d.zarr", "m.zarr", "--n-components", 20)
    for name, data in (("a", rows), ("b", turned)):
        done(tmp_path, "predict", "m.zarr", data, f"{name}.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    said = dkl_in(tmp_path, "predict", "m.zarr", other, "c.csv")
    assert said.code == 1
    assert "has no column 'nir'" in said.err
    done(tmp_path, "ingest", turned, "t.zarr", "--task", "regression")
    said = dkl_in(tmp_path, "evaluate", "m.zarr", "t.zarr")
    assert said.code == 1
    assert "columns of channel" in said.err


def test_channels_whose_rows_disagree(tmp_path):
    """Two sources as channels, one of them backwards."""
    a, b = made(tmp_path / "a.zarr"), made(tmp_path / "b.zarr", rows=slice(None, None, -1))
    with pytest.raises(ValueError, match=r"row 0 has (site|time|the target) .* in .* and .* in "):
        dkl.ingest([a, b], tmp_path / "d.zarr", target="none", verbose=0)
    dkl.ingest([a, made(tmp_path / "c.zarr")], tmp_path / "e.zarr", task="regression", verbose=0)
    found = xr.open_zarr(tmp_path / "e.zarr", consolidated=False).load()
    np.testing.assert_array_equal(found["time"], DAYS)
    assert found["input"].values.tolist()[:2] == ["a red", "a green"]


def test_transposed_sources_are_told_their_dimensions(tmp_path):
    """y tells which dimension the rows are."""
    xr.Dataset({"X": (("band", "time"), X.T), "y": ("time", Y)}).to_zarr(
        tmp_path / "t.zarr", zarr_format=2, consolidated=False
    )
    with pytest.raises(ValueError, match=r"X with dims \(band, time\).*save X.transpose\('time', 'band'\)"):
        dkl.ingest(tmp_path / "t.zarr", tmp_path / "d.zarr", verbose=0)
