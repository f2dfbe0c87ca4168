"""Every iterative solver of dkl.solvers (a module with `begin`) ends where scipy ends, and resumes to the same bits.

A new solver is found by the sweep, which fails until it has a row in STEPS.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import dkl.solvers
from dkl.solvers import adam, conjugate_gradients, lbfgs, quasi_newton, spectral_gradient
from dkl.store.packed import pack, records_of, unpack

P, ADAM_STEPS = 6, 3000
RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(P, P))
MATRIX, CENTRE = ROOT @ ROOT.T + 0.5 * np.eye(P), np.array([0.3, -2.0, 1.0, 2.5, -0.1, 0.7])
LOWER, UPPER = np.full(P, -1.0), np.array([1.0, 1.0, 0.5, 1.0, np.inf, 1.0])


def value(x: np.ndarray) -> float:
    """A convex quadratic, whose least point lies outside of the box."""
    return 0.5 * float((x - CENTRE) @ MATRIX @ (x - CENTRE)) + 1.0


def gradient(x: np.ndarray) -> np.ndarray:
    """Its gradient."""
    return MATRIX @ (x - CENTRE)


def lbfgs_step(state: lbfgs.Descent) -> lbfgs.Descent:
    """One evaluation."""
    found = value(state.trial)
    accepted, state = lbfgs.judged(state, found)
    return lbfgs.moved(state, found, gradient(state.trial)) if accepted else state


def adam_step(state: adam.Adam) -> adam.Adam:
    """One gradient."""
    return adam.stepped(state, gradient(state.x), ADAM_STEPS)


def same_residual(systems: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """No preconditioner."""
    return residual


def conjugate_begin(start: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> conjugate_gradients.Conjugate:
    """The point where the gradient is zero; conjugate gradients know no box."""
    return conjugate_gradients.begin((MATRIX @ CENTRE)[None], same_residual, start[None])


def conjugate_step(state: conjugate_gradients.Conjugate) -> conjugate_gradients.Conjugate:
    """One product."""
    vectors = conjugate_gradients.asked(state, 1e-12).vectors
    return conjugate_gradients.stepped(state, vectors @ MATRIX, same_residual, 1e-12)


def quasi_newton_step(state: quasi_newton.Descent) -> quasi_newton.Descent:
    """One evaluation."""
    return quasi_newton.evaluated(state, value(state.trial), gradient(state.trial))


def spectral_step(state: spectral_gradient.Descent) -> spectral_gradient.Descent:
    """One evaluation."""
    return spectral_gradient.evaluated(state, value(state.trial), gradient(state.trial))


FREE = ("conjugate_gradients", "quasi_newton")
"""Solvers without a box."""
STEPS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any], int, Callable[[Any], np.ndarray], float]] = {
    "lbfgs": (lbfgs.begin, lbfgs_step, 200, lambda state: state.x, 1e-6),
    "conjugate_gradients": (conjugate_begin, conjugate_step, 20, lambda state: state.x[0], 1e-6),
    "quasi_newton": (lambda x, *box: quasi_newton.begin(x), quasi_newton_step, 200, lambda state: state.x, 1e-5),
    "spectral_gradient": (spectral_gradient.begin, spectral_step, 200, lambda state: state.x, 1e-6),
    "adam": (adam.begin, adam_step, ADAM_STEPS, lambda state: state.end, 2e-3),
}
"""begin, a step on the quadratic, how many, the point in the end, and how near it comes."""


def test_every_solver_has_a_row() -> None:
    """Modules whose states are begun."""
    names = [module.name for module in pkgutil.iter_modules(dkl.solvers.__path__)]
    found = {name for name in names if hasattr(importlib.import_module(f"dkl.solvers.{name}"), "begin")}
    assert found == set(STEPS)


@pytest.mark.parametrize("name", STEPS)
def test_it_ends_where_scipy_ends(name: str) -> None:
    """On a convex quadratic in a box, from two corners."""
    begin, step, steps, end, near = STEPS[name]
    for start in (np.zeros(P), np.full(P, -1.0)):
        box = None if name in FREE else list(zip(LOWER, UPPER, strict=True))
        right = minimize(value, start, jac=gradient, bounds=box, tol=1e-14)
        state = begin(start, LOWER, UPPER)
        for _ in range(steps):
            state = step(state)
        np.testing.assert_allclose(end(state), right.x, atol=near)
        assert name in FREE or ((end(state) >= LOWER) & (end(state) <= UPPER)).all()
    assert name in FREE or (np.isclose(right.x, LOWER) | np.isclose(right.x, UPPER)).any()


@pytest.mark.parametrize("name", STEPS)
def test_it_resumes_from_every_state(name: str) -> None:
    """A packed state, read again, goes on with the same bits; no step changes the state that it is given."""
    begin, step, *_ = STEPS[name]
    states = [begin(np.zeros(P), LOWER, UPPER)]
    assert type(states[0]) in records_of(type(states[0]))
    for _ in range(12):
        before = pack(states[-1])
        states.append(step(states[-1]))
        assert same(pack(states[-2]), before)
    for number, state in enumerate(states[:-1]):
        tree, arrays = pack(state)
        again = unpack(tree, {key: values for key, (_, values) in arrays.items()}, type(state))
        for _ in range(number, 12):
            again = step(again)
        assert same(pack(again), pack(states[-1]))


def same(one: tuple, other: tuple) -> bool:
    """Whether two packed records are equal bit for bit."""
    arrays = [{name: values.tobytes() for name, (_, values) in packed[1].items()} for packed in (one, other)]
    return one[0] == other[0] and arrays[0] == arrays[1]
