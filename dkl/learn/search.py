"""Where a search for sigma stands, and what the client hears of it: records that never change.

The best point is the one with the least error on unseen rows, if rows are set aside for that; else the last one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.solvers.lbfgs import Descent


class Best(NamedTuple):
    """The point of a search with the least merit: error on unseen rows, and penalties."""

    x: np.ndarray
    merit: float
    unseen: float
    value: float
    error: float
    log_lam: float


class Search(NamedTuple):
    """Where the search stands: the descent, log lam and the errors at its point, and how many small steps came last.

    `best` is the point with the least error on unseen rows so far, `since` how many iterations ago it was found. Where
    alpha is held (Problem.holds_alpha), it is `stretch` times the best one at the start.
    """

    descent: Descent
    log_lam: float | None = None
    error: float = float("nan")
    small: int = 0
    unseen: float = float("nan")
    best: Best | None = None
    since: int = 0
    stretch: float = 1.0

    @property
    def merit(self) -> float:
        """What searches from several starts are compared by."""
        return self.descent.value if self.best is None else self.best.merit

    @property
    def honest_error(self) -> float:
        """The error on unseen rows if there are such, else that of the objective; without penalties."""
        return self.error if np.isnan(self.unseen) else self.unseen

    def at_best(self) -> Search:
        """The search at its best point, if there are unseen rows to tell which that is."""
        if self.best is None:
            return self
        descent = self.descent._replace(x=self.best.x, value=self.best.value)
        return self._replace(descent=descent, log_lam=self.best.log_lam, error=self.best.error, unseen=self.best.unseen)

    def noted(self, penalty: float) -> Search:
        """The search after its point was accepted: the best so far, and for how long it has been the best."""
        merit = self.unseen + penalty
        if np.isnan(merit) or (self.best is not None and merit >= self.best.merit):
            return self._replace(since=self.since + (self.best is not None))
        assert self.log_lam is not None
        best = Best(self.descent.x, merit, self.unseen, self.descent.value, self.error, self.log_lam)
        return self._replace(best=best, since=0)


class Inner(NamedTuple):
    """Weights at the last point that was accepted, and the size of their objective's gradient at zero weights."""

    weights: np.ndarray  # (systems, d + 1, c)
    first: np.ndarray  # (systems,)


class Verdict(NamedTuple):
    """What the client hears of a trial: the value in the units of y, log lam in ours."""

    accepted: bool
    stalled: bool
    value: float
    log_lam: float


class Move(NamedTuple):
    """What the client hears of an iteration."""

    sigma: np.ndarray
    objective: float
    error: float
    log_lam: float
    wrong: float
    gradient_norm: float
    ended: str = ""  # "converged", "early_stopping", or "" if it goes on
    unseen: float = float("nan")
    norms: np.ndarray | None = None  # |W_g| of each of several kernels
