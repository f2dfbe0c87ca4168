"""A search over networks: each candidate as if it were alone, who is dropped, and the model of the best one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import expit

from dkl.estimators import continuous_search
from dkl.learn import halving
from dkl.learn.cosine_search import CosineSearch, bundles
from dkl.learn.iterate import iterate
from dkl.learn.network import Train
from dkl.learn.network_search import Search
from dkl.learn.run import Run
from dkl.sums.networks import put, taken
from tests.learn.search_data import LABEL, NUMBER, SEARCH, N, X, searched

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Seen(NamedTuple):
    """A fitted model and the search inside it."""

    model: Any
    search: CosineSearch
    run: Run


@pytest.fixture
def see(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fit, with early rungs, and keep hold of the search."""
    monkeypatch.setattr(halving, "FIRST_STEPS", 12)
    inside: list[tuple] = []
    make = continuous_search.search_of

    def search_of(run: Run, *rest: Any) -> CosineSearch:
        inside.append((make(run, *rest), run))
        return inside[-1][0]

    monkeypatch.setattr(continuous_search, "search_of", search_of)
    return lambda **options: Seen(searched(**options), *inside.pop())


def alone(seen: Seen, train: Train, number: int) -> Any:
    """One candidate of a bundle, trained by itself."""
    network = train.network.taken(np.array([number]))
    rates = type(train.rates)(*(values[[number]] for values in vars(train.rates).values()))
    return iterate(seen.run, Train(network, rates, train.batches, train.kept, train.epochs, train.patience)).result


@pytest.mark.parametrize("options", [{"cv": 3}, {"validation": 0.3, "y": NUMBER}, {"cv": 2, "patience": 3}])
def test_candidates_do_not_feel_each_other(see: Any, options: dict) -> None:
    """Each ends as the same candidate trained alone: same loss, same epoch, same parameters."""
    seen = see(halving=None, **options)
    method, table = seen.search.method, seen.model.search_results_
    assert method.count == SEARCH["candidates"]
    for s in range(method.count):
        places, number = method.of(s)
        losses, epochs = [], []
        for i in places:
            train = method.trains[i]
            found = alone(seen, train, number)
            losses.append(found.loss[0])
            epochs.append(found.epoch[0])
            network = train.network.taken(np.array([number]))
            assert network.model.widths == (int(table.n_components[s]),)
        np.testing.assert_allclose(table.validation_loss[s], np.mean(losses), rtol=1e-9)
        assert table.epochs[s] == np.mean(epochs)


def test_halving_drops_whom_a_ranking_says(see: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses after every epoch come from a search that drops no one; a ranking of them says who is dropped when."""
    losses: list[np.ndarray] = []
    row = Search._row

    def noting(method: Search, state: Any) -> Any:
        losses.append(np.stack([one.loss for one in state.trainings], axis=1))
        return row(method, state)

    monkeypatch.setattr(Search, "_row", noting)
    whole = see(halving=None, cv=3)
    assert len(whole.search.method.trains) == 3  # one bundle
    by_epoch = [each.mean(axis=1) for each in losses]
    halved = see(halving=2, cv=3)
    rungs = halving.rungs_of(SEARCH["candidates"], 2, whole.search.method.trains[0].batches.steps, 24)
    dropped, alive = np.zeros(7, int), list(range(7))
    for rung in rungs:
        alive.sort(key=lambda s: by_epoch[rung - 1][s])
        keep = int(np.ceil(len(alive) / 2))
        dropped[alive[keep:]] = rung
        alive = alive[:keep]
    assert len(set(dropped)) > 2  # several rungs
    table = halved.model.search_results_
    assert table.dropped_at.values.tolist() == dropped.tolist()
    assert int(np.argmin(table["rank"].values)) == alive[int(np.argmin([by_epoch[-1][s] for s in alive]))]
    assert (table["rank"].values[dropped == 0].max()) < table["rank"].values[dropped > 0].min()
    np.testing.assert_allclose(table.validation_loss[alive], by_epoch[-1][alive], rtol=1e-9)


def trained_by_hand(A: np.ndarray, a: np.ndarray, start: dict, one: Any, epochs: int) -> list[dict]:
    """Full steps of gradient descent with momentum on the mean log loss of scores cos(A G + b) V sqrt(2/D) + c."""
    at = {name: np.array(values) for name, values in start.items()}
    speed, found = {name: np.zeros_like(values) for name, values in at.items()}, [dict(at)]
    scale = np.sqrt(2 / one.width)
    for epoch in range(epochs):
        theta = A @ at["frequencies"] + at["phase"]
        psi = scale * np.cos(theta)
        slope = (expit((psi @ at["coef"] + at["intercept"])[:, 0]) - a)[:, None] / len(a)
        back = -scale * np.sin(theta) * (slope @ at["coef"].T)
        gradient = {
            "frequencies": A.T @ back + one.decay * at["frequencies"],
            "phase": back.sum(axis=0),
            "coef": psi.T @ slope,
            "intercept": slope.sum(axis=0, keepdims=True),
        }
        mu = one.momentum[0] + (one.momentum[1] - one.momentum[0]) * min(epoch / one.ramp, 1)
        for name in at:
            speed[name] = mu * speed[name] - one.rate * gradient[name]
            at[name] = at[name] + speed[name]
        found.append(dict(at))
    return found


def log_loss(at: dict, A: np.ndarray, a: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean log loss, and scores."""
    psi = np.sqrt(2 / len(at["phase"])) * np.cos(A @ at["frequencies"] + at["phase"])
    z = (psi @ at["coef"] + at["intercept"])[:, 0]
    return float(np.mean(np.logaddexp(0, np.where(a == 1, -z, z)))), z


def test_the_model_is_the_mean_of_the_folds(see: Any) -> None:
    """Every candidate on every fold by hand; the best by mean held-out loss; scores are the mean of its networks'."""
    fold, a = np.arange(N) % 3, (LABEL == "out").astype(float)
    seen = see(cv=fold, batch_size=N, halving=None, loss="logistic")
    method, networks = seen.search.method, {}
    unit = float(1 / seen.search.method.trains[0].network.model.map.sigma[0])
    means = []
    for s, one in enumerate(seen.search.candidates):
        places, number = method.of(s)
        for k, i in enumerate(places):
            network = method.trains[i].network
            start = taken(network.start, network.owner, np.array([number]))
            ways = trained_by_hand(X[fold != k] / unit, a[fold != k], start, one, 24)
            held = [log_loss(at, X[fold == k] / unit, a[fold == k])[0] for at in ways]
            networks[s, k] = ways[int(np.argmin(held))], min(held)
        means.append(np.mean([networks[s, k][1] for k in range(3)]))
    np.testing.assert_allclose(seen.model.search_results_.validation_loss, means, rtol=1e-7)
    best = int(np.argmin(means))
    assert seen.model.best_params_["n_components"] == seen.search.candidates[best].width
    wanted = np.mean([log_loss(networks[best, k][0], X / unit, a)[1] for k in range(3)], axis=0)
    np.testing.assert_allclose(seen.model.decision_function(X), wanted, rtol=1e-6, atol=1e-8)
    assert seen.model.features_.n_features == 3 * seen.search.candidates[best].width


def test_held_out_rows_choose_the_model(see: Any) -> None:
    """With a mask the model is the best candidate's network at its best epoch: its loss on the mask is the table's."""
    mask = np.arange(N) % 4 == 0
    model = see(validation=mask, halving=None).model
    z, right = model.decision_function(X[mask]), LABEL[mask] == "out"
    loss = np.mean(np.logaddexp(0, np.where(right, -z, z)))
    np.testing.assert_allclose(loss, float(model.search_results_.validation_loss.min()), rtol=1e-9)


def test_bundles_change_nothing_but_rounding(see: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several small bundles end as a large one does, and drop the same."""
    one = see(cv=2)
    monkeypatch.setattr("dkl.learn.cosine_search.NUMBERS", 60)
    several = see(cv=2)
    assert len(one.search.method.members) == 1
    assert len(several.search.method.members) > 2
    a, b = one.model.search_results_, several.model.search_results_
    assert (a.dropped_at == b.dropped_at).all()
    assert (a["rank"] == b["rank"]).all()
    np.testing.assert_allclose(a.validation_loss, b.validation_loss, rtol=1e-9)
    np.testing.assert_allclose(one.model.decision_function(X), several.model.decision_function(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("most", "wanted"), [(10, [[0], [1, 2], [3]]), (100, [[0, 1, 2, 3]]), (1, [[0], [1], [2], [3]])]
)
def test_candidates_fill_bundles_in_order(most: int, wanted: list) -> None:
    """As many as have so many cosines together; one that has more stands alone."""
    assert [some.tolist() for some in bundles([12, 4, 6, 5], most)] == wanted


def test_candidates_that_diverge(see: Any) -> None:
    """They are in the table, come last, and do no harm to the others."""
    search = {"candidates": 6, "learning_rate": [0.05, 1e250]}
    model = see(search=search, y=NUMBER, n_components=6, cv=2, halving=None, max_iter=5).model
    table = model.search_results_
    wild = table.learning_rate > 1
    assert 0 < int(wild.sum()) < 6
    assert (table.diverged == wild).all()
    assert model.best_params_ == {"learning_rate": 0.05}
    assert table["rank"].values[wild].min() > table["rank"].values[~wild].max()
    with pytest.raises(ValueError, match="all 3 candidates diverged before an epoch had a lower held-out loss"):
        see(search={"candidates": 3, "learning_rate": [1e250]}, y=NUMBER, n_components=6, cv=2, max_iter=5)


def test_put_is_the_inverse_of_taken(see: Any) -> None:
    """Numbers of one candidate of the bundle, and back."""
    network = see(cv=2, max_iter=1).search.method.trains[0].network
    some = np.array([1, 4])
    own = taken(network.start, network.owner, some)
    zero = {name: np.zeros_like(values) for name, values in network.start.items()}
    back = put(zero, network.owner, some, own)
    for name, owner in network.owner.items():
        inside = np.isin(np.broadcast_to(owner, back[name].shape), some)
        assert (back[name][inside] == network.start[name][inside]).all()
        assert not back[name][~inside].any()
