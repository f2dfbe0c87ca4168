"""Slow dense truth: objectives of kernel learning written down from their definitions, for real and complex arguments.

Nothing here is taken from dkl. Everything is analytic in sigma, frequencies, phases and lam, so that a step along the
imaginary axis gives derivatives to the last digits: dJ/dx = Im J(x + ih) / h.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

STEP = 1e-30


def features(T: np.ndarray, omega: np.ndarray, phase: np.ndarray, form: str) -> np.ndarray:
    """Psi with its scale; in the paired form a phase, if there is one, belongs to the last frequency."""
    theta, D = T @ omega, omega.shape[1]
    if form == "phase":
        return np.sqrt(2 / D) * np.cos(theta + 2 * np.pi * phase)
    if not len(phase):
        return np.hstack([np.cos(theta), np.sin(theta)]) / np.sqrt(D)
    pairs, last = theta[:, :-1], theta[:, -1:]
    lone = np.sqrt(2) * np.cos(last + 2 * np.pi * phase)
    return np.hstack([np.cos(pairs), lone, np.sin(pairs)]) / np.sqrt(D)


def ridge(Psi: np.ndarray, Y: np.ndarray, w: np.ndarray, lam: complex, intercept: bool) -> np.ndarray:
    """Weights, and the intercept as the last row: the normal equations of the bordered system."""
    A = np.hstack([Psi, np.ones((len(Psi), 1))]) if intercept else Psi
    penalty = lam * np.eye(A.shape[1], dtype=complex)
    if intercept:
        penalty[-1, -1] = 0
    return np.linalg.solve(A.T @ (w[:, None] * A) + penalty, A.T @ (w[:, None] * Y))


def predict(Psi: np.ndarray, B: np.ndarray, intercept: bool) -> np.ndarray:
    """Scores."""
    return Psi @ B[:-1] + B[-1] if intercept else Psi @ B


def held_out(Psi, Y, w, lam, intercept, train, test):
    """Mean over rows and outputs of the squared error on the test rows."""
    B = ridge(Psi[train], Y[train], w[train], lam, intercept)
    E = predict(Psi[test], B, intercept) - Y[test]
    return (w[test, None] * E * E).sum() / (w[test].sum() * Y.shape[1])


def validation(Psi, Y, w, lam, intercept, fold):
    """Rows of fold 1 test."""
    return held_out(Psi, Y, w, lam, intercept, fold == 0, fold == 1)


def cv(Psi, Y, w, lam, intercept, fold):
    """Mean over the folds."""
    folds = range(fold.max() + 1)
    return sum(held_out(Psi, Y, w, lam, intercept, fold != k, fold == k) for k in folds) / len(folds)


def joint(Psi, Y, w, lam, intercept, fold):
    """The training objective."""
    B = ridge(Psi, Y, w, lam, intercept)
    E = predict(Psi, B, intercept) - Y
    inner = B[:-1] if intercept else B
    return ((w[:, None] * E * E).sum() + lam * (inner * inner).sum()) / (w.sum() * Y.shape[1])


def gcv(Psi, Y, w, lam, intercept, fold):
    """From the trace of the hat matrix, written out."""
    A = np.hstack([Psi, np.ones((len(Psi), 1))]) if intercept else Psi
    penalty = lam * np.eye(A.shape[1], dtype=complex)
    if intercept:
        penalty[-1, -1] = 0
    hat = A @ np.linalg.solve(A.T @ (w[:, None] * A) + penalty, A.T * w)
    E, n = hat @ Y - Y, (w > 0).sum()
    return (n / (n - np.trace(hat))) ** 2 * (w[:, None] * E * E).sum() / (w.sum() * Y.shape[1])


OBJECTIVES: dict[str, Callable] = {"validation": validation, "cv": cv, "joint": joint, "gcv": gcv}


def complex_step(function: Callable[[np.ndarray], complex], x: np.ndarray) -> np.ndarray:
    """The gradient of an analytic function, one coordinate at a time."""
    x = np.asarray(x, complex)
    gradient = np.empty(x.size)
    for i in range(x.size):
        moved = x.copy()
        moved[i] += 1j * STEP
        gradient[i] = np.imag(function(moved)) / STEP
    return gradient
