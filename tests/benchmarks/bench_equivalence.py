"""equivalence: kernel weights of the group lasso on Fourier features against exact GMKL on the same features' grams.

Two solvers with nothing in common: block steps on sums of the features (d x d), and spectral projected gradient on the
weights of n x n matrices. weights_error is the largest |d_j - d'_j| / sum_j d_j, where the least objective is the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

import dkl
from dkl.exact import GMKL, GMKLClassifier
from tests.benchmarks.report import report

N, INPUTS, SHARES = 500, 12, (0.5, 0.1, 0.01)
BARS = {"weights_error": 1e-5}
OURS: dict[str, Any] = {"cv": None, "solver_tol": 1e-10, "max_iter": 500, "random_state": 0, "verbose": 0}
EXACT: dict[str, Any] = {"tol": 1e-10, "max_iter": 5000, "verbose": 0}
Rows = tuple[np.ndarray, np.ndarray, np.ndarray | None]


class Problem(NamedTuple):
    """What is to be learned, by which kernels of which inputs."""

    rows: Callable[[np.random.Generator], Rows]
    model: Callable[..., Any]
    kernels: list[str]
    channels: Any


def numbers(rng: np.random.Generator) -> Rows:
    """A target of two of four channels."""
    X = rng.normal(size=(N, INPUTS))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(X[:, 4]) + 0.3 * rng.normal(size=N), None


def weighted(rng: np.random.Generator) -> Rows:
    """Three targets in their own units, rows with weights."""
    X, y, _ = numbers(rng)
    Y = np.column_stack([y, X[:, 6] ** 2 + 3, np.tanh(X[:, 0])]) + 0.1 * rng.normal(size=(N, 3))
    return X, Y, rng.gamma(2, size=N)


def labels(rng: np.random.Generator) -> Rows:
    """Three classes."""
    X, y, _ = numbers(rng)
    return X, np.digitize(y, np.quantile(y, [0.4, 0.7])), None


ALL = [slice(0, INPUTS)]
FOUR = [slice(i, i + 3) for i in range(0, INPUTS, 3)]
PROBLEMS = {
    "four channels": Problem(numbers, dkl.MultipleKernelRegressor, ["gaussian"], FOUR),
    "six kernels of all inputs": Problem(
        numbers, dkl.MultipleKernelRegressor, [*(f"gaussian:scale*{s}" for s in (0.25, 0.5, 1, 2, 4)), "laplacian"], ALL
    ),
    "two kernels of each input": Problem(numbers, dkl.MultipleKernelRegressor, ["gaussian", "laplacian:0.5"], "each"),
    "three outputs, weights": Problem(weighted, dkl.MultipleKernelRegressor, ["gaussian", "gaussian:scale*3"], FOUR),
    "three classes": Problem(labels, dkl.MultipleKernelClassifier, ["gaussian", "gaussian:scale*3"], FOUR),
}  # fmt: skip


class Found(NamedTuple):
    """Of one problem at one alpha."""

    error: float  # of the weights, over their sum
    gap: float  # of the exact ones
    apart: float  # relative difference of the objectives
    used: int
    kernels: int


def run(options: argparse.Namespace) -> None:
    """Every problem at every alpha, each on several draws."""
    about = f"{N} rows, 60 features of each kernel, {options.seeds} draws, alpha {SHARES} of the largest"
    rows, every = [("work", about)], []
    for name, problem in PROBLEMS.items():
        found = [one(problem, seed, share) for seed in range(options.seeds) for share in SHARES]
        used = [each.used for each in found]
        worst = max(each.error for each in found)
        rows.append((name, f"{worst:.1e}   {min(used)} to {max(used)} of {found[0].kernels} kernels used"))
        every += found
    rows.append(("duality gap of exact GMKL, at most", f"{max(each.gap for each in every):.0e}"))
    rows.append(("objectives apart by, at most", f"{max(each.apart for each in every):.0e}"))
    report("equivalence", rows, {"weights_error": max(each.error for each in every)}, BARS)


def one(problem: Problem, seed: int, share: float) -> Found:
    """Both solvers at `share` of the least alpha that leaves no kernel."""
    X, y, weight = problem.rows(np.random.default_rng(seed))
    how = {"channels": problem.channels, "n_alphas": 2, "eps": share, "rule": "last", **OURS}
    model = problem.model(problem.kernels, 60, **how).fit(X, y, weight)
    groups, blocks = model.features_.column_group, model.features_.at(np.float64)
    Psi = np.empty((N, len(groups)))
    blocks.write(blocks.prepare(X), Psi)
    Psi *= model.features_.scale
    grams = [Psi[:, groups == g] @ Psi[:, groups == g].T for g in range(groups.max() + 1)]
    exact = (GMKLClassifier if is_classifier(model) else GMKL)("precomputed", alpha=model.alpha_, **EXACT)
    exact.fit(grams, y, weight)
    ours, theirs = model.kernel_weights_.values.ravel(), exact.kernel_weights_
    least = float(exact.history_["objective"][-1])
    own = float(model.path_["objective"][-1]) * (N if weight is None else weight.sum())
    error = float(abs(ours - theirs).max() / theirs.sum())
    return Found(error, exact.certificate_["gap"], abs(own / least - 1), int((ours > 0).sum()), len(ours))
