"""The second pass against its formula in dense float64 matrices, term by term."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, softmax

from dkl.features.channel import Channel
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.features.side_by_side import SideBySide
from dkl.kernels import KERNELS
from dkl.losses import Softmax
from dkl.sums.folds import fold_of, held_out
from dkl.sums.gram import GramProgram
from dkl.sums.order_free import rounder
from dkl.sums.pullback import TILE, Adjoint, PullbackProgram
from dkl.sums.targets import Targets

N, M, K, SEED, WAVES = TILE + 90, 3, 3, 5, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, M))
W = RNG.gamma(2, size=N) * (RNG.random(N) > 0.1)
VALUES = RNG.normal(size=(N, 2)) * [1, 3]
CODES = {2: RNG.integers(0, 2, N), 3: RNG.integers(0, 3, N)}
ALL = ("sigma", "unit", "phase")
OUTPUTS = {"values": 2, "two": 1, "three": 3}


def make_map(form="paired"):
    """Six frequencies; the odd paired form has a phase for the last of them."""
    phases = {"paired": 0, "odd": 1, "phase": WAVES}[form]
    unit = draw_unit(KERNELS["gaussian"], M, WAVES, "iid", np.random.default_rng(3))
    sigma, phase = np.array([0.4, 0.9, 0.6]), np.random.default_rng(4).random(phases)
    return FourierMap(KERNELS["gaussian"], unit, sigma, phase, 1.0, "phase" if form == "phase" else "paired")


def targets_of(kind, weight):
    """The record of the targets, y as it comes, and the dense targets."""
    total = float(N if weight is None else weight.sum())
    if kind == "values":
        bounds = {"absolute": np.full(2, 1e4), "square": np.full(2, 1e5)}
        return Targets(total, 2, shift=np.zeros(2), unit=np.ones(2), **bounds), VALUES, VALUES
    c = {"two": 2, "three": 3}[kind]
    Y = 2.0 * np.eye(c)[CODES[c]] - 1
    return Targets(total, c, classes=np.arange(c)), CODES[c], Y[:, 1:] if c == 2 else Y


def adjoint_of(d, c, folds, systems=K, **options):
    """Weights and adjoints of so many systems; system s is tested by fold s and trained by the others."""
    rng, q = np.random.default_rng(6), systems * c
    test = np.zeros((folds, systems))
    test[np.arange(min(folds, systems)), np.arange(min(folds, systems))] = 1
    train = 1 - test
    fields_ = {
        "coef": rng.normal(size=(d, q)),
        "intercept": rng.normal(size=q),
        "adjoint": rng.normal(size=(d, q)),
        "adjoint_intercept": rng.normal(size=q),
        "gain": np.repeat(test * np.array([0.5, 2.0, 1.5])[:folds, None], c, axis=1),
        "train": np.repeat(train, c, axis=1),
        "bound": np.full(d, 1e3),
    }
    return Adjoint(**(fields_ | options))


def program_of(kind="values", form="paired", weight=W, folds=K, dtype=np.float64, wanted=ALL, **options):
    """A pass with three systems, or with other parts of the adjoint."""
    features = make_map(form)
    targets, *_ = targets_of(kind, weight)
    gram = GramProgram(features.at(dtype), targets, N, folds=folds, seed=SEED)
    adjoint = adjoint_of(features.n_features, OUTPUTS[kind], folds, **options)
    return PullbackProgram(gram, adjoint, np.full(M, 100.0), wanted)


def run(program, kind, weight=W, chunk=N, order=1, given=None, rows=X):
    """Sums of blocks in order, or backwards."""
    sums, space, (_, y, _) = program.start(), program.workspace(), targets_of(kind, weight)
    for block, start in list(enumerate(range(0, N, chunk)))[::order]:
        part = slice(start, start + chunk)
        data = (rows[part], y[part], None if weight is None else weight[part], None if given is None else given[part])
        program.add(sums, space, block, start, data)
    return sums


def slope_of_loss(scores, y, k):
    """dl/dz of the log loss; one score stands for the pair (-z, z)."""
    if scores.shape[1] == 1:
        sign = 2.0 * y[:, None] - 1
        return -2 * k * sign * expit(-2 * k * sign * scores)
    return k * (softmax(k * scores, axis=1) - np.eye(scores.shape[1])[y])


def dense(program, kind, weight, fold):
    """Sums of sigma, unit and phase, and the weight of rows in the wrong class, from the formulas."""
    features, a, c = program.gram.features.map, program.adjoint, OUTPUTS[kind]
    w = np.ones(N) if weight is None else weight
    _, y, Y = targets_of(kind, weight)
    theta = X @ (features.sigma[:, None] * features.unit)
    shifted = WAVES - len(features.phase) if features.form == "paired" else 0
    theta[:, shifted:] += 2 * np.pi * features.phase
    size = np.ones(WAVES)
    size[shifted:] = np.sqrt(2) if features.form == "paired" else 1
    Psi = size * np.cos(theta)
    if features.form == "paired":
        Psi = np.hstack([Psi, np.sin(theta[:, :shifted])])
    scores = Psi @ a.coef + a.intercept
    systems = scores.shape[1] // c
    E, gain, train = scores - np.tile(Y, systems), a.gain[fold], a.train[fold]
    tested = E
    if a.loss is not None:
        parts = [slope_of_loss(scores[:, i * c : (i + 1) * c], y, a.loss.sharpness) for i in range(systems)]
        tested = np.hstack(parts)
    F = Psi @ a.adjoint + a.adjoint_intercept if a.adjoint.shape[1] else np.zeros_like(E)
    left_b = w[:, None] * (gain * tested - (train * F if a.adjoint.shape[1] else 0))
    Psi_bar = left_b @ a.coef.T
    if a.adjoint.shape[1]:
        Psi_bar += (-w[:, None] * train * E) @ a.adjoint.T
    if a.curvature is not None:
        Psi_bar += (w * train[:, 0])[:, None] * (Psi - a.centre) @ a.curvature
    theta_bar = -size * np.sin(theta) * Psi_bar[:, :WAVES]
    if features.form == "paired":
        theta_bar[:, :shifted] += np.cos(theta[:, :shifted]) * Psi_bar[:, WAVES:]
    omega_bar = X.T @ theta_bar
    wrong = 0.0
    for i in range(N) if kind != "values" else ():
        systems_tested = np.flatnonzero(a.gain[fold[i], ::c])
        if len(systems_tested):
            own = scores[i, systems_tested[0] * c : (systems_tested[0] + 1) * c]
            chosen = int(own[0] > 0) if c == 1 else own.argmax()
            wrong += w[i] * (chosen != y[i])
    phase = theta_bar.sum(0)[WAVES - len(features.phase) :]
    return {"sigma": (features.unit * omega_bar).sum(1), "unit": omega_bar, "phase": phase, "wrong": wrong}


def check(program, kind, weight, fold, tolerance=1e-10, **how):
    """All four sums."""
    sums, wanted = run(program, kind, weight, **how), dense(program, kind, weight, fold)
    assert tuple(sums.gradients) == program.wanted
    for name, found in {**sums.gradients, "wrong": sums.wrong}.items():
        scale = max(1.0, np.abs(wanted["unit"]).max())
        np.testing.assert_allclose(found, wanted[name], rtol=0, atol=tolerance * scale, err_msg=name)
    return sums


FOLD = fold_of(0, N, K, SEED)


@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("form", ["paired", "odd", "phase"])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_squared_error(kind, form, weight):
    """Three systems by three folds; of classes also the rows that are put in the wrong one."""
    sums = check(program_of(kind, form, weight), kind, weight, FOLD, chunk=400)
    assert (sums.wrong[0] > 0) == (kind != "values")


@pytest.mark.parametrize("chunk", [1, 100, TILE, N])
def test_any_cut(chunk):
    """Blocks of one row, of some, of a tile, and of more."""
    check(program_of("three"), "three", W, FOLD, chunk=chunk)


@pytest.mark.parametrize("kind", ["two", "three"])
def test_log_loss(kind):
    """The slope of the loss stands in the term of gain alone."""
    check(program_of(kind, loss=Softmax(1.7)), kind, W, FOLD)


def test_curvature():
    """w (psi - centre) M of rows that train the first system."""
    d = 2 * WAVES
    curvature = RNG.normal(size=(d, d))
    options = {"curvature": curvature + curvature.T, "centre": RNG.normal(size=d)}
    for kind in ("values", "two"):
        check(program_of(kind, **options), kind, W, FOLD)


def test_one_system_without_folds():
    """The joint objective: no row trains, and every row is tested."""
    d, c = 2 * WAVES, 2
    none = {"adjoint": np.zeros((d, 0)), "adjoint_intercept": np.zeros(0), "train": np.zeros((1, c))}
    program = program_of(folds=1, systems=1, **none)
    check(program, "values", W, np.zeros(N, int), given=FOLD)


def test_given_folds():
    """The user's own numbers, of which the last is tested by no system: its rows only train."""
    fold = np.arange(N) % 2
    gain = np.array([[0.5] * 3, [0.0] * 3])
    options = {"gain": gain, "train": 1 - (gain > 0), "systems": 1}
    check(program_of("three", folds=2, **options), "three", W, fold, given=fold)


def test_float32():
    """Within float32's rounding."""
    check(program_of("three", dtype=np.float32), "three", W, FOLD, 1e-4)


@pytest.mark.parametrize("wanted", [("sigma",), ("unit", "phase"), ("phase",)])
def test_some_parameters(wanted):
    """Only what is wanted is summed."""
    program = program_of(form="odd", wanted=wanted)
    check(program, "values", W, FOLD)
    assert set(program.bounds) == set(wanted)
    assert PullbackProgram(program.gram, program.adjoint, program.input_size).wanted == ("sigma",)


def test_a_parameter_that_is_none():
    """Named, with those that there are."""
    with pytest.raises(ValueError, match="a fourier map has no parameter 'omega'; use 'sigma', 'unit', 'phase'"):
        program_of(wanted=("omega",))


def test_bounds():
    """By Cauchy-Schwarz, with a factor of four: |T_j| |theta_bar_k|, both parts of a pair counted at sqrt 2."""
    for form, d in (("paired", 2 * WAVES), ("odd", 2 * WAVES - 1), ("phase", WAVES)):
        bound = 1.0 + np.arange(d) ** 2
        size = np.array([3.0, 50.0, 700.0])
        program = replace(program_of("two", form, bound=bound), input_size=size)
        reach = np.sqrt(2) * np.array([bound[k] + (bound[WAVES + k] if WAVES + k < d else 0) for k in range(WAVES)])
        unit = np.abs(program.gram.features.map.unit)
        np.testing.assert_array_equal(program.bounds["sigma"], rounder(4 * size * (unit * reach).sum(axis=1)))
        np.testing.assert_array_equal(program.wrong_bound, rounder(4 * W.sum()))
        np.testing.assert_array_equal(program.bounds["unit"], rounder(4 * size[:, None] * reach))
        shifted = WAVES - len(program.gram.features.map.phase)
        np.testing.assert_array_equal(program.bounds["phase"], rounder(4 * np.sqrt(W.sum()) * reach)[shifted:])


def test_order_does_not_change_the_bits():
    """Backwards, and merged; a copy shares nothing."""
    program = program_of("three")
    forth, back = run(program, "three", chunk=64), run(program, "three", chunk=64, order=-1)
    twin = forth.copy()
    twin.merge(forth)
    flat = [{**sums.gradients, "wrong": sums.wrong} for sums in (forth, back, twin)]
    for name in (*ALL, "wrong"):
        assert flat[0][name].tobytes() == flat[1][name].tobytes()
        np.testing.assert_array_equal(flat[2][name], 2 * flat[0][name])


def test_refused_and_empty_blocks():
    """The first row that cannot be used, counted from the first of all; a block without rows adds nothing."""
    program, dirty = program_of(), X.copy()
    dirty[[70, 500], 1] = np.nan
    sentence = "X contains NaN at row 70, column 1; remove or impute it"
    early, late = run(program, "values", chunk=64, rows=dirty), program.start()
    assert early.refusal == (70, sentence)
    assert run(program, "values", chunk=64, rows=dirty, order=-1).refusal == (70, sentence)
    late.refusal = (500, "late")
    for a, b in ((early, late), (late, early)):
        both = a.copy()
        both.merge(b)
        assert both.refusal == (70, sentence)
    sums = program.start()
    program.add(sums, program.workspace(), 0, 0, (X[:0], VALUES[:0], None, None))
    assert not sums.gradients["sigma"].any()
    assert program.rows_wanted == program.gram.rows_wanted


def test_a_held_out_share():
    """One system that fold 0 trains and fold 1 tests."""
    features = make_map()
    targets, *_ = targets_of("three", W)
    gram = GramProgram(features.at(np.float64), targets, N, folds=2, seed=SEED, held=(1, 4))
    gain = np.array([[0.0] * 3, [0.7] * 3])
    adjoint = adjoint_of(features.n_features, 3, 2, systems=1, gain=gain, train=1.0 - (gain > 0))
    program = PullbackProgram(gram, adjoint, np.full(M, 100.0), ALL)
    check(program, "three", W, held_out(0, N, (1, 4), SEED))


def several():
    """Two channels of two inputs each, of other scales and forms."""
    rng = np.random.default_rng(8)
    unit = {d: draw_unit(KERNELS["gaussian"], 2, d, "iid", rng) for d in (3, 5)}
    odd = FourierMap(KERNELS["gaussian"], unit[3], np.array([0.4, 0.7]), rng.random(1), 1.0, "paired")
    phased = FourierMap(KERNELS["gaussian"], unit[5], np.array([0.9, 0.5]), rng.random(5), 1.0, "phase")
    return SideBySide((Channel(odd, np.array([0, 2])), Channel(phased, np.array([1, 2]))))


def test_several_channels():
    """The gradient of the squared error at given weights, by differences of the error in every parameter."""
    features, (targets, y, _) = several(), targets_of("values", W)
    d, rng = features.n_features, np.random.default_rng(9)
    coef, intercept = rng.normal(size=(d, 2)), rng.normal(size=2)
    adjoint = Adjoint(
        coef, intercept, np.zeros((d, 0)), np.zeros(0), np.ones((1, 2)), np.zeros((1, 2)), bound=np.full(d, 1e4)
    )
    gram = GramProgram(features.at(np.float64), targets, N)
    program = PullbackProgram(gram, adjoint, np.full(features.n_columns, 100.0), tuple(features.parameters))
    found = features.gradients(run(program, "values", chunk=300).gradients)

    def error(at):
        blocks, Psi = at.at(np.float64), np.empty((N, d))
        blocks.write(blocks.prepare(X), Psi)
        residual = Psi @ coef + intercept - y
        return 0.5 * float((W[:, None] * residual**2).sum())

    assert set(found) == {f"channel{i}_{name}" for i in (0, 1) for name in ALL}
    for name, values in features.parameters.items():
        expected = np.empty(values.shape)
        for place in np.ndindex(values.shape):
            step = np.zeros(values.shape)
            step[place] = 1e-5
            ends = [error(features.with_parameters(**{name: values + sign * step})) for sign in (1, -1)]
            expected[place] = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max(), err_msg=name)
