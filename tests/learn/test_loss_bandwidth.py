"""Sigma under any loss: gradients against differences of dense objectives, and what is learned on toys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.features.frequencies import draw_unit
from dkl.kernels import KERNELS
from dkl.learn import loss_bandwidth
from dkl.learn.bandwidth import Start
from dkl.learn.learners import LEARNERS
from dkl.learn.run import Limits, Run
from dkl.prepare.folds import Split
from dkl.store.checkpoint import Checkpoint
from tests.engine.conftest import cluster_of, embedded
from tests.learn.loss_data import (
    CODES,
    SEED,
    SIGMA,
    SPLITS,
    WEIGHT,
    K,
    N,
    X,
    dense_features,
    dense_objective,
    dense_weights,
    learn,
    method_of,
    prepared,
    targets_of,
)  # fmt: skip

CLASSES = ("log_loss", "logistic", "squared_hinge", "smoothed_hinge")
VALUES = ("huber", "epsilon_insensitive")
STEP = 1e-4
STARTS = (Start(), Start(3.0))


def found_gradient(method: Any, data: Any) -> tuple[float, np.ndarray, float]:
    """The objective at the start, its gradient in (log sigma, log alpha), and the share of wrong rows."""
    run = Run(engine_for(False), data.rows, Progress(0), Limits(50, method.problem.tol))
    step = method.step(run, method.begin(run))
    descent = step.state.search.descent
    return float(step.row.values["objective"]), descent.gradient, float(step.row.values["error_rate"])


BOTH = [(True, True), (True, False), (False, True), (False, False)]
CASES = [
    (loss, outputs, *both)
    for loss in (*CLASSES, *VALUES)
    for outputs, some in ((1, BOTH), (3, BOTH[::3]))
    for both in some
]  # fmt: skip


@pytest.mark.parametrize("objective", SPLITS)
@pytest.mark.parametrize(("loss", "outputs", "weighted", "intercept"), CASES)
def test_gradients_are_those_of_dense_objectives(
    loss: str, outputs: int, weighted: bool, intercept: bool, objective: str
) -> None:
    """Every log sigma and log alpha, by central differences."""
    y, w, split = targets_of(loss, outputs), WEIGHT if weighted else None, SPLITS[objective]
    data, alpha = prepared(y, w, split, intercept=intercept), 1.0
    method = method_of(data, loss, objective, alpha if objective == "joint" else None, intercept, tol=1e-10)
    value, gradient, _ = found_gradient(method, data)
    ones, fold = np.ones(N) if w is None else w, split.fold_of(N, SEED)
    dense = y - data.targets.shift if y.ndim == 2 else y  # without an intercept: the shift is zero

    def at(x: np.ndarray) -> float:
        sigma = SIGMA * np.exp(x[:3])
        return dense_objective(objective, loss, dense, ones, fold, sigma, alpha * np.exp(x[3]), intercept, outputs)

    assert value == pytest.approx(at(np.zeros(4)), rel=1e-8)
    steps = STEP * np.eye(4)[: len(gradient)]
    right = np.array([(at(step) - at(-step)) / (2 * STEP) for step in steps])
    assert len(gradient) == (3 if objective == "joint" else 4)
    np.testing.assert_allclose(gradient, right, atol=1e-4 * np.abs(right).max())


def toy() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Classes by the first of four inputs, and frequencies."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 4))
    score = np.sin(3 * rows[:, 0]) + 0.3 * rng.normal(size=300)
    return rows, np.digitize(score, [-0.5, 0.5]), draw_unit(KERNELS["gaussian"], 4, 20, "iid", rng)


@pytest.mark.parametrize(("objective", "loss"), [("validation", "log_loss"), ("cv", "logistic"), ("joint", "log_loss")])
def test_it_finds_the_input_that_matters(objective: str, loss: str) -> None:
    """The objective falls in every iteration, and sigma of the first input ends far above the others."""
    rows, codes, unit = toy()
    data = prepared(codes, None, SPLITS[objective], rows, unit)
    method = method_of(data, loss, objective, 1.0 if objective == "joint" else None)
    done = learn(data, method, max_iter=30)
    columns = done.history.columns
    assert (np.diff(columns["objective"]) < 0).all()
    sigma = columns["sigma"][-1]
    assert sigma[0] > 3 * max(sigma[1:])
    assert done.result.x.shape == (4,)
    np.testing.assert_allclose(data.features.sigma * np.exp(done.result.x), sigma)
    assert done.result.moved
    assert done.result.alpha == columns["alpha"][-1]
    assert (done.result.alpha == 1.0) == (objective == "joint")


@pytest.mark.parametrize("objective", SPLITS)
def test_looser_weights_and_narrow_blocks_have_nearly_the_same_gradient(objective: str) -> None:
    """The error is of the order of tol; float32 adds its own."""
    found = {}
    for name, dtype, tol in (("right", float, 1e-10), ("loose", float, 1e-3), ("narrow", np.float32, 1e-3)):
        data = prepared(CODES[3], WEIGHT, SPLITS[objective], dtype=dtype)
        method = method_of(data, "log_loss", objective, 1.0 if objective == "joint" else None, tol=tol)
        found[name] = found_gradient(method, data)[1]
    for name in ("loose", "narrow"):
        np.testing.assert_allclose(found[name], found["right"], atol=3e-3 * np.abs(found["right"]).max())


@pytest.mark.parametrize("objective", ["joint", "validation"])
def test_l1_switches_inputs_off(objective: str) -> None:
    """Inputs that do not matter have a sigma of zero; the stage without l1 leaves them there, and moves alpha."""
    rows, codes, unit = toy()
    data = prepared(codes, None, SPLITS[objective], rows, unit)
    method = method_of(data, "log_loss", objective, 1.0 if objective == "joint" else None, l1=0.05)
    found = learn(data, method, 40)
    assert found.result.x[0] > 1
    assert (found.result.x[1:] == 0).sum() >= 2
    assert found.result.x.shape == (4,)
    assert found.result.refit is not None
    assert set(found.history.columns["stage"]) == {0, 1}
    kept = int(np.argmin(found.result.refit))  # 0: with l1, 1: without it
    last = [k for k, stage in enumerate(found.history.columns["stage"]) if stage == kept][-1]
    np.testing.assert_allclose(data.features.sigma * found.result.x, found.history.columns["sigma"][last])


def test_the_passes_are_stated() -> None:
    """Each kind of pass that learning makes is in the plan, once."""
    data, made = prepared(CODES[3], WEIGHT, SPLITS["cv"]), {}

    class Watched(Embedded):
        def sum(self, program: Any, *args: Any) -> Any:
            made[program.task] = program.cost()
            return super().sum(program, *args)

    learn(data, method_of(data, "log_loss", "cv", None), 1, engine=Watched())
    gram = data.gram(data.split)
    stated = {cost.name: cost for cost in LEARNERS["cv"].costs(gram.sizes, gram.map_cost, K, "log_loss")}
    assert set(stated) == set(made)
    for name, cost in made.items():
        assert stated[name].thread_bytes == cost.thread_bytes
        assert stated[name].sums_bytes == cost.sums_bytes
        assert stated[name].flops == cost.flops


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_a_cluster_has_the_same_bits(tmp_path: Path) -> None:
    """Two processes that sum, and a scheduler that solves."""

    def found() -> Any:
        data = prepared(CODES[3], WEIGHT, SPLITS["cv"], chunk=16)
        return bits(learn(data, method_of(data, "log_loss", "cv", None, starts=STARTS), 2))

    with embedded():
        right = found()
    with cluster_of(tmp_path, 2):
        assert found() == right


def test_the_rows_held_out_that_are_wrong() -> None:
    """Those whose class has not the highest score of the model of the other folds."""
    data, fold = prepared(CODES[3], WEIGHT, SPLITS["cv"]), SPLITS["cv"].fold_of(N, SEED)
    Psi, wrong = dense_features(SIGMA), 0.0
    for test in range(K):
        out = fold == test
        B, b = dense_weights("log_loss", Psi[~out], CODES[3][~out], WEIGHT[~out], 1.0, True, 3)
        wrong += WEIGHT[out][(Psi[out] @ B + b).argmax(axis=1) != CODES[3][out]].sum()
    found = found_gradient(method_of(data, "log_loss", "cv", 1.0, tol=1e-10), data)[2]
    assert found == pytest.approx(wrong / WEIGHT.sum(), rel=1e-9)


def bits(done: Any) -> Any:
    """What was learned, bit for bit; not how long it took."""
    arrays = done.history.arrays()
    return (
        done.result.x.tobytes(),
        done.result.alpha,
        [arrays[k].tobytes() for k in sorted(arrays) if k not in ("seconds", "passes")],
    )


@pytest.mark.parametrize("objective", ["joint", "cv"])
def test_it_resumes_to_the_same_bits(objective: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after any step, from its checkpoint."""
    data = prepared(CODES[3], WEIGHT, SPLITS[objective])
    method = method_of(data, "log_loss", objective, 1.0 if objective == "joint" else None, starts=STARTS)
    right, real, steps = bits(learn(data, method, 4)), loss_bandwidth.LossBandwidth.step, 0

    class Killed(Exception):
        pass

    def step(self: Any, run: Any, state: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps % 7 == 0:
            raise Killed
        return real(self, run, state)

    monkeypatch.setattr(loss_bandwidth.LossBandwidth, "step", step)
    kills = 0
    while True:
        try:
            found = learn(data, method, 4, Checkpoint(str(tmp_path / "kept"), {"what": "test"}))
            break
        except Killed:
            kills += 1
            assert kills < 50
    assert kills > 1
    assert bits(found) == right


def test_any_number_of_threads_has_the_same_bits() -> None:
    """One that takes all blocks, or several; chunks of another size change rounding alone."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(1500, 3))
    codes, unit = np.digitize(np.sin(3 * rows[:, 0]), [-0.5, 0.5]), draw_unit(KERNELS["gaussian"], 3, 8, "iid", rng)

    def found(engine: Any, chunk: int = 0) -> Any:
        data = prepared(codes, None, SPLITS["cv"], rows, unit, chunk=chunk)
        method = method_of(data, "log_loss", "cv", None)
        assert chunk or len(data.rows.blocks(method.first.rows_wanted)) > 2
        return learn(data, method, 3, engine=engine)

    one, other = found(Embedded(1)), found(Embedded(3))
    assert bits(one) == bits(other)
    with embedded():
        chunked = found(Embedded(2), 100)
    np.testing.assert_allclose(chunked.result.x, one.result.x, atol=1e-6)


PARAMS: dict[str, Any] = {
    "early_stopping": "auto", "landmarks": None, "sigma_l1": 0.0, "sigma_l2": 0.0, "cv": None, "alpha": "auto",
    "tol": 1e-3, "fit_intercept": True, "starts": 2, "subsample": None, "loss": "logistic", "max_iter": 2,
}  # fmt: skip


def test_the_table_of_learners_takes_it() -> None:
    """By name; those of squared errors say what to type."""
    data = prepared(CODES[1], None, SPLITS["cv"])
    method = LEARNERS["cv"].method(PARAMS, data, None)
    assert isinstance(method, loss_bandwidth.LossBandwidth)
    assert len(method.starts) == 2
    for name in ("cv", "validation", "joint", "log_loss", "none"):
        assert LEARNERS[name].conflict(PARAMS) is None
    for name in ("gcv", "frequencies"):
        said = LEARNERS[name].conflict(PARAMS)
        assert said is not None
        assert "loss='logistic'" in said
        assert "learn='cv'" in said
        assert LEARNERS[name].conflict({**PARAMS, "loss": "square"}) is None
    said = LEARNERS["cv"].conflict({**PARAMS, "early_stopping": 0.1})
    assert said is not None
    assert "use None" in said
    assert LEARNERS["cv"].split({**PARAMS, "cv": K}, data.X, None).unseen is None


def test_joint_needs_an_alpha() -> None:
    """It would always lower it."""
    with pytest.raises(ValueError, match="give a number"):
        method_of(prepared(CODES[1], None, Split()), "logistic", "joint", None)


def test_rows_without_weight_are_refused() -> None:
    """A fold that no row of any weight is in."""
    fold = SPLITS["cv"].fold_of(N, SEED)
    data = prepared(CODES[1], np.where(fold == 1, 0.0, 1.0), SPLITS["cv"])
    with pytest.raises(ValueError, match="fold 1 of 3, or the others, have no weight"):
        learn(data, method_of(data, "logistic", "cv", 1.0))
    assert len(X) == N
