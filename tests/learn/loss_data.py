"""Small problems for sigma under any loss, and the same objectives in dense numpy and scipy."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from scipy.optimize import minimize, root
from scipy.special import expit, logsumexp, softmax

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, open_table
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.kernels import KERNELS
from dkl.learn.bandwidth import Start
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.learned import Learned
from dkl.learn.loss_bandwidth import LossBandwidth, loss_bandwidth
from dkl.learn.objectives import OBJECTIVES
from dkl.learn.parameters import Scales
from dkl.learn.run import Limits, Run
from dkl.losses import find_loss, loss_of_scores
from dkl.prepare.folds import Folds, Split
from dkl.prepare.prepared import Prepared
from dkl.prepare.targets import label_targets, number_targets

N, M, D, K, SEED = 60, 3, 12, 3, 7
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, M))
SCORE = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
NUMBERS = np.column_stack([3 + SCORE, 2 * X[:, 1] * X[:, 2], np.cos(X[:, 0])]) + RNG.normal(size=(N, 3))
NOISY = SCORE + 0.4 * RNG.normal(size=N)
CODES = {1: (NOISY > 0).astype(int), 3: np.digitize(NOISY, [-0.5, 0.5])}
WEIGHT = RNG.uniform(0.5, 20.0, N)
UNIT = draw_unit(KERNELS["gaussian"], M, D // 2, "iid", RNG)
SIGMA = np.array([0.7, 0.5, 0.9])


def features(sigma: Any = SIGMA, unit: np.ndarray = UNIT) -> FourierMap:
    """The map."""
    return FourierMap(KERNELS["gaussian"], unit, np.asarray(sigma, float), np.empty(0), 1.0, "paired")


def targets_of(loss: str, outputs: int) -> np.ndarray:
    """y for a loss."""
    return CODES[outputs] if find_loss(loss).is_class else NUMBERS[:, :outputs]


def prepared(
    y: np.ndarray, weight: np.ndarray | None, split: Split, X: np.ndarray = X, unit: np.ndarray = UNIT,
    intercept: bool = True, chunk: int = 0, dtype: Any = float,
) -> Prepared:  # fmt: skip
    """What a fit would start from; with `chunk`, rows in chunks of dask."""

    def table(values: np.ndarray, name: str) -> Table:
        if not chunk:
            return Table("memory", values)
        return open_table(da.from_array(values, chunks=(chunk, *values.shape[1:])), name)

    rows, target = table(X, "X"), table(y, "y")
    weights = None if weight is None else table(weight, "sample_weight")
    targets = (
        label_targets(target, weights, None, Progress(0))
        if y.ndim == 1
        else number_targets(target, weights, intercept, Progress(0))
    )
    every = Rows([rows, target, weights, None], ["X", "y", "sample_weight", "cv"])
    m, ones = X.shape[1], np.ones(len(X)) if weight is None else weight
    squares = ones @ X**2
    sigma = np.resize(SIGMA, m)
    return Prepared(
        rows, every, targets, features(sigma, unit), np.arange(m), SEED, np.dtype(dtype), split, squares, None
    )  # fmt: skip


SPLITS = {"joint": Split(), "validation": Split(Folds(2, None), (1, 3)), "cv": Split(Folds(K, None))}


def method_of(
    data: Prepared, loss: str, objective: str, alpha: float | None, intercept: bool = True, tol: float = 1e-3,
    starts: tuple[Start, ...] = (Start(),), l1: float = 0.0, **options: Any,
) -> LossBandwidth:  # fmt: skip
    """The method; the weights are as precise as its tol."""
    scales = Scales(data.features, data.groups, l1)  # type: ignore[arg-type]
    record = loss_of_scores(find_loss(loss), data.targets.n_outputs)
    return loss_bandwidth(
        data, record, OBJECTIVES[objective], scales, alpha=alpha, fit_intercept=intercept, tol=tol, starts=starts,
        **options,
    )  # fmt: skip


def learn(
    data: Prepared, method: LossBandwidth, max_iter: int = 50, checkpoint: Any = None, engine: Any = None
) -> Iterated[Learned]:
    """The end of learning."""
    limits, engine = Limits(max_iter, method.problem.tol), engine or engine_for(data.rows.is_lazy)
    return iterate(Run(engine, data.rows, Progress(0), limits, checkpoint), method)


def fit_loss(objective: str) -> Iterated[Learned]:
    """Few iterations of one objective, from two starts."""
    data = prepared(CODES[3], WEIGHT, SPLITS[objective])
    alpha = 1.0 if objective == "joint" else None
    return learn(data, method_of(data, "log_loss", objective, alpha, starts=(Start(), Start(3.0)), tol=1e-9), 2)


# the same in dense numpy and scipy


def value_and_slope(loss: str, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """l and dl/dz of each row, written once more."""
    if loss == "log_loss" and z.shape[1] > 1:
        own = np.eye(z.shape[1])[y]
        return logsumexp(z, axis=1) - (own * z).sum(axis=1), softmax(z, axis=1) - own
    if y.ndim == 1:
        sign = (2.0 * y - 1)[:, None] if z.shape[1] == 1 else 2 * np.eye(z.shape[1])[y] - 1
        t = sign * z
        if loss in ("log_loss", "logistic"):
            value, slope = np.log1p(np.exp(-t)), -expit(-t)
        elif loss == "squared_hinge":
            value, slope = 0.5 * np.maximum(0, 1 - t) ** 2, -np.maximum(0, 1 - t)
        else:
            q, mu = 1 - t, 0.5
            value = np.where(q <= 0, 0, np.where(q < mu, q * q / (2 * mu), q - mu / 2))
            slope = -np.clip(q / mu, 0, 1)
        return value.sum(axis=1), sign * slope
    r = z - y
    if loss == "huber":
        far = np.abs(r) > 1.35
        return np.where(far, 1.35 * np.abs(r) - 1.35**2 / 2, r * r / 2).sum(axis=1), np.clip(r, -1.35, 1.35)
    g, e = 10.0, 0.1
    value = np.logaddexp(0, g * (r - e)) + np.logaddexp(0, g * (-r - e)) - 2 * np.logaddexp(0, -g * e)
    return (value / g).sum(axis=1), expit(g * (r - e)) - expit(g * (-r - e))


def dense_features(sigma: np.ndarray) -> np.ndarray:
    """Cosines and sines, and a one for the intercept."""
    theta = (X * sigma) @ UNIT
    return np.hstack([np.cos(theta), np.sin(theta)]) / np.sqrt(D // 2)


def dense_weights(
    loss: str, Psi: np.ndarray, y: np.ndarray, w: np.ndarray, alpha: float, intercept: bool, outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    """B and b to the last digits: L-BFGS, then Powell's hybrid method on the gradient."""
    rows = D + intercept

    def split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = x.reshape(rows, outputs)
        return both[:D], both[D] if intercept else np.zeros(outputs)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        B, b = split(x)
        value, slope = value_and_slope(loss, Psi @ B + b, y)
        pulled = Psi.T @ (w[:, None] * slope) + alpha * B
        gradient = np.vstack([pulled, w @ slope]) if intercept else pulled
        return (w @ value + alpha / 2 * (B * B).sum()) / w.sum(), gradient.ravel() / w.sum()

    start = minimize(objective, np.zeros(rows * outputs), jac=True, options={"maxiter": 5000, "gtol": 1e-9}).x
    return split(root(lambda x: objective(x)[1], start, tol=1e-14).x)


def dense_objective(
    name: str, loss: str, y: np.ndarray, w: np.ndarray, fold: np.ndarray, sigma: np.ndarray, alpha: float,
    intercept: bool, outputs: int,
) -> float:  # fmt: skip
    """F or E at one sigma and alpha."""
    Psi = dense_features(sigma)
    if name == "joint":
        B, b = dense_weights(loss, Psi, y, w, alpha, intercept, outputs)
        return float((w @ value_and_slope(loss, Psi @ B + b, y)[0] + alpha / 2 * (B * B).sum()) / w.sum())
    total = weight = 0.0
    for test in [1] if name == "validation" else range(K):
        out = fold == test
        B, b = dense_weights(loss, Psi[~out], y[~out], w[~out], alpha, intercept, outputs)
        total += float(w[out] @ value_and_slope(loss, Psi[out] @ B + b, y[out])[0])
        weight += float(w[out].sum())
    return total / weight
