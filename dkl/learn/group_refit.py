"""Ridge weights of the features of some groups, from the sums of the pass that chose them.

(gram + alpha I)_AA coef_A = cross_A,   A the features of the chosen groups; alpha one, or the best by the folds
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dkl.solvers.ridge import Moments, residual_energy, solve_ridge

Outputs = slice


def of_outputs(S: Moments, own: Outputs) -> Moments:
    """The sums of some outputs."""
    return S._replace(cross=S.cross[:, own], target_sum=S.target_sum[own], target_square=S.target_square[own])


def refitted(
    moments: Callable[[list[int]], Moments], folds: int, own: Outputs, on: np.ndarray, lams: np.ndarray,
    fit_intercept: bool,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """coef (d, outputs) and intercepts; `on` are the features of the chosen groups, the others have weight zero."""

    def sums(some: list[int]) -> Moments:
        S = of_outputs(moments(some), own)
        return S._replace(gram=S.gram[np.ix_(on, on)], cross=S.cross[on], feature_sum=S.feature_sum[on])

    whole = of_outputs(moments(list(range(folds))), own)
    coef = np.zeros_like(whole.cross)
    if not len(on):
        return coef, np.asarray(whole.target_sum / whole.weight * fit_intercept)
    best = lams[:1]
    if len(lams) > 1:
        errors = np.zeros(len(lams))
        for k in range(folds):
            train, test = sums([fold for fold in range(folds) if fold != k]), sums([k])
            for i, lam in enumerate(lams):
                found = solve_ridge(train, np.array([lam]), fit_intercept)
                errors[i] += residual_energy(test, found.coef, found.intercept).sum() / test.weight
        best = lams[[int(np.argmin(errors))]]
    solution = solve_ridge(sums(list(range(folds))), best, fit_intercept)
    coef[on] = solution.coef
    return coef, solution.intercept
