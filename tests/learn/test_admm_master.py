"""The master of alternating directions: the least point of prox-Newton, whatever a process remembers of its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress
from dkl.learn.admm_master import AdmmMaster
from dkl.learn.masters import NewtonMaster, Restricted, Solved
from dkl.learn.run import Run
from dkl.losses import find_loss, loss_of_scores
from dkl.prepare.folds import Folds, Split
from dkl.solvers.group_norms import GroupNorm
from dkl.sums import admm
from dkl.sums.row_memory import RowMemory
from tests.learn.loss_data import WEIGHT, N, dense_features, prepared, targets_of

D = 12
GROUPS = np.tile(np.arange(D // 2), 2)
CASES = [
    ("log_loss", 1, "l21", 0.0), ("squared_hinge", 1, "l1linf", 0.0), ("log_loss", 3, "l21", 0.1),
    ("huber", 2, "l21", 0.0), ("smoothed_hinge", 3, "l1linf", 0.0), ("logistic", 3, "l21", 0.0),
]  # fmt: skip


def restricted(name: str, outputs: int, kind: str, ridge: float = 0.0, tests: int = -1, **how: Any) -> Restricted:
    """A problem on some rows."""
    split = Split(Folds(2, None), (1, 3)) if tests >= 0 else Split()
    data = prepared(targets_of(name, outputs), WEIGHT, split, **how).in_units_of_y()
    loss = loss_of_scores(find_loss(name), data.targets.n_outputs)
    return Restricted(data.gram(split), loss, GroupNorm(kind, GROUPS, None, ridge), True, tests), data  # type: ignore[return-value]


def solved(
    master: Any, problem: Restricted, data: Any, lam: float, tol: float, start: Any = None, **how: Any
) -> Solved:
    """The end of a solve."""
    run = Run(how.get("engine", Embedded(1)), data.rows, Progress(0))
    zero = np.zeros((D + 1, data.targets.n_outputs))
    return master.solve(run, problem, zero if start is None else start, lam, tol, how.get("carry", {}))


def breach(problem: Restricted, weights: np.ndarray, lam: float, sigma: Any, y: np.ndarray) -> float:
    """The KKT residual over lam, in dense numpy: group by group, with the intercept."""
    Psi, B = dense_features(sigma), weights[:-1]
    slope = problem.loss.slope(Psi @ B + weights[-1], y) * WEIGHT[:, None] / WEIGHT.sum()
    C, worst = -Psi.T @ slope - lam * problem.norm.ridge * B, float(np.abs(slope.sum(axis=0)).max())
    for g, eta in enumerate(problem.norm.factor):
        own, c = B[g == GROUPS], C[g == GROUPS]
        dual = np.linalg.norm(c) if problem.norm.kind == "l21" else np.abs(c).sum()
        worst = max(worst, dual - lam * eta)
        if own.any():
            size = np.linalg.norm(own) if problem.norm.kind == "l21" else np.abs(own).max()
            worst = max(worst, abs((c * own).sum() - lam * eta * size) / size)
    return worst / lam


@pytest.mark.parametrize(("name", "outputs", "kind", "ridge"), CASES)
def test_the_least_point(name: str, outputs: int, kind: str, ridge: float) -> None:
    """That of prox-Newton, with the zeros of whole groups; the certificate is what dense numpy finds."""
    problem, data = restricted(name, outputs, kind, ridge)
    lam = 0.02
    found, theirs = (solved(one, problem, data, lam, 1e-7 * lam) for one in (AdmmMaster(), NewtonMaster()))
    assert found.residual <= 1e-7 * lam
    np.testing.assert_allclose(found.weights, theirs.weights, atol=2e-5 * np.abs(theirs.weights).max())
    assert found.value == pytest.approx(theirs.value, rel=1e-6)
    y = targets_of(name, outputs)
    if not problem.loss.is_class:
        y = data.targets.encode(y)
    assert breach(problem, found.weights, lam, data.features.sigma, y) < 1e-5
    on = [found.weights[:-1][g == GROUPS].any() for g in range(D // 2)]
    assert on == [theirs.weights[:-1][g == GROUPS].any() for g in range(D // 2)]
    assert sum(on) > 0


def test_rows_that_are_held_out() -> None:
    """They do not train, and their mean loss is told."""
    problem, data = restricted("log_loss", 3, "l21", tests=1)
    found, theirs = (solved(one, problem, data, 0.03, 3e-9) for one in (AdmmMaster(), NewtonMaster()))
    np.testing.assert_allclose(found.weights, theirs.weights, atol=1e-5)
    assert found.error == pytest.approx(theirs.error, rel=1e-6)
    assert found.value == pytest.approx(theirs.value, rel=1e-6)
    assert solved(AdmmMaster(), restricted("log_loss", 3, "l21")[0], data, 0.03, 3e-9).value != found.value


def test_a_good_start_is_one_pass() -> None:
    """The weights of the last solve are judged, and kept; xi goes on from where it was."""
    problem, data = restricted("log_loss", 3, "l21")
    found = solved(AdmmMaster(), problem, data, 0.02, 1e-8)
    again = solved(AdmmMaster(), problem, data, 0.02, 2e-8, found.weights, carry=found.carry)
    assert again.passes == 1
    assert again.weights.tobytes() == found.weights.tobytes()
    near = solved(AdmmMaster(), problem, data, 0.019, 1e-8, found.weights, carry=found.carry)
    far = solved(AdmmMaster(), problem, data, 0.019, 1e-8)
    assert near.passes < far.passes


class Forgetful(RowMemory):
    """Remembers a block now and then."""

    calls = 0

    def get(self, block: int, steps: int) -> Any:
        Forgetful.calls += 1
        return super().get(block, steps) if Forgetful.calls % 3 == 0 else (0, ())


@pytest.mark.parametrize("tests", [-1, 1])
def test_memory_spares_work_and_changes_no_bit(tests: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that is forgotten takes all steps again; one that is remembered, the last one alone."""
    problem, data = restricted("log_loss", 3, "l21", tests=tests, chunk=20)
    taken = []
    plain = admm.loss_prox
    monkeypatch.setattr(admm, "loss_prox", lambda *given: taken.append(1) or plain(*given))
    monkeypatch.setattr(Embedded, "threads", 1, raising=False)
    found = solved(AdmmMaster(), problem, data, 0.02, 1e-8)
    blocks = len(data.rows.blocks(problem.gram.rows_wanted))
    assert len(taken) == (found.passes - 2) * blocks
    taken.clear()
    monkeypatch.setattr(admm.AdmmProgram.__dataclass_fields__["memory"], "default_factory", Forgetful)
    program = admm.AdmmProgram(problem.gram, problem.loss, tests, None, Forgetful())
    monkeypatch.setattr("dkl.learn.admm_master.AdmmProgram", lambda *given: replace(program))
    again = solved(AdmmMaster(), problem, data, 0.02, 1e-8)
    assert again.weights.tobytes() == found.weights.tobytes()
    assert again.passes == found.passes
    assert len(taken) > 2 * (found.passes - 2) * blocks


@pytest.mark.parametrize("threads", [1, 3])
def test_any_number_of_threads(threads: int) -> None:
    """The same bits."""
    problem, data = restricted("log_loss", 3, "l21", chunk=7)
    found = solved(AdmmMaster(), problem, data, 0.02, 1e-6, engine=Embedded(threads))
    right = solved(AdmmMaster(), problem, data, 0.02, 1e-6, engine=Embedded(2))
    assert found.weights.tobytes() == right.weights.tobytes()
    assert len(data.rows.blocks(7)) == -(-N // 7)
