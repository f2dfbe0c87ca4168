"""Ridge weights of the features of some groups, from the sums of the pass that chose them; and groups that say nothing.

(gram + alpha I)_AA coef_A = cross_A,   A the features of the chosen groups; alpha one, or the best by the folds
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dkl.solvers.ridge import Moments, residual_energy, solve_ridge

Outputs = slice
CONSTANT, NARROW = 1e-12, 1e-6
"""Variance over mean square of a group's features, below which they are constant; of float32."""


def refuse_constant(
    S: Moments, groups: np.ndarray, names: Sequence[str], fit_intercept: bool, narrow: bool
) -> None:  # fmt: skip
    """Refuse a group of features that do not vary: no weight of it could matter."""
    square = np.diagonal(S.gram)
    varies = square - (S.feature_sum**2 / S.weight if fit_intercept else 0.0)
    for g in range(int(groups.max()) + 1):
        own = groups == g
        if varies[own].sum() <= (NARROW if narrow else CONSTANT) * max(float(square[own].sum()), np.finfo(float).tiny):
            name = names[g] if g < len(names) else str(g)
            raise ValueError(
                f"group {name!r} ({int(own.sum())} features) has no variance, so no weight of it matters: its inputs "
                "are constant, or its sigma is far too small; leave it out"
            )


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
