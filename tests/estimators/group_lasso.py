"""The group lasso by accelerated proximal gradient on materialised features, written without the library."""

from __future__ import annotations

from typing import Any

import numpy as np


def features_of(model: Any, X: np.ndarray) -> np.ndarray:
    """All features of a fitted model, scaled, in float64."""
    blocks = model.features_.at(np.float64)
    T, out = blocks.prepare(X), np.empty((len(X), model.features_.n_features))
    blocks.write(T, out)
    return out * model.features_.scale


def group_lasso(
    phi: np.ndarray, Y: np.ndarray, w: np.ndarray, alpha: float, groups: np.ndarray, eta: np.ndarray,
    intercept: bool = True, ridge: float = 0.0, steps: int = 200_000,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(W, b) of least sum w |y - phi W - b|^2 / 2 + alpha [sum eta_g |W_g|_F + ridge / 2 |W|^2]."""
    mean = np.average(phi, axis=0, weights=w) * intercept
    level = np.average(Y, axis=0, weights=w) * intercept
    P, y = phi - mean, Y - level
    gram = P.T @ (w[:, None] * P) + alpha * ridge * np.eye(P.shape[1])
    pull, most = P.T @ (w[:, None] * y), 0.0
    most = np.linalg.eigvalsh(gram)[-1]
    W = V = np.zeros_like(pull)
    t, count = 1.0, len(eta)
    for _ in range(steps):
        step = V - (gram @ V - pull) / most
        norm = np.sqrt(np.bincount(groups, (step**2).sum(axis=1), count))
        shrink = np.maximum(0, 1 - alpha * eta / most / np.maximum(norm, 1e-300))
        new = shrink[groups][:, None] * step
        if ((V - new) * (new - W)).sum() > 0:
            t = 1.0
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        moved = np.abs(new - W).max()
        W, V, t = new, new + (t - 1) / after * (new - W), after
        if moved < 1e-14:
            break
    return W, level - mean @ W
