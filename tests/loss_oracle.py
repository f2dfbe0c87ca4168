"""The least point of a loss and a penalty on dense features, by formulas and solvers that are not dkl's.

    P(B, b) = sum_i w_i l(B' psi_i + b, y_i) + alpha penalty(B)

Smooth problems and l1 (in positive and negative parts) are scipy's L-BFGS-B; norms of rows are a plain accelerated
proximal gradient, run until it stands still. `from_sklearn` has the same problem where scikit-learn has it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, MultiTaskLasso, Ridge

import dkl
from dkl.losses import loss_names

PENALTIES = (
    "l2", "l1", "group_l21", "l1_linf", "elastic", "l1:ridge=0.5", "group_l21:ridge=0.5", "l1_linf:ridge=2",
)  # fmt: skip
SOLVERS = ("cholesky", "cg", "fista", "lbfgs", "newton")
TARGETS = {
    "one number": loss_names(False),
    "two numbers": loss_names(False),
    "two classes": ["square", *loss_names(True)],
    "three classes": ["square", *loss_names(True)],
}
"""Losses of each kind of y."""
CURVED = {"epsilon_insensitive": 5.0, "log_loss": 0.5, "logistic": 0.25, "smoothed_hinge": 2.0}
"""The most that the second derivative of a loss can be; 1 of the others."""
N, M, COMPONENTS = 90, 3, 12


@dataclass(frozen=True)
class Drawn:
    """A random problem: weighted rows, some of them of weight zero, and alpha."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    alpha: float

    @classmethod
    def of(cls, seed: int, target: str) -> Drawn:
        """That of a seed."""
        rng = np.random.default_rng(seed)
        X, weight = rng.normal(size=(N, M)), rng.gamma(2, size=N) * (rng.random(N) > 0.05)
        score = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.4 * rng.standard_t(3, size=(N, 2))
        numbers = score * [1, 3] + 5
        codes = np.digitize(score[:, 0], [-0.5, 0.3])
        kinds = {"one number": numbers[:, 0], "two numbers": numbers, "two classes": codes > 0, "three classes": codes}
        return cls(X, kinds[target], weight, float(10 ** rng.uniform(-0.7, 1.0)))

    def fitted(self, loss: str, penalty: str, solver: str, tol: float, **options: Any) -> Any | None:
        """The model of dkl; None, if the solver refuses the task."""
        kind = dkl.SingleKernelRegressor if self.y.dtype.kind == "f" else dkl.SingleKernelClassifier
        model = kind(
            n_components=COMPONENTS, sigma=0.7, alpha=self.alpha, random_state=0, dtype="float64", verbose=0, loss=loss,
            penalty=penalty, solver=solver, solver_tol=tol, **options,
        )  # fmt: skip
        try:
            return model.fit(self.X, self.y, self.weight)
        except ValueError as error:
            if f"solver={solver!r}" not in str(error):
                raise
            return None

    def dense(self, model: Any, loss: str, penalty: str) -> Dense:
        """The same problem on the model's features."""
        Psi = np.asarray(model.features_.at(np.dtype(np.float64)).transform(self.X))
        Y = self.y.reshape(N, -1)
        if self.y.dtype.kind != "f":
            Y = 2.0 * (self.y[:, None] == np.arange(3)) - 1 if self.y.dtype.kind == "i" else 2.0 * Y - 1
        return Dense(Psi, Y, self.weight, loss, penalty, self.alpha)


@dataclass(frozen=True)
class Dense:
    """P on features in memory; Y are values, or +1 for the class of a row and -1 for others."""

    Psi: np.ndarray
    Y: np.ndarray
    weight: np.ndarray
    loss: str
    penalty: str
    alpha: float

    @property
    def kind(self) -> str:
        """The norm of the penalty, or l2."""
        name = self.penalty.partition(":")[0]
        return "l1" if name == "elastic" else name

    @property
    def ridge(self) -> float:
        """What the penalty has of 1/2 |B|^2."""
        if self.penalty in ("l2", "elastic"):
            return 1.0
        return float(self.penalty.partition("=")[2] or 0)

    @property
    def shape(self) -> tuple[int, int]:
        """That of B, with b as a last row."""
        return self.Psi.shape[1] + 1, self.Y.shape[1]

    def loss_at(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of each row, and its slope in the scores."""
        Y, r, t = self.Y, z - self.Y, z * self.Y
        if self.loss == "square":
            return 0.5 * (r * r).sum(axis=1), r
        if self.loss == "huber":
            far = np.abs(r) > 1.35
            return np.where(far, 1.35 * (np.abs(r) - 0.675), 0.5 * r * r).sum(axis=1), np.where(
                far, 1.35 * np.sign(r), r
            )  # fmt: skip
        if self.loss == "epsilon_insensitive":
            value = np.logaddexp(0, 10 * r - 1) + np.logaddexp(0, -10 * r - 1) - 2 * np.log1p(np.exp(-1))
            return value.sum(axis=1) / 10, expit(10 * r - 1) - expit(-10 * r - 1)
        if self.loss == "log_loss" and Y.shape[1] > 1:
            own = Y > 0
            return logsumexp(z, axis=1) - z[own], softmax(z, axis=1) - own
        if self.loss in ("log_loss", "logistic"):
            return np.logaddexp(0, -t).sum(axis=1), -Y * expit(-t)
        q = np.maximum(0, 1 - t)
        if self.loss == "squared_hinge":
            return 0.5 * (q * q).sum(axis=1), -Y * q
        assert self.loss == "smoothed_hinge"
        return np.where(q < 0.5, q * q, q - 0.25).sum(axis=1), -Y * np.where(q < 0.5, 2 * q, 1.0)

    def smooth(self, V: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss and the ridge, and their gradient, at B and b (d + 1, c)."""
        value, slope = self.loss_at(self.Psi @ V[:-1] + V[-1])
        slope = slope * self.weight[:, None]
        lam = self.alpha * self.ridge
        gradient = np.vstack([self.Psi.T @ slope + lam * V[:-1], slope.sum(axis=0)])
        return float(self.weight @ value + 0.5 * lam * (V[:-1] ** 2).sum()), gradient

    def norm(self, B: np.ndarray) -> float:
        """The part of the penalty with corners."""
        size = np.abs(B)
        rows = {"l2": 0 * size[:, 0], "l1": size.sum(axis=1), "l1_linf": size.max(axis=1)}
        return float(rows.get(self.kind, np.sqrt((B * B).sum(axis=1))).sum())

    def value(self, V: np.ndarray) -> float:
        """P."""
        return self.smooth(V)[0] + self.alpha * self.norm(V[:-1])

    def of_model(self, model: Any) -> float:
        """P at the weights of a fitted model."""
        coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        return self.value(np.vstack([coef.T, intercept]))

    def least(self) -> float:
        """The least P."""
        if self.kind in ("group_l21", "l1_linf"):
            return self.value(self._proximal())
        d1, c = self.shape
        free, some = d1 * c, (d1 - 1) * c if self.kind == "l1" else 0

        def of_parts(x: np.ndarray) -> tuple[float, np.ndarray]:
            V = x[:free].copy()
            V[:some] -= x[free:]
            value, gradient = self.smooth(V.reshape(d1, c))
            flat = gradient.ravel()
            both = np.append(flat, -flat[:some])
            both[:some] += self.alpha
            both[free:] += self.alpha
            return value + self.alpha * float(x[:some].sum() + x[free:].sum()), both

        bounds = [(0, None)] * some + [(None, None)] * (free - some) + [(0, None)] * some
        limits = {"maxiter": 100_000, "maxfun": 200_000, "ftol": 0.0, "gtol": 1e-10, "maxcor": 30}
        found = minimize(of_parts, np.zeros(free + some), jac=True, method="L-BFGS-B", bounds=bounds, options=limits)
        return float(found.fun)

    def _proximal(self, most: int = 60_000) -> np.ndarray:
        """Accelerated proximal gradient with restart, until a step is but rounding."""
        ones = np.column_stack([self.Psi, np.ones(len(self.Psi))]) * np.sqrt(self.weight)[:, None]
        L = CURVED.get(self.loss, 1.0) * np.linalg.norm(ones, 2) ** 2 + self.alpha * self.ridge
        V = before = np.zeros(self.shape)
        t = 1.0
        for _ in range(most):
            after = V - self.smooth(V)[1] / L
            after[:-1] = self._prox(after[:-1], self.alpha / L)
            step, moved = after - V, after - before
            if np.abs(step).max() <= 1e-14 * np.abs(after).max():
                return after
            if (step * moved).sum() < 0:
                V, t = after, 1.0
            else:
                later = (1 + np.sqrt(1 + 4 * t * t)) / 2
                V, t = after + (t - 1) / later * moved, later
            before = after
        return before

    def _prox(self, B: np.ndarray, step: float) -> np.ndarray:
        """Rows shorter by step, or cut at the height that takes step from them."""
        if self.kind == "group_l21":
            length = np.sqrt((B * B).sum(axis=1, keepdims=True))
            return B * np.maximum(0, 1 - step / np.maximum(length, 1e-300))
        falling = -np.sort(-np.abs(B), axis=1)
        heights = (np.cumsum(falling, axis=1) - step) / np.arange(1, B.shape[1] + 1)
        cut = np.maximum(heights.max(axis=1, keepdims=True), 0)
        return np.clip(B, -cut, cut)

    def from_sklearn(self) -> float | None:
        """P where scikit-learn ends; None, if it has no such problem."""
        root, total = np.sqrt(self.weight)[:, None], self.weight.sum()
        mean, level = self.weight @ self.Psi / total, self.weight @ self.Y / total
        A, R = root * (self.Psi - mean), root * (self.Y - level)
        n, c, plain = len(A), self.Y.shape[1], {"fit_intercept": False}
        tight = {"tol": 1e-12, "max_iter": 1_000_000, **plain}
        other: Any = None
        if self.loss == "square" and self.penalty == "l2":
            other = Ridge(self.alpha, **plain)
        elif self.loss == "square" and self.penalty == "l1":
            other = Lasso(self.alpha / n, **tight)
        elif self.loss == "square" and self.kind == "l1":
            other = ElasticNet(self.alpha * (1 + self.ridge) / n, l1_ratio=1 / (1 + self.ridge), **tight)
        elif self.loss == "square" and self.penalty == "group_l21" and c > 1:
            other = MultiTaskLasso(self.alpha / n, **tight)
        if other is not None:
            B = np.atleast_2d(other.fit(A, R if c > 1 else R[:, 0]).coef_).T
            return self.value(np.vstack([B, level - mean @ B]))
        if self.loss != "log_loss" or self.penalty != "l2":
            return None
        codes = self.Y.argmax(axis=1) if c > 1 else self.Y[:, 0] > 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = LogisticRegression(C=1 / self.alpha, tol=1e-9, max_iter=10_000).fit(self.Psi, codes, self.weight)
        return self.value(np.vstack([other.coef_.T, other.intercept_]))
