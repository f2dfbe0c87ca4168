"""Column generation: planted features are found, objectives fall, near copies are left out, idle groups are dropped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dkl
from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.features.groups import carried, join, take
from dkl.features.waves import WaveMap
from dkl.kernels import KERNELS
from dkl.learn import columns
from dkl.learn.columns import Columns
from dkl.learn.columns_state import Problem, Settings
from dkl.learn.iterate import iterate
from dkl.learn.masters import SquareMaster
from dkl.learn.prices import likeness, priced
from dkl.learn.run import Limits, Run
from dkl.learn.sparsity import Sparsity
from dkl.losses import Square
from dkl.prepare.candidates import Bandwidths, WaveSource, read_bandwidths
from dkl.prepare.folds import Split
from dkl.prepare.prepared import Prepared
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets
from tests.sums.test_pricing import dense as features_of

N, M = 600, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, M))
PLANTED = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0]]).T
CLEAN = np.cos(X @ PLANTED[:, 0]) + 0.5 * np.sin(X @ PLANTED[:, 1])
Y = CLEAN + 0.05 * RNG.normal(size=N)


def waves(unit, form="paired", phase=()):
    """A map of these frequencies."""
    return WaveMap(KERNELS["gaussian"], np.asarray(unit, float), np.ones(M), np.asarray(phase, float), 1.0, form)


def dense(features):
    """Its features of all rows."""
    return features_of(features, X)


class Listed:
    """A source of fixed frequencies, the same in every round."""

    families = 1

    def __init__(self, unit):
        self.unit, self.like = np.asarray(unit, float), waves(np.asarray(unit, float)[:, :1])

    def draw(self, rng, count):
        """All of them."""
        return waves(self.unit)

    def nearest(self, features):
        """Themselves."""
        return features


def learning(source, alpha, **options):
    """A run, and the method."""
    tables = [Table("memory", X), Table("memory", Y[:, None]), None, None]
    rows = Rows(tables, ["X", "y", "w", "cv"])
    targets = Targets(
        float(N), 1, shift=np.zeros(1), unit=np.ones(1), absolute=np.full(1, 3.0 * N), square=np.full(1, 9.0 * N)
    )  # fmt: skip
    data = Prepared(
        tables[0], rows, targets, source.like, np.zeros(M, int), 0, np.dtype(float), Split(), np.empty(0), None
    )
    settings = Settings(source, Square(), Sparsity(), SquareMaster(), alphas=np.atleast_1d(alpha), **options)
    run = Run(engine_for(False, "scheduler"), rows, Progress(0), Limits(40, 1e-3))
    return run, Columns(Problem(settings, data))


def test_planted_features_are_found():
    """With a few gradient steps, the two frequencies and no third one of any weight; the score is that of the truth."""
    model = dkl.InfiniteFeatureRegressor(max_features=10, improve=10, alpha=5.0, random_state=0, verbose=0).fit(X, Y)
    chosen = model.selected_
    weight, omega = np.asarray(chosen["weight"]), np.asarray(chosen["frequency"])
    for planted in PLANTED.T:
        assert min(np.linalg.norm(omega - planted[:, None], axis=0).min(),
                   np.linalg.norm(omega + planted[:, None], axis=0).min()) < 0.05  # fmt: skip
    assert weight[2:].sum() < 0.1 * weight[:2].sum()
    assert model.score(X, CLEAN) > 0.99


def test_fewer_features_are_needed_if_candidates_are_improved():
    """For the accuracy that twelve drawn ones have."""
    plain = dkl.InfiniteFeatureRegressor(max_features=12, alpha=1.0, random_state=0, verbose=0).fit(X, Y)
    better = dkl.InfiniteFeatureRegressor(max_features=4, improve=5, alpha=1.0, random_state=0, verbose=0).fit(X, Y)
    assert better.score(X, CLEAN) > plain.score(X, CLEAN)


@pytest.mark.parametrize("loss", ["square", "huber", "epsilon_insensitive"])
def test_the_objective_falls_in_every_round(loss):
    """And the last weights meet their certificate."""
    model = dkl.InfiniteFeatureRegressor(
        max_features=30, loss=loss, alpha=1.0, per_round=5, random_state=0, verbose=0
    ).fit(X, Y)  # fmt: skip
    objective = np.asarray(model.history_["objective"])
    assert (np.diff(objective) <= 1e-9 * objective[:-1]).all()
    assert objective[-1] < 0.7 * objective[0]
    assert model.certificate_["met"]
    assert model.certificate_["value"] == np.asarray(model.history_["certificate"])[-1]


def test_rounds_end_when_nothing_violates_and_that_is_the_least_point():
    """Of a source of twenty frequencies: the lasso of all of them, by another solver than the one of the rounds."""
    source = Listed(RNG.normal(size=(M, 20)))
    run, method = learning(source, 20.0, budget=100, per_round=3, solver_tol=1e-10)
    done = iterate(run, method)
    assert done.reason == "converged"
    final, lam = done.result.final, float(done.result.lams[0])
    features = method.problem.map_of(final.parameters)
    Phi, every = dense(features), dense(source.draw(None, 0))
    residual = Y[:, None] - Phi @ final.weights[:-1] - final.weights[-1]
    duals = np.linalg.norm((every.T @ residual).reshape(2, 20), axis=0) / N
    assert duals.max() <= lam * (1 + 1.1e-3)
    assert 1 < len(final.eta) < 20
    for j in range(len(final.eta)):
        own = features.column_group == j
        W = final.weights[:-1][own]
        np.testing.assert_allclose(Phi[:, own].T @ residual / N, lam * W / np.linalg.norm(W), atol=1e-8)
    assert (np.asarray(done.history.columns["violation"])[-4:-1] <= 1 + 1e-3).all()


def test_near_copies_are_left_out():
    """Of three frequencies that are almost the same, and one apart, a round adds two."""
    unit = PLANTED[:, [0, 0, 0, 1]] + np.array([[0, 0.01, -0.01, 0]] * M)
    run, method = learning(Listed(unit), 1.0, per_round=4)
    state = method.step(run, method.begin(run)).state
    assert len(state.point.eta) == 2
    program = GramProgram(waves(unit).at(float), method.problem.data.targets, N)
    sums = program.start()
    program.add(sums, program.workspace(), 0, 0, (X, Y[:, None], None, None))
    alike = likeness(sums, program=program, fit_intercept=True)
    Phi = dense(waves(unit))
    Phi = Phi - Phi.mean(axis=0)
    G = (Phi.T @ Phi).reshape(2, 4, 2, 4)
    size = np.sqrt(np.square(G).sum(axis=(0, 2)))
    np.testing.assert_allclose(alike, size / np.sqrt(np.outer(np.diag(size), np.diag(size))), atol=1e-9)
    assert (alike[:3, :3] > 0.99).all()
    assert alike[0, 3] < 0.3
    one = likeness_of_columns()
    np.testing.assert_allclose(one[0], np.abs(np.corrcoef(one[1].T)), atol=1e-9)


def likeness_of_columns():
    """Of single columns, and the columns."""
    features = waves(RNG.normal(size=(M, 3)), "phase", [0.1, 0.5, 0.8])
    _, method = learning(Listed(PLANTED), 1.0)
    program = GramProgram(features.at(float), method.problem.data.targets, N)
    sums = program.start()
    program.add(sums, program.workspace(), 0, 0, (X, Y[:, None], None, None))
    return likeness(sums, program=program, fit_intercept=True), dense(features)


def test_groups_without_weight_are_dropped(monkeypatch):
    """After three rounds; the weights of the others stay theirs."""
    run, method = learning(Listed(RNG.normal(size=(M, 12))), 60.0, per_round=12, empty=9)
    state, counts = method.begin(run), []
    monkeypatch.setattr(columns, "SHORTLIST", 1)
    for _ in range(7):
        state = method.step(run, state).state
        counts.append((len(state.point.eta), method._count(state.point)))
    have, used = counts[0]
    assert used < have
    assert counts[1][0] == have
    assert counts[2][0] == used
    assert counts[-1][0] == counts[-1][1]


def test_prices_are_the_slopes_of_the_objective():
    """A weight on a candidate lowers the loss at the rate of its violation, and not at all against its penalty."""
    run, method = learning(Listed(PLANTED), 1.0)
    state = method.begin(run)
    prices = priced(run, method.problem, state.point, waves(PLANTED), "prices")
    C = dense(waves(PLANTED)).T @ -Y[:, None] / N
    np.testing.assert_allclose(prices.violation, np.linalg.norm(C.reshape(2, 2), axis=0), rtol=1e-9)
    np.testing.assert_array_equal(prices.eta, 1.0)


def test_held_out_rows_choose_alpha_and_the_last_weights_are_of_all_rows():
    """The alpha of path_ with the least error; without them the last one."""
    options = {"max_features": 8, "improve": 3, "alpha": [30.0, 3.0, 0.01], "random_state": 0}
    options |= {"solver_tol": 1e-9, "verbose": 0}
    mask = np.arange(N) % 4 == 0
    model = dkl.InfiniteFeatureRegressor(**options, validation=mask).fit(X, Y)
    path = model.path_
    assert model.alpha_ == float(path["alpha"][int(np.argmin(path["error"].values))])
    coef, Phi = model.coef_[:, None], dense(model.features_)
    residual = Y[:, None] - Phi @ coef - model.intercept_
    assert abs(residual.mean()) < 1e-6
    groups = model.features_.column_group
    slope = np.sqrt(np.bincount(groups, np.square(Phi.T @ residual).sum(axis=1)))
    np.testing.assert_allclose(slope, model.alpha_, rtol=1e-2)
    last = dkl.InfiniteFeatureRegressor(**options, validation=None).fit(X, Y)
    assert last.alpha_ == 0.01
    assert "error" not in last.path_


def test_rounds_end_when_the_held_out_loss_falls_no_more():
    """Long before the limit: y is noise."""
    noise = np.random.default_rng(3).normal(size=N)
    model = dkl.InfiniteFeatureRegressor(
        max_features=400, per_round=5, improve=3, alpha=0.1, validation=0.3, random_state=0, verbose=0
    ).fit(X, noise)  # fmt: skip
    held = np.asarray(model.history_["held_out"])[:-1]
    assert 10 <= len(held) <= 20
    assert model.n_features_used_ <= 5 * (1 + int(held.argmin()))


def test_weights_follow_their_groups():
    """Through joining, taking and adding."""
    for form, phase in (("paired", ()), ("phase", (0.2, 0.7))):
        one = waves(PLANTED, form, phase)
        other = waves(2 * PLANTED, form, phase)
        both = join(one, other)
        weights = RNG.normal(size=(one.n_features + 1, 2))
        more = carried(weights, one, both, np.array([0, 1, -1, -1]))
        np.testing.assert_allclose(dense(both) @ more[:-1], dense(one) @ weights[:-1])
        some = take(both, np.array([3, 1]))
        less = carried(more, both, some, np.array([3, 1]))
        own = np.where(both.column_group == 1, 1.0, 0.0)[:, None] * more[:-1]
        np.testing.assert_allclose(dense(some) @ less[:-1], dense(both) @ own)
        np.testing.assert_array_equal(less[-1], weights[-1])
        np.testing.assert_array_equal(carried(weights[-1:], None, one, np.full(2, -1))[-1], weights[-1])


def test_bandwidths():
    """Factors of a range, of a list, or one; anything else is refused."""
    rng = np.random.default_rng(0)
    spread = np.linalg.norm(WaveSource(waves(PLANTED), read_bandwidths("0.01:100")).draw(rng, 2000).unit, axis=0)
    assert spread.min() < 0.02
    assert spread.max() > 100
    assert 0.5 < np.median(spread) < 3
    listed = WaveSource(waves(PLANTED), read_bandwidths([0.01, 100]))
    assert listed.families == 2
    far = np.linalg.norm(listed.draw(rng, 50).unit, axis=0)
    assert far[:50].max() < 0.1
    assert far[50:].min() > 1
    assert read_bandwidths(1) == Bandwidths((1.0,))
    assert read_bandwidths("0.5,2") == Bandwidths((0.5, 2.0))
    for wrong in ("1:0.1", "a", 0, -1.0, [], [1, 0], "1:2:3", None, True, "nan"):
        with pytest.raises(ValueError, match="bandwidths="):
            read_bandwidths(wrong)


def test_diverged_weights_are_refused():
    """In one sentence."""
    run, method = learning(Listed(PLANTED), 1.0)
    master = method.settings.master

    class Wrong(SquareMaster):
        def solve(self, *given):
            found = master.solve(*given)
            return found if given[3] > 1e9 else found._replace(value=float("nan"))

    wrong = Columns(replace(method.problem, settings=replace(method.settings, master=Wrong())))
    with pytest.raises(ValueError, match="objective of round 1 is nan: the weights diverged at alpha=1"):
        wrong.step(run, wrong.begin(run))
