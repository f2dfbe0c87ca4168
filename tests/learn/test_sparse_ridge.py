"""Sparse weights and their K-fold scores from one pass, against scikit-learn refitted on the rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso, MultiTaskLasso

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.learn.run import Run
from dkl.learn.sparse_ridge import SparseOptions, fit_penalised
from dkl.penalties import L1, Elastic, GroupL21, L1Linf
from dkl.prepare.targets import label_targets, number_targets
from dkl.sums.folds import fold_of
from dkl.sums.gram import GramProgram
from tests.learn.test_ridge import FEATURES

N, K, SEED = 150, 3, 4
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3))
Y = np.column_stack([3 + np.sin(2 * X[:, 0]), 20 * X[:, 1] * X[:, 2]]) + 0.3 * RNG.normal(size=(N, 2))
CODES = np.digitize(Y[:, 0], [2.7, 3.3])
WEIGHT = 300 * RNG.gamma(2, size=N)
PSI = FEATURES.at(np.float64).transform(X)


def found(y, options, weight=None, folds=K, dtype=np.float64):
    """What one pass finds."""
    tables = [Table("memory", X), Table("memory", y), None if weight is None else Table("memory", weight), None]
    about = (tables[1], tables[2])
    targets = (
        label_targets(*about, None, Progress(0)) if y.ndim == 1 and y.dtype.kind == "i"
        else number_targets(*about, options.fit_intercept, Progress(0))
    )  # fmt: skip
    rows = Rows(tables, ["X", "y", "sample_weight", "folds"])
    run = Run(engine_for(False), rows, Progress(0))
    return fit_penalised(run, GramProgram(FEATURES.at(dtype), targets, N, folds, SEED), options)


def refitted(penalty, alpha, y, weight, intercept, keep=slice(None)):
    """Lasso, or MultiTaskLasso of rows that carry the roots of their weights."""
    P, y, w = PSI[keep], y[keep], weight[keep]
    tight = {"tol": 1e-13, "max_iter": 10**6, "fit_intercept": False}
    mean = np.average(P, axis=0, weights=w) * intercept, np.average(y, axis=0, weights=w) * intercept
    root = np.sqrt(w)[:, None]
    kind = Lasso if isinstance(penalty, L1) else MultiTaskLasso
    coef = kind(alpha=alpha / len(P), **tight).fit(root * (P - mean[0]), root * (y - mean[1])).coef_
    return coef.T, mean[1] - mean[0] @ coef.T


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("penalty", [L1(), GroupL21()])
def test_weights_and_scores_are_those_of_refits(penalty, weighted, intercept) -> None:
    """In the units of y, with weights; the best alpha is used on all rows."""
    weight = WEIGHT if weighted else np.ones(N)
    alphas = weight.sum() * np.array([0.03, 1.0, 0.3])
    options = SparseOptions(penalty, alphas, intercept, choose=True, tol=1e-12)
    end = found(Y, options, WEIGHT if weighted else None)
    member, expected = fold_of(0, N, K, SEED), np.empty((3, K))
    for i, alpha in enumerate(np.sort(alphas)[::-1]):
        for k in range(K):
            coef, constant = refitted(penalty, alpha, Y, weight, intercept, member != k)
            missed = (Y - PSI @ coef - constant)[member == k] ** 2
            expected[i, k] = -np.average(missed.mean(axis=1), weights=weight[member == k])
    np.testing.assert_allclose(end.scores, expected, rtol=1e-4)
    assert end.alpha == end.tried[expected.mean(axis=1).argmax()]
    coef, constant = refitted(penalty, end.alpha, Y, weight, intercept)
    np.testing.assert_allclose(end.coef, coef, atol=1e-3)
    np.testing.assert_allclose(end.intercept, constant, atol=1e-3)
    missed = weight @ ((Y - PSI @ coef - constant) ** 2).sum(axis=1) / 2 + end.alpha * penalty.value(coef)
    assert end.objective * weight.sum() == pytest.approx(missed, rel=1e-5)
    assert end.converged
    assert end.gap <= 1e-12


@pytest.mark.parametrize("y", [Y, CODES, CODES // 2], ids=["values", "classes", "two"])
@pytest.mark.parametrize("penalty", [L1(), GroupL21(), L1Linf(), Elastic(L1(), 0.5)])
def test_the_largest_alpha_and_relative_ones(penalty, y) -> None:
    """Zero weights from there on, and not below; shares of it."""
    one = SparseOptions(penalty, np.array([1.0001]), True, relative=True)
    above = found(y, one, folds=1)
    assert not above.coef.any()
    below = found(y, SparseOptions(penalty, np.array([0.99]), True, relative=True), folds=1)
    assert below.coef.any()
    assert below.alpha == pytest.approx(0.99 * above.largest_alpha)
    same = found(y, SparseOptions(penalty, np.array([below.alpha]), True), folds=K)
    np.testing.assert_allclose(same.coef, below.coef, atol=1e-8)


def test_what_is_refused_and_what_is_doubted() -> None:
    """Lists without folds, alphas of no use; and weights whose certificate does not hold are said to be so."""
    ask = lambda alpha, folds=1, **more: found(Y, SparseOptions(L1(), np.array(alpha), True, **more), folds=folds)  # noqa: E731
    with pytest.raises(ValueError, match=r"is a list: give one number"):
        ask([1.0, 2.0])
    with pytest.raises(ValueError, match=r"alpha=\[0\.0\] must be finite numbers above 0"):
        ask([0.0])
    with pytest.raises(ValueError, match="needs 2 folds or more, not 1"):
        ask([1.0, 2.0], choose=True)
    end = ask([1e-3], tol=1e-12, max_iter=2)
    assert not end.converged
    assert "alpha=0.001 are not at their best after 2 iterations" in end.warning
