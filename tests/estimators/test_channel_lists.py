"""X as a list of arrays of any kind: the model of one array; names are kept, and rows compared by their labels."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import dkl

N = 120
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=N)
TIME = pd.date_range("2020-01-01", periods=N)
WIND = xr.DataArray(X[:, :2], dims=("time", "band"), coords={"time": TIME, "band": ["u", "v"]}, name="wind")
SEA = xr.DataArray(X[:, 2:], dims=("time", "band"), coords={"time": TIME, "band": ["u", "b", "c"]}, name="sea")
FRAMES = [pd.DataFrame(X[:, :2], columns=["u", "v"]), pd.DataFrame(X[:, 2:], columns=["u", "b", "c"])]
LAZY = [dd.from_pandas(frame, npartitions=3) for frame in FRAMES]
NAMES = ["u", "v", "u", "b", "c"]
WITH_CHANNEL = [f"{'wind' if i < 2 else 'sea'} {name}" for i, name in enumerate(NAMES)]
WITH_NUMBER = [f"{int(i > 1)} {name}" for i, name in enumerate(NAMES)]
LISTS = {
    "arrays": ([WIND, SEA], ["wind", "sea"], WITH_CHANNEL),
    "lazy": ([WIND.chunk(time=50), SEA.chunk(time=70)], ["wind", "sea"], WITH_CHANNEL),
    "one lazy": ([WIND, SEA.chunk(time=70)], ["wind", "sea"], WITH_CHANNEL),
    "own names": ([WIND, SEA.assign_coords(band=list("abc"))], ["wind", "sea"], ["u", "v", "a", "b", "c"]),
    "no names": ([WIND.rename(None), SEA.rename(None)], ["0", "1"], WITH_NUMBER),
    "one name": ([WIND, SEA.rename("wind")], ["0", "1"], WITH_NUMBER),
    "with numpy": ([X[:, :2], SEA], ["0", "1"], None),
    "with dask": ([WIND, da.from_array(X[:, 2:], chunks=(40, 2))], ["0", "1"], None),
    "with a frame": ([WIND, FRAMES[1].set_index(TIME)], ["0", "1"], WITH_NUMBER),
    "frames": (FRAMES, ["0", "1"], WITH_NUMBER),
    "lazy frames": (LAZY, ["0", "1"], WITH_NUMBER),
}


def model():
    """Not fitted yet."""
    return dkl.MultipleKernelRegressor(["gaussian:0.7"], 12, alpha=1.0, random_state=0, verbose=0)


@pytest.mark.parametrize("kind", LISTS)
def test_the_model_of_one_array(kind, tmp_path):
    """The same predictions; names of channels and inputs are kept, and those of a loaded model too."""
    given, channels, names = LISTS[kind]
    right = model().set_params(channels=[slice(0, 2), slice(2, 5)]).fit(X, Y).predict(X)
    fitted = model().fit(given, Y)
    fitted.save(tmp_path / "m.zarr")
    for one in (fitted, dkl.load(tmp_path / "m.zarr")):
        found = one.predict(given)
        np.testing.assert_allclose(np.asarray(found), right, atol=1e-12)
        assert one.kernel_weights_.channel.values.tolist() == channels
        assert list(getattr(one, "feature_names_in_", [])) == (names or [])
        if isinstance(given[1], xr.DataArray) or kind == "with dask":
            assert found.dims == ("time",)
            assert found.indexes["time"].equals(TIME)
        residual = ((Y - right) ** 2).sum()
        assert float(one.score(given, Y)) == pytest.approx(1 - residual / ((Y - Y.mean()) ** 2).sum())
        assert one.evaluate(given, Y)["r2"] == pytest.approx(1 - residual / ((Y - Y.mean()) ** 2).sum())
    assert "does NOT" not in str(dkl.plan(given, model(), Y))


def test_targets_are_compared_with_the_rows():
    """As with one array."""
    y = xr.DataArray(Y, dims="time", coords={"time": TIME})
    np.testing.assert_array_equal(model().fit([WIND, SEA], y).coef_, model().fit([WIND, SEA], Y).coef_)
    with pytest.raises(ValueError, match="rows of X and y disagree"):
        model().fit([WIND, SEA], y[::-1])


OTHER_ROWS = {
    "order": ([WIND, SEA[::-1]], r"rows of X\[0\] and X\[1\] disagree: at row 0 .* use X\[1\].reindex_like\(X\[0\]"),
    "labels": ([WIND, SEA.assign_coords(time=TIME + pd.Timedelta("1D"))], r"xr.align\(X\[0\], X\[1\], join='inner'\)"),
    "dims": ([WIND, SEA.rename(time="row")], r"rows of X\[0\] are along 'time', those of X\[1\] along 'row'"),
    "numpy first": ([X[:, :2], WIND, SEA[::-1]], r"rows of X\[1\] and X\[2\] disagree"),
    "count": ([WIND, SEA[:50]], r"X\[0\] has 120 rows and X\[1\] has 50"),
    "frame": ([WIND, FRAMES[1].set_index(TIME[::-1])], r"same index labels in another order: at row 0 X"),
    "frames": ([FRAMES[0], FRAMES[1][::-1]], r"X\[1\] has other rows than X\[0\] \(its index differs, e.g. 0 beside"),
    "frames, numpy": ([X[:, :1], FRAMES[0], FRAMES[1][::-1]], r"X\[2\] has other rows than X\[1\]"),
    "lazy frames": ([LAZY[0], dd.from_pandas(FRAMES[1].set_index(FRAMES[1].index + 1), npartitions=3)],
                    r"X\[1\] has other rows than X\[0\] \(its index differs, e.g. \d+ beside \d+\)"),
    "lazy counts": ([LAZY[0], dd.from_pandas(FRAMES[1][:60], npartitions=3)], r"X\[0\] has 40 rows and X\[1\] has 20"),
    "partitions": ([LAZY[0], LAZY[1].repartition(npartitions=2)], r"X\[0\] has 3 partitions and X\[1\] has 2; use X"),
    "lazy and numpy": ([LAZY[0], X[:, 2:]], r"X\[1\] is a ndarray beside Dask dataframes; use .to_dask_array"),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHER_ROWS)
def test_rows_that_disagree(kind):
    """Are refused in one line, which says what to type."""
    given, sentence = OTHER_ROWS[kind]
    with pytest.raises(ValueError, match=sentence) as refusal:
        model().fit(given, Y)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([SEA, WIND], r"X has 2 arrays of \[3, 2\] columns; the fit had 2 channels of \[2, 3\]"),
        (
            [WIND, SEA.rename("ice")],
            r"X has arrays called \['wind', 'ice'\], and the channels of the fit",
        ),
        ([WIND, SEA.assign_coords(band=["u", "b", "d"])], "X lacks 'sea c' and X has, unseen at fit, 'sea d'"),
    ],
)
def test_other_channels_than_those_of_the_fit(given, sentence):
    """Are refused by their names; arrays without any are taken in order."""
    fitted = model().fit([WIND, SEA], Y)
    with pytest.raises(ValueError, match=sentence):
        fitted.predict(given)
    plain = [X[:, :2], X[:, 2:]]
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(fitted.predict(plain), fitted.predict([WIND, SEA]).values)
