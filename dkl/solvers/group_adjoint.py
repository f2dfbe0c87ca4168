"""Objectives of sigma and lam through weights of groups, few of which are used, and the adjoint of their gradient.

    validation, cv   J = mean over systems of <E_v, W_v E_v> / (c w_v)      E of rows that the system has not seen
    joint            J = (<E, W E> + 2 lam [sum_g eta_g |B_g| + ridge / 2 |B|^2]) / (c w)

At the least point (Gc + mu) B + h B = Rc with h_g = lam eta_g / |B_g| and mu = lam ridge: only groups that are not zero
move. With the slope g of J in B (the intercept eliminated) the adjoint A is zero elsewhere and, with v_g = B_g / |B_g|,

    (Gc A)_g + mu A_g + h_g (A_g - <v_g, A_g> v_g) = g_g,      dJ/dlam = -sum_g <A_g, eta_g v_g + ridge B_g>

by conjugate gradients, preconditioned by Gc + mu + h: as many steps as there are groups. A group that is zero has no
gradient, and where one enters or leaves J has a kink: the gradient is that of the side on which the weights are.
Targets come in one unit for all outputs, as groups join them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost
from dkl.solvers import conjugate_gradients
from dkl.solvers.factor import SOLVE_THREADS, Factor, factor_cost, factorise
from dkl.solvers.group_path import GroupPath, group_path, group_path_cost, largest_lam
from dkl.solvers.hypergradient import Side, System
from dkl.solvers.ridge import Moments, residual_energy

HALVING = 0.5
"""Ratio of the lams on the way to the one that is wanted."""
POLISH, EXACT = 8, 1e-13
"""Most Newton steps after the path, and the share of |Rc| at which their residual is rounding."""
ADJOINT_TOL = 1e-13
"""The residual of an adjoint over its right-hand side."""
SOLVES = 6
"""Paths and adjoints of a system in a trial that learns alpha too, about."""


@dataclass(frozen=True)
class Grouping:
    """The groups of features, and how weights are penalised: eta_g |B_g| + ridge / 2 |B_g|^2.

    by_output: |B_g| of each output by itself, so that each has groups of its own.
    """

    groups: np.ndarray  # (d,), numbers 0 .. r-1
    eta: np.ndarray  # (r,)
    ridge: float = 0.0
    by_output: bool = False
    tol: float = 1e-10  # of the duality gap, before the Newton steps
    max_iter: int = 100


class GroupSide(NamedTuple):
    """One system at one lam, and |B_g| of each group."""

    side: Side
    norms: np.ndarray  # (r,)


class Active(NamedTuple):
    """Some outputs of a system: weights of the features whose group is not zero, and what they solve."""

    on: np.ndarray  # (a,), the features
    place: np.ndarray  # (a,), which of the active groups each is in
    eta: np.ndarray  # of the active groups
    gram: np.ndarray  # (a, a), Gc
    cross: np.ndarray  # (a, c), Rc
    lam: float
    ridge: float
    coef: np.ndarray  # (a, c)

    def sums(self, products: np.ndarray) -> np.ndarray:
        """Of each active group, over its features and the outputs."""
        return np.bincount(self.place, products.sum(axis=1), minlength=len(self.eta))

    @property
    def lengths(self) -> np.ndarray:
        """|B_g|."""
        return np.asarray(np.sqrt(self.sums(self.coef * self.coef)))

    @property
    def held(self) -> np.ndarray:
        """h of each feature."""
        return np.asarray((self.lam * self.eta / self.lengths)[self.place])

    def unsolved(self) -> np.ndarray:
        """Rc - (Gc + mu + h) B."""
        return np.asarray(self.cross - self.gram @ self.coef - (self.lam * self.ridge + self.held)[:, None] * self.coef)

    def curved(self, X: np.ndarray) -> np.ndarray:
        """The second derivative times X."""
        unit = self.coef / self.lengths[self.place][:, None]
        across = X - unit * self.sums(unit * X)[self.place][:, None]
        return np.asarray(self.gram @ X + self.lam * self.ridge * X + self.held[:, None] * across)


def group_adjoint_cost(d: int, c: int, systems: int, size: int = 256) -> SolveCost:
    """Three d x d matrices for each system, as for a ridge; for those under way their groups' sums, path and factor."""
    at_once, path, factor = min(systems, SOLVE_THREADS), group_path_cost(d, c, 10, size), factor_cost(d, c)
    held = 8 * systems * (3 * d * d + 8 * d * c)
    under_way = at_once * (path.bytes + 8 * (4 * d * d + 12 * d * c)) + factor_cost(d, c, at_once).bytes
    return SolveCost(held + under_way, SOLVES * systems * (path.flops + 2 * factor.flops))


def held_out_group_side(system: System, lam: float, of: Grouping) -> GroupSide:
    """Mean squared error on rows that the system is not trained with."""
    S, test = system.train, system.test
    assert test is not None
    B, parts = _solve(system, lam, of)
    b0 = _intercept(system, B)
    on = np.unique(np.concatenate([part.on for _, part in parts]))
    tested = _of_features(test, on)
    energy = residual_energy(tested, B[on], b0)
    gain = np.full(len(b0), 2 / (len(b0) * test.weight))
    g = np.zeros_like(B)
    g[on] = gain * (tested.gram @ B[on] + np.outer(tested.feature_sum, b0) - tested.cross)
    g0 = gain * (B.T @ test.feature_sum + test.weight * b0 - test.target_sum) * system.fit_intercept
    g -= np.outer(S.feature_sum, g0 / S.weight)
    A, square, slope = np.zeros_like(B), g0 * g0 / S.weight, 0.0
    for own, part in parts:
        p = _divided(part, g[part.on, own], _preconditioner(part))
        A[part.on, own] = p
        square[own] += np.maximum((p * (part.gram @ p)).sum(axis=0), 0.0)
        slope -= float(part.sums(p * part.coef) @ (part.eta / part.lengths) + part.ridge * (p * part.coef).sum())
    A0 = (g0 - A.T @ S.feature_sum) / S.weight * system.fit_intercept
    reach = np.sqrt(square)
    bound = np.abs(B) @ (gain * np.sqrt(energy) + reach) + np.abs(A) @ np.sqrt(_null_energy(system))
    value = float((gain * energy).sum() / 2)
    return GroupSide(Side(value, slope, B, b0, A, A0, gain, bound), _norms(B, of))


def joint_group_side(system: System, lam: float, of: Grouping) -> GroupSide:
    """The training objective; B is its minimiser, so only the direct slope is left."""
    S = system.train
    B, parts = _solve(system, lam, of)
    b0 = _intercept(system, B)
    on = np.unique(np.concatenate([part.on for _, part in parts]))
    energy = residual_energy(_of_features(S, on), B[on], b0)
    penalty = 0.0
    for _, part in parts:
        penalty += float(part.eta @ part.lengths) + part.ridge / 2 * float((part.coef * part.coef).sum())
    gain = np.full(len(b0), 2 / (len(b0) * S.weight))
    slope = 2 * penalty / (len(b0) * S.weight)
    value = float((gain * energy).sum() / 2) + lam * slope
    bound = np.abs(B) @ (gain * np.sqrt(energy))
    return GroupSide(Side(value, slope, B, b0, None, b0, gain, bound), _norms(B, of))


def group_error(system: System, lam: float, of: Grouping) -> float:
    """Mean squared error on rows that the system is not trained with; no gradient."""
    assert system.test is not None
    B, _ = _solve(system, lam, of)
    energy = residual_energy(system.test, B, _intercept(system, B))
    return float(energy.mean() / system.test.weight)


def group_errors(system: System, lams: np.ndarray, of: Grouping) -> np.ndarray:
    """The same of many lams, from large to small, on one path: as precise as its gap."""
    test, c = system.test, system.inner.cross.shape[1]
    assert test is not None
    coef = np.zeros((len(lams), *system.inner.cross.shape))
    for own in _outputs(c, of):
        path = _path(system, own, lams, of)
        for i in range(len(lams)):
            coef[i][:, own] = path.coef(i)
    return np.array([residual_energy(test, B, _intercept(system, B)).mean() for B in coef]) / test.weight


def largest_group_lam(system: System, of: Grouping) -> float:
    """From where on all weights of the system are zero."""
    cross = system.inner.cross
    return max(largest_lam(cross[:, own], of.groups, of.eta) for own in _outputs(cross.shape[1], of))


def _outputs(c: int, of: Grouping) -> list[slice]:
    """Outputs whose groups are joined."""
    return [slice(j, j + 1) for j in range(c)] if of.by_output else [slice(0, c)]


def _path(system: System, own: slice, lams: np.ndarray, of: Grouping) -> GroupPath:
    """The path of some outputs."""
    cross = system.inner.cross[:, own]
    return group_path(
        system.inner.gram, cross, _null_energy(system)[own], of.groups,
        eta=of.eta, lams=lams, ridge=of.ridge, tol=of.tol, max_iter=of.max_iter,
    )  # fmt: skip


def _solve(system: System, lam: float, of: Grouping) -> tuple[np.ndarray, list[tuple[slice, Active]]]:
    """All weights (d, c), and the active part of each set of outputs."""
    gram, cross = system.inner
    B, parts = np.zeros_like(cross), []
    for own in _outputs(cross.shape[1], of):
        largest = largest_lam(cross[:, own], of.groups, of.eta)
        active = np.zeros(0, int)
        coef = np.zeros_like(cross[:, own])
        if lam < largest:
            count = max(1, int(np.ceil(np.log(lam / largest) / np.log(HALVING))))
            path = _path(system, own, np.geomspace(largest, lam, count + 1)[1:], of)
            active, coef = path.active[-1], path.coef(count - 1)
        on = np.flatnonzero(np.isin(of.groups, active))
        place = np.searchsorted(active, of.groups[on])
        part = Active(
            on, place, of.eta[active], gram[np.ix_(on, on)], cross[on, own], lam, of.ridge, coef[on]
        )  # fmt: skip
        part = _polished(part)
        B[on, own] = part.coef
        parts.append((own, part))
    return B, parts


def _polished(part: Active) -> Active:
    """Newton steps on the active groups, down to rounding: the error of a gradient is proportional to theirs."""
    if not len(part.on):
        return part
    size, left, factor = float(np.linalg.norm(part.cross)), part.unsolved(), _preconditioner(part)
    for _ in range(POLISH):
        if float(np.linalg.norm(left)) <= EXACT * size:
            break
        after = part._replace(coef=part.coef + _divided(part, left, factor))
        if not (after.lengths > HALVING * part.lengths).all():  # a group that is about to leave
            break
        left_after = after.unsolved()
        if not float(np.linalg.norm(left_after)) < HALVING * float(np.linalg.norm(left)):
            break
        part, left = after, left_after
    return part


def _preconditioner(part: Active) -> Factor:
    """Gc + mu + h; of one output the second derivative itself."""
    H = part.gram.copy()
    H.flat[:: len(H) + 1] += part.lam * part.ridge + part.held
    if part.coef.shape[1] == 1:
        lengths = part.lengths
        for k, eta in enumerate(part.eta):
            at = np.flatnonzero(part.place == k)
            H[np.ix_(at, at)] -= part.lam * eta / lengths[k] ** 3 * (part.coef[at] @ part.coef[at].T)
    return factorise(H, 0.0) if len(H) else Factor("cholesky", 0.0, H)


def _divided(part: Active, right: np.ndarray, factor: Factor) -> np.ndarray:
    """The second derivative's inverse times (a, c), by conjugate gradients over all outputs together."""
    shape = right.shape
    if not right.size:
        return right

    def precondition(systems: np.ndarray, residual: np.ndarray) -> np.ndarray:
        return np.stack([factor.solve(one.reshape(shape)).ravel() for one in residual]).reshape(residual.shape)

    state = conjugate_gradients.begin(np.asarray(right).reshape(1, -1), precondition)
    for _ in range(4 * len(part.eta) + 20):
        wanted = conjugate_gradients.asked(state, ADJOINT_TOL).vectors
        if not len(wanted) or state.stalled:
            break
        product = np.stack([part.curved(one.reshape(shape)).ravel() for one in wanted])
        state = conjugate_gradients.stepped(state, product, precondition, ADJOINT_TOL)
    return state.x.reshape(shape)


def _of_features(S: Moments, on: np.ndarray) -> Moments:
    """The sums of some features."""
    return S._replace(gram=S.gram[np.ix_(on, on)], cross=S.cross[on], feature_sum=S.feature_sum[on])


def _intercept(system: System, B: np.ndarray) -> np.ndarray:
    """(sy - B'm) / w."""
    S = system.train
    return np.asarray((S.target_sum - B.T @ S.feature_sum) / S.weight * system.fit_intercept)


def _norms(B: np.ndarray, of: Grouping) -> np.ndarray:
    """|B_g| over all outputs."""
    return np.asarray(np.sqrt(np.bincount(of.groups, (B * B).sum(axis=1), minlength=len(of.eta))))


def _null_energy(system: System) -> np.ndarray:
    """Residual energy without features, by output: what training cannot exceed."""
    S = system.train
    mean = S.target_sum * S.target_sum / S.weight if system.fit_intercept else 0.0
    return np.asarray(np.maximum(S.target_square - mean, 0.0))
