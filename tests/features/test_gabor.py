"""Gabor features against scikit-image's kernels, slid over the patch one position at a time."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from dkl.features import gabor, gabor_filters
from dkl.features.gabor import GaborMap
from dkl.features.gabor_filters import positions_of
from dkl.features.stored import restore_map, store_map

filters = pytest.importorskip("skimage.filters")

RNG = np.random.default_rng(0)
SHAPE, STRIDE, D = (9, 7), 2, 5
X = RNG.random((40, 63))
MAP = GaborMap(
    SHAPE, STRIDE, RNG.uniform(0, np.pi, D), RNG.uniform(0.1, 0.5, D), *RNG.uniform(0.8, 3, (2, D)), unit=2.0, largest=3
)


def slow_features(one, rows):
    """Every filter at every position by itself, for positions that are whole pixels."""
    found = np.zeros((len(rows), one.n_features))
    places = [(r, c) for r in (1, 3, 5, 7) for c in (1, 3, 5)]
    for j in range(one.n_features):
        sizes = {"sigma_x": one.along[j], "sigma_y": one.across[j]}
        kernel = filters.gabor_kernel(one.frequency[j], theta=one.orientation[j], n_stds=30, **sizes)
        wave = kernel.real * 2 * np.pi * one.along[j] * one.across[j]
        middle_row, middle_column = wave.shape[0] // 2, wave.shape[1] // 2
        shifted = []
        for r, c in places:
            window = wave[middle_row - r : middle_row - r + 9, middle_column - c : middle_column - c + 7]
            assert window.shape == (9, 7)
            shifted.append(window - window.mean())
        norm = np.sqrt(sum((window**2).sum() for window in shifted))
        for i, row in enumerate(rows):
            patch = row.reshape(9, 7)
            found[i, j] = sum(abs((window * patch).sum()) for window in shifted) / norm
    return found / np.sqrt(len(places) * one.n_features) / one.unit


def test_formula():
    """The features of MATH 7.4, with their scale."""
    np.testing.assert_allclose(MAP.at(np.float64).transform(X), slow_features(MAP, X), rtol=1e-10)


@pytest.mark.parametrize("entries", [1, 63 * 12 * 2, 2**18])
def test_filters_a_few_at_a_time(monkeypatch, entries):
    """The same features and gradients, however many filters are made together."""
    Psi, bar = MAP.at(np.float64).transform(X), RNG.normal(size=(len(X), D))
    pulled = MAP.at(np.float64).pull(X, Psi, Psi[:, :0], bar, tuple(MAP.parameters))
    monkeypatch.setattr(gabor_filters, "ENTRIES", entries)
    monkeypatch.setattr(gabor, "TILE", 7)
    blocks = MAP.at(np.float64)
    np.testing.assert_allclose(blocks.transform(X), Psi, rtol=1e-12)
    for name, values in blocks.pull(X, Psi, Psi[:, :0], bar, tuple(MAP.parameters)).items():
        np.testing.assert_allclose(values, pulled[name], rtol=1e-10, atol=1e-12)


def test_constant_patches_and_brightness():
    """A constant patch has no response, and a constant that is added changes none."""
    blocks = MAP.at(np.float64)
    assert np.abs(blocks.transform(np.full((2, 63), 7.0))).max() < 1e-13
    np.testing.assert_allclose(blocks.transform(X + 3), blocks.transform(X), rtol=1e-10)
    np.testing.assert_allclose(blocks.transform(2 * X), 2 * blocks.transform(X), rtol=1e-12)


def test_a_filter_that_is_constant():
    """It responds to nothing, and does not move."""
    flat = replace(MAP, frequency=np.full(D, 1e-12), along=np.full(D, 1e9), across=np.full(D, 1e9))
    blocks = flat.at(np.float64)
    assert not blocks.transform(X).any()
    Psi = np.zeros((len(X), D))
    pulled = blocks.pull(X, Psi, Psi[:, :0], np.ones_like(Psi), tuple(flat.parameters))
    assert not any(values.any() for values in pulled.values())


@pytest.mark.parametrize(
    ("shape", "stride", "rows"),
    [((16, 16), 3, [1.5, 4.5, 7.5, 10.5, 13.5]), ((4, 4), 2, [0.5, 2.5]), ((2, 2), 5, [0.5]), ((3, 3), 1, [0, 1, 2])],
)
def test_positions(shape, stride, rows):
    """A grid around the middle of the patch, inside of it."""
    found = positions_of(shape, stride)
    assert sorted(set(found[:, 0])) == rows
    assert len(found) == len(rows) ** 2


def test_a_bound_counts_rounding():
    """A width that moves nothing but the norm of a filter has slopes of rounding alone; they keep their bound."""
    one = GaborMap((2, 2), 3, *(np.array([value]) for value in (0.7, 0.3, 1.5, 2.0)), unit=1.0, largest=3.0)
    rows, blocks = RNG.random((40, 4)), one.at(np.float64)
    sizes = np.sqrt((rows**2).sum(axis=0))
    for _ in range(300):
        bar = RNG.choice([-1.0, 1.0], size=(40, 1))
        (found,) = blocks.pull(rows, bar, bar[:, :0], bar, ("along",)).values()
        (bound,) = one.pull_bounds(sizes, np.array([np.sqrt(40)]), 40.0, ("along",)).values()
        assert abs(found[0]) <= bound[0] < 1e-9


def test_memory_is_as_stated():
    """The bank, and the scratch of writing and pulling, however many rows there are."""
    count = 200
    one = GaborMap(
        (12, 12), 2, RNG.uniform(0, np.pi, count), RNG.uniform(0.1, 0.5, count), *RNG.uniform(0.8, 3, (2, count)), 1, 1
    )
    rows, cost = RNG.random((5000, 144)), one.cost(np.float64)
    out, bar = np.empty((5000, count)), RNG.normal(size=(5000, count))

    def taken(function):
        tracemalloc.start()
        function()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    blocks = one.at(np.float64)
    work = gabor_filters.work_bytes(144, 2**18 // 144)
    assert 0.5 * cost.parameter_bytes < taken(lambda: one.at(np.float64)) < cost.parameter_bytes + work
    assert 0.2 * cost.scratch_bytes < taken(lambda: blocks.write(rows, out)) < cost.scratch_bytes
    names = tuple(one.parameters)
    pulled = taken(lambda: blocks.pull(rows, out, out[:, :0], bar, names))
    assert 0.2 * cost.pull_bytes < pulled < cost.pull_bytes + cost.scratch_bytes


def test_damaged_records_are_refused():
    """Filters that do not belong together, and sizes that are none."""
    about, named = store_map(MAP)
    arrays = {name: values for name, (_, values) in named.items()}
    with pytest.raises(ValueError, match=r"do not belong together: .*'along': \(2,\)"):
        restore_map(about, {**arrays, "along": arrays["along"][:2]})
    for name in ("unit", "largest"):
        with pytest.raises(ValueError, match=f"{name}=-1 must be"):
            restore_map({**about, name: -1}, arrays)
    for name, value in (("stride", 0), ("shape", [9, 0])):
        with pytest.raises(ValueError, match=f"{name}=0 must be a whole number"):
            restore_map({**about, name: value}, arrays)
