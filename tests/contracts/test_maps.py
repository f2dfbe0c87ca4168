"""Every feature map of dkl.features: bounded, pulled back by the transpose of its Jacobian, stored and restored."""

from __future__ import annotations

import importlib
import inspect
import json
import pickle
import pkgutil

import numpy as np
import pytest
from scipy.sparse import csr_array

import dkl.features
from dkl.features.additive import Chebyshev, Direct, Homogeneous
from dkl.features.additive_rows import AdditiveRows
from dkl.features.channel import Channel
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.features.gabor import GaborMap
from dkl.features.gabor_groups import GaborGroups
from dkl.features.nystroem import NystroemMap
from dkl.features.projected import ProjectedMap
from dkl.features.side_by_side import SideBySide, Sides
from dkl.features.stored import KINDS, restore_map, store_map
from dkl.features.waves import WaveMap
from dkl.kernels import KERNELS
from dkl.kernels.values import kernel_values

M, N = 4, 30
RNG = np.random.default_rng(0)
X = RNG.random((N, M)) * (RNG.random((N, M)) > 0.3)
ROWS = {"dense": X, "sparse": csr_array(X)}


def fourier(kernel="gaussian", form="paired", waves=5, inputs=M, additive=None):
    """A map of a few frequencies; the odd paired form has one phase."""
    terms = 1 if additive is None else additive.n_terms
    unit = draw_unit(KERNELS["gaussian"], terms * inputs, waves, "iid", RNG)
    phase = RNG.random({"paired": 0, "odd": 1, "phase": waves}[form])
    sigma = RNG.uniform(0.5, 1.5, inputs)
    return FourierMap(KERNELS[kernel], unit, sigma, phase, 0.7, "phase" if form == "phase" else "paired", additive)


def nystroem(kernel="gaussian", inputs=M):
    """Whitened landmarks."""
    sigma, landmarks = RNG.uniform(0.5, 1.5, inputs), RNG.random((6, inputs))
    values, vectors = np.linalg.eigh(kernel_values(KERNELS[kernel], sigma, landmarks, landmarks))
    return NystroemMap(KERNELS[kernel], sigma, landmarks, vectors / np.sqrt(values), np.arange(6), 1.0, True)


def additive(series=None, inputs=M):
    """Terms of an additive map, in units of the largest entry."""
    return AdditiveRows(series or Direct(np.array([0.1, 0.6])), inputs, float(X.max()))


def gabor(shape=(2, 2), stride=1, filters=3):
    """Filters at random."""
    turned, waves = RNG.uniform(0, np.pi, filters), RNG.uniform(0.1, 0.5, filters)
    norms = np.linalg.norm(X - X.mean(axis=1, keepdims=True), axis=1)
    return GaborMap(
        shape, stride, turned, waves, *RNG.uniform(0.5, 2, (2, filters)), float(norms.mean()), float(norms.max())
    )


def projected(of):
    """Three axes of another map, in a unit that no row exceeds."""
    axes = np.linalg.qr(RNG.normal(size=(of.n_features, 3)))[0]
    return ProjectedMap(of, RNG.normal(size=of.n_features) / of.n_features, axes, 4.0 * of.scale * of.n_features**0.5)


def first(of, *inputs):
    """The map for some of the inputs."""
    return Channel(of, np.array(inputs))


PARTED = SideBySide((first(fourier(inputs=2), 0, 3), first(fourier(form="odd", waves=2, inputs=2), 1, 2)))
MIXED = SideBySide(
    (
        first(nystroem(inputs=2), 3, 1),
        first(fourier("exp_chi2", "phase", 7, 3, Direct(np.array([0.3, 1.0]))), 0, 1, 2),
        fourier(form="odd", waves=3),
        first(additive(inputs=1), 2),
        projected(fourier(waves=4)),
    )
)
EXAMPLES = {
    "fourier": {
        "paired": fourier(),
        "odd": fourier(form="odd"),
        "phase": fourier(form="phase"),
        "skewed": fourier("skewed_chi2"),
        "exp_chi2": fourier("exp_chi2", "odd", 5, M, Direct(np.array([0.3, 1.0]))),
    },
    "waves": {
        "paired": WaveMap.of(fourier()),
        "phase": WaveMap.of(fourier("skewed_chi2", form="phase")),
        "exp_chi2": WaveMap.of(fourier("exp_chi2", "paired", 5, M, Direct(np.array([0.3, 1.0])))),
    },
    "nystroem": {"gaussian": nystroem(), "laplacian": nystroem("laplacian")},
    "additive": {
        "direct": additive(),
        "chebyshev": additive(Chebyshev(0.4, 3)),
        "homogeneous": additive(Homogeneous(np.array([0.5, 0.2]), 0.6)),
    },
    "gabor": {"square": gabor(), "row": gabor((1, 4), 2, 2), "one place": gabor((2, 2), 3, 1)},
    "gabor_groups": {"square": GaborGroups(**vars(gabor()))},
    "channel": {"fourier": first(fourier(form="odd", inputs=2), 3, 1), "nystroem": first(nystroem(inputs=2), 0, 2)},
    "side_by_side": {"parted": PARTED, "mixed": MIXED, "nested": SideBySide((fourier(), MIXED))},
    "projected": {
        "fourier": projected(fourier(form="odd")),
        "several": projected(MIXED),
        "twice": projected(projected(PARTED)),
    },
}
MAPS = {f"{kind}-{name}": one for kind, some in EXAMPLES.items() for name, one in some.items()}
LEARNED = {name: one for name, one in MAPS.items() if one.parameters}


def map_classes():
    """Classes of dkl.features that name their kind, each another one."""
    found = set()
    for module in pkgutil.iter_modules(dkl.features.__path__):
        members = vars(importlib.import_module(f"dkl.features.{module.name}")).values()
        own = [one for one in members if inspect.isclass(one) and isinstance(vars(one).get("kind"), str)]
        found |= set(own)
    by_kind = {one.kind: one for one in found}
    assert len(by_kind) == len(found)
    return by_kind


def test_every_map_has_an_example_and_can_be_stored():
    """A new class with a kind needs an example above and a row in features/stored.py."""
    classes = map_classes()
    assert set(classes) == set(EXAMPLES) == set(KINDS)
    assert len(classes) >= 6
    for kind, some in EXAMPLES.items():
        assert some
        assert all(type(one) is classes[kind] for one in some.values())


def written(features, rows=X, dtype=np.float64):
    """Features without their scale."""
    blocks = features.at(dtype)
    T, out = blocks.prepare(rows), np.full((rows.shape[0], features.n_features), np.nan, dtype)
    blocks.write(T, out)
    return out


def columns_of(T):
    """Prepared rows as one dense array; those of several channels side by side."""
    if isinstance(T, Sides):
        return np.hstack([columns_of(part) for part in T.parts])
    return T.toarray() if hasattr(T, "toarray") else T


def pulled(features, Psi_bar, wanted, rows=X, dtype=np.float64):
    """What all rows pull back."""
    blocks = features.at(dtype)
    T, n = blocks.prepare(rows), rows.shape[0]
    Psi, slope = np.empty((n, features.n_features), dtype), np.full((n, blocks.slope_columns), np.nan, dtype)
    blocks.write(T, Psi, slope)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(Psi, written(features, rows, dtype), rtol=0, atol=tolerance)
    return blocks.pull(T, Psi, slope, Psi_bar.astype(dtype), wanted)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", MAPS)
def test_features_are_bounded(name, rows):
    """By sqrt2 in size, whatever the form of the rows and the precision."""
    one = MAPS[name]
    expected = written(one)
    assert expected.shape == (N, one.n_features)
    assert np.abs(expected).max() <= np.sqrt(2) + 1e-12
    np.testing.assert_allclose(written(one, ROWS[rows]), expected, rtol=0, atol=1e-12)
    narrow = written(one, ROWS[rows], np.float32)
    assert narrow.dtype == one.at(np.float32).dtype == np.float32
    np.testing.assert_allclose(narrow, expected, rtol=0, atol=2e-5)
    assert np.isfinite(one.scale)
    assert one.scale > 0


@pytest.mark.parametrize("name", MAPS)
def test_sizes_and_groups(name):
    """Columns of X and of prepared rows, and the group of every feature."""
    one = MAPS[name]
    assert one.n_columns == columns_of(one.at(np.float64).prepare(X)).shape[1]
    assert written(one, X[:, : one.n_inputs]).tobytes() == written(one).tobytes()
    assert one.column_group.shape == (one.n_features,)
    assert one.column_group.dtype.kind == "i"
    assert set(one.column_group) == set(range(one.column_group.max() + 1))


def test_groups_of_channels():
    """Each channel's columns have its number and are its own features, up to the scale."""
    for number, channel in enumerate(MIXED.channels):
        own = written(MIXED)[:, MIXED.column_group == number] * MIXED.scale
        np.testing.assert_allclose(own, written(channel) * channel.scale, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cut", [1, 7, 29])
@pytest.mark.parametrize("name", MAPS)
def test_any_cut_of_the_rows(name, cut):
    """The same features up to rounding; prepared rows can be cut, and picked by their numbers."""
    one, blocks = MAPS[name], MAPS[name].at(np.float64)
    T, out = blocks.prepare(X), np.empty((N, MAPS[name].n_features))
    for start in range(0, N, cut):
        blocks.write(T[start : start + cut], out[start : start + cut])
    np.testing.assert_allclose(out, written(one), rtol=0, atol=1e-12)
    some = np.array([3, 0, 17])
    picked = np.empty((3, one.n_features))
    blocks.write(T[some], picked)
    np.testing.assert_allclose(picked, written(one)[some], rtol=0, atol=1e-12)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", LEARNED)
def test_pull_is_the_transpose_of_the_jacobian(name, rows):
    """<Psi_bar, dPsi> by central differences, in every entry of every parameter."""
    one, Psi_bar = MAPS[name], RNG.normal(size=(N, MAPS[name].n_features))
    names = tuple(one.parameters)
    found = one.gradients(pulled(one, Psi_bar, names, ROWS[rows]))
    assert tuple(found) == names
    step = 1e-5
    for parameter, values in one.parameters.items():
        assert found[parameter].shape == values.shape
        expected = np.empty(values.shape)
        for place in np.ndindex(values.shape):
            ends = []
            for sign in (1, -1):
                moved = values.copy()
                moved[place] += sign * step
                ends.append((Psi_bar * written(one.with_parameters(**{parameter: moved}))).sum())
            expected[place] = (ends[0] - ends[1]) / (2 * step)
        size = 1 + np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(found[parameter], expected, rtol=0, atol=1e-7 * size, err_msg=parameter)


@pytest.mark.parametrize("name", LEARNED)
def test_some_parameters_are_wanted(name):
    """The same numbers, and no others; in float32 within its rounding."""
    one, Psi_bar = MAPS[name], RNG.normal(size=(N, MAPS[name].n_features))
    whole = pulled(one, Psi_bar, tuple(one.parameters))
    for parameter, expected in whole.items():
        found = pulled(one, Psi_bar, (parameter,))
        assert tuple(found) == (parameter,)
        assert found[parameter].tobytes() == expected.tobytes()
        narrow = pulled(one, Psi_bar, (parameter,), dtype=np.float32)[parameter]
        np.testing.assert_allclose(narrow, expected, rtol=0, atol=1e-4 * (1 + np.abs(expected).max(initial=0.0)))


@pytest.mark.parametrize("name", LEARNED)
def test_bounds_of_pullbacks(name):
    """No sum of what rows pull back exceeds its bound, for cotangents that use up their reach."""
    one = MAPS[name]
    w = RNG.gamma(2, size=N)
    T = columns_of(one.at(np.float64).prepare(X))
    for _ in range(20):
        Psi_bar = w[:, None] * RNG.choice([-1.0, 1.0], size=(N, one.n_features)) * RNG.random(one.n_features)
        size, reach = np.sqrt(w @ T**2), np.sqrt((Psi_bar**2 / w[:, None]).sum(axis=0))
        names = tuple(one.parameters)
        bounds, found = one.pull_bounds(size, reach, float(w.sum()), names), pulled(one, Psi_bar, names)
        assert set(bounds) == set(found)
        for parameter, values in found.items():
            assert bounds[parameter].shape == values.shape
            assert (np.abs(values) <= bounds[parameter] * (1 + 1e-12)).all(), parameter


@pytest.mark.parametrize("name", MAPS)
def test_other_parameters(name):
    """The same values give the same bits; a name that is none is refused wherever it is asked for."""
    one = MAPS[name]
    assert written(one.with_parameters(**one.parameters)).tobytes() == written(one).tobytes()
    said = r"a \w+ map has no parameter 'nothing'"
    with pytest.raises(ValueError, match=said):
        one.with_parameters(nothing=np.ones(1))
    with pytest.raises(ValueError, match=said):
        one.pull_bounds(np.ones(one.n_columns), np.ones(one.n_features), 1.0, ("nothing",))
    if not one.parameters:
        assert one.gradients({}) == {}
        assert pulled(one, np.ones((N, one.n_features)), ()) == {}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MAPS)
def test_stored_is_restored(name, dtype):
    """Plain values through JSON and arrays give the same features and gradients, bit for bit; so does a pickle."""
    one = MAPS[name]
    about, arrays = store_map(one)
    assert all(len(axes) == values.ndim for axes, values in arrays.values())
    sizes: dict[str, int] = {}
    for axes, values in arrays.values():
        for axis, size in zip(axes, values.shape, strict=True):
            assert sizes.setdefault(axis, size) == size, axis
    again = restore_map(json.loads(json.dumps(about)), {key: values.copy() for key, (_, values) in arrays.items()})
    travelled = pickle.loads(pickle.dumps(one.at(dtype))).map
    Psi_bar, names = RNG.normal(size=(N, one.n_features)), tuple(one.parameters)
    for other in (again, travelled):
        assert type(other) is type(one)
        assert written(other, X, dtype).tobytes() == written(one, X, dtype).tobytes()
        assert other.scale == one.scale
        for parameter, values in pulled(other, Psi_bar, names, dtype=dtype).items():
            assert values.tobytes() == pulled(one, Psi_bar, names, dtype=dtype)[parameter].tobytes()
