"""The restricted master problem against solvers that are not dkl's: scikit-learn's lasso, scipy, and the conditions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Lasso

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.features.frequencies import draw_unit
from dkl.features.waves import WaveMap
from dkl.kernels import KERNELS
from dkl.learn.masters import MASTERS, Restricted
from dkl.learn.run import Run
from dkl.learn.sparsity import Sparsity
from dkl.losses import Huber, Softmax, Square, SquaredHinge
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets
from tests.sums.test_pricing import dense

N, M, D = 400, 3, 9
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, M))
Y = np.cos(X @ [1.0, -1.0, 0.5])[:, None] + 0.3 * RNG.normal(size=(N, 1))
CODES = np.digitize(Y[:, 0], [-0.3, 0.4])
PHASE = WaveMap(
    KERNELS["gaussian"], draw_unit(KERNELS["gaussian"], M, D, "iid", RNG), np.ones(M), RNG.random(D), 1.0, "phase"
)
PAIRED = WaveMap(KERNELS["gaussian"], PHASE.unit, np.ones(M), np.empty(0), 1.0, "paired")
NUMBERS = Targets(
    float(N), 1, shift=np.zeros(1), unit=np.ones(1), absolute=np.full(1, 3.0 * N), square=np.full(1, 9.0 * N)
)


def solved(master, features, targets, y, loss, kind, lam, eta=None, tests=-1, tol=1e-9):
    """What a master finds from zero weights."""
    eta = np.ones(features.n_groups) if eta is None else eta
    tables = [Table("memory", X), Table("memory", y), None, None]
    run = Run(engine_for(False, "scheduler"), Rows(tables, ["X", "y", "w", "cv"]), Progress(0))
    gram = GramProgram(features.at(float), targets, N, 1 + (tests >= 0), held=(1, 4) if tests >= 0 else None)
    norm = Sparsity(kind).norm(features.column_group, eta, targets.n_outputs)
    start = np.zeros((features.n_features + 1, targets.n_outputs))
    problem = Restricted(gram, loss, norm, True, tests)
    return MASTERS[master]().solve(run, problem, start, lam, tol, {}), problem


@pytest.mark.parametrize("master", MASTERS)
def test_l1_of_squares_is_scikit_learns_lasso(master):
    """Weighted by the lengths of the columns, which is the lasso of columns over those lengths."""
    Phi = dense(PHASE, X)
    eta = np.sqrt(np.square(Phi).mean(axis=0))
    found, _ = solved(master, PHASE, NUMBERS, Y, Square(), "l21", 0.02, eta)
    lasso = Lasso(alpha=0.02, tol=1e-13, max_iter=100_000).fit(Phi / eta, Y[:, 0])
    np.testing.assert_allclose(found.weights[:-1, 0] * eta, lasso.coef_, atol=1e-6)
    np.testing.assert_allclose(found.weights[-1], lasso.intercept_, atol=1e-6)
    assert found.residual <= 1e-9
    assert 0 < (lasso.coef_ == 0).sum() < D


def kkt(features, weights, y, loss, kind, lam):
    """The largest violation of optimality, from dense features and the definition of the penalty alone."""
    Phi = dense(features, X)
    z = Phi @ weights[:-1] + weights[-1]
    g = loss.slope(z, y)
    C, worst = -Phi.T @ g / N, float(np.abs(g.sum(axis=0)).max()) / N
    for j in range(features.n_groups):
        own = features.column_group == j
        W, c = weights[:-1][own], C[own]
        if kind == "l21":
            size = np.linalg.norm(W)
            off = np.linalg.norm(c - lam * W / size) if size > 0 else max(0.0, np.linalg.norm(c) - lam)
        else:
            off = max(0.0, np.abs(c).sum() - lam) if not W.any() else abs((c * W).sum() / np.abs(W).max() - lam)
        worst = max(worst, off)
    return worst


@pytest.mark.parametrize("kind", ["l21", "l1linf"])
@pytest.mark.parametrize("case", ["square", "huber", "hinge", "softmax"])
def test_other_losses_meet_their_optimality_conditions(case, kind):
    """Groups of cosine and sine, shared by the classes."""
    loss = {"square": Square(), "huber": Huber(0.3), "hinge": SquaredHinge(), "softmax": Softmax()}[case]
    classes = Targets(float(N), 3, classes=np.arange(3))
    targets, y = (classes, CODES) if loss.is_class else (NUMBERS, Y)
    found, problem = solved("newton", PAIRED, targets, y, loss, kind, 0.02, tol=1e-8)
    assert kkt(PAIRED, found.weights, y, loss, kind, 0.02) < 1e-6
    used = np.bincount(PAIRED.column_group, np.abs(found.weights[:-1]).sum(axis=1))
    assert 0 < np.count_nonzero(used) < D or case != "square"
    Phi = dense(PAIRED, X)
    c = targets.n_outputs

    def objective(flat):
        W = flat.reshape(-1, c)
        return float(loss.value(Phi @ W[:-1] + W[-1], y).mean()) + 0.02 * problem.norm.penalty.value(W[:-1])

    value = objective(found.weights.ravel())
    np.testing.assert_allclose(found.value + 0.02 * problem.norm.penalty.value(found.weights[:-1]), value, rtol=1e-9)
    other = minimize(objective, 0.9 * found.weights.ravel(), method="Powell", options={"maxiter": 3})
    assert value <= other.fun + 1e-12


def test_masters_of_squares_agree_on_rows_that_train():
    """Held-out rows have no say in the weights; their mean loss is that of dense features."""
    ways = [solved(name, PAIRED, NUMBERS, Y, Square(), "l21", 0.01, tests=1, tol=1e-10) for name in MASTERS]
    (one, problem), (other, _) = ways
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-7)
    held = problem.gram.fold_of(0, N) == 1
    miss = dense(PAIRED, X) @ one.weights[:-1] + one.weights[-1] - Y
    for found, _ in ways:
        np.testing.assert_allclose(found.error, 0.5 * np.square(miss[held]).mean(), rtol=1e-6)
        np.testing.assert_allclose(found.value, 0.5 * np.square(miss[~held]).sum() / N, rtol=1e-6)
