"""The warning of a shared sigma: where units differ it comes, where one unit has rare entries it does not."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

import dkl
from dkl.exact import KernelRidgeGD

RNG = np.random.default_rng(0)
N = 400
AGE, SCORE, INCOME = RNG.normal(40, 12, N), RNG.random(N), RNG.lognormal(10, 0.8, N)
TABLE = pd.DataFrame({"age": AGE, "score": SCORE, "income": INCOME})
Y = (SCORE > 0.5).astype(int)
SMALL, LARGE = RNG.standard_normal((N, 20)), RNG.standard_normal((N, 20))
SMALL[:, 7] *= 0.01
LARGE[:, 7] *= 1000
RARE = (RNG.random((N, 30)) < np.linspace(0.5, 0.003, 30)).astype(float)
RARE[0] = 1.0


def warned(X, **options):
    """Texts of the warnings of a fit, and where they point."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dkl.FourierFeatures(**({"n_components": 10, "random_state": 0} | options)).fit(X)
    assert all(w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught]


def test_age_score_income():
    """The largest and the smallest are named, with what to write; that is right, and ends the warning."""
    [text] = warned(TABLE)
    for part in ("'income' has", "'score'", "groups='each'", "--scale standard", "fold"):
        assert part in text
    assert "(and 1 more)" in text
    assert warned(TABLE, groups="each") == []
    assert warned((TABLE - TABLE.mean()) / TABLE.std()) == []
    assert warned(TABLE, sigma=0.1) == []
    assert warned(abs(TABLE), kernel="exp_chi2") == warned(abs(TABLE), kernel="skewed_chi2") == []


@pytest.mark.parametrize(
    "rows",
    [
        xr.DataArray(TABLE.to_numpy(), dims=("row", "column"), coords={"column": list(TABLE.columns)}),
        xr.DataArray(TABLE.to_numpy(), dims=("row", "column"), coords={"column": list(TABLE.columns)}).chunk(row=90),
    ],
)
def test_names_of_xarray(rows):
    """Its labels."""
    assert "'income' has" in warned(rows)[0]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda X: da.from_array(X, chunks=(90, -1))])
def test_numbers_where_there_are_no_names(kind):
    """Positions."""
    [text] = warned(kind(TABLE.to_numpy()))
    assert "input 2 has" in text
    assert "input 1 " in text


def test_the_warning_tells_the_truth():
    """With groups='each' the classes are found, with a shared sigma they are not."""
    options = {"n_components": 200, "random_state": 0}
    with pytest.warns(UserWarning, match="one sigma is shared"):
        shared = dkl.SingleKernelClassifier(**options).fit(TABLE[:300], Y[:300]).score(TABLE[300:], Y[300:])
    each = dkl.SingleKernelClassifier(**options, groups="each").fit(TABLE[:300], Y[:300])
    assert each.score(TABLE[300:], Y[300:]) > shared + 0.2


ALARMS = {
    "one small of twenty": SMALL,
    "one large of twenty": LARGE,
    "wine": load_wine().data,
    "breast cancer": load_breast_cancer().data,
    "twelvefold": RNG.standard_normal((N, 2)) * [1, 12],
}
SILENCE = {
    "standardised": RNG.standard_normal((N, 20)),
    "eightfold": RNG.standard_normal((N, 2)) * [1, 8],
    "digits": load_digits().data,
    "digits, first half": load_digits().data[:900],
    "rare categories": RARE,
    "constant inputs": np.column_stack([SMALL[:, :3], np.zeros(N), np.full(N, 7.0)]),
    "one input": SMALL[:, :1],
}


@pytest.mark.parametrize("name", sorted(ALARMS))
def test_alarms(name):
    """Columns of several units."""
    assert len(warned(ALARMS[name])) == 1
    assert len(warned(sp.csr_array(ALARMS[name]))) == 1


@pytest.mark.parametrize("name", sorted(SILENCE))
def test_no_false_alarms(name):
    """One unit: pixels of margins, rare categories, constants."""
    assert warned(SILENCE[name]) == []
    assert warned(sp.csr_array(SILENCE[name])) == []


def test_groups():
    """Within a group; another group may be of any size."""
    index = np.zeros(20, int)
    index[7] = 1
    assert warned(SMALL, groups=index) == []
    index[8] = 1
    assert "input 8 has" in warned(SMALL, groups=index)[0]


@pytest.mark.parametrize(
    "model",
    [
        dkl.SingleKernelRegressor(n_components=10, random_state=0),
        dkl.SingleKernelRegressor(n_components=10, random_state=0, learn="gcv", starts=1, tol=1.0),
        dkl.SingleKernelRegressor(n_components=10, random_state=0, landmarks="uniform"),
        dkl.NystroemFeatures(n_components=10, random_state=0),
        dkl.FeaturePCA(dkl.FourierFeatures(n_components=10, random_state=0), 3),
        KernelRidgeGD(learn="none"),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'learn', '')} {getattr(model, 'landmarks', '')}",
)
def test_every_estimator_warns_once_at_the_users_line(model):
    """Not at one of dkl's own lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(TABLE, SCORE)
    [one] = [w for w in caught if "one sigma is shared" in str(w.message)]
    assert one.filename == __file__


# inputs beyond the range of squares


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda X: da.from_array(X, chunks=(90, -1))])
@pytest.mark.parametrize("size", [1e-300, 1e-150])
def test_inputs_that_vanish_are_refused(kind, size):
    """Squares below float64's range would make them constants; a number for sigma, if it has a square, is right."""
    X, y = SMALL[:, :3] - SMALL[:, :3].mean(axis=0), SMALL[:, 1]
    with pytest.raises(ValueError, match=r"X is so small \(at most .* in input \d\) .* multiply it by a constant"):
        dkl.SingleKernelRegressor(n_components=10, random_state=0).fit(kind(X * size), y)
    if size < 1e-200:
        return
    wanted = dkl.SingleKernelRegressor(n_components=10, sigma=0.5, random_state=0).fit(kind(X), y)
    got = dkl.SingleKernelRegressor(n_components=10, sigma=0.5 / size, random_state=0).fit(kind(X * size), y)
    np.testing.assert_allclose(got.coef_, wanted.coef_, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-130, 1e-60, 1e60, 1e140])
def test_inputs_of_other_sizes_give_the_same_fit(size):
    """sigma='scale' follows the unit."""
    X, y = SMALL[:, :3], SMALL[:, 1]
    model = dkl.SingleKernelRegressor(n_components=20, random_state=0)
    wanted = model.fit(X, y).predict(X)
    np.testing.assert_allclose(model.fit(X * size, y).predict(X * size), wanted, rtol=1e-9, atol=1e-12)


def test_one_vanishing_group_is_refused_and_one_vanishing_input_is_not():
    """Beside others an input of 1e-300 adds nothing to any distance; alone in its group it would."""
    X = SMALL[:, :3] * [1, 1, 1e-300]
    with pytest.raises(ValueError, match="in input 2"):
        dkl.FourierFeatures(n_components=10, groups="each").fit(X)
    flat = SMALL[:, :3] * [1, 1, 0]
    with pytest.warns(UserWarning, match="one sigma is shared") if warned(X) else warnings.catch_warnings():
        got = dkl.FourierFeatures(n_components=10, random_state=0).fit(X).transform(X)
    wanted = dkl.FourierFeatures(n_components=10, random_state=0).fit(flat).transform(flat)
    np.testing.assert_allclose(got, wanted, atol=1e-12)
