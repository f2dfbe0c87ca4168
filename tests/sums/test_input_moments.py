"""Moments of inputs, labels and values against numpy."""

import numpy as np
import pytest
from scipy import sparse

from dkl.kernels import KERNELS
from dkl.sums.input_moments import MomentProgram
from dkl.sums.spread import Spread
from dkl.sums.targets import LabelProgram, Targets, ValueProgram, power_of_two, value_targets, weight_unit

N = 120


def total_of(program, chunk, *data):
    """The program's total over blocks of `chunk` rows."""
    sums = program.start()
    for block, start in enumerate(range(0, N, chunk)):
        rows = slice(start, start + chunk)
        program.add(sums, program.workspace(), block, start, tuple(None if a is None else a[rows] for a in data))
    return sums


def draw_weights(weighted):
    w = np.random.default_rng(7).gamma(2, size=N)
    w[:40] = 0
    return (w, w) if weighted else (None, np.ones(N))


@pytest.mark.parametrize("chunk", [1, 7, 64, N])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["gaussian", "skewed_chi2"])
def test_input_moments(kernel, kind, weighted, chunk):
    """Weighted mean and variance of t(x) = x or log(1 + x / c), blocks of weight zero included."""
    X = np.abs(np.random.default_rng(0).normal(size=(N, 4))) * [1, 10, 0.1, 3]
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0
    T = np.log(1 + X / 0.2) if kernel == "skewed_chi2" else X
    w, ones = draw_weights(weighted)
    found = total_of(MomentProgram(KERNELS[kernel], 0.2), chunk, kind(X), w).tree.total()
    assert found.weight == pytest.approx(ones.sum(), rel=1e-13)
    np.testing.assert_allclose(found.mean, np.average(T, axis=0, weights=ones), rtol=1e-12)
    np.testing.assert_allclose(found.variance, np.diag(np.cov(T.T, aweights=ones, ddof=0)), rtol=1e-11)


@pytest.mark.parametrize("chunk", [1, 7, N])
def test_dense_variance_far_from_zero(chunk):
    """A mean a million times the deviation costs no digits beyond those of the data."""
    X = np.random.default_rng(2).normal([1e6, -1e6], 1, (N, 2))
    found = total_of(MomentProgram(KERNELS["gaussian"], 1.0), chunk, X, None).tree.total()
    np.testing.assert_allclose(found.variance, np.var(X, axis=0), rtol=1e-9)


def test_moments_without_weight():
    """Zero weight has zero variance, and adds nothing on either side."""
    nothing = Spread(0.0, np.zeros(2), np.zeros(2))
    some = Spread(3.0, np.array([1.0, 2.0]), np.array([4.0, 5.0]))
    np.testing.assert_array_equal(nothing.variance, 0)
    assert (nothing + nothing).weight == 0
    for total in (nothing + some, some + nothing):
        for found, expected in zip(total, some, strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("chunk", [1, 7, 64, N])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labels", [np.array(["b", "a", "zebra"]), np.array([3, -1, 10]), np.array([0.5, 1.5, -2])])
def test_label_weights(labels, weighted, chunk):
    """Sorted labels of all blocks and the weight of each, also of one whose rows weigh nothing."""
    y = labels[np.random.default_rng(3).integers(0, 2, N)]
    y[5] = labels[2]
    w, ones = draw_weights(weighted)
    found = total_of(LabelProgram(), chunk, y, w).tree.total()
    np.testing.assert_array_equal(found.labels, np.unique(y))
    np.testing.assert_allclose(found.weight, [ones[y == label].sum() for label in np.unique(y)], rtol=1e-13)
    assert found.rows == N


@pytest.mark.parametrize("chunk", [1, 7, 64, N])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [None, 1, 3])
def test_value_moments(outputs, weighted, chunk):
    """Weighted mean and spread of y, and sums of |y| and y^2, for y of one or several columns."""
    y = np.random.default_rng(4).normal(size=N if outputs is None else (N, outputs)) + 1
    columns = y.reshape(N, -1)
    w, ones = draw_weights(weighted)
    found = total_of(ValueProgram(), chunk, y, w).tree.total()
    assert (found.rows, found.weight) == (N, pytest.approx(ones.sum(), rel=1e-13))
    mean = np.average(columns, axis=0, weights=ones)
    np.testing.assert_allclose(found.spread.mean, mean, rtol=1e-11)
    np.testing.assert_allclose(found.spread.m2, ones @ (columns - mean) ** 2, rtol=1e-11)
    for got, power in ((found.absolute, np.abs(columns)), (found.square, columns**2)):
        np.testing.assert_allclose(got, ones @ power, rtol=1e-11)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_targets_bound_the_sums(weighted, centre):
    """shift is the weighted mean or zero, and the bounds hold for the shifted values."""
    y = np.random.default_rng(5).normal(size=(N, 2)) * [1, 30] + [100, 0]
    w, ones = draw_weights(weighted)
    targets = value_targets(total_of(ValueProgram(), 50, y, w).tree.total(), centre)
    expected = np.average(y, axis=0, weights=ones) if centre else np.zeros(2)
    np.testing.assert_allclose(targets.shift, expected, rtol=1e-12)
    np.testing.assert_allclose(targets.encode(y) * targets.unit, y - expected, rtol=1e-9)
    scaled, weight = (y - expected) / targets.unit, ones / targets.weight_unit
    assert (weight @ np.abs(scaled) <= targets.absolute * (1 + 1e-12)).all()
    assert (weight @ scaled**2 <= targets.square * (1 + 1e-12)).all()
    if centre:
        assert (targets.square < 1.1 * (weight @ scaled**2)).all()
    np.testing.assert_array_equal(np.frexp([*targets.unit, targets.weight_unit])[0], 0.5)
    assert targets.n_targets == 2
    assert not targets.is_class


@pytest.mark.parametrize("weights", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize(("size", "shift"), [(1e-120, 0.0), (1.0, 1e10), (1e120, 0.0), (0.0, 7.1)])
def test_bounds_hold_at_any_size(size, shift, weights):
    """Finite, above the sums, whatever the mean, the unit of y or that of the weights; constant y too."""
    y = size * np.random.default_rng(6).standard_normal((N, 1)) + shift
    w = np.full(N, weights)
    targets = value_targets(total_of(ValueProgram(), 50, y, w).tree.total(), True)
    scaled, weight = targets.encode(y), w / targets.weight_unit
    assert np.isfinite(targets.absolute).all()
    assert (weight @ np.abs(scaled) <= targets.absolute * (1 + 1e-12)).all()
    assert (weight @ scaled**2 <= targets.square * (1 + 1e-12)).all()
    if size:
        assert np.abs(scaled).max() > 1e-3
    assert (targets.variance > 0) == (size > 0)


def test_labels_become_codes():
    """Positions among the sorted classes."""
    targets = Targets(4.0, 3, classes=np.array(["a", "b", "z"]))
    np.testing.assert_array_equal(targets.encode(np.array([["z"], ["a"], ["b"], ["a"]])), [2, 0, 1, 0])
    assert targets.is_class


@pytest.mark.parametrize(
    ("program", "y", "w", "sentence"),
    [
        (LabelProgram(), np.nan, None, "y contains NaN at row 33, column 0; remove or impute it"),
        (ValueProgram(), np.inf, None, "y contains infinity at row 33, column 0; remove or impute it"),
        (LabelProgram(), 1.0, -2.5, "sample_weight is -2.5 at row 33; use finite weights >= 0"),
        (ValueProgram(), 1.0, np.nan, "sample_weight is nan at row 33; use finite weights >= 0"),
    ],
)
def test_bad_targets_and_weights_are_refused(program, y, w, sentence):
    """The sentence shows the value and its row in the whole data."""
    values, weights = np.ones(N), None if w is None else np.ones(N)
    values[33] = y
    if w is not None:
        weights[33] = w
    assert total_of(program, 7, values, weights).refusal == (33, sentence)


def test_units_are_powers():
    """The power of two above a size, one for nothing; the power of four near the mean weight."""
    np.testing.assert_array_equal(power_of_two([0.0, 0.75, 1.0, 3.0, 1e-3]), [1, 1, 2, 4, 2.0**-9])
    assert [weight_unit(w, 10) for w in (10.0, 45.0, 3.0, 0.6)] == [1.0, 4.0, 0.25, 1 / 16]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("chunk", [1, 7, N])
def test_ends_of_the_inputs(kind, chunk):
    """Least and greatest entry of each column over rows that weigh something; zeros of sparse rows count."""
    X = np.random.default_rng(8).normal(size=(N, 3)) * [1, 5, 1] + [0, 9, 30]
    X[np.random.default_rng(9).random(X.shape) < 0.3] = 0
    X[:, 2] = np.abs(X[:, 2]) + 1
    w = (np.arange(N) % 3 > 0).astype(float)
    X[0], X[3] = 1e6, -1e6  # without weight
    program = MomentProgram(KERNELS["gaussian"], 1.0)
    found = total_of(program, chunk, kind(X), w).tree.total()
    np.testing.assert_array_equal(found.low, X[w > 0].min(axis=0))
    np.testing.assert_array_equal(found.high, X[w > 0].max(axis=0))
    assert found.low.dtype == found.high.dtype == np.float64
    plain = total_of(program, chunk, kind(X), None).tree.total()
    assert (plain.low.tolist(), plain.high.tolist()) == ([-1e6] * 3, [1e6] * 3)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_moments_of_rows_that_weigh_nothing(kind):
    """No mean, no variance, and ends that any row would replace."""
    X = np.ones((4, 2))
    found = MomentProgram(KERNELS["gaussian"], 1.0).value((kind(X), np.zeros(4)))
    assert (found.weight, found.mean.tolist(), found.variance.tolist()) == (0.0, [0.0, 0.0], [0.0, 0.0])
    assert (found.low.tolist(), found.high.tolist()) == ([np.inf] * 2, [-np.inf] * 2)
    other = MomentProgram(KERNELS["gaussian"], 1.0).value((kind(X), np.ones(4)))
    for both in (found + other, other + found):
        assert (both.weight, both.mean.tolist(), both.low.tolist(), both.high.tolist()) == (4.0, [1, 1], [1, 1], [1, 1])


def test_the_variance_of_constant_sparse_columns_is_zero():
    """Rounding below zero is none."""
    X = np.full((50, 2), 0.1)
    found = MomentProgram(KERNELS["gaussian"], 1.0).value((sparse.csr_array(X), np.full(50, 0.3)))
    assert (found.spread.m2 >= 0).all()
    np.testing.assert_allclose(found.variance, 0, atol=1e-15)
