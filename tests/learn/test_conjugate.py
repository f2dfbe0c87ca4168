"""Ridge by conjugate gradients against scikit-learn's Ridge and dense systems of the same features."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.learn import conjugate
from dkl.learn.ridge import RidgeOptions, fit_ridge
from dkl.learn.run import Run
from dkl.store.checkpoint import Checkpoint
from dkl.sums import products
from tests.engine.conftest import cluster_of, embedded
from tests.learn.conjugate_data import (
    ALPHAS,
    CODES,
    FEATURES,
    NUMBERS,
    SEED,
    WEIGHT,
    D,
    K,
    N,
    X,
    fit,
    fit_chosen,
    fit_given,
    prepared,
)  # fmt: skip

PSI = FEATURES.at(np.float64).transform(X)
KINDS = {"values": NUMBERS, "two classes": CODES[2], "three classes": CODES[3]}


def dense(y: np.ndarray) -> np.ndarray:
    """Targets that ridge sees."""
    if y.ndim == 2:
        return y
    Y = 2.0 * np.eye(y.max() + 1)[y] - 1
    return Y[:, 1:] if Y.shape[1] == 2 else Y


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_ridge(kind: str, weighted: bool, intercept: bool) -> None:
    """Coefficients, intercept, and a residual that a dense system confirms."""
    y, w, alpha = KINDS[kind], WEIGHT if weighted else None, 0.5
    found, done = fit(prepared(y, w, centre=intercept), alpha, intercept=intercept, tol=1e-11)
    right = Ridge(alpha, fit_intercept=intercept).fit(PSI, dense(y), w)
    coef = np.atleast_2d(right.coef_).T.reshape(D, -1)
    np.testing.assert_allclose(found.coef, coef, atol=1e-7 * np.abs(coef).max())
    np.testing.assert_allclose(found.intercept, np.broadcast_to(right.intercept_, found.intercept.shape), rtol=1e-7)
    assert done.reason == "converged"
    assert found.certificate <= 1e-11
    assert found.warning is None
    ones = np.ones(N) if w is None else w
    error = ones @ (PSI @ found.coef + found.intercept - dense(y)) ** 2 + alpha * (found.coef**2).sum(axis=0)
    assert found.objective == pytest.approx(error.sum() / ones.sum(), rel=1e-6)


def test_one_alpha_for_each_output() -> None:
    """As scikit-learn takes them."""
    found, _ = fit(prepared(), ALPHAS[:2], tol=1e-11)
    coef = Ridge(ALPHAS[:2]).fit(PSI, NUMBERS).coef_.T
    np.testing.assert_allclose(found.coef, coef, atol=1e-7 * np.abs(coef).max())
    assert found.alpha.tolist() == ALPHAS[:2].tolist()


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_gram(kind: str, weighted: bool) -> None:
    """Folds, alphas, the choice and the weights agree with the fit that has a gram."""
    data = prepared(KINDS[kind], WEIGHT if weighted else None, K)
    found, _ = fit(data, ALPHAS, choose=True, choice_tol=1e-10, tol=1e-10)
    run = Run(engine_for(False), data.rows, Progress(0))
    right = fit_ridge(run, data.gram(data.split), RidgeOptions(ALPHAS, True, choose=True))
    assert found.scores is not None
    np.testing.assert_allclose(found.scores, right.scores, rtol=1e-6)
    assert found.alpha == right.alpha
    np.testing.assert_allclose(found.coef, right.coef, atol=1e-6 * np.abs(right.coef).max())
    loose, _ = fit(data, ALPHAS, choose=True, tol=1e-10)
    np.testing.assert_allclose(loose.scores, right.scores, rtol=0.2)  # type: ignore[arg-type]
    assert loose.alpha == right.alpha


def test_small_tiles_and_chunks_change_rounding_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in chunks of any size, tiles of few rows."""
    right = fit(prepared(weight=WEIGHT), 0.5, tol=1e-11)[0]
    monkeypatch.setattr(products, "TILE_ROWS", 37)
    monkeypatch.setattr(products, "AT_ONCE", 1)
    with embedded():
        for chunk in (29, 400):
            found = fit(prepared(weight=WEIGHT, chunk=chunk), 0.5, tol=1e-11)[0]
            np.testing.assert_allclose(found.coef, right.coef, atol=1e-8 * np.abs(right.coef).max())


def test_a_preconditioner_saves_passes() -> None:
    """The same weights, in fewer products."""
    plain, long = fit(prepared(), 1e-3, sample=0)
    quick, short = fit(prepared(), 1e-3)
    np.testing.assert_allclose(plain.coef, quick.coef, atol=1e-3 * np.abs(quick.coef).max())
    assert len(short.history) < len(long.history)


def test_narrow_blocks_end_and_say_what_they_reached() -> None:
    """float32: the certificate is that of the weights; what cannot be reached ends as stalled."""
    found, done = fit(prepared(dtype=np.float32), 1.0, tol=1e-4)
    coef = Ridge(1.0).fit(PSI, NUMBERS).coef_.T
    np.testing.assert_allclose(found.coef, coef, atol=1e-3 * np.abs(coef).max())
    assert found.certificate <= 1e-4
    stalled, done = fit(prepared(dtype=np.float32), 1.0, tol=1e-14)
    assert done.reason == "stalled"
    assert 1e-14 < stalled.certificate < 1e-4


def test_too_few_iterations_are_said() -> None:
    """The limit, and a residual that is not small (the estimators warn of it)."""
    found, done = fit(prepared(), 1e-3, max_iter=2, sample=0)
    assert done.reason == "max_iter"
    assert found.certificate > 1e-3


def test_a_choice_needs_folds() -> None:
    """A list of alphas and one fold."""
    with pytest.raises(ValueError, match="set cv=5"):
        fit(prepared(), ALPHAS, choose=True)


def same(one: Any, other: Any) -> None:
    """Two fits, bit for bit."""
    for name in ("coef", "intercept", "alpha", "scores", "residuals"):
        assert np.asarray(getattr(one.weights, name)).tobytes() == np.asarray(getattr(other.weights, name)).tobytes()
    for name in ("objective", "residual", "passes"):
        assert one.iterated.history.arrays()[name].tobytes() == other.iterated.history.arrays()[name].tobytes()


@pytest.mark.parametrize("make", [fit_given, fit_chosen])
def test_it_resumes_to_the_same_bits(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after any step, from its checkpoint."""
    right, real, steps = make(), conjugate.ConjugateRidge.step, 0

    class Killed(Exception):
        pass

    def step(self: Any, run: Any, state: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps % 3 == 0:
            raise Killed
        return real(self, run, state)

    monkeypatch.setattr(conjugate.ConjugateRidge, "step", step)
    kills = 0
    while True:
        try:
            found = make(checkpoint=Checkpoint(str(tmp_path / "kept"), {"what": "test"}))
            break
        except Killed:
            kills += 1
            assert kills < 200
    assert kills > 1
    same(found, right)


@pytest.mark.cluster
@pytest.mark.timeout(120)
@pytest.mark.parametrize("folds", [1, K])
def test_a_cluster_has_the_same_bits(folds: int, tmp_path: Path) -> None:
    """Two processes that sum, and a scheduler that solves."""
    options = {"alpha": ALPHAS, "choose": True} if folds > 1 else {"alpha": 0.5}
    with embedded():
        right = fit(prepared(weight=WEIGHT, folds=folds, chunk=64), **options)
    with cluster_of(tmp_path, 2), warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        found = fit(prepared(weight=WEIGHT, folds=folds, chunk=64), **options)
    same(found, right)


def test_folds_are_those_of_the_hash() -> None:
    """The seed of the prepared data."""
    assert prepared(folds=K).gram(prepared(folds=K).split).seed == SEED
