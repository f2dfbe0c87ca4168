"""The proof that the seams carry: the toy family of toy.py gets everything from them, without another line.

Oracles: scipy.optimize on dense features, scikit-learn's LogisticRegression, and fits that nobody disturbed.
"""

from __future__ import annotations

import ast
import os
import pickle
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import check_grad, minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import dkl
from dkl.engine.progress import listening
from dkl.store.checkpoint import Checkpoint, progress_of
from tests.contracts.toy import PseudoHuber, ToyClassifier, ToyRegressor
from tests.engine.conftest import (
    ROOT,
    Machines,
    assert_same_bits,
    assert_unfitted,
    cluster_of,
    embedded,
    slow,
    wait_until,
)
from tests.engine.test_memory import measure, write_rows
from tests.engine.test_progress import Screen

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore:learning stopped at:sklearn.exceptions.ConvergenceWarning"),
]

RNG = np.random.default_rng(0)
N, M, D, DELTA = 1500, 3, 16, 0.7
X = RNG.normal(size=(N, M))
Y = 5 + 3 * np.sin(2 * X[:, 0]) + X[:, 1] + RNG.standard_t(2, size=N)
CODE = np.digitize(Y, [3.0, 6.0])
WEIGHT = RNG.integers(0, 3, N).astype(float)
FEW = {"n_components": D, "sigma": 0.5, "random_state": 0, "max_iter": 8, "tol": 1e-12, "verbose": 0}


def regressor(**options: Any) -> Any:
    """Not fitted yet; it ends at max_iter."""
    return ToyRegressor(**(FEW | {"delta": DELTA} | options))


def everything(model: Any) -> dict[str, np.ndarray]:
    """All that a fit found out, but how long it took."""
    values = {name: getattr(model, name) for name in ("coef_", "intercept_", "sigma_", "n_iter_")}
    values |= {name: model.history_[name].values for name in model.history_.variables if name != "seconds"}
    return {name: np.asarray(value) for name, value in values.items()}


def chunked(rows: int = 100) -> da.Array:
    """X in chunks."""
    return da.from_array(X, chunks=(rows, -1))


def test_it_is_short() -> None:
    """Fewer than 80 lines of code: neither blank, nor docstring, nor comment."""
    text = (Path(__file__).parent / "toy.py").read_text()
    strings = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    docs = {number for node in strings for number in range(node.lineno, node.end_lineno + 1)}
    lines = [line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in docs]
    assert len([line for line in lines if line and not line.startswith("#")]) < 80


def dense(model: Any, rows: np.ndarray = X) -> np.ndarray:
    """Features of all rows."""
    return model.features_.at(np.float64).transform(rows)


def best_weights(Psi: np.ndarray, y: np.ndarray, weight: np.ndarray, alpha: float, intercept: bool) -> tuple:
    """(coef, intercept, objective) of one output by BFGS."""

    def objective(p: np.ndarray) -> tuple[float, np.ndarray]:
        r = Psi @ p[:-1] + intercept * p[-1] - y
        root = np.sqrt(1 + (r / DELTA) ** 2)
        pulled = weight * r / root
        value = DELTA**2 * weight @ (root - 1) + alpha / 2 * p[:-1] @ p[:-1]
        return value, np.append(Psi.T @ pulled + alpha * p[:-1], intercept * pulled.sum())

    found = minimize(objective, np.zeros(Psi.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-8})
    return found.x[:-1], found.x[-1], found.fun


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize(("weight", "intercept"), [(None, True), (WEIGHT, False)])
def test_it_ends_where_scipy_ends(weight: Any, intercept: bool, outputs: int) -> None:
    """coef_, intercept_ and the objective of the pseudo-Huber loss; outputs of very different size."""
    y = np.column_stack([Y, 1e-3 * Y[::-1]]) if outputs == 2 else Y
    model = regressor(alpha=20.0, tol=1e-9, max_iter=5000, fit_intercept=intercept).fit(X, y, weight)
    ones = np.ones(N) if weight is None else weight
    columns = [y] if outputs == 1 else list(y.T)
    found = [best_weights(dense(model), column, ones, 20.0, intercept) for column in columns]
    coef, constant = np.array([coef for coef, _, _ in found]), np.array([constant for _, constant, _ in found])
    np.testing.assert_allclose(np.atleast_2d(model.coef_), coef, atol=1e-4)
    np.testing.assert_allclose(np.atleast_1d(model.intercept_), constant, atol=1e-4)
    least = sum(value for _, _, value in found) / ones.sum()
    assert model.history_["objective"].values.min() == pytest.approx(least, rel=1e-6)
    assert model.n_iter_ < 5000
    rows = RNG.normal(size=(50, M))
    expected = dense(model, rows) @ coef.T + constant
    np.testing.assert_allclose(model.predict(rows), expected[:, 0] if outputs == 1 else expected, atol=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_classifier_ends_where_logistic_regression_ends(classes: int) -> None:
    """Differences of scores; one score z of two classes stands for the pair (-z, z)."""
    code = np.minimum(CODE, classes - 1)
    model = ToyClassifier(**(FEW | {"tol": 1e-9, "max_iter": 5000, "alpha": 20.0})).fit(X, code)
    C = 4 / 20.0 if classes == 2 else 1 / 20.0
    right = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(dense(model), code)
    scores, expected = model.decision_function(X), right.decision_function(dense(model))
    if classes == 2:
        np.testing.assert_allclose(2 * scores, expected, atol=1e-4)
    else:
        np.testing.assert_allclose(scores - scores[:, :1], expected - expected[:, :1], atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), right.predict(dense(model)))
    assert model.evaluate(X, code)["accuracy"] == model.score(X, code) == right.score(dense(model), code)
    assert "error" not in model.history_


def test_its_loss_is_a_loss() -> None:
    """Slopes are derivatives, bounds are bounds; a delta that is none is refused."""
    loss, r = PseudoHuber(DELTA), np.linspace(-5, 5, 41)
    for value, slope in ((loss.at, loss.slope_at), (loss.slope_at, loss.curvature_at)):
        assert max(check_grad(lambda t, f=value: f(t)[0], slope, np.array([t])) for t in r) < 1e-6
    assert np.abs(loss.slope_at(1e6 * r)).max() <= loss.steepest(1)
    assert loss.curvature_at(r).max() <= loss.most_curved(1)
    with pytest.raises(ValueError, match=r"delta=-1"):
        PseudoHuber(-1.0)


def test_what_comes_with_predictions() -> None:
    """evaluate, predict_blocks and score against hand counts."""
    model = regressor().fit(X, Y)
    guess = dense(model) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), guess, rtol=1e-10)
    np.testing.assert_allclose(model.predict(chunked()).compute(), guess, rtol=1e-10)
    np.testing.assert_allclose(model.predict(sp.csr_array(X)), guess, rtol=1e-10)
    blocks = list(model.predict_blocks(chunked(), scores=True))
    np.testing.assert_array_equal(np.concatenate([number for number, _, _ in blocks]), np.arange(N))
    np.testing.assert_allclose(np.concatenate([values for _, values, _ in blocks]), guess, rtol=1e-10)
    figures = model.evaluate(chunked(), Y)
    assert figures["r2"] == pytest.approx(model.score(X, Y)) == pytest.approx(r2_score(Y, guess))
    assert figures["rows"] == N


def test_copies() -> None:
    """clone keeps parameters, pickle keeps all; its own parameter stands last, with a sentence and a rule."""
    model = regressor(alpha=3.0).fit(X, Y)
    assert clone(model).get_params() == model.get_params()
    assert_unfitted(clone(model))
    again = pickle.loads(pickle.dumps(model))
    assert_same_bits(everything(again), everything(model))
    assert "delta=0.7" in repr(model)
    assert re.search(r"delta : float, default=1.0\n +Bend of the loss\.", ToyRegressor.__doc__)
    assert "alpha : float, default=1.0" in ToyClassifier.__doc__
    assert ToyClassifier().max_iter == 1000


REFUSED: list[tuple[dict, tuple, str]] = [
    ({"delta": 0.0}, (X, Y), r"delta=0"), ({"delta": "wide"}, (X, Y), r"delta='wide'"),
    ({"alpha": "auto"}, (X, Y), r"alpha='auto'"), ({"max_iter": 0}, (X, Y), r"max_iter=0"),
    ({"kernel": "gausian"}, (X, Y), r"'gausian'.*gaussian"), ({}, (X, Y[:-1]), r"1,?499"),
    ({}, (X, np.where(np.arange(N) == 7, np.inf, Y)), r"row 7"),
    ({}, (np.where(np.arange(N)[:, None] == 1207, np.nan, X), Y), r"row 1207|NaN"),
    ({}, (chunked().map_blocks(np.log), Y), r"row \d+"), ({}, (X, CODE.astype(str)), r"dtype|str"),
    ({"checkpoint": 3}, (X, Y), r"checkpoint=3"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value encountered in log:RuntimeWarning")
@pytest.mark.parametrize(("options", "rows", "words"), REFUSED, ids=[words for *_, words in REFUSED])
def test_refusals(options: dict, rows: tuple, words: str) -> None:
    """One sentence that shows the value; nothing is left behind."""
    model = regressor(**options)
    with pytest.raises(ValueError, match=words):
        model.fit(*rows)
    assert_unfitted(model)


@pytest.mark.parametrize("sparse", [False, True])
def test_any_number_of_threads(sparse: bool) -> None:
    """How blocks are dealt out to threads and tasks changes no bit."""
    rows = sp.csr_array(X) if sparse else chunked()
    found = []
    for threads in (1, 2, 5):
        with dask.config.set(num_workers=threads, scheduler="threads"):
            found.append(everything(regressor().fit(rows, Y, WEIGHT)))
    assert_same_bits(found[1], found[0])
    assert_same_bits(found[2], found[0])


@pytest.mark.parametrize("rows", [1, 7, 64, N])
def test_any_chunks(rows: int) -> None:
    """The same weights but for rounding."""
    few, y = X[:200], Y[:200]
    plain = regressor().fit(few, y)
    model = regressor().fit(da.from_array(few, chunks=(min(rows, 200), -1)), y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9, atol=1e-12)


def test_history_and_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own columns with their meanings; a line; an event for each iteration."""
    events: list[dict] = []
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    with listening(events.append):
        model = regressor(verbose=1).fit(X, Y)
    history = model.history_
    assert history.sizes == {"iteration": 8}
    assert history["change"].attrs["long_name"] == "largest step"
    assert history["momentum"].attrs["long_name"] == "Nesterov's t"
    assert set(history) == {"objective", "change", "momentum", "seconds", "rows", "passes"}
    np.testing.assert_array_equal(history["passes"], np.arange(1, 9))
    assert (history["rows"] == N).all()
    assert model.n_iter_ == 8
    told = [event for event in events if event["event"] == "iteration"]
    assert [event["number"] for event in told] == list(range(8))
    assert [event["momentum"] for event in told] == history["momentum"].values.tolist()
    assert re.search(r"learning on 1,500 rows: iteration 8, objective [\d.]+", screen.getvalue())


class Stop(Exception):
    """A death."""


def dies_after(steps: int, fit: Callable[[], Any]) -> bool:
    """Whether a fit dies after so many checkpoints; False: it has ended before."""
    seen: list[int] = []
    save = Checkpoint.save_step

    def save_step(self: Checkpoint, number: int, *rest: Any) -> None:
        save(self, number, *rest)
        seen.append(number)
        if len(seen) == steps:
            raise Stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save_step", save_step)
        try:
            fit()
        except Stop:
            return True
    return False


@pytest.mark.parametrize("outputs", [1, pytest.param(2, marks=pytest.mark.long)])
def test_resumed_after_every_step(tmp_path: Path, outputs: int) -> None:
    """Killed after each step: the next process goes on, to the same bits."""
    y = np.column_stack([Y, X[:, 0]])[:, :outputs]
    right, path, deaths = everything(regressor().fit(X, y)), tmp_path / "c", 0
    while dies_after(1, lambda: regressor(checkpoint=path).fit(X, y)):
        deaths += 1
        shutil.copytree(path, tmp_path / "copy")
        assert_same_bits(everything(regressor(checkpoint=tmp_path / "copy").fit(X, y)), right)
        shutil.rmtree(tmp_path / "copy")
    assert deaths == 8
    assert progress_of(str(path))["steps"] == 8
    assert_same_bits(everything(regressor(checkpoint=path).fit(X, y, resume=True)), right)


def test_resumed_further(tmp_path: Path) -> None:
    """A larger max_iter, and a smaller tol, go on from the end; another delta is another fit."""
    path = tmp_path / "c"
    regressor(checkpoint=path, max_iter=3).fit(X, Y)
    more = regressor(checkpoint=path).fit(X, Y, resume=True)
    assert_same_bits(everything(more), everything(regressor().fit(X, Y)))
    rough = regressor(checkpoint=tmp_path / "d", max_iter=500, tol=3e-2).fit(X, Y)
    finer = regressor(checkpoint=tmp_path / "d", max_iter=500, tol=1e-2).fit(X, Y)
    assert rough.n_iter_ < finer.n_iter_ < 500
    assert_same_bits(everything(finer), everything(regressor(max_iter=500, tol=1e-2).fit(X, Y)))
    with pytest.raises(ValueError, match=r"another fit \(delta differ"):
        regressor(checkpoint=path, delta=0.8).fit(X, Y)
    anew = regressor(checkpoint=path, delta=0.8).fit(X, Y, resume=False)
    assert_same_bits(everything(anew), everything(regressor(delta=0.8).fit(X, Y)))


def interrupts_at(number: int) -> Callable[[dict], None]:
    """Ctrl-C after an iteration."""

    def listen(event: dict) -> None:
        if event["event"] == "iteration" and event["number"] == number:
            os.kill(os.getpid(), signal.SIGINT)

    return listen


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C counts, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_the_best_so_far(tmp_path: Path) -> None:
    """As if max_iter had been there; with a checkpoint it resumes to the same bits, or is finished where it is."""
    right = regressor(max_iter=4).fit(X, Y)
    with (
        listening(interrupts_at(3)),
        pytest.warns(ConvergenceWarning, match="interrupted after 4 iterations; .*'folder'"),
    ):
        assert_same_bits(everything(regressor().fit(X, Y)), everything(right))
    path = tmp_path / "c"
    with listening(interrupts_at(3)), pytest.warns(ConvergenceWarning, match=r"fit\(resume=True\) resumes"):
        regressor(checkpoint=path).fit(X, Y)
    finished = regressor(checkpoint=path).fit(X, Y, resume="finish")
    assert_same_bits(everything(finished), everything(right))
    assert_same_bits(everything(regressor(checkpoint=path).fit(X, Y)), everything(regressor().fit(X, Y)))


def test_max_time() -> None:
    """No iteration begins after it; what there is counts."""
    with pytest.warns(ConvergenceWarning, match=r"stopped at max_time=1e-06 .* after 1 iteration;"):
        model = regressor(max_time=1e-6).fit(X, Y)
    assert model.n_iter_ == 1
    assert_same_bits(everything(model), everything(regressor(max_iter=1).fit(X, Y)))


TOY = f"""
sys.path.insert(0, {str(ROOT)!r})
from tests.contracts.toy import ToyRegressor
model = ToyRegressor(n_components=1500, sigma=0.05, random_state=0, dtype="float32", max_iter=2, verbose=0)
path = sys.argv[1]
plan = model.plan(path, zarr.open_group(path)["y"], calibrate=False)
model.fit(path)
"""


def test_plan_keeps_its_promise(tmp_path: Path) -> None:
    """A fresh process, out of core: its peak is below the promise, and not far below."""
    run, _ = measure(TOY, write_rows(tmp_path / "a.zarr", 12_000, 100))
    assert 0.4 * run["promise"] <= run["peak"] <= run["promise"], run


def test_plan_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flops of the scores and their slopes; landmarks and calibration have passes of their own; too much is refused."""
    plan = regressor(n_components=200).plan(X, Y)
    assert N * (2 * M * 100 + 4 * 200) <= plan.flops <= 3 * N * (2 * M * 100 + 4 * 200)
    assert "for each iteration on all rows" in str(plan)
    small, large = (ToyClassifier(calibrate=k).plan(X, CODE, calibrate=False).worker_bytes for k in (None, 1500))
    assert large > small
    fourier, drawn = (regressor(n_components=500, landmarks=way).plan(X, Y).solve_bytes for way in (None, "uniform"))
    assert drawn > fourier
    monkeypatch.setattr("dkl.engine.memory.available_bytes", lambda: 2**20)
    with pytest.raises(MemoryError, match="fewer components"):
        regressor(n_components=3000).fit(X, Y)


@pytest.mark.parametrize("options", [{"landmarks": "kmeans++"}, {"kernel": "laplacian"}, {"dtype": "float32"}])
def test_any_map(options: dict) -> None:
    """Landmarks, other kernels, float32: the same objective on other features."""
    model = regressor(max_iter=3000, tol=1e-7, alpha=20.0, **options).fit(X, Y)
    features = model.features_.at(np.float64)
    Psi = np.empty((N, model.features_.n_features))
    features.write(features.prepare(X), Psi)
    *_, least = best_weights(Psi * model.features_.scale, Y, np.ones(N), 20.0, True)
    assert model.history_["objective"].values.min() == pytest.approx(least / N, rel=1e-5)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two worker processes of one thread."""
    with cluster_of(tmp_path_factory.mktemp("toy"), 2) as machines:
        yield machines


@pytest.fixture(scope="module")
def right() -> dict[str, np.ndarray]:
    """What one process finds."""
    with embedded():
        return everything(regressor().fit(chunked(), Y))


@pytest.mark.cluster
@pytest.mark.parametrize("place", ["scheduler", "client"])
def test_a_cluster_finds_the_same_bits(machines: Machines, right: dict, place: str) -> None:
    """Wherever it is solved."""
    assert len(machines.workers) == 2
    assert_same_bits(everything(regressor(place=place).fit(chunked(), Y)), right)
    assert "on 2 workers" in str(regressor().plan(chunked(), Y, calibrate=False))


@pytest.mark.cluster
def test_a_refused_row_on_a_cluster(machines: Machines) -> None:
    """The sentence names the row, and comes from the scheduler."""
    bad = X.copy()
    bad[1207, 1] = np.inf
    model = regressor(sigma=0.5)
    with pytest.raises(ValueError, match="row 1207"):
        model.fit(da.from_array(bad, chunks=(100, -1)), Y)
    assert_unfitted(model)


@pytest.mark.cluster
def test_resumed_elsewhere(machines: Machines, right: dict, tmp_path: Path) -> None:
    """Begun on the cluster, ended in one process, and the other way round."""
    with embedded():
        assert dies_after(3, lambda: regressor(checkpoint=tmp_path / "here").fit(chunked(), Y))
    assert_same_bits(everything(regressor(checkpoint=tmp_path / "here").fit(chunked(), Y)), right)
    assert dies_after(3, lambda: regressor(checkpoint=tmp_path / "there").fit(chunked(), Y))
    with embedded():
        assert_same_bits(everything(regressor(checkpoint=tmp_path / "there").fit(chunked(), Y)), right)


@pytest.mark.cluster
@pytest.mark.parametrize("moment", [2, pytest.param(5, marks=pytest.mark.long)])
def test_a_worker_killed_amid_a_pass(machines: Machines, right: dict, moment: int) -> None:
    """SIGKILL while blocks are being summed: the other worker goes on, to the same bits."""
    if len(machines.workers) < 2:
        machines.add(1)
    victim, when = next(iter(machines.workers)), []

    def kill() -> None:
        time.sleep(0.05)
        machines.kill(victim)
        when.append(time.monotonic())

    def listen(event: dict) -> None:
        if event["event"] == "iteration" and event["number"] == moment:
            threading.Thread(target=kill).start()

    with listening(listen):
        found = everything(regressor().fit(chunked().map_blocks(slow, seconds=0.01, meta=X[:0]), Y))
        ended = time.monotonic()
    wait_until(lambda: when, "the kill", 10)
    assert when[0] < ended
    assert_same_bits(found, right)


OPTIONS = {"tol": 1e-7, "max_iter": 20_000}


@parametrize_with_checks([ToyRegressor(n_components=20, **OPTIONS)])
def test_sklearn_check(estimator: Any, check: Any) -> None:
    """Every check scikit-learn has for a regressor."""
    check(estimator)


@pytest.mark.long
@parametrize_with_checks([ToyClassifier(n_components=10, alpha=5.0, **OPTIONS)])
def test_sklearn_check_of_the_classifier(estimator: Any, check: Any) -> None:
    """Every check scikit-learn has for a classifier."""
    check(estimator)


def test_public_plan() -> None:
    """dkl.plan takes any family."""
    assert "16 components" in str(dkl.plan(X, regressor(), Y))
