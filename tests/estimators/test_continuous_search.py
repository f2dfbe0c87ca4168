"""A search from the estimators and the command line: table, plan, files, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.model_selection import KFold

import dkl
from dkl.engine.progress import Progress, listening
from dkl.learn import halving, watchers
from dkl.store.checkpoint import Checkpoint
from tests.cli.in_process import dkl_in, done
from tests.learn.search_data import LABEL, OPTIONS, SEARCH, N, X, everything, searched

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT: dict[str, Any] = {"max_iter": 4, "cv": 2}


def test_the_table(tmp_path: Path) -> None:
    """One row for each candidate, as it was drawn; it is saved with the model, and says what was best."""
    search = SEARCH | {"learning_rate": stats.loguniform(1e-3, 0.1), "max_norm": [2.0, 30.0]}
    model = searched(search=search, **SHORT)
    table = model.search_results_
    assert table.sizes == {"candidate": 7}
    assert set(table.decay.values) <= {0.0, 1e-3}
    assert ((table.learning_rate > 1e-3) & (table.learning_rate < 0.1)).all()
    assert sorted(table["rank"].values) == list(range(1, 8))
    best = int(np.argmin(table["rank"].values))
    assert table.validation_loss[best] == table.validation_loss.min()
    assert model.best_params_ == {name: table[name].values[best] for name in search if name != "candidates"}
    assert model.features_.n_features == 2 * model.best_params_["n_components"]
    norms = np.linalg.norm(model.features_.wide_sigma[:, None] * model.features_.unit, axis=0)
    assert norms.max() <= model.best_params_["max_norm"] * (1 + 1e-12)
    model.save(tmp_path / "m.zarr")
    again = dkl.load(tmp_path / "m.zarr")
    assert again.search_results_.identical(table)
    assert again.best_params_ == model.best_params_
    assert again.search["learning_rate"] == "loguniform(0.001, 0.1)"
    assert again.search["n_components"] == "3:9"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_ranges_that_were_saved_draw_the_same(tmp_path: Path) -> None:
    """A model of a file fits as the one that was saved."""
    model = searched(**SHORT)
    model.save(tmp_path / "m.zarr")
    same = dkl.load(tmp_path / "m.zarr").fit(X, LABEL)
    np.testing.assert_array_equal(same.coef_, model.coef_)


def test_a_search_without_one_leaves_no_table() -> None:
    """Nor does a later fit keep that of an earlier one."""
    model = searched(**SHORT)
    model.set_params(search=None, cv=None).fit(X, LABEL)
    assert not hasattr(model, "search_results_")
    assert not hasattr(model, "best_params_")


def test_folds_without_a_search() -> None:
    """The mean of one network on each fold, as a search of one candidate finds it."""
    given: dict[str, Any] = {"n_components": 11, "learning_rate": 0.03, "cv": 3}
    one = searched(search=None, **given)
    same = searched(search={"candidates": 1, "learning_rate": [0.03]}, n_components=11, cv=3)
    np.testing.assert_array_equal(one.coef_, same.coef_)
    assert one.features_.n_features == 33
    assert one.best_params_ == {}
    assert one.search_results_.sizes == {"candidate": 1}


def test_same_seed_same_bits_and_splitters() -> None:
    """As many folds by number, and by a splitter that a label for each row says again."""
    fold = np.empty(N, int)
    for k, (_, test) in enumerate(KFold(3).split(X)):
        fold[test] = k
    one, two = (everything(searched(cv=cv, max_iter=3)) for cv in (KFold(3), fold))
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name])
    other = everything(searched(cv=3, max_iter=3, random_state=4))
    assert not np.array_equal(other["table variance"], one["table variance"])


def test_weights_count_as_repeated_rows() -> None:
    """A row of weight two is a row that is there twice, also where candidates are compared."""
    weight = np.where(np.arange(N) % 3 == 0, 2.0, 1.0)
    fold = np.arange(N) % 2
    twice = np.repeat(np.arange(N), weight.astype(int))
    options: dict[str, Any] = {"batch_size": 10_000, "max_iter": 5, "sigma": 1.0}
    a = searched(cv=fold, sample_weight=weight, **options)
    b = searched(X[twice], LABEL[twice], cv=fold[twice], **options)
    np.testing.assert_allclose(a.search_results_.validation_loss, b.search_results_.validation_loss, rtol=1e-8)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), rtol=1e-6, atol=1e-9)


def test_a_search_finds_what_one_network_misses() -> None:
    """Of rates of which one alone can learn, that one is found, and the model is good on new rows."""
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (1200, 2))
    y = np.sin(4 * A[:, 0]) * np.cos(3 * A[:, 1])
    search = {"candidates": 6, "learning_rate": [1e-7, 0.05]}
    options: dict[str, Any] = {"max_iter": 60, "batch_size": 64, "n_components": 60, "sigma": 3.0}
    model = searched(A[:800], y[:800], search=search, cv=2, **options)
    assert model.best_params_ == {"learning_rate": 0.05}
    assert model.score(A[800:], y[800:]) > 0.9
    assert (model.search_results_.learning_rate[model.search_results_.dropped_at > 0] < 0.01).any()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"search": None, "cv": 3, "warm_start": True}, "cv=3 begins anew; warm_start=True and partial_fit go on"),
        ({"validation": None}, "validation=None holds none out; use cv=5, or validation=0.2"),
        ({"warm_start": True}, "warm_start=True and partial_fit go on: use search=None with them"),
        ({"search": 0}, "search=0 must be a whole number of at least 1"),
        ({"search": True}, "search=True must be a whole number"),
        ({"search": {"candidates": 0, "decay": [0.1]}}, "search: candidates=0 must be a whole number of at least 1"),
        ({"search": {"sigma": [1.0]}}, "search has 'sigma'; it may have n_components"),
        ({"halving": 1}, "halving=1 must be above 1: one of so many goes on; None drops none"),
        ({"halving": "no"}, "halving='no' must be a finite number above 0"),
    ],
)
def test_refused(options: dict, said: str) -> None:
    """Before any row is read, with the value and what to type."""
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        searched(**options)


def test_partial_fit_is_refused() -> None:
    """It goes on, and a search begins anew."""
    model = dkl.ContinuousKernelClassifier(**OPTIONS)
    with pytest.raises(ValueError, match="warm_start=True and partial_fit go on: use search=None"):
        model.partial_fit(X, LABEL, classes=np.unique(LABEL))


def test_nothing_is_learned() -> None:
    """A search that ends where it began says so."""
    with pytest.warns(Warning, match="no epoch of all 3 candidates had a lower held-out loss than the start"):
        searched(y=np.array([0, 1] * (N // 2)), search={"candidates": 3, "learning_rate": [30.0]}, max_iter=2, cv=2)


def test_plan() -> None:
    """Memory grows with the candidates until a bundle is full, then with their parameters alone; rungs save passes."""
    A, y = np.zeros((50_000, 20), np.float32), np.zeros(50_000)

    def plan(**options: Any) -> Any:
        given = {"n_components": 100, "verbose": 0} | options
        return dkl.ContinuousKernelRegressor(**given).plan(A, y, calibrate=False)

    one, ten, many = (plan(search={"candidates": k, "learning_rate": (1e-3, 0.1)}) for k in (1, 10, 100_000))
    assert one.cost.features == 100
    assert ten.cost.features == 1000
    numbers = (20 + 1 + 1) * 100 * 100_000
    assert many.cost.features == 2**19 // 22
    assert many.solve_bytes > 8 * 3 * numbers  # parameters, velocity and the best ones of all
    assert many.worker_bytes - one.worker_bytes < 2**30
    whole = plan(search={"candidates": 27, "learning_rate": (1e-3, 0.1)}, halving=None)
    halved = plan(search={"candidates": 27, "learning_rate": (1e-3, 0.1)})
    assert halved.passes < whole.passes / 2
    assert plan(search=9, cv=5).passes == pytest.approx(5 * plan(search=9).passes, rel=1e-9)
    assert "passes" in str(whole)
    wide = plan(search={"candidates": 3, "n_components": stats.randint(10, 501)})
    assert wide.cost.features == 3 * 500


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set."""
    folder = tmp_path_factory.mktemp("search")
    np.savetxt(folder / "t.csv", np.column_stack([X, LABEL == "in"]), delimiter=",", header="a,b,c,y", comments="")
    done(folder, "ingest", "t.csv", "d.zarr", "--target", "y", "--task", "classification")
    return folder


WORDS = ["--model", "continuous", "--batch-size", "25", "--sigma", "1", "--cv", "2", "--max-iter", "4"]
DRAWN = "candidates=5,n_components=4|6,learning_rate=1e-3:0.1:log"


def test_command_line(folder: Path) -> None:
    """The file's model is that of Python; inspect tells the best parameters."""
    done(folder, "fit", "d.zarr", "m.zarr", *WORDS, "--search", DRAWN, "--halving", "2")
    model = dkl.load(folder / "m.zarr")
    search = {"candidates": 5, "n_components": [4, 6], "learning_rate": (1e-3, 0.1, "log")}
    same = dkl.ContinuousKernelClassifier(
        search=search, halving=2, sigma=1.0, cv=2, max_iter=4, batch_size=25, random_state=0, verbose=0,
        dtype=model.dtype,
    ).fit(str(folder / "d.zarr"))  # fmt: skip
    np.testing.assert_array_equal(model.coef_, same.coef_)
    about = json.loads(done(folder, "inspect", "m.zarr", "--json"))
    assert about["best_params"] == same.best_params_
    done(folder, "fit", "d.zarr", "n.zarr", *WORDS, "--search", "3")
    assert dkl.load(folder / "n.zarr").search_results_.sizes == {"candidate": 3}
    assert "passes" in done(folder, "plan", "d.zarr", *WORDS, "--search", "100")


@pytest.mark.parametrize(
    ("search", "why"),
    [
        ("many", "; Candidates of a random search, e.g. 100."),
        ("1.5", "; Candidates of a random search, e.g. 100."),
        ("decay=x", ": search: decay='x' is no distribution; give a list, (low, high)"),
        ("candidates=5,foo=1", ": search has 'foo'; it may have n_components, variance"),
    ],
)
def test_command_line_refuses(folder: Path, search: str, why: str) -> None:
    """In one line, with what was given and what is wrong with it."""
    said = dkl_in(folder, "fit", "d.zarr", "o.zarr", *WORDS, "--search", search)
    assert said.code == 2
    assert f"{search!r} is not possible{why}" in said.err.replace("\n", "")


def test_search_belongs_to_networks(folder: Path) -> None:
    """Other families refuse it."""
    said = dkl_in(folder, "fit", "d.zarr", "o.zarr", "--search", "5")
    assert said.code != 0
    assert "search=5 is no parameter of SingleKernelClassifier" in said.err


def test_a_search_resumes_from_the_command_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle, `dkl resume` ends with the same model."""
    done(folder, "fit", "d.zarr", "whole.zarr", *WORDS, "--search", DRAWN)
    save = Checkpoint.save_step

    def save_step(checkpoint: Checkpoint, number: int, *rest: Any) -> None:
        save(checkpoint, number, *rest)
        if number == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save_step", save_step)
        said = dkl_in(folder, "fit", "d.zarr", "r.zarr", *WORDS, "--search", DRAWN)
    assert said.code != 0
    done(folder, "resume", "r.zarr")
    one, two = (dkl.load(folder / name) for name in ("whole.zarr", "r.zarr"))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.search_results_.identical(two.search_results_)


def test_progress_tells_how_many_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the line of an epoch, and in its event."""
    lines: list[str] = []
    events: list[dict] = []
    monkeypatch.setattr(watchers, "SPOKEN", -1.0)
    monkeypatch.setattr(halving, "FIRST_STEPS", 10)
    monkeypatch.setattr(Progress, "say", lambda progress, line, *rest: lines.append(line))
    with listening(events.append):
        searched(cv=2, max_iter=5)
    left = [event["candidates"] for event in events if event["event"] == "iteration"]
    assert left == [7, 7, 7, 3, 3]  # 3 steps in an epoch
    assert ["epoch 2, 7 of 7 candidates" in line for line in lines].count(True) >= 1
    assert "epoch 5, 3 of 7 candidates" in lines[-1]
