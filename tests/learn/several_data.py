"""Small problems for the sigmas of several kernels, and the same objectives in dense numpy and scipy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
from scipy.optimize import root

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, open_table
from dkl.features.channel import Channel
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.features.side_by_side import SideBySide
from dkl.kernels import KERNELS
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.run import Limits, Run
from dkl.learn.several_bandwidths import (
    BandwidthOptions,
    LearnedBandwidths,
    learn_bandwidths,
    several_bandwidths,
)
from dkl.learn.several_descents import SeveralBandwidths
from dkl.losses import find_loss, loss_of_scores
from dkl.penalties import GroupL21
from dkl.prepare.folds import Folds, Split
from dkl.prepare.prepared import Prepared
from dkl.prepare.targets import label_targets, number_targets
from dkl.solvers.fista import fista

N, K, SEED = 90, 3, 7
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
CHANNELS = (np.array([0, 1]), np.array([2]), np.array([3, 4]))
SCORE = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + np.cos(2 * X[:, 2])
NUMBERS = np.column_stack([3 + SCORE, 20 * np.sin(X[:, 2]) * X[:, 1]]) + 0.2 * RNG.normal(size=(N, 2))
CODES = {2: (SCORE > 0.7).astype(int), 3: np.digitize(SCORE, [0.2, 1.2])}
WEIGHT = RNG.uniform(0.5, 20.0, N)
SIGMAS = (np.array([0.9, 0.6]), np.array([1.1]), np.array([0.5, 0.8]))
SIZES = (8, 6, 7)
"""Features of each kernel; the last one is odd, so that it has a phase, and the scales differ."""
SPLITS = {"joint": Split(), "validation": Split(Folds(2, None), (1, 3)), "cv": Split(Folds(K, None))}


def side_by_side(
    sigmas: Any = SIGMAS,
    channels: Any = CHANNELS,
    sizes: Any = SIZES,
    kernels: Any = ("gaussian", "matern32", "gaussian"),
) -> SideBySide:
    """Maps of several channels, the same frequencies for any sigma."""
    rng, parts = np.random.default_rng(3), []
    for sigma, inputs, d, name in zip(sigmas, channels, sizes, kernels, strict=True):
        unit = np.clip(draw_unit(KERNELS[name], len(inputs), (d + 1) // 2, "iid", rng), -5, 5)
        of = FourierMap(KERNELS[name], unit, np.array(sigma, float), rng.random(d % 2), 1.0, "paired")
        parts.append(Channel(of, inputs))
    return SideBySide(tuple(parts))


def prepared(
    y: np.ndarray, weight: np.ndarray | None, split: Split, X: np.ndarray = X, features: SideBySide | None = None,
    intercept: bool = True, chunk: int = 0, dtype: Any = float, squares: bool = False,
) -> Prepared:  # fmt: skip
    """What a fit would start from; with `chunk`, rows in chunks of dask."""

    def table(values: np.ndarray, name: str) -> Table:
        if not chunk:
            return Table("memory", values)
        return open_table(da.from_array(values, chunks=(chunk, *values.shape[1:])), name)

    features = side_by_side() if features is None else features
    rows, target = table(X, "X"), table(y, "y")
    weights = None if weight is None else table(weight, "sample_weight")
    targets = (
        label_targets(target, weights, None, Progress(0))
        if y.ndim == 1
        else number_targets(target, weights, intercept, Progress(0))
    )
    every = Rows([rows, target, weights, None], ["X", "y", "sample_weight", "cv"])
    none = np.empty(0)
    return Prepared(
        rows, every, targets, features, np.zeros(X.shape[1], int), SEED, np.dtype(dtype), split, none, None
    )  # type: ignore[arg-type]  # fmt: skip


def run_of(data: Prepared, max_iter: int = 50, tol: float = 1e-3, checkpoint: Any = None, engine: Any = None) -> Run:
    """A run of one process, or of the cluster that is connected."""
    return Run(engine or engine_for(data.rows.is_lazy), data.rows, Progress(0), Limits(max_iter, tol), checkpoint)


def options_of(objective: str, intercept: bool = True, **options: Any) -> BandwidthOptions:
    """Options; joint has an alpha."""
    given = {"alpha": 2.0} if objective == "joint" else {}
    return BandwidthOptions(objective, intercept, **{**given, **options})


def learn(data: Prepared, options: BandwidthOptions, **limits: Any) -> Iterated[LearnedBandwidths]:
    """The end of learning."""
    return learn_bandwidths(run_of(data, **limits), data, options)


def method_of(data: Prepared, options: BandwidthOptions, tol: float = 1e-3) -> SeveralBandwidths:
    """The method."""
    return several_bandwidths(data, options, run_of(data, tol=tol))


def fit_several(objective: str, **options: Any) -> Iterated[Any]:
    """Few iterations of one objective."""
    data = prepared(NUMBERS, WEIGHT, SPLITS[objective])
    run = run_of(data, 2, 1e-9)
    return iterate(run, several_bandwidths(data, options_of(objective, **options), run))


def fit_several_losses() -> Iterated[Any]:
    """Few iterations of the log loss of two classes."""
    data = prepared(CODES[2], WEIGHT, SPLITS["joint"])
    run = run_of(data, 2, 1e-6)
    loss = loss_of_scores(find_loss("log_loss"), 1)
    return iterate(run, several_bandwidths(data, options_of("joint", loss=loss), run))


def at_start(data: Prepared, options: BandwidthOptions, tol: float = 1e-10) -> Any:
    """The first step of learning that begins at alpha itself."""
    run = run_of(data, tol=tol)
    method = several_bandwidths(data, replace(options, lowered=1.0), run)
    return method, method.step(run, method.begin(run))


# the same in dense numpy and scipy


def dense_features(sigmas: Any, X: np.ndarray = X) -> np.ndarray:
    """All maps side by side, by the formula of each."""
    blocks = []
    for channel, sigma in zip(side_by_side().channels, sigmas, strict=True):
        of = channel.of
        theta, D, odd = (X[:, channel.inputs] * sigma) @ of.unit, of.unit.shape[1], len(of.phase)
        pairs = theta[:, : D - odd]
        last = np.sqrt(2) * np.cos(theta[:, D - odd :] + 2 * np.pi * of.phase)
        blocks.append(np.hstack([np.cos(pairs), last, np.sin(pairs)]) / np.sqrt(D))
    return np.hstack(blocks)


GROUPS = np.repeat(np.arange(3), SIZES)


def dense_weights(
    Psi: np.ndarray, Y: np.ndarray, w: np.ndarray, lam: float, intercept: bool, eta: np.ndarray, ridge: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """W and b to the last digits: FISTA says which groups are zero, Powell's hybrid method solves for the others."""
    mean = (w @ Psi / w.sum() * intercept), (w @ Y / w.sum() * intercept)
    P, T = Psi - mean[0], Y - mean[1]
    G, R = P.T @ (w[:, None] * P), P.T @ (w[:, None] * T)
    H = G + lam * ridge * np.eye(len(G))
    rough = fista(H, R, lam, GroupL21(GROUPS, eta), energy=float(w @ (T * T).sum(axis=1)), tol=1e-10, max_iter=100_000)
    norms = np.sqrt(np.bincount(GROUPS, (rough.coef**2).sum(axis=1)))
    on = norms[GROUPS] > 1e-6 * norms.max()
    group, W = GROUPS[on], np.zeros_like(R)

    def slope(x: np.ndarray) -> np.ndarray:
        B = x.reshape(-1, R.shape[1])
        length = np.sqrt(np.bincount(group, (B * B).sum(axis=1), minlength=3))[group]
        return (H[np.ix_(on, on)] @ B + (lam * eta[group] / length)[:, None] * B - R[on]).ravel() / np.abs(R).max()

    if on.any():
        W[on] = root(slope, rough.coef[on].ravel(), tol=1e-14).x.reshape(-1, R.shape[1])
    return W, (mean[1] - mean[0] @ W) * intercept


def dense_objective(
    name: str, Y: np.ndarray, w: np.ndarray, fold: np.ndarray, sigmas: Any, alpha: float, intercept: bool,
    eta: np.ndarray, ridge: float = 0.0, by_output: bool = False,
) -> float:  # fmt: skip
    """J at some sigmas and alpha, by definition."""
    Psi, c = dense_features(sigmas), Y.shape[1]

    def weights(keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [[j] for j in range(c)] if by_output else [list(range(c))]
        found = [dense_weights(Psi[keep], Y[keep][:, own], w[keep], alpha, intercept, eta, ridge) for own in parts]
        return np.hstack([W for W, _ in found]), np.concatenate([b for _, b in found])

    if name == "joint":
        W, b = weights(np.ones(len(Y), bool))
        columns = [W[:, [j]] for j in range(c)] if by_output else [W]
        norms = sum(eta @ np.sqrt(np.bincount(GROUPS, (V**2).sum(axis=1))) for V in columns)
        missed = float(w @ ((Psi @ W + b - Y) ** 2).sum(axis=1))
        return (missed + 2 * alpha * (norms + ridge / 2 * (W**2).sum())) / (c * w.sum())
    errors = []
    for test in [1] if name == "validation" else range(K):
        out = fold == test
        W, b = weights(~out)
        errors.append(float(w[out] @ ((Psi[out] @ W + b - Y[out]) ** 2).mean(axis=1)) / w[out].sum())
    return float(np.mean(errors))


def complex_objective(
    name: str, Y: np.ndarray, w: np.ndarray, fold: np.ndarray, Psi: np.ndarray, alpha: Any, intercept: bool,
    eta: np.ndarray,
) -> complex:  # fmt: skip
    """The same of complex features or alpha, analytic on the groups that are used: no number is conjugated."""

    def weights(keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        W, _ = dense_weights(Psi[keep].real, Y[keep], w[keep], float(np.real(alpha)), intercept, eta)
        on, v = np.flatnonzero((W != 0).any(axis=1)), w[keep]
        mean = v @ Psi[keep] / v.sum() * intercept, v @ Y[keep] / v.sum() * intercept
        P, T = (Psi[keep] - mean[0])[:, on], Y[keep] - mean[1]
        G, R, group, c = P.T @ (v[:, None] * P), P.T @ (v[:, None] * T), GROUPS[on], Y.shape[1]
        same = group[:, None] == group
        B = W[on].astype(complex)
        for _ in range(6):
            length = np.sqrt(same @ (B * B).sum(axis=1))
            h = alpha * eta[group] / length
            left = G @ B + h[:, None] * B - R
            H = np.kron(G + np.diag(h), np.eye(c))
            H -= np.kron(same, np.ones((c, c))) * np.outer(B.ravel(), B.ravel() * np.repeat(h / length**2, c))
            B = B - np.linalg.solve(H, left.ravel()).reshape(B.shape)
        found = np.zeros(W.shape, complex)
        found[on] = B
        return found, (mean[1] - mean[0] @ found) * intercept

    def missed(rows: np.ndarray, W: np.ndarray, b: np.ndarray) -> complex:
        return w[rows] @ ((Psi[rows] @ W + b - Y[rows]) ** 2).sum(axis=1) / (Y.shape[1] * w[rows].sum())

    if name == "joint":
        every = np.ones(len(Y), bool)
        W, b = weights(every)
        used = np.flatnonzero((W != 0).any(axis=1))
        norms = sum(eta[g] * np.sqrt((W[g == GROUPS] ** 2).sum()) for g in set(GROUPS[used].tolist()))
        return missed(every, W, b) + 2 * alpha * norms / (Y.shape[1] * w.sum())
    tests = [1] if name == "validation" else list(range(K))
    return sum(missed(fold == test, *weights(fold != test)) for test in tests) / len(tests)
