"""Factors of A + lam I, safe at any conditioning: Cholesky, then jitter, then eigenvalues.

numpy's routines are used throughout because they let other threads run: on a scheduler the event loop goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpocon

from dkl.cost import SolveCost

EPS = float(np.finfo(np.float64).eps)
STRIP = 256
"""Rows of a triangular solve taken at once; short calls, with matrix products between them."""
MATRICES, SOLVE_THREADS = 9, 4
"""d x d matrices of one solve (one of them of unlabelled rows), and systems solved at the same time, at most."""


def factor_cost(d: int, c: int, systems: int = 1) -> SolveCost:
    """Cholesky factors of d x d systems and triangular solves of c outputs; the matrices of those under way."""
    at_once = min(systems, SOLVE_THREADS)
    return SolveCost(8 * at_once * (MATRICES * d * d + 6 * d * c), systems * (d**3 / 3 + 4 * d * d * c))


@dataclass(frozen=True)
class Factor:
    """A + lam I = L L' (cholesky, jitter), or U diag(values) U' without its null space (eigen)."""

    method: str
    jitter: float
    lower: np.ndarray | None = None
    vectors: np.ndarray | None = None
    values: np.ndarray | None = None

    def solve(self, B: np.ndarray) -> np.ndarray:
        """(A + lam I)^-1 B."""
        if self.lower is None:
            assert self.vectors is not None
            assert self.values is not None
            return np.asarray(self.vectors @ ((self.vectors.T @ B) / self.values[:, None]))
        return backward(self.lower, forward(self.lower, B))


def factorise(A: np.ndarray, lam: float) -> Factor:
    """The first rung of the ladder whose condition number float64 can bear. A is symmetric and is used up."""
    d = len(A)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(A.sum())
    if not finite:
        raise ValueError(f"the gram matrix of {d} features is not finite; scale the inputs or lower sigma")
    trace = float(np.trace(A)) / d
    A.flat[:: d + 1] += lam
    size, added = float(np.linalg.norm(A, 1)), 0.0
    for jitter in (0.0, *(scale * EPS * trace for scale in (10, 1e3, 1e5))):
        A.flat[:: d + 1] += jitter - added
        added = jitter
        try:
            lower = np.linalg.cholesky(A)
        except np.linalg.LinAlgError:
            continue
        if dpocon(lower.T, size, uplo="U")[0] > d * EPS:
            return Factor("jitter" if jitter else "cholesky", jitter, lower)
    A.flat[:: d + 1] -= added
    values, vectors = np.linalg.eigh(A)
    keep = values > d * EPS * max(values[-1], 0.0)
    if not keep.any():
        keep[-1], values[-1] = True, 1.0
        vectors = np.zeros_like(vectors)
    return Factor("eigen", 0.0, vectors=vectors[:, keep], values=values[keep])


def forward(L: np.ndarray, B: np.ndarray) -> np.ndarray:
    """L^-1 B, strip by strip."""
    X = np.array(B, np.float64)
    for i in range(0, len(L), STRIP):
        j = i + STRIP
        X[i:j] -= L[i:j, :i] @ X[:i]
        X[i:j] = solve_triangular(L[i:j, i:j], X[i:j], lower=True, check_finite=False)
    return X


def backward(L: np.ndarray, B: np.ndarray) -> np.ndarray:
    """L'^-1 B, strip by strip from the end."""
    X = B
    for i in reversed(range(0, len(L), STRIP)):
        j = i + STRIP
        X[i:j] -= L[j:, i:j].T @ X[j:]
        X[i:j] = solve_triangular(L[i:j, i:j], X[i:j], lower=True, trans="T", check_finite=False)
    return X
