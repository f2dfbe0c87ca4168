"""Newton's weights of any loss and penalty, against scipy and scikit-learn on dense features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, open_table
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.newton import Newton
from dkl.learn.penalised_loss import PenalisedLoss
from dkl.learn.run import Limits, Run
from dkl.losses import LOSSES, EpsilonInsensitive, Huber, SmoothedHinge, Softmax
from dkl.penalties import L1, L2, Elastic, GroupL21, L1Linf
from dkl.prepare.targets import label_targets, number_targets
from dkl.store.checkpoint import Checkpoint
from dkl.sums.gram import GramProgram
from tests.engine.conftest import cluster_of, embedded
from tests.learn.test_ridge import FEATURES

N, D = 200, FEATURES.n_features
GROUPS = np.arange(D) // 2
NORMS = {"l1": L1(), "group_l21": GroupL21(GROUPS), "l1_linf": L1Linf(GROUPS)}
PENALTIES = {"l2": L2(), **NORMS, "elastic": Elastic(L1(), 0.5)}
SHARP = {
    "huber sharp": Huber(0.05),
    "epsilon sharp": EpsilonInsensitive(0.05, 200.0),
    "hinge sharp": SmoothedHinge(0.02),
}
EVERY = {**LOSSES, **SHARP}


def drawn(seed: int, is_class: bool, classes: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    score = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.4 * rng.normal(size=(N, 2))
    y = np.digitize(score[:, 0], [-0.3, 0.3] if classes == 3 else [0.0]) if is_class else score * [1, 3] + 5
    return X, y, rng.gamma(2, size=N)


def fitted(
    data: tuple, loss: Any, penalty: Any, alpha: float, intercept: bool = True, dtype: Any = np.float64,
    checkpoint: Any = None, lazy: bool = False, **limits: Any,
) -> tuple[Iterated, PenalisedLoss]:  # fmt: skip
    """A fit in one process; if lazy, on the cluster."""
    tables = [Table("memory", part) for part in data]
    about = tables[1], tables[2]
    targets = (
        label_targets(*about, None, Progress(0)) if loss.is_class else number_targets(*about, intercept, Progress(0))
    )  # fmt: skip
    if lazy:
        tables = [open_table(da.from_array(part, chunks=(40, *part.shape[1:])), "X") for part in data]
    gram = GramProgram(FEATURES.at(dtype), targets.in_units_of_y(), N)
    problem = PenalisedLoss(gram, loss, alpha, intercept)
    rows = Rows([*tables, None], ["X", "y", "sample_weight", "folds"])
    run = Run(engine_for(lazy), rows, Progress(0), Limits(**{"max_iter": 300, "tol": 1e-7} | limits), checkpoint)
    return iterate(run, Newton(problem, penalty)), problem


class Dense:
    """The same objective on features in memory."""

    def __init__(self, data: tuple, problem: PenalisedLoss, penalty: Any) -> None:
        (X, y, self.w), self.problem, self.penalty = data, problem, penalty
        self.y = y if problem.loss.is_class else y - problem.gram.targets.shift
        self.Psi = FEATURES.at(np.float64).transform(X)

    def smooth(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean loss and its gradient."""
        weights = flat.reshape(self.problem.zero.shape)
        z, on = self.Psi @ weights[:-1] + weights[-1] * self.problem.fit_intercept, self.problem.fit_intercept
        slope = self.w[:, None] * self.problem.loss.slope(z, self.y)
        gradient = np.vstack([self.Psi.T @ slope, on * slope.sum(axis=0)]) / self.w.sum()
        return float(self.w @ self.problem.loss.value(z, self.y)) / self.w.sum(), gradient.ravel()

    def value(self, weights: np.ndarray) -> float:
        """J."""
        return self.smooth(weights.ravel())[0] + self.problem.alpha / self.w.sum() * self.penalty.value(weights[:-1])

    def least(self) -> float:
        """J at its least by L-BFGS-B: of l1 and elastic in the positive and negative parts of weights."""
        lam, shape = self.problem.alpha / self.w.sum(), self.problem.zero.shape
        ridge = 1.0 if isinstance(self.penalty, L2) else getattr(self.penalty, "ridge", 0.0)
        corner, free = float(not isinstance(self.penalty, L2)), np.ones(shape)
        free[-1] = 0

        def split(both: np.ndarray) -> tuple[float, np.ndarray]:
            plus, minus = np.split(both, 2)
            own = (plus - minus) * free.ravel()
            value, gradient = self.smooth(plus - minus)
            gradient = gradient + lam * ridge * own
            value += lam * (ridge / 2 * float(own @ own) + corner * float((plus + minus) @ free.ravel()))
            cost = lam * corner * free.ravel()
            return value, np.concatenate([gradient + cost, -gradient + cost])

        options = {"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30}
        end = minimize(
            split,
            np.zeros(2 * free.size),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * (2 * free.size),
            options=options,
        )
        return float(end.fun)


def conditions(dense: Dense, weights: np.ndarray, penalty: Any) -> float:
    """The largest breach of the conditions of a least point, group by group, over lam."""
    lam, B = dense.problem.alpha / dense.w.sum(), weights[:-1]
    gradient = dense.smooth(weights.ravel())[1].reshape(weights.shape)
    C, breach = -gradient[:-1], [float(np.abs(gradient[-1]).max())]
    groups = GROUPS if hasattr(penalty, "groups") else np.arange(D)
    for g in np.unique(groups):
        c, b = C[groups == g], B[groups == g]
        if isinstance(penalty, L1):
            breach += [float(np.abs(np.where(b == 0, np.maximum(np.abs(c) - lam, 0), c - lam * np.sign(b))).max())]
        elif isinstance(penalty, GroupL21):
            size = np.linalg.norm(b)
            breach += [max(np.linalg.norm(c) - lam, 0) if size == 0 else np.linalg.norm(c - lam * b / size)]
        else:
            size = np.abs(b).max()
            breach += [
                max(np.abs(c).sum() - lam, 0.0),
                abs((c * b).sum() - lam * size) / max(size, 1e-300) if size else 0,
            ]
    return max(breach) / lam


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.01, 3.0])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic"])
@pytest.mark.parametrize("name", EVERY)
def test_the_least_objective_is_that_of_scipy(name: str, penalty: str, alpha: float, intercept: bool) -> None:
    """Every loss by l2, l1 and elastic: J is no more than L-BFGS-B finds, and what is certified holds on dense rows."""
    loss, of = EVERY[name], PENALTIES[penalty]
    data = drawn(len(name), loss.is_class)
    done, problem = fitted(data, loss, of, alpha, intercept)
    dense, end = Dense(data, problem, of), done.result
    assert done.reason == "converged"
    assert end.certificate <= 1e-7
    assert end.objective == pytest.approx(dense.value(end.weights), rel=1e-9)
    right = dense.least()
    assert end.objective <= right + 1e-7 * abs(right)
    if "sharp" not in name:  # L-BFGS-B gets there
        assert end.objective >= right - 1e-3 * abs(right)
    if penalty == "l2":
        own = alpha / data[2].sum() * end.weights
        own[-1] = 0
        gradient = dense.smooth(end.weights.ravel())[1].reshape(own.shape) + own
        assert np.linalg.norm(gradient) <= 1.01e-7 * np.linalg.norm(dense.smooth(0 * own.ravel())[1]) + 1e-12
    columns = done.history.columns
    assert (np.diff(columns["objective"]) <= 1e-12 * abs(columns["objective"][0])).all()
    assert len(columns["step"]) <= 300


@pytest.mark.parametrize("share", [0.3, 0.01])
@pytest.mark.parametrize("penalty", NORMS)
@pytest.mark.parametrize("name", EVERY)
def test_conditions_of_penalties_with_corners(name: str, penalty: str, share: float) -> None:
    """Group by group, and no random step leads downhill; some groups are zero if alpha is large."""
    loss, of, rng = EVERY[name], NORMS[penalty], np.random.default_rng(0)
    data = drawn(3, loss.is_class)
    _, problem = fitted(data, loss, of, 1.0, max_iter=0)
    zero = Dense(data, problem, of).smooth(problem.zero.ravel())[1].reshape(problem.zero.shape)[:-1]
    alpha = share * of.dual_norm(zero) * data[2].sum()
    done, problem = fitted(data, loss, of, alpha)
    dense, weights = Dense(data, problem, of), done.result.weights
    assert done.reason == "converged"
    assert conditions(dense, weights, of) <= 2e-6 / share
    for size in (1e-1, 1e-3):
        for _ in range(10):
            assert dense.value(weights + size * rng.normal(size=weights.shape)) >= done.result.objective - 1e-12
    if share == 0.3:
        assert (weights[:-1] == 0).any()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ["log_loss", "squared_hinge", "smoothed_hinge"])
def test_three_classes(name: str, classes: int) -> None:
    """One score for each class; of the log loss they share a row's loss."""
    data = drawn(1, True, classes)
    done, problem = fitted(data, LOSSES[name], L2(), 1.0, tol=1e-6)
    dense = Dense(data, problem, L2())
    assert done.reason == "converged"
    assert done.result.objective == pytest.approx(dense.least(), rel=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_log_loss_of_many_classes_takes_few_steps(penalty: str, alpha: float) -> None:
    """To its certificate, whatever the penalty: by the diagonal over classes alone it took up to 500."""
    rng = np.random.default_rng(0)
    X, y, w = drawn(1, True)
    y = (X @ rng.normal(size=(3, 5)) + rng.gumbel(size=(N, 5))).argmax(axis=1)
    done, _ = fitted((X, y, w), LOSSES["log_loss"], PENALTIES[penalty], alpha, tol=1e-5)
    assert done.reason == "converged"
    assert len(done.history) <= 20


@pytest.mark.parametrize("penalty", PENALTIES)
def test_pairs_and_the_diagonal_end_at_the_same_point(penalty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large the matrix of all classes may be."""
    data = drawn(1, True, 3)
    pairs, _ = fitted(data, LOSSES["log_loss"], PENALTIES[penalty], 2.0, tol=1e-6)
    monkeypatch.setattr("dkl.sums.curvature.MOST_JOINT", 0)
    diagonal, _ = fitted(data, LOSSES["log_loss"], PENALTIES[penalty], 2.0, tol=1e-6)
    assert pairs.reason == diagonal.reason == "converged"
    assert len(pairs.history) < len(diagonal.history)
    assert pairs.result.objective == pytest.approx(diagonal.result.objective, rel=1e-8)


def location(loss: Any, y: np.ndarray, w: np.ndarray) -> float:
    """The best intercept at weights of zero."""
    low, high = y.min(), y.max()
    options = {"xatol": 1e-12 * (high - low)}
    far = minimize_scalar(
        lambda b: w @ loss.value(np.full((len(y), 1), b), y[:, None]), bounds=(low, high), options=options
    )
    return float(far.x)


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e-7])
@pytest.mark.parametrize("share", [1.5, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("penalty", NORMS)
def test_a_large_alpha_does_not_hide_the_intercept(penalty: str, share: float, unit: float) -> None:
    """At weights of zero it is the location of the loss, in any unit; few rows are far away, so the mean is not it."""
    rng = np.random.default_rng(0)
    X, w = rng.uniform(-2, 2, (N, 3)), rng.gamma(2, size=N)
    y = np.where(rng.random(N) < 0.1, 50, np.sin(X[:, 0]) + 0.1 * rng.normal(size=N))
    loss = Huber(unit)
    done, problem = fitted((X, unit * y[:, None], w), loss, NORMS[penalty], share * unit * w.sum(), tol=1e-4)
    assert done.reason == "converged"
    assert not done.result.weights[:-1].any()
    right = location(loss, unit * y, w)
    assert (done.result.weights[-1, 0] + problem.gram.targets.shift[0]) / unit == pytest.approx(right / unit, abs=1e-3)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_add_up_to_the_shares_of_classes(classes: int, penalty: str, alpha: float) -> None:
    """The slope of an intercept is the mean probability of a class less its share, however rare the class is."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(400, 3)), np.ones(400)
    y = np.where(np.arange(400) % 16 == 0, 1, np.where(np.arange(400) % 3 == 0, 2 * (classes == 3), 0))
    loss = LOSSES["log_loss"] if classes == 3 else Softmax(0.5)
    done, _ = fitted((X, y, w), loss, PENALTIES[penalty], alpha, tol=1e-4)
    assert done.reason == "converged"
    z = FEATURES.at(np.float64).transform(X) @ done.result.weights[:-1] + done.result.weights[-1]
    shares = np.bincount(y) / 400
    np.testing.assert_allclose(loss.shares(z).mean(axis=0), shares, rtol=1e-3)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:Inconsistent values:UserWarning")
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_scikit_learn(penalty: str) -> None:
    """Logistic regression and a linear support vector machine, whose intercept would be penalised."""
    data, alpha = drawn(2, True), 1.5
    X, y, w = data
    Psi = FEATURES.at(np.float64).transform(X)
    done, _ = fitted(data, Softmax(0.5), PENALTIES[penalty], alpha, intercept=False, tol=1e-9)
    tight = {"tol": 1e-10, "max_iter": 10**5, "fit_intercept": False, "penalty": penalty}
    right = LogisticRegression(C=1 / alpha, solver="liblinear", **tight).fit(Psi, y, w)
    np.testing.assert_allclose(done.result.weights[:-1].T, right.coef_, atol=2e-4)
    done, _ = fitted(data, LOSSES["squared_hinge"], PENALTIES[penalty], alpha, intercept=False, tol=1e-9)
    right = LinearSVC(C=0.5 / alpha, dual=False, **tight).fit(Psi, y, w)
    np.testing.assert_allclose(done.result.weights[:-1].T, right.coef_, atol=2e-4)


def test_limits_and_honest_ends() -> None:
    """A limit is not convergence, its certificate is that of the weights; float32 stalls where rounding begins."""
    data, loss = drawn(2, True), LOSSES["log_loss"]
    done, problem = fitted(data, loss, L2(), 0.1, max_iter=2)
    assert (done.reason, len(done.history)) == ("max_iter", 3)
    dense = Dense(data, problem, L2())
    assert done.result.objective == pytest.approx(dense.value(done.result.weights), rel=1e-12)
    assert done.result.certificate > 1e-7
    for penalty in PENALTIES.values():
        rough, problem = fitted(data, loss, penalty, 0.1, dtype=np.float32, tol=1e-14, max_iter=200)
        assert rough.reason in ("stalled", "max_iter")
        assert 1e-14 < rough.result.certificate < 1e-3
        fine, _ = fitted(data, loss, penalty, 0.1, tol=1e-9)
        assert rough.result.objective == pytest.approx(fine.result.objective, rel=1e-5)
    with pytest.raises(ValueError, match=r"alpha=0\.0 must be a finite number above 0"):
        fitted(data, loss, L1(), 0.0)
    with pytest.raises(ValueError, match="smooth"):
        fitted(data, loss, Elastic(L2()), 1.0)


@pytest.mark.parametrize("name", ["huber", "log_loss"])
@pytest.mark.parametrize("penalty", ["l2", "group_l21"])
def test_it_resumes_with_the_same_bits(penalty: str, name: str, tmp_path: Path) -> None:
    """After a limit that is then raised: the way is that of one fit."""
    loss, of = LOSSES[name], PENALTIES[penalty]
    data = drawn(4, loss.is_class, 3)
    right, _ = fitted(data, loss, of, 0.05)
    fit = {"estimator": "E"}
    fitted(data, loss, of, 0.05, max_iter=2, checkpoint=Checkpoint(str(tmp_path / "c"), fit))
    again, _ = fitted(data, loss, of, 0.05, checkpoint=Checkpoint(str(tmp_path / "c"), fit))
    assert again.reason == right.reason == "converged"
    assert again.result.weights.tobytes() == right.result.weights.tobytes()
    assert again.result[1:] == right.result[1:]


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_the_same_bits_on_a_cluster(tmp_path: Path) -> None:
    """Whoever adds and whoever solves."""
    cases = [("log_loss", "l2"), ("squared_hinge", "l1"), ("huber", "group_l21")]
    data = [drawn(5, LOSSES[name].is_class) for name, _ in cases]
    found = []
    with cluster_of(tmp_path, 2):
        for (name, of), one in zip(cases, data, strict=True):
            found.append(fitted(one, LOSSES[name], PENALTIES[of], 0.1, lazy=True)[0])
            with embedded():
                right = fitted(one, LOSSES[name], PENALTIES[of], 0.1, lazy=True)[0]
            assert found[-1].reason == right.reason == "converged"
            assert found[-1].result.weights.tobytes() == right.result.weights.tobytes()
            assert found[-1].history.columns["objective"] == right.history.columns["objective"]
