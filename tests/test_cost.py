"""Costs of maps, passes and solves against a ledger: every array that is alive, by shape and item size."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from dkl.cost import Cost, MapCost, Sizes, SolveCost
from dkl.features.additive_rows import additive_cost
from dkl.features.fourier import FAR, fourier_cost
from dkl.features.nystroem import SWEEP, nystroem_cost
from dkl.features.projected import TILE as PROJECTED
from dkl.features.projected import projected_cost
from dkl.features.side_by_side import side_by_side_cost
from dkl.kernels import KERNELS
from dkl.kernels.values import TILE as VALUES
from dkl.solvers.axes import axes_cost
from dkl.solvers.factor import factor_cost
from dkl.solvers.hypergradient import CURVED, SOLVES, adjoint_cost
from dkl.solvers.lbfgs import STATE, descent_cost
from dkl.solvers.ridge import ridge_cost
from dkl.solvers.whiten import whitening_cost
from dkl.sums.gram import gram_cost
from dkl.sums.losses import loss_cost
from dkl.sums.pullback import TILE, gradient_cost
from dkl.sums.sample import sample_cost
from dkl.sums.scatter import scatter_cost
from dkl.sums.symmetric import LEAF, largest_tile, packed_size
from dkl.sums.tiles import most_rows, tile_rows
from dkl.sums.top import ROWS, top_cost

WIDE, NARROW = np.dtype(np.float64), np.dtype(np.float32)
N, M, D, C, K = 1009, 7, 22, 5, 3


def held(*arrays):
    """Bytes of arrays, each (item size, *shape)."""
    return sum(prod(array) for array in arrays)


def sizes(dtype=WIDE, **options):
    """Rows of numbers with so many outputs."""
    return Sizes(N, M, dtype, **({"outputs": C, "row_bytes": 8 * M} | options))


def test_rows_of_a_block():
    """As read if they are lazy, and twice in compute precision; terms stand beside their rows."""
    assert sizes().block_row_bytes(M) == 2 * 8 * M
    assert sizes(NARROW, is_lazy=True).block_row_bytes(M) == 2 * 8 * M + 2 * 4 * M
    assert sizes().block_row_bytes(3 * M) == 2 * 4 * 8 * M
    sparse = Sizes(N, 70, NARROW, row_bytes=26, is_lazy=True)
    assert sparse.is_sparse
    assert sparse.block_row_bytes(70) == 2 * 26 + 4 * 26
    assert not sizes(row_bytes=M).is_sparse
    assert not sizes(row_bytes=0).is_sparse
    assert (sizes().target_bytes, sizes(is_class=True).target_bytes) == (24 * C, 32)
    assert [sizes().block_of(wanted) for wanted in (100, 5000)] == [100, N]
    assert sizes(largest_block=lambda wanted: 2 * wanted).block_of(100) == 200
    assert (sizes().item, sizes(NARROW).item) == (8, 4)


@pytest.mark.parametrize("dtype", [WIDE, NARROW])
@pytest.mark.parametrize(("form", "waves", "shifted"), [("paired", 11, 0), ("phase", 22, 22)])
@pytest.mark.parametrize("terms", [1, 3])
def test_fourier(dtype, form, waves, shifted, terms):
    """Frequencies twice in both precisions, phases, sigma; two products of omega; ten flops for a cosine."""
    item, columns = dtype.itemsize, terms * M
    found = fourier_cost(M, D, form, terms, dtype)
    assert (found.features, found.columns, found.cosines) == (D, columns, D)
    frequencies = held((16, columns, waves), (2 * item, columns, waves))
    assert found.parameter_bytes == frequencies + held((8 + item, shifted), (8, M))
    assert found.flops == 2 * columns * waves + 10 * D
    assert found.pull_flops == 2 * columns * waves + 5 * D
    assert found.scratch_bytes == (held((8, FAR, columns), (16, FAR, D)) if item == 4 else 0)
    assert found.sparse_row_bytes == item * waves
    assert (found.pull_bytes, found.pull_row_bytes) == (held((item + 16, columns, waves)), item * shifted)
    assert found.movable == columns * waves + waves
    odd = fourier_cost(M, 21, "paired", 1, dtype)
    assert (odd.movable, odd.pull_row_bytes) == (11 * M + 11, item)


def test_other_maps():
    """Landmarks; terms; a product with axes after a tile of features; channels one after the other."""
    near = nystroem_cost(KERNELS["gaussian"], M, 31, 29, WIDE)
    assert (near.features, near.columns, near.cosines) == (29, M, 31)
    assert near.parameter_bytes == held((32, 31, M), (32, 31, 29), (8, M), (8, 31))
    assert near.scratch_bytes == held((48, VALUES, 31), (16, VALUES, M), (16, 31, M))
    assert near.flops == 2 * 31 * (M + 29) + 10 * 31
    assert nystroem_cost(KERNELS["laplacian"], M, 31, 29, WIDE).flops - near.flops == 2 * 31 * M * (SWEEP - 1)
    terms = additive_cost(M, 3, NARROW)
    assert (terms.features, terms.columns, terms.sparse_row_bytes) == (3 * M, M, 4 * M)
    wave = fourier_cost(M, D, "paired", 1, NARROW)
    axes = projected_cost(wave, 9, NARROW)
    assert (axes.features, axes.columns, axes.flops) == (9, M, wave.flops + 2 * D * 9)
    assert axes.scratch_bytes - wave.scratch_bytes == held((4, PROJECTED, D))
    assert axes.parameter_bytes - wave.parameter_bytes == held((12, D, 9), (12, D))
    both = side_by_side_cost([wave, near])
    assert (both.features, both.columns, both.flops) == (D + 29, 2 * M, wave.flops + near.flops)
    assert both.scratch_bytes == max(wave.scratch_bytes, near.scratch_bytes)
    assert both.parameter_bytes == wave.parameter_bytes + near.parameter_bytes


MAP = MapCost(D, M, 1000, 300.0, 22.0, 500, 44, 700, 9, 200.0, 88)


@pytest.mark.parametrize("dtype", [WIDE, NARROW])
@pytest.mark.parametrize("is_class", [False, True])
def test_gram(dtype, is_class):
    """A tile of features, a product, the cross term; half a gram with its sums for each fold."""
    found, item, tile = gram_cost(sizes(dtype, is_class=is_class), MAP, K), dtype.itemsize, tile_rows(N, D, dtype)
    assert (found.name, found.rows_wanted, found.features, found.folds) == ("gram", K * tile, D, K)
    cross = held((item if is_class else item + 16, C, D))
    assert found.thread_bytes == held((item, most_rows(tile), D), (item, largest_tile(D))) + 500 + cross
    assert found.sparse_bytes == 44 * most_rows(tile)
    assert found.sums_bytes == held((8, K, packed_size(D)), (8, K, C, D), (8, K, D), (16, K), (16, K, C))
    assert found.parameter_bytes == 1000 + 64 * C
    assert found.flops == 300 + 2 * D * D + (D if is_class else 2 * D * C)
    assert (found.columns, found.row_bytes, found.cosines) == (M, 32 if is_class else 24 * C, 22)
    large = replace(MAP, features=2000)
    assert gram_cost(sizes(dtype, is_class=True), large).flops == 300 + 2000 * (2000 + LEAF) + 2000


def test_gradient():
    """Features and cotangents, what the map wants, six factors; two tiles and a matrix more for a curvature."""
    q, pulled = K * C, M + 88
    found = gradient_cost(sizes(), MAP, q, pulled, K)
    assert (found.name, found.rows_wanted) == ("gradient", gram_cost(sizes(), MAP, K).rows_wanted)
    assert found.thread_bytes == held((16, TILE, D), (48, TILE, q), (9, TILE)) + 500 + 700
    assert found.sparse_bytes == 44 * TILE
    assert found.sums_bytes == 8 * (pulled + 1)
    weights = held((16, D, 2 * q), (8, D), (8, 2 * K, q), (16, q))
    assert found.parameter_bytes == 1000 + weights + 8 * pulled
    assert (found.flops, found.cosines) == (300 + 200 + 8 * D * q, 44)
    assert gradient_cost(sizes(), MAP, q, pulled, K, adjoints=False).flops == 300 + 200 + 4 * D * q
    curved = gradient_cost(sizes(), MAP, q, pulled, K, curvature=True)
    assert curved.thread_bytes - found.thread_bytes == held((16, TILE, D))
    assert curved.parameter_bytes - found.parameter_bytes == held((16, D, D))
    assert curved.flops - found.flops == 2 * D * D


def test_scores():
    """Features, scores and losses of all alphas, six numbers of a class; slopes if there is one of each."""
    found = loss_cost(sizes(NARROW), MAP, K, 5, 12)
    assert found.thread_bytes == held((4, TILE, D), (20, TILE, 5, C), (48, TILE, C)) + 500
    assert found.sums_bytes == held((8, K, 5, 12), (8, K, 5))
    assert found.parameter_bytes == 1000 + held((12, K, D, 5 * C), (12, K, 5 * C))
    assert found.flops == 300 + 2 * D * 5 * C
    one = loss_cost(sizes(NARROW), MAP, K)
    assert one.sums_bytes == held((8, K), (8, K), (8, K, C, D), (8, K, C))
    assert one.thread_bytes == held((4, TILE, D), (20, TILE, C), (48, TILE, C), (16, C, D + 1)) + 500
    assert one.flops == 300 + 2 * D * C + 2 * C * (D + 1)


def test_other_passes():
    """Grams of several maps; scores that are kept; samples, and kernel values of a tile."""
    wide = replace(MAP, features=30, parameter_bytes=7, scratch_bytes=9, sparse_row_bytes=1)
    found, tile = scatter_cost(sizes(outputs=0), [MAP, wide]), tile_rows(N, 30, WIDE)
    assert (found.rows_wanted, found.features, found.maps) == (tile, D + 30, 2)
    assert found.thread_bytes == held((8, most_rows(tile), 30), (8, largest_tile(30))) + 500
    assert found.sums_bytes == 8 * (1 + packed_size(D) + D + packed_size(30) + 30)
    assert (found.parameter_bytes, found.flops) == (1007, 600 + 2 * D * D + 2 * 30 * 30)
    assert found.sparse_bytes == 44 * most_rows(tile)
    top = top_cost(sizes(), MAP, 37)
    assert top.thread_bytes == held((8, ROWS, D), (32, C, ROWS), (32, C, 37)) + 500
    assert (top.sums_bytes, top.rows_wanted) == (held((8, C, 37)), ROWS)
    assert top_cost(sizes(outputs=1), MAP, 37).sums_bytes == held((8, 2, 37))
    drawn, far = sample_cost(sizes(), 40), sample_cost(sizes(), 40, 31)
    assert drawn.sums_bytes == held((8, 40, M), (8, 40), (8, 40))
    assert drawn.thread_bytes == 2 * drawn.sums_bytes
    assert far.thread_bytes - drawn.thread_bytes == held((48, VALUES, 31), (16, VALUES, M), (16, 31, M))


def test_solves():
    """A third of d^3 and four products for each system; nine matrices of at most four at a time."""
    one = D**3 / 3 + 4 * D * D * C
    for systems, at_once in ((1, 1), (3, 3), (11, 4)):
        found = factor_cost(D, C, systems)
        assert found.bytes == held((72, at_once, D, D), (48, at_once, D, C))
        assert found.flops == pytest.approx(systems * one)
    assert ridge_cost(D, C, K, 13).flops == pytest.approx((1 + 13 * K) * one)
    assert ridge_cost(D, C, K, 13, reduced=True).flops == pytest.approx((1 + 13 * K) * one + 9 * K * D**3)
    assert ridge_cost(D, C, K, 0, reduced=True).flops == pytest.approx(one + 9 * D**3)
    assert ridge_cost(D, C, K).bytes == factor_cost(D, C, K).bytes
    found = adjoint_cost(D, C, K)
    assert found.flops == pytest.approx(SOLVES * K * one)
    matrices = held((24, K, D, D), (64, K, D, C), (72, K + 1, D, D), (48, K + 1, D, C))
    assert found.bytes == matrices
    assert adjoint_cost(D, C, K, 5).bytes == matrices + held((8, K, D, D), (16, K, 5, D, C))
    assert adjoint_cost(D, C, K, curvature=True).bytes == matrices + held((8 * CURVED, K, D, D))
    assert descent_cost(100).bytes == 8 * STATE * 100
    assert axes_cost([D]) == SolveCost(held((72, D, D)), 9.0 * D**3)
    assert axes_cost([D, 30]).bytes == held((72, 30, 30), (8, D, D), (8, 30, 30))
    assert whitening_cost(31, M).bytes == held((72, 31, 31), (32, 31, M))


def test_a_pass_and_its_solve():
    """Solves add up; a pass that is made again is the same otherwise."""
    cost = Cost("gram", 100)
    assert cost.solve == SolveCost(0, 0.0)
    both = cost.then(SolveCost(5, 2.0)).then(SolveCost(7, 1.0))
    assert both.solve == SolveCost(12, 3.0)
    assert both.again() == replace(both, repeated=True)
    assert not both.repeated
