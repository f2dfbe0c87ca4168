"""Maps made of maps: channels of some inputs, axes, and additive terms in units of the largest."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from dkl.features.additive import Chebyshev, Direct, Homogeneous, as_plain, from_plain, lift
from dkl.features.additive_rows import AdditiveRows
from dkl.features.channel import Channel
from dkl.features.projected import ProjectedMap
from dkl.features.refusal import Refusal
from dkl.features.side_by_side import SideBySide
from dkl.features.trigonometry import cos_sin, cosine
from tests.features.test_fourier import draw_rows, make_map

RNG = np.random.default_rng(8)
X = RNG.normal(size=(30, 7))


def joined():
    """Two channels of some inputs, with features of different length."""
    first, second = make_map(d=6, seed=1), make_map("skewed_chi2", d=40, seed=2)
    return SideBySide((Channel(first, np.array([5, 0, 2])), Channel(second, np.array([1, 3, 4]))))


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_channels_take_their_inputs(wrap):
    """Each its own columns, in its own order; cut by rows, they are cut together."""
    rows = np.abs(X)
    both = joined()
    assert both.n_features == 46
    assert both.scale == max(c.scale for c in both.channels) == both.channels[0].scale
    blocks = both.at(np.float64)
    sides = blocks.prepare(wrap(rows))
    assert sides.shape == (30,)
    assert (blocks.dtype, blocks.channels[1].dtype) == ("float64", "float64")
    expected = np.hstack([c.of.at(np.float64).transform(rows[:, c.inputs]) for c in both.channels])
    for part in (slice(0, 30), slice(4, 9)):
        out = np.empty((part.stop - part.start, 46))
        blocks.write(sides[part], out)
        np.testing.assert_allclose(out * both.scale, expected[part], rtol=1e-12)


@pytest.mark.parametrize(
    ("bad", "row", "column"),
    [
        ({(3, 2): np.nan, (5, 4): -9.0}, 3, 2),
        ({(5, 2): np.nan, (3, 4): -9.0}, 3, 4),
        ({(3, 5): np.nan, (3, 4): -9.0}, 3, 4),
        ({(3, 0): np.nan, (3, 4): -9.0}, 3, 0),
    ],
)
def test_the_first_refusal_of_all_channels(bad, row, column):
    """By its row, then by its column, counted in all inputs."""
    rows = np.abs(X)
    for place, value in bad.items():
        rows[place] = value
    with pytest.raises(Refusal) as caught:
        joined().at(np.float64).prepare(rows)
    assert (caught.value.row, caught.value.column) == (row, column)
    assert f"at row {row}, column {column}" in str(caught.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_axes(dtype, scale, monkeypatch):
    """(psi - mean) U, in tiles of any size and units of any scale; and over a wire."""
    of = make_map(d=12)
    mean, axes = RNG.normal(size=12), RNG.normal(size=(12, 5))
    rows = draw_rows("gaussian", 50)
    expected = (of.at(np.float64).transform(rows) - mean) @ axes
    projected = ProjectedMap(of, mean, axes, scale)
    assert projected.n_features == 5
    assert ProjectedMap(of, mean, axes).scale == 1
    tolerance = {"atol": 1e-5 if dtype == np.float32 else 1e-12}
    for tile in (2048, 50, 7):
        monkeypatch.setattr("dkl.features.projected.TILE", tile)
        blocks = pickle.loads(pickle.dumps(projected.at(dtype)))
        assert blocks.dtype == dtype
        np.testing.assert_allclose(blocks.transform(rows), expected, **tolerance)
        out = np.empty((50, 5), dtype)
        blocks.write(blocks.prepare(rows), out)
        np.testing.assert_allclose(out, expected / scale, **tolerance)


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_additive_rows(wrap):
    """Phi over the root of the largest entry, so that nothing is above one; rows of zeros have the scale one."""
    rows = np.abs(X) * 4
    to = Direct(np.array([0.5, 2.0]))
    terms = AdditiveRows(to, 7, float(rows.max()))
    assert (terms.n_features, terms.scale) == (14, np.sqrt(rows.max()))
    blocks = terms.at(np.float64)
    out = np.empty((30, 14))
    blocks.write(blocks.prepare(wrap(rows)), out)
    np.testing.assert_allclose(out * terms.scale, lift(rows, to), rtol=1e-13)
    assert np.abs(out).max() <= 1
    assert AdditiveRows(to, 7, 0.0).scale == 1
    with pytest.raises(Refusal, match="Chi2Features is for histograms"):
        blocks.prepare(wrap(-rows))


def test_additive_maps_in_plain_form():
    """None is None; weights are a list; damage is refused by its name."""
    assert as_plain(None) is None
    assert from_plain(None) is None
    maps = (Direct(np.array([0.5, 2.0])), Chebyshev(0.3, 4), Homogeneous(np.array([0.5, 0.25]), 0.6))
    names = ("direct", "chebyshev", "homogeneous")
    for to, name, terms in zip(maps, names, (2, 4, 3), strict=True):
        record = as_plain(to)
        assert record["series"] == name
        again = from_plain(record)
        assert type(again) is type(to)
        assert again.n_terms == to.n_terms == terms
    for weights in (0.5, [[0.5]]):
        with pytest.raises(ValueError, match="weights"):
            from_plain({"series": "homogeneous", "weights": weights, "step": 1.0})


def test_additive_sparse_rows_stay_narrow():
    """int32 indices while they are enough; a map without entries, and one without inputs."""
    to = Direct(np.array([0.5, 2.0]))
    made = lift(sp.csr_array(np.abs(X)), to)
    assert made.indices.dtype == made.indptr.dtype == np.int32
    assert made.shape == (30, 14)
    assert lift(sp.csr_array((4, 3)), to).nnz == 0
    assert lift(np.empty((4, 0)), to).shape == (4, 0)
    assert lift(np.empty((0, 3)), to).shape == (0, 6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 200])
def test_trigonometry_of_any_number_of_rows(dtype, rows):
    """Against numpy, in place, in several tiles."""
    theta = RNG.uniform(-50, 50, (rows, 3)).astype(dtype)
    tolerance = {"atol": 1e-5 if dtype == np.float32 else 1e-13}
    cos, sin = theta.copy(), np.empty_like(theta)
    cos_sin(cos, cos, sin)
    np.testing.assert_allclose(cos, np.cos(theta), **tolerance)
    np.testing.assert_allclose(sin, np.sin(theta), **tolerance)
    alone = theta.copy()
    cosine(alone)
    np.testing.assert_allclose(alone, np.cos(theta), **tolerance)
