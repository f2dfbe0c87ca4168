"""What numpy would cast in silence: masks, complex numbers, texts, objects, missing values; and columns by name."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
from sklearn.model_selection import PredefinedSplit

import dkl

N, M = 60, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, M))
Y, W = X[:, 0] + X[:, 1] ** 2, RNG.uniform(0.5, 2.0, N)
LABELS = (X[:, 0] > 0).astype(int)
OPTIONS = {"n_components": 20, "sigma": 0.5, "random_state": 0}
HOLE = np.zeros(N, bool)
HOLE[41] = True


def regress(**options):
    """A regressor."""
    return dkl.SingleKernelRegressor(**(OPTIONS | options))


def classify():
    """A classifier."""
    return dkl.SingleKernelClassifier(**OPTIONS)


def masked(array, hole=True):
    """With a mask; row 41 is masked if hole."""
    mask = np.zeros(array.shape, bool)
    mask[41] = hole
    return np.ma.masked_array(array, mask)


def lying(array, real=X):
    """A Dask array that says it is of another kind than its blocks are."""
    blocks = da.from_array(np.asarray(real), chunks=(25, *real.shape[1:]))

    def swap(block, block_info=None):
        first = block_info[0]["array-location"][0][0]
        return array[first : first + len(block)]

    return blocks.map_blocks(swap, dtype=real.dtype, meta=np.empty((0,) * real.ndim, real.dtype))


def lazy_masked(array):
    """Masked blocks that Dask knows of."""
    return da.ma.masked_array(da.from_array(array, chunks=(25, *array.shape[1:])), np.ma.getmaskarray(masked(array)))


COMPLEX = X + 1j
REFUSED = {
    "masked X": (lambda: regress().fit(masked(X), Y), "X is masked at row 41, column 0"),
    "masked X scale": (lambda: regress(sigma="scale").fit(masked(X), Y), "X is masked at row 41"),
    "masked X of a map": (lambda: dkl.FourierFeatures().fit(masked(X)), "X is masked at row 41"),
    "masked X predicted": (lambda: regress().fit(X, Y).predict(masked(X)), "X is masked at row 41"),
    "masked y": (lambda: regress().fit(X, masked(Y)), "y is masked at row 41"),
    "masked labels": (lambda: classify().fit(X, masked(LABELS)), "y is masked at row 41"),
    "masked weight": (lambda: regress().fit(X, Y, masked(W)), "sample_weight is masked at row 41"),
    "masked y scored": (lambda: regress().fit(X, Y).score(X, masked(Y)), "y is masked at row 41"),
    "masked y evaluated": (lambda: regress().fit(X, Y).evaluate(X, masked(Y)), "y is masked at row 41"),
    "masked lazy X": (lambda: regress().fit(lazy_masked(X), Y), "X is masked at row 41, column 0"),
    "masked lazy X scale": (lambda: regress(sigma="scale").fit(lazy_masked(X), Y), "X is masked at row 41"),
    "masked lazy y": (lambda: regress().fit(da.from_array(X), lazy_masked(Y)), "y is masked at row 41"),
    "masked lazy y of memory": (lambda: regress().fit(X, lazy_masked(Y)), "y is masked at row 41"),
    "masked lazy labels": (lambda: classify().fit(X, lazy_masked(LABELS)), "y is masked at row 41"),
    "masked lazy weight": (lambda: regress().fit(X, Y, lazy_masked(W)), "sample_weight is masked at row 41"),
    "masked lying blocks": (lambda: regress().fit(lying(masked(X)), Y), "X is masked at row 41"),
    "masked lazy predicted": (
        lambda: regress().fit(X, Y).predict(lazy_masked(X)).compute(scheduler="sync"), "X is masked at row 16",
    ),
    "complex X": (lambda: regress().fit(COMPLEX, Y), "Complex data not supported: X has dtype complex128"),
    "complex y": (lambda: regress().fit(X, COMPLEX[:, 0]), "y has dtype complex128"),
    "complex labels": (lambda: classify().fit(X, COMPLEX[:, 0]), "y has dtype complex128"),
    "complex weight": (lambda: regress().fit(X, Y, W + 1j), "sample_weight has dtype complex128"),
    "complex sparse": (lambda: regress().fit(sp.csr_array(COMPLEX), Y), "Complex data not supported"),
    "complex lazy X": (lambda: regress().fit(da.from_array(COMPLEX), Y), "X has dtype complex128"),
    "complex lazy weight": (lambda: regress().fit(X, Y, da.from_array(W + 1j)), "sample_weight has dtype complex128"),
    "complex blocks": (lambda: regress().fit(lying(COMPLEX), Y), "Complex data not supported: X has dtype complex128"),
    "complex blocks scale": (lambda: regress(sigma="scale").fit(lying(COMPLEX), Y), "Complex data not supported: X"),
    "complex blocks of y": (lambda: regress().fit(X, lying(Y + 1j, Y)), "Complex data not supported: y"),
    "complex blocks of labels": (lambda: classify().fit(X, lying(LABELS + 1j, LABELS)), "not supported: y"),
    "complex blocks of weights": (lambda: regress().fit(X, Y, lying(W + 1j, W)), "not supported: sample_weight"),
    "complex blocks predicted": (
        lambda: regress().fit(X, Y).predict(lying(COMPLEX)).compute(scheduler="sync"), "Complex data not supported",
    ),
    "texts in lists": (lambda: regress().fit(X.astype(str).tolist(), Y), "X has dtype <U"),
    "texts in objects": (lambda: regress().fit(X.astype(str).astype(object), Y), "X contains the text '"),
    "texts in blocks": (lambda: regress().fit(lying(X.astype(str)), Y), "X has dtype <U.*make its entries numbers"),
    "texts in y": (lambda: regress().fit(X, Y.astype(str).astype(object)), "y is '.*' at row 0; regression needs"),
    "dates in X": (lambda: regress().fit(np.full((N, M), np.datetime64("2020")), Y), "X has dtype datetime64"),
    "spans in weights": (lambda: regress().fit(X, Y, np.full(N, np.timedelta64(1, "s"))), "has dtype timedelta"),
    "texts in weights": (lambda: regress().fit(X, Y, W.astype(str)), "sample_weight has dtype <U"),
    "NA in y": (lambda: regress().fit(X, pd.Series(Y).astype("Float64").mask(HOLE)), r"y is missing \(NA\) at row 41"),
    "NA in labels": (
        lambda: classify().fit(X, pd.Series(LABELS).astype("Int64").mask(HOLE)), r"y is missing \(NA\) at row 41",
    ),
    "NA in weights": (
        lambda: regress().fit(X, Y, pd.Series(W).astype("Float64").mask(HOLE)), r"sample_weight is missing \(NA\)",
    ),
    "NA in X": (lambda: regress().fit(pd.DataFrame(X).astype("Float64").mask(masked(X).mask), Y), "NaN at row 41"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused(name):
    """One line with what and where; no warning of a cast that took place."""
    call, sentence = REFUSED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=sentence) as raised:
            call()
    assert "\n" not in str(raised.value)


SAME = {
    "mask without a hole": (lambda: masked(X, False), lambda: masked(Y, False), lambda: masked(W, False)),
    "lazy mask without a hole": (
        lambda: da.ma.masked_array(da.from_array(X, chunks=(25, M)), np.zeros(X.shape, bool)),
        lambda: da.ma.masked_array(da.from_array(Y, chunks=25), np.zeros(N, bool)), lambda: W,
    ),
    "nullable": (
        lambda: pd.DataFrame(X).astype("Float64"), lambda: pd.Series(Y, dtype="Float64"),
        lambda: pd.Series(W, dtype="Float64"),
    ),
    "objects": (lambda: X.astype(object), lambda: Y.astype(object), lambda: W),
    "long doubles": (lambda: X.astype(np.longdouble), lambda: Y.astype(np.longdouble), lambda: W.astype(np.longdouble)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SAME))
@pytest.mark.parametrize("sigma", [0.5, "scale"])
def test_taken(name, sigma):
    """What holds plain numbers gives their fit."""
    rows, y, weight = (make() for make in SAME[name])
    wanted = regress(sigma=sigma).fit(X, Y, W)
    model = regress(sigma=sigma).fit(rows, y, weight)
    np.testing.assert_allclose(model.coef_, wanted.coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(np.asarray(model.predict(rows)), wanted.predict(X), rtol=1e-9, atol=1e-11)


def test_nullable_labels():
    """Int64 and boolean columns are classes."""
    wanted = classify().fit(X, LABELS).coef_
    for kind in ("Int64", "boolean"):
        np.testing.assert_array_equal(classify().fit(X, pd.Series(LABELS).astype(kind)).coef_, wanted)


# columns of dataframes


def frame(lazy, **columns):
    """A dataframe with further columns."""
    made = pd.DataFrame(X, columns=["a", "b", "c"]).assign(**columns)
    if not lazy:
        return made
    import dask.dataframe as dd

    return dd.from_pandas(made, npartitions=3)


COLUMNS = {
    "category": (
        pd.Categorical(np.array(["x", "y"])[LABELS]),
        r"column 'k' of X has dtype category; .*get_dummies\(X\)",
    ),
    "numbers as categories": (pd.Categorical(LABELS), r"column 'k' of X has dtype category; .*get_dummies\(X\)"),
    "texts": (np.array(["x", "y"])[LABELS], r"column 'k' of X has dtype .*get_dummies\(X\)"),
    "objects": (Y.astype(object), r"column 'k' of X has dtype .*pd.to_numeric\(X\['k'\]\)"),
    "dates": (pd.date_range("2020", periods=N), "column 'k' of X has dtype datetime64"),
}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_columns_are_refused_by_name(name, lazy):
    """At fit and at predict, with what to do."""
    values, sentence = COLUMNS[name]
    with pytest.raises(ValueError, match=sentence):
        regress().fit(frame(lazy, k=values), Y)
    model = regress().fit(frame(lazy, k=Y), Y)
    with pytest.raises(ValueError, match=sentence):
        model.predict(frame(lazy, k=values))


# smaller things


@pytest.mark.parametrize("cls", [dkl.SingleKernelRegressor, dkl.SingleKernelClassifier])
def test_learn_none_is_none(cls, tmp_path):
    """None learns nothing, and can be saved."""
    wanted = cls(**OPTIONS, learn="none").fit(X, LABELS)
    model = cls(**OPTIONS, learn=None).fit(X, LABELS)
    np.testing.assert_array_equal(model.coef_, wanted.coef_)
    assert model.n_iter_ == 1
    assert not hasattr(model, "history_")
    model.save(tmp_path / "model.zarr")
    assert dkl.load(tmp_path / "model.zarr").learn is None
    with pytest.raises(ValueError, match="sigma_l1"):
        cls(**OPTIONS, learn=None, sigma_l1=1.0).fit(X, LABELS)
    assert dkl.plan(X, cls(**OPTIONS, learn=None)).iteration_seconds is None


def test_learn_none_of_the_exact_machine():
    """There too."""
    from dkl.exact import KernelRidgeGD

    wanted = KernelRidgeGD(sigma=0.5, alpha=1.0, learn="none").fit(X, Y)
    np.testing.assert_array_equal(
        KernelRidgeGD(sigma=0.5, alpha=1.0, learn=None).fit(X, Y).predict(X), wanted.predict(X)
    )


def test_a_plan_is_a_cell():
    """repr is what print shows; the table of a notebook has the same lines."""
    plan = dkl.plan(X, dkl.SingleKernelRegressor(**OPTIONS))
    assert repr(plan) == str(plan)
    assert len(str(plan).splitlines()) > 5
    shown = plan._repr_html_()
    for line in str(plan).splitlines():
        name, value = line.strip().split("  ", 1)
        assert f">{name}</th>" in shown
        assert f">{value.strip()}</td>" in shown


SPLIT = da.from_array(X, chunks=(25, 2))
WARNERS = {
    "fit": lambda rows: regress().fit(rows, Y),
    "classifier": lambda rows: classify().fit(rows, LABELS),
    "transform": lambda rows: dkl.FourierFeatures(n_components=5).fit(X).transform(rows),
    "pca": lambda rows: dkl.FeaturePCA(dkl.FourierFeatures(n_components=5), 2).fit(rows),
    "score": lambda rows: regress().fit(X, Y).score(rows, Y),
    "evaluate": lambda rows: regress().fit(X, Y).evaluate(rows, Y),
    "plan": lambda rows: dkl.plan(rows, regress()),
}


@pytest.mark.parametrize("rows", [SPLIT, xr.DataArray(SPLIT, dims=("row", "input"))], ids=["dask", "xarray"])
@pytest.mark.parametrize("name", sorted(WARNERS))
def test_split_columns_warn_once_at_the_users_line(name, rows):
    """Whatever is called."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        WARNERS[name](rows)
    [one] = [w for w in caught if "columns of X are split" in str(w.message)]
    assert one.filename == __file__


def test_a_splitter_whose_test_sets_overlap():
    """A row in two test sets, another in none: the sizes add up, the folds do not; and a row twice."""

    def pairs(*tests):
        return [(np.setdiff1d(np.arange(N), test), np.asarray(test)) for test in tests]

    right = np.arange(N)
    regress(cv=pairs(right[:30], right[30:])).fit(X, Y)
    for tests in (
        (right[:30], right[29:59]),  # 29 twice, 59 never: 60 in all
        (right[:31], right[30:]),  # 30 twice, every row is there: 61 in all
        (right[:30], right[31:]),  # 30 never
    ):
        with pytest.raises(ValueError, match="the test sets of cv hold"):
            regress(cv=pairs(*tests)).fit(X, Y)

    class Overlapping(PredefinedSplit):
        """Two folds that share a row."""

        def split(self, X=None, y=None, groups=None):
            """(train, test) pairs."""
            yield from pairs(right[:31], right[30:])

    with pytest.raises(ValueError, match="the test sets of cv hold"):
        regress(cv=Overlapping(np.arange(N) % 2)).fit(X, Y)
