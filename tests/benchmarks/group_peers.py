"""Other solvers of the group lasso, as the benchmarks use them; none of them is needed to run dkl or its tests.

adelie (pip install --no-deps adelie) takes the gram; celer and skglm take the features themselves. All give the weights
of every lam of 1/2 |y - X w|^2 + lam sum_g eta_g |w_g|, groups being equal and in order.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np

PEERS = ("adelie", "celer", "skglm")
Solver = Callable[[np.ndarray, np.ndarray, int, np.ndarray, float], np.ndarray]
"""Features, targets, number of groups, lams, tol -> (lams, features)."""


def installed(name: str) -> bool:
    """Whether a peer can be imported."""
    try:
        import_module(name)
    except ImportError:
        return False
    return True


def adelie(
    gram: np.ndarray, cross: np.ndarray, groups: int, lams: np.ndarray, tol: float, threads: int
) -> np.ndarray:  # fmt: skip
    """gaussian_cov on the gram in the order it prefers, with eta = 1."""
    from adelie.solver import gaussian_cov

    starts = np.arange(groups) * (len(cross) // groups)
    state = gaussian_cov(
        A=gram.T, v=cross, groups=starts, penalty=np.ones(groups), lmda_path=lams, tol=tol, early_exit=False,
        progress_bar=False, n_threads=threads,
    )  # fmt: skip
    weights = np.asarray(state.betas.todense())
    if len(weights) != len(lams):
        raise RuntimeError(f"adelie gave up after {len(weights)} of {len(lams)} lams")
    return weights


def celer(X: np.ndarray, y: np.ndarray, groups: int, lams: np.ndarray, tol: float) -> np.ndarray:
    """Working sets with dual extrapolation."""
    from celer import celer_path

    size, n = X.shape[1] // groups, len(y)
    found = celer_path(
        X, y, pb="grouplasso", groups=size, alphas=lams / n, weights=np.ones(groups), tol=tol, max_iter=100
    )
    return np.asarray(found[1].T)


def skglm(X: np.ndarray, y: np.ndarray, groups: int, lams: np.ndarray, tol: float) -> np.ndarray:
    """Working sets of block steps, warm from lam to lam."""
    from skglm.datafits import QuadraticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD
    from skglm.utils.data import grp_converter

    (n, d), found = X.shape, []
    order, bounds = grp_converter(d // groups, d)
    datafit = QuadraticGroup(bounds, order)
    solver = GroupBCD(tol=tol * float(lams[0]) / n, fit_intercept=False, max_iter=200, ws_strategy="subdiff")
    w = np.zeros(d)
    for lam in lams / n:
        penalty = WeightedGroupL2(float(lam), np.ones(groups), bounds, order)
        w = solver.solve(X, y, datafit, penalty, w, X @ w)[0]
        found.append(w.copy())
    return np.array(found)


FROM_FEATURES: dict[str, Solver] = {"celer": celer, "skglm": skglm}
