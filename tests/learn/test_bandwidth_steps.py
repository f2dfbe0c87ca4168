"""Which alphas are sought: from 1e-6 of the largest eigenvalue of all rows, whatever share of them a system holds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from dkl.learn.alpha import alpha_of, best_alpha, least_alpha
from dkl.learn.bandwidth_steps import Problem, advance, judge
from dkl.learn.objectives import OBJECTIVES, Unweighted, systems_of
from dkl.learn.parameters import Frequencies, Scales
from dkl.learn.search import Best, Search
from dkl.prepare.draw import build_map
from dkl.solvers.hypergradient import gcv_side, held_out_side, joint_side, make_system
from dkl.solvers.lbfgs import begin, moved
from dkl.solvers.ridge import Moments
from dkl.sums.folds import fold_of
from dkl.sums.gram import GramProgram
from dkl.sums.pullback import PullbackSums
from dkl.sums.spread import spread_of
from dkl.sums.targets import ValueMoments, value_targets

RNG = np.random.default_rng(0)
PSI, Y = RNG.standard_normal((40, 6)) + 0.5, RNG.standard_normal((40, 2))


def moments(times):
    """Sums of the rows, each so many times."""
    sums = Moments(len(PSI), PSI.T @ PSI, PSI.T @ Y, PSI.sum(axis=0), Y.sum(axis=0), (Y * Y).sum(axis=0))
    return Moments(*(times * value for value in sums))


@pytest.mark.parametrize(("train", "test"), [(1, None), (3, 1), (1, 1), (4, 9)])
def test_the_least_alpha_is_that_of_all_rows(train, test):
    """Where the rows held out are like the others, the floor is 1e-6 of the eigenvalue of both together."""
    every = train + (test or 0)
    system = make_system(moments(train), None if test is None else moments(test), 40.0 * train, True)
    expected = 1e-6 * np.linalg.eigvalsh(every * PSI.T @ PSI)[-1]
    assert least_alpha([system]) == pytest.approx(expected, rel=1e-3)
    assert least_alpha([make_system(moments(0)._replace(weight=1.0), None, 40.0, True)]) == pytest.approx(1e-6)


# from the sums of rows: systems, alpha, the judgement of a trial and the step after it

N, K, SEED = 90, 3, 5
X = RNG.normal(size=(N, 3))
SCORE = np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.3 * RNG.normal(size=(N, 2))
MAP = build_map(
    {"kernel": "gaussian", "skew": 1.0, "n_terms": 5, "frequencies": "iid", "form": "paired", "n_components": 8}
    | {"groups": None, "sigma": 0.6},
    3, {}, np.random.default_rng(0), None,
)[0]  # fmt: skip
FOLD = fold_of(0, N, K, SEED)


def sums_of(targets, folds=K, weight=None, y=SCORE, held=None, features=MAP):
    program = GramProgram(features.at(np.float64), targets, N, folds=folds, seed=SEED, held=held)
    sums, space = program.start(), program.workspace()
    program.add(sums, space, 0, 0, (X, y, weight, None))
    return program, sums


def values(scale=1.0):
    y = SCORE * scale
    return value_targets(ValueMoments(N, spread_of(y, np.ones(N)), np.abs(y).sum(axis=0), (y * y).sum(axis=0)), True)


def problem_of(targets, objective="cv", alpha=None, tol=1e-4, unseen=False, parameters=None):
    parameters = parameters or Scales(MAP, np.zeros(3, int))
    size = np.sqrt((X * X).sum(axis=0))
    return Problem(OBJECTIVES[objective], parameters, targets, True, alpha, size, tol, unseen=unseen)


@pytest.mark.parametrize("unseen", [False, True])
@pytest.mark.parametrize("objective", ["validation", "cv", "joint", "gcv"])
def test_which_folds_train_and_test(objective, unseen):
    """Weights and rows of the folds; the last one belongs to none of the systems if it is set aside."""
    targets = values()
    _, sums = sums_of(targets)
    counts = np.bincount(FOLD)
    systems = systems_of(sums, OBJECTIVES[objective], MAP.scale, targets, True, unseen)
    folds = range(K - unseen)
    expected = {
        "validation": [([0], [1])],
        "cv": [([j for j in folds if j != k], [k]) for k in folds],
    }.get(objective, [(list(folds), None)])
    assert len(systems) == len(expected)
    for system, (train, test) in zip(systems, expected, strict=True):
        assert system.train.weight == counts[train].sum()
        assert system.rows == counts[train].sum()
        assert system.fit_intercept
        assert (system.test is None) == (test is None)
        if test is not None:
            assert system.test.weight == counts[test].sum()


@pytest.mark.parametrize(
    ("objective", "kept", "sentence"),
    [
        ("cv", FOLD != 1, "fold 1 of 3, or the others, have no weight; use more rows, or other folds"),
        ("cv", FOLD == 0, "fold 0 of 3, or the others, have no weight"),
        ("validation", FOLD != 1, "the rows held out, or the others, have no weight"),
        ("validation", FOLD != 0, "the rows held out, or the others, have no weight"),
        ("gcv", FOLD < 0, "sample_weight=0 for every row, so their sum is zero; give some rows a positive weight"),
    ],
)
def test_folds_without_weight(objective, kept, sentence):
    """Named, with what to do."""
    targets = values()
    _, sums = sums_of(targets, weight=kept.astype(float))
    with pytest.raises(Unweighted, match=sentence):
        systems_of(sums, OBJECTIVES[objective], MAP.scale, targets, True)


def test_where_alpha_is_sought():
    """From the least alpha to the largest eigenvalue of the centred features; a given one is taken as it is."""
    targets = values()
    _, sums = sums_of(targets)
    systems = systems_of(sums, OBJECTIVES["cv"], MAP.scale, targets, True)
    found = best_alpha(systems, OBJECTIVES["cv"], targets.share, 0.25, None)
    assert found.at == pytest.approx(np.log(0.25))
    assert len(found.what) == 3
    assert found.value == pytest.approx(np.mean([side.value for side in found.what]))
    assert found.slope == pytest.approx(0.25 * np.mean([side.slope for side in found.what]))
    noise = np.random.default_rng(1).normal(size=(N, 2)) * 10  # nothing to learn: the largest alpha is best
    _, sums = sums_of(targets, y=noise)
    systems = systems_of(sums, OBJECTIVES["cv"], MAP.scale, targets, True)
    top = np.linalg.eigvalsh(systems[0].inner.gram)[-1]
    assert best_alpha(systems, OBJECTIVES["cv"], targets.share, None, None).at == pytest.approx(np.log(top), abs=0.1)
    exact = MAP.at(np.float64).transform(X)[:, :2] * 10  # nothing but signal: the least is
    _, sums = sums_of(targets, y=exact)
    systems = systems_of(sums, OBJECTIVES["cv"], MAP.scale, targets, True)
    assert best_alpha(systems, OBJECTIVES["cv"], targets.share, None, None).at == pytest.approx(
        np.log(least_alpha(systems)), abs=1e-9
    )
    flat = [make_system(moments(0)._replace(weight=1.0), moments(0)._replace(weight=1.0), 40.0, True)]
    found = best_alpha(flat, OBJECTIVES["cv"], np.ones(2), None, None)
    assert np.log(2e-6) - 1e-9 <= found.at <= np.log(2e-3) + 1e-9


def test_units():
    """J is near one whatever y is; its penalties are in units of the variance of y."""
    parameters = Scales(MAP, np.zeros(3, int), l1=0.5, l2=0.25)
    for scale in (1.0, 1e6):
        targets = values(scale)
        problem = problem_of(targets, parameters=parameters)
        assert problem.unit == targets.unit.max() ** 2
        value, slope = problem.penalty(np.array([2.0]))
        variance = (SCORE * scale).var(axis=0).mean()
        assert value * problem.unit == pytest.approx(variance * (0.5 * 2 + 0.125 * 4))
        np.testing.assert_allclose(slope * problem.unit, variance * (0.5 + 0.25 * 2))
        assert alpha_of(np.log(3.0), targets) == pytest.approx(3 * targets.weight_unit)
    assert not problem.holds_alpha
    assert problem_of(targets, parameters=Frequencies(MAP)).holds_alpha
    assert not problem_of(targets, alpha=1.0, parameters=Frequencies(MAP)).holds_alpha


def judged_at(problem, program, sums, **fields):
    search = Search(begin(problem.parameters.begin(1.0), *problem.parameters.box()), **fields)
    return judge(sums, problem=problem, program=program, search=search), search


def test_the_first_judgement():
    """Accepted; J in units of y, alpha, the error without penalties, and the weights of the passes."""
    targets = values(1e3)
    program, sums = sums_of(targets, y=SCORE * 1e3)
    problem = problem_of(targets, parameters=Scales(MAP, np.zeros(3, int), l2=0.25))
    keep, _ = judged_at(problem, program, sums)
    search, (value, weight, tested) = keep.kept["search"], keep.kept["accepted"]
    assert keep.told.accepted
    assert not keep.told.stalled
    assert keep.told.value == pytest.approx(value * problem.unit)
    assert value == pytest.approx(search.error + problem.penalty(np.zeros(1))[0])
    assert search.log_lam == keep.told.log_lam
    assert np.isnan(search.unseen)
    assert weight == tested == N / targets.weight_unit
    assert keep.kept["pullback"].adjoint.gain.shape == (3, 6)


@pytest.mark.parametrize("unseen", [False, True])
def test_weights_of_a_validation(unseen):
    """Rows that test, and all that the objective knows of."""
    targets = values()
    program, sums = sums_of(targets)
    problem = problem_of(targets, "validation", 0.5, unseen=unseen)
    kept = judged_at(problem, program, sums)[0].kept
    counts = np.bincount(FOLD)
    assert kept["accepted"][1:] == (counts[: K - unseen].sum(), counts[1])
    train = kept["pullback"].adjoint.train
    assert train[:, 0].tolist() == [1, 0, 0 if unseen else 1]
    if not unseen:
        assert np.isnan(kept["search"].unseen)
        return
    Psi = MAP.at(np.float64).transform(X)
    own = Ridge(0.5).fit(Psi[FOLD < 2], SCORE[FOLD < 2])
    error = ((own.predict(Psi[FOLD == 2]) - SCORE[FOLD == 2]) ** 2).mean(axis=0)
    assert kept["search"].unseen * problem.unit == pytest.approx(error.mean(), rel=1e-9)


def test_unseen_rows_without_weight_say_nothing():
    """NaN, and no refusal."""
    targets = values()
    program, sums = sums_of(targets, weight=(FOLD != 2).astype(float))
    kept = judged_at(problem_of(targets, unseen=True), program, sums)[0].kept
    assert np.isnan(kept["search"].unseen)


def test_alpha_that_is_held():
    """`stretch` times the best one at the start, and then the same at every trial."""
    targets = values()
    program, sums = sums_of(targets)
    problem = problem_of(targets, parameters=Frequencies(MAP))
    best = judged_at(problem, program, sums)[0].told.log_lam
    keep, _ = judged_at(problem, program, sums, stretch=4.0)
    assert keep.told.log_lam == pytest.approx(best + np.log(4.0))
    assert judged_at(problem, program, sums, log_lam=-1.5, stretch=4.0)[0].told.log_lam == pytest.approx(-1.5)
    given = judged_at(problem_of(targets, alpha=0.5, parameters=Frequencies(MAP)), program, sums)[0]
    assert given.told.log_lam == pytest.approx(np.log(0.5 / targets.weight_unit))


def test_a_trial_that_is_not_better():
    """A shorter step with its own map, and no second pass."""
    targets = values()
    program, sums = sums_of(targets)
    problem = problem_of(targets)
    descent = moved(begin(np.zeros(1), *problem.parameters.box()), 1e-9, np.ones(1))
    keep = judge(sums, problem=problem, program=program, search=Search(descent))
    assert not keep.told.accepted
    assert set(keep.kept) == {"search", "program"}
    shorter = keep.kept["search"].descent.trial
    assert -0.3 < shorter[0] < 0
    np.testing.assert_allclose(keep.kept["program"].features.map.sigma, np.full(3, 0.6 * np.exp(shorter[0])))


def test_refused_rows_are_raised():
    """With the sentence of either pass."""
    targets = values()
    program, sums = sums_of(targets)
    sums.refusal = (7, "row 7 is bad")
    with pytest.raises(ValueError, match="row 7 is bad"):
        judged_at(problem_of(targets), program, sums)


def advanced(problem, slope, **fields):
    """The move after a trial of value 2 at x = 0 whose objective has that slope in sigma."""
    program, _ = sums_of(problem.targets)
    descent = begin(problem.parameters.begin(1.0), *problem.parameters.box())
    search = Search(fields.pop("descent", descent), 0.5, 1.5, **fields)
    sums = PullbackSums({"sigma": np.full(3, slope)}, np.array([6.0]))
    return advance(sums, problem=problem, program=program, search=search, accepted=(2.0, 10.0, 24.0))


def test_the_move_after_a_gradient():
    """Everything in units of y; the gradient per unit of weight, with that of the penalties."""
    problem = problem_of(values(1e3), parameters=Scales(MAP, np.zeros(3, int), l2=0.25))
    keep = advanced(problem, 5.0)
    move, search, unit = keep.told, keep.kept["search"], problem.unit
    slope = 3 * 0.6 * 5.0 / 10.0 + problem.penalty(np.zeros(1))[1][0]
    assert search.descent.gradient[0] == pytest.approx(slope)
    assert (move.objective, move.error, move.wrong) == (2 * unit, 1.5 * unit, 0.25)
    assert move.gradient_norm == pytest.approx(unit * slope)
    assert (move.log_lam, move.ended, search.small) == (0.5, "", 0)
    np.testing.assert_allclose(move.sigma, 0.6)
    np.testing.assert_allclose(keep.kept["program"].features.map.sigma, 0.6 * np.exp(-0.3))
    assert np.isnan(move.unseen)


def test_when_a_descent_ends():
    """Where it converges; five iterations after the best unseen error; small decreases are counted."""
    problem = problem_of(values(), tol=1e-2)
    assert advanced(problem, 0.0).told.ended == "converged"
    best = Best(np.zeros(1), 0.1, 0.1, 1.0, 1.0, 0.0)
    for since, ended in ((3, ""), (4, "early_stopping")):
        keep = advanced(problem, 5.0, unseen=0.2, best=best, since=since)
        assert (keep.told.ended, keep.kept["search"].since) == (ended, since + 1)
        assert keep.told.unseen == pytest.approx(0.2 * problem.unit)
    begun = moved(begin(np.zeros(1), *problem.parameters.box()), 2.01, np.ones(1))
    for before, small in ((2.019, 1), (2.03, 0)):
        keep = advanced(problem, 5.0, descent=begun._replace(value=before))
        assert keep.kept["search"].small == small
    keep = advanced(problem, 5.0, descent=begun._replace(value=2.019), small=1)
    assert (keep.kept["search"].small, keep.told.ended) == (2, "converged")


def test_l1_has_no_best_point_on_its_way():
    """Exact zeros come at the end of its descent."""
    linear = problem_of(values(), parameters=Scales(MAP, np.zeros(3, int), l1=0.1))
    assert advanced(linear, 5.0, unseen=0.2).kept["search"].best is None
    assert advanced(problem_of(values()), 5.0, unseen=0.2).kept["search"].best.merit == 0.2


def test_which_side_is_whose():
    """Squared errors on rows held out, the training objective, generalised cross-validation."""
    sides = {name: each.side for name, each in OBJECTIVES.items()}
    assert sides == {"validation": held_out_side, "cv": held_out_side, "joint": joint_side, "gcv": gcv_side}
    assert {name for name, each in OBJECTIVES.items() if each.holds_out} == {"validation", "cv"}
    assert [OBJECTIVES[name].systems(4) for name in ("validation", "cv", "joint", "gcv")] == [1, 4, 1, 1]
