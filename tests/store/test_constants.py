"""Before rows are written: channels of parts, where rows go, and the constants of each column, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from dkl.sources.batch import Batch, Coded, Column
from dkl.store import equal_blocks
from dkl.store import survey as module
from dkl.store.column_constants import Spread
from dkl.store.recipe import Channel
from dkl.store.request import Request
from dkl.store.staging import Part
from dkl.store.survey import Placement, make_channel, split_of, survey
from dkl.sums.folds import hash_rows

NAN = np.nan


def asked(**how):
    """A request."""
    return Request(("a",), "d", **how)


def bare(columns, summaries, **how):
    """The channel of parts of which this is known."""
    source = SimpleNamespace(columns=columns, has_target=False)
    return make_channel("c", source, [Part("p", 1, s) for s in summaries], "l1", asked(**how))


def test_channel_of_columns():
    """Texts have the categories of all parts, sorted; the rest are numbers."""
    columns = [Column("a"), Column("t", True), Column("b"), Column("s", True)]
    found = bare(columns, [{"text": {"t": ["y", "x"], "s": []}}, {"text": {"t": ["z", "x"], "s": ["q"]}}])
    texts = {"t": ["x", "y", "z"], "s": ["q"]}
    assert found == Channel("c", tuple(columns), 2, 0, texts, "l1", target="none")


@pytest.mark.parametrize(
    ("ends", "width", "base"),
    [
        ([(1, 5)], 5, 1),
        ([(0, 5)], 6, 0),
        ([(3, 5)], 5, 1),
        ([(3, 5), (0, 2)], 6, 0),
        ([(3, 5), (2, 9)], 9, 1),
        ([(1, 0)], 1, 1),
    ],
)
def test_channel_of_sparse_rows(ends, width, base):
    """Up to the highest index of all parts, from 0 if one has it, else from 1; never empty."""
    found = bare(None, [{"sparse": True, "lowest": low, "highest": high} for low, high in ends])
    assert found == Channel("c", None, width, base, scale="l1", target="none")


def test_channel_of_dense_rows():
    """As wide as they all are."""
    parts = [{"sparse": False, "width": 4}, {"sparse": False, "width": 4}]
    assert bare(None, parts) == Channel("c", None, 4, scale="l1", target="none")
    with pytest.raises(ValueError, match=r"the rows of 'c' have \[4, 5\] numbers"):
        bare(None, [*parts, {"sparse": False, "width": 5}])


@pytest.mark.parametrize("seed", [0, 1, 99])
def test_where_rows_go(seed):
    """By their hash in [0, 1): the last split has the lowest share of it, training all that is left."""
    request = asked(split=(("test", 0.3), ("val", 0.2)), seed=seed)
    shares = hash_rows(np.arange(100, 400), seed) / 2.0**64
    expected = [2 if share < 0.2 else 1 if share < 0.5 else 0 for share in shares]
    assert split_of(100, 400, request).tolist() == expected
    assert sorted(set(expected)) == [0, 1, 2]
    assert split_of(100, 103, asked(seed=seed)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("missing", ["drop", "refuse", "mean"])
def test_rows_that_are_dropped(missing):
    """Those in which any channel lacks a value or a target, if that is asked for."""
    channels = (Channel("p", None, 1), Channel("q", None, 1))
    p = Batch(np.array([[1.0], [NAN], [1], [1], [1]]), y=np.array([1.0, 1, NAN, 1, 1]))
    q = Batch(np.array([[1.0], [1], [1], [NAN], [1]]), y=Coded(np.array([0, 0, 0, 0, -1]), ["a"]))
    found = Placement(asked(missing=missing), channels)(0, [p, q])
    assert found.tolist() == ([0, -1, -1, -1, -1] if missing == "drop" else [0] * 5)
    none = Placement(asked(missing=missing), channels[:1])(7, [Batch(p.X)])
    assert none.tolist() == ([0, -1, 0, 0, 0] if missing == "drop" else [0] * 5)


X = np.array([[1.0, 5, NAN, 0, 2], [3, 5, NAN, 0, NAN], [8, 5, NAN, 0, -6]])


@pytest.mark.parametrize("block", [1, 2, 3, 4, 8192])
@pytest.mark.parametrize("sparse", [False, True])
def test_spread_by_hand(monkeypatch, block, sparse):
    """Count, mean, sum of squares, ends; in blocks of any size, dense or stored, with columns that have no value."""
    monkeypatch.setattr(equal_blocks, "BLOCK", block)
    spread = Spread(5)
    assert spread.block == block
    for rows in (X[:2], X[:0], X[2:]):
        spread.add(sp.csr_array(rows) if sparse else rows)
    spread.finish()
    assert spread.waiting == []
    np.testing.assert_array_equal(spread.count, [3, 3, 0, 3, 2])
    np.testing.assert_allclose(spread.mean, [4, 5, 0, 0, -2])
    np.testing.assert_allclose(spread.square, [26, 0, 0, 0, 32], atol=1e-12)
    np.testing.assert_array_equal(spread.low, [1, 5, np.inf, 0, -6])
    np.testing.assert_array_equal(spread.high, [8, 5, -np.inf, 0, 2])
    shift, factor = spread.constants("standard", False)
    np.testing.assert_allclose(shift, [4, 5, 0, 0, -2])
    np.testing.assert_allclose(factor, [np.sqrt(3 / 26), 1, 1, 1, 0.25])
    shift, factor = spread.constants("minmax", False)
    np.testing.assert_allclose(shift, [4.5, 5, 0, 0, -2])
    np.testing.assert_allclose(factor, [2 / 7, 1, 1, 1, 0.25])
    shift, factor = spread.constants("standard", True)
    np.testing.assert_allclose((shift, factor), [np.zeros(5), [np.sqrt(3 / 26), 1, 1, 1, 0.25]])
    shift, factor = spread.constants("minmax", True)
    np.testing.assert_allclose((shift, factor), [np.zeros(5), [1 / 8, 1 / 5, 1, 1, 1 / 6]])
    assert spread.constants("none", False) is None
    assert spread.constants("l1", True) is None


@pytest.mark.parametrize("block", [2, 3, 5, 6])
def test_constants_have_the_same_bits_for_any_cut(monkeypatch, block):
    """Rows are taken in by blocks of their own, whatever pieces they come in."""
    monkeypatch.setattr(equal_blocks, "BLOCK", block)
    rows, found = np.random.default_rng(1).normal(size=(17, 4)), set()
    for cuts in ([], [5], [7, 8], [1, 2, 3, 4], list(range(1, 17)), [13]):
        spread = Spread(4)
        for piece in np.split(rows, cuts):
            spread.add(piece)
        spread.finish()
        found.add(spread.mean.tobytes() + spread.square.tobytes())
        np.testing.assert_allclose(spread.square / 17, rows.var(axis=0), rtol=1e-12)
    assert len(found) == 1


@pytest.mark.parametrize(("width", "block"), [(1, 8192), (128, 8192), (129, 8128), (2**20, 1), (2**21, 1), (0, 8192)])
def test_rows_that_are_taken_in_together(width, block):
    """At most 2^20 numbers, and one row at least."""
    assert Spread(width).block == block


def test_stored_and_missing_entries_of_a_column():
    """Zeros that are not stored count, values that are missing do not; a column all of whose values are stored."""
    rows = np.array([[0.0, 4, NAN], [0, 6, 3], [9, 5, 0]])
    for wrap in (np.asarray, sp.csr_array):
        spread = Spread(3)
        spread.add(wrap(rows))
        spread.finish()
        np.testing.assert_array_equal(spread.count, [3, 3, 2])
        np.testing.assert_allclose(spread.mean, [3, 5, 1.5])
        np.testing.assert_allclose(spread.square, [54, 2, 4.5])
        np.testing.assert_array_equal(spread.low, [0, 4, 0])
        np.testing.assert_array_equal(spread.high, [9, 6, 3])


@pytest.mark.parametrize("half", [1e-299, 1e-301])
def test_a_range_that_has_no_inverse(half):
    """Below 1e-300 a column keeps its size, sparse or not; and above it is scaled."""
    spread = Spread(1)
    spread.add(np.array([[-half], [half]]))
    spread.finish()
    for sparse in (False, True):
        assert spread.constants("minmax", sparse)[1][0] == pytest.approx(1 / half if half > 1e-300 else 1, rel=1e-12)


def test_a_column_that_hardly_varies():
    """A deviation of 1e-14 of the mean is rounding, one of 1e-12 is not."""
    for gap, scaled in ((1e-12, True), (0.0, False)):
        spread = Spread(1)
        spread.add(np.array([[1 - gap], [1 + gap]]))
        factor = spread.finish().constants("standard", False)[1][0]
        assert (factor > 1e11) == scaled
        assert scaled or factor == 1


class Pieces:
    """Rows in the pieces that are given; how often they are gone through is noted."""

    def __init__(self, *channels):
        self.pieces, self.passes = channels, 0
        sparse = [hasattr(c[0].X, "indptr") for c in channels]
        self.channels = [
            [Part("p", b.X.shape[0], {"sparse": s}) for b in c] for c, s in zip(channels, sparse, strict=True)
        ]

    def __iter__(self):
        self.passes += 1
        start = 0
        for together in zip(*self.pieces, strict=True):
            yield start, list(together)
            start += together[0].X.shape[0]


def looked(batches, channels, sparse=False, fixed=False, **how):
    """The survey, and how many passes it took."""
    aligned = Pieces(*batches)
    return survey(aligned, channels, asked(**how), sparse, fixed), aligned.passes


PLACED = {"split": (("test", 0.4),), "seed": 3}
ROWS = np.random.default_rng(0).normal(size=(40, 2))
HALVES = [Batch(ROWS[:15]), Batch(ROWS[15:])]
TRAINED = split_of(0, 40, asked(**PLACED)) == 0


@pytest.mark.parametrize("cells", [7, 40, 2**20])
def test_counts_alone_need_no_pass(monkeypatch, cells):
    """Rows of each split are counted by their numbers, as many at a time as you like."""
    monkeypatch.setattr(module, "CELLS", cells)
    channels = (Channel("p", None, 2),)
    found, passes = looked([HALVES], channels, **PLACED)
    assert (found.rows, found.entries, passes) == ([TRAINED.sum(), (~TRAINED).sum()], [0, 0], 0)
    assert found.channels == channels
    assert looked([HALVES], channels)[0].rows == [40]
    assert looked([HALVES], (Channel("p", None, 2, scale="minmax"),), fixed=True, **PLACED)[1] == 0
    assert looked([HALVES], (Channel("p", None, 2, scale="l1"),), **PLACED)[1] == 0


@pytest.mark.parametrize("cut", [15, 40])
@pytest.mark.parametrize("split", [{}, PLACED])
def test_constants_are_of_the_rows_that_are_trained_with(cut, split):
    """Of each channel that has a scale; those of others stay."""
    batches = [Batch(b) for b in (ROWS[:cut], ROWS[cut:]) if len(b)]
    channels = (Channel("p", None, 2, scale="standard"), Channel("q", None, 2), Channel("r", None, 2, scale="minmax"))
    found, passes = looked([batches] * 3, channels, **split)
    used = ROWS[TRAINED] if split else ROWS
    assert (found.rows[0], sum(found.rows), passes) == (len(used), 40, 1)
    np.testing.assert_allclose(found.channels[0].shift, used.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.channels[0].factor, 1 / used.std(axis=0), rtol=1e-12)
    assert found.channels[1] == channels[1]
    low, high = used.min(axis=0), used.max(axis=0)
    np.testing.assert_allclose(found.channels[2].shift, (low + high) / 2, rtol=1e-12)
    np.testing.assert_allclose(found.channels[2].factor, 2 / (high - low), rtol=1e-12)
    assert [c.fill for c in found.channels] == [None] * 3


@pytest.mark.parametrize(("missing", "fill"), [("mean", (2.0, 0.0)), ("zero", (0.0, 0.0)), ("drop", None)])
def test_fills(missing, fill):
    """Means of what is known, zero for a column that has nothing; fixed ones are not touched."""
    rows = np.array([[1.0, NAN], [3.0, NAN], [NAN, NAN]])
    channel = Channel("p", None, 2)
    found, passes = looked([[Batch(rows)]], (channel,), missing=missing)
    assert (found.channels[0].fill, found.channels[0].shift, passes) == (fill, None, 1)
    assert found.rows == [0 if missing == "drop" else 3]
    kept, _ = looked([[Batch(rows)]], (channel,), fixed=True, missing=missing)
    assert kept.channels == (channel,)


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("missing", ["refuse", "drop"])
def test_stored_entries_of_each_split(base, missing):
    """Of all channels together, without the rows that are dropped; indices are counted from the base."""
    dense = np.where(np.abs(ROWS) > 0.7, ROWS, 0)
    dense[5, 0] = NAN
    wide = np.hstack([np.zeros((40, base)), dense])
    a, b = sp.csr_array(wide), sp.csr_array(wide[:, ::-1].copy())
    pieces = [[Batch(m[:15]), Batch(m[15:])] for m in (a, b)]
    channels = (Channel("p", None, 2, base, scale="minmax"), Channel("q", None, 2 + base))
    kept = np.arange(40) != 5 if missing == "drop" else np.ones(40, bool)
    found, _ = looked(pieces, channels, sparse=True, missing=missing, **PLACED)
    for rows, entries, chosen in zip(found.rows, found.entries, (TRAINED & kept, ~TRAINED & kept), strict=True):
        assert (rows, entries) == (chosen.sum(), 2 * np.count_nonzero(dense[chosen]))
    most = np.nanmax(np.abs(dense[TRAINED & kept]), axis=0)
    np.testing.assert_allclose(found.channels[0].factor, 1 / most, rtol=1e-12)
    assert found.channels[0].shift == (0, 0)
    assert found.channels[1].factor is None
