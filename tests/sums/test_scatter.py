"""The pass for principal axes against dense products of float64 features."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from dkl.sums.scatter import ScatterProgram, ScatterSums
from dkl.sums.symmetric import largest_tile, packed_size, unpack
from dkl.sums.tiles import most_rows, tile_rows
from tests.sums.test_gram import make_map

N, WIDTHS = 1100, (8, 33)
MAPS = tuple(make_map(d=d, sigma=0.3 * d / 10) for d in WIDTHS)
X = np.random.default_rng(0).normal(size=(N, 3))
PLACES = np.cumsum((0, *WIDTHS))
PACKED = np.cumsum((0, *map(packed_size, WIDTHS)))


def make(dtype=np.float64, total=N, **options):
    """The program of both maps."""
    return ScatterProgram(tuple(one.at(dtype) for one in MAPS), N, total, **options)


def run(program, chunk=N, weight=None, rows=X, order=1, start=0):
    """Sums of blocks in order, or backwards."""
    sums, space = program.start(), program.workspace()
    for block, first in list(enumerate(range(0, len(rows), chunk)))[::order]:
        part = slice(first, first + chunk)
        data = (rows[part],) if weight is None else (rows[part], weight[part])
        program.add(sums, space, block, start + first, data)
    return sums


def check(sums, kept, tolerance=1e-12):
    """Gram and sum of each map over the rows that are kept."""
    assert sums.rows.tolist() == [len(X[kept])]
    for i, one in enumerate(MAPS):
        Psi = one.at(np.float64).transform(X[kept]) / one.scale
        found = unpack(sums.gram[PACKED[i] : PACKED[i + 1]], WIDTHS[i])
        np.testing.assert_allclose(found, Psi.T @ Psi, rtol=0, atol=tolerance * N)
        np.testing.assert_allclose(
            sums.feature_sum[PLACES[i] : PLACES[i + 1]], Psi.sum(axis=0), rtol=0, atol=tolerance * N
        )


@pytest.mark.parametrize("chunk", [1, 7, 300, N])
def test_sums_are_dense_products(chunk):
    """However rows are cut; N rows in one block are two tiles."""
    program = make()
    assert program.rows_wanted == 512
    check(run(program, chunk), slice(None))
    check(run(make(np.float32), chunk), slice(None), 1e-6)


def test_one_map():
    """As the first of two."""
    alone = ScatterProgram((MAPS[0].at(np.float64),), N, N)
    found, both = run(alone), run(make())
    np.testing.assert_allclose(found.gram, both.gram[: PACKED[1]], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.feature_sum, both.feature_sum[:8], rtol=0, atol=1e-10)
    assert alone.name == "X"


def test_rows_without_weight_are_no_rows():
    """Other weights do not matter; weights that are not given count as ones."""
    weight = np.where(np.arange(N) % 3 == 0, 0.0, 0.25)
    check(run(make(), 90, weight), weight > 0)
    assert run(make(), N, np.zeros(N)).rows.tolist() == [0]
    assert not run(make(), N, np.zeros(N)).gram.any()
    sums, program = make().start(), make()
    program.add(sums, program.workspace(), 0, 0, (X, None))
    check(sums, slice(None))


def test_order_does_not_change_the_bits():
    """Backwards, and merged from two."""
    forth, back = run(make(), 64), run(make(), 64, order=-1)
    halves = run(make(), 64, rows=X[:640])
    halves.merge(run(make(), 64, rows=X[640:], start=640))
    for other in (back, halves):
        assert other.gram.tobytes() == forth.gram.tobytes()
        assert other.feature_sum.tobytes() == forth.feature_sum.tobytes()
        assert other.rows == forth.rows


def test_the_bound_is_that_of_all_passes():
    """Sums of different passes are on one grid if they are told the same total."""
    rounded = np.ldexp(1.0, int(np.frexp(4.0 * 10**9)[1]) - 51)
    sums = run(make(total=10**9))
    np.testing.assert_array_equal(sums.gram / rounded, np.round(sums.gram / rounded))
    assert (run(make()).gram / rounded != np.round(run(make()).gram / rounded)).any()


def test_space_for_the_widest_map():
    """A tile of features of the widest, and the largest product."""
    program = make()
    assert program.widest == 33
    assert program.rows_wanted == tile_rows(N, 33, np.dtype(np.float64))
    space, product = program.workspace()
    assert space.shape == (most_rows(program.rows_wanted) * 33,)
    assert product.shape == (largest_tile(33),)
    zero = program.start()
    assert (zero.rows.shape, zero.gram.shape, zero.feature_sum.shape) == ((1,), (PACKED[-1],), (41,))


def test_refused_rows_are_named():
    """The first one, counted from the first row of all, by the name that is given; also after a merge."""
    dirty = X.copy()
    dirty[[70, 500], 1] = np.nan
    sums = run(make(name="X_new"), 64, rows=dirty, order=-1)
    assert sums.refusal == (70, "X_new contains NaN at row 70, column 1; remove or impute it")
    late, early = ScatterSums(*run(make()).copy().__dict__.values()), run(make(), 64, rows=dirty)
    late.refusal = (500, "late")
    for a, b in ((late, early), (early, late)):
        merged = a.copy()
        merged.merge(b)
        assert merged.refusal == (70, "X contains NaN at row 70, column 1; remove or impute it")


def test_a_copy_shares_nothing():
    """Adding to it leaves the original."""
    sums = run(make())
    twin = sums.copy()
    twin.merge(sums)
    for name in (f.name for f in fields(sums) if f.name != "refusal"):
        np.testing.assert_array_equal(getattr(twin, name), 2 * getattr(sums, name))
