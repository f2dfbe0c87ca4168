"""Sigmas of several kernels under other losses: gradients against differences of dense objectives solved again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import root

from dkl.engine.embedded import Embedded
from dkl.learn.bandwidth import Start
from dkl.learn.several_bandwidths import several_costs
from dkl.learn.several_losses import SeveralLossBandwidths
from dkl.losses import find_loss, loss_of_scores
from dkl.store.checkpoint import Checkpoint
from tests.engine.conftest import cluster_of, embedded
from tests.learn.loss_data import value_and_slope
from tests.learn.several_data import (
    CODES,
    GROUPS,
    NUMBERS,
    SIGMAS,
    SIZES,
    SPLITS,
    WEIGHT,
    N,
    at_start,
    dense_features,
    learn,
    method_of,
    options_of,
    prepared,
    side_by_side,
)
from tests.learn.test_several_bandwidths import bits, toy

STEP = 1e-4
ETA = np.sqrt(np.array(SIZES, float))
D = len(GROUPS)
CASES = [("log_loss", 2), ("log_loss", 3), ("logistic", 3), ("smoothed_hinge", 2), ("huber", 1), ("huber", 2)]


def targets_of(loss: str, outputs: int) -> np.ndarray:
    """y for a loss: classes, or numbers."""
    return CODES[outputs] if find_loss(loss).is_class else NUMBERS[:, :outputs]


def record(loss: str, y: np.ndarray) -> Any:
    """The loss of so many scores."""
    outputs = y.shape[1] if y.ndim == 2 else 1 if y.max() == 1 else 3
    return loss_of_scores(find_loss(loss), outputs)


def dense_objective(
    loss: str, y: np.ndarray, w: np.ndarray, sigmas: Any, alpha: float, ridge: float, intercept: bool
) -> float:
    """F: accelerated proximal gradient finds the groups, Powell's hybrid method the last digits."""
    c = y.shape[1] if y.ndim == 2 else 1 if y.max() == 1 else 3
    A = np.hstack([dense_features(sigmas), np.full((N, 1), float(intercept))])
    size = 2.0 * np.linalg.eigvalsh(A.T @ (w[:, None] * A))[-1] + alpha * ridge

    def slope(V: np.ndarray) -> np.ndarray:
        G = A.T @ (w[:, None] * value_and_slope(loss, A @ V, y)[1])
        G[:D] += alpha * ridge * V[:D]
        return G

    V = before = np.zeros((D + 1, c))
    t = 1.0
    for _ in range(4000):
        U = V - slope(V) / size
        length = np.sqrt(np.bincount(GROUPS, (U[:D] ** 2).sum(axis=1)))
        U[:D] *= np.maximum(1 - alpha * ETA / size / np.maximum(length, 1e-300), 0)[GROUPS][:, None]
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        if ((V - U) * (U - before)).sum() > 0:
            t, V, before = 1.0, U, U
        else:
            V, before, t = U + (t - 1) / after * (U - before), U, after
    norms = np.sqrt(np.bincount(GROUPS, (before[:D] ** 2).sum(axis=1)))
    on = np.flatnonzero(np.append(norms[GROUPS] > 1e-7 * norms.max(), intercept))
    group = np.append(GROUPS, -1)[on]

    def left(x: np.ndarray) -> np.ndarray:
        B = np.zeros((D + 1, c))
        B[on] = x.reshape(-1, c)
        G = slope(B)[on]
        for g in set(group.tolist()) - {-1}:
            own = B[on][group == g]
            G[group == g] += alpha * ETA[g] * own / np.sqrt((own**2).sum())
        return G.ravel() / w.sum()

    B = np.zeros((D + 1, c))
    B[on] = root(left, before[on].ravel(), tol=1e-13).x.reshape(-1, c)
    norms = np.sqrt(np.bincount(GROUPS, (B[:D] ** 2).sum(axis=1)))
    penalty = alpha * (ETA @ norms + ridge / 2 * (B[:D] ** 2).sum())
    return float((w @ value_and_slope(loss, A @ B, y)[0] + penalty) / w.sum())


@pytest.mark.parametrize(("loss", "outputs"), CASES)
@pytest.mark.parametrize(
    ("weighted", "intercept", "alpha", "ridge"), [(True, True, 2.0, 0.0), (False, False, 1.5, 0.2)]
)
def test_gradients_are_those_of_dense_objectives(
    loss: str, outputs: int, weighted: bool, intercept: bool, alpha: float, ridge: float
) -> None:
    """One sigma for each kernel, by central differences of the full solution."""
    y, w = targets_of(loss, outputs), WEIGHT if weighted else np.ones(N)
    data = prepared(y, w if weighted else None, SPLITS["joint"], intercept=intercept)
    options = options_of("joint", intercept, alpha=alpha, ridge=ridge, loss=record(loss, y))
    method, step = at_start(data, options, tol=1e-9)
    found = step.state.search.descent.gradient
    dense = y - data.targets.shift if y.ndim == 2 else y

    def at(x: np.ndarray) -> float:
        sigmas = [sigma * np.exp(one) for sigma, one in zip(SIGMAS, x, strict=True)]
        return dense_objective(loss, dense, w, sigmas, alpha, ridge, intercept)

    assert isinstance(method, SeveralLossBandwidths)
    assert step.row.values["objective"] == pytest.approx(at(np.zeros(3)), rel=1e-9)
    right = np.array([(at(STEP * one) - at(-STEP * one)) / (2 * STEP) for one in np.eye(3)])
    np.testing.assert_allclose(found, right, atol=2e-6 * np.abs(right).max())


def test_it_learns_the_channels_that_matter() -> None:
    """The objective falls in both stages, and channels of noise are not used in the end."""
    rows, y, features = toy(500)
    codes = np.digitize(y[:, 0], [0.0])
    data = prepared(codes, None, SPLITS["joint"], rows, features)
    done = learn(data, options_of("joint", alpha=3.0, loss=record("log_loss", codes)), max_iter=15)
    stage, values = (np.array(done.history.columns[name]) for name in ("stage", "objective"))
    for one in (0, 1):
        assert (np.diff(values[stage == one]) < 0).all()
    np.testing.assert_allclose(done.history.columns["alpha"], np.where(stage == 0, 0.3, 3.0))
    assert done.result.moved
    assert done.result.norms[0] > 2 * max(done.result.norms[[1, 3, 4, 5]])
    assert done.result.features.channels[0].of.sigma[0] > 1.5 * 0.8


def test_it_resumes_to_the_same_bits_and_a_share_of_the_rows_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after any step, from its checkpoint; the weights that Newton's steps begin with are kept."""
    data = prepared(CODES[2], WEIGHT, SPLITS["joint"])
    options = options_of("joint", loss=record("log_loss", CODES[2]), starts=(Start(), Start(3.0)))
    right, real, steps = bits(learn(data, options, max_iter=3)), SeveralLossBandwidths.step, 0

    class Killed(Exception):
        pass

    def step(self: Any, run: Any, state: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps % 7 == 0:
            raise Killed
        return real(self, run, state)

    monkeypatch.setattr(SeveralLossBandwidths, "step", step)
    kills = 0
    while True:
        try:
            kept = Checkpoint(str(tmp_path / "kept"), {"what": "test"})
            found = learn(data, options, max_iter=3, checkpoint=kept)
            break
        except Killed:
            kills += 1
            assert kills < 50
    assert kills > 1
    assert bits(found) == right


def test_part_of_the_rows_has_its_share_of_alpha() -> None:
    """A quarter of the rows: nearly the same objective, and the same groups."""
    rows, y, features = toy(2000)
    codes = np.digitize(y[:, 0], [0.0])
    data, found = prepared(codes, None, SPLITS["joint"], rows, features), []
    for share in (1.0, 0.25):
        _, step = at_start(data, options_of("joint", alpha=10.0, share=share, loss=record("log_loss", codes)))
        found.append(step.row)
    assert found[1].rows < 0.3 * found[0].rows
    assert found[1].values["objective"] == pytest.approx(found[0].values["objective"], rel=0.1)
    np.testing.assert_allclose(found[0].values["norms"], found[1].values["norms"], atol=0.4)


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_a_cluster_has_the_same_bits(tmp_path: Path) -> None:
    """Two processes that sum, and a scheduler that solves."""

    def found() -> Any:
        data = prepared(CODES[2], WEIGHT, SPLITS["joint"], chunk=16)
        return bits(learn(data, options_of("joint", loss=record("log_loss", CODES[2])), max_iter=1))

    with embedded():
        right = found()
    with cluster_of(tmp_path, 2):
        assert found() == right


def test_the_passes_are_stated() -> None:
    """Each kind of pass that an iteration makes takes what is said."""
    data, made = prepared(CODES[3], WEIGHT, SPLITS["joint"]), {}

    class Watched(Embedded):
        def sum(self, program: Any, *args: Any) -> Any:
            made[program.task] = program.cost()
            return super().sum(program, *args)

    learn(data, options_of("joint", loss=record("log_loss", CODES[3])), max_iter=1, engine=Watched())
    gram = data.gram(data.split)
    costs = several_costs(gram.sizes, gram.map_cost, objective="joint", folds=1, sigmas=5, loss=True)
    stated = {cost.name: cost for cost in costs}
    assert set(made) == {*stated, "scale"}
    for name, cost in stated.items():
        assert cost.thread_bytes == made[name].thread_bytes
        assert cost.sums_bytes == made[name].sums_bytes
        assert cost.flops == made[name].flops


def test_refusals() -> None:
    """Held-out objectives and groups of each output are for squared errors."""
    data, loss = prepared(CODES[3], None, SPLITS["cv"]), record("log_loss", CODES[3])
    with pytest.raises(ValueError, match="the objective 'cv': use the objective 'joint'"):
        method_of(data, options_of("cv", loss=loss))
    with pytest.raises(ValueError, match="by_output=True: use the objective 'joint'"):
        method_of(data, options_of("joint", loss=loss, by_output=True))
    assert len(side_by_side().channels) == 3
