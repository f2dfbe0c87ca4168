"""Training of networks: against dense gradient descent, weights against repeated rows, stops, and candidates."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

import dkl
from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress
from dkl.learn import iterate as loop
from dkl.learn.batches import Batches
from dkl.learn.cosine import Candidate, bundle_of, drawn, linear_of, start_of, training_of
from dkl.learn.iterate import iterate
from dkl.learn.network import Train
from dkl.learn.run import Limits, Run

N, M, C = 230, 5, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, M))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
CODE = np.digitize(Y + 0.2 * RNG.normal(size=N), [-0.4, 0.4])
NETWORK = {"n_components": 20, "random_state": 0, "verbose": 0, "validation": None}


def captured(model: Any, *data: Any, monkeypatch: pytest.MonkeyPatch, **given: Any) -> Train:
    """The method of a fit, before its first step."""
    found: list[Any] = []

    def opened(run: Run, method: Any) -> None:
        found.append(method)
        raise StopIteration

    with monkeypatch.context() as patch:
        patch.setattr(loop, "_opened", opened)
        with pytest.raises(StopIteration):
            model.fit(*data, **given)
    return found[0]


def dense_epochs(
    start: dict[str, np.ndarray], batches: Batches, epochs: int, rate: float, decay: float, cap: float
) -> Any:
    """Mini-batch gradient descent on plain arrays: Gam in radians per unit of X."""
    G, b, V, c = (start[name].copy() for name in ("frequencies", "phase", "coef", "intercept"))
    speed, losses = [np.zeros_like(p) for p in (G, b, V, c)], []
    scale = np.sqrt(2 / G.shape[1])
    for e in range(epochs):
        mu, loss = 0.5 + 0.49 * min(e / 10, 1), 0.0
        for pieces in batches.epoch(e):
            rows = np.concatenate([np.arange(N)[piece.rows(N)] for piece in pieces])
            T, Y1 = X[rows], np.eye(C)[CODE[rows]]
            theta = T @ G + b
            A = scale * np.cos(theta)
            Z = A @ V + c
            loss -= (log_softmax(Z, axis=1) * Y1).sum()
            dZ = (np.exp(log_softmax(Z, axis=1)) - Y1) / len(rows)
            P = -scale * np.sin(theta) * (dZ @ V.T)
            slopes = T.T @ P + decay * G, P.sum(0), A.T @ dZ, dZ.sum(0, keepdims=True)
            speed = [mu * v - rate * g for v, g in zip(speed, slopes, strict=True)]
            G, b, V, c = (p + v for p, v in zip((G, b, V, c), speed, strict=True))
            G *= np.minimum(1, cap / np.linalg.norm(G, axis=0))
        losses.append(loss / N)
    return G, b, V, c, losses


def test_epochs_are_those_of_dense_gradient_descent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every parameter after 12 epochs of 8 steps, and the loss of each epoch."""
    options = {**NETWORK, "learning_rate": 0.2, "decay": 0.01, "max_norm": 1.5, "max_iter": 12, "batch_size": 29}
    model = dkl.ContinuousKernelClassifier(**options)
    method = captured(model, X, CODE, monkeypatch=monkeypatch)
    unit = float(method.network.model.map.sigma[0])
    assert unit == 1.0  # so that the parameters are those of the formula
    assert method.batches.steps == 8
    G, b, V, c, losses = dense_epochs(method.network.start, method.batches, 12, 0.2, 0.01, 1.5)
    model.fit(X, CODE)
    omega = model.features_.wide_sigma[:, None] * model.features_.unit
    np.testing.assert_allclose(omega, G, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(np.exp(2j * np.pi * model.features_.phase), np.exp(1j * b), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(model.coef_.T, V, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(model.intercept_, c[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(model.history_["objective"], losses, rtol=1e-11)
    assert np.isclose(np.linalg.norm(omega, axis=0), 1.5, rtol=1e-12).any()
    assert losses[-1] < 0.9 * losses[0]


def test_weights_are_repeated_rows() -> None:
    """In steps of all rows, whole weights and copies of the rows give the same network."""
    weight = RNG.integers(0, 4, N)
    options = {**NETWORK, "max_iter": 25, "batch_size": 10**6, "sigma": 0.6}
    weighed = dkl.ContinuousKernelClassifier(**options).fit(X, CODE, sample_weight=weight.astype(float))
    copies = np.repeat(np.arange(N), weight)
    repeated = dkl.ContinuousKernelClassifier(**options).fit(X[copies], CODE[copies])
    np.testing.assert_allclose(weighed.coef_, repeated.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(weighed.features_.unit, repeated.features_.unit, rtol=1e-7, atol=1e-9)
    plain = dkl.ContinuousKernelClassifier(**options).fit(X, CODE)
    assert np.abs(plain.coef_ - weighed.coef_).max() > 1e-3
    classes = dkl.ContinuousKernelClassifier(**options, class_weight={0: 2, 1: 1, 2: 1}).fit(X, CODE)
    doubled = np.concatenate([np.arange(N), np.flatnonzero(CODE == 0)])
    twice = dkl.ContinuousKernelClassifier(**options).fit(X[doubled], CODE[doubled])
    np.testing.assert_allclose(classes.coef_, twice.coef_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("chunk", [17, 100])
def test_chunks_change_no_bit(chunk: int) -> None:
    """Rows in memory and lazy rows of any chunks: the same pieces, the same bits; also if few of them may stay."""
    options = {**NETWORK, "validation": 0.2, "max_iter": 4, "batch_size": 50, "sigma": 0.6}
    right = dkl.ContinuousKernelClassifier(**options).fit(X, CODE)
    lazy = dkl.ContinuousKernelClassifier(**options).fit(da.from_array(X, chunks=(chunk, -1)), CODE)
    assert right.coef_.tobytes() == lazy.coef_.tobytes()
    assert right.features_.unit.tobytes() == lazy.features_.unit.tobytes()
    assert right.history_["validation_loss"].values.tobytes() == lazy.history_["validation_loss"].values.tobytes()


def test_early_stopping_restores_the_best_epoch() -> None:
    """The model is that of a fit that ends after the best epoch; patience counts from there."""
    options = {**NETWORK, "validation": 0.3, "learning_rate": 0.5, "n_components": 60, "patience": 7, "sigma": 1.5}
    model = dkl.ContinuousKernelClassifier(**options, max_iter=300).fit(X, CODE)
    loss = model.history_["validation_loss"].values
    best = int(np.argmin(loss))
    assert 0 < best < len(loss) - 1
    assert len(loss) == best + 1 + 7
    shorter = dkl.ContinuousKernelClassifier(**options, max_iter=best + 1).fit(X, CODE)
    assert shorter.coef_.tobytes() == model.coef_.tobytes()
    assert shorter.features_.unit.tobytes() == model.features_.unit.tobytes()
    longer = dkl.ContinuousKernelClassifier(**{**options, "validation": None}, max_iter=best + 1).fit(X, CODE)
    assert longer.coef_.tobytes() != model.coef_.tobytes()  # which sees the rows that were held out


def test_divergence_is_said() -> None:
    """Without held-out rows it is refused; with them the best epoch is kept, and said; both say what to lower."""
    far = {**NETWORK, "max_iter": 300, "batch_size": 20}
    with pytest.raises(ValueError, match=r"training diverged in epoch \d+.*lower learning_rate \(now 1000\)$"):
        dkl.ContinuousKernelRegressor(**far, learning_rate=1000).fit(X, Y)
    held = {**far, "validation": 0.2, "patience": 300}
    lower = r"the model is that of epoch \d+; lower learning_rate \(now 0.5\) or decay \(now 9\)"
    with pytest.warns(ConvergenceWarning, match=lower):
        model = dkl.ContinuousKernelRegressor(**held, learning_rate=0.5, decay=9).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()


def test_nothing_learned_is_said() -> None:
    """No epoch better than the start, or a loss that rises."""
    with pytest.warns(ConvergenceWarning, match=r"no epoch had a lower held-out loss than the start.*\(now 50\)"):
        model = dkl.ContinuousKernelClassifier(**{**NETWORK, "validation": 0.3}, learning_rate=50, max_iter=5).fit(
            X, CODE
        )
    start = model.spectrum_["start"].values
    np.testing.assert_allclose(model.spectrum_["frequency"].values, start, rtol=1e-12)
    with pytest.warns(ConvergenceWarning, match=r"the loss rose from .* in the first epoch to .*\(now 50\)"):
        dkl.ContinuousKernelClassifier(**NETWORK, learning_rate=50, max_iter=5, batch_size=N).fit(X, CODE)


def several(monkeypatch: pytest.MonkeyPatch, count: int = 3, **options: Any) -> tuple[Any, Any, list[Candidate]]:
    """Data, a run and candidates for a bundle."""
    model = dkl.ContinuousKernelClassifier(**{**NETWORK, "validation": 0.2, "sigma": 0.6})
    seen: list[Any] = []

    def learn(run: Run, data: Any, given: Any) -> None:
        seen.append((run, data))
        raise StopIteration

    monkeypatch.setattr(model, "_learn", learn)
    with pytest.raises(StopIteration):
        model.fit(X, CODE)
    run, data = seen[0]
    candidates = [
        Candidate(8 + 5 * i, 0.1 * (i + 1), spread=1.0 + i, ramp=3 + i, decay=0.01 * i, cap=2.0 + i)
        for i in range(count)
    ]
    return Run(Embedded(2), run.rows, Progress(0), Limits(max_iter=6)), data, candidates


def trained(run: Run, data: Any, candidates: list[Candidate], starts: Any, patience: int = 50, epochs: int = 6) -> Any:
    """A bundle after some epochs."""
    loss = dkl.ContinuousKernelClassifier()._loss_of(C)
    network = bundle_of(data, candidates, starts, loss, True)
    method = training_of(
        run.engine, run.rows, data, network, candidates, epochs=epochs, batch_size=40, patience=patience
    )
    return network, iterate(run, method).result


def test_a_bundle_is_its_candidates_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with a width, a rate, a cap and a momentum of its own, in the same passes."""
    run, data, candidates = several(monkeypatch)
    rng = np.random.default_rng(3)
    starts = [start_of(data, drawn(data, one, "iid", rng), np.zeros(C), rng) for one in candidates]
    network, together = trained(run, data, candidates, starts)
    for s, one in enumerate(candidates):
        single, alone = trained(run, data, [one], [starts[s]])
        assert together.loss[s] == pytest.approx(alone.loss[0], rel=1e-9)
        assert together.epoch[s] == alone.epoch[0]
        for found, right in zip(
            linear_of(data, network, together.parameters, s), linear_of(data, single, alone.parameters, 0), strict=True
        ):
            np.testing.assert_allclose(found, right, rtol=1e-7, atol=1e-9)


def test_candidates_that_stop_leave_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One diverges at once, one stops early, one goes on to the end, as if it had been alone."""
    run, data, candidates = several(monkeypatch)
    candidates = [
        candidates[0]._replace(rate=1e306),
        candidates[1]._replace(rate=3.0),
        candidates[2]._replace(rate=0.02),
    ]
    rng = np.random.default_rng(3)
    starts = [start_of(data, drawn(data, one, "iid", rng), np.zeros(C), rng) for one in candidates]
    network, together = trained(run, data, candidates, starts, patience=3, epochs=25)
    assert together.diverged.tolist() == [True, False, False]
    assert together.state.ended[0] == 1
    assert 0 < together.state.ended[1] < 25
    single, alone = trained(run, data, [candidates[2]], [starts[2]], patience=3, epochs=25)
    assert together.epoch[2] == alone.epoch[0]
    np.testing.assert_allclose(
        linear_of(data, network, together.parameters, 2)[0],
        linear_of(data, single, alone.parameters, 0)[0],
        rtol=1e-6,
        atol=1e-9,
    )
