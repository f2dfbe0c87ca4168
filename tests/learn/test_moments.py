"""Moments of some folds against the rows of those folds."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.learn.moments import moments_of
from dkl.sums.folds import fold_of
from dkl.sums.gram import GramProgram
from tests.learn.test_ridge import FEATURES, SEED, K, N, draw


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["values", "two classes", "three classes"])
@pytest.mark.parametrize("folds", [[0], [2], [0, 2], [0, 1, 2]])
def test_moments_of_folds(folds, kind, weighted):
    """Scaled features, targets less their shift, classes as -1 and +1."""
    X, y, w, Y, targets = draw(kind, weighted)
    program = GramProgram(FEATURES.at(np.float64), targets, N, folds=K, seed=SEED)
    sums, space = program.start(), program.workspace()
    program.add(sums, space, 0, 0, (X, y, w, None))
    kept = np.isin(fold_of(0, N, K, SEED), folds)
    Psi, Y = FEATURES.at(np.float64).transform(X)[kept], (Y - targets.shift)[kept]
    w = np.ones(kept.sum()) if w is None else w[kept]
    W = w[:, None]
    before = sums.gram.copy()
    found = moments_of(sums, iter(folds), FEATURES.scale, targets)
    expected = (w.sum(), Psi.T @ (W * Psi), Psi.T @ (W * Y), w @ Psi, w @ Y, w @ Y**2)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(sums.gram, before)
