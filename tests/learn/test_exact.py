"""Parts of learning an exact kernel: gradients by differences, rows of the first stage, errors by hand."""

from __future__ import annotations

from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge

from dkl.engine import interrupt
from dkl.engine.blocks import Rows
from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress, listening
from dkl.engine.tables import Table
from dkl.features.fourier import FourierMap
from dkl.kernels import KERNELS
from dkl.learn import exact, exact_problem
from dkl.learn.exact import ExactBandwidth, ExactState, fold_scores, solve_exact
from dkl.learn.exact_problem import ExactProblem, in_memory, rows_of, some_rows
from dkl.learn.iterate import iterate
from dkl.learn.model import DualScores
from dkl.learn.objectives import CV, JOINT, OBJECTIVES
from dkl.learn.parameters import Scales
from dkl.learn.run import Limits, Run
from dkl.solvers.lbfgs import begin, moved

RNG = np.random.default_rng(0)
N = 60
T = RNG.normal(size=(N, 3))
Y = np.column_stack([np.sin(T[:, 0]) + 0.1 * RNG.normal(size=N), T[:, 1] * T[:, 2]])
WEIGHT, FOLD = RNG.gamma(2, size=N), np.arange(N) % 3
BASE = FourierMap(KERNELS["gaussian"], np.empty((3, 0)), np.full(3, 0.5), np.empty(0), 1.0, "paired")


def problem_of(objective="cv", alpha=None, is_class=False, Y=Y, **penalties):
    rows = rows_of(OBJECTIVES[objective], T, Y, WEIGHT, FOLD, 3)
    return ExactProblem(Scales(BASE, np.arange(3), **penalties), rows, True, alpha, 2.0, is_class)


@pytest.mark.parametrize("penalties", [{}, {"l2": 0.1}, {"l1": 0.05, "l2": 0.1}], ids=str)
@pytest.mark.parametrize("alpha", [None, 0.3])
def test_gradient(alpha, penalties):
    """In the coordinates of sigma and in log lam, with penalties in units of the variance."""
    problem, step = problem_of(alpha=alpha, **penalties), 1e-5
    x = np.array([0.3, 0.7, 0.9, -0.4][: 3 + (alpha is None)])
    found = problem.value_at(x)
    bare = problem_of(alpha=alpha).value_at(np.append(np.log(x[:3]) if "l1" in penalties else x[:3], x[3:]))
    u = x[:3] if "l1" in penalties else np.exp(x[:3])
    penalty = penalties.get("l1", 0.0) * u.sum() + penalties.get("l2", 0.0) / 2 * (u**2).sum()
    assert found.value == pytest.approx(bare.value + 2 * penalty, rel=1e-9)
    moves = np.eye(len(x)) * step
    expected = [(problem.value_at(x + m).value - problem.value_at(x - m).value) / (2 * step) for m in moves]
    np.testing.assert_allclose(problem.gradient_at(x, found), expected, rtol=1e-4, atol=1e-7)


def test_sigma_and_lam_of_a_point():
    """The last coordinate is log lam, unless alpha is given."""
    at, lam = problem_of().split(np.array([1.0, 2.0, 3.0, np.log(5.0)]))
    assert at.tolist() == [1, 2, 3]
    assert lam == pytest.approx(5)
    at, lam = problem_of(alpha=7.0).split(np.array([1.0, 2.0, 3.0]))
    assert (at.tolist(), lam) == ([1, 2, 3], 7.0)
    _, sigma, lam, K, _ = problem_of().value_at(np.array([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_allclose(sigma, 0.5 * np.exp([0.1, 0.2, 0.3]))
    assert lam == pytest.approx(np.exp(0.4))
    assert K.shape == (N, N)


def test_where_it_begins():
    """At a multiple of sigma with the best lam there, which stays from a millionth of the weight to all of it."""
    problem, total = problem_of(), WEIGHT.sum()
    state = problem.begin(2.0)
    np.testing.assert_allclose(state.x[:3], np.log(2.0))
    np.testing.assert_allclose(state.lower, [*np.log([1e-4] * 3), np.log(1e-6 * total)])
    np.testing.assert_allclose(state.upper, [*np.log([1e4] * 3), np.log(total)])
    here = problem.value_at(state.x).value
    for away in (-0.5, 0.5):
        assert problem.value_at(state.x + np.array([0, 0, 0, away])).value > here
    given = problem_of(alpha=1.0).begin(2.0)
    assert (len(given.x), len(given.lower)) == (3, 3)
    again = problem.resume(state._replace(x=np.array([99.0, 0.0, 0.0, 99.0]), steps=np.ones((1, 4))))
    np.testing.assert_allclose(again.x, [np.log(1e4), 0, 0, np.log(total)])
    assert again.steps.shape == (1, 4)
    assert problem_of(alpha=1.0).resume(given).x.shape == (3,)


@pytest.mark.parametrize(("few", "count"), [(31, 60), (30, 30), (10, 11), (3, 3)])
def test_rows_of_the_first_stage(few, count, monkeypatch):
    """The same share of every fold, rounded up; all, if few are more than half."""
    monkeypatch.setattr(exact_problem, "FEW_ROWS", few)
    fold = np.repeat([0, 1, 2], [30, 20, 10])
    rows = rows_of(CV, T, Y, WEIGHT, fold, 3)
    found = some_rows(rows, 4)
    assert (found is rows) == (count == 60)
    parts = {60: [30, 20, 10], 30: [15, 10, 5], 11: [5, 4, 2], 3: [2, 1, 1]}[count]
    assert np.bincount(found.fold).tolist() == parts
    place = [int(np.flatnonzero((row == T).all(axis=1))[0]) for row in found.T]
    assert place == sorted(set(place))
    np.testing.assert_array_equal(found.Y, Y[place])
    np.testing.assert_array_equal(found.weight, WEIGHT[place])
    if count != 60:
        assert place != [int(np.flatnonzero((row == T).all(axis=1))[0]) for row in some_rows(rows, 5).T]


def test_few_rows_are_two_thousand():
    """A stage of its own from twice as many on."""
    assert exact_problem.FEW_ROWS == 2000


def test_scores_of_folds():
    """Minus the weighted mean squared error of KernelRidge without each fold, mean over the outputs."""
    rows = rows_of(CV, T, Y, WEIGHT, FOLD, 3)
    found = fold_scores(KERNELS["gaussian"], np.full(3, 0.5), rows, np.array([0.1, 2.0]), False)
    for i, alpha in enumerate((0.1, 2.0)):
        for k in range(3):
            train = k != FOLD
            model = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.125).fit(T[train], Y[train], WEIGHT[train])
            error = ((model.predict(T[~train]) - Y[~train]) ** 2).mean(axis=1)
            assert found[i, k] == pytest.approx(-np.average(error, weights=WEIGHT[~train]), rel=1e-8)


def test_weights_and_scores_of_rows():
    """k(x, X) a + b0, of dense rows and of sparse ones."""
    dual = solve_exact(KERNELS["gaussian"], np.full(3, 0.5), T, Y, WEIGHT, 0.7, False)
    scores = DualScores(KERNELS["gaussian"], 1.0, np.full(3, 0.5), T, dual.coef, dual.intercept + 2.0)
    model = KernelRidge(alpha=0.7, kernel="rbf", gamma=0.125).fit(T, Y, WEIGHT)
    new = RNG.normal(size=(5, 3))
    np.testing.assert_allclose(scores(new), model.predict(new) + 2.0, rtol=1e-8)
    np.testing.assert_allclose(scores(sp.csr_array(new)), model.predict(new) + 2.0, rtol=1e-8)


def test_in_memory():
    """Dask, sparse and dense rows as one dense array; codes as the names they stand for."""
    for kind, array in (("dask", da.from_array(T, chunks=7)), ("memory", T), ("memory", sp.csr_array(T))):
        found = in_memory(Table(kind, array))
        assert (found.kind, type(found.array)) == ("memory", np.ndarray)
        np.testing.assert_array_equal(found.array, T)
    named = in_memory(Table("memory", np.array([1, 0, 1]), names=np.array(["a", "b"])))
    assert named.array.tolist() == ["b", "a", "b"]


@pytest.mark.parametrize("c", [2, 3])
def test_share_of_wrong_rows(c):
    """By weight, of the rows that are tested."""
    code = np.array([0, 1, 1, 0, 1, c - 1])
    Y = 2.0 * np.eye(c)[code] - 1
    scores = 2.0 * np.eye(c)[[0, 0, 1, 1, 1, 0]] - 1
    scores[4] = np.nan
    if c == 2:
        Y, scores = Y[:, 1:], scores[:, 1:]
    weight = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    rows = rows_of(JOINT, T[:6], Y, weight, np.zeros(6, int), 1)
    assert exact._wrong(rows, scores) == pytest.approx((2 + 8 + 32) / 47)


def learned(problem, starts=(1.0,), tol=1e-4, max_iter=50, max_time=None):
    result, history, reason = iterate(run_of(tol, max_iter, max_time), ExactBandwidth(problem, tuple(starts), 4))
    return SimpleNamespace(**vars(result), history=history, reason=reason)


def run_of(tol=1e-4, max_iter=50, max_time=None):
    rows = Rows([Table("memory", T)], ["X"])
    return Run(Embedded(), rows, Progress(0), Limits(max_iter, tol, max_time))


def test_learning_and_its_history():
    """Falls from a start to a minimum, counts its evaluations, and tells every iteration."""
    events = []
    with listening(events.append):
        found = learned(problem_of("cv"))
    columns = found.history.columns
    assert found.reason == "converged"
    assert (np.diff(columns["objective"]) < 0).all()
    assert columns["rows"] == [N] * len(found.history)
    assert columns["stage"] == columns["start"] == [0] * len(found.history)
    assert columns["passes"][0] == 1
    assert (np.diff(columns["passes"]) >= 1).all()
    assert np.isnan(columns["error_rate"]).all()
    assert (found.share, found.alpha) == (1.0, columns["alpha"][-1])
    assert [event["number"] for event in events] == list(range(len(found.history)))
    np.testing.assert_allclose(columns["sigma"][-1], 0.5 * np.exp(found.x))
    problem = problem_of("cv")
    assert problem.value_at(np.append(found.x, np.log(found.alpha))).value == pytest.approx(columns["objective"][-1])


def test_limits_of_learning():
    """Iterations and seconds end it, and say so."""
    assert learned(problem_of(), max_iter=2).reason == "max_iter"
    assert len(learned(problem_of(), max_iter=2).history) == 3
    late = learned(problem_of(), starts=(1.0, 3.0), max_time=0.0)
    assert (late.reason, len(late.history)) == ("max_time", 1)


def test_starts_on_few_rows_then_the_best_on_all(monkeypatch):
    """The best of the starts, with its number, is taken up again on all rows; its tolerance is the one asked for."""
    monkeypatch.setattr(exact_problem, "FEW_ROWS", 20)
    found = learned(problem_of(), starts=(30.0, 1.0))
    stage, start, rows = (np.array(found.history.columns[name]) for name in ("stage", "start", "rows"))
    assert set(zip(stage.tolist(), start.tolist(), strict=True)) == {(0, 0), (0, 1), (1, 1)}
    assert set(rows[stage == 0]) == {21}
    assert set(rows[stage == 1]) == {N}
    assert found.share == 1.0
    both = learned(problem_of(), starts=(30.0, 1.0), max_time=0.0)
    assert (both.reason, both.share, len(both.history)) == ("max_time", 21 / N, 1)


def test_an_interruption_ends_all_starts(monkeypatch):
    """After the iteration under way; nothing more is learned."""
    calls = []

    def check():
        calls.append(len(calls))
        if len(calls) > 1:
            raise interrupt.Interruption

    monkeypatch.setattr(exact, "check", check)
    found = learned(problem_of(), starts=(1.0, 2.0))
    assert (found.reason, len(found.history)) == ("interrupted", 1)
    assert found.history.columns["start"] == [0]


@pytest.mark.parametrize("worse", [False, True])
def test_what_has_vanished_is_switched_off(worse):
    """Unless the objective is worse for it by more than the tolerance."""
    problem, run = problem_of(alpha=0.5, l1=0.01), run_of(1e-2)
    method = ExactBandwidth(problem, (1.0,), 4)
    x = np.array([1.0, 1.0, 0.004])
    state = moved(begin(x, *problem.parameters.box()), problem.value_at(x).value, np.ones(3))
    state = state._replace(decrease=0.125)
    if worse:
        state = state._replace(value=state.value * 0.9)
    end, row = method._without_the_vanished(run, ExactState(stage=1, start=2, ends=(state,)))
    assert run.meter.passes == 1
    if worse:
        assert end is state
        assert row is None
        return
    assert end.x.tolist() == [1.0, 1.0, 0.0]
    assert end.decrease == 0.125
    assert (row.values["stage"], row.values["start"], row.rows) == (1, 2, N)
    kept, row = method._without_the_vanished(run, ExactState(stage=1, start=2, ends=(end,)))
    assert kept is end
    assert row is None
