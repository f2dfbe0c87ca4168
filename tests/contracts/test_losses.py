"""Every loss of the table: slopes are derivatives, bounds are bounds, and the ends are stable."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax

from dkl.losses import LOSSES, Huber, Logistic, ScoreSizes, Softmax, find_loss, is_wrong, loss_names, loss_of_scores

RNG = np.random.default_rng(0)
ROWS = 60
OUTPUTS = (1, 2, 5)
OTHERS = {name: [loss, *(replace(loss, **{f.name: 3.0}) for f in fields(loss))] for name, loss in LOSSES.items()}
CASES = [pytest.param(loss, c, id=f"{loss}-{c}") for some in OTHERS.values() for loss in some for c in OUTPUTS]


def draw(loss, c, size=2.0):
    """Scores and targets; two classes have one score."""
    z = size * RNG.normal(size=(ROWS, c))
    return z, RNG.integers(0, max(2, c), ROWS) if loss.is_class else RNG.normal(size=(ROWS, c))


def along(function, z, v, step=1e-6):
    """The derivative of a function of z along v."""
    return (function(z + step * v) - function(z - step * v)) / (2 * step)


@pytest.mark.parametrize(("loss", "c"), CASES)
def test_slope_and_curvature_are_derivatives(loss, c):
    """Along every score and along a random direction, away from corners by chance."""
    z, y = draw(loss, c)
    slope, diagonal = loss.slope(z, y), loss.curvature(z, y)
    assert loss.value(z, y).shape == (ROWS,)
    assert slope.shape == diagonal.shape == z.shape
    for j in range(c):
        e = np.zeros(c)
        e[j] = 1.0
        np.testing.assert_allclose(slope[:, j], along(lambda at: loss.value(at, y), z, e), rtol=1e-6, atol=1e-7)
        bend = along(lambda at: loss.slope(at, y), z, e)
        np.testing.assert_allclose(diagonal[:, j], bend[:, j], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(loss.curved(z, y, np.broadcast_to(e, z.shape)), bend, rtol=1e-5, atol=1e-6)
        if loss.joins(c):
            between = -loss.shared(z) * loss.shared(z)[:, [j]]
            np.testing.assert_allclose(np.delete(between, j, 1), np.delete(bend, j, 1), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(bend.sum(axis=1), 0, atol=1e-6)
        else:
            assert not loss.shared(z).any()
    v = RNG.normal(size=z.shape)
    bend = along(lambda at: loss.slope(at, y), z, v)
    np.testing.assert_allclose(loss.curved(z, y, v), bend, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("loss", "c"), CASES)
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e3, 1e30])
def test_bounds_are_bounds(loss, c, size):
    """Of slopes, curvatures and sums of both, at scores of any size; everything is finite there."""
    z, y = draw(loss, c, size)
    w = RNG.gamma(2, size=ROWS)
    value, slope = loss.value(z, y), loss.slope(z, y)
    v = RNG.normal(size=z.shape)
    bent = loss.curved(z, y, v)
    assert all(np.isfinite(found).all() for found in (value, slope, bent, loss.curvature(z, y)))
    assert (value >= 0).all()
    assert np.abs(slope).max() <= loss.steepest(c)
    most = loss.most_curved(c) * (1 + 1e-12)
    assert loss.curvature(z, y).max() <= most
    assert (np.linalg.norm(bent, axis=1) <= most * np.linalg.norm(v, axis=1)).all()
    assert (loss.curvature(z, y) >= 0).all()
    assert ((v * bent).sum(axis=1) >= -1e-12 * (v * v).sum(axis=1)).all()
    known = {} if loss.is_class else {"absolute": w @ np.abs(y), "square": w @ (y * y)}
    sizes = ScoreSizes(float(np.abs(z).max()), float(w.sum()), c, **known)
    assert w @ value <= loss.most_value(sizes) * (1 + 1e-12)
    assert (w @ np.abs(slope) <= loss.most_slope(sizes) * (1 + 1e-12)).all()
    assert np.isfinite(loss.most_value(sizes))


@pytest.mark.parametrize(("loss", "c"), CASES)
def test_convex_and_steep_as_said(loss, c):
    """Midpoints lie below; the bound of the slope is reached, or there is none."""
    z, y = draw(loss, c)
    far = z + 5 * RNG.normal(size=z.shape)
    assert (loss.value((z + far) / 2, y) <= (loss.value(z, y) + loss.value(far, y)) / 2 + 1e-12).all()
    reached = np.abs(loss.slope(1e6 * np.sign(z), y)).max()
    expected = loss.steepest(c)
    assert reached == pytest.approx(expected, rel=1e-9) if np.isfinite(expected) else reached > 1e5


@pytest.mark.parametrize("k", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("c", OUTPUTS)
def test_softmax(c, k):
    """Against scipy; one score z stands for the pair (-z, z)."""
    z, y = draw(Softmax(), c)
    pair = np.hstack([-z, z]) if c == 1 else z
    expected = -log_softmax(k * pair, axis=1)[np.arange(ROWS), y]
    np.testing.assert_allclose(Softmax(k).value(z, y), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("c", OUTPUTS)
def test_far_scores(c):
    """The log loss of a score 10^4 times too low is that distance; of the right one it is zero."""
    z = np.zeros((2, c))
    z[:, -1] = 1e4
    gap = 2e4 if c == 1 else 1e4
    np.testing.assert_allclose(Softmax(2.0).value(z, np.array([0, max(c - 1, 1)])), [2 * gap, 0.0], atol=1e-12)


def test_values_by_hand():
    """One number of each row of the table, from its formula."""
    z, y, code = np.array([[2.0]]), np.array([[0.5]]), np.array([0])
    far = (np.log1p(np.exp(14.0)) + np.log1p(np.exp(-16.0)) - 2 * np.log1p(np.exp(-1.0))) / 10
    expected = {
        "square": 1.125, "huber": 1.35 * 1.5 - 1.35**2 / 2, "epsilon_insensitive": far,
        "log_loss": np.log1p(np.exp(4.0)), "logistic": np.log1p(np.exp(2.0)),
        "squared_hinge": 4.5, "smoothed_hinge": 2.75,
    }  # fmt: skip
    assert set(expected) == set(LOSSES)
    for name, loss in LOSSES.items():
        assert loss.value(z, code if loss.is_class else y)[0] == pytest.approx(expected[name], rel=1e-12), name


@pytest.mark.parametrize("name", LOSSES)
def test_parameters_are_checked(name):
    """Zero is refused by name."""
    for one in fields(LOSSES[name]):
        with pytest.raises(ValueError, match=f"{one.name}=0"):
            replace(LOSSES[name], **{one.name: 0.0})


def test_the_wrong_class():
    """The class of the highest score; of one score the second class if it is above zero, of equal ones the first."""
    one = np.array([[0.5], [0.5], [-0.5], [-0.5], [0.0], [0.0]])
    assert is_wrong(one, np.array([1, 0, 1, 0, 1, 0])).tolist() == [False, True, True, False, True, False]
    many = np.array([[1.0, 3.0, 2.0], [4.0, 3.0, 2.0], [2.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    assert is_wrong(many, np.array([1, 2, 0, 2])).tolist() == [False, True, False, False]


@pytest.mark.parametrize("c", OUTPUTS)
def test_shares(c):
    """Probabilities against scipy: they sum to one, and one score of two classes is the log odds."""
    z = 30 * RNG.normal(size=(ROWS, c))
    for loss in (loss_of_scores(Softmax(), c), Logistic()):
        found = loss.shares(z)
        assert found.shape == (ROWS, max(c, 2))
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
        odds = expit(z) / expit(z).sum(axis=1, keepdims=True) if isinstance(loss, Logistic) else softmax(z, axis=1)
        expected = np.hstack([expit(-z), expit(z)]) if c == 1 else odds
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)
        usual, far = loss.log_shares(z / 30), loss.log_shares(1e5 * z)
        np.testing.assert_allclose(usual, np.log(loss.shares(z / 30)), rtol=1e-11, atol=1e-14)
        assert np.isfinite(far).all()
        assert far.min() < -1e5, "below the logarithm of the smallest number"


def test_names():
    """A text names a loss and its parameters; a wrong one is refused by its value."""
    assert find_loss("huber:delta=2") == Huber(2.0)
    assert find_loss("softmax") == find_loss("log_loss") == Softmax()
    assert find_loss("square") in [LOSSES[name] for name in loss_names(False)]
    for text, said in {
        "hubert": "did you mean 'huber'", "huber:epsilon=1": "no parameter 'epsilon'; it has delta",
        "huber:delta=x": "delta='x' must be a number", "huber:delta=-1": "delta=-1",
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=said):
            find_loss(text)
