"""Constants of the scales, and which row goes where, for any cut of the rows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from dkl.store.column_constants import Spread
from dkl.store.request import Request
from dkl.store.survey import split_of, target_name

values = st.floats(-1e6, 1e6).map(lambda v: round(v, 6)) | st.just(float("nan"))
arrays = hnp.arrays(float, st.tuples(st.integers(1, 30), st.just(3)), elements=values)


def spread_of(X, cuts, wrap=lambda X: X):
    """The spread of X, given in pieces."""
    spread = Spread(X.shape[1])
    for piece in np.split(X, sorted(c % (len(X) + 1) for c in cuts)):
        spread.add(wrap(piece))
    return spread.finish()


@given(arrays, st.lists(st.integers(0, 100), max_size=5))
@settings(max_examples=80, deadline=None)
def test_like_sklearn_which_skips_nan(X, cuts):
    """Mean, deviation, least and greatest of the known values."""
    X[0] = np.nan_to_num(X[0])
    spread = spread_of(X, cuts)
    standard = StandardScaler().fit(X)
    size = np.nanmax(np.abs(X), axis=0)
    np.testing.assert_allclose(spread.mean, standard.mean_, rtol=0, atol=1e-12 * size.max() + 1e-300)
    np.testing.assert_array_equal(spread.count, (~np.isnan(X)).sum(axis=0))
    np.testing.assert_array_equal(spread.low, np.nanmin(X, axis=0))
    np.testing.assert_array_equal(spread.high, np.nanmax(X, axis=0))
    deviation = np.nanstd(X, axis=0)
    np.testing.assert_allclose(np.sqrt(spread.square / spread.count), deviation, rtol=1e-9, atol=1e-12 * size.max())
    shift, factor = spread.constants("minmax", False)
    low, high = (shift - 1 / factor), (shift + 1 / factor)
    flat = spread.low == spread.high
    np.testing.assert_allclose(np.where(flat, low + 1, low), spread.low, rtol=1e-9, atol=1e-9 * size.max() + 1e-12)
    np.testing.assert_allclose(np.where(flat, high - 1, high), spread.high, rtol=1e-9, atol=1e-9 * size.max() + 1e-12)


@given(hnp.arrays(float, st.tuples(st.integers(1, 30), st.just(3)), elements=st.sampled_from([0, 0, 0, 1.5, -2, 7])),
       st.lists(st.integers(0, 100), max_size=5))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_sparse_rows(X, cuts):
    """The same spread as of dense rows; the scales have no shift."""
    sparse, dense = spread_of(X, cuts, sp.csr_array), spread_of(X, cuts)
    for name in ("count", "mean", "square", "low", "high"):
        np.testing.assert_allclose(getattr(sparse, name), getattr(dense, name), atol=1e-12)
    for scale, oracle in (("minmax", MaxAbsScaler()), ("standard", StandardScaler(with_mean=False))):
        shift, factor = sparse.constants(scale, True)
        np.testing.assert_array_equal(shift, 0)
        np.testing.assert_allclose(factor, 1 / oracle.fit(X).scale_, rtol=1e-9)


def test_large_means():
    """No digits are lost to a mean that is large against the deviation."""
    X = 1e9 + np.random.default_rng(0).normal(size=(5000, 2))
    spread = spread_of(X, [100, 3000, 4999])
    shift, factor = spread.constants("standard", False)
    np.testing.assert_allclose(factor, 1 / X.std(axis=0), rtol=1e-6)
    scaled = (X - shift) * factor
    np.testing.assert_allclose(scaled, StandardScaler().fit_transform(X), atol=1e-5)
    minmax = spread.constants("minmax", False)
    np.testing.assert_allclose((X - minmax[0]) * minmax[1], MinMaxScaler((-1, 1)).fit_transform(X), atol=1e-6)


@given(st.integers(0, 10**12), st.integers(1, 400), st.integers(0, 400), st.integers(-(2**63), 2**64))
@settings(max_examples=60, deadline=None)
def test_a_row_is_placed_by_its_number(start, count, cut, seed):
    """Wherever a range begins."""
    request = Request(("a",), "d", split=(("test", 0.3), ("val", 0.2)), seed=seed)
    whole = split_of(start, start + count, request)
    cut = min(cut, count)
    parts = [split_of(start, start + cut, request), split_of(start + cut, start + count, request)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert set(whole) <= {0, 1, 2}


@pytest.mark.parametrize("seed", range(4))
def test_shares(seed):
    """As many rows as asked for, within four deviations."""
    n, shares = 200_000, {"test": 0.25, "val": 0.01}
    found = np.bincount(split_of(0, n, Request(("a",), "d", split=tuple(shares.items()), seed=seed)), minlength=3)
    for count, share in zip(found, (0.74, 0.25, 0.01), strict=True):
        assert abs(count - n * share) < 4 * np.sqrt(n * share * (1 - share))


@pytest.mark.parametrize(
    "wrong",
    [{"sources": ()}, {"task": "x"}, {"missing": "x"}, {"layout": "x"}, {"dtype": "int8"}, {"scale": ("x",)},
     {"scale": ("none", "none")}, {"split": (("train", 0.5),)}, {"split": (("a/b", 0.5),)}, {"split": (("t", 1.0),)},
     {"split": (("t", 0.0),)}, {"split": (("t", 0.5), ("u", 0.5))}],
)  # fmt: skip
def test_requests_that_cannot_be(wrong):
    """One line each."""
    with pytest.raises(ValueError) as caught:
        Request(**({"sources": ("a",), "dest": "d"} | wrong)).check()
    assert "\n" not in str(caught.value)


def test_request_round_trip():
    """The request is kept as JSON with the unfinished work."""
    import json

    request = Request(("a", "b"), "d", split=(("t", 0.5),), scale=("l1", "none"), resize=(3, 4), recipe={"x": [1, 2]})
    again = Request.from_json(json.loads(json.dumps(request.to_json())))
    assert again.split == request.split
    assert again.resize == request.resize
    assert again.to_json() == json.loads(json.dumps(request.to_json())) or again == request


def test_what_to_ask_for_the_target_next_time(tmp_path):
    """Its name in the source, or as it was asked for; labels of a file of their own belong to these rows alone."""
    labels = tmp_path / "labels.txt"
    labels.touch()
    named, bare = SimpleNamespace(has_target=True, target_name="t"), SimpleNamespace(has_target=True)
    none = SimpleNamespace(has_target=False, target_name="t")
    cases = [
        (none, "t", "none"),
        (named, None, "t"),
        (named, str(labels), "t"),
        (bare, None, ""),
        (bare, "3", "3"),
        (bare, str(labels), "none"),
        (bare, "s3://bucket/labels.txt", "none"),
    ]
    for source, target, expected in cases:
        assert target_name(source, SimpleNamespace(target=target)) == expected
