"""Paths of groups by any loss, against proximal gradients on dense features and scikit-learn on the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dkl.cost import Sizes
from dkl.engine.interrupt import Interruption
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.learn import loss_path
from dkl.learn.group_path import fit_groups
from dkl.learn.group_weights import GroupOptions, GroupWeights
from dkl.learn.loss_path import group_loss_costs
from dkl.learn.run import Run
from dkl.losses import LOSSES, Softmax
from dkl.prepare.folds import Split
from dkl.store.checkpoint import Checkpoint
from dkl.sums.folds import fold_of
from tests.engine.conftest import cluster_of, embedded
from tests.learn.loss_data import CODES, NUMBERS, SEED, WEIGHT, D, N, dense_features, prepared
from tests.learn.path_data import ETA, FOLDS, GROUPS, Dense, numbers_or_codes, path_of

SHARED = [name for name in LOSSES if name != "square"]


def coefs(found: GroupWeights, outputs: int, shift: Any = 0.0) -> list[np.ndarray]:
    """Weights and intercepts (d + 1, c) of each alpha."""
    points = []
    for i in range(len(found.paths[0].alphas)):
        x = np.zeros((D + 1, outputs))
        for p, path in enumerate(found.paths):
            own = slice(p, p + 1) if len(found.paths) > 1 else slice(None)
            on = np.isin(GROUPS, path.active[i])
            part = x[:-1, own]
            part[on] = path.weights[i]
            x[-1, own] = path.intercepts[i] - np.broadcast_to(shift, (outputs,))[own]
        points.append(x)
    return points


@pytest.mark.parametrize("penalty", ["l21", "l1linf", "l2"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("name", SHARED)
def test_every_point_is_the_least_one(name: str, outputs: int, penalty: str) -> None:
    """Objective, conditions group by group, and certificates along the path; zero at its beginning."""
    y, eta, ridge = numbers_or_codes(name, outputs), None if penalty == "l2" else ETA, 0.0 if penalty == "l2" else 0.3
    data = prepared(y, WEIGHT, Split())
    found, way = path_of(data, name, penalty=penalty, eta=eta, ridge=ridge, rule="last", tol=1e-8)
    dense, path = Dense(name, y, WEIGHT, penalty, ETA, ridge), found.paths[0]
    assert way.reason == "converged"
    assert found.converged
    start = None
    zero = dense.least(1e9) if penalty != "l2" else np.zeros((D + 1, outputs))
    slope = dense.smooth(zero, slice(None))[1][:-1]
    size = max(dense.dual(slope[at]) / ETA[g] for g, at in dense.parts(slope)) if penalty != "l2" else 0.0
    if penalty != "l2":
        assert path.alphas[0] == pytest.approx(size * WEIGHT.sum(), rel=1e-6)
        assert not path.norms[0].any()
    shift = 0.0 if y.ndim == 1 else np.average(y, axis=0, weights=WEIGHT)
    for i, x in enumerate(coefs(found, outputs, shift)):
        lam = path.alphas[i] / WEIGHT.sum()
        assert path.objective[i] == pytest.approx(dense.value(x, lam), rel=1e-10)
        start = dense.least(lam, start=start, steps=3_000)
        assert path.objective[i] <= dense.value(start, lam) + 1e-10
        if penalty != "l2":
            assert dense.breach(x, lam) <= 4e-7 * size
            np.testing.assert_allclose(path.norms[i], [np.linalg.norm(x[:-1][g == GROUPS]) for g in range(4)])
    right = dense.value(start, lam)
    if name not in ("epsilon_insensitive", "smoothed_hinge"):  # proximal gradients get there in so many steps
        assert path.objective[-1] == pytest.approx(right, rel=1e-6)
    np.testing.assert_allclose(found.intercept, path.intercepts[-1])
    np.testing.assert_allclose(found.coef, x[:-1])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("name", "outputs"), [("log_loss", 1), ("log_loss", 3), ("huber", 3), ("squared_hinge", 3)])
def test_errors_are_held_out_losses_of_refits(name: str, outputs: int, intercept: bool) -> None:
    """Of each fold by the weights of the others, dense; the best alpha is used on all rows."""
    y = numbers_or_codes(name, outputs)
    data = prepared(y, WEIGHT, FOLDS, intercept=intercept)
    found, _ = path_of(data, name, eta=ETA, fit_intercept=intercept, tol=1e-8)
    dense, path, member = Dense(name, y, WEIGHT, "l21", ETA, 0.0, intercept), found.paths[0], fold_of(0, N, 3, SEED)
    expected = np.empty((6, 3))
    for k in range(3):
        start, test = None, member == k
        for i, alpha in enumerate(path.alphas):
            start = dense.least(alpha / WEIGHT.sum(), member != k, start)
            expected[i, k] = dense.smooth(start, test)[0] * WEIGHT.sum() / WEIGHT[test].sum()
    np.testing.assert_allclose(path.errors, expected, rtol=1e-4)
    assert path.best == path.chosen == expected.mean(axis=1).argmin()
    best = dense.least(path.alphas[path.best] / WEIGHT.sum())
    np.testing.assert_allclose(found.coef, best[:-1], atol=1e-4)
    assert found.objective == pytest.approx(dense.value(best, path.alphas[path.best] / WEIGHT.sum()), rel=1e-8)
    again, _ = path_of(data, name, eta=ETA, fit_intercept=intercept, tol=1e-8, rule="one_se")
    assert again.paths[0].chosen == path.one_se
    assert again.paths[0].errors.tobytes() == path.errors.tobytes()


@pytest.mark.parametrize("penalty", ["l21", "l1linf", "l2"])
def test_the_square_loss_is_that_of_the_gram(penalty: str) -> None:
    """The same path as from the sums of one pass, which is another program and another solver."""
    data = prepared(NUMBERS, WEIGHT, FOLDS)
    found, _ = path_of(data, "square", penalty=penalty, tol=1e-9, count=5)
    options = GroupOptions(GROUPS, True, alphas=found.paths[0].alphas, penalty=penalty, tol=1e-12, max_iter=1000)
    right = fit_groups(Run(engine_for(False), data.rows, Progress(0)), data.gram(FOLDS), options)
    mine, other = found.paths[0], right.paths[0]
    np.testing.assert_allclose(mine.norms, other.norms, atol=2e-5)
    np.testing.assert_allclose(mine.objective, other.objective, rtol=1e-8)
    np.testing.assert_allclose(mine.errors, other.errors * NUMBERS.shape[1] / 2, rtol=1e-5)
    np.testing.assert_allclose(found.coef, right.coef, atol=2e-5)
    np.testing.assert_allclose(found.intercept, right.intercept, atol=2e-5)


def test_groups_of_one_feature_are_l1_of_scikit_learn() -> None:
    """liblinear, whose intercept would be penalised."""
    data = prepared(CODES[1], WEIGHT, Split())
    alpha = np.array([8.0, 2.0])
    found, _ = path_of(
        data, "log_loss", groups=np.arange(D), eta=np.ones(D), alphas=alpha, fit_intercept=False, rule="last", tol=1e-10
    )  # fmt: skip
    tight = {"tol": 1e-12, "max_iter": 10**5, "fit_intercept": False, "l1_ratio": 1.0, "solver": "liblinear"}
    Psi = dense_features(np.array([0.7, 0.5, 0.9]))
    for i, one in enumerate(alpha):
        right = LogisticRegression(C=1 / one, **tight).fit(Psi, CODES[1], WEIGHT).coef_[0]
        np.testing.assert_allclose(found.paths[0].norms[i], np.abs(right), atol=1e-5)
    assert (found.coef == 0).any()


@pytest.mark.parametrize(("name", "penalty"), [("log_loss", "l21"), ("huber", "l1linf"), ("squared_hinge", "l21")])
def test_groups_of_each_output(name: str, penalty: str) -> None:
    """By output, every class chooses its own groups, at one alpha."""
    y = numbers_or_codes(name, 3)
    found, _ = path_of(
        prepared(y, WEIGHT, Split()), name, eta=ETA, penalty=penalty, by_output=True, rule="last", tol=1e-9
    )  # fmt: skip
    dense = Dense(name, y, WEIGHT, penalty, ETA, by_output=True)
    assert len(found.paths) == len(found.alpha) == 3
    shift = 0.0 if y.ndim == 1 else np.average(y, axis=0, weights=WEIGHT)
    start, apart = None, False
    for i, x in enumerate(coefs(found, 3, shift)):
        lam = found.paths[0].alphas[i] / WEIGHT.sum()
        start = dense.least(lam, start=start)
        assert found.paths[1].objective[i] == pytest.approx(dense.value(x, lam), rel=1e-9)
        assert found.paths[1].objective[i] == pytest.approx(dense.value(start, lam), rel=1e-6)
        apart |= len({tuple(path.active[i]) for path in found.paths}) > 1
    assert apart
    np.testing.assert_allclose(found.coef, x[:-1])


def test_weights_computed_anew() -> None:
    """The loss with l2 on the groups that were chosen, against scikit-learn."""
    data = prepared(CODES[3], WEIGHT, Split())
    path = path_of(data, "log_loss", rule="last", eta=ETA, count=10)[0].paths[0]
    some = path.alphas[[len(active) in (1, 2, 3) for active in path.active]]
    found, _ = path_of(data, "log_loss", alphas=some, eta=ETA, rule="last", refit=0.5)
    active = found.paths[0].active[-1]
    assert 0 < len(active) < 4
    on, Psi = np.isin(GROUPS, active), dense_features(np.array([0.7, 0.5, 0.9]))
    right = LogisticRegression(C=2.0, tol=1e-12, max_iter=10**5).fit(Psi[:, on], CODES[3], WEIGHT)
    np.testing.assert_allclose(found.coef[on], right.coef_.T, atol=1e-3)
    assert not found.coef[~on].any()
    scores = Psi @ found.coef + found.intercept
    np.testing.assert_allclose(
        scores - scores.mean(axis=1, keepdims=True), right.decision_function(Psi[:, on]), atol=1e-3
    )


@pytest.mark.parametrize("chunk", [7, 20, 60])
def test_chunks_do_not_matter(chunk: int) -> None:
    """Rows in chunks of dask are the same path, but for the rounding of features in tiles."""
    right, _ = path_of(prepared(CODES[3], WEIGHT, FOLDS), "log_loss", tol=1e-8)
    with embedded():
        found, _ = path_of(prepared(CODES[3], WEIGHT, FOLDS, chunk=chunk), "log_loss", tol=1e-8)
    np.testing.assert_allclose(found.paths[0].errors, right.paths[0].errors, rtol=1e-6)
    np.testing.assert_allclose(found.coef, right.coef, atol=1e-5)


def test_single_precision_says_what_it_reaches() -> None:
    """Rounding leaves no step below some residual: the end is honest, and the weights are near."""
    y = numbers_or_codes("log_loss", 1)
    right, _ = path_of(prepared(y, WEIGHT, Split()), "log_loss", rule="last", tol=1e-9)
    rough, way = path_of(prepared(y, WEIGHT, Split(), dtype=np.float32), "log_loss", rule="last", tol=1e-12)
    assert way.reason == "stalled"
    assert not rough.converged
    assert "KKT residual" in rough.warning
    assert 1e-12 < rough.gap < 1e-4
    np.testing.assert_allclose(rough.paths[0].objective, right.paths[0].objective, rtol=1e-4)
    fine, _ = path_of(prepared(y, WEIGHT, Split(), dtype=np.float32), "log_loss", rule="last", tol=1e-4)
    assert fine.converged


class Stopped(Exception):
    """A fit that dies."""


def test_it_resumes_with_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after some passes, or stopped by Ctrl-C: the same end and the same history."""
    data, fit, few = prepared(CODES[3], WEIGHT, FOLDS), {"estimator": "E"}, {"count": 4, "tol": 1e-4}
    right, way = path_of(data, "log_loss", refit=0.5, **few)
    advance = loss_path.advance
    for number, (error, after) in enumerate([(Stopped, 5), (Interruption, 8)]):
        folder, count = str(tmp_path / f"c{number}"), [0]

        def dying(*args: Any, error: Any = error, after: int = after, count: list = count, **more: Any) -> Any:
            count[0] += 1
            if count[0] > after:
                raise error
            return advance(*args, **more)

        monkeypatch.setattr(loss_path, "advance", dying)
        if error is Stopped:
            with pytest.raises(Stopped):
                path_of(data, "log_loss", Checkpoint(folder, fit), refit=0.5, **few)
        else:
            early, stopped = path_of(data, "log_loss", Checkpoint(folder, fit), **few)
            assert stopped.reason == "interrupted"
            assert 0 < len(early.paths[0].alphas) < 4
            assert early.paths[0].errors.shape == (len(early.paths[0].alphas), 3)
        monkeypatch.setattr(loss_path, "advance", advance)
        again, resumed = path_of(data, "log_loss", Checkpoint(folder, fit), refit=0.5, **few)
        assert again.coef.tobytes() == right.coef.tobytes()
        assert again.intercept.tobytes() == right.intercept.tobytes()
        assert again.paths[0].errors.tobytes() == right.paths[0].errors.tobytes()
        assert resumed.history.columns["objective"] == way.history.columns["objective"]


def test_time_and_tolerance_that_are_extended(tmp_path: Path) -> None:
    """Out of time before the first alpha is said; a smaller tolerance begins anew."""
    data, folder = prepared(CODES[1], WEIGHT, FOLDS), str(tmp_path / "c")
    with pytest.raises(ValueError, match="no alpha has been solved for yet"):
        path_of(data, "log_loss", Checkpoint(folder, {"estimator": "E"}), max_time=1e-9)
    rough, _ = path_of(data, "log_loss", Checkpoint(folder, {"estimator": "E"}), tol=1e-3, count=3)
    assert 1e-9 < rough.gap <= 1e-3
    fine, _ = path_of(data, "log_loss", Checkpoint(folder, {"estimator": "E"}), tol=1e-9, count=3)
    right, _ = path_of(data, "log_loss", tol=1e-9, count=3)
    assert fine.gap <= 1e-9
    assert fine.coef.tobytes() == right.coef.tobytes()


def test_what_is_refused() -> None:
    """A loss of the other kind, a choice without folds, alphas and refits of no use."""
    data = prepared(CODES[1], WEIGHT, FOLDS)
    with pytest.raises(ValueError, match="is for values, but y are classes"):
        path_of(data, "huber")
    with pytest.raises(ValueError, match="needs 2 folds or more, not 1"):
        path_of(prepared(CODES[1], WEIGHT, Split()), "log_loss")
    with pytest.raises(ValueError, match=r"alphas=\[-1.0\] must be finite numbers above 0"):
        path_of(data, "log_loss", alphas=np.array([-1.0]))
    with pytest.raises(ValueError, match=r"refit=0\.0 must be"):
        path_of(data, "log_loss", refit=0.0)


def test_passes_are_shared() -> None:
    """All systems in the same passes: folds cost few more of them than one path does."""
    alone = path_of(prepared(CODES[1], WEIGHT, Split()), "log_loss", rule="last", count=20)[1].history.columns
    folds = path_of(prepared(CODES[1], WEIGHT, FOLDS), "log_loss", count=20)[1].history.columns
    assert folds["passes"][-1] <= 1.5 * alone["passes"][-1] + 5
    assert alone["passes"][-1] <= 4 * 20


def test_costs_of_pairs() -> None:
    """A gram for each system and output, or pair of classes of the log loss."""
    data = prepared(CODES[3], WEIGHT, FOLDS)
    gram, sizes = data.gram(FOLDS), Sizes(N, 3, np.dtype(float), 3, True)
    (margin,) = group_loss_costs(sizes, gram.map_cost, 3, LOSSES["logistic"])
    (joint,) = group_loss_costs(sizes, gram.map_cost, 3, Softmax())
    assert margin.repeated
    assert joint.repeated
    assert joint.sums_bytes > 1.8 * margin.sums_bytes - 8 * 4 * 3 * (D + 2)
    assert joint.solve.bytes > margin.solve.bytes


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_the_same_bits_on_a_cluster(tmp_path: Path) -> None:
    """Whoever adds and whoever solves."""
    with cluster_of(tmp_path, 2):
        for name, outputs in (("log_loss", 3), ("huber", 1)):
            data = prepared(numbers_or_codes(name, outputs), WEIGHT, FOLDS, chunk=20)
            found, way = path_of(data, name, count=4)
            with embedded():
                right, _ = path_of(prepared(numbers_or_codes(name, outputs), WEIGHT, FOLDS, chunk=20), name, count=4)
            assert way.reason == "converged"
            assert found.coef.tobytes() == right.coef.tobytes()
            assert found.paths[0].errors.tobytes() == right.paths[0].errors.tobytes()
