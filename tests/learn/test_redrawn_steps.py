"""The log loss and its gradient against a dense definition and its finite differences."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.kernels import KERNELS
from dkl.learn.alpha import best_alpha, least_alpha
from dkl.learn.objectives import CV, systems_of
from dkl.learn.parameters import Scales
from dkl.learn.redrawn_steps import (
    FIRST,
    LAST,
    LATER,
    SHARPNESS,
    Chosen,
    Found,
    Redrawn,
    Search,
    _lowest,
    advance,
    chosen,
    objective,
    pull,
    score,
    trials,
)
from dkl.solvers.adam import begin, stepped
from dkl.store.packed import pack, unpack
from dkl.sums.folds import fold_of
from dkl.sums.gram import GramProgram
from dkl.sums.losses import LossSums
from dkl.sums.pullback import PullbackSums
from dkl.sums.targets import Targets
from tests import oracles

N, M, D, K, SEED, ALPHA, SHARP = 180, 4, 11, 3, 7, 0.3, 2.5
GROUPS = np.array([0, 0, 1, 2])
RNG = np.random.default_rng(0)
X = RNG.uniform(0, 2, size=(N, M))
SCORE = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=N)
WEIGHT = 30 * RNG.gamma(2, size=N) * (RNG.random(N) > 0.1)
FOLD = fold_of(0, N, K, SEED)


def draw_map(form):
    """A map with a different sigma of each input; the odd paired form has one phase."""
    rng = np.random.default_rng(3)
    unit, phase = draw_unit(KERNELS["gaussian"], M, D, "iid", rng), rng.random({"phase": D, "odd": 1}.get(form, 0))
    sigma = np.array([0.4, 0.7, 0.5, 0.9])
    return FourierMap(KERNELS["gaussian"], unit, sigma, phase, 1.0, "phase" if form == "phase" else "paired")


def classes(c):
    """Codes of c classes."""
    return np.digitize(SCORE, np.quantile(SCORE, np.arange(1, c) / c))


def setting(c, form="paired", weight=None, intercept=True, grouped=False, dtype=np.float64):
    """(problem, program) of c classes; weights of about 64 have a unit of their own."""
    features, unit = draw_map(form), 1.0 if weight is None else 64.0
    w = np.ones(N) if weight is None else weight
    targets = Targets(w.sum() / unit, c, classes=np.arange(c), weight_unit=unit)
    parameters = Scales(features, GROUPS if grouped else np.arange(M))
    size = np.sqrt((w / unit) @ (X * X))
    problem = Redrawn(CV, parameters, targets, intercept, ALPHA, size, 1e-3, "orthogonal", SEED, 40)
    return problem, GramProgram(features.at(dtype), targets, N, K, SEED)


def sweep(program, y, weight, chunk=64, order=None):
    """Sums of the blocks, one after the other, in any order."""
    sums, space = program.start(), program.workspace()
    starts = list(range(0, N, chunk))
    for block in range(len(starts)) if order is None else order(len(starts)):
        rows = slice(starts[block], starts[block] + chunk)
        w = None if weight is None else weight[rows]
        program.add(sums, space, block, rows.start, (X[rows], y[rows], w, None))
    return sums


def evaluate(problem, program, x, y, weight, alpha=ALPHA, k=SHARP, chunk=64):
    """(J, gradient in x, dJ/dlog alpha, log loss, misclassified share) at x through the three passes."""
    program = program.with_map(problem.parameters.map(x))
    at = Chosen(float(np.log(alpha / problem.targets.weight_unit)), k)
    kept = score(sweep(program, y, weight, chunk), problem=problem, program=program, at=at).kept
    sums = sweep(kept["scores"], y, weight, chunk)
    slope, more = pull(
        sums, problem=problem, program=program, solved=kept["solved"], weight=kept["weight"], at=at
    )  # fmt: skip
    pulled = sweep(more["pullback"], y, weight, chunk)
    value, gradient = objective(problem, x, pulled, more["found"])
    np.testing.assert_allclose(pulled.wrong[0], sums.wrong.sum(), rtol=1e-12)
    return value, gradient, slope, more["found"].error, more["found"].wrong


def held_out_scores(features, x, groups, y, c, weight, alpha, intercept):
    """Ridge scores of every row by the folds it is not in."""
    Y = 2.0 * np.eye(c)[y] - 1
    Y, w = Y[:, 1:] if c == 2 else Y, np.ones(N) if weight is None else weight
    omega = (features.sigma * np.exp(x)[groups])[:, None] * features.unit
    Psi, Z = oracles.features(X, omega, features.phase, features.form), np.empty_like(Y)
    for k in range(K):
        train, test = k != FOLD, k == FOLD
        B = np.real(oracles.ridge(Psi[train], Y[train], w[train], alpha, intercept))
        Z[test] = oracles.predict(Psi[test], B, intercept)
    return Z


def dense(features, x, groups, y, c, weight, alpha, intercept, k=SHARP):
    """(J, log loss, misclassified share) by definition."""
    w = np.ones(N) if weight is None else weight
    Z = held_out_scores(features, x, groups, y, c, weight, alpha, intercept)
    Z = np.hstack([-Z, Z]) if c == 2 else Z
    loss = logsumexp(k * Z, axis=1) - k * Z[np.arange(N), y]
    error = (w @ loss) / w.sum()
    return error + ((x - x.mean()) ** 2).sum() / 2 / w.sum(), error, w[Z.argmax(1) != y].sum() / w.sum()


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("c", "form"), [(2, "paired"), (4, "paired"), (3, "odd"), (3, "phase")])
def test_value_and_gradient(c, form, intercept, weighted, grouped):
    """Two classes and more, every form, intercept, weights and groups."""
    y, weight, groups = classes(c), WEIGHT if weighted else None, GROUPS if grouped else np.arange(M)
    problem, program = setting(c, form, weight, intercept, grouped)
    x = np.array([0.2, -0.1, 0.3] if grouped else [0.2, -0.1, 0.3, 0.1])
    value, gradient, slope, error, wrong = evaluate(problem, program, x, y, weight)
    fixed = (groups, y, c, weight)
    expected = dense(draw_map(form), x, *fixed, ALPHA, intercept)
    np.testing.assert_allclose([value, error, wrong], expected, rtol=1e-10)
    assert 0 < wrong < 0.7

    def along(x):
        return dense(draw_map(form), x[:-1], *fixed, ALPHA * np.exp(x[-1]), intercept)[0]

    point, step = np.append(x, 0.0), 1e-4 * np.eye(len(x) + 1)
    difference = np.array(
        [
            (8 * (along(point + h) - along(point - h)) - along(point + 2 * h) + along(point - 2 * h)) / 12e-4
            for h in step
        ]
    )
    np.testing.assert_allclose(gradient, difference[:-1], rtol=0, atol=1e-8 * np.abs(difference[:-1]).max())
    np.testing.assert_allclose(slope, difference[-1], rtol=1e-7, atol=1e-10)  # rounding of J (about 1) over 12e-4


def test_float32_blocks():
    """Within 1e-3 of the float64 definition."""
    y, x = classes(3), np.array([0.2, -0.1, 0.3, 0.1])
    found = [evaluate(*setting(3, weight=WEIGHT, dtype=dtype), x, y, WEIGHT) for dtype in (np.float32, np.float64)]
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=0, atol=1e-3 * np.abs(found[1][1]).max())


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("chunk", [1, 7, N])
def test_chunks_do_not_matter(c, chunk):
    """Up to rounding."""
    y, x = classes(c), np.array([0.2, -0.1, 0.3, 0.1])
    found = [evaluate(*setting(c, weight=WEIGHT), x, y, WEIGHT, chunk=size) for size in (chunk, 64)]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_order_of_blocks_does_not_change_the_bits():
    """Sums of scores, of one alpha and k with slopes, and of several without."""
    y = classes(3)
    problem, program = setting(3, weight=WEIGHT, dtype=np.float32)
    at = Chosen(float(np.log(ALPHA / 64)), SHARP)
    sums = sweep(program, y, WEIGHT)
    one = score(sums, problem=problem, program=program, at=at).kept["scores"]
    several = trials(
        sums, program=program, fit_intercept=True, alpha=None, near=None, factors=np.array([0.5, 2.0])
    ).kept["trials"]  # fmt: skip
    assert one.pulls
    assert not several.pulls
    for scores in (one, several):
        expected = sweep(scores, y, WEIGHT, 20)
        mixed = sweep(scores, y, WEIGHT, 20, np.random.default_rng(5).permutation)
        merged = scores.start()
        for part in (mixed, expected):
            merged.merge(part.copy())
        for name in ("loss", "wrong", "slope", "slope_sum"):
            assert getattr(mixed, name).tobytes() == getattr(expected, name).tobytes(), name
            np.testing.assert_array_equal(getattr(merged, name), 2 * getattr(expected, name))
        assert expected.loss.min() > 0
        assert scores is several or np.abs(expected.slope).max() > 0


@pytest.mark.parametrize("c", [2, 3])
def test_alpha_and_sharpness_are_the_best_of_those_tried(c):
    """Against the dense loss of every alpha, minimised in k by scipy; a given alpha stays."""
    from scipy.optimize import minimize_scalar

    y = classes(c)
    _, program = setting(c, weight=WEIGHT)
    near, factors = float(np.log(0.5 / 64)), np.array([0.03, 1.0, 300.0])
    sums = sweep(program, y, WEIGHT)

    def choose(alpha):
        tried, kept = trials(
            sums, program=program, fit_intercept=True, alpha=alpha, near=near, factors=factors
        )  # fmt: skip
        return chosen(sweep(kept["trials"], y, WEIGHT), log_lams=tried, sharpness=SHARPNESS)

    def best(alpha):
        def along(log_k):
            return dense(
                draw_map("paired"), np.zeros(M), np.arange(M), y, c, WEIGHT, alpha, True, float(np.exp(log_k))
            )[1]

        found = minimize_scalar(along, bounds=(np.log(0.3), np.log(60)), method="bounded")
        return found.fun, float(np.exp(found.x))

    at, expected = choose(None), [best(0.5 * factor) for factor in factors]
    i = int(np.argmin([value for value, _ in expected]))
    assert np.exp(at.log_lam) * 64 == pytest.approx(0.5 * factors[i])
    assert at.sharpness == pytest.approx(expected[i][1], rel=0.05)
    given = choose(2.0)
    assert np.exp(given.log_lam) * 64 == pytest.approx(2.0)
    assert given.sharpness == pytest.approx(best(2.0)[1], rel=0.05)


def test_an_iteration_has_its_own_frequencies():
    """By seed and number; sigma, form and sizes stay."""
    problem, _ = setting(3, "odd")
    x = np.array([0.2, -0.1, 0.3, 0.1])
    first, again, second = problem.map(x, 0), problem.map(x, 0), problem.map(x, 1)
    np.testing.assert_array_equal(first.unit, again.unit)
    assert not np.isin(first.unit, second.unit).any()
    assert first.phase != second.phase
    assert not np.isin(first.unit, replace(problem, seed=8).map(x, 0).unit).any()
    np.testing.assert_array_equal(second.sigma, problem.parameters.map(x).sigma)
    assert second.unit.shape == (M, D)


@pytest.mark.parametrize("factors", [FIRST, LATER, LAST], ids=["first", "later", "last"])
def test_alphas_are_tried_at_even_steps(factors):
    """Multiples of the one so far, as far below as above, each the same factor from the next."""
    steps = np.diff(np.log(factors))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-12)
    np.testing.assert_allclose(factors * factors[::-1], 1.0, rtol=1e-12)
    assert steps[0] > 0.5


def test_constants():
    """k from 0.3 to 60, and multiples of alpha."""
    np.testing.assert_allclose(SHARPNESS, 0.3 * 200 ** (np.arange(12) / 11))
    np.testing.assert_allclose(FIRST, [0.1, 10**-0.5, 1, 10**0.5, 10])
    assert LATER.tolist() == [0.5, 1, 2]
    assert LAST.tolist() == [0.25, 0.5, 1, 2, 4]


@pytest.mark.parametrize("middle", [1.7, 2.0, 2.4])
def test_the_lowest_point_of_a_parabola(middle):
    """Of three points of one; at an end, the lowest of the points themselves."""
    at = np.array([1.0, 1.5, 2.0, 2.5, 3.0])
    low, value = _lowest(at, 5 + 3 * (at - middle) ** 2)
    assert low == pytest.approx(middle)
    assert value == pytest.approx(5)
    assert _lowest(at, at) == (1.0, 1.0)
    assert _lowest(at, -at) == (3.0, -3.0)
    assert _lowest(at, np.array([1.0, 0.0, 0.0, 0.0, 1.0])) == (pytest.approx(1.75), pytest.approx(-0.125))


def test_the_best_of_several_alphas():
    """The alpha whose own best k has the least loss over all folds."""
    k = np.exp(np.arange(4.0))
    losses = np.array([[[9.0, 4, 5, 9], [9, 3, 3, 9], [9, 8, 7, 6]], [[1.0, 2, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]])
    none = np.zeros(0)
    found = chosen(LossSums(losses, none, none, none), log_lams=np.array([-1.0, 0.0, 1.0]), sharpness=k)
    assert found.log_lam == 0.0
    assert found.sharpness == pytest.approx(np.exp(1.5))
    with pytest.raises(ValueError, match="row 3 is bad"):
        chosen(LossSums(losses, none, none, none, (3, "row 3 is bad")), log_lams=np.zeros(3), sharpness=k)


@pytest.mark.parametrize("x", [[0.0, 0.0, 0.0, 0.0], [0.3, -0.1, 0.4, 0.2]])
def test_the_prior_on_the_spread_of_sigma(x):
    """sum (x - mean)^2 / 2 w in the user's units of weight, and its gradient."""
    problem, _ = setting(2, weight=WEIGHT)
    x, none = np.array(x), np.empty(0)
    value, gradient = objective(problem, x, PullbackSums({"sigma": np.zeros(4)}, none), Found(0.5, 0.1, 7.0))
    total = 7.0 * 64
    assert value == pytest.approx(0.5 + ((x - x.mean()) ** 2).sum() / 2 / total)
    np.testing.assert_allclose(gradient, (x - x.mean()) / total, atol=1e-15)
    slope = objective(problem, x, PullbackSums({"sigma": np.ones(4)}, none), Found(0.5, 0.1, 7.0))[1]
    np.testing.assert_allclose(slope - gradient, [0.4, 0.7, 0.5, 0.9] * np.exp(x) / 7.0)


def test_a_step():
    """One step of Adam from the gradient; the next pass has the frequencies of its own number."""
    problem, program = setting(2)
    adam = begin(np.zeros(4), *problem.parameters.box())
    at, found = Chosen(-1.0, 3.0), Found(0.5, 0.1, 7.0)
    sums = PullbackSums({"sigma": np.array([1.0, -2.0, 3.0, 1.0])}, np.empty(0))
    told, kept = advance(sums, problem=problem, program=program, search=Search(adam), found=found, at=at)
    value, gradient = objective(problem, np.zeros(4), sums, found)
    expected = stepped(adam, gradient, 40)
    np.testing.assert_array_equal(kept["search"].adam.x, expected.x)
    assert kept["search"][1:] == (-1.0, 3.0)
    assert (told.objective, told.error, told.wrong, told.log_lam) == (value, 0.5, 0.1, -1.0)
    assert told.gradient_norm == np.abs(gradient).max()
    np.testing.assert_array_equal(told.sigma, [0.4, 0.7, 0.5, 0.9])
    following = kept["program"].features.map
    np.testing.assert_allclose(following.sigma, np.array([0.4, 0.7, 0.5, 0.9]) * np.exp(expected.x))
    np.testing.assert_array_equal(following.unit, problem.map(expected.x, 1).unit)
    sums.refusal = (3, "row 3 is bad")
    with pytest.raises(ValueError, match="row 3 is bad"):
        advance(sums, problem=problem, program=program, search=Search(adam), found=found, at=at)


def test_alphas_that_are_tried():
    """One that is given, in units of weight; else multiples of the one named, none below the floor."""
    y = classes(2)
    _, program = setting(2, weight=WEIGHT)
    sums = sweep(program, y, WEIGHT)
    told = trials(sums, program=program, fit_intercept=True, alpha=32.0, near=None, factors=LATER).told
    np.testing.assert_allclose(told, [np.log(0.5)])
    told = trials(sums, program=program, fit_intercept=True, alpha=None, near=1.5, factors=LATER).told
    np.testing.assert_allclose(told, 1.5 + np.log([0.5, 1, 2]))
    systems = systems_of(sums, CV, program.features.map.scale, program.targets, True)
    told = trials(sums, program=program, fit_intercept=True, alpha=None, near=-60.0, factors=LATER).told
    np.testing.assert_allclose(told, [np.log(least_alpha(systems))])
    best = best_alpha(systems, CV, program.targets.share, None, None).at
    told, kept = trials(sums, program=program, fit_intercept=True, alpha=None, near=None, factors=LATER)
    np.testing.assert_allclose(told, best + np.log([0.5, 1, 2]))
    assert [loss.sharpness for loss in kept["trials"].losses] == SHARPNESS.tolist()


def test_a_search_through_arrays():
    """What a checkpoint keeps of it, to the last bit."""
    adam = begin(np.array([0.3, -0.2]), np.full(2, -9.0), np.full(2, 9.0))
    for slope in (1.0, -2.0, 0.5):
        adam = stepped(adam, np.array([slope, 1.0]), 4)
    search = Search(adam, -1.25, 3.5)
    tree, arrays = pack(search)
    again = unpack(json.loads(json.dumps(tree)), {name: values for name, (_, values) in arrays.items()}, Search)
    for one, other in zip((*adam, *search[1:]), (*again.adam, *again[1:]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (again.adam.iteration, again.adam.counted) == (3, 1)
    assert again.adam.recounted().counted == 0
    assert not again.adam.recounted().total.any()
    assert all(len(axes) == values.ndim for axes, values in arrays.values())
