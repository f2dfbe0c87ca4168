"""Sums of curvatures of several systems, against dense formulas and differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dkl.losses import LOSSES, Huber, Softmax, SquaredHinge
from dkl.sums.folds import fold_of
from dkl.sums.path_curvature import PathProgram, pairs_of
from tests.learn.loss_data import CODES, NUMBERS, SEED, WEIGHT, D, N, X, dense_features, prepared
from tests.learn.path_data import FOLDS

RNG = np.random.default_rng(0)
COLUMNS = (np.arange(D), np.array([1, 4, 5]), np.array([], int), np.array([0, 2, 7, 11]))
TESTS = np.array([0, 1, 2, -1])


def summed(loss: Any, y: np.ndarray, coef: np.ndarray, floor: float = 0.0, blocks: int = 1) -> tuple[Any, Any]:
    """The program and its sums, over so many blocks of rows."""
    gram = prepared(y, WEIGHT, FOLDS).in_units_of_y().gram(FOLDS)
    program = PathProgram(gram, loss, coef, 0.1 + coef[:, 0], TESTS, COLUMNS, np.full(4, floor))
    total = program.start()
    for rows in np.array_split(np.arange(N), blocks):
        part = program.start()
        program.add(part, program.workspace(), 0, int(rows[0]), (X[rows], y[rows], WEIGHT[rows], None))
        total.merge(part)
    return program, total


@pytest.mark.parametrize("floor", [0.0, 0.3])
@pytest.mark.parametrize(
    ("loss", "outputs"), [(Softmax(), 3), (Softmax(0.5), 1), (SquaredHinge(), 3), (Huber(0.4), 2), (Huber(), 1)]
)
def test_sums_are_those_of_dense_rows(loss: Any, outputs: int, floor: float) -> None:
    """Every system sees the rows that train it, in its columns, at its own weights."""
    y = CODES[outputs] if loss.is_class else NUMBERS[:, :outputs]
    coef = RNG.normal(size=(4, D, outputs))
    program, sums = summed(loss, y, coef, floor)
    targets, member = program.gram.targets, fold_of(0, N, 3, SEED)
    Psi, w = dense_features(np.array([0.7, 0.5, 0.9])) / program.gram.features.map.scale, WEIGHT / targets.weight_unit
    values = y if loss.is_class else y - targets.shift
    for s, tests in enumerate(TESTS):
        own, train, z = program.of(sums, s), member != tests, Psi @ coef[s] + 0.1 + coef[s, 0]
        value, slope = loss.value(z, values), loss.slope(z, values)
        assert own.loss == pytest.approx(w[train] @ value[train], rel=1e-12)
        assert own.tested == pytest.approx(w[~train] @ value[~train], rel=1e-12)
        assert own.weight == pytest.approx(w[~train].sum(), rel=1e-12)
        np.testing.assert_allclose(own.slope, (w[:, None] * slope)[train].T @ Psi[train], atol=1e-9)
        np.testing.assert_allclose(own.slope_sum, w[train] @ slope[train], atol=1e-9)
        P = Psi[train][:, COLUMNS[s]]
        most = floor * loss.most_curved(outputs)
        for p, (i, j) in enumerate(program.pairs):
            e = np.zeros_like(z)
            e[:, i] = 1e-6
            second = ((loss.slope(z + e, values) - loss.slope(z - e, values)) / 2e-6)[:, j]
            if i != j:
                second = -second
            elif len(program.pairs) > outputs:
                second = second + most
            else:
                second = np.maximum(loss.curvature(z, values)[:, i], most)
            v = (w * second)[train]
            np.testing.assert_allclose(own.curvature_sum[p], v.sum(), rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(own.curved[p], v @ P, rtol=1e-6, atol=1e-6)
            if P.shape[1]:
                np.testing.assert_allclose(own.full(p), P.T @ (v[:, None] * P), rtol=1e-6, atol=1e-6)
            else:
                assert own.full(p).shape == (0, 0)


def test_blocks_and_merges_do_not_matter() -> None:
    """Cut anywhere, the sums are the same to rounding, and merged exactly."""
    coef = RNG.normal(size=(4, D, 3))
    _, right = summed(Softmax(), CODES[3], coef)
    for blocks in (2, 5):
        _, found = summed(Softmax(), CODES[3], coef, blocks=blocks)
        for name in ("loss", "tested", "slope", "gram", "curved"):
            np.testing.assert_allclose(getattr(found, name), getattr(right, name), rtol=1e-10, atol=1e-10)


def test_pairs() -> None:
    """One for each output, but of a log loss of several classes."""
    for loss in LOSSES.values():
        assert pairs_of(loss, 1) == [(0, 0)]
        assert pairs_of(loss, 3)[:1] == [(0, 0)]
        assert len(pairs_of(loss, 3)) == (6 if isinstance(loss, Softmax) else 3)


def test_the_wrong_kind_is_refused() -> None:
    """Before any pass."""
    with pytest.raises(ValueError, match="is for values, but y are classes"):
        summed(Huber(), CODES[3], np.zeros((4, D, 3)))
