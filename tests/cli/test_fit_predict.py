"""From data to answers by the command line, against scikit-learn's metrics and the same model in Python."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn import datasets, metrics

import dkl
from dkl.estimators.summary import _scales, certificate_in_words, widened_in_words
from tests.cli.in_process import dkl_in, done

ROOT = Path(__file__).parents[2]
SETS = {
    "digits": "ingest sklearn:digits digits.zarr --scale minmax --split test=0.3",
    "iris": "ingest sklearn:iris iris.zarr --scale standard",
    "cancer": "ingest sklearn:breast_cancer cancer.zarr --scale standard --split test=0.2,dev=0.2 --seed 3",
    "diabetes": "ingest sklearn:diabetes diabetes.zarr --scale standard --split test=0.25",
}
FITS = {
    "digits": "fit digits.zarr digits-model.zarr --n-components 150 --alpha 0.1 --log digits.jsonl",
    "iris": "fit iris.zarr iris-model.zarr --n-components 40 --cv 3 --log iris.jsonl",
    "cancer": "fit cancer.zarr cancer-model.zarr --n-components 50 --alpha 2 --log cancer.jsonl",
    "diabetes": "fit diabetes.zarr diabetes-model.zarr --n-components 60 --alpha 5 --log diabetes.jsonl",
}
CLASSES = ("digits", "iris", "cancer")
TESTS = {name: f"{name}.zarr" if name == "iris" else f"{name}.zarr/test" for name in SETS}
TRAINS = {name: path.replace("/test", "/train") for name, path in TESTS.items()}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """The data sets, the models and their logs."""
    folder = tmp_path_factory.mktemp("work")
    for words in (*SETS.values(), *FITS.values()):
        done(folder, *words.split(" "))
    return folder


def rows_of(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y (names if it has some) and the row numbers of a data set."""
    group = zarr.open_group(path, mode="r")
    y = group["y"][:]
    names = group["y"].attrs.get("classes")
    return group["X"][:], y if names is None else np.array(names)[y], group["row"][:]


@pytest.mark.parametrize("name", SETS)
def test_rows_are_those_of_scikit_learn(work, name):
    """All rows are in one split, in order, with their targets."""
    loaders = {"cancer": datasets.load_breast_cancer, "diabetes": datasets.load_diabetes}
    bunch = loaders.get(name, getattr(datasets, f"load_{name}", None))()
    found = json.loads(done(work, "inspect", f"{name}.zarr", "--json"))
    paths = [f"{name}.zarr/{s['split']}" if s["split"] else f"{name}.zarr" for s in found["splits"]]
    numbers = [rows_of(work / path)[2] for path in paths]
    assert sorted(np.concatenate(numbers).tolist()) == list(range(len(bunch.target)))
    for path, rows in zip(paths, numbers, strict=True):
        assert (np.diff(rows) > 0).all()
        y, expected = rows_of(work / path)[1], bunch.target[rows]
        if y.dtype.kind == "U":
            expected = np.asarray(bunch.target_names).astype(str)[expected]
        np.testing.assert_array_equal(y, expected.astype(y.dtype))


@pytest.mark.parametrize("name", CLASSES)
def test_evaluate_classes(work, name):
    """Accuracy, recall, precision and confusion are scikit-learn's."""
    found = json.loads(done(work, "evaluate", f"{name}-model.zarr", f"{name}.zarr", "--json"))
    X, y, _ = rows_of(work / TESTS[name])
    model = dkl.load(work / f"{name}-model.zarr")
    said = model.predict(X)
    assert found["rows"] == len(y)
    assert found["unknown_labels"] == 0
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(y, said), abs=1e-12)
    assert found["error"] == pytest.approx(1 - metrics.accuracy_score(y, said), abs=1e-12)
    assert found["accuracy"] > 0.9
    assert [c["class"] for c in found["classes"]] == model.classes_.tolist()
    table = metrics.precision_recall_fscore_support(y, said, labels=model.classes_, zero_division=0)
    np.testing.assert_allclose([c["precision"] for c in found["classes"]], table[0], atol=1e-12)
    np.testing.assert_allclose([c["recall"] for c in found["classes"]], table[1], atol=1e-12)
    np.testing.assert_array_equal([c["rows"] for c in found["classes"]], table[3])
    np.testing.assert_array_equal(found["confusion"], metrics.confusion_matrix(y, said, labels=model.classes_))
    assert found["mean_recall"] == pytest.approx(metrics.balanced_accuracy_score(y, said), abs=1e-12)
    assert sum(b["rows"] for b in found["calibration"]) == len(y)


def test_evaluate_regression(work):
    """Errors are scikit-learn's."""
    found = json.loads(done(work, "evaluate", "diabetes-model.zarr", "diabetes.zarr", "--json"))
    X, y, _ = rows_of(work / TESTS["diabetes"])
    said = dkl.load(work / "diabetes-model.zarr").predict(X)
    assert found["rows"] == len(y)
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, said), rel=1e-9)
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(y, said), rel=1e-9)
    assert found["r2"] == pytest.approx(metrics.r2_score(y, said), rel=1e-9)
    assert found["largest_error"] == pytest.approx(metrics.max_error(y, said), rel=1e-9)
    assert 0.2 < found["r2"] < 1


@pytest.mark.parametrize(("name", "split"), [("cancer", "dev"), ("cancer", "train"), ("diabetes", "train")])
def test_evaluate_a_split(work, name, split):
    """The split that is named."""
    found = json.loads(done(work, "evaluate", f"{name}-model.zarr", f"{name}.zarr", "--split", split, "--json"))
    model, (X, y, _) = dkl.load(work / f"{name}-model.zarr"), rows_of(work / f"{name}.zarr/{split}")
    assert found["rows"] == len(y)
    assert found.get("accuracy", found.get("r2")) == pytest.approx(model.score(X, y), rel=1e-9)


@pytest.mark.parametrize("name", SETS)
def test_evaluate_for_people(work, name):
    """The same numbers in the table."""
    found = json.loads(done(work, "evaluate", f"{name}-model.zarr", f"{name}.zarr", "--json"))
    text = done(work, "evaluate", f"{name}-model.zarr", f"{name}.zarr")
    assert f"{found['rows']:,}" in text
    assert f"{found.get('accuracy', found.get('r2')):.4f}" in text
    for row in found.get("classes", []):
        assert str(row["class"]) in text


def read_answers(path: Path) -> pd.DataFrame:
    """Answers of any kind as one frame of texts and numbers."""
    if path.suffix == ".csv":
        return pd.read_csv(path)
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    group = zarr.open_group(path, mode="r")
    assert group.attrs["complete"] is True
    prediction = group["prediction"][:]
    if "classes" in group["prediction"].attrs:
        prediction = np.array(group["prediction"].attrs["classes"])[prediction]
    frame = pd.DataFrame({"row": group["row"][:], "prediction": prediction})
    if "score" in group:
        for i, column in enumerate(group["score"].attrs["names"]):
            frame[column] = group["score"][:, i]
    return frame


@pytest.mark.parametrize("suffix", ["csv", "parquet", "zarr"])
@pytest.mark.parametrize("name", CLASSES)
def test_predict_classes(work, name, suffix, tmp_path):
    """Predictions and scores are those of Python, with the rows' numbers in the source."""
    out = tmp_path / f"o.{suffix}"
    text = done(work, "predict", f"{name}-model.zarr", f"{name}.zarr", out, "--scores")
    X, _, numbers = rows_of(work / TESTS[name])
    model, found = dkl.load(work / f"{name}-model.zarr"), read_answers(out)
    assert f"{len(X):,} predictions" in text
    np.testing.assert_array_equal(found["row"], numbers)
    np.testing.assert_array_equal(found["prediction"].to_numpy().astype(model.classes_.dtype), model.predict(X))
    scores = found[[column for column in found if column.startswith("score ")]]
    labels = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    assert list(scores) == [f"score {label}" for label in labels]
    np.testing.assert_array_equal(scores.to_numpy(), model.decision_function(X).reshape(len(X), -1))
    assert os.listdir(tmp_path) == [out.name]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "zarr"])
def test_predict_numbers_of_a_split(work, suffix, tmp_path):
    """Numbers come back with all their bits; --overwrite replaces."""
    out = tmp_path / f"o.{suffix}"
    for words in ([], ["--overwrite"]):
        done(work, "predict", "diabetes-model.zarr", "diabetes.zarr", out, "--split", "train", *words)
    X, _, numbers = rows_of(work / "diabetes.zarr/train")
    found = read_answers(out)
    np.testing.assert_array_equal(found["row"], numbers)
    np.testing.assert_array_equal(found["prediction"], dkl.load(work / "diabetes-model.zarr").predict(X))
    assert os.listdir(tmp_path) == [out.name]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A table with text, gaps and columns to leave out; its data set, its model, and new rows."""
    folder = tmp_path_factory.mktemp("mixed")
    rng = np.random.default_rng(5)
    n = 240
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "size": rng.normal(size=n).round(4),
            "colour": rng.choice(["red", "green", "blue"], n),
            "weight": rng.normal(50, 9, n).round(3),
        }
    )
    frame.loc[::17, "weight"] = np.nan
    frame["kind"] = np.where(frame["size"] + (frame["colour"] == "red") > 0.4, "big", "small")
    frame[:160].to_csv(folder / "old.csv", index=False)
    frame[160:].to_csv(folder / "new.csv", index=False)
    frame[160:].drop(columns="kind")[["weight", "colour", "size", "id"]].to_csv(folder / "bare.csv", index=False)
    words = "--target kind --drop id --categorical colour --missing mean --scale standard"
    done(folder, "ingest", "old.csv", "old.zarr", *words.split(" "))
    done(folder, "fit", "old.zarr", "model.zarr", "--n-components", "60", "--alpha", "0.1")
    return folder


@pytest.mark.parametrize("like", ["old.zarr", "model.zarr"])
def test_raw_rows_are_prepared_like_training_rows(mixed, like, tmp_path):
    """A CSV, the data set ingested --like, and a CSV without target in another order give the same answers."""
    done(mixed, "ingest", "new.csv", tmp_path / "new.zarr", "--like", like)
    answers = []
    for source in ("new.csv", tmp_path / "new.zarr", "bare.csv"):
        out = tmp_path / f"{len(answers)}.csv"
        done(mixed, "predict", "model.zarr", source, out, "--scores")
        answers.append(out.read_bytes())
    assert answers[0] == answers[1] == answers[2]
    found = pd.read_csv(tmp_path / "0.csv")
    truth = pd.read_csv(mixed / "new.csv")["kind"]
    assert (found["prediction"] == truth).mean() > 0.85
    by_csv = json.loads(done(mixed, "evaluate", "model.zarr", "new.csv", "--json"))
    assert by_csv == json.loads(done(mixed, "evaluate", "model.zarr", tmp_path / "new.zarr", "--json"))
    assert by_csv["accuracy"] == pytest.approx((found["prediction"] == truth).mean())


def test_scales_come_from_training_rows(mixed, tmp_path):
    """Values of new rows are scaled by the mean and deviation of old ones; gaps get the old mean."""
    done(mixed, "ingest", "new.csv", tmp_path / "new.zarr", "--like", "old.zarr")
    old, new = pd.read_csv(mixed / "old.csv"), pd.read_csv(mixed / "new.csv")
    known = old["weight"].dropna()
    expected = (new["weight"].fillna(known.mean()) - known.mean()) / known.std(ddof=0)
    X = zarr.open_group(tmp_path / "new.zarr", mode="r")["X"][:]
    np.testing.assert_allclose(X[:, -1], expected, rtol=1e-5, atol=1e-6)
    colours = np.array(sorted(set(old["colour"])))
    np.testing.assert_array_equal(X[:, 1:4], new["colour"].to_numpy()[:, None] == colours)


def events(path: Path) -> list[dict]:
    """The lines of a log."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def objective(name: str, work: Path) -> float:
    """(sum of squared residuals + alpha |coef|^2) / n over all outputs, from the loaded model."""
    model, (X, y, _) = dkl.load(work / f"{name}-model.zarr"), rows_of(work / TRAINS[name])
    if name == "diabetes":
        residual = y - model.predict(X)
    else:
        signs = np.where(y[:, None] == model.classes_, 1.0, -1.0)
        scores = model.decision_function(X)
        residual = (signs[:, 1] if scores.ndim == 1 else signs) - scores
    return float(((residual**2).sum() + model.alpha_ * (np.asarray(model.coef_) ** 2).sum()) / len(X))


@pytest.mark.parametrize("name", SETS)
def test_log_of_a_fit(work, name):
    """begin, a pass with its rows and seconds, the solve with its objective, end."""
    found = events(work / f"{name}.jsonl")
    kinds = [event["event"] for event in found]
    assert kinds[0] == "begin"
    assert kinds[-1] == "end"
    assert all(event["verb"] == "fit" and event["time"].endswith("+00:00") for event in found)
    assert [event["time"] for event in found] == sorted(event["time"] for event in found)
    rows = len(rows_of(work / TRAINS[name])[0])
    passes = [event for event in found if event["event"] == "pass"]
    assert passes
    assert all(event["rows"] == rows and event["seconds"] >= 0 for event in passes if "rows" in event)
    assert any(event["name"] == "adding up X" for event in passes)
    (solve,) = [event for event in found if event["event"] == "solve"]
    assert solve["objective"] == pytest.approx(objective(name, work), rel=1e-3)
    assert found[-1]["seconds"] > 0
    assert found[0]["params"]["n_components"] == int(FITS[name].split("--n-components ")[1].split(" ")[0])


def test_objective_in_float64(work, tmp_path):
    """With all digits the objective is that of the direct computation."""
    done(work, "fit", "diabetes.zarr", tmp_path / "diabetes-model.zarr", "--n-components", "30", "--dtype", "float64",
         "--log", tmp_path / "l.jsonl")  # fmt: skip
    (solve,) = [event for event in events(tmp_path / "l.jsonl") if event["event"] == "solve"]
    (tmp_path / "diabetes.zarr").symlink_to(work / "diabetes.zarr")
    assert solve["objective"] == pytest.approx(objective("diabetes", tmp_path), rel=1e-9)


def test_log_of_every_verb(work, tmp_path):
    """Verbs append to one file; a failure is an event too."""
    log = tmp_path / "l.jsonl"
    done(work, "ingest", "sklearn:iris", tmp_path / "i.zarr", "--log", log)
    done(work, "predict", "iris-model.zarr", "iris.zarr", tmp_path / "o.csv", "--log", log)
    done(work, "evaluate", "iris-model.zarr", "iris.zarr", "--log", log)
    found = events(log)
    for verb in ("ingest", "predict", "evaluate"):
        kinds = [event["event"] for event in found if event["verb"] == verb]
        assert kinds[0] == "begin"
        assert kinds[-1] == "end"
        assert "pass" in kinds
    (measured,) = [event for event in found if event["event"] == "evaluation"]
    assert measured["accuracy"] > 0.9


def test_log_to_stderr(work, tmp_path, monkeypatch):
    """--log - leaves stdout to the answer; no progress line stands between the events."""
    monkeypatch.setattr("dkl.engine.progress.LOG_SECONDS", 0.0)
    monkeypatch.setattr("dkl.engine.progress.DELAY_SECONDS", -1.0)
    monkeypatch.setattr("dkl.engine.progress.UPDATE_SECONDS", -1.0)
    words = ("evaluate", "iris-model.zarr", "iris.zarr", "--json")
    plain, said = dkl_in(work, *words), dkl_in(work, *words, "--log", "-")
    assert (plain.code, said.code) == (0, 0)
    assert "evaluating [" in plain.err
    assert json.loads(said.out) == json.loads(plain.out)
    found = [json.loads(line) for line in said.err.splitlines()]
    assert [event["event"] for event in found] == ["begin", "pass", "evaluation", "end"]
    assert not (work / "-").exists()


def test_cross_validation(work):
    """--cv chooses among its alphas, and inspect shows all."""
    model = dkl.load(work / "iris-model.zarr")
    found = json.loads(done(work, "inspect", "iris-model.zarr", "--json"))
    errors = {row["alpha"]: row["squared_error"] for row in found["cv"]}
    assert model.alpha_ == min(errors, key=errors.get)
    assert found["classes"] == ["setosa", "versicolor", "virginica"]


def test_another_loss_is_named(work):
    """The folds of a log loss measure no squared error; the certificate is a sentence."""
    words = ("--n-components", "30", "--loss", "log_loss", "--alpha", "0.1,1", "--cv", "3", "--max-iter", "50")
    said = done(work, "fit", "iris.zarr", "iris-log.zarr", *words)
    model, text = dkl.load(work / "iris-log.zarr"), done(work, "inspect", "iris-log.zarr")
    found = json.loads(done(work, "inspect", "iris-log.zarr", "--json"))
    least = -model.cv_results_["mean_test_score"].max()
    for shown in (said, text):
        assert "squared error" not in shown
        assert f"cross-validated loss {least:.4g}" in shown
        assert "loss  log_loss, penalty l2" in shown
        assert f"certificate  relative gradient {model.certificate_['value']:.2g}, below 0.0001" in shown
    assert min(row["loss"] for row in found["cv"]) == pytest.approx(least)
    assert found["certificate"] == model.certificate_
    square = done(work, "inspect", "iris-model.zarr")
    assert "cross-validated squared error" in square
    assert "loss  square, penalty l2" in square
    assert "learned" not in text, "nothing but weights"
    assert re.search(r"steps  \d+ iterations to find the weights, objective", text)
    assert "solved by  L-BFGS" in text


def test_the_choice_of_learn_components_in_words():
    """The factor with the least held-out loss, its alpha, and what else was tried."""
    table = {"factor": np.array([1.0, 2.0, 0.5]), "alpha": np.array([1.0, 0.1, 3.0]),
             "held_out_loss": np.array([0.3, 0.25, 0.4])}  # fmt: skip
    said = widened_in_words(_scales(table))
    assert said == "sigma times 2 of 0.5, 1, 2, with alpha 0.1: held-out loss 0.25"


@pytest.mark.parametrize(("met", "said"), [(True, "below 0.0001"), (False, "above 0.0001: not met")])
def test_a_certificate_in_words(met, said):
    """Whether it holds is said."""
    certificate = {"kind": "duality gap", "value": 0.00012 - 0.0001 * met, "tol": 1e-4, "met": met}
    assert certificate_in_words(certificate) == f"duality gap {certificate['value']:.2g}, {said}"


def test_calibrated(work, tmp_path):
    """--calibrate: thresholds of a sort of the scores without it; said by fit and inspect, used by evaluate."""
    said = done(work, *FITS["digits"].replace("digits-model", "digits-level").split(" "), "--calibrate", "120")
    plain, model = dkl.load(work / "digits-model.zarr"), dkl.load(work / "digits-level.zarr")
    X, y, _ = rows_of(work / TRAINS["digits"])
    wanted = np.sort(plain.decision_function(X), axis=0)[-120]
    np.testing.assert_allclose(model.thresholds_, wanted, atol=1e-6)  # of float32 blocks, cut otherwise
    lowest, highest = model.thresholds_.min(), model.thresholds_.max()
    line = f"calibrated  scores less {lowest:.4g} to {highest:.4g}, median {np.median(model.thresholds_):.4g}"
    assert line in said
    assert line in done(work, "inspect", "digits-level.zarr")
    assert json.loads(done(work, "inspect", "digits-level.zarr", "--json"))["thresholds"] == model.thresholds_.tolist()
    assert "thresholds" not in json.loads(done(work, "inspect", "digits-model.zarr", "--json"))
    found = json.loads(done(work, "evaluate", "digits-level.zarr", "digits.zarr/train", "--json"))
    predicted = (plain.decision_function(X) - model.thresholds_).argmax(axis=1)
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(y, predicted), abs=2e-3)
    assert (predicted != plain.predict(X)).any()
    done(work, "predict", "digits-level.zarr", "digits.zarr/train", tmp_path / "a.csv", "--scores")
    scores = pd.read_csv(tmp_path / "a.csv").iloc[:, 2:].to_numpy()
    np.testing.assert_allclose(scores, plain.decision_function(X) - model.thresholds_, atol=1e-5)


def test_unlabelled_rows_must_be_prepared_alike(work, tmp_path):
    """Rows of another scale are refused, as predict refuses them, and rows made with --like are taken."""
    words = ["fit", "digits.zarr", tmp_path / "m.zarr", "--n-components", "60", "--reduce", "20", "--unlabelled"]
    done(work, "ingest", "sklearn:digits", tmp_path / "raw.zarr")
    result = dkl_in(work, *words, tmp_path / "raw.zarr")
    assert result.code == 1
    assert "prepared in another way than the rows to fit to" in result.err
    done(work, "ingest", "sklearn:digits", tmp_path / "like.zarr", "--like", "digits.zarr")
    assert "20 axes with" in done(work, *words, tmp_path / "like.zarr")


def test_landmarks_and_axes_of_all_rows(work, tmp_path):
    """--landmarks, --reduce and --unlabelled reach the estimator, and fit says what was kept."""
    words = ["--n-components", "60", "--landmarks", "kmeans++", "--reduce", "20", "--alpha", "0.1"]
    said = done(work, "fit", "digits.zarr", tmp_path / "m.zarr", *words, "--unlabelled", "digits.zarr/test")
    assert "gaussian, 60 landmarks (kmeans++)\n" in said
    assert "60 of 64 inputs, float32; 20 axes with " in said
    model = dkl.load(tmp_path / "m.zarr")
    options = {
        "n_components": 60,
        "landmarks": "kmeans++",
        "reduce": 20,
        "alpha": 0.1,
        "dtype": "float32",
        "verbose": 0,
    }
    ours = dkl.SingleKernelClassifier(random_state=0, **options)
    ours.fit(str(work / "digits.zarr/train"), X_unlabelled=str(work / "digits.zarr/test"))
    np.testing.assert_array_equal(model.coef_, ours.coef_)
    assert json.loads(done(work, "inspect", tmp_path / "m.zarr", "--json"))["landmarks"] == "kmeans++"
    shown = done(work, "inspect", tmp_path / "m.zarr")
    assert "gaussian, 60 landmarks (kmeans++)\n" in shown
    assert "20 axes with" in shown
    assert json.loads(done(work, "evaluate", tmp_path / "m.zarr", "digits.zarr", "--json"))["accuracy"] > 0.8


def test_threads_change_no_bit(work, tmp_path):
    """One thread or two: the same files, byte for byte, but for what names the run."""
    arrays = []
    for threads in (1, 2):
        path = tmp_path / f"{threads}.zarr"
        done(work, "fit", "digits.zarr", path, "--n-components", "64", "--threads", threads)
        model = dkl.load(path)
        arrays.append((model.coef_.tobytes(), model.intercept_.tobytes(), model.features_.unit.tobytes()))
    assert arrays[0] == arrays[1]
    files = [{p.relative_to(tmp_path / f"{t}.zarr"): p.read_bytes() for p in (tmp_path / f"{t}.zarr").rglob("*")
              if p.is_file()} for t in (1, 2)]  # fmt: skip
    assert files[0] == files[1]


def test_plan(work, tmp_path):
    """For machines and for people; what cannot fit has exit code 3 and is said on stdout."""
    found = json.loads(done(work, "plan", "digits.zarr", "--n-components", "200", "--cv", "4", "--json"))
    assert found["fits"] is True
    for name in ("worker_bytes", "solve_bytes", "seconds", "solve_seconds", "total_seconds", "flops", "bytes_read"):
        assert found[name] > 0, name
    more = json.loads(done(work, "plan", "digits.zarr", "--n-components", "400", "--cv", "4", "--json"))
    assert more["flops"] > found["flops"]
    assert more["solve_bytes"] > found["solve_bytes"]
    assert "rows" in done(work, "plan", "digits.zarr", "--n-components", "200")
    here = dkl.SingleKernelClassifier(n_components=200, cv=4).plan(work / "digits.zarr/train", calibrate=False)
    assert (here.sizes.outputs, here.flops) == (10, found["flops"])  # the data set brings its y, in Python too


def test_plan_that_does_not_fit(work):
    """Exit code 3."""
    said = dkl_in(work, "plan", "digits.zarr", "--n-components", "5000000", "--json")
    assert said.code == 3
    assert json.loads(said.out)["fits"] is False
    assert said.err == ""


@pytest.mark.parametrize("words", ["inspect digits.zarr", "--help"])
def test_broken_pipe_is_quiet(work, words):
    """Whoever reads may stop; nothing is said about it."""
    line = f'"$PYTHON" -m dkl {words} | head -c 1 >/dev/null; echo "${{PIPESTATUS[0]}}"'
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
    ran = subprocess.run(["bash", "-c", line], cwd=work, env=environment, capture_output=True, text=True, timeout=60)
    assert ran.stderr == ""
    assert ran.stdout.strip() in ("0", "141")


def test_closed_pipe_has_its_code(work):
    """A pipe that nobody reads any more: exit code 141, as of programs that a SIGPIPE ends."""
    line = '(sleep 0.2; exec "$PYTHON" -m dkl inspect digits.zarr) | true; echo "${PIPESTATUS[0]}"'
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
    ran = subprocess.run(["bash", "-c", line], cwd=work, env=environment, capture_output=True, text=True, timeout=60)
    assert ran.stderr == ""
    assert ran.stdout.strip() == "141"


@pytest.mark.parametrize(
    "model",
    [
        dkl.FourierFeatures(n_components=12, verbose=0), dkl.NystroemFeatures(n_components=12, verbose=0),
        dkl.Chi2Features(n_terms=1, verbose=0), dkl.FeaturePCA(dkl.FourierFeatures(n_components=20), 12, verbose=0),
    ],
)  # fmt: skip
def test_transformers_are_shown_and_predict_nothing(work, tmp_path, model):
    """inspect says what they are; evaluate and predict say why they cannot."""
    model.fit(np.random.default_rng(0).random((50, 12))).save(tmp_path / "t.zarr")
    name = type(model).__name__
    shown = done(work, "inspect", tmp_path / "t.zarr")
    assert name in shown
    assert "12 of 12 inputs" in shown
    assert ("of the variance" in shown) == (name == "FeaturePCA")
    assert (f"{model.sigma_[0]:.4g}" if name != "Chi2Features" else "n_terms") in shown
    assert json.loads(done(work, "inspect", tmp_path / "t.zarr", "--json"))["estimator"] == name
    for words in (
        ("evaluate", tmp_path / "t.zarr", "digits.zarr"),
        ("predict", tmp_path / "t.zarr", "digits.zarr", "o.csv"),
    ):
        assert f"holds a {name}, which transforms rows and predicts nothing" in dkl_in(work, *words).err
