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
from dkl.kernels import KERNELS
from dkl.prepare.hidden_inputs import refuse_lost, warn_hidden
from dkl.sums.input_moments import InputMoments
from dkl.sums.spread import Spread

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
    with pytest.raises(ValueError, match=r"X is so small \(at most .* in input \d\) .* multiply X by a constant"):
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


# the rules themselves, by numbers


def moments(deviation, low, high, weight=4.0):
    """What a pass would say of inputs of those deviations and ends."""
    m2 = weight * np.asarray(deviation, float) ** 2
    return InputMoments(Spread(weight, np.zeros(len(m2)), m2), np.asarray(low, float), np.asarray(high, float))


def hidden(deviation, reach, groups=None, coords=None, kernel="gaussian"):
    """The warning of inputs of those deviations and a tenth of ranges, or None."""
    found = moments(deviation, np.zeros(len(deviation)), 10 * np.asarray(reach, float))
    groups = np.zeros(len(deviation), int) if groups is None else np.array(groups)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_hidden(KERNELS[kernel], found, groups, coords or {})
    return str(caught[0].message) if caught else None


@pytest.mark.parametrize(
    ("deviation", "reach", "warns"),
    [
        ([100.0] * 3 + [9.0], [0.0] * 4, True),  # a quarter is hidden, without rare entries: more than an eighth
        ([100.0] * 7 + [50.0, 9.0], [0.0] * 9, False),  # a ninth is hidden, and there is no gap
        ([100.0] * 6 + [50.0, 9.0], [0.0] * 8, False),  # an eighth
        ([100.0] * 5 + [50.0, 9.0], [0.0] * 7, True),  # a seventh
        ([100.0] * 8 + [9.0], [0.0] * 9, True),  # a gap of more than ten
        ([100.0] * 8 + [10.0], [0.0] * 9, False),  # of ten
        ([100.0] * 8 + [1.0], [0.0] * 8 + [9.9], False),  # its range is that of a rare event
        ([100.0] * 3 + [1.0], [0.0] * 3 + [9.9], False),  # a quarter is hidden, all with rare entries
        ([100.0] * 2 + [1.0], [0.0] * 2 + [9.9], True),  # a third
        ([100.0] * 2 + [1.0], [0.0] * 2 + [10.0], False),  # of a size that is not hidden
        ([100.0, 1.0], [0.0, 1.0], True),
        ([1.0, 0.0], [0.0, 0.0], False),  # a constant
        ([1.0], [0.0], False),
    ],
)
def test_when_inputs_are_apart(deviation, reach, warns):
    """A quarter of all, an eighth of those without rare entries, or a gap: more than that, and not just that."""
    assert (hidden(deviation, reach) is not None) == warns


def test_standardised_inputs_are_not_standardised_again():
    """Rare categories reach far in units of their deviation, and their neighbours are as large: nothing is hidden."""
    kinds = (RNG.random((N, 6)) < [0.5, 0.4, 0.3, 0.5, 0.004, 0.003]).astype(float)
    kinds[0] = 1
    kinds = (kinds - kinds.mean(axis=0)) / kinds.std(axis=0)
    assert np.ptp(kinds, axis=0).max() / 10 > kinds.std(axis=0).min()
    assert hidden(kinds.std(axis=0), np.ptp(kinds, axis=0) / 10) is None
    assert hidden([1.0] * 4, [20.0, 0.2, 0.2, 0.2]) is None


def test_the_factor_is_that_of_the_numbers():
    """What is printed of two inputs has the printed ratio, whether the range or the deviation is meant."""
    text = hidden([30.0, 1.0, 1.0], [80.0, 0.0, 0.0])
    assert "80-fold: input 0 has 80, input 1 (and 1 more) 1, which" in text


def test_what_the_warning_says():
    """The factor, the largest and the smallest of its group with their deviations, and how many more there are."""
    text = hidden([2.0, 300.0, 3.0, 4.0], [0.0, 0.0, 0.0, 50.0])
    assert text.startswith("one sigma is shared by inputs whose spreads differ 150-fold: input 1 has 300, ")
    assert "input 1 has 300, input 0 (and 1 more) 2, which" in text
    text = hidden([200.0, 1.0], [0.0, 0.0])
    assert "200-fold: input 0 has 200, input 1 1, which" in text
    text = hidden([2.0, 300.0, 3.0], [0.0] * 3, [1, 0, 1])
    assert text is None
    text = hidden([2.0, 300.0, 3.0, 90.0], [0.0] * 4, [1, 0, 0, 1])
    assert "input 1 has 300, input 2 3, which" in text
    assert hidden([2.0, 300.0], [0.0] * 2, kernel="skewed_chi2") is None
    assert hidden([2.0, 300.0], [0.0] * 2, kernel="exp_chi2") is None


def test_names_of_inputs():
    """The first coordinate of different texts for each input."""
    coords = {"number": [3, 4], "same": ["a", "a"], "short": ["a"], "name": ["x", "y"], "later": ["u", "v"]}
    assert "'y' has 300, 'x' 2, which" in hidden([2.0, 300.0], [0.0] * 2, coords=coords)
    assert "input 1 has 300, input 0 2, which" in hidden([2.0, 300.0], [0.0] * 2, coords={"same": ["a", "a"]})
    assert "input 1 has" in hidden([2.0, 300.0], [0.0] * 2, coords={"mixed": ["a", 1]})


@pytest.mark.parametrize(
    ("deviation", "most", "groups", "at"),
    [
        ([0.0, 0.0], [1e-150, 3e-150], [0, 0], 1),
        ([0.0, 0.0], [-3e-150, 1e-150], [0, 0], 0),
        ([1.0, 0.0], [1.0, 1e-150], [0, 1], 1),
        ([1.0, 0.0], [1.0, 1e-150], [0, 0], None),
        ([0.0, 0.0], [0.0, 0.0], [0, 0], None),
        ([0.0, 0.0], [1e-139, 1e-150], [0, 0], None),
        ([0.0], [1e-140], [0], None),
        ([0.0], [0.99e-140], [0], 0),
        ([1e-141], [0.99e-140], [0], None),
    ],
)
def test_what_is_lost(deviation, most, groups, at):
    """A group whose largest entry is not zero and has no square, and which does not vary for that."""
    low, high = np.minimum(most, 0.0), np.maximum(most, 0.0)
    found, groups = moments(deviation, low, high), np.array(groups)
    if at is None:
        refuse_lost(found, groups, len(most))
        return
    with pytest.raises(ValueError, match=f"at most {abs(most[at]):.3g} in input {at}"):
        refuse_lost(found, groups, len(most))


def test_all_terms_of_an_input_count():
    """Two terms of two inputs: one that varies is enough."""
    found = moments([0.0, 0.0, 0.0, 1.0], [0.0, 0.0], [1e-150, 1e-150])
    refuse_lost(found, np.array([0, 0]), 2)
    with pytest.raises(ValueError, match="in input 0"):
        refuse_lost(found, np.array([0, 1]), 2)
