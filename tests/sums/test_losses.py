"""The pass of scores against dense float64 matrices, system by system."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from dkl.losses import LOSSES, Huber, Softmax, Square
from dkl.sums.folds import fold_of
from dkl.sums.gram import GramProgram
from dkl.sums.losses import LossProgram
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
    return LossProgram(gram, coef, intercept, tuple(map(Softmax, sharpness)))


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
            for s, sharp in enumerate(loss.sharpness for loss in program.losses):
                losses = -log_softmax(sharp * pair, axis=1)[np.arange(own.sum()), y[own]]
                assert sums.loss[k, a, s] == pytest.approx(w[own] @ losses, rel=tolerance)
            assert sums.wrong[k, a] == pytest.approx(w[own] @ (pair.argmax(axis=1) != y[own]), rel=tolerance)
        if alphas * len(program.losses) == 1:
            sharp = program.losses[0].sharpness
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
    np.testing.assert_array_equal(program.bounds["slope_sum"], rounder(4 * steep * W.sum()))
    most = np.log(c) + 2 * 3.0 * size.max()
    np.testing.assert_array_equal(program.bounds["loss"], rounder(4 * W.sum() * most))


def test_the_bound_of_a_loss_without_weights():
    """Scores of zero: log of the number of classes, and of one score log 2."""
    for c in (2, 4):
        program = make(c, 1, [1.0])
        flat = LossProgram(program.gram, 0 * program.coef, 0 * program.intercept, (Softmax(1.0),))
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


def program_of(loss, weight=W):
    """A pass of any loss, with y for it: two outputs, or four classes."""
    rng, total = np.random.default_rng(2), float(weight.sum())
    outputs = 4 if loss.is_class else 2
    if loss.is_class:
        y, targets = CODES[4], Targets(total, 4, classes=np.arange(4))
    else:
        y = rng.normal(size=(N, 2)) * [1.0, 30.0]
        sizes = {"absolute": weight @ np.abs(y), "square": weight @ y**2}
        targets = Targets(total, 2, shift=np.zeros(2), unit=np.ones(2), **sizes)
    gram = GramProgram(FEATURES.at(np.float64), targets, N, folds=K, seed=SEED)
    return LossProgram(gram, rng.normal(size=(K, D, outputs)), rng.normal(size=(K, outputs)), (loss,)), y


@pytest.mark.parametrize("name", LOSSES)
def test_any_loss(name):
    """Values and slopes of every row of the table against dense sums, which the bounds cover."""
    loss = LOSSES[name]
    program, y = program_of(loss)
    sums, space = program.start(), program.workspace()
    for block, start in enumerate(range(0, N, 300)):
        part = slice(start, start + 300)
        program.add(sums, space, block, start, (X[part], y[part], W[part], None))
    for k in range(K):
        own = k == FOLD
        z = PSI[own] @ program.coef[k] + program.intercept[k]
        slope = W[own][:, None] * loss.slope(z, y[own])
        assert sums.loss[k, 0, 0] == pytest.approx(W[own] @ loss.value(z, y[own]), rel=1e-11)
        size = np.abs(slope).sum()
        np.testing.assert_allclose(sums.slope[k], slope.T @ PSI[own], rtol=0, atol=1e-12 * size)
        np.testing.assert_allclose(sums.slope_sum[k], slope.sum(axis=0), rtol=0, atol=1e-12 * size)
    assert sums.wrong.any() == loss.is_class
    most = {name: np.abs(getattr(sums, name)).sum(axis=0).max() for name in ("loss", "slope", "slope_sum")}
    for name, found in most.items():
        grid = np.broadcast_to(program.bounds[name], getattr(sums, name).shape[1:]).max()
        assert 1.5 * 2.0**52 * found * 2.0**-51 <= grid, name


def test_bounds_of_the_square():
    """|z| + |y| by output; its square is at most twice that of both."""
    program, y = program_of(Square())
    size = (np.sqrt((program.coef**2).sum(axis=1)) * np.sqrt(D + 1) + np.abs(program.intercept)).max()
    reach = W.sum() * size + W @ np.abs(y)
    np.testing.assert_array_equal(program.bounds["slope"], rounder(4 * reach)[:, None])
    np.testing.assert_array_equal(program.bounds["slope_sum"], rounder(4 * reach))
    np.testing.assert_array_equal(program.bounds["loss"], rounder(4 * (2 * W.sum() * size**2 + (W @ y**2).sum())))


def test_bounds_of_several_losses():
    """Those of the steepest, by output."""
    square, _ = program_of(Square())
    both = LossProgram(square.gram, square.coef, square.intercept, (Huber(), Square()))
    np.testing.assert_array_equal(both.bounds["slope_sum"], square.bounds["slope_sum"])


@pytest.mark.parametrize("loss", [Square(), Softmax()])
def test_a_loss_of_other_targets(loss):
    """Named with what y are."""
    program, _ = program_of(Softmax() if loss == Square() else Square())
    with pytest.raises(ValueError, match=r"is for (values|classes), but y are (classes|values)"):
        LossProgram(program.gram, program.coef, program.intercept, (loss,))
