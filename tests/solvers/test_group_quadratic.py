"""Quadratics with a penalty of groups, against plain proximal gradients and the conditions of a least point."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.solvers.fista import product
from dkl.solvers.group_norms import GroupNorm
from dkl.solvers.group_quadratic import group_quadratic

GROUPS, ETA = np.array([0, 1, 1, 2, 0, 3, 3, 3, 0, 1, 2, 2]), np.array([1.0, 0.5, 2.0, 1.5])


def drawn(seed: int, c: int, decay: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    """A gram for each output, of eigenvalues over many decades, and slopes."""
    rng = np.random.default_rng(seed)
    scale = np.exp(-decay * np.arange(12))
    roots = [rng.normal(size=(40, 12)) * scale @ np.linalg.qr(rng.normal(size=(12, 12)))[0] for _ in range(c)]
    return np.stack([A.T @ A for A in roots]), np.stack([A.T @ rng.normal(size=40) for A in roots], axis=1)


def plain(grams: np.ndarray, cross: np.ndarray, lam: float, norm: GroupNorm, steps: int = 2_000) -> np.ndarray:
    """Proximal gradients with no second derivative."""
    L = max(np.linalg.eigvalsh(G)[-1] for G in grams) + lam * norm.ridge
    B = V = np.zeros_like(cross)
    t, penalty = 1.0, GroupNorm(norm.kind, norm.groups, norm.eta, 0.0, norm.by_output).penalty
    for _ in range(steps):
        after = penalty.prox(V - (product(grams, V) + lam * norm.ridge * V - cross) / L, lam / L)
        if ((V - after) * (after - B)).sum() > 0:
            t = 1.0
        later = (1 + (1 + 4 * t * t) ** 0.5) / 2
        still = np.abs(after - V).max() <= 1e-13
        V, B, t = after + (t - 1) / later * (after - B), after, later
        if still:
            break
    return B


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("share", [0.5, 0.01])
@pytest.mark.parametrize(("kind", "by_output"), [("l21", False), ("l21", True), ("l1linf", False)])
@pytest.mark.parametrize("c", [1, 3])
def test_the_least_point(c: int, kind: str, by_output: bool, share: float, ridge: float) -> None:
    """The objective of plain steps, from zero and from elsewhere, and conditions group by group."""
    grams, cross = drawn(3, c)
    norm = GroupNorm(kind, GROUPS, ETA, ridge, by_output)
    lam, start = share * norm.largest_lam(cross), np.random.default_rng(0).normal(size=cross.shape)

    def value(B: np.ndarray) -> float:
        return 0.5 * float((B * (product(grams, B) - 2 * cross)).sum()) + lam * norm.penalty.value(B)

    right = value(plain(grams, cross, lam, norm))
    for begin in (np.zeros_like(cross), start):
        found = group_quadratic(grams, cross, lam, norm, start=begin, tol=1e-8, max_iter=20_000)
        assert found.kkt <= 1e-8 * lam
        assert value(found.coef) <= right + 1e-9 * abs(right)
        C = cross - product(grams, found.coef) - lam * ridge * found.coef
        for j in range(c if by_output else 1):
            own = slice(j, j + 1) if by_output else slice(None)
            for g in range(4):
                b, slope = found.coef[g == GROUPS, own], C[g == GROUPS, own]
                if kind == "l21" and b.any():
                    np.testing.assert_allclose(slope, lam * ETA[g] * b / np.linalg.norm(b), atol=1e-3 * lam)
                elif kind == "l21":
                    assert np.linalg.norm(slope) <= lam * ETA[g] * (1 + 1e-7)
                else:
                    assert np.abs(slope).sum() <= lam * ETA[g] * (1 + 1e-7)
    if share == 0.5:
        assert not found.coef[int(np.argmin(norm.duals(cross) / ETA)) == GROUPS].any()


def test_second_derivatives_are_worth_their_products() -> None:
    """Of features that are alike, far fewer products than proximal steps alone."""
    grams, cross = drawn(1, 1, decay=1.0)
    norm = GroupNorm("l21", GROUPS, ETA)
    lam = 1e-4 * norm.largest_lam(cross)
    found = group_quadratic(grams, cross, lam, norm, start=np.zeros_like(cross), tol=1e-6, max_iter=5000)
    assert found.kkt <= 1e-6 * lam
    assert found.products < 2000


def test_a_limit_is_kept() -> None:
    """The residual tells how far it is."""
    grams, cross = drawn(1, 1, decay=1.0)
    norm = GroupNorm("l1linf", GROUPS, ETA)
    found = group_quadratic(
        grams, cross, 1e-3 * norm.largest_lam(cross), norm, start=np.zeros_like(cross), tol=1e-12, max_iter=10
    )
    assert found.products == 10
    assert found.kkt > 1e-6
