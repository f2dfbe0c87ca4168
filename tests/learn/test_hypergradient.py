"""Value and gradient of every objective against dense definitions differentiated by a complex step."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dkl.features.additive import Direct, Homogeneous
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.kernels import KERNELS
from dkl.learn.bandwidth_steps import Problem, advance, judge
from dkl.learn.objectives import OBJECTIVES
from dkl.learn.parameters import Frequencies, Scales
from dkl.learn.search import Search
from dkl.solvers.lbfgs import begin
from dkl.sums.folds import fold_of, held_out
from dkl.sums.gram import GramProgram
from dkl.sums.spread import spread_of
from dkl.sums.targets import Targets, ValueMoments, value_targets
from tests import oracles

N, M, D, K, SEED, ALPHA, SKEW = 180, 4, 11, 3, 7, 0.3, 0.5
GROUPS = np.array([0, 0, 1, 2])
RNG = np.random.default_rng(0)
X = RNG.uniform(0, 2, size=(N, M))
SCORE = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 1] * X[:, 2]]) + 0.3 * RNG.normal(size=(N, 2))
NODES = (0.3, 1.2)
SAMPLES = Homogeneous(np.array([0.7, 0.2]), 0.6)
ADDITIVE = {"exp_chi2": Direct(np.array(NODES)), "exp_intersection": SAMPLES, "exp_jensen_shannon": SAMPLES}
WEIGHT = RNG.gamma(2, size=N) * (RNG.random(N) > 0.1)


def draw_map(kernel, form, frequencies=D):
    """A map with a different sigma of each input; the odd paired form has one phase."""
    rng = np.random.default_rng(3)
    additive = ADDITIVE.get(kernel)
    columns = M if additive is None else M * additive.n_terms
    unit = np.clip(draw_unit(KERNELS[kernel], columns, frequencies, "iid", rng), -5, 5)
    phase = rng.random(frequencies if form == "phase" else 1 if form == "odd" else 0)
    sigma = np.array([0.4, 0.7, 0.5, 0.9])
    return FourierMap(KERNELS[kernel], unit, sigma, phase, SKEW, "paired" if form == "odd" else form, additive)


def targets_of(kind, weight, centre):
    """y, its record, and the dense targets it stands for."""
    w = np.ones(N) if weight is None else weight
    if kind == "values":
        y = SCORE * [1, 20] + [3, -50]
        moments = ValueMoments(N, spread_of(y, w), w @ np.abs(y), w @ (y * y))
        return y, value_targets(moments, centre), y
    c = {"two": 2, "three": 3}[kind]
    y = np.digitize(SCORE[:, 0], np.quantile(SCORE[:, 0], np.arange(1, c) / c))
    Y = 2.0 * np.eye(c)[y] - 1
    return y, Targets(w.sum(), c, classes=np.arange(c)), Y[:, 1:] if c == 2 else Y


def folds_of(objective):
    """Folds of the pass, the share that is held out, and each row's fold."""
    if objective == "validation":
        return 2, (1, 4), held_out(0, N, (1, 4), SEED)
    return (K, None, fold_of(0, N, K, SEED)) if objective == "cv" else (1, None, np.zeros(N, int))


def sweep(program, y, weight, chunk=64):
    """Sums of the blocks, one after the other."""
    sums, space = program.start(), program.workspace()
    for block, start in enumerate(range(0, N, chunk)):
        rows = slice(start, start + chunk)
        program.add(sums, space, block, start, (X[rows], y[rows], None if weight is None else weight[rows], None))
    return sums


def evaluate(objective, parameters, x, y, targets, weight, intercept, dtype=np.float64, alpha=ALPHA, log_lam=None):
    """(value, gradient in x, log lam, misclassified share) at x through both passes."""
    folds, held, _ = folds_of(objective)
    features = parameters.map(x)
    T = features.at(np.float64).prepare(X)
    w = np.ones(N) if weight is None else weight
    size = np.sqrt((w / targets.weight_unit) @ (T * T))
    problem = Problem(OBJECTIVES[objective], parameters, targets, intercept, alpha, size, 1e-4)
    program = GramProgram(features.at(dtype), targets, N, folds, SEED, held)
    search = Search(begin(x, *parameters.box()), log_lam)
    verdict = judge(sweep(program, y, weight), problem=problem, program=program, search=search)
    assert verdict.told.accepted
    kept = verdict.kept
    pulled = sweep(kept["pullback"], y, weight)
    move = advance(pulled, problem=problem, program=program, search=kept["search"], accepted=kept["accepted"])
    gradient = move.kept["search"].descent.gradient * problem.unit
    return verdict.told.value, gradient, verdict.told.log_lam, move.told.wrong


def transformed(kernel):
    """The kernel's variables; a constant factor and shift of dkl's own log(1 + x / c) included."""
    if kernel == "exp_chi2":
        first, second = (2 * np.sqrt(k) * X / (X + k) for k in NODES)
        return np.hstack([first, second * (X - NODES[0]) / (X + NODES[0])])
    if kernel in ADDITIVE:
        log, root = 0.6 * np.log(X), np.sqrt(X)
        return np.hstack([root * np.sqrt(0.7), root * np.sqrt(0.4) * np.cos(log), root * np.sqrt(0.4) * np.sin(log)])
    return np.log(1 + X / SKEW) if KERNELS[kernel].skewed else X


def dense(objective, features, Y, weight, intercept):
    """J(omega, phase, lam) by definition."""
    T, fold = transformed(features.kernel.name), folds_of(objective)[2]
    w = np.ones(N) if weight is None else weight

    def J(omega, phase, lam):
        Psi = oracles.features(T, omega, phase, features.form)
        return oracles.OBJECTIVES[objective](Psi, Y, w, lam, intercept, fold)

    return J


def assert_gradient(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def cases():
    """Every kernel x form x intercept x weights x groups; the bulk of what differs in the kernel alone is long."""
    for kernel, form in product(KERNELS, ("paired", "phase", "odd")):
        for rest in product([False, True], repeat=3):
            soon = kernel in ("gaussian", "skewed_chi2", "exp_chi2") or all(rest)
            yield pytest.param(kernel, form, *rest, marks=() if soon else pytest.mark.long)


@pytest.mark.parametrize("objective", sorted(oracles.OBJECTIVES))
@pytest.mark.parametrize(("kernel", "form", "intercept", "weighted", "grouped"), cases())
def test_gradient_in_log_sigma(kernel, form, objective, intercept, weighted, grouped):
    """Every objective x kernel x form x intercept x weights x groups; three classes."""
    weight = WEIGHT if weighted else None
    y, targets, Y = targets_of("three", weight, intercept)
    features = draw_map(kernel, form)
    parameters = Scales(features, GROUPS if grouped else np.arange(M))
    x = np.array([0.2, -0.1, 0.3] if grouped else [0.2, -0.1, 0.3, 0.1])
    value, gradient, _, _ = evaluate(objective, parameters, x, y, targets, weight, intercept)
    J = dense(objective, features, Y, weight, intercept)

    def along(x):
        sigma = np.tile(features.sigma * np.exp(x)[parameters.groups], len(features.unit) // M)
        return J(sigma[:, None] * features.unit, features.phase, ALPHA)

    np.testing.assert_allclose(value, np.real(along(x.astype(complex))), rtol=1e-10)
    assert_gradient(gradient, oracles.complex_step(along, x), 1e-8)


@pytest.mark.parametrize("kind", ["values", "two"])
@pytest.mark.parametrize("objective", sorted(oracles.OBJECTIVES))
def test_gradient_for_other_targets(objective, kind):
    """Two outputs of very different size, and two classes; l2 and l1 on sigma."""
    y, targets, Y = targets_of(kind, WEIGHT, True)
    features = draw_map("gaussian", "paired")
    for parameters in (Scales(features, np.arange(M), l2=0.1), Scales(features, np.arange(M), l1=0.05, l2=0.1)):
        x = parameters.begin(1.2) + np.array([0.1, -0.2, 0.0, 0.3])
        value, gradient, _, _ = evaluate(objective, parameters, x, y, targets, WEIGHT, True)
        J = dense(objective, features, Y, WEIGHT, True)
        variance = 1.0 if kind == "two" else np.mean(
            [np.cov(column, aweights=WEIGHT, ddof=0) for column in Y.T]
        )  # fmt: skip

        def along(x, parameters=parameters, J=J, variance=variance):
            u = x if parameters.l1 else np.exp(x)
            penalty = (parameters.l1 * u + 0.05 * u * u).sum()
            return J((features.sigma * u)[:, None] * features.unit, features.phase, ALPHA) + variance * penalty

        np.testing.assert_allclose(value, np.real(along(x.astype(complex))), rtol=1e-10)
        assert_gradient(gradient, oracles.complex_step(along, x), 1e-8)


@pytest.mark.parametrize("form", ["paired", "phase", "odd"])
@pytest.mark.parametrize("objective", sorted(oracles.OBJECTIVES))
def test_gradient_in_frequencies_and_phases(objective, form):
    """Every single frequency, and the phases of the columns that have one."""
    y, targets, Y = targets_of("three", WEIGHT, True)
    features = draw_map("matern32", form, 5)
    parameters = Frequencies(features)
    x = parameters.begin(1.1)
    value, gradient, _, _ = evaluate(objective, parameters, x, y, targets, WEIGHT, True)
    J = dense(objective, features, Y, WEIGHT, True)

    def along(x):
        unit, phase = x[: features.unit.size].reshape(features.unit.shape), x[features.unit.size :]
        return J(features.sigma[:, None] * unit, phase, ALPHA)

    np.testing.assert_allclose(value, np.real(along(x.astype(complex))), rtol=1e-10)
    assert_gradient(gradient, oracles.complex_step(along, x), 1e-8)


@pytest.mark.parametrize("kind", ["values", "three"])
@pytest.mark.parametrize("objective", sorted(oracles.OBJECTIVES))
def test_float32_blocks(objective, kind):
    """Within 1e-3 of the float64 definition."""
    y, targets, Y = targets_of(kind, WEIGHT, True)
    features = draw_map("gaussian", "odd")
    parameters = Scales(features, np.arange(M))
    x = np.array([0.2, -0.1, 0.3, 0.1])
    value, gradient, _, _ = evaluate(objective, parameters, x, y, targets, WEIGHT, True, np.float32)
    J = dense(objective, features, Y, WEIGHT, True)

    def along(x):
        return J((features.sigma * np.exp(x))[:, None] * features.unit, features.phase, ALPHA)

    np.testing.assert_allclose(value, np.real(along(x.astype(complex))), rtol=1e-4)
    assert_gradient(gradient, oracles.complex_step(along, x), 1e-3)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("objective", ["validation", "cv", "gcv"])
def test_alpha_is_the_best_for_its_sigma(objective, intercept):
    """alpha=None: a minimum in log alpha of the dense definition, found from nothing and from a start."""
    from scipy.optimize import minimize_scalar

    y, targets, Y = targets_of("values", WEIGHT, intercept)
    features = draw_map("gaussian", "paired")
    parameters, x = Scales(features, np.zeros(M, int)), np.zeros(1)
    J = dense(objective, features, Y, WEIGHT, intercept)
    omega = features.sigma[:, None] * features.unit

    def along(log_lam):
        return float(np.real(J(omega, features.phase, np.exp(log_lam))))

    grid = np.linspace(-15, 8, 60)
    low = grid[np.argmin([along(at) for at in grid])]
    best = minimize_scalar(along, bounds=(low - 1, low + 1), method="bounded", options={"xatol": 1e-8})
    for start in (None, best.x + 1.5, best.x - 0.7):
        start = None if start is None else start - np.log(targets.weight_unit)
        value, _, log_lam, _ = evaluate(
            objective, parameters, x, y, targets, WEIGHT, intercept, alpha=None, log_lam=start
        )
        assert abs(log_lam + np.log(targets.weight_unit) - best.x) < 0.7  # where it is flat, alpha is not sharp
        np.testing.assert_allclose(value, best.fun, rtol=1e-4)


@pytest.mark.parametrize("kind", ["two", "three"])
@pytest.mark.parametrize("objective", ["validation", "cv"])
def test_share_of_wrong_classes(objective, kind):
    """Held-out rows whose class has not the highest score, by weight."""
    y, targets, Y = targets_of(kind, WEIGHT, True)
    features = draw_map("gaussian", "paired")
    parameters = Scales(features, np.arange(M))
    _, _, _, wrong = evaluate(objective, parameters, parameters.begin(1.0), y, targets, WEIGHT, True)
    fold = folds_of(objective)[2]
    Psi = oracles.features(X, features.sigma[:, None] * features.unit, features.phase, "paired")
    tested = [1] if objective == "validation" else range(K)
    lost = total = 0.0
    for k in tested:
        train, test = fold != k, fold == k
        scores = np.real(
            oracles.predict(Psi[test], oracles.ridge(Psi[train], Y[train], WEIGHT[train], ALPHA, True), True)
        )
        guess = (scores[:, 0] > 0) * 1 if kind == "two" else scores.argmax(1)
        lost += WEIGHT[test][guess != y[test]].sum()
        total += WEIGHT[test].sum()
    np.testing.assert_allclose(wrong, lost / total, rtol=1e-12)
    assert 0 < wrong < 1


def test_order_of_blocks_does_not_change_the_bits():
    """Gradient sums of blocks merged in any order are the same record."""
    y, targets, _ = targets_of("three", WEIGHT, True)
    features = draw_map("gaussian", "odd")
    parameters = Frequencies(features)
    x = parameters.begin(1.0)
    program = GramProgram(features.at(np.float32), targets, N, K, SEED)
    size = np.sqrt((WEIGHT / targets.weight_unit) @ (X * X))
    problem = Problem(OBJECTIVES["cv"], parameters, targets, True, ALPHA, size, 1e-4)
    kept = judge(
        sweep(program, y, WEIGHT), problem=problem, program=program, search=Search(begin(x, *parameters.box()))
    )
    pullback = kept.kept["pullback"]
    expected = sweep(pullback, y, WEIGHT, 20)
    space, merged = pullback.workspace(), pullback.start()
    for share in np.array_split(np.random.default_rng(5).permutation(N // 20), 3):
        part = pullback.start()
        for block in share:
            rows = slice(20 * block, 20 * block + 20)
            pullback.add(part, space, block, rows.start, (X[rows], y[rows], WEIGHT[rows], None))
        merged.merge(part.copy())
    assert set(expected.gradients) == {"unit", "phase"}
    for name, values in {**expected.gradients, "wrong": expected.wrong}.items():
        own = merged.wrong if name == "wrong" else merged.gradients[name]
        assert own.tobytes() == values.tobytes(), name
        assert np.abs(values).max() > 0
