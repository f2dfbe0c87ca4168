"""Exact kernel ridge: values and gradients against dense definitions differentiated by a complex step."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.kernels import KERNELS, values
from dkl.kernels.values import kernel_values
from dkl.learn.exact_problem import rows_of
from dkl.learn.objectives import OBJECTIVES
from dkl.solvers import exact_ridge
from dkl.solvers.exact_ridge import evaluate, pull_sigma, solve_dual
from dkl.sums.folds import fold_of, held_out
from tests.oracles import complex_step

N, M, K, LAM = 48, 4, 3, 0.3
RNG = np.random.default_rng(0)
T = RNG.uniform(0, 2, size=(N, M))
T[5] = T[6]  # the same row twice, with different targets
Y = np.column_stack([np.sin(2 * T[:, 0]) + T[:, 1], 20 * T[:, 1] * T[:, 2] - 50]) + 0.3 * RNG.normal(size=(N, 2))
WEIGHT = RNG.gamma(2, size=N) * (RNG.random(N) > 0.1)
SIGMA = np.array([0.5, 0.8, 0.6, 1.1])
ALL = np.zeros(N, int), 1
FOLDS = {"validation": (held_out(0, N, (1, 4), 7), 2), "cv": (fold_of(0, N, K, 7), K), "joint": ALL, "gcv": ALL}


def shannon(x, y):
    """The Jensen-Shannon divergence of numbers, in bits."""
    return 0.5 * (x * np.log2(2 * x / (x + y)) + y * np.log2(2 * y / (x + y)))


DISTANCES = {
    "exp_chi2": lambda x, y: (x - y) ** 2 / (2 * (x + y)),
    "exp_intersection": lambda x, y: np.abs(x - y) / 2,
    "exp_jensen_shannon": shannon,
}


def dense_kernel(name, sigma, A, B):
    """Kernel values from their definitions, for complex sigma."""
    if name in DISTANCES:
        return np.exp(-(sigma**2 * DISTANCES[name](A[:, None, :], B)).sum(-1))
    D = np.abs(A[:, None, :] - B)
    if name == "gaussian":
        return np.exp(-0.5 * ((sigma * D) ** 2).sum(-1))
    a = np.sqrt(((sigma * D) ** 2).sum(-1))[..., None] if name.startswith("isotropic") else sigma * D
    if name.endswith("matern32"):
        values = (1 + np.sqrt(3) * a) * np.exp(-np.sqrt(3) * a)
    elif name.endswith("matern52"):
        values = (1 + np.sqrt(5) * a + 5 * a**2 / 3) * np.exp(-np.sqrt(5) * a)
    elif name == "skewed_chi2":
        values = 1 / np.cosh(a)
    else:
        values = np.exp(-a)
    return values.prod(-1)


def dense_ridge(name, sigma, lam, train, w, intercept, targets):
    """a, and b0 as the last row: the bordered system (K + lam W^-1) a + b0 = y, 1'a = 0."""
    n, none = len(train), np.zeros((1, targets.shape[1]))
    A = np.zeros((n + 1, n + 1), complex)
    A[:n, :n] = dense_kernel(name, sigma, T[train], T[train]) + lam * np.diag(1 / w[train])
    if not intercept:
        return np.vstack([np.linalg.solve(A[:n, :n], targets), none])
    A[:n, n] = A[n, :n] = 1
    return np.linalg.solve(A, np.vstack([targets, none]))


def dense(objective, name, sigma, lam, w, intercept):
    """J by definition; of gcv, with the trace of the matrix that takes y to its fit."""
    fold, folds = FOLDS[objective]
    if objective in ("joint", "gcv"):
        rows = np.flatnonzero(w > 0)
        gram = dense_kernel(name, sigma, T[rows], T[rows])

        def fitted(targets):
            solution = dense_ridge(name, sigma, lam, rows, w, intercept, targets)
            return solution[:-1], gram @ solution[:-1] + solution[-1]

        a, scores = fitted(Y[rows])
        energy = (w[rows, None] * (scores - Y[rows]) ** 2).sum()
        if objective == "joint":
            return (energy + lam * (a * (gram @ a)).sum()) / (2 * w.sum())
        n, hat = len(rows), fitted(np.eye(len(rows)))[1]
        return (n / (n - np.trace(hat))) ** 2 * energy / (2 * w.sum())
    total = 0.0
    tests = [1] if objective == "validation" else range(folds)
    for k in tests:
        train, test = np.flatnonzero((fold != k) & (w > 0)), np.flatnonzero(fold == k)
        solution = dense_ridge(name, sigma, lam, train, w, intercept, Y[train])
        E = dense_kernel(name, sigma, T[test], T[train]) @ solution[:-1] + solution[-1] - Y[test]
        total += (w[test, None] * E * E).sum() / (2 * w[test].sum())
    return total / len(tests)


def through_the_library(objective, name, sigma, lam, w, intercept):
    """(J, dJ/dlog sigma, dJ/dlog lam)."""
    rows = rows_of(OBJECTIVES[objective], T, Y, w, *FOLDS[objective])
    gram = kernel_values(KERNELS[name], sigma, rows.T, rows.T)
    found = evaluate(gram, rows, lam, intercept)
    slope = pull_sigma(KERNELS[name], sigma, rows.T, gram, found.left, found.right)
    return found.value, sigma * slope, lam * found.slope


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("objective", sorted(FOLDS))
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_gradient_in_log_sigma_and_log_lam(name, objective, intercept, weighted, monkeypatch):
    """Every kernel x objective x intercept x weights, some of them zero; two outputs; several tiles."""
    monkeypatch.setattr(values, "TILE", 20)
    w = WEIGHT if weighted else np.ones(N)
    value, slope, lam_slope = through_the_library(objective, name, SIGMA, LAM, w, intercept)

    def along(x):
        return dense(objective, name, SIGMA * np.exp(x[:M]), LAM * np.exp(x[M]), w, intercept)

    expected = complex_step(along, np.zeros(M + 1))
    np.testing.assert_allclose(value, np.real(along(np.zeros(M + 1))), rtol=1e-10)
    np.testing.assert_allclose([*slope, lam_slope], expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_gradient_where_an_input_is_switched_off(name):
    """sigma = 0 of one input: the slope in sigma itself, which log sigma would hide."""
    sigma = SIGMA * [1, 0, 1, 1]
    rows = rows_of(OBJECTIVES["validation"], T, Y, np.ones(N), *FOLDS["validation"])
    gram = kernel_values(KERNELS[name], sigma, T, T)
    found = evaluate(gram, rows, LAM, True)
    slope = pull_sigma(KERNELS[name], sigma, T, gram, found.left, found.right)
    expected = complex_step(lambda s: dense("validation", name, s, LAM, np.ones(N), True), sigma)
    np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_a_table_for_every_kernel():
    """A kernel that is added to the library needs a slope here; one without is refused by its name."""
    assert {*exact_ridge.RADIAL, *exact_ridge.PRODUCT, *DISTANCES} == set(KERNELS)
    strange = type(KERNELS["gaussian"])("sombrero", np.cos)
    with pytest.raises(ValueError, match="kernel='sombrero' is not known; use one of 'gaussian'"):
        pull_sigma(strange, SIGMA, T, np.eye(N), np.zeros((N, 1)), np.zeros((N, 1)))


@pytest.mark.parametrize("intercept", [False, True])
def test_weights_are_repetitions(intercept):
    """Weight 3 is the row three times; the scores of the joint objective are the fitted values."""
    w = np.resize([1.0, 2.0, 3.0], N)
    each = np.repeat(np.arange(N), w.astype(int))
    kernel = KERNELS["gaussian"]
    ours = solve_dual(kernel_values(kernel, SIGMA, T, T), Y, w, LAM, intercept)
    many = solve_dual(kernel_values(kernel, SIGMA, T[each], T[each]), Y[each], np.ones(len(each)), LAM, intercept)
    across = kernel_values(kernel, SIGMA, T, T)
    fitted = across @ ours.coef + ours.intercept
    np.testing.assert_allclose(
        fitted, kernel_values(kernel, SIGMA, T, T[each]) @ many.coef + many.intercept, rtol=0, atol=1e-9
    )
    if intercept:
        np.testing.assert_allclose(ours.coef.sum(axis=0), 0, atol=1e-9)
    found = evaluate(across, rows_of(OBJECTIVES["joint"], T, Y, w, *FOLDS["joint"]), LAM, intercept)
    np.testing.assert_allclose(found.scores, fitted, rtol=0, atol=1e-9)


def test_rows_without_weight_are_left_out():
    """Not in T, and a fold of such rows alone is refused."""
    rows = rows_of(OBJECTIVES["cv"], T, Y, WEIGHT, *FOLDS["cv"])
    assert len(rows.T) == len(rows.Y) == len(rows.fold) == (WEIGHT > 0).sum() < N
    fold = FOLDS["cv"][0]
    with pytest.raises(ValueError, match="fold 2 of 3, or the others, have no weight; use more rows, or other folds"):
        rows_of(OBJECTIVES["cv"], T, Y, np.where(fold == 2, 0.0, 1.0), fold, 3)
    with pytest.raises(ValueError, match="the rows held out, or the others, have no weight"):
        rows_of(OBJECTIVES["validation"], T, Y, np.ones(N), np.zeros(N, int), 2)
