"""Steps of --scale one by one: how they are written, what each does to a row, and which lists make no sense."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import normalize, scale

from dkl.store.request import Request
from dkl.store.scale_steps import KINDS, Step, contrast, needs_dense, parse_steps, sum_to_one, written

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("text", "steps", "plain"),
    [
        ("none", (), "none"),
        ("l1", (Step("l1"),), "l1"),
        ("gcn", (Step("gcn", 0.0),), "gcn:0"),
        ("gcn+zca", (Step("gcn", 0.0), Step("zca", 0.1)), "gcn:0+zca:0.1"),
        ("standard+zca:1e-5", (Step("standard"), Step("zca", 1e-5)), "standard+zca:1e-05"),
        ("zca:2+gcn:10.5", (Step("zca", 2.0), Step("gcn", 10.5)), "zca:2+gcn:10.5"),
    ],
)
def test_lists_of_steps(text, steps, plain):
    """In their order, with every number, and back."""
    assert parse_steps(text) == steps
    assert written(steps) == plain
    assert parse_steps(plain) == steps


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("zac", "scale='zac' is not known; did you mean 'zca'"),
        ("gcn+", "scale='' is not known"),
        ("gcn+none", "scale='none' is no step"),
        ("none+none", "scale='none' is no step"),
        ("gcn+gcn:1", r"scale='gcn\+gcn:1' lists gcn 2 times"),
        ("minmax+zca+standard", "standard undoes minmax; leave one of them out"),
        ("l1:2", "scale='l1:2': l1 takes no number; type l1"),
        ("gcn:-1", "scale='gcn:-1': bias must be a number at least 0; type gcn, or for example gcn:0.1"),
        ("gcn:x", "scale='gcn:x': bias"),
        ("zca:0", "scale='zca:0': eps must be a number above 0; type zca"),
        ("zca:inf", "scale='zca:inf': eps"),
        ("zca:nan", "scale='zca:nan': eps"),
        ("zca:", "scale='zca:': eps"),
    ],
)
def test_lists_that_make_no_sense(text, line):
    """One line, with what was typed and what to type."""
    with pytest.raises(ValueError, match=line):
        parse_steps(text)


def test_steps_that_need_dense_rows():
    """Those that have no form for stored entries."""
    assert [name for name in KINDS if needs_dense(parse_steps(name))] == ["gcn", "zca"]
    assert needs_dense(parse_steps("minmax+gcn"))
    assert not needs_dense(parse_steps("standard+l1"))
    assert not needs_dense(())


def asked(scale, sources=("a",), **how):
    """The steps of each channel of a request."""
    return Request(sources, "d", scale=scale, **how).scales


def test_steps_of_channels():
    """Commas part the steps of one channel, or several channels; + always parts steps."""
    both = "gcn:0+zca:0.1"
    assert asked(("gcn", "zca")) == asked(("gcn+zca",)) == (both,)
    assert asked(("none",)) == ("none",)
    assert asked(("gcn+zca",), ("a", "b")) == (both, both)
    assert asked(("gcn+zca", "l1"), ("a", "b")) == (both, "l1")
    assert asked(("gcn", "zca"), ("a", "b"), rows=True) == (both,)
    assert asked(("gcn", "zca:1"), ("a", "b")) == ("gcn:0", "zca:1")
    with pytest.raises(ValueError, match=r"may be two steps of both or one of each; type gcn[+]zca for both steps"):
        asked(("gcn", "zca"), ("a", "b"))
    with pytest.raises(ValueError, match=r"scale has 2 entries for 3 channels.*joined by"):
        asked(("gcn", "zca"), ("a", "b", "c"))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("m", [1, 2, 7, 200, 784])
def test_contrast_like_scikit_learn(dtype, m):
    """Without a bias it is a standardised row; one input has no contrast."""
    X = (RNG.random((9, m)) * 255).astype(dtype)
    expected = scale(X.astype(float), axis=1) if m > 1 else np.zeros((9, 1))
    np.testing.assert_allclose(contrast(X, None, 0.0), expected, atol=1e-12)


@pytest.mark.parametrize("bias", [0.0, 0.1, 10.0])
def test_contrast_with_a_bias(bias):
    """(x - mean) / sqrt(bias + variance), by its definition."""
    X = RNG.normal(5, 3, (20, 30))
    centred = X - X.mean(axis=1)[:, None]
    np.testing.assert_allclose(contrast(X, None, bias), centred / np.sqrt(bias + X.var(axis=1))[:, None], rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 7.0, 0.1, -1e300, 1e-300, 1 / 3])
@pytest.mark.parametrize("bias", [0.0, 10.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_constant_image_is_zero(value, bias, dtype):
    """Not what rounding left of it, and not NaN; its neighbours are not touched."""
    if dtype == "float32" and abs(value) > 1e38:
        return
    X = np.full((3, 784), value, dtype)
    X[1] = RNG.normal(size=784)
    found = contrast(X, None, bias)
    np.testing.assert_array_equal(found[[0, 2]], 0)
    assert 0.2 < found[1].std() <= 1 + 1e-12


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-7, 1e160, 1e300])
def test_contrast_has_no_unit(size):
    """Any size of the deviation: nothing overflows, and nothing vanishes."""
    X = RNG.normal(size=(4, 50))
    np.testing.assert_allclose(contrast(X * size, None, 0.0), contrast(X, None, 0.0), rtol=1e-9)


def test_a_small_contrast_on_a_large_mean():
    """A deviation of 1e-9 of the mean is one; 1e-15 of it is rounding."""
    X = 1e6 + np.array([[1e-3, -1e-3, 0, 0], [1e-10, -1e-10, 0, 0]])
    found = contrast(X, None, 0.0)
    np.testing.assert_allclose(found[0], np.array([1, -1, 0, 0]) * np.sqrt(2), atol=1e-6)
    np.testing.assert_array_equal(found[1], 0)


@given(st.integers(1, 200), st.lists(st.integers(0, 200), max_size=5), st.integers(1, 900))
@settings(max_examples=40, deadline=None)
def test_a_row_has_its_own_bits(n, cuts, m):
    """gcn and l1 of a block are those of its rows."""
    X = np.random.default_rng(n).normal(size=(n, m))
    for step in (contrast, sum_to_one):
        parts = [step(part, None, 0.0) for part in np.split(X, sorted(c % n for c in cuts))]
        assert np.concatenate(parts).tobytes() == step(X, None, 0.0).tobytes()


def test_sums_of_one():
    """As scikit-learn has them."""
    X = RNG.normal(size=(6, 8))
    X[3] = 0
    np.testing.assert_allclose(sum_to_one(X, None, 0.0), normalize(X, "l1"), rtol=1e-14)
