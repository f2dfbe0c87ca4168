"""From systems that can be solved for any alpha to weights: alpha by K-fold if asked for, units, and doubts.

alpha = argmax over the grid of the mean over folds of minus the held-out squared error
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from dkl.engine.threads import thread_count
from dkl.learn.alpha import FLOOR
from dkl.learn.objectives import Objective
from dkl.solvers.factor import SOLVE_THREADS, Factor
from dkl.solvers.ridge import Solution
from dkl.sums.targets import Targets

STABLE_METHODS = ("cholesky", "axes")
"""Factors that needed no help."""


@dataclass(frozen=True)
class RidgeOptions:
    """alpha: one number, one for each output, or (choose=True) the grid of the K-fold choice.

    refine: the objective for which the one alpha is made the best one, from the folds of the same sums.
    """

    alpha: np.ndarray
    fit_intercept: bool
    choose: bool = False
    refine: Objective | None = None
    own: bool = False  # whether alpha is the library's choice: never below the floor, its grid as long as it must be
    tested: int = 0  # folds that the choice holds out in turn; 0: all
    reduce: float | str | None = None  # principal axes: so many, a share of the variance below 1, or "mle"


class Weights(NamedTuple):
    """What comes back from the solve."""

    coef: np.ndarray  # (d, c)
    intercept: np.ndarray  # (c,)
    alpha: np.ndarray
    tried: np.ndarray  # (alphas,)
    scores: np.ndarray | None  # (alphas, folds), minus the mean squared error
    method: str
    jitter: float
    warning: str | None
    objective: float = float("nan")  # (square loss + alpha |coef|^2) / weight, over all outputs
    reduced: dict[str, Any] | None = None  # how many axes were kept, and their share of the variance
    residual: float = float("nan")  # the largest |b - A x| / |b|


class Spectrum(NamedTuple):
    """Eigenvalues of the gram of all rows: the largest one, and their mean."""

    top: float
    mean: float


class Found(NamedTuple):
    """The solution on all rows, and what it comes to."""

    solution: Solution
    objective: np.ndarray  # (c,), square loss + lam |coef|^2, in units of the targets and of the weights
    weight: float
    residual: float  # the largest |b - A x| / |b|
    reduced: dict[str, Any] | None = None


class Systems(Protocol):
    """What can be solved on all rows and on all folds but one; lam is alpha over the unit of the weights."""

    @property
    def folds(self) -> int: ...

    @property
    def spectrum(self) -> Spectrum: ...

    def solve(self, lam: np.ndarray) -> Found:
        """On all rows, for one lam or one for each output."""

    def held_out(self, k: int, lams: np.ndarray) -> Sequence[np.ndarray]:
        """Mean squared error (c,) on fold k of the model of the others, in units of the targets, for each lam."""


def weights_of(
    systems: Systems,
    targets: Targets,
    options: RidgeOptions,
    narrow: bool,
    refined: Callable[[float], float] | None = None,
) -> Weights:
    """Weights with the alpha that is given, or chosen by the folds, or refined from there."""
    alpha, tried, scores, unit = options.alpha, options.alpha, None, targets.weight_unit
    spectrum = systems.spectrum
    least = FLOOR * spectrum.top * unit
    if options.choose:
        tried, scores = scored(systems, targets, options, least)
        alpha = tried[[int(np.argmax(scores.mean(axis=1)))]]
    if refined is not None:
        alpha = np.array([refined(float(alpha[0]))])
    if options.own and not options.choose:
        alpha = np.maximum(alpha, least)
    solution, objective, weight, residual, reduced = systems.solve(alpha / unit)
    coef, intercept = solution.coef * targets.unit, solution.intercept * targets.unit
    if not targets.is_class:
        intercept = intercept + targets.shift
    if not np.isfinite(coef).all():
        raise ValueError(
            f"the solution with alpha={alpha.tolist()} is not finite; rescale X, y and sample_weight, or raise alpha"
        )
    worst = max(solution.factors, key=lambda f: (f.method not in STABLE_METHODS, f.jitter))
    doubted = doubt(spectrum, alpha, unit, solution.factors, narrow) or at_edge(alpha, tried, scores, options.own)
    total = float((objective * targets.unit**2).sum() / weight)
    return Weights(coef, intercept, alpha, tried, scores, worst.method, worst.jitter, doubted, total, reduced, residual)


def scored(
    systems: Systems, targets: Targets, options: RidgeOptions, least: float
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """alphas and their scores (alphas, folds); a grid of our own grows by tens while its best is at an end.

    It does not grow below the floor `least`, nor above 1e6 times that, where little but the mean is left.
    """
    folds, alphas = min(options.tested or systems.folds, systems.folds), options.alpha

    def fold_scores(k: int, some: np.ndarray) -> list[float]:
        errors = systems.held_out(k, some / targets.weight_unit)
        return [-float((error * targets.unit**2).mean()) for error in errors]

    with ThreadPoolExecutor(min(folds, thread_count(), SOLVE_THREADS)) as pool:

        def scores_of(some: np.ndarray) -> np.ndarray:
            return np.array(list(pool.map(lambda k: fold_scores(k, some), range(folds)))).T

        if not options.own:
            return alphas, scores_of(alphas)
        alphas = np.unique(np.maximum(alphas, least))
        scores = scores_of(alphas)
        while True:
            best = int(np.argmax(scores.mean(axis=1)))
            below, above = max(alphas[0] / 10, least), alphas[-1] * 10
            if best == 0 and below < alphas[0]:
                alphas, scores = np.append(below, alphas), np.vstack([scores_of(np.array([below])), scores])
            elif best == len(alphas) - 1 and above <= 10 * least / FLOOR:
                alphas, scores = np.append(alphas, above), np.vstack([scores, scores_of(np.array([above]))])
            else:
                return alphas, scores


def refuse_empty_fold(k: int, folds: int, train: float, test: float) -> None:
    """Refuse a fold without weight, and one that has all of it."""
    if not train or not test:
        raise ValueError(f"fold {k} of {folds} has no weight; use fewer folds (cv)")


def at_edge(alpha: np.ndarray, tried: np.ndarray, scores: np.ndarray | None, own: bool) -> str | None:
    """A warning if the alpha that was chosen is the least or the largest of a list that the user gave."""
    if own or scores is None or len(tried) < 3 or tried.min() < alpha[0] < tried.max():
        return None
    low = alpha[0] == tried.min()
    what, more = ("least", alpha[0] / 10) if low else ("largest", alpha[0] * 10)
    if not more:
        return None
    return (
        f"cv chose alpha={alpha[0]:g}, the {what} of those given, so a better one may lie beyond; add {more:g}, or use "
        "alpha='auto'"
    )


def doubt(
    spectrum: Spectrum, alpha: np.ndarray, unit: float, factors: Sequence[Factor], narrow: bool
) -> str | None:  # fmt: skip
    """A warning if alpha is lost in the rounding of the sums."""
    least = float(np.min(alpha))
    for factor in factors:
        if factor.method not in STABLE_METHODS:
            return (
                f"alpha={least:g} leaves the system singular in float64 (solved by {factor.method}, "
                f"jitter {factor.jitter:.1e}); raise alpha"
            )
    top = spectrum.top * unit
    if narrow:
        if least < FLOOR * top:
            return (
                f"alpha={least:g} is below {FLOOR:g} of the largest eigenvalue {top:.3g}, the rounding of "
                "float32 blocks; raise alpha or use dtype='float64'"
            )
    elif least < 1e-12 * unit * spectrum.mean:
        return f"alpha={least:g} is below the rounding of float64; raise alpha"
    return None
