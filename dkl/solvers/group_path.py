"""Weights of groups of features along a path of lam, from their sums, each with a certificate.

    P(W) = 1/2 <W, G W> - <R, W> + yy / 2 + lam [sum_g eta_g |W_g| + ridge / 2 |W|^2]
    lam_max = max_g |R_g| / eta_g: all weights are zero from there on
    gap = [rr / 2 + lam sum_g eta_g |W_g|] - [s yr - s^2 rr / 2]  >=  P(W) - least P,  s = yr / rr within
    +-min_g lam eta_g / |C_g|;  C = R - G W,  rr = yy - <W, R + C>,  yr = yy - <W, R>; the ridge is added to G

|W_g| is over the features of a group and all outputs. A group is solved for once the strong rule
|C_g| >= eta_g (2 lam - lam before) says that it may be needed. All others are looked at after the solve, and taken in
if |C_g| > lam eta_g; so the products with their part of G are one for each lam. Weights begin where a straight line
through those of the last two lams is best.

A gram of float32 features may have eigenvalues a little below zero, and P no least point. Once that shows, the path is
solved anew, with the least jitter on the diagonal that makes the gram positive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost
from dkl.solvers.group_blocks import Blocks, Groups
from dkl.solvers.group_directions import Directions
from dkl.solvers.group_steps import State

ROUNDING = 1e-12
"""A gap below this share of yy is rounding."""
NEGATIVE = 1e-6
"""A residual's energy below minus this share of yy is no rounding of float64."""
NO_JITTER, JITTERS = 1e-10, (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""What may be added to the gram's diagonal, over its mean; the first would mend the rounding of float64."""
PRODUCTS = 30
"""Products with the gram that a lam takes, about."""


class GroupPath(NamedTuple):
    """Weights along a path, those of active groups alone, and how far from the least objective they can be."""

    lams: np.ndarray  # (L,), from large to small
    active: tuple[np.ndarray, ...]  # of each lam, the groups that are not zero, in order
    weights: tuple[np.ndarray, ...]  # of each lam, (features of the active groups, c)
    norms: np.ndarray  # (L, r), |W_g|
    objective: np.ndarray  # (L,)
    gap: np.ndarray  # (L,), over yy
    products: np.ndarray  # (L,), with the gram of the active groups
    groups: np.ndarray  # (D,)
    jitter: float = 0.0  # added to the diagonal of the gram, whose least eigenvalue rounding had left below zero

    def coef(self, i: int) -> np.ndarray:
        """All weights (D, c) of the i-th lam."""
        coef = np.zeros((len(self.groups), self.weights[i].shape[1]))
        coef[np.isin(self.groups, self.active[i])] = self.weights[i]
        return coef


def group_path_cost(d: int, c: int, lams: int = 50, size: int = 256) -> SolveCost:
    """The gram in the axes of its groups of so many features, a factor of it, a copy with jitter; and for each lam
    products with it."""
    turned = 4.0 * d * d * min(d, size) + 9.0 * d * min(d, size) ** 2
    return SolveCost(8 * (3 * d * d + (lams + 24) * d * c), turned + lams * PRODUCTS * 2.0 * d * d * c)


def largest_lam(cross: np.ndarray, groups: np.ndarray, eta: np.ndarray | None = None) -> float:
    """lam_max."""
    made = Groups(groups, eta, len(cross))
    return float((made.lengths(made.sorted(cross)) / made.eta).max())


def lam_grid(largest: float, count: int = 50, least: float = 0.01) -> np.ndarray:
    """`count` numbers from the largest to `least` of it, in equal ratios; 0 alone if that is 0."""
    if not (count >= 1 and 0 < least < 1):
        raise ValueError(f"count={count!r}, least={least!r}: a path needs a lam or more, and least between 0 and 1")
    return np.geomspace(largest, least * largest, count) if largest > 0 else np.zeros(1)


def group_path(
    gram: np.ndarray,
    cross: np.ndarray,
    energy: np.ndarray | float,
    groups: np.ndarray,
    *,
    eta: np.ndarray | None = None,
    lams: np.ndarray | None = None,
    ridge: float = 0.0,
    tol: float = 1e-6,
    max_iter: int = 100,
    screen: bool = True,
) -> GroupPath:
    """Weights of each lam, until gap <= tol yy or after so many rounds.

    groups: numbers 0 .. r-1, one for each feature. eta: one for each group, the root of its size if None.
    lams: from large to small; None: 50, from lam_max to a hundredth of it. screen: False takes in all groups at once.
    """
    made = Groups(groups, eta, len(cross))
    if gram.shape != 2 * (len(cross),) or cross.ndim != 2:
        raise ValueError(f"gram is {gram.shape} and cross is {cross.shape}; they must be (D, D) and (D, c)")
    R = made.sorted(cross)
    if lams is None:
        lams = lam_grid(float((made.lengths(R) / made.eta).max()))
    lams = np.asarray(lams, np.float64)
    falls = lams.ndim == 1 and len(lams) > 0 and bool(np.isfinite(lams).all()) and bool((np.diff(lams) < 0).all())
    if not falls or lams[-1] < 0 or (lams[-1] == 0 and R.any()):
        raise ValueError(f"lams={lams!r} must be finite numbers above 0, each below the one before")
    if not (np.isfinite(ridge) and ridge >= 0):
        raise ValueError(f"ridge={ridge!r} must be a finite number of at least 0")
    own, yy, jitter = made.sorted(gram, 2), float(np.sum(energy)), 0.0
    while True:
        path = _Path(made, own, R, yy, ridge, max(tol, ROUNDING), max_iter, sound=jitter > 0)
        if not screen:
            path.blocks.enter(range(made.count))
        try:
            points = [path.solve(float(lam)) for lam in lams]
            break
        except _Indefinite:
            own, jitter = _with_jitter(made.sorted(gram, 2), jitter)
    return GroupPath(
        lams,
        tuple(point.active for point in points),
        tuple(point.weights for point in points),
        np.array([point.norms for point in points]),
        np.array([point.objective for point in points]),
        np.array([point.gap for point in points]),
        np.array([point.products for point in points]),
        np.asarray(groups),
        jitter,
    )


class _Indefinite(Exception):
    """The gram is not one of features: P has no least point, or pulls where no weight can go."""


def _shifted(gram: np.ndarray, jitter: float) -> np.ndarray | None:
    """The gram with some jitter; None if that has no Cholesky factor."""
    shifted = gram.copy()
    shifted.flat[:: len(gram) + 1] += jitter
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return None
    return shifted


def _with_jitter(gram: np.ndarray, last: float) -> tuple[np.ndarray, float]:
    """The gram with the least of JITTERS above the last one that makes it positive, and that."""
    scale = float(np.trace(gram)) / len(gram)
    for jitter in (share * scale for share in JITTERS):
        shifted = _shifted(gram, jitter) if jitter > last else None
        if shifted is not None:
            return shifted, jitter
    raise ValueError(f"the gram of {len(gram)} features is not positive; raise alpha, or use dtype=float64")


class _Point(NamedTuple):
    """One lam of the path."""

    active: np.ndarray
    weights: np.ndarray
    norms: np.ndarray
    objective: float
    gap: float
    products: int


class _Solved(NamedTuple):
    """Weights and R - G W of all features, sorted."""

    W: np.ndarray
    C: np.ndarray


class _Path:
    """Where the path has come to."""

    def __init__(
        self, groups: Groups, gram: np.ndarray, R: np.ndarray, yy: float,
        ridge: float, tol: float, max_iter: int, sound: bool,
    ) -> None:  # fmt: skip
        self.groups, self.gram, self.R, self.yy = groups, gram, R, yy
        self.ridge, self.tol, self.max_iter, self.sound = ridge, tol, max_iter, sound
        self.blocks = Blocks(gram, groups)
        self.directions = Directions(self.blocks)
        self.last = _Solved(np.zeros_like(R), R)
        self.before: _Solved | None = None
        self.lam = np.inf

    def solve(self, lam: float) -> _Point:
        """The next lam."""
        ridge, groups = lam * self.ridge, self.groups
        bound = 2 * lam - self.lam if np.isfinite(self.lam) else lam
        self._enter(groups.lengths(self.last.C) >= groups.eta * max(bound, 0.0), self.last.C)
        state = self._begin(lam, ridge)
        for _ in range(self.max_iter):
            state.sweep()
            if self._restricted_gap(state) > 0.5 * self.tol * self.yy:
                state.newton()
                continue
            at = self._all(state)
            gap = self._gap(at, lam, ridge)
            C = at.C - ridge * at.W
            if not self._enter(groups.lengths(C) > groups.eta * lam, C) and gap <= self.tol * self.yy:
                break
            state = self._continued(state, at)
        else:
            at = self._all(state)
            self._doubt_gram()
        self.before, self.last, self.lam = self.last, at, lam
        return self._point(at, lam, ridge, state.products)

    def _doubt_gram(self) -> None:
        """If a lam does not come to its end: once, whether the gram is to blame."""
        if not self.sound and _shifted(self.gram, NO_JITTER * float(np.trace(self.gram)) / len(self.gram)) is None:
            raise _Indefinite(f"a gram of {len(self.gram)} features is not positive")
        self.sound = True

    def _enter(self, wanted: np.ndarray, C: np.ndarray) -> bool:
        """Take in groups that are wanted and not there; whether there were any."""
        new = [g for g in np.flatnonzero(wanted).tolist() if g not in self.blocks.entered and C[self._at(g)].any()]
        self.blocks.enter(new)
        return bool(new)

    def _at(self, g: int) -> slice:
        return slice(int(self.groups.bounds[g]), int(self.groups.bounds[g + 1]))

    def _begin(self, lam: float, ridge: float) -> State:
        """The weights of the last lam, moved on along the line from those before."""
        into, last, before = self.blocks.into, self.last, self.before
        V = into(last.W)
        state = State(self.directions, V, into(last.C) - ridge * V, lam, ridge)
        if before is not None and last.W.any():
            X = V - into(before.W)
            state.move(X, into(before.C - last.C) + ridge * X)
        return state

    def _continued(self, state: State, at: _Solved) -> State:
        """The same weights, with groups that have entered and C computed anew."""
        V = self.blocks.into(at.W)
        again = State(self.directions, V, self.blocks.into(at.C) - state.ridge * V, state.lam, state.ridge)
        again.products = state.products
        return again

    def _all(self, state: State) -> _Solved:
        """Weights of all features, and their C."""
        W, C = np.zeros_like(self.R), self.R.copy()
        on = np.flatnonzero(self.blocks.lengths(state.V)).tolist()
        for k in on:
            W[self._at(self.blocks.entered[k])] = self.blocks.out_of(state.V, k)
        if 2 * self.groups.sizes[[self.blocks.entered[k] for k in on]].sum() > len(W):
            return _Solved(W, C - self.gram @ W)
        for k in on:
            at = self._at(self.blocks.entered[k])
            C -= (W[at].T @ self.gram[at]).T
        return _Solved(W, C)

    def _restricted_gap(self, state: State) -> float:
        """The gap of the problem that has no other groups than those that have entered."""
        V, blocks = state.V, self.blocks
        slopes, pull = blocks.lengths(state.C), float((V * blocks.into(self.R)).sum())
        norm = state.lam * float(blocks.eta @ blocks.lengths(V))
        return self._bound(pull, float((V * state.C).sum()), norm, slopes, state.limits)

    def _gap(self, at: _Solved, lam: float, ridge: float) -> float:
        """The gap."""
        C, groups = at.C - ridge * at.W, self.groups
        norm = lam * float(groups.eta @ groups.lengths(at.W))
        return self._bound(
            float((at.W * self.R).sum()), float((at.W * C).sum()), norm, groups.lengths(C), lam * groups.eta
        )

    def _bound(self, pull: float, left: float, norm: float, slopes: np.ndarray, limits: np.ndarray) -> float:
        """The gap, of <W, R>, <W, C>, the penalty, |C_g| and lam eta_g."""
        rr, yr = self.yy - pull - left, self.yy - pull
        if not rr >= -NEGATIVE * self.yy:
            raise _Indefinite(f"|y - X W|^2 came out as {rr:g}")
        most = float((limits / np.where(slopes > 0, slopes, 1.0))[slopes > 0].min(initial=np.inf))
        s = float(np.clip(yr / rr, -most, most)) if rr > 0 else 0.0
        return max(0.0, rr / 2 + norm - (s * yr - s * s * rr / 2))

    def _point(self, at: _Solved, lam: float, ridge: float, products: int) -> _Point:
        """The record of a lam."""
        groups = self.groups
        norms = groups.lengths(at.W)
        active, gap = np.flatnonzero(norms), self._gap(at, lam, ridge)
        C = at.C - ridge * at.W
        value = 0.5 * (self.yy - float((at.W * (self.R + C)).sum())) + lam * float(groups.eta @ norms)
        features = np.sort(groups.features(active))
        given = at.W if groups.order is None else at.W[np.argsort(groups.order)]
        return _Point(active, given[features], norms, value, gap / self.yy if self.yy > 0 else gap, products)
