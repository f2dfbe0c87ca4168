"""Conjugate gradients for many systems that share the product with their matrices, as an immutable state:

    A x = b:   a = r'z / p'Ap,   x += a p,   r -= a Ap,   z = M r,   p = z + (r'z / before) p

Each row is a system with scalars of its own. The state says which vectors it wants multiplied; the caller may take a
pass over data for that. A system whose residual is small enough is frozen. When all are, x itself is multiplied: the
residual is then b - A x and not what the recursion believes, and where it is too large the method starts again there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost

Precondition = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(numbers of systems, their residuals) -> M r; M is symmetric and positive."""
STATE, SCRATCH = 4, 5
"""Vectors of a system that a state holds, and those that a step makes beside."""
ENOUGH = 0.5
"""A restart has to lower the largest residual to this part of it; if it does not, rounding is all that is left."""


class Asked(NamedTuple):
    """Vectors to be multiplied, and the numbers of their systems."""

    systems: np.ndarray  # (k,)
    vectors: np.ndarray  # (k, d)


class Conjugate(NamedTuple):
    """Where the systems stand."""

    x: np.ndarray  # (q, d)
    target: np.ndarray  # (q, d), b
    residual: np.ndarray  # (q, d)
    direction: np.ndarray  # (q, d)
    energy: np.ndarray  # (q,), r'z
    stuck: np.ndarray  # (q,), whether p'Ap is not positive, which is rounding
    check: bool = False  # whether x itself is multiplied next
    seen: float = float("inf")  # the largest relative residual of the last x that was multiplied
    stalled: bool = False  # whether a restart did not help

    @property
    def relative(self) -> np.ndarray:
        """|r| / |b| (q,); zero where b is."""
        size = np.linalg.norm(self.target, axis=1)
        left = np.linalg.norm(self.residual, axis=1)
        return np.asarray(np.divide(left, size, out=np.where(left > 0, np.inf, 0.0), where=size > 0))

    def active(self, tol: float) -> np.ndarray:
        """Systems that are not frozen (q,)."""
        return np.asarray((self.relative > tol) & ~self.stuck)


def conjugate_cost(d: int, systems: int) -> SolveCost:
    """What the state and a step take."""
    return SolveCost(8 * d * systems * (STATE + SCRATCH), 12.0 * d * systems)


def begin(target: np.ndarray, precondition: Precondition, x: np.ndarray | None = None) -> Conjugate:
    """At zero, whose residual is known, or at x, which is multiplied first."""
    q, calm = len(target), np.zeros(len(target), bool)
    if x is not None:
        return Conjugate(x, target, target, np.zeros_like(target), np.ones(q), calm, check=True)
    return _restarted(Conjugate(np.zeros_like(target), target, target, target, np.ones(q), calm), precondition)


def asked(state: Conjugate, tol: float) -> Asked:
    """What has to be multiplied next."""
    if state.check:
        return Asked(np.arange(len(state.x)), state.x)
    systems = np.flatnonzero(state.active(tol))
    return Asked(systems, state.direction[systems])


def stepped(state: Conjugate, product: np.ndarray, precondition: Precondition, tol: float) -> Conjugate:
    """The state after the product A v of each vector that it had asked for with this tol."""
    if state.check:
        return _checked(state, product, precondition, tol)
    on, p = asked(state, tol)
    curvature = np.einsum("qd,qd->q", p, product)
    good = curvature > 0
    stuck = state.stuck.copy()
    stuck[on[~good]] = True
    on, p, product = on[good], p[good], product[good]
    length = (state.energy[on] / curvature[good])[:, None]
    x, residual, direction, energy = (each.copy() for each in (state.x, state.residual, state.direction, state.energy))
    x[on] += length * p
    residual[on] -= length * product
    z = precondition(on, residual[on])
    after = np.einsum("qd,qd->q", residual[on], z)
    direction[on] = z + (after / energy[on])[:, None] * p
    energy[on] = after
    state = state._replace(x=x, residual=residual, direction=direction, energy=energy, stuck=stuck)
    return state._replace(check=not state.active(tol).any())


def _checked(state: Conjugate, product: np.ndarray, precondition: Precondition, tol: float) -> Conjugate:
    """The state with the residual that x has, from where it starts again."""
    state = state._replace(residual=state.target - product, stuck=np.zeros_like(state.stuck), check=False)
    worst = float(state.relative.max())
    stalled = worst > tol and worst > ENOUGH * state.seen
    return _restarted(state._replace(seen=worst, stalled=stalled), precondition)


def _restarted(state: Conjugate, precondition: Precondition) -> Conjugate:
    """The first direction from here."""
    z = precondition(np.arange(len(state.x)), state.residual)
    return state._replace(direction=z, energy=np.einsum("qd,qd->q", state.residual, z))
