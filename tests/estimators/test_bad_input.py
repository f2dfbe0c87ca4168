"""Bad input: one clear line that shows the offending value, and an estimator that stays as it was."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from sklearn.model_selection import ShuffleSplit, TimeSeriesSplit

import dkl

N, M = 120, 4
RNG = np.random.default_rng(0)
X, Y2 = RNG.standard_normal((N, M)), RNG.standard_normal((N, 2))
y, LABELS = X[:, 0] + 0.1 * Y2[:, 0], np.arange(N) % 3
OPTIONS = {"n_components": 20, "sigma": 0.5, "random_state": 0}


def with_entry(value, *places, of=X):
    """A copy with that value at those places."""
    out = np.array(of, dtype=float)
    for place in places:
        out[place] = value
    return out


def lazy(array, chunk=25):
    """A Dask array in row chunks."""
    array = np.asarray(array)
    return da.from_array(array, chunks=(chunk, *array.shape[1:]))


def regress(**options):
    """A regressor."""
    return dkl.SingleKernelRegressor(**(OPTIONS | options))


def classify(**options):
    """A classifier."""
    return dkl.SingleKernelClassifier(**(OPTIONS | options))


def embed(**options):
    """A transformer."""
    return dkl.FourierFeatures(**(OPTIONS | options))


NAN2 = with_entry(np.nan, (30, 2), (77, 1))
WEIGHT = np.ones(N)

# name: estimator, X, y, sample_weight, what the line must contain
REFUSED = {
    "NaN": (regress(), NAN2, y, None, ["NaN", "row 30", "column 2"]),
    "NaN scale": (regress(sigma="scale"), NAN2, y, None, ["NaN", "row 30", "column 2"]),
    "NaN classifier": (classify(), NAN2, LABELS, None, ["NaN", "row 30", "column 2"]),
    "NaN transformer": (embed(), NAN2, None, None, ["NaN", "row 30", "column 2"]),
    "NaN two in one row": (regress(), with_entry(np.nan, (30, 3), (30, 1)), y, None, ["NaN", "row 30", "column 1"]),
    "infinity": (regress(), with_entry(np.inf, (119, 0)), y, None, ["infinity", "row 119", "column 0"]),
    "minus infinity": (regress(), with_entry(-np.inf, (0, 3)), y, None, ["infinity", "row 0", "column 3"]),
    "inf and -inf": (
        regress(), with_entry(np.inf, (50, 1)) - with_entry(np.inf, (60, 1), of=0 * X), y, None, ["row 50", "column 1"],
    ),
    "NaN dask": (regress(), lazy(NAN2), y, None, ["NaN", "row 30", "column 2"]),
    "NaN dask scale": (regress(sigma="scale"), lazy(NAN2), y, None, ["NaN", "row 30", "column 2"]),
    "NaN dask classifier": (classify(), lazy(NAN2, 1), LABELS, None, ["NaN", "row 30", "column 2"]),
    "NaN dask transformer": (embed(sigma="scale"), lazy(NAN2), None, None, ["NaN", "row 30", "column 2"]),
    "NaN csr": (regress(), sp.csr_array(NAN2), y, None, ["NaN", "row 30", "column 2"]),
    "NaN csc": (regress(), sp.csc_matrix(NAN2), y, None, ["NaN", "row 30", "column 2"]),
    "NaN float32": (regress(), NAN2.astype(np.float32), y, None, ["NaN", "row 30", "column 2"]),
    "NaN y": (regress(), X, with_entry(np.nan, 41, 90, of=y), None, ["y", "NaN", "row 41"]),
    "NaN y second output": (regress(), X, with_entry(np.nan, (41, 1), of=Y2), None, ["y", "NaN", "row 41", "column 1"]),
    "NaN lazy y": (regress(), lazy(X), lazy(with_entry(np.inf, 41, 90, of=y)), None, ["y", "infinity", "row 41"]),
    "NaN labels": (classify(), X, with_entry(np.nan, 41, of=LABELS), None, ["y", "NaN", "row 41"]),
    "NaN lazy labels": (classify(), lazy(X), lazy(with_entry(np.nan, 41, of=LABELS)), None, ["y", "NaN", "row 41"]),
    "strings": (regress(), np.full((N, M), "pear"), y, None, ["<U4"]),
    "strings dask": (regress(), lazy(np.full((N, M), "pear")), y, None, ["<U4"]),
    "string y": (regress(), X, np.full(N, "pear"), None, ["<U4"]),
    "continuous labels": (classify(), X, y, None, ["continuous"]),
    "continuous lazy labels": (classify(), lazy(X), lazy(y), None, ["continuous"]),
    "one class": (classify(), X, np.full(N, "fig"), None, ["one class", "'fig'"]),
    "one class number": (classify(), X, np.full(N, 7), None, ["one class", " 7;"]),
    "two columns of labels": (classify(), X, np.column_stack([LABELS, LABELS]), None, ["2 columns"]),
    "zero weights": (regress(), X, y, 0 * WEIGHT, ["sample_weight", "zero"]),
    "zero weights classifier": (classify(), X, LABELS, 0 * WEIGHT, ["sample_weight", "zero"]),
    "zero weights transformer": (embed(sigma="scale"), X, None, 0 * WEIGHT, ["sample_weight", "zero"]),
    "one class left by weights": (classify(), X, LABELS, (LABELS == 2) * 1.0, ["2", "positive weight"]),
    "negative weight": (regress(), X, y, with_entry(-0.5, 17, 40, of=WEIGHT), ["sample_weight", "-0.5", "row 17"]),
    "negative lazy weight": (
        classify(), lazy(X), LABELS, lazy(with_entry(-0.5, 17, 40, of=WEIGHT)), ["sample_weight", "-0.5", "row 17"],
    ),
    "NaN weight": (regress(), X, y, with_entry(np.nan, 17, of=WEIGHT), ["sample_weight", "nan", "row 17"]),
    "short weights": (regress(), X, y, WEIGHT[:-1], ["120", "119", "sample_weight"]),
    "short weights transformer": (embed(sigma="scale"), X, None, WEIGHT[:-1], ["120", "119", "sample_weight"]),
    "wide weights": (regress(), X, y, np.ones((N, 2)), ["sample_weight", "2 dimensions"]),
    "short y": (regress(), X, y[:-3], None, ["120", "117", "y"]),
    "long lazy y": (regress(), lazy(X), lazy(np.append(y, 1.0)), None, ["120", "121", "y"]),
    "short labels": (classify(), X, LABELS[:-3], None, ["120", "117", "y"]),
    "no y": (regress(), X, None, None, ["y", "None"]),
    "y of three dimensions": (regress(), X, y.reshape(-1, 1, 1), None, ["y", "3 dimensions"]),
    "negative entry": (
        regress(kernel="skewed_chi2"), with_entry(-1.5, (61, 1), (80, 0), of=abs(X)), y, None,
        ["-1.5", "row 61", "column 1", "skewed_chi2"],
    ),
    "negative entry dask": (
        classify(kernel="skewed_intersection"), lazy(with_entry(-1.5, (61, 1), (80, 0), of=abs(X))), LABELS, None,
        ["-1.5", "row 61", "column 1", "skewed_intersection"],
    ),
    "negative entry sparse": (
        embed(kernel="skewed_chi2", sigma="scale"), sp.csr_array(with_entry(-1.5, (61, 1), of=abs(X))), None, None,
        ["-1.5", "row 61", "column 1"],
    ),
    "three dimensions": (regress(), X[None], y, None, ["3"]),
    "three dimensions dask": (regress(), da.from_array(X[None]), y, None, ["3"]),
    "one dimension": (regress(), X[:, 0], y, None, ["1D"]),
    "one dimension dask": (regress(), lazy(X[:, 0]), y, None, ["1"]),
    "complex": (regress(), X + 2j, y, None, ["omplex"]),
    "complex dask": (regress(), lazy(X + 2j), y, None, ["complex128"]),
    "no rows": (regress(), X[:0], y[:0], None, ["0"]),
    "no rows dask": (regress(), lazy(X[:0]), y[:0], None, ["0 sample"]),
    "no columns": (regress(), X[:, :0], y, None, ["0 feature"]),
    "no columns dask": (regress(), lazy(X[:, :0]), y, None, ["0 feature"]),
    "missing Zarr": (regress(), "/nowhere/rows.zarr", y, None, ["/nowhere/rows.zarr"]),
    "missing Zarr transformer": (embed(), "/nowhere/rows.zarr", None, None, ["/nowhere/rows.zarr"]),
    "unknown class": (classify(class_weight={0: 1.0, 9: 2.0}), X, LABELS, None, ["class_weight", "9", "[0, 1, 2]"]),
    "misspelt class weight": (classify(class_weight="balance"), X, LABELS, None, ["'balance'", "'balanced'"]),
    "negative class weight": (classify(class_weight={0: -2.0}), X, LABELS, None, ["class_weight", "-2.0"]),
    "class weight of a wrong kind": (classify(class_weight=3.0), X, LABELS, None, ["class_weight=3.0"]),
    "all class weights zero": (classify(class_weight={0: 0, 1: 0, 2: 0}), X, LABELS, None, ["of 3 classes only []"]),
    "alpha of wrong length": (regress(alpha=[1.0, 2.0, 3.0]), X, Y2, None, ["alpha", "(3,)", "2 outputs"]),
    "empty list of alpha": (regress(alpha=[], cv=3), X, y, None, ["alpha=[]"]),
    "fold array of wrong length": (regress(cv=np.arange(N - 1) % 3), X, y, None, ["cv", "119", "120"]),
    "one fold for all": (regress(cv=np.zeros(N, int)), X, y, None, ["cv", "fold", "0"]),
    "empty cv": (regress(cv=[]), X, y, None, ["cv=[]"]),
    "splitter that leaves rows out": (regress(cv=ShuffleSplit(3, test_size=0.2, random_state=0)), X, y, None, ["cv"]),
    "splitter that grows": (regress(cv=TimeSeriesSplit(3)), X, y, None, ["cv", "120"]),
}  # fmt: skip

# parameters that every estimator refuses, and what the line must contain
PARAMETERS = [
    ("n_components", 0, ["n_components=0"]),
    ("n_components", -3, ["n_components=-3"]),
    ("n_components", 2.5, ["n_components=2.5"]),
    ("n_components", "many", ["n_components='many'"]),
    ("n_components", True, ["n_components=True"]),
    ("n_components", None, ["n_components=None"]),
    ("kernel", "gausian", ["kernel='gausian'", "did you mean 'gaussian'"]),
    ("kernel", "matern_32", ["kernel='matern_32'", "did you mean 'matern32'"]),
    ("kernel", 7, ["kernel=7"]),
    ("form", "pared", ["form='pared'", "did you mean 'paired'"]),
    ("frequencies", "ortogonal", ["frequencies='ortogonal'", "did you mean 'orthogonal'"]),
    ("sigma", "scal", ["sigma='scal'", "did you mean 'scale'"]),
    ("sigma", -1.0, ["sigma", "-1.0"]),
    ("sigma", np.nan, ["sigma", "nan"]),
    ("sigma", [1.0, 2.0], ["sigma", "(2,)"]),
    ("groups", [0, 1], ["groups", "(2,)", "4"]),
    ("groups", [slice(0, 2)], ["groups", "input 2"]),
    ("groups", "band", ["groups='band'"]),
    ("groups", 3, ["groups=3"]),
    ("skew", 0, ["skew=0"]),
    ("dtype", "float16", ["'float16'"]),
    ("dtype", 3, ["dtype=3"]),
    ("place", "sheduler", ["place='sheduler'", "did you mean 'scheduler'"]),
    ("alpha", -1.0, ["alpha", "-1.0"]),
    ("alpha", "big", ["alpha='big'"]),
    ("alpha", np.inf, ["alpha", "inf"]),
    ("alpha", None, ["alpha=None"]),
    ("cv", 1, ["cv=1"]),
    ("cv", 0, ["cv=0"]),
    ("cv", 2.5, ["cv=2.5"]),
    ("cv", "five", ["cv='five'"]),
    ("cv", 121, ["cv=121", "120"]),
    ("learn", "sigma", ["learn='sigma'"]),
]


def refused(call, parts):
    """The call raises one line with all the parts in it."""
    with pytest.raises(ValueError) as caught:
        call()
    line = str(caught.value)
    assert "\n" not in line
    assert "np.float64" not in line
    assert len(line) < 400
    for part in parts:
        assert part in line, line


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_bad_data(name):
    """A fresh estimator stays unfitted; a fitted one still predicts what it did."""
    model, rows, target, weight, parts = REFUSED[name]
    fresh = type(model)(**model.get_params())
    before = dict(vars(fresh))
    refused(lambda: fresh.fit(rows, target, sample_weight=weight), parts)
    assert set(vars(fresh)) == set(before)
    good = (np.abs(X), LABELS)
    fitted = type(model)(**OPTIONS).fit(*good)
    answer = fitted.transform if hasattr(fitted, "transform") else fitted.predict
    first, params = answer(good[0]), model.get_params()
    fitted.set_params(**params)
    refused(lambda: fitted.fit(rows, target, sample_weight=weight), parts)
    fitted.set_params(**OPTIONS)
    np.testing.assert_array_equal(answer(good[0]), first)


@pytest.mark.parametrize("cls", [dkl.FourierFeatures, dkl.SingleKernelRegressor, dkl.SingleKernelClassifier])
@pytest.mark.parametrize(("parameter", "value", "parts"), PARAMETERS, ids=lambda v: str(v)[:20])
def test_bad_parameter(cls, parameter, value, parts):
    """Every estimator that has the parameter refuses the value, with numpy rows and with lazy ones."""
    options = OPTIONS | {parameter: value}
    if parameter not in cls().get_params():
        with pytest.raises(TypeError, match=parameter):
            cls(**options)
        return
    for rows in (X, lazy(X)):
        model = cls(**options)
        refused(lambda model=model, rows=rows: model.fit(rows, LABELS), parts)
        assert not [name for name in vars(model) if name.endswith("_")]


FITTED = {
    "transform": lambda: embed().fit(X).transform,
    "predict values": lambda: regress().fit(X, y).predict,
    "predict classes": lambda: classify().fit(X, LABELS).predict,
    "decision_function": lambda: classify().fit(X, LABELS).decision_function,
    "kernel_matrix": lambda: regress().fit(X, y).kernel_matrix,
}


@pytest.mark.parametrize("name", sorted(FITTED))
@pytest.mark.parametrize("kind", ["numpy", "dask", "sparse", "zarr"])
def test_wrong_width_at_predict(name, kind, tmp_path):
    """Both widths are named, before anything is computed."""
    method, rows = FITTED[name](), X[:, :3]
    if kind == "zarr":
        zarr.create_array(str(tmp_path / "a"), data=rows)
    rows = {"numpy": rows, "dask": lazy(rows), "sparse": sp.csr_array(rows), "zarr": tmp_path / "a"}[kind]
    refused(lambda: method(rows), ["3 features", "4 features"])


@pytest.mark.parametrize("name", sorted(FITTED))
@pytest.mark.parametrize("kind", ["numpy", "sparse"])
def test_nan_at_predict_names_row_and_column(name, kind):
    """The first of two, in rows that are in memory."""
    method = FITTED[name]()
    refused(lambda: method(NAN2 if kind == "numpy" else sp.csr_array(NAN2)), ["NaN", "row 30", "column 2"])


@pytest.mark.parametrize("name", sorted(FITTED))
def test_nan_at_lazy_predict_names_a_row_one_can_find(name):
    """Lazy rows name the row of the data, or say that they count from the start of the block."""
    method, rows = FITTED[name](), lazy(with_entry(np.nan, (30, 2)))
    with pytest.raises(ValueError) as caught:
        np.asarray(method(rows))
    line = str(caught.value)
    assert "NaN" in line
    assert "column 2" in line
    assert "\n" not in line
    assert "row 30," in line or ("row 5," in line and "start of the block" in line)


@pytest.mark.parametrize("cls", [dkl.FourierFeatures, dkl.SingleKernelRegressor, dkl.SingleKernelClassifier])
def test_unfitted(cls):
    """Using an estimator before fit is scikit-learn's own error."""
    from sklearn.exceptions import NotFittedError

    model = cls()
    method = model.transform if hasattr(model, "transform") else model.predict
    for call in (
        lambda: method(X),
        lambda: method(lazy(X)),
        lambda: model.save("/tmp/never"),
        lambda: model.kernel_matrix(X),
    ):
        with pytest.raises(NotFittedError):
            call()


def test_misspelt_constructor_parameter():
    """No catch-all keyword."""
    with pytest.raises(TypeError, match="n_component"):
        dkl.SingleKernelRegressor(n_component=3)


def test_zarr_group_without_the_array(tmp_path):
    """The group's own arrays are listed."""
    group = zarr.open_group(str(tmp_path / "g"), mode="w")
    group.create_array("rows", data=X)
    refused(lambda: regress().fit(tmp_path / "g", y), ["'X'", "['rows']"])


def test_block_that_lies_about_its_rows():
    """A Dask array whose blocks are not as long as it says."""
    rows = lazy(X).map_blocks(lambda block: block[:-1], dtype=float, meta=np.empty((0, 0)))
    refused(lambda: regress().fit(rows, y), ["115", "120"])
