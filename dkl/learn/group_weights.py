"""Paths of groups of weights: what is asked for, and what is found, whatever the loss.

    loss(W) + alpha penalty(W),   alpha from large to small
    best = argmin of the mean error over folds;   one_se = the largest alpha whose mean is within a standard error of it

learn/group_path.py has squared errors, learn/loss_path.py the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkl.checks import check_choice
from dkl.solvers.group_norms import GROUP_PENALTIES
from dkl.solvers.norm_path import check_plain

RULES = ("best", "one_se", "last")
"""Which alpha of a path is used: the best by folds, one within a standard error of it, or the last."""


@dataclass(frozen=True)
class GroupOptions:
    """groups: the number 0 .. r-1 of each feature. alphas: None for `count` of them, from where all weights are zero.

    eta: of each group, the root of its size if None; l2 has none, and no ridge. refit: the ridge of the weights that
    are computed anew, or several, of which the folds choose (squared errors). names: of the groups, for refusals.
    narrow: whether features are float32. least: the last alpha over the first; of l2 its third power is.
    """

    groups: np.ndarray
    fit_intercept: bool
    eta: np.ndarray | None = None
    alphas: np.ndarray | None = None
    count: int = 50
    least: float = 0.01
    ridge: float = 0.0
    rule: str = "best"
    by_output: bool = False
    refit: float | np.ndarray | None = None
    tol: float = 1e-6
    max_iter: int = 100
    penalty: str = "l21"
    names: tuple[str, ...] = ()
    narrow: bool = False

    def __post_init__(self) -> None:
        check_choice("rule", self.rule, RULES)
        if check_choice("penalty", self.penalty, GROUP_PENALTIES) == "l2":
            check_plain(self.eta, self.ridge)

    @property
    def tried(self) -> int:
        """How many alphas there are."""
        return self.count if self.alphas is None else int(np.size(self.alphas))


class AlphaPath(NamedTuple):
    """One path: of all outputs, or of one. Everything is in the units of y."""

    alphas: np.ndarray  # (L,), from large to small
    active: tuple[np.ndarray, ...]  # of each alpha, the groups that are used
    weights: tuple[np.ndarray, ...]  # of each alpha, (their features, outputs)
    intercepts: np.ndarray  # (L, outputs)
    norms: np.ndarray  # (L, r), |W_g|
    objective: np.ndarray  # (L,), over the weight of all rows
    gap: np.ndarray  # (L,), of the objective, over that of zero weights: the certificates
    errors: np.ndarray | None  # (L, folds)
    best: int | None
    one_se: int | None
    chosen: int


class GroupWeights(NamedTuple):
    """What comes back from the solve."""

    coef: np.ndarray  # (d, c)
    intercept: np.ndarray  # (c,)
    alpha: np.ndarray  # (paths,)
    paths: tuple[AlphaPath, ...]  # one, or one for each output
    objective: float  # of the chosen alphas, before weights are computed anew
    gap: float  # the largest of the chosen alphas
    converged: bool
    warning: str | None


def given_alphas(options: GroupOptions) -> np.ndarray:
    """Those of the options, from large to small."""
    alphas = np.unique(np.asarray(options.alphas, float))[::-1]
    if not (alphas.size and np.isfinite(alphas).all() and (alphas > 0).all()):
        raise ValueError(f"alphas={alphas.tolist()} must be finite numbers above 0")
    return alphas


def check_folds(folds: int, options: GroupOptions) -> None:
    """Refuse a choice without folds."""
    if folds < 2 and options.rule != "last":
        raise ValueError(f"rule={options.rule!r} needs 2 folds or more, not {folds}; use cv=5, or rule='last'")


def chosen_lams(errors: np.ndarray) -> tuple[int, int]:
    """The least mean error, and the first of those within a standard error of it."""
    mean, folds = errors.mean(axis=1), errors.shape[1]
    best = int(np.argmin(mean))
    spread = float(errors[best].std(ddof=1)) / folds**0.5
    return best, int(np.flatnonzero(mean <= mean[best] + spread)[0])
