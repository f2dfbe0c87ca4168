"""Paths of groups by any loss on little data, and the same least points by proximal gradients on dense features."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.learn.group_weights import GroupOptions, GroupWeights
from dkl.learn.iterate import Iterated
from dkl.learn.loss_path import FoundPaths, group_loss_path
from dkl.learn.run import Limits, Run
from dkl.losses import find_loss, loss_of_scores
from dkl.prepare.folds import Folds, Split
from dkl.prepare.prepared import Prepared
from tests.learn.loss_data import CODES, NUMBERS, WEIGHT, D, dense_features, prepared, value_and_slope
from tests.learn.loss_data import SIGMA as SIGMAS

GROUPS = np.arange(D) % 4
ETA = np.array([1.0, 1.5, 0.7, 1.2])
FOLDS = Split(Folds(3, None))
CURVED = {"epsilon_insensitive": 5.0, "log_loss": 0.5, "logistic": 0.25, "smoothed_hinge": 2.0}
"""The most that the second derivative of a loss can be; 1 of the others."""


def numbers_or_codes(loss: str, outputs: int) -> np.ndarray:
    """y for a loss."""
    return CODES[outputs] if find_loss(loss).is_class else NUMBERS[:, :outputs]


def path_of(
    data: Prepared, loss: str, checkpoint: Any = None, max_time: float | None = None, **options: Any
) -> tuple[GroupWeights, Iterated[FoundPaths]]:  # fmt: skip
    """The path of prepared data."""
    asked = GroupOptions(**{"groups": GROUPS, "fit_intercept": True, "count": 6, "least": 0.03} | options)
    run = Run(engine_for(data.rows.is_lazy), data.rows, Progress(0), Limits(max_time=max_time), checkpoint)
    return group_loss_path(run, data, asked, loss_of_scores(find_loss(loss), data.targets.n_outputs))


def fit_path(loss: str, outputs: int = 3, **options: Any) -> GroupWeights:
    """A short path, with folds."""
    data = prepared(numbers_or_codes(loss, outputs), WEIGHT, FOLDS)
    return path_of(data, loss, **{"count": 3, "tol": 1e-3, "eta": ETA} | options)[0]


class Dense:
    """mean loss + lam penalty on dense features, and its least point by accelerated proximal gradients."""

    def __init__(
        self, loss: str, y: np.ndarray, weight: np.ndarray, penalty: str, eta: np.ndarray, ridge: float = 0.0,
        intercept: bool = True, by_output: bool = False,
    ) -> None:  # fmt: skip
        self.loss, self.penalty, self.eta, self.ridge = loss, penalty, eta, ridge
        self.intercept, self.by_output, self.w = intercept, by_output, weight
        classes = int(y.max()) + 1 if y.ndim == 1 else 0
        self.c = (1 if classes == 2 else classes) if y.ndim == 1 else y.shape[1]
        self.Psi, self.total = dense_features(SIGMAS), weight.sum()
        self.y = y if y.ndim == 1 else y - np.average(y, axis=0, weights=weight) * intercept

    def parts(self, W: np.ndarray) -> list[tuple[int, tuple]]:
        """Each group and its entries."""
        if self.by_output:
            return [(g, np.ix_(g == GROUPS, [j])) for g in range(4) for j in range(self.c)]
        return [(g, np.ix_(g == GROUPS, range(self.c))) for g in range(4)]

    def size(self, part: np.ndarray) -> float:
        """The norm of one group."""
        return float(np.linalg.norm(part) if self.penalty == "l21" else np.abs(part).max())

    def dual(self, part: np.ndarray) -> float:
        """Its dual norm."""
        return float(np.linalg.norm(part) if self.penalty == "l21" else np.abs(part).sum())

    def smooth(self, x: np.ndarray, keep: Any) -> tuple[float, np.ndarray]:
        """The loss of some rows over the weight of all, and its gradient."""
        P, w = self.Psi[keep], self.w[keep]
        value, slope = value_and_slope(self.loss, P @ x[:-1] + x[-1], self.y[keep])
        pulled = np.vstack([P.T @ (w[:, None] * slope), self.intercept * (w @ slope)])
        return float(w @ value) / self.total, pulled / self.total

    def value(self, x: np.ndarray, lam: float, keep: Any = slice(None)) -> float:
        """J."""
        W = x[:-1]
        if self.penalty == "l2":
            return self.smooth(x, keep)[0] + lam / 2 * float((W * W).sum())
        norm = sum(self.eta[g] * self.size(W[at]) for g, at in self.parts(W))
        return self.smooth(x, keep)[0] + lam * (norm + self.ridge / 2 * float((W * W).sum()))

    def prox(self, U: np.ndarray, step: float) -> np.ndarray:
        """Group by group; of l1linf the height at which entries are cut is the largest of these means."""
        if self.penalty == "l2":
            return U / (1 + step)
        U = U / (1 + step * self.ridge)
        found = np.zeros_like(U)
        for g, at in self.parts(U):
            limit, u = step * self.eta[g] / (1 + step * self.ridge), U[at]
            if self.dual(u) <= limit:
                continue
            if self.penalty == "l21":
                found[at] = u * (1 - limit / np.linalg.norm(u))
                continue
            falling = np.sort(np.abs(u).ravel())[::-1]
            height = ((np.cumsum(falling) - limit) / np.arange(1, u.size + 1)).max()
            found[at] = np.clip(u, -height, height)
        return found

    def least(self, lam: float, keep: Any = slice(None), start: Any = None, steps: int = 20_000) -> np.ndarray:
        """The least point, until a step changes nothing above 1e-13."""
        P = np.hstack([self.Psi[keep], np.ones((len(self.Psi[keep]), 1))])
        bound = CURVED.get(self.loss, 1.0) * np.linalg.norm(P.T @ (self.w[keep][:, None] * P), 2) / self.total
        x = np.zeros((D + 1, self.c)) if start is None else start
        v, t = x, 1.0
        for _ in range(steps):
            u = v - self.smooth(v, keep)[1] / bound
            after = np.vstack([self.prox(u[:-1], lam / bound), u[-1:]])
            if ((v - after) * (after - x)).sum() > 0:
                t, momentum = 1.0, 0.0
            else:
                later = (1 + (1 + 4 * t * t) ** 0.5) / 2
                t, momentum = later, (t - 1) / later
            still = np.abs(after - v).max() <= 1e-13
            v, x = after + momentum * (after - x), after
            if still:
                break
        return x

    def breach(self, x: np.ndarray, lam: float, keep: Any = slice(None)) -> float:
        """The largest breach of the conditions of a least point, group by group."""
        slope = self.smooth(x, keep)[1]
        C, W, worst = -slope[:-1] - lam * self.ridge * x[:-1], x[:-1], float(np.abs(slope[-1]).max())
        if self.penalty == "l2":
            return max(worst, float(np.abs(C - lam * W).max()))
        for g, at in self.parts(W):
            c, b, limit = C[at], W[at], lam * self.eta[g]
            worst = max(worst, self.dual(c) - limit)
            if b.any():
                worst = max(worst, abs(float((c * b).sum()) / self.size(b) - limit))
        return worst
