"""Labels of rows and inputs: rows that disagree and inputs in another order are refused; agreement changes no bit."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from sklearn.model_selection import cross_val_score, train_test_split

import dkl
from dkl.exact import KernelRidgeGD, KernelRidgeGDClassifier

N, M = 60, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, M))
Y, W = np.sin(X[:, 0]) + X[:, 1], RNG.uniform(0.5, 2.0, N)
LABELS = (X[:, 0] > 0).astype(int)
NAMES = ["red", "green", "blue", "nir"]
DAYS = pd.date_range("2020-01-01", periods=N, freq="D")
PLACES = pd.MultiIndex.from_product([["a", "b"], range(N // 2)], names=["site", "number"])
OPTIONS = {"n_components": 20, "sigma": 0.5, "random_state": 0}
INDEXES = {"dates": DAYS, "numbers": np.arange(N) * 1.5, "texts": [f"r{i:02d}" for i in range(N)]}
EXACT = {"sigma": 0.5, "alpha": 1.0, "learn": "none", "random_state": 0}


def rad(time=DAYS, channel=NAMES, values=X):
    """Labelled rows."""
    return xr.DataArray(values, dims=("time", "channel"), coords={"time": time, "channel": channel})


def t2m(time=DAYS, values=Y):
    """One value for each label."""
    return xr.DataArray(values, dims="time", coords={"time": time})


def regress(**options):
    """A regressor."""
    return dkl.SingleKernelRegressor(**(OPTIONS | options))


FITS = {
    "y": lambda X, y, w: regress().fit(X, y),
    "sample_weight": lambda X, y, w: regress().fit(X, Y, w),
    "weight of a transformer": lambda X, y, w: dkl.FourierFeatures(n_components=20, sigma=0.5).fit(X, sample_weight=w),
    "weight of landmarks": lambda X, y, w: dkl.NystroemFeatures(n_components=5, sigma=0.5).fit(X, sample_weight=w),
    "classes": lambda X, y, w: dkl.SingleKernelClassifier(**OPTIONS).fit(X, (y > 0).astype(int)),
    "exact": lambda X, y, w: KernelRidgeGD(**EXACT).fit(X, y),
    "exact classes": lambda X, y, w: KernelRidgeGDClassifier(**EXACT).fit(X, (y > 0).astype(int)),
    "cv": lambda X, y, w: regress(cv=(w > 1).astype(int), alpha=[1.0, 2.0]).fit(X, Y),
    "validation": lambda X, y, w: regress(learn="validation", validation=w > 1.2, tol=1.0).fit(X, Y),
    "evaluate": lambda X, y, w: regress().fit(X, Y).evaluate(X, y),
    "score": lambda X, y, w: regress().fit(X, Y).score(X, y),
    "score weight": lambda X, y, w: regress().fit(X, Y).score(X, Y, w),
    "exact score": lambda X, y, w: KernelRidgeGD(**EXACT).fit(X, Y).score(X, y),
}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", sorted(FITS))
def test_reversed_rows_are_refused(kind, lazy):
    """y, weights, folds or a mask in another order, by every method that takes them; in the same order all is well."""
    rows = rad().chunk(time=25) if lazy else rad()
    y, w = t2m(), t2m(values=W)
    FITS[kind](rows, y, w)
    told = "at row 0 X has time=2020-01-01 .* has time=2020-02-29 .*same labels in another order: use .*reindex_like"
    with pytest.raises(ValueError, match=told):
        FITS[kind](rows, y[::-1], w[::-1])


@pytest.mark.parametrize("index", sorted(INDEXES))
def test_what_the_refusal_says_to_type_gives_the_right_fit(index):
    """reindex_like, and xr.align: the bits of numpy arrays in the right order."""
    time = INDEXES[index]
    rows, y = rad(time), t2m(time)
    wanted = regress().fit(X, Y)
    model = regress().fit(rows, y[::-1].reindex_like(rows["time"]))
    np.testing.assert_array_equal(model.coef_, wanted.coef_)
    part = y[10:][::-1]
    with pytest.raises(ValueError, match=r"X has 60 rows along 'time', y has 50.*xr.align\(X, y, join='inner'\)"):
        regress().fit(rows, part)
    a, b = xr.align(rows, part, join="inner")
    keep = np.array([list(np.asarray(time)).index(t) for t in a["time"].values])
    assert sorted(keep) == list(range(10, N))
    np.testing.assert_array_equal(regress().fit(a, b).coef_, regress().fit(X[keep], Y[keep]).coef_)


def test_a_label_in_the_middle():
    """The first one that differs is named, with its row."""
    time = np.arange(N)
    time[17] = 99
    with pytest.raises(ValueError, match=r"at row 17 X has time=17 and y has time=99; use X, y = xr.align"):
        regress().fit(rad(np.arange(N)), t2m(time))


def test_several_levels():
    """A MultiIndex."""
    coords = xr.Coordinates.from_pandas_multiindex(PLACES, "time")
    rows = xr.DataArray(X, dims=("time", "channel"), coords=coords)
    y = xr.DataArray(Y, dims="time", coords=coords)
    np.testing.assert_array_equal(regress().fit(rows, y).coef_, regress().fit(X, Y).coef_)
    with pytest.raises(ValueError, match=r"at row 0 X has time=\('a', .*0\)* and y has time=\('b'"):
        regress().fit(rows, y[::-1])


def test_coordinates_without_an_index():
    """Times along an unnumbered dimension."""
    rows = xr.DataArray(X, dims=("sample", "channel"), coords={"time": ("sample", DAYS)})
    y = xr.DataArray(Y, dims="sample", coords={"time": ("sample", DAYS)})
    regress().fit(rows, y)
    with pytest.raises(ValueError, match=r"at row 0 X has time=2020-01-01 .* y.drop_vars\('time'\)"):
        regress().fit(rows, y[::-1])


def test_by_position_where_there_are_no_labels():
    """A side without labels, or without a name for its dimension, goes by position."""
    wanted = regress().fit(X, Y).coef_
    for y in (Y, t2m().drop_vars("time"), xr.DataArray(Y), pd.Series(Y), t2m()[::-1].data[::-1]):
        np.testing.assert_array_equal(regress().fit(rad(), y).coef_, wanted)
    np.testing.assert_array_equal(regress().fit(X, t2m()[::-1].values[::-1]).coef_, wanted)


def test_transposed_rows_are_told_their_dimensions():
    """By y's dimension, by its length, at predict, and for y itself."""
    said = r"X has dims \(channel, time\).*rows come first: use X.transpose\('time', 'channel'\)"
    model = regress().fit(rad(), t2m())
    for call in (
        lambda: regress().fit(rad().T, t2m()),
        lambda: regress().fit(rad().T, Y),
        lambda: model.predict(rad().T),
        lambda: model.predict(rad().T.drop_vars("channel")),
        lambda: regress().fit(xr.Dataset({"X": rad().T, "y": t2m()})),
    ):
        with pytest.raises(ValueError, match=said):
            call()
    square = rad()[:M]
    with pytest.raises(ValueError, match=said):
        regress().fit(square.T, t2m()[:M])
    two = xr.DataArray(np.array([Y, Y]), dims=("output", "time"), coords={"time": DAYS})
    with pytest.raises(ValueError, match=r"y has dims \(output, time\).*use y.transpose\('time', 'output'\)"):
        regress().fit(rad(), two)
    with pytest.raises(ValueError, match=r"use y.rename\({'hour': 'time'}\)"):
        regress().fit(rad(), t2m().rename(time="hour"))


def test_transposed_rows_in_a_zarr_group(tmp_path):
    """xarray's names of dimensions, in both Zarr formats."""
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        rows = xr.Dataset({"X": rad()[:M].T, "y": t2m()[:M]}).drop_vars("channel")
        rows.to_zarr(path, zarr_format=version, consolidated=False)
        with pytest.raises(ValueError, match=r"X.transpose\('time', 'channel'\)"):
            regress().fit(path)


# pandas


def test_pandas_rows_in_another_order():
    """The same labels in another order are refused; equal ones, fresh ones and shifted ones go by position."""
    frame, y = pd.DataFrame(X, columns=NAMES), pd.Series(Y)
    wanted = regress().fit(X, Y).coef_
    told = r"at row 0 X has 0 and y has 59; use y.reindex\(X.index\), or y.to_numpy\(\)"
    with pytest.raises(ValueError, match=told):
        regress().fit(frame, y[::-1])
    np.testing.assert_array_equal(regress().fit(frame, y[::-1].reindex(frame.index)).coef_, wanted)
    with pytest.raises(ValueError, match="sample_weight has 59"):
        regress().fit(frame, y, pd.Series(W)[::-1])
    with pytest.raises(ValueError, match=told):
        regress().fit(frame, y).score(frame, y[::-1])
    with pytest.raises(ValueError, match="same index labels in another order"):
        regress().fit(rad(), pd.Series(Y, index=DAYS[::-1]))
    fresh = frame.set_index(pd.Index(np.arange(N) * 7))
    np.testing.assert_array_equal(regress().fit(fresh, y).coef_, wanted)
    shifted = regress().fit(frame[:-1], y[1:])
    np.testing.assert_array_equal(shifted.coef_, regress().fit(X[:-1], Y[1:]).coef_)
    again = pd.Series(Y, index=np.zeros(N, int))
    np.testing.assert_array_equal(regress().fit(frame.set_index(again.index), again).coef_, wanted)


def test_scikit_learn_keeps_indexes_equal():
    """train_test_split and cross_val_score, shuffled."""
    from sklearn.model_selection import KFold

    frame, y = pd.DataFrame(X, columns=NAMES), pd.Series(Y)
    train, test, y_train, y_test = train_test_split(frame, y, random_state=0)
    assert np.isfinite(regress().fit(train, y_train).score(test, y_test))
    assert np.isfinite(cross_val_score(regress(), frame, y, cv=KFold(3, shuffle=True, random_state=0))).all()


# inputs


def stored(path, rows):
    """An xarray Zarr group of X and y."""
    xr.Dataset({"X": rows, "y": t2m()}).to_zarr(path, zarr_format=2, consolidated=False)
    return str(path)


@pytest.fixture(scope="module", params=["memory", "lazy", "zarr", "loaded"])
def named(request, tmp_path_factory):
    """A model of named inputs, from memory, lazy rows, a Zarr group, or after a save."""
    folder = tmp_path_factory.mktemp("named")
    if request.param == "zarr":
        return regress().fit(stored(folder / "rows.zarr", rad()))
    model = regress().fit(rad().chunk(time=25) if request.param == "lazy" else rad(), t2m())
    if request.param == "loaded":
        model.save(folder / "model.zarr")
        return dkl.load(folder / "model.zarr")
    return model


CALLS = {
    "predict": lambda model, rows: model.predict(rows),
    "evaluate": lambda model, rows: model.evaluate(rows, Y),
    "score": lambda model, rows: model.score(rows, Y),
    "blocks": lambda model, rows: list(model.predict_blocks(rows)),
    "kernel": lambda model, rows: model.kernel_matrix(rows),
}


@pytest.mark.parametrize("kind", ["memory", "lazy", "zarr", "pandas"])
def test_names_are_checked(named, kind, tmp_path):
    """The same names in the same order; another order, lacking and unseen ones are refused."""
    assert named.feature_names_in_.tolist() == NAMES
    plain = regress().fit(X, Y)
    np.testing.assert_array_equal(named.coef_, plain.coef_)

    def rows(array, place):
        if kind == "pandas":
            return array.to_pandas().reset_index(drop=True)
        if kind == "zarr":
            return stored(tmp_path / place, array)
        return array.chunk(time=25) if kind == "lazy" else array

    right, turned = rows(rad(), "right"), rows(rad()[:, ::-1], "reversed")
    other = rows(rad(channel=["red", "green", "blue", "swir"]), "other")
    for call in CALLS.values():
        call(named, right)
        with pytest.raises(ValueError, match=r"[Ff]eature names must be in the same order"):
            call(named, turned)
        with pytest.raises(ValueError, match=r"(?s)(lacks 'nir'.*'swir'|swir.*nir)"):
            call(named, other)


def test_the_selection_that_the_refusal_names():
    """X.sel(channel=model.feature_names_in_) predicts as before."""
    model = regress().fit(rad(), t2m())
    with pytest.raises(
        ValueError, match=r"input 0 was 'red', now it is 'nir'.*X.sel\(channel=model.feature_names_in_\)"
    ):
        model.predict(rad()[:, ::-1])
    chosen = rad()[:, ::-1].sel(channel=model.feature_names_in_)
    np.testing.assert_array_equal(model.predict(chosen), model.predict(rad()))
    with pytest.raises(ValueError, match="lacks 'nir'"):
        model.predict(rad()[:, :3])


TRANSFORMERS = {
    "fourier": lambda: dkl.FourierFeatures(n_components=20, sigma=0.5, random_state=0),
    "nystroem": lambda: dkl.NystroemFeatures(n_components=9, sigma=0.5, random_state=0),
    "pca": lambda: dkl.FeaturePCA(dkl.FourierFeatures(n_components=20, sigma=0.5, random_state=0), 3),
    "chi2": lambda: dkl.Chi2Features(),
}


@pytest.mark.parametrize("kind", sorted(TRANSFORMERS))
def test_names_of_transformers(kind, tmp_path):
    """transform, before and after a save."""
    rows = abs(rad())
    model = TRANSFORMERS[kind]().fit(rows)
    wanted = TRANSFORMERS[kind]().fit(abs(X)).transform(abs(X))
    model.save(tmp_path / "model.zarr")
    for one in (model, dkl.load(tmp_path / "model.zarr")):
        assert one.feature_names_in_.tolist() == NAMES
        np.testing.assert_array_equal(np.asarray(one.transform(rows)), wanted)
        with pytest.raises(ValueError, match="feature names must be in the same order"):
            one.transform(rows[:, ::-1])


def test_exact_models_know_names():
    """KernelRidgeGD too."""
    model = KernelRidgeGD(**EXACT).fit(rad(), t2m())
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="feature names must be in the same order"):
        model.predict(rad()[:, ::-1])


WAVES = np.array([0.45, 0.55, 0.65, 0.85])


MIXED = np.array(["a", "b", 2, 3.5], object)


@pytest.mark.parametrize("labels", [WAVES, np.array([3, 1, 7, 9]), pd.date_range("2020", periods=M), MIXED])
def test_labels_that_are_no_names(labels, tmp_path):
    """Wavelengths, numbers and dates must be equal if both sides have them, also after a save."""
    rows = rad(channel=labels)
    model = regress().fit(rows, t2m())
    assert not hasattr(model, "feature_names_in_")
    model.save(tmp_path / "model.zarr")
    for one in (model, dkl.load(tmp_path / "model.zarr")):
        wanted = regress().fit(X, Y).predict(X)
        for same in (rows, X, rows.drop_vars("channel"), rows.chunk(time=20)):
            np.testing.assert_array_equal(np.asarray(one.predict(same)), wanted)
        with pytest.raises(ValueError, match=r"the inputs of X are not those of the fit: input 0 is channel="):
            one.predict(rows[:, ::-1])


def test_wavelengths_in_float32():
    """Rounding is no difference; a step of the grid is."""
    model = regress().fit(rad(channel=WAVES), t2m())
    model.predict(rad(channel=WAVES.astype(np.float32)))
    with pytest.raises(ValueError, match=r"input 3 is channel=0.86, at fit it was 0.85"):
        model.predict(rad(channel=[0.45, 0.55, 0.65, 0.86]))


def test_names_are_forgotten_by_the_next_fit():
    """As scikit-learn does."""
    model = regress().fit(rad(), t2m())
    model.fit(X, Y)
    assert not hasattr(model, "feature_names_in_")
    model.fit(rad(channel=WAVES), t2m())
    model.fit(X, Y)
    assert not hasattr(model, "input_labels_")
    model.predict(rad(channel=WAVES[::-1]))


@pytest.mark.parametrize("lazy", [False, True])
def test_no_names_after_names(lazy):
    """scikit-learn's warning, at the user's line."""
    model = regress().fit(rad(), t2m())
    bare = rad().drop_vars("channel")
    with pytest.warns(UserWarning, match="does not have valid feature names") as caught:
        model.predict(bare.chunk(time=20) if lazy else bare)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(rad())


def test_rows_and_inputs_of_the_same_number_in_zarr(tmp_path):
    """A coordinate of the rows is none of the inputs, though it has their number."""
    rows = xr.Dataset({"X": rad()[:M], "y": t2m()[:M]}).assign_coords(site=("time", list("abcd")))
    rows.to_zarr(tmp_path / "r.zarr", zarr_format=2, consolidated=False)
    assert regress().fit(tmp_path / "r.zarr").feature_names_in_.tolist() == NAMES
    group = zarr.open_group(str(tmp_path / "r.zarr"), mode="r")
    assert "site" in group
    with pytest.raises(ValueError, match="groups='site' is not a coordinate of the inputs"):
        regress(groups="site").fit(tmp_path / "r.zarr")


@pytest.mark.parametrize("lazy", [False, True])
def test_predictions_have_no_name(lazy):
    """The name of a Dask graph is none of the prediction's."""
    rows = rad().chunk(time=25) if lazy else rad()
    assert regress().fit(rad(), t2m()).predict(rows).name is None
    assert dkl.FourierFeatures(n_components=20, sigma=0.5).fit(rad()).transform(rows).name is None
