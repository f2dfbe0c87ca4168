"""One fit, every kind of input: the same coefficients, and an output that looks like the input."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr

import dkl

N, M = 150, 5
OPTIONS = {"n_components": 40, "sigma": 0.5, "random_state": 0, "alpha": 0.5}


def make_rows():
    """Rows with zeros (for the sparse kinds), one target, three classes and weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, M))
    X[np.abs(X) < 0.3] = 0.0
    y = np.sin(X[:, 0]) + X[:, 1]
    return X, y, np.digitize(X[:, 2], [-0.5, 0.5]), rng.uniform(0.5, 2.0, N)


X, y, LABELS, W = make_rows()


def dense(a):
    """The values of any output."""
    a = a.compute() if hasattr(a, "compute") else a
    return np.asarray(a.values if hasattr(a, "values") else a)


def uneven(sizes):
    """X in row chunks of those sizes."""
    return da.from_array(X, chunks=(sizes, M))


def unknown(a):
    """The same array with unknown chunk sizes."""
    return a[a[:, 0] > -np.inf]


def sparse_blocks(kind):
    """A Dask array whose blocks are scipy.sparse."""
    return da.from_array(X, chunks=(40, M)).map_blocks(kind, meta=kind(np.zeros((0, M))))


def dask_frame():
    """A Dask dataframe."""
    import dask.dataframe as dd

    return dd.from_pandas(pd.DataFrame(X, columns=list("abcde")), npartitions=4)


def data_array(values):
    """A labelled array."""
    return xr.DataArray(
        values, dims=("time", "channel"), coords={"time": 10.0 + np.arange(N), "channel": list("abcde")}
    )


KINDS = {
    "list": lambda: X.tolist(),
    "fortran order": lambda: np.asfortranarray(X),
    "not contiguous": lambda: np.repeat(X, 2, axis=1)[:, ::2],
    "pandas": lambda: pd.DataFrame(X, columns=list("abcde")),
    "dask chunks of 1": lambda: uneven(1),
    "dask chunks of 7": lambda: uneven(7),
    "dask chunks of 64": lambda: uneven(64),
    "dask one chunk": lambda: uneven(N),
    "dask unknown": lambda: unknown(uneven(40)),
    "dask empty blocks": lambda: uneven((0, 50, 0, 0, 99, 1, 0)),
    "dask unknown and empty": lambda: da.concatenate([uneven(70)[X[:, 0] > 99.0], unknown(uneven(70))]),
    "dask shared mean": lambda: (lambda a: (a - a.mean(0)) + X.mean(0))(uneven(40)),
    "dask dataframe": dask_frame,
    "xarray": lambda: data_array(X),
    "xarray of dask": lambda: data_array(uneven(40)),
    "xarray dataset": lambda: xr.Dataset({"X": data_array(X), "other": ("z", [1, 2])}),
    **{
        f"{kind.__name__}": (lambda kind=kind: kind(X))
        for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array, sp.coo_matrix)
    },
    "dask of csr_matrix": lambda: sparse_blocks(sp.csr_matrix),
    "dask of csr_array": lambda: sparse_blocks(sp.csr_array),
    "dask of csc_matrix": lambda: sparse_blocks(sp.csc_matrix),
}


@pytest.fixture(scope="module")
def oracle():
    """numpy fits with fixed sigma and with sigma='scale', both weighted, and a classifier."""
    return {
        "fixed": dkl.SingleKernelRegressor(**OPTIONS).fit(X, y, W),
        "scale": dkl.SingleKernelRegressor(**(OPTIONS | {"sigma": "scale"})).fit(X, y, W),
        "classes": dkl.SingleKernelClassifier(**OPTIONS).fit(X, LABELS, W),
    }


def assert_same_fit(rows, oracle, target=y, labels=LABELS, weight=W, predict_from=None):
    """All three models from these rows equal those from numpy."""
    again = rows if predict_from is None else predict_from
    for name, sigma in (("fixed", 0.5), ("scale", "scale")):
        model = dkl.SingleKernelRegressor(**(OPTIONS | {"sigma": sigma})).fit(rows, target, weight)
        np.testing.assert_allclose(model.coef_, oracle[name].coef_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(dense(model.predict(again)), oracle[name].predict(X), rtol=1e-9, atol=1e-11)
    model = dkl.SingleKernelClassifier(**OPTIONS).fit(rows, labels, weight)
    np.testing.assert_allclose(model.coef_, oracle["classes"].coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(dense(model.predict(again)), oracle["classes"].predict(X))
    wanted = oracle["classes"].decision_function(X)
    np.testing.assert_allclose(dense(model.decision_function(again)), wanted, rtol=1e-9, atol=1e-11)


def test_numpy_equals_explicit_ridge(oracle):
    """The reference of this file is itself right."""
    from sklearn.linear_model import Ridge

    Psi = dkl.FourierFeatures(n_components=40, sigma=0.5, random_state=0).fit(X).transform(X)
    wanted = Ridge(alpha=0.5, solver="cholesky").fit(Psi, y, sample_weight=W)
    np.testing.assert_allclose(oracle["fixed"].coef_, wanted.coef_, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_same_fit_from_every_kind(kind, oracle):
    """Every kind of X with y and weights in numpy."""
    assert_same_fit(KINDS[kind](), oracle)


def test_split_columns_are_rechunked_with_a_warning(oracle):
    """Columns over several chunks."""
    with pytest.warns(UserWarning, match=r"columns of X are split.*\(2, 2, 1\)"):
        assert_same_fit(da.from_array(X, chunks=(40, 2)), oracle)


@pytest.mark.parametrize("chunk", [1, 7, 64, N])
def test_lazy_y_and_weights(chunk, oracle):
    """y, labels and weights as Dask arrays, chunked unlike X."""
    lazy = [da.from_array(a, chunks=chunk) for a in (y, LABELS, W)]
    assert_same_fit(uneven(40), oracle, *lazy)
    assert_same_fit(X, oracle, *lazy)


def test_unknown_rows_everywhere(oracle):
    """X, y and weights all of unknown length."""
    keep = uneven(40)[:, 0] > -np.inf
    lazy = [da.from_array(a, chunks=40)[keep] for a in (y, LABELS, W)]
    assert_same_fit(unknown(uneven(40)), oracle, *lazy)


def test_dask_series_as_target(oracle):
    """Columns of one Dask dataframe as y and weight."""
    import dask.dataframe as dd

    frame = dd.from_pandas(pd.DataFrame({"y": y, "k": LABELS, "w": W}), npartitions=3)
    assert_same_fit(dask_frame(), oracle, frame["y"], frame["k"], frame["w"])


def test_pandas_series_as_target(oracle):
    """Columns of one pandas dataframe, with an index that is not 0 .. n-1."""
    frame = pd.DataFrame({"y": y, "k": LABELS, "w": W}, index=np.arange(N)[::-1])
    assert_same_fit(pd.DataFrame(X, index=frame.index), oracle, frame["y"], frame["k"], frame["w"])


@pytest.mark.parametrize("lazy", [False, True])
def test_dataset_brings_its_own_target(lazy, oracle):
    """xarray Dataset with X and y, in memory and lazy."""
    rows = xr.Dataset({"X": data_array(X), "y": ("time", y)})
    rows = rows.chunk(time=40) if lazy else rows
    model = dkl.SingleKernelRegressor(**OPTIONS).fit(rows, sample_weight=W)
    np.testing.assert_allclose(model.coef_, oracle["fixed"].coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(dense(model.predict(rows)), oracle["fixed"].predict(X), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("shards", [None, (64, M)])
@pytest.mark.parametrize("chunks", [(16, M), (16, 2), (N, 1)])
def test_zarr_paths_and_arrays(tmp_path, oracle, chunks, shards):
    """A path as str or Path, a zarr.Array, a sharded array; columns may be split on disk."""
    if shards:
        chunks = (16, M)
    zarr.create_array(str(tmp_path / "a.zarr"), data=X, chunks=chunks, shards=shards)
    for rows in (str(tmp_path / "a.zarr"), tmp_path / "a.zarr", zarr.open_array(str(tmp_path / "a.zarr"), mode="r")):
        assert_same_fit(rows, oracle)


def test_zarr_group_brings_its_own_target(tmp_path, oracle):
    """A group with X and y."""
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    group.create_array("X", data=X, chunks=(16, M))
    group.create_array("y", data=y, chunks=(50,))
    model = dkl.SingleKernelRegressor(**OPTIONS).fit(tmp_path / "g.zarr", sample_weight=W)
    np.testing.assert_allclose(model.coef_, oracle["fixed"].coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(dense(model.predict(str(tmp_path / "g.zarr"))), oracle["fixed"].predict(X), rtol=1e-9)


@pytest.mark.parametrize("groups", ["band", None])
def test_groups_from_a_coordinate(groups):
    """groups names an xarray coordinate of the inputs; the same as integer labels."""
    rows = data_array(X).assign_coords(band=("channel", ["red", "red", "blue", "blue", "red"]))
    options = OPTIONS | {"sigma": [0.2, 0.9] if groups else 0.5}
    for lazy in (rows, rows.chunk(time=40)):
        model = dkl.SingleKernelRegressor(**options, groups=groups).fit(lazy, y)
        wanted = [0.9, 0.9, 0.2, 0.2, 0.9] if groups else [0.5] * 5
        np.testing.assert_array_equal(model.sigma_, wanted)
        plain = dkl.SingleKernelRegressor(**(options | {"sigma": wanted})).fit(X, y)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9, atol=1e-11)


def test_groups_from_a_coordinate_in_a_zarr_group(tmp_path):
    """A coordinate array beside X on disk."""
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    group.create_array("X", data=X, chunks=(16, M))
    group.create_array("band", data=np.array([1, 1, 0, 0, 1]))
    model = dkl.SingleKernelRegressor(**(OPTIONS | {"sigma": [0.2, 0.9]}), groups="band").fit(tmp_path / "g.zarr", y)
    np.testing.assert_array_equal(model.sigma_, [0.9, 0.9, 0.2, 0.2, 0.9])


OUTPUTS = {
    "transform": lambda: dkl.FourierFeatures(n_components=40, sigma=0.5, random_state=0).fit(X).transform,
    "predict values": lambda: dkl.SingleKernelRegressor(**OPTIONS).fit(X, y).predict,
    "predict two values": lambda: dkl.SingleKernelRegressor(**OPTIONS).fit(X, np.column_stack([y, -y])).predict,
    "predict classes": lambda: dkl.SingleKernelClassifier(**OPTIONS).fit(X, LABELS).predict,
    "predict strings": lambda: (
        dkl.SingleKernelClassifier(**OPTIONS).fit(X, np.array(["b", "ccc", "aa"])[LABELS]).predict
    ),
    "decide two": lambda: dkl.SingleKernelClassifier(**OPTIONS).fit(X, LABELS > 0).decision_function,
    "decide three": lambda: dkl.SingleKernelClassifier(**OPTIONS).fit(X, LABELS).decision_function,
}


def assert_values(got, wanted):
    """Same values and dtype."""
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11)
    else:
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_outputs_look_like_inputs(name, tmp_path):
    """numpy for numpy, lazy Dask for Dask and Zarr with declared dtype and shape, labelled for xarray."""
    method = OUTPUTS[name]()
    wanted = method(X)
    assert isinstance(wanted, np.ndarray)
    for rows in (pd.DataFrame(X), sp.csr_array(X), X.tolist()):
        out = method(rows)
        assert isinstance(out, np.ndarray)
        assert_values(out, wanted)
    zarr.create_array(str(tmp_path / "a.zarr"), data=X, chunks=(40, M))
    for rows in (uneven((40, 0, 110)), str(tmp_path / "a.zarr")):
        lazy = method(rows)
        assert isinstance(lazy, da.Array)
        assert lazy.shape == wanted.shape
        assert lazy.dtype == wanted.dtype
        assert_values(lazy.compute(scheduler="sync"), wanted)
        assert_values(lazy[30:50].compute(scheduler="sync"), wanted[30:50])
    rows = data_array(X).assign_coords(day=("time", np.arange(N) % 7))
    for labelled in (rows, rows.chunk(time=40), xr.Dataset({"X": rows})):
        out = method(labelled)
        assert isinstance(out, xr.DataArray)
        assert out.dims[0] == "time"
        np.testing.assert_array_equal(out["time"], 10.0 + np.arange(N))
        np.testing.assert_array_equal(out["day"], np.arange(N) % 7)
        assert_values(out.values, wanted)
    assert isinstance(method(rows.chunk(time=40)).data, da.Array)


@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_nothing_is_computed_before_compute(name):
    """A lazy output reads no block until it is asked, and then each block once."""
    method, read = OUTPUTS[name](), []

    def note(block):
        read.append(block.shape)
        return block

    lazy = method(uneven(50).map_blocks(note, dtype=X.dtype, meta=np.empty((0, 0))))
    assert read == []
    lazy.compute(scheduler="sync")
    assert len(read) == 3


def test_unknown_rows_stay_lazy():
    """Predictions of unknown length are lazy as well, and may be computed."""
    method = OUTPUTS["predict values"]()
    lazy = method(unknown(uneven(40)))
    assert np.isnan(lazy.shape[0])
    np.testing.assert_allclose(lazy.compute(), method(X), rtol=1e-9)


@pytest.mark.parametrize("chunk", [1, 7, 64, N])
@pytest.mark.parametrize("narrow", [False, True])
def test_bits_do_not_depend_on_threads(chunk, narrow):
    """num_workers 1, 2, 3: the same bits, also with cv and sigma='scale'."""
    rows = da.from_array(np.tile(X, (20, 1)).astype(np.float32 if narrow else np.float64), chunks=(chunk * 20, M))
    found = []
    for threads in (1, 2, 3):
        with dask.config.set(num_workers=threads):
            model = dkl.SingleKernelRegressor(**(OPTIONS | {"sigma": "scale", "alpha": [0.1, 1.0]}), cv=3)
            model.fit(rows, np.tile(y, 20))
        found.append([model.coef_, model.intercept_, model.sigma_, model.cv_results_["mean_test_score"]])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("rows", ["numpy", "dask"])
def test_score_of_lazy_rows(rows):
    """score takes lazy y too; r2 and accuracy by numpy."""
    given = X if rows == "numpy" else uneven(40)
    target, labels = (y, LABELS) if rows == "numpy" else (da.from_array(y, chunks=9), da.from_array(LABELS, chunks=9))
    model = dkl.SingleKernelRegressor(**OPTIONS).fit(X, y)
    wanted = 1 - ((model.predict(X) - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    np.testing.assert_allclose(model.score(given, target), wanted, rtol=1e-10)
    chooser = dkl.SingleKernelClassifier(**OPTIONS).fit(X, LABELS)
    np.testing.assert_allclose(chooser.score(given, labels), np.mean(chooser.predict(X) == LABELS))
