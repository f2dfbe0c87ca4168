"""Paths of penalties that group_path.py has no steps for: l1linf by proximal gradients, l2 in the axes of the gram.

    l1linf    P(W) = 1/2 <W, G W> - <R, W> + yy / 2 + lam [sum_g eta_g max |W_g| + ridge / 2 |W|^2]
              gap as in solvers/fista.py with the dual norm max_g sum |C_g| / eta_g, over all groups
    l2        P(W) = 1/2 <W, G W> - <R, W> + yy / 2 + lam / 2 |W|^2,    W = U (values + lam)^-1 U' R
              gap = |R - G W - lam W|^2 / 2 lam, which is the bound of the residuals themselves

A path of l1linf is solved for the groups that the strong rule dual(C_g) >= eta_g (2 lam - lam before) keeps, from the
weights of the lam before; all others are looked at afterwards, and taken in if dual(C_g) > lam eta_g.
"""

from __future__ import annotations

import numpy as np

from dkl.checks import check_choice
from dkl.cost import SolveCost
from dkl.solvers.fista import duality_gap, fista
from dkl.solvers.group_norms import GROUP_PENALTIES, GroupNorm, check_lams, lengths_of
from dkl.solvers.group_path import GroupPath, group_path, group_path_cost, lam_grid

ROUND = 200
"""Proximal steps that count as a round of group_path."""
PRODUCTS = 300
"""Products with the gram that a lam of l1linf takes, about."""
SHARE = 0.5
"""The restricted problem is solved to this share of the tolerance."""
SQUARED = 3
"""The least lam of a path of l2 is this power of `least` of the largest: l2 shrinks over more decades."""


def path_of(
    penalty: str, gram: np.ndarray, cross: np.ndarray, energy: np.ndarray | float, groups: np.ndarray, *,
    eta: np.ndarray | None, lams: np.ndarray, ridge: float, tol: float, max_iter: int,
) -> GroupPath:  # fmt: skip
    """The path of one of GROUP_PENALTIES."""
    check_choice("penalty", penalty, GROUP_PENALTIES)
    if penalty == "l2":
        check_plain(eta, ridge)
        return ridge_path(gram, cross, energy, groups, lams)
    find = group_path if penalty == "l21" else linf_path
    return find(gram, cross, energy, groups, eta=eta, lams=lams, ridge=ridge, tol=tol, max_iter=max_iter)


def path_cost(penalty: str, d: int, c: int, lams: int = 50, size: int = 256) -> SolveCost:
    """What one path takes beside its gram."""
    if penalty == "l21":
        return group_path_cost(d, c, lams, size)
    own = 8 * (lams + 24) * d * c
    if penalty == "l2":
        return SolveCost(own + 24 * d * d, 9.0 * d**3 + lams * 4.0 * d * d * c)
    return SolveCost(own + 16 * d * d, lams * PRODUCTS * 2.0 * d * d * c)


def lams_of(
    penalty: str, cross: np.ndarray, trace: float, groups: np.ndarray, eta: np.ndarray | None, count: int, least: float
) -> np.ndarray:  # fmt: skip
    """From where all weights are zero to `least` of it; of l2 from the trace of the gram, over `SQUARED` times more."""
    if penalty == "l2":
        return lam_grid(trace, count, least**SQUARED)
    return lam_grid(GroupNorm(penalty, groups, eta).largest_lam(cross), count, least)


def check_plain(eta: np.ndarray | None, ridge: float) -> None:
    """l2 has neither factors of groups nor a ridge beside it."""
    if eta is not None:
        raise ValueError(f"eta={eta!r} is for penalty='l21' or 'l1linf'; penalty='l2' takes eta=None")
    if ridge:
        raise ValueError(f"ridge={ridge!r} is half the square itself, which is all that penalty='l2' is; use ridge=0")


def linf_path(
    gram: np.ndarray, cross: np.ndarray, energy: np.ndarray | float, groups: np.ndarray, *,
    eta: np.ndarray | None = None, lams: np.ndarray, ridge: float = 0.0, tol: float = 1e-6, max_iter: int = 100,
) -> GroupPath:  # fmt: skip
    """Weights of each lam by l1linf, until gap <= tol yy or after so many rounds."""
    norm, lams, yy = GroupNorm("l1linf", groups, eta, ridge), check_lams(lams), float(np.sum(energy))
    W, C, before, points = np.zeros_like(cross), cross, np.inf, []
    for lam in lams.tolist():
        bound = max(2 * lam - before, 0.0) if np.isfinite(before) else lam
        on = (norm.duals(C) >= norm.factor * bound) | (norm.lengths(W) > 0)
        used, left = 0, max_iter * ROUND
        while True:
            some = np.flatnonzero(on)
            at = norm.features(some)
            if len(some):
                end = fista(
                    gram[np.ix_(at, at)], cross[at], lam, norm.of(some), energy=yy, start=W[at], tol=SHARE * tol,
                    max_iter=left,
                )  # fmt: skip
                W, used, left = np.zeros_like(cross), used + end.iterations, left - end.iterations
                W[at] = end.coef
            C = cross - gram[:, at] @ W[at] - lam * ridge * W
            outside = ~on & (norm.duals(C) > norm.factor * lam)
            if left <= 0 or not outside.any():
                break
            on |= outside
        gap = duality_gap(cross, W, cross - C, yy, lam, norm.of(np.arange(norm.count)))
        points.append((W, 0.5 * (yy - float((W * (cross + C)).sum())), gap, used))
        before = lam
    return _path(points, lams, groups, yy, norm)


def ridge_path(
    gram: np.ndarray, cross: np.ndarray, energy: np.ndarray | float, groups: np.ndarray, lams: np.ndarray
) -> GroupPath:  # fmt: skip
    """Weights of each lam by l2, from one decomposition."""
    lams, yy = check_lams(lams), float(np.sum(energy))
    values, vectors = np.linalg.eigh(gram)
    values, turned, points = np.maximum(values, 0.0), vectors.T @ cross, []
    for lam in lams.tolist():
        W = vectors @ (turned / (values + lam)[:, None])
        C = cross - gram @ W
        value = 0.5 * (yy - float((W * (cross + C)).sum())) + lam / 2 * float((W * W).sum())
        points.append((W, value, float(np.square(C - lam * W).sum()) / (2 * lam), 1))
    return _path(points, lams, groups, yy)


def _path(
    points: list[tuple[np.ndarray, float, float, int]], lams: np.ndarray, groups: np.ndarray, yy: float,
    norm: GroupNorm | None = None,
) -> GroupPath:  # fmt: skip
    """The record; of a norm, what it adds to the objective comes here."""
    groups = np.asarray(groups)
    norms = np.array([lengths_of(W, groups, int(groups.max()) + 1) for W, *_ in points])
    active = tuple(np.flatnonzero(row) for row in norms)
    pull = [0.0 if norm is None else _linear(norm, W) for W, *_ in points]
    return GroupPath(
        lams,
        active,
        tuple(W[np.isin(groups, some)] for (W, *_), some in zip(points, active, strict=True)),
        norms,
        np.array([point[1] for point in points]) + lams * pull,
        np.array([point[2] for point in points]) / (yy if yy > 0 else 1.0),
        np.array([point[3] for point in points]),
        groups,
    )


def _linear(norm: GroupNorm, W: np.ndarray) -> float:
    """sum_g eta_g max |W_g|: the ridge is in C already."""
    return GroupNorm(norm.kind, norm.groups, norm.factor).penalty.value(W)
