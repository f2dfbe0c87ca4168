"""Weights of a fixed kernel with fewer rows than features: one pass collects the rows, ridge has n unknowns.

    (Psi Psi' + alpha I) a = Y,   coef = Psi' a

`solve_dual_weights` is what travels to the scheduler: rows in, coefficients and scores out.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dkl.engine.threads import thread_count
from dkl.learn.weights import Found, RidgeOptions, Spectrum, Weights, refuse_empty_fold, weights_of
from dkl.solvers.dual_ridge import dual_system, held_out_energy, kernel_of
from dkl.solvers.factor import SOLVE_THREADS
from dkl.solvers.ridge import Solution, largest_eigenvalue, largest_share
from dkl.sums.feature_rows import FeatureRows
from dkl.sums.targets import Targets


def dual_fits(rows: int, features: int, reduced: bool = False) -> bool:
    """Whether rows are so few that their features are kept: fewer than features, and no axes are asked for."""
    return rows < features and not reduced


def solve_dual_weights(
    sums: FeatureRows, *, scale: float, targets: Targets, options: RidgeOptions, narrow: bool, folds: int
) -> Weights:
    """Ridge from the rows of one pass. A row that was refused is raised here."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    Y = signs_of(sums.target, targets) if targets.is_class else sums.target
    systems = DualSystems(
        np.asarray(sums.features, np.float64), Y, sums.weight, sums.fold, folds, scale, options.fit_intercept
    )
    return weights_of(systems, targets, options, narrow)


def signs_of(codes: np.ndarray, targets: Targets) -> np.ndarray:
    """Classes as targets -1 and +1 (n, c), one output for two classes."""
    Y = np.full((len(codes), targets.n_targets), -1.0)
    Y[np.arange(len(codes)), codes] = 1.0
    return Y[:, 1:] if targets.n_targets == 2 else Y


@dataclass(frozen=True)
class DualSystems:
    """All systems of one solve; they share one kernel matrix."""

    Psi: np.ndarray  # (n, d), unscaled
    Y: np.ndarray  # (n, c)
    weight: np.ndarray  # (n,)
    fold: np.ndarray  # (n,)
    folds: int
    scale: float
    fit_intercept: bool

    @cached_property
    def kernel(self) -> np.ndarray:
        """K (n, n)."""
        with ThreadPoolExecutor(min(thread_count(), SOLVE_THREADS)) as pool:
            return kernel_of(self.Psi, self.scale, pool.map)

    @cached_property
    def spectrum(self) -> Spectrum:
        """That of the gram, which has the same eigenvalues and zeros beside."""
        root = np.sqrt(self.weight)
        weighted = self.kernel * root
        weighted *= root[:, None]
        return Spectrum(largest_eigenvalue(weighted), float(np.trace(weighted)) / self.Psi.shape[1])

    def solve(self, lam: np.ndarray) -> Found:
        """On all rows, for one lam or one for each output. The kernel is used up."""
        system = dual_system(self.kernel, self.Y, self.weight, self.fit_intercept)
        found = system.solve(lam)
        coef = self.scale * (self.Psi.T @ found.dual)
        residual = self._residual(coef, lam)
        return Found(
            Solution(coef, found.intercept, found.factors), found.objective, float(self.weight.sum()), residual
        )

    def _residual(self, coef: np.ndarray, lam: np.ndarray) -> float:
        """The largest |b - A x| / |b| of the system of the features, which was not the one that was solved."""
        w = self.weight[:, None]
        mean = (w * self.Y).sum(axis=0) / w.sum() * self.fit_intercept
        missed = self.Y - mean - self.scale * (self.Psi @ coef)
        missed -= (w * missed).sum(axis=0) / w.sum() * self.fit_intercept
        left, right = (self.scale * (self.Psi.T @ (w * part)) for part in (missed, self.Y - mean))
        return largest_share(left - lam * coef, right)

    def held_out(self, k: int, lams: np.ndarray) -> list[np.ndarray]:
        """Mean squared error (c,) on fold k of the model of the others, for each lam."""
        test = self.fold == k
        weight = float(self.weight[test].sum())
        refuse_empty_fold(k, self.folds, float(self.weight[~test].sum()), weight)
        return list(held_out_energy(self.kernel, self.Y, self.weight, test, lams, self.fit_intercept) / weight)
