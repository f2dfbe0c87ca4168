"""Every penalty of the table: prox is the argmin, the dual norm is the dual of the norm."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from dkl.penalties import PENALTIES, Elastic, GroupL21, L1Linf

RNG = np.random.default_rng(0)
D = 12
GROUPS, FACTOR = np.array([2, 0, 1, 1, 0, 2, 2, 2, 0, 1, 3, 2]), np.array([0.5, 2.0, 1.0, 1.5])


def forms(penalty):
    """The penalty as it is, with groups if it has them, and of those in an elastic sum."""
    if "groups" not in {f.name for f in fields(penalty)}:
        return [penalty]
    grouped = type(penalty)(GROUPS, FACTOR)
    return [penalty, grouped, Elastic(grouped, 0.7)]


CASES = [
    pytest.param(one, shape, id=f"{name}{i}-{len(shape)}")
    for name, penalty in PENALTIES.items()
    for i, one in enumerate(forms(penalty))
    for shape in ((D,), (D, 3))
]


@pytest.mark.parametrize(("penalty", "shape"), CASES)
@pytest.mark.parametrize("step", [1e-3, 0.3, 1.0, 10.0])
def test_prox_is_the_argmin(penalty, shape, step):
    """1/2 |p - v|^2 + step value(p) is strongly convex: every other point is higher by half the squared distance."""
    v = RNG.normal(size=shape)
    p = penalty.prox(v, step)
    assert p.shape == shape

    def objective(at):
        return 0.5 * ((at - v) ** 2).sum() + step * penalty.value(at)

    best = objective(p)
    for size in 10.0 ** np.arange(-6, 2):
        for other in (p + size * RNG.normal(size=shape), p + size * np.sign(v), (1 - size) * p, v * size):
            far = 0.5 * ((other - p) ** 2).sum()
            assert objective(other) >= best + far - 1e-12 * (1 + best + far)
    for place in np.ndindex(shape):
        for move in (1e-4, -1e-4):
            other = p.copy()
            other[place] += move
            assert objective(other) >= best + 0.5 * move**2 - 1e-12 * (1 + best)


@pytest.mark.parametrize(("penalty", "shape"), CASES)
def test_value_and_norm(penalty, shape):
    """At least 0, 0 at 0, convex; the norm is homogeneous and bounds the value's slope at 0."""
    u, v = RNG.normal(size=(2, *shape))
    assert penalty.value(v) > 0
    assert penalty.value(0 * v) == penalty.norm(0 * v) == penalty.dual_norm(0 * v) == 0
    assert penalty.value((u + v) / 2) <= (penalty.value(u) + penalty.value(v)) / 2 + 1e-12
    assert penalty.norm(u + v) <= penalty.norm(u) + penalty.norm(v) + 1e-12
    assert penalty.norm(-3 * v) == pytest.approx(3 * penalty.norm(v), rel=1e-12)
    np.testing.assert_array_equal(penalty.prox(0 * v, 1.0), 0 * v)
    np.testing.assert_allclose(penalty.prox(v, 0.0), v, rtol=1e-15)


@pytest.mark.parametrize(("penalty", "shape"), CASES)
def test_dual_norm(penalty, shape):
    """|<u, v>| <= norm(u) dual_norm(v), with equality at the gradient of the dual norm."""
    v = RNG.normal(size=shape)
    for _ in range(200):
        u = RNG.normal(size=shape) * (RNG.random(shape) < RNG.random())
        assert abs((u * v).sum()) <= penalty.norm(u) * penalty.dual_norm(v) * (1 + 1e-12)
    u = np.empty(shape)
    for place in np.ndindex(shape):
        ends = [v.copy(), v.copy()]
        ends[0][place] += 1e-6
        ends[1][place] -= 1e-6
        u[place] = (penalty.dual_norm(ends[0]) - penalty.dual_norm(ends[1])) / 2e-6
    assert penalty.norm(u) == pytest.approx(1.0, rel=1e-6)
    assert (u * v).sum() == pytest.approx(penalty.dual_norm(v), rel=1e-6)


@pytest.mark.parametrize(("penalty", "shape"), CASES)
def test_prox_is_zero_from_the_dual_norm_on(penalty, shape):
    """Of every penalty with a corner at zero."""
    v = RNG.normal(size=shape)
    edge = penalty.dual_norm(v)
    if penalty is PENALTIES["l2"]:
        np.testing.assert_allclose(penalty.prox(v, 3.0), v / 4)
        return
    assert not penalty.prox(v, edge * (1 + 1e-9)).any()
    assert penalty.prox(v, edge * (1 - 1e-6)).any()


def test_by_hand():
    """Small cases of each formula."""
    v = np.array([[3.0, 4.0], [0.0, -1.0], [2.0, 2.0]])
    groups = np.array([0, 1, 1])
    assert GroupL21(groups).value(v) == pytest.approx(5 + 3)
    assert L1Linf(groups, np.array([1.0, 10.0])).value(v) == pytest.approx(4 + 20)
    np.testing.assert_allclose(GroupL21(groups).prox(v, 1.0), v * [[0.8], [2 / 3], [2 / 3]])
    np.testing.assert_allclose(L1Linf().prox(v, 3.0), [[2.0, 2.0], [0.0, 0.0], [0.5, 0.5]])


@pytest.mark.parametrize("kind", [GroupL21, L1Linf])
def test_groups_that_do_not_fit(kind):
    """Said with what was given."""
    with pytest.raises(ValueError, match="must be whole numbers from 0 on"):
        kind(np.array([0, -1]))
    with pytest.raises(ValueError, match="must be whole numbers from 0 on"):
        kind(np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="must be finite numbers above 0"):
        kind(np.array([0, 1]), np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="groups has 2 entries for 3 rows"):
        kind(np.array([0, 1])).value(np.ones(3))
    with pytest.raises(ValueError, match="factor has 1 entries for 2 groups"):
        kind(np.array([0, 1]), np.ones(1)).value(np.ones(2))
    with pytest.raises(ValueError, match="ridge=-1"):
        Elastic(kind(), -1.0)
