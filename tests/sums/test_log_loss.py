"""The pass of scores against dense float64 matrices, system by system."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from dkl.sums.folds import fold_of
from dkl.sums.gram import GramProgram
from dkl.sums.log_loss import LossProgram
from dkl.sums.order_free import rounder
from dkl.sums.pullback import TILE
from dkl.sums.targets import Targets
from tests.sums.test_gram import make_map

N, M, D, K, SEED = TILE + 90, 3, 9, 3, 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, M))
W = RNG.gamma(2, size=N) * (RNG.random(N) > 0.1)
CODES = {c: RNG.integers(0, c, N) for c in (2, 4)}
FEATURES = make_map(d=D)
FOLD = fold_of(0, N, K, SEED)
PSI = FEATURES.at(np.float64).transform(X) / FEATURES.scale


def make(c, alphas, sharpness, weight=W, dtype=np.float64):
    """A pass of so many alphas."""
    outputs, rng = 1 if c == 2 else c, np.random.default_rng(1)
    total = float(N if weight is None else weight.sum())
    gram = GramProgram(FEATURES.at(dtype), Targets(total, c, classes=np.arange(c)), N, folds=K, seed=SEED)
    coef, intercept = rng.normal(size=(K, D, alphas * outputs)), rng.normal(size=(K, alphas * outputs))
    return LossProgram(gram, coef, intercept, np.asarray(sharpness, float))


def run(program, c, weight=W, chunk=N, order=1, rows=X):
    """Sums of blocks in order, or backwards."""
    sums, space = program.start(), program.workspace()
    for block, start in list(enumerate(range(0, N, chunk)))[::order]:
        part = slice(start, start + chunk)
        data = (rows[part], CODES[c][part], None if weight is None else weight[part], None)
        program.add(sums, space, block, start, data)
    return sums


def check(program, c, sums, weight, tolerance=1e-11):
    """Losses for every fold, alpha and k; wrong rows; slopes where there is one of each."""
    y, w, outputs = CODES[c], np.ones(N) if weight is None else weight, 1 if c == 2 else c
    alphas = program.coef.shape[2] // outputs
    for k in range(K):
        own = k == FOLD
        scores = PSI[own] @ program.coef[k] + program.intercept[k]
        for a in range(alphas):
            z = scores[:, a * outputs : (a + 1) * outputs]
            pair = np.hstack([-z, z]) if outputs == 1 else z
            for s, sharp in enumerate(program.sharpness):
                losses = -log_softmax(sharp * pair, axis=1)[np.arange(own.sum()), y[own]]
                assert sums.loss[k, a, s] == pytest.approx(w[own] @ losses, rel=tolerance)
            assert sums.wrong[k, a] == pytest.approx(w[own] @ (pair.argmax(axis=1) != y[own]), rel=tolerance)
        if alphas * len(program.sharpness) == 1:
            sharp = program.sharpness[0]
            slope = sharp * (softmax(sharp * pair, axis=1) - np.eye(c)[y[own]]) * w[own][:, None]
            slope = slope[:, 1:] - slope[:, :1] if outputs == 1 else slope
            np.testing.assert_allclose(sums.slope[k], slope.T @ PSI[own], rtol=0, atol=tolerance * N)
            np.testing.assert_allclose(sums.slope_sum[k], slope.sum(axis=0), rtol=0, atol=tolerance * N)
            assert np.abs(sums.slope[k]).max() > 1


@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("c", [2, 4])
@pytest.mark.parametrize(("alphas", "sharpness"), [(1, [1.7]), (1, [0.5, 3.0]), (3, [2.0]), (3, [0.5, 3.0])])
def test_losses_and_slopes(alphas, sharpness, c, weight):
    """One of each has slopes; others have none."""
    program = make(c, alphas, sharpness, weight)
    sums = run(program, c, weight, 400)
    check(program, c, sums, weight)
    pulls = alphas * len(sharpness) == 1
    assert program.pulls == pulls
    outputs = 1 if c == 2 else c
    assert sums.loss.shape == (K, alphas, len(sharpness))
    assert sums.slope.shape == (K * pulls, outputs, D)
    assert sums.slope_sum.shape == (K * pulls, outputs)


@pytest.mark.parametrize("chunk", [1, 100, TILE, N])
def test_any_cut_and_order(chunk):
    """The same sums; backwards with the same bits; a copy shares nothing."""
    program = make(4, 1, [1.7])
    sums, back = run(program, 4, chunk=chunk), run(program, 4, chunk=chunk, order=-1)
    check(program, 4, sums, W, 1e-11)
    twin = sums.copy()
    twin.merge(sums)
    for name in (f.name for f in fields(sums) if f.name != "refusal"):
        assert getattr(sums, name).tobytes() == getattr(back, name).tobytes()
        np.testing.assert_array_equal(getattr(twin, name), 2 * getattr(sums, name))


def test_float32():
    """Features and products in float32."""
    program = make(4, 1, [1.7], dtype=np.float32)
    assert program.workspace().dtype == np.float32
    assert program.workspace().shape == (TILE, D)
    check(program, 4, run(program, 4), W, 1e-5)


@pytest.mark.parametrize(("c", "steep"), [(2, 6.0), (4, 3.0)])
def test_bounds(c, steep):
    """Four times the most that losses, wrong rows and slopes of all rows can come to, for the largest k."""
    program = make(c, 2, [3.0, 0.5])
    size = np.sqrt((program.coef**2).sum(axis=1)) * np.sqrt(D + 1) + np.abs(program.intercept)
    np.testing.assert_array_equal(program.bounds["wrong"], rounder(4 * W.sum()))
    np.testing.assert_array_equal(program.bounds["slope"], rounder(4 * steep * W.sum()))
    most = np.log(c) + 2 * 3.0 * size.max()
    np.testing.assert_array_equal(program.bounds["loss"], rounder(4 * W.sum() * most))


def test_the_bound_of_a_loss_without_weights():
    """Scores of zero: log of the number of classes, and of one score log 2."""
    for c in (2, 4):
        program = make(c, 1, [1.0])
        flat = LossProgram(program.gram, 0 * program.coef, 0 * program.intercept, np.ones(1))
        np.testing.assert_array_equal(flat.bounds["loss"], rounder(4 * W.sum() * np.log(c)))


def test_refused_rows():
    """The first one, counted from the first of all, also after a merge."""
    program, dirty = make(4, 1, [1.7]), X.copy()
    dirty[[70, 500], 1] = np.nan
    sentence = "X contains NaN at row 70, column 1; remove or impute it"
    early, late = run(program, 4, chunk=64, rows=dirty), program.start()
    late.refusal = (500, "late")
    for a, b in ((early, late), (late, early)):
        both = a.copy()
        both.merge(b)
        assert both.refusal == (70, sentence)
    assert program.rows_wanted == program.gram.rows_wanted
